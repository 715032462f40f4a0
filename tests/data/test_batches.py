"""Laws of the batches: each pair once, the same plan for the same seed and epoch, little padding, shifted targets."""

import json
import os
import random
import subprocess
import sys

import pytest
import torch

from course_lib.data.batches import Batch, BucketedBatches, encode_pairs, make_batch, pad
from course_lib.data.corpus import Pair
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer


def some_pairs(number=200, seed=0):
    """Encoded pairs of 1 to 30 tokens a side, each pair's source unlike all others."""
    rng = random.Random(seed)
    pairs = []
    for index in range(number):
        length = rng.randint(1, 28)
        tgt = [rng.randint(4, 99) for _ in range(max(1, length + rng.randint(-2, 2)))]
        pairs.append(([100 + index] * length + [EOS_ID], tgt))
    return pairs


PAIRS = some_pairs()


def planned(pairs, batch_tokens, seed, epoch):
    return BucketedBatches(pairs, batch_tokens, seed=seed).plan(epoch)


def padded_size(indices):
    """Padded tokens on the longer side of a batch."""
    return len(indices) * max(max(len(PAIRS[index][0]), len(PAIRS[index][1]) + 1) for index in indices)


def padding_share(plan):
    """Share of all cells of source and target that is padding."""
    batches = [make_batch([PAIRS[index] for index in indices]) for indices in plan]
    cells = torch.cat([side.flatten() for batch in batches for side in (batch.src, batch.tgt_in)])
    return (cells == PAD_ID).double().mean().item()


def law_each_pair_once(plan_of):
    for batch_tokens in (1, 32, 100, 10_000):
        for epoch in (0, 1):
            plan = plan_of(PAIRS, batch_tokens, 0, epoch)
            assert all(plan) and sorted(index for indices in plan for index in indices) == list(range(len(PAIRS)))


def law_no_batch_is_too_large(plan_of):
    for batch_tokens in (32, 100, 300):
        for indices in plan_of(PAIRS, batch_tokens, 0, 0):
            assert padded_size(indices) <= batch_tokens or len(indices) == 1


def law_batches_are_nearly_full(plan_of):
    plan = plan_of(PAIRS, 300, 0, 0)
    assert sum(map(padded_size, plan)) / len(plan) > 0.8 * 300


def law_seed_and_epoch_alone_decide(plan_of):
    plans = {}
    for seed in (0, 1, 11):
        for epoch in (0, 1, 11):
            random.seed(seed + epoch)  # whatever else draws random numbers in between
            plan = plan_of(PAIRS, 100, seed, epoch)
            random.seed()
            assert plan == plan_of(PAIRS, 100, seed, epoch)
            plans[seed, epoch] = json.dumps(plan)
    assert len(set(plans.values())) == 9


def law_bucketing_saves_padding(plan_of):
    order = list(range(len(PAIRS)))
    random.Random(0).shuffle(order)
    unbucketed = [order[i : i + 10] for i in range(0, len(order), 10)]
    assert padding_share(plan_of(PAIRS, 300, 0, 0)) < 0.5 * padding_share(unbucketed)


def law_other_pairs_meet_in_each_epoch(plan_of):
    """Where many pairs are equally long, chance decides which of them share a batch."""
    pairs = [([5] * 4, [6] * 4)] * 60
    groups = [{frozenset(indices) for indices in plan_of(pairs, 60, 0, epoch)} for epoch in (0, 1)]
    assert len(groups[0]) == 5 and not groups[0] & groups[1]


def law_one_long_source_does_not_shrink_later_batches(plan_of):
    pairs = [([5] * 30, [6])] + [([5] * 4, [6] * 4)] * 60  # the long one has the shortest target
    assert len(plan_of(pairs, 60, 0, 0)) <= 7


def law_lengths_come_in_any_order(plan_of):
    """A plan that goes from short to long would train on long sentences last."""
    lengths = [len(PAIRS[indices[0]][1]) for indices in plan_of(PAIRS, 100, 0, 0)]
    assert lengths != sorted(lengths) and lengths != sorted(lengths, reverse=True)


