"""Answers to assignment 08: differently written right ones, and plausible wrong ones with the hint that they get."""

import math

import torch
import torch.nn.functional as F

from course_lib.config import ModelConfig
from course_lib.transformer import Embedding, Transformer


def count_by_shapes(vocab_size, d_model, d_ff, num_layers, tied, norm_first):
    attention = 4 * d_model**2 + 4 * d_model
    network = d_model * d_ff + d_ff + d_ff * d_model + d_model
    totals = {"embeddings": vocab_size * d_model, "encoder": 0, "decoder": 0}
    if not tied:
        totals["embeddings"] *= 3
    for _ in range(num_layers):
        totals["encoder"] += attention + network + 2 * (d_model + d_model)
        totals["decoder"] += 2 * attention + network + 3 * (d_model + d_model)
    if norm_first:
        for stack in ("encoder", "decoder"):
            totals[stack] += 2 * d_model
    return totals


def count_by_torch(vocab_size, d_model, d_ff, num_layers, tied, norm_first):
    def size(module):
        return sum(parameter.numel() for parameter in module.parameters())

    with torch.device("meta"):
        encoder = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff)
        decoder = torch.nn.TransformerDecoderLayer(d_model, 1, d_ff)
        end = size(torch.nn.LayerNorm(d_model)) * int(norm_first)
    return {
        "decoder": size(decoder) * num_layers + end,
        "encoder": size(encoder) * num_layers + end,
        "embeddings": vocab_size * d_model * (3 - 2 * tied),
    }


class Counter:
    def __init__(self, attentions=2, square=4, bias=1, norm=2, norms=3, ends=2, separate=3, once=1):
        self.attentions, self.square, self.bias, self.norm, self.norms = attentions, square, bias, norm, norms
        self.ends, self.separate, self.once = ends, separate, once

    def __call__(self, vocab_size, d_model, d_ff, num_layers, tied, norm_first):
        attention = self.square * (d_model**2 + self.bias * d_model)
        network = d_ff * (2 * d_model + self.bias) + self.bias * d_model
        encoder = attention + network + 2 * self.norm * d_model
        decoder = self.attentions * attention + network + self.norms * self.norm * d_model
        end = self.norm * d_model if norm_first else 0
        return {
            "embeddings": vocab_size * d_model * (self.once if tied else self.separate),
            "encoder": encoder * num_layers + (end if self.ends == 2 else 0),
            "decoder": decoder * num_layers + (end if self.ends else 0),
        }


def count_in_one_number(*sizes):
    return sum(Counter()(*sizes).values())


def ends_by_rows(ids, hidden, table, position):
    rows = torch.stack([table[sentence] for sentence in ids])
    return rows * table.size(-1) ** 0.5 + position[: ids.shape[1]], hidden @ table.transpose(0, 1)


def ends_by_einsum(ids, hidden, table, position):
    tokens = F.embedding(ids, math.sqrt(hidden.shape[-1]) * table)
    return tokens + position[None, : ids.size(1)], torch.einsum("btd,vd->btv", hidden, table)


class Ends:
    def embed(self, ids, table, position):
        x = table.index_select(0, ids.flatten()).unflatten(0, ids.shape)
        return x.mul(math.sqrt(x.size(-1))).add(position[: x.size(1)])

    def __call__(self, ids, hidden, table, position):
        return self.embed(ids, table, position), F.linear(hidden, table)


def ends_as_found(ids, hidden, table, position):
    table = table * math.sqrt(table.size(1))
    return table[ids] + position[: ids.size(1)], hidden @ table.T


def ends_unscaled(ids, hidden, table, position):
    return table[ids] + position[: ids.size(1)], hidden @ table.T


def ends_with_the_scale_at_the_end(ids, hidden, table, position):
    return table[ids] + position[: ids.size(1)], math.sqrt(table.size(1)) * (hidden @ table.T)


def ends_with_scaled_positions(ids, hidden, table, position):
    return (table[ids] + position[: ids.size(1)]) * math.sqrt(table.size(1)), hidden @ table.T


def ends_turned(ids, hidden, table, position):
    return hidden @ table.T, table[ids] * math.sqrt(table.size(1)) + position[: ids.size(1)]


def ends_scaled_in_place(ids, hidden, table, position):
    logits = hidden @ table.T
    table *= math.sqrt(table.size(1))
    return table[ids] + position[: ids.size(1)], logits


def ends_with(scale=lambda d_model: math.sqrt(d_model), logit=lambda d_model: 1, rows=1):
    def answer(ids, hidden, table, position):
        d_model = table.size(1)
        return table[ids] * scale(d_model) + position[: ids.size(rows)], hidden @ table.T * logit(d_model)

    return answer


