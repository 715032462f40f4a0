// The shipped translator in the page: encoder and decoder step as ONNX graphs, greedy decoding, all that can be looked
// into. What course_lib/analysis/exploration.py does in a kernel.

import { doubts, prepare, restore } from "./door.js";
import { BOS, EOS, PAD, Tokenizer } from "./tokenizer.js";

const EXTRA_TOKENS = 50; // that a translation may have more than its source, as the paper has it

async function fetched(url, progress) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} cannot be read: ${answer.status} ${answer.statusText}`);
  const parts = [], reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    progress(value.length);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export class Engine {
  /**
   * Loads the runtime, the model and its tokenizer.
   * @param {object} places URLs: `model`, a folder that course_lib.export wrote; `runtime`, one with ONNX Runtime Web
   * @param {function} progress is told of the share that is loaded, 0 to 1
   */
  static async load({ model, runtime }, progress = () => {}) {
    if (typeof WebAssembly !== "object")
      throw new Error("This browser has no WebAssembly, which the translator needs: try another, or a newer one.");
    const at = (name) => new URL(name, model).href;
    const { sizes, ...config } = await (await fetch(at("config.json"))).json();
    const whole = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    let loaded = 0;
    const count = (size) => progress(Math.min(1, (loaded += size) / whole));
    const names = ["weights.bin", "encoder.onnx", "decoder.onnx", "tokenizer.json"];
    const ort = await import(new URL("ort.wasm.min.mjs", runtime).href);
    ort.env.wasm.wasmPaths = runtime;
    ort.env.wasm.numThreads = 1; // more need headers that a static host does not send
    const [weights, encoder, decoder, tokenizer] = await Promise.all(names.map((name) => fetched(at(name), count)));
    const options = { externalData: [{ path: "weights.bin", data: weights }] };
    const graphs = [];
    for (const graph of [encoder, decoder]) graphs.push(await ort.InferenceSession.create(graph, options));
    return new Engine(ort, config, graphs, new Tokenizer(JSON.parse(new TextDecoder().decode(tokenizer))));
  }

  constructor(ort, config, [encoder, decoder], tokenizer) {
    Object.assign(this, { ort, config, encoder, decoder, tokenizer });
  }

  /** Heads as 1, or 0 for those that nobody hears. */
  audible(kind, silent) {
    const { num_layers: layers, num_heads: heads } = this.config, each = new Float32Array(layers * heads).fill(1);
    for (const [one, layer, head] of silent) if (one === kind) each[layer * heads + head] = 0;
    return new this.ort.Tensor("float32", each, [layers, heads]);
  }

  ids(numbers) {
    return new this.ort.Tensor("int64", BigInt64Array.from(numbers, BigInt), [1, numbers.length]);
  }

  /** A text as the model reads it, see door.js. */
  prepare(text) {
    return prepare(text, this.tokenizer);
  }

  /**
   * Translates ids greedily and keeps all steps.
   * @param {number[]} src with </s>
   * @param {number[]} prefix that the translation must begin with
   * @returns {Promise<object>} ids, for each the probabilities of all tokens at its place, and weights by kind:
   *   encoder (layers · heads · src_len · src_len), of the others for each step (layers · heads · keys)
   */
  async decode(src, { prefix = [], silent = [] } = {}) {
    const { num_layers: layers, num_heads: heads, d_model: width, max_len: longest } = this.config;
    const limit = Math.min(longest, src.length + EXTRA_TOKENS);
    const { memory_keys, memory_values, weights } =
      await this.encoder.run({ src: this.ids(src), audible: this.audible("encoder", silent) });
    const none = () => new this.ort.Tensor("float32", [], [layers, heads, 0, width / heads]);
    const heard = { audible: this.audible("decoder", silent), audible_cross: this.audible("cross", silent) };
    let keys = none(), values = none(), token = BOS;
    const found = { ids: [], probabilities: [], encoder: weights.data, decoder: [], cross: [] };
    while (token !== EOS && found.ids.length < limit) {
      const before = { token: this.ids([token]), keys, values, memory_keys, memory_values };
      const step = await this.decoder.run({ ...before, ...heard });
      const probabilities = softmax(step.logits.data);
      token = prefix[found.ids.length] ?? largest(probabilities);
      keys = step.new_keys;
      values = step.new_values;
      found.ids.push(token);
      found.probabilities.push(probabilities);
      found.decoder.push(step.weights.data);
      found.cross.push(step.cross_weights.data);
    }
    return found;
  }

  /** A sentence, translated, with all that can be looked into. */
  async explore(text, asked = {}) {
    const { pieces, remarks } = this.prepare(text);
    if (pieces.length > 1)
      throw new Error(`one sentence can be looked into at a time, got ${pieces.length}: '${text.slice(0, 60)}'`);
    const [piece] = pieces, src = this.source(piece, asked.longest), found = await this.decode(src, asked);
    const tokens = (ids) => restore(piece, ids.map((id) => this.tokenizer.token(id)));
    const [translation] = restore(piece, [this.tokenizer.decode(found.ids)]);
    return { ...found, text: translation, src: tokens(src), tgt: tokens(found.ids),
      remarks: [...remarks, ...doubts(text, translation, piece.copied)] };
  }

  source(piece, longest = Infinity) {
    const ids = [...this.tokenizer.encode(piece.text), EOS];
    if (ids.length === 1) throw new Error("Type an English sentence.");
    if (ids.length > longest)
      throw new Error(`the sentence has ${ids.length} tokens; the widget takes up to ${longest}`);
    return ids;
  }

  /** A text of any number of sentences. */
  async translate(text) {
    const { pieces, remarks } = this.prepare(text);
    let whole = "";
    for (const piece of pieces) {
      const { ids } = await this.decode(this.source(piece));
      whole += restore(piece, [this.tokenizer.decode(ids)])[0] + piece.gap;
    }
    const copied = pieces.flatMap((piece) => piece.copied);
    return { text: whole.trim(), remarks: [...remarks, ...doubts(text, whole, copied)] };
  }
}

/** Probabilities of all tokens; <pad> and <s> are never written. */
function softmax(logits) {
  const top = logits.reduce((most, each) => Math.max(most, each), -Infinity);
  const powers = logits.map((each) => Math.exp(each - top)), sum = powers.reduce((all, each) => all + each, 0);
  const probabilities = powers.map((each) => each / sum);
  probabilities[PAD] = probabilities[BOS] = 0;
  return probabilities;
}

function largest(numbers) {
  return numbers.reduce((best, each, index) => (each > numbers[best] ? index : best), 0);
}
