const WIDTHS = [64, 96, 128, 256, 512, 1024, 2048];
const RUNS = [700, 10000, 100000, 300000];

function render({ model, el: root }) {
  const kept = [];
  const stage = el("div", {});
  const told = el("div", { class: "cw-message", role: "status" });
  const draw = () => {
    const { name, steps, rates, peak } = model.get("view");
    const say = (index) => {
      told.textContent = `step ${grouped(steps[index])}: rate ${short(rates[index], 2)}`;
    };
    const warm = peak[0] < steps.at(-1); // before the run ends
    const others = kept.filter((each) => each.name !== name);
    const chart = lineChart({
      xlabel: "step", ylabel: "learning rate", onpoint: say, marks: warm ? [{ name: "warmup_steps", x: peak[0] }] : [],
      series: [{ name, xs: steps, ys: rates }, ...others.map((each) => ({ name: each.name, xs: each.steps, ys: each.rates }))],
    });
    refill(stage, chart, legend([name, ...others.map((each) => each.name)]));
    told.textContent = `${warm ? "peak at step" : "still warming up at the last step,"} ${grouped(peak[0])}: rate ${short(peak[1], 2)}`;
  };
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Double the warm-up: what happens to the peak? Which width of the model halves it? Where does each schedule end?"),
    el("div", { class: "cw-row" },
      choice(model, "d_model", { label: "d_model", options: WIDTHS.map((width) => [width, String(width)]) }),
      slider(model, "warmup_steps", { label: "warmup_steps", min: 100, max: 16000, step: 100, format: grouped }),
      choice(model, "total_steps", { label: "steps of the run", options: RUNS.map((steps) => [steps, grouped(steps)]) }),
      choice(model, "decay", { label: "then", options: [["inverse_sqrt", "inverse root (paper)"], ["linear", "linear to 0"]] }),
      ...keepers(model, kept, draw, "keep this curve")),
    stage, told);
  listen(model, "view", draw);
}

export default { render };
