// Both stacks with data flowing upward; a box is a button that shows its share of the whole.

import { behind } from "../shared/colors.js";
import { arrowHead, svg, unique } from "../shared/dom.js";
import { roving } from "../shared/focus.js";
import { percent } from "../shared/numbers.js";

const WIDE = 214; // of a box, in pixels
const HIGH = 26;
const RISE = 40; // from box to box
const LEFT = { encoder: 34, decoder: 306 }; // edges

/** The boxes of each stack from below, and the height of a picture that has room for both. */
function stacksOf({ boxes }) {
  const stacks = ["encoder", "decoder"].map((name) => [name, boxes.filter(({ stack }) => stack === name)]);
  return { stacks, height: RISE * Math.max(...stacks.map(([, each]) => each.length)) + 34 };
}

function drawBox({ name, label }, left, top, choose) {
  const press = () => choose(name);
  const looks = { class: "cw-station", role: "button", "data-name": name, "data-left": left, "data-top": top };
  return svg("g", { ...looks, onclick: press, onfocus: press },
    svg("rect", { x: left, y: top, width: WIDE, height: HIGH, rx: 4 }),
    svg("text", { x: left + 8, y: top + 17 }, label),
    svg("text", { x: left + WIDE - 8, y: top + 17, "text-anchor": "end", class: "cw-share" }));
}

/** The frame around the boxes of a layer, and how many layers there are. */
function drawLayer(stack, top, bottom) {
  const left = LEFT[stack], beside = stack === "encoder" ? left - 32 : left + WIDE + 28;
  const frame = { x: left - 10, y: top - 7, width: WIDE + 30, height: bottom - top + HIGH + 14, rx: 6 };
  return [svg("rect", { ...frame, class: "cw-layer" }),
    svg("text", { x: beside, y: (bottom + top + HIGH) / 2, class: "cw-times" })];
}

/** What is drawn of a stack below its boxes; flow(path) makes an arrow. */
function drawStack(stack, boxes, y, flow) {
  const middle = LEFT[stack] + WIDE / 2, right = LEFT[stack] + WIDE;
  const inside = [...boxes.keys()].filter((row) => boxes[row].layers);
  const [first, last] = [inside[0], inside.at(-1)];
  const drawn = [...boxes.keys()].slice(1).map((row) => flow(`M${middle} ${y(row - 1)}V${y(row) + HIGH}`));
  drawn.push(...drawLayer(stack, y(last), y(first)));
  for (let row = first; row < last; row += 2) { // a sub-layer and its norm are one residual path
    const from = y(row) + HIGH + 7, to = y(row + 1) + HIGH / 2;
    drawn.push(flow(`M${middle} ${from}H${right + 11}V${to}H${right + 2}`));
  }
  return drawn;
}

/** The memory's way from the encoder's last box to the cross-attention. */
function drawMemory(stacks, y, flow) {
  const [encoder, decoder] = stacks.map(([, boxes]) => boxes);
  const last = y(encoder.length - 1);
  const cross = y(decoder.findIndex(({ name }) => name === "decoder cross-attention")) + HIGH / 2;
  const start = LEFT.encoder + WIDE / 2, between = (LEFT.encoder + WIDE + LEFT.decoder) / 2 + 6;
  const words = { x: start, y: last - 27, "text-anchor": "middle", class: "cw-muted" };
  return [flow(`M${start} ${last}V${last - 22}H${between}V${cross}H${LEFT.decoder - 2}`), svg("text", words, "memory")];
}

/** Shows what each box has of the measured whole. */
function show({ boxes, layers, ...totals }, measure, picture, buttons) {
  for (const each of boxes) {
    const button = buttons.get(each.name), share = each[measure] / totals[measure];
    const words = each[measure] ? percent(share) : "";
    button.dataset.share = share;
    button.setAttribute("aria-label", `${each.stack}: ${each.label}, ${words || "no share"}`);
    button.firstChild.style.fill = behind(share);
    button.lastChild.textContent = words;
  }
  for (const times of picture.querySelectorAll(".cw-times")) times.textContent = `×${layers}`;
}

/** The picture, `update`, which shows shares of a measure, and `mark`, which marks the chosen box. */
export function drawMap(view, choose) {
  const { stacks, height } = stacksOf(view), tip = unique("cw-tip"), buttons = new Map(), drawn = [];
  const y = (row) => height - 8 - HIGH - RISE * row;
  const flow = (d) => svg("path", { d, class: "cw-flow", "marker-end": `url(#${tip})` });
  for (const [stack, boxes] of stacks) {
    boxes.forEach((each, row) => buttons.set(each.name, drawBox(each, LEFT[stack], y(row), choose)));
    drawn.push(...drawStack(stack, boxes, y, flow));
  }
  drawn.push(...drawMemory(stacks, y, flow));
  const looks = { width: LEFT.decoder + WIDE + 52, height, role: "group", "aria-label": "the architecture" };
  const picture = svg("svg", looks, arrowHead(tip, 6, "cw-tip"), ...drawn, ...buttons.values());
  const asTheyStand = (a, b) => a.dataset.left - b.dataset.left || a.dataset.top - b.dataset.top;
  roving([...buttons.values()].sort(asTheyStand));
  const update = (now, measure) => show(now, measure, picture, buttons);
  const mark = (name) => buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === name)));
  return { picture, update, mark };
}
