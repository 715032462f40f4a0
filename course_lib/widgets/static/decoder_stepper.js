const HIGH = 26; // of a box, in pixels
const BESIDE = 14; // between two boxes
const LINES = 96; // from the source down to the predictions
const SHIFT = 50; // from the predictions down to what is read
const NAMES = 92; // room for the names of the rows
const UNSEEN = "·";

/** The weights of the present layer and head as weight(row, column); the mean stands behind the heads. */
function weightsOf(model, name, columns) {
  const { predicted, heads } = model.get("view");
  const all = numbers(model.get(name), Float32Array);
  const head = model.get("head") < 0 ? heads : model.get("head");
  const start = (model.get("layer") * (heads + 1) + head) * predicted.length * columns;
  return (row, column) => all[start + row * columns + column];
}

/** The step that is shown: one of the former sentence may be on its way. */
const stepOf = (model) => Math.min(model.get("step"), model.get("view").predicted.length);

/** Left edges and widths of boxes around tokens, side by side. */
function rowOf(tokens) {
  let left = NAMES;
  return tokens.map((token) => {
    const width = 16 + 7.5 * Math.max(4, lettersOf(token));
    const place = { left, width, middle: left + width / 2 };
    left += width + BESIDE;
    return place;
  });
}

function box(token, place, top, look, weight = null, attributes = {}) {
  return svg("g", { class: `cw-box ${look}`, ...attributes },
    svg("rect", { x: place.left, y: top, width: place.width, height: HIGH, rx: 4, ...(weight === null ? {} : { style: `fill: ${shade(0.7 * weight)}`, "data-weight": weight }) }),
    svg("text", { x: place.middle, y: top + 17, "text-anchor": "middle" }, token));
}

const number = (weight, place, y) => svg("text", { x: place.middle, y, "text-anchor": "middle", class: "cw-weight" }, weight.toFixed(2));

/** The source on top, then the predictions, below them what is read: each prediction one place further to the right. */
function drawStep(model, goto) {
  const { src, predicted } = model.get("view");
  const now = stepOf(model) - 1; // the position that is looked into
  const cross = weightsOf(model, "cross", src.length), own = weightsOf(model, "own", predicted.length);
  const read = ["<s>", ...predicted.slice(0, -1)];
  const sources = rowOf(src), arrow = unique("cw-arrow");
  const places = rowOf(predicted.map((token, index) => (lettersOf(token) > lettersOf(read[index]) ? token : read[index])));
  const tops = { src: 20, predicted: 20 + HIGH + LINES, read: 20 + 2 * HIGH + LINES + SHIFT };
  const lines = src.map((_, column) => [cross(now, column), sources[column]]).filter(([weight]) => weight >= 0.02).map(([weight, place]) =>
    svg("line", { x1: places[now].middle, y1: tops.predicted, x2: place.middle, y2: tops.src + HIGH + 16, stroke: "var(--cw-accent)",
      "stroke-width": (1 + 5 * weight).toFixed(2), "stroke-opacity": (0.2 + 0.8 * weight).toFixed(3), "data-weight": weight }));
  const shifts = predicted.slice(0, -1).map((_, index) => index).filter((index) => index <= now).map((index) =>
    svg("line", { x1: places[index].middle, y1: tops.predicted + HIGH, x2: places[index + 1].middle, y2: tops.read - 3, class: index < now ? "cw-shift" : "cw-shift cw-next", "marker-end": `url(#${arrow})`, "data-shift": index }));
  const jump = (index) => ({ role: "button", "data-step": index + 1, "aria-label": `step ${index + 1}`, "aria-pressed": String(index === now),
    onclick: () => goto(index + 1), onkeydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), event.stopPropagation(), goto(index + 1)) });
  const buttons = predicted.map((token, index) =>
    box(index <= now ? token : UNSEEN, places[index], tops.predicted, index === now ? "cw-now" : index < now ? "" : "cw-unseen", null, jump(index)));
  roving(buttons);
  const width = Math.max(...[...sources, ...places].map((place) => place.left + place.width)) + 4;
  return svg("svg", { width, height: tops.read + HIGH + 20, role: "group", "aria-label": "one step of the decoder" },
    svg("defs", {}, svg("marker", { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "cw-head" }))),
    ...[["memory", tops.src + 17], ["cross-attention", tops.src + HIGH + 12], ["predicts", tops.predicted + 17], ["has read", tops.read + 17], ["self-attention", tops.read + HIGH + 12]].map(([words, y]) =>
      svg("text", { x: 2, y, class: `cw-muted${words.endsWith("attention") ? " cw-weight" : ""}` }, words)),
    ...lines, ...shifts,
    ...src.flatMap((token, column) => [box(token, sources[column], tops.src, "cw-source", cross(now, column)), number(cross(now, column), sources[column], tops.src + HIGH + 12)]),
    ...buttons,
    ...read.flatMap((token, index) => (index <= now
      ? [box(token, places[index], tops.read, index === now ? "cw-past cw-asks" : "cw-past", own(now, index)), number(own(now, index), places[index], tops.read + HIGH + 12)]
      : [box(UNSEEN, places[index], tops.read, "cw-unseen")])));
}

