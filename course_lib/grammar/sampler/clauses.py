"""Random clauses: a verb, participants that suit it, tense, modal, negation, adverbials."""

from typing import Any

from course_lib.grammar.lexicon import BE, NOUN, PLACES, VERBS
from course_lib.grammar.lexicon.function_words import (
    ALREADY,
    CAN,
    EVERY,
    FREQUENCIES,
    MANNERS,
    MAY,
    MUST,
    NEVER,
    NO,
    PERHAPS,
    SHOULD,
    THE,
    UNFORTUNATELY,
    WANT,
    WOULD_LIKE,
    A,
)
from course_lib.grammar.linearizers import is_definite, is_indefinite
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.phrases import direction, location, place_phrase, predicates, someone, time
from course_lib.grammar.sampler.selection import NOUNS_OF
from course_lib.grammar.syntax import Adverb, Clause, NounPhrase, Predicate, PrepPhrase, Pronoun, agreement

PLAIN_VERBS = tuple(verb for verb in VERBS if not verb.frame.clause)
EVENTS = tuple(verb for verb in PLAIN_VERBS if not verb.stative)
_TENSES = Weighted({"present": 50, "past": 24, "perfect": 15, "future": 12})
_MODALS = Weighted({CAN: 5, MUST: 5, MAY: 2, SHOULD: 3, WANT: 5, WOULD_LIKE: 2})
_NEGATED_MODALS = Weighted({CAN: 4, MUST: 3, MAY: 4, SHOULD: 2, WANT: 4})
_NO_MODAL = frozenset(
    {"gehören", "mögen", "kennen", "wissen", "sich erinnern", "lieben", "brauchen", "haben", "glauben", "hoffen"}
)
_NO_PROGRESSIVE = frozenset({"finden", "verlieren", "vergessen", "ankommen", "springen", "sehen", "hören"})
_OFTEN_NEVER = (FREQUENCIES[0], NEVER)


def fill_objects(chooser: Chooser, clause: Clause, pronouns: float) -> None:
    """Fills in the objects that the verb's frame asks for, unless they are there already."""
    frame, subject = clause.verb.frame, clause.subject
    if frame.accusative and clause.accusative is None:
        animate = "human" in NOUNS_OF[frame.accusative][0].classes and clause.verb.name != "haben"
        clause.accusative = someone(
            chooser, frame.accusative, "object", pronouns=pronouns if animate else 0, avoid=subject
        )
        if clause.verb.name in ("lieben", "mögen") and getattr(clause.accusative, "determiner", None) is A:
            clause.accusative.determiner = THE
    if frame.dative and clause.dative is None:
        clause.dative = someone(chooser, frame.dative, "dative", pronouns=pronouns, avoid=subject)
    if frame.preposition and clause.governed is None and not (frame.optional and chooser.chance(0.65)):
        english, german, case, group = frame.preposition
        other = someone(
            chooser, group, "dative" if case == "dative" else "object", pronouns=pronouns * 0.5, avoid=subject
        )
        if type(other) is NounPhrase and not other.definite and other.determiner is None and not other.number:
            other.determiner = THE
        clause.governed = PrepPhrase(english, german, case, other, contracts=case == "dative")
    if clause.dative is not None and clause.accusative is not None:
        clause.dative_with_to = type(clause.accusative) is Pronoun or (
            type(clause.dative) is not Pronoun and chooser.chance(0.3)
        )


def _mood(chooser: Chooser, clause: Clause, modal: float, negation: float, progressive: float) -> None:
    """Chooses modal, negation and progressive, as far as verb and tense allow."""
    verb = clause.verb
    if chooser.chance(negation):
        if chooser.chance(0.7):
            _make_indefinite(clause.accusative)
        clause.negated = _negatable(clause)
    willing = type(clause.subject) is not NounPhrase or "animate" in clause.subject.noun.classes
    if clause.tense in ("present", "past") and willing and verb.name not in _NO_MODAL and chooser.chance(modal):
        clause.modal = chooser.weighted(_NEGATED_MODALS if clause.negated else _MODALS)
        if clause.tense == "past" and not (clause.modal.past and (clause.modal is not CAN or not clause.negated)):
            clause.modal = WANT
        return
    if clause.tense == "present" and not verb.stative and verb.name not in _NO_PROGRESSIVE:
        clause.progressive = chooser.chance(progressive)
    ambiguous_past = verb.past == verb.english and clause.tense == "past" and not clause.negated
    if ambiguous_past and agreement(clause.subject) != (3, False):
        clause.tense = "perfect"
    if clause.tense == "past" and agreement(clause.subject)[0] == 2:
        clause.tense = "perfect" if not verb.stative else "present"


def _make_indefinite(node: Any) -> None:
    """Prefers kein to nicht: the key becomes a key, the milk becomes milk."""
    if type(node) is NounPhrase and node.definite and node.possessor is None:
        node.determiner = None if node.plural or node.noun.mass else A


def _negatable(clause: Clause) -> bool:
    """Whether it can be negated: the subject must be definite, each object plainly definite or plainly indefinite."""
    objects = [clause.accusative, clause.dative, clause.governed and clause.governed.noun_phrase]
    if not is_definite(clause.subject) or getattr(clause.subject, "determiner", None) is EVERY:
        return False
    if any(
        type(node) is NounPhrase
        and node.determiner not in (None,)
        and not is_definite(node)
        and not is_indefinite(node)
        for node in objects
    ):
        return False
    return not any(
        type(node) is NounPhrase and not is_definite(node) and (node.number or node is not clause.accusative)
        for node in objects
    )


