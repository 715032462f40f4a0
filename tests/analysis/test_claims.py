"""Claims put to the test: what a lab book keeps, what it shows, and what it refuses."""

import re

import pytest
import torch

from course_lib.analysis import VERDICTS, Claim, LabBook, Page, written
from tests.helpers.laws import raised, tells_apart


def squares(base_width, offset=0):
    return {"as said": 2 * base_width, "found": torch.tensor(base_width**2 + offset, requires_grad=True, dtype=float)}


def filled():
    book = LabBook()
    book.say("Powers", double="A square is the double.", odd="An odd square is odd.")
    book.say("Signs", minus="A square has no sign.")
    book.test("double", squares, values=(1, 2, 3))
    book.judge(double=("wrong", "03_attention", "At 2 `only`."))
    return book


def test_claims_are_numbered_in_the_order_in_which_they_are_said():
    claims = filled().claims
    assert [(claim.number, claim.name, claim.group) for claim in claims] == [
        (1, "double", "Powers"),
        (2, "odd", "Powers"),
        (3, "minus", "Signs"),
    ]


def law_all_values_are_measured(book_class):
    book = book_class()
    book.say("Powers", double="A square is the double.")
    book.test("double", squares, values=(1, 2, 3))
    claim = book["double"]
    assert claim.values == (1, 2, 3) and claim.knob == "base width"
    assert claim.numbers == {"as said": (2.0, 4.0, 6.0), "found": (1.0, 4.0, 9.0)}
    assert all(type(number) is float for row in claim.numbers.values() for number in row)
    book.test("double", squares, values=range(5, 7))
    assert book["double"].numbers["found"] == (25.0, 36.0), "a second test replaces the first"


class MeasuresTheFirst(LabBook):
    def test(self, name, measure, values):
        return super().test(name, lambda base_width: measure(values[0]), values)


class KeepsTheFirst(LabBook):
    def test(self, name, measure, values):
        return None if self[name].numbers else super().test(name, measure, values)


def test_all_values_are_measured():
    tells_apart(law_all_values_are_measured, LabBook, MeasuresTheFirst, KeepsTheFirst)


def test_a_second_judgement_and_a_second_saying_replace_the_first():
    book = filled()
    book.judge(double=("half right", "", "At 0 and 2."))
    assert (book["double"].verdict, book["double"].right, book["double"].lesson) == ("half right", "At 0 and 2.", "")
    book.say("Powers", double="A square is at least the double.")
    assert book["double"].number == 1 and not book["double"].numbers and not book["double"].verdict


def test_pages_are_markdown():
    book = filled()
    assert book.say("Signs", plus="A sum has.").text == "**4.** “A sum has.”"
    page = book["double"].evidence()
    assert repr(page) == page.text == page._repr_markdown_()
    assert page.text.splitlines() == [
        "**1.** “A square is the double.”",
        "",
        "| base width | 1 | 2 | 3 |",
        "|---|--:|--:|--:|",
        "| as said | 2 | 4 | 6 |",
        "| found | 1 | 4 | 9 |",
    ]
    answer = "**1.** ✗ **wrong**. At 2 `only`. (Lesson [03](03_attention.ipynb).)"
    folded = f"<details><summary>What is right?</summary>\n\n{answer}\n\n</details>"
    assert book.judge(double=("wrong", "03_attention", "At 2 `only`.")).text == folded
    assert book["double"].answer() == answer
    book.test("odd", lambda d_model: {"a": 0}, values=(1,))
    book.judge(odd=("right", "", "It is."))
    assert book["odd"].knob == "d_model" and book["odd"].answer() == "**2.** ✓ **right**. It is."
    rows = book.summary().text.splitlines()[2:]  # only what is judged
    assert rows == [
        "| 1 | A square is the double. | ✗ [03](03_attention.ipynb) |",
        "| 2 | An odd square is odd. | ✓ |",
    ]


def test_a_verdict_that_is_there_before_the_test_stands_folded_under_it():
    book = filled()
    book.judge(minus=("right", "", "It has none."))
    assert not book["minus"].numbers and "no sign" not in book.summary().text, "judged alone it is in no list"
    page = book.test("minus", lambda base: {"found": base * base}, values=(-2, 2)).text
    said, table, *folded = page.split("\n\n")
    assert said == str(book["minus"]) and table.splitlines()[-1] == "| found | 4 | 4 |"
    assert folded == ["<details><summary>What is right?</summary>", book["minus"].answer(), "</details>"]
    assert book.test("odd", lambda base: {"found": base}, values=(1,)).text == book["odd"].evidence().text


