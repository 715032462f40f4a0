"""Constituency trees: of sentences that everybody can check, and laws of 2,000 others."""

from collections import Counter
from itertools import islice

import pytest

from course_lib.grammar import Span, build, constituents, english, labeled_f1, linearized, read_brackets, trees
from course_lib.grammar.lexicon.function_words import AND, BECAUSE
from tests.helpers.laws import tells_apart

the, clause = build.the, build.clause


def text_of(sentence):
    """A tree to read: words in brackets."""
    words, spans = constituents(sentence)
    words = iter(words)
    row = (
        next(words) if token == "XX" else ")" if token[0] == ")" else token
        for token in linearized(words_of(sentence), spans)
    )
    return " ".join(row).replace(" )", ")")


def words_of(sentence):
    return [word.text for word in english.sentence(sentence)]


def simple(*args, **details):
    return build.sentence(clause(*args, **details))


TREES = {
    "(S (NP the cat) (VP sees (NP the big dog)) .)": simple(the("cat"), "sehen", accusative=the("dog", "big")),
    "(SQ does (NP the cat) (VP see (NP the dog)) ?)": simple(
        the("cat"), "sehen", accusative=the("dog"), force="yes-no"
    ),
    "(SQ is (NP the soup) (ADJP hot) ?)": simple(the("soup"), "sein", predicate=build.adjective("hot"), force="yes-no"),
    "(SBARQ (WHNP who) (VP sees (NP the dog)) ?)": simple(
        "who", "sehen", accusative=the("dog"), force="wh", front="subject"
    ),
    "(S (NP the dog (SBAR (WHNP that) (NP the cat) (VP sees))) (VP sleeps) .)": simple(
        build.relative(the("dog"), "accusative", "sehen", the("cat")), "schlafen"
    ),
    "(S (NP the dog) (VP sleeps (SBAR because (S (NP the cat) (VP sleeps)))) .)": build.sentence(
        clause(the("dog"), "schlafen"), BECAUSE, clause(the("cat"), "schlafen")
    ),
    "(S (SBAR because (S (NP the cat) (VP sleeps))) , (NP the dog) (VP sleeps) .)": build.sentence(
        clause(the("dog"), "schlafen"), BECAUSE, clause(the("cat"), "schlafen"), second_first=True
    ),
    "(S (S (NP the dog) (VP sleeps)) , and (S (NP the cat) (VP sleeps)) .)": build.sentence(
        clause(the("dog"), "schlafen"), AND, clause(the("cat"), "schlafen")
    ),
    "(S (NP (NP the boy's) dog) (VP sleeps) .)": simple(build.bare("dog", possessor=the("boy")), "schlafen"),
}


@pytest.mark.parametrize("expected", TREES)
def test_trees_are_those_of_a_textbook(expected):
    assert text_of(TREES[expected]) == expected


def law_every_sentence_has_a_tree(read):
    """The brackets nest, have all words in their order, and come back from the row that they are written as."""
    labels = Counter()
    for tree in islice(trees(11), 2000):
        words, spans = constituents(tree)
        assert words == words_of(tree) and spans[0][1:] == (0, len(words))
        assert read(linearized(words, spans), len(words)) == Counter(spans)
        labels.update(span.label for span in spans)
    assert set(labels) == {"S", "SQ", "SBARQ", "SBAR", "NP", "WHNP", "VP", "PP", "ADVP", "ADJP"}


def without_labels(row, num_words):
    return Counter(Span("X", *span[1:]) for span in read_brackets(row, num_words).elements())


def test_every_sentence_has_a_tree():
    tells_apart(law_every_sentence_has_a_tree, read_brackets, without_labels)


def test_what_is_no_tree_is_refused():
    assert read_brackets("(S (NP XX )NP XX )S".split(), 2) == {Span("NP", 0, 1): 1, Span("S", 0, 2): 1}
    for broken in ("(S XX XX", "(S XX )S", "(S XX XX )NP", "XX XX )S", "(S (NP XX )S XX )NP", "(S XX word )S"):
        assert read_brackets(broken.split(), 2) is None


def law_f1_is_counted_by_hand(f1):
    gold = "(S (NP XX )NP (VP XX (NP XX )NP )VP )S".split()
    no_object = "(S (NP XX )NP (VP XX XX )VP )S".split()
    other_label = "(S (PP XX )PP (VP XX (NP XX )NP )VP )S".split()
    assert f1([gold], [gold]) == 1
    assert f1([no_object], [gold]) == pytest.approx(2 * 3 / (3 + 4))
    assert f1([other_label], [gold]) == pytest.approx(3 / 4)
    assert f1([gold[:-1]], [gold]) == 0  # no tree
    assert f1([gold, no_object], [gold, gold]) == pytest.approx(2 * 7 / (7 + 8))


def exact_only(outputs, golds):
    return sum(a == b for a, b in zip(outputs, golds, strict=True)) / len(golds)


def unlabeled(outputs, golds):
    drop = {"PP": "NP"}
    plain = [[token[0] + drop.get(token[1:], token[1:]) for token in row] for row in outputs]
    return labeled_f1(plain, golds)


def test_f1_is_counted_by_hand():
    tells_apart(law_f1_is_counted_by_hand, labeled_f1, exact_only, unlabeled)
    with pytest.raises(ValueError, match="expected an output for each tree, got 0 and 1"):
        labeled_f1([], [["XX"]])
