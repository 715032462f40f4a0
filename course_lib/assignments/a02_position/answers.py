"""Answers to assignment 02: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch

from course_lib.checks import Edit
from course_lib.position import ALiBi, Rotary, sinusoidal


def sinusoids_at_once(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


def sinusoids_by_logarithm(max_len, d_model):
    table = torch.zeros(max_len, d_model)
    divisor = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(torch.arange(max_len).unsqueeze(1) * divisor)
    table[:, 1::2] = torch.cos(torch.arange(max_len).unsqueeze(1) * divisor)
    return table


def sinusoids_by_phase(max_len, d_model):
    i = torch.arange(d_model, dtype=torch.float64)
    angle = torch.outer(torch.arange(max_len).double(), 10000 ** (-2 * (i // 2) / d_model))
    return torch.sin(angle + math.pi / 2 * (i % 2)).float()


def rotary_by_repeating(x, position, frequency):
    angle = (position[..., None] * frequency).repeat_interleave(2, dim=-1)[:, None]  # (batch, 1, length, d_k)
    partner = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)
    return x * angle.cos() + partner * angle.sin()


def rotary_by_matrices(x, position, frequency):
    angle = position[:, None, :, None] * frequency
    rows = [torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)]
    turn = torch.stack(rows, dim=-2)  # (batch, 1, length, d_k / 2, 2, 2)
    return (turn @ x.unflatten(-1, (-1, 2)).unsqueeze(-1)).squeeze(-1).flatten(-2)


# Pieces of the solutions that answers have in other words.
BIASED = "scores - slope[:, None, None] * distance"
TURNED = "[even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]"
SIDE_BY_SIDE = "torch.stack(turned, dim=-1).flatten(-2)"
IN_PLACE = "x[..., 0::2], x[..., 1::2] = turned\n    return x"

RIGHT = {
    "02.shuffled": [
        Edit("after, before[order]", "after[order.argsort()], before"),
        Edit("x[order]", "torch.eye(len(x)).to(x)[order] @ x", "equivariant, invariant", "[equivariant, invariant]"),
        Edit("allclose", "isclose", "atol=1e-6)", "atol=1e-6).all()"),
    ],
    "02.sinusoids": [
        sinusoids_at_once,
        sinusoids_by_logarithm,
        sinusoids_by_phase,
        Edit("math.cos(angle)", "math.sin(angle + math.pi / 2)"),
    ],
    "02.alibi": [
        Edit("2 ** (-8 * head / heads)", "torch.logspace(-8 / heads, -8, heads, base=2.0).to(scores)"),
        Edit(".clamp(min=0)", "", BIASED, f"torch.where(distance < 0, scores, {BIASED})"),
        Edit(
            *("(key[keys - queries :, None] - key).clamp(min=0)", "torch.ones(queries, keys).to(scores)"),
            *("* distance", "* distance.tril(keys - queries - 1).flip(1).cumsum(1).flip(1)"),
        ),
    ],
    "02.rotary": [
        Edit(
            *(TURNED, "torch.complex(even, odd) * torch.complex(angle.cos(), angle.sin())"),
            *(SIDE_BY_SIDE, "torch.view_as_real(turned).flatten(-2)"),
        ),
        Edit(f"return {SIDE_BY_SIDE}", f"x = x.clone()\n    {IN_PLACE}"),
        rotary_by_repeating,
        rotary_by_matrices,
    ],
    "02.facts": [
        Edit(),
        Edit(": 100,", ": 100.0,", ": 10,", ": math.sqrt(100),"),
        Edit(": 10,", ": torch.tensor(10.0),", ": 0,", ": -1e-14,"),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "02.shuffled": [
        (Edit("before[order]", "before[order.argsort()]"), "wrong way round"),
        Edit("equivariant, invariant", "True, False"),
        Edit("equivariant, invariant", "True, True"),
    ],
    "02.sinusoids": [
        lambda max_len, d_model: sinusoids_at_once(max_len, d_model).double(),
    ],
    "02.alibi": [
        (Edit(BIASED, "torch.stack([x - s * distance for x, s in zip(scores.unbind(1), slope)], 1)"), "one by one"),
        Edit(f"return {BIASED}", f"scores[:] = {BIASED}\n    return scores"),
    ],
    "02.rotary": [
        Edit(f"return {SIDE_BY_SIDE}", IN_PLACE),
        Edit(TURNED, "[angle.sin(), angle.cos()]", "return ", "return x + "),
    ],
    "02.facts": [
        Edit("True", "1"),
        Edit("101", "None"),
        Edit('PE(0)": 100', 'PE(0)": 200', ": 10,", ": 200,"),
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
LIBRARY = {"02.sinusoids": sinusoidal, "02.alibi": library_alibi, "02.rotary": library_rotary}
