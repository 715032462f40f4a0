// The search that the kernel made, for the present beam and length penalty.

import { signed } from "../shared/numbers.js";

const LONGEST = 6; // tokens of an output that are told
const FATE_WORDS = {
  kept: "kept: the search goes on with it",
  dropped: "dropped: others were more probable",
  finished: "finished",
  unfinished: "unfinished: the search ended before it did",
};

/** Its nodes, and its outputs with their scores. */
export function searchOf(model) {
  const { nodes, outputs, scores, best } = model.get("beams")[model.get("beam_size") - 1];
  const penalty = model.get("length_penalty");
  const place = model.get("penalties").findIndex((each) => Math.abs(each - penalty) < 1e-6);
  return {
    nodes: nodes.map(([token, step, parent, logProb, total, fate]) => ({ token, step, parent, logProb, total, fate })),
    outputs: new Map(outputs),
    scores: new Map(outputs.map(([index], number) => [index, scores[place][number]])),
    best: best[place],
    unpenalized: best[0],
  };
}

/** Indices of the nodes from the root to this one. */
export function pathTo(nodes, index) {
  const path = [];
  for (let each = index; each !== null; each = nodes[each].parent) path.unshift(each);
  return path;
}

/** What a node costs, in words. */
export function describe({ nodes, scores }, penalty, index) {
  const node = nodes[index], level = nodes.filter((each) => each.step === node.step);
  if (node.parent === null) return "<s>: where each output begins, log-probability 0";
  const rank = 1 + level.filter((each) => each.total > node.total).length;
  const score = scores.has(index) && `score ${signed(scores.get(index))} at α ${penalty.toFixed(2)}`;
  const tokens = pathTo(nodes, index).slice(1).map((each) => nodes[each].token);
  const words = `${tokens.length > LONGEST ? "… " : ""}${tokens.slice(-LONGEST).join(" ")}`;
  const probability = `${signed(node.logProb)} (probability ${Math.exp(node.logProb).toFixed(2)})`;
  return `${words} · log-probability of ${node.token} ${probability} · ` +
    `total ${signed(node.total)}, rank ${rank} of step ${node.step} · ${FATE_WORDS[node.fate]} · ` +
    `${score || "no score: the penalty ranks outputs that have ended"}`;
}
