"""Heads switched off, to see what a model does without them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from course_lib.recording import KINDS, attentions
from course_lib.transformer import Transformer

Head = tuple[str, int, int]  # the kind of attention, the layer, the head, both counted from 0


def all_heads(model: Transformer) -> list[Head]:
    """Every head of a model: kind after kind, layer after layer."""
    return [
        (kind, layer, head)
        for kind in KINDS
        for layer, module in enumerate(attentions(model, kind))
        for head in range(module.num_heads)
    ]


@contextmanager
def ablate_heads(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Inside the block, the contexts of these heads are zeros when W_O mixes the heads.

    That is what zeros in the heads' columns of W_O would do, but no weight is touched, and W_O's bias stays. It holds
    for every way to run the model, with the key-value cache or without. Recorded weights stay what they are: a silent
    head still attends, but nobody hears of it. After the block nothing is left on the model.

    Args:
        model: any Transformer.
        heads: (kind, layer, head) each, as `all_heads` lists them; none is allowed, and repeats count once.

    Raises:
        ValueError: if the model has no such head.

    Paper: section 3.2.2; switching heads off one at a time is Michel et al. 2019.
    """
    silent: dict[tuple[str, int], set[int]] = {}
    for name in heads:
        kind, layer, head = _checked(model, name)
        silent.setdefault((kind, layer), set()).add(head)
    handles = []
    try:
        for (kind, layer), numbers in silent.items():
            module = attentions(model, kind)[layer]
            audible = torch.ones(module.num_heads, dtype=torch.bool)
            audible[sorted(numbers)] = False
            handles.append(module.fused.register_forward_hook(_keep(audible)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _keep(audible: torch.Tensor):
    def hook(module, args, context):  # (batch, heads, queries, d_k)
        return context.masked_fill(~audible.to(context.device)[:, None, None], 0)

    return hook


def _checked(model: Transformer, name: Head) -> Head:
    if isinstance(name, str) or len(tuple(name)) != 3:
        raise ValueError(f"expected heads as (kind, layer, head), got {name!r}")
    kind, layer, head = name
    modules = attentions(model, kind)
    if not 0 <= layer < len(modules):
        raise ValueError(f"{kind} has layers 0..{len(modules) - 1}, got {name!r}")
    if not 0 <= head < modules[layer].num_heads:
        raise ValueError(f"layer {layer} of {kind} has heads 0..{modules[layer].num_heads - 1}, got {name!r}")
    return kind, layer, head
