"""Agreement inside noun phrases, derived again: cases from the tree, endings by rule, nouns from a dictionary."""

from itertools import islice

import pytest

from course_lib.grammar.generate import trees
from course_lib.grammar.lexicon.function_words import HOW_MANY, MANY, THE
from course_lib.grammar.linearizers import german, german_phrases
from course_lib.grammar.syntax import Clause, Coordination, Name, Notes, NounPhrase, PrepPhrase

DER = {"nominative": "der die das die", "accusative": "den die das die", "dative": "dem der dem den",
       "genitive": "des der des der"}
STRONG = {"nominative": "er e es e", "accusative": "en e es e", "dative": "em er em en", "genitive": "es er es er"}
CASE_NAMES = {"nominative": "nominativ", "accusative": "akkusativ", "dative": "dativ", "genitive": "genitiv"}
TREES = list(islice(trees(6), 2_500))


def noun_phrases(node, case="nominative"):
    """Every noun phrase below a node with the case it must have."""
    if isinstance(node, NounPhrase):
        yield node, case
        if node.possessor is not None:
            yield from noun_phrases(node.possessor, "genitive")
        if node.relative is not None:
            yield from noun_phrases(node.relative)
    elif isinstance(node, Coordination):
        yield from noun_phrases(node.first, case)
        yield from noun_phrases(node.second, case)
    elif isinstance(node, PrepPhrase):
        yield from noun_phrases(node.noun_phrase, node.case)
    elif isinstance(node, Clause):
        if not node.silent_subject:
            yield from noun_phrases(node.subject)
        yield from noun_phrases(node.accusative, "accusative")
        yield from noun_phrases(node.dative, "dative")
        for part in (node.governed, node.location, node.direction):
            yield from noun_phrases(part)


def said(words, node):
    """What was said of a noun phrase: {part: text}."""
    return {part: word.text for word in words for owner, part in word.parts if owner is node}


def expected_ending(determiner_ending, kind, case, at, plural):
    """The adjective's ending by the schoolbook rule: whoever shows the case first lets the next relax."""
    strong = STRONG[case].split()[at]
    if case == "genitive" and at in (0, 2):
        strong = "en"  # the noun shows the genitive itself
    if kind == "none" or (kind == "ein" and determiner_ending == ""):
        return strong
    relaxed = not plural and (case == "nominative" or (case == "accusative" and at != 0))
    return "e" if relaxed else "en"


def check_determiner(texts, node, case, at):
    """Assert the determiner's form; return (its ending, its kind)."""
    if "det" not in texts or isinstance(node.possessor, Name) or node.determiner in (MANY, HOW_MANY):
        return "", "none"
    text = texts["det"].lower()
    if text in ("im", "am", "zum", "vom", "beim", "ins", "ans", "zur"):
        article = {"im": "dem", "am": "dem", "zum": "dem", "vom": "dem", "beim": "dem", "zur": "der"}.get(text, "das")
        assert article == DER[case].split()[at]
        return article, "der"
    if node.determiner is THE or (node.determiner is None and node.possessor is not None):
        assert text == DER[case].split()[at]
        return text, "der"
    ending = STRONG[case].split()[at]
    ein = text.startswith(("ein", "kein", "mein", "dein", "sein", "ihr", "unser"))
    if ein and ((case == "nominative" and at in (0, 2)) or (case == "accusative" and at == 2)):
        ending = ""
    stems = ("ein", "kein", "mein", "dein", "sein", "ihr", "unser", "dies", "jed", "welch")
    assert text in {stem + ending for stem in stems}
    return ending, "ein" if ein else "der"


def check_noun(text, node, case, dictionary):
    start = f"{CASE_NAMES[case]} {'plural' if node.plural else 'singular'}"
    forms = {form for entry in dictionary[node.noun.german] for key, form in entry["flexion"].items()
             if key.startswith(start)}
    assert text in forms


def gender_in(dictionary, lemma):
    """The genders that the dictionary gives a noun."""
    entries = [entry for entry in dictionary[lemma] if entry["lemma"] == lemma]
    return {entry[key] for entry in entries for key in entry if key.startswith("genus")}


def assert_agreement(dictionary):
    for tree in TREES:
        words = german.sentence(tree, Notes())
        for clause in (tree.first, tree.second):
            for node, case in noun_phrases(clause):
                assert node.noun.gender in gender_in(dictionary, node.noun.german)
                at = 3 if node.plural else "mfn".index(node.noun.gender)
                texts = said(words, node)
                ending, kind = check_determiner(texts, node, case, at)
                for adjective in node.adjectives:
                    right = expected_ending(ending, kind, case, at, node.plural)
                    assert texts[adjective.english].lower() == (adjective.stem + right)
                check_noun(texts["noun"], node, case, dictionary)


def test_noun_phrases_agree_in_gender_case_and_number(dictionary):
    assert_agreement(dictionary)


MUTANTS = {
    "accusative for dative": ("noun_phrase", lambda original: lambda node, case, *rest: original(
        node, "accusative" if case == "dative" else case, *rest)),
    "mixed endings always": ("declension_after", lambda original: lambda determiner: "mixed"),
    "feminine everywhere": ("determiner_form", lambda original: lambda german, pattern, case, gender, plural: original(
        german, pattern, case, "f", plural)),
    "no case on nouns": ("noun_form", lambda original: lambda noun, case, plural: original(noun, "nominative", plural)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_ending_is_noticed(name, dictionary, monkeypatch):
    function, mutate = MUTANTS[name]
    monkeypatch.setattr(german_phrases, function, mutate(getattr(german_phrases, function)))
    with pytest.raises(AssertionError):
        assert_agreement(dictionary)
