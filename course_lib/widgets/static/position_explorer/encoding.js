// Sinusoids, as course_lib computes them.

import { dot } from "../shared/numbers.js";

export const TRAITS = ["length", "d_model", "base", "first", "second", "offset"];

const known = { table: "", rows: [] };

/** What course_lib's sinusoidal has in a row, here for each frame of a drag; a test proves them equal. */
export function encoding(position, { d_model, base }) {
  const table = `${d_model} ${base}`;
  if (known.table !== table) Object.assign(known, { table, rows: [] });
  return known.rows[position] ||= Array.from({ length: d_model }, (_, dimension) => {
    const angle = position / base ** ((dimension - (dimension % 2)) / d_model);
    return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** In how many words the wave of a pair of dimensions comes round. */
export const wavelength = (pair, { d_model, base }) => 2 * Math.PI * base ** ((2 * pair) / d_model);

/** The dot product of two positions. */
export const product = (first, second, now) => dot(encoding(first, now), encoding(second, now));
