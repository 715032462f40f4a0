"""Answers to assignment 02: differently written right ones, and plausible wrong ones with the hint that they get."""

import math

import torch

from course_lib.position import ALiBi, Rotary, sinusoidal


def near(one, other):
    return (one - other).abs().max().item() < 1e-6


def shuffled_by_undoing(layer, x, order):
    before, after = layer(x), layer(x[order])
    return near(after[order.argsort()], before), near(after, before)


def shuffled_by_matrix(layer, x, order):
    permutation = torch.eye(len(order), dtype=x.dtype)[order]
    after = layer(permutation @ x)
    return [torch.allclose(after, permutation @ layer(x)), torch.allclose(after, layer(x))]


def shuffled_in_tensors(layer, x, order):
    before, after = layer(x), layer(x.index_select(0, order))
    return torch.isclose(after, before[order]).all(), torch.isclose(after, before).all()


def shuffled_with(same, undo=lambda order: order):
    def answer(layer, x, order):
        before, after = layer(x), layer(x[order])
        return same(after, before[undo(order)]), same(after, before)

    return answer


def shuffled_twice(layer, x, order):
    before, after = layer(x), layer(x[order])
    return near(after[order], before), near(after, before)


def shuffled_means(layer, x, order):
    before, after = layer(x), layer(x[order])
    return near(after, before[order]), near(after.mean(0), before.mean(0))


def shuffled_either_or(layer, x, order):
    equivariant, _ = shuffled_by_undoing(layer, x, order)
    return equivariant, not equivariant


def shuffled_columns(layer, x, order):
    before, after = layer(x), layer(x[order])
    return near(after.sort(0).values, before.sort(0).values), near(after, before)


