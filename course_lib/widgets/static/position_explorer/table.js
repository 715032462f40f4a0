// The table of encodings, with marks of both positions that can be dragged.

import { el, svg } from "../shared/dom.js";
import { dragging } from "../shared/focus.js";
import { clamp, grouped, signed } from "../shared/numbers.js";
import { makePixels } from "../shared/pixels.js";
import { encoding, wavelength } from "./encoding.js";

const LEFT = 62, WIDTH = 300, TOP = 20, HEIGHT = 300, BESIDE = 72; // of the drawing, in pixels
const NARROW = 12; // pixels between two marks, less have no room for words
const END = LEFT + WIDTH, BOTTOM = TOP + HEIGHT;

function drawAxes(now) {
  const last = now.d_model / 2 - 1, around = (pair) => grouped(wavelength(pair, now));
  const words = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor, class: "cw-muted" }, text);
  return [
    svg("rect", { x: LEFT, y: TOP, width: WIDTH, height: HEIGHT, class: "cw-frame" }),
    words(LEFT, 14, "dimension 0", "start"), words(END, 14, String(now.d_model - 1), "end"),
    words(LEFT, BOTTOM + 15, `once around in ${around(0)} words`, "start"),
    words(END, BOTTOM + 15, last ? `in ${around(last)}` : "", "end"),
    words(LEFT, BOTTOM + 31, "+1 is orange, −1 is blue, 0 is the page", "start"),
  ];
}

/** A position and where it is moved on to by the offset. */
function drawMark(now, name, on) {
  const position = now[name] + on, second = name === "second";
  if (position >= now.length) return "";
  const y = TOP + ((position + 0.5) / now.length) * HEIGHT;
  const near = (on / now.length) * HEIGHT < NARROW, words = on ? (near ? "" : `+${on}`) : `${name} ${position}`;
  const place = second ? { x: END + 4, "text-anchor": "start" } : { x: LEFT - 4, "text-anchor": "end" };
  return svg("g", { class: second ? "cw-mark cw-mark-second" : "cw-mark", "data-position": position },
    svg("line", { x1: LEFT, x2: END, y1: y, y2: y, "stroke-dasharray": on ? "4 3" : null }),
    svg("text", { ...place, y: y + 4 }, words));
}

const drawMarks = (now) => ["first", "second"].flatMap((name) =>
  [...new Set([0, now.offset])].map((on) => drawMark(now, name, on)));

/** A number of the table in words. */
function describe(now, position, dimension) {
  const pair = Math.floor(dimension / 2), value = signed(encoding(position, now)[dimension], 3);
  return `position ${position}, dimension ${dimension}: ${dimension % 2 ? "cosine" : "sine"} of pair ${pair}, ` +
    `which comes round in ${grouped(wavelength(pair, now))} words: ${value}`;
}

/** The pointer drags the mark that is nearer, and tells what it is over. */
function listenTo(overlay, canvas, stateOf, set, tell) {
  const at = (event) => { // position and dimension under the pointer
    const box = canvas.getBoundingClientRect(), { length, d_model } = stateOf();
    const share = (place, size, count) => clamp(Math.floor((place / size) * count), 0, count - 1);
    return [share(event.clientY - box.top, box.height, length), share(event.clientX - box.left, box.width, d_model)];
  };
  let held = null; // the mark that is dragged
  const drag = (event) => {
    const [position] = at(event);
    if (position !== stateOf()[held]) set({ [held]: position });
  };
  const down = (event) => {
    const [position] = at(event), { first, second } = stateOf();
    held = Math.abs(position - first) <= Math.abs(position - second) ? "first" : "second";
    drag(event);
  };
  dragging(overlay, { down, move: drag });
  overlay.addEventListener("pointermove", (event) => tell(describe(stateOf(), ...at(event))));
}

/** The table, what draws it, and what takes the colors of the page. */
export function makeTable(stateOf, set, tell) {
  const place = { left: LEFT, top: TOP, width: WIDTH, height: HEIGHT };
  const style = Object.entries(place).map(([name, pixels]) => `${name}: ${pixels}px`).join("; ");
  const keyOf = ({ length, d_model, base }) => [length, d_model, base];
  const rowsOf = (now) => Array.from({ length: now.length }, (_, position) => encoding(position, now));
  const { canvas, draw: drawPixels, takeColors } = makePixels(style, keyOf, rowsOf);
  const marks = svg("g"), axes = svg("g");
  const size = { width: END + BESIDE, height: BOTTOM + 36 };
  const overlay = svg("svg", { ...size, class: "cw-drags", role: "img" }, axes, marks);
  listenTo(overlay, canvas, stateOf, set, tell);
  const draw = (now) => {
    drawPixels(now);
    axes.replaceChildren(...drawAxes(now));
    overlay.setAttribute("aria-label", `table of ${now.length} positions and ${now.d_model} dimensions`);
    marks.replaceChildren(...drawMarks(now));
  };
  const recolor = (root) => {
    takeColors(root);
    drawPixels(stateOf());
  };
  return { node: el("div", { class: "cw-table" }, canvas, overlay), draw, recolor };
}
