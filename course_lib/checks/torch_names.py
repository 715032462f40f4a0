"""Our weights in the layers of torch.nn, which keep W_Q, W_K and W_V in one matrix and have other names."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def in_our_names(theirs: nn.Module, get: Callable[[Tensor], Tensor] = Tensor.detach) -> dict[str, Tensor]:
    """The parameters of a layer or stack of torch.nn under the names that ours have; views, not copies.

    Args:
        theirs: a MultiheadAttention, LayerNorm, Linear, TransformerEncoderLayer, TransformerDecoderLayer,
            TransformerEncoder or TransformerDecoder.
        get: parameter to what is wanted of it, such as its gradient.

    Raises:
        ValueError: of another class than these.
    """
    match theirs:
        case nn.MultiheadAttention():
            weights, biases = get(theirs.in_proj_weight).chunk(3), get(theirs.in_proj_bias).chunk(3)
            named = {}
            for role, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
                named |= {f"{role}_proj.weight": weight, f"{role}_proj.bias": bias}
            return named | _below("output_proj", theirs.out_proj, get)
        case nn.LayerNorm():
            return {"scale": get(theirs.weight), "shift": get(theirs.bias)}
        case nn.Linear():
            return {"weight": get(theirs.weight)} | ({} if theirs.bias is None else {"bias": get(theirs.bias)})
        case nn.TransformerEncoderLayer():
            parts = {"self_attn": theirs.self_attn, "self_attn_path.norm": theirs.norm1}
            parts |= {"feed_forward_path.norm": theirs.norm2}
        case nn.TransformerDecoderLayer():
            parts = {"self_attn": theirs.self_attn, "self_attn_path.norm": theirs.norm1}
            parts |= {"cross_attn": theirs.multihead_attn, "cross_attn_path.norm": theirs.norm2}
            parts |= {"feed_forward_path.norm": theirs.norm3}
        case nn.TransformerEncoder() | nn.TransformerDecoder():
            parts = {f"layers.{index}": layer for index, layer in enumerate(theirs.layers)}
            parts |= {"norm": theirs.norm} if theirs.norm is not None else {}
        case _:
            raise ValueError(f"expected a layer or stack of torch.nn, got {type(theirs).__name__}")
    if hasattr(theirs, "linear1"):
        parts |= {"feed_forward.up": theirs.linear1, "feed_forward.down": theirs.linear2}
    return {name: tensor for part, module in parts.items() for name, tensor in _below(part, module, get).items()}


def _below(prefix: str, theirs: nn.Module, get: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in in_our_names(theirs, get).items()}


@torch.no_grad()
def copy_into_torch(ours: nn.Module, theirs: nn.Module) -> nn.Module:
    """Theirs with our weights, where ours are and as exact; each parameter has exactly one counterpart.

    Args:
        ours: a module of the course, or another one with the same names.
        theirs: see `in_our_names`; is changed in place.

    Raises:
        ValueError: if a parameter of one side is missing on the other, or has another shape there.
    """
    state = ours.state_dict()
    theirs.to(next(iter(state.values())))
    named = in_our_names(theirs)
    shapes, expected = ({name: tuple(each.shape) for name, each in side.items()} for side in (state, named))
    if shapes != expected:
        differ = dict(sorted({*shapes.items()} ^ {*expected.items()}))
        raise ValueError(f"expected the same parameters on both sides, got {differ} on one of them")
    for name, tensor in named.items():
        tensor.copy_(state[name])
    return theirs
