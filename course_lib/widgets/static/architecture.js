const WIDE = 214; // of a box, in pixels
const HIGH = 26;
const RISE = 40; // from box to box
const COLUMNS = { encoder: 34, decoder: 306 }; // left edges
const LENGTHS = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 4000];
const MEASURES = { parameters: "parameters", flops: "operations" };

/** A count in words of three digits. */
function rounded(count) {
  const [unit, name] = [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]].find(([size]) => count >= size) || [1, ""];
  return unit === 1 ? grouped(count) : `${(count / unit).toPrecision(count / unit >= 100 ? 4 : 3)} ${name}`;
}

/** A slider over lengths that grow ever faster: its places are numbers of LENGTHS. */
function lengthSlider(model, name, label) {
  const places = { get: () => nearest(LENGTHS, model.get(name)), set: (_, place) => model.set(name, LENGTHS[place]), on: (event, listener) => model.on(event, listener), save_changes: () => model.save_changes() };
  return slider(places, name, { label, min: 0, max: LENGTHS.length - 1, format: () => grouped(model.get(name)) });
}

/** Both stacks with data flowing upward; a box is a button that shows its share of the whole. */
function drawMap(view, choose) {
  const place = {}, top = Math.max(...["encoder", "decoder"].map((stack) => view.boxes.filter((each) => each.stack === stack).length));
  const height = RISE * top + 34;
  const drawn = [], buttons = new Map(), tip = unique("cw-tip");
  const flow = (d) => svg("path", { d, class: "cw-flow", "marker-end": `url(#${tip})` });
  for (const stack of ["encoder", "decoder"]) {
    const boxes = view.boxes.filter((each) => each.stack === stack), left = COLUMNS[stack], middle = left + WIDE / 2;
    const y = (row) => height - 8 - HIGH - RISE * row;
    boxes.forEach((each, row) => {
      place[each.name] = y(row);
      const button = svg("g", { class: "cw-station", role: "button", "data-name": each.name, "data-left": left, "data-top": y(row),
        onclick: () => choose(each.name), onfocus: () => choose(each.name) },
        svg("rect", { x: left, y: y(row), width: WIDE, height: HIGH, rx: 4 }),
        svg("text", { x: left + 8, y: y(row) + 17 }, each.label),
        svg("text", { x: left + WIDE - 8, y: y(row) + 17, "text-anchor": "end", class: "cw-share" }));
      buttons.set(each.name, button);
      if (row) drawn.push(flow(`M${middle} ${y(row - 1)}V${y(row) + HIGH}`));
    });
    const inside = boxes.map((each, row) => (each.layers ? row : -1)).filter((row) => row >= 0);
    const [first, last] = [inside[0], inside[inside.length - 1]];
    const side = stack === "encoder" ? left - 18 : left + WIDE + 24;
    drawn.push(svg("rect", { x: left - 10, y: y(last) - 7, width: WIDE + 30, height: y(first) - y(last) + HIGH + 14, rx: 6, class: "cw-layer" }),
      svg("text", { x: side - (stack === "encoder" ? 14 : -4), y: (y(first) + y(last) + HIGH) / 2, class: "cw-times" }));
    for (let row = first; row < last; row += 2) { // a sub-layer and its norm are one residual path
      const right = left + WIDE, from = y(row) + HIGH + 7, to = y(row + 1) + HIGH / 2;
      drawn.push(flow(`M${middle} ${from}H${right + 11}V${to}H${right + 2}`));
    }
  }
  const last = Math.min(...view.boxes.filter((each) => each.stack === "encoder").map((each) => place[each.name]));
  const start = COLUMNS.encoder + WIDE / 2, between = (COLUMNS.encoder + WIDE + COLUMNS.decoder) / 2 + 6;
  const cross = place["decoder cross-attention"] + HIGH / 2;
  drawn.push(flow(`M${start} ${last}V${last - 22}H${between}V${cross}H${COLUMNS.decoder - 2}`),
    svg("text", { x: start, y: last - 27, "text-anchor": "middle", class: "cw-muted" }, "memory"));
  const picture = svg("svg", { width: COLUMNS.decoder + WIDE + 52, height, role: "group", "aria-label": "the architecture" },
    svg("defs", {}, svg("marker", { id: tip, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "cw-tip" }))),
    ...drawn, ...buttons.values());
  roving([...buttons.values()].sort((a, b) => a.dataset.left - b.dataset.left || a.dataset.top - b.dataset.top)); // as they stand
  const update = ({ boxes, layers, ...totals }, measure) => {
    for (const each of boxes) {
      const button = buttons.get(each.name), share = each[measure] / totals[measure], words = each[measure] ? percent(share) : "";
      button.dataset.share = share;
      button.setAttribute("aria-label", `${each.stack}: ${each.label}, ${words || "no share"}`);
      button.firstChild.style.fill = shade(0.85 * share);
      button.lastChild.textContent = words;
    }
    picture.querySelectorAll(".cw-times").forEach((times) => (times.textContent = `×${layers}`));
  };
  const mark = (name) => buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === name)));
  return { picture, update, mark };
}

