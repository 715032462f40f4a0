"""The mask painter without a browser: its weights are the library's, and so is what it refuses."""

import math

import numpy as np
import pytest
import torch
import traitlets as t

from course_lib.attention import attention_scores
from course_lib.masks import causal_mask
from course_lib.widgets import MaskPainter
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

QUERIES, KEYS = ["Die", "Katze", "schläft"], ["The", "cat", "sleeps"]
GENERATOR = torch.Generator().manual_seed(0)
QUERY, KEY = torch.randn(2, 3, 4, generator=GENERATOR, dtype=torch.float64)
CAUSAL = causal_mask(3)[0, 0]
PADDING = torch.tensor([[True, True, False]] * 3)
MASKS = {"padding": PADDING, "causal": CAUSAL, "both": PADDING & CAUSAL}


def painter(**changes):
    return MaskPainter(**(dict(query=QUERY, key=KEY, queries=QUERIES, keys=KEYS, masks=MASKS) | changes))


def law_hidden_weights_are_0_and_the_rest_shares(weights_of):
    """`weights_of`: a painter to its weights; the specification is a softmax over each row's open keys."""
    found = painter(mask="both")
    scores = attention_scores(QUERY, KEY)
    some = torch.tensor([[True, False, True], [False, True, False], [True, True, True]])
    for mask in (*MASKS.values(), some, torch.ones(3, 3, dtype=torch.bool)):
        found.mask = mask.tolist()
        weights = weights_of(found)
        assert (weights[~mask] == 0).all()
        for row in range(3):
            torch.testing.assert_close(weights[row][mask[row]], scores[row][mask[row]].softmax(dim=-1))


def test_hidden_weights_are_0_and_the_rest_shares():
    law_hidden_weights_are_0_and_the_rest_shares(MaskPainter.compute)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found: attention_scores(QUERY, KEY).softmax(dim=-1),  # no mask
        lambda found: attention_scores(QUERY, KEY).softmax(dim=-1) * torch.tensor(found.mask),  # after the softmax
        lambda found: (attention_scores(QUERY, KEY) * torch.tensor(found.mask)).softmax(dim=-1),  # scores set to 0
        lambda found: (attention_scores(QUERY, KEY) - 20.0 * ~torch.tensor(found.mask)).softmax(dim=-1),  # nearly
        lambda found: torch.tensor(found.mask).double() / torch.tensor(found.mask).sum(dim=-1, keepdim=True),
    ],
)
def test_the_law_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_hidden_weights_are_0_and_the_rest_shares(wrong)


def test_an_empty_row_is_refused_in_the_librarys_words():
    found = painter()
    found.mask = [[True] * 3, [False] * 3, [True] * 3]
    assert str(raised(ValueError, found.compute)) == found.refusal
    assert found.refusal.startswith("a query has nothing to attend to")


def test_no_mask_is_always_offered():
    assert list(painter().masks) == ["no mask", "padding", "causal", "both"]
    assert painter().mask == [[True] * 3] * 3
    assert painter(mask="causal").mask == CAUSAL.tolist() == painter().masks["causal"]
    assert painter(masks={}).masks == {"no mask": [[True] * 3] * 3}


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(query=QUERY[:2]), "expected 3 queries and 3 keys as named, 1 to 10 each; got (2, 4) and (3, 4)"),
        (dict(keys=KEYS[:2]), "expected 3 queries and 2 keys as named, 1 to 10 each; got (3, 4) and (3, 4)"),
        (dict(query=QUERY[:, :3]), "query and key must share d_k, got (3, 3) and (3, 4)"),
        (dict(masks={"wide": CAUSAL[:2]}), "wide: expected a bool mask (3, 3), got torch.bool (2, 3)"),
        (dict(masks={"soft": CAUSAL.float()}), "soft: expected a bool mask (3, 3), got torch.float32 (3, 3)"),
        (dict(mask="cross"), "expected a mask among no mask, padding, causal, both, got cross"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    assert str(raised(ValueError, lambda: painter(**changes))) == message


def test_more_rows_than_the_page_has_room_for_are_refused():
    many, names = torch.zeros(11, 4), list("abcdefghijk")
    assert raised(ValueError, lambda: painter(query=many, queries=names, masks={})) is not None
    painter(query=many[:10], queries=names[:10], masks={})


@pytest.mark.parametrize("mask", [[[True] * 3] * 2, [[True] * 2] * 3, [[2] * 3] * 3, []])
def test_later_masks_must_fit_too(mask):
    found = painter()
    with pytest.raises(t.TraitError):
        found.mask = mask
    assert found.mask == [[True] * 3] * 3


def law_the_picture_shows_the_state(picture, found):
    figure = picture(found)
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images][:2]
    title = figure.get_suptitle().replace("\n", " ")
    mask = np.array(found.mask)
    assert np.array_equal(shown[0].astype(bool), mask) and f"{mask.sum()} of 9 pairs are open" in title
    if mask.any(axis=1).all():
        np.testing.assert_allclose(shown[1], found.compute(), rtol=1e-6)
    else:
        assert len(shown) == 1 and found.refusal in title


def test_the_picture_shows_the_present_state():
    found = painter(mask="both")
    first = found.picture()
    for mask in (MASKS["both"].tolist(), MASKS["causal"].tolist(), [[False] * 3] * 3):
        found.mask = mask
        law_the_picture_shows_the_state(MaskPainter.picture, found)
    with pytest.raises(AssertionError):
        law_the_picture_shows_the_state(lambda _: first, found)


def test_a_stored_notebook_has_the_picture_and_its_words():
    words = stored_words(painter(mask="both"))
    assert words == "5 of 9 pairs are open, and the other weights are exactly 0"
    assert math.isclose(sum(painter(mask="both").compute().flatten().tolist()), 3)
