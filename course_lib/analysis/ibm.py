"""IBM model 1: word alignments from counting alone, the baseline that knows no positions and no context."""

from collections.abc import Iterable, Sequence

import numpy as np

Words = Sequence[str]
NULL_ID = 0  # of the empty source word, which explains target words that translate none


class Ibm1:
    """The probabilities t(target word | source word) that `train_ibm1` has found.

    Args:
        src_ids, tgt_ids: word to number; number 0 of the source is the NULL word.
        keys: source number * target words + target number, of pairs that met in a sentence pair, sorted.
        probabilities: one for each key.
        log_likelihoods: of the training pairs, in nats, before the first iteration and after each.
    """

    def __init__(
        self,
        src_ids: dict[str | None, int],
        tgt_ids: dict[str, int],
        keys: np.ndarray,
        probabilities: np.ndarray,
        log_likelihoods: list[float],
    ):
        self.src_ids, self.tgt_ids, self.log_likelihoods = src_ids, tgt_ids, log_likelihoods
        self._keys, self._probabilities = keys, probabilities

    def table(self, src_words: Sequence[str | None], tgt_words: Words) -> np.ndarray:
        """t(target word | source word) as (tgt_words, src_words); None is the NULL word; strangers have 0."""
        src = np.array([self.src_ids.get(word, -1) for word in src_words])
        tgt = np.array([self.tgt_ids.get(word, -1) for word in tgt_words])
        keys = src * len(self.tgt_ids) + tgt[:, None]  # (tgt_words, src_words)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        met = (self._keys[places] == keys) & (src >= 0) & (tgt[:, None] >= 0)
        return np.where(met, self._probabilities[places], 0.0)

    def translations(self, src_word: str | None, count: int = 5) -> list[tuple[str, float]]:
        """The most probable target words of a source word, or of NULL, with their probabilities; of a stranger none."""
        words = list(self.tgt_ids)
        row = self.src_ids.get(src_word, -1) * len(words)
        first, end = np.searchsorted(self._keys, (row, row + len(words)))
        best = first + np.argsort(-self._probabilities[first:end], kind="stable")[:count]
        return [(words[self._keys[place] % len(words)], float(self._probabilities[place])) for place in best]

    def links(self, src_words: Words, tgt_words: Words) -> set[tuple[int, int]]:
        """For each target word a link to its most probable source word, or none if that is NULL or nothing is known.

        Args:
            src_words, tgt_words: a sentence pair.

        Returns:
            (source position, target position) each; of equally probable source words the first.
        """
        table = self.table([*src_words, None], tgt_words)  # NULL comes last: it must be better, not as good
        best = table.argmax(axis=1)
        known = (best < len(src_words)) & (table.max(axis=1, initial=0) > 0)
        return {(int(best[position]), int(position)) for position in np.flatnonzero(known)}


def train_ibm1(pairs: Iterable[tuple[Words, Words]], *, iterations: int = 5) -> Ibm1:
    """Finds t(target word | source word) by expectation maximization, from equal probabilities.

    Each target word is explained by one word of its source sentence, or by NULL, all equally likely beforehand.
    Expectation: share each target word among the words that may explain it, in proportion to t.
    Maximization: t is the share of a source word's counts that goes to the target word.

    Args:
        pairs: (source words, target words) of the training part.
        iterations: of expectation and maximization.

    Raises:
        ValueError: if there are no pairs, one has an empty side, or iterations is below 1.

    Paper: Brown et al. 1993, model 1. The likelihoods leave out the probability of the target's length.
    """
    if iterations < 1:
        raise ValueError(f"expected at least 1 iteration, got {iterations}")
    src_ids, tgt_ids = {None: NULL_ID}, {}
    src, tgt = _numbered(pairs, src_ids, tgt_ids)
    candidates = np.concatenate([np.full(len(b), len(a)) for a, b in zip(src, tgt, strict=True)])  # (target words,)
    owner = np.repeat(np.arange(len(candidates)), candidates)  # (cells,): the target word that each cell explains
    cells = [(a * len(tgt_ids) + b[:, None]).ravel() for a, b in zip(src, tgt, strict=True)]
    keys, key = np.unique(np.concatenate(cells), return_inverse=True)
    source = keys // len(tgt_ids)
    probabilities, log_likelihoods = np.full(len(keys), 1 / len(tgt_ids)), []
    for _ in range(iterations):
        weights = probabilities[key]
        totals = np.bincount(owner, weights)
        log_likelihoods.append(float(np.log(totals / candidates).sum()))
        counts = np.bincount(key, weights / totals[owner])
        probabilities = counts / np.bincount(source, counts)[source]
    totals = np.bincount(owner, probabilities[key])
    log_likelihoods.append(float(np.log(totals / candidates).sum()))
    return Ibm1(src_ids, tgt_ids, keys, probabilities, log_likelihoods)


def _numbered(pairs: Iterable[tuple[Words, Words]], src_ids: dict, tgt_ids: dict) -> tuple[list, list]:
    """Sentences as arrays of numbers, NULL in front of each source; new words enter the dictionaries."""
    src, tgt = [], []
    for number, (src_words, tgt_words) in enumerate(pairs):
        if not len(src_words) or not len(tgt_words):
            raise ValueError(f"pair {number} has an empty side: {src_words!r}, {tgt_words!r}")
        src.append(np.array([NULL_ID, *(src_ids.setdefault(word, len(src_ids)) for word in src_words)]))
        tgt.append(np.array([tgt_ids.setdefault(word, len(tgt_ids)) for word in tgt_words]))
    if not src:
        raise ValueError("no sentence pairs to learn from")
    return src, tgt
