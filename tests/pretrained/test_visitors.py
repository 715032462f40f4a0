"""What visitors type into the everyday translator: 120 sentences of all kinds, and what may come back."""

from tests.helpers.visitors import ROWS, accepted


def test_the_sentences_are_of_many_kinds_and_differ():
    assert len(ROWS) == 120 == len({text for _, text, _, _ in ROWS})
    assert len({kind for kind, *_ in ROWS}) == 12


def test_what_says_nothing_is_not_accepted():
    assert len(accepted(lambda text: (text, []))) < 10
    assert len(accepted(lambda text: ("Ich weiß es nicht.", []))) < 3
    assert [text for _, text, *_ in accepted(refused)] == ["???"]


def refused(text):
    raise ValueError("no")
