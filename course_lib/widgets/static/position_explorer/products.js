// The curve of dot products with the first position; the second one is dragged along it.

import { svg } from "../shared/dom.js";
import { dragging } from "../shared/focus.js";
import { clamp, signed } from "../shared/numbers.js";
import { product } from "./encoding.js";

const LEFT = 28, WIDTH = 334, TOP = 24, HEIGHT = 140; // of the axes, in pixels

const along = (position, { length }) => LEFT + (position / (length - 1)) * WIDTH;
const high = (value) => TOP + ((1 - value) / 2) * HEIGHT;

function drawGrid() {
  return [-1, 0, 1].flatMap((value) => [
    svg("line", { x1: LEFT, x2: LEFT + WIDTH, y1: high(value), y2: high(value), class: "cw-frame" }),
    svg("text", { x: LEFT - 4, y: high(value) + 4, "text-anchor": "end", class: "cw-muted" }, signed(value, 0)),
  ]);
}

function drawEnds(now) {
  const text = (x, anchor, words) =>
    svg("text", { x, y: TOP + HEIGHT + 15, "text-anchor": anchor, class: "cw-muted" }, words);
  return [text(LEFT, "start", "0"), text(LEFT + WIDTH, "end", String(now.length - 1)),
    text(LEFT + WIDTH / 2, "middle", `position, and its dot product with PE(${now.first}) / ${now.d_model / 2}`)];
}

function drawPoint(now, values, name) {
  const x = along(now[name], now), y = high(values[now[name]]), second = name === "second";
  return svg("g", { class: second ? "cw-mark cw-mark-second" : "cw-mark" },
    svg("circle", { cx: x, cy: y, r: 5 }),
    svg("text", { x, y: y + (second ? 20 : -9), "text-anchor": "middle" }, name));
}

function listenTo(chart, stateOf, set) {
  const choose = (event) => {
    const { length, second } = stateOf(), box = chart.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * chart.width.baseVal.value - LEFT) / WIDTH;
    const position = clamp(Math.round(share * (length - 1)), 0, length - 1);
    if (position !== second) set({ second: position });
  };
  dragging(chart, { down: choose, move: choose });
}

/** The chart, and what draws it. */
export function makeProducts(stateOf, set) {
  const curve = svg("polyline", { class: "cw-curve" }), points = svg("g"), ends = svg("g");
  const size = { width: LEFT + WIDTH + 10, height: TOP + HEIGHT + 34 };
  const looks = { class: "cw-drags", role: "img", "aria-label": "dot product with the first position" };
  const node = svg("svg", { ...size, ...looks }, ...drawGrid(), ends, curve, points);
  listenTo(node, stateOf, set);
  const draw = (now) => {
    const share = (_, position) => product(now.first, position, now) / (now.d_model / 2);
    const values = Array.from({ length: now.length }, share);
    const places = values.map((value, position) => `${along(position, now).toFixed(2)},${high(value).toFixed(2)}`);
    curve.setAttribute("points", places.join(" "));
    curve.dataset.values = values.map((value) => value.toFixed(5)).join(" ");
    const names = now.first === now.second ? ["first"] : ["first", "second"];
    points.replaceChildren(...names.map((name) => drawPoint(now, values, name)));
    ends.replaceChildren(...drawEnds(now));
  };
  return { node, draw };
}
