"""Checks of assignment 04: multi-head attention, from a loop over heads to one product; what heads add and cost."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

FINISHED = (F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward)


def packed_and_heads(generator):
    """Query, key and value side by side, and a number of heads."""
    shapes = [(2, 5, 12, 3), (1, 4, 8, 2), (3, 3, 12, 4), (2, 6, 20, 5)]
    return [
        (torch.randn(batch, length, 3 * d_model, generator=generator), num_heads)
        for batch, length, d_model, num_heads in shapes
    ]


def projected(generator):
    """Queries, keys and values after their projections, and a number of heads."""
    cases = []
    for sizes in [(2, 3, 5, 8, 2), (1, 4, 4, 12, 3), (3, 5, 2, 8, 4), (2, 4, 6, 18, 3)]:
        batch, queries, keys, d_model, num_heads = sizes
        lengths = queries, keys, keys
        cases.append((*(torch.randn(batch, length, d_model, generator=generator) for length in lengths), num_heads))
    return cases


def contexts_of_heads(generator):
    """Contexts, and a W_O to any width."""
    cases = []
    for batch, heads, queries, d_k, d_model in [(2, 3, 4, 2, 6), (1, 2, 5, 4, 8), (3, 4, 1, 3, 5), (2, 3, 5, 4, 12)]:
        shapes = (batch, heads, queries, d_k), (heads * d_k, d_model)
        cases.append(tuple(torch.randn(shape, generator=generator) for shape in shapes))
    return cases


def matrices_of_heads(generator):
    """Queries, keys, values and the stacked matrices; d_k, d_v and d_model / heads differ."""
    cases = []
    for sizes in [(2, 3, 5, 2, 6, 3, 3), (1, 4, 4, 3, 6, 2, 5), (3, 2, 6, 4, 8, 3, 2), (2, 5, 3, 3, 12, 5, 4)]:
        batch, queries, keys, heads, d_model, d_k, d_v = sizes
        inputs = [(batch, length, d_model) for length in (queries, keys, keys)]
        matrices = [(heads, d_model, d_k), (heads, d_model, d_k), (heads, d_model, d_v), (heads * d_v, d_model)]
        inputs = [torch.randn(shape, generator=generator) for shape in inputs]
        matrices = [torch.randn(shape, generator=generator) / math.sqrt(shape[-2]) for shape in matrices]
        cases.append((*inputs, *matrices))
    return cases


EXERCISES = (
    Exercise(
        "04.unpack",
        packed_and_heads,
        {
            "The shape is right, but heads get other positions. "
            "Cut the features of each token first, then swap heads and length.":
                Edit("transpose(1, 2)", "reshape(len(packed), num_heads, packed.size(1), -1)"),
            "Here the heads come after the positions; they belong before them.": Edit(".transpose(1, 2)", ""),
            "Here a head takes every num_heads-th feature; it must take d_k neighbors.":
                Edit("num_heads, -1", "-1, num_heads", "transpose(1, 2)", "movedim(-1, 1)"),
            "Here each head is cut into query, key and value. "
            "It is the other way round: three parts of width d_model, each cut into heads.":
                Edit("3, num_heads", "num_heads, 3", "unbind(2)", "unbind(3)"),
            "Query and value are exchanged: the first third is the query.":
                Edit("query, key, value =", "value, key, query ="),
            "Three tensors are asked for: query, key, value.":
                Edit("query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)", "query.transpose(1, 2)"),
            "The last two axes are exchanged: (batch, heads, length, d_k).":
                Edit("transpose(1, 2)", "permute(0, 2, 3, 1)"),
        },
        loops=False,
    ),
    Exercise(
        "04.sizes",
        mistakes={
            "Twice the heads are half as wide each: all of W_Q stays d_model × d_model.":
                Edit('8 heads": 4', '8 heads": 8'),
            "These are the matrices alone; the projections have biases here.": Edit(" + 64", ""),
            "These are three projections; W_O is the fourth.": Edit("4 * (64", "3 * (64"),
            "Each head has weights of its own, so 8 heads have twice as many numbers as 4.": Edit("2 * 8", "2 * 4"),
            "That is what a head should get. The view fills head 0 first, with all features of the first positions.":
                Edit("[2, 3]", "[0, 1, 2, 3]"),
            "More heads do not make W_Q smaller: together they are as wide as d_model.":
                Edit('8 heads": 4', '8 heads": 2'),
            "Weights have a row for each query and a column for each key.": Edit("(2, 4, 5, 7)", "(2, 4, 7, 5)"),
            "The heads stand before the positions: (batch, heads, length, d_k).":
                Edit("(2, 4, 5, 16)", "(2, 5, 4, 16)"),
            "64 is the width of all heads together; how wide is one of 4?": Edit('d_k": 16', 'd_k": 64'),
        },
        ask=value,
    ),
    Exercise(
        "04.contexts",
        projected,
        {
            "The scores are still too small. "
            "How many products does each of them add up, and what are they divided by?": PLANTED,
            "Now the scores are not divided at all.": Edit(" / scale", ""),
            "These scores are divided by the root of the number of heads; it takes the root of a head's width.":
                Edit("math.sqrt(query.size(-1))", "math.sqrt(num_heads)"),
            "These scores are divided by d_k; it is its square root that keeps the variance at 1.":
                Edit("math.sqrt(query.size(-1))", "query.size(-1)"),
            "The merge was right before: the heads have to go behind the positions, then the flatten.":
                Edit("transpose(1, 2).flatten(2)", "reshape(len(query), query.size(2), -1)"),
            "The split was right before: this one hands other positions to the heads.":
                Edit("unflatten(-1, (num_heads, -1)).transpose(1, 2)", "reshape(len(x), num_heads, x.size(1), -1)"),
            "Here the weights sum to 1 over the heads; they must over the keys.": Edit("dim=-1", "dim=1"),
            "Here each column sums to 1; each query's row must.": Edit("dim=-1", "dim=-2"),
            "The scores are still too small, and the merge was right before: "
            "the heads go behind the positions, then the flatten.":
                Edit("query.size(-1)", "num_heads * query.size(-1)", "transpose(1, 2).flatten(2)",
                     "reshape(len(query), query.size(2), -1)"),
        },
        forbidden=FINISHED,
    ),
    Exercise(
        "04.contributions",
        contexts_of_heads,
        {
            "This is the output, the sum over the heads; what each of them adds is asked for.":
                Edit("context @ slices", "(context @ slices).sum(dim=1)"),
            "Here a head gets every num_heads-th row of W_O; its features are d_k neighbors.":
                Edit("(context.size(1), -1))", "(-1, context.size(1))).transpose(0, 1)"),
            "W_O is turned round, as nn.Linear stores it. Here its rows meet the features of the heads.":
                Edit("to_output.un", "to_output.T.un"),
            "Here every head speaks through the slice of head 0.": Edit("@ slices", "@ slices[0]"),
            "This is one output of positions that were mixed. Each head has its own slice of W_O.":
                Edit("context @ slices", "context.reshape(len(context), context.size(2), -1) @ to_output"),
            "Heads and queries are exchanged: (batch, heads, queries, d_model).":
                Edit("context @ slices", "(context @ slices).transpose(1, 2)"),
            "These are the contexts; W_O is missing.": Edit("context @ slices", "context"),
            "You divide by the number of heads. The output is a sum over the heads, not their mean.":
                Edit("context @ slices", "context @ slices / context.size(1)"),
        },
        loops=False,
    ),
    Exercise(
        "04.multi_head",
        matrices_of_heads,
        {
            "The contexts are flattened while the heads still stand before the positions, so positions are mixed.":
                Edit("transpose(1, 2).flatten(2)", "reshape(len(query), query.size(1), -1)"),
            "The features of the heads are interleaved; all of head 0 comes first, then all of head 1.":
                Edit("transpose(1, 2)", "permute(0, 2, 3, 1)"),
            "The scores are divided by √d_model; the keys of a head are only d_k wide.": Edit("keys.size", "key.size"),
            "The division by √d_k is missing.": Edit(" / math.sqrt(keys.size(-1))", ""),
            "Here the weights sum to 1 over the heads; they must over the keys.": Edit("dim=-1", "dim=1"),
            "These are the contexts side by side; W_O is missing.": Edit(" @ to_output", ""),
            "The scores are divided by √d_v; the keys of a head are d_k wide.":
                Edit("keys.size(-1)", "values.size(-1)"),
            "The scores are divided by the root of the number of keys; it is that of their width, d_k.":
                Edit("keys.size(-1)", "keys.size(2)"),
            "Here each column sums to 1; each query's row must.": Edit("dim=-1", "dim=-2"),
            "The values are made of the keys' input. They are made of `value`.":
                Edit("value.unsqueeze", "key.unsqueeze"),
        },
        forbidden=FINISHED,
        loops=False,
    ),
)
