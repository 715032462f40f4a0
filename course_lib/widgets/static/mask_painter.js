const CHANGED = 0.005; // less is invisible in two decimals

/** A table of (rows, columns) cells; head(place) makes what stands in the corner (null), a column's or a row's head. */
function labelledTable(caption, names, head, cell) {
  const cells = names.queries.map((_, row) => names.keys.map((_, column) => el("td", {}, cell(row, column))));
  const heads = { corner: head("all", null), columns: names.keys.map((name, column) => head(name, { column })), rows: names.queries.map((name, row) => head(name, { row })) };
  const node = el("table", { class: "cw-matrix cw-mask" }, el("caption", {}, caption),
    el("tr", {}, el("th", {}, heads.corner), ...heads.columns.map((each) => el("th", { scope: "col" }, each))),
    ...cells.map((row, index) => el("tr", {}, el("th", { scope: "row" }, heads.rows[index]), ...row)));
  return { node, heads, cells: cells.map((row) => row.map((each) => each.firstChild)) };
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), names = model.get("names"), scores = model.get("scores"), presets = model.get("masks");
  // what course_lib computes in compute(), here for each frame of a stroke; a test proves them equal
  const weightsOf = (mask) => scores.map((row, query) => softmax(row, (key) => mask[query][key]));
  const unmasked = weightsOf(presets[Object.keys(presets)[0]]);
  let mask = model.get("mask"), weights = weightsOf(mask);
  let before = null; // mask and weights before the last stroke
  const told = el("div", { class: "cw-message", role: "status" });
  const details = el("div", { class: "cw-message", role: "status" }, "Point at a cell to see its score and its weight.");

  // --- strokes ---
  function begin() {
    before = { mask, weights };
  }

  /** Opens or hides the cells for which chosen(row, column). */
  function paint(open, chosen) {
    const painted = mask.map((row, i) => row.map((each, j) => (chosen(i, j) ? open : each)));
    if (String(painted) !== String(mask)) send(model, { mask: painted });
  }

  function toggleAll(chosen) { // a row, a column, or everything: opened if any of it is hidden
    begin();
    paint(mask.some((row, i) => row.some((each, j) => chosen(i, j) && !each)), chosen);
  }

  const painter = labelledTable("scores: click or drag to hide", names,
    (name, place) => {
      const chosen = (i, j) => !place || place.row === i || place.column === j;
      const what = !place ? "all cells" : place.row === undefined ? `key ${name}` : `query ${name}`;
      return el("button", { class: "cw-head", "aria-label": `open or hide ${what}`, onclick: () => toggleAll(chosen) }, name);
    },
    (row, column) => el("button", { class: "cw-cell", "data-row": row, "data-column": column,
      onclick: (event) => { // a key: strokes of the pointer are painted below
        if (event.detail) return;
        begin();
        paint(!mask[row][column], (i, j) => i === row && j === column);
      } }));
  const result = labelledTable("weights: softmax of each row", names, (name, place) => (place ? name : ""),
    (row, column) => el("span", { class: "cw-weight", role: "img", "data-row": row, "data-column": column }));
  rovingGrid([[painter.heads.corner, ...painter.heads.columns], ...painter.cells.map((row, index) => [painter.heads.rows[index], ...row])]);
  rovingGrid(result.cells);

  let stroke = null; // open or hide, and the cell where the pointer was last
  const cellAt = (event) => { // by place, because the pointer is captured
    const box = painter.node.rows[1].cells[1].getBoundingClientRect();
    return [Math.floor((event.clientY - box.top) / box.height), Math.floor((event.clientX - box.left) / box.width)];
  };
  painter.node.addEventListener("pointerdown", (event) => {
    const { row, column } = event.target.dataset;
    if (row === undefined || event.button) return;
    begin();
    stroke = { open: !mask[row][column], last: [Number(row), Number(column)] };
    painter.node.setPointerCapture(event.pointerId);
    event.target.focus();
    paint(stroke.open, (i, j) => i === Number(row) && j === Number(column));
  });
  painter.node.addEventListener("mousedown", (event) => event.target.dataset.row && event.preventDefault()); // selects no text, drags none away
  painter.node.addEventListener("pointermove", (event) => {
    if (!stroke) return;
    const [from, to] = [stroke.last, cellAt(event)], steps = Math.max(1, Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]));
    const crossed = Array.from({ length: steps + 1 }, (_, step) => from.map((each, axis) => Math.round(each + (step / steps) * (to[axis] - each)))); // a fast pointer skips none
    stroke.last = to;
    paint(stroke.open, (i, j) => crossed.some(([row, column]) => row === i && column === j));
  });
  for (const end of ["pointerup", "pointercancel"]) painter.node.addEventListener(end, () => (stroke = null));

  // --- words ---
  let pointed = null; // row and column
  function point(event) {
    const { row, column } = event.target.dataset;
    if (row !== undefined) explain((pointed = [row, column]));
  }

  function explain([row, column]) {
    const shown = !weights[row] ? "none: nothing is left" : mask[row][column] ? weights[row][column].toFixed(3) : "0, exactly";
    details.textContent = `“${names.queries[row]}” → “${names.keys[column]}”: score ${signed(scores[row][column])}` +
      `${mask[row][column] ? "" : ", hidden: −∞"}; weight ${shown}; without a mask ${unmasked[row][column].toFixed(3)}`;
  }

  /** What the last stroke did to the weights that stay open: in each row they grow or shrink by one factor. */
  function shared() {
    const changed = before ? mask.map((_, row) => row).filter((row) => String(mask[row]) !== String(before.mask[row])) : [];
    if (!changed.length) return "";
    const [row] = changed, key = mask[row].findIndex((open, column) => open && before.mask[row][column]);
    if (changed.length > 1 || key < 0 || !weights[row] || !before.weights[row]) return ` Rows that changed: ${changed.length}.`;
    return ` The other weights of “${names.queries[row]}” are multiplied by ${(weights[row][key] / before.weights[row][key]).toFixed(2)}; no other row moves.`;
  }

  function words() {
    const empty = names.queries.filter((_, row) => !weights[row]);
    if (empty.length) return `${empty.map((name) => `“${name}”`).join(", ")}: ${model.get("refusal")}.`;
    const all = mask.flat(), allowed = all.filter(Boolean).length;
    const name = Object.keys(presets).find((each) => String(presets[each]) === String(mask));
    return `${allowed} of ${all.length} looks are allowed${name ? ` (${name})` : ""}; ${all.length - allowed} weights are exactly 0.${shared()}`;
  }

  // --- the page ---
  const buttons = Object.keys(presets).map((name) => el("button", { onclick: () => { begin(); send(model, { mask: presets[name] }); } }, name));
  roving(buttons);
  function refresh() {
    mask = model.get("mask");
    weights = weightsOf(mask);
    mask.forEach((row, i) => row.forEach((open, j) => {
      const cell = painter.cells[i][j], weight = result.cells[i][j], number = weights[i] ? weights[i][j] : null;
      const old = before && before.weights[i] ? before.weights[i][j] : null;
      if (cell.getAttribute("aria-pressed") !== String(open)) {
        cell.textContent = open ? signed(scores[i][j]) : "−∞";
        cell.setAttribute("aria-pressed", String(open));
        cell.setAttribute("aria-label", `${names.queries[i]} to ${names.keys[j]}: ${open ? "may attend" : "hidden"}`);
      }
      const text = number === null ? "?" : number === 0 ? "0" : number < 0.005 ? "~0" : number.toFixed(2);
      if (weight.textContent !== text) weight.textContent = text;
      weight.setAttribute("aria-label", `${names.queries[i]} to ${names.keys[j]}: weight ${text}`);
      weight.dataset.weight = number === null ? "none" : number.toPrecision(7);
      weight.style.background = shade(0.6 * (number || 0));
      weight.classList.toggle("cw-zero", number === 0);
      weight.classList.toggle("cw-none", number === null);
      weight.classList.toggle("cw-moved", Boolean(before) && ((number === null) !== (old === null) || Math.abs(number - old) >= CHANGED));
    }));
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(String(presets[button.textContent]) === String(mask))));
    told.textContent = words();
    if (pointed) explain(pointed);
    told.classList.toggle("cw-error", weights.includes(null));
  }

  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Hide one key from one query: which weights become exactly 0, and who gets what it had? Then hide a whole row: can a softmax still share?"),
    el("div", { class: "cw-row" }, el("span", { class: "cw-muted" }, "mask:"), ...buttons),
    el("div", { class: "cw-row cw-stage", onmouseover: point, onfocusin: point }, painter.node, el("span", { class: "cw-then" }, "→"), result.node),
    told, details);
  listen(model, ["mask"], refresh);
}

export default { render };
