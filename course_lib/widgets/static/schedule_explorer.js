import { choice, keepers, slider } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { refill } from "./shared/focus.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen } from "./shared/model.js";
import { grouped, short } from "./shared/numbers.js";

const WIDTHS = [64, 96, 128, 256, 512, 1024, 2048];
const RUNS = [700, 10000, 100000, 300000];
const DECAYS = [["inverse_sqrt", "inverse square root (paper)"], ["linear", "linear to 0"]];

function drawCurves({ name, steps, rates, peak }, others, onpoint) {
  const marks = peak[0] < steps.at(-1) ? [{ name: "warmup_steps", x: peak[0] }] : []; // before the run ends
  const series = [{ name, xs: steps, ys: rates }];
  for (const other of others) series.push({ name: other.name, xs: other.steps, ys: other.rates });
  return lineChart({ xlabel: "step", ylabel: "learning rate", onpoint, marks, series });
}

function render({ model, el: root }) {
  const kept = [];
  const stage = el("div", {}), told = status();
  const draw = () => {
    const view = model.get("view"), { name, steps, rates, peak } = view;
    const say = (index) => (told.textContent = `step ${grouped(steps[index])}: rate ${short(rates[index], 2)}`);
    const others = kept.filter((each) => each.name !== name);
    refill(stage, drawCurves(view, others, say), legend([name, ...others.map((each) => each.name)]));
    const words = peak[0] < steps.at(-1) ? "peak at step" : "still warming up at the last step,";
    told.textContent = `${words} ${grouped(peak[0])}: rate ${short(peak[1], 2)}`;
  };
  const question =
    "Double the warm-up: what happens to the peak? Which d_model halves it? Where does each schedule end?";
  const runs = RUNS.map((steps) => [steps, grouped(steps)]);
  fill(root, question,
    row(
      choice(model, "d_model", { label: "d_model", options: WIDTHS.map((width) => [width, String(width)]) }),
      slider(model, "warmup_steps", { label: "warmup_steps", min: 100, max: 16000, step: 100, format: grouped }),
      choice(model, "total_steps", { label: "steps of the run", options: runs }),
      choice(model, "decay", { label: "after the warm-up", options: DECAYS }),
      ...keepers(model, kept, draw, "keep this curve")),
    stage, told);
  listen(model, "view", draw);
}

export default { render };
