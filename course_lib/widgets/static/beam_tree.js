const ROW = 36; // pixels from box to box
const BOX = 30;
const GAP = 22; // between two columns, for the edges
const HEAD = 20; // for the steps' numbers
const FATE_WORDS = {
  kept: "kept: the search goes on with it",
  dropped: "dropped: others were more probable",
  finished: "finished",
  unfinished: "unfinished: the search ended before it did",
};

/** What the kernel found for the present beam and length penalty. */
function searchOf(model) {
  const { nodes, outputs, scores, best } = model.get("beams")[model.get("beam_size") - 1];
  const penalty = model.get("length_penalty");
  const place = model.get("penalties").findIndex((each) => Math.abs(each - penalty) < 1e-6);
  return {
    nodes: nodes.map(([token, step, parent, logProb, total, fate]) => ({ token, step, parent, logProb, total, fate })),
    outputs: new Map(outputs),
    scores: new Map(outputs.map(([index], number) => [index, scores[place][number]])),
    best: best[place],
    unpenalized: best[0],
  };
}

/** Indices of the nodes from the root to this one. */
function pathTo(nodes, index) {
  const path = [];
  for (let each = index; each !== null; each = nodes[each].parent) path.unshift(each);
  return path;
}

/** The drawn nodes of each step from top to bottom, in the order of their parents: no two edges cross. */
function columnsOf(nodes, shown) {
  const columns = [];
  nodes.forEach((node, index) => shown(node) && (columns[node.step] ||= []).push(index));
  for (let step = 1; step < columns.length; step++) {
    const above = (index) => columns[step - 1].indexOf(nodes[index].parent);
    columns[step].sort((a, b) => above(a) - above(b) || a - b);
  }
  return columns;
}

/** Left edge, top and width of each box, and the size of all. */
function placesOf(nodes, columns) {
  const tallest = Math.max(...columns.map((column) => column.length));
  const places = [];
  let left = 1;
  for (const column of columns) {
    const letters = Math.max(...column.map((index) => Math.max(lettersOf(nodes[index].token), signed(nodes[index].total).length)));
    const width = 14 + 7.5 * letters;
    column.forEach((index, row) => (places[index] = { left, top: HEAD + ROW * (row + (tallest - column.length) / 2), width }));
    left += width + GAP;
  }
  return { places, width: left - GAP + 1, height: HEAD + ROW * tallest };
}

function drawTree(nodes, withDropped, focus) {
  const columns = columnsOf(nodes, (node) => node.fate !== "dropped" || withDropped);
  const { places, width, height } = placesOf(nodes, columns);
  const middle = (place) => place.top + BOX / 2;
  const boxes = [], edges = [];
  columns.flat().forEach((index) => {
    const node = nodes[index], { left, top, width } = places[index];
    boxes[index] = svg("g", { "data-node": index, tabindex: index ? -1 : 0, role: "img",
      onmouseenter: () => focus.set(index), onfocus: () => focus.set(index) },
      svg("rect", { x: left, y: top, width, height: BOX, rx: 4 }),
      svg("text", { x: left + width / 2, y: top + 13, "text-anchor": "middle" }, node.token),
      svg("text", { x: left + width / 2, y: top + 26, "text-anchor": "middle", class: "cw-total" }, signed(node.total)));
    if (node.parent === null) return;
    const from = places[node.parent];
    edges[index] = svg("line", { "data-edge": index, x1: from.left + from.width, y1: middle(from), x2: left, y2: middle(places[index]) });
  });
  // arrow keys: left to the parent, right to the best child, up and down within the step
  const go = (event) => {
    const index = Number(event.target.dataset.node), node = nodes[index], column = columns[node.step];
    const beside = (by) => column[column.indexOf(index) + by];
    const to = { ArrowLeft: node.parent, ArrowUp: beside(-1), ArrowDown: beside(1),
      ArrowRight: (columns[node.step + 1] || []).find((each) => nodes[each].parent === index) }[event.key];
    if (event.key.startsWith("Arrow")) [event.preventDefault(), event.stopPropagation()];
    if (to === undefined || to === null) return;
    boxes.forEach((box, each) => box.setAttribute("tabindex", each === to ? "0" : "-1"));
    boxes[to].focus();
  };
  const heads = columns.slice(1).map((column, step) =>
    svg("text", { x: places[column[0]].left + places[column[0]].width / 2, y: 12, "text-anchor": "middle", class: "cw-muted" }, `step ${step + 1}`));
  const picture = svg("svg", { width, height, role: "group", "aria-label": "tree of the beam search", onkeydown: go },
    ...heads, ...edges.filter(Boolean), ...boxes.filter(Boolean));
  const parts = [...boxes.entries(), ...edges.entries()].filter(([, part]) => part);
  const crown = (best) => {
    const winner = new Set(pathTo(nodes, best));
    for (const [index, part] of parts) part.setAttribute("class", `cw-node cw-${winner.has(index) ? "winner" : nodes[index].fate}`);
    boxes.forEach((box, index) => box.setAttribute("aria-label", `${nodes[index].token}, step ${nodes[index].step}, total ${signed(nodes[index].total)}, ` +
      (winner.has(index) ? "on the way to the best output" : nodes[index].fate)));
  };
  const point = () => {
    const path = new Set(focus.node === null ? [] : pathTo(nodes, focus.node));
    for (const [index, part] of parts) part.classList.toggle("cw-path", path.has(index));
  };
  return { picture, crown, point };
}

