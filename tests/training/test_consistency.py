"""R-Drop: two passes with different dropout, their mean loss, and both divergences between their predictions."""

from dataclasses import replace

import pytest
import torch

from course_lib.data import make_batch
from course_lib.training import TrainConfig, batch_loss, fit, label_smoothed_loss, token_logits
from course_lib.training.consistency import consistent_loss
from tests.helpers.tiny import tiny_model

BATCH = make_batch([([5, 6, 7, 2], [8, 9]), ([4, 2], [10, 11, 12, 13])])


def model(dropout=0.3):
    torch.manual_seed(0)
    return tiny_model(dropout=dropout, vocab_size=23).train()


def law_without_dropout_it_is_the_loss_of_one_pass(loss):
    one = model(dropout=0.0)
    for smoothing in (0.0, 0.1):
        expected = batch_loss(one, BATCH, smoothing=smoothing)[0]
        torch.testing.assert_close(loss(one, BATCH, smoothing=smoothing)[0], expected)


def law_is_the_references_formula(loss):
    """From the two passes themselves: the rows of one batch that holds everything twice."""
    one = model()
    torch.manual_seed(1)
    found = loss(one, BATCH, smoothing=0.1)[0]
    torch.manual_seed(1)
    both = type(BATCH)(*(torch.cat([ids, ids]) for ids in (BATCH.src, BATCH.tgt_in, BATCH.tgt_out)))
    logits, targets = token_logits(one, both)
    half = len(targets) // 2
    p, q = logits[:half].softmax(-1), logits[half:].softmax(-1)
    divergence = (p * (p / q).log()).sum() + (q * (q / p).log()).sum()
    losses = [label_smoothed_loss(part, targets[:half], smoothing=0.1) for part in (logits[:half], logits[half:])]
    assert divergence > 0.1
    torch.testing.assert_close(found, sum(losses) / 2 + 5 / 4 * divergence)


def one_sided(model, batch, *, smoothing=0.0):
    """Draws the first pass to the second only."""
    twice = type(batch)(*(torch.cat([ids, ids]) for ids in (batch.src, batch.tgt_in, batch.tgt_out)))
    logits, targets = token_logits(model, twice)
    log_p, log_q = logits.log_softmax(dim=-1).chunk(2)
    apart = 2 * (log_p.exp() * (log_p - log_q)).sum()
    return label_smoothed_loss(logits, targets, smoothing=smoothing) / 2 + 5 / 4 * apart, 0


def not_halved(model, batch, *, smoothing=0.0):
    found, none = consistent_loss(model, batch, smoothing=smoothing)
    return 2 * found, none


def one_pass(model, batch, *, smoothing=0.0):
    return batch_loss(model, batch, smoothing=smoothing)


@pytest.mark.parametrize("law", [law_without_dropout_it_is_the_loss_of_one_pass, law_is_the_references_formula])
def test_the_loss_obeys(law):
    law(consistent_loss)


@pytest.mark.parametrize(
    "law, wrong",
    [
        (law_without_dropout_it_is_the_loss_of_one_pass, not_halved),
        (law_is_the_references_formula, not_halved),
        (law_is_the_references_formula, one_sided),
        (law_is_the_references_formula, one_pass),
    ],
)
def test_a_broken_loss_does_not(law, wrong):
    with pytest.raises(AssertionError):
        law(wrong)


def test_a_run_trains_with_it_if_its_configuration_says_so():
    from course_lib.data import BucketedBatches

    batches = BucketedBatches([([5, 6, 7, 2], [8, 9]), ([4, 2], [10, 11, 12, 13])], 64)
    config = TrainConfig(epochs=1, peak_lr=1e-3, warmup_steps=1)
    losses = {}
    for consistency in (0.0, 50.0):
        one = model()
        history = fit(one, batches, replace(config, consistency=consistency), progress=False)
        losses[consistency] = history.losses[0]
    assert losses[50.0] > 1.5 * losses[0.0]
    with pytest.raises(ValueError, match="consistency is of the usual loss"):
        fit(model(), batches, replace(config, consistency=1.0), loss=batch_loss, progress=False)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), "much"])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(ValueError, match="consistency must"):
        consistent_loss(model(), BATCH, consistency=weight)
    with pytest.raises(ValueError, match="consistency must"):
        TrainConfig(consistency=weight)
