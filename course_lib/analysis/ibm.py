"""Word alignments from counting alone: IBM model 1, without positions, and fast_align, with one number for them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Words = Sequence[str]
Links = set[tuple[int, int]]
NULL_ID = 0  # of the empty source word, which explains target words that translate none
NEWTON_STEPS = 8  # of the tension, in each iteration


class Aligner:
    """The probabilities t(target word | source word) that a training has found, and what it holds of positions.

    Args:
        src_ids, tgt_ids: word to number; number 0 of the source is the NULL word.
        keys: source number * target words + target number, of pairs that met in a sentence pair, sorted.
        probabilities: one for each key.
        log_likelihoods: of the training pairs, in nats, before the first iteration and after each.
        tension, null: of the prior, see `diagonal_prior`.
    """

    def __init__(
        self,
        src_ids: dict[str | None, int],
        tgt_ids: dict[str, int],
        keys: np.ndarray,
        probabilities: np.ndarray,
        log_likelihoods: list[float],
        *,
        tension: float = 0.0,
        null: float | None = None,
    ):
        self.src_ids, self.tgt_ids, self.log_likelihoods = src_ids, tgt_ids, log_likelihoods
        self._keys, self._probabilities = keys, probabilities
        self.tension, self.null = tension, null

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

    def scores(self, src_words: Words, tgt_words: Words) -> np.ndarray:
        """The prior of each source word times t, (tgt_words, src_words + 1); NULL is the last column."""
        prior = diagonal_prior(len(src_words), len(tgt_words), tension=self.tension, null=self.null)
        return prior * self.table([*src_words, None], tgt_words)

    def links(self, src_words: Words, tgt_words: Words) -> Links:
        """For each target word a link to its most probable source word, or none if that is NULL or nothing is known.

        Args:
            src_words, tgt_words: a sentence pair.

        Returns:
            (source position, target position) each; of equally probable source words the one nearest to the diagonal.
        """
        scores = self.scores(src_words, tgt_words)
        best = scores.max(axis=1, initial=0)
        equal = scores[:, :-1] >= best[:, None] * (1 - 1e-9)  # NULL must be better, not as good
        distance = np.where(equal, distances(len(src_words), len(tgt_words)), np.inf)
        linked = np.flatnonzero(equal.any(axis=1) & (best > 0))
        return {(int(distance[position].argmin()), int(position)) for position in linked}


def distances(src_len: int, tgt_len: int) -> np.ndarray:
    """How far each source word is from the diagonal, as a difference of shares of the sentences: (tgt_len, src_len)."""
    src, tgt = np.arange(1, src_len + 1) / src_len, np.arange(1, tgt_len + 1) / tgt_len
    return np.abs(tgt[:, None] - src)


def diagonal_prior(src_len: int, tgt_len: int, *, tension: float = 0.0, null: float | None = None) -> np.ndarray:
    """How probable each source word is to explain a target word, before the words are known.

    Args:
        src_len, tgt_len: numbers of words.
        tension: how fast the probability falls with the distance from the diagonal; 0 knows no positions.
        null: probability of the NULL word; None: as that of any other word at tension 0.

    Returns:
        (tgt_len, src_len + 1), rows sum to 1; NULL is the last column.

    Paper: Dyer et al. 2013, section 2.
    """
    null = 1 / (src_len + 1) if null is None else null
    weights = np.exp(-tension * distances(src_len, tgt_len))
    words = (1 - null) * weights / weights.sum(axis=1, keepdims=True)
    return np.hstack([words, np.full((tgt_len, 1), null)])


def train_ibm1(pairs: Iterable[tuple[Words, Words]], *, iterations: int = 5) -> Aligner:
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
    return _train(pairs, iterations, tension=0.0, null=None, fit=False)


def train_fast_align(
    pairs: Iterable[tuple[Words, Words]], *, iterations: int = 5, tension: float = 4.0, null: float = 0.08
) -> Aligner:
    """IBM model 2 with one number for positions: source words near the diagonal are more likely beforehand.

    The expectation shares in proportion to prior times t, see `diagonal_prior`; the maximization also finds the tension
    that makes the shared-out distances most likely.

    Args:
        pairs, iterations: as of `train_ibm1`.
        tension: to begin with, fast_align's.
        null: probability of the NULL word, fast_align's; it stays.

    Raises:
        ValueError: as `train_ibm1`, or if null is not between 0 and 1.

    Paper: Dyer et al. 2013; without its Bayesian estimate of t, and with Newton's method instead of eight steps uphill.
    """
    if not 0 < null < 1:
        raise ValueError(f"expected a probability of NULL between 0 and 1, got {null}")
    return _train(pairs, iterations, tension=tension, null=null, fit=True)


def _train(pairs: Iterable, iterations: int, *, tension: float, null: float | None, fit: bool) -> Aligner:
    if iterations < 1:
        raise ValueError(f"expected at least 1 iteration, got {iterations}")
    src_ids, tgt_ids = {None: NULL_ID}, {}
    src, tgt = _numbered(pairs, src_ids, tgt_ids)
    owner = np.concatenate([[0], *(np.full(len(b), len(a)) for a, b in zip(src, tgt, strict=True))])
    owner = np.repeat(np.arange(len(owner) - 1), owner[1:])  # (cells,): the target word that each cell explains
    cells = [(a * len(tgt_ids) + b[:, None]).ravel() for a, b in zip(src, tgt, strict=True)]
    keys, key = np.unique(np.concatenate(cells), return_inverse=True)
    source, places = keys // len(tgt_ids), _Places.of(src, tgt)
    probabilities, log_likelihoods = np.full(len(keys), 1 / len(tgt_ids)), []
    for iteration in range(iterations + 1):
        weights = probabilities[key] * places.prior(tension, null)[places.cell]
        totals = np.bincount(owner, weights)
        log_likelihoods.append(float(np.log(totals).sum()))
        if iteration < iterations:
            shares = weights / totals[owner]
            counts = np.bincount(key, shares)
            probabilities = counts / np.bincount(source, counts)[source]
            tension = places.fitted(tension, shares) if fit else tension
    return Aligner(src_ids, tgt_ids, keys, probabilities, log_likelihoods, tension=tension, null=null)


class _Places(NamedTuple):
    """Where the cells of all sentence pairs lie, by the shape of the pair: far fewer than there are cells.

    Args:
        shapes: (source words, target words) of each kind of pair.
        cell: (cells,), where in the flat blocks of the shapes each cell lies.
    """

    shapes: list[tuple[int, int]]
    cell: np.ndarray

    @classmethod
    def of(cls, src: list[np.ndarray], tgt: list[np.ndarray]) -> "_Places":
        start, end, cell = {}, 0, []
        for a, b in zip(src, tgt, strict=True):
            size = len(a) * len(b)
            if (len(a) - 1, len(b)) not in start:
                start[len(a) - 1, len(b)], end = end, end + size
            cell.append(start[len(a) - 1, len(b)] + np.arange(size))
        return cls(list(start), np.concatenate(cell))

    def prior(self, tension: float, null: float | None) -> np.ndarray:
        return np.concatenate([diagonal_prior(*shape, tension=tension, null=null).ravel() for shape in self.shapes])

    def fitted(self, tension: float, shares: np.ndarray) -> float:
        """The tension under which the distances are most likely, by Newton's method; the curve has one summit."""
        mass, start, blocks = np.bincount(self.cell, shares), 0, []
        for src_len, tgt_len in self.shapes:
            block = mass[start : start + (src_len + 1) * tgt_len].reshape(tgt_len, src_len + 1)
            blocks.append((distances(src_len, tgt_len), block[:, :-1]))  # without NULL
            start += block.size
        for _ in range(NEWTON_STEPS):
            slope = curvature = 0.0
            for distance, shared in blocks:
                chance = np.exp(-tension * distance)
                chance /= chance.sum(axis=1, keepdims=True)
                expected, total = (chance * distance).sum(axis=1), shared.sum(axis=1)
                slope += total @ expected - (shared * distance).sum()
                curvature += total @ ((chance * distance**2).sum(axis=1) - expected**2)
            tension = max(0.0, tension + slope / curvature) if curvature > 0 else tension
        return float(tension)


def _numbered(pairs: Iterable[tuple[Words, Words]], src_ids: dict, tgt_ids: dict) -> tuple[list, list]:
    """Sentences as arrays of numbers, NULL behind each source; new words enter the dictionaries."""
    src, tgt = [], []
    for number, (src_words, tgt_words) in enumerate(pairs):
        if not len(src_words) or not len(tgt_words):
            raise ValueError(f"pair {number} has an empty side: {src_words!r}, {tgt_words!r}")
        src.append(np.array([*(src_ids.setdefault(word, len(src_ids)) for word in src_words), NULL_ID]))
        tgt.append(np.array([tgt_ids.setdefault(word, len(tgt_ids)) for word in tgt_words]))
    if not src:
        raise ValueError("no sentence pairs to learn from")
    return src, tgt
