"""Random adverbials that suit verb, subject and tense: where, where to, when, how often, how."""

from typing import Any

from course_lib.grammar.lexicon import NOUN, PLACES, Verb
from course_lib.grammar.lexicon import function_words as words
from course_lib.grammar.linearizers import is_definite
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.common_sense import BY_THE_CLOCK, DAILY, NOCTURNAL, ONCE_DONE, USED_UP
from course_lib.grammar.sampler.phrases import noun_phrase
from course_lib.grammar.syntax import Adverb, Clause, NounPhrase, PrepPhrase, Pronoun, RelativePronoun, agreement, place

_ADVERBS = {
    "home": words.HOME,
    "at_home": words.AT_HOME,
    "in_bed": words.IN_BED,
    "here": words.HERE,
    "there": words.THERE,
}
_HOMES = {  # the set of places for a noun class or noun; the first that fits
    "pet": "pet",
    "mouse": "tiny",
    "bird": "tree",
    "wild": "wild",
    "animal": "farm",
    "vehicle": "park",
    "furniture": "corner",
    "clothing": "closet",
    "stand": "tabletop",
    "food": "tabletop",
}
_TENSES = ("present", "past", "perfect", "future", "progressive", "modal")
_CLOCKED = frozenset({"past", "future", "modal", "present"})
_ONLY_NOW = frozenset({words.TODAY})
_TIMES_IN = {
    (tense, habit, season): tuple(
        entry
        for entry in words.TIMES
        if tense in entry.tenses
        and (habit or entry not in words.HABITS)
        and (season or entry not in words.SEASONS + words.LONG_AGO + words.FROM_NOW)
        and (habit or tense != "present" or entry in _ONLY_NOW)
    )
    for tense in _TENSES
    for habit in (True, False)
    for season in (True, False)
}
_SOMETIMES = (words.FREQUENCIES[0], words.NEVER)


def at(chooser: Chooser, where: str, owner: Any = None, plain: bool = False) -> PrepPhrase | Adverb:
    """The place that "in kitchen" or "at_home" names, with a random noun phrase unless it is to be plain."""
    if where in _ADVERBS:
        return Adverb(_ADVERBS[where])
    relation, noun = where.split()
    noun = NOUN[noun]
    return place(relation, noun_phrase(chooser, noun, "place", adjectives=0.1, simple=plain, owner=owner))


def _home_of(thing: NounPhrase | Pronoun | RelativePronoun, sets: str) -> str:
    """The set of places where an animal or a thing is, if it does not choose its place: cups stand on tables."""
    noun = (thing if type(thing) is NounPhrase else thing.antecedent).noun
    if "human" in noun.classes:
        return sets
    return next((home for kind, home in _HOMES.items() if kind in noun.classes or kind == noun.english), "shelf")


def location(chooser: Chooser, verb: Verb, subject: Any) -> PrepPhrase | Adverb:
    """A place where the verb happens, or where its subject is."""
    sets = verb.frame.location or "anywhere"
    if sets == "hideout" and getattr(subject, "noun", None) is not NOUN["mouse"]:
        return at(chooser, chooser.pick(PLACES[sets]), subject)
    if type(subject) in (NounPhrase, RelativePronoun) and verb.name != "ankommen":
        sets = _home_of(subject, sets)
    return at(chooser, chooser.pick(PLACES[sets]), subject)


def direction(chooser: Chooser, verb: Verb, subject: Any, accusative: Any) -> PrepPhrase | Adverb:
    """A place where the verb leads; where it takes the accusative object, if there is one."""
    sets = verb.frame.direction
    if sets == "store":
        sets = _home_of(accusative, "shelf")
    elif sets == "indoors":
        sets = "carried"
    elif sets == "leap" and type(subject) is NounPhrase and "human" in subject.noun.classes:
        sets = "romp"
    elif sets in ("goal", "near") and type(subject) is NounPhrase and "animal" in subject.noun.classes:
        sets = "walk"
    options = [where for where in PLACES[sets] if where not in ("here", "there") or verb.frame.location]
    phrase = at(chooser, chooser.pick(options), subject)
    if type(phrase) is PrepPhrase and phrase.two_way:
        phrase.case = "accusative"
    return phrase


