const STEP = 0.5; // of a number, for a bit of dragging or Page Up
const PIXELS = 8; // of dragging for one step
const MOVED = 0.005; // less is invisible in two decimals
const INPUTS = { query: ["Q", "asks for", "queries", "kinds"], key: ["K", "is found by", "keys", "kinds"], value: ["V", "hands over", "keys", "facts"] };
const RESULTS = { scores: ["queries", "keys"], weights: ["queries", "keys"], context: ["queries", "facts"] };

const brief = (number) => String(Number(number.toFixed(2))).replace("-", "−");
const digits = (number) => signed(number, Math.abs(number) >= 1000 ? 0 : Math.abs(number) >= 100 ? 1 : 2);
const dot = (a, b) => a.reduce((sum, each, index) => sum + each * b[index], 0);

/** What course_lib computes in compute(), here for each frame of a drag; a test proves them equal. */
function attend({ query, key, value, scaled, temperature }) {
  const divisor = temperature * (scaled ? Math.sqrt(query[0].length) : 1);
  const scores = query.map((q) => key.map((k) => dot(q, k) / divisor));
  const weights = scores.map((row) => softmax(row));
  const context = weights.map((row) => value[0].map((_, fact) => dot(row, value.map((v) => v[fact]))));
  return { scores, weights, context, divisor };
}

