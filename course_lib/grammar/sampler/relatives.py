"""Random relative clauses, where German can place them unmistakably."""

from course_lib.grammar.lexicon import BE
from course_lib.grammar.lexicon.function_words import THE, A
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.clauses import fill_adverbials, fill_objects
from course_lib.grammar.sampler.phrases import someone
from course_lib.grammar.sampler.selection import VERBS_OF_OBJECT, VERBS_OF_SUBJECT
from course_lib.grammar.syntax import Clause, NounPhrase, RelativePronoun, agreement


def relative_clause(chooser: Chooser, head: NounPhrase, tense: str) -> Clause | None:
    """A short relative clause about the head: the dog that sleeps, the book that she reads."""
    noun, word = head.noun, RelativePronoun(head)
    if chooser.chance(0.5):
        verb = chooser.pick(VERBS_OF_SUBJECT[noun] or (BE,))
        clause = Clause(word, verb, tense, "relative", fronted=word)
        if verb is BE or verb.frame.clause:
            return None
        fill_objects(chooser, clause, 0.15)
    else:
        options = VERBS_OF_OBJECT[noun]
        if not options:
            return None
        verb = chooser.pick(options)
        subject = someone(chooser, verb.frame.subject, "subject", pronouns=0.45, avoid=head)
        clause = Clause(subject, verb, tense, "relative", accusative=word, fronted=word)
        if tense == "past" and agreement(subject)[0] == 2:
            clause.tense = "perfect" if not verb.stative else "present"
        fill_objects(chooser, clause, 0.15)
    if clause.tense == "perfect" and verb.stative:
        clause.tense = "present"
    if verb.past == verb.english and clause.tense == "past" and agreement(clause.subject) != (3, False):
        clause.tense = "present"
    if verb.frame.place_needed:
        fill_adverbials(chooser, clause, 0)
    return clause


def attach_relative(chooser: Chooser, clause: Clause, likely: float) -> None:
    """Gives the subject or the last object a relative clause, if German can place it unmistakably."""
    if not chooser.chance(likely):
        return
    tense = {"future": "present", "perfect": "present"}.get(clause.tense, clause.tense)
    if chooser.chance(0.25):
        tense = "perfect" if tense == "present" else tense
    front = clause.opener or clause.fronted
    last = not any(
        (clause.manner, clause.location, clause.direction, clause.governed, clause.predicate, clause.negated)
    )
    node = clause.accusative or clause.dative
    if not (
        type(node) is NounPhrase and last and (clause.time is None or front is clause.time) and chooser.chance(0.7)
    ):
        node = clause.subject if front is None and not clause.negated else None
    both = clause.accusative is not None and clause.dative is not None and node is not clause.subject
    if (
        type(node) is NounPhrase
        and node.possessor is None
        and not node.number
        and not both
        and not node.noun.mass
        and (node.determiner is THE or (node.determiner is A and node is not clause.subject))
    ):
        node.relative = relative_clause(chooser, node, tense)
