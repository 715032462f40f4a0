"""The course corpus: English-German pairs that our own grammar makes, with gold word alignments.

It is not stored but generated, in seconds and without a network; `CHECKSUMS` proves that what was
generated here is what everybody else has.
"""

import hashlib
import json
from typing import NamedTuple

from course_lib.grammar.align import CoursePair
from course_lib.grammar.splits import SPLITS

CHECKSUMS = {
    "random": "dfcaa9b9a780ee490afc9f777513caa74be460d870eef73c6185f32ab5915df8",
    "length": "32ed1a6d1e975061aa6499341053ffa0841c3f6ade876eab42f4776bdbef9b8c",
    "compositional": "cbedccaceff87b485026c77368961eb67820b204640f32a3caa6d3faa872abde",
    "one_shot": "b4e6e08224b71864cc27949eae4682a40929828195ca996051dd680025807f2b",
}


class Corpus(NamedTuple):
    """Three lists of sentence pairs."""

    train: list[CoursePair]
    valid: list[CoursePair]
    test: list[CoursePair]


def load_course(
    split: str = "random",
    *,
    num_train: int = 30_000,
    num_valid: int = 1_000,
    num_test: int = 1_000,
    seed: int = 0,
    ambiguous: bool = False,
) -> Corpus:
    """Generate the course corpus.

    Args:
        split: how training and test differ: random (not at all), length (test sentences are longer),
            compositional (known words in new combinations), one_shot (words seen in one sentence).
        num_train: pairs in the training part.
        num_valid: pairs in the validation part.
        num_test: pairs in the test part.
        seed: of the generator; the same seed gives the same corpus on every machine.
        ambiguous: "you" is du, ihr or Sie at random, so English no longer determines German.

    Returns:
        The corpus; no English sentence is in two of its parts.

    Raises:
        ValueError: if the split is unknown or a part is to be empty.
    """
    if split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    smallest = min(num_train, num_valid, num_test)
    if smallest < 1:
        raise ValueError(f"num_train, num_valid, num_test: expected 1 or more each, got {smallest}")
    return Corpus(*SPLITS[split](num_train, num_valid, num_test, seed, ambiguous))


def checksum(corpus: Corpus) -> str:
    """The SHA-256 of a corpus: of texts, alignment links and phenomena, part after part.

    Args:
        corpus: what `load_course` returned.

    Returns:
        64 hexadecimal digits; `CHECKSUMS` has those of the default splits.
    """
    digest = hashlib.sha256()
    for part in corpus:
        for pair in part:
            line = json.dumps([pair.src, pair.tgt, pair.links, sorted(pair.phenomena)], ensure_ascii=False)
            digest.update(line.encode() + b"\n")
        digest.update(b"\n")
    return digest.hexdigest()
