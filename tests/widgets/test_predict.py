"""Predictions without a browser: what counts, what is printed, what a stored notebook keeps, what comes at the end."""

import math
from unittest import mock

import numpy as np
import pytest
import torch
import traitlets

from course_lib.widgets import Predict, Predictions
from course_lib.widgets import predict as module
from course_lib.widgets.predict import as_html, pieces
from tests.helpers.laws import patched, raised, tells_apart

QUESTION, CHOICES = "What will the vector of *cat* be now?", ["the same numbers", "those of its place", "others"]
SECTION, REASON = "What does shuffling do?", "a sum does not know the order of its terms"


@pytest.fixture(autouse=True)
def fresh_kernel(monkeypatch):
    """Nothing has been asked before a test."""
    monkeypatch.setattr(module, "_asked", {})


def ask(make=Predict, **changes):
    return make(**dict(question=QUESTION, choices=CHOICES, section=SECTION) | changes)


def number(make=Predict, question="How many tokens?", **options):
    return make(question, section="Tokens", **options)


def verdicts():
    return [row[0] for row in Predictions().rows]


def revealed(prediction, result, capsys, **options):
    """What a reveal prints."""
    capsys.readouterr()
    prediction.reveal(result, **options)
    return capsys.readouterr().out


# --- what counts --------------------------------------------------------------------------------


def law_an_answer_before_the_result_is_judged(make):
    for answer, verdict in ((0, "right"), (1, "wrong"), (2, "wrong"), (None, "not made")):
        module._asked.clear()
        prediction = ask(make)
        prediction.answer = answer
        prediction.reveal(CHOICES[0])
        assert verdicts() == [verdict], answer


class AlwaysRight(Predict):
    def _is_right(self, result):
        return True if self._in_time is not None else None


class TheFirstIsChosen(Predict):
    def _is_right(self, result):
        return str(result) == self.choices[int(self._in_time or 0)]


def test_an_answer_before_the_result_is_judged():
    tells_apart(law_an_answer_before_the_result_is_judged, Predict, AlwaysRight, TheFirstIsChosen)


def law_an_answer_after_the_result_changes_nothing(make):
    """Neither from the page, as a message that was on its way, nor after it the result a second time."""
    for early, verdict in ((None, "not made"), (1, "wrong")):
        module._asked.clear()
        prediction = ask(make)
        prediction.answer = early
        prediction.reveal(CHOICES[0])
        for late in (Predict.set_state, from_the_page):
            late(prediction, {"answer": 0} if late is Predict.set_state else 0)
            assert prediction.answer == early and prediction.outcome["answer"] == early
            prediction.reveal(CHOICES[0])
            assert verdicts() == [verdict]


def from_the_page(prediction, answer):
    """As the page says it, beside the change of the trait."""
    prediction._handle_custom_msg({"answer": answer}, [])


class TakesAll(Predict):
    @traitlets.validate("answer")
    def _accept(self, proposal):
        self._in_time = proposal["value"] if self.outcome else self._in_time
        return proposal["value"]


def test_an_answer_after_the_result_changes_nothing():
    tells_apart(law_an_answer_after_the_result_changes_nothing, Predict, TakesAll)


def test_an_answer_comes_in_two_ways():
    prediction = ask()
    prediction.set_state({"answer": 1})
    assert prediction.answer == 1
    from_the_page(prediction, 2)
    assert prediction.answer == 2
    from_the_page(prediction, None)
    assert prediction.answer is None


def law_the_first_answer_that_met_its_result_counts(make):
    """The cell runs again: it asks again, with the answer that was given."""
    ask(make).reveal(CHOICES[0])
    assert verdicts() == ["not made"]
    again = ask(make)
    assert again.outcome == {} and again.answer is None, "whoever has run all cells first can still predict"
    again.answer = 1
    again = ask(make)
    assert again.answer == 1, "kept when the cell is run twice before the next one"
    again.reveal(CHOICES[0])
    again = ask(make)
    assert again.answer == 1 and again.outcome == {} and verdicts() == ["wrong"]
    again.answer = 0
    again.reveal(CHOICES[0])
    assert again.outcome["answer"] == 0 and verdicts() == ["wrong"], "the second time it is known"


