"""Checks of assignment 14: the cache's room, attention in parts, its backward pass in blocks, scales of groups."""

import math

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value

SCALE = "torch.where(largest == 0, 1, largest / 127)"


def budgets(generator):
    """Room for exactly so many tokens, for a part of one more, for the source alone, and not even for that."""

    def number(low, high):
        return int(torch.randint(low, high, (), generator=generator))

    cases = []
    for spare in (0.0, 0.6, None, 0.0, 0.99, 0.3):
        layers, heads, d_k, sentences, src_len = (number(*ends) for ends in ((2, 7), (2, 9), (8, 65), (2, 9), (20, 99)))
        beam_size, size, length = number(2, 6), 2 * number(1, 3), number(30, 90) * (len(cases) != 3)
        token = 2 * layers * heads * d_k * size
        free = int((src_len + beam_size * (length + (spare or 0))) * sentences * token)
        if spare is None:
            free = sentences * src_len * token * 2 // 3
        cases.append((free, layers, heads, d_k, sentences, src_len, beam_size, size))
    return cases


def parts(generator):
    """Contexts and logsums of parts; large ones, and parts in which a query sees nothing."""
    cases = []
    shapes = (2, 1, 1, 3, 2), (3, 2, 2, 4, 3), (4, 2, 1, 3, 5), (3, 1, 2, 5, 4)
    for shape, level in zip(shapes, (0.0, 500.0, -300.0, 90.0), strict=True):
        contexts = torch.randn(shape, generator=generator)
        logsums = level + torch.randn(shape[:-1], generator=generator)
        if shape[0] > 2:
            blind = torch.rand(shape[:-1], generator=generator) < 0.3
            blind[0, 0, 0, 0], blind[-1] = True, False
            logsums, contexts = logsums.masked_fill(blind, -math.inf), contexts.masked_fill(blind[..., None], math.nan)
        cases.append((contexts, logsums))
    return cases


def blocks(generator):
    """A block from the middle of the keys, and what is known of all of them."""
    cases = []
    for batch, heads, queries, keys, d_k, start, stop in (
        (1, 1, 2, 5, 4, 1, 3),
        (2, 2, 3, 6, 3, 0, 4),
        (1, 3, 4, 7, 2, 3, 7),
        (2, 1, 5, 8, 6, 2, 5),
    ):
        query, grad = torch.randn(2, batch, heads, queries, d_k, generator=generator)
        key, value = torch.randn(2, batch, heads, keys, d_k, generator=generator)
        scores = query @ key.mT / math.sqrt(d_k)
        context, logsum = scores.softmax(dim=-1) @ value, scores.logsumexp(dim=-1)
        cases.append((query, key[:, :, start:stop].clone(), value[:, :, start:stop].clone(), context, logsum, grad))
    return cases


def weights(generator):
    """Groups of very different sizes; one is all zeros, one all negative."""
    cases = []
    for out, groups, size in ((2, 2, 3), (3, 3, 4), (5, 2, 8), (4, 4, 2)):
        sizes = torch.rand(out, groups, 1, generator=generator) + 0.05
        weight = sizes * torch.randn(out, groups, size, generator=generator)
        weight[0, 1], weight[1, 0] = 0.0, -weight[1, 0].abs()
        weight[1, 1, 0] = -1.3 * weight[1, 1].abs().max()
        cases.append((weight.flatten(1), size))
    return cases


