"""The loss of a batch, and of held-out batches."""

from torch import Tensor

from course_lib.data.batches import Batch, BucketedBatches
from course_lib.inference import eval_mode
from course_lib.loss import label_smoothed_loss
from course_lib.transformer import Transformer


def batch_loss(model: Transformer, batch: Batch, *, smoothing: float = 0.0) -> tuple[Tensor, int]:
    """The loss of a batch, computed for real tokens only, so that the softmax does no work on padding.

    Args:
        model: on the batch's device.
        batch: padded ids.
        smoothing: label smoothing.

    Returns:
        the summed loss in nats, and the number of correct top predictions (0 in training, where nobody asks).
    """
    real = batch.tgt_out != model.config.pad_id  # (batch, tgt_len)
    hidden = model.decode(batch.tgt_in, model.encode(batch.src), batch.src)  # (batch, tgt_len, d_model)
    logits, targets = model.generator(hidden[real]), batch.tgt_out[real]  # (tokens, vocab), (tokens,)
    correct = int((logits.detach().argmax(dim=-1) == targets).sum()) if not model.training else 0
    return label_smoothed_loss(logits.float(), targets, smoothing=smoothing), correct


def evaluate(model: Transformer, batches: BucketedBatches) -> dict[str, float]:
    """Loss (nats a token, unsmoothed) and accuracy of the next token, teacher-forced; the model's mode is restored."""
    device = next(model.parameters()).device
    loss, correct, tokens = 0.0, 0, 0
    with eval_mode(model):
        for batch in batches.epoch(0):
            batch_sum, batch_correct = batch_loss(model, batch.to(device))
            loss += batch_sum.item()
            correct += batch_correct
            tokens += batch.num_tokens
    return {"valid_loss": loss / tokens, "valid_accuracy": correct / tokens}
