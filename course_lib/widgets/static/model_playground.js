import { behind, filled, shade } from "./shared/colors.js";
import { slider, refusal, textRow } from "./shared/controls.js";
import { el, fill, listing, muted, row, status } from "./shared/dom.js";
import { dragging, rovingGrid } from "./shared/focus.js";
import { listen, send } from "./shared/model.js";
import { percent } from "./shared/numbers.js";

/** A square table of buttons to paint on. */
function canvas(side, press) {
  const pressed = (i, j) => (event) => event.detail || press(i, j); // the pointer's strokes are painted elsewhere
  const cells = Array.from({ length: side }, (_, i) => Array.from({ length: side }, (_, j) =>
    el("button", { class: "cw-cell", "data-row": i, "data-column": j, onclick: pressed(i, j) })));
  rovingGrid(cells);
  const rows = cells.map((line) => el("tr", {}, ...line.map((cell) => el("td", {}, cell))));
  const caption = el("caption", {}, "click or drag to paint");
  return { node: el("table", { class: "cw-matrix cw-mask" }, caption, ...rows), cells };
}

/** The patches and how much the class token looks at each. */
function patches(count) {
  const cells = Array.from({ length: count }, (_, i) => Array.from({ length: count }, (_, j) =>
    el("span", { class: "cw-weight", role: "img", "data-row": i, "data-column": j })));
  const rows = cells.map((line) => el("tr", {}, ...line.map((cell) => el("td", {}, cell))));
  return { node: el("table", { class: "cw-matrix" }, el("caption", {}, "the class token looks at"), ...rows), cells };
}

/** Painting with the pointer: the first pixel says whether ink comes or goes. */
function strokes(painted, model, side) {
  let ink = 1;
  const paint = (i, j) => {
    if (i < 0 || j < 0 || i >= side || j >= side) return;
    const pixels = [...model.get("pixels")];
    pixels[i * side + j] = ink;
    send(model, { pixels });
  };
  const down = (event) => {
    const { row: i, column: j } = event.target.dataset;
    if (i === undefined || event.button) return false;
    ink = model.get("pixels")[Number(i) * side + Number(j)] > 0.5 ? 0 : 1;
    paint(Number(i), Number(j));
    return true;
  };
  const move = (event) => {
    const box = painted.cells[0][0].getBoundingClientRect();
    paint(Math.floor((event.clientY - box.top) / box.height), Math.floor((event.clientX - box.left) / box.width));
  };
  dragging(painted.node, { down, move });
}

/** The picture, and what the classifier makes of it. */
function classifier(model) {
  const side = Math.sqrt(model.get("pixels").length), count = Math.sqrt(model.get("looks").length);
  const toggle = (i, j) => {
    const pixels = [...model.get("pixels")];
    pixels[i * side + j] = pixels[i * side + j] > 0.5 ? 0 : 1;
    send(model, { pixels });
  };
  const painted = canvas(side, toggle), seen = patches(count), answer = el("div", {}), told = status();
  strokes(painted, model, side);
  const show = () => {
    model.get("pixels").forEach((pixel, index) => {
      const cell = painted.cells[Math.floor(index / side)][index % side];
      cell.style.background = shade(pixel);
      cell.setAttribute("aria-label", `row ${Math.floor(index / side)}, column ${index % side}: ${percent(pixel)}`);
    });
    model.get("looks").forEach((weight, index) => {
      const cell = seen.cells[Math.floor(index / count)][index % count];
      cell.style.background = behind(weight);
      cell.textContent = weight.toFixed(2);
    });
    const probs = model.get("probs"), best = probs.indexOf(Math.max(...probs));
    answer.replaceChildren(listing(["digit", "probability"], probs.map((prob, digit) =>
      el("tr", { style: filled(prob) }, el("td", {}, String(digit)), el("td", {}, percent(prob))))));
    told.textContent = `The classifier says ${best}, with ${percent(probs[best])}.`;
  };
  listen(model, ["pixels", "probs", "looks"], show);
  const buttons = model.get("examples").map((pixels, index) =>
    el("button", { onclick: () => send(model, { pixels }) }, `example ${index + 1}`));
  const clear = el("button", { onclick: () => send(model, { pixels: model.get("pixels").map(() => 0) }) }, "clear");
  const stage = el("div", { class: "cw-row cw-stage" }, painted.node, seen.node, answer);
  return [row(muted("picture:"), ...buttons, clear), stage, told];
}

/** The beginning of a text, and how the writer goes on. */
function writer(model) {
  const texts = el("ul", {}), format = (value) => value.toFixed(2);
  listen(model, "written", () => texts.replaceChildren(...model.get("written").map((text) => el("li", {}, text))));
  return [textRow(model, { label: "beginning", button: "Write" },
    slider(model, "temperature", { label: "temperature", min: 0.05, max: 2, step: 0.05, format }),
    slider(model, "seed", { label: "seed", min: 0, max: 99 })), refusal(model), texts];
}

function render({ model, el: root }) {
  const question = "Erase one patch of a digit: which one changes the answer? Then let the writer go on with " +
    "“The old”, and raise the temperature until hardly a word is left.";
  fill(root, question, ...classifier(model), ...writer(model));
}

export default { render };
