"""Sampling: the draws follow the model's distribution, sharpened, flattened or cut."""

import math
from functools import partial
from unittest import mock

import pytest
import torch

from course_lib.decoding import greedy, one_path, sample, sampling_probs
from tests.helpers.decoding import (
    MODELS,
    SOURCES,
    SRC,
    log_prob_is_the_teacher_forced_one,
    next_log_probs,
    no_specials_come_out,
)
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import tiny_model

DRAWS = 4000
UNSURE = tiny_model(1, spread=1.5, vocab_size=8)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def first_tokens(draw, seed=0, **options):
    """Relative frequencies of the first token in many draws; (vocab,). Token 2 is </s>: an empty output."""
    many = torch.tensor([SOURCES[2]]).expand(DRAWS, -1)
    found = draw(UNSURE, many, max_len=1, generator=seeded(seed), **options)
    return torch.bincount(torch.tensor([(h.ids or [2])[0] for h in found]), minlength=8) / DRAWS


def expected(temperature=1.0):
    log_probs = next_log_probs(UNSURE, [], SOURCES[2])
    log_probs[[0, 1]] = -math.inf
    return (log_probs / temperature).softmax(dim=-1)


def draws_follow_the_softmax(draw):
    for temperature in (1.0, 2.5):
        frequencies, probs = first_tokens(draw, temperature=temperature), expected(temperature)
        assert (frequencies - probs).abs().sum() / 2 < 0.03, temperature
        assert probs.max() < 0.8, "too sure to compare"


def temperature_ignored(*args, temperature, **options):
    return sample(*args, **options)


def only_the_top_k_are_drawn(draw):
    for k in (1, 2, 3):
        assert set(first_tokens(draw, temperature=3.0, top_k=k).nonzero().flatten().tolist()) == set(
            expected().topk(k).indices.tolist()
        )


def fewest_that_reach_p_are_drawn(draw):
    probs, order = expected().sort(descending=True)
    for count in (1, 2, 4):
        for p in (probs[:count].sum() - 0.01, probs[: count - 1].sum() + 0.01):  # in the middle of token `count`
            drawn = first_tokens(draw, top_p=float(p)).nonzero().flatten().tolist()
            assert set(drawn) == set(order[:count].tolist())
    assert first_tokens(draw, top_p=1.0).count_nonzero() == 6


def never_crosses_p(log_probs, top_k, top_p):
    if top_p is None:
        return log_probs
    probs, order = log_probs.softmax(dim=-1).sort(dim=-1, descending=True)
    beyond = probs.cumsum(dim=-1) > top_p
    beyond[:, 0] = False
    return log_probs.masked_fill(beyond.gather(1, order.argsort(dim=-1)), -math.inf)


SAMPLING_LAWS = [
    (draws_follow_the_softmax, temperature_ignored),
    (only_the_top_k_are_drawn, lambda *args, top_k, **options: sample(*args, top_k=top_k + 1, **options)),
    (fewest_that_reach_p_are_drawn, patched(sample, mock.patch.object(one_path, "cut", never_crosses_p))),
]


@pytest.mark.parametrize("law, mutant", SAMPLING_LAWS)
def test_sampling_law(law, mutant):
    tells_apart(law, sample, mutant)


def by_hand(row, *, temperature=1.0, top_k=None, top_p=None):
    """One row of log-probabilities: temperature first, then the k best, then the fewest of these that reach p."""
    weights = [math.exp(log_prob / temperature) for log_prob in row]
    order = sorted(range(len(row)), key=lambda index: -row[index])[: top_k or len(row)]
    total, kept = sum(weights[index] for index in order), []
    for index in order:
        kept.append(index)
        if top_p is not None and sum(weights[index] for index in kept) >= top_p * total:
            break
    total = sum(weights[index] for index in kept)
    return [weights[index] / total if index in kept else 0.0 for index in range(len(row))]


