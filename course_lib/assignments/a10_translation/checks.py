"""Checks of assignment 10: batches by a token budget, shares from one parallel pass, n-gram counts, and BLEU."""

import sacrebleu
import torch
import torch.nn.functional as F

from course_lib.checks import PLANTED, Edit, Exercise, value

COST = "(len(found[-1]) + 1) * lengths[index]"
SHARE = "(hit & real).sum() / real.sum()"
CLIPPED = "min(count, max(table[ngram] for table in tables))"
PRECISIONS = "matches.sum(dim=0) / totals.sum(dim=0)"


def lengths_and_budgets(generator):
    """Few sentences and many, some of them or all longer than the budget."""

    def some(count, longest):
        return torch.randint(1, longest + 1, (count,), generator=generator).tolist()

    return [
        ([3, 5, 4, 3, 5], 10),  # two batches reach the budget exactly, or come near it
        ([9, 8], 5),
        (some(1, 9), 12),
        (some(12, 9), 20),
        ([*some(8, 6), 31, *some(4, 6), 25], 24),  # two are longer than the budget
        (some(20, 12), 36),
    ]


def predictions(generator):
    """Some sentences that are wholly right; padding is predicted once, behind an end, where it must not count."""
    cases = []
    for batch, tgt_len, vocab, pad_id in ((1, 4, 6, 0), (3, 5, 7, 0), (4, 6, 9, 2), (6, 7, 8, 0)):
        lengths = torch.randint(2, tgt_len + 1, (batch,), generator=generator)
        hit = torch.rand(batch, tgt_len, generator=generator) < 0.8
        lengths[0], hit[0] = tgt_len, True
        if batch > 1:
            lengths[1], hit[1, 0] = 2, False
            lengths[2], hit[2] = 3, True
        real = torch.arange(tgt_len) < lengths[:, None]
        tgt_out = torch.randint(3, vocab, (batch, tgt_len), generator=generator).masked_fill(~real, pad_id)
        logits = torch.randn(batch, tgt_len, vocab, generator=generator)
        logits = logits + 9 * F.one_hot(tgt_out, vocab) * (2 * hit - 1)[..., None] * real[..., None]
        logits[..., pad_id] -= 9
        logits[1:2, -1, pad_id] += 99  # a slice, because the first batch has one sentence
        cases.append((logits, tgt_out, pad_id))
    return cases


def outputs_and_references(generator):
    """Words that repeat, in outputs with one reference and with several; one output is shorter than n."""
    words = ("the", "a", "cat", "dog", "sees", "sleeps")

    def some(shortest, longest):
        length = torch.randint(shortest, longest + 1, (), generator=generator)
        return [words[number] for number in torch.randint(len(words), (int(length),), generator=generator)]

    return [
        (["the"] * 4, ["the cat sees the dog".split()], 1),
        ("the the the a".split(), ["the a".split(), "the the cat".split()], 1),
        ("a cat sees a cat".split(), ["a dog sees a dog".split(), "the dog sees a cat".split()], 2),
        (["cat"], ["the cat sleeps".split()], 3),
        (["dog", "sees"], [["sees", "dog"]], 2),
        ("see them now here".split(), ["see the mnow here".split(), "see t hem now".split()], 2),
        ("The Cat sees the cat".split(), ["the cat sees The Cat".split()], 2),
        (some(9, 12), [some(6, 9), some(9, 12)], 1),
        (some(8, 10), [some(8, 10), some(4, 9), some(1, 3)], 2),
        (some(12, 15), [some(12, 15)], 3),
        (some(9, 12), [some(6, 9)], 1),
    ]


def counts_of_corpora(generator):
    """Counts of corpora whose outputs are too long, too short, and some of both."""
    cases = []
    for sentences, shortest, longer in ((1, 6, -1), (3, 2, 2), (6, 1, -1), (9, 3, 1)):
        ours = torch.randint(shortest, 13, (sentences,), generator=generator)
        offsets = torch.randint(-2, 3, (sentences,), generator=generator) + longer
        ours[0], offsets[0] = 12, longer
        if sentences > 1:
            offsets[:2] = torch.tensor([3, -3])
        rates = 0.3 + 0.7 * torch.rand(sentences, 1, generator=generator)
        rates[0] = 0.95
        totals = (ours[:, None] - torch.arange(4)).clamp(min=0)
        matches = (totals * rates ** torch.arange(1, 5)).long()
        if sentences == 3:
            matches[:, 3] = 0  # no four words in a row are right
        cases.append((matches, totals, ours, (ours + offsets).clamp(min=1)))
    return cases


