"""How good an output is: exact match, BLEU, and the error rate of alignments."""

from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu


@dataclass(frozen=True)
class Bleu:
    """A corpus BLEU score.

    Args:
        score: 0 to 100.
        signature: sacreBLEU's, which says how it was computed; give it with every score.
    """

    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.score:.1f} BLEU ({self.signature})"


def bleu(outputs: Sequence[str], references: Sequence[str]) -> Bleu:
    """Corpus BLEU of free-running output, cased, 13a tokens, by sacreBLEU.

    Args:
        outputs: translations as plain text.
        references: one for each output.

    Raises:
        ValueError: if their numbers differ or there are none.
    """
    _check_lengths(outputs, references)
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(list(outputs), [list(references)]).score
    return Bleu(score, str(metric.get_signature()))


def exact_match(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Share of outputs that equal their reference, 0 to 1.

    Raises:
        ValueError: if their numbers differ or there are none.
    """
    _check_lengths(outputs, references)
    return sum(output == reference for output, reference in zip(outputs, references, strict=True)) / len(outputs)


def alignment_error_rate(predicted: set[tuple[int, int]], gold: set[tuple[int, int]]) -> float:
    """1 - 2 |predicted ∩ gold| / (|predicted| + |gold|): 0 for the same links, 1 for no common one.

    Args:
        predicted: links as (source position, target position).
        gold: the true links, all of them sure (Och and Ney 2003 with S = P).

    Raises:
        ValueError: if both are empty.
    """
    if not predicted and not gold:
        raise ValueError("no links to compare")
    return 1 - 2 * len(predicted & gold) / (len(predicted) + len(gold))


def _check_lengths(outputs: Sequence[str], references: Sequence[str]) -> None:
    if len(outputs) != len(references) or not outputs:
        raise ValueError(f"expected one reference for each output, got {len(outputs)} and {len(references)}")
