// A table of signed numbers as pixels of a canvas, in the colors of the page.

import { el } from "./dom.js";

/** Red, green and blue of colors, which the page's theme decides. */
function channels(root, ...colors) {
  const probe = el("span", {});
  root.append(probe);
  const found = colors.map((color) => {
    probe.style.color = color;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  });
  probe.remove();
  return found;
}

function pixelsOf(rows, [page, accent, second]) {
  const picture = new ImageData(rows[0].length, rows.length);
  let place = 0;
  for (const row of rows)
    for (const value of row) {
      const color = value < 0 ? accent : second;
      for (let index = 0; index < 3; index++)
        picture.data[place++] = page[index] + Math.abs(value) * (color[index] - page[index]);
      picture.data[place++] = 255;
    }
  return picture;
}

/**
 * A canvas, what draws on it, and what takes the colors of the page once the widget stands on one.
 * `keyOf` tells of a state what its table depends on, `rowsOf` makes the table: rows of numbers in -1..1.
 */
export function makePixels(style, keyOf, rowsOf) {
  const canvas = el("canvas", { class: "cw-pixels", style });
  let colors = null, drawn = ""; // what is on the canvas already
  const draw = (now) => {
    const wanted = JSON.stringify([keyOf(now), colors]);
    if (!colors || wanted === drawn) return;
    drawn = wanted;
    const picture = pixelsOf(rowsOf(now), colors);
    Object.assign(canvas, { width: picture.width, height: picture.height });
    canvas.getContext("2d").putImageData(picture, 0, 0);
  };
  const takeColors = (root) => {
    colors = root.isConnected ? channels(root, "var(--cw-page)", "var(--cw-accent)", "var(--cw-second)") : null;
  };
  return { canvas, draw, takeColors };
}

/** Calls `again` when the theme of the page changes, or the widget comes onto it; returns what ends that. */
export function watchTheme(root, again) {
  const watchers = [new MutationObserver(again), new ResizeObserver(again)];
  for (const node of [document.body, document.documentElement]) watchers[0].observe(node, { attributes: true });
  watchers[1].observe(root); // which is when it comes onto the page
  return () => watchers.forEach((each) => each.disconnect());
}
