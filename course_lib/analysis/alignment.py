"""From attention weights over subwords to links between words, and how wrong such links are."""

from collections.abc import Iterable, Sequence

import numpy as np
from torch import Tensor

from course_lib.metrics import Estimate

Link = tuple[int, int]  # source position, target position


def word_spans(words: Sequence[str], tokens: Sequence[str]) -> list[range]:
    """The positions of the subwords of each word.

    Args:
        words: of a sentence, punctuation marks as words of their own.
        tokens: its subwords; "▁" opens a word that follows a space. Specials may follow the last word.

    Raises:
        ValueError: if the subwords do not spell the words.
    """
    spans, end = [], 0
    for word in words:
        start, spelled = end, ""
        while len(spelled) < len(word) and end < len(tokens):
            spelled += tokens[end].replace("▁", "")
            end += 1
        if spelled != word:
            raise ValueError(f"expected subwords that spell {word!r}, got {list(tokens[start:end])}")
        spans.append(range(start, end))
    return spans


def word_weights(weights: Tensor, src_spans: Sequence[range], tgt_spans: Sequence[range]) -> Tensor:
    """Cross-attention between words: the sum over a source word's subwords, the mean over a target word's rows.

    Args:
        weights: (..., tgt_len, src_len), row t belonging to the token that position t predicts; may be padded.
        src_spans, tgt_spans: from `word_spans`.

    Returns:
        (..., tgt_words, src_words + 1); the last column is what goes to the keys after the last word, to </s>, so that
        rows still sum to 1.

    Raises:
        ValueError: if the spans reach beyond the weights, or there are none.

    Paper: none in Vaswani et al.; sum and mean as in Clark et al. 2019, section 4.1.
    """
    ends = [spans[-1].stop if len(spans) else 0 for spans in (tgt_spans, src_spans)]
    if not all(0 < end <= length for end, length in zip(ends, weights.shape[-2:], strict=True)):
        raise ValueError(f"expected spans that end within 1..{tuple(weights.shape[-2:])}, got ends {tuple(ends)}")
    merge_src = weights.new_zeros(weights.shape[-1], len(src_spans) + 1)
    for word, span in enumerate(src_spans):
        merge_src[list(span), word] = 1
    merge_src[ends[1] :, -1] = 1
    merge_tgt = weights.new_zeros(len(tgt_spans), weights.shape[-2])
    for word, span in enumerate(tgt_spans):
        merge_tgt[word, list(span)] = 1 / len(span)
    return merge_tgt @ weights @ merge_src


def strongest_links(weights: Tensor) -> set[Link]:
    """For each target word a link to the source word with the largest weight, or none where that is the last column.

    Args:
        weights: (tgt_words, src_words + 1), from `word_weights`.
    """
    nothing = weights.shape[-1] - 1
    return {(src, tgt) for tgt, src in enumerate(weights.argmax(dim=-1).tolist()) if src != nothing}


def column_links(weights: Tensor) -> set[Link]:
    """For each source word a link to the target word whose row gives it most: the map read by columns.

    Args:
        weights: (tgt_words, src_words + 1), from `word_weights`; the last column is left out.
    """
    return {(src, tgt) for src, tgt in enumerate(weights[:, :-1].argmax(dim=0).tolist())}


def diagonal_links(src_len: int, tgt_len: int) -> set[Link]:
    """A link for each target word to the source word at the same share of its sentence: knows lengths, no words.

    Args:
        src_len, tgt_len: numbers of words, at least 1.
    """
    return {(round(tgt * (src_len - 1) / max(1, tgt_len - 1)), tgt) for tgt in range(tgt_len)}


def alignment_error_rate(predicted: set[tuple[int, int]], gold: set[tuple[int, int]]) -> float:
    """1 - 2 |predicted ∩ gold| / (|predicted| + |gold|): 0 for the same links, 1 for no common one.

    Args:
        predicted: links as (source position, target position).
        gold: the true links, all of them sure (Och and Ney 2003 with S = P).

    Raises:
        ValueError: if both are empty.
    """
    if not predicted and not gold:
        raise ValueError("no links to compare")
    return 1 - 2 * len(predicted & gold) / (len(predicted) + len(gold))


def corpus_error_rate(predicted: Iterable[set[Link]], gold: Iterable[Iterable[Link]]) -> float:
    """The alignment error rate of all links of many sentences together, so that long sentences count more.

    Args:
        predicted: the links of each sentence.
        gold: its true links.

    Raises:
        ValueError: if their numbers differ, or there are no links at all.
    """
    predicted, gold = list(predicted), list(gold)
    if len(predicted) != len(gold):
        raise ValueError(f"expected links for each of {len(gold)} sentences, got {len(predicted)}")
    return alignment_error_rate(_of_the_corpus(predicted), _of_the_corpus(gold))


def error_rate_estimate(
    predicted: Sequence[set[Link]],
    gold: Sequence[Iterable[Link]],
    *,
    against: Sequence[set[Link]] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """The error rate of many sentences with a 95 % interval, from sentences drawn again (bootstrap).

    Args:
        predicted, gold: as of `corpus_error_rate`.
        against: other links of the same sentences; then the estimate is of the difference, these links minus those. The
            same sentences are drawn for both, so what is hard for both does not blur it.
        draws: how often; those without a link do not count.
        seed: of the draws.

    Raises:
        ValueError: as `corpus_error_rate`.
    """
    sides = [list(predicted)] if against is None else [list(predicted), list(against)]
    gold = [set(links) for links in gold]
    value = [corpus_error_rate(side, gold) for side in sides]
    picked = np.random.default_rng(seed).integers(len(gold), size=(draws, len(gold)))
    rates = []
    for side in sides:
        found = zip(side, gold, strict=True)
        right, total = np.array([(len(ours & true), len(ours) + len(true)) for ours, true in found]).T
        with np.errstate(invalid="ignore"):  # 0 / 0: the drawn sentences have no links to compare
            rates.append(1 - 2 * right[picked].sum(axis=1) / total[picked].sum(axis=1))
    drawn = rates[0] if against is None else rates[0] - rates[1]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Estimate(value[0] if against is None else value[0] - value[1], float(low), float(high))


def _of_the_corpus(sentences: list) -> set[tuple[int, int, int]]:
    return {(number, *link) for number, links in enumerate(sentences) for link in links}
