"""German inflection: noun forms, adjective and determiner endings, finite verb forms.

Everything is computed from a lexicon entry's principal parts; wissen, auxiliaries and modals have tables of their own.
"""

from functools import cache

from course_lib.grammar.lexicon import Adjective, Determiner, Noun, Verb, stem_and_link

_CASES = ("nominative", "accusative", "dative", "genitive")


def _table(forms: str) -> dict[str, tuple[str, ...]]:
    """Maps four cases, masculine, feminine, neuter and plural of each, to a row for each case; a dash is no ending."""
    rows = (tuple(form.strip("-") for form in row.split()) for row in forms.split(","))
    return dict(zip(_CASES, rows, strict=True))


_ENDINGS = {  # of adjectives
    "strong": _table("er e es e, en e es e, em er em en, en er en er"),
    "weak": _table("e e e en, en e e en, en en en en, en en en en"),
    "mixed": _table("er e es en, en e es en, en en en en, en en en en"),
}
_DER = _table("der die das die, den die das die, dem der dem den, des der des der")
_DIESER = _table("er e es e, en e es e, em er em en, es er es er")
_EIN = _table("- e - e, en e - e, em er em en, es er es er")
_RELATIVE = _table("der die das die, den die das die, dem der dem denen, dessen deren dessen deren")
_DECLENSION = {"der": "weak", "dieser": "weak", "ein": "mixed", "viele": "strong"}


def _column(gender: str, plural: bool) -> int:
    """The column of a table: that of the gender, or of the plural, which has none."""
    return 3 if plural else "mfn".index(gender)


@cache
def noun_form(noun: Noun, case: str, plural: bool) -> str:
    """The noun in a case and number: (Bär, dative, False) -> Bären."""
    if plural:
        ends = noun.plural.endswith(("n", "s"))
        return noun.plural + ("n" if case == "dative" and not ends else "")
    if case == "genitive":
        return noun.genitive
    return noun.genitive if noun.weak and case != "nominative" else noun.german


@cache
def adjective_form(adjective: Adjective, declension: str, case: str, gender: str, plural: bool) -> str:
    """The adjective before a noun; `declension` is weak, mixed or strong."""
    return adjective.stem + _ENDINGS[declension][case][_column(gender, plural)]


@cache
def determiner_form(german: str, pattern: str, case: str, gender: str, plural: bool) -> str:
    """The determiner: (dies, dieser, dative, f, False) -> dieser."""
    at = _column(gender, plural)
    if pattern == "der":
        return _DER[case][at]
    if pattern == "dieser":
        return german + _DIESER[case][at]
    if pattern == "ein":
        ending = _EIN[case][at]
        return ("eur" if german == "euer" and ending else german) + ending
    return german[:-1] + _ENDINGS["strong"][case][3]


def relative_pronoun(case: str, gender: str, plural: bool) -> str:
    """The relative pronoun, like the article but for denen, dessen, deren."""
    return _RELATIVE[case][_column(gender, plural)]


def declension_after(determiner: Determiner | None) -> str:
    """Which adjective endings a determiner asks for; none at all asks for the strong ones."""
    return _DECLENSION[determiner.pattern] if determiner else "strong"


# present tense: ich du er wir ihr sie
_PRESENT = {
    "sein": "bin bist ist sind seid sind",
    "haben": "habe hast hat haben habt haben",
    "werden": "werde wirst wird werden werdet werden",
    "wissen": "weiß weißt weiß wissen wisst wissen",
    "mögen": "mag magst mag mögen mögt mögen",
    "können": "kann kannst kann können könnt können",
    "müssen": "muss musst muss müssen müsst müssen",
    "dürfen": "darf darfst darf dürfen dürft dürfen",
    "sollten": "sollte solltest sollte sollten solltet sollten",
    "wollen": "will willst will wollen wollt wollen",
    "möchten": "möchte möchtest möchte möchten möchtet möchten",
}
PRESENT_TABLES = {verb: tuple(forms.split()) for verb, forms in _PRESENT.items()}


@cache
def present(infinitive: str, change: str, person: int, plural: bool) -> str:
    """A present form: (geben, gib, 3, False) -> gibt."""
    slot = person - 1 + 3 * plural
    if infinitive in PRESENT_TABLES:
        return PRESENT_TABLES[infinitive][slot]
    stem, link = stem_and_link(infinitive)
    if slot in (3, 5):
        return infinitive
    if slot == 0:
        return stem + "e"
    if slot == 4:
        return stem + link + "t"
    stem, link = (change, "") if change else (stem, link)
    if slot == 1:
        return stem + link + ("t" if stem.endswith(("s", "ß", "z")) else "st")
    return stem + link + "t"


@cache
def preterite(stem: str, person: int, plural: bool) -> str:
    """A preterite form from its stem: (gab, 3, True) -> gaben, (machte, 1, True) -> machten."""
    slot = person - 1 + 3 * plural
    if stem.endswith("e") and len(stem) > 3:
        return stem + ("", "st", "", "n", "t", "n")[slot]
    link = "e" if stem.endswith(("t", "d")) else ""
    sibilant = "e" if stem.endswith(("s", "ß")) else link
    return stem + ("", sibilant + "st", "", "en", link + "t", "en")[slot]


def finite_form(verb: Verb, tense: str, person: int, plural: bool) -> str:
    """A finite form of the verb without its separable prefix; `tense` is present or past."""
    if tense == "past":
        return preterite(verb.preterite, person, plural)
    return present(verb.stem_verb, verb.change, person, plural)


def joined_forms(verb: Verb) -> frozenset[str]:
    """All finite forms with the separable prefix on them, as at the end of a clause: aufsteht, aufstand, ..."""
    persons = [(person, plural) for plural in (False, True) for person in (1, 2, 3)]
    return frozenset(verb.prefix + finite_form(verb, tense, *who) for tense in ("present", "past") for who in persons)
