import { arrows } from "./shared/controls.js";
import { el, fill, row, status, unique } from "./shared/dom.js";
import { refill } from "./shared/focus.js";
import { listen, send } from "./shared/model.js";
import { evidence } from "./errata_lab/evidence.js";

const VERDICTS = ["right", "half right", "wrong"];
const QUESTION = "Judge each claim before you see its numbers: how often do you say what the experiment says?";

const present = (model) => model.get("claims")[model.get("chosen")];
const answerTo = (model, claim) => model.get("answers")[claim.number];

/** The list of claims, by group; what is judged carries a mark. */
function chooser(model, go) {
  const input = el("select", { id: unique("cw-control"), "data-lm-suppress-shortcuts": "true" });
  const option = (claim, index) => {
    const given = answerTo(model, claim), mark = given ? (given === claim.verdict ? "✓ " : "✗ ") : "";
    return el("option", { value: index }, `${mark}${claim.number}. ${claim.said}`);
  };
  input.addEventListener("change", () => go(Number(input.value)));
  listen(model, ["chosen", "answers"], () => {
    const groups = new Map();
    model.get("claims").forEach((claim, index) => {
      if (!groups.has(claim.group)) groups.set(claim.group, el("optgroup", { label: claim.group }));
      groups.get(claim.group).append(option(claim, index));
    });
    input.replaceChildren(...groups.values());
    input.value = model.get("chosen");
  });
  return el("span", { class: "cw-control cw-chooser" }, el("label", { for: input.id }, "claim"), input);
}

/** Three buttons; the one that was pressed stays so. */
function judges(model) {
  const claim = present(model), given = answerTo(model, claim);
  const judge = (verdict) => send(model, { answers: { ...model.get("answers"), [claim.number]: verdict } });
  return row(...VERDICTS.map((verdict) => el("button", {
    "data-key": verdict, "aria-pressed": String(verdict === given), onclick: () => judge(verdict) }, verdict)));
}

function scoreOf(model) {
  const claims = model.get("claims"), judged = claims.filter((claim) => answerTo(model, claim));
  const agreed = judged.filter((claim) => answerTo(model, claim) === claim.verdict).length;
  return `judged ${judged.length} of ${claims.length}, ${agreed} of them as the experiment does`;
}

function render({ model, el: root }) {
  const last = model.get("claims").length - 1;
  const go = (chosen) => send(model, { at: 0, chosen }); // in this order: what is shown of the next one reads `at`
  const step = arrows("claim", (by) => go(Math.max(0, Math.min(last, model.get("chosen") + by))));
  const said = el("div", { class: "cw-said" }), buttons = el("div", {}), told = el("div", {}), score = status();
  listen(model, ["chosen", "answers"], () => {
    const claim = present(model), chosen = model.get("chosen");
    said.textContent = `“${claim.said}”`;
    refill(buttons, judges(model));
    told.replaceChildren(...(answerTo(model, claim) ? evidence(model, claim, answerTo(model, claim)) : []));
    score.textContent = scoreOf(model);
    step.show({ first: chosen === 0, last: chosen === last });
  });
  fill(root, QUESTION, row(chooser(model, go), step.back, step.on), said, buttons, told, score);
  root.classList.add("cw-errata");
}

export default { render };
