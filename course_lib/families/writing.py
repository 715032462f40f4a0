"""How a language model goes on with a text: one drawn token after another."""

import math

import torch
from torch import Tensor

from course_lib.decoding import sampling_probs
from course_lib.families.texts import LanguageModel
from course_lib.transformer import eval_mode


def write(
    model: LanguageModel,
    prompt: Tensor,
    *,
    most: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Goes on with texts, drawing as `decoding.sample` does; all are read again for each token, there is no cache.

    Args:
        model: put into evaluation mode meanwhile. It reads the last max_len tokens of a text.
        prompt: (batch, length), the beginnings, without padding.
        most: tokens to add; a text that has put out eos_id gets pad_id from there on.
        temperature, top_k, top_p, generator: as in `decoding.sample`.

    Returns:
        (batch, length + up to most): with the prompt, and no longer than the longest text.

    Raises:
        ValueError: as sampling_probs, or if most is below 1 or a beginning holds padding.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    config, ids = model.config, prompt
    if (padded := (prompt == config.pad_id).any(dim=1)).any():
        raise ValueError(f"expected beginnings without padding, rows {padded.nonzero().flatten().tolist()} have some")
    finished = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    with eval_mode(model):
        for _ in range(most):
            log_probs = model(ids[:, -config.max_len :])[:, -1].float().log_softmax(dim=-1)  # (batch, vocab)
            log_probs[:, [config.pad_id, config.bos_id]] = -math.inf
            probs = sampling_probs(log_probs, temperature=temperature, top_k=top_k, top_p=top_p)
            token = probs.multinomial(1, generator=generator)  # (batch, 1)
            ids = torch.cat([ids, token.masked_fill(finished[:, None], config.pad_id)], dim=1)
            finished |= token[:, 0] == config.eos_id
            if finished.all():
                break
    return ids
