"""The loss of a batch and of held-out batches: padding costs and counts nothing, and the model is left as it was."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.batches import make_batch
from course_lib.training.evaluation import batch_loss, validate
from tests.helpers.laws import raised, tells_apart
from tests.helpers.tiny import tiny_model
from tests.helpers.training import FixedBatches, reversal_pairs

PAIRS = reversal_pairs(12)
UNEQUAL = FixedBatches([PAIRS[:2], PAIRS[2:9], PAIRS[9:]])



def batch_loss_is_the_padded_cross_entropy(loss_of, smoothing):
    batch, model = make_batch(PAIRS[:6]), tiny_model(spread=3)
    assert (batch.tgt_out == 0).any(), "without padding this compares nothing"
    logits = model(batch.src, batch.tgt_in)  # (batch, tgt_len, vocab)
    theirs = F.cross_entropy(
        logits.transpose(1, 2), batch.tgt_out, ignore_index=0, label_smoothing=smoothing, reduction="sum"
    )
    ours, correct = loss_of(model, batch, smoothing=smoothing)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert correct == int(((logits.argmax(dim=-1) == batch.tgt_out) & (batch.tgt_out != 0)).sum())


def counts_padding(model, batch, *, smoothing):
    logits = model(batch.src, batch.tgt_in).flatten(0, 1)
    return F.cross_entropy(logits, batch.tgt_out.flatten(), label_smoothing=smoothing, reduction="sum"), 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_batch_loss_is_the_cross_entropy_that_ignores_padding(smoothing):
    batch_loss_is_the_padded_cross_entropy(batch_loss, smoothing)
    with pytest.raises(AssertionError):
        batch_loss_is_the_padded_cross_entropy(counts_padding, smoothing)


def evaluation_weighs_tokens_alike(evaluator):
    model = tiny_model(spread=3)
    ours, theirs = evaluator(model, UNEQUAL), evaluator(model, FixedBatches([PAIRS]))
    assert ours == pytest.approx(theirs, rel=1e-5)


def mean_of_batches(model, batches):
    losses = [batch_loss(model, batch)[0].item() / batch.num_tokens for batch in batches.epoch(0)]
    return {"valid_loss": sum(losses) / len(losses)}


def test_evaluation_weighs_tokens_alike_however_they_are_batched():
    tells_apart(evaluation_weighs_tokens_alike, validate, mean_of_batches)


def evaluation_leaves_no_trace(evaluator):
    for mode in (True, False):
        model = tiny_model(dropout=0.5).train(mode)
        assert evaluator(model, UNEQUAL) == evaluator(model, UNEQUAL), "dropout was on"
        assert all(module.training is mode for module in model.modules())
        assert all(parameter.grad is None for parameter in model.parameters())
        bad = FixedBatches([[([99], [4])]])
        assert raised(ValueError, lambda model=model, bad=bad: evaluator(model, bad))
        assert model.training is mode, "after an error"


def stays_in_eval_mode(model, batches):
    model.eval()
    return validate(model, batches)


def test_evaluation_restores_the_mode_of_the_model():
    tells_apart(evaluation_leaves_no_trace, validate, stays_in_eval_mode)
