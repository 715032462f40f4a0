// Probabilities under temperature, top-k and top-p.

import { grouped } from "../shared/numbers.js";

/** What tokens are drawn with, from log-probabilities that fall: temperature, then top-k, then top-p, then shares. */
export function reshaped(logProbs, [temperature, topK, topP]) {
  const weights = logProbs.map((logProb) => Math.exp((logProb - logProbs[0]) / temperature));
  const sum = (count) => weights.subarray(0, count).reduce((total, weight) => total + weight, 0);
  let kept = weights.length;
  if (topK) kept = logProbs.filter((logProb) => logProb >= logProbs[Math.min(topK, kept) - 1]).length; // ties stay
  if (topP < 1) {
    const enough = topP * sum(kept);
    let count = 0;
    for (let reached = 0; count < kept && reached < enough; count++) reached += weights[count];
    kept = count;
  }
  const total = sum(kept);
  return weights.map((weight, index) => (index < kept ? weight / total : 0));
}

/** In nats. */
const entropy = (probs) => probs.reduce((total, prob) => total - (prob ? prob * Math.log(prob) : 0), 0);

/** The probabilities in words. */
export function describe(probs) {
  const kept = probs.filter((prob) => prob > 0).length, tokens = `${grouped(kept)} token${kept === 1 ? "" : "s"}`;
  const spread = `entropy ${entropy(probs).toFixed(2)} nats (all alike: ${Math.log(probs.length).toFixed(2)})`;
  return `${tokens} of ${grouped(probs.length)} can be drawn; ${spread}`;
}
