"""Answers to assignment 13: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch

from course_lib.checks import Edit
from course_lib.position import ALiBi, RelativeBias, Rotary

RAMP = "((turns - slow) / (fast - slow)).clamp(0, 1)"


def vectors_by_gather(query, key, table):
    """The products with the whole table first, so that nothing is (queries, keys, d_k)."""
    queries, keys, middle = query.shape[-2], key.shape[-2], table.shape[0] // 2
    of_offset = query @ table.T  # (batch, heads, queries, offsets)
    row = torch.arange(keys - queries, keys, device=query.device)[:, None]
    column = (torch.arange(keys, device=query.device) - row + middle).clamp(0, 2 * middle)
    picked = of_offset.gather(-1, column.expand(*query.shape[:2], queries, keys))
    return (query @ key.transpose(-1, -2) + picked) * query.shape[-1] ** -0.5


def vectors_by_adding(query, key, table):
    queries, keys, farthest = query.size(2), key.size(2), len(table) // 2
    place = torch.arange(keys, device=query.device)
    offset = (place[None] - place[keys - queries :][:, None]).clip(-farthest, farthest)
    summed = key[:, :, None] + table[offset + farthest]  # (batch, heads, queries, keys, d_k)
    return torch.einsum("bhqd,bhqkd->bhqk", query, summed) / query.size(3) ** 0.5


def halves_as_in_scripts(weight, bias, num_heads):
    """The way of conversion scripts."""
    rows = weight.view(num_heads, -1, 2, weight.size(1)).transpose(1, 2).reshape(weight.shape)
    return rows, bias.view(num_heads, -1, 2).transpose(1, 2).reshape(-1)


def halves_head_by_head(weight, bias, num_heads):
    def sort(rows):
        return torch.cat([torch.cat([head[::2], head[1::2]]) for head in rows.chunk(num_heads)])

    return sort(weight), sort(bias)


def bounded_by_complex_numbers(keys, sinks, room, frequency):
    over = keys.shape[-2] - room
    if over <= 0:
        return keys.clone()
    pairs = torch.view_as_complex(keys.unflatten(-1, (-1, 2)))
    turn = torch.polar(torch.ones_like(frequency), -over * frequency)
    moved = torch.cat([pairs[:, :, :sinks], pairs[:, :, sinks + over :] * turn], dim=2)
    return torch.view_as_real(moved).flatten(-2)


def bounded_by_steps(keys, sinks, room, frequency):
    length, (even, odd) = keys.size(2), (keys[..., ::2], keys[..., 1::2])
    place = torch.arange(min(room, length), device=keys.device)
    steps = (place >= sinks) * max(0, length - room)  # by how much each one moves back
    angle = steps[:, None] * frequency
    even, odd = even[:, :, place + steps], odd[:, :, place + steps]
    moved = torch.empty(*keys.shape[:2], len(place), keys.size(3), dtype=keys.dtype, device=keys.device)
    moved[..., ::2] = even * angle.cos() + odd * angle.sin()
    moved[..., 1::2] = odd * angle.cos() - even * angle.sin()
    return moved


def yarn_pair_by_pair(frequency, trained, factor, slow, fast):
    found = []
    for one in frequency:
        wavelength = 2 * math.pi / one
        share = ((trained / wavelength - slow) / (fast - slow)).clamp(min=0, max=1)
        found.append((one / factor).lerp(one, share))
    return torch.stack(found)


RIGHT = {
    "13.vectors": [vectors_by_gather, vectors_by_adding, Edit('"bhqd,qkd->bhqk"', '"...qd,qkd->...qk"')],
    "13.convert": [Edit(), halves_as_in_scripts, halves_head_by_head],
    "13.endless": [bounded_by_complex_numbers, bounded_by_steps,
                   Edit("turned(newest, -dropped * frequency)", "turned(newest, dropped * -frequency[None, None])")],
    "13.yarn": [
        yarn_pair_by_pair,
        Edit("share * frequency + (1 - share) * frequency / factor", "frequency * (share + (1 - share) / factor)"),
        Edit(RAMP, "torch.where(turns >= fast, 1, torch.where(turns <= slow, 0, (turns - slow) / (fast - slow)))"),
    ],
    "13.predict": [Edit(), Edit('7": -1', '7": -1.0', "0.25", "1 / 4"), Edit(": 16", ": torch.tensor(16.0)")],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "13.vectors": [
        Edit("offset.clamp(-farthest, farthest) + farthest", "(offset + farthest) % len(table)"),  # wraps around
        (Edit("vectors = table[offset.clamp(-farthest, farthest) + farthest]",
              "vectors = torch.stack([table[one.clamp(-farthest, farthest) + farthest] for one in offset])"),
         "one by one"),
    ],
    "13.convert": [
        Edit("bias[order]", "bias[order] * 0"),
        Edit("0::2", ":len(weight) // num_heads // 2", "1::2", "len(weight) // num_heads // 2:"),  # nothing moves
    ],
    "13.endless": [
        Edit("-dropped * frequency", "-dropped * frequency.flip(0)"),
        Edit("[first, turned(newest, -dropped * frequency)]", "[turned(newest, -dropped * frequency), first]"),
    ],
    "13.yarn": [
        Edit(" * frequency / factor", " * frequency * 0"),
        Edit("(1 - share) * frequency / factor", "share * frequency / factor"),
    ],
    "13.predict": [Edit('5": 1', '5": 0'), Edit("0.25", "0.5"), {"score, 9 and 7": -1}],
}


def quarter_turns(words, *, factor=1):
    """Scores (query, key) of (1, 0) with itself at all positions, by the library's rotary with other angles."""
    rotary, angle = Rotary(words, 2), torch.arange(words).double() * math.pi / 2 / factor
    rotary.table = torch.stack([angle.sin(), angle.cos()], dim=-1)
    same = rotary.rotate(torch.eye(2, dtype=torch.float64)[:1].expand(words, 2))
    return same @ same.T


