"""Answers to assignment 08: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch
import torch.nn.functional as F

from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.transformer import Embedding, Transformer


def size(module):
    return sum(parameter.numel() for parameter in module.parameters())


def count_by_torch(vocab_size, d_model, d_ff, num_layers, tied, norm_first):
    with torch.device("meta"):
        encoder = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff)
        decoder = torch.nn.TransformerDecoderLayer(d_model, 1, d_ff)
        end = size(torch.nn.LayerNorm(d_model)) * int(norm_first)
    return {
        "decoder": size(decoder) * num_layers + end,
        "encoder": size(encoder) * num_layers + end,
        "embeddings": vocab_size * d_model * (3 - 2 * tied),
    }


def ends_by_einsum(ids, hidden, table, position):
    tokens = F.embedding(ids, math.sqrt(hidden.shape[-1]) * table)
    return tokens + position[None, : ids.size(1)], torch.einsum("btd,vd->btv", hidden, table)


class Ends:
    def embed(self, ids, table, position):
        x = table.index_select(0, ids.flatten()).unflatten(0, ids.shape)
        return x.mul(math.sqrt(x.size(-1))).add(position[: x.size(1)])

    def __call__(self, ids, hidden, table, position):
        return self.embed(ids, table, position), F.linear(hidden, table)


def next_by_mask(hidden, tgt_in, table):
    real = tgt_in.ne(0)
    ended = real & (real.cumsum(1) == real.sum(1, keepdim=True))
    scores = torch.einsum("bt,btd->bd", ended.to(hidden), hidden) @ table.T
    scores[:, :2] = -torch.inf
    return scores.max(dim=-1).indices


def next_of_every_place(hidden, tgt_in, table):
    logits = torch.einsum("btd,vd->btv", hidden, table)
    barred = torch.arange(len(table), device=table.device) < 2
    best = logits.masked_fill(barred, -torch.inf).argmax(dim=-1)  # (batch, tgt_len)
    return best.take_along_dim(tgt_in.bool().sum(dim=1, keepdim=True) - 1, dim=1).squeeze(1)


def gradient_by_scatter(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    d_model, vocab = hidden.shape[-1], from_logits.shape[-1]
    ids = torch.cat([src.flatten(), tgt_in.flatten()])
    arrived = torch.cat([from_src.reshape(-1, d_model), from_tgt.reshape(-1, d_model)]) * math.sqrt(d_model)
    read = hidden.new_zeros(vocab, d_model).scatter_add_(0, ids[:, None].expand_as(arrived), arrived)
    return read + torch.einsum("btv,btd->vd", from_logits, hidden)


def gradient_by_one_hot(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    every = torch.arange(from_logits.size(-1), device=src.device)
    as_src, as_tgt = ((ids.unsqueeze(-1) == every).to(hidden) for ids in (src, tgt_in))  # (batch, length, vocab)
    read = torch.einsum("bsv,bsd->vd", as_src, from_src) + torch.einsum("btv,btd->vd", as_tgt, from_tgt)
    return read * hidden.size(-1) ** 0.5 + (from_logits.mT @ hidden).sum(0)


def gradient_by_autograd(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    table = hidden.new_zeros(from_logits.size(-1), hidden.size(-1)).requires_grad_()
    read = (table[src] * from_src).sum() + (table[tgt_in] * from_tgt).sum()
    (math.sqrt(hidden.size(-1)) * read + (hidden @ table.T * from_logits).sum()).backward()
    return table.grad


RIGHT = {
    "08.count": [
        count_by_torch,
        Edit("(d_model * d_model + d_model)", "d_model * (d_model + 1)", "(1 if tied else 3)", "(3 - 2 * tied)"),
        Edit("2 * d_model * d_ff + d_ff + d_model", "d_model * d_ff + d_ff + d_ff * d_model + d_model"),
    ],
    "08.ends": [
        Edit("table[ids]", "torch.stack([table[row] for row in ids])", "table.T", "table.mT"),
        ends_by_einsum,
        Ends(),
    ],
    "08.next": [
        Edit("hidden[rows, lengths - 1]", "hidden.take_along_dim(lengths[:, None, None] - 1, dim=1).squeeze(1)"),
        next_by_mask,
        next_of_every_place,
        Edit(
            *("    rows = ", "    following = torch.nn.functional.pad(tgt_in[:, 1:], (0, 1))\n    rows = "),
            *("rows, lengths - 1", "(tgt_in != PAD_ID) & (following == PAD_ID)"),  # one place of each sentence
        ),
    ],
    "08.gradient": [
        gradient_by_scatter,
        gradient_by_one_hot,
        Edit(".index_add_(0, ", ".index_put_((", ".flatten(), ", ",), ", ".flatten(0, 1))", ", accumulate=True)"),
    ],
    "08.costs": [
        Edit(),
        Edit(": 1,", ": 1.0,", ": 8,", ": 8.0,"),
        Edit("512", "torch.tensor(512)", 'doubled": 4', 'doubled": 2 * 2'),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "08.count": [
        Edit("return {", "return sum({", "    }", "    }.values())"),
    ],
    "08.ends": [
        Edit("table[ids] * math.sqrt(table.size(1))", "table.mul_(math.sqrt(table.size(1)))[ids]"),
        Edit("ids.size(1)", "ids.size(0)"),
    ],
    "08.next": [
        Edit("    lengths", "    table[:2] = -1e9\n    lengths"),
    ],
    "08.gradient": [
        Edit("return gradient", "return gradient.T"),
        (gradient_by_autograd, "yours to write"),
    ],
    "08.costs": [
        Edit(": 2,", ": 4,"),
        Edit("512", "None"),
    ],
}


def library_count(vocab_size, d_model, d_ff, num_layers, tied, norm_first):
    sizes = dict(d_model=d_model, num_heads=1, d_ff=d_ff, num_layers=num_layers)
    with torch.device("meta"):
        model = Transformer(ModelConfig(vocab_size, **sizes, tie_weights=tied, norm_first=norm_first))
    assert model.config.num_parameters == size(model)
    stacks = {"encoder": size(model.encoder), "decoder": size(model.decoder)}
    return {"embeddings": size(model) - sum(stacks.values())} | stacks


def library_embedding(table):
    """The library's embedding with this matrix, and without positions."""
    config = ModelConfig(*table.shape, num_heads=1, dropout=0.0, position="none")
    embedding = Embedding(config).to(table)
    embedding.table.weight = torch.nn.Parameter(table.clone())
    return embedding


def library_ends(ids, hidden, table, position):
    embedding = library_embedding(table)
    with torch.no_grad():
        return embedding(ids) + position[: ids.size(1)], F.linear(hidden, embedding.table.weight)


def library_gradient(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    embedding = library_embedding(hidden.new_zeros(from_logits.size(-1), hidden.size(-1)))
    logits = F.linear(hidden, embedding.table.weight)
    reached = ((embedding(src), from_src), (embedding(tgt_in), from_tgt), (logits, from_logits))
    sum((tensor * gradient).sum() for tensor, gradient in reached).backward()
    return embedding.table.weight.grad


# What a solution must agree with.
LIBRARY = {"08.count": library_count, "08.ends": library_ends, "08.gradient": library_gradient}
