"""Assignment 10: batches by a token budget, shares from one parallel pass, n-gram counts, and BLEU from them."""

from collections import Counter

import sacrebleu
import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

# 10.batches


def batches(lengths: list[int], budget: int) -> list[list[int]]:
    """Indices of the sentences of each batch, shortest first; a batch costs its number times its longest length."""
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    found: list[list[int]] = []
    for index in order:
        # In this order a new sentence is the longest of its batch.
        if found and (len(found[-1]) + 1) * lengths[index] <= budget:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def _lengths(generator: torch.Generator) -> list[tuple]:
    def some(count: int, longest: int) -> list[int]:
        return torch.randint(1, longest + 1, (count,), generator=generator).tolist()

    return [
        ([3, 5, 4, 3, 5], 10),  # two batches reach the budget exactly, or come near it
        ([9, 8], 5),
        (some(1, 9), 12),
        (some(12, 9), 20),
        ([*some(8, 6), 31, *some(4, 6), 25], 24),  # two are longer than the budget
        (some(20, 12), 36),
    ]


def _packed(order: list[int], fits) -> list[list[int]]:
    """Goes through the sentences in this order; `fits` says whether a batch may be this large."""
    found: list[list[int]] = []
    for index in order:
        if found and fits([*found[-1], index]):
            found[-1].append(index)
        else:
            found.append([index])
    return found


