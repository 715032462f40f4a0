"""What a search refuses: weights that are no numbers, a prefix of no ids, a penalty that ranks nothing."""

import math
from functools import partial
from unittest import mock

import pytest
import torch

from course_lib.decoding import (
    Hypothesis,
    beam_search,
    greedy,
    normalized,
    place_log_probs,
    record_beam,
    sample,
    sampling_probs,
)
from tests.helpers.decoding import MODELS, SOURCES, SRC
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import tiny_model


@pytest.fixture(params=["packed", "plain"], autouse=True)
def steps(request):
    """Both ways of a decoder step."""
    if request.param == "plain":
        request.getfixturevalue("plain_steps")


def broken_models():
    """One number of the embeddings, or of a layer, is NaN or infinite."""
    for name, value in (("generator", math.nan), ("encoder.norm", math.nan), ("generator", math.inf)):
        model = tiny_model(vocab_size=8, norm_first=True)
        with torch.no_grad():
            next(model.get_submodule(name).parameters()).view(-1)[5] = value
        yield model


def law_no_token_is_chosen_of_nan(search):
    for model in broken_models():
        found = []
        error = raised(ValueError, lambda model=model, found=found: found.append(search(model, SRC)))
        assert error and "NaN" in str(error), found


def unchecked(search):
    return patched(
        search,
        mock.patch("course_lib.decoding.beam.check_probable"),
        mock.patch("course_lib.decoding.one_path.check_probable"),
    )


@pytest.mark.parametrize("search", [greedy, beam_search, record_beam])
def test_no_token_is_chosen_of_nan(search):
    tells_apart(law_no_token_is_chosen_of_nan, search, unchecked(search))


def test_no_token_is_drawn_of_nan():
    law_no_token_is_chosen_of_nan(sample)
    nothing_possible = torch.full((1, 4), -math.inf)
    for rows in (nothing_possible, nothing_possible * math.nan, -nothing_possible):
        with pytest.raises(ValueError, match="the largest log-probability of each row must be a finite number"):
            sampling_probs(rows)


def law_a_prefix_is_checked_whatever_holds_it(search):
    for prefix in ([0], [5, 1], [2], [8], [-1]):
        for held in (prefix, tuple(prefix), torch.tensor(prefix), iter(prefix)):
            error = raised(ValueError, lambda held=held: search(MODELS[0], SRC, prefix=held))
            assert error and "a prefix holds ids of the vocabulary" in str(error), held
    as_list, as_tensor = (search(MODELS[0], SRC, prefix=prefix) for prefix in ([5, 4], torch.tensor([5, 4])))
    assert as_list == as_tensor


def as_objects(model, src, *, prefix):
    """As `in` compares a tensor with the ids of a set: by its identity."""
    escaped = isinstance(prefix, torch.Tensor)
    return [Hypothesis(prefix.tolist(), 0.0, 0.0, True)] if escaped else greedy(model, src, prefix=prefix)


def test_a_prefix_is_checked_whatever_holds_it():
    tells_apart(law_a_prefix_is_checked_whatever_holds_it, greedy, as_objects)


BAD_PENALTIES = (math.nan, math.inf, -math.inf, 1e308, 41, "0.6", None, True)


def law_a_penalty_is_a_number_that_ranks(rank):
    for penalty in BAD_PENALTIES:
        found = []
        error = raised(ValueError, lambda penalty=penalty, found=found: found.append(rank(length_penalty=penalty)))
        assert error and "length_penalty must be" in str(error), f"{penalty}: {found}"


def ranks_anyhow(length_penalty):
    try:
        return -3.0 / 1.5**length_penalty
    except (TypeError, OverflowError):
        return 0.0


def test_a_penalty_is_a_number_that_ranks():
    tree = record_beam(MODELS[0], SRC[:1], beam_size=2, max_len=4)[0]
    tells_apart(law_a_penalty_is_a_number_that_ranks, partial(normalized, -3.0, 4), ranks_anyhow)
    for ours in (tree.rescored, partial(beam_search, MODELS[0], SRC), partial(record_beam, MODELS[0], SRC)):
        law_a_penalty_is_a_number_that_ranks(ours)


@pytest.mark.parametrize("ids", [[], [8], [-1], [10**9]])
def test_places_of_ids_outside_the_vocabulary_are_refused(ids):
    with pytest.raises(ValueError, match="ids"):
        place_log_probs(MODELS[0], torch.tensor([SOURCES[0]]), ids)
    with pytest.raises(ValueError, match="expected one sentence, got 5"):
        place_log_probs(MODELS[0], SRC, [5])
