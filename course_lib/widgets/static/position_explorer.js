import { makeClocks } from "./position_explorer/clocks.js";
import { product, TRAITS } from "./position_explorer/encoding.js";
import { makeProducts } from "./position_explorer/products.js";
import { makeTable } from "./position_explorer/table.js";
import { choice, slider } from "./shared/controls.js";
import { el, fill, row, status } from "./shared/dom.js";
import { listen, send, unhurried } from "./shared/model.js";
import { grouped, signed } from "./shared/numbers.js";
import { watchTheme } from "./shared/pixels.js";

/** Both dot products in words. */
function tell(now) {
  const said = (on) => {
    const first = now.first + on, second = now.second + on;
    return `PE(${first}) · PE(${second}) = ${signed(product(first, second, now))}`;
  };
  const moved = now.offset ? `; ${now.offset} words on, ${said(now.offset)}` : "";
  return `${said(0)} of at most ${now.d_model / 2}${moved}`;
}

/** The sliders of both positions, and what keeps them inside the table. */
function positionSliders(model) {
  const names = ["first", "second"], max = model.get("limits").length - 1;
  const sliders = names.map((name) => slider(model, name, { label: `${name} position`, min: 0, max }));
  const show = (now) => names.forEach((name, index) =>
    Object.assign(sliders[index].querySelector("input"), { max: now.length - 1, value: now[name] }));
  return { sliders, show };
}

function sizes(model) {
  const limits = model.get("limits"), bases = limits.bases.map((base) => [base, grouped(base)]);
  return row(
    slider(model, "length", { label: "length", min: 2, max: limits.length }),
    slider(model, "d_model", { label: "d_model", min: 2, max: limits.d_model, step: 2 }),
    choice(model, "base", { label: "base", options: bases }));
}

function render({ model: kernels, el: root }) {
  const model = unhurried(kernels), set = (changes) => send(model, changes);
  const stateOf = () => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const told = status(), details = status("", "Point at the table; drag its marks, or along the curve.");
  const table = makeTable(stateOf, set, (words) => (details.textContent = words));
  const products = makeProducts(stateOf, set), clocks = makeClocks();
  const { sliders, show } = positionSliders(model);
  const refresh = () => {
    const now = stateOf(), last = now.length - 1;
    if (now.first > last || now.second > last) // the kernel does the same
      return set({ first: Math.min(now.first, last), second: Math.min(now.second, last) });
    for (const draw of [show, table.draw, products.draw, clocks.draw]) draw(now);
    told.textContent = tell(now);
  };
  const question = "Slide the offset: both positions move on together. What becomes of their dot product, and of " +
    "each hand? Then d_model 4 and base 10: which far positions look near?";
  const legend = "Long hand: first, short: second; dashed: moved on by the offset, which turns the hand by so many " +
    "radians.";
  const words = el("div", { class: "cw-muted" }, legend);
  const beside = el("div", { class: "cw-beside" }, products.node, words, clocks.node);
  fill(root, question, sizes(model),
    row(...sliders, slider(model, "offset", { label: "offset", min: 0, max: model.get("limits").offset })),
    told, el("div", { class: "cw-row cw-stage" }, table.node, beside), details);
  listen(model, TRAITS, refresh);
  return watchTheme(root, () => table.recolor(root)); // pixels do not change with the theme by themselves
}

export default { render };
