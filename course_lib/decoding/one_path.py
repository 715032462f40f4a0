"""One output for each sentence, greedy or sampled."""

import math
import operator
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.decoding.packed import first_step
from course_lib.decoding.steps import Hypothesis, check_probable, output_limits
from course_lib.masks import check_tensor
from course_lib.transformer import Transformer, check_ids, eval_mode

COLDEST, HOTTEST = 1e-6, 1e30  # temperatures; the quotients of others would not fit a float


def greedy(
    model: Transformer, src: Tensor, *, prefix: Sequence[int] = (), max_len: int | None = None
) -> list[Hypothesis]:
    """Takes the most probable token at each step.

    Args:
        model: put into evaluation mode meanwhile.
        src: (batch, src_len), padded source ids.
        prefix: ids that every output must begin with, whatever their probabilities.
        max_len: most target tokens, </s> included; None allows each row 50 more than its source has, padding not
            counted (paper, section 6.1).

    Returns:
        one hypothesis for each row.

    Raises:
        ValueError: on bad ids, max_len beyond the model's positions, or none for a src that is not ids; on a prefix
            that leaves no room, or holds <pad>, <s> or </s>; if the model's output is NaN.
    """
    config, prefix = model.config, [operator.index(i) for i in prefix]  # of a tensor, too
    unusable = {config.pad_id, config.bos_id, config.eos_id}
    if any(i in unusable or not 0 <= i < config.vocab_size for i in prefix):
        raise ValueError(f"a prefix holds ids of the vocabulary, and none of <pad>, <s> and </s>; got {prefix}")
    if len(prefix) >= (limit := min(output_limits(model, src, max_len), default=math.inf)):
        raise ValueError(f"the prefix of {len(prefix)} tokens leaves no room for more, the output has at most {limit}")
    forced = iter(prefix)

    def choose(log_probs: Tensor) -> Tensor:
        token = next(forced, None)
        return log_probs.argmax(dim=-1) if token is None else log_probs.new_full((len(log_probs),), token).long()

    return _one_path(model, src, max_len, choose)


def sample(
    model: Transformer,
    src: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    max_len: int | None = None,
) -> list[Hypothesis]:
    """Draws each token from the model's distribution, sharpened, flattened or cut.

    Args:
        model, src, max_len: as in greedy.
        temperature: divides the log-probabilities; below 1 sharpens.
        top_k: draw among the k most probable tokens only, and those that are as probable as the k-th.
        top_p: draw among the fewest most probable tokens whose probabilities reach p.
        generator: source of randomness, on the model's device.

    Returns:
        one hypothesis for each row; log_prob is the model's own, at temperature 1.

    Raises:
        ValueError: as greedy and sampling_probs.
    """

    def choose(log_probs: Tensor) -> Tensor:
        probs = sampling_probs(log_probs, temperature=temperature, top_k=top_k, top_p=top_p)
        return probs.multinomial(1, generator=generator).squeeze(1)

    return _one_path(model, src, max_len, choose)


def sampling_probs(
    log_probs: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """The model's log-probabilities of a next token (rows, vocab) to the probabilities that `sample` draws with.

    Args:
        log_probs: may hold -inf.
        temperature, top_k, top_p: as in sample; the temperature acts first, top_p on what top_k has left.

    Raises:
        ValueError: if temperature is not positive and finite, top_k no whole number from 1 on, top_p outside (0, 1],
            or log_probs NaN.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    if not COLDEST <= temperature <= HOTTEST:
        raise ValueError(f"temperature must be in {COLDEST}..{HOTTEST}, got {temperature}")
    check_tensor(log_probs, "log_probs")
    if log_probs.dim() != 2 or log_probs.numel() == 0 or not log_probs.is_floating_point():
        raise ValueError(f"expected log_probs (rows, vocab), got {tuple(log_probs.shape)} {log_probs.dtype}")
    if not log_probs.amax(dim=-1).isfinite().all():
        raise ValueError("the largest log-probability of each row must be a finite number; are the weights NaN?")
    return cut(log_probs / temperature, top_k, top_p).softmax(dim=-1)


def place_log_probs(model: Transformer, src: Tensor, ids: Sequence[int]) -> Tensor:
    """Log-probabilities of every token at each place of an output, as a search reads them.

    Args:
        model: put into evaluation mode meanwhile.
        src: (1, src_len).
        ids: of the output, with its </s> if it has one.

    Returns:
        (len(ids), vocab); row t is what might follow the first t tokens.

    Raises:
        ValueError: on bad ids, or if src is not one sentence.
    """
    ids = [operator.index(i) for i in ids]
    check_ids(torch.tensor([ids]).long(), "ids", model.config.vocab_size)
    check_ids(src, "src", model.config.vocab_size)
    if len(src) != 1:
        raise ValueError(f"expected one sentence, got {len(src)}")
    with eval_mode(model):
        steps = first_step(model, src)
        read = [model.config.bos_id, *ids[:-1]]
        return torch.cat([steps(torch.tensor([token], device=src.device)) for token in read])


def _one_path(
    model: Transformer, src: Tensor, max_len: int | None, choose: Callable[[Tensor], Tensor]
) -> list[Hypothesis]:
    """Extends each row by the token that `choose` picks from its log-probabilities, until </s> or max_len."""
    with eval_mode(model):
        limits = output_limits(model, src, max_len)
        steps = first_step(model, src)
        ids: list[list[int]] = [[] for _ in src]
        totals, finished = [0.0] * len(src), [False] * len(src)
        rows, last = list(range(len(src))), torch.full((len(src),), model.config.bos_id, device=src.device)
        for length in range(1, max(limits, default=0) + 1):
            log_probs = steps(last)
            last = choose(log_probs)
            chosen = log_probs.gather(1, last[:, None]).squeeze(1).tolist()
            check_probable(chosen)
            keep = []
            for position, (row, token) in enumerate(zip(rows, last.tolist(), strict=True)):
                totals[row] += chosen[position]
                if token == model.config.eos_id:
                    finished[row] = True
                else:
                    ids[row].append(token)
                    if length < limits[row]:
                        keep.append(position)
            if not keep:
                break
            if len(keep) < len(rows):
                kept = torch.tensor(keep, device=src.device)
                steps.select(kept)
                rows, last = [rows[position] for position in keep], last[kept]
        return [Hypothesis(*fields) for fields in zip(ids, totals, totals, finished, strict=True)]


def cut(log_probs: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """(rows, vocab) with -inf for what `sample` would not draw: first by top_k, then by top_p.

    Raises:
        ValueError: if top_k is no whole number from 1 on, or top_p outside (0, 1].
    """
    if top_k is not None and not (isinstance(top_k, int) and top_k >= 1):
        raise ValueError(f"top_k must be at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be in (0, 1], got {top_p}")
    if top_k is not None:
        smallest = log_probs.topk(min(top_k, log_probs.shape[-1])).values[:, -1:]  # (rows, 1)
        log_probs = log_probs.masked_fill(log_probs < smallest, -math.inf)
    if top_p not in (None, 1):  # 1 is all, but for rounding
        probs, order = log_probs.softmax(dim=-1).sort(dim=-1, descending=True)
        beyond = probs.cumsum(dim=-1) - probs >= top_p  # p was reached before this token
        beyond[:, 0] = False  # also where p is so small that it is rounded to 0
        log_probs = log_probs.masked_fill(beyond.scatter(1, order, beyond), -math.inf)
    return log_probs
