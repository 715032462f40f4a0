// What the widgets' scripts share. Each script is read behind this one, as one module.

/** An HTML element with attributes (a function is a listener: onclick → click) and children. */
function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise; a picture can be shrunk: with a width and a height it has a viewBox. */
function svg(tag, attributes = {}, ...children) {
  const box = tag === "svg" ? { viewBox: `0 0 ${attributes.width} ${attributes.height}` } : {};
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), { ...box, ...attributes }, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children); // text stays text: it is never parsed as HTML
  return node;
}

/** An id that no other node of the page has: each widget, and each view of one, makes its own. */
function unique(prefix) {
  return `${prefix}-${Math.random().toString(36).slice(2)}`;
}

/** A control under its name; `get` and `set` read and write its value as text. */
function labelled(name, control, output = null) {
  control.id = unique("cw-control");
  const label = el("label", { for: control.id }, name);
  return el("span", { class: "cw-control" }, label, control, ...(output ? [output] : []));
}

/** Buttons that keep the present view, the newest three in `kept`, beside those to come, and forget what was kept. */
function keepers(model, kept, draw, label) {
  const hold = (views) => {
    kept.splice(0, Infinity, ...views);
    draw();
  };
  const keep = () => {
    const view = model.get("view");
    hold([view, ...kept.filter((each) => each.name !== view.name)].slice(0, 3));
  };
  return [el("button", { onclick: keep }, label), el("button", { onclick: () => hold([]) }, "forget the others")];
}

/** Sends a trait to the kernel; while it is busy, only the newest value waits. */
function send(model, changes) {
  for (const [name, value] of Object.entries(changes)) model.set(name, value);
  model.save_changes();
}

/**
 * A model in front of the model, for what the browser draws without the kernel. What is set here is seen here at once;
 * the kernel hears of it when no change has come for a moment, and its echo does not undo what was set since.
 */
function unhurried(model) {
  const waiting = new Map(), listeners = new Map();
  let timer = null;
  const flush = () => {
    clearTimeout(timer);
    for (const [name, value] of waiting) model.set(name, value);
    waiting.clear();
    model.save_changes();
  };
  return {
    get: (name) => (waiting.has(name) ? waiting.get(name) : model.get(name)),
    set(name, value) {
      if (Object.is(this.get(name), value)) return;
      waiting.set(name, value);
      (listeners.get(`change:${name}`) || []).forEach((listener) => listener());
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) || []), listener]);
      model.on(event, () => waiting.has(event.slice("change:".length)) || listener());
    },
    save_changes() {
      clearTimeout(timer);
      timer = setTimeout(flush, 200);
    },
    flush, // at once
  };
}

/** A slider for a number trait. Arrow keys stay with it: JupyterLab would take them for its cells. */
function slider(model, name, { label, min, max, step = 1, format = String }) {
  const input = el("input", { type: "range", min, max, step, "data-lm-suppress-shortcuts": "true" });
  const output = el("output", {});
  const show = () => {
    input.value = model.get(name);
    output.textContent = format(model.get(name));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => send(model, { [name]: Number(input.value) }));
  listen(model, name, show);
  return labelled(label, input, output);
}

/** A list of choices for a text or number trait: pairs of value and words, or what a function makes of the model. */
function choice(model, name, { label, options, depends = [] }) {
  const input = el("select", { "data-lm-suppress-shortcuts": "true" });
  let values = [];
  const fill = () => {
    const found = typeof options === "function" ? options(model) : options;
    values = found.map(([value]) => value);
    input.replaceChildren(...found.map(([, words]) => el("option", {}, words)));
    input.selectedIndex = values.indexOf(model.get(name));
  };
  input.addEventListener("change", () => send(model, { [name]: values[input.selectedIndex] }));
  for (const other of depends) model.on(`change:${other}`, fill);
  listen(model, name, fill);
  return labelled(label, input);
}

/** A box for a bool trait. */
function toggle(model, name, { label }) {
  const input = el("input", { type: "checkbox" });
  input.addEventListener("change", () => send(model, { [name]: input.checked }));
  listen(model, name, () => (input.checked = model.get(name)));
  return labelled(label, input);
}

/** A line of text for a text trait, sent with Enter or the button. */
function textbox(model, name, { label, button, maxlength = 2000 }) {
  const input = el("input", { type: "text", maxlength, spellcheck: "false", "data-lm-suppress-shortcuts": "true" });
  const go = () => {
    send(model, { [name]: input.value });
    if (model.flush) model.flush(); // behind what was set before
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go();
    event.stopPropagation(); // the notebook's own keys stay away from what is typed
  });
  listen(model, name, () => (input.value = model.get(name)));
  return el("span", { class: "cw-control cw-wide" }, labelled(label, input), el("button", { onclick: go }, button));
}

