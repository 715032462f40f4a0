"""The grammar's German against German written by hand: every row of golden_course.tsv has its tree."""

from pathlib import Path

import pytest

from course_lib.grammar import generate
from course_lib.grammar.build import pair
from course_lib.grammar.linearizers import german, german_phrases
from course_lib.grammar.phenomena import PHENOMENA
from tests.grammar.golden_trees import TREES

_TEXT = (Path(__file__).parent / "golden_course.tsv").read_text(encoding="utf-8")
ROWS = [tuple(line.split("\t")) for line in _TEXT.splitlines()]


def wrong_rows():
    """The rows whose English or German the grammar says otherwise."""
    said = [pair(tree)[:2] for tree in TREES]
    return [(ours, row) for ours, row in zip(said, ROWS, strict=True) if ours != row]


def test_grammar_says_what_was_written_by_hand():
    assert len(ROWS) >= 150
    assert wrong_rows() == []


MUTANTS = {
    "no kein": (german, "is_indefinite", lambda node: False),
    "no contractions": (german_phrases, "CONTRACTIONS", {}),
    "nouns uninflected": (german_phrases, "noun_form", lambda noun, case, plural: noun.german),
    "past questions in the preterite": (german, "german_tense", lambda node: node.tense),
    "indefinite objects before adverbs": (german, "is_definite", lambda node: True),
    "every adjective weak": (german_phrases, "declension_after", lambda determiner: "weak"),
    "du for everyone": (german, "agreement", lambda node, address="": (2, False)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_grammar_is_noticed(name, monkeypatch):
    monkeypatch.setattr(*MUTANTS[name])
    assert wrong_rows() != []


def test_no_two_trees_say_the_same():
    assert len({pair(tree).src for tree in TREES}) == len(TREES)


def test_golden_rows_cover_every_phenomenon():
    assert {tag for tree in TREES for tag in pair(tree).phenomena} == set(PHENOMENA)


def test_generated_sentences_agree_with_golden_rows():
    golden = dict(ROWS)
    met = [(found.src, found.tgt, golden[found.src]) for found in generate(20_000, 4) if found.src in golden]
    assert len(met) >= 3
    assert all(ours == theirs for _, ours, theirs in met)
