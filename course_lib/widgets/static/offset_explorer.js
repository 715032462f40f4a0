import { makeHands } from "./offset_explorer/hands.js";
import { makeMatrix } from "./offset_explorer/matrix.js";
import { choice, slider } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen, numbers, send, unhurried } from "./shared/model.js";
import { grouped, signed } from "./shared/numbers.js";
import { watchTheme } from "./shared/pixels.js";

const PLACES = ["query", "key", "shift"], CHOSEN = ["encoding", "base", "d_k", "head"];
const ROWS = ["scores", "query_rows", "key_rows"];

/** Numbers of the kernel as rows. */
function rowsOf(model, name, count) {
  const found = numbers(model.get(name), Float32Array), width = found.length / count;
  return Array.from({ length: count }, (_, index) => found.subarray(index * width, (index + 1) * width));
}

function stateOf(model) {
  const { length } = model.get("limits");
  const now = Object.fromEntries([...PLACES, ...CHOSEN].map((name) => [name, model.get(name)]));
  const [scores, queries, keys] = ROWS.map((name) => rowsOf(model, name, length));
  return { ...now, scores, queries, keys, length, turns: keys[0].length > 0 };
}

/** Scores of one row, by how far the key is from the query; and of the row that both are shifted to. */
function drawRow(now) {
  const { query, key, shift, scores, length } = now;
  const series = [0, shift].map((on) => {
    const xs = Array.from({ length }, (_, place) => place - query - on);
    return { name: `query at ${query + on}`, xs, ys: Array.from(scores[query + on]) };
  });
  const low = Math.min(...series.flatMap((each) => each.ys)), shown = shift ? series : series.slice(0, 1);
  const marks = [{ name: `offset ${signed(key - query, 0)}`, x: key - query }];
  const labels = { xlabel: "key - query, in words", ylabel: now.turns ? "score" : "bias" };
  const chart = lineChart({ width: 420, height: 200, low, marks, series: shown, ...labels });
  return [chart, legend(shown.map((each) => each.name))];
}

/** The score before and after the shift, in words. */
function tell({ query, key, shift, scores, turns }) {
  const said = (on) => `query ${query + on}, key ${key + on}: ${signed(scores[query + on][key + on], 3)}`;
  return `${turns ? "Score" : "Bias"} of ${said(0)}${shift ? `; both ${shift} words on, ${said(shift)}` : ""}`;
}

/** What can be chosen of an encoding; what it does not have is hidden. */
function choices(model) {
  const limits = model.get("limits"), named = (values) => values.map((value) => [value, grouped(value)]);
  const encoding = choice(model, "encoding", { label: "encoding", options: limits.encodings });
  const ofVectors = [choice(model, "base", { label: "base", options: named(limits.bases) }),
    choice(model, "d_k", { label: "d_k", options: named(limits.widths) })];
  const head = slider(model, "head", { label: "head", min: 0, max: limits.heads - 1 });
  const show = ({ turns }) => {
    for (const node of ofVectors) node.style.display = turns ? "" : "none";
    head.style.display = turns ? "none" : "";
  };
  return { node: row(encoding, ...ofVectors, head), show };
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), { length, shift } = model.get("limits"), max = length - shift - 1;
  const matrix = makeMatrix((changes) => send(model, changes), max), hands = makeHands(), along = el("div", {});
  const told = status(), shown = choices(kernels); // what is chosen there, the kernel computes at once
  const place = (name, most) => slider(model, name, { label: name, min: 0, max: most });
  const refresh = () => {
    const now = stateOf(model);
    for (const part of [shown.show, matrix.draw, hands.draw]) part(now);
    along.replaceChildren(...drawRow(now));
    told.textContent = tell(now);
  };
  fill(root, "Slide the shift: query and key move on together. For which encodings does the score stay as it is?",
    shown.node, row(place("query", max), place("key", max), place("shift", shift)), told,
    el("div", { class: "cw-row cw-stage" }, matrix.node, el("div", { class: "cw-beside" }, along, hands.node)));
  listen(model, [...PLACES, ...ROWS], refresh);
  return watchTheme(root, () => matrix.recolor(root, stateOf(model)));
}

export default { render };
