// Strokes of the pointer over the mask.

import { dragging } from "../shared/focus.js";

/** All cells between two, both included: a fast pointer skips none. */
function crossed(from, to) {
  const steps = Math.max(1, Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]));
  const between = (step) => from.map((each, axis) => Math.round(each + (step / steps) * (to[axis] - each)));
  return Array.from({ length: steps + 1 }, (_, step) => between(step));
}

/** Opens or hides what the pointer crosses: whichever the first cell was not; begin() is called before a stroke. */
export function strokes({ node }, isOpen, begin, paint) {
  let open = true, last = null; // the cell where the pointer was last
  const cellAt = (event) => { // by place, because the pointer is captured
    const box = node.rows[1].cells[1].getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / box.height), Math.floor((event.clientX - box.left) / box.width)];
  };
  const paintTo = (to) => {
    const cells = crossed(last, to);
    last = to;
    paint(open, (i, j) => cells.some(([row, column]) => row === i && column === j));
  };
  const down = (event) => {
    const { row, column } = event.target.dataset;
    if (row === undefined || event.button) return false;
    begin();
    open = !isOpen(row, column);
    last = [Number(row), Number(column)];
    event.target.focus();
    paintTo(last);
    return true;
  };
  dragging(node, { down, move: (event) => paintTo(cellAt(event)) });
  node.addEventListener("mousedown", (event) => { // selects no text, drags none away
    if (event.target.dataset.row) event.preventDefault();
  });
}
