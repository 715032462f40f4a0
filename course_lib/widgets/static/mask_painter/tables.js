// The mask that is painted on, and the weights under it, as tables.

import { behind } from "../shared/colors.js";
import { el } from "../shared/dom.js";
import { rovingGrid } from "../shared/focus.js";
import { signed } from "../shared/numbers.js";

const CHANGED = 0.005; // less is invisible in two decimals

/** A table of (rows, columns) cells; head(name, place) makes what stands in the corner (null) or at a row or column. */
function labelledTable(caption, names, head, cell) {
  const cells = names.queries.map((_, row) => names.keys.map((_, column) => el("td", {}, cell(row, column))));
  const corner = head("all", null), columns = names.keys.map((name, column) => head(name, { column }));
  const rows = names.queries.map((name, row) => head(name, { row }));
  const node = el("table", { class: "cw-matrix cw-mask" }, el("caption", {}, caption),
    el("tr", {}, el("th", {}, corner), ...columns.map((each) => el("th", { scope: "col" }, each))),
    ...cells.map((row, index) => el("tr", {}, el("th", { scope: "row" }, rows[index]), ...row)));
  return { node, heads: { corner, columns, rows }, cells: cells.map((row) => row.map((each) => each.firstChild)) };
}

/** The mask: `toggleAll` opens or hides the cells of a head, `toggleOne` a cell whose key was pressed. */
export function maskTable(names, toggleAll, toggleOne) {
  const head = (name, place) => {
    const chosen = (i, j) => !place || place.row === i || place.column === j;
    const what = !place ? "all cells" : place.row === undefined ? `key ${name}` : `query ${name}`;
    const looks = { class: "cw-head", "aria-label": `open or hide ${what}` };
    return el("button", { ...looks, onclick: () => toggleAll(chosen) }, name);
  };
  const cell = (row, column) => {
    const press = (event) => event.detail || toggleOne(row, column); // strokes of the pointer are painted elsewhere
    return el("button", { class: "cw-cell", "data-row": row, "data-column": column, onclick: press });
  };
  const table = labelledTable("scores: click or drag to hide", names, head, cell);
  const { corner, columns, rows } = table.heads;
  rovingGrid([[corner, ...columns], ...table.cells.map((row, index) => [rows[index], ...row])]);
  return table;
}

/** The weights. */
export function weightTable(names) {
  const cell = (row, column) =>
    el("span", { class: "cw-weight", role: "img", "data-row": row, "data-column": column });
  const table = labelledTable("weights: softmax of each row", names, (name, place) => (place ? name : ""), cell);
  rovingGrid(table.cells);
  return table;
}

/** Shows whether a cell is open. */
export function showOpen(cell, open, score, words) {
  if (cell.getAttribute("aria-pressed") === String(open)) return;
  cell.textContent = open ? signed(score) : "−∞";
  cell.setAttribute("aria-pressed", String(open));
  cell.setAttribute("aria-label", `${words}: ${open ? "may attend" : "hidden"}`);
}

/** Shows a weight, null where its row has none; it is marked where it is another one than `before`. */
export function showWeight(cell, weight, before, words) {
  const few = weight === 0 ? "0" : "~0";
  const text = weight === null ? "?" : weight < 0.005 ? few : weight.toFixed(2);
  const lost = before && (weight === null) !== (before.weight === null);
  const moved = before && (lost || Math.abs(weight - before.weight) >= CHANGED);
  if (cell.textContent !== text) cell.textContent = text;
  cell.setAttribute("aria-label", `${words}: weight ${text}`);
  cell.dataset.weight = weight === null ? "none" : weight.toPrecision(7);
  cell.style.background = behind(weight || 0);
  cell.classList.toggle("cw-zero", weight === 0);
  cell.classList.toggle("cw-none", weight === null);
  cell.classList.toggle("cw-moved", Boolean(moved));
}
