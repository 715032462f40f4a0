"""Laws of the masks: who may attend to whom, and which masks are refused."""

from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_lib.masks import causal_mask, check_mask, padding_mask


def law_causal_mask_hides_the_future(mask_of):
    for length in (1, 2, 5):
        mask = mask_of(length)
        assert mask.dtype == torch.bool and mask.shape == (1, 1, length, length)
        for query in range(length):
            for key in range(length):
                assert mask[0, 0, query, key].item() == (key <= query)


def law_padding_mask_hides_padding_only(mask_of):
    for pad_id in (0, 3):
        ids = torch.tensor([[5, pad_id + 1, pad_id, 7], [4, 8, 9, pad_id], [pad_id, pad_id, pad_id, 1]])
        mask = mask_of(ids, pad_id)
        assert mask.dtype == torch.bool and mask.shape == (3, 1, 1, 4)
        for row in range(3):
            for key in range(4):
                assert mask[row, 0, 0, key].item() == (ids[row, key].item() != pad_id)


def test_causal_mask_hides_the_future():
    law_causal_mask_hides_the_future(causal_mask)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: causal_mask(n).tril(-1),  # not even itself: "everything before" instead of "up to and including"
        lambda n: torch.ones(1, 1, n, n, dtype=torch.bool).tril(1),  # one of the future
        lambda n: ~causal_mask(n),  # True = hidden, as torch.nn has it
        lambda n: causal_mask(n).transpose(-2, -1),
        lambda n: causal_mask(n).float(),
    ],
)
def test_the_law_of_the_future_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_causal_mask_hides_the_future(wrong)


def test_padding_mask_hides_padding_only():
    law_padding_mask_hides_padding_only(padding_mask)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ids, pad_id: ~padding_mask(ids, pad_id),
        lambda ids, pad_id: padding_mask(ids, 0),  # pad_id ignored
        lambda ids, pad_id: (ids > pad_id)[:, None, None, :],
        lambda ids, pad_id: (ids != pad_id)[:, None, :, None],  # along the queries
        lambda ids, pad_id: ids != pad_id,
    ],
)
def test_the_law_of_padding_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_padding_mask_hides_padding_only(wrong)


def test_masks_combine_with_and():
    ids = torch.tensor([[5, 6, 0]])
    both = padding_mask(ids, 0) & causal_mask(3)
    assert both.tolist() == [[[[True, False, False], [True, True, False], [True, True, False]]]]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4,), (1, 2, 3)])
def test_padding_mask_refuses_ids_that_are_no_batch(shape):
    with pytest.raises(ValueError, match=r"expected ids of shape \(batch, length\) with at least one token, got"):
        padding_mask(torch.ones(shape, dtype=torch.long), 0)


def test_padding_mask_names_the_empty_sentences():
    with pytest.raises(ValueError, match=r"an empty sentence: rows \[1, 3\] of ids hold only padding"):
        padding_mask(torch.tensor([[5, 0], [0, 0], [7, 8], [0, 0]]), 0)


@pytest.mark.parametrize("length", [0, -1, 2.5, True, "3", None])
def test_causal_mask_needs_a_position(length):
    with pytest.raises(ValueError, match=f"expected a length of at least 1, got {length!r}"):
        causal_mask(length)
    assert torch.equal(causal_mask(torch.tensor(4)), causal_mask(4))


SCORES = (2, 4, 3, 3)  # (batch, heads, queries, keys)


