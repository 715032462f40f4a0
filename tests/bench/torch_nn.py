"""The same model of torch.nn.Transformer, as one would train it with it: its best settings, the same tied softmax."""

import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib import ModelConfig
from course_lib.data import Batch
from course_lib.position import sinusoidal


class TorchTransformer(nn.Module):
    """nn.Transformer with embeddings, positions and generator around it.

    Args:
        config: sizes; weights are tied and positions sinusoidal.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.table = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)
        self.register_buffer("positions", sinusoidal(config.max_len, config.d_model), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        sizes = (config.d_model, config.num_heads, config.num_layers, config.num_layers, config.d_ff, config.dropout)
        with warnings.catch_warnings(action="ignore"):  # of nested tensors, which pre-norm layers do not use
            self.transformer = nn.Transformer(*sizes, batch_first=True, norm_first=config.norm_first)
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # ours has none on the weights, and so the fused kernel may run

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """(batch, src_len), (batch, tgt_len) to the decoder's output (batch, tgt_len, d_model)."""
        padding = src == self.config.pad_id
        causal = nn.Transformer.generate_square_subsequent_mask(tgt_in.shape[1], device=src.device)
        return self.transformer(
            self._embed(src),
            self._embed(tgt_in),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )

    def _embed(self, ids: Tensor) -> Tensor:
        x = self.table(ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def loss(self, batch: Batch, smoothing: float) -> Tensor:
        """The mean label-smoothed cross-entropy of the real tokens: torch's own, on their logits alone."""
        real = batch.tgt_out != self.config.pad_id
        logits = F.linear(self(batch.src, batch.tgt_in)[real], self.table.weight)
        return F.cross_entropy(logits.float(), batch.tgt_out[real], label_smoothing=smoothing)


def compile_layers(model: TorchTransformer) -> None:
    """Puts a compiled layer in each one's place: those of a kind share code, where the whole model takes minutes."""
    for stack in (model.transformer.encoder, model.transformer.decoder):
        stack.layers = nn.ModuleList(torch.compile(layer, dynamic=True) for layer in stack.layers)


def optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """torch's fastest Adam."""
    return torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
