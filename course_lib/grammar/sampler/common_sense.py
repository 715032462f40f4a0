"""What does not go together inside a clause: adjectives that contradict the verb, what is used up by doing it."""

from course_lib.grammar.lexicon import ADJECTIVE, BE, VERB, Adjective, Noun, Verb
from course_lib.grammar.lexicon.function_words import MANY, THE, THIS, A
from course_lib.grammar.syntax import Clause, Coordination, NounPhrase, agreement

USED_UP = frozenset(  # what is done to the same object only once
    "essen fressen trinken kaufen schreiben malen mitbringen wegwerfen bringen geben erzählen schicken verlieren "
    "finden lesen".split()
)
_WORN = frozenset({"anziehen", "aufsetzen"})
_NOT_OWNED = _WORN | {"kaufen", "haben", "schreiben"}
BY_THE_CLOCK = frozenset(  # what is done at half past three
    "aufstehen aufwachen ankommen kommen zurückkommen gehen fahren essen trinken fressen arbeiten besuchen anrufen "
    "abholen spielen singen tanzen bringen mitbringen öffnen zumachen sprechen helfen lesen putzen einschlafen "
    "sich_setzen erzählen zeigen geben aufräumen warten sich_waschen reparieren".split()
)
ONCE_DONE = frozenset(  # what one has already done
    "essen trinken fressen lesen schreiben kaufen finden öffnen waschen putzen abwischen reparieren streichen malen "
    "aufstehen aufwachen einschlafen ankommen anrufen abholen aufräumen zumachen zurückkommen besuchen einladen "
    "wegwerfen schicken zeigen geben erzählen antworten gehen".split()
)
DAILY = frozenset({"aufstehen", "aufwachen", "einschlafen"})  # so nobody says how often
_ONE_BY_ONE = frozenset({"lesen", "schreiben"})  # nobody reads eight of them
_CHORES = frozenset("aufräumen putzen abwischen zumachen".split())  # what is done to the things around one
AT_HAND = _CHORES | {"kennen", "mögen", "lieben"}  # not any one
NOCTURNAL = frozenset("schlafen arbeiten lesen träumen aufwachen trinken essen fressen".split())
_PASSING = frozenset({"cold", "hot", "warm", "empty", "dark"})  # what a place or thing is for a while
_MOODS = frozenset(ADJECTIVE[name] for name in ("tired", "hungry", "sick", "happy", "sad"))
_DOING = {  # in which mood one does it, where the mood is worth saying
    "tired": "schlafen einschlafen sich_ausruhen sich_setzen sitzen liegen bleiben sein zurückkommen gehen",
    "hungry": "essen fressen warten suchen sein kaufen weinen",
    "sick": "schlafen bleiben liegen sich_ausruhen sein brauchen warten trinken anrufen",
    "happy": "lachen singen tanzen spielen sein danken springen zurückkommen einladen",
    "sad": "weinen bleiben sitzen sein schreiben denken warten",
}
_TREATED = {  # to whom one does it, likewise
    "tired": "tragen helfen sehen bringen abholen",
    "hungry": "geben sehen hören bringen kaufen",
    "sick": "helfen besuchen anrufen sehen bringen denken schicken kaufen sprechen tragen",
    "happy": "sehen spielen folgen",
    "sad": "helfen anrufen sehen sprechen besuchen schicken erzählen zuhören denken",
}
_SPOILT = "dirty empty boring old cold sad"
_UNFIT = {  # the adjectives that the object cannot have
    "waschen putzen abwischen aufräumen streichen": "clean new beautiful fresh heavy",
    "kaufen": "dirty empty boring hot",
    "essen fressen": "dirty cold",
    "trinken": "dirty",
    "wegwerfen": "new expensive beautiful clean fresh interesting warm sweet hot rich",
    "reparieren": "new clean beautiful cheap",
    "lesen": "heavy dirty",
    "schreiben malen": "old dirty heavy expensive cheap new boring",
    "brauchen": "dirty empty boring cold",
    "öffnen zumachen": "empty",
    "sich_freuen mögen lieben": _SPOILT + " heavy cheap long",
    "schicken geben bringen mitbringen leihen": _SPOILT + " sick",
    "zeigen": "dirty empty boring",
    "anziehen aufsetzen": "dirty cheap expensive",
    "erzählen träumen sehen hören finden": "dirty empty boring cheap",
    "abholen": "heavy",
    "suchen": "expensive",
}


