"""Laws of decoding a single path, greedy or sampled, of any model with the Transformer's calls; two mistakes."""

import math
from functools import cache
from unittest import mock

import pytest
import torch

from course_lib import transformer
from tests.helpers.tiny import padded, sources, tiny_model

MODELS = [tiny_model(seed, spread=4, norm_first=seed % 2 == 1, vocab_size=8) for seed in range(6)]
SOURCES = sources([6, 1, 3, 5, 2], vocab_size=8)
SRC = padded(SOURCES)


# --- mistakes -----------------------------------------------------------------------------------


def all_may_be_attended(ids, pad_id):
    return torch.ones(len(ids), 1, 1, ids.shape[1], dtype=torch.bool)


ATTENDS_TO_PADDING = mock.patch.object(transformer, "padding_mask", all_may_be_attended)


def raw_logits(steps, last):
    return steps.logits(last)


# --- laws ---------------------------------------------------------------------------------------


def next_log_probs(model, ids, src):
    """Log-probabilities of the token after `ids`, from a whole parallel pass without a cache; (vocab,)."""
    with torch.no_grad():
        return model(torch.tensor([src]), torch.tensor([[1, *ids]]))[0, -1].log_softmax(dim=-1)


@cache
def naive_greedy(model, src, max_len):
    """The specification: the whole beginning goes through the model again for each new token; src is a tuple."""
    ids, total = [], 0.0
    while len(ids) < max_len:
        log_probs = next_log_probs(model, ids, src)
        log_probs[[0, 1]] = -math.inf
        best = int(log_probs.argmax())
        total += log_probs[best].item()
        if best == 2:
            return ids, total, True
        ids.append(best)
    return ids, total, False


def cached_equals_uncached(decode, models=MODELS):
    finished = set()
    for model in models:
        for row, ours in zip(SOURCES, decode(model, SRC, max_len=12), strict=True):
            ids, log_prob, ended = naive_greedy(model, tuple(row), 12)
            assert (ours.ids, ours.finished) == (ids, ended)
            assert ours.log_prob == ours.score == pytest.approx(log_prob, abs=1e-4)
            finished.add((ended, len(ids)))
    assert {ended for ended, _ in finished} == {True, False} and len(finished) > 4, "too uniform to compare"


def batch_equals_one_by_one(decode, models=MODELS):
    for model in models:
        alone = [decode(model, torch.tensor([row]), max_len=12)[0] for row in SOURCES]
        for ours, theirs in zip(decode(model, SRC, max_len=12), alone, strict=True):
            assert (ours.ids, ours.finished) == (theirs.ids, theirs.finished)
            assert ours.log_prob == pytest.approx(theirs.log_prob, abs=1e-4)


def log_prob_is_the_teacher_forced_one(decode, models=MODELS):
    for model in models:
        for row, ours in zip(SOURCES, decode(model, SRC, max_len=12), strict=True):
            outputs = ours.ids + [2] * ours.finished
            with torch.no_grad():
                log_probs = model(torch.tensor([row]), torch.tensor([[1, *outputs[:-1]]]))[0].log_softmax(dim=-1)
            total = sum(log_probs[position, token].item() for position, token in enumerate(outputs))
            assert ours.log_prob == pytest.approx(total, abs=1e-4)


def no_specials_come_out(decode, models=MODELS):
    for model in models:
        for hypothesis in decode(model, SRC, max_len=12):
            assert not {0, 1, 2} & set(hypothesis.ids)
