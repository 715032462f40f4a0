const BAR = 20; // pixels from bar to bar
const LABELS = 92; // room for the tokens
const WIDE = 220; // of a bar of 100 %
const LISTED = 8; // translations that have a line

const settingsOf = (model) => ["temperature", "top_k", "top_p", "seed"].map((name) => model.get(name));

/** What tokens are drawn with, from log-probabilities that fall: temperature, then top-k, then top-p, then shares. */
function reshaped(logProbs, [temperature, topK, topP]) {
  const weights = logProbs.map((logProb) => Math.exp((logProb - logProbs[0]) / temperature));
  const sum = (count) => weights.subarray(0, count).reduce((total, weight) => total + weight, 0);
  let kept = weights.length;
  if (topK) kept = logProbs.filter((logProb) => logProb >= logProbs[Math.min(topK, kept) - 1]).length; // ties stay
  if (topP < 1) {
    const enough = topP * sum(kept);
    let count = 0;
    for (let reached = 0; count < kept && reached < enough; count++) reached += weights[count];
    kept = count;
  }
  const total = sum(kept);
  return weights.map((weight, index) => (index < kept ? weight / total : 0));
}

/** In nats. */
const entropy = (probs) => probs.reduce((total, prob) => total - (prob ? prob * Math.log(prob) : 0), 0);

/** A row for each token: an outline for the model's own probability, a filled bar for the reshaped one. */
function drawBars(tokens, count) {
  const rows = [...tokens, `${grouped(count - tokens.length)} others`].map((token, row) => {
    const top = BAR * row + 3;
    return {
      name: svg("text", { x: LABELS - 6, y: top + 11, "text-anchor": "end" }, token),
      filled: svg("rect", { x: LABELS, y: top, height: 14, class: "cw-drawn" }),
      own: svg("rect", { x: LABELS, y: top, height: 14, class: "cw-own" }),
      number: svg("text", { y: top + 11, class: "cw-number", "data-row": row }),
    };
  });
  const picture = svg("svg", { width: LABELS + WIDE + 60, height: BAR * rows.length + 6, role: "group", "aria-label": "probabilities of the next token" },
    svg("line", { x1: LABELS, x2: LABELS, y1: 0, y2: BAR * rows.length + 4, class: "cw-frame" }),
    ...rows.flatMap(({ name, filled, own, number }) => [filled, own, name, number]));
  const fold = (probs) => [...probs.subarray(0, tokens.length), probs.subarray(tokens.length).reduce((total, prob) => total + prob, 0)];
  const update = (own, probs) => {
    const before = fold(own);
    fold(probs).forEach((prob, row) => {
      const { name, filled, own, number } = rows[row];
      filled.setAttribute("width", WIDE * prob);
      own.setAttribute("width", WIDE * before[row]);
      number.setAttribute("x", LABELS + WIDE * Math.max(prob, before[row]) + 5);
      number.textContent = prob ? percent(prob) : "cut";
      number.dataset.probability = prob;
      name.classList.toggle("cw-cut", !prob);
    });
  };
  return { picture, update };
}

/** The translations that were drawn, the most frequent first. */
function drawSample({ outputs, greedy }) {
  const draws = outputs.reduce((total, { count }) => total + count, 0);
  const right = outputs.filter((each) => each.greedy).reduce((total, { count }) => total + count, 0);
  const rows = outputs.slice(0, LISTED).map((each) =>
    el("tr", {}, el("td", {}, String(each.count)), el("td", { title: each.text }, each.text || "(empty)"), el("td", {}, each.greedy ? "✓" : ""), el("td", {}, signed(each.log_prob))));
  const rest = outputs.slice(LISTED);
  if (rest.length) rows.push(el("tr", { class: "cw-muted" }, el("td", {}, String(rest.reduce((total, { count }) => total + count, 0))), el("td", {}, `${rest.length} other outputs`), el("td"), el("td")));
  return [
    el("div", { class: "cw-message", role: "status" }, `${draws} draws, ${outputs.length} different; ${right} of them (✓) are what greedy search writes: ${greedy}`),
    el("table", {}, el("thead", {}, el("tr", {}, ...["times", "output", "", "log-probability"].map((words) => el("th", {}, words)))), el("tbody", {}, ...rows)),
  ];
}