class Forgets(Predict):
    def __init__(self, *args, **options):
        module._asked.clear()
        super().__init__(*args, **options)


class TheLastCounts(Predict):
    def reveal(self, *args, **options):
        self.counted = None
        super().reveal(*args, **options)


def test_the_first_answer_that_met_its_result_counts():
    tells_apart(law_the_first_answer_that_met_its_result_counts, Predict, Forgets, TheLastCounts)


def test_another_question_is_another_prediction():
    ask().answer = 1
    for changes in ({"question": "Another?"}, {"section": "Another"}, {"choices": CHOICES[:2]}):
        assert ask(**changes).answer is None
    assert len(Predictions().rows) == 4


def law_a_result_that_no_choice_fits_counts_for_nothing(make):
    """A reader who has changed the input is told the result, and is not wrong."""
    prediction = ask(make)
    prediction.answer = 1
    prediction.reveal("no number at all")
    assert verdicts() == ["open"] and prediction.outcome["choice"] is None
    assert "".join(text for _, text in prediction.outcome["told"]).startswith(
        "Result: no number at all (none of the choices), so nothing is counted."
    )


class NoneFitsIsWrong(Predict):
    def _is_right(self, result):
        return self._in_time is not None and result == self._said(self._in_time)


def test_a_result_that_no_choice_fits_counts_for_nothing():
    tells_apart(law_a_result_that_no_choice_fits_counts_for_nothing, Predict, NoneFitsIsWrong)


# --- numbers ------------------------------------------------------------------------------------


def law_a_number_is_right_within_its_allowance(make):
    for options, result, right, wrong in (
        ({}, 17, [17], [16.9, 18, -17]),
        ({"within": 0.1}, 17, [17, 15.3, 18.7], [15.2, 18.8, 0]),
        ({"within": 0.1}, -20, [-18, -22], [-17.9, 20]),
        ({"within": 0.1}, 0, [0], [0.1]),
        ({"off_by": 5}, 30, [25, 35], [24.9, 35.1]),
        ({"off_by": 0.5}, 0, [-0.5, 0.5], [0.6]),
        ({}, 0.1 + 0.2, [0.3], [0.31]),  # rounding is nobody's mistake
        ({}, torch.tensor(17), [17], [16]),
        ({}, np.float64(2.5), [2.5], [2]),
    ):
        for answers, verdict in ((right, "right"), (wrong, "wrong")):
            for answer in answers:
                module._asked.clear()
                prediction = number(make, **options)
                prediction.answer = answer
                prediction.reveal(result)
                assert verdicts() == [verdict], (options, result, answer)


class MustBeMet(Predict):
    def _is_right(self, result):
        return math.isclose(self._in_time, result)


class OfTheAnswer(Predict):
    def _is_right(self, result):
        return abs(self._in_time - result) <= max(self.within * abs(self._in_time), self.off_by) + 1e-12


class WithoutRounding(Predict):
    def _is_right(self, result):
        return abs(self._in_time - result) <= max(self.within * abs(result), self.off_by)


def test_a_number_is_right_within_its_allowance():
    tells_apart(law_a_number_is_right_within_its_allowance, Predict, MustBeMet, OfTheAnswer, WithoutRounding)


@pytest.mark.parametrize("result", [math.nan, math.inf])
def test_what_is_no_finite_number_makes_no_answer_wrong(result, capsys):
    prediction = number()
    prediction.answer = 3
    assert revealed(prediction, result, capsys) == f"Result: {result}. Your prediction: 3.\n"
    assert verdicts() == ["open"]


@pytest.mark.parametrize(
    "options, result, told",
    [
        ({"unit": "tokens"}, 17, "17 tokens"),
        ({"unit": "parameters"}, 1_234_567, "1,234,567 parameters"),
        ({"unit": "%"}, 30.0, "30%"),
        ({}, 0.123456, "0.123"),
        ({}, -2, "-2"),
        ({"unit": "nats"}, 1.5e-7, "1.5·10⁻⁷ nats"),
    ],
)
def test_a_number_is_told_with_its_unit(options, result, told, capsys):
    assert revealed(number(**options), result, capsys) == f"Result: {told}.\n"


