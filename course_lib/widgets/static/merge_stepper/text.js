// The text in symbols, after any number of merges.

import { el } from "../shared/dom.js";
import { arrowStep } from "../shared/focus.js";
import { lettersOf } from "../shared/numbers.js";

/** Symbols of a word after so many merges. */
export const symbolsOf = (word, merges) => word.reduce((found, [at, symbols]) => (at <= merges ? symbols : found), []);

function drawSymbol(symbol, newest) {
  const looks = `cw-symbol${lettersOf(symbol) > 1 ? " cw-merged" : ""}${symbol === newest ? " cw-newest" : ""}`;
  const said = { role: "img", "aria-label": symbol, tabindex: -1, class: looks };
  return el("span", { "data-symbol": symbol, ...said }, symbol);
}

/** Makes a symbol the one stop of the Tab key for all of them; arrow keys lead on. */
function stop(text, symbol) {
  text.querySelectorAll("[tabindex='0']").forEach((other) => (other.tabIndex = -1));
  symbol.tabIndex = 0;
}

function listenTo(text, explain) {
  text.addEventListener("keydown", (event) => {
    const step = arrowStep(event), all = [...text.querySelectorAll(".cw-symbol")];
    if (step) all[(all.indexOf(event.target) + step + all.length) % all.length].focus();
  });
  for (const name of ["mouseover", "focusin"])
    text.addEventListener(name, ({ target }) => {
      if (target.dataset.symbol === undefined) return;
      explain(target.dataset.symbol);
      if (name === "focusin") stop(text, target);
    });
}

/** The text, and draw(view, merges), which returns how many symbols it has; explain(symbol) is what pointing does. */
export function makeText(explain) {
  const node = el("div", { class: "cw-text" });
  let groups = []; // a node for each word of the text, and what it shows
  listenTo(node, explain);
  const draw = ({ words, order, steps }, merges) => {
    const newest = merges ? steps[merges - 1].pair.join("") : null;
    const cut = words.map((word) => symbolsOf(word, merges));
    if (groups.length !== order.length)
      groups = order.map(() => ({ node: el("span", { class: "cw-word" }), shown: null }));
    order.forEach((index, place) => { // most words stay as they are from step to step
      const group = groups[place], shown = JSON.stringify([cut[index], cut[index].includes(newest) && newest]);
      if (group.shown === shown) return;
      group.shown = shown;
      group.node.replaceChildren(...cut[index].map((symbol) => drawSymbol(symbol, newest)));
    });
    if (node.firstChild !== groups[0].node) node.replaceChildren(...groups.map((group) => group.node));
    stop(node, node.querySelector(".cw-symbol"));
    return order.reduce((sum, index) => sum + cut[index].length, 0);
  };
  return { node, draw };
}