def ends_without_positions(ids, hidden, table, position):
    return table[ids] * math.sqrt(table.size(1)), hidden @ table.T


def next_by_gather(hidden, tgt_in, table):
    last = (tgt_in != 0).sum(1, keepdim=True) - 1
    vectors = hidden.gather(1, last[:, :, None].expand(-1, -1, hidden.size(-1))).squeeze(1)
    return (vectors @ table[2:].T).argmax(1) + 2


def next_by_mask(hidden, tgt_in, table):
    real = tgt_in.ne(0)
    ended = real & (real.cumsum(1) == real.sum(1, keepdim=True))
    vectors = torch.einsum("bt,btd->bd", ended.to(hidden), hidden)
    scores = vectors @ table.T
    scores[:, :2] = -torch.inf
    return scores.max(dim=-1).indices


def next_by_padding(hidden, tgt_in, table):
    """Scores of every place; those of padding and those that may not be written are out."""
    logits = torch.einsum("btd,vd->btv", hidden, table)
    barred = torch.arange(len(table), device=table.device) < 2
    best = logits.masked_fill(barred, -torch.inf).argmax(dim=-1)  # (batch, tgt_len)
    return best.take_along_dim(tgt_in.bool().sum(dim=1, keepdim=True) - 1, dim=1).squeeze(1)


def next_by_selection(hidden, tgt_in, table):
    following = torch.cat([tgt_in[:, 1:], torch.zeros_like(tgt_in[:, :1])], dim=1)
    vectors = hidden[(tgt_in != 0) & (following == 0)]  # one of each sentence
    logits = torch.nn.functional.linear(vectors, table)
    logits[:, 0] = logits[:, 1] = float("-inf")
    return logits.argmax(-1)


def next_everything(hidden, tgt_in, table):
    logits = hidden @ table.T
    logits[:, :, :2] = -math.inf
    return logits.argmax(-1)


def next_from(place, barred=2):
    def answer(hidden, tgt_in, table):
        lengths = tgt_in.ne(0).sum(1)
        logits = hidden[torch.arange(len(hidden), device=hidden.device), place(lengths)] @ table.T
        logits[:, :barred] = -math.inf
        return logits.argmax(1)

    return answer


def next_as_column(hidden, tgt_in, table):
    return next_by_gather(hidden, tgt_in, table)[:, None]


def next_without_offset(hidden, tgt_in, table):
    vectors = hidden[torch.arange(len(hidden), device=hidden.device), (tgt_in > 0).sum(1) - 1]
    return (vectors @ table[2:].T).argmax(1)


def next_scores(hidden, tgt_in, table):
    lengths = tgt_in.ne(0).sum(1)
    return (hidden[torch.arange(len(hidden), device=hidden.device), lengths - 1] @ table.T).amax(1)


def next_among_rows_not_zeroed(hidden, tgt_in, table):
    vectors = hidden[torch.arange(len(hidden), device=hidden.device), tgt_in.ne(0).sum(1) - 1]
    logits = vectors @ table.T
    logits[:, :2] = 0  # a logit of 0 is not a low one
    return logits.argmax(1)


def next_in_place(hidden, tgt_in, table):
    table[:2] = -1e9
    return next_by_gather(hidden, tgt_in, table)


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


