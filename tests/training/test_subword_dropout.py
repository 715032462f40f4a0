"""Subword dropout: other pieces, the same words; fixed by seed and epoch."""

import random
from collections import Counter

import pytest

from course_lib.data.batches import BucketedBatches, encode_pairs
from course_lib.tokenizer import EOS_ID, Tokenizer
from course_lib.training.subword_dropout import VARIANTS, SubwordDropout
from tests.helpers.corpora import toy_pairs
from tests.helpers.laws import raised, tells_apart

PAIRS = toy_pairs()
TOKENIZER = Tokenizer.train((text for pair in PAIRS for text in pair), 120)
CLEAN = encode_pairs(TOKENIZER, PAIRS)
LONGEST = max((word for pair in PAIRS for word in TOKENIZER.words(pair.tgt)), key=len)


def all_of(noise, epoch=0):
    return [noise(epoch, index) for index in range(len(PAIRS))]


def nothing_dropped_is_the_tokenizer(dropout):
    same = all_of(dropout(TOKENIZER, PAIRS, 0.0)) == CLEAN
    assert same  # apart, because pytest's account of how long lists differ takes minutes where CI is set


def everything_dropped_is_characters(dropout):
    for (src, tgt), pair in zip(all_of(dropout(TOKENIZER, PAIRS, 1.0)), PAIRS, strict=True):
        assert all(len(TOKENIZER.token(i)) == 1 for i in src[:-1] + tgt) and src[-1] == EOS_ID
        assert len(tgt) == sum(map(len, TOKENIZER.words(pair.tgt)))


def the_text_stays(dropout):
    for (src, tgt), pair in zip(all_of(dropout(TOKENIZER, PAIRS, 0.4)), PAIRS, strict=True):
        assert (TOKENIZER.decode(src), TOKENIZER.decode(tgt)) == (pair.src, pair.tgt)


def seed_and_epoch_decide(dropout):
    noise = dropout(TOKENIZER, PAIRS, 0.4, seed=3)
    first, again = all_of(noise, 5), all_of(dropout(TOKENIZER, PAIRS, 0.4, seed=3), 5)
    same = first == all_of(noise, 5) == again
    other_epoch, other_seed = all_of(noise, 6), all_of(dropout(TOKENIZER, PAIRS, 0.4, seed=4), 5)
    differ = first != other_epoch and first != other_seed
    assert same and differ


def more_dropout_makes_more_pieces(dropout):
    lengths = [sum(len(tgt) for _, tgt in all_of(dropout(TOKENIZER, PAIRS, share))) for share in (0, 0.1, 0.5, 1)]
    assert lengths == sorted(set(lengths))


def a_word_has_many_segmentations(dropout):
    noise = dropout(TOKENIZER, PAIRS, 0.5)
    drawn = Counter(tuple(noise.split(LONGEST, random.Random(seed), 0.5)) for seed in range(VARIANTS))
    assert len(drawn) > 3 and all("".join(pieces) == LONGEST for pieces in drawn)


def the_target_may_stay_whole(dropout):
    found, both = (all_of(dropout(TOKENIZER, PAIRS, 0.4, side=side)) for side in ("source", "both"))
    whole = [tgt for _, tgt in found] == [tgt for _, tgt in CLEAN]
    cut = sum(map(len, (src for src, _ in found))) > sum(len(src) for src, _ in CLEAN)
    others = [tgt for _, tgt in both] != [tgt for _, tgt in CLEAN]
    assert whole and cut and others


class BothSides(SubwordDropout):
    def __init__(self, *arguments, side="both", **options):
        super().__init__(*arguments, **options)


class NeverDrops(SubwordDropout):
    def __init__(self, tokenizer, pairs, share, **options):
        super().__init__(tokenizer, pairs, 0.0, **options)

    def split(self, word, rng, share):
        return super().split(word, rng, 0.0)


class AlwaysDrops(SubwordDropout):
    def __init__(self, tokenizer, pairs, share, **options):
        super().__init__(tokenizer, pairs, 1.0, **options)


class OneForAllEpochs(SubwordDropout):
    def __call__(self, epoch, index):
        return super().__call__(0, index)


class LastMergeFirst(SubwordDropout):
    """Broken on purpose: applies the latest merge that fits, not the first."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ranks = {pair: -rank for pair, rank in self.ranks.items()}


class LosesTheEnd(SubwordDropout):
    def split(self, word, rng, share):
        return super().split(word, rng, share)[: -1 if len(word) > 4 else None]


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (nothing_dropped_is_the_tokenizer, LastMergeFirst),
        (nothing_dropped_is_the_tokenizer, AlwaysDrops),
        (everything_dropped_is_characters, NeverDrops),
        (the_text_stays, LosesTheEnd),
        (seed_and_epoch_decide, OneForAllEpochs),
        (seed_and_epoch_decide, NeverDrops),
        (more_dropout_makes_more_pieces, NeverDrops),
        (the_target_may_stay_whole, BothSides),
        (the_target_may_stay_whole, NeverDrops),
        (a_word_has_many_segmentations, NeverDrops),
    ],
)
def test_subword_dropout_obeys_and_a_broken_variant_does_not(law, wrong):
    tells_apart(law, SubwordDropout, wrong)


def test_a_merge_is_left_out_with_its_probability():
    """A word of two characters and one merge is in two pieces in that share of the draws."""
    noise = SubwordDropout(TOKENIZER, PAIRS, 0.3)
    (word,) = next(["".join(pair)] for pair, rank in noise.ranks.items() if rank == 0)
    drawn = sum(len(noise.split(word, random.Random(seed), 0.3)) == 2 for seed in range(2000)) / 2000
    assert drawn == pytest.approx(0.3, abs=0.04)


def test_batches_take_the_noisy_pairs_and_keep_their_plan():
    noise = SubwordDropout(TOKENIZER, PAIRS, 0.4)
    plain, noisy = BucketedBatches(CLEAN, 200), BucketedBatches(CLEAN, 200, noise=noise)
    assert noisy.plan(1) == plain.plan(1)
    for indices, batch in zip(noisy.plan(1), noisy.epoch(1), strict=True):
        for index, row in zip(indices, batch.src.tolist(), strict=True):
            assert row[: row.index(EOS_ID) + 1] == noise(1, index)[0]


def test_another_noise_is_another_run():
    sums = {
        BucketedBatches(CLEAN, 200, noise=noise).checksum()
        for noise in (
            None,
            SubwordDropout(TOKENIZER, PAIRS, 0.1),
            SubwordDropout(TOKENIZER, PAIRS, 0.2),
            SubwordDropout(TOKENIZER, PAIRS, 0.1, seed=1),
            SubwordDropout(TOKENIZER, PAIRS, 0.1, side="source"),
        )
    }
    assert len(sums) == 5


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_an_impossible_share_is_refused(share):
    assert str(raised(ValueError, lambda: SubwordDropout(TOKENIZER, PAIRS, share))).endswith(f"got {share}")


def test_an_unknown_side_is_refused():
    assert "got 'target'" in str(raised(ValueError, lambda: SubwordDropout(TOKENIZER, PAIRS, 0.1, side="target")))
