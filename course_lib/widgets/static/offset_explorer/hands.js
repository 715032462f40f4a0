// Each pair of features as a clock: the hands of query and key, and where the shift turns them.

import { el, svg } from "../shared/dom.js";
import { dot, signed } from "../shared/numbers.js";

const CLOCKS = 8, RADIUS = 20, APART = 50; // pixels

const pairOf = (row, pair) => Array.from(row.subarray(2 * pair, 2 * pair + 2));

/** A clock with its hands: the pair's first feature goes right, the second one up. */
function drawClock(now, pair, place, largest) {
  const { query, key, shift, queries, keys } = now, d_k = keys[0].length;
  const hand = (rows, position, second, on) => {
    const [right, up] = pairOf(rows[position + on], pair).map((each) => (RADIUS * each) / largest);
    const looks = { class: second ? "cw-hand cw-hand-second" : "cw-hand", "stroke-dasharray": on ? "4 3" : null };
    const told = { "data-of": second ? "key" : "query", "data-at": position + on };
    return svg("line", { ...looks, ...told, x2: right.toFixed(4), y2: (-up).toFixed(4) });
  };
  const drawn = [...new Set([shift, 0])].flatMap((on) => [hand(queries, query, false, on), hand(keys, key, true, on)]);
  const part = (on) => dot(pairOf(queries[query + on], pair), pairOf(keys[key + on], pair)) / Math.sqrt(d_k);
  const text = (y, words, looks) => svg("text", { y, "text-anchor": "middle", class: looks }, words);
  return svg("g", { transform: `translate(${APART * place + 26},${RADIUS + 2})`, "data-pair": pair },
    svg("circle", { r: RADIUS, class: "cw-frame" }), ...drawn, text(RADIUS + 15, `pair ${pair}`),
    text(RADIUS + 30, signed(part(0)), "cw-part"),
    text(RADIUS + 45, shift ? signed(part(shift)) : "", "cw-part cw-muted"));
}

/** The clocks of up to eight pairs, from the fastest to the slowest, and what draws them. */
export function makeHands() {
  const size = { width: CLOCKS * APART, height: 2 * RADIUS + 52 };
  const node = svg("svg", { ...size, role: "img", "aria-label": "each pair of features as a clock" });
  const words = el("div", { class: "cw-muted" },
    "Blue: the query's pair of features, orange: the key's; dashed: after the shift. Below: what the pair adds to " +
    "the score, before and after.");
  const draw = (now) => {
    const pairs = now.turns ? now.queries[0].length / 2 : 0, count = Math.min(CLOCKS, pairs);
    const rows = now.turns ? [...now.queries, ...now.keys] : [];
    const longest = (row) => Math.max(...Array.from({ length: pairs }, (_, pair) => Math.hypot(...pairOf(row, pair))));
    const largest = Math.max(...rows.map(longest)), apart = (pairs - 1) / Math.max(1, count - 1);
    const chosen = Array.from({ length: count }, (_, place) => Math.round(place * apart));
    node.replaceChildren(...chosen.map((pair, place) => drawClock(now, pair, place, largest)));
    words.style.display = node.style.display = now.turns ? "" : "none";
  };
  return { node: el("div", {}, node, words), draw };
}