def _verbs(names: str) -> tuple[Verb, ...]:
    return tuple(VERB[name.replace("_", " ")] for name in names.split())


_FITS = {
    side: frozenset((verb, ADJECTIVE[mood]) for mood, names in table.items() for verb in _verbs(names))
    for side, table in (("subject", _DOING), ("other", _TREATED))
}
_BARRED = frozenset(
    (verb, ADJECTIVE[word]) for names, words in _UNFIT.items() for verb in _verbs(names) for word in words.split()
)


def fits(verb: Verb, adjective: Adjective, side: str) -> bool:
    """Whether an adjective can stand before the subject, or before another participant, of a verb."""
    if adjective in _MOODS:
        return (verb, adjective) in _FITS[side]
    return side == "subject" or (verb, adjective) not in _BARRED


def _passing(noun: Noun) -> frozenset[str]:
    """The passing states that a noun is not called by in passing: no cold room is painted, no empty bus repaired."""
    if "drink" in noun.classes:
        return frozenset({"cold"}) if noun.english in ("coffee", "tea") else frozenset()
    if noun.english == "soup":
        return frozenset({"cold"})
    if "food" in noun.classes or "clothing" in noun.classes:
        return frozenset()
    return _PASSING - {"empty"} if noun.english in ("bottle", "cup", "glass") else _PASSING


def _own_adjectives(clause: Clause, phrase: NounPhrase, side: str) -> tuple[Adjective, ...]:
    """The adjectives of a participant that go with the verb."""
    if phrase.noun.english == "doctor":
        return tuple(a for a in phrase.adjectives if a not in _MOODS)
    barred = frozenset() if clause.verb is BE else _passing(phrase.noun)
    return tuple(a for a in phrase.adjectives if fits(clause.verb, a, side) and a.english not in barred)


def _settle_object(clause: Clause, node: NounPhrase) -> None:
    """One buys what is nobody's yet, and everybody puts on one hat."""
    name = clause.verb.name
    if name in _NOT_OWNED and node.definite and node.determiner is not THIS:
        node.possessor, node.determiner = None, THE
    if name in _WORN:
        node.plural, node.number = agreement(clause.subject)[1], None
        vague = (A, None, MANY) if node.plural else (None, MANY)
        node.determiner = THE if node.determiner in vague else node.determiner
    if name == "haben" and clause.negated:
        node.adjectives, node.plural = (), False
    if name == "haben" and not node.number:
        node.determiner = None if node.plural else A
    if name in _ONE_BY_ONE:
        node.number = None
        node.determiner = THE if node.determiner is MANY else node.determiner
    if name in AT_HAND:
        node.number = None
    if name in AT_HAND and node.determiner is A or name in _CHORES and not node.definite:
        node.determiner = THE


def settle(clause: Clause) -> None:
    """Makes the noun phrases of a clause suit its verb: adjectives, owners, one hat each."""
    others = (clause.accusative, clause.dative, clause.governed and clause.governed.noun_phrase)
    for side, nodes in (("subject", (clause.subject,)), ("other", others)):
        for node in nodes:
            for phrase in (node.first, node.second) if type(node) is Coordination else (node,):
                if type(phrase) is NounPhrase:
                    phrase.adjectives = _own_adjectives(clause, phrase, side)
    if type(clause.accusative) is NounPhrase:
        _settle_object(clause, clause.accusative)
