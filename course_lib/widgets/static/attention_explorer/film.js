// The training as a film: a slider over its steps, a button that plays them, and what the heads find at each.

import { choice, slider } from "../shared/controls.js";
import { el, row, status } from "../shared/dom.js";
import { refill } from "../shared/focus.js";
import { legend, lineChart } from "../shared/line_chart.js";
import { listen, send } from "../shared/model.js";
import { grouped, percent } from "../shared/numbers.js";
import { drawRoles } from "./roles.js";

const PAUSE = 700; // milliseconds between two steps
const QUESTION = "Play the training: when does a head begin to find the word that is being translated? What does the " +
  "model write by then? Which role comes first, and which one disappears again?";
const WHOSE = [[false, "the finished model's German: the same at every step"],
  [true, "its own German: what it writes at this step"]];

/** The button that plays; a step stays until the kernel has shown it. */
function makePlayer(model, last) {
  const button = el("button", { "data-key": "play" });
  let timer = null;
  const show = () => {
    button.textContent = timer === null ? "▶ play" : "■ stop";
    button.setAttribute("aria-pressed", String(timer !== null));
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    show();
  };
  const tick = () => {
    const frame = model.get("frame"), seen = model.get("view").frame === frame || model.get("message");
    if (!button.isConnected || (seen && frame === last)) {
      stop();
      return;
    }
    if (seen) send(model, { frame: frame + 1 });
    timer = setTimeout(tick, PAUSE);
  };
  button.addEventListener("click", () => {
    if (timer !== null) {
      stop();
      return;
    }
    if (model.get("frame") === last) send(model, { frame: 0 });
    timer = setTimeout(tick, PAUSE);
    show();
  });
  show();
  return { button, stop };
}

/** The rates of the chosen head at each step, if it is one of the cross-attention. */
function chosenRates(model) {
  const [kind, layer, head] = ["kind", "layer", "head"].map((name) => model.get(name));
  const { rates } = model.get("film");
  return kind === "cross" && head >= 0 && layer < rates[0].length ? rates.map((step) => step[layer][head]) : null;
}

/** The curves of the chart: name and rates at all steps. */
function curvesOf(model) {
  const { steps, best_rates: best, diagonal } = model.get("film"), chosen = chosenRates(model);
  const name = `head ${model.get("layer")}.${model.get("head")}`;
  return [["best head", best], ...(chosen ? [[name, chosen]] : []), ["diagonal", steps.map(() => diagonal)]];
}

function drawErrors(model) {
  const { steps } = model.get("film");
  const series = curvesOf(model).map(([name, ys]) => ({ name, xs: steps, ys: ys.map((rate) => 100 * rate) }));
  const size = { width: 420, height: 190, logX: true, rows: 5 };
  return lineChart({ ...size, series, xlabel: "training step", ylabel: "alignment error (%)" });
}

/** The error rates at the present step: the legend of the chart, with numbers. */
function tell(model, told) {
  const { steps, sentences, best } = model.get("film"), frame = model.get("frame");
  const words = `Alignment error at step ${grouped(steps[frame])}, on ${sentences} sentences:`;
  const names = curvesOf(model).map(([name, rates], index) =>
    `${name}${index ? "" : ` of this step, ${best[frame].join(".")}`}: ${percent(rates[frame])}`);
  told.replaceChildren(words, legend(names));
}

/** The question, the controls above the pictures, and the findings below them. */
export function makeFilm(model) {
  const { steps } = model.get("film"), last = steps.length - 1;
  const format = (frame) => grouped(steps[frame]);
  const track = slider(model, "frame", { label: "training step", min: 0, max: last, format });
  const player = makePlayer(model, last);
  track.querySelector("input").addEventListener("input", player.stop);
  const whose = choice(model, "own", { label: "reads", options: WHOSE });
  const errors = el("div", {}), told = status("cw-errors"), roles = el("div", { class: "cw-scroll cw-roles" });
  let chart = null;
  const drawChart = () => {
    chart = drawErrors(model);
    errors.replaceChildren(chart);
  };
  const drawStep = () => {
    chart.mark(model.get("frame"));
    tell(model, told);
    refill(roles, drawRoles(model));
  };
  listen(model, ["kind", "layer", "head"], drawChart);
  listen(model, ["kind", "layer", "head", "frame"], drawStep);
  return { question: QUESTION, controls: row(track, player.button, whose), findings: [row(errors, told), roles] };
}
