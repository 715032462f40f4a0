// The chosen heads, drawn: one as lines and as a matrix, or all of a layer as small matrices.

import { el, status } from "../shared/dom.js";
import { refill } from "../shared/focus.js";
import { onceAFrame } from "../shared/model.js";
import { clamp } from "../shared/numbers.js";
import { drawLines } from "./lines.js";
import { headsOf, isOff, isThere, mapOf, strongest } from "./maps.js";
import { drawMatrix } from "./matrix.js";

const goldOf = (model) => (model.get("kind") === "cross" ? model.get("view").gold : null);

/** How much of the gold links a head misses, in percent. */
const errorRate = (model, head) => `${(100 * model.get("view").rates[model.get("layer")][head]).toFixed(0)} %`;

function drawSmall(model, focus, head, choose) {
  const map = mapOf(model, head), gold = goldOf(model);
  const cell = clamp(Math.floor(190 / map.keys.length), 4, 14);
  const { picture, update } = drawMatrix(map, focus, { cell, labels: false });
  const rate = gold && model.get("view").rates ? `, error rate ${errorRate(model, head)}` : "";
  const words = `head ${head}${isOff(model, head) ? " (off)" : ""}${rate}`;
  const title = `show head ${head} alone`;
  const looks = { class: "cw-small", "data-key": head, title };
  return { picture: el("button", { ...looks, onclick: () => choose(head) }, picture, words), update };
}

/** What is pointed at, in words. */
function describe(model, map, { row, column }) {
  const rated = map.kind === "cross" && model.get("view").rates;
  const rate = rated ? ` · alignment error rate of this head: ${errorRate(model, model.get("head"))}` : "";
  if (row !== null && column !== null)
    return `${map.queries[row]} → ${map.keys[column]}: ${map.weight(row, column).toFixed(3)}${rate}`;
  if (row !== null) return `${map.queries[row]} → ${strongest(map, row)}${rate}`;
  if (column !== null) return `${map.keys[column]} is looked at${rate}`;
  return `Point at a token, or walk through them with Tab and the arrow keys${rate}`;
}

/** The stage, the words below it, what draws it, and the token or cell that is pointed at; a click chooses a head. */
export function makeStage(model, choose) {
  let updates = [];
  const refresh = onceAFrame(() => updates.forEach((update) => update()));
  const focus = { row: null, column: null, set(row, column) {
    Object.assign(focus, { row, column });
    refresh();
  } };
  const details = status();
  const node = el("div", { class: "cw-row cw-stage", onmouseleave: () => focus.set(null, null) });
  const drawings = () => {
    const layer = model.get("layer"), head = model.get("head");
    if (head < 0) {
      updates = [() => (details.textContent = "Click a head to see it alone.")];
      return Array.from({ length: headsOf(model)[layer] }, (_, each) => drawSmall(model, focus, each, choose));
    }
    const map = mapOf(model, head);
    updates = [() => (details.textContent = describe(model, map, focus))];
    return [drawLines(map, focus), drawMatrix(map, focus, { gold: goldOf(model) })];
  };
  const draw = () => {
    updates = [];
    Object.assign(focus, { row: null, column: null });
    if (!isThere(model)) return;
    const drawn = drawings();
    updates.push(...drawn.map(({ update }) => update));
    refill(node, ...drawn.map(({ picture }) => picture));
    refresh();
  };
  return { node, details, draw, focus };
}
