"""What every way of decoding shares: what comes out, how long it may be, and one decoder step after another."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.transformer import Transformer, check_ids

MAX_EXTRA_TOKENS = 50  # a translation may be this much longer than its source; paper, section 6.1


@dataclass(frozen=True)
class Hypothesis:
    """One output of the decoder.

    Args:
        ids: the target ids, without <s> and </s>.
        log_prob: of the whole output, the closing </s> included, in nats.
        score: what hypotheses were compared by: log_prob over the length penalty.
        finished: whether it ended with </s>, rather than at the maximum length.
    """

    ids: list[int]
    log_prob: float
    score: float
    finished: bool

    def outputs(self, eos_id: int) -> list[int]:
        """The ids as the decoder put them out: with the closing </s> if it has one."""
        return self.ids + [eos_id] * self.finished


def output_limits(model: Transformer, src: Tensor, max_len: int | None) -> list[int]:
    """Most target tokens of each row: max_len, or 50 more than its source.

    Raises:
        ValueError: on bad ids, max_len beyond the model's positions, or none for sources that are not ids.
    """
    longest = model.config.max_len
    if isinstance(model, Transformer):  # the sources of another model may be pictures
        check_ids(src, "src", model.config.vocab_size)
    if max_len is None:
        if src.dim() != 2 or src.dtype != torch.long:
            got = f"{tuple(src.shape)} {src.dtype}"
            raise ValueError(f"give max_len: the length of an output follows from ids (batch, src_len) only, got {got}")
        lengths = (src != model.config.pad_id).sum(dim=-1)  # (batch,)
        return [min(longest, length + MAX_EXTRA_TOKENS) for length in lengths.tolist()]
    if not (isinstance(max_len, int) and 1 <= max_len <= longest):
        raise ValueError(f"max_len must be in 1..{longest}, the model's positions, got {max_len}")
    return [max_len] * len(src)


def check_probable(log_probs: list[float]) -> None:
    """Raises ValueError if one of the largest log-probabilities is NaN: no token is the best then."""
    if any(map(math.isnan, log_probs)):
        raise ValueError("the model's output is NaN, so no token is the most probable: are its weights numbers?")


class Steps:
    """One decoder step at a time for rows that may be dropped, reordered and repeated between steps.

    Args:
        model: in evaluation mode, without gradients.
        src: (rows, src_len), padded source ids.
    """

    def __init__(self, model: Transformer, src: Tensor):
        self.model, self.src, self.memory = model, src, model.encode(src)
        self.cache = model.new_cache()

    def __call__(self, last: Tensor) -> Tensor:
        """Newest token of each row (rows,) to log-probabilities of the next (rows, vocab); <pad> and <s> get -inf."""
        log_probs = self.logits(last).float().log_softmax(dim=-1)  # (rows, vocab)
        log_probs[:, self.model.config.pad_id] = log_probs[:, self.model.config.bos_id] = -math.inf
        return log_probs

    def logits(self, last: Tensor) -> Tensor:
        """The model's own, (rows, vocab)."""
        hidden = self.model.decode(last[:, None], self.memory, self.src, cache=self.cache)  # (rows, 1, d_model)
        return self.model.generator(hidden[:, 0])

    def select(self, rows: Tensor) -> None:
        """Goes on with these rows, in this order; a row may come several times."""
        self.src, self.memory = self.src[rows], self.memory[rows]
        for layer in self.cache:
            layer.select(rows)
