"""Pairs that are made from nothing but themselves: the phrasebook, and sentences of the course corpus."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from course_lib.data.corpus import Pair

PHRASES = Path(__file__).with_name("phrases.tsv")
REPEATED = 4  # a phrase is learned so often in each pass
TESTED = (30_000, 60_000)  # sizes of the course corpus whose validation and test parts the lessons translate


def phrasebook() -> list[Pair]:
    """What people type first: greetings, wishes, questions, and the things around them; written for this course."""
    lines = PHRASES.read_text(encoding="utf-8").splitlines()
    return [Pair(*line.split("\t")) for line in lines]


def of_the_phrasebook(
    pairs: Sequence[Pair], rng: random.Random, joined: Callable[[Pair, Pair, random.Random], Pair | None]
) -> Iterator[Pair]:
    """Each phrase several times, once in haste, and once before or after another sentence.

    Args:
        pairs: the other sentences.
        rng: of the choices.
        joined: two pairs in one, or None.
    """
    for phrase in phrasebook():
        yield from [phrase] * REPEATED
        yield bare(phrase)
        both = [phrase, rng.choice(pairs)]
        rng.shuffle(both)
        if found := joined(*both, rng):
            yield found


def bare(pair: Pair) -> Pair:
    """The source in lower case without its last mark: happy new year"""
    tgt = pair.tgt if pair.tgt.endswith("?") else re.sub(r"(?<!\.)[.!]$", "", pair.tgt)
    return Pair(re.sub(r"(?<!\.)[.!?]$", "", pair.src.lower()), tgt)


def of_the_grammar(number: int) -> list[Pair]:
    """Sentences of the course corpus, each its own: cases, tenses and word order without an error.

    Short ones are left out: what has six words may stand in a part of the everyday corpus that is to be held out. So is
    what the lessons test a translator on.
    """
    from course_lib.data.course import load_course

    tested = _tested()
    long = [pair for pair in load_course(num_train=3 * number).train if len(pair.src_words) > 7]
    return [Pair(pair.src, pair.tgt) for pair in long if not {pair.src, pair.tgt} & tested][:number]


@cache
def _tested() -> frozenset[str]:
    from course_lib.data.course import load_course

    corpora = [load_course(num_train=size) for size in TESTED]
    return frozenset(text for found in corpora for pair in found.valid + found.test for text in (pair.src, pair.tgt))