/** Calls `show` now and whenever the trait changes. */
function listen(model, names, show) {
  for (const name of [].concat(names)) model.on(`change:${name}`, show);
  show();
}

/** Calls `draw` once before the next frame, however often it is asked. */
function onceAFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

/** Bytes of a trait as numbers. */
function numbers(view, Type) {
  if (!view || !view.byteLength) return new Type(0);
  return new Type(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/** The color of a weight in 0..1, between the page and the accent. */
function shade(weight) {
  return `color-mix(in srgb, var(--cw-accent) ${(100 * weight).toFixed(1)}%, var(--cw-page))`;
}

/** New children for a node; the focus stays on the data-key that had it, or goes to the next one that can have it. */
function refill(node, ...children) {
  const held = node.contains(document.activeElement) && document.activeElement.dataset.key;
  node.replaceChildren(...children);
  if (!held) return;
  const keyed = [...node.querySelectorAll("[data-key]")];
  const place = Math.max(0, keyed.findIndex((each) => each.dataset.key === held));
  const found = [...keyed.slice(place), ...keyed.slice(0, place).reverse()].find((each) => !each.disabled);
  if (found) found.focus({ preventScroll: true });
}

/** Switches the buttons one step back and on; the focus of one that goes off moves to the other. */
function switchArrows(back, on, { first, last }) {
  const held = [back, on].find((button) => button === document.activeElement);
  back.disabled = first;
  on.disabled = last;
  if (held && held.disabled) (held === back ? on : back).focus({ preventScroll: true });
}

/** Makes the items one stop of the Tab key: the one that had the focus last. */
function oneStop(items) {
  const stop = (item) => items.forEach((other) => other.setAttribute("tabindex", other === item ? "0" : "-1"));
  items.forEach((item) => item.addEventListener("focus", () => stop(item)));
  stop(items[0]);
}

/** Arrow keys move the focus among the items of a group; the group is one stop of the Tab key. */
function roving(items) {
  oneStop(items);
  items.forEach((item, index) => {
    item.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      items[(index + step + items.length) % items.length].focus();
    });
  });
}

/** As roving, in two dimensions: rows of items (null is a hole), one stop of the Tab key for all of them. */
function rovingGrid(rows) {
  oneStop(rows.flat().filter(Boolean));
  rows.forEach((items, row) => items.forEach((item, column) => {
    if (!item) return;
    item.setAttribute("data-lm-suppress-shortcuts", "true");
    item.addEventListener("keydown", (event) => {
      const [down, right] = { ArrowRight: [0, 1], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowUp: [-1, 0] }[event.key] || [0, 0];
      if (!down && !right) return;
      event.preventDefault();
      event.stopPropagation();
      const next = (rows[row + down] || [])[column + right];
      if (next) next.focus();
    });
  }));
}

/** The color of a signed number in -1..1, like the course's figures: blue below 0, the page at 0, orange above. */
function tint(value) {
  const side = value < 0 ? "accent" : "second";
  return `color-mix(in srgb, var(--cw-${side}) ${(100 * Math.min(1, Math.abs(value))).toFixed(1)}%, var(--cw-page))`;
}

/** Round numbers from low to high, about `count` of them. */
function ticks(low, high, count = 5) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
  const found = [];
  for (let index = Math.ceil(low / step); index * step <= high + step / 1e6; index++) found.push(index * step || 0); // never −0
  return found;
}

/** The place of the value that is nearest. */
function nearest(values, wanted) {
  return values.reduce((best, each, place) => (Math.abs(each - wanted) < Math.abs(values[best] - wanted) ? place : best), 0);
}

/** A number with a power of ten where it is small or large; base.py writes it likewise. */
function short(value, digits = 1) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e6)) {
    const [factor, power] = value.toExponential(digits).split("e").map(Number);
    const raised = [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
    return `${factor === 1 ? "" : `${factor}·`}10${raised}`;
  }
  return value.toLocaleString("en-US", { maximumFractionDigits: digits + 2 });
}

/** A count with commas between its thousands; below 100 it may have a decimal. */
function grouped(number) {
  return number.toLocaleString("en-US", { maximumFractionDigits: number < 100 ? 1 : 0 });
}

/** A number with a true minus, which 0 has not. */
function signed(number, digits = 2) {
  return number.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
}

/** A share of 1 in percent. */
function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

/** How many letters a word has: an emoji is one. */
function lettersOf(word) {
  return [...word].length;
}

/** Shares of the scores where open(index) is true, 0 elsewhere; null where none is open. */
function softmax(scores, open = () => true) {
  const largest = Math.max(...scores.filter((_, index) => open(index)));
  if (largest === -Infinity) return null;
  const exponentials = scores.map((score, index) => (open(index) ? Math.exp(score - largest) : 0));
  const total = exponentials.reduce((sum, each) => sum + each, 0);
  return exponentials.map((each) => each / total);
}

