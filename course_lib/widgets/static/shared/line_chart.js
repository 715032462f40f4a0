// Lines over one pair of axes.

import { stroke } from "./colors.js";
import { row, svg, together } from "./dom.js";
import { take } from "./focus.js";
import { clamp, logTicks, nearest, short, ticks } from "./numbers.js";

const LEFT = 72, RIGHT = 12, TOP = 12, BOTTOM = 44; // around the axes, in pixels

/** Which line is which, for one chart or several. */
export function legend(names) {
  const line = (number) => svg("line", { x2: 28, y1: 4, y2: 4, ...stroke(number) });
  return row(...names.map((name, number) => together(svg("svg", { width: 28, height: 8 }, line(number)), name)));
}

/** What the axes span, and where a number is on them. */
function scalesOf({ width, height, series, low, rows = 4, logX, logY, xNames }) {
  const [along, back] = logX ? [Math.log10, (x) => 10 ** x] : [(x) => x, (x) => x], up = logY ? Math.log10 : (y) => y;
  const xs = series.flatMap((each) => each.xs.map(along)), ys = series.flatMap((each) => each.ys.map(up));
  const [lowest, highest] = [Math.min(...ys), Math.max(...ys)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [bottom, top] = logY
    ? [Math.floor(lowest), Math.ceil(highest + 0.01)]
    : [Math.min(low, lowest), Math.max(highest, highest * 1.04) || 1];
  const wide = width - LEFT - RIGHT, high = height - TOP - BOTTOM;
  return {
    px: (x) => LEFT + ((along(x) - left) / (right - left || 1)) * wide,
    py: (y) => height - BOTTOM - ((up(y) - bottom) / (top - bottom || 1)) * high,
    xAt: (share) => back(left + share * (right - left)),
    xTicks: xNames ? [...new Set(xs)] : logX ? logTicks(10 ** left, 10 ** right) : ticks(left, right),
    yTicks: logY ? ticks(bottom, top, Math.min(6, top - bottom)).map((tick) => 10 ** tick) : ticks(bottom, top, rows),
  };
}

function drawAxes({ width, height, xlabel, ylabel, xNames }, { px, py, xTicks, yTicks }) {
  const right = width - RIGHT, bottom = height - BOTTOM;
  const below = { x: (LEFT + right) / 2, y: height - 6 };
  const beside = { transform: `translate(12,${(TOP + bottom) / 2}) rotate(-90)` };
  const name = (place, words) => svg("text", { ...place, "text-anchor": "middle", class: "cw-muted" }, words);
  return svg("g", {},
    ...xTicks.map((tick) =>
      svg("text", { x: px(tick), y: bottom + 16, "text-anchor": "middle" }, xNames ? xNames[tick] : short(tick))),
    ...yTicks.flatMap((tick) => [
      svg("line", { x1: LEFT, x2: right, y1: py(tick), y2: py(tick), stroke: "var(--cw-line)", "stroke-opacity": 0.6 }),
      svg("text", { x: LEFT - 6, y: py(tick) + 4, "text-anchor": "end" }, short(tick)),
    ]),
    name(below, xlabel), name(beside, ylabel));
}

function drawMarks({ height, marks }, { px }) {
  const upright = { y1: TOP, y2: height - BOTTOM, stroke: "var(--cw-faint)", "stroke-dasharray": "1 3" };
  return marks.flatMap(({ name, x }) => [
    svg("line", { x1: px(x), x2: px(x), ...upright }),
    svg("text", { x: px(x) + 4, y: TOP + 10, class: "cw-muted" }, name),
  ]);
}

function drawSeries({ series }, { px, py }) {
  return series.map(({ name, xs, ys }, number) => {
    const points = xs.map((x, index) => `${px(x).toFixed(1)},${py(ys[index]).toFixed(1)}`).join(" ");
    return svg("polyline", { points, fill: "none", "data-name": name, ...stroke(number) });
  });
}

/** The pointer and the arrow keys call point(index) for points of the first series; returns what sets their start. */
function read(picture, { width, series }, { xAt }, point) {
  const points = series[0].xs;
  let at = null;
  const go = (index) => point((at = clamp(index, 0, points.length - 1)));
  const follow = (event) => {
    const box = picture.getBoundingClientRect();
    const share = (((event.clientX - box.left) * width) / box.width - LEFT) / (width - LEFT - RIGHT);
    if (share >= 0 && share <= 1) go(nearest(points, xAt(share)));
  };
  const walk = (event) => {
    const before = (at ?? points.length) - 1, after = (at ?? -1) + 1;
    const to = { ArrowLeft: before, ArrowRight: after, Home: 0, End: points.length - 1 }[event.key];
    if (to === undefined) return;
    take(event);
    go(to);
  };
  const listeners = { pointerdown: follow, pointermove: follow, keydown: walk };
  for (const [name, listener] of Object.entries(listeners)) picture.addEventListener(name, listener);
  return (index) => (at = index);
}

/**
 * Lines over one pair of axes: series are { name, xs, ys }, told apart by dashes too, marks are { name, x }.
 * With logX or logY, all xs or ys must be above 0; with logY every tick is a power of ten.
 * `rows` is about how many ticks other ys have. With `xNames`, an x is a place in that list, and its tick shows the
 * name.
 * With `onpoint`, the pointer and the arrow keys move a cursor along the first series, and it is called with each
 * index there; `mark(index)` of the node puts the cursor there without a call.
 */
export function lineChart({ width = 640, height = 280, marks = [], low = 0, onpoint = null, ...rest }) {
  const chart = { width, height, marks, low, ...rest }, scales = scalesOf(chart);
  const cursor = svg("line", { y1: TOP, y2: height - BOTTOM, stroke: "var(--cw-faint)", "stroke-dasharray": "3 3",
    visibility: "hidden" });
  const reading = { tabindex: 0, "data-key": "chart", class: "cw-read", "data-lm-suppress-shortcuts": "true" };
  const label = `${chart.ylabel} against ${chart.xlabel}`;
  const picture = svg("svg", { width, height, role: "img", "aria-label": label, ...(onpoint ? reading : {}) },
    drawAxes(chart, scales), ...drawMarks(chart, scales), ...drawSeries(chart, scales), cursor);
  const put = (index) => {
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, scales.px(chart.series[0].xs[index]));
    cursor.setAttribute("visibility", "visible");
  };
  const point = (index) => {
    put(index);
    onpoint(index);
  };
  const remember = onpoint ? read(picture, chart, scales, point) : () => {};
  picture.mark = (index) => {
    remember(index);
    put(index);
  };
  return picture;
}