def time(chooser: Chooser, tense: str, verb: Verb, *, habit: bool, season: bool = True, denied: bool = False) -> Adverb:
    """An adverbial of time that goes with a tense (or with the progressive) and with what is done, or denied."""
    likely = 0.62 if tense in _CLOCKED and (tense != "present" or habit) else 0
    if not denied and verb.name.replace(" ", "_") in BY_THE_CLOCK and chooser.chance(likely):
        return Adverb(chooser.pick(words.CLOCK_TIMES))
    options = _TIMES_IN[tense, habit, season]
    return Adverb(
        chooser.pick([entry for entry in options if entry not in words.AGO + words.LONG_AGO] if denied else options)
    )


def _place(chooser: Chooser, clause: Clause, rich: float) -> None:
    verb, frame = clause.verb, clause.verb.frame
    if frame.direction and (frame.place_needed or chooser.chance(0.4)):
        clause.direction = direction(chooser, verb, clause.subject, clause.accusative)
    elif frame.location and (frame.place_needed or chooser.chance(0.3 * rich)):
        things = ("letter", "gift")
        if not (
            type(clause.subject) is NounPhrase and clause.subject.noun.english in things and verb.name == "ankommen"
        ):
            clause.location = location(chooser, verb, clause.subject)


def fill_adverbials(chooser: Chooser, clause: Clause, rich: float) -> None:
    """Adds place, manner, time and frequency; `rich` scales how likely each is."""
    verb, frame = clause.verb, clause.verb.frame
    _place(chooser, clause, rich)
    if frame.manner and clause.direction is None and not clause.negated and chooser.chance(0.22 * rich):
        manner = chooser.pick(frame.manner)
        plural = agreement(clause.subject)[1]
        judged = clause.modal is not None and manner in ("well", "badly")
        judged = judged or (clause.governed is not None and manner == "alone")
        if (
            not judged
            and (manner != "together" or plural)
            and (clause.accusative is None or is_definite(clause.accusative))
        ):
            clause.manner = Adverb(words.MANNERS[manner])
    forbidden = clause.modal is not None and (clause.negated or clause.modal in (words.CAN, words.MAY, words.SHOULD))
    if not verb.stative and not forbidden and chooser.chance(0.43 * rich):
        tense = "progressive" if clause.progressive else clause.tense
        if clause.modal is not None and tense == "present":
            tense = "modal"
        habit = frame.habit and not clause.negated and clause.modal is None and _repeatable(clause)
        clause.time = time(
            chooser, tense, verb, habit=habit, season=frame.season and clause.modal is None, denied=clause.negated
        )
        nightly = clause.time.entry is words.AT_NIGHT and verb.name not in NOCTURNAL
        if nightly or (verb.name == "schlafen" and clause.time.entry in words.HABITS):
            clause.time = None
    elif _frequency_fits(clause) and chooser.chance(0.2 * rich):
        clause.frequency = Adverb(chooser.pick(words.FREQUENCIES if clause.tense == "present" else _SOMETIMES))
    settled = clause.frequency or clause.manner or clause.negated or clause.time
    if clause.tense == "perfect" and not settled and verb.name in ONCE_DONE and chooser.chance(0.3 * rich):
        clause.frequency = Adverb(words.ALREADY)


def _repeatable(clause: Clause) -> bool:
    """Whether it can be done every day: an apple is eaten every day, the apple only once."""
    node = clause.accusative
    if clause.verb.name in USED_UP:
        return not is_definite(node)
    return type(node) is not NounPhrase or node.definite or node.plural


def _frequency_fits(clause: Clause) -> bool:
    """Whether a frequency fits: not with the progressive, modals, negation, the future, every and no."""
    if clause.progressive or clause.modal or clause.negated or clause.tense not in ("present", "past"):
        return False
    if not clause.verb.frame.habit or clause.verb.name in DAILY or not _repeatable(clause):
        return False
    return getattr(clause.subject, "determiner", None) not in (words.EVERY, words.NO)
