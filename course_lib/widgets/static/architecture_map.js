import { drawMap } from "./architecture_map/map.js";
import { choice, refusal, slider } from "./shared/controls.js";
import { el, fill, muted, row, status, together } from "./shared/dom.js";
import { listen, send, unhurried } from "./shared/model.js";
import { grouped, nearest, percent } from "./shared/numbers.js";

const LENGTHS = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 4000,
];
const MEASURES = { parameters: "parameters", flops: "FLOPs" };

/** A count in words of three digits. */
function rounded(count) {
  const units = [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]];
  const [unit, name] = units.find(([size]) => count >= size) || [1, ""];
  return unit === 1 ? grouped(count) : `${(count / unit).toPrecision(count / unit >= 100 ? 4 : 3)} ${name}`;
}

/** A slider over lengths that grow ever faster: its places are numbers of LENGTHS. */
function lengthSlider(model, name, label) {
  const places = {
    get: () => nearest(LENGTHS, model.get(name)),
    set: (_, place) => model.set(name, LENGTHS[place]),
    on: (event, listener) => model.on(event, listener),
    save_changes: () => model.save_changes(),
  };
  return slider(places, name, { label, min: 0, max: LENGTHS.length - 1, format: () => grouped(model.get(name)) });
}

/** One box in words and numbers. */
function describe(view, name) {
  const each = view.boxes.find((box) => box.name === name), times = Math.max(1, each.layers);
  const count = (words, number, formula, total) => [
    el("dt", {}, words),
    el("dd", { "data-count": number },
      number ? `${grouped(number)} = ${times > 1 ? `${times} × (${formula})` : formula}` : "none"),
    el("dd", { class: "cw-muted" }, number ? `${percent(number / total)} of ${grouped(total)}` : ""),
  ];
  const often = each.layers ? `one in each of ${each.layers} layers` : "once";
  const shapes = each.shapes.map(([words, ...shape]) =>
    el("tr", {}, el("td", {}, words), el("td", {}, `(${shape.map(grouped).join(", ")})`)));
  return [
    el("h4", {}, `${each.stack}: ${each.label}`),
    el("p", { class: "cw-muted" }, [often, each.note].filter(Boolean).join("; ")),
    el("table", {}, el("tbody", {}, ...shapes)),
    el("dl", {}, ...count("parameters", each.parameters, each.parameter_formula, view.parameters),
      ...count("FLOPs", each.flops, each.flop_formula, view.flops)),
  ];
}

/** Buttons of the paper's models, and what marks the one that is shown. */
function makePresets(model) {
  const presets = Object.entries(model.get("presets")).map(([name, sizes]) =>
    [el("button", { onclick: () => send(model, sizes) }, name), Object.entries(sizes)]);
  const mark = () => presets.forEach(([button, sizes]) =>
    button.setAttribute("aria-pressed", String(sizes.every(([name, value]) => model.get(name) === value))));
  return { node: together(muted("the paper's"), ...presets.map(([button]) => button)), mark };
}

function sizeSliders(model) {
  const size = (name, label, range) => slider(model, name, { label, ...range, format: grouped });
  return [
    size("d_model", "d_model", { min: 64, max: 2048, step: 64 }), size("num_heads", "heads", { min: 1, max: 16 }),
    size("num_layers", "layers", { min: 1, max: 12 }), size("d_ff", "d_ff", { min: 64, max: 8192, step: 64 }),
    size("vocab_size", "subwords", { min: 1000, max: 64000, step: 1000 }),
    lengthSlider(model, "src_len", "source tokens"), lengthSlider(model, "tgt_len", "target tokens"),
  ];
}

/** The whole model in words. */
function tell({ lengths: [src, tgt], parameters, flops, bytes }) {
  return `${grouped(parameters)} parameters; ${rounded(flops)} FLOPs for a pair of ${grouped(src)} and ` +
    `${grouped(tgt)} tokens; weights, gradients and Adam's moments take ${(bytes / 1e9).toPrecision(3)} GB`;
}

function render({ model, el: root }) {
  const near = unhurried(model); // what the kernel has nothing to do for
  const totals = status("cw-totals"), details = el("div", { class: "cw-details" }), presets = makePresets(model);
  const map = drawMap(model.get("view"), (box) => send(near, { box })); // sizes change no box, only what it says
  const look = () => {
    const view = model.get("view"), isThere = view.boxes.some(({ name }) => name === near.get("box"));
    const box = isThere ? near.get("box") : view.boxes[0].name;
    map.mark(box);
    details.replaceChildren(...describe(view, box));
  };
  const draw = () => {
    const view = model.get("view");
    map.update(view, near.get("measure"));
    totals.textContent = tell(view);
    presets.mark();
    look();
  };
  root.classList.add("cw-architecture");
  const question = "What costs parameters, and what costs FLOPs: more heads, more layers, a wider d_model, longer " +
    "sentences? From how many tokens on does a self-attention take more FLOPs than a feed-forward network?";
  const measures = choice(near, "measure", { label: "boxes show the share of", options: Object.entries(MEASURES) });
  const stage = el("div", { class: "cw-map" }, map.picture);
  fill(root, question, row(presets.node, ...sizeSliders(model), measures),
    refusal(model), totals, el("div", { class: "cw-row cw-stage" }, stage, details));
  listen(near, ["view", "measure"], draw);
  listen(near, "box", look);
}

export default { render };
