"""Assignment 04: multi-head attention, from a loop over heads to one product, and what heads add and cost."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checks import Exercise, Variant, value

FINISHED = (F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward)


# 04.unpack


def unpack(packed: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value (batch, heads, length, d_k) from one tensor (batch, length, 3 * d_model), head by head."""
    d_model = packed.size(-1) // 3
    d_k = d_model // num_heads
    parts = []
    for part in range(3):
        heads = []
        for head in range(num_heads):
            start = part * d_model + head * d_k
            heads.append(packed[:, :, start : start + d_k])
        parts.append(torch.stack(heads, dim=1))
    return tuple(parts)


def _packed(generator: torch.Generator) -> list[tuple]:
    shapes = [(2, 5, 12, 3), (1, 4, 8, 2), (3, 3, 12, 4), (2, 6, 20, 5)]
    return [
        (torch.randn(batch, length, 3 * d_model, generator=generator), num_heads)
        for batch, length, d_model, num_heads in shapes
    ]


def _each(cut):
    """A way to cut one part, done to all three."""
    return lambda packed, num_heads: tuple(cut(part, num_heads) for part in packed.chunk(3, dim=-1))


UNPACK = Exercise(
    "04.unpack",
    unpack,
    _packed,
    (
        Variant(
            _each(lambda x, num_heads: x.reshape(x.size(0), num_heads, x.size(1), -1)),
            "The shape is right, but heads get other positions. "
            "Cut the features of each token first, then swap heads and length.",
        ),
        Variant(
            _each(lambda x, num_heads: x.unflatten(-1, (num_heads, -1))),
            "Here the heads come after the positions; they belong before them.",
        ),
        Variant(
            _each(lambda x, num_heads: x.unflatten(-1, (-1, num_heads)).movedim(-1, 1)),
            "Here a head takes every num_heads-th feature; it must take d_k neighbors.",
        ),
        Variant(
            lambda packed, num_heads: tuple(packed.unflatten(-1, (num_heads, -1)).transpose(1, 2).chunk(3, dim=-1)),
            "Here each head is cut into query, key and value. "
            "It is the other way round: three parts of width d_model, each cut into heads.",
        ),
    ),
    loops=False,
)


# 04.sizes

PREDICTED = {
    "d_k": 16,
    "shape of the weights": (2, 4, 5, 7),
    "shape of the contexts before the merge": (2, 4, 5, 16),
    "shape of the output": (2, 5, 64),
    "parameters": 16_640,
    "parameters with 8 heads": 16_640,
    "numbers in the weights with 8 heads": 560,
    "positions in head 1 after the view": [2, 3],
}

SIZES = Exercise(
    "04.sizes",
    PREDICTED,
    variants=(
        Variant(
            PREDICTED | {"parameters with 8 heads": 33_280},
            "Twice the heads are half as wide each: all of W_Q stays d_model × d_model.",
        ),
        Variant(
            PREDICTED | {"parameters": 16_384, "parameters with 8 heads": 16_384},
            "These are the matrices alone; the projections have biases here.",
        ),
        Variant(
            PREDICTED | {"parameters": 12_480, "parameters with 8 heads": 12_480},
            "These are three projections; W_O is the fourth.",
        ),
        Variant(
            PREDICTED | {"numbers in the weights with 8 heads": 280},
            "Each head has weights of its own, so 8 heads have twice as many numbers as 4.",
        ),
        Variant(
            PREDICTED | {"positions in head 1 after the view": [0, 1, 2, 3]},
            "That is what a head should get. The view fills head 0 first, with all features of the first positions.",
        ),
    ),
    ask=value,
)


# 04.contexts


def contexts(query: Tensor, key: Tensor, value: Tensor, num_heads: int) -> Tensor:
    """Contexts of all heads side by side, (batch, queries, d_model), one head after the other."""
    d_k = query.size(-1) // num_heads
    found = []
    for head in range(num_heads):
        own = slice(head * d_k, (head + 1) * d_k)  # the features of this head
        scores = query[..., own] @ key[..., own].transpose(1, 2) / math.sqrt(d_k)
        found.append(torch.softmax(scores, dim=-1) @ value[..., own])
    return torch.cat(found, dim=-1)


def _projected(generator: torch.Generator) -> list[tuple]:
    shapes = [(2, 3, 5, 8, 2), (1, 4, 4, 12, 3), (3, 5, 2, 8, 4), (2, 4, 6, 18, 3)]
    return [
        (
            torch.randn(batch, queries, d_model, generator=generator),
            torch.randn(batch, keys, d_model, generator=generator),
            torch.randn(batch, keys, d_model, generator=generator),
            num_heads,
        )
        for batch, queries, keys, d_model, num_heads in shapes
    ]


def _split(x: Tensor, num_heads: int) -> Tensor:
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _view(x: Tensor, num_heads: int) -> Tensor:
    return x.reshape(x.size(0), num_heads, x.size(1), -1)


def _contexts(query, key, value, num_heads, *, width=None, split=_split, merge=_merge, dim=-1) -> Tensor:
    query, key, value = (split(x, num_heads) for x in (query, key, value))
    scores = query @ key.transpose(2, 3) / math.sqrt(width or query.size(-1))
    return merge(F.softmax(scores, dim=dim) @ value)


