"""Answers to assignment 17: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math
from functools import cache

import torch
from scipy.optimize import minimize_scalar
from torch.utils.flop_counter import FlopCounterMode

from course_lib.blocks import FeedForward
from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.training import speed_up

PUT = "held.index_put((rank, chunk), arrived)"


def parts_at_once(x, w1, b1, w2, b2, world_size):
    hidden = (x @ w1 + b1).relu().unflatten(-1, (world_size, -1))  # (batch, length, world_size, units)
    sent = torch.einsum("blru,rud->rbld", hidden, w2.unflatten(0, (world_size, -1)))
    once = torch.zeros_like(sent)
    once[0] = b2
    return sent + once


def parts_by_masks(x, w1, b1, w2, b2, world_size):
    units = torch.arange(w1.shape[1], device=x.device) * world_size // w1.shape[1]
    hidden = torch.nn.functional.relu(torch.matmul(x, w1) + b1)
    sent = [torch.where(units == rank, hidden, 0) @ w2 for rank in range(world_size)]
    return torch.stack([sent[0] + b2, *sent[1:]])


def ring_by_tables(values):
    """Each step with a table of who gets which chunk."""
    number = len(values)
    place = torch.arange(number, device=values.device)
    held, states = values, []
    for step in range(2 * number - 2):
        gets = ((place[:, None] - 1 - step - place) % number == 0)[..., None]  # (ranks, chunks, 1)
        arrived = held.roll(1, dims=0)
        held = torch.where(gets, arrived + held if step < number - 1 else arrived, held)
        states.append(held)
    return torch.stack(states)


def seconds_of_a_device(parameters, tokens, devices, peak, utilization, bandwidth):
    rate, share = peak * utilization, tokens / devices
    forward, backward = 2 * parameters * share / rate, 4 * parameters * share / rate
    sent = sum(4 * parameters / devices for _ in range(2 * devices - 2))
    step = forward + backward if backward > sent / bandwidth else forward + sent / bandwidth
    done = 6 * parameters * tokens / (step * devices * peak)
    return dict(utilization=done, step=step, exchange=sent / bandwidth, compute=forward + backward)


def size_by_search(flops, e, a, b, alpha, beta):
    """Halves the interval where the slope changes its sign."""
    low, high = 0.0, math.log(flops)
    for _ in range(200):
        middle = (low + high) / 2
        n, d = math.exp(middle), flops / 6 / math.exp(middle)
        low, high = (middle, high) if alpha * a * n**-alpha > beta * b * d**-beta else (low, middle)
    return n, d, e + a * n**-alpha + b * d**-beta


def size_by_tokens(flops, e, a, b, alpha, beta):
    total = alpha + beta
    d = (beta * b / alpha / a) ** (1 / total) * (flops / 6) ** (alpha / total)
    rest = b / d**beta
    return [flops / 6 / d, d, e + rest + rest * beta / alpha]


RIGHT = {
    "17.numbers": [Edit(), Edit("18.0", "18", "500", "500.0"), Edit("2.5", "torch.tensor(2.5)", "5.0", "1 / 0.2")],
    "17.parts": [
        *(parts_at_once, parts_by_masks),
        Edit("+ (b2 if rank == 0 else 0)", "+ b2 * (rank == 0)", "torch.relu(x @ own_w1 + own_b1)",
             "(x @ own_w1 + own_b1).clamp(min=0)"),
    ],
    "17.ring": [
        ring_by_tables,
        Edit("held[rank - 1, chunk]", "held.roll(1, dims=0)[rank, chunk]", "(rank - 1 - step)", "(rank - step - 1)"),
        Edit(PUT, "held.clone()\n        held[rank, chunk] = arrived", "rank - 1, chunk", "rank.roll(1), chunk"),
    ],
    "17.step": [
        seconds_of_a_device,
        Edit("utilization * compute / step", "6 * parameters * tokens / (devices * peak * step)"),
        Edit("compute / 3 + max(2 * compute / 3, exchange)", "compute + max(0, exchange - compute * 2 / 3)"),
    ],
    "17.budget": [
        *(size_by_search, size_by_tokens),
        Edit("ratio ** (1 / (alpha + beta)) * work ** (beta / (alpha + beta))",
             "(ratio * work**beta) ** (1 / (alpha + beta))"),
    ],
}

WRONG = {
    "17.numbers": [Edit("500", "12"), {"speed-up": 5.0}],
    "17.parts": [Edit("torch.stack(sent)", "torch.stack(sent[::-1])"), Edit("torch.relu", "torch.sigmoid")],
    "17.ring": [
        Edit("return torch.stack(states)", "return torch.stack(states, dim=1)"),
        Edit("held[rank - 1, chunk]", "2 * held[rank - 1, chunk]"),
    ],
    "17.step": [
        Edit("2 * (devices - 1) / devices", "2 / devices"),
        Edit('"step": step, ', ""),
    ],
    "17.budget": [Edit("(1 / (alpha + beta))", "(1 / (alpha - beta))"), Edit("flops / 6", "flops / 2")],
}


def measured():
    """The prediction's numbers, computed."""
    losses = torch.cat([torch.full((10,), 4.0), torch.full((30,), 2.0)]).double()
    model = ModelConfig(1000, num_layers=1)
    return {
        "loss of the batch": losses.mean().item(),
        "mean of the means": (losses[:10].mean() + losses[10:].mean()).item() / 2,
        "speed-up": speed_up(9, 0.1),
        "device-hours": 9 * 10 / speed_up(9, 0.1),
        "GB in each process": sum(model.memory_bytes().values()) / model.num_parameters / 8,
        "growth of the parameters": 4**0.5,
        "lost device-hours": 1000 / 1000 * 0.5 * 1000,
    }


