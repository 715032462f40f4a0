"""Answers to assignment 10: differently written right ones, and plausible wrong ones with the hint that they get."""

import math
from collections import Counter, defaultdict
from itertools import groupby

import sacrebleu
import torch

from course_lib.data import BucketedBatches

# 10.batches


def batches_with_buffer(lengths, budget):
    done, group = [], []
    for length, index in sorted((length, index) for index, length in enumerate(lengths)):
        if group and length * (len(group) + 1) > budget:
            done.append(group)
            group = []
        group.append(index)
    return [*done, group]


def batches_by_cutting(lengths, budget):
    order, cuts = sorted(range(len(lengths)), key=lambda i: lengths[i]), []
    while order:
        size = 1
        while size < len(order) and (size + 1) * lengths[order[size]] <= budget:
            size += 1
        cuts.append(order[:size])
        order = order[size:]
    return cuts


def batches_by_tensor(lengths, budget):
    values, order = torch.tensor(lengths).sort(stable=True)
    number, size, numbers = 0, 0, []
    for length in values.tolist():
        number, size = (number, size + 1) if (size + 1) * length <= budget or size == 0 else (number + 1, 1)
        numbers.append(number)
    pairs = zip(numbers, order.tolist(), strict=True)
    return [[index for _, index in group] for _, group in groupby(pairs, key=lambda pair: pair[0])]


def buffered(sort=True, cost=lambda group: len(group) * max(group), closed=True, over=lambda c, b: c > b):
    """The usual loop with a buffer, and what can go wrong in it."""

    def answer(lengths, budget):
        numbered = list(enumerate(lengths))
        if sort:
            numbered.sort(key=lambda item: item[1])
        done, group = [], []
        for index, length in numbered:
            if group and over(cost([lengths[i] for i in group] + [length]), budget):
                done.append(group)
                group = []
            group.append(index)
        return [*done, group] if closed else done

    return answer


def batches_without_long_ones(lengths, budget):
    short = [index for index, length in enumerate(lengths) if length <= budget]
    found = batches_with_buffer([lengths[i] for i in short], budget) if short else []
    return [[short[i] for i in group] for group in found]


def batches_of_one_size(lengths, budget):
    order, found = sorted(range(len(lengths)), key=lambda i: lengths[i]), []
    size = budget // max(lengths) or 1
    while order:
        found, order = [*found, order[:size]], order[size:]
    return found


def batches_that_open_empty(lengths, budget):
    done, group = [], []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[index] * (len(group) + 1) > budget:
            done.append(group)
            group = []
        group.append(index)
    return [*done, group]


def longest_first(lengths, budget):
    return [group[::-1] for group in batches_by_cutting(lengths, budget)][::-1]


def batches_of_lengths(lengths, budget):
    return [[lengths[index] for index in group] for group in batches_by_cutting(lengths, budget)]


def batches_of_the_library(lengths, budget):
    """Sizes of the library's batches; it shuffles sentences of equal length, so their indices are dealt out again."""
    pairs = [([5] * length, [5] * (length - 1)) for length in lengths]
    plan = BucketedBatches(pairs, budget).plan(0)
    spans = [sorted(lengths[index] for index in group) for group in plan]
    order = iter(sorted(range(len(lengths)), key=lambda index: (lengths[index], index)))
    return [[next(order) for _ in span] for span in sorted(spans, key=lambda s: (s[0], s[-1], -len(s)))]


# 10.accuracy


def accuracy_with_masks(logits, tgt_out, pad_id):
    real = tgt_out != pad_id
    hit = logits.argmax(dim=-1) == tgt_out
    return (hit & real).sum() / real.sum(), (hit | ~real).all(dim=1).float().mean()


def accuracy_by_mistakes(logits, tgt_out, pad_id):
    wrong = ((logits.max(-1).indices != tgt_out) & (tgt_out != pad_id)).sum(1)
    return 1 - wrong.sum() / (tgt_out != pad_id).sum(), (wrong == 0).float().mean()


def accuracy_of_filled(logits, tgt_out, pad_id):
    real = tgt_out.ne(pad_id)
    guesses = torch.where(real, logits.argmax(2), tgt_out)  # padding counts as guessed
    same = guesses.eq(tgt_out).float()
    return (same * real).sum() / real.float().sum(), same.prod(dim=1).mean()


