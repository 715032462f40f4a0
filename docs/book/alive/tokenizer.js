// Byte-pair subwords by the rules that tokenizer.json holds: what course_lib/tokenizer.py does with the `tokenizers`
// library. A test compares both.

export const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const WORD = "▁"; // opens each word
const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/gu;
const ALONE = /[\p{P}\p{N}$+<=>^`|~]/u; // a punctuation mark, a digit, or one of ASCII's symbols

/** Words, each opened by ▁; punctuation marks and digits stand alone. */
function wordsOf(text) {
  const found = [];
  for (const part of (WORD + text.replaceAll(" ", WORD)).match(/▁[^▁]*/gu)) {
    let word = "";
    const close = () => {
      if (word) found.push(word);
      word = "";
    };
    for (const letter of part) {
      if (ALONE.test(letter)) {
        close();
        found.push(letter);
      } else word += letter;
    }
    close();
  }
  return found;
}

export class Tokenizer {
  /** @param {object} saved what tokenizer.json holds */
  constructor(saved) {
    this.vocab = new Map(Object.entries(saved.model.vocab));
    this.tokens = [...this.vocab].sort((a, b) => a[1] - b[1]).map(([token]) => token);
    this.ranks = new Map(saved.model.merges.map((pair, rank) => [[].concat(pair).join(" "), rank]));
    this.cuts = new Map();
  }

  normalize(text) {
    return text.normalize("NFC").replace(SPACE, " ").replace(/^ +| +$/gu, "");
  }

  /** Whether a character is in the vocabulary. */
  knows(character) {
    return /^\s$/u.test(character) || this.vocab.has(this.normalize(character));
  }

  /** Text to ids, without specials. */
  encode(text) {
    const clean = this.normalize(text);
    return clean ? wordsOf(clean.startsWith(WORD) ? clean.slice(1) : clean).flatMap((word) => this.cut(word)) : [];
  }

  /** A word to ids: the pair of neighbors that was learned first is merged first. */
  cut(word) {
    if (this.cuts.has(word)) return this.cuts.get(word);
    const pieces = [...word];
    for (;;) {
      const ranks = pieces.slice(1).map((piece, i) => this.ranks.get(`${pieces[i]} ${piece}`) ?? Infinity);
      const best = ranks.reduce((least, rank, i) => (rank < ranks[least] ? i : least), 0);
      if (!ranks.length || ranks[best] === Infinity) break;
      pieces.splice(best, 2, pieces[best] + pieces[best + 1]);
    }
    const ids = pieces.map((piece) => this.vocab.get(piece) ?? UNK);
    this.cuts.set(word, ids);
    return ids;
  }

  token(id) {
    return this.tokens[id];
  }

  /** Ids to text; specials but <unk> are left out. */
  decode(ids) {
    const tokens = ids.filter((id) => ![PAD, BOS, EOS].includes(id)).map((id) => this.token(id));
    return tokens.map((token, i) => token.replaceAll(WORD, i ? " " : "")).join("");
  }
}
