import { choice, toggle } from "./shared/controls.js";
import { el, fill, row, status, svg } from "./shared/dom.js";
import { legend, lineChart } from "./shared/line_chart.js";
import { listen } from "./shared/model.js";

const LEFT = 130, ROOM = 250, ROW = 24, WIDTH = 460;

/** A bar for each part, in proportion to its bytes. */
function drawParts(parts) {
  const largest = Math.max(...parts.map(([, size]) => size));
  const bars = parts.flatMap(([name, size, words], index) => {
    const y = index * ROW, width = Math.max(1, (ROOM * size) / largest);
    return [
      svg("text", { x: LEFT - 8, y: y + 16, "text-anchor": "end" }, name),
      svg("rect", { x: LEFT, y: y + 4, width, height: ROW - 8, fill: "var(--cw-accent)", "data-name": name }),
      svg("text", { x: LEFT + width + 6, y: y + 16 }, words),
    ];
  });
  return svg("svg", { width: WIDTH, height: parts.length * ROW, role: "img", "aria-label": "memory by part" }, ...bars);
}

function drawPeaks({ lengths, peaks }, length) {
  const series = peaks.map(([name, ys]) => ({ name, xs: lengths, ys }));
  return lineChart({ width: 420, height: 240, xlabel: "tokens in each sentence", ylabel: "MB at the peak",
    logX: true, logY: true, series, marks: [{ name: "now", x: length }] });
}

function render({ model, el: root }) {
  const stage = row(), told = status();
  const draw = () => {
    const view = model.get("view");
    stage.replaceChildren(drawParts(view.parts),
      el("div", {}, drawPeaks(view, model.get("length")), legend(view.peaks.map(([name]) => name))));
    told.textContent = view.told;
  };
  const { presets, batches, lengths } = model.get("options");
  const pairs = (values) => values.map((value) => [value, value.toLocaleString("en-US")]);
  fill(root, "Which part grows with the batch, which with the square of the length, and which with neither?",
    row(
      choice(model, "preset", { label: "preset", options: presets.map((name) => [name, name]) }),
      choice(model, "batch", { label: "sentence pairs", options: pairs(batches) }),
      choice(model, "length", { label: "tokens in each sentence", options: pairs(lengths) }),
      toggle(model, "fused", { label: "fused attention" })),
    stage, told);
  listen(model, "view", draw);
}

export default { render };
