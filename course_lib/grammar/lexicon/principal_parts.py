"""How the verb list is written down: from principal parts to a `Verb`.

English column: base, past, past participle, -ing form (only the first, where the others are regular).
German column: infinitive with "|" after a separable prefix, then the preterite stem (first person) and
the participle where the verb is strong or irregular.
"""

from course_lib.grammar.lexicon.entries import Frame, Verb

_VOWELS = "aeiou"


def _english_forms(text: str) -> tuple[str, str, str, str]:
    base, *irregular = text.split()
    stem = base[:-1] if base.endswith("e") else base
    past = base[:-1] + "ied" if base.endswith("y") and base[-2] not in _VOWELS else stem + "ed"
    ing = (base if base.endswith("ee") or len(base) == 2 else stem) + "ing"
    forms = irregular + [past, past, ing][len(irregular) :]
    return base, forms[0], forms[1], forms[2]


def stem_and_link(infinitive: str) -> tuple[str, str]:
    """Maps a German infinitive to its stem, and to the e, if any, between it and an ending: arbeit-e-t."""
    stem = infinitive[:-1] if infinitive.endswith(("ern", "eln")) else infinitive[:-2]
    return stem, "e" if stem.endswith(("t", "d", "fn", "gn")) else ""


def _german_forms(text: str) -> tuple[str, str, str, str]:
    infinitive, *strong = text.split()
    prefix, _, stem_verb = infinitive.rpartition("|")
    stem, link = stem_and_link(stem_verb)
    unstressed = stem_verb.startswith(("be", "ver", "er", "ge")) and stem_verb not in ("geben", "gehen")
    weak = [stem + link + "te", prefix + ("" if unstressed else "ge") + stem + link + "t"]
    preterite, participle = strong or weak
    return prefix, stem_verb, preterite, participle


def verb(
    english: str,
    german: str,
    subject: str = "human",
    accusative: str | None = None,
    dative: str | None = None,
    *,
    change: str = "",
    auxiliary: str = "haben",
    particle: str = "",
    to: str = "",
    reflexive: bool = False,
    english_reflexive: bool = False,
    stative: bool = False,
    preposition: str = "",
    optional: bool = False,
    location: str = "",
    direction: str = "",
    place_needed: bool = False,
    manner: str = "",
    clause: str = "",
    habit: bool = False,
    season: bool = False,
) -> Verb:
    """A verb entry; the keyword arguments are those of `Frame` and `Verb`, classes and places as words in a string."""
    prefix, stem_verb, preterite, german_participle = _german_forms(german)
    governed = tuple(preposition.split()) if preposition else None
    places = (location, direction, place_needed)
    words = (tuple(manner.split()), tuple(clause.split()))
    frame = Frame(subject, accusative, dative, governed, optional, *places, *words, habit, season)
    english_forms, german_forms = _english_forms(english), (prefix, stem_verb, change, preterite, german_participle)
    flags = (reflexive, english_reflexive, stative)
    return Verb(*english_forms, particle, to, *german_forms, auxiliary, *flags, frame)
