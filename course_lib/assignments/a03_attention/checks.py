"""Assignment 03: attention, from a loop to matrices, and what the division by √d_k is for."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checks import Exercise, Variant, value


def _qk(generator: torch.Generator) -> list[tuple]:
    """Queries and keys: equal and unequal numbers of them, one sentence and several, different widths."""
    shapes = [(1, 2, 3, 4), (2, 5, 5, 8), (3, 1, 6, 16), (3, 4, 2, 3)]
    return [
        (torch.randn(batch, queries, d_k, generator=generator), torch.randn(batch, keys, d_k, generator=generator))
        for batch, queries, keys, d_k in shapes
    ]


# 03.scores


def scores(query: Tensor, key: Tensor) -> Tensor:
    """Scaled scores of every query with every key, one dot product at a time."""
    result = query.new_zeros(query.size(0), query.size(1), key.size(1))
    for sentence in range(query.size(0)):
        for row in range(query.size(1)):
            for column in range(key.size(1)):
                product = (query[sentence, row] * key[sentence, column]).sum()
                result[sentence, row, column] = product / math.sqrt(query.size(-1))
    return result


SCORES = Exercise(
    "03.scores",
    scores,
    _qk,
    (
        Variant(
            lambda query, key: query @ key.transpose(1, 2),
            "These are the scores without the division by √d_k.",
        ),
        Variant(
            lambda query, key: query @ key.transpose(1, 2) / query.size(-1),
            "These are divided by d_k; it is its square root that keeps the variance at 1.",
        ),
        Variant(
            lambda query, key: query @ key.transpose(1, 2) / math.sqrt(key.size(1)),
            "These are divided by the root of the number of keys; d_k is the width of a key, its last dimension.",
        ),
        Variant(
            lambda query, key: F.softmax(query @ key.transpose(1, 2) / math.sqrt(query.size(-1)), dim=-1),
            "These are the weights, after the softmax; the scores come before it.",
        ),
    ),
    forbidden=(F.scaled_dot_product_attention, nn.MultiheadAttention),
    loops=False,
)


# 03.softmax


def softmax(scores: Tensor) -> Tensor:
    """Weights of each query: exponentials of its scores over their sum. The largest score is taken off first."""
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def _scores(generator: torch.Generator) -> list[tuple]:
    shapes = [(2, 2), (3, 5), (2, 4, 7), (2, 3, 1, 6)]
    small = [(3 * torch.randn(shape, generator=generator),) for shape in shapes]
    large = 1000 + 300 * torch.rand(2, 3, 4, generator=generator)
    large[:, 0] -= 2000
    blocked = torch.randn(3, 5, generator=generator)
    blocked[:, 2:4] = -math.inf
    return [*small, (large,), (blocked,), (torch.randn(2, 3, 5, generator=generator),)]


def _shifted(scores: Tensor, dim: int) -> Tensor:
    exponentials = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


SOFTMAX = Exercise(
    "03.softmax",
    softmax,
    _scores,
    (
        Variant(
            lambda scores: scores.exp() / scores.exp().sum(dim=-1, keepdim=True),
            "The exponential of a large score is infinite. "
            "Take the largest score of each row off first: it changes no weight.",
        ),
        Variant(
            lambda scores: _shifted(scores, -2),
            "Here each column sums to 1; each query's row must.",
        ),
        Variant(
            lambda scores: (scores - scores.max()).exp() / (scores - scores.max()).exp().sum(),
            "Here all weights together sum to 1; each query's row must.",
        ),
        Variant(
            lambda scores: (scores - scores.max()).exp() / (scores - scores.max()).exp().sum(dim=-1, keepdim=True),
            "The largest of all scores is taken off, and a row far below it becomes 0 / 0. Each row has its own.",
        ),
        Variant(
            lambda scores: scores / scores.sum(dim=-1, keepdim=True),
            "These are shares of the scores themselves; the exponential is missing.",
        ),
    ),
    forbidden=(
        *(F.softmax, torch.softmax, torch.special.softmax, torch.Tensor.softmax, nn.Softmax),
        *(F.log_softmax, torch.log_softmax, torch.special.log_softmax, torch.Tensor.log_softmax, nn.LogSoftmax),
    ),
)


# 03.attention


def attention(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Context and weights of every query."""
    weights = softmax(scores(query, key))
    context = query.new_zeros(query.size(0), query.size(1), value.size(-1))
    for sentence in range(query.size(0)):
        for row in range(query.size(1)):
            for column in range(key.size(1)):
                context[sentence, row] += weights[sentence, row, column] * value[sentence, column]
    return context, weights


