"""Answers to assignment 10: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import sacrebleu
import torch

from course_lib.checks import Edit
from course_lib.data import BucketedBatches

COST = "(len(found[-1]) + 1) * lengths[index]"
SHARE, WHOLE = "(hit & real).sum() / real.sum()", "(hit | ~real).all(dim=1)"
MATCHES = "sum(min(count, max(table[ngram] for table in tables)) for ngram, count in mine.items())"
PRECISIONS = "matches.sum(dim=0) / totals.sum(dim=0)"


def batches_with_buffer(lengths, budget):
    done, group = [], []
    for length, index in sorted((length, index) for index, length in enumerate(lengths)):
        if group and length * (len(group) + 1) > budget:
            done.append(group)
            group = []
        group.append(index)
    return [*done, group]


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


def clipped_by_counting(output, references, n):
    def cut(words):
        return [" ".join(words[i : i + n]) for i in range(0, max(0, len(words) - n + 1))]

    mine, found = cut(output), 0
    for ngram in set(mine):
        found += min(mine.count(ngram), max(cut(reference).count(ngram) for reference in references))
    return found, len(mine)


def bleu_with_if(matches, totals, output_lengths, reference_lengths):
    found, possible = matches.sum(0), totals.sum(0)
    ours, theirs = output_lengths.sum().item(), reference_lengths.sum().item()
    if (found == 0).any():
        return torch.tensor(0.0)
    logs = [math.log(m / t) for m, t in zip(found.tolist(), possible.tolist(), strict=True)]
    return torch.tensor(100 * math.exp(sum(logs) / 4 + min(0, 1 - theirs / ours)))


RIGHT = {
    "10.batches": [
        batches_with_buffer,
        Edit(
            "sorted(range(len(lengths)), key=lambda index: lengths[index])",
            "torch.tensor(lengths).sort(stable=True).indices.tolist()",
        ),
        Edit(f"{COST} <= budget", "budget // lengths[index] > len(found[-1])"),
    ],
    "10.accuracy": [
        accuracy_by_mistakes,
        accuracy_of_filled,
        Edit(f"{WHOLE}.float()", "(hit & real).sum(dim=1).eq(real.sum(dim=1)).float()"),
    ],
    "10.clipped": [
        clipped_by_counting,
        Edit(
            "tuple(words[start : start + n]) for start in range(len(words) - n + 1)",
            "zip(*(words[start:] for start in range(n)))",
        ),
        Edit(MATCHES, "sum(max((mine & table)[ngram] for table in tables) for ngram in mine)"),
    ],
    "10.bleu": [
        Edit("precisions.log().mean(dim=-1).exp()", "precisions.prod() ** (1 / 4)"),
        Edit(
            "(1 - reference_lengths.sum() / output_lengths.sum()).clamp(max=0)",
            "torch.relu(reference_lengths.sum() / output_lengths.sum() - 1).neg()",
        ),
        bleu_with_if,
        Edit("sum(dim=0)", "sum(dim=0, keepdim=True)", "mean(dim=-1)", "mean()"),
    ],
    "10.predict": [
        Edit(),
        Edit("0.5", "2 / 4", "0.81", "0.9**2"),
        Edit('penalty": 1.0', 'penalty": 1', "0.2,", "1 - 12 / 15,"),
    ],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "10.batches": [
    ],
    "10.accuracy": [
        (accuracy_of_picked, "one by one"),
        Edit(
            *("return ", "written = logits.argmax(dim=-1) != pad_id\n    return "),
            *(SHARE, "(hit & written).sum() / written.sum()"),
        ),
        Edit(".mean()", f".mean(), {SHARE}", f"return {SHARE}, ", "return "),
        Edit(f", {WHOLE}.float().mean()", ""),
    ],
    "10.clipped": [
        Edit("return matches, sum(mine.values())", "return matches / max(sum(mine.values()), 1)"),
    ],
    "10.bleu": [
        Edit(
            *(PRECISIONS, "matches / totals.clamp(min=1)", "lengths.sum()", "lengths"),
            *("brevity * precisions", "(brevity * output_lengths / output_lengths.sum()) @ precisions"),
        ),
    ],
    "10.predict": [Edit('score": 0.0', 'score": None'), Edit("0.2,", "3,"), {"the share of padding": 0.2}],
}


def library_batches(lengths, budget):
    """Sizes of the library's batches; it shuffles sentences of equal length, so their indices are dealt out again."""
    pairs = [([5] * length, [5] * (length - 1)) for length in lengths]
    plan = BucketedBatches(pairs, budget).plan(0)
    spans = [sorted(lengths[index] for index in group) for group in plan]
    order = iter(sorted(range(len(lengths)), key=lambda index: (lengths[index], index)))
    return [[next(order) for _ in span] for span in sorted(spans, key=lambda s: (s[0], s[-1], -len(s)))]


def library_clipped(output, references, n):
    metric = sacrebleu.BLEU(tokenize="none", force=True)
    score = metric.corpus_score([" ".join(output)], [[" ".join(words)] for words in references])
    return score.counts[n - 1], score.totals[n - 1]


def library_bleu(matches, totals, output_lengths, reference_lengths):
    counts = matches.sum(0).tolist(), totals.sum(0).tolist()
    lengths = output_lengths.sum().item(), reference_lengths.sum().item()
    return torch.tensor(sacrebleu.BLEU.compute_bleu(*counts, *lengths, smooth_method="none").score)


# What a solution must agree with.
LIBRARY = {"10.batches": library_batches, "10.clipped": library_clipped, "10.bleu": library_bleu}
