import { strokes } from "./mask_painter/strokes.js";
import { maskTable, showOpen, showWeight, weightTable } from "./mask_painter/tables.js";
import { el, fill, muted, row, status } from "./shared/dom.js";
import { roving } from "./shared/focus.js";
import { listen, send, unhurried } from "./shared/model.js";
import { signed, softmax } from "./shared/numbers.js";

/** The mask that is painted and its weights; what course_lib has in compute(), a test proves them equal. */
function makePainting(model) {
  const scores = model.get("scores"), presets = model.get("masks");
  const weightsOf = (mask) => scores.map((row, query) => softmax(row, (key) => mask[query][key]));
  const unmasked = weightsOf(presets[Object.keys(presets)[0]]);
  const [names, emptyRow] = ["names", "refusal"].map((name) => model.get(name));
  const painting = { names, emptyRow, scores, presets, unmasked, before: null };
  const update = () => {
    painting.mask = model.get("mask");
    painting.weights = weightsOf(painting.mask);
  };
  update();
  return Object.assign(painting, { update });
}

/** Painting: `begin` keeps what was before a stroke, `paint` opens or hides the cells for which chosen(row, column). */
function makeBrush(model, painting) {
  const begin = () => (painting.before = { mask: painting.mask, weights: painting.weights });
  const paint = (open, chosen) => {
    const painted = painting.mask.map((row, i) => row.map((each, j) => (chosen(i, j) ? open : each)));
    if (String(painted) !== String(painting.mask)) send(model, { mask: painted });
  };
  const toggleAll = (chosen) => { // a row, a column, or everything: opened if any of it is hidden
    begin();
    paint(painting.mask.some((row, i) => row.some((each, j) => chosen(i, j) && !each)), chosen);
  };
  const toggleOne = (row, column) => {
    begin();
    paint(!painting.mask[row][column], (i, j) => i === row && j === column);
  };
  return { begin, paint, toggleAll, toggleOne };
}

/** A cell in words. */
function explain({ names, scores, mask, weights, unmasked }, [row, column]) {
  const open = mask[row][column], weight = open ? weights[row] && weights[row][column].toFixed(3) : "0, exactly";
  return `“${names.queries[row]}” → “${names.keys[column]}”: score ${signed(scores[row][column])}` +
    `${open ? "" : ", hidden: −∞"}; weight ${weights[row] ? weight : "none: nothing is left"}; ` +
    `without a mask ${unmasked[row][column].toFixed(3)}`;
}

/** What the last stroke did to the weights that stay open: in each row they grow or shrink by one factor. */
function shared({ names, mask, weights, before }) {
  const differs = (row) => String(mask[row]) !== String(before.mask[row]);
  const changed = before ? [...mask.keys()].filter(differs) : [];
  if (!changed.length) return "";
  const [row] = changed, key = mask[row].findIndex((open, column) => open && before.mask[row][column]);
  if (changed.length > 1 || key < 0 || !weights[row] || !before.weights[row])
    return ` Rows that changed: ${changed.length}.`;
  const factor = (weights[row][key] / before.weights[row][key]).toFixed(2);
  return ` The other weights of “${names.queries[row]}” are multiplied by ${factor}; no other row moves.`;
}

/** The mask in words. */
function tell(painting) {
  const { names, mask, weights, presets, emptyRow } = painting;
  const empty = names.queries.filter((_, row) => !weights[row]);
  if (empty.length) return `${empty.map((name) => `“${name}”`).join(", ")}: ${emptyRow}.`;
  const all = mask.flat(), allowed = all.filter(Boolean).length;
  const name = Object.keys(presets).find((each) => String(presets[each]) === String(mask));
  const named = name ? ` (${name})` : "", hidden = all.length - allowed;
  return `${allowed} of ${all.length} pairs are open${named}; ${hidden} weights are exactly 0.${shared(painting)}`;
}

/** Brings both tables up to date. */
function show({ names, mask, scores, weights, before }, painter, result) {
  mask.forEach((row, i) => row.forEach((open, j) => {
    const words = `${names.queries[i]} to ${names.keys[j]}`, at = (rows) => (rows[i] ? rows[i][j] : null);
    showOpen(painter.cells[i][j], open, scores[i][j], words);
    showWeight(result.cells[i][j], at(weights), before && { weight: at(before.weights) }, words);
  }));
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), painting = makePainting(model), { names, presets } = painting;
  const { begin, paint, toggleAll, toggleOne } = makeBrush(model, painting);
  const told = status(), details = status("", "Point at a cell to see its score and its weight.");
  const painter = maskTable(names, toggleAll, toggleOne), result = weightTable(names);
  strokes(painter, (row, column) => painting.mask[row][column], begin, paint);
  let pointed = null; // row and column
  const point = ({ target }) => {
    if (target.dataset.row === undefined) return;
    pointed = [target.dataset.row, target.dataset.column];
    details.textContent = explain(painting, pointed);
  };
  const choose = (name) => {
    begin();
    send(model, { mask: presets[name] });
  };
  const buttons = Object.keys(presets).map((name) => el("button", { onclick: () => choose(name) }, name));
  roving(buttons);
  const refresh = () => {
    painting.update();
    show(painting, painter, result);
    const isPresent = (name) => String(presets[name]) === String(painting.mask);
    for (const button of buttons) button.setAttribute("aria-pressed", String(isPresent(button.textContent)));
    told.textContent = tell(painting);
    if (pointed) details.textContent = explain(painting, pointed);
    told.classList.toggle("cw-error", painting.weights.includes(null));
  };
  const question = "Hide one key from one query: which weight becomes exactly 0, and which weights grow? Then hide " +
    "a whole row: can a softmax still share?";
  const looks = { class: "cw-row cw-stage", onmouseover: point, onfocusin: point };
  fill(root, question, row(muted("mask:"), ...buttons),
    el("div", looks, painter.node, el("span", { class: "cw-then" }, "→"), result.node), told, details);
  listen(model, ["mask"], refresh);
}

export default { render };
