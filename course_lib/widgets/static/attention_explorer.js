import { makeFilm } from "./attention_explorer/film.js";
import { headsOf, isOff, isThere, KINDS } from "./attention_explorer/maps.js";
import { makeOutput } from "./attention_explorer/output.js";
import { makeStage } from "./attention_explorer/stage.js";
import { choice, countTo, labelled, textRow } from "./shared/controls.js";
import { el, fill, row, status, unique } from "./shared/dom.js";
import { listen, onceAFrame, send } from "./shared/model.js";
import { grouped } from "./shared/numbers.js";

const KIND_WORDS = {
  encoder: "encoder: English looks at English",
  decoder: "decoder: German looks back",
  cross: "cross: German looks at English",
};

/** The box that switches the chosen heads off, and a button for all that are; they stay, so no click gets lost. */
function makeOff(model) {
  const box = el("input", { type: "checkbox" });
  const all = el("button", { onclick: () => send(model, { silent: [] }) });
  const switching = labelled("", box), label = switching.querySelector("label");
  const node = el("span", { class: "cw-control" }, switching, all);
  const chosen = () => {
    const head = model.get("head");
    return head < 0 ? [...Array(headsOf(model)[model.get("layer")]).keys()] : [head];
  };
  box.addEventListener("change", () => {
    const [kind, layer] = [model.get("kind"), model.get("layer")], heads = chosen();
    const here = (each) => each[0] === kind && each[1] === layer && heads.includes(each[2]);
    const others = model.get("silent").filter((each) => !here(each));
    send(model, { silent: box.checked ? others.concat(heads.map((head) => [kind, layer, head])) : others });
  });
  const draw = () => {
    if (!isThere(model)) return;
    const count = model.get("silent").length;
    box.checked = chosen().every((head) => isOff(model, head));
    label.textContent = model.get("head") < 0 ? "switch off all of this layer" : "switch this head off";
    all.textContent = count ? `all on again (${count} off)` : "all on again";
    if (!count && document.activeElement === all) box.focus({ preventScroll: true }); // a disabled button has no focus
    all.disabled = !count;
  };
  return { node, draw };
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
  const message = status(), off = makeOff(model), [kind, layer, head] = choices(model);
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
    row(kind, layer, head, off.node),
    ...(film ? [film.controls] : []),
    message, output, rivals, stage.node, stage.details,
    ...(film ? film.findings : []));
  listen(model, ["view", "shown", "forced"], draw);
  listen(model, ["view", "message"], () => drawMessage(model, message));
  listen(model, ["kind", "layer", "head", "view", "weights", "shown", "silent"], onceAFrame(() => {
    stage.draw();
    off.draw();
  }));
}

export default { render };
