"""Determiners, pronouns, prepositions, modals, conjunctions, adverbials, numbers and clock times."""

from course_lib.grammar.lexicon.entries import AdverbEntry, Conjunction, Determiner, Modal

THE = Determiner("the", "der", "der", True)
A = Determiner("a", "ein", "ein", False)
NO = Determiner("no", "kein", "ein", False)
THIS = Determiner("this", "dies", "dieser", True)
EVERY = Determiner("every", "jed", "dieser", True)
WHICH = Determiner("which", "welch", "dieser", True)
MANY = Determiner("many", "viele", "viele", False)
HOW_MANY = Determiner("how many", "wie viele", "viele", False)
MY = Determiner("my", "mein", "ein", True)
YOUR = Determiner("your", "dein", "ein", True)
HIS = Determiner("his", "sein", "ein", True)
HER = Determiner("her", "ihr", "ein", True)
OUR = Determiner("our", "unser", "ein", True)
THEIR = Determiner("their", "ihr", "ein", True)
POSSESSIVES = (MY, YOUR, HIS, HER, OUR, THEIR)
YOUR_FORMS = {"du": "dein", "ihr": "euer", "Sie": "Ihr"}

# (person, plural, gender) -> subject, object, reflexive
ENGLISH_PRONOUNS = {
    (1, False, ""): ("I", "me", "myself"),
    (2, False, ""): ("you", "you", "yourself"),
    (3, False, "m"): ("he", "him", "himself"),
    (3, False, "f"): ("she", "her", "herself"),
    (3, False, "n"): ("it", "it", "itself"),
    (1, True, ""): ("we", "us", "ourselves"),
    (3, True, ""): ("they", "them", "themselves"),
}
# (person, plural, gender) -> nominative, accusative, dative
GERMAN_PRONOUNS = {
    (1, False, ""): ("ich", "mich", "mir"),
    (2, False, ""): ("du", "dich", "dir"),
    (3, False, "m"): ("er", "ihn", "ihm"),
    (3, False, "f"): ("sie", "sie", "ihr"),
    (3, False, "n"): ("es", "es", "ihm"),
    (1, True, ""): ("wir", "uns", "uns"),
    (3, True, ""): ("sie", "sie", "ihnen"),
}
# How the ambiguous "you" is said: pronoun forms and the person and number of the verb.
YOU_PRONOUNS = {"du": ("du", "dich", "dir"), "ihr": ("ihr", "euch", "euch"), "Sie": ("Sie", "Sie", "Ihnen")}
YOU_AGREEMENT = {"du": (2, False), "ihr": (2, True), "Sie": (3, True)}
YOU_REFLEXIVE = {"du": "dich", "ihr": "euch", "Sie": "sich"}

# relation -> English and German preposition, which is a two-way one: the case tells place from direction
RELATIONS = {
    "in": ("in", "in", "dative"),
    "on": ("on", "auf", "dative"),
    "at": ("at", "an", "dative"),
    "under": ("under", "unter", "dative"),
    "behind": ("behind", "hinter", "dative"),
    "in_front_of": ("in front of", "vor", "dative"),
    "next_to": ("next to", "neben", "dative"),
    "into": ("into", "in", "accusative"),
    "onto": ("onto", "auf", "accusative"),
    "to": ("to", "in", "accusative"),
}
TO_AT = frozenset({"window"})
TO_ZU = frozenset({"station", "school", "church", "bus", "doctor", "teacher", "neighbor", "aunt", "grandmother"})
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}

CAN = Modal("können", "konnte", "can", "could")
MUST = Modal("müssen", "musste", "must", "had to")
MAY = Modal("dürfen", "durfte", "may", "")
SHOULD = Modal("sollten", "", "should", "")
WANT = Modal("wollen", "wollte", "want to", "wanted to")
WOULD_LIKE = Modal("möchten", "", "would like to", "")
MODALS = (CAN, MUST, MAY, SHOULD, WANT, WOULD_LIKE)

AND = Conjunction("and", "und", False)
BUT = Conjunction("but", "aber", False)
BECAUSE = Conjunction("because", "weil", True)
THAT = Conjunction("that", "dass", True)
WHETHER = Conjunction("whether", "ob", True)
IF = Conjunction("if", "wenn", True)
WHEN_PRESENT = Conjunction("when", "wenn", True)
WHEN_PAST = Conjunction("when", "als", True)
WHILE = Conjunction("while", "während", True)
BEFORE = Conjunction("before", "bevor", True)
ALTHOUGH = Conjunction("although", "obwohl", True)

NUMBERS = {
    2: ("two", "zwei"),
    3: ("three", "drei"),
    4: ("four", "vier"),
    5: ("five", "fünf"),
    6: ("six", "sechs"),
    7: ("seven", "sieben"),
    8: ("eight", "acht"),
    9: ("nine", "neun"),
    10: ("ten", "zehn"),
    11: ("eleven", "elf"),
    12: ("twelve", "zwölf"),
}


def _adverb(english: str, german: str, tenses: str = "", tags: tuple[str, ...] = ()) -> AdverbEntry:
    """Maps "in/1 the/2 evening/3" and "am/12 Abend/3" to an entry: the characters after a slash are parts."""

    def parse(text: str) -> tuple[tuple[str, str], ...]:
        return tuple(tuple(word.split("/")) if "/" in word else (word, "1") for word in text.split())

    return AdverbEntry(parse(english), parse(german), frozenset(tenses.split()), tags)


