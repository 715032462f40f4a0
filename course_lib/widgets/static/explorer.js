const KINDS = ["encoder", "decoder", "cross"];
const KIND_WORDS = {
  encoder: "encoder: English looks at English",
  decoder: "decoder: German looks back",
  cross: "cross: German looks at English",
};
const ROW = 22; // pixels between two tokens
const CELL = 20;
const UNWRITTEN = "·";

/** Target tokens that are written so far: a number that the former sentence had may be on its way. */
const shownOf = (model) => Math.min(model.get("shown"), model.get("view").tgt.length);

/** Everything that is drawn of one head: names of rows and columns, how many rows are written, weight(row, column). */
function mapOf(model, kind, layer, head) {
  const view = model.get("view"), shown = shownOf(model);
  const first = (tokens, count) => tokens.map((token, index) => (index < count ? token : UNWRITTEN));
  const tgt = first(view.tgt, shown);
  const sizes = { encoder: [view.src, view.src], decoder: [tgt, first(view.read, shown + 1)], cross: [tgt, view.src] };
  const heads = model.get("heads");
  let start = 0;
  for (const name of KINDS) {
    const [queries, keys] = sizes[name].map((tokens) => tokens.length);
    if (name === kind) {
      start += (layer * heads[kind][0] + head) * queries * keys;
      break;
    }
    start += heads[name].length * heads[name][0] * queries * keys;
  }
  const [queries, keys] = sizes[kind];
  const all = numbers(model.get("weights"), Uint16Array);
  return { queries, keys, kind, rows: kind === "encoder" ? queries.length : shown, weight: (row, column) => all[start + row * keys.length + column] / 65535 };
}

/** Target tokens on the left, what they look at on the right, a line for each weight. */
function drawLines(map, focus) {
  const height = ROW * (Math.max(map.queries.length, map.keys.length) + 1.5);
  const place = (index) => ROW * (index + 1.6);
  const lines = svg("g");
  const queries = map.queries.map((token, row) =>
    svg("text", { x: 108, y: place(row), "text-anchor": "end", role: "img", ...(row < map.rows
      ? { class: "cw-token", "data-key": `query ${row}`, "aria-label": `${token}: ${strongest(map, row)}`, onmouseenter: () => focus.set(row, null), onfocus: () => focus.set(row, null) }
      : { class: "cw-token cw-muted", "aria-label": "not written yet" }) }, token));
  const keys = map.keys.map((token, column) =>
    svg("text", { x: 262, y: place(column), class: "cw-token", role: "img", "aria-label": `${token}, as key`, "data-key": `key ${column}`,
      onmouseenter: () => focus.set(null, column), onfocus: () => focus.set(null, column) }, token));
  roving(queries.slice(0, map.rows).concat(keys));
  const picture = svg("svg", { width: 370, height, "aria-label": "lines between tokens", role: "group" },
    svg("text", { x: 108, y: 12, "text-anchor": "end", class: "cw-muted" }, map.kind === "encoder" ? "looks" : "is predicted"),
    svg("text", { x: 262, y: 12, class: "cw-muted" }, map.kind === "decoder" ? "was read" : "is looked at"),
    lines, ...queries, ...keys);
  const update = () => {
    const drawn = [];
    for (let row = 0; row < map.rows; row++)
      for (let column = 0; column < map.keys.length; column++) {
        const weight = map.weight(row, column);
        const chosen = (focus.row === null || focus.row === row) && (focus.column === null || focus.column === column);
        if (weight < 0.02 || !chosen) continue;
        drawn.push(svg("line", { x1: 114, x2: 256, y1: place(row) - 4, y2: place(column) - 4, stroke: "var(--cw-accent)",
          "stroke-width": (1 + 5 * weight).toFixed(2), "stroke-opacity": (0.15 + 0.85 * weight).toFixed(3),
          "data-row": row, "data-column": column, "data-weight": weight.toFixed(4) }));
      }
    lines.replaceChildren(...drawn);
    queries.forEach((node, row) => node.classList.toggle("cw-strong", focus.row === row));
    keys.forEach((node, column) => node.classList.toggle("cw-strong", focus.column === column));
  };
  return { picture, update };
}

