import { arrows, choice, slider } from "./shared/controls.js";
import { el, fill, listing, row, status } from "./shared/dom.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen, send, unhurried } from "./shared/model.js";
import { clamp, grouped, percent } from "./shared/numbers.js";

const PAUSE = 500; // milliseconds between two measurements of a race that runs

function stateOf(model) {
  const moments = model.get("moments"), moment = model.get("moment"), race = model.get("race");
  return { sides: model.get("data")[race], distances: model.get("distances"), race, moment, moments };
}

/** The share of right answers so far, on axes of the whole race. */
function drawProgress({ sides, moment, moments }) {
  const share = (number) => (100 * number) / moments;
  const series = sides.map(({ name, means }) =>
    ({ name, xs: means.map((_, index) => share(index + 1)), ys: means.map((mean) => 100 * mean) }));
  const shown = series.map(({ name, xs, ys }) => ({ name, xs: xs.slice(0, moment), ys: ys.slice(0, moment) }));
  const frame = { name: "frame", xs: [0, 100], ys: [0, 100] };
  const chart = lineChart({ width: 440, height: 260, xlabel: "share of the training time (%)",
    ylabel: "right answers (%)", marks: [{ name: "now", x: share(moment) }], series: [...shown, frame] });
  chart.querySelector("[data-name=frame]").remove(); // it has only set the axes
  return chart;
}

/** Right answers against distance, now; nothing where a race has no distances. */
function drawProfile({ sides, moment, distances }) {
  const now = sides.map(({ name, profiles }) => ({ name, ys: (profiles[moment - 1] || []).map((each) => 100 * each) }));
  if (!now.some(({ ys }) => ys.length)) return [];
  const series = now.map(({ name, ys }) => ({ name, ys, xs: ys.map((_, place) => place) }));
  const frame = { name: "frame", xs: [0, distances.length - 1], ys: [0, 100] };
  const chart = lineChart({ width: 440, height: 260, xlabel: "distance in tokens", ylabel: "right answers (%)",
    xNames: distances, series: [...series, frame] });
  chart.querySelector("[data-name=frame]").remove();
  return [chart];
}

/** The best side first. */
function ranking({ sides, moment }) {
  const at = (side, key) => side[key][moment - 1];
  const ranked = [...sides].sort((a, b) => at(b, "means") - at(a, "means"));
  const cell = (words) => el("td", {}, words);
  return listing(["", "right answers", "lowest and highest run", "steps"], ranked.map((side) => el("tr", {},
    el("th", { scope: "row" }, side.name), cell(percent(at(side, "means"))),
    cell(`${percent(at(side, "lowest"))} to ${percent(at(side, "highest"))}`), cell(grouped(at(side, "steps"))))));
}

function tell({ race, sides, moment, moments }) {
  const best = sides.reduce((a, b) => (b.means[moment - 1] > a.means[moment - 1] ? b : a));
  return `${race}, ${Math.round((100 * moment) / moments)} % of the time: ${best.name} is ahead`;
}

/** A button that lets the race run, and stops it; `go` shows a measurement. */
function runner(model, go) {
  let timer = null;
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    button.textContent = "run";
  };
  const beat = () => {
    if (model.get("moment") === model.get("moments")) return stop();
    go(model.get("moment") + 1);
    timer = setTimeout(beat, PAUSE);
  };
  const start = () => {
    if (timer) return stop();
    if (model.get("moment") === model.get("moments")) go(1);
    button.textContent = "stop";
    timer = setTimeout(beat, PAUSE);
  };
  const button = el("button", { onclick: start }, "run");
  return { button, stop };
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), moments = model.get("moments");
  const go = (moment) => send(model, { moment: clamp(moment, 1, moments) });
  const { button, stop } = runner(model, go);
  const steps = arrows("measurement", (step) => {
    stop();
    go(model.get("moment") + step);
  });
  const stage = el("div", { class: "cw-row cw-stage" }), names = el("div", {}), told = status();
  const draw = () => {
    const now = stateOf(model);
    stage.replaceChildren(drawProgress(now), ...drawProfile(now), ranking(now));
    names.replaceChildren(legend(now.sides.map((side) => side.name)));
    steps.show({ first: now.moment === 1, last: now.moment === moments });
    told.textContent = tell(now);
  };
  const format = (moment) => `${Math.round((100 * moment) / moments)} %`;
  const races = Object.keys(model.get("data")).map((name) => [name, name]);
  fill(root, "Who is ahead early, and who in the end? In the recall race: whose curve is cut off, and where?",
    row(choice(model, "race", { label: "race", options: races }),
      slider(model, "moment", { label: "time", min: 1, max: moments, format }), steps.back, steps.on, button),
    told, names, stage);
  listen(model, ["race", "moment"], draw);
  return stop;
}

export default { render };