LAWS = [
    law_each_pair_once,
    law_no_batch_is_too_large,
    law_batches_are_nearly_full,
    law_seed_and_epoch_alone_decide,
    law_bucketing_saves_padding,
    law_other_pairs_meet_in_each_epoch,
    law_one_long_source_does_not_shrink_later_batches,
    law_lengths_come_in_any_order,
]


@pytest.mark.parametrize("law", LAWS)
def test_bucketed_batches_obey(law):
    law(planned)


def last_dropped(pairs, batch_tokens, seed, epoch):
    return planned(pairs, batch_tokens, seed, epoch)[:-1]


def one_pair_too_many(pairs, batch_tokens, seed, epoch):
    plan = planned(pairs, batch_tokens, seed, epoch)
    return [[*plan[0], *plan[1]], *plan[2:]]


def one_by_one(pairs, batch_tokens, seed, epoch):
    return [[index] for batch in planned(pairs, batch_tokens, seed, epoch) for index in batch]


def global_generator(pairs, batch_tokens, seed, epoch):
    plan = planned(pairs, batch_tokens, seed, epoch)
    random.shuffle(plan)
    return plan


def epoch_ignored(pairs, batch_tokens, seed, epoch):
    return planned(pairs, batch_tokens, seed, 0)


def seed_plus_epoch(pairs, batch_tokens, seed, epoch):
    return planned(pairs, batch_tokens, seed + epoch, 0)


def not_bucketed(pairs, batch_tokens, seed, epoch):
    order = list(range(len(pairs)))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return [order[i : i + 10] for i in range(0, len(order), 10)]


def same_groups(pairs, batch_tokens, seed, epoch):
    plan = planned(pairs, batch_tokens, 0, 0)
    random.Random(f"{seed}/{epoch}").shuffle(plan)
    return plan


def by_the_longest_so_far(pairs, batch_tokens, seed, epoch):
    plan, longest = [[]], 0
    for index in sorted(range(len(pairs)), key=lambda index: len(pairs[index][1])):
        longest = max(longest, len(pairs[index][0]), len(pairs[index][1]) + 1)
        if longest * (len(plan[-1]) + 1) > batch_tokens:
            plan.append([])
        plan[-1].append(index)
    return plan


def short_to_long(pairs, batch_tokens, seed, epoch):
    return sorted(planned(pairs, batch_tokens, seed, epoch), key=lambda indices: len(pairs[indices[0]][1]))


@pytest.mark.parametrize(
    "law, wrong",
    [
        (law_each_pair_once, last_dropped),
        (law_no_batch_is_too_large, one_pair_too_many),
        (law_batches_are_nearly_full, one_by_one),
        (law_seed_and_epoch_alone_decide, global_generator),
        (law_seed_and_epoch_alone_decide, epoch_ignored),
        (law_seed_and_epoch_alone_decide, seed_plus_epoch),
        (law_bucketing_saves_padding, not_bucketed),
        (law_other_pairs_meet_in_each_epoch, same_groups),
        (law_one_long_source_does_not_shrink_later_batches, by_the_longest_so_far),
        (law_lengths_come_in_any_order, short_to_long),
    ],
)
def test_another_plan_breaks(law, wrong):
    with pytest.raises(AssertionError):
        law(wrong)


