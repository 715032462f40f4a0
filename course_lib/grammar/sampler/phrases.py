"""Random noun phrases, places and times that make sense together."""

from typing import Any

from course_lib.grammar.lexicon import ADJECTIVES_FOR, NAMES, NOUN, PLACES, Adjective, Noun, Verb
from course_lib.grammar.lexicon.function_words import (
    AT_HOME,
    CLOCK_TIMES,
    EVERY,
    HERE,
    HOME,
    MANY,
    NO,
    POSSESSIVES,
    THE,
    THERE,
    THIS,
    TIMES,
    TO_ZU,
    A,
)
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.selection import NOUNS_OF
from course_lib.grammar.syntax import (
    Adverb,
    Coordination,
    Name,
    NounPhrase,
    PrepPhrase,
    Pronoun,
    RelativePronoun,
    place,
)

_DETERMINERS = {
    "subject": Weighted(
        {
            "the": 66,
            "a": 8,
            "possessive": 8,
            "this": 5,
            "every": 3,
            "no": 1.5,
            "bare": 2,
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
_OWNED = frozenset("kin own clothing thing furniture vehicle teacher doctor neighbor room gift".split())
_PERSONS = Weighted(
    {(1, False, ""): 5, (2, False, ""): 4, (3, False, "m"): 5, (3, False, "f"): 5, (1, True, ""): 4, (3, True, ""): 4}
)
_NAMES = tuple(NAMES)
_ZU_PERSONS = tuple(NOUN[name] for name in sorted(TO_ZU) if "human" in NOUN[name].classes)
_DEFINITE_HUMANS = tuple(noun for noun in NOUNS_OF["human"] if noun.english != "baby")
TIMES_IN = {
    tense: tuple(entry for entry in TIMES if tense in entry.tenses)
    for tense in ("present", "past", "perfect", "future", "progressive", "modal")
}


def _possessable(noun: Noun) -> bool:
    return bool(noun.classes & _OWNED) or noun.english in _OWNED


def _adjectives(chooser: Chooser, noun: Noun, likely: float) -> tuple:
    options = ADJECTIVES_FOR[noun]
    if not options or not chooser.chance(likely):
        return ()
    first = chooser.pick(options)
    if chooser.chance(0.12):
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
    if kind == "possessive" and not _possessable(noun):
        kind = "the"
    if "kin" in noun.classes and (kind in ("a", "no", "bare", "this") or (kind == "the" and chooser.chance(0.5))):
        kind = "possessive"  # a sister, no aunt: whose?
    if kind == "no" and "animate" not in noun.classes:
        kind = "the"
    if kind == "genitive" and not _possessable(noun):
        kind = "the"
    return kind


def noun_phrase(
    chooser: Chooser, noun: Noun, role: str, *, adjectives: float = 0.27, simple: bool = False
) -> NounPhrase:
    """A noun phrase around a noun.

    Args:
        chooser: the source of choices.
        noun: its noun.
        role: subject, object, dative or place; roles differ in their determiners.
        adjectives: how likely an adjective is.
        simple: only the article, and the singular.
    """
    kind = "the" if simple else _kind(chooser, noun, role)
    phrase = NounPhrase(noun, {"the": THE, "a": A, "this": THIS, "every": EVERY, "no": NO, "many": MANY}.get(kind))
    if kind == "possessive":
        phrase.determiner = chooser.pick(POSSESSIVES)
    elif kind == "number":
        phrase.number = int(chooser.random() * chooser.random() * 11) + 2
    elif kind == "genitive":
        phrase.possessor = _possessor(chooser)
    phrase.plural = kind in ("number", "many") or (
        kind not in ("a", "every", "no")
        and not noun.mass
        and not simple
        and (chooser.chance(_PLURAL[role]) or kind == "bare")
    )
    if kind == "possessive" and noun.english in ("mother", "father"):
        phrase.plural = False
    phrase.adjectives = _adjectives(chooser, noun, 0.5 if kind == "bare" else adjectives)
    return phrase


def _possessor(chooser: Chooser) -> Any:
    if chooser.chance(0.35):
        return Name(chooser.pick(_NAMES))
    noun = chooser.pick(_DEFINITE_HUMANS)
    determiner = chooser.pick(POSSESSIVES) if "kin" in noun.classes and chooser.chance(0.6) else THE
    return NounPhrase(noun, determiner, plural=chooser.chance(0.15))


def pronoun(chooser: Chooser) -> Pronoun:
    """A personal pronoun that needs no antecedent: all but it."""
    return Pronoun(*chooser.weighted(_PERSONS))


def someone(chooser: Chooser, group: str, role: str, *, pronouns: float, avoid: Any = None) -> Any:
    """A noun phrase, pronoun, name or coordination of a noun class.

    Args:
        chooser: the source of choices.
        group: the noun class.
        role: see `noun_phrase`.
        pronouns: how likely a pronoun is, where the class has people in it.
        avoid: the other participant, who is not to be said again.
    """
    nouns = NOUNS_OF[group]
    noun = chooser.pick(nouns)
    if "human" in noun.classes and "baby" not in noun.classes:
        if chooser.chance(pronouns):
            word = pronoun(chooser)
            if not _same_person(word, avoid):
                return word
        elif chooser.chance(0.09):
            name = chooser.pick(_NAMES)
            if not (type(avoid) is Name and avoid.name == name):
                return Name(name)
        elif chooser.chance(0.05) and role != "place":
            other = chooser.pick(_DEFINITE_HUMANS)
            if other is not noun:
                return Coordination(
                    noun_phrase(chooser, noun, role, adjectives=0.1, simple=True),
                    noun_phrase(chooser, other, role, adjectives=0.1, simple=True),
                )
    if type(avoid) is NounPhrase and avoid.noun is noun:
        noun = nouns[(nouns.index(noun) + 1) % len(nouns)]
    return noun_phrase(chooser, noun, role)


def _same_person(word: Pronoun, other: Any) -> bool:
    return type(other) is Pronoun and word.person == other.person and (word.person < 3 or word.plural == other.plural)


def place_phrase(chooser: Chooser, relation: str, noun: Noun) -> PrepPhrase:
    """A place or direction with a random noun phrase around a noun; see `syntax.place`."""
    return place(relation, noun_phrase(chooser, noun, "place", adjectives=0.12))


def _shelving(thing: NounPhrase | Pronoun | RelativePronoun) -> str:
    """Where a thing is kept: cars are parked, chairs stand in corners, cups on tables."""
    phrase = thing if type(thing) is NounPhrase else thing.antecedent
    classes = phrase.noun.classes
    return "park" if "vehicle" in classes else "corner" if "furniture" in classes else "store"


def _fitting(sets: str, subject: Any, verb: Verb) -> str:
    """The sets of places that suit who is there: cups stand on tables, cows do not sleep in beds."""
    if type(subject) is not NounPhrase:
        return sets.replace("spot", "").strip() or sets
    classes = subject.noun.classes
    if "animate" not in classes:
        return sets if verb.name == "ankommen" else _shelving(subject)
    if "human" in classes:
        return sets.replace("spot", "").strip() or sets
    return sets.replace("area", "meadow") if "pet" in classes or subject.noun.english in ("mouse", "bird") else "meadow"


def location(chooser: Chooser, verb: Verb, subject: Any) -> Any:
    """A place where the verb happens."""
    sets = _fitting(verb.frame.location, subject, verb).split()
    if "area" in sets and chooser.chance(0.12):
        return Adverb(chooser.pick((HERE, THERE, AT_HOME)))
    relation, noun = chooser.pick(PLACES[chooser.pick(sets)]).split()
    return place_phrase(chooser, relation, NOUN[noun])


def direction(chooser: Chooser, verb: Verb, accusative: Any) -> PrepPhrase | Adverb:
    """A place where the verb leads; where it takes the accusative object, if there is one."""
    sets = verb.frame.direction
    if sets == "goal" and chooser.chance(0.22):
        return Adverb(HOME) if chooser.chance(0.5) else place_phrase(chooser, "to", chooser.pick(_ZU_PERSONS))
    if sets == "store":
        sets = _shelving(accusative)
    relation, noun = chooser.pick(PLACES[sets]).split()
    phrase = place_phrase(chooser, relation, NOUN[noun])
    if phrase.two_way:
        phrase.case = "accusative"
    return phrase


def time(chooser: Chooser, tense: str) -> Adverb:
    """An adverbial of time that goes with a tense (or with the progressive)."""
    if tense in ("present", "past", "future", "modal") and chooser.chance(0.24):
        return Adverb(chooser.pick(CLOCK_TIMES))
    return Adverb(chooser.pick(TIMES_IN[tense]))
