"""The errata lab without a browser: what the page gets of each claim, the score, and the stored picture."""

import json

import pytest

from course_lib.analysis import LabBook
from course_lib.widgets import ErrataLab
from course_lib.widgets.errata_lab import shown
from tests.helpers.laws import raised, tells_apart


def some_book():
    book = LabBook()
    book.say("Powers", double="A square is the double.", root="A root is the half.", minus="A square has no sign.")
    book.test("double", lambda base: {"as said": 2 * base, "found": base**2}, values=(1, 10, 100))
    book.test("root", lambda base: {"found": base - 1}, values=(1, 2))
    book.test("minus", lambda base: {"found": base * base}, values=(-2, 2))
    book.judge(
        double=("half right", "03_attention", "At 0 and 2."),
        root=("wrong", "", "At 4."),
        minus=("right", "", "It has none."),
    )
    return book


def law_the_page_gets_the_claim(show):
    for claim in some_book().claims:
        plain = show(claim)
        assert json.loads(json.dumps(plain)) == plain, "plain data"
        assert [tuple(row) for row in plain["numbers"].values()] == list(claim.numbers.values())
        assert list(plain["numbers"]) == list(plain["written"]) == list(claim.numbers)
        assert len(plain["names"]) == len(plain["values"]) == len(claim.values)
        for name in ("number", "group", "said", "knob", "verdict", "right"):
            assert plain[name] == getattr(claim, name)
        assert plain["lesson"] == claim.lesson[:2]
        positive = min(number for row in claim.numbers.values() for number in row) > 0
        assert plain["log"] == (claim.name == "double") and (positive or not plain["log"])


def test_the_page_gets_the_claim():
    tells_apart(
        law_the_page_gets_the_claim,
        shown,
        lambda claim: shown(claim) | {"log": True},
        lambda claim: shown(claim) | {"numbers": {}},
        lambda claim: shown(claim) | {"verdict": "right"},
    )
    double = shown(some_book()["double"])
    assert double["names"] == ["1", "10", "100"] and double["written"]["found"] == ["1", "100", "10,000"]


def test_the_score_counts_what_is_judged_as_the_experiment_does():
    lab = ErrataLab(some_book().claims)
    assert lab.score == (0, 0)
    lab.set_state({"answers": {"1": "wrong", "3": "right"}})
    assert lab.score == (2, 1)
    lab.answers = {"1": "half right", "2": "wrong", "3": "right"}
    assert lab.score == (3, 3)


def test_the_picture_is_of_the_chosen_claim():
    lab = ErrataLab(some_book().claims)
    for place, (verdict, scales) in enumerate(
        (("◐ half right", ("log", "log")), ("✗ wrong", ("linear",) * 2), ("✓ right", ("linear",) * 2))
    ):
        lab.chosen = place
        picture, claim = lab.picture(), some_book().claims[place]
        (axes,) = picture.axes
        assert picture.get_suptitle().replace("\n", " ") == f"{verdict}: “{claim.said}”"
        assert (axes.get_xscale(), axes.get_yscale()) == scales and axes.get_xlabel() == "base"
        drawn = [line.get_ydata().tolist() for line in axes.lines]
        assert drawn == [list(row) for row in claim.numbers.values()]


def test_it_begins_where_it_is_told_to_and_shows_a_picture():
    lab = ErrataLab(some_book().claims, chosen=2)
    assert lab.chosen == 2 and lab.at == 0 and lab.answers == {}
    data, _ = lab._repr_mimebundle_()
    assert data["text/plain"] == "✓ right: “A square has no sign.”" and data["image/png"]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ErrataLab([]), "expected claims, got none"),
        (lambda: ErrataLab(some_book().claims, chosen=3), "chosen must be in 0..2, got 3"),
        (lambda: ErrataLab(some_book().claims, chosen=-1), "chosen must be in 0..2, got -1"),
    ],
)
def test_what_it_cannot_show_is_refused(make, message):
    assert message in str(raised(ValueError, make))


def test_a_claim_that_is_not_judged_is_refused():
    book = some_book()
    book.say("Powers", cube="A cube is the triple.")
    message = "expected judged and tested claims, got no verdict or numbers of cube"
    assert message in str(raised(ValueError, lambda: ErrataLab(book.claims)))
    book.judge(cube=("wrong", "", "At 1."))  # still without numbers
    assert message in str(raised(ValueError, lambda: ErrataLab(book.claims)))
