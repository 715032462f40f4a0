import { choice, toggle } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { refill } from "./shared/focus.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen, onceAFrame } from "./shared/model.js";
import { grouped, nearest, short } from "./shared/numbers.js";

const RUN = ["total", "seconds", "steps", "losses", "rates", "valid", "floor"];
const LOOKS = ["what", "log_y"];

const runOf = (model) => Object.fromEntries(RUN.map((name) => [name, model.get(name)]));

function drawCurves({ steps, losses, rates, valid, floor }, loss, logY, onpoint) {
  const [training, validation] = floor ? ["training, smoothed", "validation, plain"] : ["training", "validation"];
  const series = [{ name: loss ? training : "learning rate", xs: steps, ys: loss ? losses : rates }];
  if (loss && valid.length)
    series.push({ name: validation, xs: valid.map(([step]) => step), ys: valid.map(([, value]) => value) });
  if (loss && floor)
    series.push({ name: "floor of the smoothed loss", xs: [steps[0], steps.at(-1)], ys: [floor, floor] });
  const ylabel = loss ? "loss (nats per token)" : "learning rate";
  const chart = lineChart({ xlabel: "step", ylabel, series, logY, height: 260, onpoint });
  return { chart, names: series.length > 1 ? [legend(series.map(({ name }) => name))] : [] };
}

function render({ model, el: root }) {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "steps done" });
  const progress = el("span", {}), stage = el("div", {}), told = status();
  let pointed = null; // a step
  const draw = onceAFrame(() => {
    const run = runOf(model), { total, seconds, steps, losses, rates } = run;
    if (!steps.length) {
      progress.textContent = "waiting for the first step …";
      return;
    }
    const done = steps.at(-1), loss = losses.at(-1).toFixed(3);
    bar.value = done / total;
    progress.textContent = `step ${grouped(done)} of ${grouped(total)} · ${seconds.toFixed(0)} s · loss ${loss}`;
    const say = (index) => {
      pointed = steps[index];
      const words = `loss ${losses[index].toFixed(3)}, learning rate ${short(rates[index], 2)}`;
      told.textContent = `step ${grouped(pointed)}: ${words}`;
    };
    const { chart, names } = drawCurves(run, model.get("what") === "loss", model.get("log_y"), say);
    if (pointed) chart.mark(nearest(steps, pointed));
    refill(stage, chart, ...names);
  });
  fill(root, "Where does the loss fall fastest? Does the validation loss still go down with it?",
    row(bar, progress),
    row(
      choice(model, "what", { label: "show", options: [["loss", "loss"], ["rate", "learning rate"]] }),
      toggle(model, "log_y", { label: "logarithmic" })),
    stage, told);
  listen(model, [...RUN, ...LOOKS], draw);
}

export default { render };
