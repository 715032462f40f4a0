"""The whole model: embeddings, encoder stack, decoder stack, generator."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from course_lib.blocks import DecoderLayer, Dropout, EncoderLayer, LayerCache, LayerNorm
from course_lib.config import ModelConfig
from course_lib.masks import causal_mask, check_tensor, padding_mask
from course_lib.position import ALiBi, LearnedPosition, Rotary, SinusoidalPosition


class Embedding(nn.Module):
    """Token ids to vectors: √d_model times the token's row, plus its position if it is added, with dropout.

    Args:
        config: the model's.

    Paper: sections 3.4, 3.5 and 5.4.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.d_model)
        self.position = added_position(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor, *, start: int = 0) -> Tensor:
        """ids (batch, length), the first at position `start`, to (batch, length, d_model)."""
        x = self.table(ids) * math.sqrt(self.table.embedding_dim)  # (batch, length, d_model)
        return self.dropout(x if self.position is None else self.position(x, start=start))


def added_position(config: ModelConfig) -> nn.Module | None:
    """What adds the positions to the embedded tokens; None where self-attention is told them, or nothing is."""
    added = {"sinusoidal": SinusoidalPosition, "learned": LearnedPosition}.get(config.position)
    return added(config.max_len, config.d_model) if added else None


def relative_position(config: ModelConfig) -> nn.Module | None:
    """What tells self-attention the positions where the embedding does not; None where it does, or nothing does."""
    if config.position == "alibi":
        return ALiBi(config.num_heads)
    return Rotary(config.max_len, config.d_k) if config.position == "rotary" else None


def stack(layer: type[EncoderLayer] | type[DecoderLayer], config: ModelConfig) -> tuple[nn.ModuleList, nn.Module]:
    """num_layers layers that tell positions in one way, and the norm behind the last: only pre-norm needs one."""
    sizes = (config.d_model, config.num_heads, config.d_ff, config.dropout)
    options = dict(norm_first=config.norm_first, key_width=config.key_width, relative=relative_position(config))
    layers = [layer(*sizes, **options) for _ in range(config.num_layers)]
    return nn.ModuleList(layers), LayerNorm(config.d_model) if config.norm_first else nn.Identity()


class Encoder(nn.Module):
    """num_layers encoder layers; pre-norm ends with a layer norm, the paper's post-norm does not need one.

    Args:
        config: the model's.

    Paper: section 3.1.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.layers, self.norm = stack(EncoderLayer, config)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, src_len, d_model) to the memory, (batch, src_len, d_model)."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """num_layers decoder layers, all of which attend to the same memory; the norm as in Encoder.

    Args:
        config: the model's.

    Paper: section 3.1.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.layers, self.norm = stack(DecoderLayer, config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: list[LayerCache] | None = None,
    ) -> Tensor:
        """As DecoderLayer.forward, with one cache for each layer."""
        for index, layer in enumerate(self.layers):
            x = layer(x, memory, tgt_mask, memory_mask, cache=None if cache is None else cache[index])
        return self.norm(x)


