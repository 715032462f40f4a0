// Colors of numbers, mixed from those of the page.

/** The color of a weight in 0..1, between the page and the accent. */
export function shade(weight) {
  return `color-mix(in srgb, var(--cw-accent) ${(100 * weight).toFixed(1)}%, var(--cw-page))`;
}

const BEHIND = 0.5; // of a color: on more, text would be hard to read in dark pages

/** The color of a weight in 0..1 behind text. */
export function behind(weight) {
  return shade(BEHIND * weight);
}

/** The color of a signed number in -1..1 behind text, as in the figures: blue below 0, the page at 0, orange above. */
export function tint(value) {
  const side = value < 0 ? "accent" : "second";
  const share = (100 * BEHIND * Math.min(1, Math.abs(value))).toFixed(1);
  return `color-mix(in srgb, var(--cw-${side}) ${share}%, var(--cw-page))`;
}

/** A background that is filled to a share of its width. */
export function filled(share) {
  return `background: linear-gradient(to right, ${shade(0.35)} ${(100 * share).toFixed(1)}%, transparent 0)`;
}

/** How the line of that number looks. */
export function stroke(number) {
  const colors = ["var(--cw-accent)", "var(--cw-second)", "var(--cw-ink)", "var(--cw-faint)"];
  const dashes = ["", "6 3", "2 2", "8 2 2 2", "1 4"];
  return { stroke: colors[number % 4], "stroke-width": 2, "stroke-dasharray": dashes[number % 5] };
}
