"""Answers to assignment 15: right ones, written differently, and plausible wrong ones beside the known mistakes."""

from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.alternatives import DiagonalStateSpace
from course_lib.checks import Edit

SEEN = "{age + place * gap for age in seen for place in range(width)}"
PADDED = "torch.cat([x.new_zeros(x.size(0), reach, x.size(2)), x], dim=1)"
PRODUCT = 'torch.einsum("blik,kio->blo", windows, weight)'
STATES = 'torch.einsum("dhts,bsd->btdh", left, x)'


def step_by_split(token, state, w_input, b_input, w_state, b_state):
    width = state.shape[1]
    gates = torch.addmm(b_input, token, w_input.t())[:, : 2 * width]
    gates = (gates + torch.addmm(b_state, state, w_state.t())[:, : 2 * width]).sigmoid()
    of_state = F.linear(state, w_state[2 * width :], b_state[2 * width :])
    new = (F.linear(token, w_input[2 * width :], b_input[2 * width :]) + gates[:, :width] * of_state).tanh()
    return torch.lerp(new, state, gates[:, width:])


def ages_by_product(layers):
    ways = product(*(range(0, width * gap, gap) for width, gap in layers))
    return sorted(set(map(sum, ways)))


def ages_by_bits(layers):
    bits = 1
    for width, gap in layers:
        bits = sum({1 << (age + place * gap) for age in range(bits.bit_length()) if bits >> age & 1
                    for place in range(width)})
    return [age for age in range(bits.bit_length()) if bits >> age & 1]


def ages_from_the_top(layers):
    if not layers:
        return [0]
    (width, gap), *below = layers
    return sorted({age + back for age in ages_from_the_top(below) for back in range(0, width * gap, gap)})


def dilated_by_positions(x, weight, gap):
    width, length = len(weight), x.shape[1]
    t, place = torch.arange(length, device=x.device), torch.arange(width, device=x.device)
    at = t[:, None] - (width - 1 - place) * gap  # (length, width)
    windows = x[:, at.clamp(min=0)] * (at >= 0)[..., None]  # (batch, length, width, d_in)
    return windows.flatten(2) @ weight.flatten(0, 1)


def dilated_by_matrix(x, weight, gap):
    t, width = torch.arange(x.size(1), device=x.device), len(weight)
    ages = gap * torch.arange(width - 1, -1, -1, device=x.device)
    reads = (t[:, None] - t == ages[:, None, None]).to(x.dtype)  # (width, length, length)
    return torch.einsum("kts,bsi,kio->bto", reads, x, weight)


def dilated_in_a_loop(x, weight, gap):
    total = 0
    for place, matrix in enumerate(weight):
        age = min((len(weight) - 1 - place) * gap, x.size(1))
        total = total + F.pad(x[:, : x.size(1) - age], (0, 0, age, 0)) @ matrix
    return total


def chunk_with_the_state_in_front(x, state, a, weights):
    """The old state stands in front as if it were a token."""
    x = torch.cat([state[:, None], x[..., None].expand(*x.shape, a.size(1))], dim=1)
    t = torch.arange(x.size(1), device=x.device)
    age = (t[:, None] - t)[:, :, None, None]
    states = ((a ** age.abs()).masked_fill(age < 0, 0) * x[:, None]).sum(dim=2)[:, 1:]
    return torch.einsum("dh,btdh->btd", weights, states), states[:, -1]


def chunk_by_fourier(x, state, a, weights):
    length = x.size(1)
    t = torch.arange(length, device=x.device)[:, None, None]
    spectrum = torch.fft.rfft(a**t, 2 * length, dim=0) * torch.fft.rfft(x, 2 * length, dim=1)[..., None]
    states = torch.fft.irfft(spectrum, 2 * length, dim=1)[:, :length] + a ** (t + 1) * state[:, None]
    return (states * weights).sum(-1), states[:, -1]


RIGHT = {
    "15.reach": [Edit(), Edit("0.3", "3 / 10", ": 13", ": 13.0"), Edit("1.0", "1", "5.0", "torch.tensor(5)")],
    "15.gru": [
        step_by_split,
        Edit("update * state + (1 - update) * candidate", "candidate + update * (state - candidate)"),
        Edit("torch.sigmoid(r + r_state), torch.sigmoid(z + z_state)",
             "torch.sigmoid(torch.stack([r + r_state, z + z_state]))"),
    ],
    "15.ages": [ages_by_product, ages_by_bits, ages_from_the_top],
    "15.dilated": [
        *(dilated_by_positions, dilated_by_matrix),
        Edit(PADDED, "F.pad(x, (0, 0, reach, 0))", PRODUCT, "torch.tensordot(windows, weight, ([3, 2], [0, 1]))",
             "    reach", "    F = torch.nn.functional\n    reach"),
    ],
    "15.chunk": [
        *(chunk_with_the_state_in_front, chunk_by_fourier),
        Edit("a[..., None, None] ** age.clamp(min=0) * (age >= 0)", "(a[..., None, None] ** age.abs()).tril()"),
        Edit(STATES, "(left @ x.mT[:, :, None, :, None])[..., 0].permute(0, 3, 1, 2)"),
    ],
}

