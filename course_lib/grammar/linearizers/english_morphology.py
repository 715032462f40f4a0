"""English inflection: third person -s, a or an, possessive 's. The rest stands in the lexicon."""

from functools import cache

from course_lib.grammar.lexicon import Verb

_BE_PRESENT = {(1, False): "am", (3, False): "is"}


def be_form(tense: str, person: int, plural: bool) -> str:
    """A form of be: ("past", 1, False) -> was; you takes the plural forms."""
    if tense == "past":
        return "was" if not plural and person != 2 else "were"
    return _BE_PRESENT.get((person, plural), "are")


@cache
def third_person(base: str) -> str:
    """The third person singular: go -> goes, carry -> carries, see -> sees."""
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def finite_form(verb: Verb, tense: str, person: int, plural: bool) -> str:
    """A simple finite form; `tense` is present or past."""
    if verb.english == "be":
        return be_form(tense, person, plural)
    if tense == "past":
        return verb.past
    return third_person(verb.english) if person == 3 and not plural else verb.english


def article(next_word: str) -> str:
    """The indefinite article by the sound of the word after it: an apple, a red apple."""
    return "an" if next_word[0] in "aeiou" else "a"


def possessive(word: str, plural: bool) -> str:
    """The possessive form: boy's, boys', children's."""
    return word + ("'" if plural and word.endswith("s") else "'s")
