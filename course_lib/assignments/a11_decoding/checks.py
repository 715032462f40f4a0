"""Checks of assignment 11: a vocabulary in pieces, top-p, a step of a beam, and outputs that have finished."""

import math

import torch
import torch.nn.functional as F

from course_lib.checks import PLANTED, Edit, Exercise, value

FINISHED = (
    *(torch.softmax, torch.Tensor.softmax, torch.log_softmax, torch.Tensor.log_softmax, torch.logsumexp),
    *(torch.Tensor.logsumexp, torch.logaddexp, torch.Tensor.logaddexp, F.softmax, F.log_softmax, F.cross_entropy),
)
BACK_IN_ORDER = "late.gather(-1, order.argsort(dim=-1))"

# An empty output finishes first, Ja is the most probable, and with a length penalty a longer one wins.
PROBABILITIES = {
    "<s>": {"Ich": 0.55, "Ja": 0.35, "</s>": 0.1},
    "Ja": {"Ich": 0.2, "</s>": 0.8},
    "Ich": {"laufe": 0.52, "spiele": 0.48},
    "laufe": {"gern": 0.9, "</s>": 0.1},
    "spiele": {"gern": 0.1, "</s>": 0.9},
    "gern": {"Ja": 0.05, "</s>": 0.95},
}
# The empty output is the most probable beginning; a beam that shrinks by it misses Ja, which is the best.
WIDE = {
    "<s>": {"</s>": 0.34, "Ich": 0.335, "Ja": 0.325},
    "Ich": {"Ich": 0.5, "Ja": 0.4, "</s>": 0.1},
    "Ja": {"</s>": 0.9, "Ich": 0.05, "Ja": 0.05},
}

# One output of three words, counting its </s>.
CHAIN = {"<s>": {"Ich": 1.0}, "Ich": {"laufe": 1.0}, "laufe": {"</s>": 1.0}}


def vocabularies(generator):
    """Logits and how many come at a time: sums that would overflow, maxima that rise, fall and stay in one block."""
    cases = []
    shapes = (1, 6, 3, 0), (2, 7, 3, 400), (3, 9, 4, -400), (4, 11, 2, 0), (3, 5, 8, 0)
    for batch, vocab, size, slope in shapes:
        logits = 2 * torch.randn(batch, vocab, generator=generator) + slope * torch.linspace(-1, 1, vocab)
        logits[0] -= 900 * (slope == 0)
        if batch > 2:
            logits[1, 1::2] = -math.inf
            logits[-1, -1] += 12
        cases.append((logits, size))
    return cases


def streamed(answer, logits, size):
    """What the answer makes of the blocks, which all come in the same memory."""
    memory = torch.empty_like(logits[:, :size])

    def blocks():
        for start in range(0, logits.size(1), size):
            block = memory[:, : logits[:, start : start + size].size(1)]
            yield block.copy_(logits[:, start : start + size])
            memory.fill_(math.nan)

    return answer(blocks())


def rows_of_logits(generator):
    """Rows that are sure and unsure; in two cases a token that is never written."""
    cases = []
    for rows, vocab, p in ((1, 4, 0.5), (3, 6, 0.8), (2, 9, 0.3), (4, 7, 0.9)):
        logits = 2 * torch.randn(rows, vocab, generator=generator)
        if rows % 2 == 0:
            logits[:, 1] = -math.inf
        if rows > 1:
            logits[0, 2] += 12  # one token has nearly everything
        cases.append((logits, p))
    return cases


def beams(generator):
    """Each hypothesis has logits on a level of its own."""
    cases = []
    for batch, beam_size, vocab in ((1, 1, 5), (1, 3, 4), (2, 3, 6), (3, 2, 7), (2, 4, 9)):
        totals = -4 * torch.rand(batch, beam_size, generator=generator).sort(dim=1).values
        level = 4 * torch.randn(batch, beam_size, 1, generator=generator)
        cases.append((totals, level + torch.randn(batch, beam_size, vocab, generator=generator)))
    return cases


