// From what people type to a sentence that the model can read, and back: what course_lib/preprocessing.py does, which
// says why. A test compares both.

const PLACEHOLDERS = ["\ue000", "\ue001", "\ue002"];
const PLACEHOLDER = new RegExp(`( ?)([${PLACEHOLDERS.join("")}])`, "gu");
const MARKS = 0xf0000, MARK = "[\\u{f0000}-\\u{ffffd}]";
const PRIVATE = /[\ue000-\uf8ff\u{f0000}-\u{10fffd}]/gu;
const SPLIT_WORDS = 20, RARE_PIECES = 3, LONG_WORDS = 40;
const W = "[\\p{L}\\p{N}_]", NOT_W = "[^\\p{L}\\p{N}_]"; // Python's \w and \W
const EDGE = `(?:(?<!${W})(?=${W})|(?<=${W})(?!${W}))`; // and its \b
const PLAIN = { "&": "and", "…": "...", "\u00ad": "", "\u200b": "", "\ufeff": "", "\u00a0": " " };
for (const quote of "’‘‚ʼ´`") PLAIN[quote] = "'";
for (const quote of "“”„‟«»") PLAIN[quote] = '"';
const ENDING = "com|org|net|edu|gov|info|io|de|at|ch|uk|fr|eu|example";
const ADDRESS = new RegExp("(?:https?://|www\\.)\\S+|" + // an e-mail at a beginning only, or long words take long
  "(?<![\\p{L}\\p{N}_.+-])[\\p{L}\\p{N}_.+-]+@[\\p{L}\\p{N}_-]+(?:\\.[\\p{L}\\p{N}_-]+)+|" +
  `${EDGE}[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)*\\.(?:${ENDING})${EDGE}(?:/\\S*)?`, "gu");
const TRAILING = /[.,;:!?)\]}"']+$/u;
const SIGNS = "<>=+*/|~^#@";
const NUMBER = "\\p{Nd}+(?:[.,]\\p{Nd}+)*";
const FORMULA = `${NUMBER}(?: ?[<>=+*/^] ?${NUMBER})+`;
const PIECE = new RegExp(`${MARK}|${FORMULA}|${W}+|[^\\p{L}\\p{N}_\\s]`, "gu");
const NEIGHBORS = new RegExp(`${MARK}(?: ${MARK})*`, "gu");
const ABBREVIATED = /\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|No|e\.g|i\.e)\. *$/u; // no sentence ends here
const LETTER = /\p{L}/u;

const at = (mark) => mark.codePointAt(0) - MARKS;
const marked = (number) => String.fromCodePoint(MARKS + number);
const wordsIn = (text) => text.split(/\s+/u).filter(Boolean);
const isUpper = (text) => text === text.toUpperCase() && text !== text.toLowerCase();
const isLower = (text) => text === text.toLowerCase() && text !== text.toUpperCase();

function unescaped(text) {
  const box = document.createElement("textarea");
  box.innerHTML = text;
  return box.value;
}

function withoutTags(text, remarks) {
  const plain = text.replace(/<\/?[A-Za-z][^<>]*>/gu, " ");
  if (plain !== text) remarks.push("HTML tags were left out: pass plain text to be sure");
  return unescaped(plain);
}

function withoutAddresses(text) {
  const copied = [];
  const left = text.replace(ADDRESS, (found) => {
    const address = found.replace(TRAILING, "");
    copied.push(address);
    return marked(copied.length - 1) + found.slice(address.length);
  });
  return [left, copied];
}

/** 3 < 5; a rare name, Zendaya; or LH1234, the number of a flight. */
function isCopied(word, pieces) {
  if (new RegExp(`^(?:${FORMULA})$`, "u").test(word)) return true;
  const [first] = word, numbered = /\p{Nd}/u.test(word) && LETTER.test(word);
  const rare = () => Math.min(pieces(word), pieces(word.toLowerCase())) >= RARE_PIECES;
  return isUpper(first) && (numbered || rare());
}

function withoutUnknown(text, copied, tokenizer, pieces) {
  const inOrder = [], knows = (letter) => tokenizer.knows(letter);
  const left = text.replace(PIECE, (word) => {
    const isMark = [...word].length === 1 && at(word) >= 0 && at(word) < copied.length;
    if (isMark) inOrder.push(copied[at(word)]);
    else if (!SIGNS.includes(word) && [...word].every(knows) && !isCopied(word, pieces)) return word;
    else inOrder.push(word);
    return marked(inOrder.length - 1);
  });
  const unread = inOrder.some((word) => [...word].some((letter) => LETTER.test(letter) && !knows(letter)));
  if (unread && !LETTER.test(left)) {
    const start = [...text].slice(0, 60).join("");
    throw new Error(`expected English, got '${start}', in letters that this translator cannot read`);
  }
  const together = [];
  return [left.replace(NEIGHBORS, (found) => {
    together.push(found.split(" ").map((mark) => inOrder[at(mark)]).join(" "));
    return marked(together.length - 1);
  }), together];
}

