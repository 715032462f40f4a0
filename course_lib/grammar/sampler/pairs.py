"""Random sentences of two clauses that belong together: reasons, sequences, conditions, contrasts."""

from typing import Any

from course_lib.grammar.lexicon import BE, RAIN, SNOW, Conjunction, Verb
from course_lib.grammar.lexicon.function_words import (
    ALTHOUGH,
    AND,
    BECAUSE,
    BEFORE,
    BUT,
    IF,
    MUST,
    WANT,
    WHEN_PAST,
    WHEN_PRESENT,
    WHILE,
)
from course_lib.grammar.sampler.anaphora import anaphor
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.clauses import EVENTS, PLAIN_VERBS, fill, new_clause, second_clause
from course_lib.grammar.sampler.common_sense import FOLLOWING, REASON_VERBS, REASONS, STARTS, UNWILLED, moods_for
from course_lib.grammar.sampler.phrases import predicates
from course_lib.grammar.sampler.selection import NOUNS_OF, VERBS_OF_SUBJECT
from course_lib.grammar.syntax import Clause, NounPhrase, Predicate, Pronoun, Sentence, agreement

_HUMAN_GROUPS = frozenset({"human", "reader", "animate", "adult", "human_not_baby"})


def _about(
    chooser: Chooser, first: Clause, conjunction: Conjunction, word: Any, node: Any, tense: str
) -> Clause | None:
    """A clause whose subject takes up a participant of the first clause: it is new, he wants to sleep.

    Args:
        chooser: the source of choices.
        first: the clause before.
        conjunction: what will join the two; a reason or condition has to suit what is done.
        word: the pronoun that is the subject.
        node: what it takes up.
        tense: of the new clause.
    """
    force = "subordinate" if conjunction.subordinating else "statement"
    reason, wish = conjunction in (BECAUSE, IF, WHEN_PRESENT), conjunction is BECAUSE
    person = type(node) is not NounPhrase or "human" in node.noun.classes
    if not person and "animate" not in node.noun.classes:
        options = predicates(node.noun, node.adjectives, (2, 3, 4))
        if not options:
            return None
        return Clause(word, BE, tense, force, predicate=Predicate(chooser.pick(options)))
    said = node.adjectives if type(node) is NounPhrase else ()
    moods = tuple(mood for mood in moods_for(first.verb, reason) if mood not in said)
    if moods and chooser.chance(0.6):
        return Clause(word, BE, tense, force, predicate=Predicate(chooser.pick(moods)))
    if wish and first.verb in UNWILLED:
        return None
    clause = _deed(chooser, Clause(word, BE, tense, force), node, wish)
    if clause is not None and wish and clause.tense == tense and not clause.verb.stative:
        clause.modal = WANT if clause.negated or chooser.chance(0.6) else MUST
    return clause


def _deed(chooser: Chooser, clause: Clause, node: Any, wish: bool) -> Clause | None:
    """Gives the clause something to do that suits its subject, which takes up `node`."""
    plural = clause.subject.plural
    verbs = VERBS_OF_SUBJECT[node.noun] if type(node) is NounPhrase else PLAIN_VERBS
    options = tuple(
        v
        for v in verbs
        if not v.frame.clause and (not plural or v.stem_verb != "fressen") and (not wish or v in REASON_VERBS)
    )
    if not options:
        return None
    clause.verb = chooser.pick(options)
    if type(node) is not NounPhrase and clause.verb.frame.subject not in _HUMAN_GROUPS:
        return None
    fill(chooser, clause, rich=0.3, negation=0.1, modal=0, progressive=0)
    clause.time = clause.frequency = None
    return clause


def because(chooser: Chooser) -> Sentence | None:
    """What somebody does, and why or in spite of what: she buys the lamp because it is new."""
    tense = "past" if chooser.chance(0.35) else "present"
    conjunction = BECAUSE if chooser.chance(0.7) else ALTHOUGH
    first = new_clause(
        chooser, tense=tense, verbs=EVENTS, rich=0.35, modal=0.05, negation=0 if conjunction is BECAUSE else 0.1
    )
    tense = first.tense if first.tense == "past" else "present"
    node = first.accusative if type(first.accusative) is NounPhrase and chooser.chance(0.6) else first.subject
    word = anaphor(first, node)
    second = _about(chooser, first, conjunction, word, node, tense) if word is not None else None
    if second is None or (second.tense == "past" and agreement(second.subject)[0] == 2):
        return None
    return Sentence(first, conjunction, second)