def library_parts(x, w1, b1, w2, b2, world_size):
    """Networks of the library in which the units of the other ranks are switched off."""
    sent = []
    for rank in range(world_size):
        network = FeedForward(*w1.shape).to(x)
        own = torch.arange(w1.shape[1]) * world_size // w1.shape[1] == rank
        weights = (w1.T, b1, (w2 * own[:, None]).T, b2 * (rank == 0))
        with torch.no_grad():
            for ours, theirs in zip(network.parameters(), weights, strict=True):
                ours.copy_(theirs)
        sent.append(network(x))
    return torch.stack(sent)


def known_ring(values):
    """When each chunk arrives where, and whose numbers are in it then."""
    number = len(values)
    states = values.expand(2 * number - 2, *values.shape).clone()
    for rank in range(number):
        for chunk in range(number):
            first = (rank - 1 - chunk) % number  # the step in which it arrives for the first time
            if first < number - 1:
                states[first:, rank, chunk] = values.roll(number - 1 - rank, 0)[-first - 2 :, chunk].sum(dim=0)
            again = first + number * (first < number - 1)
            states[again:, rank, chunk] = values[:, chunk].sum(dim=0)
    return states


@cache
def operations_of_a_parameter():
    """For each token, forward, and forward with backward; counted in a layer."""
    layer, x = torch.nn.Linear(16, 16, bias=False), torch.randn(4, 16, requires_grad=True)
    counts = []
    with FlopCounterMode(display=False) as counter:
        output = layer(x)
        counts.append(counter.get_total_flops() / 4 / 256)
        output.sum().backward()
        counts.append(counter.get_total_flops() / 4 / 256)
    return counts


def library_step(parameters, tokens, devices, peak, utilization, bandwidth):
    forward, both = (each * parameters * tokens / devices / peak / utilization for each in operations_of_a_parameter())
    held = torch.zeros(devices, devices, 1)  # counts the chunks that arrive at each rank
    for step in range(2 * (devices - 1)):
        rank = torch.arange(devices)
        held[rank, (rank - 1 - step) % devices] += 1
    exchange = held[0].sum().item() * 4 * parameters / devices / bandwidth
    ends = max(both, forward + exchange)
    return {"compute": both, "exchange": exchange, "step": ends, "utilization": utilization * both / ends}


def library_budget(flops, e, a, b, alpha, beta):
    def loss(log_n):
        return e + a / math.exp(log_n) ** alpha + b / (flops / 6 / math.exp(log_n)) ** beta

    options = dict(bounds=(5, 45), method="bounded", options={"xatol": 1e-10})
    best = minimize_scalar(lambda log_n: math.log(loss(log_n) - e), **options)
    parameters = math.exp(best.x)
    return parameters, flops / 6 / parameters, loss(best.x)


# What a solution must agree with.
LIBRARY = {
    "17.numbers": measured(),
    "17.parts": library_parts,
    "17.ring": known_ring,
    "17.step": library_step,
    "17.budget": library_budget,
}
