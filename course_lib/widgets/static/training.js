function render({ model, el: root }) {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "steps done" });
  const progress = el("span", {});
  const stage = el("div", {});
  const told = el("div", { class: "cw-message", role: "status" });
  let pointed = null; // a step
  const draw = onceAFrame(() => {
    const [total, seconds, steps, losses, rates, valid] = ["total", "seconds", "steps", "losses", "rates", "valid"].map((name) => model.get(name));
    if (!steps.length) {
      progress.textContent = "waiting for the first step …";
      return;
    }
    const done = steps.at(-1);
    bar.value = done / total;
    progress.textContent = `step ${grouped(done)} of ${grouped(total)} · ${seconds.toFixed(0)} s · loss ${losses.at(-1).toFixed(3)}`;
    const loss = model.get("what") === "loss";
    const series = [{ name: loss ? "training" : "learning rate", xs: steps, ys: loss ? losses : rates }];
    if (loss && valid.length) series.push({ name: "validation", xs: valid.map(([step]) => step), ys: valid.map(([, value]) => value) });
    const chart = lineChart({ xlabel: "step", ylabel: loss ? "loss (nats per token)" : "learning rate", series, logY: model.get("log_y"), height: 260,
      onpoint: (index) => {
        pointed = steps[index];
        told.textContent = `step ${grouped(steps[index])}: loss ${losses[index].toFixed(3)}, learning rate ${short(rates[index], 2)}`;
      } });
    if (pointed) chart.mark(nearest(steps, pointed));
    refill(stage, chart, ...(series.length > 1 ? [legend(series.map(({ name }) => name))] : []));
  });
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Where does the loss fall fastest? Does the validation loss still follow it?"),
    el("div", { class: "cw-row" }, bar, progress),
    el("div", { class: "cw-row" },
      choice(model, "what", { label: "show", options: [["loss", "loss"], ["rate", "learning rate"]] }),
      toggle(model, "log_y", { label: "logarithmic" })),
    stage, told);
  listen(model, ["total", "seconds", "steps", "losses", "rates", "valid", "what", "log_y"], draw);
}

export default { render };
