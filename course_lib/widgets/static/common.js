// What the widgets' scripts share. Each script is read behind this one, as one module.

/** An HTML element with attributes (a function is a listener: onclick → click) and children. */
function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise. */
function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children); // text stays text: it is never parsed as HTML
  return node;
}

let serial = 0;

/** A control under its name; `get` and `set` read and write its value as text. */
function labelled(name, control, output = null) {
  control.id = `course-${Date.now().toString(36)}-${serial++}`;
  const label = el("label", { for: control.id }, name);
  return el("span", { class: "cw-control" }, label, control, ...(output ? [output] : []));
}

/** Sends a trait to the kernel; while it is busy, only the newest value waits. */
function send(model, changes) {
  for (const [name, value] of Object.entries(changes)) model.set(name, value);
  model.save_changes();
}

/** A slider for a number trait. Arrow keys stay with it: JupyterLab would take them for its cells. */
function slider(model, name, { label, min, max, step = 1, format = String }) {
  const input = el("input", { type: "range", min, max, step, "data-lm-suppress-shortcuts": "true" });
  const output = el("output", {});
  const show = () => {
    input.value = model.get(name);
    output.textContent = format(model.get(name));
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
  const go = () => send(model, { [name]: input.value });
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

/** Arrow keys move the focus among the items of a group; the group is one stop of the Tab key. */
function roving(items) {
  items.forEach((item, index) => {
    item.setAttribute("tabindex", index === 0 ? "0" : "-1");
    item.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const next = items[(index + step + items.length) % items.length];
      items.forEach((other) => other.setAttribute("tabindex", other === next ? "0" : "-1"));
      next.focus();
    });
  });
}
