"""Random clauses with be: what or where somebody or something is."""

from typing import Any

from course_lib.grammar.lexicon import ADJECTIVES_FOR, BE, NOUN, Adjective, Noun
from course_lib.grammar.lexicon.function_words import EVERY, THE
from course_lib.grammar.linearizers import is_definite
from course_lib.grammar.sampler.adverbials import location
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.clauses import negatable
from course_lib.grammar.syntax import Clause, NounPhrase, Predicate


def predicates(noun: Noun, said: tuple[Adjective, ...]) -> tuple[Adjective, ...]:
    """The adjectives that can be said of a noun without contradicting those that were."""
    taken = {adjective.rank for adjective in said}
    return tuple(adjective for adjective in ADJECTIVES_FOR[noun] if adjective.rank not in taken)


def _point_out(subject: Any) -> None:
    """Says the, or my, of what is described: not every key is old, nor three bears."""
    if type(subject) is NounPhrase and (subject.determiner is EVERY or not is_definite(subject)):
        subject.determiner = THE


def copula(chooser: Chooser, subject: Any, tense: str, force: str = "statement") -> Clause | None:
    """What or where the subject is (tired, new, in the garden); None where nothing sensible can be said."""
    clause = Clause(subject, BE, tense, force)
    noun = subject.noun if type(subject) is NounPhrase else NOUN["man"]
    options = predicates(noun, subject.adjectives if type(subject) is NounPhrase else ())
    if type(subject) is not NounPhrase:
        options = tuple(adjective for adjective in options if adjective.rank == 2)
    if "place" not in noun.classes and noun.english not in ("window", "story") and chooser.chance(0.3):
        clause.location = location(chooser, BE, subject)
        _point_out(subject)
    elif options:
        clause.predicate = Predicate(chooser.pick(options))
        if type(subject) is NounPhrase:
            subject.adjectives = tuple(a for a in subject.adjectives if a.rank in (1, 4, 5) and a.english != "strong")
            _point_out(subject)
    else:
        return None
    clause.negated = negatable(clause) and chooser.chance(0.15)
    return clause