EXERCISES = (
    Exercise(
        "10.batches",
        lengths_and_budgets,
        {
            "These sentences come in the order of the corpus. Sort them by length first: that is what saves padding.":
                Edit(
                    *("sorted(range(len(lengths)), key=lambda index: lengths[index])", "range(len(lengths))"),
                    *(COST, "(len(found[-1]) + 1) * max(lengths[i] for i in [*found[-1], index])"),
                ),
            "These batches count real tokens. Padding fills memory too: each sentence costs as much as the longest.":
                Edit(COST, "sum(lengths[i] for i in [*found[-1], index])"),
            "A batch may cost exactly the budget.": Edit("<= budget", "< budget"),
            "The last batch is missing: nothing comes after it that would close it.":
                Edit("return found", "return found[:-1]"),
            "A sentence that is longer than the budget is lost. It is a batch alone.":
                Edit("return found", "return [batch for batch in found if lengths[batch[-1]] <= budget]"),
            "Each sentence costs as much as the longest of the corpus here; "
            "it costs as much as the longest of its batch.": Edit("* lengths[index]", "* max(lengths)"),
            "An empty batch comes first.": Edit("found = []", "found = [[]]"),
            "The order is the wrong way round: the shortest sentence comes first.":
                Edit("return found", "return [batch[::-1] for batch in found[::-1]]"),
            "These are the lengths; the indices of the sentences are asked for.":
                Edit("return found", "return [[lengths[index] for index in batch] for batch in found]"),
            "Each sentence is a batch alone. Put as many together as the budget admits.":
                Edit("found and", "False and"),
        },
    ),
    Exercise(
        "10.accuracy",
        predictions,
        {
            "The first share is one of all positions. Count the real ones only, above and below the line.":
                Edit(SHARE, "hit.float().mean()"),
            "A sentence is right whatever is predicted where its target has padding.": Edit("(hit | ~real)", "hit"),
            "Padding has to be left out of both shares.": Edit(SHARE, "hit.float().mean()", "(hit | ~real)", "hit"),
            "The first share is a mean over sentences. "
            "Count the tokens of the whole batch: a long sentence has more.":
                Edit(SHARE, "((hit & real).sum(dim=1) / real.sum(dim=1)).mean()"),
            "Padding that is predicted counts as a hit. Only real positions can be.":
                Edit("(hit & real)", "hit", "(hit | ~real).all(dim=1)", "(hit.sum(dim=1) >= real.sum(dim=1))"),
            "One right token makes a sentence right here; all of them must be.":
                Edit("(hit | ~real).all(dim=1)", "(hit & real).any(dim=1)"),
            "You compare with 0. The id of <pad> is `pad_id`, whatever it is.": Edit("!= pad_id", "!= 0"),
            "This takes the least probable token.": Edit("argmax", "argmin"),
        },
        any_dtype=False,  # shares of counts
        loops=False,
    ),
    Exercise(
        "10.clipped",
        outputs_and_references,
        {
            "Nothing is clipped: an n-gram counts at most as often as a reference has it.":
                Edit(CLIPPED, "count * any(table[ngram] for table in tables)"),
            "The references are added up. Clip by the one that has most of the n-gram.": Edit("max(table", "sum(table"),
            "Each different n-gram counts once here. One that the output has twice counts twice.":
                Edit(CLIPPED, "any(table[ngram] for table in tables)", "sum(mine.values())", "len(mine)"),
            "An output with fewer than n words has no n-gram, not a negative number of them.":
                Edit("sum(mine.values())", "len(output) - n + 1"),
            "Only the first reference is looked at.": Edit("in references", "in references[:1]"),
            "The number of n-grams is that of a reference; the output's is asked for.":
                Edit("mine.values()", "tables[0].values()"),
            "These are single words, whatever n is.":
                Edit("start + n", "start + 1", "len(words) - n + 1", "len(words)"),
            "You take the one reference that fits best. "
            "Each n-gram is clipped by the reference that has most of it.":
                Edit("sum(min(count, max(table[ngram] for table in tables)) for ngram, count in mine.items())",
                     "max((mine & table).total() for table in tables)"),
            "The order of the words within an n-gram is lost.":
                Edit("tuple(words[start : start + n])", "tuple(sorted(words[start : start + n]))"),
            "The words are joined without a space, so that different n-grams become the same. Use tuples.":
                Edit("tuple(words[start : start + n])", '"".join(words[start : start + n])'),
            "You change capitals. BLEU compares the words as they are.":
                Edit("tuple(words[start : start + n])", "tuple(map(str.lower, words[start : start + n]))"),
        },
        forbidden=(sacrebleu.BLEU, sacrebleu.corpus_bleu, sacrebleu.sentence_bleu),
    ),
    Exercise(
        "10.bleu",
        counts_of_corpora,
        {
            "This is still a mean of scores, one for each sentence.": PLANTED,
            "These precisions are means over sentences. Add up the counts first, and divide then.":
                Edit(PRECISIONS, "(matches / totals.clamp(min=1)).mean(dim=0)"),
            "The brevity penalty is still one for each sentence. "
            "A corpus has one length, and its references have one.":
                Edit("lengths.sum()", "lengths", ".clamp(max=0).exp()", ".clamp(max=0).exp().mean()"),
            "Here single words, pairs, triples and fours are one heap. Each n has a precision of its own.":
                Edit("sum(dim=0)", "sum()"),
            "You add 1 to the counts. That is a smoothing, and none is asked for.":
                Edit("matches.sum(dim=0) / totals.sum(dim=0)", "(matches.sum(dim=0) + 1) / (totals.sum(dim=0) + 1)"),
            "An output that is too long is rewarded here. The brevity penalty is never above 1.":
                Edit(".clamp(max=0)", ""),
            "The brevity penalty is missing.": Edit("brevity * ", ""),
            "This is the mean of the precisions; their geometric mean is asked for.":
                Edit(".log().mean(dim=-1).exp()", ".mean()"),
            "BLEU is from 0 to 100 here.": Edit("100 * ", ""),
            "The lengths are compared sentence by sentence. Add them up first, as the counts.":
                Edit("reference_lengths.sum() / output_lengths.sum()", "(reference_lengths / output_lengths).mean()"),
        },
        forbidden=(sacrebleu.BLEU.compute_bleu,),
    ),
    Exercise(
        "10.predict",
        mistakes={
            "The reference has each of the two words once, so each counts once.": Edit('found": 0.5', 'found": 1.0'),
            "It punishes only outputs that are too short; precision feels the others.":
                Edit('penalty": 1.0', 'penalty": 0.9'),
            "A sentence is right only if both of its tokens are.": Edit("0.81", "0.9"),
            "Three positions of padding to twelve tokens; asked is their share of all fifteen positions.":
                Edit("0.2,", "0.25,"),
            "That is the mean of two precisions; the corpus has one.": Edit("0.25", "0.5"),
        },
        ask=value,
    ),
)
