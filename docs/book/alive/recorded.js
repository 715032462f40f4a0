// Widgets that move over recorded states: what a kernel would answer was computed when the page was made.

import { element } from "./elements.js";
import { Traits } from "./traits.js";

/** A trait's value, from how notebooks/source/book_recorded.py packs it. */
function opened(value) {
  const { base64, float32 } = value?.packed ?? {};
  if (base64 === undefined) return value;
  const { buffer } = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new DataView(float32 ? Float64Array.from(new Float32Array(buffer)).buffer : buffer);
}

const openedAll = (state) => Object.fromEntries(Object.entries(state).map(([name, value]) => [name, opened(value)]));

/**
 * Where a control leads that was moved: to a recorded value, the nearest on the side that it was moved to.
 * @param {boolean} turns whether the first one follows the last
 */
export function landing(values, before, wanted, turns = false) {
  if (values.includes(wanted)) return wanted;
  if (typeof wanted !== "number") return before;
  const beyond = values.filter((value) => (wanted > before ? value > before : value < before));
  if (!beyond.length) return turns ? values[0] : before;
  const apart = (value) => Math.abs(value - wanted);
  return beyond.reduce((best, value) => (apart(value) < apart(best) ? value : best));
}

/** The number of a combination of values, of which the last changes first. */
const numberOf = (inputs, values) => Object.entries(inputs).reduce((number, [name, recorded]) =>
  number * recorded.length + recorded.indexOf(values[name]), 0);

/**
 * What a widget's script takes for its kernel's model.
 * @param {object} recording what notebooks/source/book_recorded.py wrote
 * @param {function} say is told, in words, when a control went elsewhere than it was moved
 */
export function replayed({ start, tables, turns }, say = () => {}) {
  const recorded = Object.assign({}, ...tables.map(({ inputs }) => inputs)), settled = {};
  for (const name of Object.keys(recorded)) settled[name] = start[name];
  const answer = async (values) => {
    const chosen = {}, elsewhere = [];
    for (const [name, known] of Object.entries(recorded)) {
      chosen[name] = landing(known, settled[name], values[name], turns.includes(name));
      if (chosen[name] !== values[name]) elsewhere.push(`${name} ${values[name]} is not recorded: ${chosen[name]} is`);
    }
    const found = {};
    for (const { inputs, at, states } of tables)
      if (Object.keys(inputs).some((name) => chosen[name] !== settled[name]))
        Object.assign(found, openedAll(states[at[numberOf(inputs, chosen)]]));
    Object.assign(settled, chosen);
    for (const name of Object.keys(recorded)) settled[name] = found[name] ?? settled[name];
    for (const [name, value] of Object.entries(settled)) if (value !== values[name]) found[name] = value;
    say(elsewhere.join("; "));
    return found;
  };
  return new Traits(openedAll(start), answer);
}

/** Switches off the controls with these words, because nothing is recorded where they lead. */
export function switchOff(root, words) {
  for (const each of words) {
    const found = [...root.querySelectorAll("label, button")].find((node) => node.textContent === each);
    const control = found.htmlFor ? root.querySelector(`#${found.htmlFor}`) : found;
    control.disabled = true;
    control.title = "not recorded";
  }
}

/** A choice of the recorded sentences, where there are several. */
function examples({ tables }, model) {
  const texts = tables[0].inputs.text ?? [];
  if (!texts.length) return [];
  const id = `alive-${Math.random().toString(36).slice(2)}`;
  const choice = element("select", { id }, ...texts.map((text) => element("option", {}, text)));
  choice.addEventListener("change", () => {
    model.set("text", texts[choice.selectedIndex]);
    model.save_changes();
  });
  return [element("p", { className: "alive-examples" }, element("label", { htmlFor: id }, "recorded: "), choice)];
}

/** What stands around a widget: its examples, the line that tells where a control went, and what is recorded. */
export function frame(recording, model, told, { root, line, home }) {
  const note = element("p", { className: "course-widget" }, `This page has recorded ${told}. `);
  note.append(...(home ? [home.cloneNode(true), " for all else."] : []));
  return [...examples(recording, model), root, line, note];
}
