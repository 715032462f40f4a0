"""Greedy decoding: the cache, the batch and the padding change nothing, and the log-probability is the model's."""

import math
from dataclasses import replace
from unittest import mock

import pytest
import torch

from course_lib.blocks import LayerCache
from course_lib.decoding import Steps, greedy, place_log_probs, sample
from course_lib.transformer import Embedding
from tests.helpers.decoding import (
    ATTENDS_TO_PADDING,
    MODELS,
    SOURCES,
    SRC,
    batch_equals_one_by_one,
    cached_equals_uncached,
    log_prob_is_the_teacher_forced_one,
    next_log_probs,
    no_specials_come_out,
    raw_logits,
)
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import sources, tiny_model

pytestmark = pytest.mark.usefixtures("plain_steps")  # test_packed.py has the others

# --- mutants: decoding with one part broken -----------------------------------------------------


def always_at_the_start(embedding, ids, *, start=0, forward=Embedding.forward):
    return forward(embedding, ids)


def past_values_lost(cache, keys, values, append=LayerCache.append):
    keys, values = append(cache, keys, values)
    values[:, :, :-1] = 0
    return keys, values


def in_another_order(cache, rows, select=LayerCache.select):
    select(cache, rows.flip(0))


def specials_allowed(steps, last):
    return raw_logits(steps, last).log_softmax(dim=-1)


NO_POSITIONS = mock.patch.object(Embedding, "forward", always_at_the_start)
NO_PAST = mock.patch.object(LayerCache, "append", past_values_lost)
MIXED_ROWS = mock.patch.object(LayerCache, "select", in_another_order)
SUMS_LOGITS = mock.patch.object(Steps, "__call__", raw_logits)
EMITS_SPECIALS = mock.patch.object(Steps, "__call__", specials_allowed)


# --- greedy -------------------------------------------------------------------------------------

LAWS = {
    cached_equals_uncached: [NO_POSITIONS, NO_PAST, MIXED_ROWS, ATTENDS_TO_PADDING],
    batch_equals_one_by_one: [ATTENDS_TO_PADDING, MIXED_ROWS],
    log_prob_is_the_teacher_forced_one: [SUMS_LOGITS],
    no_specials_come_out: [EMITS_SPECIALS],
}


@pytest.mark.parametrize("law", LAWS)
def test_greedy_law(law):
    tells_apart(law, greedy, *(patched(greedy, mistake) for mistake in LAWS[law]))


def max_len_is_respected(decode):
    for model in MODELS:
        whole = decode(model, SRC, max_len=12)
        for max_len in (1, 2, 5):
            for cut, full in zip(decode(model, SRC, max_len=max_len), whole, strict=True):
                assert len(cut.ids) + cut.finished <= max_len
                assert cut.ids == full.ids[:max_len]
                assert cut.finished == (full.finished and len(full.ids) < max_len)


def a_prefix_is_kept_and_gone_on_from(decode):
    """The rest is the most probable one after it; the log-probability counts the prefix too."""
    changed = 0
    for model in MODELS:
        for row in SOURCES:
            free = greedy(model, torch.tensor([row]), max_len=12)[0]
            for prefix in ([5], [4, 6], free.ids[:2]):
                (ours,) = decode(model, torch.tensor([row]), prefix=prefix, max_len=12)
                outputs = ours.ids + [2] * ours.finished
                assert outputs[: len(prefix)] == prefix
                total, begun = 0.0, []
                for place, token in enumerate(outputs):
                    log_probs = next_log_probs(model, begun, row)
                    total += log_probs[token].item()
                    if place >= len(prefix):
                        log_probs[[0, 1]] = -math.inf
                        assert token == int(log_probs.argmax())
                    begun.append(token)
                assert ours.log_prob == pytest.approx(total, abs=1e-4)
                assert ours.finished or len(outputs) == 12
                changed += ours.ids != free.ids
    assert changed > 10, "too few prefixes that change something"


def prefix_ignored(model, src, *, prefix, max_len):
    return greedy(model, src, max_len=max_len)


def prefix_glued_on(model, src, *, prefix, max_len):
    (free,) = greedy(model, src, max_len=max_len - len(prefix))
    return [replace(free, ids=[*prefix, *free.ids])]


@pytest.mark.parametrize("wrong", [prefix_ignored, prefix_glued_on])
def test_a_prefix_is_kept_and_gone_on_from(wrong):
    tells_apart(a_prefix_is_kept_and_gone_on_from, greedy, wrong)


