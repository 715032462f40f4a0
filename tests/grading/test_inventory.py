"""What the teacher sees of the twelve questions: every number counted by hand, no name, nothing that runs."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.assignments.inventory import FORMS, LETTERS, QUESTIONS, key
from course_lib.grading import __main__ as command
from course_lib.grading import inventory
from course_lib.grading.inventory import Class, bootstrap, gain, gather, moved, report, scores
from course_lib.metrics import share_estimate
from tests.helpers.classroom import Classroom, Submission

RIGHT = {form: {question.name: key(question, form) for question in QUESTIONS} for form in FORMS}


def some_right(form: str, count: int, letter: str = "?") -> dict[str, str]:
    """The first so many questions right, the others with a letter."""
    return {name: one if number < count else letter for number, (name, one) in enumerate(RIGHT[form].items())}


def submit(root: Path, student: str, form: str, answers: dict[str, str], name: str | None = None) -> Path:
    folder = root / student / FORMS[form]
    folder.mkdir(parents=True, exist_ok=True)
    cells = [new_code_cell("answers = {}"), *(new_code_cell(f'answers["{k}"] = "{v}"') for k, v in answers.items())]
    path = folder / f"{name or FORMS[form]}.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


def simulated(generator: np.random.Generator, students: int, was: float, learned: float) -> Class:
    """A class that knew this share of the questions, and learned that share of the others; students differ."""
    before, after = [], []
    for strength in generator.normal(0, 0.15, students):
        knew = generator.random(12) < min(1, max(0, was + strength))
        knows = knew | (generator.random(12) < min(1, max(0, learned + strength)))
        for form, known, given in (("before", knew, before), ("after", knows, after)):
            pairs = zip(known, RIGHT[form].items(), strict=True)
            given.append({name: one if hit else "?" for hit, (name, one) in pairs})
    return Class(before, after, 0, 0)


# The numbers.


def law_gain_is_hakes(function: Callable) -> None:
    """The share of what could be gained: all, half, nothing; a loss is negative; where nothing is left, none."""
    assert [function(*pair) for pair in ((0.2, 1.0), (0.5, 0.75), (0.4, 0.4))] == [1.0, 0.5, 0.0]
    assert function(0.5, 0.25) == -0.5 and function(1.0, 1.0) is None


@pytest.mark.parametrize(
    "broken",
    [
        lambda before, after: after - before,
        lambda before, after: (after - before) / before,
        lambda before, after: (after - before) / (1 - before) if before < 1 else 0.0,
        lambda before, after: max(0.0, (after - before) / (1 - before)) if before < 1 else None,
    ],
)
def test_the_gain_is_hakes(broken: Callable) -> None:
    law_gain_is_hakes(gain)
    with pytest.raises(AssertionError):
        law_gain_is_hakes(broken)


def test_a_class_of_four_counted_by_hand() -> None:
    question = QUESTIONS[0]
    wrong = {form: [letter for letter in LETTERS if letter != RIGHT[form]["memory"]] for form in FORMS}
    before = [RIGHT["before"]["memory"], wrong["before"][0], wrong["before"][0], "?"]
    after = [wrong["after"][1], RIGHT["after"]["memory"], RIGHT["after"]["memory"], RIGHT["after"]["memory"]]
    room = Class([{"memory": one} for one in before], [{"memory": one} for one in after], 0, 0)
    found = moved(question, room)
    assert (found.before, found.after) == (share_estimate(1, 4), share_estimate(3, 4))
    assert found.gain == pytest.approx(2 / 3) and (found.learned, found.lost) == (3, 1)
    taken = {choice.text: (choice.before, choice.after) for choice in found.choices}
    assert taken[question.right] == (1, 3) and taken["no choice"] == (1, 0)
    assert sorted(taken.values()) == [(0, 0), (0, 1), (1, 0), (1, 3), (2, 0)]  # by text, whatever its letter
    assert [choice.error for choice in found.choices].count(None) == 1
    assert scores("after", room.after).tolist() == [0, 1 / 12, 1 / 12, 1 / 12]


def law_the_interval_holds_the_truth(interval: Callable) -> None:
    """Of what many classes would gain together, in most of a hundred classes, and it is not far too wide."""
    generator, hits, widths = np.random.default_rng(1), 0, []
    big = simulated(generator, 20_000, 0.35, 0.5)
    truth = gain(*(scores(form, given).mean() for form, given in zip(FORMS, (big.before, big.after), strict=True)))
    for _ in range(60):
        room = simulated(generator, 25, 0.35, 0.5)
        found = interval(scores("before", room.before), scores("after", room.after))
        hits, widths = hits + (found.low <= truth <= found.high), [*widths, found.high - found.low]
    assert 51 <= hits and np.mean(widths) < 0.25, (hits, np.mean(widths))


def hakes(*both: np.ndarray) -> float | None:
    return gain(*map(np.mean, both))


def of_each_form(before: np.ndarray, after: np.ndarray):
    """A broken one: as if those after the course were other students than those before."""
    shuffled = np.random.default_rng(2).permutation(len(after))
    found = bootstrap(lambda was, now: gain(was.mean(), now.mean()), before, after[shuffled])
    return replace(found, low=found.low - 0.1, high=found.high + 0.1)


def of_all_answers(before: np.ndarray, after: np.ndarray):
    """A broken one: as if each of a student's answers were another student's."""
    return bootstrap(hakes, np.repeat(before, 12), np.repeat(after, 12))


def test_the_interval_of_the_gain_holds_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "RESAMPLES", 400)
    law_the_interval_holds_the_truth(lambda *both: bootstrap(hakes, *both))
    for broken in (of_each_form, of_all_answers):
        with pytest.raises(AssertionError):
            law_the_interval_holds_the_truth(broken)
    assert bootstrap(hakes, np.ones(3), np.ones(3)) is None


# What is read.


def test_pairs_are_those_of_one_student_and_the_rest_is_counted(tmp_path: Path) -> None:
    submit(tmp_path, "ada", "before", some_right("before", 3))
    submit(tmp_path, "ada", "after", some_right("after", 9))
    submit(tmp_path, "ada", "after", {}, name="Untitled")  # scratch paper
    submit(tmp_path, "bob", "after", some_right("after", 5), name="my answers")
    submit(tmp_path, "bob", "before", some_right("before", 4))
    submit(tmp_path, "cleo", "before", some_right("before", 12))  # no second form
    submit(tmp_path, "dan", "after", some_right("after", 12))  # no first one
    submit(tmp_path, "eve", "before", {})  # opened and left
    submit(tmp_path, "fay", "before", {}).write_text("hello", encoding="utf-8")
    (tmp_path / "gus" / FORMS["before"]).mkdir(parents=True)
    (tmp_path / "gus" / FORMS["before"] / "x.ipynb").symlink_to(tmp_path / "ada" / FORMS["before"] / "x.ipynb")
    room = gather(tmp_path)
    assert [scores("before", room.before).tolist(), scores("after", room.after).tolist()] == [
        [3 / 12, 4 / 12], [9 / 12, 5 / 12]
    ]
    assert (room.single, room.unread) == (2, 2)


def test_before_the_course_everybody_counts(tmp_path: Path) -> None:
    for student in ("ada", "bob"):
        submit(tmp_path, student, "before", some_right("before", 6))
    room = gather(tmp_path)
    assert len(room.before) == 2 and list(room.after) == [] and room.single == 0
    page = report(room)
    assert "before the course." in page and "Normalized gain" not in page and "right after" in page


# The page.


def a_class(root: Path, students: int = 12) -> None:
    for number in range(students):
        name = f"student-{number:02d}-of-the-class"
        submit(root, name, "before", some_right("before", number % 7, "a"))
        submit(root, name, "after", some_right("after", 5 + number % 7, "b"))


def law_no_name_and_nothing_that_runs(page: str) -> None:
    assert "student-" not in page
    assert not re.search(r"<script|javascript:|\son\w+=|https?://|<link|<img|@import|url\(", page, flags=re.I)


def test_the_page_says_all_of_it_and_names_nobody(tmp_path: Path) -> None:
    a_class(tmp_path)
    page = report(gather(tmp_path))
    law_no_name_and_nothing_that_runs(page)
    with pytest.raises(AssertionError):
        law_no_name_and_nothing_that_runs(page.replace("Twelve questions", "student-01-of-the-class"))
    assert "12 students before the course and after it" in page and "Normalized gain" in page
    for question in QUESTIONS:
        assert page.count(f'id="{question.name}"') == 1
        for choice in (question.right, *question.wrong, *question.wrong.values()):
            assert str(inventory.marked(choice)) in page
    assert page.count('role="img"') == 24 and page.count("✓ right") == 12
    assert "So few students" not in page


def test_few_students_are_told_that_they_are_few(tmp_path: Path) -> None:
    a_class(tmp_path, 9)
    assert "So few students" in report(gather(tmp_path))


def test_what_a_question_says_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_class(tmp_path)
    loud = "<script>alert(1)</script> & `<b onclick=x>`"
    first = replace(QUESTIONS[0], title=loud, asked=loud, because=loud)
    monkeypatch.setattr(inventory, "QUESTIONS", (first, *QUESTIONS[1:]))
    page = report(gather(tmp_path))
    assert "<script" not in page and "<b onclick" not in page and "<code>&lt;b onclick" in page
    monkeypatch.setattr(inventory, "marked", inventory.Markup)
    with pytest.raises(AssertionError):
        law_no_name_and_nothing_that_runs(report(gather(tmp_path)))


def test_nothing_that_is_handed_in_gets_onto_the_page(tmp_path: Path) -> None:
    a_class(tmp_path)
    cells = [new_code_cell('answers["memory"] = "<script>alert(1)</script>"\nraise SystemExit')]
    nbformat.write(new_notebook(cells=cells), submit(tmp_path, "mallory", "before", {}))
    submit(tmp_path, "mallory", "after", some_right("after", 1))
    law_no_name_and_nothing_that_runs(report(gather(tmp_path)))


def test_the_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["inventory"]) == 1
    assert "nobody to report on: expected answers in submitted/STUDENT/00_concepts_before" in capsys.readouterr().err
    a_class(tmp_path / "submitted")
    submit(tmp_path / "submitted", "cleo", "before", some_right("before", 2))
    assert command.main(["inventory"]) == 0
    expected = "12 students, before and after; 1 with one form only are left out: inventory.html\n"
    assert capsys.readouterr().out == expected
    assert (tmp_path / "inventory.html").read_text(encoding="utf-8") == report(gather(tmp_path / "submitted"))


# In the class.


def test_nbgrader_counts_who_took_part_and_not_what_is_right(tmp_path: Path) -> None:
    room = Classroom(tmp_path / "teacher", FORMS["after"])
    wrong = {f"inventory-{name}": f'answers["{name}"] = "?"' for name in RIGHT["after"]}
    handed_in = [
        Submission("right"),
        Submission("undecided", cells=wrong),
        Submission("half", cells={"inventory-bleu": 'answers["bleu"] = ""'}, says="1 to go, the first: bleu"),
    ]
    for submission in handed_in:
        room.submit(submission)
    room.autograde()
    found = {student: sum(points.values()) for student, points in room.scores().items()}
    assert found == {"right": 1.0, "undecided": 1.0, "half": 0.0}, room.said
    for submission in handed_in:
        graded = room.graded(submission.student)
        assert submission.says in graded and not any(question.because in graded for question in QUESTIONS)
