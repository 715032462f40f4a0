// The tree of a search: a column of boxes for each step.

import { svg } from "../shared/dom.js";
import { take } from "../shared/focus.js";
import { lettersOf, signed } from "../shared/numbers.js";
import { pathTo } from "./search.js";

const ROW = 36; // pixels from box to box
const BOX = 30;
const GAP = 22; // between two columns, for the edges
const HEAD = 20; // for the steps' numbers

/** The drawn nodes of each step from top to bottom, in the order of their parents: no two edges cross. */
function columnsOf(nodes, shown) {
  const columns = [];
  nodes.forEach((node, index) => shown(node) && (columns[node.step] ||= []).push(index));
  for (let step = 1; step < columns.length; step++) {
    const above = (index) => columns[step - 1].indexOf(nodes[index].parent);
    columns[step].sort((a, b) => above(a) - above(b) || a - b);
  }
  return columns;
}

/** Left edge, top and width of each box, and the size of all. */
function placesOf(nodes, columns) {
  const tallest = Math.max(...columns.map((column) => column.length));
  const lettersIn = ({ token, total }) => Math.max(lettersOf(token), signed(total).length);
  const places = [];
  let left = 1;
  for (const column of columns) {
    const width = 14 + 7.5 * Math.max(...column.map((index) => lettersIn(nodes[index])));
    const topOf = (row) => HEAD + ROW * (row + (tallest - column.length) / 2);
    column.forEach((index, row) => (places[index] = { left, top: topOf(row), width }));
    left += width + GAP;
  }
  return { places, width: left - GAP + 1, height: HEAD + ROW * tallest };
}

function drawBox({ token, total }, index, { left, top, width }, focus) {
  const middle = { x: left + width / 2, "text-anchor": "middle" }, point = () => focus.set(index);
  const looks = { "data-node": index, tabindex: index ? -1 : 0, role: "img", onmouseenter: point, onfocus: point };
  return svg("g", looks,
    svg("rect", { x: left, y: top, width, height: BOX, rx: 4 }),
    svg("text", { ...middle, y: top + 13 }, token),
    svg("text", { ...middle, y: top + 26, class: "cw-total" }, signed(total)));
}

function drawEdge(index, from, to) {
  const middle = (place) => place.top + BOX / 2;
  const start = { x1: from.left + from.width, y1: middle(from) };
  return svg("line", { "data-edge": index, ...start, x2: to.left, y2: middle(to) });
}

/** Arrow keys: left to the parent, right to the best child, up and down within the step. */
function walk(event, nodes, columns, boxes) {
  const index = Number(event.target.dataset.node), node = nodes[index], column = columns[node.step];
  const beside = (by) => column[column.indexOf(index) + by];
  const child = (columns[node.step + 1] || []).find((each) => nodes[each].parent === index);
  const ways = { ArrowLeft: node.parent, ArrowUp: beside(-1), ArrowDown: beside(1), ArrowRight: child };
  const to = ways[event.key];
  if (event.key.startsWith("Arrow")) take(event);
  if (to === undefined || to === null) return;
  boxes.forEach((box, each) => box.setAttribute("tabindex", each === to ? "0" : "-1"));
  boxes[to].focus();
}

function drawHeads(columns, places) {
  return columns.slice(1).map(([first], step) => {
    const x = places[first].left + places[first].width / 2;
    return svg("text", { x, y: 12, "text-anchor": "middle", class: "cw-muted" }, `step ${step + 1}`);
  });
}

/** What marks the best output and its way, and what marks the way to the node that is pointed at. */
function marksOf(nodes, boxes, edges, focus) {
  const parts = [...boxes.entries(), ...edges.entries()].filter(([, part]) => part);
  const crown = (best) => {
    const winner = new Set(pathTo(nodes, best)), way = "on the way to the best output";
    for (const [index, part] of parts)
      part.setAttribute("class", `cw-node cw-${winner.has(index) ? "winner" : nodes[index].fate}`);
    boxes.forEach((box, index) => {
      const { token, step, total, fate } = nodes[index], end = winner.has(index) ? way : fate;
      box.setAttribute("aria-label", `${token}, step ${step}, total ${signed(total)}, ${end}`);
    });
  };
  const point = () => {
    const path = new Set(focus.node === null ? [] : pathTo(nodes, focus.node));
    for (const [index, part] of parts) part.classList.toggle("cw-path", path.has(index));
  };
  return { crown, point };
}

/** The picture, and what marks nodes in it. */
export function drawTree(nodes, withDropped, focus) {
  const columns = columnsOf(nodes, (node) => node.fate !== "dropped" || withDropped);
  const { places, width, height } = placesOf(nodes, columns);
  const boxes = [], edges = [];
  columns.flat().forEach((index) => {
    const { parent } = nodes[index];
    boxes[index] = drawBox(nodes[index], index, places[index], focus);
    if (parent !== null) edges[index] = drawEdge(index, places[parent], places[index]);
  });
  const looks = { width, height, role: "group", "aria-label": "tree of the beam search" };
  const picture = svg("svg", { ...looks, onkeydown: (event) => walk(event, nodes, columns, boxes) },
    ...drawHeads(columns, places), ...edges.filter(Boolean), ...boxes.filter(Boolean));
  return { picture, ...marksOf(nodes, boxes, edges, focus) };
}