def sinusoids_at_once(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


def sinusoids_by_logarithm(max_len, d_model):
    table = torch.zeros(max_len, d_model)
    divisor = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(torch.arange(max_len).unsqueeze(1) * divisor)
    table[:, 1::2] = torch.cos(torch.arange(max_len).unsqueeze(1) * divisor)
    return table


def sinusoids_by_dimension(max_len, d_model):
    turn = [math.sin, math.cos]
    return torch.tensor(
        [
            [turn[i % 2](position / 10000 ** (2 * (i // 2) / d_model)) for i in range(d_model)]
            for position in range(max_len)
        ]
    )


def sinusoids_by_phase(max_len, d_model):
    i = torch.arange(d_model, dtype=torch.float64)
    angle = torch.outer(torch.arange(max_len).double(), 10000 ** (-2 * (i // 2) / d_model))
    return torch.sin(angle + math.pi / 2 * (i % 2)).float()


def sinusoids_with(exponent, first=0, base=10000.0, waves=(torch.sin, torch.cos)):
    def answer(max_len, d_model):
        i = torch.arange(d_model)
        angle = torch.arange(first, first + max_len)[:, None] / base ** (exponent(i) / d_model)
        return torch.where(i % 2 == 0, waves[0](angle), waves[1](angle))

    return answer


def even(i):
    return i - i % 2


def sines_first(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def alibi_by_offsets(scores):
    heads, queries, keys = scores.shape[1:]
    slopes = torch.logspace(-8 / heads, -8, heads, base=2.0).to(scores)
    position = torch.arange(keys - queries, keys, device=scores.device)
    offset = torch.arange(keys, device=scores.device)[None, :] - position[:, None]
    return scores + torch.einsum("h,qk->hqk", slopes, offset.clamp(max=0).to(scores))


def alibi_by_triangle(scores):
    heads, queries, keys = scores.shape[1:]
    steps = torch.ones(queries, keys, device=scores.device).tril(keys - queries - 1).flip(1).cumsum(1).flip(1)
    slopes = 0.5 ** (8 / heads * torch.arange(1, heads + 1, device=scores.device).view(-1, 1, 1))
    return scores.sub((slopes * steps).to(scores.dtype))


def alibi_by_where(scores):
    heads, queries, keys = scores.shape[1:]
    exponents = torch.linspace(-8 / heads, -8, heads, dtype=scores.dtype, device=scores.device)
    query = torch.arange(queries, device=scores.device).add(keys - queries).view(-1, 1)
    key = torch.arange(keys, device=scores.device).view(1, -1)
    loss = exponents.exp2().view(1, heads, 1, 1) * (query - key)
    return torch.where(key > query, scores, scores - loss)


def alibi_head_by_head(scores):
    biased, (heads, queries, keys) = scores.clone(), scores.shape[1:]
    key = torch.arange(keys, device=scores.device)
    for head in range(heads):
        for query in range(queries):
            distance = (keys - queries + query - key).clamp(min=0)
            biased[:, head, query] -= 2 ** (-8 * (head + 1) / heads) * distance
    return biased


def alibi_with(distance, begin=1, shift=True, ratio=8):
    def answer(scores):
        heads, queries, keys = scores.shape[1:]
        query = torch.arange(queries, device=scores.device) + (keys - queries) * shift
        bias = distance(query[:, None] - torch.arange(keys, device=scores.device)[None])
        slopes = [2 ** (-ratio * (head + begin) / heads) for head in range(heads)]
        return torch.stack([scores[:, head] - slope * bias for head, slope in enumerate(slopes)], dim=1)

    return answer


def before(distance):
    return distance.relu()


def alibi_in_place(scores):
    scores -= alibi_with(before)(torch.zeros_like(scores))
    return scores


def alibi_with_one_slope(scores):
    bias = alibi_with(before)(torch.zeros_like(scores))
    return scores + bias[:, :1]


def rotary_by_complex_numbers(x, position, frequency):
    angle = (position.unsqueeze(-1) * frequency).unsqueeze(1)  # (batch, 1, length, d_k / 2)
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.complex(even, odd) * torch.complex(angle.cos(), angle.sin())
    return torch.view_as_real(turned).flatten(-2)


def rotary_into_zeros(x, position, frequency):
    sine = torch.einsum("bl,f->blf", position.to(x.dtype), frequency).sin()[:, None]
    cosine = torch.einsum("bl,f->blf", position.to(x.dtype), frequency).cos()[:, None]
    turned = torch.zeros_like(x)
    turned[..., ::2] = x[..., ::2] * cosine - x[..., 1::2] * sine
    turned[..., 1::2] = x[..., ::2] * sine + x[..., 1::2] * cosine
    return turned


def rotary_by_repeating(x, position, frequency):
    angle = (position[..., None] * frequency).repeat_interleave(2, dim=-1)[:, None]  # (batch, 1, length, d_k)
    partner = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)
    return x * angle.cos() + partner * angle.sin()


def rotary_by_matrices(x, position, frequency):
    angle = position[:, None, :, None] * frequency
    rows = [torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)]
    turn = torch.stack(rows, dim=-2)  # (batch, 1, length, d_k / 2, 2, 2)
    return (turn @ x.unflatten(-1, (-1, 2)).unsqueeze(-1)).squeeze(-1).flatten(-2)


def rotary_one_after_the_other(x, position, frequency):
    angle = (position[..., None] * frequency).unsqueeze(1)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.cat([even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], dim=-1)


def rotary_of_halves(x, position, frequency):
    angle = (position[..., None] * frequency).repeat(1, 1, 2).unsqueeze(1)
    half = x.size(-1) // 2
    return x * angle.cos() + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * angle.sin()


def rotary_from_zero(x, position, frequency):
    position = torch.arange(x.size(2), device=x.device).expand(x.size(0), -1)
    return rotary_by_complex_numbers(x, position, frequency)


def rotary_from_the_first_token(x, position, frequency):
    return rotary_by_complex_numbers(x, position[:, :1] + torch.arange(x.size(2), device=x.device), frequency)


def rotary_of_the_first_sentence(x, position, frequency):
    angle = position[0, :, None] * frequency  # (length, d_k / 2)
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()
    return torch.stack(turned, dim=4).reshape(x.shape)


def rotary_in_place(x, position, frequency):
    angle = position[:, None, :, None] * frequency
    x[..., ::2], x[..., 1::2] = (
        x[..., ::2] * angle.cos() - x[..., 1::2] * angle.sin(),
        x[..., ::2] * angle.sin() + x[..., 1::2] * angle.cos(),
    )
    return x


def rotary_overwriting(x, position, frequency):
    angle, turned = position[:, None, :, None] * frequency, x.clone()
    turned[..., ::2] = turned[..., ::2] * angle.cos() - turned[..., 1::2] * angle.sin()
    turned[..., 1::2] = turned[..., ::2] * angle.sin() + turned[..., 1::2] * angle.cos()
    return turned


def rotary_of_heads(x, position, frequency):
    angle = position[None, :, :, None] * frequency  # meets the heads, where it should meet the batch
    even, odd = x[..., ::2], x[..., 1::2]
    turned = even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


def rotary_added(x, position, frequency):
    angle = position[:, None, :, None] * frequency
    return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


PREDICTED = {
    "sum of PE(0)": 100,
    "length of PE(37)": 10,
    "wavelength of pair 50 / 2π": 100,
    "PE(3)·PE(10) - PE(103)·PE(110)": 0,
    "mean stays, plain attention": True,
    "mean stays, causal mask": False,
    "rotary: the key at": 101,
}


def predicted(**changed):
    names = dict(zip(("sum", "length", "wave", "products", "plain", "causal", "key"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


RIGHT = {
    "02.shuffled": [shuffled_by_undoing, shuffled_by_matrix, shuffled_in_tensors],
    "02.sinusoids": [sinusoids_at_once, sinusoids_by_logarithm, sinusoids_by_dimension, sinusoids_by_phase],
    "02.alibi": [alibi_by_offsets, alibi_by_triangle, alibi_by_where],
    "02.rotary": [rotary_by_complex_numbers, rotary_into_zeros, rotary_by_repeating, rotary_by_matrices],
    "02.facts": [
        PREDICTED,
        predicted(sum=100.0, length=math.sqrt(100), wave=10000**0.5),
        predicted(length=torch.tensor(10.0), products=-1e-14),
    ],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "02.shuffled": [
        (shuffled_with(lambda one, other: bool((one == other).all())), "every digit"),
        (shuffled_twice, "wrong way round"),
        (lambda *inputs: tuple(reversed(shuffled_by_undoing(*inputs))), "other way round"),
        (shuffled_means, "compares the means"),
        (shuffled_with(near, torch.argsort), "wrong way round"),
        (shuffled_either_or, None),
        (shuffled_columns, None),
        (lambda layer, x, order: near(layer(x[order]), layer(x)[order]), None),
        (lambda layer, x, order: (True, False), None),
        (shuffled_with(lambda one, other: one.shape == other.shape), None),
        (shuffled_with(lambda one, other: torch.allclose(one, other, atol=1e-2)), None),
        (shuffled_with(lambda one, other: bool((one - other).max() < 1e-6)), None),
        (shuffled_with(lambda one, other: bool((other - one).max() < 1e-6)), None),
    ],
    "02.sinusoids": [
        (sinusoids_with(lambda i: 2 * i), "Count the pairs"),
        (sinusoids_with(lambda i: 2 * even(i)), "even already"),
        (sinusoids_with(lambda i: i), "The sines are right"),
        (sinusoids_with(lambda i: i // 2), "half of the paper's"),
        (sines_first, "all sines come first"),
        (sinusoids_with(even, first=1), None),
        (sinusoids_with(even, base=1000.0), None),
        (sinusoids_with(even, waves=(torch.cos, torch.sin)), None),
        (lambda max_len, d_model: sinusoids_at_once(max_len, d_model).double(), None),
        (lambda max_len, d_model: sinusoids_at_once(max_len, d_model)[:, None], None),
    ],
    "02.alibi": [
        (alibi_head_by_head, "one by one"),
        (alibi_with(lambda distance: -before(distance)), "far keys gain"),
        (alibi_with(lambda distance: distance), "a key after the query gains"),
        (alibi_with(lambda distance: distance.abs()), "loses as one before it"),
        (alibi_with(before, begin=0), "slopes begin with 1"),
        (alibi_with(before, shift=False), "at position 0"),
        (alibi_with(before, ratio=4), None),
        (alibi_with(lambda distance: before(distance) ** 2), None),
        (alibi_in_place, None),
        (alibi_with_one_slope, None),
        (lambda scores: alibi_with(before)(torch.zeros_like(scores)), None),
        (lambda scores: alibi_with(before)(scores.flip(1)).flip(1), None),
    ],
    "02.rotary": [
        (rotary_one_after_the_other, "in the wrong places"),
        (rotary_of_halves, "neighbors are pairs"),
        (lambda x, position, frequency: rotary_by_complex_numbers(x, -position, frequency), "other way"),
        (rotary_from_zero, "begins at position 0"),
        (rotary_of_the_first_sentence, "each has its own"),
        (rotary_from_the_first_token, "Each brings its own"),
        (rotary_in_place, None),
        (rotary_overwriting, None),
        (rotary_of_heads, None),
        (rotary_added, None),
        (lambda x, position, frequency: rotary_by_repeating(x, position, frequency.flip(0)), None),
    ],
    "02.facts": [
        (predicted(sum=0), "Position 0 does change something"),
        (predicted(length=200**0.5), "How many pairs"),
        (predicted(wave=10), "number of the pair"),
        (predicted(plain=False), "What does a mean care about"),
        (predicted(causal=True), "who sees whom"),
        (predicted(key=109), "before and after differ"),
        (predicted(products=100), None),
        (predicted(plain=1), None),
        (predicted(key=None), None),
        (predicted(sum=200, length=200), None),
    ],
}


def library_alibi(scores):
    """The library's bias has slopes for keys after the query as well; those are left out."""
    heads, queries, keys = scores.shape[1:]
    bias = ALiBi(heads).bias(queries, keys).tril(keys - queries)
    return scores + bias.to(scores)


def library_rotary(x, position, frequency):
    """Each token by itself, with a table in the dtype of x."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(x.dtype)
    try:
        rotary = Rotary(max_len=100, d_k=x.size(-1))
        tokens = [
            torch.cat([rotary.rotate(row[:, t, None], start=int(at[t])) for t in range(len(at))], dim=1)
            for row, at in zip(x, position, strict=True)
        ]
        return torch.stack(tokens)
    finally:
        torch.set_default_dtype(usual)


# The course's own code: on tensors with numbers, so not on the device "meta".
LIBRARY = {
    "02.sinusoids": sinusoidal,
    "02.alibi": library_alibi,
    "02.rotary": library_rotary,
}
