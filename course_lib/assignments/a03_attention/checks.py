"""Checks of assignment 03: attention, from a loop to matrices, and what the division by √d_k is for."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

SCALE = " / math.sqrt(query.size(-1))"
ATTENTION = (F.scaled_dot_product_attention, nn.MultiheadAttention)
SOFTMAX = (
    *(F.softmax, torch.softmax, torch.special.softmax, torch.Tensor.softmax, nn.Softmax),
    *(F.log_softmax, torch.log_softmax, torch.special.log_softmax, torch.Tensor.log_softmax, nn.LogSoftmax),
)


def queries_and_keys(generator):
    """Equal and unequal numbers of them, one sentence and several, different widths."""
    shapes = [(1, 2, 3, 4), (2, 5, 5, 8), (3, 1, 6, 16), (3, 4, 2, 3)]
    return [
        (torch.randn(batch, queries, d_k, generator=generator), torch.randn(batch, keys, d_k, generator=generator))
        for batch, queries, keys, d_k in shapes
    ]


def with_values(generator):
    """The values' widths may differ from those of the keys."""
    pairs = zip(queries_and_keys(generator), (4, 5, 3, 2), strict=True)
    return [(query, key, torch.randn(*key.shape[:2], width, generator=generator)) for (query, key), width in pairs]


def rows_of_scores(generator):
    """Small ones, very large ones, blocked ones."""
    small = [3 * torch.randn(shape, generator=generator) for shape in [(2, 2), (3, 5), (2, 4, 7), (2, 3, 1, 6)]]
    large = 1000 + 300 * torch.rand(2, 3, 4, generator=generator)
    large[:, 0] -= 2000
    blocked = torch.randn(3, 5, generator=generator)
    blocked[:, 2:4] = -math.inf
    return [(scores,) for scores in (*small, large, blocked, torch.randn(2, 3, 5, generator=generator))]


def networks(generator):
    """Queries, keys and the weights of a small network, all of different widths."""
    cases = []
    for sizes in [(1, 2, 3, 4, 4, 5), (2, 4, 4, 3, 6, 4), (3, 1, 5, 8, 2, 3), (2, 5, 2, 3, 4, 7)]:
        batch, queries, keys, d_query, d_key, d_hidden = sizes
        shapes = (batch, queries, d_query), (batch, keys, d_key), (d_hidden, d_query), (d_hidden, d_key), (d_hidden,)
        cases.append(tuple(torch.randn(shape, generator=generator) for shape in shapes))
    return cases


EXERCISES = (
    Exercise(
        "03.scores",
        queries_and_keys,
        {
            "These are the scores without the division by √d_k.": Edit(SCALE, ""),
            "These are divided by d_k; it is its square root that keeps the variance at 1.":
                Edit(SCALE, " / query.size(-1)"),
            "These are divided by the root of the number of keys; d_k is the width of a key, its last dimension.":
                Edit("query.size(-1)", "key.size(1)"),
            "These are the weights, after the softmax; the scores come before it.":
                Edit("return ", "return torch.softmax(", SCALE, f"{SCALE}, dim=-1)"),
            "Rows and columns are exchanged: each query has a row.": Edit("query @ key", "key @ query"),
            "You multiply by √d_k; the scores are divided by it.": Edit("/ math", "* math"),
            "A reshape cuts the keys into other ones. Turn rows and columns with a transpose.":
                Edit("key.transpose(1, 2)", "key.reshape(key.size(0), key.size(2), key.size(1))"),
            "These are the scores of the first sentence, for every sentence.":
                Edit("query @ key.transpose(1, 2)", "(query[0] @ key[0].T).unsqueeze(0)"),
        },
        forbidden=ATTENTION,
        loops=False,
    ),
    Exercise(
        "03.softmax",
        rows_of_scores,
        {
            "The exponential of a large score is infinite. "
            "Take the largest score of each row off first: it changes no weight.":
                Edit(" - scores.amax(dim=-1, keepdim=True)", ""),
            "Here each column sums to 1; each query's row must.": Edit("dim=-1", "dim=-2"),
            "Here all weights together sum to 1; each query's row must.":
                Edit("amax(dim=-1, keepdim=True)", "max()", "sum(dim=-1, keepdim=True)", "sum()"),
            "The number that is taken off is the largest of the whole tensor, so a row far below it becomes 0 / 0. "
            "Take off each row's own largest score.":
                Edit("amax(dim=-1, keepdim=True)", "max()"),
            "These are shares of the scores themselves; the exponential is missing.":
                Edit("(scores - scores.amax(dim=-1, keepdim=True)).exp()", "scores"),
            "Something is added to the exponentials, and weights that should be 0 are not. "
            "Nothing is needed there.": Edit(".exp()", ".exp() + 1e-3"),
            "A sigmoid looks at each score alone. A row of weights sums to 1.":
                Edit("exponentials / exponentials.sum(dim=-1, keepdim=True)", "scores.sigmoid()"),
            "An ε in the denominator moves the digits that float64 has. The sum cannot be 0: "
            "the largest exponential is 1.": Edit("sum(dim=-1, keepdim=True)", "sum(dim=-1, keepdim=True) + 1e-6"),
        },
        forbidden=SOFTMAX,
    ),
    Exercise(
        "03.attention",
        with_values,
        {
            "The width of a key is still 4, whatever the key. Ask the key for it.": PLANTED,
            "These are the weights without the division by √d_k.": Edit(" / math.sqrt(d_k)", ""),
            "These scores are divided by d_k; it is its square root that keeps the variance at 1.":
                Edit("math.sqrt(d_k)", "d_k"),
            "Context and weights are the other way round.":
                Edit("weights @ value, weights", "weights, weights @ value"),
            "The width of a value decides here. It is the width of a key that counts.":
                Edit("key.size(-1)", "value.size(-1)"),
            "Here each column sums to 1; each query's row must.": Edit("dim=-1", "dim=1"),
            "Two tensors are asked for: context, weights.": Edit("weights @ value, weights", "weights @ value"),
        },
        forbidden=ATTENTION,
    ),
    Exercise(
        "03.repeated",
        mistakes={
            "The two equal keys get 0.8 together; the question is about one of them.": Edit("0.4", "0.8"),
            "A zero query scores 0 with every key, and 0 is a score like any other: the weights still sum to 1.":
                Edit("0.2,", "0.0,"),
            "The third key scores ln 2 less, so it gets half as much as one of the two, and not the same.":
                Edit("0.4", "1 / 3"),
            "The third key has a weight, too: half of one of theirs.": Edit("0.4", "0.5"),
            "Four equal keys share one weight equally; the question is about one of them.": Edit("0.25", "1.0"),
        },
        ask=value,
    ),
    Exercise(
        "03.additive",
        networks,
        {
            "The tanh is missing. Without it the query adds the same to all its scores, and the softmax ignores it.":
                Edit("torch.tanh", ""),
            "Here each column sums to 1; each query's row must.": Edit("dim=-1", "dim=1"),
            "The network has a tanh, not a sigmoid.": Edit("torch.tanh", "torch.sigmoid"),
            "The network has a tanh, not a ReLU.": Edit("torch.tanh", "torch.relu"),
            "Rows and columns are exchanged: each query has a row.": Edit("dim=-1)", "dim=-1).transpose(1, 2)"),
            "These are the scores; the softmax is missing.": Edit("torch.softmax(", "(", ", dim=-1)", ")"),
        },
        loops=False,
    ),
)
