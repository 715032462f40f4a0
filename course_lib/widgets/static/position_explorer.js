const TABLE = { left: 62, width: 300, top: 20, height: 300, right: 72 }; // of the drawing, in pixels
const CHART = { left: 28, width: 334, top: 24, height: 140 };
const CLOCKS = 8, RADIUS = 18;
const HANDS = [["first", 1], ["first", 0], ["second", 1], ["second", 0]]; // 1: moved on by the offset

const wavelength = (pair, d_model, base) => 2 * Math.PI * base ** ((2 * pair) / d_model);

const known = { table: "", rows: [] };

/** What course_lib's sinusoidal has in a row, here for each frame of a drag; a test proves them equal. */
function encoding(position, { d_model, base }) {
  const table = `${d_model} ${base}`;
  if (known.table !== table) Object.assign(known, { table, rows: [] });
  return known.rows[position] ||= Array.from({ length: d_model }, (_, dimension) => {
    const angle = position / base ** ((dimension - (dimension % 2)) / d_model);
    return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

const product = (a, b) => a.reduce((sum, each, index) => sum + each * b[index], 0);

/** Red, green and blue of colors, which the page's theme decides. */
function channels(root, ...colors) {
  const probe = el("span", {});
  root.append(probe);
  const found = colors.map((color) => {
    probe.style.color = color;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  });
  probe.remove();
  return found;
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), limits = model.get("limits");
  const names = ["length", "d_model", "base", "first", "second", "offset"];
  const state = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const told = el("div", { class: "cw-message", role: "status" });
  const details = el("div", { class: "cw-message", role: "status" }, "Point at the table; drag its marks, or along the curve.");

  // --- the table ---
  const canvas = el("canvas", { class: "cw-pixels", style: `left: ${TABLE.left}px; top: ${TABLE.top}px; width: ${TABLE.width}px; height: ${TABLE.height}px` });
  const marks = svg("g"), axes = svg("g");
  const overlay = svg("svg", { width: TABLE.left + TABLE.width + TABLE.right, height: TABLE.top + TABLE.height + 36, class: "cw-drags", role: "img" }, axes, marks);
  const below = (position, { length }) => TABLE.top + ((position + 0.5) / length) * TABLE.height;

  let colors = null; // of the page's theme, once the widget stands on a page
  let drawnTable = ""; // what is on the canvas already
  function drawTable(now) {
    const wanted = JSON.stringify([now.length, now.d_model, now.base, colors]);
    if (!colors || wanted === drawnTable) return;
    drawnTable = wanted;
    const [page, accent, second] = colors;
    const picture = new ImageData(now.d_model, now.length);
    let place = 0;
    for (let position = 0; position < now.length; position++)
      for (const value of encoding(position, now)) {
        const color = value < 0 ? accent : second;
        for (let index = 0; index < 3; index++) picture.data[place++] = page[index] + Math.abs(value) * (color[index] - page[index]);
        picture.data[place++] = 255;
      }
    Object.assign(canvas, { width: now.d_model, height: now.length });
    canvas.getContext("2d").putImageData(picture, 0, 0);
    const last = now.d_model / 2 - 1;
    const words = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor, class: "cw-muted" }, text);
    const right = TABLE.left + TABLE.width, bottom = TABLE.top + TABLE.height;
    axes.replaceChildren(
      svg("rect", { x: TABLE.left, y: TABLE.top, width: TABLE.width, height: TABLE.height, class: "cw-frame" }),
      words(TABLE.left, 14, "dimension 0", "start"), words(right, 14, String(now.d_model - 1), "end"),
      words(TABLE.left, bottom + 15, `once around in ${grouped(wavelength(0, now.d_model, now.base))} words`, "start"),
      words(right, bottom + 15, last ? `in ${grouped(wavelength(last, now.d_model, now.base))}` : "", "end"),
      words(TABLE.left, bottom + 31, "+1 is orange, −1 is blue, 0 is the page", "start"));
    overlay.setAttribute("aria-label", `table of ${now.length} positions and ${now.d_model} dimensions`);
  }

  function drawMarks(now) {
    marks.replaceChildren(...["first", "second"].flatMap((name, side) => [0, now.offset].map((on, later) => {
      const position = now[name] + on;
      if ((later && !on) || position >= now.length) return "";
      const y = below(position, now);
      const [x, anchor] = side ? [TABLE.left + TABLE.width + 4, "start"] : [TABLE.left - 4, "end"];
      return svg("g", { class: side ? "cw-mark cw-mark-second" : "cw-mark", "data-position": position },
        svg("line", { x1: TABLE.left, x2: TABLE.left + TABLE.width, y1: y, y2: y, "stroke-dasharray": later ? "4 3" : null }),
        svg("text", { x, y: y + 4, "text-anchor": anchor }, !later ? `${name} ${position}` : (on / now.length) * TABLE.height < 12 ? "" : `+${on}`));
    })));
  }

  const at = (event) => { // position and dimension under the pointer
    const box = canvas.getBoundingClientRect(), { length, d_model } = state();
    const share = (place, size, count) => Math.max(0, Math.min(count - 1, Math.floor((place / size) * count)));
    return [share(event.clientY - box.top, box.height, length), share(event.clientX - box.left, box.width, d_model)];
  };
  let held = null; // the mark that is dragged
  overlay.addEventListener("pointerdown", (event) => {
    const [position] = at(event), { first, second } = state();
    held = Math.abs(position - first) <= Math.abs(position - second) ? "first" : "second";
    overlay.setPointerCapture(event.pointerId);
    send(model, { [held]: position });
  });
  overlay.addEventListener("pointermove", (event) => {
    const [position, dimension] = at(event), now = state(), pair = Math.floor(dimension / 2);
    if (held && position !== now[held]) send(model, { [held]: position });
    const value = encoding(position, now)[dimension];
    details.textContent = `position ${position}, dimension ${dimension}: ${dimension % 2 ? "cosine" : "sine"} of pair ${pair}, ` +
      `which comes round in ${grouped(wavelength(pair, now.d_model, now.base))} words: ${signed(value, 3)}`;
  });
  for (const end of ["pointerup", "pointercancel"]) overlay.addEventListener(end, () => (held = null));

  // --- dot products ---
  const curve = svg("polyline", { class: "cw-curve" }), points = svg("g"), ends = svg("g");
  const chart = svg("svg", { width: CHART.left + CHART.width + 10, height: CHART.top + CHART.height + 34, class: "cw-drags", role: "img", "aria-label": "dot product with the first position" },
    ...[-1, 0, 1].flatMap((value) => {
      const y = CHART.top + ((1 - value) / 2) * CHART.height;
      return [svg("line", { x1: CHART.left, x2: CHART.left + CHART.width, y1: y, y2: y, class: "cw-frame" }),
        svg("text", { x: CHART.left - 4, y: y + 4, "text-anchor": "end", class: "cw-muted" }, signed(value, 0))];
    }), ends, curve, points);
  const along = (position, { length }) => CHART.left + (position / (length - 1)) * CHART.width;
  const high = (value) => CHART.top + ((1 - value) / 2) * CHART.height;

  function drawChart(now) {
    const here = encoding(now.first, now);
    const values = Array.from({ length: now.length }, (_, position) => product(here, encoding(position, now)) / (now.d_model / 2));
    curve.setAttribute("points", values.map((value, position) => `${along(position, now).toFixed(2)},${high(value).toFixed(2)}`).join(" "));
    curve.dataset.values = values.map((value) => value.toFixed(5)).join(" ");
    const dot = (name, side) => svg("g", { class: side ? "cw-mark cw-mark-second" : "cw-mark" },
      svg("circle", { cx: along(now[name], now), cy: high(values[now[name]]), r: 5 }),
      svg("text", { x: along(now[name], now), y: high(values[now[name]]) + (side ? 20 : -9), "text-anchor": "middle" }, name));
    points.replaceChildren(dot("first", 0), ...(now.first === now.second ? [] : [dot("second", 1)]));
    const text = (x, anchor, words) => svg("text", { x, y: CHART.top + CHART.height + 15, "text-anchor": anchor, class: "cw-muted" }, words);
    ends.replaceChildren(text(CHART.left, "start", "0"), text(CHART.left + CHART.width, "end", String(now.length - 1)),
      text(CHART.left + CHART.width / 2, "middle", `position, and its dot product with PE(${now.first}) / ${now.d_model / 2}`));
  }

  let drawn = false; // along the curve
  const choose = (event) => {
    const { length, second } = state(), box = chart.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * chart.width.baseVal.value - CHART.left) / CHART.width;
    const position = Math.max(0, Math.min(length - 1, Math.round(share * (length - 1))));
    if (position !== second) send(model, { second: position });
  };
  chart.addEventListener("pointerdown", (event) => { drawn = true; chart.setPointerCapture(event.pointerId); choose(event); });
  chart.addEventListener("pointermove", (event) => drawn && choose(event));
  for (const end of ["pointerup", "pointercancel"]) chart.addEventListener(end, () => (drawn = false));

  // --- clocks ---
  const clocks = svg("svg", { width: CLOCKS * 46, height: 2 * RADIUS + 38, role: "img", "aria-label": "each pair of dimensions as a clock" });
  let faces = []; // one for each pair that is shown
  function drawFaces(pairs) {
    if (clocks.dataset.pairs === String(pairs)) return;
    clocks.dataset.pairs = pairs;
    const count = Math.min(CLOCKS, pairs);
    faces = Array.from({ length: count }, (_, index) => {
      const pair = Math.round((index * (pairs - 1)) / Math.max(1, count - 1));
      const hands = HANDS.map(([name, later]) => svg("line", { class: `cw-hand cw-hand-${name}`, "stroke-dasharray": later ? "4 3" : null }));
      const text = (y, words, look) => svg("text", { y, "text-anchor": "middle", class: look }, words);
      const turned = text(RADIUS + 31, "", "cw-muted");
      const node = svg("g", { transform: `translate(${46 * index + 22},${RADIUS + 2})`, "data-pair": pair },
        svg("circle", { r: RADIUS, class: "cw-frame" }), ...hands, text(RADIUS + 16, `pair ${pair}`), turned);
      return { pair, hands, turned, node };
    });
    clocks.replaceChildren(...faces.map(({ node }) => node));
  }

  function drawClocks(now) {
    drawFaces(now.d_model / 2);
    for (const { pair, hands, turned, node } of faces) {
      const turn = now.offset / now.base ** ((2 * pair) / now.d_model);
      HANDS.forEach(([name, later], index) => {
        const [sine, cosine] = encoding(now[name] + later * now.offset, now).slice(2 * pair, 2 * pair + 2);
        const length = name === "first" ? RADIUS : 0.65 * RADIUS; // 12 o'clock is angle 0, and time goes clockwise
        hands[index].setAttribute("x2", (length * sine).toFixed(4));
        hands[index].setAttribute("y2", (-length * cosine).toFixed(4));
      });
      node.dataset.turn = turn.toFixed(6);
      const words = `+${Number(turn.toPrecision(turn < 0.1 ? 1 : 3))}`;
      if (turned.textContent !== words) turned.textContent = words;
    }
  }

  // --- together ---
  function tell(now) {
    const dot = (on) => `PE(${now.first + on}) · PE(${now.second + on}) = ${signed(product(encoding(now.first + on, now), encoding(now.second + on, now)))}`;
    told.textContent = `${dot(0)} of at most ${now.d_model / 2}` + (now.offset ? `; ${now.offset} words on, ${dot(now.offset)}` : "");
  }
  const positions = ["first", "second"].map((name) => slider(model, name, { label: `${name} position`, min: 0, max: limits.length - 1 }));
  function refresh() {
    const now = state(), last = now.length - 1;
    if (now.first > last || now.second > last) // the kernel does the same
      return send(model, { first: Math.min(now.first, last), second: Math.min(now.second, last) });
    positions.forEach((each, index) => {
      const input = each.querySelector("input");
      input.max = last;
      input.value = now[["first", "second"][index]];
    });
    for (const draw of [drawTable, drawMarks, drawChart, drawClocks, tell]) draw(now);
  }

  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Slide the offset: both positions move on together. What becomes of their dot product, and of each hand? Then d_model 4 and base 10: which far positions look near?"),
    el("div", { class: "cw-row" },
      slider(model, "length", { label: "length", min: 2, max: limits.length }),
      slider(model, "d_model", { label: "d_model", min: 2, max: limits.d_model, step: 2 }),
      choice(model, "base", { label: "base", options: limits.bases.map((base) => [base, grouped(base)]) })),
    el("div", { class: "cw-row" }, ...positions, slider(model, "offset", { label: "offset", min: 0, max: limits.offset })),
    told,
    el("div", { class: "cw-row cw-stage" }, el("div", { class: "cw-table" }, canvas, overlay),
      el("div", { class: "cw-beside" }, chart, el("div", { class: "cw-muted" }, "Long hand: first, short: second; dashed: moved on by the offset, which turns the hand by so many radians."), clocks)),
    details);
  listen(model, names, refresh);
  const again = () => { // pixels do not change with the theme by themselves
    colors = root.isConnected ? channels(root, "var(--cw-page)", "var(--cw-accent)", "var(--cw-second)") : null;
    drawTable(state());
  };
  const watchers = [new MutationObserver(again), new ResizeObserver(again)];
  for (const node of [document.body, document.documentElement]) watchers[0].observe(node, { attributes: true });
  watchers[1].observe(root); // which is when it comes onto the page
  return () => watchers.forEach((each) => each.disconnect());
}

export default { render };
