"""The exercise of a masked language model: a text with holes, and what stood there."""

import torch
from torch import Tensor

from course_lib.config import ModelConfig

UNASKED = -100  # the target of places that are not asked for; torch's cross_entropy leaves it out


def mask_tokens(
    ids: Tensor,
    config: ModelConfig,
    mask_id: int,
    *,
    share: float = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Asks for a share of the tokens: of ten, eight are hidden by mask_id, one is replaced at random, one stays.

    Args:
        ids: (batch, length); <pad>, <s>, </s> and holes are never asked for, <unk> is, as any word.
        config: says which ids are special, and the size of the vocabulary.
        mask_id: of the token that stands for a hole.
        share: of the tokens that are asked for.
        generator: source of randomness, on the device of ids.

    Returns:
        ids with holes (batch, length), and the targets (batch, length), UNASKED elsewhere.

    Raises:
        ValueError: if share is not above 0 and at most 1, or mask_id is none of the vocabulary.

    Paper: Devlin et al. 2019, section 3.1, task 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share}")
    if not 0 <= mask_id < config.vocab_size:
        raise ValueError(f"mask_id must be in 0..{config.vocab_size - 1}, got {mask_id}")
    specials = torch.tensor([config.pad_id, config.bos_id, config.eos_id, mask_id], device=ids.device)
    options = dict(generator=generator, device=ids.device)
    asked = (torch.rand(ids.shape, **options) < share) & ~torch.isin(ids, specials)
    fate = torch.rand(ids.shape, **options)
    other = torch.randint(config.vocab_size, ids.shape, **options)
    other = torch.where(torch.isin(other, specials), ids, other)
    holes = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, other, ids))
    return torch.where(asked, holes, ids), torch.where(asked, ids, UNASKED)
