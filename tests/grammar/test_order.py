"""Word order of thousands of generated trees: where the finite verb stands, found by its part, not by its form."""

from itertools import islice

import ablaut
import pytest

from course_lib.grammar.generate import trees
from course_lib.grammar.lexicon.function_words import YOU_AGREEMENT
from course_lib.grammar.linearizers import german
from course_lib.grammar.syntax import (
    Coordination,
    Interrogative,
    Notes,
    NounPhrase,
    PrepPhrase,
    Pronoun,
    RelativePronoun,
)
from tests.helpers.syntax_trees import SLOTS, clauses, nodes

TREES = list(islice(trees(2), 4_000))


def finite_positions(words, clause):
    """Where words say the tense of a clause."""
    return [at for at, word in enumerate(words) if (clause, "tense") in word.parts]


def words_of(tree, linearize=german.sentence):
    return linearize(tree, Notes())


def assert_one_finite_verb(linearize):
    for tree in TREES:
        words = words_of(tree, linearize)
        for clause in clauses(tree):
            assert len(finite_positions(words, clause)) == 1


def assert_verb_final(linearize):
    for tree in TREES:
        words = words_of(tree, linearize)
        for clause in clauses(tree):
            if clause.force in ("subordinate", "relative"):
                after = words[finite_positions(words, clause)[0] + 1]
                assert after.text in (",", ".", "?", "und")


def assert_verb_first(linearize):
    for tree in TREES:
        if tree.first.force == "yes-no":
            assert finite_positions(words_of(tree, linearize), tree.first) == [0]


def front_of(tree, clause, words):
    """The words of a main clause before its finite verb."""
    start = 0
    if clause is tree.second:
        start = next(at for at, word in enumerate(words) if (tree, "conjunction") in word.parts) + 1
    return words[start:finite_positions(words, clause)[0]]


def assert_verb_second(linearize):
    for tree in TREES:
        words = words_of(tree, linearize)
        for clause in (tree.first, tree.second):
            if clause is None or clause.force not in ("statement", "wh"):
                continue
            front = front_of(tree, clause, words)
            if tree.second_first:
                whole = {id(node) for node in nodes(tree.second)} | {id(tree)}
                assert all(id(node) in whole for word in front for node, _ in word.parts) and front[-1].text == ","
            elif clause.silent_subject:
                assert front == []
            else:
                heads = [slot for slot in SLOTS if getattr(clause, slot) is not None and front
                         and any(front[0].parts[0][0] is node for node in nodes(getattr(clause, slot)))]
                assert len(heads) == 1
                inside = {id(node) for node in nodes(getattr(clause, heads[0]))} | {id(clause)}
                assert all(id(node) in inside for word in front for node, _ in word.parts)


LAWS = (assert_one_finite_verb, assert_verb_final, assert_verb_first, assert_verb_second)


@pytest.mark.parametrize("law", LAWS)
def test_the_finite_verb_has_its_place(law):
    law(german.sentence)


def verb_last_everywhere(tree, notes):
    """A mutant that speaks German with English subordinate clauses turned around."""
    return list(reversed(german.sentence(tree, notes)))


def finite_verb_doubled(tree, notes):
    """A mutant that says the first finite verb again at the end."""
    words = german.sentence(tree, notes)
    return [*words[:-1], words[finite_positions(words, tree.first)[0]], words[-1]]


def subject_always_first(tree, notes):
    """A mutant that moves the last word but one to the front, before what is there already."""
    words = german.sentence(tree, notes)
    return [words[-2], *words[:-2], words[-1]]


def english_order(tree, notes):
    """A mutant that puts a word after every finite verb at the end of its clause."""
    words = german.sentence(tree, notes)
    at = finite_positions(words, tree.second)[0] if tree.second is not None else None
    return words if at is None else [*words[: at - 1], words[at], words[at - 1], *words[at + 1 :]]


@pytest.mark.parametrize(("law", "mutant"), [
    (assert_one_finite_verb, finite_verb_doubled), (assert_verb_final, english_order),
    (assert_verb_first, verb_last_everywhere), (assert_verb_second, subject_always_first)])
def test_a_displaced_verb_is_noticed(law, mutant):
    with pytest.raises(AssertionError):
        law(mutant)


def assert_dative_first(linearize):
    """Of two nouns in the middle field the dative stands before the accusative: einer Frau die Jacke."""
    for tree in TREES:
        words = words_of(tree, linearize)
        for clause in clauses(tree):
            objects = clause.dative, clause.accusative
            if all(isinstance(node, NounPhrase) for node in objects) and clause.fronted not in objects:
                dative, accusative = (at_noun(words, node) for node in objects)
                assert dative < accusative


def at_noun(words, phrase):
    """Where the noun of a noun phrase stands."""
    return next(at for at, word in enumerate(words) if (phrase, "noun") in word.parts)


def test_the_dative_stands_before_the_accusative():
    assert_dative_first(german.sentence)


def test_a_late_dative_is_noticed(monkeypatch):
    ranks = german._ranks
    monkeypatch.setattr(german, "_ranks", lambda node, address: (*ranks(node, address)[:2], 20))
    with pytest.raises(AssertionError):
        assert_dative_first(german.sentence)


def person_of(subject):
    """Person and plural of the verb, derived again from what the subject is."""
    if isinstance(subject, Pronoun):
        return YOU_AGREEMENT["du"] if subject.person == 2 else (subject.person, subject.plural)
    if isinstance(subject, RelativePronoun):
        return 3, subject.antecedent.plural
    return 3, isinstance(subject, Coordination) or (isinstance(subject, NounPhrase) and subject.plural)


def assert_agreement(linearize):
    """The finite full verb is the oracle's form for person and number of the subject."""
    oracles = {}
    for tree in TREES:
        words = words_of(tree, linearize)
        for clause in clauses(tree):
            word = words[finite_positions(words, clause)[0]]
            if (clause, "verb") not in word.parts:
                continue
            name = clause.verb.infinitive
            oracle = oracles.setdefault(name, ablaut.conjugate(name))
            person, plural = person_of(clause.subject)
            table = oracle.preterite if clause.tense == "past" else oracle.present
            finite, *prefix = table[person - 1 + 3 * plural].split()
            assert word.text in (finite, "".join(prefix) + finite)


def test_the_verb_agrees_with_its_subject():
    assert_agreement(german.sentence)


def test_disagreement_is_noticed(monkeypatch):
    monkeypatch.setattr(german, "agreement", lambda node, address="": (3, False))
    with pytest.raises(AssertionError):
        assert_agreement(german.sentence)


def test_the_sample_has_every_kind_of_tree():
    forces = {clause.force for tree in TREES for clause in clauses(tree)}
    kinds = {type(node) for tree in TREES for node in nodes(tree)}
    assert forces == {"statement", "yes-no", "wh", "subordinate", "relative"}
    assert kinds >= {NounPhrase, Pronoun, Coordination, Interrogative, RelativePronoun, PrepPhrase}
