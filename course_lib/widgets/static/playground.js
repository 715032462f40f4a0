const PAUSE = 150; // milliseconds without a key, before the kernel is asked

function render({ model, el: root }) {
  const input = el("input", { type: "text", maxlength: 2000, spellcheck: "false", "data-lm-suppress-shortcuts": "true" });
  const answer = el("div", { class: "cw-answer", role: "status", lang: "de" });
  const message = el("div", { class: "cw-message", role: "status" });
  const pieces = el("div", { class: "cw-row" });
  const told = el("div", { class: "cw-muted" });
  let waiting = null;
  input.value = model.get("text");
  input.addEventListener("keydown", (event) => event.stopPropagation()); // the notebook's own keys stay away
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => send(model, { text: input.value }), PAUSE);
  });
  model.on("change:text", () => {
    if (document.activeElement !== input) input.value = model.get("text");
  });
  listen(model, ["view", "message"], () => {
    const view = model.get("view");
    const problem = model.get("message");
    message.textContent = problem;
    message.classList.toggle("cw-error", Boolean(problem));
    if (!view.tgt) return;
    answer.textContent = view.text;
    pieces.replaceChildren(
      el("span", { class: "cw-muted" }, "read"),
      ...view.src.map((token) => el("span", { class: "cw-chip" }, token)),
      el("span", { class: "cw-muted" }, "written"),
      ...view.tgt.map((token, index) => {
        const probability = view.probabilities[index];
        return el("span", { class: "cw-chip", "data-probability": probability.toFixed(4), title: `probability ${probability.toFixed(3)}`,
          style: `background: ${shade(0.6 * probability)}` }, `${token} ${probability.toFixed(2)}`);
      }));
    told.textContent = `${view.milliseconds.toFixed(0)} ms in the kernel; the number of each German piece is its probability, after the pieces before it`;
  });
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Type a sentence. Where is the model unsure, and is it right where it is sure?"),
    el("div", { class: "cw-row" }, el("span", { class: "cw-control cw-wide" }, labelled("English", input))),
    answer, message, pieces, told);
}

export default { render };
