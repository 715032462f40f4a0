// Numbers that are typed, dragged, or stepped by keys.

import { el } from "../shared/dom.js";
import { dragging } from "../shared/focus.js";
import { clamp } from "../shared/numbers.js";
import { brief, INPUTS } from "./attend.js";

const STEP = 0.5; // of a number, for a bit of dragging or Page Up
const PIXELS = 8; // of dragging for one step

/** The number that a text is, or undefined. */
function parsed(text, largest) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  const number = Number(plain);
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(plain) && Math.abs(number) <= largest ? number : undefined;
}

/** Escape brings the number back, Page Up and Page Down step it; the notebook's own keys stay away. */
function listenToKeys(input, value, step) {
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") input.value = brief(value());
    if (event.key === "PageUp" || event.key === "PageDown") {
      event.preventDefault();
      step(value(), event.key === "PageUp" ? 1 : -1);
    }
    if (event.key !== "Tab") event.stopPropagation();
  });
}

/** Right and up are more. */
function listenToPointer(input, value, step) {
  let drag = null;
  const down = (event) => {
    drag = { x: event.clientX, y: event.clientY, start: value(), moved: 0 };
  };
  const move = (event) => {
    const steps = Math.round((event.clientX - drag.x - (event.clientY - drag.y)) / PIXELS);
    if (steps === drag.moved) return;
    drag.moved = steps;
    step(drag.start, steps);
  };
  dragging(input, { down, move, up: () => input.focus() });
  input.addEventListener("mousedown", (event) => event.preventDefault()); // no selection of text while dragging
}

/** A cell of Q, K or V; `edit` takes its place and number, `refuse` a text that is none and the number that stays. */
export function inputCell({ model, names }, [name, row, column], edit, refuse) {
  const [letter, , rows, columns] = INPUTS[name], largest = model.get("limits").number;
  const label = `${letter}, ${names[rows][row]}, ${names[columns][column]}`;
  const input = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", maxlength: 40,
    "data-name": name, "aria-label": label });
  const value = () => model.get(name)[row][column];
  const step = (start, by) => edit([name, row, column], clamp(start + by * STEP, -largest, largest));
  input.addEventListener("change", () => {
    const number = parsed(input.value, largest);
    if (number === undefined) refuse(input.value, value());
    else edit([name, row, column], number);
  });
  input.addEventListener("focus", () => input.select());
  listenToKeys(input, value, step);
  listenToPointer(input, value, step);
  return el("td", {}, input);
}