def _sorted(lengths: list[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lengths.__getitem__)


def _unsorted(lengths: list[int], budget: int) -> list[list[int]]:
    order = list(range(len(lengths)))
    return _packed(order, lambda group: len(group) * max(lengths[index] for index in group) <= budget)


BATCHES = Exercise(
    "10.batches",
    batches,
    _lengths,
    (
        Variant(
            _unsorted,
            "These sentences come in the order of the corpus. Sort them by length first: that is what saves padding.",
        ),
        Variant(
            lambda lengths, budget: _packed(_sorted(lengths), lambda group: sum(lengths[i] for i in group) <= budget),
            "These batches count real tokens. Padding fills memory too: each sentence costs as much as the longest.",
        ),
        Variant(
            lambda lengths, budget: _packed(_sorted(lengths), lambda group: len(group) * lengths[group[-1]] < budget),
            "A batch may cost exactly the budget.",
        ),
        Variant(
            lambda lengths, budget: batches(lengths, budget)[:-1],
            "The last batch is missing: nothing comes after it that would close it.",
        ),
        Variant(
            lambda lengths, budget: [group for group in batches(lengths, budget) if lengths[group[-1]] <= budget],
            "A sentence that is longer than the budget is lost. It is a batch alone.",
        ),
    ),
)


# 10.accuracy


def accuracy(logits: Tensor, tgt_out: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    """Share of right tokens, and of sentences in which all are right, one position at a time."""
    right = tokens = whole = torch.zeros((), dtype=torch.long, device=logits.device)
    for sentence in range(tgt_out.size(0)):
        every = torch.ones((), dtype=torch.bool, device=logits.device)
        for position in range(tgt_out.size(1)):
            real = tgt_out[sentence, position] != pad_id
            hit = logits[sentence, position].argmax() == tgt_out[sentence, position]
            right, tokens = right + (real & hit).long(), tokens + real.long()
            every = every & (hit | ~real)
        whole = whole + every.long()
    return right / tokens, whole / tgt_out.size(0)


def _predictions(generator: torch.Generator) -> list[tuple]:
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


def _accuracy(logits: Tensor, tgt_out: Tensor, pad_id: int, *, of_all: bool, padding_right: bool):
    hit, real = logits.argmax(dim=-1) == tgt_out, tgt_out != pad_id
    tokens = hit.numel() if of_all else real.sum()
    whole = hit.all(dim=1) if padding_right else (hit | ~real).all(dim=1)
    return (hit if of_all else hit & real).sum() / tokens, whole.sum() / len(whole)


def _mean_of_sentences(logits: Tensor, tgt_out: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    hit, real = logits.argmax(dim=-1) == tgt_out, tgt_out != pad_id
    return ((hit & real).sum(dim=1) / real.sum(dim=1)).mean(), (hit | ~real).all(dim=1).sum() / len(hit)


ACCURACY = Exercise(
    "10.accuracy",
    accuracy,
    _predictions,
    (
        Variant(
            lambda *inputs: _accuracy(*inputs, of_all=True, padding_right=False),
            "The first share is one of all positions. Count the real ones only, above and below the line.",
        ),
        Variant(
            lambda *inputs: _accuracy(*inputs, of_all=False, padding_right=True),
            "A sentence is right whatever is predicted where its target has padding.",
        ),
        Variant(
            lambda *inputs: _accuracy(*inputs, of_all=True, padding_right=True),
            "Padding has to be left out of both shares.",
        ),
        Variant(
            _mean_of_sentences,
            "The first share is a mean over sentences. Count the tokens of the whole batch: a long sentence has more.",
        ),
    ),
    any_dtype=False,  # shares of counts
    loops=False,
)


# 10.clipped


def _ngrams(words: list[str], n: int) -> Counter:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))


def clipped(output: list[str], references: list[list[str]], n: int) -> tuple[int, int]:
    """How many n-grams of an output are found, each at most as often as in the reference that has most of it."""
    counted, matches = _ngrams(output, n), 0
    for ngram, count in counted.items():
        matches += min(count, max(_ngrams(reference, n)[ngram] for reference in references))
    return matches, sum(counted.values())


def _sentences(generator: torch.Generator) -> list[tuple]:
    words = ("the", "a", "cat", "dog", "sees", "sleeps")

    def some(shortest: int, longest: int) -> list[str]:
        length = torch.randint(shortest, longest + 1, (), generator=generator)
        return [words[number] for number in torch.randint(len(words), (int(length),), generator=generator)]

    return [
        (["the"] * 4, ["the cat sees the dog".split()], 1),
        ("the the the a".split(), ["the a".split(), "the the cat".split()], 1),
        ("a cat sees a cat".split(), ["a dog sees a dog".split(), "the dog sees a cat".split()], 2),
        (["cat"], ["the cat sleeps".split()], 3),
        (["dog", "sees"], [["sees", "dog"]], 2),
        (some(9, 12), [some(6, 9), some(9, 12)], 1),
        (some(8, 10), [some(8, 10), some(4, 9), some(1, 3)], 2),
        (some(12, 15), [some(12, 15)], 3),
        (some(9, 12), [some(6, 9)], 1),
    ]


def _matches(output: list[str], references: list[list[str]], n: int, most) -> tuple[int, int]:
    """`most` says how often an n-gram counts at most, from its numbers in the references."""
    counted = _ngrams(output, n)
    tables = [_ngrams(reference, n) for reference in references]
    found = sum(min(count, most([table[ngram] for table in tables])) for ngram, count in counted.items())
    return found, sum(counted.values())


def _kinds(output: list[str], references: list[list[str]], n: int) -> tuple[int, int]:
    mine, theirs = set(_ngrams(output, n)), {ngram for words in references for ngram in _ngrams(words, n)}
    return len(mine & theirs), len(mine)


CLIPPED = Exercise(
    "10.clipped",
    clipped,
    _sentences,
    (
        Variant(
            lambda *inputs: _matches(*inputs, most=lambda numbers: 99 * any(numbers)),
            "Nothing is clipped: an n-gram counts at most as often as a reference has it.",
        ),
        Variant(
            lambda *inputs: _matches(*inputs, most=sum),
            "The references are added up. Clip by the one that has most of the n-gram.",
        ),
        Variant(_kinds, "Each different n-gram counts once here. One that the output has twice counts twice."),
        Variant(
            lambda output, references, n: (clipped(output, references, n)[0], len(output) - n + 1),
            "An output with fewer than n words has no n-gram, not a negative number of them.",
        ),
    ),
    forbidden=(sacrebleu.BLEU, sacrebleu.corpus_bleu, sacrebleu.sentence_bleu),
)


# 10.bleu


def bleu(matches: Tensor, totals: Tensor, output_lengths: Tensor, reference_lengths: Tensor) -> Tensor:
    """Corpus BLEU without smoothing, 0 to 100: one precision for each n, one brevity penalty."""
    logarithms = torch.zeros((), device=matches.device)
    for n in range(4):
        found = possible = torch.zeros((), dtype=torch.long, device=matches.device)
        for sentence in range(matches.size(0)):
            found, possible = found + matches[sentence, n], possible + totals[sentence, n]
        logarithms = logarithms + (found / possible).log() / 4
    ours, theirs = output_lengths.sum(), reference_lengths.sum()
    return 100 * (1 - theirs / ours).clamp(max=0).exp() * logarithms.exp()


def _counts(generator: torch.Generator) -> list[tuple]:
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


def _brevity(ours: Tensor, theirs: Tensor) -> Tensor:
    return (1 - theirs / ours).clamp(max=0).exp()


def _by_sentence(matches: Tensor, totals: Tensor, ours: Tensor, theirs: Tensor) -> Tensor:
    precisions = matches / totals.clamp(min=1)
    return 100 * _brevity(ours, theirs) * precisions.log().mean(dim=1).exp()


def _mean_precisions(matches: Tensor, totals: Tensor, ours: Tensor, theirs: Tensor) -> Tensor:
    precisions = (matches / totals.clamp(min=1)).mean(dim=0)
    return 100 * _brevity(ours.sum(), theirs.sum()) * precisions.log().mean().exp()


def _mean_brevity(matches: Tensor, totals: Tensor, ours: Tensor, theirs: Tensor) -> Tensor:
    precisions = matches.sum(dim=0) / totals.sum(dim=0)
    return 100 * _brevity(ours, theirs).mean() * precisions.log().mean().exp()


def _pooled(matches: Tensor, totals: Tensor, ours: Tensor, theirs: Tensor) -> Tensor:
    return 100 * _brevity(ours.sum(), theirs.sum()) * matches.sum() / totals.sum()


BLEU = Exercise(
    "10.bleu",
    bleu,
    _counts,
    (
        Variant(
            lambda *counts: _by_sentence(*counts).mean(),
            "This is still a mean of scores, one for each sentence.",
        ),
        Variant(
            _mean_precisions,
            "These precisions are means over sentences. Add up the counts first, and divide then.",
        ),
        Variant(
            _mean_brevity,
            "The brevity penalty is still one for each sentence. A corpus has one length, and its references have one.",
        ),
        Variant(
            _pooled,
            "Here single words, pairs, triples and fours are one heap. Each n has a precision of its own.",
        ),
    ),
    forbidden=(sacrebleu.BLEU.compute_bleu,),
)


# 10.predict

SCORES = {
    "the share of words found": 0.5,
    "the brevity penalty": 1.0,
    "the BLEU score": 0.0,
    "the share of padding": 0.2,
    "the share of sentences": 0.81,
    "the precision of the corpus": 0.25,
}


def _instead(situation: str, number: float, hint: str) -> Variant:
    return Variant(SCORES | {situation: number}, hint)


PREDICT = Exercise(
    "10.predict",
    SCORES,
    variants=(
        _instead("the share of words found", 1.0, "The reference has each of the two words once, so each counts once."),
        _instead(
            "the brevity penalty", 0.9, "It punishes only outputs that are too short; precision feels the others."
        ),
        _instead("the share of sentences", 0.9, "A sentence is right only if both of its tokens are."),
        _instead("the precision of the corpus", 0.5, "That is the mean of two precisions; the corpus has one."),
    ),
    ask=value,
)

EXERCISES = (BATCHES, ACCURACY, CLIPPED, BLEU, PREDICT)
