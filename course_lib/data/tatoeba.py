"""Tatoeba: 166,168 pairs of everyday sentences in English and German, a snapshot of May 2018.

The sentences are under CC BY 2.0 FR. The published archive (deu-eng.zip at manythings.org/anki) is
replaced by a newer one from time to time and old ones are not kept, so there is no address whose
bytes could be pinned: the course does not download this corpus. It reads the snapshot from
COURSE_DATA/tatoeba; without it, today's archive is an own TSV file (see `SECOND_WAY`), good for
training, with other pairs and another split than the results of the course.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence

from course_lib.data import Corpus, Pair
from course_lib.data.download import find, missing, read_verified
from course_lib.data.tsv import parse_tsv, sentence_key, split_by_source

ATTRIBUTION = "tatoeba.org, manythings.org/anki"
LICENSE = f"CC BY 2.0 FR, attribution: {ATTRIBUTION}"
FILENAME = "deu-eng-2018-05-13.train.tsv.gz"
SHA256 = "e7d9bafe1bc744568bce31e755f21d05385c289b2a428f62dd7ddee58b69c924"
NUM_HELD_OUT = 2_000  # pairs in valid, and in test
SECOND_WAY = (
    "This snapshot cannot be downloaded; take a newer one as your own file: unpack deu-eng.zip from "
    'manythings.org/anki, run cut -f1,2 deu.txt > deu.tsv, and load_corpus("deu.tsv"). '
    "Or use multi30k: python -m course_lib data multi30k"
)


def load_tatoeba(*, download: bool = False) -> Corpus:
    """Map the Tatoeba snapshot to a train part and 2,000 valid and 2,000 test pairs.

    See `split_everyday` for the split, which is ours: the snapshot has none.

    Args:
        download: accepted as by the other loaders; this snapshot has no address, so it changes nothing.

    Returns:
        The corpus; src is English, tgt is German.

    Raises:
        FileNotFoundError: no local copy, with `download` or without.
        ValueError: the local copy does not have its pinned checksum.
    """
    path = find("tatoeba", FILENAME)
    if path is None:
        raise missing("tatoeba", [FILENAME], second_way=SECOND_WAY)
    pairs = parse_tsv(gzip.decompress(read_verified(path, SHA256)), name=str(path))
    parts = split_everyday(pairs, num_held_out=NUM_HELD_OUT)
    return Corpus("tatoeba", *parts, license=LICENSE)


def split_everyday(
    pairs: Sequence[Pair], *, num_held_out: int
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Map pairs to train, valid and test without a sentence of either language on both sides.

    One English sentence has up to 36 translations here, and one German sentence can translate
    several English ones. Held-out English sentences are chosen by hash and keep one translation each,
    chosen by hash too; their other translations are dropped. Pairs whose German sentence was held out
    leave train as well. Sentences that differ only in case and punctuation count as one.

    Args:
        pairs: all pairs, in any order.
        num_held_out: number of pairs in valid, and in test.

    Returns:
        Train in the order of `pairs`; valid and test of `num_held_out` pairs each, shuffled, the same
        for any order of `pairs`.
    """
    train, *held_out = split_by_source(pairs, num_valid=num_held_out, num_test=num_held_out, seed=0)
    valid, test = (_one_translation_each(part) for part in held_out)
    german = {sentence_key(pair.tgt) for pair in valid + test}
    return [pair for pair in train if sentence_key(pair.tgt) not in german], valid, test


def _one_translation_each(pairs: Sequence[Pair]) -> list[Pair]:
    shuffled = sorted(pairs, key=lambda pair: hashlib.sha256("\t".join(pair).encode()).digest())
    first = {}
    for pair in shuffled:
        first.setdefault(sentence_key(pair.src), pair)
    return list(first.values())
