// Puts the living widgets into a page: each element of class "alive" names one, and the sentence that it begins with.

import { Engine } from "./engine.js";
import * as widgets from "./widgets.js";

const here = (name) => new URL(name, import.meta.url).href;
let engine = null; // in loading, or loaded: one for all of the page

function element(tag, attributes, ...children) {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

async function wake(place) {
  const bar = element("progress", { max: 1, value: 0, ariaLabel: "loading the translator" });
  const told = element("span", { role: "status" }, "The translator is loading …");
  place.replaceChildren(element("p", { className: "alive-loading" }, told, bar));
  const { widget, text, examples = "" } = place.dataset;
  try {
    engine ||= Engine.load({ model: here("model/"), runtime: here("runtime/") }, (share) => {
      document.querySelectorAll(".alive-loading progress").forEach((each) => (each.value = share));
    });
    const model = await widgets[widget](await engine, text, examples.split("|").filter(Boolean));
    const { default: script } = await import(here(`${widget}.js`));
    const root = element("div", { className: "alive-widget" });
    place.replaceChildren(root);
    await script.render({ model, el: root });
  } catch (error) {
    engine = null; // the next try loads again
    place.replaceChildren(element("p", { className: "alive-failed", role: "alert" }, error.message), again(place));
  }
}

function again(place, words = "Try again") {
  return element("button", { type: "button", onclick: () => wake(place) }, words);
}

for (const place of document.querySelectorAll(".alive"))
  if (place.hasAttribute("data-now")) wake(place);
  else place.append(again(place, "Start the translator in this page (about 12 MB)"));
