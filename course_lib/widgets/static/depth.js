const NORM_WORDS = [["", "none"], ["post", "post-norm (paper)"], ["pre", "pre-norm"]];

function render({ model, el: root }) {
  const kept = [];
  const stage = el("div", { class: "cw-row" });
  const told = el("div", { class: "cw-message", role: "status" });
  const chart = (views, what, ylabel) =>
    lineChart({ width: 400, height: 260, xlabel: "layers passed (0 = the embedding)", ylabel, logY: true,
      series: views.map((view) => ({ name: view.name, xs: view[what].map((_, depth) => depth), ys: view[what] })) });
  const draw = () => {
    const view = model.get("view");
    const views = [view, ...kept.filter((each) => each.name !== view.name)];
    stage.replaceChildren(chart(views, "gradients", "norm of the gradient"), chart(views, "sizes", "size of the vectors"), legend(views.map((each) => each.name)));
    const ratio = view.gradients[0] / view.gradients.at(-1);
    told.textContent = `${view.name}: the bottom hears ${short(ratio)} times what the top hears`;
  };
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Take the residuals away: how deep may the stack be? And which norm keeps both curves flat?"),
    el("div", { class: "cw-row" },
      slider(model, "depth", { label: "layers", min: 1, max: 48 }),
      toggle(model, "residual", { label: "residuals" }),
      choice(model, "norm", { label: "norm", options: NORM_WORDS }),
      el("button", { onclick: () => send(model, { seed: model.get("seed") + 1 }) }, "other weights"),
      ...keepers(model, kept, draw, "keep these curves")),
    stage, told);
  listen(model, "view", draw);
}

export default { render };
