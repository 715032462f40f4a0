"""The attention of a model: its modules, and their weights at work."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from torch import Tensor, nn

from course_lib.attention import MultiHeadAttention, attention_weights
from course_lib.transformer import Transformer

KINDS = ("encoder", "decoder", "cross")


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


def attentions(model: Transformer, kind: str) -> list[nn.Module]:
    """The attention modules of one kind, one for each layer.

    Args:
        model: any Transformer.
        kind: "encoder" or "decoder" for self-attention, "cross" for attention from the decoder to the memory.

    Raises:
        ValueError: if the kind is unknown, or the model is no Transformer.
    """
    if not isinstance(model, Transformer):
        raise ValueError(f"expected a Transformer, whose attention is known by kind; got {type(model).__name__}")
    if kind == "encoder":
        return [layer.self_attn for layer in model.encoder.layers]
    if kind == "decoder":
        return [layer.self_attn for layer in model.decoder.layers]
    if kind == "cross":
        return [layer.cross_attn for layer in model.decoder.layers]
    raise ValueError(f"expected a kind among {', '.join(KINDS)}, got {kind!r}")


@contextmanager
def record_attention(model: Transformer) -> Iterator[AttentionMaps]:
    """Inside the block, each forward pass leaves its attention weights in the maps.

    The model's own computation is untouched (the fused kernel, which stores no weights): its queries, keys and mask
    go through `attention_weights` a second time. After the block nothing is left on the model.

    Args:
        model: any Transformer.

    Yields:
        the maps, filled by each forward pass and overwritten by the next.

    Raises:
        ValueError: if the model is no Transformer.
    """
    with ExitStack() as opened:
        yield AttentionMaps(
            **{kind: opened.enter_context(record_weights(attentions(model, kind))) for kind in KINDS},
        )


@contextmanager
def record_weights(modules: Sequence[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """As `record_attention`, of any attention modules: a list with (batch, heads, queries, keys) of each."""
    slots, handles = [None] * len(modules), []
    try:
        for index, module in enumerate(modules):
            handles.append(module.fused.register_forward_hook(_keep_weights(slots, index)))
        yield slots
    finally:
        for handle in handles:
            handle.remove()


def _keep_weights(slots: list, index: int):
    def hook(module, args, context):
        query, keys, _, mask, bias = args
        slots[index] = attention_weights(query, keys, mask, bias=bias).detach()

    return hook
