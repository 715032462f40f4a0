"""Which pronoun takes up a participant: he, she, they, or an "it" whose antecedent is beyond doubt.

Doubt ends where only one of two things can be meant: in "the man puts the book on the table because it is boring" no
table is boring, in "the dog sees the cat and follows it" the dog cannot be the one it follows.
"""

from collections.abc import Iterator
from typing import Any

from course_lib.grammar.lexicon import ADJECTIVES_FOR, BE, NAMES
from course_lib.grammar.sampler.selection import can_be
from course_lib.grammar.syntax import Clause, Coordination, Name, NounPhrase, PrepPhrase, Pronoun, Sentence

_PARTICIPANTS = ("subject", "accusative", "dative", "governed", "location", "direction")


def nominals(node: Any) -> Iterator[Any]:
    """The noun phrases, names and pronouns of a clause or phrase, possessors and relative clauses included."""
    kind = type(node)
    if kind is Clause:
        for slot in _PARTICIPANTS[1 if node.silent_subject else 0 :]:
            yield from nominals(getattr(node, slot))
    elif kind is PrepPhrase:
        yield from nominals(node.noun_phrase)
    elif kind is Coordination:
        yield node
        yield from nominals(node.first)
        yield from nominals(node.second)
    elif kind is NounPhrase:
        yield node
        yield from nominals(node.possessor)
        yield from nominals(node.relative)
    elif kind in (Name, Pronoun):
        yield node


def anaphor(node: Any) -> Pronoun | None:
    """The pronoun that takes up a participant; None where there is none: every, no, the girl that is "it"."""
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
        return Pronoun(3, False, "n", node)
    gender = {"he": "m", "she": "f"}[node.noun.pronoun]
    return Pronoun(3, False, gender) if gender == node.noun.gender else None


def _person(word: Pronoun) -> tuple[int, bool, str]:
    return word.person, word.plural, word.gender


def _possible(clause: Clause, slot: str, node: Any) -> bool:
    """Whether a noun phrase can fill a slot of a clause: the cake can be sweet, the table cannot."""
    if type(node) is not NounPhrase:
        return True
    if slot == "subject" and clause.verb is BE:
        return clause.predicate is None or clause.predicate.adjective in ADJECTIVES_FOR[node.noun]
    return can_be(clause.verb, slot, node.noun)


def _doubtful(earlier: Clause, clause: Clause, slot: str, node: Any, word: Pronoun) -> bool:
    """Whether a pronoun in a slot of a clause could mean another participant of the clause before."""
    for other in nominals(earlier):
        if other is node or (slot != "subject" and other is clause.subject):
            continue
        rival = anaphor(other)
        if rival is None or _person(rival) != _person(word) or word.person < 3:
            continue
        continued = slot == "subject" and node is earlier.subject and word.gender != "n"
        if not continued and _possible(clause, slot, other):
            return True
    return False


def take_up(earlier: Clause, clause: Clause) -> bool:
    """Puts pronouns where a clause repeats participants of the clause before; False if one would be doubtful."""
    said = list(nominals(earlier))
    if type(clause.subject) is Pronoun and clause.subject.gender == "n":  # the weather
        if any(_possible(clause, "subject", node) for node in said if type(node) is NounPhrase):
            return False
    words: dict[str, Pronoun] = {}
    for slot in ("subject", "accusative", "dative", "governed"):
        phrase = None if slot == "subject" and clause.silent_subject else getattr(clause, slot)
        node = phrase.noun_phrase if type(phrase) is PrepPhrase else phrase
        if not any(node is other for other in said):
            continue
        word = anaphor(node)
        thing = word is not None and slot == "governed" and word.antecedent is not None  # damit, darauf
        if word is None or thing or _doubtful(earlier, clause, slot, node, word):
            return False
        words[slot] = word
    if len({_person(word) for word in words.values()}) < len(words):
        return False
    for slot, word in words.items():
        if slot == "governed":
            clause.governed.noun_phrase = word
        else:
            setattr(clause, slot, word)
    return True


def repeats(tree: Sentence) -> bool:
    """Whether a noun or name is said twice (Paul sees Paul's bottle)."""
    said = [
        node.noun if type(node) is NounPhrase else node.name
        for clause in (tree.first, tree.second)
        for node in nominals(clause)
        if type(node) in (NounPhrase, Name)
    ]
    return len(set(said)) < len(said)