/** i live in berlin → I live in Berlin */
function withCapitals(text, pieces) {
  const capital = (word) => word[0].toUpperCase() + word.slice(1);
  const names = text.replace(new RegExp(`${EDGE}[a-z]+${EDGE}`, "gu"),
    (word) => (pieces(capital(word)) < pieces(word) ? capital(word) : word));
  const beginning = new RegExp(`^${NOT_W}*[a-z]|(?<=[.!?] )[a-z]|${EDGE}i${EDGE}`, "gu");
  return names.replace(beginning, (found) => found.toUpperCase());
}

function sentencesOf(text) {
  const within = text.match(/[.!?]\s+\S/gu) || [];
  if (wordsIn(text).length <= SPLIT_WORDS && !text.trim().includes("\n") && within.length < 2) return [text];
  const cutter = new Intl.Segmenter("en", { granularity: "sentence" });
  const cut = [...text.trimStart().matchAll(/([^\n]*\S)(\s*)/gu)].flatMap(([, line, gap]) => {
    const sentences = [...cutter.segment(line)].map(({ segment }) => segment);
    return [...sentences.slice(0, -1), sentences.at(-1) + gap];
  });
  const whole = cut.reduce((found, next) => {
    const open = found.length && ABBREVIATED.test(found.at(-1));
    return open ? [...found.slice(0, -1), found.at(-1) + next] : [...found, next];
  }, []);
  return whole.filter((one) => one.trim());
}

function pieceOf(sentence, copied) {
  let text = sentence.trimEnd();
  const marks = [...text].filter((letter) => at(letter) >= 0 && at(letter) < copied.length);
  marks.forEach((mark, number) => {
    text = text.replaceAll(mark, PLACEHOLDERS[number % PLACEHOLDERS.length]);
  });
  return { text, copied: marks.map((mark) => copied[at(mark)]), gap: sentence.slice(sentence.trimEnd().length) };
}

/** Whether it is in capitals; one word alone only if the model knows it otherwise. */
function isShouted(text, pieces) {
  const words = (isUpper(text) && text.match(/\p{L}+/gu)) || [];
  const long = words.filter((word) => [...word].length > 1);
  if (long.length !== 1 || words.includes("I")) return long.length > 0;
  const low = long[0].toLowerCase(), title = long[0][0] + low.slice(1);
  return pieces(long[0]) > 1 && Math.min(pieces(low), pieces(title)) === 1;
}

/** A text as people type it, as sentences for the model, and remarks on what was done to it. */
export function prepare(given, tokenizer) {
  const remarks = [], pieces = (word) => tokenizer.encode(word).length;
  let [text, copied] = withoutAddresses(withoutTags(given.replace(PRIVATE, ""), remarks));
  text = [...text].map((letter) => PLAIN[letter] ?? letter).join("");
  text = text.replace(/(?<=\p{Nd})\s*[–—―−]\s*(?=\p{Nd})/gu, "-").replace(/\s*[–—―−]\s*/gu, " - ");
  if (!text.trim()) throw new Error(`an empty sentence cannot be translated: '${given.slice(0, 60)}'`);
  if (isShouted(text, pieces)) {
    text = text.toLowerCase();
    remarks.push("the text is in capitals: it was read in lower case");
  }
  if (isLower(text)) text = withCapitals(text, pieces);
  if (!copied.length && !/[\p{L}\p{N}]/u.test(text))
    return { pieces: [{ text: PLACEHOLDERS[0], copied: [text.trim()], gap: "" }], remarks: [] };
  [text, copied] = withoutUnknown(text, copied, tokenizer, pieces);
  const found = sentencesOf(text).map((sentence) => pieceOf(sentence, copied));
  if (found.length > 1) remarks.push(`${found.length} sentences, translated one by one`);
  if (found.some((piece) => wordsIn(piece.text).length > LONG_WORDS))
    remarks.push(`a sentence is longer than ${LONG_WORDS} words: expect mistakes, or split it`);
  return { pieces: found, remarks };
}

/** A translation in tokens, or as one text, in which what was copied stands for its placeholders again. */
export function restore({ copied }, tokens) {
  const waiting = PLACEHOLDERS.map((_, number) => copied.filter((_, at) => at % PLACEHOLDERS.length === number));
  const original = (_, space, mark) => {
    const found = waiting[PLACEHOLDERS.indexOf(mark)].shift();
    return found === undefined ? "" : space + found;
  };
  return tokens.map((token) => token.replace(PLACEHOLDER, original));
}

function longNumbers(text) {
  const found = text.match(/\p{Nd}[\p{Nd}.,]*\p{Nd}/gu) || [];
  return found.map((number) => number.replace(/\P{Nd}/gu, "")).filter((digits) => digits.length > 2);
}

/** What is wrong with a translation, as far as one can see without reading it. */
export function doubts(src, translation, copied) {
  const kept = longNumbers(translation), missing = longNumbers(src).filter((number) => !kept.includes(number));
  for (const one of copied) if (!translation.includes(one) && !missing.includes(one)) missing.push(one);
  const found = missing.length ? [`not in the translation: ${missing.join(", ")}`] : [];
  const [before, after] = [src, translation].map((text) => wordsIn(text).length);
  if (before >= 10 && after < before / 3)
    found.push("the translation is much shorter than the text: try it in shorter sentences");
  return found;
}
