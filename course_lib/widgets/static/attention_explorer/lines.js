// One head as lines: target tokens on the left, what they look at on the right, a line for each weight.

import { svg } from "../shared/dom.js";
import { roving } from "../shared/focus.js";
import { strongest } from "./maps.js";

const ROW = 22; // pixels between two tokens
const LEFT = 108, RIGHT = 262;
const FAINTEST = 0.02; // weight that has a line
const HEADS = { encoder: ["looks", "is looked at"], decoder: ["is predicted", "was read"],
  cross: ["is predicted", "is looked at"] };

const place = (index) => ROW * (index + 1.6);

function drawQuery(map, focus, token, row) {
  const at = { x: LEFT, y: place(row), "text-anchor": "end", role: "img" };
  if (row >= map.rows)
    return svg("text", { ...at, class: "cw-token cw-muted", "aria-label": "not written yet" }, token);
  const show = () => focus.set(row, null);
  return svg("text", { ...at, class: "cw-token", "data-key": `query ${row}`,
    "aria-label": `${token}: ${strongest(map, row)}`, onmouseenter: show, onfocus: show }, token);
}

function drawKey(focus, token, column) {
  const show = () => focus.set(null, column);
  return svg("text", { x: RIGHT, y: place(column), class: "cw-token", role: "img", "aria-label": `${token}, as key`,
    "data-key": `key ${column}`, onmouseenter: show, onfocus: show }, token);
}

/** Lines of what is pointed at, or of all. */
function drawWeights({ rows, keys, weight }, focus) {
  const chosen = (row, column) =>
    (focus.row === null || focus.row === row) && (focus.column === null || focus.column === column);
  const drawn = [];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < keys.length; column++) {
      const share = weight(row, column);
      if (share < FAINTEST || !chosen(row, column)) continue;
      drawn.push(svg("line", { x1: LEFT + 6, x2: RIGHT - 6, y1: place(row) - 4, y2: place(column) - 4,
        stroke: "var(--cw-accent)", "stroke-width": (1 + 5 * share).toFixed(2),
        "stroke-opacity": (0.15 + 0.85 * share).toFixed(3),
        "data-row": row, "data-column": column, "data-weight": share.toFixed(4) }));
    }
  return drawn;
}

/** The picture, and what shows in it what is pointed at. */
export function drawLines(map, focus) {
  const height = ROW * (Math.max(map.queries.length, map.keys.length) + 1.5);
  const lines = svg("g");
  const queries = map.queries.map((token, row) => drawQuery(map, focus, token, row));
  const keys = map.keys.map((token, column) => drawKey(focus, token, column));
  roving(queries.slice(0, map.rows).concat(keys));
  const [asks, answers] = HEADS[map.kind];
  const picture = svg("svg", { width: 370, height, "aria-label": "lines between tokens", role: "group" },
    svg("text", { x: LEFT, y: 12, "text-anchor": "end", class: "cw-muted" }, asks),
    svg("text", { x: RIGHT, y: 12, class: "cw-muted" }, answers),
    lines, ...queries, ...keys);
  const update = () => {
    lines.replaceChildren(...drawWeights(map, focus));
    queries.forEach((node, row) => node.classList.toggle("cw-strong", focus.row === row));
    keys.forEach((node, column) => node.classList.toggle("cw-strong", focus.column === column));
  };
  return { picture, update };
}
