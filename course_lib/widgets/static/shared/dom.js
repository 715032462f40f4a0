// Nodes of a page, and the parts that each widget is made of.

/** An HTML element with attributes (a function is a listener: onclick → click) and children. */
export function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise; a picture can be shrunk: with a width and a height it has a viewBox. */
export function svg(tag, attributes = {}, ...children) {
  const box = tag === "svg" ? { viewBox: `0 0 ${attributes.width} ${attributes.height}` } : {};
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), { ...box, ...attributes }, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children); // text stays text: it is never parsed as HTML
  return node;
}

/** An id that no other node of the page has: each widget, and each view of one, makes its own. */
export function unique(prefix) {
  return `${prefix}-${Math.random().toString(36).slice(2)}`;
}

/** Parts side by side, as far as there is room. */
export function row(...children) {
  return el("div", { class: "cw-row" }, ...children);
}

/** Parts that no line break parts. */
export function together(...children) {
  return el("span", { class: "cw-control" }, ...children);
}

/** Words in the background. */
export function muted(words) {
  return el("span", { class: "cw-muted" }, words);
}

/** A line of words that is told when it changes. */
export function status(looks = "", ...children) {
  return el("div", { class: `cw-message ${looks}`.trim(), role: "status" }, ...children);
}

/** Fills a widget: its question, then its parts. */
export function fill(root, question, ...parts) {
  root.classList.add("cw");
  root.replaceChildren(el("p", { class: "cw-question" }, question), ...parts);
}

/** The head of an arrow, for marker-end: url(#id). */
export function arrowHead(id, size, looks) {
  const shape = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: size, markerHeight: size, orient: "auto" };
  return svg("defs", {}, svg("marker", { id, ...shape }, svg("path", { d: "M0 0L8 4L0 8z", class: looks })));
}

/** A table of rows of cells under their heads. */
export function listing(heads, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((words) => el("th", {}, words)))),
    el("tbody", {}, ...rows));
}