def probs_are_those_by_hand(probs_of):
    rows = torch.randn(3, 8, generator=seeded(), dtype=torch.float64).mul(2).log_softmax(dim=-1)
    rows[:, 5] = -math.inf
    for options in (
        dict(),
        dict(temperature=0.4),
        dict(top_k=3),
        dict(top_p=0.7),
        dict(temperature=3.0, top_k=4),
        dict(temperature=3.0, top_p=0.6),
        dict(temperature=2.0, top_k=4, top_p=0.7),
    ):
        expected = torch.tensor([by_hand(row, **options) for row in rows.tolist()], dtype=torch.float64)
        torch.testing.assert_close(probs_of(rows, **options), expected, rtol=1e-9, atol=1e-12)


def tempered_last(rows, *, temperature=1.0, **cuts):
    return (sampling_probs(rows, **cuts).log() / temperature).softmax(dim=-1)


def top_p_first(rows, *, temperature=1.0, top_k=None, top_p=None):
    return sampling_probs(sampling_probs(rows, temperature=temperature, top_p=top_p).log(), top_k=top_k)


PROBS_MUTANTS = {
    "cut before the temperature": tempered_last,
    "top-p before top-k": top_p_first,
    "not divided again": lambda rows, **o: (
        (rows / o.get("temperature", 1)).softmax(-1) * (sampling_probs(rows, **o) > 0)
    ),
}


def test_the_probabilities_of_a_draw_are_those_by_hand():
    tells_apart(probs_are_those_by_hand, sampling_probs, *PROBS_MUTANTS.values())


def test_equals_of_the_kth_are_drawn_too():
    def law(probs_of):
        row = torch.tensor([[0.0, 3.0, 1.0, 1.0, 2.0, 1.0]])
        found = [probs_of(row, top_k=k).count_nonzero().item() for k in (1, 2, 3, 4, 6)]
        assert found == [1, 2, 5, 5, 6]

    def exactly_k(row, *, top_k):
        largest, ids = row.topk(top_k)
        return torch.full_like(row, -math.inf).scatter(1, ids, largest).softmax(dim=-1)

    tells_apart(law, sampling_probs, exactly_k)


def test_top_p_of_1_cuts_nothing():
    log_probs = torch.randn(1, 200_000, generator=seeded()).log_softmax(dim=-1)
    assert torch.equal(sampling_probs(log_probs, top_p=1.0), sampling_probs(log_probs))


@pytest.mark.parametrize("options", [dict(temperature=1e-4), dict(top_k=1), dict(top_p=1e-6)])
def test_sharpened_to_the_limit_sampling_is_greedy(options):
    for model in MODELS:
        assert sample(model, SRC, max_len=12, generator=seeded(), **options) == greedy(model, SRC, max_len=12)
    assert sample(model, SRC, max_len=12, generator=seeded()) != greedy(model, SRC, max_len=12)


def test_the_same_generator_state_gives_the_same_output():
    draw = partial(sample, MODELS[0], SRC, max_len=12, temperature=2.0)
    assert draw(generator=seeded(1)) == draw(generator=seeded(1)) != draw(generator=seeded(2))


def test_log_prob_of_a_sample_is_the_models_own_at_temperature_1():
    log_prob_is_the_teacher_forced_one(partial(sample, temperature=3.0, top_k=4, generator=seeded()))
    no_specials_come_out(partial(sample, temperature=9.0, generator=seeded()))


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(temperature=0.0), "temperature must be positive, got 0.0"),
        (dict(temperature=-1.0), "temperature must be positive, got -1.0"),
        (dict(temperature=math.nan), "temperature must be positive, got nan"),
        (dict(top_k=0), "top_k must be at least 1, got 0"),
        (dict(top_p=0.0), "top_p must be in (0, 1], got 0.0"),
        (dict(top_p=1.5), "top_p must be in (0, 1], got 1.5"),
    ],
)
def test_bad_sampling_arguments_are_refused(options, message):
    assert str(raised(ValueError, lambda: sample(MODELS[0], SRC, **options))) == message
