"""How good an output is: exact match, BLEU with its signature; and how sure a mean or a share is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import sacrebleu

References = Sequence[str | Sequence[str]]  # for each output one reference, or several


@dataclass(frozen=True)
class Bleu:
    """A corpus BLEU score.

    Args:
        score: 0 to 100.
        signature: sacreBLEU's, which says how it was computed; give it with every score.
        length_ratio: tokens of the outputs over tokens of the references (of several, the one of nearest length). Below
            1, BLEU has a brevity penalty.
    """

    score: float
    signature: str
    length_ratio: float

    def __str__(self) -> str:
        return f"{self.score:.1f} BLEU ({self.signature})"


def bleu(outputs: Sequence[str], references: References, *, tokenize: str = "13a", lowercase: bool = False) -> Bleu:
    """Corpus BLEU of free-running output, by sacreBLEU.

    Args:
        outputs: translations as plain text.
        references: for each output one, or a list of several that are all right.
        tokenize: sacreBLEU's tokenizer; "13a" (its default), "intl", "char", "none".
        lowercase: compare without case.

    Raises:
        ValueError: if their numbers differ, there are none, an output has no reference, or something is no text; on an
            unknown tokenizer.
    """
    if tokenize not in (known := sacrebleu.BLEU.TOKENIZERS):
        raise ValueError(f"tokenize must be one of {', '.join(known)}; got {tokenize!r}")
    return _corpus_bleu(outputs, _as_lists(outputs, references), tokenize, lowercase)


def tokenized_bleu(outputs: Sequence[str], references: References, *, language: str = "de") -> Bleu:
    """Lower-cased BLEU over Moses tokens, which older papers print (multi-bleu.perl); only its signature tells.

    Args:
        outputs, references: as in bleu, plain text.
        language: of both, for the Moses tokenizer.

    Raises:
        ValueError: as bleu.
    """
    from sacremoses import MosesTokenizer  # here, because it takes long to load and few need it

    moses = MosesTokenizer(lang=language)

    def tokens(text: str) -> str:
        return moses.tokenize(text, return_str=True, escape=False)

    lists = [[tokens(text) for text in texts] for texts in _as_lists(outputs, references)]
    found = _corpus_bleu([tokens(output) for output in outputs], lists, "none", True)
    return replace(found, signature=found.signature.replace("tok:none", "tok:moses"))


def exact_match(outputs: Sequence[str], references: References) -> float:
    """Share of outputs that equal their reference, or one of them, 0 to 1.

    Raises:
        ValueError: as bleu.
    """
    lists = _as_lists(outputs, references)
    return sum(output in texts for output, texts in zip(outputs, lists, strict=True)) / len(outputs)


@dataclass(frozen=True)
class Estimate:
    """A mean or a share, and the interval that holds the true one in 95 of 100 such measurements."""

    value: float
    low: float
    high: float


def mean_estimate(values: Sequence[float], *, level: float = 0.95) -> Estimate:
    """The mean of what several seeds gave, with Student's interval.

    Args:
        values: two or more, of independent runs.
        level: how often such an interval holds the true mean.

    Raises:
        ValueError: with fewer than two values nothing is known of their spread; if level is not between 0 and 1.
    """
    from scipy.stats import sem, t  # here, because it takes long to load and few need it

    _check_level(level)
    if len(values) < 2:
        raise ValueError(f"an interval needs two values or more, got {len(values)}")
    mean = sum(values) / len(values)
    half = t.ppf((1 + level) / 2, len(values) - 1) * sem(values)
    return Estimate(float(mean), float(mean - half), float(mean + half))


def share_estimate(count: int, total: int, *, level: float = 0.95) -> Estimate:
    """The share of `count` in `total` independent cases, with Wilson's interval.

    Raises:
        ValueError: unless 0 <= count <= total, whole numbers, and total is above 0; as mean_estimate.
    """
    from scipy.stats import binomtest

    _check_level(level)
    if not 0 <= count <= total < 2**53 or total == 0 or count != int(count) or total != int(total):
        raise ValueError(f"expected a count from 0 to a total above 0, got {count} of {total}")
    interval = binomtest(int(count), int(total)).proportion_ci(level, method="wilson")
    return Estimate(count / total, float(interval.low), float(interval.high))


def bleu_difference(
    outputs: Sequence[str], others: Sequence[str], references: References, *, samples: int = 1000, seed: int = 0
) -> Estimate:
    """How much higher the BLEU of some outputs is than that of others, with the 95 % interval of a paired bootstrap.

    Args:
        outputs, others: translations of the same sentences.
        references: as in bleu.
        samples: how often the sentences are drawn again, with replacement, for both sides alike.
        seed: of the draws, from 0 on.

    Raises:
        ValueError: as bleu, or if samples or seed is no such whole number.

    Reference: Koehn 2004.
    """
    for name, number, least in (("samples", samples, 1), ("seed", seed, 0)):
        if not isinstance(number, int) or number < least:
            raise ValueError(f"{name} must be a whole number from {least} on, got {number!r}")
    lists = _as_lists(outputs, references)
    _as_lists(others, references)
    sums = [_ngram_counts(texts, lists) for texts in (outputs, others)]
    drawn = np.random.default_rng(seed).integers(len(lists), size=(samples, len(lists)))
    ours, theirs = ([_score(counts[rows].sum(axis=0)) for rows in drawn] for counts in sums)
    low, high = np.quantile(np.subtract(ours, theirs), (0.025, 0.975))
    return Estimate(*map(float, (_score(sums[0].sum(axis=0)) - _score(sums[1].sum(axis=0)), low, high)))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")


def _ngram_counts(outputs: Sequence[str], lists: list[list[str]]) -> np.ndarray:
    """What each sentence adds to the corpus score; (sentences, counts)."""
    if len(outputs) != len(lists):
        raise ValueError(f"expected references for each output, got {len(outputs)} outputs and {len(lists)}")
    return np.array([_sentence_counts(output, texts) for output, texts in zip(outputs, lists, strict=True)])


def _sentence_counts(output: str, references: list[str]) -> list[int]:
    found = sacrebleu.corpus_bleu([output], [[text] for text in references])
    return [found.sys_len, found.ref_len, *found.counts, *found.totals]


def _score(counts: np.ndarray) -> float:
    lengths, ngrams = counts[:2].tolist(), counts[2:].tolist()
    return sacrebleu.BLEU.compute_bleu(ngrams[:4], ngrams[4:], *lengths).score


def _corpus_bleu(outputs: Sequence[str], lists: list[list[str]], tokenize: str, lowercase: bool) -> Bleu:
    # Tokens that stand alone make sacreBLEU warn that the text looks tokenized; with "none" they are meant to.
    metric = sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    streams = [list(texts) for texts in zip_longest(*lists)]  # as many as the most references, None where there is none
    found = metric.corpus_score(list(outputs), streams)
    return Bleu(found.score, str(metric.get_signature()), found.ratio)


def _as_lists(outputs: Sequence[str], references: References) -> list[list[str]]:
    for name, texts in (("outputs", outputs), ("references", references)):
        if isinstance(texts, str) or not hasattr(texts, "__len__"):
            raise ValueError(f"expected several texts for {name}, got {texts!r:.60}")
    if len(outputs) != len(references) or not outputs:
        raise ValueError(f"expected references for each output, got {len(outputs)} outputs and {len(references)}")
    lists = [list(texts) if isinstance(texts, list | tuple) else [texts] for texts in references]
    if not all(lists):
        raise ValueError(f"output {lists.index([])} has no reference")
    for text in (*outputs, *(text for texts in lists for text in texts)):
        if not isinstance(text, str):
            raise ValueError(f"expected texts, got {text!r}")
    return lists
