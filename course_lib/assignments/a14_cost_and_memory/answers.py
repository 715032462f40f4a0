"""Answers to assignment 14: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch

from course_lib.attention import attention
from course_lib.checks import Edit
from course_lib.config import ModelConfig, model_preset
from course_lib.cost import activation_bytes, cache_bytes

SOFTMAX = "logsums.softmax(dim=0)"
SCALE = "torch.where(largest == 0, 1, largest / 127)"


def longest_by_trying(free, num_layers, kv_heads, d_k, sentences, src_len, beam_size, bytes_per_number):
    """From 1 on, as long as it fits."""

    def fits(length):
        tokens = sentences * (src_len + beam_size * length)
        return tokens * num_layers * kv_heads * d_k * 2 * bytes_per_number <= free

    length = 0
    while fits(length + 1):
        length += 1
    return length


def longest_in_tokens(free, num_layers, kv_heads, d_k, sentences, src_len, beam_size, bytes_per_number):
    room = free // (num_layers * kv_heads * (d_k + d_k) * bytes_per_number)
    return max((room // sentences - src_len) // beam_size, 0)


def merge_by_largest(contexts, logsums):
    largest = logsums.max(dim=0).values
    sums = torch.exp(logsums - largest)
    total = sums.sum(dim=0)
    seen = torch.where(sums[..., None] > 0, contexts, 0)
    return torch.einsum("pbhq,pbhqd->bhqd", sums / total, seen), largest + total.log()


def merge_by_logsum(contexts, logsums):
    logsum = torch.logsumexp(logsums, 0)
    contexts = contexts.nan_to_num(0.0)
    return ((logsums - logsum).exp().unsqueeze(-1) * contexts).sum(0), logsum


def way_back_by_einsum(query, key, value, context, logsum, grad):
    root = query.shape[-1] ** 0.5
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / root
    weights = torch.exp(scores - logsum.unsqueeze(-1))
    centered = (grad[:, :, :, None] * (value[:, :, None] - context[:, :, :, None])).sum(dim=-1)
    grads = weights * centered / root
    by_query = torch.einsum("bhqk,bhkd->bhqd", grads, key)
    return by_query, torch.einsum("bhqk,bhqd->bhkd", grads, query), torch.einsum("bhqk,bhqd->bhkd", weights, grad)


def way_back_key_by_key(query, key, value, context, logsum, grad):
    scale, of_query, of_keys, of_values = query.size(-1) ** -0.5, 0, [], []
    for one, content in zip(key.unbind(2), value.unbind(2), strict=True):
        weight = torch.exp(scale * (query * one[:, :, None]).sum(-1) - logsum)[..., None]
        slope = scale * weight * (grad * (content[:, :, None] - context)).sum(-1, keepdim=True)
        of_query = of_query + slope * one[:, :, None]
        of_keys.append((slope * query).sum(2))
        of_values.append((weight * grad).sum(2))
    return of_query, torch.stack(of_keys, 2), torch.stack(of_values, 2)


def quantize_rows(weight, size):
    """As if each group were a row of its own."""
    rows = weight.reshape(-1, size)
    scale = rows.abs().max(dim=1, keepdim=True)[0] / 127
    scale = scale + (scale == 0).to(scale.dtype)
    return torch.round(rows / scale).to(torch.int8).view(weight.shape), scale.view(len(weight), -1)


RIGHT = {
    "14.longest": [longest_by_trying, longest_in_tokens, Edit("max(0, left // (", "max(0, int(left / (", "))", ")))")],
    "14.merge": [merge_by_largest, merge_by_logsum, Edit("weights == 0", "(logsums == -math.inf)[..., None]")],
    "14.way_back": [
        way_back_by_einsum,
        way_back_key_by_key,
        Edit("(grad * context).sum(dim=-1, keepdim=True)", 'torch.einsum("...d,...d", grad, context)[..., None]'),
    ],
    "14.groups": [
        quantize_rows,
        Edit(".clamp(-127, 127)", ""),
        Edit(SCALE, "(largest / 127).masked_fill(largest == 0, 1)", ".round()", ".add(0.5).floor()"),
    ],
    "14.predict": [Edit(), Edit("8.0625", "8 + 1 / 16", ": 25", ": 16 + 9"), Edit(": 1.5", ": torch.tensor(1.5)")],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "14.longest": [
        Edit("src_len * token", "src_len"),
        Edit("sentences * beam_size * token", "sentences + beam_size * token"),
    ],
    "14.merge": [
        (Edit(SOFTMAX, f"torch.stack([one for one in {SOFTMAX}])"), "one by one"),
        Edit("return (weights * seen).sum(dim=0), logsums", "return seen.sum(dim=0), logsums"),
    ],
    "14.way_back": [
        Edit("scale * (grad_scores @ key), scale * (grad_scores.mT @ query)",
             "scale * (grad_scores.mT @ query), scale * (grad_scores @ key)"),
        Edit("scale * (grad_scores", "scale * scale * (grad_scores"),
    ],
    "14.groups": [
        Edit(SCALE, "torch.where(largest == 0, 1, largest / 7)", "127", "7"),  # four bits
        Edit(".round()", ".ceil()"),
    ],
    "14.predict": [Edit(": 25", ": 24"), Edit(": 6,", ": 6000,"), {"billions of FLOPs": 6}],
}


def library_longest(free, num_layers, kv_heads, d_k, sentences, src_len, beam_size, bytes_per_number):
    """The longest output whose bytes, as the library counts them, are not more than what is free."""
    sizes = dict(d_model=kv_heads * d_k, num_heads=kv_heads, num_layers=num_layers, position="none")
    config = ModelConfig(4, **sizes)
    source = cache_bytes(config, sentences, src_len, 0, bytes_per_number=bytes_per_number)

    def taken(length):
        return source + cache_bytes(config, sentences * beam_size, 0, length, bytes_per_number=bytes_per_number)

    return max(length for length in range(100) if length == 0 or taken(length) <= free)


def library_merge(contexts, logsums):
    """Attention over the parts: their scores are the logsums, their values the contexts."""
    key = logsums.movedim(0, -1)[..., None]  # (batch, heads, queries, parts, 1)
    value = contexts.movedim(0, -2).nan_to_num(0.0)
    seen = (key > -math.inf).mT
    found, _ = attention(torch.ones_like(key[..., :1, :]), key.masked_fill(key == -math.inf, 0.0), value, seen)
    return found.squeeze(-2), logsums.logsumexp(dim=0)


def library_way_back(query, key, value, context, logsum, grad):
    """By autograd: the block beside a rest that is held fixed, which has what is not in the block."""
    dtype = query.dtype
    query, key, value, context, logsum, grad = (one.double() for one in (query, key, value, context, logsum, grad))
    inputs = [one.clone().requires_grad_() for one in (query, key, value)]
    scores = inputs[0] @ inputs[1].mT / math.sqrt(query.size(-1))
    total = logsum.exp()[..., None]
    sums = scores.exp().sum(dim=-1, keepdim=True)
    rest = (total * context - scores.exp() @ inputs[2]).detach()
    (((scores.exp() @ inputs[2] + rest) / (sums + (total - sums).detach())) * grad).sum().backward()
    return tuple(one.grad.to(dtype) for one in inputs)


def library_groups(weight, size):
    """By the nearest of all 255 numbers."""
    groups = weight.double().unflatten(1, (-1, size))
    scale = torch.linalg.vector_norm(groups, ord=math.inf, dim=2) / 127
    scale[scale == 0] = 1
    every = torch.arange(-127, 128)
    numbers = every[(groups[..., None] - every * scale[..., None, None]).abs().argmin(dim=-1)]
    return numbers.to(torch.int8).flatten(1), scale.to(weight.dtype)


def measured():
    """The prediction's numbers, by the library's formulas and by PyTorch's own numbers."""
    teacher = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    heads = [model_preset("base", 100, num_heads=number, d_model=16 * number) for number in (32, 8)]
    whole, grouped = (cache_bytes(config, 1, 5, 7) for config in heads)
    after = torch.nextafter(torch.tensor(8.0).bfloat16(), torch.tensor(9.0).bfloat16())
    base = model_preset("base", 100)
    long, longer, longest = (base.flop_counts(length, 1)["encoder self-attention"] for length in (32, 64, 128))
    fused = [activation_bytes(base, 1, length, length, fused=True)["vectors"] for length in (32, 64)]
    return {
        "billions of FLOPs": 3 * 2 * 10**6 * 10**3 / 10**9,
        "memory, twice as long": fused[1] / fused[0],
        "time, twice as long": (longest - 2 * longer) / (longer - 2 * long),  # without what is linear
        "cache, groups of 4": whole / grouped,
        "MB with checkpointing": 16 * 1 + (10 - 1),
        "bfloat16 behind 8": after.item(),
        "bits of the student": torch.distributions.Categorical(teacher).entropy().item() / math.log(2),
    }


# What the solutions must agree with.
LIBRARY = {
    "14.longest": library_longest,
    "14.merge": library_merge,
    "14.way_back": library_way_back,
    "14.groups": library_groups,
    "14.predict": measured(),
}
