"""Attention weights of a model at work."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor

from course_lib.attention import attention_weights
from course_lib.transformer import Transformer


@dataclass
class AttentionMaps:
    """The weights of the last forward pass, one tensor for each layer.

    Args:
        encoder: (batch, heads, src_len, src_len) each: encoder self-attention.
        decoder: (batch, heads, tgt_len, tgt_len) each: masked decoder self-attention.
        cross: (batch, heads, tgt_len, src_len) each; row t belongs to the token that position t predicts.
    """

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


@contextmanager
def record_attention(model: Transformer) -> Iterator[AttentionMaps]:
    """Inside the block, each forward pass leaves its attention weights in the maps.

    The model's own computation is untouched (the fused kernel, which stores no weights): its queries, keys and mask
    go through `attention_weights` a second time. After the block nothing is left on the model.

    Args:
        model: any Transformer.

    Yields:
        the maps, filled by each forward pass and overwritten by the next.
    """
    encoder, decoder = model.encoder.layers, model.decoder.layers
    maps = AttentionMaps([None] * len(encoder), [None] * len(decoder), [None] * len(decoder))
    handles = []
    try:
        for modules, slots in (
            ([layer.self_attn for layer in encoder], maps.encoder),
            ([layer.self_attn for layer in decoder], maps.decoder),
            ([layer.cross_attn for layer in decoder], maps.cross),
        ):
            for index, module in enumerate(modules):
                handles.append(module.fused.register_forward_hook(_keep_weights(slots, index)))
        yield maps
    finally:
        for handle in handles:
            handle.remove()


def _keep_weights(slots: list, index: int):
    def hook(module, args, context):
        query, keys, _, mask, bias = args
        slots[index] = attention_weights(query, keys, mask, bias=bias).detach()

    return hook
