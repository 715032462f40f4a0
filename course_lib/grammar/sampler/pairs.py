"""Random sentences of two clauses that belong together: a script, and how its two events are joined."""

from typing import Any, NamedTuple

from course_lib.grammar.lexicon import ADJECTIVES_FOR, BE, Conjunction
from course_lib.grammar.lexicon import function_words as words
from course_lib.grammar.sampler.adverbials import at, time
from course_lib.grammar.sampler.anaphora import take_up
from course_lib.grammar.sampler.chooser import Chooser
from course_lib.grammar.sampler.clauses import negatable
from course_lib.grammar.sampler.common_sense import settle
from course_lib.grammar.sampler.phrases import someone
from course_lib.grammar.sampler.scripts import SCRIPTS, Event, Script
from course_lib.grammar.sampler.selection import objects_of
from course_lib.grammar.syntax import Adverb, Clause, NounPhrase, Predicate, PrepPhrase, Pronoun, Sentence, agreement


class _Relation(NamedTuple):
    """How two events are joined.

    Args:
        conjunction: what joins them.
        tenses: of the main clause and of the other one, to choose from.
        swapped: the second event comes first.
        denied: which event is denied: the first, the second or none.
        fronted: how likely the subordinate clause stands in front.
    """

    conjunction: Conjunction
    tenses: tuple[tuple[str, str], ...]
    swapped: bool = False
    denied: str = ""
    fronted: float = 0.0


_NOW, _THEN, _LATER = ("present", "present"), ("past", "past"), ("future", "present")
_DONE = ("perfect", "perfect")
_RELATIONS = {
    "because": _Relation(words.BECAUSE, (_NOW, _NOW, _THEN)),
    "although": _Relation(words.ALTHOUGH, (_NOW, _THEN), denied="first"),
    "yet": _Relation(words.BUT, (_NOW, _THEN), swapped=True, denied="first"),
    "if": _Relation(words.IF, (_NOW, _LATER, _LATER), fronted=0.5),
    "when": _Relation(words.WHEN_PRESENT, (_NOW,), fronted=0.5),
    "when_past": _Relation(words.WHEN_PAST, (_THEN,), fronted=0.5),
    "while": _Relation(words.WHILE, (_NOW, _THEN), fronted=0.5),
    "before": _Relation(words.BEFORE, (_NOW, _THEN), fronted=0.3),
    "and": _Relation(words.AND, (_NOW, _THEN)),
    "but": _Relation(words.BUT, (_NOW, _THEN, _DONE)),
    "but_not": _Relation(words.BUT, (_NOW, _THEN, _DONE), denied="second"),
}
_DATED = (words.BECAUSE, words.ALTHOUGH)


def _cast(chooser: Chooser, script: Script, letter: str, role: str, event: Event, cast: dict[str, Any]) -> Any:
    """Who or what plays a part: whoever played it before, or somebody new."""
    if letter not in cast:
        nouns, owner = script.cast[letter], cast.get(event.subject) or next(iter(cast.values()), None)
        for part in (script.first, script.second):
            direct = 1 if part.verb.frame.dative and part.verb.frame.accusative else 0
            if letter in part.objects[direct : direct + 1] and part.subject in cast:
                nouns = objects_of(part.verb, nouns, cast[part.subject])
        if not nouns:
            cast[letter] = None
            return None
        cast[letter] = someone(chooser, nouns, role, pronouns=0.32, owner=owner, avoid=tuple(cast.values()))
        if len(cast) > 1 and type(cast[letter]) is Pronoun and cast[letter].person == 3:
            cast[letter] = None  # he, without anybody he could be
        _make_definite(cast[letter], _lasting(script, letter), event.verb is BE)
    return cast[letter]


def _lasting(script: Script, letter: str) -> bool:
    """Whether both events have the participant."""
    return all(letter in (event.subject, *event.objects) for event in (script.first, script.second))


def _point_out(node: Any) -> None:
    """Says the, of what is denied and yet taken up: he does not buy the lamp because it is old."""
    if type(node) is NounPhrase and not node.definite:
        node.determiner = words.THE


def _make_definite(node: Any, lasting: bool, described: bool) -> None:
    """Says the, where somebody acts and where something is described; what lasts can be a thing to begin with."""
    if type(node) is not NounPhrase or (node.definite and node.determiner is not words.EVERY):
        return
    person, single = "human" in node.noun.classes, node.determiner is words.A
    if person or described or (lasting and not single and not node.number) or node.determiner is words.EVERY:
        node.determiner = words.THE