def gradient_by_index_put(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    result = torch.zeros_like(from_logits[0, 0])[:, None] * hidden[0, 0]  # (vocab, d_model)
    for ids, arrived in ((src, from_src), (tgt_in, from_tgt)):
        result.index_put_((ids,), arrived * math.sqrt(hidden.size(-1)), accumulate=True)
    return result + from_logits.flatten(0, 1).mT @ hidden.flatten(0, 1)


def gradient_by_plus_equals(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    gradient = hidden.new_zeros(from_logits.size(-1), hidden.size(-1))
    gradient[src] += math.sqrt(hidden.size(-1)) * from_src
    gradient[tgt_in] += math.sqrt(hidden.size(-1)) * from_tgt
    return gradient + torch.einsum("btv,btd->vd", from_logits, hidden)


def gradient_by_autograd(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    table = hidden.new_zeros(from_logits.size(-1), hidden.size(-1)).requires_grad_()
    scale = math.sqrt(hidden.size(-1))
    read = (table[src] * from_src).sum() + (table[tgt_in] * from_tgt).sum()
    (scale * read + (hidden @ table.T * from_logits).sum()).backward()
    return table.grad


def gradient_with(scale=math.sqrt, source=1, target=1, generator=1, whole=lambda d_model: 1):
    def answer(src, from_src, tgt_in, from_tgt, hidden, from_logits):
        d_model = hidden.size(-1)
        result = generator * (from_logits.flatten(0, 1).T @ hidden.flatten(0, 1))
        result = result.index_add(0, src.flatten(), source * scale(d_model) * from_src.flatten(0, 1))
        result = result.index_add(0, tgt_in.flatten(), target * scale(d_model) * from_tgt.flatten(0, 1))
        return result * whole(d_model)

    return answer


def gradient_averaged(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    return gradient_by_scatter(src, from_src, tgt_in, from_tgt, hidden, from_logits) / len(src)


def gradient_turned(*inputs):
    return gradient_by_scatter(*inputs).T


PREDICTED = {
    "16 heads for 8": 1,
    "d_model and d_ff doubled": 4,
    "twice as long, feed-forward": 2,
    "twice as long, scores and weighted values": 4,
    "length where both are equal": 512,
    "bytes without moments": 8,
}


def predicted(**changed):
    names = dict(zip(("heads", "widths", "network", "scores", "length", "bytes"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


def library_count(vocab_size, d_model, d_ff, num_layers, tied, norm_first):
    sizes = dict(d_model=d_model, num_heads=1, d_ff=d_ff, num_layers=num_layers)
    with torch.device("meta"):
        model = Transformer(ModelConfig(vocab_size, **sizes, tie_weights=tied, norm_first=norm_first))

    def size(module):
        return sum(parameter.numel() for parameter in module.parameters())

    stacks = {"encoder": size(model.encoder), "decoder": size(model.decoder)}
    assert model.config.num_parameters == size(model)
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


LIBRARY = {"08.count": library_count, "08.ends": library_ends, "08.gradient": library_gradient}

RIGHT = {
    "08.count": [count_by_shapes, count_by_torch, Counter()],
    "08.ends": [ends_by_rows, ends_by_einsum, Ends()],
    "08.next": [next_by_gather, next_by_mask, next_by_padding, next_by_selection],
    "08.gradient": [gradient_by_scatter, gradient_by_one_hot, gradient_by_index_put],
    "08.costs": [PREDICTED, predicted(heads=1.0, bytes=8.0), predicted(length=torch.tensor(512), widths=2 * 2)],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "08.count": [
        (Counter(attentions=1, norms=2), "as large as an encoder layer"),
        (Counter(bias=0), "biases"),
        (Counter(norm=0), "norms are missing"),
        (Counter(square=3), "three matrices"),
        (Counter(ends=0), "ends of the two"),
        (Counter(separate=1), "tied or not"),
        (Counter(separate=2), "generator has a matrix"),
        (Counter(ends=1), None),
        (Counter(norm=1), None),
        (Counter(once=3, separate=1), None),
        (Counter(norms=2), None),
        (count_in_one_number, None),
    ],
    "08.ends": [
        (ends_as_found, "logits are √d_model times too large"),
        (ends_unscaled, "gone at both ends"),
        (ends_with_the_scale_at_the_end, "wrong end"),
        (ends_with_scaled_positions, "positions are scaled"),
        (ends_turned, "other way round"),
        (ends_scaled_in_place, None),
        (ends_without_positions, None),
        (ends_with(scale=lambda d_model: d_model), None),
        (ends_with(logit=lambda d_model: d_model**-0.5), None),
        (ends_with(rows=0), None),
    ],
    "08.next": [
        (lambda hidden, tgt_in, table: (hidden[:, -1] @ table[2:].T).argmax(1) + 2, "last place of the batch"),
        (next_from(lambda lengths: lengths - 1, barred=0), "neither may be written"),
        (next_from(lambda lengths: lengths), "behind the last real token"),
        (next_without_offset, "too small by 2"),
        (next_everything, "tokens for every place"),
        (next_from(lambda lengths: lengths - 1, barred=1), None),
        (next_from(lambda lengths: lengths * 0), None),
        (next_among_rows_not_zeroed, None),
        (next_as_column, None),
        (next_scores, None),
        (next_in_place, None),
    ],
    "08.gradient": [
        (gradient_by_plus_equals, "does not add them all"),
        (gradient_with(scale=lambda d_model: 1), "the rows get √d_model times"),
        (gradient_with(scale=lambda d_model: 1, whole=math.sqrt), "scaled as well"),
        (gradient_with(generator=0), "generator's part is missing"),
        (gradient_with(source=0, target=0), "generator's part alone"),
        (gradient_with(target=0), None),
        (gradient_with(scale=lambda d_model: d_model**-0.5), None),
        (gradient_averaged, None),
        (gradient_turned, None),
        (gradient_by_autograd, None),
    ],
    "08.costs": [
        (predicted(heads=2), "narrower heads"),
        (predicted(scores=2), "Twice as many queries"),
        (predicted(length=256), "side by side"),
        (predicted(bytes=4), "its gradient takes as much"),
        (predicted(widths=2), None),
        (predicted(network=4), None),
        (predicted(bytes=16), None),
        (predicted(length=None), None),
    ],
}
