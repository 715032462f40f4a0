"""Checks of assignment 17: a layer and a sum divided among ranks, the time of a step, and the best use of a budget."""

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value

ADDS = "            arrived = arrived + held[rank, chunk]\n"
FIRST = "        if step < number - 1:\n" + ADDS
BIAS = "(b2 if rank == 0 else 0)"
LOSS = "e + a / parameters**alpha + b / tokens**beta"
BY_ROWS = (
    "x @ own_w1 + own_b1", "x.chunk(world_size, dim=-1)[rank] @ own_w1 + b1",
    "w1.chunk(world_size, dim=1)", "w1.chunk(world_size, dim=0)", "hidden @ own_w2", "hidden @ w2",
)


def networks(generator):
    """Texts and a feed-forward network, on one rank and on several."""
    cases = []
    for batch, d_model, d_ff, world_size in ((1, 2, 4, 2), (2, 3, 6, 3), (1, 2, 3, 1), (2, 4, 8, 4)):
        shapes = ((batch, 3, d_model), (d_model, d_ff), d_ff, (d_ff, d_model), d_model)
        cases.append((*(torch.randn(shape, generator=generator) for shape in shapes), world_size))
    return cases


def gradients(generator):
    """What each of some ranks holds, in as many chunks."""
    return [(torch.randn(ranks, ranks, size, generator=generator),) for ranks, size in ((2, 1), (3, 2), (5, 1), (4, 3))]


def clusters(generator):
    """One device; several whose exchange hides behind the backward pass, and others that wait for it."""

    def number(low, high):
        return low * (high / low) ** torch.rand((), generator=generator).item()

    fixed = [(6e7, 25_000, 1, 9.5e12, 0.3, 1e10), (6e7, 25_000, 8, 9.5e12, 0.4, 1e10), (7e9, 4e6, 64, 1e15, 0.5, 1e10)]
    some = [
        (number(1e7, 1e9), number(1e4, 1e5), devices, number(1e13, 1e14), 0.4, number(1e9, 2e10))
        for devices in (2, 5, 16)
    ]
    return fixed + some


def budgets(generator):
    """The curve that was measured, and others, for small and large budgets."""

    def number(low, high):
        return low * (high / low) ** torch.rand((), generator=generator).item()

    some = [
        (number(1e17, 1e24), number(1, 2), number(100, 900), number(100, 900), number(0.2, 0.5), number(0.2, 0.5))
        for _ in range(4)
    ]
    return [(5.76e23, 1.69, 406.4, 410.7, 0.34, 0.28), (1e18, 1.69, 406.4, 410.7, 0.34, 0.28), *some]