/** One box in words and numbers. */
function describe(view, name) {
  const each = view.boxes.find((box) => box.name === name), times = Math.max(1, each.layers);
  const count = (words, number, formula, total) => [
    el("dt", {}, words),
    el("dd", { "data-count": number }, number ? `${grouped(number)} = ${times > 1 ? `${times} × (${formula})` : formula}` : "none"),
    el("dd", { class: "cw-muted" }, number ? `${percent(number / total)} of ${grouped(total)}` : ""),
  ];
  return [
    el("h4", {}, `${each.stack}: ${each.label}`),
    el("p", { class: "cw-muted" }, [each.layers ? `one in each of ${each.layers} layers` : "once", each.note].filter(Boolean).join("; ")),
    el("table", {}, el("tbody", {}, ...each.shapes.map(([words, ...shape]) => el("tr", {}, el("td", {}, words), el("td", {}, `(${shape.map(grouped).join(", ")})`))))),
    el("dl", {}, ...count("parameters", each.parameters, each.parameter_formula, view.parameters), ...count("operations", each.flops, each.flop_formula, view.flops)),
  ];
}

function render({ model, el: root }) {
  const near = unhurried(model); // what the kernel has nothing to do for
  const message = el("div", { class: "cw-message cw-error", role: "status" });
  const totals = el("div", { class: "cw-message cw-totals", role: "status" });
  const stage = el("div", { class: "cw-map" });
  const details = el("div", { class: "cw-details" });
  let map = null;
  const choose = (box) => send(near, { box });
  const presets = Object.entries(model.get("presets")).map(([name, sizes]) => [el("button", { onclick: () => send(model, sizes) }, name), sizes]);
  const look = () => {
    const { boxes } = model.get("view");
    const box = boxes.some(({ name }) => name === near.get("box")) ? near.get("box") : boxes[0].name;
    map.mark(box);
    details.replaceChildren(...describe(model.get("view"), box));
  };
  const draw = () => {
    const view = model.get("view"), [src, tgt] = view.lengths;
    if (!map) stage.append((map = drawMap(view, choose)).picture); // sizes change no box, only what it says
    map.update(view, near.get("measure"));
    totals.textContent = `${grouped(view.parameters)} parameters; ${rounded(view.flops)} operations for a pair of ${grouped(src)} and ${grouped(tgt)} tokens; ` +
      `weights, gradients and Adam's moments take ${(view.bytes / 1e9).toPrecision(3)} GB`;
    presets.forEach(([button, sizes]) => button.setAttribute("aria-pressed", String(Object.entries(sizes).every(([name, value]) => model.get(name) === value))));
    look();
  };
  const size = (name, label, range) => slider(model, name, { label, ...range, format: grouped });
  root.classList.add("cw", "cw-architecture");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "What costs parameters, what costs operations: more heads, more layers, a wider d_model, longer sentences? From which length on does a self-attention cost more operations than a feed-forward network?"),
    el("div", { class: "cw-row" },
      el("span", { class: "cw-control" }, el("span", { class: "cw-muted" }, "the paper's"), ...presets.map(([button]) => button)),
      size("d_model", "d_model", { min: 64, max: 2048, step: 64 }), size("num_heads", "heads", { min: 1, max: 16 }),
      size("num_layers", "layers", { min: 1, max: 12 }), size("d_ff", "d_ff", { min: 64, max: 8192, step: 64 }),
      size("vocab_size", "subwords", { min: 1000, max: 64000, step: 1000 }),
      lengthSlider(model, "src_len", "source tokens"), lengthSlider(model, "tgt_len", "target tokens"),
      choice(near, "measure", { label: "boxes show the share of", options: Object.entries(MEASURES) })),
    message, totals, el("div", { class: "cw-row cw-stage" }, stage, details));
  listen(model, "message", () => (message.textContent = model.get("message")));
  listen(near, ["view", "measure"], draw);
  listen(near, "box", look);
}

export default { render };
