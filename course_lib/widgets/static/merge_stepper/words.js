// Merges, symbols and pairs in words.

import { symbolsOf } from "./text.js";

const times = (count) => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);
export const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** A symbol: its number, where it comes from, how often it stands in the text. */
export function explain({ numbers, order, words, steps }, merges, symbol) {
  const timesIn = (word) => symbolsOf(word, merges).filter((each) => each === symbol).length;
  const count = order.reduce((sum, index) => sum + timesIn(words[index]), 0);
  const step = steps.findIndex(({ pair }) => pair.join("") === symbol);
  const from = step < 0 ? "a character" : `made of ${steps[step].pair.join(" and ")} by merge ${step + 1}`;
  return `“${symbol}”: number ${numbers[symbol]}, ${from}; occurs in the text ${times(count)}`;
}

/** Is this pair merged next? If not, why not. */
export function judge({ numbers, steps }, merges, [left, right, count]) {
  const { pair, count: most, tied } = steps[merges];
  const decides = left === pair[0] ? 1 : 0; // which symbol's number
  const better = pair[decides], worse = [left, right][decides];
  if (better === worse) {
    const rule = `of ${tied + 1} tied pairs its left symbol has the smallest number, then its right one`;
    return `Yes: ${left} ${right} is merged next, ${times(count)}${tied ? `; ${rule}` : ", more than any other pair"}.`;
  }
  if (count === most)
    return `No: ${left} ${right} is tied, and of tied pairs ${pair.join(" ")} has the ${["left", "right"][decides]} ` +
      `symbol with the smaller number: ${better} is ${numbers[better]}, ${worse} is ${numbers[worse]}.`;
  return `No: ${left} ${right} stands side by side ${times(count)}, ${pair.join(" ")} ${times(most)}.`;
}

/** The last merge, and how large the text and the vocabulary are. */
export function tell({ start, steps }, merges, symbols) {
  const known = new Set(steps.slice(0, merges).map(({ pair }) => pair.join(""))).size;
  const { pair, count, tied } = merges ? steps[merges - 1] : {};
  const made = merges
    ? `Merge ${merges} of ${steps.length}: ${pair.join(" + ")} → ${pair.join("")}, ${times(count)}`
    : `No merge yet, ${steps.length} to come`;
  return `${made}${tied ? ` (${tied} tied)` : ""}. The text has ${many(symbols, "symbol")}, the vocabulary ` +
    `${start + known} (4 special, ${many(start - 4, "character")}, ${known} merged).`;
}
