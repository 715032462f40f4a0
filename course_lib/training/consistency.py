"""R-Drop: the same batch twice, with other units dropped out, and the two predictions drawn towards each other."""

import torch
from torch import Tensor

from course_lib.config import check_numbers, require
from course_lib.data import Batch
from course_lib.training.evaluation import token_logits
from course_lib.training.loss import label_smoothed_loss
from course_lib.transformer import Transformer


def consistent_loss(
    model: Transformer, batch: Batch, *, smoothing: float = 0.0, consistency: float = 5.0
) -> tuple[Tensor, int]:
    """The mean loss of two passes with different dropout, and how far their predictions lie apart.

    With the distributions p and q of the two passes over the next token, and half of the paper's loss, so that it
    stays as large as one pass's: (loss(p) + loss(q)) / 2 + consistency / 4 · (KL(p ‖ q) + KL(q ‖ p)).

    Args:
        model: in training mode: without dropout both passes are one, and the second term is 0.
        batch: on the model's device.
        smoothing: label smoothing.
        consistency: the weight α; 5 in the paper's translations.

    Returns:
        the sum over the real target tokens, in nats, and 0, as `batch_loss` does in training.

    Raises:
        ValueError: if consistency is negative or no number.

    Reference: Liang et al. 2021, R-Drop, equation 4.
    """
    check_numbers(consistency=consistency)
    require(consistency >= 0, f"consistency must not be negative, got {consistency}")
    twice = Batch(*(torch.cat([ids, ids]) for ids in (batch.src, batch.tgt_in, batch.tgt_out)))
    logits, targets = token_logits(model, twice)  # (2 · tokens, vocab): all tokens of one pass, then of the other
    logits = logits.float()
    log_p, log_q = logits.log_softmax(dim=-1).chunk(2)
    apart = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum()  # of both divergences
    return label_smoothed_loss(logits, targets, smoothing=smoothing) / 2 + consistency / 4 * apart, 0
