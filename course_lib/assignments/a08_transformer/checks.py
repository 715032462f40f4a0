"""Checks of assignment 08: a profiler's trace, hooks that record, and the one matrix that embeds and generates."""

import math

import torch
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

PAD_ID, BOS_ID = 0, 1  # of <pad> and <s>
SCALE = " * math.sqrt(table.size(1))"
TAKEN_OFF = '            times[running[-1]["name"]] -= event["dur"]\n'
GUARDED = "    try:\n        model(x)\n    finally:\n        for handle in handles:\n            handle.remove()\n"
BARRED = "    logits[:, [PAD_ID, BOS_ID]] = -math.inf\n"


def traces(generator):
    """Operations within operations, on two threads, and kernels beside them; long ones come late in the list."""

    def below(limit):
        return int(torch.randint(limit, (), generator=generator))

    def laid(events, start, length, tid, depth):
        names = ("aten::linear", "aten::addmm", "aten::t", "aten::copy_", "aten::add")
        events.append(dict(name=names[below(5)], cat="cpu_op", tid=tid, ts=start, dur=length))
        place = start + below(2)
        while depth and start + length - place > 3:
            inside = 2 + below(max(1, min(start + length - place, length - 1) - 2))
            laid(events, place, inside, tid, depth - 1)
            place += inside + below(2)

    cases = [([dict(name="aten::add", cat="cpu_op", tid=1, ts=5, dur=3)],)]
    for count, length, depth in ((1, 12, 1), (2, 20, 2), (3, 40, 3), (2, 60, 4)):
        events = []
        for number in range(count):
            for tid in (1, 2)[: 1 + (depth > 1)]:
                laid(events, 5 + number * length, length, tid, depth)
        events += [dict(events[0], name="aten::t", cat="cpu_op", dur=1), dict(events[-1], name="gemm", cat="kernel")]
        order = torch.randperm(len(events), generator=generator).tolist()
        cases.append((sorted((events[number] for number in order), key=lambda event: event["dur"] > length // 2),))
    return cases


def listened_to(generator):
    """Vectors, a matrix for each attention, and in which order those are called: some twice, some never."""
    cases = []
    for batch, length, d_model, calls in ((1, 2, 3, [0]), (2, 3, 4, [0, 1, 2]), (2, 4, 3, [1, 0, 1, 3])):
        weights = torch.randn(4, d_model, d_model, generator=generator)
        cases.append((torch.randn(batch, length, d_model, generator=generator), [*weights], calls))
    return cases


def recorded(answer, x, matrices, calls):
    """What the answer records of a model with nested attentions, and how it leaves the model, also after an error."""

    class Attention(nn.Module):
        def __init__(self, matrix):
            super().__init__()
            self.matrix = nn.Parameter(matrix.clone())

        def forward(self, x):
            weights = (x @ self.matrix @ x.mT).softmax(dim=-1)
            return weights @ x, weights

    class Other(Attention):
        pass

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            made = [(Attention, Other)[number % 2](matrix) for number, matrix in enumerate(matrices)]
            self.layers, self.runs = nn.ModuleList(nn.ModuleDict({"attn": one}) for one in made), 0

        def forward(self, x):
            self.runs += 1
            for number in calls:
                x = x + self.layers[number]["attn"](x)[0]
            if x.size(1) > 9:
                raise ValueError("too long")
            return x

    model = Model()
    found = answer(model, Attention, x)
    hooks, state = (lambda: any(one._forward_hooks for one in model.modules())), {"runs": model.runs}
    state |= {"record": found, "in training mode": model.training, "hooks are left": hooks(), "the error passes": False}
    state["a graph is kept"] = any(getattr(one, "grad_fn", None) is not None for some in found.values() for one in some)
    try:
        answer(model, Attention, x.repeat(1, 10, 1))
    except ValueError:
        state["the error passes"] = True
    return state | {"hooks are left after an error": hooks()}


def both_ends(generator):
    """Ids, what leaves the decoder, the shared matrix, and positions for at least as many tokens."""
    cases, shapes = [], [(1, 3, 2, 8, 6, 5), (2, 4, 5, 4, 9, 4), (3, 5, 3, 6, 7, 8), (4, 2, 6, 10, 11, 7)]
    for batch, length, tgt_len, d_model, vocab, max_len in shapes:
        ids = torch.randint(vocab, (batch, length), generator=generator)
        hidden = torch.randn(batch, tgt_len, d_model, generator=generator)
        table = torch.randn(vocab, d_model, generator=generator) / math.sqrt(d_model)
        cases.append((ids, hidden, table, torch.randn(max_len, d_model, generator=generator)))
    return cases


def half_written(generator):
    """Half-written sentences: <pad> is likeliest after the first, all others negative; <s> after the last."""
    shapes = [((3,), 5, 4, 9), ((6, 2, 4), 6, 8, 12), ((1, 3, 4, 2), 4, 5, 11), ((3, 3), 3, 6, 10)]
    shapes += [((2, 7, 1, 5, 4), 7, 8, 16)]
    cases = []
    for lengths, tgt_len, d_model, vocab in shapes:
        tgt_in = torch.randint(4, vocab, (len(lengths), tgt_len), generator=generator)
        tgt_in[:, 0] = BOS_ID
        for row, length in enumerate(lengths):
            tgt_in[row, length:] = PAD_ID
        hidden = torch.randn(len(lengths), tgt_len, d_model, generator=generator)
        table = torch.randn(vocab, d_model, generator=generator)
        hidden[-1, lengths[-1] - 1] = 5 * table[BOS_ID]
        hidden[0, lengths[0] - 1] = to_pad = 5 * table[PAD_ID]
        table[2:] -= 2 * (table[2:] @ to_pad).relu().outer(to_pad) / to_pad.dot(to_pad)  # mirrored
        table[:2] *= 5
        hidden[0, lengths[0] - 1] *= 50  # so that even the likeliest has a logit far below -100
        cases.append((hidden, tgt_in, table))
    return cases


EXERCISES = (
    Exercise(
        "08.trace",
        traces,
        {
            "These are whole durations, so the time of a called operation counts again in each that it lies within.":
                Edit(TAKEN_OFF, "            pass\n"),
            "An operation's time is taken off from everything around it. It is part of its caller's time already, "
            "so only the caller loses it.":
                Edit('times[running[-1]["name"]] -= event["dur"]',
                     'for other in running:\n                times[other["name"]] -= event["dur"]'),
            "Threads are mixed: what another thread does at the same time is not within this operation.":
                Edit('event["tid"], []', "0, []"),
            "Of two operations that begin together the longer one has called the other one; it has to come first.":
                Edit('(event["ts"], -event["dur"])', '(event["ts"], event["dur"])'),
            "Nothing says that events come in the order in which they began. Sort them.":
                Edit('sorted(operations, key=lambda event: (event["ts"], -event["dur"]))', "operations"),
            "Only the last call of each name is there. All calls of a name are added up.":
                Edit('times.get(event["name"], 0) + event["dur"]', 'event["dur"]'),
            "Kernels count here as well. Only the category cpu_op is of interest.":
                Edit(' if event["cat"] == "cpu_op"', ""),
            "An operation that begins when another one ends is not within it.": Edit("<= event", "< event"),
            "Several operations may have ended since the last one began, and all of them have to go.":
                Edit("while running", "if running"),
            "These are the times of the outermost operations alone.": Edit(TAKEN_OFF, "            continue\n"),
        },
    ),
    Exercise(
        "08.ends",
        both_ends,
        {
            "The embedded tokens are right, but the logits are √d_model times too large. "
            "What goes in is scaled, what comes out is not.": PLANTED,
            "Now the scale is gone at both ends. The logits are right, but the tokens need their √d_model.":
                Edit(SCALE, ""),
            "The scale is at the wrong end: it belongs to what goes in.": Edit(SCALE, "", "table.T", f"table.T{SCALE}"),
            "The positions are scaled, too. Only the token's row is; the position comes after the scale.":
                Edit("position[: ids.size(1)]", f"position[: ids.size(1)]{SCALE}"),
            "Embedded tokens and logits are the other way round.": Edit("embedded, logits", "logits, embedded"),
            "The positions are missing.": Edit(" + position[: ids.size(1)]", ""),
            "You multiply by d_model; it is its root.": Edit("math.sqrt(table.size(1))", "table.size(1)"),
            "The logits are divided by √d_model; what comes out is not scaled.":
                Edit("table.T", "table.T / math.sqrt(table.size(1))"),
        },
    ),
    Exercise(
        "08.next",
        half_written,
        {
            "You read the last place of the batch. In a shorter sentence that is padding.":
                Edit("rows, lengths - 1", ":, -1"),
            "You choose <pad> or <s> where its logit is the largest; neither may be written.": Edit(BARRED, ""),
            "You read one place behind the last real token. Places count from 0, so the last of n is n − 1.":
                Edit("lengths - 1", "lengths"),
            "Your ids are too small by 2: they count from the first token that may be written.":
                Edit("argmax(dim=-1)", "argmax(dim=-1) - 2"),
            "These are tokens for every place; only the last real one of each sentence is asked for.":
                Edit("hidden[rows, lengths - 1]", "hidden", "logits[:, ", "logits[..., "),
            "<s> may not be written either.": Edit("[PAD_ID, BOS_ID]", "[PAD_ID]"),
            "You read the first place; the next token is predicted at the last real one.": Edit("lengths - 1", "0"),
            "A logit of 0 is no low one: where all others are negative it wins. Block with −∞.": Edit("-math.inf", "0"),
            "A logit of −100 is low only beside others of today. Block with −∞.": Edit("-math.inf", "-100"),
            "There is a dimension too many: the ids are (batch,).": Edit("dim=-1)", "dim=-1, keepdim=True)"),
            "These are the largest logits; the ids that have them are asked for.":
                Edit("    logits[:, [PAD_ID, BOS_ID]] = -math.inf\n", "", "argmax", "amax"),
        },
        loops=False,
    ),
    Exercise(
        "08.record",
        listened_to,
        {
            "All weights stand under the last name: a hook looks `name` up when it is called, after the loop. "
            "Give it as a default value.": Edit(", name=name", ""),
            "The hooks stay on the model, and every later run is recorded too.": Edit("handle.remove()", "pass"),
            "If the model raises an error, the hooks stay on it. `finally` is done in any case.":
                Edit(GUARDED, "    model(x)\n    for handle in handles:\n        handle.remove()\n"),
            "The weights keep the graph for their gradients alive. Detach them.": Edit(".detach()", ""),
            "These are contexts, the first part of what a module returns. The weights are the second.":
                Edit("output[1]", "output[0]"),
            "What a module returns is kept whole; the weights alone are asked for.":
                Edit("output[1].detach()", "tuple(one.detach() for one in output)"),
            "Of a module that is called several times only the last call is left.":
                Edit(".append(output[1].detach())", " = [output[1].detach()]"),
            "A module that is never called has no entry. It should have one, an empty list.":
                Edit("            found[name] = []\n", "", "found[name].append", "found.setdefault(name, []).append"),
            "Only the children of the model are asked. `named_modules` goes to any depth.":
                Edit("named_modules", "named_children"),
            "Classes that are derived from `kind` are of that kind as well: ask with isinstance.":
                Edit("isinstance(module, kind)", "type(module) is kind"),
            "The model runs twice.": Edit("        model(x)\n", "        model(x)\n        model(x)\n"),
            "The model is left in evaluation mode. Leave it in the mode it was in.":
                Edit("    try:\n", "    model.eval()\n    try:\n"),
            "The error of the model is swallowed. Whoever called has to hear of it.":
                Edit("    finally:\n", "    except ValueError:\n        pass\n    finally:\n"),
        },
        ask=recorded,
    ),
    Exercise(
        "08.costs",
        mistakes={
            "More heads are narrower heads: d_k halves, and the four projections stay d_model × d_model.":
                Edit(": 1,", ": 2,"),
            "Twice as many queries meet twice as many keys.": Edit('weighted values": 4', 'weighted values": 2'),
            "Put both formulas of the lesson side by side: 4 · length² · d_model and 8 · length · d_model².":
                Edit("512", "256"),
            "The weight is not all: its gradient takes as much.": Edit(": 8,", ": 4,"),
            "A projection from d_model to d_model has d_model² weights.": Edit('doubled": 4', 'doubled": 2'),
            "Count again: weight, gradient, and what else is kept for each?": Edit(": 8,", ": 16,"),
        },
        ask=value,
    ),
)
