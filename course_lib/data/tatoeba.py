"""Tatoeba: 166,168 pairs of everyday sentences in English and German, a snapshot of May 2018.

The sentences are under CC BY 2.0 FR. The published archive (deu-eng.zip at manythings.org/anki) is
replaced by a newer one from time to time and old ones are not kept, so there is no address whose
bytes could be pinned: the course does not download this corpus. It reads the snapshot from
COURSE_DATA/tatoeba; without it, today's archive is an own TSV file (see `SECOND_WAY`), good for
training, with other pairs and another split than the results of the course. clean.py says what is
dropped.
"""

import gzip
import hashlib
from collections.abc import Sequence

from course_lib.data.clean import clean
from course_lib.data.corpus import Corpus, Pair
from course_lib.data.download import find, missing, read_verified
from course_lib.data.tsv import parse_tsv, sentence_key, split_by_source

ATTRIBUTION = "tatoeba.org, manythings.org/anki"
LICENSE = f"CC BY 2.0 FR, attribution: {ATTRIBUTION}"
FILENAME = "deu-eng-2018-05-13.train.tsv.gz"
SHA256 = "e7d9bafe1bc744568bce31e755f21d05385c289b2a428f62dd7ddee58b69c924"
NUM_HELD_OUT = 2_000  # English sentences in valid, and in test
SECOND_WAY = (
    "This snapshot cannot be downloaded; take a newer one as your own file: unpack deu-eng.zip from "
    'manythings.org/anki, run cut -f1,2 deu.txt > deu.tsv, and load_corpus("deu.tsv"). '
    "Or use multi30k: python -m course_lib data multi30k"
)


def load_tatoeba(*, download: bool = False) -> Corpus:
    """Maps the Tatoeba snapshot, cleaned, to a train part, and 2,000 English sentences in valid and test each.

    See `split_everyday` for the split, which is ours: the snapshot has none. An English sentence of
    valid or test stands in one pair with each of its translations.

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
    pairs, _ = clean(pairs)
    parts = split_everyday(pairs, num_held_out=NUM_HELD_OUT)
    return Corpus("tatoeba", *parts, license=LICENSE)


def split_everyday(
    pairs: Sequence[Pair], *, num_held_out: int
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Maps pairs to train, valid and test, no two of which share a sentence of either language.

    One English sentence has up to 36 translations here, and one German sentence can translate
    several English ones. Held-out English sentences are chosen by hash and keep all their
    translations, which are references for one another. Pairs of train whose German sentence was held
    out are dropped, and those of valid whose German sentence is in test. Sentences that differ only in
    case and punctuation count as one.

    Args:
        pairs: all pairs, in any order.
        num_held_out: number of English sentences in valid, and in test (a few fewer may remain in valid).

    Returns:
        Train in the order of `pairs`; valid and test shuffled, the same for any order of `pairs`.
    """
    train, valid, test = split_by_source(pairs, num_valid=num_held_out, num_test=num_held_out, seed=0)
    valid = _without_german_of(test, valid)
    train = _without_german_of(valid + test, train)
    return train, _shuffled(valid), _shuffled(test)


def _without_german_of(others: Sequence[Pair], pairs: Sequence[Pair]) -> list[Pair]:
    german = {sentence_key(pair.tgt) for pair in others}
    return [pair for pair in pairs if sentence_key(pair.tgt) not in german]


def _shuffled(pairs: Sequence[Pair]) -> list[Pair]:
    """By the hash of the English sentence, so that its translations stay together."""
    return sorted(pairs, key=lambda pair: (hashlib.sha256(sentence_key(pair.src).encode()).digest(), pair))