def accuracy_of_picked(logits, tgt_out, pad_id):
    real = tgt_out != pad_id
    tokens = (logits[real].argmax(dim=-1) == tgt_out[real]).float().mean()
    sentences = [torch.equal(logits[i][real[i]].argmax(-1), tgt_out[i][real[i]]) for i in range(len(tgt_out))]
    return tokens, torch.tensor(sentences, device=logits.device).float().mean()


def accuracy_by_prediction(logits, tgt_out, pad_id):
    guesses = logits.argmax(-1)
    written = guesses != pad_id
    return (written & (guesses == tgt_out)).sum() / written.sum(), accuracy_with_masks(logits, tgt_out, pad_id)[1]


def accuracy_without_mask(logits, tgt_out, pad_id):
    hit = (logits.argmax(-1) == tgt_out).float()
    return hit.mean(), hit.min(dim=1).values.mean()


def accuracy_with_padding_above(logits, tgt_out, pad_id):
    hit, real = logits.argmax(-1) == tgt_out, tgt_out != pad_id
    return hit.sum() / real.sum(), (hit.sum(1) >= real.sum(1)).float().mean()


def accuracy_of_strict_sentences(logits, tgt_out, pad_id):
    return accuracy_with_masks(logits, tgt_out, pad_id)[0], accuracy_without_mask(logits, tgt_out, pad_id)[1]


def accuracy_by_sentence(logits, tgt_out, pad_id):
    real = (tgt_out != pad_id).float()
    hit = (logits.argmax(-1) == tgt_out).float() * real
    return (hit.sum(1) / real.sum(1)).mean(), (hit.sum(1) == real.sum(1)).float().mean()


def accuracy_of_any(logits, tgt_out, pad_id):
    hit = (logits.argmax(-1) == tgt_out) & (tgt_out != pad_id)
    return hit.sum() / (tgt_out != pad_id).sum(), hit.any(1).float().mean()


# 10.clipped


def clipped_by_union(output, references, n):
    def counts(words):
        return Counter(zip(*(words[start:] for start in range(n)), strict=False))

    most = Counter()
    for reference in references:
        most |= counts(reference)
    mine = counts(output)
    return (mine & most).total(), mine.total()


def clipped_by_counting(output, references, n):
    def cut(words):
        return [" ".join(words[i : i + n]) for i in range(0, max(0, len(words) - n + 1))]

    mine, found = cut(output), 0
    for ngram in set(mine):
        found += min(mine.count(ngram), max(cut(reference).count(ngram) for reference in references))
    return found, len(mine)


def clipped_by_crossing_out(output, references, n):
    """Goes through the output and counts an n-gram as long as some reference has more of it."""
    used, found, total = defaultdict(int), 0, 0
    for start in range(len(output) - n + 1):
        ngram = output[start : start + n]
        had = [sum(words[i : i + n] == ngram for i in range(len(words))) for words in references]
        total += 1
        used[tuple(ngram)] += 1
        found += used[tuple(ngram)] <= max(had)
    return found, total


