import { el, fill, muted, row, status, together, unique } from "./shared/dom.js";
import { enterLeaves, leave } from "./shared/focus.js";
import { listen, send } from "./shared/model.js";

const KEYS = { "data-lm-suppress-shortcuts": "true" }; // arrow keys choose here, and do not leave the cell

/** A change waits while the kernel works at the last one; the message does not, and is there before what runs next. */
function keep(model, answer) {
  send(model, { answer });
  model.send({ answer });
}

/** Words in pieces: pairs of a tag and its text. */
const words = (pieces) => pieces.map(([tag, text]) => el(tag, {}, text));

/** The choices, of which one can be taken; beside them, once it is known, which was taken and which is the result. */
function makeChoices(model, { choices }, labelledby) {
  const name = unique("cw-predict"); // of this view alone
  const options = choices.map((choice, index) => {
    const box = el("input", { type: "radio", name, ...KEYS, onchange: () => keep(model, index) });
    const text = el("span", {}, ...words(choice)), beside = muted("");
    return { box, text, beside, node: el("label", {}, box, text, beside) };
  });
  const show = (answer, outcome) => options.forEach(({ box, text, beside }, index) => {
    const result = Boolean(outcome) && outcome.choice === index;
    box.checked = answer === index;
    text.classList.toggle("cw-result", result);
    const notes = [...(result ? ["the result"] : []), ...(outcome && answer === index ? ["your prediction"] : [])];
    beside.textContent = notes.length ? `← ${notes.join(", and ")}` : "";
  });
  const node = el("div", { class: "cw-options", role: "radiogroup", "aria-labelledby": labelledby });
  node.append(...options.map((option) => option.node));
  return { node, show, inputs: options.map(({ box }) => box) };
}

/** A box for a number; beside it, once it is known, the result. */
function makeNumber(model, { unit, allowance }, labelledby) {
  const looks = { class: "cw-predict-number", type: "number", step: "any", "aria-labelledby": labelledby };
  const input = el("input", { ...looks, ...KEYS });
  const typed = () => (Number.isFinite(input.valueAsNumber) ? input.valueAsNumber : null);
  input.addEventListener("input", () => keep(model, typed()));
  const beside = el("span", {});
  const show = (answer, outcome) => {
    const typing = !outcome && document.activeElement === input; // what the kernel says is older
    if (!typing && typed() !== answer) input.value = answer === null ? "" : answer;
    beside.replaceChildren(...(outcome ? [muted("the result: "), ...words(outcome.result)] : [muted(allowance)]));
    beside.classList.toggle("cw-result", Boolean(outcome));
  };
  return { node: row(together(input, unit), beside), show, inputs: [input] };
}

function render({ model, el: root }) {
  const asked = model.get("asked"), id = unique("cw-question"), told = status();
  const { node, show, inputs } = (asked.choices.length ? makeChoices : makeNumber)(model, asked, id);
  const refresh = () => {
    const found = model.get("outcome"), outcome = "told" in found ? found : null;
    const answer = outcome ? outcome.answer : model.get("answer"); // what came later does not count
    show(answer, outcome);
    if (outcome && inputs.includes(document.activeElement)) leave(root);
    inputs.forEach((input) => (input.disabled = Boolean(outcome)));
    const first = answer === null ? "Predict, then run the next cell." : "Kept. Now run the next cell.";
    told.replaceChildren(...(outcome ? words(outcome.told) : [first]));
  };
  root.classList.add("cw-predict");
  fill(root, el("span", { id }, ...words(asked.question)), node, told);
  enterLeaves(root);
  listen(model, ["answer", "outcome"], refresh);
}

export default { render };
