import { makeHands } from "./offset_explorer/hands.js";
import { makeMatrix } from "./offset_explorer/matrix.js";
import { choice, slider } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen, numbers, send, unhurried } from "./shared/model.js";
import { grouped, signed } from "./shared/numbers.js";
import { watchTheme } from "./shared/pixels.js";

const PLACES = ["query", "key", "shift", "head"], CHOSEN = ["encoding", "base", "d_k"];
const ROWS = ["scores", "query_rows", "key_rows"];

/** Numbers of the kernel as rows, from a first one on. */
function rowsOf(model, name, count, width, first = 0) {
  const found = numbers(model.get(name), Float32Array), from = (index) => (first + index) * width;
  return Array.from({ length: count }, (_, index) => found.subarray(from(index), from(index + 1)));
}

function stateOf(model) {
  const { length } = model.get("limits");
  const now = Object.fromEntries([...PLACES, ...CHOSEN].map((name) => [name, model.get(name)]));
  const width = model.get("key_rows").byteLength / (4 * length), turns = width > 0; // what the kernel has computed
  const scores = rowsOf(model, "scores", length, length, turns ? 0 : now.head * length);
  const [queries, keys] = ROWS.slice(1).map((name) => rowsOf(model, name, length, width));
  return { ...now, scores, queries, keys, length, turns };
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

/** What can be chosen of an encoding, by asking the kernel at once, but for the head; what it has not is hidden. */
function choices(model, unhurriedModel) {
  const limits = model.get("limits"), named = (values) => values.map((value) => [value, grouped(value)]);
  const encoding = choice(model, "encoding", { label: "encoding", options: limits.encodings });
  const ofVectors = [choice(model, "base", { label: "base", options: named(limits.bases) }),
    choice(model, "d_k", { label: "d_k", options: named(limits.widths) })];
  const head = slider(unhurriedModel, "head", { label: "head", min: 0, max: limits.heads - 1 });
  listen(model, "encoding", () => {
    const turns = limits.vectors.includes(model.get("encoding"));
    for (const node of ofVectors) node.style.display = turns ? "" : "none";
    head.style.display = turns ? "none" : "";
  });
  return row(encoding, ...ofVectors, head);
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), { length, shift } = model.get("limits"), max = length - shift - 1;
  const matrix = makeMatrix((changes) => send(model, changes), max), hands = makeHands(), along = el("div", {});
  const told = status();
  const place = (name, most) => slider(model, name, { label: name, min: 0, max: most });
  const refresh = () => {
    const now = stateOf(model);
    for (const part of [matrix, hands]) part.draw(now);
    along.replaceChildren(...drawRow(now));
    told.textContent = tell(now);
  };
  fill(root, "Slide the shift: query and key move on together. For which encodings does the score stay as it is?",
    choices(kernels, model), row(place("query", max), place("key", max), place("shift", shift)), told,
    el("div", { class: "cw-row cw-stage" }, matrix.node, el("div", { class: "cw-beside" }, along, hands.node)));
  listen(model, [...PLACES, ...ROWS], refresh);
  return watchTheme(root, () => matrix.recolor(root, stateOf(model)));
}

export default { render };
