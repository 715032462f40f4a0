"""What the alternatives share: checked ids, reading from both ends, and a size that equals the Transformer's."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from course_lib.config import ModelConfig
from course_lib.masks import padding_mask
from course_lib.transformer import check_ids


def fields_like(config: ModelConfig, kind: type) -> dict:
    """Those values of a Transformer's configuration that another kind of configuration has, too."""
    return {name: value for name, value in config.to_dict().items() if name in kind.__dataclass_fields__}


def nearest(configs: Iterable, size: int):
    """The configuration whose number of parameters is nearest to a size."""
    return min(configs, key=lambda config: abs(config.num_parameters - size))


def widths_below(config: ModelConfig, step: int) -> range:
    """Widths among which there is one for a model as large as the Transformer: larger ones have more in one matrix."""
    return range(step, 2 * step + math.isqrt(config.num_parameters), step)


def real_tokens(ids: Tensor, name: str, config) -> Tensor:
    """(batch, length), True at the tokens.

    Raises:
        ValueError: on bad ids, and on padding that is not at the end.
    """
    check_ids(ids, name, config.vocab_size)
    real = padding_mask(ids, config.pad_id)[:, 0, 0]
    if (real[:, 1:] > real[:, :-1]).any():
        raise ValueError(f"{name} has padding before a token, it must stand behind them all")
    return real


def check_together(src: Tensor, memory: Tensor, tgt_in: Tensor, width: int, cached: Tensor | None) -> None:
    """Raises ValueError unless the three are of the same sentences, and what a cache holds (rows, …) is, too."""
    if memory.shape != (*src.shape, width) or len(src) != len(tgt_in):
        shapes = ", ".join(str(tuple(each.shape)) for each in (src, memory, tgt_in))
        raise ValueError(f"src, memory and tgt_in must belong together, got {shapes}")
    if cached is not None and len(cached) != len(tgt_in):
        raise ValueError(f"the cache holds {len(cached)} sentences, tgt_in has {len(tgt_in)}")


def backward_order(real: Tensor) -> Tensor:
    """Where the tokens of each sentence stand, from its last to its first; the padding stays where it is.

    Args:
        real: (batch, length) bool, True at the tokens, all of them before the padding.

    Returns:
        (batch, length), positions; applied twice, it restores the order.
    """
    place = torch.arange(real.shape[1], device=real.device)
    mirrored = real.sum(dim=1, keepdim=True) - 1 - place  # (batch, length), negative at the padding
    return torch.where(real, mirrored, place)


def reordered(x: Tensor, order: Tensor) -> Tensor:
    """The tokens of x (batch, length, features) in the order (batch, length)."""
    return x.gather(1, order[:, :, None].expand_as(x))  # (batch, length, features)


def tie_embeddings(model: nn.Module) -> None:
    """One matrix for both embeddings and the generator, as the paper's section 3.4."""
    model.tgt_embedding.table.weight = model.src_embedding.table.weight
    model.generator.weight = model.src_embedding.table.weight
