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


def _german_forms(text: str) -> tuple[str, str, str, str]:
    infinitive, *strong = text.split()
    prefix, _, stem_verb = infinitive.rpartition("|")
    root = stem_verb[:-1] if stem_verb.endswith(("ern", "eln")) else stem_verb[:-2]
    link = "e" if root.endswith(("t", "d", "fn", "gn")) else ""
    unstressed = stem_verb.startswith(("be", "ver", "er", "ge")) and stem_verb not in ("geben", "gehen")
    weak = [root + link + "te", prefix + ("" if unstressed else "ge") + root + link + "t"]
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
) -> Verb:
    """A verb entry; the keyword arguments are those of `Frame` and `Verb`, classes and places as words in a string."""
    prefix, stem_verb, preterite, german_participle = _german_forms(german)
    governed = tuple(preposition.split()) if preposition else None
    places = (location, direction, place_needed)
    frame = Frame(
        subject, accusative, dative, governed, optional, *places, tuple(manner.split()), tuple(clause.split())
    )
    english_forms, german_forms = _english_forms(english), (prefix, stem_verb, change, preterite, german_participle)
    flags = (reflexive, english_reflexive, stative)
    return Verb(*english_forms, particle, to, *german_forms, auxiliary, *flags, frame)
