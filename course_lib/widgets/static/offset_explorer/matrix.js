// The scores of all pairs of positions; the pair is dragged, and where the shift takes it is drawn beside it.

import { el, svg } from "../shared/dom.js";
import { dragging } from "../shared/focus.js";
import { clamp, signed } from "../shared/numbers.js";
import { makePixels } from "../shared/pixels.js";

const LEFT = 44, TOP = 24, SIZE = 320; // of the drawing, in pixels
const END = LEFT + SIZE, BOTTOM = TOP + SIZE;

const largest = ({ scores }) => Math.max(...scores.map((row) => Math.max(...row.map(Math.abs)))) || 1;

function drawAxes({ length }) {
  const words = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor, class: "cw-muted" }, text);
  const beside = { transform: `translate(${LEFT - 8},${TOP + SIZE / 2}) rotate(-90)`, "text-anchor": "middle" };
  return [
    svg("rect", { x: LEFT, y: TOP, width: SIZE, height: SIZE, class: "cw-frame" }),
    words(LEFT, TOP - 8, "0", "start"), words(END, TOP - 8, String(length - 1), "end"),
    words(LEFT + SIZE / 2, TOP - 8, "position of the key", "middle"),
    svg("text", { ...beside, class: "cw-muted" }, "position of the query"),
  ];
}

/** The pair, where both are shifted, and the diagonal that leads from one to the other. */
function drawMarks({ query, key, shift, length }) {
  const cell = SIZE / length, at = (place, edge) => edge + (place + 0.5) * cell;
  const spot = (on) => svg("circle", { cx: at(key + on, LEFT), cy: at(query + on, TOP), r: 6,
    "stroke-dasharray": on ? "3 2" : null, fill: "none", "data-query": query + on, "data-key": key + on });
  const end = { x2: at(key + shift, LEFT), y2: at(query + shift, TOP) };
  const way = svg("line", { x1: at(key, LEFT), y1: at(query, TOP), ...end });
  return [way, ...[...new Set([0, shift])].map(spot)];
}

function listenTo(overlay, canvas, nowOf, set) {
  const choose = (event) => {
    const box = canvas.getBoundingClientRect(), { length, query, key, most } = nowOf();
    const share = (place, size) => clamp(Math.floor((place / size) * length), 0, most);
    const to = { query: share(event.clientY - box.top, box.height), key: share(event.clientX - box.left, box.width) };
    if (to.query !== query || to.key !== key) set(to);
  };
  dragging(overlay, { down: choose, move: choose });
}

/** The matrix, what draws it, and what takes the colors of the page. */
export function makeMatrix(set, most) {
  const style = `left: ${LEFT}px; top: ${TOP}px; width: ${SIZE}px; height: ${SIZE}px`;
  const keyOf = ({ encoding, base, d_k, head, scores }) => [encoding, base, d_k, head, scores[0][1], scores[1][0]];
  const rowsOf = (now) => {
    const end = largest(now);
    return now.scores.map((row) => row.map((score) => score / end));
  };
  const { canvas, draw: drawPixels, takeColors } = makePixels(style, keyOf, rowsOf);
  const marks = svg("g", { class: "cw-mark" }), axes = svg("g"), key = el("div", { class: "cw-muted" });
  const size = { width: END + 12, height: BOTTOM + 8 };
  const overlay = svg("svg", { ...size, class: "cw-drags", role: "img" }, axes, marks);
  let latest = null;
  listenTo(overlay, canvas, () => ({ ...latest, most }), set);
  const draw = (now) => {
    latest = now;
    drawPixels(now);
    axes.replaceChildren(...drawAxes(now));
    overlay.setAttribute("aria-label", `scores of ${now.length} queries and as many keys`);
    marks.replaceChildren(...drawMarks(now));
    const end = signed(largest(now));
    key.textContent = `orange is +${end}, blue is −${end}, 0 is the page; drag the circle`;
  };
  const recolor = (root, now) => {
    takeColors(root);
    drawPixels(now);
  };
  const table = el("div", { class: "cw-table" }, canvas, overlay);
  return { node: el("div", {}, table, key), draw, recolor };
}