/** The same weights as a matrix; outlines are gold links. */
function drawMap(map, focus, { cell = CELL, labels = true, gold = null } = {}) {
  const [left, top] = labels ? [96, 84] : [2, 2];
  const width = left + cell * map.keys.length + 8;
  const height = top + cell * map.queries.length + 8;
  const cells = svg("g");
  for (let row = 0; row < map.rows; row++)
    for (let column = 0; column < map.keys.length; column++) {
      const weight = map.weight(row, column);
      cells.append(svg("rect", { x: left + cell * column, y: top + cell * row, width: cell, height: cell, fill: shade(weight),
        "data-row": row, "data-column": column, "data-weight": weight.toFixed(4) }));
    }
  const frame = svg("rect", { x: left, y: top, width: cell * map.keys.length, height: cell * map.queries.length, class: "cw-frame" });
  const bars = [svg("rect", { class: "cw-bar" }), svg("rect", { class: "cw-bar" })];
  const marks = (gold || []).filter(([, row]) => row < map.rows).map(([column, row]) =>
    svg("rect", { x: left + cell * column + 1.5, y: top + cell * row + 1.5, width: cell - 3, height: cell - 3, class: "cw-gold" }));
  const names = !labels ? [] : [
    ...map.queries.map((token, row) => svg("text", { x: left - 6, y: top + cell * (row + 0.7), "text-anchor": "end", class: row < map.rows ? "" : "cw-muted" }, token)),
    ...map.keys.map((token, column) => svg("text", { transform: `translate(${left + cell * (column + 0.7)},${top - 6}) rotate(-60)` }, token)),
  ];
  cells.addEventListener("mouseover", (event) => {
    const { row, column } = event.target.dataset;
    if (row !== undefined) focus.set(Number(row), Number(column));
  });
  const picture = svg("svg", { width, height, role: "img", "aria-label": "attention weights as a matrix" }, cells, frame, ...marks, ...bars, ...names);
  const update = () => {
    const spans = [
      focus.row === null ? null : [left, top + cell * focus.row, cell * map.keys.length, cell],
      focus.column === null ? null : [left + cell * focus.column, top, cell, cell * map.queries.length],
    ];
    bars.forEach((bar, index) => {
      const span = spans[index];
      bar.setAttribute("visibility", span ? "visible" : "hidden");
      if (span) ["x", "y", "width", "height"].forEach((name, number) => bar.setAttribute(name, span[number]));
    });
  };
  return { picture, update };
}

/** The largest weights of a row, in words. */
function strongest(map, row) {
  const order = map.keys.map((_, column) => column).sort((a, b) => map.weight(row, b) - map.weight(row, a));
  return order.slice(0, 3).map((column) => `${map.keys[column]} ${map.weight(row, column).toFixed(2)}`).join(", ");
}