/** The most probable tokens, and what is left for all others. */
function drawCandidates({ candidates, others }, now) {
  const rows = candidates[now].concat([[`${grouped(others)} others`, 1 - candidates[now].reduce((total, [, probability]) => total + probability, 0)]]);
  return svg("svg", { width: 420, height: 20 * rows.length, role: "group", "aria-label": "most probable tokens" }, ...rows.flatMap(([token, probability], row) => [
    svg("text", { x: NAMES - 6, y: 20 * row + 14, "text-anchor": "end" }, token),
    svg("rect", { x: NAMES, y: 20 * row + 3, width: 240 * Math.max(0, probability), height: 14, fill: shade(0.75) }),
    svg("text", { x: NAMES + 240 * Math.max(0, probability) + 5, y: 20 * row + 14, class: "cw-number", "data-probability": probability }, percent(probability)),
  ]));
}

/** The step in words. */
function tell(model) {
  const { src, predicted, candidates, heads, text } = model.get("view");
  const now = stepOf(model) - 1;
  const cross = weightsOf(model, "cross", src.length);
  const best = src.map((_, column) => column).sort((a, b) => cross(now, b) - cross(now, a))[0];
  const where = `layer ${model.get("layer")}, ${model.get("head") < 0 ? `mean of ${heads} heads` : `head ${model.get("head")}`}`;
  const read = ["<s>", ...predicted.slice(0, now)];
  const end = predicted[now] === "</s>" ? ` It is done: ${text}` : "";
  return `Step ${now + 1} of ${predicted.length}: has read ${read.length > 6 ? "… " : ""}${read.slice(-6).join(" ")}, predicts ${predicted[now]} ` +
    `(${percent(candidates[now][0][1])}); its cross-attention (${where}) looks most at ${src[best]} (${cross(now, best).toFixed(2)}).${end}`;
}

function render({ model: kernel, el: root }) {
  const model = unhurried(kernel); // the kernel has nothing to do for a step
  const message = el("div", { class: "cw-message cw-error", role: "status" });
  const stage = el("div", { class: "cw-scroll" });
  const candidates = el("div", {});
  const told = el("div", { class: "cw-message cw-told", role: "status" });
  const steps = slider(model, "step", { label: "step", min: 1, max: model.get("view").predicted.length });
  const back = el("button", { "aria-label": "one step back", onclick: () => goto(stepOf(model) - 1) }, "◀");
  const on = el("button", { "aria-label": "one step on", onclick: () => goto(stepOf(model) + 1) }, "▶");
  const goto = (step) => send(model, { step: Math.max(1, Math.min(model.get("view").predicted.length, step)) });
  const draw = () => {
    const step = stepOf(model);
    const held = stage.contains(document.activeElement);
    stage.replaceChildren(drawStep(model, goto));
    const present = stage.querySelector("[aria-pressed=true]");
    stage.scrollLeft = present.firstChild.x.baseVal.value - stage.clientWidth / 2; // in view, if the sentence is long
    if (held) present.focus({ preventScroll: true });
    candidates.replaceChildren(drawCandidates(model.get("view"), step - 1));
    told.textContent = tell(model);
    switchArrows(back, on, { first: step === 1, last: step === model.get("view").predicted.length });
  };
  root.classList.add("cw", "cw-stepper");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Before each step: which token comes next, and which English token will the decoder look at to predict it? Does it look at the translation of what it has read, or of what it predicts?"),
    el("div", { class: "cw-row" }, textbox(model, "text", { label: "English", button: "Translate" })),
    el("div", { class: "cw-row" }, steps, el("span", { class: "cw-control" }, back, on),
      choice(model, "layer", { label: "layer", options: () => Array.from({ length: model.get("view").layers }, (_, layer) => [layer, String(layer)]), depends: ["view"] }),
      choice(model, "head", { label: "head", options: () => [[-1, "mean of all"], ...Array.from({ length: model.get("view").heads }, (_, head) => [head, String(head)])], depends: ["view"] })),
    message, stage, told, candidates);
  listen(kernel, "message", () => (message.textContent = kernel.get("message")));
  listen(model, "view", () => (steps.querySelector("input").max = model.get("view").predicted.length));
  listen(model, ["view", "step", "layer", "head"], draw);
}

export default { render };
