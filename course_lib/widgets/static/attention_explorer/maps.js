// What is drawn of one head: its tokens and its weights.

import { numbers } from "../shared/model.js";

export const KINDS = ["encoder", "decoder", "cross"];
export const UNWRITTEN = "·";

/** Target tokens that are written so far: a number that the former sentence had may be on its way. */
export const shownOf = (model) => Math.min(model.get("shown"), model.get("view").tgt.length);

/** How many heads each layer of the present kind has. */
export const headsOf = (model) => model.get("heads")[model.get("kind")];

/** Whether the present head is there: the rest of a change may be on its way. */
export function isThere(model) {
  const heads = headsOf(model), layer = model.get("layer");
  return Boolean(model.get("view").src) && layer < heads.length && model.get("head") < heads[layer];
}

/** Whether a head is switched off. */
export function isOff(model, head) {
  const [kind, layer] = ["kind", "layer"].map((name) => model.get(name));
  return model.get("silent").some((each) => each[0] === kind && each[1] === layer && each[2] === head);
}

/** Where the weights of a head begin among all weights: kind after kind, layer after layer, head after head. */
function startOf(model, sizes, head) {
  const heads = model.get("heads"), present = model.get("kind");
  let start = 0;
  for (const kind of KINDS) {
    const [queries, keys] = sizes[kind].map((tokens) => tokens.length);
    if (kind === present) return start + (model.get("layer") * heads[kind][0] + head) * queries * keys;
    start += heads[kind].length * heads[kind][0] * queries * keys;
  }
  throw new Error(`no attention is called ${present}`);
}

/** Everything that is drawn of one head: names of rows and columns, how many rows are written, weight(row, column). */
export function mapOf(model, head) {
  const view = model.get("view"), shown = shownOf(model), kind = model.get("kind");
  const first = (tokens, count) => tokens.map((token, index) => (index < count ? token : UNWRITTEN));
  const tgt = first(view.tgt, shown);
  const sizes = { encoder: [view.src, view.src], decoder: [tgt, first(view.read, shown + 1)], cross: [tgt, view.src] };
  const [queries, keys] = sizes[kind], start = startOf(model, sizes, head);
  const all = numbers(model.get("weights"), Uint16Array);
  const weight = (row, column) => all[start + row * keys.length + column] / 65535;
  return { queries, keys, kind, rows: kind === "encoder" ? queries.length : shown, weight };
}

/** The largest weights of a row, in words. */
export function strongest({ keys, weight }, row) {
  const order = keys.map((_, column) => column).sort((a, b) => weight(row, b) - weight(row, a));
  return order.slice(0, 3).map((column) => `${keys[column]} ${weight(row, column).toFixed(2)}`).join(", ");
}
