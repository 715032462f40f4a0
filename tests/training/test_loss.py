"""The training loss: equal to torch's label-smoothed cross-entropy, summed, with nothing left out."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.training.loss import label_smoothed_loss, smoothing_floor
from tests.helpers.parity import assert_same_function, close, noise

TARGETS = torch.tensor([0, 3, 6, 0, 2])  # id 0 is a target like any other

pytestmark = pytest.mark.usefixtures("float64")


def parity_with_torch(loss):
    for smoothing in (0.0, 0.1, 0.7):
        assert_same_function(
            lambda logits, smoothing=smoothing: loss(logits, TARGETS, smoothing=smoothing),
            lambda logits, smoothing=smoothing: F.cross_entropy(
                logits, TARGETS, label_smoothing=smoothing, reduction="sum"
            ),
            [3 * noise(5, 7)],
        )


def law_is_the_papers_formula(loss):
    """-Σ over ids of q · log p with q = 1 - ε on the true id and ε / vocab on every id besides."""
    logits = 3 * noise(5, 7)
    log_p, expected = logits.log_softmax(-1), 0.0
    for row, target in enumerate(TARGETS):
        for index in range(7):
            q = 0.1 / 7 + (0.9 if index == target else 0.0)
            expected -= q * log_p[row, index].item()
    assert math.isclose(loss(logits, TARGETS, smoothing=0.1).item(), expected, rel_tol=1e-12)


def law_tokens_add_up(loss):
    """The loss of all tokens is the sum of each token's own."""
    logits = noise(5, 7)
    whole = loss(logits, TARGETS, smoothing=0.1)
    close(sum(loss(logits[i : i + 1], TARGETS[i : i + 1], smoothing=0.1) for i in range(5)), whole)


def averaged(logits, targets, *, smoothing):
    return label_smoothed_loss(logits, targets, smoothing=smoothing) / len(targets)


def without_id_0(logits, targets, *, smoothing):
    return F.cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=0, reduction="sum")


def spread_over_the_others(logits, targets, *, smoothing):
    """tensor2tensor's: nothing of ε on the true id."""
    q = torch.full_like(logits, smoothing / (logits.shape[1] - 1)).scatter(1, targets[:, None], 1 - smoothing)
    return -(q * logits.log_softmax(-1)).sum()


def all_of_the_true_id(logits, targets, *, smoothing):
    return label_smoothed_loss(logits, targets) - smoothing * logits.log_softmax(-1).mean(-1).sum()


def unnormalized(logits, targets, *, smoothing):
    return -(logits.gather(1, targets[:, None]) * (1 - smoothing)).sum() - smoothing * logits.mean(-1).sum()


@pytest.mark.parametrize("law", [parity_with_torch, law_is_the_papers_formula, law_tokens_add_up])
def test_label_smoothed_loss_obeys(law):
    law(label_smoothed_loss)


@pytest.mark.parametrize(
    "law, wrong",
    [
        *((parity_with_torch, w) for w in (averaged, without_id_0, spread_over_the_others, all_of_the_true_id)),
        *((law_is_the_papers_formula, w) for w in (averaged, without_id_0, spread_over_the_others, unnormalized)),
        (law_tokens_add_up, averaged),
    ],
)
def test_another_loss_breaks(law, wrong):
    with pytest.raises(AssertionError):
        law(wrong)


def test_a_uniform_prediction_costs_the_logarithm_of_the_vocabulary_whatever_the_smoothing():
    for smoothing in (0.0, 0.1, 0.9):
        loss = label_smoothed_loss(torch.full((5, 7), 3.0), TARGETS, smoothing=smoothing)
        assert math.isclose(loss.item(), 5 * math.log(7), rel_tol=1e-12)


def test_a_hopeless_token_costs_its_distance_not_infinity():
    logits = torch.tensor([[0.0, 1e4]], requires_grad=True)
    loss = label_smoothed_loss(logits, torch.tensor([0]), smoothing=0.0)
    loss.backward()
    assert loss.item() == 1e4 and logits.grad.isfinite().all()


@pytest.mark.parametrize(
    "logits, targets",
    [((5, 7), (4,)), ((5, 7), (5, 1)), ((5, 3, 7), (5, 3)), ((0, 7), (0,)), ((7,), ())],
)
def test_shapes_that_do_not_fit_are_refused(logits, targets):
    with pytest.raises(ValueError) as error:
        label_smoothed_loss(torch.zeros(logits), torch.zeros(targets, dtype=torch.long))
    assert "expected logits (tokens, vocab) and targets (tokens,)" in str(error.value)
    assert f"got {logits} and {targets}" in str(error.value)


def law_the_floor_is_the_loss_of_the_best_logits(floor):
    for smoothing, vocab in ((0.1, 2000), (0.3, 7)):
        target = torch.full((1, vocab), smoothing / vocab, dtype=torch.float64)
        target[0, 3] += 1 - smoothing
        best = label_smoothed_loss(target.log(), torch.tensor([3]), smoothing=smoothing)
        torch.testing.assert_close(torch.tensor(floor(smoothing, vocab), dtype=torch.float64), best)
    assert floor(0.0, 7) == 0


def test_the_floor_is_the_loss_of_the_best_logits():
    law_the_floor_is_the_loss_of_the_best_logits(smoothing_floor)
    for wrong in (lambda smoothing, vocab: smoothing, lambda smoothing, vocab: smoothing * math.log(vocab)):
        with pytest.raises(AssertionError):
            law_the_floor_is_the_loss_of_the_best_logits(wrong)