EXERCISES = (
    Exercise(
        "14.longest",
        budgets,
        {
            "Each token has a key *and* a value in each head.": Edit("2 * num_layers", "num_layers"),
            "This is the cache of one layer; all of them have one.": Edit("2 * num_layers *", "2 *"),
            "The source's keys and values are kept once for each hypothesis here. All of a sentence share them.":
                Edit("sentences * src_len", "sentences * beam_size * src_len"),
            "The source has no place in the cache here. Cross-attention keeps its keys and values.":
                Edit(" - sentences * src_len * token", ""),
            "Each hypothesis has target tokens of its own; only the sentences are counted.":
                Edit("(sentences * beam_size * token)", "(sentences * token)"),
            "You round up: the last token does not fit any more.":
                Edit("left // (sentences * beam_size * token)", "-(-left // (sentences * beam_size * token))"),
            "If not even the source fits, the answer is 0 and not a negative number.":
                Edit("max(0, left // (sentences * beam_size * token))", "left // (sentences * beam_size * token)"),
            "You count numbers, and `free` are bytes.": Edit(" * bytes_per_number", ""),
            "This is the sum over all hypotheses. It is asked how many tokens each of them can have.":
                Edit("(sentences * beam_size * token)", "token"),
            "Only one head of each layer is counted.": Edit(" * kv_heads", ""),
            "This is the sum over all sentences. It is asked how many tokens each hypothesis can have.":
                Edit("(sentences * beam_size * token)", "(beam_size * token)"),
            "The source of one sentence only is counted.": Edit("sentences * src_len", "src_len"),
        },
    ),
    Exercise(
        "14.merge",
        parts,
        {
            "All parts have the same weight here. A part with larger scores counts more.":
                Edit("logsums.softmax(dim=0)", "torch.full_like(logsums, 1 / len(logsums))"),
            "Where a part has seen nothing, its context is multiplied by 0, and 0 times NaN is NaN.":
                Edit("contexts.masked_fill(weights == 0, 0)", "contexts"),
            "exp of a logsum of 500 is infinite. What may be subtracted from all of them first?":
                Edit("logsums.softmax(dim=0)", "(logsums.exp() / logsums.exp().sum(dim=0))"),
            "The contexts are right, and the logsum overflows: exp of 500 is infinite.":
                Edit("logsums.logsumexp(dim=0)", "logsums.exp().sum(dim=0).log()"),
            "The weights do not sum to 1: divide by their sum over the parts.":
                Edit("logsums.softmax(dim=0)", "(logsums - logsums.amax(dim=0)).exp()"),
            "The weights are a softmax over the queries here. The parts of one query share its weight.":
                Edit("softmax(dim=0)", "softmax(dim=-1)"),
            "The contexts are right. But their logsum is not the largest one: the sums of all parts are added.":
                Edit("logsums.logsumexp(dim=0)", "logsums.amax(dim=0)"),
            "The contexts are right. But you add the logarithms; it is the sums that are added.":
                Edit("logsums.logsumexp(dim=0)", "logsums.masked_fill(logsums == -math.inf, 0).sum(dim=0)"),
            "Only the part with the largest logsum is heard; the others have smaller weights, and not 0.":
                Edit("logsums.softmax(dim=0)", "(logsums == logsums.amax(dim=0)).to(logsums.dtype)"),
            "The logsums themselves are the weights here. They are logarithms.":
                Edit("weights = logsums.softmax(dim=0)[..., None]",
                     "finite = logsums.masked_fill(logsums == -math.inf, 0)\n"
                     "    weights = (finite / finite.sum(dim=0))[..., None]"),
            "The contexts are right. But the logsum is the mean over the parts: nothing is divided by their number.":
                Edit("logsums.logsumexp(dim=0)", "logsums.logsumexp(dim=0) - math.log(len(logsums))"),
        },
        loops=False,
    ),
    Exercise(
        "14.way_back",
        blocks,
        {
            "These are weights among the block's keys: their softmax does not know the others. The logsum does.":
                Edit(" - logsum[..., None]).exp()", ").softmax(dim=-1)"),
            "The sum in the softmax's gradient is over all keys; you add up the block's alone. "
            "Which tensor knows all values already?":
                Edit("(grad * context).sum", "(weights * grad_weights).sum"),
            "The gradient of the softmax lacks the sum that is taken off.":
                Edit("weights * (grad_weights - mean)", "weights * grad_weights"),
            "The gradients of queries and keys lack the factor 1/√d_k: scores were divided by it.":
                Edit("scale * (grad_scores @ key)", "grad_scores @ key",
                     "scale * (grad_scores.mT", "(grad_scores.mT"),
            "The gradient of the queries lacks the factor 1/√d_k.":
                Edit("scale * (grad_scores @ key)", "grad_scores @ key"),
            "The gradient of the keys lacks the factor 1/√d_k.": Edit("scale * (grad_scores.mT", "(grad_scores.mT"),
            "The scores are not divided by √d_k before the logsum is taken off.":
                Edit("(scale * (query @ key.mT)", "(query @ key.mT"),
            "The scores' gradient is not multiplied by the weights.":
                Edit("weights * (grad_weights - mean)", "grad_weights - mean"),
            "The gradient of the values is made with the gradient of the scores. It needs the weights themselves.":
                Edit("weights.mT @ grad", "grad_scores.mT @ grad"),
            "The gradient of the values is made with the contexts; it is made with *their* gradient.":
                Edit("weights.mT @ grad", "weights.mT @ context"),
            "The signs are turned round: from each gradient of a weight the sum is taken off.":
                Edit("(grad_weights - mean)", "(mean - grad_weights)"),
            "The gradients of queries and keys are those of the values' products. "
            "Where query meets key, a query's gradient is made of keys, and a key's of queries.":
                Edit("grad_scores @ key", "grad_scores @ value", "grad_scores.mT @ query", "grad_scores.mT @ grad"),
        },
        forbidden=(torch.autograd.grad, torch.Tensor.backward),
    ),
    Exercise(
        "14.groups",
        weights,
        {
            "Both mistakes are still there. Which of −2 and 1 is larger here, and what becomes of 0.9 in int8?":
                PLANTED,
            "The scales are right. But int8 cuts off what stands behind the point; the nearest whole number is wanted.":
                Edit(".round()", ""),
            "Numbers are rounded. But it is the largest *absolute* value that decides, and it may be that of a −2.":
                Edit("groups.abs().amax", "groups.amax"),
            "Each row has one scale here. Each group has its own.":
                Edit("amax(dim=2, keepdim=True)", "amax(dim=(1, 2), keepdim=True).expand(-1, groups.size(1), 1)"),
            "The whole matrix has one scale here. Each group has its own.":
                Edit("amax(dim=2, keepdim=True)", "amax().expand(*groups.shape[:2], 1)"),
            "The largest value becomes 128 and is clipped. It should become 127.": Edit("/ 127)", "/ 128)"),
            "The scale is made of the spread of a group here. The largest absolute value makes it.":
                Edit("groups.abs().amax(dim=2, keepdim=True)",
                     "groups.amax(dim=2, keepdim=True) - groups.amin(dim=2, keepdim=True)"),
            "A group of zeros has the scale 0 here, and 0 / 0 is NaN. It should have 1.": Edit(SCALE, "largest / 127"),
            "The scales are upside down: a number times its scale must give the weight.":
                Edit("scale.squeeze(2)", "(1 / scale).squeeze(2)"),
            "Numbers are rounded down, also where the next one above is nearer.": Edit(".round()", ".floor()"),
            "Numbers and scales are right, but the numbers still take four bytes or more: they are not int8.":
                Edit(".to(torch.int8)", ""),
            "These are the rounded weights. The numbers are asked for, and the scales beside them.":
                Edit(".to(torch.int8)", " * scale"),
        },
    ),
    Exercise(
        "14.predict",
        mistakes={
            "This is the forward pass alone. The way back costs twice as much again.": Edit(': 6,', ': 2,'),
            "Forward, each parameter and token takes two operations: a product and a sum.": Edit(': 6,', ': 3,'),
            "The fused kernel keeps no table of queries and keys.": Edit('long": 2', 'long": 4'),
            "Every query still meets every key.": Edit('time, twice as long": 4', 'time, twice as long": 2'),
            "Eight groups are left. But by which factor are 8 fewer than 32?": Edit('of 4": 4', 'of 4": 8'),
            "One layer is there in full at a time, while it is computed again.": Edit(": 25", ": 16"),
            "The input of the layer that is computed again is kept already.": Edit(": 25", ": 26"),
            "That is without checkpointing.": Edit(": 25", ": 160"),
            "The digits are those of 8 = 1 · 2³: the distance grows with the number.": Edit("8.0625", "8.0078125"),
            "8 is 2³, so the distance is eight times 1/128.": Edit("8.0625", "8.125"),
            "Even a perfect student has the teacher's own uncertainty as its cross-entropy.": Edit(": 1.5", ": 0"),
            "These are nats.": Edit(": 1.5", ": 1.0397"),
        },
        ask=value,
    ),
)