EXERCISES = (
    Exercise(
        "17.numbers",
        mistakes={
            "In the loss of a batch every token counts one, so the longer share counts three times as much.":
                Edit(": 2.5", ": 3.0"),
            "A mean of means does not look at how many tokens each share has.": Edit(": 3.0", ": 2.5"),
            "A tenth of the time is not divided: 9 devices are less than 9 times as fast.": Edit(": 5.0", ": 9.0"),
            "That is the limit for as many devices as you like; it is nine of them here.": Edit(": 5.0", ": 10.0"),
            "You pay for devices that wait, too: nine times the hours that the training takes.":
                Edit(": 18.0", ": 10.0"),
            "These are hours of the training. All nine devices are paid for, each of these hours.":
                Edit(": 18.0", ": 2.0"),
            "Fully sharded means that each process keeps an eighth of all.": Edit(": 2.0", ": 16.0"),
            "For each weight there are a gradient and two moments as well, four numbers in all.":
                Edit(": 2.0", ": 0.5"),
            "FLOPs grow with the product of parameters and tokens.": Edit(": 2,", ": 4,"),
            "All devices repeat the half hour, not only the one that broke.": Edit(": 500", ": 0.5"),
            "Half an hour is lost with each failure, not a whole one.": Edit(": 500", ": 1000"),
        },
        ask=value,
    ),
    Exercise(
        "17.parts",
        networks,
        {
            "Both mistakes are still there. What does a rank's ReLU act on, and how often is b₂ in the sum?": PLANTED,
            "The weights are cut well now. But b₂ is in the sum once for every rank.": Edit(BIAS, "b2"),
            "b₂ is in the sum once now. But the ReLU acts on sums that lack the other ranks' parts: "
            "cut W₁ by hidden units, not by features of x.":
                Edit(*BY_ROWS),
            "b₂ is missing.": Edit(f" + {BIAS}", ""),
            "The sum of the parts is right. But it is rank 0 that adds b₂, all of it.":
                (Edit(BIAS, "(b2 if rank == world_size - 1 else 0)"), Edit(BIAS, "b2 / world_size")),
            "b₁ is missing.": Edit(" + own_b1", ""),
            "All ranks have rank 0's part of b₁.": Edit("b1.chunk(world_size)[rank]", "b1.chunk(world_size)[0]"),
            "All ranks have rank 0's part of W₂.": Edit("dim=0)[rank]", "dim=0)[0]"),
            "The sum of the parts is right. But the units are dealt out one by one; "
            "rank 0 has the first ones, rank 1 those behind them.":
                Edit("w1.chunk(world_size, dim=1)[rank], b1.chunk(world_size)[rank]",
                     "w1[:, rank::world_size], b1[rank::world_size]",
                     "w2.chunk(world_size, dim=0)[rank]", "w2[rank::world_size]"),
            "There is no ReLU.": Edit("torch.relu", ""),
            "The ReLU stands behind the second product; it belongs between the two.":
                Edit("torch.relu(x @ own_w1 + own_b1)", "x @ own_w1 + own_b1",
                     "hidden @ own_w2", "torch.relu(hidden @ own_w2)"),
            "Every rank sends the finished output. The all-reduce is still to come.":
                Edit("torch.stack(sent)", "torch.stack([sum(sent)] * world_size)"),
            "This is the output after the all-reduce. Asked is what each rank sends into it.":
                Edit("torch.stack(sent)", "sum(sent)"),
        },
    ),
    Exercise(
        "17.ring",
        gradients,
        {
            "Here it ends after the first round: each rank has one finished chunk, and the others are missing.":
                Edit("2 * (number - 1)", "number - 1"),
            "In the second round chunks are finished; what arrives replaces the own one. You add it again.":
                Edit(FIRST, ADDS.replace("    ", "", 1)),
            "Nothing is ever added. In the first round, what arrives is added to the own chunk.": Edit(FIRST, ""),
            "The second round begins one step early: the first one has n − 1 steps.":
                Edit("if step < number - 1", "if step < number - 2"),
            "The second round begins one step late: the first one has n − 1 steps.":
                Edit("if step < number - 1", "if step < number"),
            "What goes round goes the wrong way: each rank sends to the next one, not to the one before.":
                Edit("held[rank - 1, chunk]", "held[(rank + 1) % number, chunk]", "rank - 1 - step", "rank + 1 - step"),
            "The sender is the right one, the chunk is not: "
            "what arrives is the chunk of the sender's turn, not of the receiver's.":
                Edit("rank - 1 - step", "rank - step"),
            "The chunks go on upward: after chunk r, a rank sends r − 1.": Edit("rank - 1 - step", "rank - 1 + step"),
            "Every rank sends the same chunk over and over.": Edit("rank - 1 - step", "rank - 1"),
            "This sums up and divides by the number of ranks; asked is the sum.":
                Edit("return torch.stack(states)", "return torch.stack(states) / number"),
            "All your states are the last one: they are one tensor, which each step has changed.":
                Edit("held, states = values", "held, states = values.clone()",
                     "held = held.index_put(", "held.index_put_("),
            "The state before the first step is in the result. Asked is that after each step.":
                Edit("states = values, []", "states = values, [values]"),
            "This is what they hold in the end. Asked is what they hold after each step.":
                Edit("return torch.stack(states)", "return held"),
            "What a rank sends, it does not lose. Yours sets it to 0.":
                Edit("held.index_put((rank, chunk), arrived)",
                     "held.index_put((rank - 1, chunk), 0 * arrived).index_put((rank, chunk), arrived)"),
        },
        loops=lambda values: 2 * (len(values) - 1),
    ),
    Exercise(
        "17.step",
        clusters,
        {
            "Only the forward pass is counted. A token costs 6 operations for each parameter.":
                Edit("6 * parameters", "2 * parameters"),
            "The batch is divided among the devices; here each of them computes all of it.":
                Edit("(devices * peak * utilization)", "(peak * utilization)"),
            "You compute with the peak. Only `utilization` of it is used.":
                Edit("(devices * peak * utilization)", "(devices * peak)",
                     "utilization * compute / step", "compute / step"),
            "A number has 4 bytes.": Edit(" * 4 *", " *"),
            "The ring goes round twice: once to add, once to hand out.": Edit("2 * (devices - 1)", "(devices - 1)"),
            "A ring of n devices has 2 (n − 1) steps, not 2 n; one device alone sends nothing.":
                Edit("2 * (devices - 1) / devices", "2"),
            "In each of its steps a device sends a chunk, and not all of its gradients.":
                Edit("2 * (devices - 1) / devices", "2 * (devices - 1)"),
            "The exchange begins when everything is computed here. It begins with the backward pass.":
                Edit("compute / 3 + max(2 * compute / 3, exchange)", "compute + exchange"),
            "The exchange hides behind the forward pass, too. There are no gradients yet.":
                Edit("compute / 3 + max(2 * compute / 3, exchange)", "max(compute, exchange)"),
            "Forward and backward share the time evenly here. Of 6 operations, 4 are the backward pass's.":
                Edit("compute / 3 + max(2 * compute / 3, exchange)", "compute / 2 + max(compute / 2, exchange)"),
            "The utilization is that of computing alone. While devices wait they use nothing.":
                Edit("utilization * compute / step", "utilization"),
            "This is the share of the time in which devices compute. Of that, only a share of the peak is used.":
                Edit("utilization * compute / step", "compute / step"),
        },
    ),
    Exercise(
        "17.budget",
        budgets,
        {
            "The exponents of the budget are exchanged: parameters grow with β / (α + β).":
                Edit("work ** (beta", "work ** (alpha"),
            "The ratio is upside down: more to gain from parameters means more of them.":
                Edit("(alpha * a) / (beta * b)", "(beta * b) / (alpha * a)"),
            "Here the two terms of the loss are equal. At the best place it is their slopes that are.":
                Edit("(alpha * a) / (beta * b)", "a / b"),
            "A parameter and a token cost 6 operations together; your budget buys six times as much.":
                Edit("flops / 6", "flops"),
            "The parameters are right. For the tokens the 6 operations are forgotten.":
                Edit("tokens = work", "tokens = flops"),
            "The loss lacks e, which no budget takes away.": Edit("e + a", "a"),
            "These are 20 tokens for each parameter, a rule of thumb. Asked is the best for this curve.":
                Edit("ratio ** (1 / (alpha + beta)) * work ** (beta / (alpha + beta))", "(work / 20) ** 0.5"),
            "These are as many parameters as tokens. Asked is the smallest loss.":
                Edit("ratio ** (1 / (alpha + beta)) * work ** (beta / (alpha + beta))", "work**0.5"),
            "Tokens and parameters are the other way round.":
                Edit(f"return parameters, tokens, {LOSS}", f"return tokens, parameters, {LOSS}"),
            "In the loss, α belongs to the parameters and β to the tokens.":
                Edit("parameters**alpha + b / tokens**beta", "parameters**beta + b / tokens**alpha"),
            "The ratio stands there as it is; it has an exponent, 1 / (α + β).":
                Edit("ratio ** (1 / (alpha + beta))", "ratio"),
            "A token costs 6 operations for each parameter; yours cost 3.":
                Edit("tokens = work", "tokens = 2 * work"),
            "Three numbers are asked for: parameters, tokens and the loss.":
                Edit(f"return parameters, tokens, {LOSS}", "return parameters, tokens"),
        },
    ),
)
