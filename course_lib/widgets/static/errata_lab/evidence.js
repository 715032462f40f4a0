// What is shown of a claim once it is judged: the verdict, what is right, a knob, the numbers, and their curves.

import { el, row, unique } from "../shared/dom.js";
import { legend, lineChart } from "../shared/line_chart.js";
import { send } from "../shared/model.js";

/** Text with `code` in it. */
function worded(text) {
  return text.split("`").map((part, index) => (index % 2 ? el("code", {}, part) : part));
}

function verdict({ verdict, right, lesson }, given) {
  const agrees = given === verdict ? "The experiment agrees" : "The experiment disagrees";
  const taught = lesson ? ` (Lesson ${lesson}.)` : "";
  return el("p", { class: "cw-verdict" }, el("b", {}, `${agrees}: ${verdict}.`), " ", ...worded(right), taught);
}

/** A slider over the places of the knob, which shows its value. */
function knob(claim, at, turn) {
  const input = el("input", { type: "range", min: 0, max: claim.names.length - 1, step: 1, id: unique("cw-control"),
    "data-lm-suppress-shortcuts": "true" });
  const output = el("output", {});
  const show = (place) => {
    input.value = place;
    output.textContent = claim.names[place];
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => turn(Number(input.value)));
  show(at);
  return { node: el("span", { class: "cw-control" }, el("label", { for: input.id }, claim.knob), input, output), show };
}

function table(claim) {
  const rows = Object.entries(claim.written).map(([name, texts]) => ({ texts, cell: el("td", {}), name }));
  const lines = rows.map(({ name, cell }) => el("tr", {}, el("th", { scope: "row" }, name), cell));
  const show = (place) => rows.forEach(({ texts, cell }) => (cell.textContent = texts[place]));
  return { node: el("table", {}, el("tbody", {}, ...lines)), show };
}

/** The parts, in order; `at` is the one trait that they change. */
export function evidence(model, claim, given) {
  const series = Object.entries(claim.numbers).map(([name, ys]) => ({ name, xs: ys.map((_, place) => place), ys }));
  const parts = [];
  const turn = (place) => {
    for (const part of parts) part.show(place);
    send(model, { at: place });
  };
  const words = { xlabel: claim.knob, ylabel: claim.log ? "measured, log" : "measured", xNames: claim.names };
  const chart = lineChart({ width: 520, height: 230, ...words, logY: claim.log, series, onpoint: turn });
  parts.push(knob(claim, model.get("at"), turn), table(claim), { show: (place) => chart.mark(place) });
  for (const part of parts) part.show(model.get("at"));
  return [verdict(claim, given), row(parts[0].node), row(chart, parts[1].node), legend(series.map(({ name }) => name))];
}
