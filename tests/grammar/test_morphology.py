"""Inflection against two oracles that the lexicon is not made from: ablaut (verbs) and german-nouns."""

import pytest

from course_lib.grammar.lexicon.adjectives import ADJECTIVES
from course_lib.grammar.lexicon.nouns import NOUNS
from course_lib.grammar.lexicon.verbs import ALL_VERBS
from course_lib.grammar.linearizers.english_morphology import article, possessive, third_person
from course_lib.grammar.linearizers.german_morphology import (
    PRESENT_TABLES,
    adjective_form,
    determiner_form,
    finite_form,
    noun_form,
    present,
)

ablaut = pytest.importorskip("ablaut", reason="ablaut has no build for this platform")

CASES = ("nominative", "accusative", "dative", "genitive")
PERSONS = tuple((person, plural) for plural in (False, True) for person in (1, 2, 3))


def wrong_nouns(dictionary, form):
    """The (noun, case, number, ours) that no dictionary entry of the noun's gender has."""
    wrong = []
    for noun in NOUNS:
        for case in CASES:
            for plural in (False, True)[: 1 if noun.mass else 2]:
                known = _dictionary_forms(dictionary, noun, case, plural)
                ours = form(noun, case, plural)
                if ours not in known:
                    wrong.append((noun.german, case, plural, ours, sorted(known)))
    return wrong


_GERMAN_CASE = {"nominative": "nominativ", "accusative": "akkusativ", "dative": "dativ", "genitive": "genitiv"}


def _dictionary_forms(dictionary, noun, case, plural):
    start = f"{_GERMAN_CASE[case]} {'plural' if plural else 'singular'}"
    entries = [entry for entry in dictionary[noun.german] if noun.gender in _genders(entry)]
    return {text for entry in entries for key, text in entry["flexion"].items() if key.startswith(start)}


def _genders(entry):
    return {entry[key] for key in entry if key.startswith("genus")}


def test_noun_forms_agree_with_the_dictionary(dictionary):
    assert wrong_nouns(dictionary, noun_form) == []


def test_a_wrong_noun_form_is_noticed(dictionary):
    def no_dative_n(noun, case, plural):
        return noun.plural if plural else noun_form(noun, case, plural)

    def never_weak(noun, case, plural):
        return noun.german if case in ("accusative", "dative") and not plural else noun_form(noun, case, plural)

    for mutant in (no_dative_n, never_weak):
        with pytest.raises(AssertionError):
            assert wrong_nouns(dictionary, mutant) == []


# ablaut conjugates eilen (er ist geeilt); the reflexive sich beeilen has haben, as all reflexive verbs do.
AUXILIARY_EXCEPTIONS = {"sich beeilen": "sein"}


def wrong_verbs(form):
    """The verbs whose forms are not those of the oracle."""
    wrong = []
    for verb in ALL_VERBS:
        oracle = ablaut.conjugate(verb.infinitive)
        for tense, theirs in (("present", oracle.present), ("past", oracle.preterite)):
            ours = [f"{form(verb, tense, person, plural)} {verb.prefix}".strip() for person, plural in PERSONS]
            wrong += [] if ours == list(theirs) else [(verb.name, tense, ours)]
        auxiliary = AUXILIARY_EXCEPTIONS.get(verb.name, verb.auxiliary)
        if (verb.german_participle, auxiliary) != (oracle.past_participle, oracle.auxiliary):
            wrong.append((verb.name, verb.german_participle, verb.auxiliary))
    return wrong


def test_verb_forms_agree_with_the_oracle():
    assert wrong_verbs(finite_form) == []


def test_a_wrong_verb_form_is_noticed():
    def no_stem_change(verb, tense, person, plural):
        if tense == "present":
            return present(verb.stem_verb, "", person, plural)
        return finite_form(verb, tense, person, plural)

    with pytest.raises(AssertionError):
        assert wrong_verbs(no_stem_change) == []


