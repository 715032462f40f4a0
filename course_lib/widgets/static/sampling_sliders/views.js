// The distribution as bars, and the sample as a table.

import { el, listing, status, svg } from "../shared/dom.js";
import { grouped, percent, signed } from "../shared/numbers.js";

const BAR = 20; // pixels from bar to bar
const LABELS = 92; // room for the tokens
const WIDE = 220; // of a bar of 100 %
const LISTED = 8; // translations that have a line
const HEADS = ["times", "output", "", "log-probability"];

const sumOf = (numbers) => numbers.reduce((total, each) => total + each, 0);

function drawBar(token, row) {
  const top = BAR * row + 3;
  return {
    name: svg("text", { x: LABELS - 6, y: top + 11, "text-anchor": "end" }, token),
    filled: svg("rect", { x: LABELS, y: top, height: 14, class: "cw-drawn" }),
    own: svg("rect", { x: LABELS, y: top, height: 14, class: "cw-own" }),
    number: svg("text", { y: top + 11, class: "cw-number", "data-row": row }),
  };
}

function showBar({ name, filled, own, number }, prob, before) {
  filled.setAttribute("width", WIDE * prob);
  own.setAttribute("width", WIDE * before);
  number.setAttribute("x", LABELS + WIDE * Math.max(prob, before) + 5);
  number.textContent = prob ? percent(prob) : "cut";
  number.dataset.probability = prob;
  name.classList.toggle("cw-cut", !prob);
}

/** A row for each token: an outline for the model's own probability, a filled bar for the reshaped one. */
export function drawBars(tokens, count) {
  const bars = [...tokens, `${grouped(count - tokens.length)} others`].map(drawBar), high = BAR * bars.length;
  const looks = { role: "group", "aria-label": "probabilities of the next token" };
  const picture = svg("svg", { width: LABELS + WIDE + 60, height: high + 6, ...looks },
    svg("line", { x1: LABELS, x2: LABELS, y1: 0, y2: high + 4, class: "cw-frame" }),
    ...bars.flatMap(({ name, filled, own, number }) => [filled, own, name, number]));
  const fold = (probs) => [...probs.subarray(0, tokens.length), sumOf(probs.subarray(tokens.length))];
  const update = (own, probs) => {
    const before = fold(own);
    fold(probs).forEach((prob, row) => showBar(bars[row], prob, before[row]));
  };
  return { picture, update };
}

/** The translations that were drawn, the most frequent first. */
export function drawSample({ outputs, greedy }) {
  const draws = sumOf(outputs.map(({ count }) => count));
  const right = sumOf(outputs.filter((each) => each.greedy).map(({ count }) => count));
  const rows = outputs.slice(0, LISTED).map((each) =>
    el("tr", {}, el("td", {}, String(each.count)), el("td", { title: each.text }, each.text || "(empty)"),
      el("td", {}, each.greedy ? "✓" : ""), el("td", {}, signed(each.log_prob))));
  const rest = outputs.slice(LISTED), others = String(sumOf(rest.map(({ count }) => count)));
  const more = el("tr", { class: "cw-muted" }, el("td", {}, others), el("td", {}, `${rest.length} other outputs`),
    el("td"), el("td"));
  const told = `${draws} draws, ${outputs.length} different; ` +
    `${right} of them (✓) are what greedy search writes: ${greedy}`;
  return [status("", told), listing(HEADS, rest.length ? [...rows, more] : rows)];
}