/** How the line of that number looks. */
function stroke(number) {
  const colors = ["var(--cw-accent)", "var(--cw-second)", "var(--cw-ink)", "var(--cw-faint)"];
  return { stroke: colors[number % 4], "stroke-width": 2, "stroke-dasharray": ["", "6 3", "2 2", "8 2 2 2"][number % 4] };
}

/** Which line is which, for one chart or several. */
function legend(names) {
  return el("div", { class: "cw-row" }, ...names.map((name, number) =>
    el("span", { class: "cw-control" }, svg("svg", { width: 28, height: 8 }, svg("line", { x2: 28, y1: 4, y2: 4, ...stroke(number) })), name)));
}

/**
 * Lines over one pair of axes: series are { name, xs, ys }, told apart by dashes too, marks are { name, x }.
 * With logY, all ys must be above 0 and every tick is a power of ten.
 * With `onpoint`, the pointer and the arrow keys move a cursor along the first series, and it is called with each
 * index there; `mark(index)` of the node puts the cursor there without a call.
 */
function lineChart({ width = 640, height = 280, xlabel, ylabel, series, marks = [], low = 0, logY = false, onpoint = null }) {
  const [left, right, top, bottom] = [72, 12, 12, 44];
  const up = logY ? Math.log10 : (y) => y;
  const xs = series.flatMap((each) => each.xs), ys = series.flatMap((each) => each.ys.map(up));
  const [lowest, highest] = [Math.min(...ys), Math.max(...ys)];
  const spans = [[Math.min(...xs), Math.max(...xs)], logY ? [Math.floor(lowest), Math.ceil(highest + 0.01)] : [Math.min(low, lowest), highest * 1.04 || 1]];
  const px = (x) => left + ((x - spans[0][0]) / (spans[0][1] - spans[0][0] || 1)) * (width - left - right);
  const py = (y) => height - bottom - ((up(y) - spans[1][0]) / (spans[1][1] - spans[1][0] || 1)) * (height - top - bottom);
  const axes = svg("g", {},
    ...ticks(...spans[0]).map((tick) => svg("text", { x: px(tick), y: height - bottom + 16, "text-anchor": "middle" }, short(tick))),
    ...(logY ? ticks(...spans[1], Math.min(6, spans[1][1] - spans[1][0])).map((tick) => 10 ** tick) : ticks(...spans[1], 4)).flatMap((tick) => [
      svg("line", { x1: left, x2: width - right, y1: py(tick), y2: py(tick), stroke: "var(--cw-line)", "stroke-opacity": 0.6 }),
      svg("text", { x: left - 6, y: py(tick) + 4, "text-anchor": "end" }, short(tick)),
    ]),
    svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle", class: "cw-muted" }, xlabel),
    svg("text", { transform: `translate(12,${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "cw-muted" }, ylabel));
  const cursor = svg("line", { y1: top, y2: height - bottom, stroke: "var(--cw-faint)", "stroke-dasharray": "3 3", visibility: "hidden" });
  const reading = onpoint ? { tabindex: 0, "data-key": "chart", class: "cw-read", "data-lm-suppress-shortcuts": "true" } : {};
  const picture = svg("svg", { width, height, role: "img", "aria-label": `${ylabel} against ${xlabel}`, ...reading }, axes,
    ...marks.flatMap(({ name, x }) => [
      svg("line", { x1: px(x), x2: px(x), y1: top, y2: height - bottom, stroke: "var(--cw-faint)", "stroke-dasharray": "1 3" }),
      svg("text", { x: px(x) + 4, y: top + 10, class: "cw-muted" }, name),
    ]),
    ...series.map(({ name, xs, ys }, number) => svg("polyline", {
      points: xs.map((x, index) => `${px(x).toFixed(1)},${py(ys[index]).toFixed(1)}`).join(" "), fill: "none", "data-name": name, ...stroke(number),
    })),
    cursor);
  const points = series[0].xs;
  let at = null;
  picture.mark = (index) => {
    at = index;
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, px(points[at]));
    cursor.setAttribute("visibility", "visible");
  };
  const point = (index) => {
    picture.mark(Math.max(0, Math.min(points.length - 1, index)));
    onpoint(at);
  };
  const follow = (event) => {
    const box = picture.getBoundingClientRect();
    const share = (((event.clientX - box.left) * width) / box.width - left) / (width - left - right);
    if (share >= 0 && share <= 1) point(nearest(points, spans[0][0] + share * (spans[0][1] - spans[0][0])));
  };
  const walk = (event) => {
    const to = { ArrowLeft: (at ?? points.length) - 1, ArrowRight: (at ?? -1) + 1, Home: 0, End: points.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    point(to);
  };
  if (onpoint) for (const [name, listener] of Object.entries({ pointerdown: follow, pointermove: follow, keydown: walk })) picture.addEventListener(name, listener);
  return picture;
}