function render({ model: kernel, el: root }) {
  const model = unhurried(kernel); // the kernel draws when the sliders rest
  const message = el("div", { class: "cw-message cw-error", role: "status" });
  const places = el("div", { class: "cw-row", role: "group", "aria-label": "place in the translation" });
  const stage = el("div", {});
  const details = el("div", { class: "cw-message cw-details", role: "status" });
  const sample = el("div", { class: "cw-sample" });
  let logProbs = new Float64Array(0), chart = null;

  const reshape = () => {
    const probs = reshaped(logProbs, settingsOf(model));
    chart.update(reshaped(logProbs, [1, 0, 1]), probs);
    const kept = probs.filter((prob) => prob > 0).length;
    const tokens = (count) => `${grouped(count)} token${count === 1 ? "" : "s"}`;
    details.textContent = `${tokens(kept)} of ${grouped(logProbs.length)} can be drawn; entropy ${entropy(probs).toFixed(2)} nats (all alike: ${Math.log(logProbs.length).toFixed(2)})`;
    age();
  };
  const age = () => { // the sample is old until the kernel has drawn another one, or has refused the sentence
    const { settings } = kernel.get("drawn"), present = settingsOf(model);
    if (!kernel.get("message")) present.push(kernel.get("text"));
    sample.classList.toggle("cw-stale", present.some((value, index) => value !== settings[index]));
  };
  const rebuild = () => {
    logProbs = numbers(kernel.get("log_probs"), Float64Array);
    chart = drawBars(kernel.get("tokens"), logProbs.length);
    stage.replaceChildren(chart.picture);
    reshape();
  };
  let buttons = [];
  const choose = () => buttons.forEach((button, place) => {
    const chosen = place === kernel.get("place"), token = kernel.get("pieces")[place];
    button.setAttribute("aria-pressed", String(chosen));
    button.textContent = chosen ? `${token} ?` : token;
  });
  const write = () => {
    buttons = kernel.get("pieces").map((_, place) => el("button", { class: "cw-piece", onclick: () => send(kernel, { place }) }));
    roving(buttons);
    places.replaceChildren(el("span", { class: "cw-muted" }, "next token after <s>"), ...buttons);
    choose();
  };

  root.classList.add("cw", "cw-sampling");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Make most of the draws what greedy search writes: how far down must the temperature go, and does a cut do it without? Click a token to see the distribution at its place: where is the model sure, and what do top-k and top-p keep there?"),
    el("div", { class: "cw-row" }, textbox(model, "text", { label: "English", button: "Translate" })),
    message, places,
    el("div", { class: "cw-row" },
      slider(model, "temperature", { label: "temperature", min: 0.05, max: 5, step: 0.05, format: (value) => value.toFixed(2) }),
      slider(model, "top_k", { label: "top-k", min: 0, max: 50, format: (value) => (value ? String(value) : "off") }),
      slider(model, "top_p", { label: "top-p", min: 0.05, max: 1, step: 0.05, format: (value) => (value < 1 ? value.toFixed(2) : "off") }),
      slider(model, "seed", { label: "seed", min: 0, max: 99 })),
    el("div", { class: "cw-row cw-stage" },
      el("div", { class: "cw-left" }, stage, el("div", { class: "cw-muted" }, "outline: the model's own probability; filled: what is drawn with"), details),
      sample));
  listen(kernel, "message", () => (message.textContent = kernel.get("message")));
  listen(kernel, "pieces", write);
  listen(kernel, "place", choose);
  listen(kernel, "drawn", () => sample.replaceChildren(...drawSample(kernel.get("drawn"))));
  listen(kernel, ["tokens", "log_probs"], rebuild);
  listen(model, ["temperature", "top_k", "top_p", "seed", "drawn"], reshape);
  listen(kernel, ["text", "message"], age);
}

export default { render };
