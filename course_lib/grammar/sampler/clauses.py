"""Random clauses: a verb, participants that suit it, tense, modal, negation, adverbials."""

from typing import Any

from course_lib.grammar.lexicon import VERBS, Modal
from course_lib.grammar.lexicon.function_words import (
    CAN,
    EVERY,
    MAY,
    MUST,
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
from course_lib.grammar.sampler.adverbials import fill_adverbials
from course_lib.grammar.sampler.chooser import Chooser, Weighted
from course_lib.grammar.sampler.common_sense import AT_HAND, settle
from course_lib.grammar.sampler.phrases import someone
from course_lib.grammar.sampler.selection import NOUNS_OF, objects_of
from course_lib.grammar.syntax import Adverb, Clause, NounPhrase, PrepPhrase, Pronoun, agreement

PLAIN_VERBS = tuple(verb for verb in VERBS if not verb.frame.clause)
_MIXED_VERBS = PLAIN_VERBS + tuple(verb for verb in PLAIN_VERBS if verb.frame.dative)  # datives twice: there are few
_TENSES = Weighted({"present": 50, "past": 24, "perfect": 15, "future": 12})
_MODALS = Weighted({CAN: 5, MUST: 5, MAY: 2, SHOULD: 3, WANT: 5, WOULD_LIKE: 2})
_NEGATED_MODALS = Weighted({CAN: 4, MUST: 3, MAY: 4, SHOULD: 2, WANT: 4})
_NO_MODAL = frozenset(
    "gehören mögen kennen sich_erinnern lieben brauchen haben finden verlieren vergessen hören sehen ankommen "
    "aufwachen einschlafen weinen lachen träumen denken stehen liegen sich_freuen".split()
)
_BAD_NEWS = frozenset({"verlieren", "vergessen", "weinen"})
_IN_GENERAL = frozenset("lesen schreiben kaufen essen fressen malen haben brauchen".split())
_UNPLANNED = frozenset("finden,verlieren,vergessen,sehen,hören,sitzen,stehen,liegen,sich setzen".split(","))
_NO_PERFECT = frozenset({"sitzen", "stehen", "liegen"})
_NO_PROGRESSIVE = frozenset({"finden", "verlieren", "vergessen", "ankommen", "springen", "sehen", "hören", "danken"})


def _participant(chooser: Chooser, clause: Clause, group: str, role: str, pronouns: float) -> Any:
    """Somebody or something to whom the subject of a clause does what its verb says."""
    subject = clause.subject
    nouns = NOUNS_OF[group]
    if clause.accusative is None:  # it is the first object, the one that tells what is done
        nouns = objects_of(clause.verb, nouns, subject)
    said = (subject, clause.accusative, clause.dative)
    return someone(chooser, nouns, role, pronouns=pronouns, owner=subject, avoid=said)


def fill_objects(chooser: Chooser, clause: Clause, pronouns: float) -> None:
    """Fills in the objects that the verb's frame asks for, unless they are there already."""
    frame = clause.verb.frame
    if frame.accusative and clause.accusative is None:
        likely = 0 if clause.verb.name in ("haben", "abholen") else pronouns
        clause.accusative = _participant(chooser, clause, frame.accusative, "object", likely)
        if clause.verb.name in ("lieben", "mögen") and getattr(clause.accusative, "determiner", None) is A:
            clause.accusative.determiner = THE
    if frame.dative and clause.dative is None:
        clause.dative = _participant(chooser, clause, frame.dative, "dative", pronouns)
    if frame.preposition and clause.governed is None and not (frame.optional and chooser.chance(0.65)):
        english, german, case, group = frame.preposition
        role = "dative" if case == "dative" else "object"
        other = _participant(chooser, clause, group, role, pronouns * 0.5)
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
        _make_one(clause)
        if chooser.chance(0.9) and verb.name not in AT_HAND | _UNPLANNED:
            _make_indefinite(clause.accusative)
        clause.negated = negatable(clause)
    if clause.tense in ("present", "past") and _willing(clause) and chooser.chance(modal):
        clause.modal = chooser.weighted(_NEGATED_MODALS if clause.negated else _MODALS)
        if clause.tense == "past" and not _has_past(clause):
            clause.modal = WANT
        if clause.force in ("yes-no", "wh"):
            clause.modal = _asked(clause)
        return
    if clause.tense == "present" and not verb.stative and verb.name not in _NO_PROGRESSIVE:
        clause.progressive = chooser.chance(progressive)
    ambiguous_past = verb.past == verb.english and clause.tense == "past" and not clause.negated
    if ambiguous_past and agreement(clause.subject) != (3, False):
        clause.tense = "perfect"
    if clause.tense == "past" and agreement(clause.subject)[0] == 2:
        clause.tense = "perfect" if not verb.stative else "present"


def _asked(clause: Clause) -> Modal:
    """The modal of a question: may I, can you, does he want to; whether somebody else can is seldom asked."""
    person = agreement(clause.subject)[0]
    if person == 3:
        return WANT if clause.modal in (SHOULD, CAN, MAY) else clause.modal
    return CAN if person == 2 and clause.modal is MAY else clause.modal


def _willing(clause: Clause) -> bool:
    """Whether the subject is a person, or a pet, who can want to do it or be told to."""
    node = clause.subject
    animate = type(node) is not NounPhrase or (
        ("human" in node.noun.classes or "pet" in node.noun.classes)
        and node.determiner is not NO
        and node.noun.english != "baby"
    )
    return animate and clause.verb.name.replace(" ", "_") not in _NO_MODAL


def _has_past(clause: Clause) -> bool:
    """Whether the modal has a past that only means the past: "could you" asks for something now."""
    if clause.modal is CAN:
        return not clause.negated and clause.force not in ("yes-no", "wh")
    return bool(clause.modal.past)


def _make_one(clause: Clause) -> None:
    """Denies one thing rather than several: he does not forget a jacket, but he does not read books."""
    node = clause.accusative
    if type(node) is NounPhrase and node.plural and node.determiner is None and clause.verb.name not in _IN_GENERAL:
        node.plural, node.determiner, node.number = False, A, None


def _make_indefinite(node: Any) -> None:
    """Prefers kein to nicht: the key becomes a key, the milk becomes milk."""
    if type(node) is NounPhrase and node.definite and node.possessor is None and "kin" not in node.noun.classes:
        node.determiner = None if node.plural or node.noun.mass else A
        node.adjectives = tuple(a for a in node.adjectives if a.rank > 3)


def _quantify(clause: Clause) -> None:
    """Keeps every and no to what is so in general: every boy needs a ball, but the boy loses the ball."""
    if getattr(clause.subject, "determiner", None) in (EVERY, NO):
        objects = [node for node in (clause.accusative, clause.dative, clause.governed) if node is not None]
        general = (
            clause.tense in ("present", "past")
            and not clause.progressive
            and clause.direction is None
            and clause.time is None
        )
        if not general or (clause.subject.determiner is EVERY and any(map(is_definite, objects))):
            clause.subject.determiner = THE


def negatable(clause: Clause) -> bool:
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


def _others(subject: Any) -> bool:
    """Whether a clause is about somebody known, but not the speaker, who would know."""
    return is_definite(subject) and agreement(subject)[0] == 3 and getattr(subject, "determiner", None) is not EVERY


def _arrange(chooser: Chooser, clause: Clause) -> None:
    """Puts something other than the subject in front, now and then."""
    noun = clause.accusative is not None and type(clause.accusative) is not Pronoun
    crowded = noun and ((clause.negated and is_definite(clause.accusative)) or clause.manner is not None)
    if clause.time is not None and (crowded or chooser.chance(0.45)):
        clause.fronted = clause.time
    elif clause.time is None and clause.modal is None and _others(clause.subject) and chooser.chance(0.06):
        clause.opener = Adverb(UNFORTUNATELY if clause.negated != (clause.verb.name in _BAD_NEWS) else PERHAPS)
        if clause.opener.entry is PERHAPS and clause.force == "statement" and clause.progressive:
            clause.opener = None


def fill(
    chooser: Chooser,
    clause: Clause,
    *,
    pronouns: float = 0.2,
    modal: float = 0.22,
    negation: float = 0.12,
    progressive: float = 0.3,
    rich: float = 1.0,
    arrange: bool = False,
) -> Clause:
    """Completes a clause that has subject, verb and tense."""
    fill_objects(chooser, clause, pronouns)
    settle(clause)
    _mood(chooser, clause, modal, negation, progressive)
    fill_adverbials(chooser, clause, rich)
    _quantify(clause)
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
    verbs: tuple = _MIXED_VERBS,
    subject: Any = None,
    pronouns: float = 0.26,
    **filling: Any,
) -> Clause:
    """A clause with a random verb and subject.

    Args:
        chooser: the source of choices.
        tense: present, past, perfect or future; None chooses one.
        force: statement, yes-no, wh or subordinate.
        verbs: the verbs to choose from.
        subject: the subject; None chooses one that suits the verb.
        pronouns: how likely a pronoun is as subject.
        **filling: see `fill`.
    """
    verb = chooser.pick(verbs)
    if tense is None:
        tense = "perfect" if verb.auxiliary == "sein" and chooser.chance(0.35) else chooser.weighted(_TENSES)
    if verb.stative and tense in ("perfect", "future"):
        tense = "present"
    if (verb.name in _NO_PERFECT and tense == "perfect") or (verb.name in _UNPLANNED and tense == "future"):
        tense = "past"
    if verb.stative and tense == "past" and force in ("yes-no", "wh"):
        tense = "present"
    if subject is None:
        subject = someone(chooser, NOUNS_OF[verb.frame.subject], "subject", pronouns=pronouns)
    if type(subject) is NounPhrase and force != "statement":
        if subject.determiner is EVERY or not is_definite(subject):
            subject.determiner, subject.number = THE, None
    return fill(chooser, Clause(subject, verb, tense, force), **filling)