def test_a_prefix_leaves_room_in_every_row():
    """A row may have 50 more tokens than its source: here 57 and 52, with </s>."""
    model = tiny_model(spread=4, vocab_size=8, max_len=80)
    assert all(len(found.ids) >= 51 for found in greedy(model, SRC[:2], prefix=[5] * 51))
    error = raised(ValueError, lambda: greedy(model, SRC[:2], prefix=[5] * 52))
    assert str(error) == "the prefix of 52 tokens leaves no room for more, the output has at most 52"


def test_a_prefix_holds_for_every_row_of_a_batch():
    for ours, row in zip(greedy(MODELS[0], SRC, prefix=[5, 4], max_len=12), SOURCES, strict=True):
        alone = greedy(MODELS[0], torch.tensor([row]), prefix=[5, 4], max_len=12)[0]
        assert (ours.ids, ours.finished) == (alone.ids, alone.finished)


@pytest.mark.parametrize("prefix", [[0], [5, 1], [2], [8], [-1]])
def test_a_prefix_of_unusable_tokens_is_refused(prefix):
    error = raised(ValueError, lambda: greedy(MODELS[0], SRC, prefix=prefix))
    assert str(error) == f"a prefix holds ids of the vocabulary, and none of <pad>, <s> and </s>; got {prefix}"


def test_a_prefix_leaves_room_for_a_token():
    assert greedy(MODELS[0], SRC, prefix=[5] * 2, max_len=3)
    error = raised(ValueError, lambda: greedy(MODELS[0], SRC, prefix=[5] * 3, max_len=3))
    assert str(error) == "the prefix of 3 tokens leaves no room for more, the output has at most 3"


def one_token_more(model, src, *, max_len):
    return greedy(model, src, max_len=max_len + 1)


def test_max_len_is_respected():
    tells_apart(max_len_is_respected, greedy, one_token_more)


def test_without_max_len_the_output_may_be_50_tokens_longer_than_the_source():
    endless = tiny_model(spread=4, max_len=80)
    with torch.no_grad():
        endless.generator.weight[2] = 0  # </s> never wins
    lengths = [len(greedy(endless, torch.tensor([row]))[0].ids) for row in sources([3, 20])]
    assert lengths == [4 + 50, 21 + 50]
    assert len(greedy(tiny_model(max_len=9), torch.tensor([SOURCES[0]]))[0].ids) <= 9, "the model's positions"


@pytest.mark.parametrize("decode", [greedy, sample])
def test_bad_arguments_are_refused(decode):
    model = MODELS[0]
    for max_len in (0, 25):
        error = raised(ValueError, lambda max_len=max_len: decode(model, SRC, max_len=max_len))
        assert str(error) == f"max_len must be in 1..24, the model's positions, got {max_len}"
    assert "int64" in str(raised(ValueError, lambda: decode(model, SRC.float())))
    assert "(batch, length)" in str(raised(ValueError, lambda: decode(model, SRC[0])))
    assert "0..7" in str(raised(ValueError, lambda: decode(model, SRC + 5)))
    assert "only padding" in str(raised(ValueError, lambda: decode(model, SRC * 0)))


@pytest.mark.parametrize("decode", [greedy, sample])
def test_the_mode_of_the_model_is_restored(decode):
    model = tiny_model(dropout=0.5, vocab_size=8).train()
    decode(model, SRC, max_len=3)
    assert model.training
    assert raised(ValueError, lambda: decode(model, SRC, max_len=99)) and model.training


def places_are_what_might_follow_each_beginning(places):
    for model in MODELS[:3]:
        ids = [5, 7, 3, 2]
        found = places(model, torch.tensor([SOURCES[0]]), ids)
        assert found.shape == (len(ids), 8)
        for place, row in enumerate(found):
            expected = next_log_probs(model, ids[:place], SOURCES[0])
            expected[[0, 1]] = -math.inf
            torch.testing.assert_close(row, expected, rtol=0, atol=1e-4)


def read_one_late(model, src, ids):
    return place_log_probs(model, src, [*ids[1:], 2])


def test_places_are_what_might_follow_each_beginning():
    mutants = read_one_late, patched(place_log_probs, NO_POSITIONS)
    tells_apart(places_are_what_might_follow_each_beginning, place_log_probs, *mutants)
