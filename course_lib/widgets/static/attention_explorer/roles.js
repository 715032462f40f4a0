// Roles of heads: a row for each, a column for each step of the training.

import { behind } from "../shared/colors.js";
import { el } from "../shared/dom.js";
import { send } from "../shared/model.js";
import { grouped } from "../shared/numbers.js";

function drawRole(model, { kind, layer, head, relation, shares, distance }) {
  const pressed = model.get("kind") === kind && model.get("layer") === layer && model.get("head") === head;
  const name = el("button", { "data-key": `${kind} ${relation}`, "aria-pressed": String(pressed),
    title: `show ${kind} ${layer}.${head}`, onclick: () => send(model, { kind, layer, head }) }, relation);
  const cells = shares.map((share, index) => el("td", { style: `background: ${behind(share)}`,
    class: index === model.get("frame") ? "cw-now" : "" }, (100 * share).toFixed(0)));
  const fixed = distance === null ? "" : (100 * distance).toFixed(0);
  return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, `${kind} ${layer}.${head}`), ...cells,
    el("td", {}, fixed));
}

/** The table; a click on a role shows the maps of its head. */
export function drawRoles(model) {
  const { steps, sentences, roles } = model.get("film");
  const columns = ["role", "head", ...steps.map(grouped), "fixed distance"];
  const heads = columns.map((words, index) =>
    el("th", { scope: "col", class: index - 2 === model.get("frame") ? "cw-strong" : "" }, words));
  return el("table", { class: "cw-film" },
    el("caption", {}, `Cases in which a head finds what its role asks for, by step (%, on ${sentences} sentences)`),
    el("thead", {}, el("tr", {}, ...heads)),
    el("tbody", {}, ...roles.map((role) => drawRole(model, role))));
}
