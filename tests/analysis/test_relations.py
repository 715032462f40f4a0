"""Relations between words as rows and keys of a map, in a sentence small enough to read; and who finds them."""

import pytest
import torch

from course_lib.analysis import PREVIOUS, Case, Goal, control_rows, find_role, goals, previous_tokens
from course_lib.grammar import build as grammar
from course_lib.grammar import realize
from course_lib.grammar.lexicon import function_words
from tests.helpers.laws import tells_apart

DOG = grammar.the("dog", "big")
TREE = grammar.sentence(
    grammar.clause(grammar.the("woman"), "abholen", accusative=DOG),
    function_words.BECAUSE,
    grammar.clause(grammar.it(DOG), "schlafen"),
)
SRC = "The woman picks up the big dog because it sleeps .".split()
TGT = "Die Frau holt den großen Hund ab , weil er schläft .".split()
EXPECTED = {
    "encoder": {
        "prefix → verb: up → picks",
        "finite verb → subject: picks → woman",
        "pronoun → its noun: it → dog",
        "determiner → noun: The → woman",
        "determiner → noun: the → dog",
        "adjective → noun: big → dog",
        "finite verb → conjunction: sleeps → because",
    },
    "decoder": {  # the nouns of articles and of the adjective are not read yet
        "prefix → verb: ab → holt",
        "finite verb → subject: holt → Frau",
        "pronoun → its noun: er → Hund",
        "finite verb → conjunction: schläft → weil",
    },
    "cross": {  # ab and holt both translate picks
        "finite verb → subject: holt → woman",
        "pronoun → its noun: er → dog",
        "determiner → noun: Die → woman",
        "determiner → noun: den → dog",
        "adjective → noun: großen → dog",
        "finite verb → conjunction: schläft → because",
    },
}


def spans(words, size=1):
    """Each word has so many tokens."""
    return [range(size * place, size * (place + 1)) for place in range(len(words))]


def law_goals_are_what_the_grammar_says(find, size=1):
    assert (list(realize(TREE).src_words), list(realize(TREE).tgt_words)) == (SRC, TGT)
    for kind, expected in EXPECTED.items():
        rows = SRC if kind == "encoder" else TGT
        columns, shift = (TGT, 1) if kind == "decoder" else (SRC, 0)
        said = set()
        for goal in find(TREE, kind, spans(SRC, size), spans(TGT, size)):
            assert goal.row % size == 0 and len(goal.keys) == size and (goal.keys.start - shift) % size == 0
            wanted = columns[(goal.keys.start - shift) // size]
            said.add(f"{goal.relation}: {rows[goal.row // size]} → {wanted}")
        assert said == expected, kind


def one_column_left(tree, kind, *both):
    return [goal._replace(keys=range(goal.keys.start - 1, goal.keys.stop - 1)) for goal in goals(tree, kind, *both)]


def looks_ahead(tree, kind, *both):
    return goals(tree, "cross" if kind == "decoder" else kind, *both)


@pytest.mark.parametrize("size", [1, 3])
def test_goals_are_what_the_grammar_says(size):
    def law(find):
        law_goals_are_what_the_grammar_says(find, size)

    tells_apart(law, goals, one_column_left, looks_ahead)


def test_the_previous_token_is_the_one_that_was_read_last():
    """In the decoder, row 1 predicts the second word; the first stands behind <s>, at key 1."""
    assert list(previous_tokens("encoder", 3)) == [Goal(PREVIOUS, 1, range(0, 1)), Goal(PREVIOUS, 2, range(1, 2))]
    assert list(previous_tokens("decoder", 3)) == [Goal(PREVIOUS, 1, range(1, 2)), Goal(PREVIOUS, 2, range(2, 3))]
    assert not list(previous_tokens("cross", 3)) and not list(previous_tokens("encoder", 1))


def test_a_case_knows_who_looks_at_the_keys():
    first = torch.tensor([[[[0, 1, 5], [0, 4, 5]]], [[[0, 2, 5], [0, 3, 5]]]])  # (2 steps, 1 layer, 2 heads, 3 queries)
    case = Case.of(Goal("any", 1, range(2, 4)), first)
    assert case.near == {1, 2} and case.others is None
    assert case.found.tolist() == [[[False, False]], [[True, True]]]
    case = Case.of(Goal("any", 1, range(2, 6)), first, controls=[0, 2])
    assert case.others.tolist() == [[[0.5, 0.5]], [[0.5, 0.5]]] and case.found.tolist() == [[[0, 1]], [[1, 1]]]


def control_rows_have_no_reason(rows):
    """In the sentence above: who is not sent to "dog", and who of the decoder has read "weil" already."""
    wanted = {
        "encoder": ("it", SRC, "The woman picks up because sleeps ."),
        "decoder": ("schläft", TGT, "er"),  # it has read "weil", and stands before the verb
        "cross": ("den", TGT, "Die Frau holt Hund ab , weil schläft ."),
    }
    for kind, (word, words, expected) in wanted.items():
        found = list(goals(TREE, kind, spans(SRC), spans(TGT)))
        (goal,) = [goal for goal in found if words[goal.row] == word]
        assert " ".join(words[row] for row in rows(goal, found, kind, len(words))) == expected


def test_control_rows_have_no_reason_to_look_there():
    def without_the_others(goal, found, kind, length):
        return control_rows(goal, [goal], kind, length)

    def all_visible(goal, found, kind, length):
        return control_rows(goal, found, "cross", length)

    tells_apart(control_rows_have_no_reason, control_rows, without_the_others, all_visible)


def cases(*rows, near):
    """(steps, 1 layer, heads) each."""
    return [Case({near}, torch.tensor(row)[:, None]) for row in rows]


def test_a_head_that_looks_there_whoever_asks_has_no_role():
    def found(others):
        each = cases([[1, 0]], [[1, 0]], near=-1)
        return [
            case._replace(near={place}, others=others and torch.tensor([[others]])) for place, case in enumerate(each)
        ]

    for others, control, real in (([0.25, 0.0], 0.25, True), ([0.9, 0.0], 0.9, False), (None, 0.0, True)):
        role = find_role("decoder", "any", found(others), found(others))
        assert (role.distance, role.control, role.real) == (0.5, pytest.approx(control), real)


def law_a_role_is_chosen_before_and_counted_after(find):
    """Head 1 finds most of the first cases after the last step, head 0 most of the others; so do two distances."""
    before = cases([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [1, 0]], near=-1)
    after = cases([[1, 1], [1, 0]], [[1, 0], [1, 1]], near=-2) + cases([[0, 0], [1, 1]], [[0, 0], [1, 1]], near=-1)
    role = find("encoder", "any", before, after)
    assert (role.relation, role.kind, role.layer, role.head, role.cases) == ("any", "encoder", 0, 1, 4)
    assert role.shares == (0.25, 0.75) and role.distance == 0.5 and role.real
    assert not find("encoder", "any", before, after[2:]).real  # both find all


def test_a_role_is_chosen_before_and_counted_after():
    def chosen_after(kind, relation, before, after):
        return find_role(kind, relation, after, after)

    def counted_before(kind, relation, before, after):
        return find_role(kind, relation, before, before)

    tells_apart(law_a_role_is_chosen_before_and_counted_after, find_role, chosen_after, counted_before)