def searches(generator):
    """Two models that are made for it, and some by chance, with beams, penalties and lengths."""
    words = ("Ja", "Ich", "laufe", "spiele", "gern")

    def logarithms(table):
        return {last: {word: math.log(prob) for word, prob in after.items()} for last, after in table.items()}

    def some(count, ending):
        table = {}
        for last in ("<s>", *words[:count]):
            logits = 2 * torch.randn(count + 1, generator=generator)
            logits[-1] += ending
            table[last] = dict(zip((*words[:count], "</s>"), logits.double().log_softmax(0).tolist(), strict=True))
        return table

    return [
        *((logarithms(PROBABILITIES), beam_size, alpha, 6) for beam_size, alpha in ((4, 0.0), (4, 1.0), (3, 1.0))),
        (logarithms(WIDE), 2, 1.0, 6),
        (logarithms(CHAIN), 1, 0.6, 3),
        (logarithms(CHAIN), 1, 0.6, 2),
        (some(3, 1.0), 1, 0.6, 8),
        (some(4, 0.0), 3, 0.6, 5),
        (some(5, 0.5), 4, 1.5, 6),
        (some(5, -99.0), 2, 0.6, 3),
    ]


EXERCISES = (
    Exercise(
        "11.stream",
        vocabularies,
        {
            "The ids count from the beginning of a block. How many tokens came before it?":
                Edit("start + place", "place"),
            "A block is overwritten when the next one comes, and you have kept them. Keep what you need of each.":
                Edit("in blocks", "in list(blocks)"),
            "Each id is the best one of the last block. An earlier block may have had a better one.":
                Edit("torch.where(value > largest, start + place, ids)", "start + place"),
            "The probabilities are shares of the last block alone. The sum has to go through all of them.":
                Edit("total * (largest - newest).exp() + ", ""),
            "The sum so far was made with a smaller maximum. When a larger one comes, it has to shrink.":
                Edit("total * (largest - newest).exp()", "total"),
            "The sum so far shrinks by the wrong factor: it grows here where it has to shrink.":
                Edit("largest - newest", "newest - largest"),
            "The largest logit is taken off nowhere. The exponential of a large logit is infinite.":
                Edit("total * (largest - newest).exp()", "total", "(logits - newest[:, None])", "logits",
                     "-total.log()", "largest - total.log()"),
            "These are probabilities; their logarithms are asked for.": Edit("-total.log()", "1 / total"),
            "These are the largest logits. What is taken off them makes log-probabilities of them.":
                Edit("-total.log()", "largest"),
            "The largest logit so far is 0 at the start. All may be negative: start from −∞.":
                Edit("-math.inf, 0.0", "0.0, 0.0"),
            "The sign is wrong: a log-probability is never above 0.": Edit("-total.log()", "total.log()"),
            "The number of a block times the width of *this* block: the last one may be narrower.":
                Edit("start + place", "start * logits.size(1) + place", "start + logits.size(1)", "start + 1"),
        },
        ask=streamed,
        forbidden=FINISHED,
        loops=lambda logits, size: -(-logits.size(1) // size),
    ),
    Exercise(
        "11.top_p",
        rows_of_logits,
        {
            "What you keep does not reach p. The token that crosses p is kept as well.": Edit(" - probs >= p", " > p"),
            "Your cut is in the order of the probabilities, the logits are in that of the vocabulary. "
            "Put the cut back in order.":
                Edit(BACK_IN_ORDER, "late"),
            "You add up the probabilities in the order of the vocabulary. The most probable tokens come first.":
                Edit(BACK_IN_ORDER, "late", ", order", "", ".sort(dim=-1, descending=True)", ""),
            "You compare each token with p. It is the sum of those that are kept that must reach p.":
                Edit("probs.cumsum(dim=-1) - probs >= p", "probs < p"),
            "These are probabilities. What is kept keeps its logit, and the rest gets −∞.":
                Edit("-math.inf)", "-math.inf).softmax(dim=-1)"),
            "You begin with the least probable tokens.": Edit(", descending=True", ""),
            "A logit of 0 is a logit like any other. What is cut gets −∞.": Edit("-math.inf", "0.0"),
            "The kept ones are probabilities here; they keep their logits.":
                Edit("probs, order", "logits = logits.softmax(dim=-1)\n    probs, order"),
            "You compare each token with 1 − p. It is the sum of those that are kept that must reach p.":
                Edit("probs.cumsum(dim=-1) - probs >= p", "probs < 1 - p"),
        },
        loops=False,
    ),
    Exercise(
        "11.step",
        beams,
        {
            "You add raw logits. Those of two hypotheses cannot be compared; their log-probabilities can.":
                Edit(".log_softmax(dim=-1)", ""),
            "You add probabilities to log-probabilities.": Edit("log_softmax", "softmax"),
            "What came before the new token is forgotten: add it to the totals.": Edit("totals[:, :, None] + ", ""),
            "The totals are right. But in the flat order each hypothesis has as many places as there are tokens.":
                Edit("// vocab", "// beam_size", "% vocab", "% beam_size"),
            "Each hypothesis goes on with its own best token. All continuations of all of them must compete.":
                Edit("grown.flatten", "grown.where(grown == grown.amax(dim=-1, keepdim=True), -math.inf).flatten"),
            "The softmax goes over all hypotheses together. Each hypothesis has a distribution of its own.":
                Edit("logits.log_softmax(dim=-1)", "logits.flatten(1).log_softmax(dim=-1).view_as(logits)"),
            "Log-probabilities add up; they are multiplied here.": Edit("[:, :, None] +", "[:, :, None] *"),
            "The tokens are places in the flat order. Which token is that?":
                Edit("best.indices % vocab", "best.indices"),
        },
    ),
    Exercise(
        "11.finished",
        searches,
        {
            "What finished in an earlier step is still dropped: only the last step's outputs are compared.": PLANTED,
            "The search ends with the first output that finishes. It goes on until beam_size of them have.":
                Edit("len(finished) >= beam_size", "finished"),
            "Outputs that are not among the best beam_size continuations of their step count as finished.":
                Edit("in grown[:beam_size]", "in grown"),
            "The length of an output counts its </s>, too.": Edit("len(words[1:])", "len(words[1:-1])"),
            "Of what has finished, the output with the best score wins, wherever it stands in the list.":
                Edit("in finished:", "in sorted(finished)[-1:]:"),
            "You multiply by the penalty. A log-probability is divided by it.": Edit("total /", "total *"),
            "Finished outputs compete by their scores, not by their bare log-probabilities.":
                Edit(" / ((5 + len(words[1:])) / 6) ** alpha", ""),
            "The beam shrinks by what has finished. The beam_size best others live on.":
                Edit('grown if one[1][-1] != "</s>"][:beam_size]', 'grown[:beam_size] if one[1][-1] != "</s>"]'),
            "The words are asked for without </s>.":
                Edit("return best, best_score", 'return [*best, "</s>"], best_score'),
            "<s> is counted. The length counts what is written, with its </s>.": Edit("len(words[1:])", "len(words)"),
            "It stops one word early: max_len counts the words that are written, </s> included.":
                Edit("range(max_len)", "range(max_len - 1)"),
            "It goes on for one word too many: max_len counts the words that are written, </s> included.":
                Edit("range(max_len)", "range(max_len + 1)"),
        },
    ),
    Exercise(
        "11.predict",
        mistakes={
            "A temperature of 1/2 squares the probabilities.": Edit("0.9", "0.75"),
            "What remains after a cut must sum to 1 again.": Edit("0.75", "0.6"),
            "Two tokens do not reach p; the one that crosses it is kept.": Edit(": 3", ": 2"),
            "The softmax does not notice what is added to all logits.": Edit("0.0", "35"),
            "With alpha 1 the penalty of seven tokens is 2, of one token 1.": Edit(": 7", ": 1"),
        },
        ask=value,
    ),
)