def fill_adverbials(chooser: Chooser, clause: Clause, rich: float) -> None:
    """Adds place, manner, time and frequency; `rich` scales how likely each is."""
    verb, frame = clause.verb, clause.verb.frame
    if frame.direction and (frame.place_needed or chooser.chance(0.4)):
        clause.direction = direction(chooser, verb, clause.accusative)
    elif frame.location and (frame.place_needed or chooser.chance(0.3 * rich)):
        clause.location = location(chooser, verb, clause.subject)
    if frame.manner and clause.direction is None and not clause.negated and chooser.chance(0.22 * rich):
        manner = chooser.pick(frame.manner)
        plural = agreement(clause.subject)[1]
        if (manner != "together" or plural) and (clause.accusative is None or is_definite(clause.accusative)):
            clause.manner = Adverb(MANNERS[manner])
    if chooser.chance(0.38 * rich) and not verb.stative:
        tense = "progressive" if clause.progressive else clause.tense
        if clause.modal is not None and tense == "present":
            tense = "modal"
        clause.time = time(chooser, tense)
    elif _frequency_fits(clause) and chooser.chance(0.11 * rich):
        clause.frequency = Adverb(chooser.pick(FREQUENCIES if clause.tense == "present" else _OFTEN_NEVER))
    settled = clause.frequency or clause.manner or clause.negated
    if clause.tense == "perfect" and not settled and chooser.chance(0.25 * rich):
        clause.frequency = Adverb(ALREADY)


def _frequency_fits(clause: Clause) -> bool:
    """Whether a frequency fits: not with the progressive, modals, negation, the future, states, every and no."""
    if clause.progressive or clause.modal or clause.negated or clause.tense == "future" or clause.verb.stative:
        return False
    return getattr(clause.subject, "determiner", None) not in (EVERY, NO)


def _arrange(chooser: Chooser, clause: Clause) -> None:
    """Puts something other than the subject in front, now and then."""
    noun = clause.accusative is not None and type(clause.accusative) is not Pronoun
    crowded = noun and ((clause.negated and is_definite(clause.accusative)) or clause.manner is not None)
    if clause.time is not None and (crowded or chooser.chance(0.45)):
        clause.fronted = clause.time
    elif clause.time is None and is_definite(clause.subject) and chooser.chance(0.05):
        clause.opener = Adverb(chooser.pick((PERHAPS, UNFORTUNATELY)))
        if clause.opener.entry is PERHAPS and clause.force == "statement" and clause.progressive:
            clause.opener = None


def copula(chooser: Chooser, subject: Any, tense: str, force: str = "statement") -> Clause | None:
    """What or where the subject is (tired, new, in the garden); None where nothing sensible can be said."""
    clause = Clause(subject, BE, tense, force)
    noun = subject.noun if type(subject) is NounPhrase else NOUN["man"]
    said = subject.adjectives if type(subject) is NounPhrase else ()
    options = predicates(noun, said) if type(subject) is NounPhrase else predicates(noun, (), (2,))
    if "animate" in noun.classes and chooser.chance(0.3):
        relation, place = chooser.pick(PLACES["area"]).split()
        clause.location = place_phrase(chooser, relation, NOUN[place])
    elif options:
        clause.predicate = Predicate(chooser.pick(options))
    else:
        return None
    clause.negated = is_definite(subject) and chooser.chance(0.15)
    return clause


def fill(
    chooser: Chooser,
    clause: Clause,
    *,
    pronouns: float = 0.2,
    modal: float = 0.15,
    negation: float = 0.12,
    progressive: float = 0.3,
    rich: float = 1.0,
    arrange: bool = False,
) -> Clause:
    """Completes a clause that has subject, verb and tense."""
    fill_objects(chooser, clause, pronouns)
    _mood(chooser, clause, modal, negation, progressive)
    fill_adverbials(chooser, clause, rich)
    if arrange:
        _arrange(chooser, clause)
    elif clause.time is not None and clause.accusative is not None and (clause.manner or clause.negated):
        clause.time = None  # das Buch heute nicht, das Buch heute schnell: better without the time
    return clause


def new_clause(
    chooser: Chooser,
    *,
    tense: str | None = None,
    force: str = "statement",
    verbs: tuple = PLAIN_VERBS,
    pronouns: float = 0.26,
    **filling: Any,
) -> Clause:
    """A clause with a random verb and subject.

    Args:
        chooser: the source of choices.
        tense: present, past, perfect or future; None chooses one.
        force: statement, yes-no, wh or subordinate.
        verbs: the verbs to choose from.
        pronouns: how likely a pronoun is as subject.
        **filling: see `fill`.
    """
    verb = chooser.pick(verbs)
    if tense is None:
        tense = "perfect" if verb.auxiliary == "sein" and chooser.chance(0.15) else chooser.weighted(_TENSES)
    if verb.stative and tense in ("perfect", "future"):
        tense = "present"
    if verb.stative and tense == "past" and force in ("yes-no", "wh"):
        tense = "present"
    subject = someone(chooser, verb.frame.subject, "subject", pronouns=0 if verb.stem_verb == "fressen" else pronouns)
    if type(subject) is NounPhrase and subject.determiner is NO and force != "statement":
        subject.determiner = THE
    return fill(chooser, Clause(subject, verb, tense, force), **filling)


def second_clause(chooser: Chooser, tense: str, force: str = "subordinate", **filling: Any) -> Clause:
    """A clause of few words to join to another one; see `new_clause`."""
    filling.setdefault("rich", 0.4)
    return new_clause(chooser, tense=tense, force=force, pronouns=0.4, **filling)
