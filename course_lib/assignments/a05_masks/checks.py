"""Checks of assignment 05: masks, from ids to three attentions, into the softmax, and how to see that one is tight."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

FINISHED = (F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward)
REAL_ROWS = "(tgt_in != pad_id)[:, None, :, None]"
LOOK = "not mask.any(dim=-1).all()"
MASKED = "scores.masked_fill(~mask, -math.inf)"
JACOBIAN = "torch.autograd.functional.jacobian(layer, x)"
FOUND = "(jacobian[0, :, :, 0] != 0).any(dim=-1).any(dim=1)"


def looking_or_not(*slips):
    """Each slip is made by who looks for queries with nothing to attend to, and by who does not."""
    return tuple(Edit(*slip, *look) for slip in slips for look in ((), (LOOK, "False")))


def padded_ids(generator, lengths, length, pad_id):
    """Ids (batch, length) of sentences of these lengths, padded on the right."""
    ids = torch.randint(10, 100, (len(lengths), length), generator=generator)
    ids[ids == pad_id] += 1
    for sentence, end in enumerate(lengths):
        ids[sentence, end:] = pad_id
    return ids


def pairs_of_sentences(generator):
    """Sources and targets, equally long and not, with <pad> of different ids."""
    sources = [([4, 2, 5], 5), ([3], 4), ([2, 3], 4), ([5, 1], 5)]
    targets = [([3, 6, 2], 6), ([2], 3), ([4, 2], 4), ([2, 3], 3)]
    return [
        (padded_ids(generator, *src, pad_id), padded_ids(generator, *tgt_in, pad_id), pad_id)
        for src, tgt_in, pad_id in zip(sources, targets, (0, 200, 0, 50), strict=True)
    ]


def masked_scores(generator):
    """Ordinary ones, very large and very small ones, hidden ones that are no numbers, and queries with nothing."""
    scores = partial(torch.randn, generator=generator)

    def real(lengths, keys):
        return (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None, None, :]

    causal = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
    large = scores(1, 2, 3, 5)
    large[..., 4] = torch.tensor([200.0, math.inf, math.nan])
    return [
        (scores(2, 3, 4, 6), real([6, 3], 6)),
        (scores(2, 2, 4, 4), causal),
        (scores(1, 2, 3, 6) + torch.tensor([500.0, -500.0, -1e5])[:, None], real([4], 6)),
        (large, real([4], 5)),
        (scores(2, 2, 4, 4), causal & real([0, 1], 4).logical_not()),  # the second sentence is padded on the left
        (scores(2, 1, 3, 4), torch.ones(2, 1, 3, 4, dtype=torch.bool).index_fill(2, torch.tensor([1]), False)),
        (scores(3, 1, 2, 4), real([4, 0, 1], 4)),
        (scores(1, 2, 1, 3), real([0], 3)),
        (scores(2, 2, 3, 6).half(), real([4, 2], 6)),
        (scores(3, 2, 4, 4), causal & real([4, 2, 3], 4)),
    ]


def weights_or_error(answer, scores, mask):
    """What comes of it. Whoever looks at a mask on the device "meta" sees nothing, and is taken to return weights."""
    try:
        weights = answer(scores, mask)
    except ValueError:
        return {"outcome": "raises ValueError", "weights": None, "weights == 0": None}
    except RuntimeError as error:
        if "item() cannot be called on meta tensors" not in str(error):
            raise
        weights = torch.empty_like(scores)
    zero = weights == 0 if torch.is_tensor(weights) else None
    return {"outcome": "returns", "weights": weights, "weights == 0": zero}


def scores_of_sentences(generator):
    """As many sentences as keys first: there even a (batch, keys) mask fits, by accident. Scores go down to −2000."""
    cases = []
    shapes = [([4, 2, 3, 1], 4, 2, 0), ([3], 5, 1, 200), ([2, 5, 3], 5, 2, 0), ([6, 4], 6, 3, 50)]
    for ends, length, heads, pad_id in shapes:
        scores = torch.randn(len(ends), heads, length, length, generator=generator) - 10 * pad_id
        cases.append((scores, padded_ids(generator, ends, length, pad_id), pad_id))
    return cases


def inputs_and_masks(generator):
    """x, the mask of the layer's attentions, how many there are, and what else the layer does."""
    x = partial(torch.randn, 1, generator=generator)
    square = torch.ones(5, 5, dtype=torch.bool)
    some = (torch.rand(6, 6, generator=generator) < 0.4) | torch.eye(6, dtype=torch.bool)
    return [
        (x(5, 4), square.tril(), 1, "plain"),
        (x(5, 4), square.tril(1), 2, "plain"),
        (x(5, 8), square, 1, "plain"),
        (x(5, 8), square.tril(), 2, "centered"),
        (x(6, 4), some, 1, "centered"),
        (x(5, 4), square.tril(), 1, "last feature"),
        (x(6, 4).round(), some, 1, "plain"),
        (x(6, 4), some, 1, "plain"),
    ]