CONTEXTS = Exercise(
    "04.contexts",
    contexts,
    _projected,
    (
        Variant(
            lambda query, *rest: _contexts(query, *rest, width=query.size(-1)),
            "The scores are still too small. How many products does each of them add up, and what are they divided by?",
        ),
        Variant(lambda *inputs: _contexts(*inputs, width=1), "Now the scores are not divided at all."),
        Variant(
            lambda *inputs: _contexts(*inputs, width=inputs[-1]),
            "These scores are divided by the root of the number of heads; it takes the root of a head's width.",
        ),
        Variant(
            lambda query, *rest: _contexts(query, *rest, width=(query.size(-1) // rest[-1]) ** 2),
            "These scores are divided by d_k; it is its square root that keeps the variance at 1.",
        ),
        Variant(
            lambda *inputs: _contexts(*inputs, merge=lambda x: x.reshape(x.size(0), x.size(2), -1)),
            "The merge was right before: the heads have to go behind the positions, then the flatten.",
        ),
        Variant(
            lambda *inputs: _contexts(*inputs, split=_view),
            "The split was right before: this one hands other positions to the heads.",
        ),
    ),
    forbidden=FINISHED,
)


# 04.contributions


def contributions(context: Tensor, to_output: Tensor) -> Tensor:
    """What each head adds to the output, (batch, heads, queries, d_model): all other heads silenced, then W_O."""
    num_heads, added = context.size(1), []
    for head in range(num_heads):
        alone = torch.zeros_like(context)
        alone[:, head] = context[:, head]
        concatenated = torch.cat([alone[:, other] for other in range(num_heads)], dim=-1)
        added.append(concatenated @ to_output)
    return torch.stack(added, dim=1)


def _heads(generator: torch.Generator) -> list[tuple]:
    shapes = [(2, 3, 4, 2, 6), (1, 2, 5, 4, 8), (3, 4, 1, 3, 5), (2, 3, 5, 4, 12)]
    return [
        (
            torch.randn(batch, heads, queries, d_k, generator=generator),
            torch.randn(heads * d_k, d_model, generator=generator),
        )
        for batch, heads, queries, d_k, d_model in shapes
    ]


CONTRIBUTIONS = Exercise(
    "04.contributions",
    contributions,
    _heads,
    (
        Variant(
            lambda context, to_output: _merge(context) @ to_output,
            "This is the output, the sum over the heads; what each of them adds is asked for.",
        ),
        Variant(
            lambda context, to_output: context @ to_output.unflatten(0, (-1, context.size(1))).transpose(0, 1),
            "Here a head gets every num_heads-th row of W_O; its features are d_k neighbors.",
        ),
        Variant(
            lambda context, to_output: context @ to_output.T.unflatten(0, (context.size(1), -1)),
            "W_O is turned round, as nn.Linear stores it. Here its rows meet the features of the heads.",
        ),
        Variant(
            lambda context, to_output: context @ to_output[: context.size(-1)],
            "Here every head speaks through the slice of head 0.",
        ),
    ),
    loops=False,
)


# 04.multi_head


def multi_head(
    query: Tensor, key: Tensor, value: Tensor, to_query: Tensor, to_key: Tensor, to_value: Tensor, to_output: Tensor
) -> Tensor:
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V), one head after the other."""
    found = []
    for head in range(to_query.size(0)):
        q, k, v = query @ to_query[head], key @ to_key[head], value @ to_value[head]
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.size(-1)), dim=-1)
        found.append(weights @ v)
    return torch.cat(found, dim=-1) @ to_output


def _formula_cases(generator: torch.Generator) -> list[tuple]:
    shapes = [(2, 3, 5, 2, 6, 3, 3), (1, 4, 4, 3, 6, 2, 5), (3, 2, 6, 4, 8, 3, 2), (2, 5, 3, 3, 12, 5, 4)]
    return [
        tuple(
            torch.randn(shape, generator=generator) / math.sqrt(shape[-2] if number > 2 else 1)
            for number, shape in enumerate(
                (
                    (batch, queries, d_model),
                    (batch, keys, d_model),
                    (batch, keys, d_model),
                    (heads, d_model, d_k),
                    (heads, d_model, d_k),
                    (heads, d_model, d_v),
                    (heads * d_v, d_model),
                )
            )
        )
        for batch, queries, keys, heads, d_model, d_k, d_v in shapes
    ]


def _formula(query, key, value, to_query, to_key, to_value, to_output, *, width=None, merge=_merge, dim=-1) -> Tensor:
    heads = query.unsqueeze(1) @ to_query, key.unsqueeze(1) @ to_key, value.unsqueeze(1) @ to_value
    scores = heads[0] @ heads[1].transpose(2, 3) / math.sqrt(width or to_query.size(-1))
    return merge(F.softmax(scores, dim=dim) @ heads[2]) @ to_output


MULTI_HEAD = Exercise(
    "04.multi_head",
    multi_head,
    _formula_cases,
    (
        Variant(
            lambda *inputs: _formula(*inputs, merge=lambda x: x.reshape(x.size(0), x.size(2), -1)),
            "The contexts are flattened while the heads still stand before the positions, so positions are mixed.",
        ),
        Variant(
            lambda *inputs: _formula(*inputs, merge=lambda x: x.permute(0, 2, 3, 1).flatten(2)),
            "The features of the heads are interleaved; all of head 0 comes first, then all of head 1.",
        ),
        Variant(
            lambda *inputs: _formula(*inputs, width=inputs[0].size(-1)),
            "The scores are divided by √d_model; the keys of a head are only d_k wide.",
        ),
        Variant(lambda *inputs: _formula(*inputs, width=1), "The division by √d_k is missing."),
        Variant(
            lambda *inputs: _formula(*inputs, dim=1),
            "Here the weights sum to 1 over the heads; they must over the keys.",
        ),
        Variant(
            lambda *inputs: _formula(*inputs[:-1], torch.eye(inputs[-1].size(0)).to(inputs[-1])),
            "These are the contexts side by side; W_O is missing.",
        ),
    ),
    forbidden=FINISHED,
    loops=False,
)

EXERCISES = (UNPACK, SIZES, CONTEXTS, CONTRIBUTIONS, MULTI_HEAD)
