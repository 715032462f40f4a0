"""Random sentences of one clause, and what people say, know or ask."""

from course_lib.grammar.lexicon import ADJECTIVE, BE, RAIN, SNOW, VERB
from course_lib.grammar.lexicon.function_words import CLOCK_PREDICATES, EVERY, NO, THAT, THE, WHETHER
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.clauses import copula, new_clause, second_clause
from course_lib.grammar.sampler.phrases import someone, time
from course_lib.grammar.sampler.relatives import attach_relative
from course_lib.grammar.syntax import Adverb, Clause, Predicate, Pronoun, Sentence, agreement

_CLAUSAL = {
    "that": tuple(VERB[name] for name in ("sagen", "glauben", "hoffen", "wissen")),
    "whether": tuple(VERB[name] for name in ("wissen", "fragen")),
}
_COMPLEMENT_TENSES = Weighted({"present": 5, "perfect": 3, "future": 3})


def _description(chooser: Chooser) -> Clause | None:
    """What or where somebody or something is: the soup was hot; the dog that sleeps is old."""
    group = "everything" if chooser.chance(0.6) else "animate"
    subject = someone(chooser, group, "subject", pronouns=0.3)
    past = agreement(subject)[0] != 2 and chooser.chance(0.3)
    clause = copula(chooser, subject, "past" if past else "present")
    if clause is not None:
        attach_relative(chooser, clause, 0.35)
    return clause


def simple(chooser: Chooser) -> Sentence | None:
    """One statement."""
    if chooser.chance(0.17):
        clause = _description(chooser)
        return Sentence(clause) if clause is not None else None
    clause = new_clause(chooser, arrange=True, negation=0.15)
    attach_relative(chooser, clause, 0.35)
    return Sentence(clause)


def complement(chooser: Chooser) -> Sentence:
    """What somebody says or knows: the woman says that ...; he does not know whether ..."""
    conjunction = THAT if chooser.chance(0.65) else WHETHER
    verb = chooser.pick(_CLAUSAL[conjunction.english])
    subject = someone(chooser, verb.frame.subject, "subject", pronouns=0.4)
    if getattr(subject, "determiner", None) in (EVERY, NO):
        subject.determiner = THE
    past = verb.name in ("sagen", "fragen", "wissen") and agreement(subject)[0] != 2 and chooser.chance(0.25)
    main = Clause(
        subject, verb, "past" if past else "present", negated=conjunction is WHETHER and verb.name == "wissen"
    )
    tense = "past" if past else chooser.weighted(_COMPLEMENT_TENSES)
    second = (
        second_clause(chooser, tense)
        if chooser.chance(0.75)
        else copula(
            chooser,
            someone(chooser, "animate", "subject", pronouns=0.4),
            "past" if tense == "past" else "present",
            "subordinate",
        )
    )
    if second is None or (second.tense == "past") != past and past:
        return complement(chooser)
    return Sentence(main, conjunction, second)


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
        clause = Clause(it, BE, tense, predicate=Predicate(ADJECTIVE[chooser.pick(("cold", "warm", "dark", "hot"))]))
    else:
        clause = Clause(it, chooser.pick((RAIN, SNOW)), tense, negated=chooser.chance(0.15))
        clause.progressive = tense == "present" and chooser.chance(0.5)
    if chooser.chance(0.7):
        clause.time = time(chooser, "progressive" if clause.progressive else tense)
        clause.fronted = clause.time if chooser.chance(0.5) else None
    return Sentence(clause)