function render({ model, el: root }) {
  const focus = { row: null, column: null, set: null };
  let updates = [];
  const refresh = onceAFrame(() => updates.forEach((update) => update()));
  focus.set = (row, column) => {
    Object.assign(focus, { row, column });
    refresh();
  };
  const message = el("div", { class: "cw-message", role: "status" });
  const details = el("div", { class: "cw-message", role: "status" });
  const stage = el("div", { class: "cw-row cw-stage", onmouseleave: () => focus.set(null, null) });
  const output = el("div", { class: "cw-row cw-output" });
  const rivals = el("div", { class: "cw-row cw-rivals" });
  const off = el("span", { class: "cw-control" });
  const list = el("datalist", { id: unique("cw-examples") }, ...model.get("examples").map((text) => el("option", { value: text })));
  const text = textbox(model, "text", { label: "English", button: "Translate" });
  text.querySelector("input").setAttribute("list", list.id);
  let place = null; // of the token whose rivals are shown

  const heads = () => model.get("heads")[model.get("kind")];
  const same = (a, b) => a.length === b.length && a.every((value, index) => value === b[index]);
  const silent = (kind, layer, head) => model.get("silent").some((each) => same(each, [kind, layer, head]));

  function drawStage() {
    const view = model.get("view");
    updates = [];
    if (!view.src) return;
    const [kind, layer, head] = ["kind", "layer", "head"].map((name) => model.get(name));
    if (layer >= heads().length || head >= heads()[layer]) return; // the rest of this change is on its way
    const gold = kind === "cross" ? view.gold : null;
    const parts = [];
    if (head >= 0) {
      const map = mapOf(model, kind, layer, head);
      for (const drawn of [drawLines(map, focus), drawMap(map, focus, { gold })]) {
        parts.push(drawn.picture);
        updates.push(drawn.update);
      }
      updates.push(() => describe(map));
    } else {
      for (let each = 0; each < heads()[layer]; each++) {
        const map = mapOf(model, kind, layer, each);
        const cell = Math.max(4, Math.min(14, Math.floor(190 / map.keys.length)));
        const drawn = drawMap(map, focus, { cell, labels: false });
        const rate = gold && view.rates ? `, error rate ${(100 * view.rates[layer][each]).toFixed(0)} %` : "";
        const words = `head ${each}${silent(kind, layer, each) ? " (off)" : ""}${rate}`;
        parts.push(el("button", { class: "cw-small", "data-key": each, title: `show head ${each} alone`, onclick: () => showAlone(each) }, drawn.picture, words));
        updates.push(drawn.update);
      }
      updates.push(() => describe(null));
    }
    refill(stage, ...parts);
    drawOff(kind, layer, head);
    refresh();
  }

  function showAlone(head) { // its button goes: the focus moves on to the list of heads
    send(model, { head });
    headChoice.querySelector("select").focus();
  }

  function describe(map) {
    const view = model.get("view");
    const rate = map && map.kind === "cross" && view.rates ? ` · alignment error rate of this head: ${(100 * view.rates[model.get("layer")][model.get("head")]).toFixed(0)} %` : "";
    if (!map) details.textContent = "Click a head to see it alone.";
    else if (focus.row !== null && focus.column !== null)
      details.textContent = `${map.queries[focus.row]} → ${map.keys[focus.column]}: ${map.weight(focus.row, focus.column).toFixed(3)}${rate}`;
    else if (focus.row !== null) details.textContent = `${map.queries[focus.row]} → ${strongest(map, focus.row)}${rate}`;
    else if (focus.column !== null) details.textContent = `${map.keys[focus.column]} is looked at${rate}`;
    else details.textContent = `Point at a token, or walk through them with Tab and the arrow keys${rate}`;
  }

  function drawOff(kind, layer, head) {
    const chosen = head < 0 ? [...Array(heads()[layer]).keys()] : [head];
    const box = el("input", { type: "checkbox", "data-key": "off" });
    box.checked = chosen.every((each) => silent(kind, layer, each));
    box.addEventListener("change", () => {
      const others = model.get("silent").filter((each) => !chosen.some((number) => same(each, [kind, layer, number])));
      send(model, { silent: box.checked ? others.concat(chosen.map((number) => [kind, layer, number])) : others });
    });
    const words = head < 0 ? "switch off all of this layer" : "switch this head off";
    const count = model.get("silent").length;
    refill(off, labelled(words, box), el("button", { "data-key": "on", disabled: !count, onclick: () => send(model, { silent: [] }) }, `all on again${count ? ` (${count} off)` : ""}`));
  }

  function choosePiece(index) {
    place = index;
    drawOutput();
    if (model.get("kind") !== "encoder") focus.set(index, null); // whose rows are English
  }

  function drawOutput() {
    const view = model.get("view");
    if (!view.src) return;
    const shown = shownOf(model), forced = model.get("forced").length;
    const step = (by) => send(model, { shown: Math.max(1, Math.min(view.tgt.length, shown + by)) });
    const tokens = view.tgt.map((token, index) =>
      (index < shown
        ? el("button", { class: "cw-piece", "data-key": index, "aria-pressed": String(place === index), title: `probability ${view.probabilities[index].toFixed(3)}`,
          onclick: () => choosePiece(index) }, token, index < forced ? " ✎" : "")
        : el("button", { class: "cw-piece", disabled: true, "aria-label": "not written yet" }, UNWRITTEN)));
    roving(tokens.slice(0, shown));
    refill(output,
      el("span", { class: "cw-muted" }, "German"), ...tokens,
      el("span", { class: "cw-control" },
        el("button", { "data-key": "back", "aria-label": "one token back", disabled: shown <= 1, onclick: () => step(-1) }, "◀"),
        el("button", { "data-key": "on", "aria-label": "one token on", disabled: shown >= view.tgt.length, onclick: () => step(1) }, "▶"),
        el("button", { "data-key": "free", disabled: !forced, onclick: () => { place = null; send(model, { forced: [] }); } }, "as the model likes")));
    const candidates = place === null || place >= shown ? null : view.candidates[place];
    refill(rivals, ...(!candidates ? [el("span", { class: "cw-muted" }, "Click a German token to see what else might have stood there.")] : [
      el("span", { class: "cw-muted" }, `instead of ${view.tgt[place]}:`),
      ...candidates.map(([id, token, probability]) =>
        el("button", { "data-key": id, disabled: token === "</s>" || id === view.ids[place], style: `background: linear-gradient(to right, ${shade(0.35)} ${(100 * probability).toFixed(1)}%, transparent 0)`,
          onclick: () => send(model, { forced: view.ids.slice(0, place).concat([id]) }) }, `${token} ${probability.toFixed(3)}`)),
    ]));
  }

  function drawMessage() {
    const view = model.get("view");
    const problem = model.get("message");
    message.classList.toggle("cw-error", Boolean(problem));
    if (problem) message.textContent = problem;
    else message.textContent = view.before && view.before !== view.text ? `${view.text} (before: ${view.before})` : view.text || "";
  }

  const headChoice = choice(model, "head", { label: "head", options: () => [[-1, "all"], ...Array.from({ length: heads()[0] }, (_, number) => [number, String(number)])], depends: ["kind", "layer"] });
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Which head finds the word that is being translated? Force another German token: what follows? Switch heads off: which ones are missed?"),
    el("div", { class: "cw-row" }, text, list),
    el("div", { class: "cw-row" },
      choice(model, "kind", { label: "attention", options: KINDS.map((kind) => [kind, KIND_WORDS[kind]]) }),
      choice(model, "layer", { label: "layer", options: () => heads().map((_, number) => [number, String(number)]), depends: ["kind"] }),
      headChoice, off),
    message, output, rivals, stage, details);
  listen(model, ["view", "shown", "forced"], drawOutput);
  listen(model, ["view", "message"], drawMessage);
  listen(model, ["kind", "layer", "head", "view", "weights", "shown", "silent"], onceAFrame(() => { focus.row = focus.column = null; drawStage(); }));
}

export default { render };
