"""Masks: boolean tensors, True where a query may attend to a key, broadcastable to (batch, heads, queries, keys)."""

import math

import torch
from torch import Tensor

NUMBERS = {torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64}  # that scores are computed of
LONGEST = 50_000  # a causal mask of so many positions takes 2.5 GB


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Hides the padding from every query.

    Args:
        ids: (batch, keys), token ids.
        pad_id: the id that fills short sentences up.

    Returns:
        (batch, 1, 1, keys) bool, False at the padding.

    Raises:
        ValueError: if ids has no rows or columns or is not two-dimensional, or a row holds nothing but padding:
            its queries would have nothing to attend to; or if pad_id is no id.
    """
    check_tensor(ids, "ids")
    if not isinstance(pad_id, int) or abs(pad_id) >= 2**63:
        raise ValueError(f"pad_id must be an int, got {pad_id!r}")
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
        ValueError: if length is no whole number from 1 on, or so large that no memory could hold the mask.

    Paper: section 3.2.3, third use of attention.
    """
    if isinstance(length, bool) or not hasattr(length, "__index__") or not 1 <= length <= LONGEST:
        raise ValueError(f"expected a length of at least 1, got {length!r}; {LONGEST:,} is the most")
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
    check_tensor(mask, "mask")
    if mask.dtype != torch.bool:
        raise ValueError(f"expected a bool mask, True = may attend, got {mask.dtype}")
    fits = mask.dim() == len(shape) and mask.shape[-1] == shape[-1]
    if not fits or any(got not in (1, want) for got, want in zip(mask.shape, shape, strict=True)):
        raise ValueError(
            f"expected a mask with {len(shape)} dimensions, each 1 or as in the scores {tuple(shape)}, keys in full; "
            f"got {tuple(mask.shape)}"
        )
    if torch.compiler.is_compiling():
        return
    version = None if mask.is_inference() else mask._version  # changes with what the mask holds
    if version is None or getattr(mask, "checked_version", None) != version:
        if not mask.any(dim=-1).all():
            raise ValueError("a query has nothing to attend to: a row of the mask is False for every key")
        mask.checked_version = version  # all layers get this mask: on a GPU each look at its values would wait for it


def check_bias(bias: Tensor, shape: tuple[int, ...]) -> None:
    """Raises ValueError unless the bias can be added to scores of this shape, leaves it as it is, and hides no key."""
    check_tensor(bias, "bias")
    pairs = zip(bias.shape[::-1], shape[::-1], strict=False)
    if bias.dim() > len(shape) or any(got not in (1, want) for got, want in pairs) or not bias.is_floating_point():
        raise ValueError(
            f"expected a bias of floating-point numbers, each dimension 1 or as in the scores {tuple(shape)}; "
            f"got {bias.dtype} {tuple(bias.shape)}"
        )
    if bias.device.type != "cpu" or torch.compiler.is_compiling():  # a GPU would be waited for
        return
    if bias.numel() and bias.amin() == -math.inf:
        raise ValueError("a bias must not hold -inf: to whom a query may attend is for the mask to say")


def check_tensor(x: Tensor, name: str) -> None:
    """Raises TypeError unless x is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")


def check_product(query: Tensor, key: Tensor) -> None:
    """Raises ValueError unless each query can be compared with keys: one width, dtype and device, batches that fit."""
    _check_pair(query=query, key=key)
    if not query.shape[-1] == key.shape[-1] > 0:
        raise ValueError(f"query and key must share d_k, got {tuple(query.shape)} and {tuple(key.shape)}")
    if key.shape[-2] == 0:
        raise ValueError(f"a query has nothing to attend to: there are no keys, got {tuple(key.shape)}")


def check_values(key: Tensor, value: Tensor) -> None:
    """Raises ValueError unless each key has a value, both of one floating-point dtype and device."""
    _check_pair(key=key, value=value)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"each key needs one value, got key {tuple(key.shape)} and value {tuple(value.shape)}")
    if not value.is_floating_point():
        raise ValueError(f"expected values of floating-point numbers, got {value.dtype}")


def _check_pair(**pair: Tensor) -> None:
    for name, x in pair.items():
        check_tensor(x, name)
    one, other = pair.values()
    batches = zip(one.shape[-3::-1], other.shape[-3::-1], strict=False)
    fits = min(one.dim(), other.dim()) > 1 and all(a == b or 1 in (a, b) for a, b in batches)
    same = one.dtype == other.dtype or torch.is_autocast_enabled(one.device.type)  # which makes them the same
    if not fits or not same or one.device != other.device or one.dtype not in NUMBERS:
        got = " and ".join(f"{tuple(x.shape)} {x.dtype} on {x.device}" for x in pair.values())
        raise ValueError(
            f"{' and '.join(pair)} must be numbers (..., length, width) of one dtype and device, and batches that fit; "
            f"got {got}"
        )


def check_features(
    x: Tensor, width: int, dtype: torch.dtype, *, dims: int | None = None, name: str = "x"
) -> None:
    """Raises ValueError unless x is (..., width), with so many dimensions, and of this dtype (free under autocast)."""
    check_tensor(x, name)
    if x.shape[-1:] != (width,) or dims not in (None, x.dim()):
        raise ValueError(f"expected ({'...' if dims is None else 'batch, length'}, {width}), got {tuple(x.shape)}")
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"expected {dtype}, got {x.dtype}")


def check_norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> None:
    """Raises ValueError unless x has floating-point features, each with a scale and a shift, and eps is 0 or more."""
    for name, each in (("x", x), ("scale", scale), ("shift", shift)):
        check_tensor(each, name)
    real = all(each.is_floating_point() for each in (x, scale, shift))
    if not (real and x.shape[-1:] == scale.shape == shift.shape and 0 <= eps < 1e30):
        got = f"{tuple(x.shape)} {x.dtype}, {tuple(scale.shape)}, {tuple(shift.shape)} and {eps}"
        raise ValueError(f"expected x (..., d_model), scale and shift (d_model,), and eps from 0 on; got {got}")