/** A table with names of rows and columns; cell(row, column) makes what stands in it. */
function table(caption, rows, columns, cell) {
  const cells = rows.map((_, row) => columns.map((_, column) => cell(row, column)));
  const node = el("table", { class: "cw-matrix", role: "grid" }, el("caption", {}, caption),
    el("tr", {}, el("th"), ...columns.map((name) => el("th", { scope: "col" }, name))),
    ...rows.map((name, row) => el("tr", {}, el("th", { scope: "row" }, name), ...cells[row])));
  return { node, cells };
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels);
  const names = model.get("names"), { number: largest, coolest, hottest } = model.get("limits");
  const now = () => Object.fromEntries([...Object.keys(INPUTS), "scaled", "temperature"].map((name) => [name, model.get(name)]));
  let state = now(), results = attend(state);
  let change = null; // the last number that was touched, and the state before it was
  let place = null; // of the cell of Q, K or V that is being changed
  let problem = "";
  const told = el("div", { class: "cw-message", role: "status" });
  const sum = el("div", { class: "cw-message", role: "status" });

  // --- Q, K and V: typed, dragged, or stepped ---
  function edit(name, row, column, number) {
    problem = "";
    place = [name, row, column];
    send(model, { [name]: model.get(name).map((each, i) => (i === row ? each.map((old, j) => (j === column ? number : old)) : each)) });
    refresh();
  }

  function typed(name, row, column, text) {
    const plain = text.trim().replace("−", "-").replace(",", ".");
    const number = Number(plain);
    if (/^[-+]?(\d+\.?\d*|\.\d+)$/.test(plain) && Math.abs(number) <= largest) return edit(name, row, column, number);
    problem = `“${text}” is no number from −${largest} to ${largest}: ${brief(model.get(name)[row][column])} stays.`;
    refresh();
  }

  function inputCell(name, row, column) {
    const [letter, , rows, columns] = INPUTS[name];
    const input = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", maxlength: 40, "data-name": name,
      "aria-label": `${letter}, ${names[rows][row]}, ${names[columns][column]}` });
    const value = () => model.get(name)[row][column];
    const step = (start, by) => edit(name, row, column, Math.max(-largest, Math.min(largest, start + by * STEP)));
    input.addEventListener("change", () => typed(name, row, column, input.value));
    input.addEventListener("focus", () => input.select());
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") input.value = brief(value());
      if (event.key === "PageUp" || event.key === "PageDown") {
        event.preventDefault();
        step(value(), event.key === "PageUp" ? 1 : -1);
      }
      if (event.key !== "Tab") event.stopPropagation(); // the notebook's own keys stay away
    });
    let drag = null;
    input.addEventListener("mousedown", (event) => event.preventDefault()); // no selection of text while dragging
    input.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, start: value(), moved: 0 };
      input.setPointerCapture(event.pointerId);
    });
    input.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const steps = Math.round((event.clientX - drag.x - (event.clientY - drag.y)) / PIXELS);
      if (steps === drag.moved) return;
      drag.moved = steps;
      step(drag.start, steps);
    });
    for (const end of ["pointerup", "pointercancel"]) input.addEventListener(end, () => {
      drag = null;
      input.focus();
    });
    return el("td", {}, input);
  }

  // --- scores, weights and context: pointed at, or walked through ---
  function resultCell(name, row, column) {
    const say = () => {
      pointed = [name, row, column];
      explain();
    };
    return el("td", { class: "cw-result", onmouseenter: say, onfocus: say });
  }

  let pointed = null;
  function explain() {
    sum.textContent = pointed ? sumOf(...pointed) : "Point at a score, a weight or a number of the context to see its sum.";
  }

  function sumOf(name, row, column) {
    const { query, key, value } = state, { scores, weights, context, divisor } = results;
    const products = (a, b) => a.map((each, index) => `${brief(each)}·${brief(b[index])}`).join(" + ");
    const who = `“${names.queries[row]}”`;
    if (name === "scores") return `score of ${who} with “${names.keys[column]}”: (${products(query[row], key[column])}) / ${digits(divisor)} = ${digits(scores[row][column])}`;
    if (name === "weights") {
      const each = scores[row].map((score) => `e^${digits(score)}`);
      return `weight of ${who} on “${names.keys[column]}”: ${each[column]} / (${each.join(" + ")}) = ${digits(weights[row][column])}`;
    }
    return `context of ${who}, ${names.facts[column]}: ${products(weights[row], value.map((v) => v[column]))} = ${digits(context[row][column])}`;
  }

  // --- the page ---
  const inputs = Object.fromEntries(Object.entries(INPUTS).map(([name, [letter, role, rows, columns]]) =>
    [name, table(`${letter}: ${role}`, names[rows], names[columns], (row, column) => inputCell(name, row, column))]));
  const outputs = Object.fromEntries(Object.entries(RESULTS).map(([name, [rows, columns]]) =>
    [name, table(name, names[rows], names[columns], (row, column) => resultCell(name, row, column))]));
  for (const { cells } of Object.values(inputs)) rovingGrid(cells.map((row) => row.map((cell) => cell.firstChild)));
  for (const { cells } of Object.values(outputs)) rovingGrid(cells);
  const rootK = `√${names.kinds.length}`;

  /** In which rows a result has moved since the last touched number, in words. */
  function movedRows(name) {
    const rows = names.queries.filter((_, row) => results[name][row].some((each, column) => Math.abs(each - change.results[name][row][column]) >= MOVED));
    if (!rows.length) return `no ${name}`;
    return `${name} of ${rows.length === names.queries.length ? "all" : rows.map((row) => `“${row}”`).join(", ")}`;
  }

  function words() {
    if (problem) return problem;
    if (!change) return "Drag a number of Q, K or V, or type another one; Page Up and Page Down work too.";
    const [name, row, column] = change.place || [change.trait];
    const [letter, , rows, columns] = INPUTS[name] || [];
    const value = (of) => (row === undefined ? of[name] : of[name][row][column]);
    const said = (each) => (typeof each === "boolean" ? (each ? "on" : "off") : brief(each));
    const what = letter ? `${letter}, “${names[rows][row]}”, ${names[columns][column]}` : name === "scaled" ? "scale" : name;
    return `${what}: ${said(value(change.state))} → ${said(value(state))} moves ${Object.keys(RESULTS).map(movedRows).join("; ")}.`;
  }

  function refresh() {
    const largestOf = (rows) => Math.max(1, ...rows.flat().map(Math.abs));
    const place = change && change.place && String(change.place);
    for (const [name, { cells }] of Object.entries(inputs))
      cells.forEach((row, i) => row.forEach(({ firstChild: input }, j) => {
        const number = state[name][i][j], text = brief(number);
        if (input.value !== text) input.value = text;
        input.style.background = tint((0.6 * number) / largestOf(state[name]));
        input.classList.toggle("cw-moved", place === String([name, i, j]));
      }));
    for (const [name, { cells }] of Object.entries(outputs))
      cells.forEach((row, i) => row.forEach((cell, j) => {
        const number = results[name][i][j], text = digits(number);
        if (cell.textContent !== text) cell.textContent = text;
        cell.dataset.value = number.toPrecision(7);
        cell.style.background = name === "weights" ? shade(0.6 * number) : tint((0.6 * number) / largestOf(results[name]));
        cell.classList.toggle("cw-moved", Boolean(change && Math.abs(number - change.results[name][i][j]) >= MOVED));
      }));
    const { scaled, temperature } = state;
    const divisor = [...(scaled ? [rootK] : []), ...(temperature === 1 ? [] : [brief(temperature)])].join(" · ");
    outputs.scores.node.caption.textContent = `scores: QKᵀ${divisor && " / "}${divisor.includes("·") ? `(${divisor})` : divisor}`;
    told.textContent = words();
    told.classList.toggle("cw-error", Boolean(problem));
    explain();
  }

  for (const trait of Object.keys(state))
    model.on(`change:${trait}`, () => {
      const at = place && place[0] === trait ? place : null;
      place = null;
      const same = change && change.trait === trait && String(change.place) === String(at);
      if (!same) change = { trait, place: at, state, results };
      state = now();
      results = attend(state);
      if (!same && INPUTS[trait] && !at) change = null; // changed in Python, not here
      refresh();
    });

  const reset = el("button", { onclick: () => { send(model, model.get("first")); change = null; problem = ""; refresh(); } }, "Reset");
  outputs.weights.node.caption.textContent = "weights: softmax of each row";
  outputs.context.node.caption.textContent = "context: weights · V";
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Change a number of Q: whose weights move? A number of K? Of V? Then switch the scale off: which keys gain?"),
    el("div", { class: "cw-row cw-stage" }, ...Object.values(inputs).map(({ node }) => node)),
    el("div", { class: "cw-row" }, toggle(model, "scaled", { label: `scale: divide scores by ${rootK}` }),
      slider(model, "temperature", { label: "temperature", min: coolest, max: hottest, step: 0.1, format: brief }), reset),
    told,
    el("div", { class: "cw-row cw-stage" }, outputs.scores.node, el("span", { class: "cw-then" }, "→"), outputs.weights.node,
      el("span", { class: "cw-then" }, "→"), outputs.context.node),
    sum);
  refresh();
}

export default { render };
