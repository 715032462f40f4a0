// Controls of a model's traits. Keys stay with them: JupyterLab would take arrow keys for its cells.

import { el, row, status, unique } from "./dom.js";
import { listen, send } from "./model.js";

/** A control under its name; `get` and `set` read and write its value as text. */
export function labelled(name, control, output = null) {
  control.id = unique("cw-control");
  const label = el("label", { for: control.id }, name);
  return el("span", { class: "cw-control" }, label, control, ...(output ? [output] : []));
}

/** A slider for a number trait. */
export function slider(model, name, { label, min, max, step = 1, format = String }) {
  const input = el("input", { type: "range", min, max, step, "data-lm-suppress-shortcuts": "true" });
  const output = el("output", {});
  const show = () => {
    input.value = model.get(name);
    output.textContent = format(model.get(name));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => send(model, { [name]: Number(input.value) }));
  listen(model, name, show);
  return labelled(label, input, output);
}

/** A list of choices for a text or number trait: pairs of value and words, or what a function makes of the model. */
export function choice(model, name, { label, options, depends = [] }) {
  const input = el("select", { "data-lm-suppress-shortcuts": "true" });
  let values = [];
  const refill = () => {
    const found = typeof options === "function" ? options(model) : options;
    values = found.map(([value]) => value);
    input.replaceChildren(...found.map(([, words]) => el("option", {}, words)));
    input.selectedIndex = values.indexOf(model.get(name));
  };
  input.addEventListener("change", () => send(model, { [name]: values[input.selectedIndex] }));
  for (const other of depends) model.on(`change:${other}`, refill);
  listen(model, name, refill);
  return labelled(label, input);
}

/** Options from 0 to below `count`. */
export function countTo(count) {
  return Array.from({ length: count }, (_, number) => [number, String(number)]);
}

/** A box for a bool trait. */
export function toggle(model, name, { label }) {
  const input = el("input", { type: "checkbox" });
  input.addEventListener("change", () => send(model, { [name]: input.checked }));
  listen(model, name, () => (input.checked = model.get(name)));
  return labelled(label, input);
}

/** A row with a line of text for the trait `text`, sent with Enter or the button, and what stands beside it. */
export function textRow(model, { label, button, list = null }, ...beside) {
  const input = el("input", { type: "text", maxlength: 2000, spellcheck: "false", list,
    "data-lm-suppress-shortcuts": "true" });
  const go = () => {
    send(model, { text: input.value });
    if (model.flush) model.flush(); // behind what was set before
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go();
    event.stopPropagation(); // the notebook's own keys stay away from what is typed
  });
  listen(model, "text", () => (input.value = model.get("text")));
  const sender = el("button", { onclick: go }, button);
  return row(el("span", { class: "cw-control cw-wide" }, labelled(label, input), sender), ...beside);
}

/** The line that tells what the kernel has refused. */
export function refusal(model) {
  const line = status("cw-error");
  listen(model, "message", () => (line.textContent = model.get("message")));
  return line;
}

/** Buttons that keep the present view, the newest three in `kept`, beside those to come, and forget what was kept. */
export function keepers(model, kept, draw, label) {
  const hold = (views) => {
    kept.splice(0, Infinity, ...views);
    draw();
  };
  const keep = () => {
    const view = model.get("view");
    hold([view, ...kept.filter((each) => each.name !== view.name)].slice(0, 3));
  };
  return [el("button", { onclick: keep }, label), el("button", { onclick: () => hold([]) }, "forget the others")];
}

/** Buttons one step back and on, and `show` for where the steps are: the focus of one that goes off moves over. */
export function arrows(thing, step) {
  const back = el("button", { "aria-label": `one ${thing} back`, onclick: () => step(-1) }, "◀");
  const on = el("button", { "aria-label": `one ${thing} on`, onclick: () => step(1) }, "▶");
  const show = ({ first, last }) => {
    const held = [back, on].find((button) => button === document.activeElement);
    back.disabled = first;
    on.disabled = last;
    if (held && held.disabled) (held === back ? on : back).focus({ preventScroll: true });
  };
  return { back, on, show };
}
