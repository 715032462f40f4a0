"""The parts of a corpus as ids, without the pairs that are too long for the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from course_lib.data import Corpus, IdPair, Pair, encode_pairs
from course_lib.translator import Translator

SHOWN = 5  # line numbers in a message


@dataclass(frozen=True)
class Encoded:
    """What of a corpus a model has positions for.

    Args:
        corpus: its parts without the pairs that are too long.
        ids: of each part that was asked for, in its order.
        skipped: the pairs that are too long.
        longest: most tokens of a sentence, with what the model adds.
    """

    corpus: Corpus
    ids: dict[str, list[IdPair]]
    skipped: list[Pair]
    longest: int

    def __str__(self) -> str:
        """What was skipped: how many pairs, and where they stand."""
        lines = sorted(self.corpus.lines[pair] for pair in self.skipped if pair in self.corpus.lines)
        shown = ", ".join(map(str, lines[:SHOWN])) + ", ..." * (len(lines) > SHOWN)
        where = f"line {shown}" if lines else f"the first is {self.skipped[0].src[:60]!r}" if self.skipped else ""
        return f"skipped {len(self.skipped)} of the sentence pairs, longer than {self.longest} tokens: {where}"


def encode_parts(corpus: Corpus, parts: Sequence[str], translator: Translator) -> Encoded:
    """Parts of a corpus as ids.

    Args:
        corpus: any.
        parts: "train", "valid", "test", or some of them.
        translator: whose tokenizer and positions count.

    Raises:
        ValueError: if a part has no pairs, or none that fits.
    """
    longest, skipped, ids = translator.model.config.max_len, [], {}
    for part in parts:
        pairs = getattr(corpus, part)
        encoded = encode_pairs(translator.tokenizer, pairs) if pairs else []
        fits = [max(len(src), len(tgt) + 1) <= longest for src, tgt in encoded]
        ids[part] = [each for each, fit in zip(encoded, fits, strict=True) if fit]
        skipped += [pair for pair, fit in zip(pairs, fits, strict=True) if not fit]
        if not ids[part]:
            short = f" of at most {longest} tokens, the model's positions" if pairs else ""
            raise ValueError(f"the {part} part of corpus {corpus.name} has no pairs{short}")
        corpus = replace(corpus, **{part: [pair for pair, fit in zip(pairs, fits, strict=True) if fit]})
    return Encoded(corpus, ids, skipped, longest)
