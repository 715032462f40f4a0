import { choice, keepers, slider, toggle } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen, send } from "./shared/model.js";
import { short } from "./shared/numbers.js";

const NORM_WORDS = [["", "none"], ["post", "post-norm (paper)"], ["pre", "pre-norm"]];
const XLABEL = "layers passed (0 = the embedding)";

function drawCurves(views, what, ylabel) {
  const series = views.map((view) => ({ name: view.name, xs: view[what].map((_, depth) => depth), ys: view[what] }));
  return lineChart({ width: 400, height: 260, xlabel: XLABEL, ylabel, logY: true, series });
}

function render({ model, el: root }) {
  const kept = [];
  const stage = row(), told = status();
  const draw = () => {
    const view = model.get("view");
    const views = [view, ...kept.filter((each) => each.name !== view.name)];
    stage.replaceChildren(
      drawCurves(views, "gradients", "gradient norm"),
      drawCurves(views, "sizes", "size of the vectors"),
      legend(views.map((each) => each.name)));
    const ratio = view.gradients[0] / view.gradients.at(-1);
    told.textContent = `${view.name}: the gradient at the bottom is ${short(ratio)} times the one at the top`;
  };
  fill(root, "Remove the residuals: how deep can the stack be? Which norm keeps both curves flat?",
    row(
      slider(model, "depth", { label: "layers", min: 1, max: 48 }),
      toggle(model, "residual", { label: "residuals" }),
      choice(model, "norm", { label: "norm", options: NORM_WORDS }),
      el("button", { onclick: () => send(model, { seed: model.get("seed") + 1 }) }, "other weights"),
      ...keepers(model, kept, draw, "keep these curves")),
    stage, told);
  listen(model, "view", draw);
}

export default { render };