WRONG = {
    "15.reach": [Edit(": 15", ": 8"), {"the first output": 5.0}],
    "15.gru": [
        (lambda token, state, wi, bi, ws, bs: torch.gru_cell(token, state, wi, ws, bi, bs), "yours to write"),
        Edit("update * state + (1 - update) * candidate", "torch.tanh(update * state + (1 - update) * candidate)"),
    ],
    "15.ages": [
        Edit("sorted(seen)", "seen"),
        Edit("sorted(seen)", "sorted(seen, reverse=True)"),
    ],
    "15.dilated": [
        (dilated_in_a_loop, "one by one"),
        Edit(PRODUCT, 'torch.einsum("blik,kio->lbo", windows, weight)'),
    ],
    "15.chunk": [
        Edit("(weights * states).sum(dim=-1), states[:, -1]", "states[:, -1], (weights * states).sum(dim=-1)"),
        Edit("a[..., None, None] **", "(1 - a)[..., None, None] **"),
    ],
}


def measured():
    """The prediction's numbers, computed."""
    a_gru = nn.GRUCell(1, 1).double()
    with torch.no_grad():
        a_gru.bias_ih[1] = 99
    gru_state, state = torch.tensor([[0.3]], dtype=torch.float64), 0.0
    with torch.no_grad():
        for _ in range(100):
            gru_state = a_gru(torch.ones(1, 1, dtype=torch.float64), gru_state)
    for x in (8, 0, 0, 0):
        state = state / 2 + x
    numbers, kernel = torch.arange(1.0, 5.0), torch.tensor([1.0, 1, 0, 0])
    centered = torch.zeros(1, 1, 40, requires_grad=True)
    layer = torch.ones(1, 1, 5)
    out = F.conv1d(F.conv1d(F.conv1d(centered, layer, padding=2), layer, padding=2), layer, padding=2)
    (gradient,) = torch.autograd.grad(out[0, 0, 20], centered)
    return {
        "width 3, three layers": seen_by_gradient([(3, 1)] * 3)[-1],
        "width 2, growing gaps": seen_by_gradient([(2, 1), (2, 2), (2, 4), (2, 8)])[-1],
        "width 5, centered": int((gradient != 0).sum()),
        "the state at token 3": state,
        "the state of the GRU": gru_state.item(),
        "the first output": torch.fft.irfft(torch.fft.rfft(numbers) * torch.fft.rfft(kernel), 4)[0].item(),
    }


def seen_by_gradient(layers):
    """The tokens for which the last output has a gradient, youngest first."""
    x = torch.zeros(1, 1, 1 + sum((width - 1) * gap for width, gap in layers), requires_grad=True)
    y = x
    for width, gap in layers:
        y = F.conv1d(F.pad(y, ((width - 1) * gap, 0)), torch.ones(1, 1, width), dilation=gap)
    (gradient,) = torch.autograd.grad(y[0, 0, -1], x)
    return gradient[0, 0].flip(0).nonzero().flatten().tolist()


def library_gru(token, state, w_input, b_input, w_state, b_state):
    cell = nn.GRUCell(w_input.size(1), w_state.size(1)).to(token)
    with torch.no_grad():
        for ours, theirs in zip(cell.parameters(), (w_input, w_state, b_input, b_state), strict=True):
            ours.copy_(theirs)
    return cell(token, state)


def library_dilated(x, weight, gap):
    padded = F.pad(x.mT, (gap * (len(weight) - 1), 0))
    return F.conv1d(padded, weight.permute(2, 1, 0), dilation=gap).mT


def library_chunk(x, state, a, weights):
    layer = DiagonalStateSpace(*a.shape).to(x)
    with torch.no_grad():
        for parameter in (layer.log_step, layer.frequency, layer.output, layer.skip):
            parameter.zero_()  # hands that do not turn
        layer.log_decay.copy_((-a.log()).log())
        layer.output[..., 0] = weights / 2 / (1 - a**2).sqrt()
        outputs, last = layer.scan(x, torch.complex(state, torch.zeros_like(state)))
    return outputs, last.real


# What a solution must agree with.
LIBRARY = {
    "15.reach": measured(),
    "15.gru": library_gru,
    "15.ages": seen_by_gradient,
    "15.dilated": library_dilated,
    "15.chunk": library_chunk,
}
