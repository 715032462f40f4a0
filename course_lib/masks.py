"""Masks: boolean tensors, True where a query may attend to a key, broadcastable to (batch, heads, queries, keys)."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Hides the padding from every query.

    Args:
        ids: (batch, keys), token ids.
        pad_id: the id that fills short sentences up.

    Returns:
        (batch, 1, 1, keys) bool, False at the padding.

    Raises:
        ValueError: if ids has no rows or columns or is not two-dimensional, or a row holds nothing but padding:
            its queries would have nothing to attend to.
    """
    if ids.dim() != 2 or ids.numel() == 0:
        raise ValueError(f"expected ids of shape (batch, length) with at least one token, got {tuple(ids.shape)}")
    mask = ids != pad_id
    empty = ~mask.any(dim=1)
    if empty.any():
        raise ValueError(f"an empty sentence: rows {empty.nonzero().flatten().tolist()} of ids hold only padding")
    return mask[:, None, None, :]


def causal_mask(length: int, *, device: torch.device | None = None) -> Tensor:
    """Lets each position attend to itself and to the positions before it.

    Args:
        length: number of positions.

    Returns:
        (1, 1, length, length) bool, True on and below the diagonal.

    Raises:
        ValueError: if length is less than 1.

    Paper: section 3.2.3, third use of attention.
    """
    if length < 1:
        raise ValueError(f"expected a length of at least 1, got {length}")
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def check_mask(mask: Tensor, shape: tuple[int, ...]) -> None:
    """Refuses a mask that cannot mean what its caller meant.

    Args:
        mask: bool, as many dimensions as the scores, each of the scores' size or 1; keys never 1 by broadcasting.
        shape: shape of the scores, (..., queries, keys).

    Raises:
        ValueError: on another dtype, a shape that would broadcast silently (a (batch, keys) mask against
            (batch, heads, queries, keys) scores, say), or a query that may attend to nothing.
    """
    if mask.dtype != torch.bool:
        raise ValueError(f"expected a bool mask, True = may attend, got {mask.dtype}")
    fits = mask.dim() == len(shape) and mask.shape[-1] == shape[-1]
    if not fits or any(got not in (1, want) for got, want in zip(mask.shape, shape, strict=True)):
        raise ValueError(
            f"expected a mask with {len(shape)} dimensions, each 1 or as in the scores {tuple(shape)}, keys in full; "
            f"got {tuple(mask.shape)}"
        )
    if not torch.compiler.is_compiling() and not mask.any(dim=-1).all():
        raise ValueError("a query has nothing to attend to: a row of the mask is False for every key")
