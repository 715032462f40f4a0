"""Random noun phrases, pronouns, names: who and what takes part."""

from typing import Any

from course_lib.grammar.lexicon import ADJECTIVES_FOR, NAMES, Adjective, Determiner, Noun
from course_lib.grammar.lexicon.function_words import (
    EVERY,
    HER,
    HIS,
    MANY,
    MY,
    NO,
    OUR,
    POSSESSIVES,
    THE,
    THEIR,
    THIS,
    YOUR,
    A,
)
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.selection import NOUNS_OF
from course_lib.grammar.syntax import Coordination, Name, NounPhrase, Pronoun

_DETERMINERS = {
    "subject": Weighted(
        {
            "the": 66,
            "a": 8,
            "possessive": 8,
            "this": 5,
            "every": 3,
            "no": 1.5,
            "number": 3,
            "many": 2,
            "genitive": 8,
        }
    ),
    "object": Weighted(
        {"the": 42, "a": 28, "possessive": 9, "this": 4, "bare": 4, "number": 6, "many": 3, "genitive": 8}
    ),
    "dative": Weighted({"the": 58, "a": 10, "possessive": 18, "this": 4, "number": 4, "many": 2, "genitive": 7}),
    "place": Weighted({"the": 80, "a": 6, "this": 5, "possessive": 9}),
}
_PLURAL = {"subject": 0.2, "object": 0.2, "dative": 0.38, "place": 0.0}
_OWNED = frozenset(
    "kin pet clothing teacher doctor neighbor garden kitchen house room bed car bicycle horse bag book lamp clock "
    "key ball "
    "letter sofa chair picture newspaper".split()
)
_GROWN = frozenset("son daughter car house garden kitchen sofa lamp horse".split())  # children have none
ONE_EACH = frozenset({"mother", "father", "grandmother", "kitchen"})
_PERSONS = Weighted(
    {(1, False, ""): 5, (2, False, ""): 4, (3, False, "m"): 5, (3, False, "f"): 5, (1, True, ""): 4, (3, True, ""): 4}
)
_NAMES = tuple(NAMES)
_DEFINITE_HUMANS = tuple(noun for noun in NOUNS_OF["human"] if noun.english not in ("baby", "queen"))
_OWNERS = tuple(noun for noun in _DEFINITE_HUMANS if "kin" not in noun.classes)
_PARENTS = tuple(noun for noun in _OWNERS if "young" not in noun.classes and noun.english != "student")
_TALKERS = (MY, YOUR, OUR)
_OWN = {(1, False): MY, (2, False): YOUR, (1, True): OUR, (3, True): THEIR, "he": HIS, "she": HER, "m": HIS, "f": HER}
_UNCOUNTED = frozenset({"place", "furniture", "vehicle", "window", "queen"})


def _has(noun: Noun, classes: frozenset[str]) -> bool:
    return bool(noun.classes & classes) or noun.english in classes


def _possessive(chooser: Chooser, noun: Noun, owner: Any) -> Determiner:
    """Whose it is: mostly the owner's (he loses his key), else the speaker's or yours."""
    if owner is None:
        return chooser.pick(POSSESSIVES)
    kind = type(owner)
    if kind is Name:
        own = _OWN[NAMES[owner.name]]
    elif kind is Pronoun:
        own = _OWN.get((owner.person, owner.plural)) or _OWN[owner.gender]
    elif kind is NounPhrase:
        young = "young" in owner.noun.classes and noun.english in _GROWN
        own = None if young else THEIR if owner.plural else _OWN.get(owner.noun.pronoun)
    else:
        own = None
    if own is not None and chooser.chance(0.8):
        return own
    return chooser.pick(_TALKERS) if kind is not Pronoun or owner.person == 3 else own


def _adjectives(chooser: Chooser, noun: Noun, likely: float) -> tuple:
    options = ADJECTIVES_FOR[noun]
    if not options or not chooser.chance(likely):
        return ()
    first = chooser.pick(options)
    if chooser.chance(0.08):
        second = chooser.pick(options)
        if first.rank != second.rank:
            return (first, second) if first.rank < second.rank else (second, first)
    return (first,)


def predicates(noun: Noun, said: tuple[Adjective, ...], ranks: tuple[int, ...] = (1, 2, 3, 4, 5)) -> tuple:
    """The adjectives that can be said of a noun without contradicting those that were."""
    taken = {adjective.rank for adjective in said}
    return tuple(a for a in ADJECTIVES_FOR[noun] if a.rank in ranks and a.rank not in taken)


