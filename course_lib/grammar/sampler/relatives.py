"""Random relative clauses, where German can place them unmistakably."""

from course_lib.grammar.lexicon import BE, VERB, Verb
from course_lib.grammar.lexicon.function_words import EVERY, NO, THE, A
from course_lib.grammar.sampler.adverbials import fill_adverbials
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.clauses import fill_objects
from course_lib.grammar.sampler.common_sense import settle
from course_lib.grammar.sampler.phrases import someone
from course_lib.grammar.sampler.selection import NOUNS_OF, VERBS_OF_OBJECT, VERBS_OF_SUBJECT, objects_of
from course_lib.grammar.syntax import Adverb, Clause, NounPhrase, RelativePronoun, agreement


def _verbs(names: str) -> frozenset:
    return frozenset(VERB[name.replace("_", " ")] for name in names.split())


# What tells one thing or person from the others: in the present, and as something that happened
_STATES = _verbs("lieben mögen kennen brauchen gehören haben")
_HABITS = _verbs("arbeiten spielen singen tanzen stehen liegen helfen besuchen warten")
_EVENTS = _verbs("kaufen verlieren schreiben sehen besuchen helfen anrufen einladen lesen reparieren suchen")
# What can be said of somebody with a relative clause; what happens to somebody or something with one
_OF_SUBJECT = _STATES | _verbs("sein helfen")
_OF_OBJECT = _verbs(
    "sehen suchen finden lieben mögen kennen besuchen brauchen anrufen einladen helfen danken lesen kaufen vergessen "
    "reparieren öffnen waschen tragen"
)


def _alike(verb: Verb, main: Verb) -> bool:
    """Whether both tell a state: the man whom she likes needs ..."""
    return verb.stative and main.stative and main is not BE


def relative_clause(chooser: Chooser, head: NounPhrase, main: Clause, tense: str) -> Clause | None:
    """A short relative clause about the head: the dog that sleeps, the book that she reads."""
    word = RelativePronoun(head)
    allowed = _EVENTS if tense in ("past", "perfect") else _STATES | _HABITS
    sides = [
        [verb for verb in verbs[head.noun] if verb in allowed and verb is not main.verb and not _alike(verb, main.verb)]
        for verbs in (VERBS_OF_SUBJECT, VERBS_OF_OBJECT)
    ]
    subject = bool(sides[0]) and (not sides[1] or chooser.chance(0.5))
    options = sides[0 if subject else 1]
    if not options:
        return None
    verb = chooser.pick(options)
    if subject:
        clause = Clause(word, verb, tense, "relative", fronted=word)
    else:
        other = someone(chooser, NOUNS_OF[verb.frame.subject], "subject", pronouns=0.45, avoid=(main.subject,))
        if not objects_of(verb, (head.noun,), other):
            return None
        clause = Clause(other, verb, tense, "relative", accusative=word, fronted=word)
    if tense == "past" and agreement(clause.subject)[0] == 2:
        clause.tense = "perfect"
    if verb.past == verb.english and clause.tense == "past" and agreement(clause.subject) != (3, False):
        clause.tense = "perfect"
    fill_objects(chooser, clause, 0.15)
    settle(clause)
    fill_adverbials(chooser, clause, 0 if verb.frame.place_needed or verb not in _HABITS else 1)
    clause.time = clause.frequency = clause.manner = None
    return None if type(clause.location) is Adverb else clause


def attach_relative(chooser: Chooser, clause: Clause, likely: float) -> None:
    """Gives the subject or the last object a relative clause, if German can place it unmistakably."""
    if (
        not chooser.chance(likely)
        or clause.frequency is not None
        or getattr(clause.subject, "determiner", None) in (EVERY, NO)
    ):
        return
    past = clause.tense == "past"
    tense = chooser.pick(("past", "past", "present") if past else ("present", "present", "past", "perfect"))
    front = clause.opener or clause.fronted
    last = not any(
        (clause.manner, clause.location, clause.direction, clause.governed, clause.predicate, clause.negated)
    )
    node = clause.accusative or clause.dative if clause.verb in _OF_OBJECT else None
    if not (type(node) is NounPhrase and last and (clause.time is None or front is clause.time)):
        node = clause.subject if front is None and not clause.negated and clause.verb in _OF_SUBJECT else None
    both = clause.accusative is not None and clause.dative is not None and node is not clause.subject
    if (
        type(node) is NounPhrase
        and node.possessor is None
        and not node.number
        and not both
        and not node.noun.mass
        and (node.determiner is THE or (node.determiner is A and node is not clause.subject))
    ):
        node.relative = relative_clause(chooser, node, clause, tense)
