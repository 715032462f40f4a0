import { choice, slider } from "./shared/controls.js";
import { el, fill, listing, row, status } from "./shared/dom.js";
import { refill } from "./shared/focus.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen } from "./shared/model.js";
import { grouped, short } from "./shared/numbers.js";

/** Hours where they are few, else days as well. */
function lasting(hours) {
  return `${grouped(hours)} hours${hours >= 48 ? ` (${grouped(hours / 24)} days)` : ""}`;
}

function drawTable({ flops, capacity, hours, money }, priced) {
  const line = (name, value) => el("tr", {}, el("td", {}, name), el("td", { "data-key": name }, value));
  return listing(["what", "how much"], [
    line("operations of the training", `${short(flops)} FLOPs`),
    line("what the devices could have done", `${short(capacity)} FLOPs`),
    line("time", lasting(hours)),
    line("money", priced ? grouped(money) : "set a price"),
  ]);
}

function drawHours({ counts, planned, ideal, hours }, { devices, device, serial }) {
  const series = [{ name: `${serial} % serial`, xs: counts, ys: planned }];
  if (serial > 0) series.push({ name: "nothing serial", xs: counts, ys: ideal });
  const marks = [{ name: `${devices} devices: ${grouped(hours)} h`, x: devices }];
  const labels = { xlabel: `number of ${device}`, ylabel: "hours" };
  const chart = lineChart({ width: 460, height: 240, logX: true, logY: true, marks, series, ...labels });
  return [chart, legend(series.map((each) => each.name))];
}

function render({ model, el: root }) {
  const limits = model.get("limits"), named = (values) => values.map((value) => [value, grouped(value)]);
  const table = el("div", {}), stage = el("div", {}), told = status();
  const percent = (value) => `${value} %`;
  fill(root, "Which device would have done the paper's 12 hours in one? With 2 % serial, what do the last 128 " +
    "devices still bring, and what do they cost?",
    row(choice(model, "preset", { label: "model", options: limits.presets }),
      choice(model, "steps", { label: "steps", options: named(limits.steps) }),
      choice(model, "device", { label: "device", options: limits.devices }),
      choice(model, "devices", { label: "how many", options: named(limits.counts) })),
    row(slider(model, "utilization", { label: "utilization", min: 1, max: 100, format: percent }),
      slider(model, "serial", { label: "serial share", min: 0, max: 50, step: 0.5, format: percent }),
      slider(model, "price", { label: "price of a device-hour", min: 0, max: 20, step: 0.25, format: grouped })),
    row(table, stage), told);
  listen(model, "view", () => {
    const view = model.get("view"), now = {};
    for (const name of ["devices", "device", "serial", "price"]) now[name] = model.get(name);
    refill(table, drawTable(view, now.price > 0));
    refill(stage, ...drawHours(view, now));
    told.textContent = `${short(view.flops)} FLOPs: ${lasting(view.hours)} on ${now.devices} ${now.device}`;
  });
}

export default { render };