def _kind(chooser: Chooser, noun: Noun, role: str) -> str:
    """The kind of determiner: what the role likes, as far as the noun allows it."""
    kind = chooser.weighted(_DETERMINERS[role])
    if noun.mass:
        kind = "bare" if kind in ("a", "number", "many", "bare", "every", "no") else kind
        if role == "object" and chooser.chance(0.5):
            kind = "bare"
        if kind == "bare" and role == "subject":
            kind = "the"
    if kind in ("number", "many", "bare") and _has(noun, _UNCOUNTED):
        kind = "the"
    if kind == "bare" and "human" in noun.classes:
        kind = "the"
    if "kin" in noun.classes and (kind not in ("possessive", "genitive") and chooser.chance(0.8)):
        kind = "possessive"  # a sister, no aunt: whose?
    elif kind in ("every", "no", "many", "a", "this") and _has(noun, frozenset({"kin", "queen"})):
        kind = "the"
    if kind == "no" and "animate" not in noun.classes:
        kind = "the"
    if kind in ("possessive", "genitive") and (noun.english == "dress" or not _has(noun, _OWNED)):
        kind = "the"
    return kind


def noun_phrase(
    chooser: Chooser, noun: Noun, role: str, *, adjectives: float = 0.38, simple: bool = False, owner: Any = None
) -> NounPhrase:
    """A noun phrase around a noun.

    Args:
        chooser: the source of choices.
        noun: its noun.
        role: subject, object, dative or place; roles differ in their determiners.
        adjectives: how likely an adjective is.
        simple: only the article, and the singular.
        owner: whose it may be: the subject of the clause, if this is something else.
    """
    kind = "the" if simple else _kind(chooser, noun, role)
    phrase = NounPhrase(noun, {"the": THE, "a": A, "this": THIS, "every": EVERY, "no": NO, "many": MANY}.get(kind))
    if kind == "possessive":
        phrase.determiner = _possessive(chooser, noun, owner)
    elif kind == "number":
        most = 10 if "food" in noun.classes or "small_thing" in noun.classes else 4
        phrase.number = int(chooser.random() * chooser.random() * most) + 2
    elif kind == "genitive":
        phrase.possessor = _possessor(chooser, noun)
    countable = kind not in ("a", "every", "no") and not noun.mass and not simple
    likely = _PLURAL[role] * (0.2 if _has(noun, _UNCOUNTED) else 1)
    phrase.plural = kind in ("number", "many") or (countable and (chooser.chance(likely) or kind == "bare"))
    if kind in ("possessive", "genitive") and noun.english in ONE_EACH:
        phrase.plural = False
    phrase.adjectives = _adjectives(chooser, noun, 0.65 if kind == "bare" else adjectives)
    if role == "place":
        phrase.adjectives = tuple(a for a in phrase.adjectives if a.rank in (1, 4, 5))
        phrase.determiner = THE if phrase.determiner is A and not phrase.adjectives else phrase.determiner
    return phrase


def _possessor(chooser: Chooser, noun: Noun) -> Any:
    if chooser.chance(0.35):
        return Name(chooser.pick(_NAMES))
    owner = chooser.pick(_PARENTS if noun.english in _GROWN else _OWNERS if "kin" in noun.classes else _DEFINITE_HUMANS)
    determiner = chooser.pick(POSSESSIVES) if "kin" in owner.classes else THE
    plural = owner.english not in ONE_EACH and chooser.chance(0.15)
    return NounPhrase(owner, determiner, plural=plural)


def pronoun(chooser: Chooser) -> Pronoun:
    """A personal pronoun that needs no antecedent: all but it."""
    return Pronoun(*chooser.weighted(_PERSONS))


def someone(
    chooser: Chooser, nouns: tuple[Noun, ...], role: str, *, pronouns: float, owner: Any = None, avoid: tuple = ()
) -> Any:
    """A noun phrase, pronoun, name or coordination around one of some nouns.

    Args:
        chooser: the source of choices.
        nouns: the nouns to choose from.
        role: see `noun_phrase`.
        pronouns: how likely a pronoun is, where the noun is a person.
        owner: the subject, where this is not the subject.
        avoid: the other participants, who are not to be said again.
    """
    noun = chooser.pick(nouns)
    if "human" in noun.classes and "baby" not in noun.classes:
        if chooser.chance(pronouns):
            word = pronoun(chooser)
            if not any(_same_person(word, other) for other in avoid):
                return word
        elif chooser.chance(0.09):
            name = chooser.pick(_NAMES)
            if not any(type(other) is Name and other.name == name for other in avoid):
                return Name(name)
        elif chooser.chance(0.05) and noun.english != "queen":
            other = chooser.pick(nouns)
            if other is not noun and other in _DEFINITE_HUMANS and ("kin" in other.classes) == ("kin" in noun.classes):
                return Coordination(
                    noun_phrase(chooser, noun, role, adjectives=0.1, simple=True),
                    noun_phrase(chooser, other, role, adjectives=0.1, simple=True),
                )
    return noun_phrase(chooser, noun, role, owner=owner)


def _same_person(word: Pronoun, other: Any) -> bool:
    """Whether two pronouns mean overlapping people: I and we, he and him."""
    if type(other) is not Pronoun or word.person != other.person:
        return False
    return word.person < 3 or (word.plural, word.gender) == (other.plural, other.gender)