def _qkv(generator: torch.Generator) -> list[tuple]:
    widths = (4, 5, 3, 2)  # of the values: they may differ from those of the keys
    pairs = _qk(generator)
    return [
        (query, key, torch.randn(key.size(0), key.size(1), width, generator=generator))
        for (query, key), width in zip(pairs, widths, strict=True)
    ]


def _planted(query: Tensor, key: Tensor, value: Tensor, d_k: int = 4) -> tuple[Tensor, Tensor]:
    weights = F.softmax(query @ key.transpose(1, 2) / math.sqrt(d_k), dim=-1)
    return weights @ value, weights


ATTENTION = Exercise(
    "03.attention",
    attention,
    _qkv,
    (
        Variant(
            _planted,
            "The width of a key is still 4, whatever the key. Ask the key for it.",
        ),
        Variant(
            lambda query, key, value: _planted(query, key, value, 1),
            "These are the weights without the division by √d_k.",
        ),
        Variant(
            lambda query, key, value: _planted(query, key, value, key.size(-1) ** 2),
            "These scores are divided by d_k; it is its square root that keeps the variance at 1.",
        ),
        Variant(
            lambda query, key, value: _planted(query, key, value, key.size(-1))[::-1],
            "Context and weights are the other way round.",
        ),
    ),
    forbidden=(F.scaled_dot_product_attention, nn.MultiheadAttention),
)


# 03.repeated

REPEATED = Exercise(
    "03.repeated",
    {
        "one key, any score": 1.0,
        "four equal keys": 0.25,
        "the same key twice, and one that scores ln 2 less": 0.4,
        "the query is zero, five keys": 0.2,
    },
    variants=(
        Variant(
            {
                "one key, any score": 1.0,
                "four equal keys": 0.25,
                "the same key twice, and one that scores ln 2 less": 0.8,
                "the query is zero, five keys": 0.2,
            },
            "The two equal keys get 0.8 together; the question is about one of them.",
        ),
        Variant(
            {
                "one key, any score": 1.0,
                "four equal keys": 0.25,
                "the same key twice, and one that scores ln 2 less": 0.4,
                "the query is zero, five keys": 0.0,
            },
            "A zero query scores 0 with every key, and 0 is a score like any other: the weights still sum to 1.",
        ),
    ),
    ask=value,
)


# 03.additive


def additive(query: Tensor, key: Tensor, to_query: Tensor, to_key: Tensor, score: Tensor) -> Tensor:
    """Weights of additive attention (Bahdanau et al. 2015): scores vᵀ tanh(W q + U k), one pair at a time."""
    result = query.new_zeros(query.size(0), query.size(1), key.size(1))
    for sentence in range(query.size(0)):
        for row in range(query.size(1)):
            for column in range(key.size(1)):
                hidden = torch.tanh(to_query @ query[sentence, row] + to_key @ key[sentence, column])
                result[sentence, row, column] = score @ hidden
    return softmax(result)


def _additive_cases(generator: torch.Generator) -> list[tuple]:
    shapes = [(1, 2, 3, 4, 4, 5), (2, 4, 4, 3, 6, 4), (3, 1, 5, 8, 2, 3), (2, 5, 2, 3, 4, 7)]
    return [
        tuple(
            torch.randn(shape, generator=generator)
            for shape in (
                (batch, queries, d_query),
                (batch, keys, d_key),
                (d_hidden, d_query),
                (d_hidden, d_key),
                (d_hidden,),
            )
        )
        for batch, queries, keys, d_query, d_key, d_hidden in shapes
    ]


def _additive(query, key, to_query, to_key, score, *, bend=torch.tanh, dim=-1) -> Tensor:
    hidden = bend((query @ to_query.T).unsqueeze(2) + (key @ to_key.T).unsqueeze(1))
    return F.softmax(hidden @ score, dim=dim)


ADDITIVE = Exercise(
    "03.additive",
    additive,
    _additive_cases,
    (
        Variant(
            lambda *inputs: _additive(*inputs, bend=lambda hidden: hidden),
            "The tanh is missing. Without it the query adds the same to all its scores, and the softmax ignores it.",
        ),
        Variant(
            lambda *inputs: _additive(*inputs, dim=1),
            "Here each column sums to 1; each query's row must.",
        ),
    ),
    loops=False,
)

EXERCISES = (SCORES, SOFTMAX, ATTENTION, REPEATED, ADDITIVE)
