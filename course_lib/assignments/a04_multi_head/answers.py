"""Answers to assignment 04: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch

from course_lib.attention import MultiHeadAttention, attention
from course_lib.checks import Edit


class Unpack:
    def __call__(self, packed, num_heads):
        return packed.unflatten(2, (3, num_heads, -1)).movedim((2, 3), (0, 2)).unbind(0)


def side_by_side(query, key, value, num_heads):
    d_k = query.shape[-1] // num_heads
    heads = zip(*(x.split(d_k, dim=-1) for x in (query, key, value)), strict=True)
    return torch.cat([(q @ k.mT * d_k**-0.5).softmax(-1) @ v for q, k, v in heads], dim=-1)


def multi_head_by_wide_products(query, key, value, to_query, to_key, to_value, to_output):
    def project(x, matrices):
        wide = matrices.transpose(0, 1).flatten(1)  # (d_model, heads * d_k)
        return (x @ wide).unflatten(-1, (matrices.size(0), -1)).transpose(1, 2)

    queries, keys, values = project(query, to_query), project(key, to_key), project(value, to_value)
    weights = torch.softmax(queries @ keys.mT * to_query.size(-1) ** -0.5, dim=-1)
    return (weights @ values).transpose(1, 2).flatten(2) @ to_output


class MultiHead(torch.nn.Module):
    def forward(self, query, key, value, to_query, to_key, to_value, to_output):
        heads = [torch.matmul(x[:, None], w) for x, w in ((query, to_query), (key, to_key), (value, to_value))]
        weights = (heads[0] @ heads[1].mT / math.sqrt(to_key.shape[-1])).softmax(dim=-1)
        return torch.cat((weights @ heads[2]).unbind(1), dim=-1) @ to_output


# Pieces of the solutions that answers have in other words.
PARTS = "query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)"
ADDED = "context @ slices"
MERGED = "(weights @ value).transpose(1, 2).flatten(2)"
POSITIONS_MIXED = "reshape(len(query), query.size(2), -1)"

RIGHT = {
    "04.unpack": [
        Edit(PARTS, "tuple(parts.permute(2, 0, 3, 1, 4))"),
        lambda packed, num_heads: tuple(torch.stack(x.chunk(num_heads, -1), dim=1) for x in packed.chunk(3, dim=-1)),
        Edit("unflatten(-1, (3, num_heads, -1))", "reshape(*packed.shape[:2], 3, num_heads, -1)", PARTS, f"[{PARTS}]"),
        Unpack(),
    ],
    "04.sizes": [
        Edit(),
        Edit("(2, 4, 5, 7)", "[2, 4, 5, 7]", "(64 * 64 + 64)", "64 * 65", "[2, 3]", "(2, 3)"),
        Edit("(2, 4, 5, 16)", "torch.Size((2, 4, 5, 16))", "2 * 8 * 5 * 7", "torch.tensor(560)"),
    ],
    "04.contexts": [
        side_by_side,
        Edit(
            *("query @ key.transpose(2, 3)", "torch.einsum('bhqd,bhkd->bhqk', query, key)"),
            *("(weights @ value).transpose(1, 2)", "torch.einsum('bhqk,bhkd->bqhd', weights, value)"),
        ),
        Edit("math.sqrt(query.size(-1))", "query.size(3) ** 0.5", MERGED, "torch.cat((weights @ value).unbind(1), -1)"),
    ],
    "04.contributions": [
        Edit(ADDED, "torch.einsum('bhqd,hdm->bhqm', context, slices)"),
        Edit(
            f"return {ADDED}",
            "rows = context.transpose(0, 1).flatten(1, 2)  # (heads, batch * queries, d_k)\n"
            "    return torch.bmm(rows, slices).unflatten(1, (len(context), -1)).transpose(0, 1)",
        ),
        Edit(ADDED, "(context[..., None] * slices[:, None]).sum(-2)"),
    ],
    "04.multi_head": [
        Edit(
            *("query.unsqueeze(1) @ to_query", "torch.einsum('bqm,hmd->bhqd', query, to_query)"),
            *("queries @ keys.transpose(2, 3)", "torch.einsum('bhqd,bhkd->bhqk', queries, keys)"),
        ),
        multi_head_by_wide_products,
        MultiHead(),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "04.unpack": [
        Edit(PARTS, "parts.permute(2, 0, 3, 1, 4)"),
    ],
    "04.sizes": [
        Edit("(2, 5, 64)", "None"),
    ],
    "04.contexts": [
    ],
    "04.contributions": [
        (Edit(ADDED, "torch.stack([x @ w for x, w in zip(context.unbind(1), slices)], dim=1)"), "one by one"),
    ],
    "04.multi_head": [
        (Edit("torch.softmax(scores, dim=-1)", "torch.stack([x.softmax(-1) for x in scores.unbind()])"), "one by one"),
        Edit(  # the matrices of one head for all of them
            *("@ to_query", "@ to_query[:1].expand_as(to_query)"),
            *("@ to_key", "@ to_key[:1].expand_as(to_key)"),
            *("@ to_value", "@ to_value[:1].expand_as(to_value)"),
        ),
    ],
}


def library_contexts(query, key, value, num_heads):
    """The finished layer with identities for projections."""
    d_model = query.size(-1)
    layer = MultiHeadAttention(d_model, num_heads).to(query)
    for projection in (layer.query_proj, layer.key_proj, layer.value_proj, layer.output_proj):
        torch.nn.init.eye_(projection.weight)
        torch.nn.init.zeros_(projection.bias)
    return layer(query, key, value).detach()


def library_multi_head(query, key, value, to_query, to_key, to_value, to_output):
    """The finished attention on all heads; the finished layer knows d_k = d_v = d_model / heads only."""
    projected = query.unsqueeze(1) @ to_query, key.unsqueeze(1) @ to_key, value.unsqueeze(1) @ to_value
    return attention(*projected)[0].transpose(1, 2).flatten(2) @ to_output


# What a solution must agree with.
LIBRARY = {"04.contexts": library_contexts, "04.multi_head": library_multi_head}
