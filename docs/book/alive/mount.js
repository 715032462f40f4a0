// Puts the living widgets into a page: each element of class "alive" names one, and the sentence that it begins with.

import { Engine } from "./engine.js";
import * as widgets from "./widgets.js";

const here = (name) => new URL(name, import.meta.url).href;
const engines = new Map(); // by the model's name: loading, or loaded

function element(tag, attributes, ...children) {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

function load(name) {
  return Engine.load({ model: here(`models/${name}/`), runtime: here("runtime/") }, (share) => {
    for (const bar of document.querySelectorAll(`.alive[data-model="${name}"] progress`)) bar.value = share;
  });
}

/** Loads the translator, if it is not there yet, and puts the widget into its place. */
async function wake(place) {
  const bar = element("progress", { max: 1, value: 0, ariaLabel: "loading the translator" });
  const told = element("span", { role: "status" }, "The translator is loading …");
  place.replaceChildren(element("p", { className: "alive-loading" }, told, bar));
  const { widget, text, model: name, examples = "" } = place.dataset;
  try {
    if (!engines.has(name)) engines.set(name, load(name));
    const model = await widgets[widget](await engines.get(name), text, examples.split("|").filter(Boolean));
    const { default: script } = await import(here(`${widget}.js`));
    const root = element("div", { className: "alive-widget" });
    place.replaceChildren(root);
    await script.render({ model, el: root });
  } catch (error) {
    engines.delete(name); // the next try loads again
    place.replaceChildren(element("p", { className: "alive-failed", role: "alert" }, error.message), again(place));
  }
}

function again(place, words = "Try again") {
  return element("button", { type: "button", onclick: () => wake(place) }, words);
}

for (const place of document.querySelectorAll(".alive"))
  if (place.hasAttribute("data-now")) wake(place);
  else place.append(again(place, "Start it here, in your browser (loads up to 23 MB, once)"));
