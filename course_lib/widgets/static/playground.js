import { labelled } from "./shared/controls.js";
import { behind } from "./shared/colors.js";
import { el, fill, muted, row, status } from "./shared/dom.js";
import { listen, send } from "./shared/model.js";

const PAUSE = 150; // milliseconds without a key, before the kernel is asked

function box(model) {
  const input = el("input", { type: "text", maxlength: 4000, spellcheck: "false",
    "data-lm-suppress-shortcuts": "true" });
  let waiting = null;
  input.value = model.get("text");
  input.addEventListener("keydown", (event) => event.stopPropagation()); // the notebook's own keys stay away
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => send(model, { text: input.value }), PAUSE);
  });
  model.on("change:text", () => {
    if (document.activeElement !== input) input.value = model.get("text");
  });
  return input;
}

/** Tokens that were read and written, those with their probabilities; none of a text of several sentences. */
function piecesOf({ src, tgt, probabilities }) {
  if (!tgt.length) return [];
  const written = tgt.map((token, index) => {
    const probability = probabilities[index], title = `probability ${probability.toFixed(3)}`;
    const style = `background: ${behind(probability)}`;
    const looks = { class: "cw-chip", "data-probability": probability.toFixed(4), title, style };
    return el("span", looks, `${token} ${probability.toFixed(2)}`);
  });
  const read = src.map((token) => el("span", { class: "cw-chip" }, token));
  return [muted("read"), ...read, muted("written"), ...written];
}

function render({ model, el: root }) {
  const answer = el("div", { class: "cw-answer", role: "status", lang: "de" });
  const message = status(), pieces = row(), told = el("div", { class: "cw-muted" });
  const remarks = el("div", { class: "cw-remarks", role: "status" });
  fill(root, "Type a sentence. Where is the model unsure, and is it right where it is sure?",
    row(el("span", { class: "cw-control cw-wide" }, labelled("English", box(model)))),
    answer, remarks, message, pieces, told);
  listen(model, ["view", "message"], () => {
    const view = model.get("view"), problem = model.get("message");
    message.textContent = problem;
    message.classList.toggle("cw-error", Boolean(problem));
    if (!view.tgt) return;
    answer.textContent = view.text;
    pieces.replaceChildren(...piecesOf(view));
    const numbers = "; the number of each German piece is its probability, after the pieces before it";
    const took = `${view.milliseconds.toFixed(0)} ms ${view.where || "in the kernel"}`;
    told.textContent = took + (view.tgt.length ? numbers : "");
    remarks.textContent = view.remarks.join("; ");
  });
}

export default { render };