def ngram_list(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def unclipped(output, references, n):
    known = {ngram for reference in references for ngram in ngram_list(reference, n)}
    mine = ngram_list(output, n)
    return sum(ngram in known for ngram in mine), len(mine)


def clipped_by_sum(output, references, n):
    mine, theirs = Counter(ngram_list(output, n)), Counter()
    for reference in references:
        theirs += Counter(ngram_list(reference, n))
    return sum((mine & theirs).values()), sum(mine.values())


def clipped_by_first(output, references, n):
    return clipped_by_union(output, references[:1], n)


def clipped_sets(output, references, n):
    mine, known = dict.fromkeys(ngram_list(output, n)), sum((ngram_list(words, n) for words in references), [])
    return sum(ngram in known for ngram in mine), len(mine)


def clipped_with_formula(output, references, n):
    return clipped_by_counting(output, references, n)[0], 1 + len(output) - n


def clipped_recall(output, references, n):
    return clipped_by_union(output, references, n)[0], len(ngram_list(references[0], n))


def clipped_share(output, references, n):
    found, total = clipped_by_union(output, references, n)
    return found / max(total, 1)


def clipped_words(output, references, n):
    return clipped_by_union(output, references, 1)


def clipped_bags(output, references, n):
    def ngrams(words):
        return Counter(tuple(sorted(words[start : start + n])) for start in range(len(words) - n + 1))

    tables = [ngrams(reference) for reference in references]
    return sum(min(k, max(table[ngram] for table in tables)) for ngram, k in ngrams(output).items()), max(
        len(output) - n + 1, 0
    )


def clipped_best_reference(output, references, n):
    """The reference that fits best, alone."""
    return max(clipped_by_union(output, [reference], n) for reference in references)


def clipped_of_the_library(output, references, n):
    metric = sacrebleu.BLEU(tokenize="none", force=True)
    score = metric.corpus_score([" ".join(output)], [[" ".join(words)] for words in references])
    return score.counts[n - 1], score.totals[n - 1]


# 10.bleu


def bleu_by_sums(matches, totals, output_lengths, reference_lengths):
    precisions = matches.sum(dim=0) / totals.sum(dim=0)
    brevity = (1 - reference_lengths.sum() / output_lengths.sum()).clamp(max=0).exp()
    return 100 * brevity * precisions.log().mean().exp()


def bleu_by_root(matches, totals, output_lengths, reference_lengths):
    product = (matches.sum(0).float() / totals.sum(0).float()).prod()
    ratio = reference_lengths.sum() / output_lengths.sum()
    return torch.exp(torch.minimum(1 - ratio, torch.zeros_like(ratio))) * product ** (1 / 4) * 100


def bleu_with_if(matches, totals, output_lengths, reference_lengths):
    found, possible = matches.sum(0), totals.sum(0)
    ours, theirs = output_lengths.sum().item(), reference_lengths.sum().item()
    if (found == 0).any():
        return torch.tensor(0.0)
    logs = [math.log(m / t) for m, t in zip(found.tolist(), possible.tolist(), strict=True)]
    return torch.tensor(100 * math.exp(sum(logs) / 4 + min(0, 1 - theirs / ours)))


def bleu_of_one_row(matches, totals, output_lengths, reference_lengths):
    """The planted code, asked for a corpus that is one long sentence."""
    matches, totals = matches.sum(0, keepdim=True), totals.sum(0, keepdim=True)
    ours, theirs = output_lengths.sum()[None], reference_lengths.sum()[None]
    brevity = (1 - theirs / ours).clamp(max=0).exp()
    return (100 * brevity * (matches / totals).log().mean(dim=1).exp()).mean()


def bleu_of_sentences(matches, totals, output_lengths, reference_lengths):
    rows = zip(matches, totals, output_lengths, reference_lengths, strict=True)
    return torch.stack([bleu_by_root(m[None], t[None].clamp(min=1), o[None], r[None]) for m, t, o, r in rows])


def bleu_mean(matches, totals, output_lengths, reference_lengths):
    return bleu_of_sentences(matches, totals, output_lengths, reference_lengths).mean()


def bleu_weighted(matches, totals, output_lengths, reference_lengths):
    weights = output_lengths / output_lengths.sum()
    return weights @ bleu_of_sentences(matches, totals, output_lengths, reference_lengths)


def bleu_with(precisions=None, brevity=None):
    """A right score in which one part is made in another way."""

    def answer(matches, totals, output_lengths, reference_lengths):
        each = (precisions or (lambda m, t: m.sum(0) / t.sum(0)))(matches, totals)
        short = (brevity or (lambda o, r: (1 - r.sum() / o.sum()).clamp(max=0).exp()))(
            output_lengths, reference_lengths
        )
        return 100 * short * each.prod() ** (1 / each.numel())

    return answer


def mean_of_shares(matches, totals):
    return torch.stack([(m / t.clamp(min=1)).mean() for m, t in zip(matches.T, totals.T, strict=True)])


def mean_of_penalties(ours, theirs):
    ratios = theirs / ours
    return torch.where(ratios > 1, (1 - ratios).exp(), 1.0).mean()


def smoothed(matches, totals):
    return (matches.sum(0) + 1) / (totals.sum(0) + 1)


def bleu_by_arithmetic_mean(matches, totals, output_lengths, reference_lengths):
    brevity = (1 - reference_lengths.sum() / output_lengths.sum()).clamp(max=0).exp()
    return 100 * brevity * (matches.sum(0) / totals.sum(0)).mean()


def bleu_of_the_library(matches, totals, output_lengths, reference_lengths):
    counts = matches.sum(0).tolist(), totals.sum(0).tolist()
    lengths = output_lengths.sum().item(), reference_lengths.sum().item()
    return torch.tensor(sacrebleu.BLEU.compute_bleu(*counts, *lengths, smooth_method="none").score)


# 10.predict

PREDICTED = {
    "the share of words found": 0.5,
    "the brevity penalty": 1.0,
    "the BLEU score": 0.0,
    "the share of padding": 0.2,
    "the share of sentences": 0.81,
    "the precision of the corpus": 0.25,
}


def predicted(**changed):
    names = dict(zip(("words", "brevity", "bleu", "padding", "sentences", "corpus"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


RIGHT = {
    "10.batches": [batches_with_buffer, batches_by_cutting, batches_by_tensor],
    "10.accuracy": [accuracy_with_masks, accuracy_by_mistakes, accuracy_of_filled],
    "10.clipped": [clipped_by_union, clipped_by_counting, clipped_by_crossing_out],
    "10.bleu": [bleu_by_sums, bleu_by_root, bleu_with_if, bleu_of_one_row],
    "10.predict": [PREDICTED, predicted(words=2 / 4, sentences=0.9**2), predicted(brevity=1, padding=1 - 12 / 15)],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "10.batches": [
        (buffered(sort=False), "order of the corpus"),
        (buffered(cost=sum), "count real tokens"),
        (buffered(over=lambda cost, budget: cost >= budget), "exactly the budget"),
        (buffered(closed=False), "last batch is missing"),
        (batches_without_long_ones, "longer than the budget is lost"),
        (batches_of_one_size, None),
        (batches_that_open_empty, None),
        (longest_first, None),
        (batches_of_lengths, None),
        (lambda lengths, budget: [[index] for index in range(len(lengths))], None),
    ],
    "10.accuracy": [
        (accuracy_of_picked, "one by one"),
        (accuracy_by_prediction, None),
        (lambda *inputs: (accuracy_without_mask(*inputs)[0], accuracy_with_masks(*inputs)[1]), "above and below"),
        (accuracy_with_padding_above, None),
        (accuracy_of_strict_sentences, "whatever is predicted"),
        (accuracy_without_mask, "both shares"),
        (accuracy_by_sentence, "mean over sentences"),
        (lambda *inputs: accuracy_by_mistakes(*inputs)[::-1], None),
        (accuracy_of_any, None),
        (lambda logits, tgt_out, pad_id: accuracy_with_masks(logits, tgt_out, 0), None),
        (lambda logits, tgt_out, pad_id: accuracy_with_masks(logits, tgt_out, pad_id)[0], None),
        (lambda logits, tgt_out, pad_id: accuracy_with_masks(-logits, tgt_out, pad_id), None),
    ],
    "10.clipped": [
        (unclipped, "Nothing is clipped"),
        (clipped_by_sum, "added up"),
        (clipped_by_first, None),
        (clipped_sets, "counts once"),
        (clipped_with_formula, "negative number"),
        (clipped_recall, None),
        (clipped_share, None),
        (clipped_words, None),
        (clipped_best_reference, None),
        (clipped_bags, None),
    ],
    "10.bleu": [
        (bleu_mean, "mean of scores, one for each"),
        (bleu_weighted, None),
        (bleu_with(precisions=mean_of_shares), "Add up the counts first"),
        (bleu_with(brevity=mean_of_penalties), "one length"),
        (bleu_with(precisions=lambda m, t: m.sum() / t.sum()), "one heap"),
        (bleu_with(precisions=smoothed), None),
        (bleu_with(brevity=lambda o, r: (1 - r.sum() / o.sum()).exp()), None),
        (bleu_with(brevity=lambda o, r: 1), None),
        (bleu_by_arithmetic_mean, None),
        (lambda *counts: bleu_by_sums(*counts) / 100, None),
    ],
    "10.predict": [
        (predicted(words=1.0), "each counts once"),
        (predicted(brevity=0.9), "too short"),
        (predicted(sentences=0.9), "both of its tokens"),
        (predicted(corpus=0.5), "mean of two precisions"),
        (predicted(bleu=None), None),
        (predicted(padding=0.25), None),
        ({"the share of padding": 0.2}, None),
    ],
}

# The library's own functions, with the same inputs and results; they look at numbers, so not on the device "meta".
LIBRARY = {
    "10.batches": batches_of_the_library,
    "10.clipped": clipped_of_the_library,
    "10.bleu": bleu_of_the_library,
}
