"""Corpora: lists of sentence pairs, each split into train, valid and test."""

from dataclasses import dataclass, field
from statistics import mean
from typing import NamedTuple


class Pair(NamedTuple):
    """One sentence and its translation, as plain text."""

    src: str
    tgt: str


@dataclass(frozen=True)
class Corpus:
    """A named parallel corpus in three disjoint parts.

    Args:
        name: what `load_corpus` calls it, or the name of the file it came from.
        train: pairs to learn from.
        valid: pairs to choose between models with.
        test: pairs to report results on, once.
        license: terms of use and attribution, one line.
        lines: of a file, in which line each pair stands first, from 1.
    """

    name: str
    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    license: str = ""
    lines: dict[Pair, int] = field(default_factory=dict)


def describe(corpus: Corpus) -> str:
    """Maps a corpus to a short table: pairs and mean length in words of each part, and the license.

    Args:
        corpus: any corpus with `train`, `valid` and `test`.

    Returns:
        Text of five or six lines, without a final line break.
    """
    lines = [f"corpus {corpus.name}", f"{'':<7}{'pairs':>9}{'src words':>12}{'tgt words':>12}"]
    for part in ("train", "valid", "test"):
        pairs = getattr(corpus, part)
        lengths = [
            f"{mean(len(text.split()) for text in texts):.1f}" if pairs else "-"
            for texts in ([pair.src for pair in pairs], [pair.tgt for pair in pairs])
        ]
        lines.append(f"{part:<7}{len(pairs):>9,}{lengths[0]:>12}{lengths[1]:>12}")
    # The course corpus carries alignments and has a class of its own, which needs no license line.
    license_line = getattr(corpus, "license", "")
    return "\n".join([*lines, f"license: {license_line}"] if license_line else lines)
