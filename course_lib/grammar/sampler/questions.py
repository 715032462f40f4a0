"""Random questions: yes or no, who, whom, what, which, how many, where, when, why."""

from collections import Counter
from typing import Any

from course_lib.grammar.lexicon import VERBS
from course_lib.grammar.lexicon.function_words import CAN, HOW_MANY, MAY, MUST, WHEN, WHERE, WHERE_TO, WHICH, WHY
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.clauses import new_clause
from course_lib.grammar.sampler.copulas import copula
from course_lib.grammar.sampler.phrases import ONE_EACH, someone
from course_lib.grammar.sampler.selection import NOUNS_OF
from course_lib.grammar.syntax import Adverb, Clause, Interrogative, NounPhrase, Pronoun, Sentence

_SAID = Counter((verb.english, verb.particle, verb.to) for verb in VERBS)
_HOMONYMS = frozenset(verb for verb in VERBS if _SAID[verb.english, verb.particle, verb.to] > 1)  # what decides
_UNWILLED = frozenset(
    "finden verlieren vergessen ankommen sehen hören weinen träumen liegen stehen sitzen folgen bleiben denken".split()
)  # nobody asks why or when
_OF_THINGS = frozenset({"liegen", "stehen", "gehören"})
_MOVES = frozenset({"gehen", "fahren", "stellen", "legen"})


def yes_no(chooser: Chooser) -> Sentence | None:
    """A question that yes or no answers."""
    if chooser.chance(0.2):
        clause = copula(chooser, someone(chooser, NOUNS_OF["animate"], "subject", pronouns=0.4), "present", "yes-no")
        if clause is None:
            return None
        clause.negated = False
        return Sentence(_to_you(clause))
    return Sentence(_to_you(new_clause(chooser, force="yes-no", negation=0, pronouns=0.4)))


def _to_you(clause: Clause) -> Clause:
    """Makes a question about the speaker one about you: nobody asks whether he himself is reading."""
    others = (clause.accusative, clause.dative, clause.governed and clause.governed.noun_phrase)
    taken = any(type(node) is Pronoun and node.person == 2 for node in others)
    if (
        type(clause.subject) is Pronoun
        and clause.subject.person == 1
        and clause.modal not in (CAN, MAY, MUST)
        and not taken
    ):
        clause.subject = Pronoun(2)
    return clause


def wh(chooser: Chooser) -> Sentence:
    """A question with who, what, where, when, why, which or how many."""
    clause = _to_you(new_clause(chooser, force="wh", negation=0, pronouns=0.3, rich=0.3))
    clause.frequency = None
    options = _whens(clause)
    if clause.accusative is not None:
        options += ["which"] if clause.verb in _HOMONYMS else ["what", "which"]
    if clause.dative is not None or clause.governed is not None:
        options += ["whom", "whom"]
    if clause.location is not None or (clause.direction is not None and clause.verb.name in _MOVES):
        options += [WHERE, WHERE]
    if clause.verb.name not in _OF_THINGS:
        options += ["who"]
    if not options:
        return wh(chooser)
    kind = chooser.pick(options)
    return Sentence(clause) if _ask(chooser, clause, kind) else wh(chooser)


def _whens(clause: Clause) -> list[Any]:
    """When and why, as far as they can be asked: why of what was or is done, when of what was or will be done."""
    still = type(clause.subject) is NounPhrase and "animate" not in clause.subject.noun.classes
    if still or clause.verb.stative or clause.verb.name in _UNWILLED:
        return []
    now = clause.tense == "present" and not clause.progressive
    return ([] if clause.tense == "future" else [WHY]) + ([] if clause.tense == "perfect" or now else [WHEN])


def _ask(chooser: Chooser, clause: Clause, kind: Any) -> bool:
    """Turns one constituent into the question; False if that makes no sense."""
    if kind is WHERE:
        if clause.direction is not None:
            clause.direction = clause.fronted = Adverb(WHERE_TO)
        else:
            clause.location = clause.fronted = Adverb(WHERE)
    elif kind is WHEN or kind is WHY:
        clause.modal = clause.manner = None
        if kind is WHEN:
            clause.time = None
        if clause.time is not None:
            return False
        clause.time = clause.fronted = Adverb(kind)
    elif kind == "who":
        if not any("human" in noun.classes for noun in NOUNS_OF[clause.verb.frame.subject]):
            return False
        clause.subject = clause.fronted = Interrogative(True)
        clause.modal = None if clause.modal is MUST else clause.modal
        clause.manner = None
    elif kind == "whom":
        return _ask_whom(clause)
    else:
        _ask_object(chooser, clause, kind)
    return True


def _ask_whom(clause: Clause) -> bool:
    if clause.dative is not None:
        clause.dative = clause.fronted = Interrogative(True)
        clause.dative_with_to = True
        return True
    node = clause.governed.noun_phrase
    if type(node) is NounPhrase and "human" not in node.noun.classes:
        return False
    clause.governed.noun_phrase = Interrogative(True)
    clause.fronted = clause.governed
    return True


def _ask_object(chooser: Chooser, clause: Clause, kind: str) -> None:
    node = clause.accusative
    people = type(node) is not NounPhrase or "human" in node.noun.classes
    if kind == "which" and type(node) is NounPhrase and not node.noun.mass and node.noun.english not in ONE_EACH:
        node.possessor = node.number = None
        node.determiner = WHICH if not node.plural or chooser.chance(0.3) else HOW_MANY
    else:
        node = clause.accusative = Interrogative(people)
    clause.fronted = node
    if type(clause.dative) is not Pronoun:
        clause.dative_with_to = True
