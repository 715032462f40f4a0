"""Random sentences of one clause, and what people say, know or ask."""

from typing import Any

from course_lib.grammar.lexicon import ADJECTIVE, BE, RAIN, SNOW, VERB, Verb
from course_lib.grammar.lexicon.function_words import CLOCK_PREDICATES, EVERY, NO, THAT, THE, WHETHER
from course_lib.grammar.sampler.adverbials import time
from course_lib.grammar.sampler.anaphora import take_up
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.clauses import PLAIN_VERBS, new_clause
from course_lib.grammar.sampler.common_sense import settle
from course_lib.grammar.sampler.copulas import copula
from course_lib.grammar.sampler.phrases import someone
from course_lib.grammar.sampler.relatives import attach_relative
from course_lib.grammar.sampler.selection import NOUNS_OF
from course_lib.grammar.syntax import Adverb, Clause, Name, NounPhrase, Predicate, Pronoun, Sentence, agreement

_CLAUSAL = {
    "that": tuple(VERB[name] for name in ("sagen", "glauben", "hoffen", "wissen")),
    "whether": tuple(VERB[name] for name in ("wissen", "fragen")),
}
_HOPED = tuple(
    VERB[name]
    for name in (
        "kommen zurückkommen besuchen anrufen helfen einladen mitbringen schicken schreiben bringen antworten "
        "ankommen kaufen reparieren singen tanzen lesen"
    ).split()
)
_UNTOLD = frozenset({"legen", "stellen", "sich setzen", "fressen", "danken", "stehen", "liegen", "sitzen", "vergessen"})
_TOLD = tuple(verb for verb in PLAIN_VERBS if verb.name not in _UNTOLD)
_TOLD_BY_ONESELF = tuple(verb for verb in _TOLD if verb.frame.subject in ("person", "worker", "human"))
_COMPLEMENT_TENSES = Weighted({"present": 5, "perfect": 3, "future": 3})


def _description(chooser: Chooser) -> Clause | None:
    """What or where somebody or something is: the soup was hot; the dog that sleeps is old."""
    group = "everything" if chooser.chance(0.6) else "animate"
    subject = someone(chooser, NOUNS_OF[group], "subject", pronouns=0.3)
    past = agreement(subject)[0] != 2 and chooser.chance(0.3)
    clause = copula(chooser, subject, "past" if past else "present")
    if clause is not None:
        attach_relative(chooser, clause, 0.9)
    return clause


def simple(chooser: Chooser) -> Sentence | None:
    """One statement."""
    if chooser.chance(0.2):
        clause = _description(chooser)
        return Sentence(clause) if clause is not None else None
    clause = new_clause(chooser, arrange=True, negation=0.24)
    attach_relative(chooser, clause, 0.9)
    return Sentence(clause)


def complement(chooser: Chooser) -> Sentence | None:
    """What somebody says or knows: the woman says that ...; he does not know whether ..."""
    conjunction = THAT if chooser.chance(0.65) else WHETHER
    verb = chooser.pick(_CLAUSAL[conjunction.english])
    subject = someone(chooser, NOUNS_OF[verb.frame.subject], "subject", pronouns=0.4)
    if getattr(subject, "determiner", None) in (EVERY, NO):
        subject.determiner = THE
    if verb.name in ("sagen", "fragen") and agreement(subject)[0] < 3:
        return None
    past = verb.name in ("sagen", "fragen", "wissen") and agreement(subject)[0] != 2 and chooser.chance(0.25)
    main = Clause(
        subject, verb, "past" if past else "present", negated=conjunction is WHETHER and verb.name == "wissen"
    )
    settle(main)
    second = _content(chooser, verb, subject, "past" if past else chooser.weighted(_COMPLEMENT_TENSES))
    if second is None or (past and second.tense != "past") or _same_person(subject, second.subject):
        return None
    return Sentence(main, conjunction, second) if take_up(main, second) else None


def _content(chooser: Chooser, verb: Verb, speaker: Any, tense: str) -> Clause | None:
    """What is said, believed, hoped or asked; now and then it is about the speaker."""
    hope = verb.name == "hoffen"
    if not hope and chooser.chance(0.2):
        subject = someone(chooser, NOUNS_OF["human"], "subject", pronouns=0.3)
        clause = copula(chooser, subject, "past" if tense == "past" else "present", "subordinate")
        if clause is not None and verb.name in ("fragen", "wissen"):
            clause.negated = False
        return clause
    oneself = type(speaker) in (NounPhrase, Name) and verb.name == "sagen" and chooser.chance(0.35)
    about = speaker if oneself else None
    if hope:
        tense = "future" if chooser.chance(0.6) else "perfect"
    verbs = _HOPED if hope else _TOLD if about is None else _TOLD_BY_ONESELF
    progressive = 1 if tense == "present" else 0
    return new_clause(
        chooser, tense=tense, force="subordinate", verbs=verbs, subject=about, pronouns=0.3, rich=0.3,
        progressive=progressive, negation=0.1 if verb.name in ("sagen", "glauben") else 0,
    )  # fmt: skip


def _same_person(node: Any, other: Any) -> bool:
    """Whether two mentions may mean the same people: I know that we ..., the boy knows that he ..."""
    if node is other or type(other) is not Pronoun:
        return False
    return other.person == 3 if type(node) is not Pronoun else node.person == other.person


def clock(chooser: Chooser) -> Sentence:
    """The time of day, said or asked: it is half past three; is it three o'clock?"""
    clause = Clause(Pronoun(3, False, "n"), BE, predicate=Adverb(chooser.pick(CLOCK_PREDICATES)))
    clause.force = "yes-no" if chooser.chance(0.25) else "statement"
    return Sentence(clause)


def weather(chooser: Chooser) -> Sentence:
    """The weather: it is raining; tomorrow it will snow; it is cold."""
    tense = chooser.pick(("present", "past", "future"))
    it = Pronoun(3, False, "n")
    if chooser.chance(0.35):
        clause = Clause(it, BE, tense, predicate=Predicate(ADJECTIVE[chooser.pick(("cold", "warm", "hot"))]))
    else:
        clause = Clause(it, chooser.pick((RAIN, SNOW)), tense, negated=chooser.chance(0.15))
        clause.progressive = tense == "present" and chooser.chance(0.5)
    if chooser.chance(0.7):
        clause.time = time(
            chooser, "progressive" if clause.progressive else tense, clause.verb, habit=False, season=False, denied=True
        )
        clause.fronted = clause.time if chooser.chance(0.5) else None
    return Sentence(clause)
