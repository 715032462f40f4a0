import { makeFilm } from "./attention_explorer/film.js";
import { headsOf, isOff, isThere, KINDS } from "./attention_explorer/maps.js";
import { makeOutput } from "./attention_explorer/output.js";
import { makeStage } from "./attention_explorer/stage.js";
import { choice, countTo, labelled, textRow } from "./shared/controls.js";
import { el, fill, row, status, unique } from "./shared/dom.js";
import { refill } from "./shared/focus.js";
import { listen, onceAFrame, send } from "./shared/model.js";
import { grouped } from "./shared/numbers.js";

const KIND_WORDS = {
  encoder: "encoder: English looks at English",
  decoder: "decoder: German looks back",
  cross: "cross: German looks at English",
};

/** The box that switches the chosen heads off, and a button for all that are. */
function drawOff(model, node) {
  if (!isThere(model)) return;
  const [kind, layer, head] = ["kind", "layer", "head"].map((name) => model.get(name));
  const chosen = head < 0 ? [...Array(headsOf(model)[layer]).keys()] : [head], silent = model.get("silent");
  const box = el("input", { type: "checkbox", "data-key": "off" });
  box.checked = chosen.every((each) => isOff(model, each));
  box.addEventListener("change", () => {
    const others = silent.filter((each) => each[0] !== kind || each[1] !== layer || !chosen.includes(each[2]));
    send(model, { silent: box.checked ? others.concat(chosen.map((number) => [kind, layer, number])) : others });
  });
  const all = { "data-key": "on", disabled: !silent.length, onclick: () => send(model, { silent: [] }) };
  const words = silent.length ? `all on again (${silent.length} off)` : "all on again";
  const label = head < 0 ? "switch off all of this layer" : "switch this head off";
  refill(node, labelled(label, box), el("button", all, words));
}

function drawMessage(model, message) {
  const { text, before, frame, written } = model.get("view"), problem = model.get("message");
  const film = model.get("film"), told = before && before !== text ? `${text} (before: ${before})` : text || "";
  message.classList.toggle("cw-error", Boolean(problem));
  message.textContent = problem || (film ? `Step ${grouped(film.steps[frame])} writes: ${written}` : told);
}

/** The choice of an attention, a layer and a head. */
function choices(model) {
  const kinds = KINDS.map((kind) => [kind, KIND_WORDS[kind]]);
  return [
    choice(model, "kind", { label: "attention", options: kinds }),
    choice(model, "layer", { label: "layer", options: () => countTo(headsOf(model).length), depends: ["kind"] }),
    choice(model, "head", { label: "head", options: () => [[-1, "all"], ...countTo(headsOf(model)[0])],
      depends: ["kind", "layer"] }),
  ];
}

function render({ model, el: root }) {
  const examples = model.get("examples").map((text) => el("option", { value: text }));
  const list = el("datalist", { id: unique("cw-examples") }, ...examples);
  const message = status(), off = el("span", { class: "cw-control" }), [kind, layer, head] = choices(model);
  const stage = makeStage(model, (number) => { // its button goes: the focus moves on to the list of heads
    send(model, { head: number });
    head.querySelector("select").focus();
  });
  const { output, rivals, draw } = makeOutput(model, (index) => {
    if (model.get("kind") !== "encoder") stage.focus.set(index, null); // whose rows are English
  });
  const question = "Which head finds the word that is being translated? Force another German token: what follows? " +
    "Switch heads off: which ones are missed?";
  const film = model.get("film") ? makeFilm(model) : null;
  fill(root, film ? film.question : question,
    textRow(model, { label: "English", button: "Translate", list: list.id }, list),
    row(kind, layer, head, off),
    ...(film ? [film.controls] : []),
    message, output, rivals, stage.node, stage.details,
    ...(film ? film.findings : []));
  listen(model, ["view", "shown", "forced"], draw);
  listen(model, ["view", "message"], () => drawMessage(model, message));
  listen(model, ["kind", "layer", "head", "view", "weights", "shown", "silent"], onceAFrame(() => {
    stage.draw();
    drawOff(model, off);
  }));
}

export default { render };
