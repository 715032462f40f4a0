// Puts the living widgets into a page: each element of class "alive" names one, and the sentence that it begins with;
// or a recording, over whose states the widget moves.

import { element } from "./elements.js";
import { Engine } from "./engine.js";
import { frame, replayed, switchOff } from "./recorded.js";
import * as widgets from "./widgets.js";

const here = (name) => new URL(name, import.meta.url).href;
const engines = new Map(); // by the model's name: loading, or loaded
const LOADS = "Start it here, in your browser (loads up to 23 MB, once)";
const MOVES = "Operate it here, over recorded states";

function load(name) {
  return Engine.load({ model: here(`models/${name}/`), runtime: here("runtime/") }, (share) => {
    for (const bar of document.querySelectorAll(`.alive[data-model="${name}"] progress`)) bar.value = share;
  });
}

async function started(place) {
  const { widget, text, model: name, examples = "" } = place.dataset;
  if (!engines.has(name)) engines.set(name, load(name));
  const model = await widgets[widget](await engines.get(name), text, examples.split("|").filter(Boolean));
  const root = element("div", { className: "alive-widget" });
  return { script: widget, model, root, parts: [root] };
}

async function recalled(place) {
  const { recorded: name, told } = place.dataset, answer = await fetch(here(`recorded/${name}.json`));
  if (!answer.ok) throw new Error(`the recording cannot be read: ${answer.status} ${answer.statusText}`);
  const recording = await answer.json(), line = element("p", { className: "alive-line", role: "status" });
  const root = element("div", { className: "alive-widget" });
  const model = replayed(recording, (words) => (line.textContent = words));
  const finish = () => switchOff(root, recording.off);
  return { script: name, model, root, parts: frame(recording, model, told, { root, line, home: place.home }), finish };
}

/** Loads what the widget needs, if it is not there yet, and puts it into its place. */
async function wake(place) {
  place.home ||= place.querySelector(".course-widget a");
  const held = place.contains(document.activeElement);
  const bar = element("progress", { max: 1, value: 0, ariaLabel: "loading the translator" });
  const told = element("span", { role: "status" }, "The translator is loading …");
  if (!place.dataset.recorded) place.replaceChildren(element("p", { className: "alive-loading" }, told, bar));
  try {
    const { script, model, root, parts, finish } = await (place.dataset.recorded ? recalled : started)(place);
    const { default: widget } = await import(here(`${script}.js`));
    place.replaceChildren(...parts);
    await widget.render({ model, el: root });
    finish?.();
    place.closest(".cell_output")?.classList.add("alive-here"); // its first state goes
    if (held) Object.assign(root, { tabIndex: -1 }).focus({ preventScroll: true });
  } catch (error) {
    engines.delete(place.dataset.model); // the next try loads again
    place.replaceChildren(element("p", { className: "alive-failed", role: "alert" }, error.message), again(place));
  }
}

function again(place, words = "Try again") {
  return element("button", { type: "button", onclick: () => wake(place) }, words);
}

for (const place of document.querySelectorAll(".alive"))
  if (place.hasAttribute("data-now")) wake(place);
  else place.append(again(place, place.dataset.recorded ? MOVES : LOADS));
