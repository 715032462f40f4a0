// Q, K and V, and the three results, as tables.

import { behind, tint } from "../shared/colors.js";
import { el } from "../shared/dom.js";
import { rovingGrid } from "../shared/focus.js";
import { brief, digits, INPUTS, MOVED, RESULTS } from "./attend.js";

/** A table with names of rows and columns; cell(row, column) makes what stands in it. */
function table(caption, rows, columns, cell) {
  const cells = rows.map((_, row) => columns.map((_, column) => cell(row, column)));
  const node = el("table", { class: "cw-matrix", role: "grid" }, el("caption", {}, caption),
    el("tr", {}, el("th"), ...columns.map((name) => el("th", { scope: "col" }, name))),
    ...rows.map((name, row) => el("tr", {}, el("th", { scope: "row" }, name), ...cells[row])));
  return { node, cells };
}

/** Tables of Q, K and V; cell([name, row, column]) makes what stands in them. */
export function inputTables(names, cell) {
  const made = Object.entries(INPUTS).map(([name, [letter, role, rows, columns]]) =>
    [name, table(`${letter}: ${role}`, names[rows], names[columns], (row, column) => cell([name, row, column]))]);
  for (const [, { cells }] of made) rovingGrid(cells.map((row) => row.map((each) => each.firstChild)));
  return Object.fromEntries(made);
}

/** Tables of scores, weights and context; point([name, row, column]) is called for the cell that is pointed at. */
export function resultTables(names, point) {
  const made = Object.entries(RESULTS).map(([name, [rows, columns]]) => {
    const cell = (row, column) => {
      const say = () => point([name, row, column]);
      return el("td", { class: "cw-result", onmouseenter: say, onfocus: say });
    };
    return [name, table(name, names[rows], names[columns], cell)];
  });
  for (const [, { cells }] of made) rovingGrid(cells);
  const results = Object.fromEntries(made);
  results.weights.node.caption.textContent = "weights: softmax of each row";
  results.context.node.caption.textContent = "context: weights · V";
  return results;
}

const largestOf = (rows) => Math.max(1, ...rows.flat().map(Math.abs));

/** Shows the numbers of Q, K and V; the one that was touched last is marked. */
export function showInputs(inputs, { state, change }) {
  const touched = change && change.place && String(change.place);
  for (const [name, { cells }] of Object.entries(inputs)) {
    const largest = largestOf(state[name]);
    cells.forEach((row, i) => row.forEach(({ firstChild: input }, j) => {
      const number = state[name][i][j], text = brief(number);
      if (input.value !== text) input.value = text;
      input.style.background = tint(number / largest);
      input.classList.toggle("cw-moved", touched === String([name, i, j]));
    }));
  }
}

/** Shows the results; those that have moved since the last touched number are marked. */
export function showResults(outputs, { results, change }) {
  for (const [name, { cells }] of Object.entries(outputs)) {
    const largest = largestOf(results[name]);
    cells.forEach((row, i) => row.forEach((cell, j) => {
      const number = results[name][i][j], text = digits(number);
      if (cell.textContent !== text) cell.textContent = text;
      cell.dataset.value = number.toPrecision(7);
      cell.style.background = name === "weights" ? behind(number) : tint(number / largest);
      const moved = change && Math.abs(number - change.results[name][i][j]) >= MOVED;
      cell.classList.toggle("cw-moved", Boolean(moved));
    }));
  }
}