@pytest.mark.parametrize("shape", [SCORES, (1, 1, 3, 3), (2, 1, 1, 3), (1, 4, 3, 3), (1, 1, 1, 3)])
def test_a_mask_of_the_scores_shape_or_1_is_taken(shape):
    check_mask(torch.ones(shape, dtype=torch.bool), SCORES)


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3),  # (batch, keys): would need a batch equal to the queries to pass unnoticed
        (3, 3),  # … as here
        (3,),
        (2, 1, 3),
        (2, 1, 3, 1),  # keys by broadcasting
        (1, 1, 1, 1),
        (4, 2, 3, 3),  # batch and heads exchanged
        (2, 1, 4, 3),
        (2, 1, 3, 4),
        (1, 2, 4, 3, 3),
    ],
)
def test_a_mask_that_would_broadcast_silently_is_refused(shape):
    with pytest.raises(ValueError) as error:
        check_mask(torch.ones(shape, dtype=torch.bool), SCORES)
    assert f"as in the scores {SCORES}" in str(error.value) and f"got {shape}" in str(error.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_bool_is_refused(dtype):
    with pytest.raises(ValueError, match=f"expected a bool mask, True = may attend, got {dtype}"):
        check_mask(torch.ones(SCORES, dtype=dtype), SCORES)


def test_a_query_with_nothing_to_attend_is_refused():
    mask = torch.ones(SCORES, dtype=torch.bool)
    mask[1, 2, 0] = False
    with pytest.raises(ValueError, match="a query has nothing to attend to"):
        check_mask(mask, SCORES)
    mask[1, 2, 0, 1] = True
    check_mask(mask, SCORES)


# --- the conventions elsewhere, as lesson 05 tells them -------------------------------------------


def weights_of(queries=4, **how):
    """The weights (queries, 4) that torch's attention gives to four equal scores."""
    query, key, value = torch.zeros(1, 1, queries, 4), torch.ones(1, 1, 4, 4), torch.eye(4)[None, None]
    return F.scaled_dot_product_attention(query, key, value, **how)[0, 0]


def law_a_mask_is_looked_through_once_and_again_when_it_changes(check):
    mask = torch.ones(SCORES, dtype=torch.bool)
    check(mask, SCORES)
    with mock.patch.object(torch.Tensor, "any", side_effect=AssertionError("looked again")):
        check(mask, SCORES)
    mask[0, 0, 0] = False
    with pytest.raises(ValueError, match="nothing to attend to"):
        check(mask, SCORES)


def looks_each_time(mask, shape):
    check_mask(mask.clone(), shape)


def looks_once_and_for_all(mask, shape):
    if not hasattr(mask, "seen"):
        check_mask(mask, shape)
    mask.seen = True


def test_a_mask_is_looked_through_once_and_again_when_it_changes():
    law_a_mask_is_looked_through_once_and_again_when_it_changes(check_mask)
    for wrong in (looks_each_time, looks_once_and_for_all):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            law_a_mask_is_looked_through_once_and_again_when_it_changes(wrong)


def test_in_inference_mode_a_mask_is_looked_through_each_time():
    with torch.inference_mode():
        mask = torch.ones(SCORES, dtype=torch.bool)
        check_mask(mask, SCORES)
        mask[0, 0, 0] = False
        with pytest.raises(ValueError, match="nothing to attend to"):
            check_mask(mask, SCORES)


def test_is_causal_counts_from_the_upper_left():
    hidden = weights_of(is_causal=True) == 0
    assert torch.equal(~hidden, causal_mask(4)[0, 0])
    assert weights_of(queries=1, is_causal=True).tolist() == [[1, 0, 0, 0]]  # and not a quarter each


def test_is_causal_beside_a_mask_is_an_error_of_the_plain_kernel():
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError, match="is_causal"):
        weights_of(attn_mask=causal_mask(4), is_causal=True)


def test_a_mask_mod_says_who_may_attend():
    flex = pytest.importorskip("torch.nn.attention.flex_attention", reason="torch before 2.5 has no flex attention")
    mask = flex.create_mask(lambda batch, head, query, key: key <= query, 1, 1, 4, 4, device="cpu")
    assert torch.equal(mask, causal_mask(4))


@pytest.mark.parametrize("inverted", [True, False])
def test_the_layers_of_torch_hide_what_is_true(inverted):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    real, x = torch.tensor([[True, True, False]]), torch.randn(1, 3, 8, dtype=torch.float64)
    other = torch.where(real[..., None], x, 5.0)
    before, after = (layer(each, src_key_padding_mask=~real if inverted else real)[:, :2] for each in (x, other))
    assert torch.equal(before, after) == inverted


def test_cross_entropy_leaves_out_minus_100():
    logits = torch.randn(3, 5)
    loss = F.cross_entropy(logits, torch.tensor([1, -100, 4]))
    torch.testing.assert_close(loss, F.cross_entropy(logits[[0, 2]], torch.tensor([1, 4])))
