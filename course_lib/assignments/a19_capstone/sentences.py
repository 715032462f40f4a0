"""Sentences that nobody was trained on, what the grammar says they mean, and what a set of translations is worth."""

from functools import cache

import torch

from course_lib import grammar
from course_lib.data import load_course

TRAINED_ON = 60_000  # pairs, as in train_on_course
SENTENCES = 200
ENOUGH, HALF = 0.9, 0.7  # exact match for all points, and for half of them


@cache
def known():
    """Both sides of all pairs that everybody trains on."""
    return {text for pair in load_course(num_train=TRAINED_ON).train for text in (pair.src, pair.tgt)}


GOLD: dict[str, str] = {}  # the translations of all sentences that were asked for; the submission's process has none


def unseen_sentences(generator):
    """English sentences of the corpus's grammar that are not among those of the training, nor their translations."""
    seed = int(torch.randint(2**31, (), generator=generator))
    pairs = [pair for pair in grammar.generate(4 * SENTENCES, seed) if not {pair.src, pair.tgt} & known()][:SENTENCES]
    GOLD.update({pair.src: pair.tgt for pair in pairs})
    return [([pair.src for pair in pairs],)]


def translations(sentences):
    """What the grammar says."""
    return [GOLD[sentence] for sentence in sentences]


def worth_of_translations(expected, got):
    """All points for ENOUGH, half of them for HALF; the exact match, and the first sentence that differs.

    Args:
        expected: a text for each sentence.
        got: lists of texts, of one part of the sentences after another.
    """
    if not isinstance(got, list) or not all(isinstance(part, list | tuple) for part in got):
        return 0.0, "expected a list of texts"
    got = [text for part in got for text in part]
    if not all(isinstance(text, str) for text in got):
        return 0.0, "expected a list of texts"
    if len(got) != len(expected):
        return 0.0, f"expected {len(expected)} translations, got {len(got)}"
    wrong = [pair for pair in zip(expected, got, strict=True) if pair[0] != pair[1]]
    share = 1 - len(wrong) / len(expected)
    said = f"{share:.1%} of {len(expected)} sentences are right, word for word"
    if share < ENOUGH:
        said += f"; {ENOUGH:.0%} are asked. The first that is not: expected {wrong[0][0]!r}, got {wrong[0][1][:200]!r}"
    return float(share >= ENOUGH) or float(share >= HALF) / 2, said
