// The playground and the attention explorer, with the translator in the page where a lesson has a kernel.

import { Traits } from "./traits.js";

const MOST_TOKENS = { playground: 100, explorer: 40 };
const STEPS = 65535, CANDIDATES = 5;

export function playground(engine, text) {
  const answer = async ({ text: typed }) => {
    if (!typed.trim()) throw new Error("Type an English sentence.");
    const started = performance.now(), { pieces } = engine.prepare(typed);
    const alone = pieces.length === 1;
    const longest = MOST_TOKENS.playground;
    const found = alone ? await engine.explore(typed, { longest }) : await engine.translate(typed);
    const { ids = [], src = [], tgt = [], probabilities = [] } = found;
    return { view: { text: found.text, remarks: found.remarks, src: src.slice(0, -1), tgt, where: "in your browser",
      probabilities: ids.map((id, place) => probabilities[place][id]), milliseconds: performance.now() - started } };
  };
  return begun(new Traits({ text: "", view: {} }, answer), { text });
}

export function explorer(engine, text, examples = []) {
  const { num_layers: layers, num_heads: heads } = engine.config, all = Array(layers).fill(heads);
  const answer = async (values, names) => {
    const fresh = names.includes("text"), prefix = fresh ? [] : values.forced;
    const found = await engine.explore(values.text, { prefix, silent: values.silent, longest: MOST_TOKENS.explorer });
    const most = Math.min(found.tgt.length, MOST_TOKENS.explorer), before = values.view.text ?? null;
    const view = { ...described(engine, found, most), before };
    const weights = packed(found, layers * heads, most, MOST_TOKENS.explorer);
    return { ...(fresh ? { forced: [] } : {}), weights, view, shown: most };
  };
  const start = { text: "", kind: "cross", layer: layers - 1, head: -1, forced: [], silent: [], shown: 0, examples,
    heads: { encoder: all, decoder: all, cross: all }, view: {}, weights: new DataView(new ArrayBuffer(0)) };
  return begun(new Traits(start, answer), { text });
}

async function begun(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  await model.save_changes();
  return model;
}

function described(engine, { text, src, tgt, ids, probabilities }, most) {
  const candidates = probabilities.map((row) => best(row).map((id) => [id, engine.tokenizer.token(id), row[id]]));
  return { text, src, tgt: tgt.slice(0, most), read: ["<s>", ...tgt.slice(0, -1)].slice(0, most), ids,
    probabilities: ids.map((id, place) => probabilities[place][id]), candidates, gold: null, rates: null };
}

/** Ids of the most probable tokens, best first. */
function best(row) {
  const found = [];
  row.forEach((probability, id) => {
    if (found.length === CANDIDATES && probability <= row[found.at(-1)]) return;
    const place = found.findIndex((other) => row[other] < probability);
    found.splice(place < 0 ? found.length : place, 0, id);
    found.length = Math.min(found.length, CANDIDATES);
  });
  return found;
}

/** All weights as 16-bit steps, kind after kind: (layers · heads, queries, keys). */
function packed({ encoder, decoder, cross, src }, maps, queries, most) {
  const length = src.length, keys = Math.min(length, most);
  const numbers = new Uint16Array(maps * (keys * keys + queries * queries + queries * keys));
  let place = 0;
  const put = (weight) => {
    numbers[place++] = Math.round(weight * STEPS);
  };
  for (let map = 0; map < maps; map++)
    for (let q = 0; q < keys; q++)
      for (let k = 0; k < keys; k++) put(encoder[(map * length + q) * length + k]);
  for (let map = 0; map < maps; map++)
    for (let q = 0; q < queries; q++)
      for (let k = 0; k < queries; k++) put(k <= q ? decoder[q][map * (q + 1) + k] : 0);
  for (let map = 0; map < maps; map++)
    for (let q = 0; q < queries; q++) for (let k = 0; k < keys; k++) put(cross[q][map * length + k]);
  return new DataView(numbers.buffer);
}