class Transformer(nn.Module):
    """Source ids and shifted target ids to the logits of the next target token.

    Args:
        config: all sizes; see ModelConfig.

    Paper: figure 1. Attention and feed-forward weights start Xavier-uniform, biases 0, embeddings normal with
    standard deviation d_model ** -0.5, so that embedded tokens and first logits have variance about 1.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.src_embedding = Embedding(config)
        self.tgt_embedding = Embedding(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.generator = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config.d_model)
        if config.tie_weights:
            self.tgt_embedding.table.weight = self.src_embedding.table.weight
            self.generator.weight = self.src_embedding.table.weight

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits of every target position in one parallel pass (teacher forcing).

        Args:
            src: (batch, src_len), source ids, padded with pad_id.
            tgt_in: (batch, tgt_len), target ids shifted right: they start with bos_id.

        Returns:
            (batch, tgt_len, vocab).

        Raises:
            ValueError: on ids of another shape or outside the vocabulary, an empty sentence, or one too long.
        """
        return self.generator(self.decode(tgt_in, self.encode(src), src))

    def encode(self, src: Tensor) -> Tensor:
        """Source ids (batch, src_len) to the memory (batch, src_len, d_model)."""
        check_ids(src, "src", self.config.vocab_size)
        return self.encoder(self.src_embedding(src), padding_mask(src, self.config.pad_id))

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: list[LayerCache] | None = None) -> Tensor:
        """Target ids to the decoder's output, which `generator` turns into logits.

        Args:
            tgt_in: (batch, tgt_len); with a cache, only the ids that are new.
            memory: (batch, src_len, d_model), from `encode`.
            src: (batch, src_len), tells where the memory is padding.
            cache: from `new_cache`, holding the ids before tgt_in; is extended. The ids must not be padding.

        Returns:
            (batch, tgt_len, d_model).
        """
        check_ids(tgt_in, "tgt_in", self.config.vocab_size)
        check_tensor(memory, "memory")
        check_tensor(src, "src")
        if src.shape != memory.shape[:2] or len(src) != len(tgt_in):
            raise ValueError(
                f"src, memory and tgt_in must belong together, got {tuple(src.shape)}, "
                f"{tuple(memory.shape)} and {tuple(tgt_in.shape)}"
            )
        return decode_target(self, tgt_in, memory, padding_mask(src, self.config.pad_id), cache)

    def new_cache(self) -> list[LayerCache]:
        """An empty key-value cache for `decode`, one part for each decoder layer."""
        return [LayerCache() for _ in self.decoder.layers]


def decode_target(
    model: nn.Module, tgt_in: Tensor, memory: Tensor, memory_mask: Tensor | None, cache: list[LayerCache] | None
) -> Tensor:
    """What `Transformer.decode` does, with a memory of anything: of words, or of patches of a picture.

    Args:
        model: has config, tgt_embedding and decoder.
        tgt_in, memory, cache: as in Transformer.decode.
        memory_mask: for (batch, heads, tgt_len, src_len); None where no part of the memory is padding.
    """
    past = 0
    if cache is not None and cache[0].keys is not None:
        rows, _, past, _ = cache[0].keys.shape
        if rows != len(tgt_in):
            raise ValueError(f"the cache holds {rows} sentences, tgt_in has {len(tgt_in)}")
    length = past + tgt_in.shape[1]
    tgt_mask = causal_mask(length, device=tgt_in.device)[:, :, past:]  # (1, 1, tgt_len, length)
    if cache is None:
        tgt_mask = tgt_mask & padding_mask(tgt_in, model.config.pad_id)
    return model.decoder(model.tgt_embedding(tgt_in, start=past), memory, tgt_mask, memory_mask, cache=cache)


def initialize(model: nn.Module, d_model: int) -> None:
    """Starts a model of any family as Transformer's docstring says, by the names of its parameters."""
    for name, parameter in model.named_parameters():
        if name.endswith("table.weight") or name.startswith("generator"):
            nn.init.normal_(parameter, std=d_model**-0.5)
        elif name.endswith("proj.weight") or name.endswith(("up.weight", "down.weight")):
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Switches dropout off and gradients off inside the block, and restores the model's mode after it."""
    in_training = [module for module in model.modules() if module.training]
    try:
        for module in in_training:
            module.training = False
        with torch.no_grad():
            yield
    finally:
        for module in in_training:
            module.training = True


def check_ids(ids: Tensor, name: str, vocab_size: int) -> None:
    """Raises ValueError unless the tensor ids is a batch (batch, length) of int64 ids of the vocabulary."""
    check_tensor(ids, name)
    if ids.dtype != torch.long or ids.dim() != 2 or ids.numel() == 0:
        raise ValueError(
            f"expected {name} as int64 ids of shape (batch, length), at least one; got {ids.dtype} {tuple(ids.shape)}"
        )
    low, high = torch.aminmax(ids)
    if low < 0 or high >= vocab_size:
        raise ValueError(f"{name} holds ids {int(low)}..{int(high)}, the vocabulary has 0..{vocab_size - 1}")