def test_the_plan_is_the_same_in_another_process(root):
    code = (
        "import json; from course_lib.data.batches import BucketedBatches\n"
        "pairs = [([5] * (n % 7 + 1), [6] * (n % 5 + 1)) for n in range(40)]\n"
        "print(json.dumps(BucketedBatches(pairs, 30, seed=3).plan(2)))"
    )
    env = os.environ | {"PYTHONHASHSEED": "123"}
    theirs = subprocess.run([sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True)
    pairs = [([5] * (n % 7 + 1), [6] * (n % 5 + 1)) for n in range(40)]
    assert json.loads(theirs.stdout) == planned(pairs, 30, 3, 2)


def test_a_sentence_too_long_for_any_batch_is_a_batch_alone():
    pairs = [([5] * 50, [6]), ([5], [6]), ([5], [6])]
    assert sorted(map(sorted, planned(pairs, 10, 0, 0))) == [[0], [1, 2]]


def test_an_epoch_from_the_middle_is_the_rest_of_the_epoch():
    batches = BucketedBatches(PAIRS, 100, seed=1)
    whole = list(batches.epoch(3))
    assert len(whole) == len(batches.plan(3))
    for start in (0, 1, len(whole) - 1, len(whole)):
        rest = list(batches.epoch(3, start=start))
        assert len(rest) == len(whole) - start
        for ours, theirs in zip(rest, whole[start:], strict=True):
            assert torch.equal(ours.src, theirs.src) and torch.equal(ours.tgt_out, theirs.tgt_out)


# --- one batch ----------------------------------------------------------------------------------


def law_target_is_shifted_by_one(batch_of):
    pairs = PAIRS[:7]
    batch = batch_of(pairs)
    longest = max(len(tgt) for _, tgt in pairs) + 1
    assert batch.tgt_in.shape == batch.tgt_out.shape == (7, longest)
    for row, (src, tgt) in enumerate(pairs):
        padding = [PAD_ID] * (longest - len(tgt) - 1)
        assert batch.tgt_in[row].tolist() == [BOS_ID, *tgt, *padding]
        assert batch.tgt_out[row].tolist() == [*tgt, EOS_ID, *padding]
        assert batch.src[row, : len(src)].tolist() == src and (batch.src[row, len(src) :] == PAD_ID).all()
        for t in range(len(tgt)):  # what a position must predict is what the next one gets
            assert batch.tgt_out[row, t] == batch.tgt_in[row, t + 1]


def not_shifted(pairs):
    batch = make_batch(pairs)
    return Batch(batch.src, batch.tgt_in, batch.tgt_in)


def cut_at_the_end(pairs):
    """tgt_in = all but the last column: in a padded batch only the longest sentence loses its </s>."""
    batch = make_batch(pairs)
    whole = torch.cat([batch.tgt_in[:, :1], batch.tgt_out], dim=1)
    return Batch(batch.src, whole[:, :-1], whole[:, 1:])


def test_the_target_is_shifted_by_one():
    law_target_is_shifted_by_one(make_batch)
    for wrong in (not_shifted, cut_at_the_end):
        with pytest.raises(AssertionError):
            law_target_is_shifted_by_one(wrong)


def test_only_real_target_tokens_are_counted():
    batch = make_batch([([5, 6, 2], [7, 8, 9]), ([5, 2], [7])])
    assert batch.num_tokens == 4 + 2
    assert batch.num_tokens == sum(len(tgt) + 1 for tgt in ([7, 8, 9], [7]))


def test_padding_fills_up_to_the_longest():
    padded = pad([[5], [6, 7, 8]])
    assert padded.tolist() == [[5, PAD_ID, PAD_ID], [6, 7, 8]] and padded.dtype == torch.long
    assert pad([[], []]).shape == (2, 0) and pad([[], []]).dtype == torch.long


def test_a_batch_goes_to_another_device():
    batch = make_batch(PAIRS[:2]).to("meta")
    assert batch.src.is_meta and batch.tgt_in.is_meta and batch.tgt_out.is_meta


# --- from text ----------------------------------------------------------------------------------

TEXTS = [Pair("A dog runs.", "Ein Hund rennt."), Pair("A cat!", "Eine Katze!")]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([text for pair in TEXTS for text in pair], 80)


def test_encoded_sources_end_and_targets_are_bare(tokenizer):
    for (src, tgt), pair in zip(encode_pairs(tokenizer, TEXTS), TEXTS, strict=True):
        assert src == [*tokenizer.encode(pair.src), EOS_ID] and tgt == tokenizer.encode(pair.tgt)


@pytest.mark.parametrize("bad", [Pair("", "Ein Hund."), Pair("A dog.", "  ")])
def test_a_pair_with_an_empty_side_is_named(tokenizer, bad):
    with pytest.raises(ValueError) as error:
        encode_pairs(tokenizer, [*TEXTS, bad])
    assert str(error.value) == f"pair 2 has an empty side: {bad.src!r}, {bad.tgt!r}"


def test_no_pairs_make_no_batches(tokenizer):
    with pytest.raises(ValueError, match="no sentence pairs to make batches of"):
        BucketedBatches(encode_pairs(tokenizer, []), 100)


@pytest.mark.parametrize("make", [make_batch, pad])
def test_an_empty_batch_is_refused(make):
    with pytest.raises(ValueError, match="no "):
        make([])
