// The source on top, then the predictions, below them what is read: each prediction one place further to the right.

import { behind } from "../shared/colors.js";
import { arrowHead, svg, unique } from "../shared/dom.js";
import { roving, take } from "../shared/focus.js";
import { lettersOf } from "../shared/numbers.js";
import { readOf, stepOf, weightsOf } from "./steps.js";

const HIGH = 26; // of a box, in pixels
const BESIDE = 14; // between two boxes
const LINES = 96; // from the source down to the predictions
const SHIFT = 50; // from the predictions down to what is read
export const NAMES = 92; // room for the names of the rows
const UNSEEN = "·";
const FAINTEST = 0.02; // weight that has a line
const TOPS = { src: 20, predicted: 20 + HIGH + LINES, read: 20 + 2 * HIGH + LINES + SHIFT };

/** Left edges and widths of boxes around tokens, side by side. */
function rowOf(tokens) {
  let left = NAMES;
  return tokens.map((token) => {
    const width = 16 + 7.5 * Math.max(4, lettersOf(token));
    const place = { left, width, middle: left + width / 2 };
    left += width + BESIDE;
    return place;
  });
}

function drawBox(token, place, top, looks, attributes = {}, inside = {}) {
  return svg("g", { class: `cw-box ${looks}`, ...attributes },
    svg("rect", { x: place.left, y: top, width: place.width, height: HIGH, rx: 4, ...inside }),
    svg("text", { x: place.middle, y: top + 17, "text-anchor": "middle" }, token));
}

/** A box in the color of a weight, and the weight below it. */
function drawWeighed(token, place, top, looks, weight) {
  const inside = { style: `fill: ${behind(weight)}`, "data-weight": weight };
  const below = { x: place.middle, y: top + HIGH + 12, "text-anchor": "middle", class: "cw-weight" };
  return [drawBox(token, place, top, looks, {}, inside), svg("text", below, weight.toFixed(2))];
}

function drawNames() {
  return [
    ["memory", TOPS.src + 17], ["cross-attention", TOPS.src + HIGH + 12], ["predicts", TOPS.predicted + 17],
    ["has read", TOPS.read + 17], ["self-attention", TOPS.read + HIGH + 12],
  ].map(([words, y]) => {
    const looks = `cw-muted${words.endsWith("attention") ? " cw-weight" : ""}`;
    return svg("text", { x: 2, y, class: looks }, words);
  });
}

/** Lines of the cross-attention, from the present prediction to the source. */
function drawLines({ x1, sources, weights }) {
  return weights.map((weight, column) => [weight, sources[column]]).filter(([weight]) => weight >= FAINTEST)
    .map(([weight, place]) => svg("line", { x1, y1: TOPS.predicted, x2: place.middle, y2: TOPS.src + HIGH + 16,
      stroke: "var(--cw-accent)", "stroke-width": (1 + 5 * weight).toFixed(2),
      "stroke-opacity": (0.2 + 0.8 * weight).toFixed(3), "data-weight": weight }));
}

/** Arrows from each prediction that was made to where it is read. */
function drawShifts(places, now, arrow) {
  return places.slice(0, -1).filter((_, index) => index <= now).map((place, index) =>
    svg("line", { x1: place.middle, y1: TOPS.predicted + HIGH, x2: places[index + 1].middle, y2: TOPS.read - 3,
      class: index < now ? "cw-shift" : "cw-shift cw-next", "marker-end": `url(#${arrow})`, "data-shift": index }));
}

/** The predictions as buttons: each leads to its step. */
function drawPredictions(predicted, places, now, goto) {
  const buttons = predicted.map((token, index) => {
    const press = (event) => {
      if (!["Enter", " "].includes(event.key)) return;
      take(event);
      goto(index + 1);
    };
    const button = { role: "button", "data-step": index + 1, "aria-label": `step ${index + 1}`,
      "aria-pressed": String(index === now), onclick: () => goto(index + 1), onkeydown: press };
    const looks = index === now ? "cw-now" : index < now ? "" : "cw-unseen";
    return drawBox(index <= now ? token : UNSEEN, places[index], TOPS.predicted, looks, button);
  });
  roving(buttons);
  return buttons;
}

function drawRead(read, places, now, weight) {
  return read.flatMap((token, index) => {
    if (index > now) return [drawBox(UNSEEN, places[index], TOPS.read, "cw-unseen")];
    const looks = index === now ? "cw-past cw-asks" : "cw-past";
    return drawWeighed(token, places[index], TOPS.read, looks, weight(now, index));
  });
}

/** The present step; goto(step) leads to another one. */
export function drawStep(model, goto) {
  const view = model.get("view"), { src, predicted } = view, read = readOf(view);
  const now = stepOf(model) - 1; // the position that is looked into
  const cross = weightsOf(model, "cross", src.length), weights = src.map((_, column) => cross(now, column));
  const longer = (a, b) => (lettersOf(a) > lettersOf(b) ? a : b);
  const sources = rowOf(src), places = rowOf(predicted.map((token, index) => longer(token, read[index])));
  const arrow = unique("cw-arrow");
  const width = Math.max(...[...sources, ...places].map((place) => place.left + place.width)) + 4;
  const looks = { width, height: TOPS.read + HIGH + 20, role: "group", "aria-label": "one step of the decoder" };
  return svg("svg", looks, arrowHead(arrow, 7, "cw-head"), ...drawNames(),
    ...drawLines({ x1: places[now].middle, sources, weights }), ...drawShifts(places, now, arrow),
    ...src.flatMap((token, column) => drawWeighed(token, sources[column], TOPS.src, "cw-source", weights[column])),
    ...drawPredictions(predicted, places, now, goto),
    ...drawRead(read, places, now, weightsOf(model, "own", predicted.length)));
}
