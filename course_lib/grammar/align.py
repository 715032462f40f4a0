"""From a tree to a sentence pair: two linearizations, links between words that share a part, and text.

What the links follow: the auxiliary do says tense and agreement, so it is linked to the German finite verb
(does ... see: sieht); all words of a verb are linked to all of its German words (picks up: holt, ab), a
reflexive sich to the verb unless English has himself; a contraction to preposition and article (im: in the);
the to of "gives it to the child" to the first word in the dative; kein to not and a. Commas that only one
language has are linked to nothing, and every other word is linked.
"""

from functools import cache
from typing import NamedTuple

from course_lib.grammar.linearizers import english, german
from course_lib.grammar.syntax import Notes, Sentence, Word


@cache
def _shared(items: frozenset[str]) -> frozenset[str]:
    """One object for equal sets: a corpus has thousands of pairs but few different sets."""
    return items


class CoursePair(NamedTuple):
    """An English sentence, its German translation, and what is known about them.

    Args:
        src: the English text.
        tgt: the German text.
        src_words: the English words; punctuation marks are words of their own.
        tgt_words: the German words.
        links: gold word alignment, (position in src_words, position in tgt_words), sorted.
        phenomena: the grammatical phenomena of the German sentence; `phenomena.PHENOMENA` explains them.
        facts: what the splits look at: "object:Apfel", "final:aufstehen", "cell:rot/m/dative", "form:unseen".
        lemmas: the German dictionary forms of nouns, adjectives and verbs.
    """

    src: str
    tgt: str
    src_words: tuple[str, ...]
    tgt_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    phenomena: frozenset[str]
    facts: frozenset[str]
    lemmas: frozenset[str]


def detokenize(words: tuple[str, ...] | list[str]) -> str:
    """Maps words to text: a space between them, but none before a punctuation mark."""
    return " ".join(words).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


def _texts(words: list[Word]) -> tuple[str, ...]:
    first = words[0].text
    return (first[0].upper() + first[1:], *(word.text for word in words[1:]))


def link(src: list[Word], tgt: list[Word]) -> tuple[tuple[int, int], ...]:
    """The pairs of positions whose words say a common part of the tree."""
    where: dict[tuple, list[int]] = {}
    for position, word in enumerate(tgt):
        for part in word.parts:
            where.setdefault(part, []).append(position)
    links = {
        (position, other) for position, word in enumerate(src) for part in word.parts for other in where.get(part, ())
    }
    return tuple(sorted(links))


def realize(tree: Sentence, address: str = "du") -> CoursePair:
    """Maps a tree to its sentence pair.

    Args:
        tree: the abstract syntax.
        address: how German says "you": du, ihr or Sie.
    """
    if address not in ("du", "ihr", "Sie"):
        raise ValueError(f"address: expected du, ihr or Sie, got {address!r}")
    notes = Notes(address)
    tgt = german.sentence(tree, notes)
    src = english.sentence(tree)
    src_words, tgt_words = _texts(src), _texts(tgt)
    return CoursePair(
        detokenize(src_words),
        detokenize(tgt_words),
        src_words,
        tgt_words,
        link(src, tgt),
        _shared(frozenset(notes.tags)),
        frozenset(notes.facts),
        frozenset(notes.lemmas),
    )
