// Where the focus is, and where keys and the pointer lead.

/** New children for a node; the focus stays on the data-key that had it, or goes to the next one that can have it. */
export function refill(node, ...children) {
  const held = node.contains(document.activeElement) && document.activeElement.dataset.key;
  node.replaceChildren(...children);
  if (!held) return;
  const keyed = [...node.querySelectorAll("[data-key]")];
  const place = Math.max(0, keyed.findIndex((each) => each.dataset.key === held));
  const found = [...keyed.slice(place), ...keyed.slice(0, place).reverse()].find((each) => !each.disabled);
  if (found) found.focus({ preventScroll: true });
}

/** Keeps an event from the page: what a key has done here it does nowhere else. */
export function take(event) {
  event.preventDefault();
  event.stopPropagation();
}

/** Takes an arrow key: 1 for right or down, -1 for left or up; 0 for other keys. */
export function arrowStep(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key] || 0;
  if (step) take(event);
  return step;
}

/** Gives the focus back to the notebook, whose keys work there: to what stands around a widget and can have it. */
export function leave(root) {
  const around = root.parentElement.closest("[tabindex]");
  if (around) around.focus({ preventScroll: true });
}

/** Enter ends what is done in a widget; Shift + Enter and the like are the notebook's, which hears them then. */
export function enterLeaves(root) {
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    take(event);
    leave(root);
    if (event.shiftKey || event.ctrlKey || event.altKey)
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", event));
  });
}

/** Makes the items one stop of the Tab key: the one that had the focus last. */
function oneStop(items) {
  const stop = (item) => items.forEach((other) => other.setAttribute("tabindex", other === item ? "0" : "-1"));
  items.forEach((item) => item.addEventListener("focus", () => stop(item)));
  stop(items[0]);
}

/** Arrow keys move the focus among the items of a group; the group is one stop of the Tab key. */
export function roving(items) {
  oneStop(items);
  items.forEach((item, index) => {
    item.addEventListener("keydown", (event) => {
      const step = arrowStep(event);
      if (step) items[(index + step + items.length) % items.length].focus();
    });
  });
}

/** As roving, in two dimensions: rows of items (null is a hole), one stop of the Tab key for all of them. */
export function rovingGrid(rows) {
  oneStop(rows.flat().filter(Boolean));
  rows.forEach((items, row) => items.forEach((item, column) => {
    if (!item) return;
    item.setAttribute("data-lm-suppress-shortcuts", "true");
    item.addEventListener("keydown", (event) => {
      const ways = { ArrowRight: [0, 1], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowUp: [-1, 0] };
      const [down, right] = ways[event.key] || [0, 0];
      if (!down && !right) return;
      take(event);
      const next = (rows[row + down] || [])[column + right];
      if (next) next.focus();
    });
  }));
}

/** Follows the pointer from where it is pressed to where it is let go; `down` says false to what it does not take. */
export function dragging(node, { down, move, up = () => {} }) {
  let held = false;
  node.addEventListener("pointerdown", (event) => {
    if (down(event) === false) return;
    held = true;
    node.setPointerCapture(event.pointerId);
  });
  node.addEventListener("pointermove", (event) => held && move(event));
  for (const end of ["pointerup", "pointercancel"])
    node.addEventListener(end, () => {
      if (held) up();
      held = false;
    });
}
