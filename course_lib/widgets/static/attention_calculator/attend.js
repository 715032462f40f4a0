// Attention of small matrices, as course_lib computes it, and its numbers in words.

import { dot, signed, softmax } from "../shared/numbers.js";

export const MOVED = 0.005; // less is invisible in two decimals
export const INPUTS = { // letter, role, names of rows and of columns
  query: ["Q", "asks for", "queries", "kinds"],
  key: ["K", "is found by", "keys", "kinds"],
  value: ["V", "hands over", "keys", "facts"],
};
export const RESULTS = { scores: ["queries", "keys"], weights: ["queries", "keys"], context: ["queries", "facts"] };

export const brief = (number) => String(Number(number.toFixed(2))).replace("-", "−");
export const digits = (number) => signed(number, Math.abs(number) >= 1000 ? 0 : Math.abs(number) >= 100 ? 1 : 2);

/** What course_lib computes in compute(), here for each frame of a drag; a test proves them equal. */
export function attend({ query, key, value, scaled, temperature }) {
  const divisor = temperature * (scaled ? Math.sqrt(query[0].length) : 1);
  const scores = query.map((q) => key.map((k) => dot(q, k) / divisor));
  const weights = scores.map((row) => softmax(row));
  const context = weights.map((row) => value[0].map((_, fact) => dot(row, value.map((v) => v[fact]))));
  return { scores, weights, context, divisor };
}

/** The sum behind a number of a result. */
export function sumOf({ names, state, results }, name, row, column) {
  const { query, key, value } = state, { scores, weights, context, divisor } = results;
  const products = (a, b) => a.map((each, index) => `${brief(each)}·${brief(b[index])}`).join(" + ");
  const who = `“${names.queries[row]}”`, whom = `“${names.keys[column]}”`;
  if (name === "scores")
    return `score of ${who} with ${whom}: (${products(query[row], key[column])}) / ${digits(divisor)} = ` +
      digits(scores[row][column]);
  if (name === "weights") {
    const each = scores[row].map((score) => `e^${digits(score)}`);
    return `weight of ${who} on ${whom}: ${each[column]} / (${each.join(" + ")}) = ${digits(weights[row][column])}`;
  }
  const handed = products(weights[row], value.map((v) => v[column]));
  return `context of ${who}, ${names.facts[column]}: ${handed} = ${digits(context[row][column])}`;
}

/** In which rows a result has moved since the last touched number. */
function movedRows({ names, results, change }, name) {
  const apart = (row) => (each, column) => Math.abs(each - change.results[name][row][column]) >= MOVED;
  const rows = names.queries.filter((_, row) => results[name][row].some(apart(row)));
  if (!rows.length) return `no ${name}`;
  return `${name} of ${rows.length === names.queries.length ? "all" : rows.map((row) => `“${row}”`).join(", ")}`;
}

/** What the last touched number was and is, and what it has moved. */
export function told(sheet) {
  const { names, state, change, problem } = sheet;
  if (problem) return problem;
  if (!change) return "Drag a number of Q, K or V, or type another one; Page Up and Page Down work too.";
  const [name, row, column] = change.place || [change.trait];
  const [letter, , rows, columns] = INPUTS[name] || [];
  const value = (of) => (row === undefined ? of[name] : of[name][row][column]);
  const said = (each) => (typeof each === "boolean" ? (each ? "on" : "off") : brief(each));
  const other = name === "scaled" ? "scale" : name;
  const what = letter ? `${letter}, “${names[rows][row]}”, ${names[columns][column]}` : other;
  const moved = Object.keys(RESULTS).map((result) => movedRows(sheet, result)).join("; ");
  return `${what}: ${said(value(change.state))} → ${said(value(state))} moves ${moved}.`;
}
