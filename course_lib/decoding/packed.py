"""The same decoder steps on a CPU, about twice as fast: `first_step` takes this way wherever it can.

A step reads all weights for a few rows, so memory is its limit. Here they lie in the order in which oneDNN's matrix
product reads them, the projections of query, key and value are one, all beams of a sentence share one memory, and
the cache is written in place. Two operations of torch are not public; without them all is as `Steps` has it.
"""

import copy
import math
from functools import partial
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.attention import FusedAttention, MultiHeadAttention
from course_lib.blocks import DecoderLayer, Dropout, EncoderLayer, FeedForward, LayerNorm, Residual
from course_lib.decoding.steps import Steps
from course_lib.position import LearnedPosition, SinusoidalPosition
from course_lib.transformer import Decoder, Embedding, Encoder, Transformer

AVAILABLE = torch.backends.mkldnn.is_available() and all(
    hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
)
ROWS = 16  # that the weights are laid out for; one order serves 1 to 256 rows
# What the steps below know; a module of another class, or with a hook on it, may compute something else.
KNOWN = {Transformer, Embedding, nn.Embedding, SinusoidalPosition, LearnedPosition, Encoder, Decoder, nn.ModuleList}
KNOWN |= {EncoderLayer, DecoderLayer, MultiHeadAttention, FusedAttention, FeedForward, Residual, LayerNorm, nn.Linear}
KNOWN |= {Dropout, nn.Identity}


def first_step(model: nn.Module, src: Tensor) -> Steps:
    """The steps of a model in evaluation mode, as fast as they can be had; src as in Steps."""
    return PackedSteps(model, src) if AVAILABLE and fits(model) else Steps(model, src)


def fits(model: nn.Module) -> bool:
    """Whether the model computes what PackedSteps does: a float32 Transformer on a CPU, watched by no hook."""
    modules = _modules(model)
    return (
        type(model) is Transformer
        and model.config.key_width is None
        and not torch.is_autocast_enabled("cpu")
        and all(type(module) in KNOWN and not _watched(module) for module in modules)
        and all(_is_plain(weight) for weight in _packed_weights(modules))
        and model.generator.weight.device.type == "cpu"
    )


def _is_plain(weight: Tensor) -> bool:
    """Whether its numbers lie in memory as float32; one of torchao's says so too, and holds int8."""
    plain = type(weight) in (Tensor, nn.Parameter)
    return plain and weight.dtype == torch.float32 and not weight.is_inference()


def _modules(module: nn.Module) -> list[nn.Module]:
    """As module.modules(), in a fifth of the time."""
    found = [module]
    for parent in found:
        found += filter(None, parent._modules.values())  # a part may be None
    return found


def _watched(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


class PackedLinear(nn.Module):
    """One or more nn.Linear side by side, with the weights laid out once."""

    def __init__(self, *maps: nn.Linear):
        super().__init__()
        self.in_features = maps[0].in_features
        self.weight = torch.ops.mkldnn._reorder_linear_weight(torch.cat([one.weight for one in maps]).detach(), ROWS)
        self.bias = None if maps[0].bias is None else torch.cat([one.bias for one in maps]).detach()

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) to (..., all out_features)."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


class PackedModel:
    """A model of the same function and the same classes, with packed weights.

    Args:
        model: of KNOWN modules; its parts and weights as they are now.
    """

    def __init__(self, model: Transformer):
        self.model = _packed(model)
        self.projections = [
            PackedLinear(own.query_proj, own.key_proj, own.value_proj)
            for own in (layer.self_attn for layer in model.decoder.layers)
        ]
        modules = _modules(model)
        self._sources = [weight.detach() for weight in _packed_weights(modules)]  # held: their address stays theirs
        self._state, self._parts = _state(self._sources), _parts(modules)

    def is_of(self, model: Transformer) -> bool:
        """Whether the model's parts and weights are still those."""
        modules = _modules(model)
        (addresses, sample), (now, other) = self._state, _state(_packed_weights(modules))
        return self._parts == _parts(modules) and addresses == now and torch.equal(sample, other)


def _packed(module: nn.Module) -> nn.Module:
    """A copy that shares everything but the linear maps."""
    if type(module) is nn.Linear:
        return PackedLinear(module)
    clone = copy.copy(module)
    clone._modules = {name: child if child is None else _packed(child) for name, child in module._modules.items()}
    return clone


def _packed_weights(modules: list[nn.Module]) -> list[Tensor]:
    maps = (module for module in modules if type(module) is nn.Linear)
    return [weight for one in maps for weight in one._parameters.values() if weight is not None]


def _parts(modules: list[nn.Module]) -> list:
    """All but the first, the model, which would never be gone; and the settings that their copies hold."""
    return modules[1:] + [vars(module).get(name) for module in modules for name in ("norm_first", "eps")]


