// One step of a translation, out of what the kernel sent of all of them.

import { numbers } from "../shared/model.js";
import { percent } from "../shared/numbers.js";

const LONGEST = 6; // tokens that are told of what was read

/** The step that is shown: one of the former sentence may be on its way. */
export const stepOf = (model) => Math.min(model.get("step"), model.get("view").predicted.length);

/** The tokens that the decoder reads, one place after they are predicted. */
export const readOf = ({ predicted }) => ["<s>", ...predicted.slice(0, -1)];

/** The weights of the present layer and head as weight(row, column); the mean stands behind the heads. */
export function weightsOf(model, name, columns) {
  const { predicted, heads } = model.get("view");
  const all = numbers(model.get(name), Float32Array);
  const head = model.get("head") < 0 ? heads : model.get("head");
  const start = (model.get("layer") * (heads + 1) + head) * predicted.length * columns;
  return (row, column) => all[start + row * columns + column];
}

/** The step in words. */
export function tell(model) {
  const view = model.get("view"), { src, predicted, candidates, heads, text } = view;
  const now = stepOf(model) - 1, cross = weightsOf(model, "cross", src.length);
  const best = src.map((_, column) => column).sort((a, b) => cross(now, b) - cross(now, a))[0];
  const head = model.get("head") < 0 ? `mean of ${heads} heads` : `head ${model.get("head")}`;
  const read = readOf(view).slice(0, now + 1), some = read.slice(-LONGEST).join(" ");
  const end = predicted[now] === "</s>" ? ` It is done: ${text}` : "";
  return `Step ${now + 1} of ${predicted.length}: has read ${read.length > LONGEST ? "… " : ""}${some}, ` +
    `predicts ${predicted[now]} (${percent(candidates[now][0][1])}); its cross-attention ` +
    `(layer ${model.get("layer")}, ${head}) looks most at ${src[best]} (${cross(now, best).toFixed(2)}).${end}`;
}
