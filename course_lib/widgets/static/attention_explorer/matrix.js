// One head as a matrix; outlines are gold links.

import { shade } from "../shared/colors.js";
import { svg } from "../shared/dom.js";

const CELL = 20; // pixels

/** Where things are: `row` and `column` are the left and upper edges of theirs. */
function gridOf({ queries, keys }, cell, labels) {
  const [left, top] = labels ? [96, 84] : [2, 2];
  const wide = cell * keys.length, high = cell * queries.length;
  const column = (number) => left + cell * number, row = (number) => top + cell * number;
  return { left, top, cell, wide, high, column, row };
}

function drawCells(map, { cell, column, row }) {
  const cells = svg("g");
  for (let query = 0; query < map.rows; query++)
    for (let key = 0; key < map.keys.length; key++) {
      const weight = map.weight(query, key);
      cells.append(svg("rect", { x: column(key), y: row(query), width: cell, height: cell, fill: shade(weight),
        "data-row": query, "data-column": key, "data-weight": weight.toFixed(4) }));
    }
  return cells;
}

function drawGold(map, gold, { cell, column, row }) {
  const inner = { width: cell - 3, height: cell - 3, class: "cw-gold" };
  return gold.filter(([, query]) => query < map.rows)
    .map(([key, query]) => svg("rect", { x: column(key) + 1.5, y: row(query) + 1.5, ...inner }));
}

function drawNames(map, { left, top, column, row }) {
  const queries = map.queries.map((token, query) => {
    const looks = query < map.rows ? "" : "cw-muted";
    return svg("text", { x: left - 6, y: row(query + 0.7), "text-anchor": "end", class: looks }, token);
  });
  const keys = map.keys.map((token, key) =>
    svg("text", { transform: `translate(${column(key + 0.7)},${top - 6}) rotate(-60)` }, token));
  return [...queries, ...keys];
}

/** The row and the column that are pointed at, as frames around them. */
function drawBars(focus, { left, top, cell, wide, high, column, row }) {
  const bars = [svg("rect", { class: "cw-bar" }), svg("rect", { class: "cw-bar" })];
  const update = () => {
    const spans = [
      focus.row === null ? null : { x: left, y: row(focus.row), width: wide, height: cell },
      focus.column === null ? null : { x: column(focus.column), y: top, width: cell, height: high },
    ];
    bars.forEach((bar, index) => {
      bar.setAttribute("visibility", spans[index] ? "visible" : "hidden");
      for (const [name, value] of Object.entries(spans[index] || {})) bar.setAttribute(name, value);
    });
  };
  return { bars, update };
}

/** The picture, and what shows in it what is pointed at. */
export function drawMatrix(map, focus, { cell = CELL, labels = true, gold = null } = {}) {
  const grid = gridOf(map, cell, labels), cells = drawCells(map, grid);
  const frame = svg("rect", { x: grid.left, y: grid.top, width: grid.wide, height: grid.high, class: "cw-frame" });
  const { bars, update } = drawBars(focus, grid);
  cells.addEventListener("mouseover", (event) => {
    const { row, column } = event.target.dataset;
    if (row !== undefined) focus.set(Number(row), Number(column));
  });
  const size = { width: grid.left + grid.wide + 8, height: grid.top + grid.high + 8 };
  const picture = svg("svg", { ...size, role: "img", "aria-label": "attention weights as a matrix" },
    cells, frame, ...drawGold(map, gold || [], grid), ...bars, ...(labels ? drawNames(map, grid) : []));
  return { picture, update };
}
