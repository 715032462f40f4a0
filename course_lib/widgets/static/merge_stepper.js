const times = (count) => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);
const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels); // steps need no kernel, texts do
  const told = el("div", { class: "cw-message", role: "status" });
  const details = el("div", { class: "cw-message", role: "status" });
  const text = el("div", { class: "cw-text" });
  const pairs = el("div", { class: "cw-row cw-pairs" });
  const steps = () => model.get("view").steps;
  const made = () => Math.min(model.get("merges"), steps().length);
  const go = (merges) => send(model, { merges: Math.max(0, Math.min(steps().length, merges)) });

  /** Symbols of a word after so many merges. */
  const symbolsOf = (word, merges) => word.reduce((found, [at, symbols]) => (at <= merges ? symbols : found), []);

  /** Makes a symbol the one stop of the Tab key for all of them; arrow keys lead on. */
  function stop(symbol) {
    text.querySelectorAll("[tabindex='0']").forEach((other) => (other.tabIndex = -1));
    symbol.tabIndex = 0;
  }

  let groups = []; // a node for each word of the text, and what it shows
  function drawText(merges) {
    const { words, order } = model.get("view");
    const newest = merges ? steps()[merges - 1].pair.join("") : null;
    const cut = words.map((word) => symbolsOf(word, merges));
    if (groups.length !== order.length) groups = order.map(() => ({ node: el("span", { class: "cw-word" }), shown: null }));
    order.forEach((index, place) => { // most words stay as they are from step to step
      const group = groups[place], shown = JSON.stringify([cut[index], cut[index].includes(newest) && newest]);
      if (group.shown === shown) return;
      group.shown = shown;
      group.node.replaceChildren(...cut[index].map((symbol) => el("span", { "data-symbol": symbol, role: "img", "aria-label": symbol, tabindex: -1,
        class: `cw-symbol${[...symbol].length > 1 ? " cw-merged" : ""}${symbol === newest ? " cw-newest" : ""}` }, symbol)));
    });
    if (text.firstChild !== groups[0].node) text.replaceChildren(...groups.map(({ node }) => node));
    stop(text.querySelector(".cw-symbol"));
    return order.reduce((sum, index) => sum + cut[index].length, 0);
  }

  text.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const all = [...text.querySelectorAll(".cw-symbol")];
    all[(all.indexOf(event.target) + step + all.length) % all.length].focus();
  });

  /** A symbol in words: its number, where it comes from, how often it stands in the text. */
  function explain(symbol) {
    const { numbers, order, words } = model.get("view"), merges = made();
    const count = order.reduce((sum, index) => sum + symbolsOf(words[index], merges).filter((each) => each === symbol).length, 0);
    const step = steps().findIndex(({ pair }) => pair.join("") === symbol);
    const from = step < 0 ? "a character" : `made of ${steps()[step].pair.join(" and ")} by merge ${step + 1}`;
    details.textContent = `“${symbol}”: number ${numbers[symbol]}, ${from}; stands in the text ${times(count)}`;
  }

  function drawPairs(merges) {
    const step = steps()[merges];
    if (!step) return pairs.replaceChildren(el("span", { class: "cw-muted" }, "No two symbols stand side by side in a word any more."));
    const most = step.offered[0][2];
    const chips = step.offered.map(([left, right, count]) =>
      el("button", { class: "cw-pair", "data-pair": `${left} ${right}`, "data-count": count, onclick: () => judge(left, right, count),
        style: `background: linear-gradient(to right, ${shade(0.35)} ${((100 * count) / most).toFixed(1)}%, transparent 0)` }, `${left} ${right} `, el("b", {}, String(count))));
    roving(chips);
    const more = step.different - step.offered.length;
    pairs.replaceChildren(el("span", { class: "cw-muted" }, "side by side:"), ...chips, ...(more ? [el("span", { class: "cw-muted" }, `and ${many(more, "other pair")}`)] : []));
  }

  /** Is this pair merged next? If not, why not. */
  function judge(left, right, count) {
    const { pair, count: most, tied } = steps()[made()], { numbers } = model.get("view");
    const decides = left === pair[0] ? 1 : 0; // which symbol's number
    const better = pair[decides], worse = [left, right][decides];
    if (better === worse) details.textContent = `Yes: ${left} ${right} is merged next, ${times(count)}${tied ? `; of ${tied + 1} tied pairs its left symbol has the smallest number, then its right one` : ", more than any other pair"}.`;
    else if (count === most) details.textContent = `No: ${left} ${right} is tied, and of tied pairs ${pair.join(" ")} has the ${["left", "right"][decides]} symbol with the smaller number: ${better} is ${numbers[better]}, ${worse} is ${numbers[worse]}.`;
    else details.textContent = `No: ${left} ${right} stands side by side ${times(count)}, ${pair.join(" ")} ${times(most)}.`;
  }

  function tell(merges, symbols) {
    const { start } = model.get("view"), all = steps().length, problem = model.get("message");
    const known = new Set(steps().slice(0, merges).map(({ pair }) => pair.join(""))).size;
    const step = merges ? steps()[merges - 1] : null;
    const last = step ? `Merge ${merges} of ${all}: ${step.pair.join(" + ")} → ${step.pair.join("")}, ${times(step.count)}${step.tied ? ` (${step.tied} tied)` : ""}. ` : `No merge yet, ${all} to come. `;
    told.classList.toggle("cw-error", Boolean(problem));
    told.textContent = problem || `${last}The text has ${many(symbols, "symbol")}, the vocabulary ${start + known} (4 special, ${many(start - 4, "character")}, ${known} merged).`;
  }

  const back = el("button", { "aria-label": "one merge back", onclick: () => go(made() - 1) }, "◀");
  const on = el("button", { "aria-label": "one merge on", onclick: () => go(made() + 1) }, "▶");
  const track = slider(model, "merges", { label: "merges", min: 0, max: steps().length });
  function refresh() {
    const merges = made(), input = track.querySelector("input");
    input.max = steps().length;
    input.value = merges;
    switchArrows(back, on, { first: merges === 0, last: merges === steps().length });
    tell(merges, drawText(merges));
    drawPairs(merges);
    details.textContent = "Click the pair that you expect to be merged next; point at a symbol to see its number.";
  }

  for (const event of ["mouseover", "focusin"])
    text.addEventListener(event, ({ target }) => {
      if (target.dataset.symbol === undefined) return;
      explain(target.dataset.symbol);
      if (event === "focusin") stop(target);
    });
  root.classList.add("cw");
  root.replaceChildren(
    el("p", { class: "cw-question" }, "Which pair is merged next? Say it, then step on. Which words are whole first, and what becomes of a word that occurs once?"),
    el("div", { class: "cw-row" }, textbox(model, "text", { label: "text", button: "Learn" })),
    el("div", { class: "cw-row" }, back, on, track),
    told, text, pairs, details);
  listen(model, ["merges", "view", "message"], refresh);
}

export default { render };