def law_a_closed_table_hides_the_numbers_alone(book_class):
    book = book_class()
    book.say("Powers", double="A square is the double.")
    book.judge(double=("wrong", "", "At 2 only."))
    shown = book.test("double", squares, values=(1, 2, 3)).text
    said, table, *verdict = shown.split("\n\n")
    assert table.startswith("| base width | 1 | 2 | 3 |"), "open unless a page asks"
    closed = book.test("double", squares, values=(1, 2, 3), closed=True).text.split("\n\n")
    assert closed == [said, "<details><summary>Our table</summary>", table, "</details>", *verdict]


class ForgetsToClose(LabBook):
    def test(self, name, measure, values, *, closed=False):
        return super().test(name, measure, values)


class ClosesEach(LabBook):
    def test(self, name, measure, values, *, closed=False):
        return super().test(name, measure, values, closed=True)


class HidesTheClaimToo(LabBook):
    def test(self, name, measure, values, *, closed=False):
        page = super().test(name, measure, values)
        return Page(f"<details><summary>Our table</summary>\n\n{page}\n\n</details>") if closed else page


def test_a_closed_table_hides_the_numbers_alone():
    tells_apart(law_a_closed_table_hides_the_numbers_alone, LabBook, ForgetsToClose, ClosesEach, HidesTheClaimToo)


def test_a_topic_is_one_line_that_opens():
    book = filled()
    book.test("odd", lambda base: {"found": base}, values=(1,))
    page = book.topic("Powers", odd="Look at 1.").text
    assert page.splitlines()[0] == "<details><summary>Powers: 1, 2</summary>"
    assert page.count("<details>") == page.count("</details>") == 4 and page.endswith("</details>")
    assert page.index("“A square is") < page.index("At 2 `only`.") < page.index("“An odd") < page.index("Look at 1.")
    assert page.index("Look at 1.") < page.rindex("<summary>Our table") < page.rindex("| found | 1 |")


def test_closed_groups_are_listed_under_the_others():
    book = filled()
    book.test("minus", lambda base: {"found": base * base}, values=(-2, 2))
    book.judge(minus=("right", "", "It has none."))
    seen, folded = book.summary(closed=["Signs"]).text.split("<details><summary>1 more</summary>")
    assert "A square is the double." in seen and "no sign" not in seen
    assert "| 3 | A square has no sign. | ✓ |" in folded and "double" not in folded


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda book: book["triple"], "expected one of the claims double, odd, minus; got 'triple'"),
        (lambda book: LabBook()["triple"], "(none yet); got 'triple'"),
        (lambda book: book.say("Empty"), "expected claims for 'Empty', got none"),
        (lambda book: book.test("triple", squares, values=(1,)), "got 'triple'"),
        (lambda book: book.test("odd", squares, values=()), "odd: expected the same names for every value, got []"),
        (lambda book: book.test("odd", lambda n: {f"{n}": n}, values=(1, 2)), "got [['1'], ['2']]"),
        (lambda book: book.test("odd", lambda n: {"a": 1, "b": n}, values=(1, float("nan"))), "got ['b']"),
        (lambda book: book.test("odd", lambda n: {}, values=(1,)), "expected finite numbers, got none"),
        (lambda book: book.judge(double=("maybe", "", "")), "among right, half right, wrong; got 'maybe'"),
        (lambda book: book.judge(triple=("right", "", "")), "got 'triple'"),
        (lambda book: book.topic("Powers"), "expected tested claims and notes on them, got ['double', 'odd']"),
        (lambda book: book.topic("Roots"), "got [] of 'Roots', []"),
        (lambda book: book.topic("Signs", odd="Look."), "got ['minus'] of 'Signs', ['odd']"),
    ],
)
def test_what_cannot_be_meant_is_refused(call, message):
    book = filled()
    before = book.claims
    assert message in str(raised(ValueError, lambda: call(book)))
    assert book.claims == before


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "0"),
        (-3, "-3"),
        (True, "1"),
        (4000, "4,000"),
        (11_181.0, "11,181"),
        (1234.5, "1,234"),
        (0.355, "0.355"),
        (0.35499, "0.355"),
        (22.62, "22.6"),
        (6.99e-4, "6.99e-4"),
        (2e-4, "2e-4"),
        (1e8, "1e8"),
        (5.85e8, "5.85e8"),
        (2.22e-16, "2e-16"),
        (1e-10, "1e-10"),
        (-2.5e-20, "-2e-20"),
    ],
)
def test_numbers_are_short(number, text):
    assert written(number) == text
    assert float(text.replace(",", "")) == pytest.approx(float(number), rel=0.3 if abs(number) < 1e-6 else 5e-3)


def test_a_claim_is_plain_and_each_verdict_has_a_mark():
    assert list(VERDICTS) == ["right", "half right", "wrong"] and len(set(VERDICTS.values())) == 3
    assert re.fullmatch(r"\*\*7\.\*\* “It is\.”", str(Claim(7, "it", "group", "It is.")))