def seen(answer, x, mask, attentions, kind):
    """What the answer finds out about such a layer."""

    def layer(x):
        x = x * torch.eye(x.size(-1)).to(x)[-1] if kind == "last feature" else x
        for _ in range(attentions):
            scores = x @ x.transpose(1, 2) / x.size(-1) ** 0.5
            x = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ x
            x = x - x.mean(dim=-1, keepdim=True) if kind == "centered" else x
        return x

    return answer(layer, x)


EXERCISES = (
    Exercise(
        "05.decoder",
        pairs_of_sentences,
        {
            "Each position sees one place too many: the answer.": Edit("<= place", "- 1 <= place"),
            "No position may attend to itself here, so the first one has nothing.": Edit("<= place", "< place"),
            "A query sees itself and the future here; it is the past that it may.": Edit("<= place", ">= place"),
            "The self-attention hides the future, but the padding of the target is open.":
                Edit("tgt_in != pad_id", "tgt_in == tgt_in"),
            "The rows of the padding are closed, so they have nothing to attend to. A mask hides keys.":
                Edit("& causal", f"& causal & {REAL_ROWS}", "cross.expand", f"(cross & {REAL_ROWS}).expand"),
            "The second mask hides the target's padding; the keys of cross-attention are the source's.":
                Edit("src != pad_id", "tgt_in != pad_id"),
            "The cross mask lies on its side: its rows are the queries, which come from the target.":
                Edit(", -1)", ", -1).mT"),
            "These say where a query may *not* attend; here True means: may.": Edit("own, cross", "~own, ~cross"),
            "A dimension is missing: the 1 stands for the heads, (batch, 1, queries, keys).":
                Edit("[:, None, None, :]", "[:, None, :]", "expand(-1, ", "expand("),
            "A mask is torch.bool.": Edit("own, cross", "own.float(), cross.float()"),
            "You compare with 0. The id of <pad> is `pad_id`, whatever it is.": Edit("!= pad_id", "!= 0"),
            "Ids below pad_id are real tokens too. Only pad_id itself is padding.": Edit("!= pad_id", "> pad_id"),
            "The cross mask has one row. It is asked for with one for each target position; "
            "`expand` costs no memory.": Edit("cross.expand(-1, -1, tgt_in.size(1), -1)", "cross"),
            "The cross mask is causal here. The whole source is there from the beginning.":
                Edit(", -1)", ", -1).tril()"),
            "The two masks are the other way round.": Edit("return own", "return (own", ", -1)", ", -1))[::-1]"),
        },
        loops=False,
    ),
    Exercise(
        "05.open",
        mistakes={
            "The diagonal is open too: a query attends to itself.":
                Edit("1 + 2 + 3 + 4 + 5 + 6", "15", "1 + 2 + 3 + 4 + 5 + 5", "15"),
            "The row of the padding stays open: five real tokens.": Edit("5 + 5", "5"),
            "All 6 queries look, also the padded one: the mask hides keys.": Edit("6 * 4", "5 * 4"),
            "That is one query's share; the mask has one row for all 6 queries.": Edit("6 * 4", "4"),
            "In torch.nn's attention, True means hidden.":
                Edit("False, False, False, False, True, True, True", "True, True, True, True, False, False, False"),
            "Each attention looks at outputs that looked ahead too.": Edit('tril(1)": 3', 'tril(1)": 1'),
            "A causal mask hides what comes later.": Edit('schläft": False', 'schläft": True'),
            "One row is enough for all queries: it is broadcast.": Edit("(1, 1, 1, 7)", "(1, 1, 6, 7)"),
            "A query may attend to itself, so one key is left.": Edit('left": 1', 'left": 0'),
        },
        ask=value,
    ),
    Exercise(
        "05.weights",
        masked_scores,
        {
            "Hide before the softmax: after it, a large or infinite hidden score has taken all the weight.":
                looking_or_not(("return torch.softmax", "weights = torch.softmax", MASKED, "scores", ", dim=-1)",
                                ", dim=-1) * mask\n    return weights / weights.sum(dim=-1, keepdim=True)")),
            "The weights of a query do not sum to 1: they are hidden after the softmax, and their share is lost.":
                looking_or_not((MASKED, "scores", ", dim=-1)", ", dim=-1) * mask"),
                               (MASKED, "scores", ", dim=-1)", ", dim=-1).masked_fill(~mask, 0)")),
            "−∞ is added to the hidden scores, and ∞ − ∞ is NaN. Put it in their place.":
                looking_or_not(("scores.masked", "scores + (0 * scores).masked")),
            "A hidden score of 0 is a score like any other: e⁰ = 1.": looking_or_not(("-math.inf", "0")),
            "The hidden keys get all the weight: here True means may attend.": looking_or_not(("~mask", "mask")),
            "float16 ends at 65,504, so it has no −1e9. It has −∞.": looking_or_not(("-math.inf", "-1e9")),
            "A row of −∞ becomes NaN. Look for one first, and raise.": Edit(LOOK, "False"),
            "It raises only if all is hidden; one query with nothing is enough.": Edit(LOOK, "not mask.any()"),
            "A query with nothing to attend to gets zeros here, and nobody is told. Raise ValueError.":
                Edit(LOOK, "False", ", dim=-1)", ", dim=-1).nan_to_num(0.0)"),
            "It raises something else; a ValueError is asked for.": Edit("ValueError", "AssertionError"),
            "A hidden score of −30 still gets weight where the others are low. It has to be −∞.":
                Edit("-math.inf", "-30.0"),
            "You look at the first query only. Any of them may have nothing.":
                Edit("mask.any(dim=-1).all()", "mask.any(dim=-1)[..., 0].all()"),
            "The exponential of a large score is infinite, and of a small one 0. Let torch.softmax do it.":
                Edit("torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)",
                     "torch.where(mask, scores.exp(), 0) / torch.where(mask, scores.exp(), 0).sum(-1, True)"),
            "The weights have another dtype than the scores.": Edit("scores.masked", "scores.float().masked"),
        },
        ask=weights_or_error,
        forbidden=FINISHED,
        tolerance=1e-3,  # float16 has no more
    ),
    Exercise(
        "05.encoder",
        scores_of_sentences,
        {
            "Real tokens still attend to padding. Which axis of the scores does the padding of the mask meet?": PLANTED,
            "−∞ shows what −1e9 concealed: whole rows are hidden, and no column of the padding.":
                Edit("unsqueeze(2)", "unsqueeze(3)"),
            "The columns are right. But the rows of the padding are closed too, and they should stay open.":
                Edit("~real", "~(real & real.mT)", "-math.inf", "-1e9"),
            "The columns are right. But the padded queries have nothing left, so they are NaN.":
                Edit("~real", "~(real & real.mT)"),
            "A mask (batch, keys) meets (queries, keys), and fits by accident. It needs two more axes.":
                Edit(".unsqueeze(1).unsqueeze(2)", "", "-math.inf", "-1e9"),
            "Now it is the real tokens that are hidden.": Edit("~real", "real", "-math.inf", "-1e9"),
            "Nothing is hidden here.": Edit("scores.masked_fill(~real, -math.inf)", "scores"),
            "A hidden score of 0 is a score like any other: e⁰ = 1.": Edit("-math.inf", "0.0"),
            "Hidden scores are lower than the others here only by accident. They have to be −∞.":
                Edit("-math.inf", "-20.0"),
            "Ids below pad_id are real tokens too. Only pad_id itself is padding.": Edit("!=", ">"),
            "You compare with 0. The id of <pad> is `pad_id`, whatever it is.": Edit("!= pad_id", "!= 0"),
        },
        forbidden=FINISHED,
    ),
    Exercise(
        "05.sees",
        inputs_and_masks,
        {
            "Where features sum to 0, the gradient of their sum is 0 as well. Ask each by itself.":
                Edit("(layer, x)  #", "(lambda x: layer(x).sum(-1, True), x)  #", " != 0", ".abs() > 1e-6"),
            "You add the same number to all features, and a centered layer takes it away again.":
                Edit(JACOBIAN, "[layer(x + ones) - layer(x) for ones in torch.eye(x.size(1)).to(x).unsqueeze(-1)]",
                     FOUND, "(torch.cat(jacobian).abs() > 1e-5).any(dim=-1).T"),
            "Rows and columns are exchanged: the outputs are the rows.": Edit(".any(dim=1)", ".any(dim=1).T"),
            "This is what a causal layer would do; find out what this one does.":
                Edit(FOUND, "torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril()"),
            "You look at the first feature of the inputs alone.": Edit("[0, :, :, 0]", "[0, :, :, 0, :, :1]"),
            "You look at the first feature of the outputs alone.": Edit("[0, :, :, 0]", "[0, :, :1, 0]"),
            "This says whether any output depends on an input; each output has a row of its own.":
                Edit(".any(dim=1)", ".any(dim=1).any(dim=0).expand(x.size(1), -1)"),
            "This says how much; whether is asked for, in torch.bool.":
                Edit("(jacobian[0, :, :, 0] != 0).any(dim=-1).any(dim=1)",
                     "jacobian.square().sum(dim=(0, 2, 3, 5)).sqrt()"),
        },
        ask=seen,
        any_device=False,  # what an output depends on, only its numbers say
    ),
)