/** What a node costs, in words. */
function describe({ nodes, scores }, penalty, index) {
  const node = nodes[index], level = nodes.filter((each) => each.step === node.step);
  if (node.parent === null) return "<s>: where each output begins, log-probability 0";
  const rank = 1 + level.filter((each) => each.total > node.total).length;
  const end = scores.has(index) ? `score ${signed(scores.get(index))} at α ${penalty.toFixed(2)}` : "no score: the penalty ranks outputs that have ended";
  const tokens = pathTo(nodes, index).slice(1).map((each) => nodes[each].token);
  const words = tokens.length > 6 ? `… ${tokens.slice(-6).join(" ")}` : tokens.join(" ");
  return `${words} · log-probability of ${node.token} ${signed(node.logProb)} (probability ${Math.exp(node.logProb).toFixed(2)}) · ` +
    `total ${signed(node.total)}, rank ${rank} of step ${node.step} · ${FATE_WORDS[node.fate]} · ${end}`;
}

/** The outputs under the present penalty, best first, and where each stood without one. */
function drawRanking({ nodes, outputs, scores, best, unpenalized }, focus) {
  const rows = best.map((index, place) => {
    const before = unpenalized.indexOf(index) + 1;
    const moved = before === place + 1 ? "" : before ? `was ${before}` : "was not among the best";
    return el("tr", { "data-node": index, class: place ? "" : "cw-first", onmouseenter: () => focus.set(index), onfocus: () => focus.set(index) },
      ...[place + 1, outputs.get(index) || "(empty)", nodes[index].step, signed(nodes[index].total), signed(scores.get(index)), moved].map((words) => el("td", {}, String(words))));
  });
  roving(rows);
  const heads = ["rank", "output", "tokens", "log-probability", "score", "at α = 0"];
  return el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((words) => el("th", {}, words)))), el("tbody", {}, ...rows));
}

function looks() {
  const kinds = { winner: "best output", kept: "kept", finished: "finished", unfinished: "unfinished", dropped: "dropped" };
  return el("span", { class: "cw-row cw-muted" }, ...Object.entries(kinds).map(([kind, words]) =>
    el("span", { class: "cw-control" }, svg("svg", { width: 26, height: 16 }, svg("g", { class: `cw-node cw-${kind}` }, svg("rect", { x: 2, y: 2, width: 22, height: 12, rx: 3 }))), words)));
}

function render({ model: kernel, el: root }) {
  const model = unhurried(kernel); // the kernel has nothing to do for a slider
  const focus = { node: null, set: null };
  let search = null, tree = null;
  const details = el("div", { class: "cw-message cw-details", role: "status" });
  const message = el("div", { class: "cw-message cw-error", role: "status" });
  const stage = el("div", { class: "cw-scroll", onmouseleave: () => focus.set(null) });
  const ranking = el("div", { class: "cw-ends" });
  focus.set = (index) => {
    focus.node = index;
    tree.point();
    details.textContent = index === null ? "Point at a box, or walk through the tree with Tab and the arrow keys." : describe(search, model.get("length_penalty"), index);
  };
  const rank = () => { // the tree stays, its winner may change
    search = searchOf(model);
    tree.crown(search.best[0]);
    ranking.replaceChildren(drawRanking(search, focus));
    focus.set(null);
  };
  const draw = () => {
    tree = drawTree(searchOf(model).nodes, model.get("dropped"), focus);
    stage.replaceChildren(tree.picture);
    rank();
  };
  root.classList.add("cw", "cw-beam");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "From which beam size on does the search find something more probable than greedy search, which is beam 1? At which step would a narrower beam have dropped it? Does a length penalty α choose another output?"),
    el("div", { class: "cw-row" }, textbox(model, "text", { label: "English", button: "Search" })),
    el("div", { class: "cw-row" },
      slider(model, "beam_size", { label: "beam size", min: 1, max: 6 }),
      slider(model, "length_penalty", { label: "length penalty α", min: 0, max: 3, step: 0.05, format: (value) => value.toFixed(2) }),
      toggle(model, "dropped", { label: "show what was dropped" })),
    message, stage, looks(), details, ranking);
  listen(kernel, "message", () => (message.textContent = kernel.get("message")));
  listen(model, ["beams", "beam_size", "dropped"], draw);
  listen(model, "length_penalty", rank);
}

export default { render };
