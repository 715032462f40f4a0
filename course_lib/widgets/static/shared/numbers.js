// Arithmetic of what is shown, and numbers in words.

/** Round numbers from low to high, about `count` of them. */
export function ticks(low, high, count = 5) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
  const found = [];
  for (let index = Math.ceil(low / step); index * step <= high + step / 1e6; index++)
    found.push(index * step || 0); // never −0
  return found;
}

/** 1, 2 and 5 times the powers of ten, from low to high, both above 0. */
export function logTicks(low, high) {
  const powers = Array.from({ length: 2 + Math.ceil(Math.log10(high / low)) }, (_, index) => index);
  const found = powers.flatMap((index) => [1, 2, 5].map((each) => each * 10 ** (Math.floor(Math.log10(low)) + index)));
  return found.filter((tick) => tick > low * (1 - 1e-9) && tick < high * (1 + 1e-9));
}

/** The place of the value that is nearest. */
export function nearest(values, wanted) {
  const apart = (place) => Math.abs(values[place] - wanted);
  return values.reduce((best, _, place) => (apart(place) < apart(best) ? place : best), 0);
}

/** The number, or the end of the range that it is beyond. */
export function clamp(number, low, high) {
  return Math.max(low, Math.min(high, number));
}

/** Sum of products. */
export function dot(a, b) {
  return a.reduce((sum, each, index) => sum + each * b[index], 0);
}

/** Shares of the scores where open(index) is true, 0 elsewhere; null where none is open. */
export function softmax(scores, open = () => true) {
  const largest = Math.max(...scores.filter((_, index) => open(index)));
  if (largest === -Infinity) return null;
  const exponentials = scores.map((score, index) => (open(index) ? Math.exp(score - largest) : 0));
  const total = exponentials.reduce((sum, each) => sum + each, 0);
  return exponentials.map((each) => each / total);
}

/** A number with a power of ten where it is small or large; base.py writes it likewise. */
export function short(value, digits = 1) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e6)) {
    const [factor, power] = value.toExponential(digits).split("e").map(Number);
    const raised = [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
    return `${factor === 1 ? "" : `${factor}·`}10${raised}`;
  }
  return value.toLocaleString("en-US", { maximumFractionDigits: digits + 2 });
}

/** A count with commas between its thousands; below 100 it may have a decimal. */
export function grouped(number) {
  return number.toLocaleString("en-US", { maximumFractionDigits: number < 100 ? 1 : 0 });
}

/** A number with a true minus, which 0 has not. */
export function signed(number, digits = 2) {
  return number.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
}

/** A share of 1 in percent. */
export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

/** How many letters a word has: an emoji is one. */
export function lettersOf(word) {
  return [...word].length;
}