# --- what is said -------------------------------------------------------------------------------


def law_without_an_answer_the_line_is_the_same_for_everybody(make):
    lines = []
    for _ in range(2):
        prediction = make()
        with mock.patch("builtins.print") as printed:
            prediction.reveal(CHOICES[0], because=f"{REASON}.")
        lines.append(printed.call_args.args[0])
    assert lines == [f"Result: the same numbers, because {REASON}."] * 2


def test_without_an_answer_the_line_is_the_same_for_everybody():
    class SaysItsAddress(Predict):
        def _shown(self, result):
            return f"{super()._shown(result)} {id(self)}"

    tells_apart(law_without_an_answer_the_line_is_the_same_for_everybody, ask, lambda: ask(SaysItsAddress))


@pytest.mark.parametrize(
    "answer, line, told",
    [
        (0, "Your prediction: the same numbers, right.", "Right. Why: it is so."),
        (1, "Your prediction: those of its place, not right.", "Not right. Why: it is so."),
        (None, None, "There was no prediction before the result. Why: it is so."),
    ],
)
def test_an_answer_is_told_beside_the_result(answer, line, told, capsys):
    prediction = ask()
    prediction.answer = answer
    expected = "Result: the same numbers, because it is so." + (f" {line}" if line else "")
    assert revealed(prediction, "the same numbers", capsys, because="it is so") == f"{expected}\n"
    assert "".join(text for _, text in prediction.outcome["told"]) == told
    assert prediction.outcome["choice"] == 0 and prediction.outcome["result"] == [["span", "the same numbers"]]


def test_choices_may_be_numbers(capsys):
    prediction = Predict("How many?", [3, 4, 5], section="S")
    prediction.answer = 1
    assert revealed(prediction, torch.tensor(4), capsys) == "Result: 4. Your prediction: 4, right.\n"


# --- what a notebook keeps ----------------------------------------------------------------------


def law_a_page_without_a_script_shows_question_and_choices(prediction):
    data, _ = prediction._repr_mimebundle_()
    assert data["text/plain"].splitlines() == [f"Predict: {QUESTION}", *(f"  - {choice}" for choice in CHOICES)]
    items = "".join(f"<li><span>{choice}</span></li>" for choice in CHOICES)
    asked = "<span>What will the vector of </span><em>cat</em><span> be now?</span>"
    assert data["text/html"] == f"<p><b>Predict</b>: {asked}</p><ul>{items}</ul>"
    assert "application/vnd.jupyter.widget-view+json" in data and "image/png" not in data


def test_a_page_without_a_script_shows_question_and_choices():
    known = ask()
    known.reveal(CHOICES[0])
    tells_apart(law_a_page_without_a_script_shows_question_and_choices, ask(), ask(choices=CHOICES[::-1]), known)
    data = known._repr_mimebundle_()[0]
    assert data["text/plain"].endswith("\nResult: the same numbers")
    assert data["text/html"].endswith("<p><span>Result: the same numbers</span></p>")


@pytest.mark.parametrize(
    "options, told",
    [
        ({}, "a number"),
        ({"unit": "tokens"}, "a number of tokens"),
        ({"unit": "tokens", "within": 0.1}, "a number of tokens, right within 10% of the result"),
        ({"unit": "tokens", "off_by": 2}, "a number of tokens, right within 2 tokens"),
        ({"unit": "%", "off_by": 5}, "a number in %, right within 5 points"),
    ],
)
def test_a_page_without_a_script_says_which_number_is_asked_for(options, told):
    prediction = number(**options)
    assert prediction.first_state()[0]["text/plain"] == f"Predict: How many tokens?\n  - {told}"
    assert prediction.asked["allowance"] == told.partition(", ")[2]


def law_marks_become_tags_and_nothing_else_does(function):
    words = "*cat* & `x < 1` in 2 * 3 * 4 <b>"
    assert function(words) == (
        "<em>cat</em><span> &amp; </span><code>x &lt; 1</code><span> in 2 * 3 * 4 &lt;b&gt;</span>"
    )


