import { attend, brief, INPUTS, sumOf, told } from "./attention_calculator/attend.js";
import { inputCell } from "./attention_calculator/inputs.js";
import { inputTables, resultTables, showInputs, showResults } from "./attention_calculator/tables.js";
import { slider, toggle } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { send, unhurried } from "./shared/model.js";

const TRAITS = [...Object.keys(INPUTS), "scaled", "temperature"];

const stateOf = (model) => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));

/** What is computed with and what comes of it; `change` is the last number touched, and the state before it was. */
function makeSheet(model) {
  const state = stateOf(model);
  return { model, names: model.get("names"), state, results: attend(state), change: null, problem: "" };
}

/** Takes a changed trait over; `at` is the cell of it that was touched, or null. */
function recompute(sheet, trait, at) {
  const { state, results, change } = sheet;
  const same = change && change.trait === trait && String(change.place) === String(at);
  if (!same) sheet.change = { trait, place: at, state, results };
  sheet.state = stateOf(sheet.model);
  sheet.results = attend(sheet.state);
  if (!same && INPUTS[trait] && !at) sheet.change = null; // changed in Python, not here
}

function captionOf({ scaled, temperature }, rootK) {
  const divisor = [...(scaled ? [rootK] : []), ...(temperature === 1 ? [] : [brief(temperature)])].join(" · ");
  return `scores: QKᵀ${divisor && " / "}${divisor.includes("·") ? `(${divisor})` : divisor}`;
}

/** Tables and words, and `show`, which brings them up to date. */
function makeViews(sheet, edit, refuse) {
  const rootK = `√${sheet.names.kinds.length}`, line = status(), sum = status();
  let pointed = null; // a cell of a result
  const explain = () => {
    const hint = "Point at a score, a weight or a number of the context to see its sum.";
    sum.textContent = pointed ? sumOf(sheet, ...pointed) : hint;
  };
  const inputs = inputTables(sheet.names, (place) => inputCell(sheet, place, edit, refuse));
  const outputs = resultTables(sheet.names, (place) => {
    pointed = place;
    explain();
  });
  const show = () => {
    showInputs(inputs, sheet);
    showResults(outputs, sheet);
    outputs.scores.node.caption.textContent = captionOf(sheet.state, rootK);
    line.textContent = told(sheet);
    line.classList.toggle("cw-error", Boolean(sheet.problem));
    explain();
  };
  return { inputs, outputs, line, sum, rootK, show };
}

/** Tables on the stage, with arrows from one to the next. */
function staged(tables, arrow = null) {
  const parts = Object.values(tables).flatMap(({ node }, number) =>
    (arrow && number ? [el("span", { class: "cw-then" }, arrow), node] : [node]));
  return el("div", { class: "cw-row cw-stage" }, ...parts);
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), sheet = makeSheet(model), { number, coolest, hottest } = model.get("limits");
  let place = null; // of the cell that is being changed
  const edit = ([name, row, column], number) => {
    sheet.problem = "";
    place = [name, row, column];
    const matrix = model.get(name).map((each) => [...each]);
    matrix[row][column] = number;
    send(model, { [name]: matrix });
    show();
  };
  const refuse = (text, stays) => {
    sheet.problem = `“${text}” is no number from −${number} to ${number}: ${brief(stays)} stays.`;
    show();
  };
  const { inputs, outputs, line, sum, rootK, show } = makeViews(sheet, edit, refuse);
  for (const trait of TRAITS)
    model.on(`change:${trait}`, () => {
      const at = place && place[0] === trait ? place : null;
      place = null;
      recompute(sheet, trait, at);
      show();
    });
  const reset = () => {
    send(model, model.get("first"));
    Object.assign(sheet, { change: null, problem: "" });
    show();
  };
  const question = "Change a number of Q: whose weights move? A number of K? Of V? Then switch the scale off: which " +
    "keys gain?";
  const warmth = { label: "temperature", min: coolest, max: hottest, step: 0.1, format: brief };
  fill(root, question, staged(inputs),
    row(toggle(model, "scaled", { label: `scale: divide scores by ${rootK}` }), slider(model, "temperature", warmth),
      el("button", { onclick: reset }, "Reset")),
    line, staged(outputs, "→"), sum);
  show();
}

export default { render };
