// The translation, token by token, and what else might have stood at the place of one.

import { filled } from "../shared/colors.js";
import { el, muted, together } from "../shared/dom.js";
import { refill, roving } from "../shared/focus.js";
import { send } from "../shared/model.js";
import { clamp } from "../shared/numbers.js";
import { shownOf, UNWRITTEN } from "./maps.js";

function drawTokens(model, place, choose) {
  const { tgt, probabilities } = model.get("view"), shown = shownOf(model), forced = model.get("forced").length;
  const tokens = tgt.map((token, index) => {
    if (index >= shown)
      return el("button", { class: "cw-piece", disabled: true, "aria-label": "not written yet" }, UNWRITTEN);
    const title = `probability ${probabilities[index].toFixed(3)}`, pressed = String(place === index);
    const looks = { class: "cw-piece", "data-key": index, "aria-pressed": pressed, title };
    return el("button", { ...looks, onclick: () => choose(index) }, token, index < forced ? " ✎" : "");
  });
  roving(tokens.slice(0, shown));
  return tokens;
}

function drawSteps(model, free) {
  const count = model.get("view").tgt.length, shown = shownOf(model);
  const button = (key, name, disabled, onclick, words) =>
    el("button", { "data-key": key, "aria-label": name, disabled, onclick }, words);
  const step = (by) => () => send(model, { shown: clamp(shown + by, 1, count) });
  return together(
    button("back", "one token back", shown <= 1, step(-1), "◀"),
    button("on", "one token on", shown >= count, step(1), "▶"),
    button("free", null, !model.get("forced").length, free, "as the model likes"));
}

function drawRivals(model, place) {
  const { ids, tgt, candidates } = model.get("view");
  if (place === null || place >= shownOf(model))
    return [muted("Click a German token to see what else might have stood there.")];
  const rivals = candidates[place].map(([id, token, probability]) => {
    const force = () => send(model, { forced: ids.slice(0, place).concat([id]) });
    const looks = { "data-key": id, disabled: token === "</s>" || id === ids[place], style: filled(probability) };
    return el("button", { ...looks, onclick: force }, `${token} ${probability.toFixed(3)}`);
  });
  return [muted(`instead of ${tgt[place]}:`), ...rivals];
}

/** Whose German it is: that of a film is not always what the present step writes. */
function whose(model) {
  if (!model.get("film")) return "German";
  return model.get("view").own ? "German, its own" : "German, the finished model's";
}

/** Both rows, and what draws them; a token that is chosen is told to `point`. */
export function makeOutput(model, point) {
  const output = el("div", { class: "cw-row cw-output" });
  const rivals = el("div", { class: "cw-row cw-rivals" });
  let place = null; // of the token whose rivals are shown
  const choose = (index) => {
    place = index;
    draw();
    point(index);
  };
  const free = () => {
    place = null;
    send(model, { forced: [] });
  };
  const draw = () => {
    if (!model.get("view").src) return;
    refill(output, muted(whose(model)), ...drawTokens(model, place, choose), drawSteps(model, free));
    refill(rivals, ...drawRivals(model, place));
  };
  return { output, rivals, draw };
}
