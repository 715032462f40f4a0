"""The training loss: cross-entropy against label-smoothed targets."""

import math

import torch
from torch import Tensor

from course_lib.config import check_shares, check_sizes
from course_lib.masks import check_tensor


def label_smoothed_loss(logits: Tensor, targets: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy to a target that gives 1 - smoothing to the true id and spreads the rest evenly over all ids.

    With p = softmax(logits): -(1 - smoothing) log p[target] - smoothing · mean over the vocabulary of log p.

    Args:
        logits: (tokens, vocab), of real tokens only: leave padding out before, so that nothing is spent on it.
        targets: (tokens,), true ids.
        smoothing: in [0, 1).

    Returns:
        the sum over tokens, in nats.

    Raises:
        ValueError: if shapes or dtypes do not fit, there are no tokens, or a target (on a CPU) or smoothing is outside
            its range.

    Paper: section 5.4. Deviation: tensor2tensor spreads over the other ids only; torch and we over all.
    """
    check_tensor(logits, "logits")
    check_tensor(targets, "targets")
    if logits.dim() != 2 or targets.shape != logits.shape[:1] or targets.numel() == 0:
        raise ValueError(
            "expected logits (tokens, vocab) and targets (tokens,), at least one; "
            f"got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    if not logits.is_floating_point() or targets.dtype != torch.long:
        raise ValueError(f"expected floating-point logits and int64 targets, got {logits.dtype} and {targets.dtype}")
    if targets.device.type == "cpu" and not (0 <= targets.min() and targets.max() < logits.shape[1]):
        raise ValueError(f"expected targets in 0..{logits.shape[1] - 1}, got {targets.min()}..{targets.max()}")
    check_shares(smoothing=smoothing)
    log_probs = logits.log_softmax(dim=-1)  # (tokens, vocab)
    loss = -(1 - smoothing) * log_probs.gather(1, targets[:, None]).sum()
    if smoothing:
        loss = loss - smoothing * log_probs.mean(dim=-1).sum()
    return loss


def smoothing_floor(smoothing: float, vocab_size: int) -> float:
    """The lowest loss that smoothed labels allow, in nats per token: the entropy of the target; 0 without smoothing.

    Args:
        smoothing: in [0, 1).
        vocab_size: number of ids.

    Raises:
        ValueError: if one of them is outside its range.
    """
    check_shares(smoothing=smoothing)
    check_sizes(vocab_size=vocab_size)
    rest = smoothing / vocab_size  # of every id
    true = 1 - smoothing + rest
    return -true * math.log(true) - (vocab_size - 1) * rest * math.log(rest) if smoothing else 0.0
