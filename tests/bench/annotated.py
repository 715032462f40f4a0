"""A model as the Annotated Transformer writes and trains it: attention, norm, loss and softmax spelled out.

Its design (harvard.edu, 2022): every probability of the padded batch, a target distribution of the vocabulary's size,
dropout on the attention weights, Adam as torch has it by default.
"""

import math

import torch
from torch import Tensor, nn

from course_lib import ModelConfig
from course_lib.data import Batch
from course_lib.position import sinusoidal


class Norm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.scale * (x - mean) / (std + 1e-6) + self.shift


class Attention(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.heads = config.num_heads
        self.linears = nn.ModuleList(nn.Linear(config.d_model, config.d_model) for _ in range(4))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, *inputs: Tensor, mask: Tensor) -> Tensor:
        rows = len(inputs[0])
        query, key, value = (
            linear(x).view(rows, -1, self.heads, x.shape[-1] // self.heads).transpose(1, 2)
            for linear, x in zip(self.linears, inputs, strict=False)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        weights = self.dropout(scores.masked_fill(mask == 0, -1e9).softmax(dim=-1))
        return self.linears[-1]((weights @ value).transpose(1, 2).contiguous().view(rows, -1, inputs[0].shape[-1]))


class Layer(nn.Module):
    def __init__(self, config: ModelConfig, attentions: int):
        super().__init__()
        self.attentions = nn.ModuleList(Attention(config) for _ in range(attentions))
        self.feed_forward = nn.Sequential(
            nn.Linear(config.d_model, config.d_ff),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.d_ff, config.d_model),
        )
        self.norms = nn.ModuleList(Norm(config.d_model) for _ in range(attentions + 1))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, own_mask: Tensor, memory: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        y = self.norms[0](x)
        x = x + self.dropout(self.attentions[0](y, y, y, mask=own_mask))
        if memory is not None:
            x = x + self.dropout(self.attentions[1](self.norms[1](x), memory, memory, mask=mask))
        return x + self.dropout(self.feed_forward(self.norms[-1](x)))


class AnnotatedTransformer(nn.Module):
    """The encoder-decoder of that text.

    Args:
        config: sizes; pre-norm, embeddings and generator not tied.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.tables = nn.ModuleList(nn.Embedding(config.vocab_size, config.d_model) for _ in range(2))
        self.register_buffer("positions", sinusoidal(config.max_len, config.d_model), persistent=False)
        self.encoder = nn.ModuleList(Layer(config, 1) for _ in range(config.num_layers))
        self.decoder = nn.ModuleList(Layer(config, 2) for _ in range(config.num_layers))
        self.norms = nn.ModuleList(Norm(config.d_model) for _ in range(2))
        self.generator = nn.Linear(config.d_model, config.vocab_size)
        self.dropout = nn.Dropout(config.dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def loss(self, batch: Batch, smoothing: float) -> Tensor:
        """The divergence of a smoothed target distribution from the model's, at all places, a target token."""
        src, tgt_in, targets = batch.src, batch.tgt_in, batch.tgt_out.flatten()
        pad, vocab = self.config.pad_id, self.config.vocab_size
        src_mask = (src != pad).unsqueeze(-2).unsqueeze(1)
        causal = torch.triu(torch.ones(1, tgt_in.shape[1], tgt_in.shape[1]), diagonal=1).to(src.device) == 0
        tgt_mask = ((tgt_in != pad).unsqueeze(-2) & causal).unsqueeze(1)
        memory = self._embed(0, src)
        for layer in self.encoder:
            memory = layer(memory, src_mask)
        memory, x = self.norms[0](memory), self._embed(1, tgt_in)
        for layer in self.decoder:
            x = layer(x, tgt_mask, memory, src_mask)
        log_probs = self.generator(self.norms[1](x)).log_softmax(dim=-1).flatten(0, 1)
        wanted = torch.full_like(log_probs, smoothing / (vocab - 2))
        wanted.scatter_(1, targets[:, None], 1 - smoothing)
        wanted[:, pad] = 0
        wanted.index_fill_(0, (targets == pad).nonzero().flatten(), 0.0)
        return nn.functional.kl_div(log_probs, wanted, reduction="sum") / batch.num_tokens

    def _embed(self, side: int, ids: Tensor) -> Tensor:
        x = self.tables[side](ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])


def optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Adam with torch's default implementation."""
    return torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