def taken_up(chooser: Chooser) -> Sentence | None:
    """Two things done with one object: the man buys the book and gives it to her."""
    tense = chooser.pick(("present", "past", "past", "perfect"))
    first = new_clause(chooser, tense=tense, verbs=STARTS, rich=0.25, negation=0, modal=0, pronouns=0.3, progressive=0)
    node = first.accusative
    word = anaphor(first, node) if type(node) is NounPhrase and "human" not in node.noun.classes else None
    if word is None or first.tense != tense:
        return None
    first.frequency = None
    conjunction = chooser.pick((AND, AND, BECAUSE, BUT, BEFORE if tense != "perfect" else BUT))
    if conjunction is BECAUSE and first.verb in UNWILLED:
        return None
    verbs = REASONS if conjunction is BECAUSE else FOLLOWING[first.verb]
    options = tuple(
        v for v in verbs if node.noun in NOUNS_OF[v.frame.accusative or v.frame.dative] and _same_group(first, v)
    )
    subject = first.subject if conjunction is AND else anaphor(first, first.subject)
    if not options or subject is None:
        return None
    verb = chooser.pick(options)
    if verb.stative:
        tense = "past" if tense == "past" else "present"
    force = "subordinate" if conjunction.subordinating else "statement"
    second = Clause(subject, verb, tense, force, silent_subject=conjunction is AND)
    if verb.frame.accusative:
        second.accusative = word
    else:
        second.dative = word
    fill(chooser, second, rich=0.2, pronouns=0.5, modal=0, negation=1 if conjunction is BUT else 0, progressive=0)
    second.time = second.fronted = None
    unfit = (conjunction is AND and tense == "perfect") or (conjunction is BUT and not second.negated)
    if unfit or second.tense != tense:
        return None
    return Sentence(first, conjunction, second)


def _same_group(clause: Clause, verb: Verb) -> bool:
    """Whether the subject of a clause can be the subject of another verb too."""
    subject = clause.subject
    if type(subject) is NounPhrase:
        return subject.noun in NOUNS_OF[verb.frame.subject]
    return verb.frame.subject in _HUMAN_GROUPS


def when(chooser: Chooser) -> Sentence | None:
    """Two events: when, if, while, before; "when" about one event of the past is als."""
    conjunction = chooser.pick((WHEN_PAST, WHEN_PAST, WHEN_PRESENT, IF, IF, WHILE, BEFORE))
    past = conjunction is WHEN_PAST or (conjunction in (WHILE, BEFORE) and chooser.chance(0.5))
    tense = "past" if past else "present"
    first_tense = "future" if conjunction is IF and chooser.chance(0.4) else tense
    first = new_clause(
        chooser,
        tense=first_tense,
        verbs=EVENTS,
        rich=0.3,
        negation=0.08,
        progressive=0,
        modal=0.2 if conjunction is IF else 0,
    )
    word = anaphor(first, first.subject) if chooser.chance(0.45) else None
    if conjunction in (WHEN_PRESENT, WHEN_PAST, IF) and chooser.chance(0.08):
        second = Clause(Pronoun(3, False, "n"), chooser.pick((RAIN, SNOW)), tense, "subordinate")
    elif word is not None and conjunction in (IF, WHEN_PRESENT):
        second = _about(chooser, first, conjunction, word, first.subject, tense)
    else:
        second = second_clause(chooser, tense, verbs=EVENTS, rich=0.25, modal=0, negation=0, progressive=0)
    if second is None or second.tense != tense or first.tense != first_tense or _mixed(first, second):
        return None
    second.time = second.frequency = None
    if conjunction in (WHEN_PAST, BEFORE):
        first.frequency = None
    second_first = chooser.chance(0.5) and type(second.subject) is not Pronoun
    if second_first and first.fronted is not None:
        return None
    if not second_first and first.time is not None:
        first.time = first.fronted = None
    return Sentence(first, conjunction, second, second_first)


def _mixed(first: Clause, second: Clause) -> bool:
    """Whether one verb is said twice or a past clause is about you."""
    return first.verb is second.verb or any(
        clause.tense == "past" and agreement(clause.subject)[0] == 2 for clause in (first, second)
    )


def coordinated(chooser: Chooser) -> Sentence | None:
    """Two main clauses: the man works, and the woman reads; the dog is hungry, but it does not eat."""
    tense = chooser.pick(("present", "past", "future", "perfect"))
    first = new_clause(chooser, tense=tense, rich=0.25, modal=0.08, negation=0.08, progressive=0)
    conjunction = AND if chooser.chance(0.5) else BUT
    if conjunction is BUT and chooser.chance(0.5):
        word = anaphor(first, first.subject)
        later = "past" if tense == "past" else "present"
        second = _about(chooser, first, conjunction, word, first.subject, later) if word else None
    else:
        second = second_clause(
            chooser,
            first.tense,
            "statement",
            rich=0.25,
            modal=0.08,
            progressive=0,
            negation=0.25 if conjunction is BUT else 0.0,
        )
    if second is None or first.tense != second.tense or _mixed(first, second):
        return None
    return Sentence(first, conjunction, second)
