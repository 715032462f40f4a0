import { describe, searchOf } from "./beam_tree_explorer/search.js";
import { drawTree } from "./beam_tree_explorer/tree.js";
import { refusal, slider, textRow, toggle } from "./shared/controls.js";
import { el, fill, listing, row, status, svg, together } from "./shared/dom.js";
import { roving } from "./shared/focus.js";
import { listen, unhurried } from "./shared/model.js";
import { signed } from "./shared/numbers.js";

const COLUMNS = ["rank", "output", "tokens", "log-probability", "score", "at α = 0"];
const KINDS = {
  winner: "best output", kept: "kept", finished: "finished", unfinished: "unfinished", dropped: "dropped",
};

/** The outputs under the present penalty, best first, and where each stood without one. */
function drawRanking({ nodes, outputs, scores, best, unpenalized }, focus) {
  const rows = best.map((index, place) => {
    const before = unpenalized.indexOf(index) + 1, { step, total } = nodes[index];
    const moved = before === place + 1 ? "" : before ? `was ${before}` : "was not among the best";
    const words = [place + 1, outputs.get(index) || "(empty)", step, signed(total), signed(scores.get(index)), moved];
    const point = () => focus.set(index), looks = { "data-node": index, class: place ? "" : "cw-first" };
    const cells = words.map((each) => el("td", {}, String(each)));
    return el("tr", { ...looks, onmouseenter: point, onfocus: point }, ...cells);
  });
  roving(rows);
  return listing(COLUMNS, rows);
}

function drawLooks() {
  const sample = (kind) => svg("svg", { width: 26, height: 16 },
    svg("g", { class: `cw-node cw-${kind}` }, svg("rect", { x: 2, y: 2, width: 22, height: 12, rx: 3 })));
  const looks = Object.entries(KINDS).map(([kind, words]) => together(sample(kind), words));
  return el("span", { class: "cw-row cw-muted" }, ...looks);
}

function controls(model) {
  const penalty = { label: "length penalty α", min: 0, max: 3, step: 0.05, format: (value) => value.toFixed(2) };
  return row(slider(model, "beam_size", { label: "beam size", min: 1, max: 6 }),
    slider(model, "length_penalty", penalty),
    toggle(model, "dropped", { label: "show what was dropped" }));
}

function render({ model: kernel, el: root }) {
  const model = unhurried(kernel); // the kernel has nothing to do for a slider
  let search = null, tree = null;
  const hint = "Point at a box, or walk through the tree with Tab and the arrow keys.";
  const focus = { node: null, set(index) {
    focus.node = index;
    tree.point();
    details.textContent = index === null ? hint : describe(search, model.get("length_penalty"), index);
  } };
  const details = status("cw-details"), ranking = el("div", { class: "cw-ends" });
  const stage = el("div", { class: "cw-scroll", onmouseleave: () => focus.set(null) });
  const rank = () => { // the tree stays, its winner may change
    search = searchOf(model);
    tree.crown(search.best[0]);
    ranking.replaceChildren(drawRanking(search, focus));
    focus.set(null);
  };
  const draw = () => {
    tree = drawTree(searchOf(model).nodes, model.get("dropped"), focus);
    stage.replaceChildren(tree.picture);
    rank();
  };
  root.classList.add("cw-beam");
  const question = "From which beam size on does the search find something more probable than greedy search, which " +
    "is beam 1? At which step would a narrower beam have dropped it? Does a length penalty α choose another output?";
  fill(root, question, textRow(model, { label: "English", button: "Search" }), controls(model),
    refusal(kernel), stage, drawLooks(), details, ranking);
  listen(model, ["beams", "beam_size", "dropped"], draw);
  listen(model, "length_penalty", rank);
}

export default { render };