def measured():
    """The prediction's numbers, of the library's encodings."""
    scores, halved = quarter_turns(16), quarter_turns(16, factor=2)
    near, far = (-math.log(2) * torch.tensor([2.0, 6.0])).softmax(dim=0)
    bias = RelativeBias(12, farthest=20)
    bias.bias(16, 16).sum().backward()
    return {
        "score, 9 and 7": round(scores[9, 7].item(), 9),
        "score, 9 and 5": round(scores[9, 5].item(), 9),
        "score, interpolated": round(halved[9, 7].item(), 9),
        "slope of the second head": ALiBi(8).slopes[1].item(),
        "near weight / far weight": round((near / far).item(), 4),
        "learned numbers": bias.table.numel(),
        "numbers that never change": int((bias.table.grad[0] == 0).sum()),
    }


def library_vectors(query, key, table):
    """A bias of the library with a head for each offset says which offset is where."""
    bias = RelativeBias(len(table), len(table) // 2).to(query)
    with torch.no_grad():
        bias.table.copy_(torch.eye(len(table)))
        where = bias.bias(query.size(2), key.size(2))  # (offsets, queries, keys)
    scores = query @ key.mT + torch.einsum("bhqd,od,oqk->bhqk", query, table, where)
    return scores / query.size(3) ** 0.5


def library_halves(weight, bias, num_heads):
    """Rows by what they do: in both layouts the scores are the same at every offset."""
    x = torch.randn(5, weight.size(1), generator=torch.Generator().manual_seed(0)).to(weight)
    rows, biases = halves_as_in_scripts(weight, bias, num_heads)
    d_k = len(weight) // num_heads
    frequency = 1e4 ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    angle = (torch.arange(5)[:, None] * frequency).to(weight)
    before = Rotary(5, d_k).to(weight).rotate((x @ weight.T + bias).unflatten(1, (num_heads, -1)).transpose(0, 1))
    first, second = (x @ rows.T + biases).unflatten(1, (num_heads, 2, -1)).permute(2, 1, 0, 3)
    after = torch.cat([first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], -1)
    torch.testing.assert_close(after @ after.mT, before @ before.mT, rtol=1e-4, atol=1e-4)
    return rows, biases


def library_bounded(keys, sinks, room, frequency):
    """Turned back and turned again by the library, one position after the other."""
    d_k, length = keys.size(3), keys.size(2)
    rotary = Rotary(length, d_k).to(keys)
    angle = torch.arange(length)[:, None] * frequency
    rotary.table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    swapped = keys.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)  # mirrored, a turn goes back
    unturned = rotary.rotate(swapped).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    if length > room:
        unturned = torch.cat([unturned[:, :, :sinks], unturned[:, :, sinks - room :]], dim=2)
    return rotary.rotate(unturned)


# What the solutions must agree with.
LIBRARY = {
    "13.vectors": library_vectors,
    "13.convert": library_halves,
    "13.endless": library_bounded,
    "13.yarn": yarn_pair_by_pair,
    "13.predict": measured(),
}
