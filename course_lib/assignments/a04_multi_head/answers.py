"""Answers to assignment 04: differently written right ones, and plausible wrong ones with the hint that they get."""

import math

import torch

from course_lib.attention import MultiHeadAttention
from course_lib.attention import attention as library_attention


def unpack_by_permute(packed, num_heads):
    parts = packed.reshape(*packed.shape[:2], 3, num_heads, -1)
    return tuple(parts.permute(2, 0, 3, 1, 4))


def unpack_by_chunks(packed, num_heads):
    return tuple(torch.stack(part.chunk(num_heads, dim=-1), dim=1) for part in packed.chunk(3, dim=-1))


def unpack_by_views(packed, num_heads):
    batch, length, width = packed.shape
    query, key, value = packed.split(width // 3, dim=2)
    shape = batch, length, num_heads, width // 3 // num_heads
    return [part.reshape(shape).swapaxes(1, 2) for part in (query, key, value)]


class Unpack:
    def __call__(self, packed, num_heads):
        return packed.unflatten(2, (3, num_heads, -1)).movedim((2, 3), (0, 2)).unbind(0)


def unpack_in_one_view(packed, num_heads):
    batch, length, width = packed.shape
    parts = packed.split(width // 3, dim=-1)
    return tuple(part.contiguous().view(batch, num_heads, length, width // 3 // num_heads) for part in parts)


def unpack_without_transpose(packed, num_heads):
    return packed.reshape(*packed.shape[:2], 3, num_heads, -1).unbind(2)


def unpack_every_nth_feature(packed, num_heads):
    d_k = packed.size(-1) // 3 // num_heads
    return packed.unflatten(-1, (3, d_k, num_heads)).permute(2, 0, 4, 1, 3).unbind(0)


def unpack_heads_first(packed, num_heads):
    return packed.unflatten(-1, (num_heads, 3, -1)).permute(3, 0, 2, 1, 4).unbind(0)


def unpack_as_one_tensor(packed, num_heads):
    return packed.unflatten(-1, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)


def unpack_value_first(packed, num_heads):
    return unpack_by_permute(packed, num_heads)[::-1]


PREDICTED = {
    "d_k": 16,
    "shape of the weights": (2, 4, 5, 7),
    "shape of the contexts before the merge": (2, 4, 5, 16),
    "shape of the output": (2, 5, 64),
    "parameters": 16640,
    "parameters with 8 heads": 16640,
    "numbers in the weights with 8 heads": 560,
    "positions in head 1 after the view": [2, 3],
}


def predicted(**changed):
    shorts = ("d_k", "weights", "contexts", "output", "parameters", "eight", "numbers", "positions")
    names = dict(zip(shorts, PREDICTED, strict=True))
    return PREDICTED | {names[short]: guess for short, guess in changed.items()}


def side_by_side(query, key, value, num_heads):
    d_k = query.shape[-1] // num_heads
    heads = zip(*(x.split(d_k, dim=-1) for x in (query, key, value)), strict=True)
    return torch.cat([(q @ k.mT * d_k**-0.5).softmax(-1) @ v for q, k, v in heads], dim=-1)


def contexts_by_einsum(query, key, value, num_heads):
    query, key, value = (x.unflatten(-1, (num_heads, -1)) for x in (query, key, value))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.size(-1))
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value).flatten(2)


class Contexts:
    def __call__(self, query, key, value, num_heads):
        batch, _, d_model = query.shape
        d_k = d_model // num_heads
        query, key, value = (x.view(batch, -1, num_heads, d_k).transpose(1, 2) for x in (query, key, value))
        weights = torch.nn.functional.softmax(query @ key.mT / d_k**0.5, dim=-1)
        return (weights @ value).transpose(1, 2).reshape(batch, -1, d_model)


def contexts_with(divisor, split=True, merge=True, dim=-1):
    def answer(query, key, value, num_heads):
        batch, _, d_model = query.shape
        shape = (batch, -1, num_heads, d_model // num_heads)
        if split:
            heads = [x.view(shape).transpose(1, 2) for x in (query, key, value)]
        else:
            heads = [x.view(batch, num_heads, -1, d_model // num_heads) for x in (query, key, value)]
        scores = torch.einsum("bhqd,bhkd->bhqk", heads[0], heads[1]) / divisor(d_model, num_heads)
        context = scores.softmax(dim) @ heads[2]
        return (context.transpose(1, 2) if merge else context).reshape(batch, -1, d_model)

    return answer


def root_d_k(d_model, num_heads):
    return math.sqrt(d_model // num_heads)


def contributions_by_einsum(context, to_output):
    slices = to_output.view(context.size(1), context.size(3), -1)
    return torch.einsum("bhqd,hdm->bhqm", context, slices)


def contributions_by_chunks(context, to_output):
    slices = to_output.chunk(context.size(1))
    return torch.stack([head @ each for head, each in zip(context.unbind(1), slices, strict=True)], dim=1)


def contributions_by_bmm(context, to_output):
    batch, heads, queries, d_k = context.shape
    heads_first = context.transpose(0, 1).reshape(heads, -1, d_k)
    added = torch.bmm(heads_first, to_output.reshape(heads, d_k, -1))
    return added.unflatten(1, (batch, queries)).transpose(0, 1)


def contributions_by_sums(context, to_output):
    heads, d_k = context.size(1), context.size(3)
    return (context[..., None] * to_output.reshape(heads, 1, d_k, -1)).sum(-2)


def added_up(context, to_output):
    return contributions_by_einsum(context, to_output).sum(1)


def every_nth_row(context, to_output):
    heads = context.size(1)
    return torch.stack([context[:, head] @ to_output[head::heads] for head in range(heads)], dim=1)


def always_the_first_slice(context, to_output):
    return torch.einsum("bhqd,dm->bhqm", context, to_output[: context.size(3)])


def merged_with_a_view(context, to_output):
    batch, heads, queries, d_k = context.shape
    return context.reshape(batch, queries, heads * d_k) @ to_output


def queries_before_heads(context, to_output):
    return contributions_by_einsum(context, to_output).transpose(1, 2)


def as_in_linear(context, to_output):
    slices = to_output.T.chunk(context.size(1))
    return torch.stack([head @ each for head, each in zip(context.unbind(1), slices, strict=True)], dim=1)


def multi_head_by_einsum(query, key, value, to_query, to_key, to_value, to_output):
    queries = torch.einsum("bqm,hmd->bhqd", query, to_query)
    keys = torch.einsum("bkm,hmd->bhkd", key, to_key)
    values = torch.einsum("bkm,hmd->bhkd", value, to_value)
    weights = torch.einsum("bhqd,bhkd->bhqk", queries, keys).div(to_key.size(2) ** 0.5).softmax(-1)
    slices = to_output.unflatten(0, (to_value.size(0), -1))
    return torch.einsum("bhqk,bhkd,hdm->bqm", weights, values, slices)


def multi_head_in_a_loop(query, key, value, to_query, to_key, to_value, to_output):
    contexts = []
    for w_q, w_k, w_v in zip(to_query, to_key, to_value, strict=True):
        scores = (query @ w_q) @ (key @ w_k).mT
        contexts.append((scores / math.sqrt(w_k.size(1))).softmax(-1) @ (value @ w_v))
    return torch.cat(contexts, -1) @ to_output


def multi_head_by_wide_products(query, key, value, to_query, to_key, to_value, to_output):
    """One product for all heads, as in the lesson: the matrices side by side, then split."""

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


def multi_head_with(divisor=None, dim=-1, merge=None, mix=True, cut=None):
    def answer(query, key, value, to_query, to_key, to_value, to_output):
        queries = torch.einsum("bqm,hmd->bhqd", query, to_query)
        keys = torch.einsum("bkm,hmd->bhkd", key, to_key)
        values = torch.einsum("bkm,hmd->bhkd", value, to_value)
        scale = divisor(query, key, to_value) if divisor else to_key.size(-1)
        context = (queries @ keys.mT / math.sqrt(scale)).softmax(dim) @ values
        batch, heads, length, d_v = context.shape
        merged = merge(context) if merge else context.transpose(1, 2).reshape(batch, length, heads * d_v)
        return merged @ to_output if mix else merged

    return answer


def mixed_positions(context):
    batch, heads, length, d_v = context.shape
    return context.contiguous().view(batch, length, heads * d_v)


def interleaved(context):
    return torch.stack(context.unbind(1), dim=-1).flatten(2)


def one_matrix_for_all_heads(query, key, value, to_query, to_key, to_value, to_output):
    def first(matrices):
        return matrices[:1].expand_as(matrices)

    return multi_head_by_einsum(query, key, value, first(to_query), first(to_key), first(to_value), to_output)


def values_from_the_key(query, key, value, *matrices):
    return multi_head_by_einsum(query, key, key, *matrices)


RIGHT = {
    "04.unpack": [unpack_by_permute, unpack_by_chunks, unpack_by_views, Unpack()],
    "04.sizes": [
        PREDICTED,
        predicted(weights=[2, 4, 5, 7], parameters=4 * 64 * 65, positions=(2, 3)),
        predicted(contexts=torch.Size((2, 4, 5, 16)), numbers=torch.tensor(560)),
    ],
    "04.contexts": [side_by_side, contexts_by_einsum, Contexts()],
    "04.contributions": [contributions_by_einsum, contributions_by_bmm, contributions_by_sums],
    "04.multi_head": [multi_head_by_einsum, multi_head_by_wide_products, MultiHead()],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "04.unpack": [
        (unpack_in_one_view, "other positions"),
        (unpack_without_transpose, "belong before them"),
        (unpack_every_nth_feature, "every num_heads-th feature"),
        (unpack_heads_first, "three parts of width d_model"),
        (unpack_as_one_tensor, None),
        (unpack_value_first, None),
        (lambda packed, num_heads: unpack_by_permute(packed, num_heads)[0], None),
        (lambda packed, num_heads: tuple(part.mT for part in unpack_by_permute(packed, num_heads)), None),
    ],
    "04.sizes": [
        (predicted(eight=33280), "half as wide"),
        (predicted(parameters=4 * 64 * 64, eight=4 * 64 * 64), "have biases"),
        (predicted(parameters=3 * 64 * 65, eight=3 * 64 * 65), "W_O is the fourth"),
        (predicted(numbers=280), "weights of its own"),
        (predicted(positions=[0, 1, 2, 3]), "head 0 first"),
        (predicted(eight=8320), None),
        (predicted(weights=(2, 4, 7, 5)), None),
        (predicted(contexts=(2, 5, 4, 16)), None),
        (predicted(d_k=64), None),
        (predicted(output=None), None),
    ],
    "04.contexts": [
        (contexts_with(lambda d_model, num_heads: math.sqrt(d_model)), "too small"),
        (contexts_with(lambda d_model, num_heads: 1), "not divided at all"),
        (contexts_with(lambda d_model, num_heads: math.sqrt(num_heads)), "number of heads"),
        (contexts_with(lambda d_model, num_heads: d_model // num_heads), "divided by d_k"),
        (contexts_with(root_d_k, merge=False), "merge was right"),
        (contexts_with(root_d_k, split=False), "split was right"),
        (contexts_with(root_d_k, dim=1), None),
        (contexts_with(root_d_k, dim=-2), None),
        (contexts_with(lambda d_model, num_heads: math.sqrt(d_model), merge=False), None),
    ],
    "04.contributions": [
        (contributions_by_chunks, "one by one"),
        (added_up, "sum over the heads"),
        (every_nth_row, "every num_heads-th row"),
        (as_in_linear, "as nn.Linear stores it"),
        (always_the_first_slice, "slice of head 0"),
        (merged_with_a_view, None),
        (queries_before_heads, None),
        (lambda context, to_output: context, None),
        (lambda context, to_output: contributions_by_einsum(context, to_output) / context.size(1), None),
    ],
    "04.multi_head": [
        (multi_head_in_a_loop, "one by one"),
        (multi_head_with(merge=mixed_positions), "positions are mixed"),
        (multi_head_with(merge=interleaved), "interleaved"),
        (multi_head_with(divisor=lambda query, key, to_value: query.size(-1)), "divided by √d_model"),
        (multi_head_with(divisor=lambda query, key, to_value: 1), "√d_k is missing"),
        (multi_head_with(dim=1), "over the heads"),
        (multi_head_with(mix=False), "W_O is missing"),
        (multi_head_with(divisor=lambda query, key, to_value: to_value.size(-1)), None),
        (multi_head_with(divisor=lambda query, key, to_value: key.size(1)), None),
        (multi_head_with(dim=-2), None),
        (one_matrix_for_all_heads, None),
        (values_from_the_key, None),
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
    return library_attention(*projected)[0].transpose(1, 2).flatten(2) @ to_output


# The library's own: its results must equal the reference's.
LIBRARY = {"04.contexts": library_contexts, "04.multi_head": library_multi_head}