def test_auxiliary_verbs_agree_with_the_oracle():
    # möchten and sollten are the subjunctives of mögen and sollen, which the oracle lists under those verbs.
    for infinitive in PRESENT_TABLES:
        ours = [present(infinitive, "", person, plural) for person, plural in PERSONS]
        if infinitive in ("möchten", "sollten"):
            theirs = ablaut.conjugate("mögen" if infinitive == "möchten" else "sollen").konjunktiv2
        else:
            theirs = ablaut.conjugate(infinitive).present
        assert ours == list(theirs)


def phrase(determiner, pattern, declension, case, gender, plural):
    """Determiner and adjective alt: dem alten."""
    alt = next(adjective for adjective in ADJECTIVES if adjective.german == "alt")
    article_form = determiner_form(determiner, pattern, case, gender, plural) if determiner else ""
    return f"{article_form} {adjective_form(alt, declension, case, gender, plural)}".strip()


# Every paradigm by hand: masculine, feminine, neuter, plural; nominative, accusative, dative, genitive.
PARADIGMS = {
    ("der", "der", "weak"): """
        der alte, die alte, das alte, die alten
        den alten, die alte, das alte, die alten
        dem alten, der alten, dem alten, den alten
        des alten, der alten, des alten, der alten""",
    ("dies", "dieser", "weak"): """
        dieser alte, diese alte, dieses alte, diese alten
        diesen alten, diese alte, dieses alte, diese alten
        diesem alten, dieser alten, diesem alten, diesen alten
        dieses alten, dieser alten, dieses alten, dieser alten""",
    ("kein", "ein", "mixed"): """
        kein alter, keine alte, kein altes, keine alten
        keinen alten, keine alte, kein altes, keine alten
        keinem alten, keiner alten, keinem alten, keinen alten
        keines alten, keiner alten, keines alten, keiner alten""",
    ("euer", "ein", "mixed"): """
        euer alter, eure alte, euer altes, eure alten
        euren alten, eure alte, euer altes, eure alten
        eurem alten, eurer alten, eurem alten, euren alten
        eures alten, eurer alten, eures alten, eurer alten""",
    ("", "", "strong"): """
        alter, alte, altes, alte
        alten, alte, altes, alte
        altem, alter, altem, alten
        alten, alter, alten, alter""",
}


@pytest.mark.parametrize("key", PARADIGMS)
def test_endings_follow_the_paradigm(key):
    determiner, pattern, declension = key
    for case, line in zip(CASES, PARADIGMS[key].split("\n")[1:], strict=True):
        ours = [phrase(determiner, pattern, declension, case, gender, False) for gender in "mfn"]
        ours.append(phrase(determiner, pattern, declension, case, "m", True))
        assert ours == [cell.strip() for cell in line.split(",")]


def test_stem_changes_of_adjectives():
    forms = {a.german: adjective_form(a, "strong", "nominative", "n", False) for a in ADJECTIVES}
    assert [forms[german] for german in ("teuer", "dunkel", "müde")] == ["teures", "dunkles", "müdes"]
    assert all(form == german + "es" for german, form in forms.items() if german not in ("teuer", "dunkel", "müde"))


def test_english_spelling():
    forms = {"go": "goes", "carry": "carries", "play": "plays", "wash": "washes", "have": "has"}
    assert {verb: third_person(verb) for verb in forms} == forms
    assert (article("apple"), article("big")) == ("an", "a")
    assert (possessive("boy", False), possessive("boys", True)) == ("boy's", "boys'")
    assert possessive("children", True) == "children's"


def test_english_forms_are_spelled_right():
    """The regular forms that the lexicon derives: a doubled or a dropped letter would show."""
    words = {verb.english: (verb.past, verb.participle, verb.ing) for verb in ALL_VERBS}
    assert words["cry"] == ("cried", "cried", "crying") and words["dance"] == ("danced", "danced", "dancing")
    assert words["lie"] == ("lay", "lain", "lying") and words["get"] == ("got", "gotten", "getting")
    assert words["play"] == ("played", "played", "playing") and words["put"] == ("put", "put", "putting")
    assert all(not word.endswith(("eed", "eing", "yed")) or word in KEPT for forms in words.values() for word in forms)


KEPT = {"seeing", "played", "stayed", "being"}
