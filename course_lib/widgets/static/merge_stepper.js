import { makeText } from "./merge_stepper/text.js";
import { explain, judge, many, tell } from "./merge_stepper/words.js";
import { arrows, slider, textRow } from "./shared/controls.js";
import { filled } from "./shared/colors.js";
import { el, fill, muted, row, status } from "./shared/dom.js";
import { roving } from "./shared/focus.js";
import { listen, send, unhurried } from "./shared/model.js";
import { clamp } from "./shared/numbers.js";

/** Pairs that stand side by side, the most frequent first; a click chooses one. */
function drawPairs(step, choose) {
  if (!step) return [muted("No two symbols stand side by side in a word any more.")];
  const most = step.offered[0][2];
  const chips = step.offered.map(([left, right, count]) => {
    const looks = { class: "cw-pair", style: filled(count / most) };
    const data = { "data-pair": `${left} ${right}`, "data-count": count };
    const onclick = () => choose([left, right, count]);
    return el("button", { ...looks, ...data, onclick }, `${left} ${right} `, el("b", {}, String(count)));
  });
  roving(chips);
  const more = step.different - step.offered.length;
  return [muted("side by side:"), ...chips, ...(more ? [muted(`and ${many(more, "other pair")}`)] : [])];
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels); // steps need no kernel, texts do
  const told = status(), details = status(), pairs = el("div", { class: "cw-row cw-pairs" });
  const view = () => model.get("view"), all = () => view().steps.length;
  const made = () => Math.min(model.get("merges"), all());
  const text = makeText((symbol) => (details.textContent = explain(view(), made(), symbol)));
  const { back, on, show } = arrows("merge", (by) => send(model, { merges: clamp(made() + by, 0, all()) }));
  const track = slider(model, "merges", { label: "merges", min: 0, max: all() });
  const refresh = () => {
    const merges = made(), problem = model.get("message");
    Object.assign(track.querySelector("input"), { max: all(), value: merges });
    show({ first: merges === 0, last: merges === all() });
    const symbols = text.draw(view(), merges);
    told.classList.toggle("cw-error", Boolean(problem));
    told.textContent = problem || tell(view(), merges, symbols);
    const choose = (pair) => (details.textContent = judge(view(), made(), pair));
    pairs.replaceChildren(...drawPairs(view().steps[merges], choose));
    details.textContent = "Click the pair that you expect to be merged next; point at a symbol to see its number.";
  };
  const question = "Which pair is merged next? Predict it, then take the step. Which words are whole first, and what " +
    "becomes of a word that occurs once?";
  fill(root, question, textRow(model, { label: "text", button: "Learn" }), row(back, on, track),
    told, text.node, pairs, details);
  listen(model, ["merges", "view", "message"], refresh);
}

export default { render };
