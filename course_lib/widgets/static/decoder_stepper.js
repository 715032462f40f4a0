import { drawStep, NAMES } from "./decoder_stepper/drawing.js";
import { stepOf, tell } from "./decoder_stepper/steps.js";
import { arrows, choice, countTo, refusal, slider, textRow } from "./shared/controls.js";
import { shade } from "./shared/colors.js";
import { el, fill, row, status, svg, together } from "./shared/dom.js";
import { listen, send, unhurried } from "./shared/model.js";
import { clamp, grouped, percent } from "./shared/numbers.js";

const BAR = 20; // pixels from bar to bar
const WIDE = 240; // of a bar of 100 %

/** The most probable tokens, and what is left for all others. */
function drawCandidates({ candidates, others }, now) {
  const rest = 1 - candidates[now].reduce((total, [, probability]) => total + probability, 0);
  const rows = candidates[now].concat([[`${grouped(others)} others`, rest]]);
  const bars = rows.flatMap(([token, probability], row) => {
    const width = WIDE * Math.max(0, probability), y = BAR * row + 14;
    return [
      svg("text", { x: NAMES - 6, y, "text-anchor": "end" }, token),
      svg("rect", { x: NAMES, y: BAR * row + 3, width, height: 14, fill: shade(0.75) }),
      svg("text", { x: NAMES + width + 5, y, class: "cw-number", "data-probability": probability },
        percent(probability)),
    ];
  });
  const looks = { width: 420, height: BAR * rows.length, role: "group", "aria-label": "most probable tokens" };
  return svg("svg", looks, ...bars);
}

/** Draws the present step on the stage: in view, if the sentence is long, and with the focus that was there. */
function show(stage, model, goto) {
  const held = stage.contains(document.activeElement);
  stage.replaceChildren(drawStep(model, goto));
  const present = stage.querySelector("[aria-pressed=true]");
  stage.scrollLeft = present.firstChild.x.baseVal.value - stage.clientWidth / 2;
  if (held) present.focus({ preventScroll: true });
}

function headChoices(model) {
  const layers = () => countTo(model.get("view").layers);
  const heads = () => [[-1, "mean of all"], ...countTo(model.get("view").heads)];
  return [choice(model, "layer", { label: "layer", options: layers, depends: ["view"] }),
    choice(model, "head", { label: "head", options: heads, depends: ["view"] })];
}

function render({ model: kernel, el: root }) {
  const model = unhurried(kernel); // the kernel has nothing to do for a step
  const stage = el("div", { class: "cw-scroll" }), candidates = el("div", {}), told = status("cw-told");
  const last = () => model.get("view").predicted.length;
  const goto = (step) => send(model, { step: clamp(step, 1, last()) });
  const steps = slider(model, "step", { label: "step", min: 1, max: last() });
  const { back, on, show: showArrows } = arrows("step", (by) => goto(stepOf(model) + by));
  const draw = () => {
    const step = stepOf(model);
    show(stage, model, goto);
    candidates.replaceChildren(drawCandidates(model.get("view"), step - 1));
    told.textContent = tell(model);
    showArrows({ first: step === 1, last: step === last() });
  };
  root.classList.add("cw-stepper");
  const question = "Before each step: which token comes next, and which English token will the decoder look at to " +
    "predict it? Does it look at the translation of what it has read, or of what it predicts?";
  fill(root, question, textRow(model, { label: "English", button: "Translate" }),
    row(steps, together(back, on), ...headChoices(model)),
    refusal(kernel), stage, told, candidates);
  listen(model, "view", () => (steps.querySelector("input").max = last()));
  listen(model, ["view", "step", "layer", "head"], draw);
}

export default { render };
