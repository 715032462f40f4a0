// Each pair of dimensions as a clock: a hand for each position, and one for where the offset moves it.

import { svg } from "../shared/dom.js";
import { encoding } from "./encoding.js";

const CLOCKS = 8, RADIUS = 18, APART = 46; // pixels
const HANDS = [["first", 1], ["first", 0], ["second", 1], ["second", 0]]; // 1: moved on by the offset

function drawFace(pair, index) {
  const hands = HANDS.map(([name, later]) =>
    svg("line", { class: `cw-hand cw-hand-${name}`, "stroke-dasharray": later ? "4 3" : null }));
  const text = (y, words, looks) => svg("text", { y, "text-anchor": "middle", class: looks }, words);
  const turned = text(RADIUS + 31, "", "cw-muted");
  const node = svg("g", { transform: `translate(${APART * index + 22},${RADIUS + 2})`, "data-pair": pair },
    svg("circle", { r: RADIUS, class: "cw-frame" }), ...hands, text(RADIUS + 16, `pair ${pair}`), turned);
  return { pair, hands, turned, node };
}

/** Faces of some pairs, from the first to the last. */
function drawFaces(pairs) {
  const count = Math.min(CLOCKS, pairs), apart = (pairs - 1) / Math.max(1, count - 1);
  return Array.from({ length: count }, (_, index) => drawFace(Math.round(index * apart), index));
}

/** Sets the hands of a clock: 12 o'clock is angle 0, and time goes clockwise. */
function setHands({ pair, hands, turned, node }, now) {
  const turn = now.offset / now.base ** ((2 * pair) / now.d_model);
  HANDS.forEach(([name, later], index) => {
    const [sine, cosine] = encoding(now[name] + later * now.offset, now).slice(2 * pair, 2 * pair + 2);
    const length = name === "first" ? RADIUS : 0.65 * RADIUS;
    hands[index].setAttribute("x2", (length * sine).toFixed(4));
    hands[index].setAttribute("y2", (-length * cosine).toFixed(4));
  });
  node.dataset.turn = turn.toFixed(6);
  const words = `+${Number(turn.toPrecision(turn < 0.1 ? 1 : 3))}`;
  if (turned.textContent !== words) turned.textContent = words;
}

/** The clocks, and what draws them. */
export function makeClocks() {
  const size = { width: CLOCKS * APART, height: 2 * RADIUS + 38 };
  const node = svg("svg", { ...size, role: "img", "aria-label": "each pair of dimensions as a clock" });
  let pairs = 0, faces = [];
  const draw = (now) => {
    if (pairs !== now.d_model / 2) {
      pairs = now.d_model / 2;
      faces = drawFaces(pairs);
      node.replaceChildren(...faces.map((face) => face.node));
    }
    for (const face of faces) setHands(face, now);
  };
  return { node, draw };
}
