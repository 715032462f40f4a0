"""What makes two clauses belong together: what follows what, and what one does in which mood."""

from course_lib.grammar.lexicon import ADJECTIVE, VERB, Adjective, Verb

# What one does with a thing, in the order in which it makes sense; a later stage may follow an earlier one.
STAGES = (
    "suchen sehen",
    "finden kaufen abholen",
    "waschen reparieren malen schreiben öffnen",
    "lesen",
    "geben zeigen schicken bringen leihen stellen legen mitbringen essen fressen trinken anziehen vergessen verlieren "
    "wegwerfen zumachen folgen",
)
STAGE = {VERB[name]: stage for stage, names in enumerate(STAGES) for name in names.split()}
FOLLOWING = {verb: tuple(later for later in STAGE if STAGE[later] > stage) for verb, stage in STAGE.items()}
STARTS = tuple(verb for verb in STAGE if FOLLOWING[verb])
REASONS = tuple(VERB[name] for name in ("brauchen", "lieben", "mögen"))
REASON_VERBS = frozenset(
    VERB[name]
    for name in (
        "schlafen arbeiten spielen singen tanzen lesen trinken essen fressen malen helfen schreiben zurückkommen "
        "aufstehen kaufen besuchen"
    ).split()
)
MOODS = tuple(ADJECTIVE[name] for name in ("tired", "hungry", "sick", "happy", "sad"))
_MOOD_VERBS = {  # what one does when one is ...
    ADJECTIVE[mood]: frozenset(names.split())
    for mood, names in (
        ("tired", "schlafen bleiben sitzen liegen einschlafen gehen zurückkommen weinen trinken"),
        ("hungry", "essen fressen kaufen suchen weinen aufstehen aufwachen zurückkommen warten kommen finden"),
        ("sick", "schlafen bleiben liegen weinen anrufen besuchen trinken brauchen warten"),
        ("happy", "lachen singen tanzen springen spielen danken einladen kommen lieben malen"),
        ("sad", "weinen bleiben schreiben sprechen anrufen sitzen trinken denken"),
    )
}
UNWILLED = frozenset(
    VERB[name]
    for name in (  # what happens to one needs a mood, not a wish
        "finden",
        "verlieren",
        "vergessen",
        "sehen",
        "hören",
        "einschlafen",
        "aufwachen",
        "träumen",
        "weinen",
        "ankommen",
    )
)
_RESTING = frozenset({VERB["sich ausruhen"], VERB["sich setzen"]})


def moods_for(verb: Verb, reason: bool) -> tuple[Adjective, ...]:
    """The moods in which one does what the verb says; any mood where no reason is given."""
    if not reason:
        return MOODS
    return tuple(
        mood
        for mood in MOODS
        if verb.name in _MOOD_VERBS[mood] or (verb in _RESTING and mood.english in ("tired", "sick"))
    )
