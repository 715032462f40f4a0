"""Subword dropout: the same words in other pieces each time, so that a model sees more than one spelling of each."""

import json
import random
from collections.abc import Sequence

from course_lib.data import IdPair
from course_lib.tokenizer import UNK_ID, Tokenizer, closed
from course_lib.training.config import SIDES

VARIANTS = 64  # segmentations drawn of each word; a word in a sentence takes one of them


class SubwordDropout:
    """Sentence pairs to ids, anew in each epoch: byte-pair merging in which every merge may be left out.

    Where the library applies the first merge of its list that fits, here each merge that fits is left out with
    probability `share` at each step; with 0 the ids are the tokenizer's, with 1 all words are in single characters.
    The tokenizers library has this as an option, but without a seed; here a seed and an epoch fix everything.

    Args:
        tokenizer: of both languages.
        pairs: objects with texts `src` and `tgt`.
        share: of merges left out, in [0, 1]; 0.1 is usual.
        side: "both" languages, or only the "source": then a model reads a word in several spellings, and writes it
            in one.
        seed: of the choice.

    Raises:
        ValueError: if share is outside its range, or side is another.

    Reference: Provilkov, Emelianenko and Voita 2020, BPE-dropout, algorithm 1.
    """

    def __init__(self, tokenizer: Tokenizer, pairs: Sequence, share: float, *, side: str = "both", seed: int = 0):
        if not 0 <= share <= 1:
            raise ValueError(f"share must be in [0, 1], got {share}")
        if side not in SIDES:
            raise ValueError(f"side must be one of {SIDES}, got {side!r}")
        model = json.loads(tokenizer.to_json())["model"]
        self.ids = model["vocab"]
        self.ranks = {tuple(merge): rank for rank, merge in enumerate(model["merges"])}
        self.share, self.side, self.seed = share, side, seed
        self.words = [(tokenizer.words(pair.src), tokenizer.words(pair.tgt)) for pair in pairs]
        self._variants: dict[tuple[str, int | None], list[int]] = {}

    def __call__(self, epoch: int, index: int) -> IdPair:
        """The pair of that index, as `encode_pairs` has it, in the pieces of that epoch."""
        rng = random.Random(f"{self.seed}/{epoch}/{index}")
        src, tgt = self.words[index]
        written = self.share if self.side == "both" else 0.0
        return closed(self._drawn(src, rng, self.share)), self._drawn(tgt, rng, written)

    def __repr__(self) -> str:
        return f"SubwordDropout(share={self.share}, side={self.side!r}, seed={self.seed}, variants={VARIANTS})"

    def _drawn(self, words: list[str], rng: random.Random, share: float) -> list[int]:
        ids = []
        for word in words:
            key = (word, rng.randrange(VARIANTS) if share else None)
            if key not in self._variants:
                pieces = self.split(word, random.Random(f"{self.seed}/{key}"), share)
                self._variants[key] = [self.ids.get(piece, UNK_ID) for piece in pieces]
            ids += self._variants[key]
        return ids

    def split(self, word: str, rng: random.Random, share: float) -> list[str]:
        """One segmentation of a word, drawn, with that share of the merges left out."""
        pieces = list(word)
        while True:
            fitting = [
                (self.ranks[pair], position)
                for position, pair in enumerate(zip(pieces, pieces[1:], strict=False))
                if pair in self.ranks and rng.random() >= share
            ]
            if not fitting:
                return pieces
            _, position = min(fitting)
            pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
