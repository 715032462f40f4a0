"""The experiment on the size of the corpus: every size is trained for the same length, on pairs that the seed draws."""

from unittest import mock

from course_lib.experiments import corpus_size
from course_lib.experiments.corpus_size import GRID, LONGER, LONGER_SIZES, SEEN, SIZES, run
from tests.helpers.corpora import CORPUS


def made(seed, pairs=10, seen=20):
    """What a small run learns from, and its results."""
    train = corpus_size.Tokenizer.train
    with (
        mock.patch.object(corpus_size, "_corpus", return_value=CORPUS) as load,
        mock.patch.object(corpus_size.Tokenizer, "train", side_effect=train) as learn,
    ):
        learn.side_effect = lambda texts, size: train(texts_of.extend(texts) or texts_of, size)
        texts_of = []
        results = run({"pairs": pairs, "seen": seen, "rate": 0.01}, seed, None)
    load.assert_called_with(max(SIZES))
    return texts_of, results


def test_a_run_reads_its_pairs_as_often_as_it_says():
    texts, results = made(0)
    assert len(texts) == 20 and results["epochs"] == 2 and results["steps"] >= 2
    assert made(0) == (texts, results), "the same seed makes the same run"
    others, _ = made(1)
    assert others != texts, "each seed draws pairs of its own"
    sources = {pair.src for pair in CORPUS.train}
    assert set(texts[::2]) <= sources


def test_all_sizes_are_trained_for_the_same_length():
    sides = list(GRID.sides.values())
    for side, pairs in zip(sides[: len(SIZES)], SIZES, strict=True):
        assert side["pairs"] == pairs and side["seen"] == SEEN and SEEN % pairs == 0
        assert isinstance(side["rate"], tuple), "each size has a rate of its own"
    for side, pairs in zip(sides[len(SIZES) :], LONGER_SIZES, strict=True):
        assert side["pairs"] == pairs and side["seen"] == LONGER == 4 * SEEN and LONGER % pairs == 0