def test_marks_become_tags_and_nothing_else_does():
    no_escape = patched(as_html, mock.patch("course_lib.widgets.predict.html.escape", lambda text: text))
    tells_apart(law_marks_become_tags_and_nothing_else_does, as_html, no_escape, lambda words: words)
    assert pieces("") == []


# --- the end of a lesson ------------------------------------------------------------------------


def a_lesson(answers):
    """Four predictions, three of which have met a result."""
    made = [number(unit="tokens"), ask(), ask(question="And *dog*?"), ask(question="Later?", section="Later")]
    for prediction, answer in zip(made, answers, strict=True):
        prediction.answer = answer
    made[0].reveal(17)
    for prediction in made[1:3]:
        prediction.reveal(CHOICES[0])
    return Predictions()


def test_after_run_all_nothing_is_right_and_nothing_is_wrong():
    found = a_lesson([None] * 4)
    assert repr(found).splitlines() == [
        "Predictions: 0 of 4 made.",
        "- not made: How many tokens? Result: 17 tokens.",
        f"- not made: {QUESTION} Result: the same numbers.",
        "- not made: And *dog*? Result: the same numbers.",
        "- not made: Later?",
    ]
    page = found._repr_html_()
    assert page.startswith("<p>Predictions: 0 of 4 made.</p><table>") and "Read again" not in page


def law_the_end_says_what_was_right_and_where_to_read_again(end):
    found = a_lesson([17, 1, 2, 0])
    shown = end(found)
    assert shown.splitlines() == [
        "Predictions: 4 of 4 made, 1 right.",
        "- right: How many tokens? You: 17 tokens. Result: 17 tokens.",
        f"- wrong: {QUESTION} You: those of its place. Result: the same numbers.",
        "- wrong: And *dog*? You: others. Result: the same numbers.",
        "- open: Later? You: the same numbers.",
        f"Read again: {SECTION}",
    ]


def test_the_end_says_what_was_right_and_where_to_read_again():
    tells_apart(
        law_the_end_says_what_was_right_and_where_to_read_again,
        repr,
        lambda found: repr(found).replace("1 right", "2 right"),
        lambda found: repr(found) + "; Tokens",
    )
    page = Predictions()._repr_html_()
    link = f'<a href="#What-does-shuffling-do?"><span>{SECTION}</span></a>'
    assert page.endswith(f"</table><p>Read again: {link}</p>") and page.count("<tr>") == 5
    cells = ["right", "How many tokens?", "17 tokens", "17 tokens"]
    assert "<tr>" + "".join(f"<td><span>{cell}</span></td>" for cell in cells) + "</tr>" in page


def test_a_lesson_without_predictions_ends_as_well():
    assert repr(Predictions()) == "Predictions: no cell that asks for one has run."
    assert "table" not in Predictions()._repr_html_()


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"question": " "}, "expected a question and a section, got ' ' and 'What does shuffling do?'"),
        ({"section": ""}, "expected a question and a section"),
        ({"choices": ["one"]}, "expected two or more different choices, or none for a number, got ['one']"),
        ({"choices": ["one", "one"]}, "expected two or more different choices"),
        ({"choices": ["one", ""]}, "expected two or more different choices"),
        ({"unit": "tokens"}, "expected a unit and an allowance for a number only"),
        ({"within": 0.1}, "expected a unit and an allowance for a number only"),
        ({"choices": (), "off_by": -1}, "expected at most one allowance, from 0 on, got within=0.0 and off_by=-1"),
        ({"choices": (), "within": 0.1, "off_by": 1}, "expected at most one allowance"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes, message):
    assert message in str(raised(ValueError, lambda: ask(**changes)))
    assert module._asked == {}


@pytest.mark.parametrize("result", ["17", None, True, [17], torch.tensor(True)])
def test_a_result_that_is_no_number_is_refused(result):
    assert "expected a number as the result of 'How many" in str(raised(ValueError, lambda: number().reveal(result)))


@pytest.mark.parametrize("answer", [3, -1, 0.5, math.nan])
def test_an_answer_that_was_not_offered_is_refused(answer):
    prediction = ask()
    with pytest.raises(traitlets.TraitError, match="expected the number of a choice or a finite number"):
        prediction.answer = answer
    assert prediction.answer is None
