import { describe, reshaped } from "./sampling_sliders/reshape.js";
import { drawBars, drawSample } from "./sampling_sliders/views.js";
import { refusal, slider, textRow } from "./shared/controls.js";
import { el, fill, muted, row, status } from "./shared/dom.js";
import { roving } from "./shared/focus.js";
import { listen, numbers, send, unhurried } from "./shared/model.js";

const SETTINGS = ["temperature", "top_k", "top_p", "seed"];
const OWN = [1, 0, 1]; // settings that change nothing

const settingsOf = (model) => SETTINGS.map((name) => model.get(name));

/** The bars, and the words below them; `rebuild` takes another distribution, `reshape` other settings. */
function makeChart(kernel, model) {
  const stage = el("div", {}), details = status("cw-details");
  const outline = el("div", { class: "cw-muted" }, "outline: the model's own probability; filled: what is drawn with");
  let logProbs = new Float64Array(0), chart = null;
  const reshape = () => {
    const probs = reshaped(logProbs, settingsOf(model));
    chart.update(reshaped(logProbs, OWN), probs);
    details.textContent = describe(probs);
  };
  const rebuild = () => {
    logProbs = numbers(kernel.get("log_probs"), Float64Array);
    chart = drawBars(kernel.get("tokens"), logProbs.length);
    stage.replaceChildren(chart.picture);
    reshape();
  };
  return { node: el("div", { class: "cw-left" }, stage, outline, details), reshape, rebuild };
}

/** The tokens of the greedy translation as buttons: a click chooses the place of one. */
function makePlaces(kernel) {
  const node = el("div", { class: "cw-row", role: "group", "aria-label": "place in the translation" });
  let buttons = [];
  const choose = () => buttons.forEach((button, place) => {
    const chosen = place === kernel.get("place"), token = kernel.get("pieces")[place];
    button.setAttribute("aria-pressed", String(chosen));
    button.textContent = chosen ? `${token} ?` : token;
  });
  const write = () => {
    buttons = kernel.get("pieces").map((_, place) =>
      el("button", { class: "cw-piece", onclick: () => send(kernel, { place }) }));
    roving(buttons);
    node.replaceChildren(muted("next token after <s>"), ...buttons);
    choose();
  };
  listen(kernel, "pieces", write);
  listen(kernel, "place", choose);
  return node;
}

/** The sample; it looks old until the kernel has drawn another one, or has refused the sentence. */
function makeSample(kernel, model) {
  const node = el("div", { class: "cw-sample" });
  const age = () => {
    const { settings } = kernel.get("drawn"), present = settingsOf(model);
    if (!kernel.get("message")) present.push(kernel.get("text"));
    node.classList.toggle("cw-stale", present.some((value, index) => value !== settings[index]));
  };
  listen(kernel, "drawn", () => node.replaceChildren(...drawSample(kernel.get("drawn"))));
  listen(model, [...SETTINGS, "drawn"], age);
  listen(kernel, ["text", "message"], age);
  return node;
}

function sliders(model) {
  const two = (value) => value.toFixed(2), off = (isOn, words) => (value) => (isOn(value) ? words(value) : "off");
  const limited = { format: off((value) => value < 1, two) }, counted = { format: off(Boolean, String) };
  return row(
    slider(model, "temperature", { label: "temperature", min: 0.05, max: 5, step: 0.05, format: two }),
    slider(model, "top_k", { label: "top-k", min: 0, max: 50, ...counted }),
    slider(model, "top_p", { label: "top-p", min: 0.05, max: 1, step: 0.05, ...limited }),
    slider(model, "seed", { label: "seed", min: 0, max: 99 }));
}

function render({ model: kernel, el: root }) {
  const model = unhurried(kernel); // the kernel draws when the sliders rest
  const { node, reshape, rebuild } = makeChart(kernel, model);
  root.classList.add("cw-sampling");
  const question = "Make most of the draws what greedy search writes: how far down must the temperature go, and does " +
    "a cut do it without? Click a token to see the distribution at its place: where is the model sure, and what do " +
    "top-k and top-p keep there?";
  fill(root, question, textRow(model, { label: "English", button: "Translate" }), refusal(kernel), makePlaces(kernel),
    sliders(model), el("div", { class: "cw-row cw-stage" }, node, makeSample(kernel, model)));
  listen(kernel, ["tokens", "log_probs"], rebuild);
  listen(model, SETTINGS, reshape);
}

export default { render };
