"""Answers to assignment 08: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math
from collections import Counter
from contextlib import ExitStack

import torch
import torch.nn.functional as F
from torch.autograd.profiler_util import EventList, FunctionEvent

from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.transformer import Embedding


def own_times_by_callers(events):
    """Each operation looks for its caller: the shortest of those that it lies within."""
    operations, times = [event for event in events if event["cat"] == "cpu_op"], Counter()
    for one in operations:
        start, end = one["ts"], one["ts"] + one["dur"]
        around = [event for event in operations if event["tid"] == one["tid"] and event["dur"] > one["dur"]]
        around = [event for event in around if event["ts"] <= start and end <= event["ts"] + event["dur"]]
        times[one["name"]] += one["dur"]
        if around:
            times[min(around, key=lambda event: event["dur"])["name"]] -= one["dur"]
    return dict(times)


def record_by_module(model, kind, x):
    kept = {module: [] for module in model.modules() if isinstance(module, kind)}
    with ExitStack() as hooks, torch.no_grad():
        for module in kept:
            keep = module.register_forward_hook(lambda one, _, output: kept[one].append(output[1].detach()))
            hooks.callback(keep.remove)
        model(x)
    return {name: kept[module] for name, module in model.named_modules() if module in kept}


def ends_by_einsum(ids, hidden, table, position):
    tokens = F.embedding(ids, math.sqrt(hidden.shape[-1]) * table)
    return tokens + position[None, : ids.size(1)], torch.einsum("btd,vd->btv", hidden, table)


class Ends:
    def embed(self, ids, table, position):
        x = table.index_select(0, ids.flatten()).unflatten(0, ids.shape)
        return x.mul(math.sqrt(x.size(-1))).add(position[: x.size(1)])

    def __call__(self, ids, hidden, table, position):
        return self.embed(ids, table, position), F.linear(hidden, table)


def next_by_mask(hidden, tgt_in, table):
    real = tgt_in.ne(0)
    ended = real & (real.cumsum(1) == real.sum(1, keepdim=True))
    scores = torch.einsum("bt,btd->bd", ended.to(hidden), hidden) @ table.T
    scores[:, :2] = -torch.inf
    return scores.max(dim=-1).indices


def next_of_every_place(hidden, tgt_in, table):
    logits = torch.einsum("btd,vd->btv", hidden, table)
    barred = torch.arange(len(table), device=table.device) < 2
    best = logits.masked_fill(barred, -torch.inf).argmax(dim=-1)  # (batch, tgt_len)
    return best.take_along_dim(tgt_in.bool().sum(dim=1, keepdim=True) - 1, dim=1).squeeze(1)


RIGHT = {
    "08.trace": [
        own_times_by_callers,
        Edit('times.get(event["name"], 0) + event["dur"]', 'sum((event["dur"], times.setdefault(event["name"], 0)))'),
        Edit("    return times", "    return {name: float(time) for name, time in times.items()}"),
    ],
    "08.ends": [
        Edit("table[ids]", "torch.stack([table[row] for row in ids])", "table.T", "table.mT"),
        ends_by_einsum,
        Ends(),
    ],
    "08.next": [
        Edit("hidden[rows, lengths - 1]", "hidden.take_along_dim(lengths[:, None, None] - 1, dim=1).squeeze(1)"),
        next_by_mask,
        next_of_every_place,
        Edit(
            *("    rows = ", "    following = torch.nn.functional.pad(tgt_in[:, 1:], (0, 1))\n    rows = "),
            *("rows, lengths - 1", "(tgt_in != PAD_ID) & (following == PAD_ID)"),  # one place of each sentence
        ),
    ],
    "08.record": [
        record_by_module,
        Edit("output[1].detach()", "output[1].detach().clone()", "in handles:", "in reversed(handles):"),
        Edit("[name].append(output[1].detach())", "[name] += [output[-1].data]"),
    ],
    "08.costs": [
        Edit(),
        Edit(": 1,", ": 1.0,", ": 8,", ": 8.0,"),
        Edit("512", "torch.tensor(512)", 'doubled": 4', 'doubled": 2 * 2'),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "08.trace": [
        Edit("    return times", "    return {name: time / 1000 for name, time in times.items()}"),
        Edit("-event", "event", "running[-1]", "running[0]"),
    ],
    "08.ends": [
        Edit("table[ids] * math.sqrt(table.size(1))", "table.mul_(math.sqrt(table.size(1)))[ids]"),
        Edit("ids.size(1)", "ids.size(0)"),
    ],
    "08.next": [
        Edit("    lengths", "    table[:2] = -1e9\n    lengths"),
    ],
    "08.record": [
        Edit("return found", "return [*found.values()]"),
        Edit("output[1].detach())", "output[1].detach())\n                return output[0] * 0, output[1]"),
    ],
    "08.costs": [
        Edit(": 2,", ": 4,"),
        Edit("512", "None"),
    ],
}


def library_embedding(table):
    """The library's embedding with this matrix, and without positions."""
    config = ModelConfig(*table.shape, num_heads=1, dropout=0.0, position="none")
    embedding = Embedding(config).to(table)
    embedding.table.weight = torch.nn.Parameter(table.clone())
    return embedding


def library_ends(ids, hidden, table, position):
    embedding = library_embedding(table)
    with torch.no_grad():
        return embedding(ids) + position[: ids.size(1)], F.linear(hidden, embedding.table.weight)


def library_trace(events):
    """By the tree that PyTorch's own profiler makes of its events."""
    made = [
        FunctionEvent(number, event["name"], event["tid"], event["ts"], event["ts"] + event["dur"])
        for number, event in enumerate(events)
        if event["cat"] == "cpu_op"
    ]
    tree = EventList(made)
    tree._populate_cpu_children()
    times = Counter()
    for event in tree:
        times[event.name] += event.self_cpu_time_total
    return dict(times)


# What a solution must agree with.
LIBRARY = {"08.trace": library_trace, "08.ends": library_ends}