def _state(weights: list[Tensor]) -> tuple[list[tuple[int, int]], Tensor]:
    """Where the weights lie, how often they were changed in place, and some numbers of each.

    The numbers show the step of a fused optimizer, which torch does not count as a change.
    """
    sample = torch.cat([weight.as_strided((64,), (weight.numel() // 64,)) for weight in weights])
    return [(weight.data_ptr(), weight._version) for weight in weights], sample


_PACKED: WeakKeyDictionary[Transformer, PackedModel] = WeakKeyDictionary()  # packing costs as much as a translation


def packed(model: Transformer) -> PackedModel:
    """The packed model; it is kept until the model is gone or has other parts or weights."""
    found = _PACKED.get(model)
    if found is None or not found.is_of(model):
        found = _PACKED[model] = PackedModel(model)
    return found


class PackedSteps(Steps):
    """As Steps.

    The cache of all layers is one tensor (length, layers, rows, 2, heads, d_k), keys and values, the newest last, so
    that what rows are kept is copied in one piece; a second one takes the copy, and both change places.
    """

    def __init__(self, model: Transformer, src: Tensor):
        self.model, self.packed, config = model, packed(model), model.config
        self.heads = (config.num_heads, config.d_k)
        self.rows, self.length, self.capacity = len(src), 0, 0
        self.origin, self.beams = torch.arange(len(src)), 1  # each row's sentence in the memory; rows of each sentence
        memory = self.packed.model.encode(src)
        self.store = self.spare = memory.new_empty(0)
        layers = self.packed.model.decoder.layers
        self.memory = [[x.contiguous() for x in layer.cross_attn.keys_values(memory, memory)] for layer in layers]
        padding = (src == config.pad_id)[:, None, None]  # (sentences, 1, 1, src_len)
        self.mask = memory.new_zeros(padding.shape).masked_fill(padding, -math.inf) if padding.any() else None

    def logits(self, last: Tensor) -> Tensor:
        """As Steps.logits."""
        model = self.packed.model
        x = model.tgt_embedding(last[:, None], start=self.length)[:, 0]  # (rows, d_model)
        if self.length == self.capacity:
            self._grow()
        self.length += 1
        self.cache = self._cache()
        for index, layer in enumerate(model.decoder.layers):
            for path, sublayer in (
                (layer.self_attn_path, partial(self._attend_self, index, layer.self_attn)),
                (layer.cross_attn_path, partial(self._attend_memory, index, layer.cross_attn)),
                (layer.feed_forward_path, layer.feed_forward),
            ):
                x = x + sublayer(path.norm(x)) if path.norm_first else path.norm(x + sublayer(x))
        return model.generator(model.decoder.norm(x))

    def select(self, rows: Tensor) -> None:
        """As Steps.select."""
        sentences, beams = self.origin[rows].unique_consecutive(return_counts=True)
        if len(set(beams.tolist())) > 1:  # not as many for each: each row gets a memory of its own
            sentences, beams = self.origin[rows], torch.ones(len(rows), dtype=torch.long)
        if not torch.equal(sentences, torch.arange(len(self.memory[0][0]))):
            self.memory = [[x[sentences] for x in layer] for layer in self.memory]
            self.mask = None if self.mask is None else self.mask[sentences]
        self.beams = int(beams[0])
        self.origin = torch.arange(len(sentences)).repeat_interleave(self.beams)
        kept = self._cache()
        self.rows, self.store, self.spare = len(rows), self.spare, self.store
        if self.store.numel() < self._size():
            self.store = self.store.new_empty(self._size())
        torch.index_select(kept, 2, rows, out=self._cache())

    def _cache(self) -> Tensor:
        """(length, layers, rows, 2, heads, d_k), of which the last is new."""
        whole = self.store[: self._size()].view(self.capacity, len(self.memory), self.rows, 2, *self.heads)
        return whole[: self.length]

    def _size(self) -> int:
        return self.capacity * len(self.memory) * self.rows * 2 * math.prod(self.heads)

    def _grow(self) -> None:
        before = self._cache() if self.length else None
        self.capacity = max(16, 2 * self.capacity)
        self.store = self.store.new_empty(self._size())
        if before is not None:
            self._cache()[:] = before

    def _attend_self(self, index: int, attention: MultiHeadAttention, x: Tensor) -> Tensor:
        query, newest = self.packed.projections[index](x).view(self.rows, 3, *self.heads).split([1, 2], dim=1)
        self.cache[-1, index] = newest
        keys, values = self.cache[:, index].permute(2, 1, 3, 0, 4)  # (rows, heads, length, d_k) each
        context = F.scaled_dot_product_attention(query.transpose(1, 2), keys, values)  # (rows, heads, 1, d_k)
        return attention.output_proj(context.view(self.rows, -1))

    def _attend_memory(self, index: int, attention: MultiHeadAttention, x: Tensor) -> Tensor:
        query = attention.query_proj(x).view(-1, self.beams, *self.heads).transpose(1, 2)
        keys, values = self.memory[index]  # (sentences, heads, src_len, d_k) each; the beams are the queries
        context = F.scaled_dot_product_attention(query, keys, values, attn_mask=self.mask)
        return attention.output_proj(context.transpose(1, 2).reshape(self.rows, -1))