def _clause(chooser: Chooser, script: Script, event: Event, tense: str, cast: dict[str, Any]) -> Clause | None:
    """A clause that says an event; None if it cannot be said in this tense or of these participants."""
    verb, frame = event.verb, event.verb.frame
    if event.modal is not None and tense not in ("present", "past"):
        return None
    timed = {"perfect": "perfect", "future": "future"}.get(event.time)
    if (timed and tense != "present") or ((verb.stative or frame.place_needed) and tense == "perfect"):
        return None
    clause = Clause(None, verb, timed or tense, modal=event.modal)
    if event.subject == "it":
        clause.subject = Pronoun(3, False, "n")
    else:
        clause.subject = _cast(chooser, script, event.subject, "subject", event, cast)
    objects = list(event.objects)
    if frame.dative:
        clause.dative = _cast(chooser, script, objects.pop(0), "dative", event, cast)
    if frame.accusative:
        clause.accusative = _cast(chooser, script, objects.pop(0), "object", event, cast)
    if objects:
        english, german, case, _ = frame.preposition
        other = _cast(chooser, script, objects.pop(0), "dative" if case == "dative" else "object", event, cast)
        clause.governed = PrepPhrase(english, german, case, other, contracts=case == "dative")
    clause.negated = event.negated
    for letter in event.objects:
        if clause.negated and _lasting(script, letter):
            _point_out(cast[letter])
    clause.progressive = event.time == "ing" and tense in ("present", "past")
    if event.places:
        _place(chooser, clause, chooser.pick(event.places))
    if event.manners:
        clause.manner = Adverb(words.MANNERS[chooser.pick(event.manners)])
    if None in cast.values():
        return None
    return _describe(chooser, clause, event) and _sound(clause)


def _place(chooser: Chooser, clause: Clause, where: str) -> None:
    """Puts a place where the clause leads, or else where it happens."""
    phrase = at(chooser, where, clause.subject, plain=chooser.chance(0.8))
    if clause.verb.frame.direction:
        clause.direction = phrase
        if type(phrase) is PrepPhrase and phrase.two_way:
            phrase.case = "accusative"
    else:
        clause.location = phrase


def _describe(chooser: Chooser, clause: Clause, event: Event) -> Clause | None:
    """Says what the subject is, if the event says so and the subject can be it."""
    settle(clause)
    if not event.adjectives:
        return clause
    node = clause.subject
    options = event.adjectives
    if type(node) is NounPhrase:
        options = tuple(adjective for adjective in options if adjective in ADJECTIVES_FOR[node.noun])
    if not options:
        return None
    clause.predicate = Predicate(chooser.pick(options))
    if type(node) is NounPhrase:
        taken = clause.predicate.adjective.rank
        kept = (1, 5) if "food" in node.noun.classes else (1, 4, 5)
        node.adjectives = tuple(a for a in node.adjectives if a.rank != taken and a.rank in kept)
    return clause


def _sound(clause: Clause) -> Clause | None:
    """The clause, unless its tense is doubtful (I put, you saw) or it cannot be negated."""
    person, plural = agreement(clause.subject)
    if clause.tense == "past":
        same = clause.verb.past == clause.verb.english and clause.modal is None and not clause.negated
        if person == 2 or (same and (person, plural) != (3, False)):
            return None
    return clause if not clause.negated or negatable(clause) else None


def _tell(chooser: Chooser, script: Script, relation: _Relation) -> Sentence | None:
    """A sentence that joins the events of a script; None if this cast of it cannot be said without doubt."""
    events = [script.first, script.second]
    if relation.denied:
        denied = 0 if relation.denied == "first" else 1
        events[denied] = events[denied]._replace(negated=not events[denied].negated)
    if relation.swapped:
        events.reverse()
    tenses = chooser.pick(relation.tenses)
    order = (1, 0) if relation.fronted and chooser.chance(relation.fronted) else (0, 1)
    cast: dict[str, Any] = {}
    clauses: list[Clause | None] = [None, None]
    for index in order:
        clauses[index] = _clause(chooser, script, events[index], tenses[index], cast)
        if clauses[index] is None:
            return None
    first, second = clauses
    earlier, later = (clauses[index] for index in order)
    second.force = "subordinate" if relation.conjunction.subordinating else "statement"
    second.silent_subject = relation.conjunction is words.AND and second.subject is first.subject
    if not take_up(earlier, later):
        return None
    for clause in clauses:
        clause.dative_with_to = type(clause.accusative) is Pronoun
    if order == (0, 1) and (second.silent_subject or relation.conjunction in _DATED):
        _date(chooser, first)
    return Sentence(first, relation.conjunction, second, order == (1, 0))


def _date(chooser: Chooser, clause: Clause) -> None:
    """Says, in front, when it happened, now and then."""
    if clause.tense == "past" and clause.verb is not BE and not clause.verb.stative and chooser.chance(0.3):
        clause.time = clause.fronted = time(
            chooser, "past", clause.verb, habit=False, season=False, denied=clause.negated
        )


def _pair(chooser: Chooser, kind: str) -> Sentence | None:
    script = chooser.pick(SCRIPTS[kind])
    return _tell(chooser, script, _RELATIONS[chooser.pick(script.relations)])


def because(chooser: Chooser) -> Sentence | None:
    """What somebody does, and why, on which condition, or in spite of what: she buys the lamp because it is new."""
    return _pair(chooser, "causes")


def together(chooser: Chooser) -> Sentence | None:
    """Two things that go together: one after the other, at the same time, side by side."""
    return _pair(chooser, "courses")