_HABIT, _ALL = "present past", "present past future modal"
TODAY = _adverb("today", "heute", "present perfect future modal")
_DAYS = (
    TODAY,
    _adverb("now", "jetzt", "progressive"),
    _adverb("tomorrow", "morgen", "future modal"),
    _adverb("soon", "bald", "future"),
    _adverb("yesterday", "gestern", "past"),
    _adverb("this/1 evening/2", "heute/1 Abend/2", "future modal"),
    _adverb("in/1 the/2 morning/3", "am/12 Morgen/3", _ALL, ("contraction",)),
    _adverb("in/1 the/2 evening/3", "am/12 Abend/3", _ALL, ("contraction",)),
) + tuple(
    _adverb(f"on/1 {english}/2", f"am/1 {german}/2", "past future modal", ("contraction",))
    for english, german in (("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Friday", "Freitag"), ("Sunday", "Sonntag"))
)
_UNITS = {"hours": "Stunden", "days": "Tagen", "weeks": "Wochen", "years": "Jahren"}
_MANY_TAGS = ("number", "dative plural", "dative")


def _ago(units: str) -> tuple[AdverbEntry, ...]:
    return tuple(
        _adverb(
            f"{NUMBERS[n][0]}/2 {english}/3 ago/1", f"vor/1 {NUMBERS[n][1]}/2 {_UNITS[english]}/3", "past", _MANY_TAGS
        )
        for english in units.split()
        for n in (2, 3, 4, 5)
    )


AGO = _ago("hours days")
LONG_AGO = _ago("weeks years")
FROM_NOW = tuple(
    _adverb(f"in/1 {NUMBERS[n][0]}/2 {english}/3", f"in/1 {NUMBERS[n][1]}/2 {german}/3", "future", _MANY_TAGS)
    for english, german in _UNITS.items()
    if english != "years"
    for n in (2, 3, 4, 5)
)


def _clock(hour: int, minute: int, at: bool) -> AdverbEntry:
    """A clock time; German counts the half hour towards the next one (half past three, halb vier)."""
    here = NUMBERS.get(hour, ("one", "eins"))
    after = NUMBERS.get(hour % 12 + 1, ("one", "eins"))
    english, german = ("at/9 ", "um/9 ") if at else ("", "")
    if minute == 0:
        full = "ein" if hour == 1 else here[1]
        english, german = english + f"{here[0]}/1 o'clock/2", german + f"{full}/1 Uhr/2"
    elif minute == 15:
        english, german = english + f"a/3 quarter/3 past/4 {here[0]}/1", german + f"Viertel/3 nach/4 {here[1]}/1"
    elif minute == 30:
        english, german = english + f"half/3 past/3 {here[0]}/1", german + f"halb/3 {after[1]}/1"
    else:
        english, german = english + f"a/3 quarter/3 to/4 {after[0]}/1", german + f"Viertel/3 vor/4 {after[1]}/1"
    return _adverb(english, german, _ALL, ("clock time", "number"))


CLOCK_TIMES = tuple(_clock(hour, minute, at=True) for hour in range(1, 13) for minute in (0, 15, 30, 45))
CLOCK_PREDICATES = tuple(_clock(hour, minute, at=False) for hour in range(1, 13) for minute in (0, 15, 30, 45))
AT_NIGHT = _adverb("at/1 night/2", "in/1 der/2 Nacht/2", _HABIT)
HABITS = (
    _adverb("every/1 day/2", "jeden/1 Tag/2", _HABIT),
    _adverb("every/1 morning/2", "jeden/1 Morgen/2", _HABIT),
    AT_NIGHT,
)
SEASONS = (
    _adverb("last/1 week/2", "letzte/1 Woche/2", "past"),
    _adverb("next/1 week/2", "nächste/1 Woche/2", "future"),
    _adverb("last/1 year/2", "letztes/1 Jahr/2", "past"),
    _adverb("next/1 year/2", "nächstes/1 Jahr/2", "future"),
    _adverb("in/1 summer/2", "im/1 Sommer/2", _ALL, ("contraction",)),
    _adverb("in/1 winter/2", "im/1 Winter/2", _ALL, ("contraction",)),
)
TIMES = _DAYS + AGO + LONG_AGO + FROM_NOW + HABITS + SEASONS
FREQUENCIES = tuple(
    _adverb(e, g)
    for e, g in (
        ("often", "oft"),
        ("always", "immer"),
        ("never", "nie"),
        ("sometimes", "manchmal"),
        ("rarely", "selten"),
        ("usually", "meistens"),
    )
)
NEVER = FREQUENCIES[2]
ALREADY = _adverb("already", "schon", "perfect")
MANNERS = {
    e: _adverb(e, g)
    for e, g in (
        ("quickly", "schnell"),
        ("slowly", "langsam"),
        ("loudly", "laut"),
        ("quietly", "leise"),
        ("well", "gut"),
        ("badly", "schlecht"),
        ("alone", "allein"),
        ("together", "zusammen"),
        ("carefully", "vorsichtig"),
    )
}
PERHAPS = _adverb("perhaps", "vielleicht")
UNFORTUNATELY = _adverb("unfortunately", "leider")
HERE, THERE = _adverb("here", "hier"), _adverb("there", "dort")
AT_HOME = _adverb("at/1 home/2", "zu/1 Hause/2")
IN_BED = _adverb("in/1 bed/2", "im/1 Bett/2", tags=("contraction", "dative", "two-way dative"))
HOME = _adverb("home/2", "nach/2 Hause/2")
WHERE, WHERE_TO = _adverb("where", "wo"), _adverb("where", "wohin")
WHEN, WHY = _adverb("when", "wann"), _adverb("why", "warum")
