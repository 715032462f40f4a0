"""Checks of assignment 08: the whole Transformer, counted, and the one matrix that embeds and generates."""

import math

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value

PAD_ID, BOS_ID = 0, 1  # of <pad> and <s>
SCALE = " * math.sqrt(table.size(1))"
BARRED = "    logits[:, [PAD_ID, BOS_ID]] = -math.inf\n"


def sizes_of_models(generator):
    """The paper's base model, and small ones of all four kinds; with an even d_model, because of the sinusoids."""
    cases = [(37_000, 512, 2048, 6, True, False)]
    for kind in [(True, False), (False, False), (True, True), (False, True), (True, False), (False, True)]:
        vocab, half, d_ff, layers = torch.randint(2, 50, (4,), generator=generator).tolist()
        cases.append((10 + vocab, 2 * half, d_ff, 1 + layers % 5, *kind))
    return cases


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


def backward_passes(generator):
    """Few different tokens, so that many occur several times; the highest id is never read."""
    cases, shapes = [], [(1, 4, 3, 4, 5), (2, 5, 5, 6, 7), (3, 2, 6, 8, 4), (2, 6, 4, 5, 20), (3, 4, 5, 3, 6)]
    for batch, src_len, tgt_len, d_model, vocab in shapes:
        case = []
        for length in (src_len, tgt_len):
            case.append(torch.randint(min(4, vocab - 1), (batch, length), generator=generator))
            case.append(torch.randn(batch, length, d_model, generator=generator))
        case += [torch.randn(batch, tgt_len, width, generator=generator) for width in (d_model, vocab)]
        cases.append(tuple(case))
    return cases


EXERCISES = (
    Exercise(
        "08.count",
        sizes_of_models,
        {
            "Your decoder layer is as large as an encoder layer. It has a second attention, with a norm of its own.":
                Edit("2 * attention", "attention", "3 * norm", "2 * norm"),
            "The biases of attention and feed-forward networks are missing.":
                Edit(" + d_model)", ")", " + d_ff + d_model", ""),
            "The norms are missing: each has a scale and a shift for every feature.":
                Edit("norm = 2 * d_model", "norm = 0"),
            "Your attention has three matrices. After queries, keys and values comes the output projection.":
                Edit("4 * (", "3 * ("),
            "Only the norms at the ends of the two pre-norm stacks are missing.": Edit(" + end", ""),
            "You count one matrix of the vocabulary, tied or not.": Edit("(1 if tied else 3)", "1"),
            "Where nothing is shared, the generator has a matrix as well, beside the two embeddings.":
                Edit("else 3", "else 2"),
            "The encoder lacks the norm at its end; a pre-norm stack has one, encoder and decoder alike.":
                Edit("2 * norm) + end", "2 * norm)"),
            "A norm has a scale and a shift for every feature.": Edit("norm = 2 * d_model", "norm = d_model"),
            "Tied and not tied are exchanged: tied is one matrix, not tied are three.":
                Edit("1 if tied else 3", "3 if tied else 1"),
            "A decoder layer has three norms, one for each sub-layer.": Edit("3 * norm", "2 * norm"),
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
        "08.gradient",
        backward_passes,
        {
            "A token that occurs several times gets the gradient of one place only: "
            "with repeated indices, += does not add them all.":
                Edit(".index_add_(0, ", "[", ".flatten(), ", "] += (", ".flatten(0, 1))", ")"),
            "The embedded tokens are √d_model times the rows, so the rows get √d_model times their gradients.":
                Edit("math.sqrt(hidden.size(-1))", "1"),
            "Here the generator's part is scaled as well; only the embeddings multiply by √d_model.":
                Edit("scale * ", "", "return gradient", "return scale * gradient"),
            "The generator's part is missing: it reaches every row, from every place.": Edit(".T @", ".T * 0 @"),
            "This is the generator's part alone; source and target are read with the same matrix.":
                Edit("scale * ", "0 * "),
            "The decoder's input is missing: the target is read with the same matrix.":
                Edit("scale * from_tgt", "0 * from_tgt"),
            "You divide by √d_model. In the backward pass the factor multiplies once more.":
                Edit("math.sqrt(hidden.size(-1))", "hidden.size(-1) ** -0.5"),
            "You divide by the number of sentences. It is a sum over all places.":
                Edit("return gradient", "return gradient / len(src)"),
        },
        forbidden=(torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward),
        loops=False,
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
