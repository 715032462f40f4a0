"""Which pronoun takes up a noun phrase: he, she, they, or an "it" whose antecedent is beyond doubt."""

from typing import Any

from course_lib.grammar.lexicon import NAMES
from course_lib.grammar.syntax import Clause, Coordination, Name, NounPhrase, PrepPhrase, Pronoun


def _it_candidates(clause: Clause) -> list[NounPhrase]:
    """The noun phrases that "it" could take up."""
    found: list[NounPhrase] = []

    def visit(node: Any) -> None:
        if type(node) is PrepPhrase:
            visit(node.noun_phrase)
        elif type(node) is Coordination:
            visit(node.first)
            visit(node.second)
        elif type(node) is NounPhrase:
            if not node.plural and node.noun.pronoun == "it":
                found.append(node)
            visit(node.possessor)

    for node in (clause.subject, clause.accusative, clause.dative, clause.governed, clause.location, clause.direction):
        visit(node)
    return found


def anaphor(clause: Clause, node: Any) -> Pronoun | None:
    """The pronoun that takes up a participant of a clause; None if it would be doubtful."""
    kind = type(node)
    if kind is Pronoun:
        return Pronoun(node.person, node.plural, node.gender, node.antecedent)
    if kind is Name:
        return Pronoun(3, False, "m" if NAMES[node.name] == "he" else "f")
    if kind is Coordination:
        return Pronoun(3, True)
    if node.determiner is not None and node.determiner.english in ("every", "no"):
        return None
    if node.plural:
        return Pronoun(3, True, "", node)
    if node.noun.pronoun == "it":
        return Pronoun(3, False, "n", node) if _it_candidates(clause) == [node] else None
    gender = {"he": "m", "she": "f"}[node.noun.pronoun]
    return Pronoun(3, False, gender) if gender == node.noun.gender else None
