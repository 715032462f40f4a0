"""A toy corpus, word for word, sentences to translate, and a part of a corpus that nobody may read."""

from course_lib.data import Corpus, Pair

NOUNS = {"dog": "Hund", "cat": "Katze", "child": "Kind", "bird": "Vogel", "horse": "Pferd", "man": "Mann"}
VERBS = {"sees": "sieht", "hears": "hört", "likes": "mag", "knows": "kennt", "seeks": "sucht"}


def toy_pairs() -> list[Pair]:
    """180 little sentences and their word-for-word translations."""
    return [
        Pair(f"a {subject} {verb} a {thing} .", f"ein {NOUNS[subject]} {VERBS[verb]} ein {NOUNS[thing]} .")
        for subject in NOUNS
        for verb in VERBS
        for thing in NOUNS
    ]


PAIRS = toy_pairs()
TEXTS = [pair.src for pair in PAIRS[::25]] + ["a dog", "cat", "a bird sees a bird . a man hears a horse ."]
CORPUS = Corpus("toy", PAIRS[:40], PAIRS[40:44], [*PAIRS[44:48], Pair("a fox", "ein Fuchs")])


class Untouchable(list):
    """A part of a corpus that nobody may read."""

    def __iter__(self):
        raise AssertionError("read")
