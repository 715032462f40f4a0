"""Beam search: the most probable whole output, not the most probable next token."""

import math

import torch
from torch import Tensor

from course_lib.decoding import Hypothesis, Steps, output_limit
from course_lib.inference import eval_mode
from course_lib.transformer import Transformer


def beam_search(
    model: Transformer,
    src: Tensor,
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    max_len: int | None = None,
) -> list[list[Hypothesis]]:
    """Keeps the beam_size most probable beginnings at each step; finished ones compete by length-normalized score.

    A sentence is done when beam_size hypotheses have finished. With beam_size 1 this is greedy search.

    Args:
        model, src, max_len: as in greedy.
        beam_size: hypotheses kept.
        length_penalty: alpha of Wu et al. 2016; 0 compares bare log-probabilities.

    Returns:
        for each row up to beam_size hypotheses, best first; unfinished ones only where none finished.

    Raises:
        ValueError: as greedy, or if beam_size is below 1.

    Paper: section 6.1 (beam 4, alpha 0.6).
    """
    if beam_size < 1:
        raise ValueError(f"beam_size must be at least 1, got {beam_size}")
    with eval_mode(model):
        max_len = output_limit(model, src, max_len)
        steps = Steps(model, src)
        beams = [_Beam(row, beam_size, length_penalty) for row in range(len(src))]
        active, last = beams, torch.full((len(src),), model.config.bos_id, device=src.device)
        for length in range(1, max_len + 1):
            log_probs = steps(last)  # (rows of all active beams, vocab)
            offset, rows, tokens = 0, [], []
            for beam in active:
                size = len(beam.live)
                parents, chosen = beam.extend(log_probs[offset : offset + size], model.config.eos_id, length == max_len)
                if not beam.done:
                    rows += [offset + parent for parent in parents]
                    tokens += chosen
                offset += size
            active = [beam for beam in active if not beam.done]
            if not active:
                break
            steps.select(torch.tensor(rows, device=src.device))
            last = torch.tensor(tokens, device=src.device)
        return [beam.best() for beam in beams]


class _Beam:
    """The hypotheses of one sentence."""

    def __init__(self, row: int, size: int, length_penalty: float):
        self.size, self.length_penalty = size, length_penalty
        self.live: list[tuple[list[int], float]] = [([], 0.0)]  # ids and log-probability
        self.finished: list[Hypothesis] = []
        self.unfinished: list[Hypothesis] = []

    @property
    def done(self) -> bool:
        return len(self.finished) >= self.size or not self.live

    def extend(self, log_probs: Tensor, eos_id: int, last: bool) -> tuple[list[int], list[int]]:
        """Takes the best continuations of the live hypotheses; returns which each came from, and its new token."""
        before = torch.tensor([log_prob for _, log_prob in self.live], device=log_probs.device)
        totals = before[:, None] + log_probs  # (live, vocab)
        vocab = log_probs.shape[1]
        best = totals.flatten().topk(min(2 * self.size, totals.numel()))  # enough: at most `size` of them end
        live, parents, tokens = [], [], []
        for rank, (total, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
            parent, token = divmod(index, vocab)
            if total == -math.inf or len(live) == self.size:
                break
            ids = self.live[parent][0]
            if token == eos_id:
                if rank < self.size:
                    self.finished.append(self._hypothesis(ids, total, True))
                continue
            live.append((ids + [token], total))
            parents.append(parent)
            tokens.append(token)
        if last:
            self.unfinished = [self._hypothesis(ids, total, False) for ids, total in live]
            live = []
        self.live = live
        return parents, tokens

    def best(self) -> list[Hypothesis]:
        """Finished hypotheses, best first; where there are none, those that were cut off."""
        return sorted(self.finished or self.unfinished, key=lambda hypothesis: -hypothesis.score)[: self.size]

    def _hypothesis(self, ids, log_prob, finished) -> Hypothesis:
        length = len(ids) + finished
        return Hypothesis(ids, log_prob, log_prob / ((5 + length) / 6) ** self.length_penalty, finished)
