"""The concept inventory asks the same things twice, gives no key away, and wants an answer, not the right one."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from course_lib.assignments import check, find, inventory, what_moved
from course_lib.assignments.inventory import FORMS, LETTERS, QUESTIONS, Question, answers_in, choices, key
from course_lib.checks import CheckFailed
from course_lib.grading import released
from notebooks.source import build_inventory
from notebooks.source.build_assignments import FOLDER


def stored(kind: str, form: str) -> NotebookNode:
    name = FORMS[form]
    return nbformat.read(FOLDER / kind / name / f"{name}.ipynb", as_version=4)


def law_four_choices_and_a_name_for_each_error(question: Question) -> None:
    texts = [question.right, *question.wrong]
    assert len(set(texts)) == 4 and len(set(question.wrong.values())) == 3 and all(question.wrong.values())
    assert max(map(len, texts)) < 110 and "`" not in "".join(question.wrong.values())


def law_it_reads_the_same_everywhere(question: Question) -> None:
    """In Markdown as on a page: what is code is marked, and nothing else means anything there."""
    for text in (question.title, question.asked, question.right, *question.wrong, question.because):
        assert text.count("`") % 2 == 0 and not re.search(r"[<>*\\$]|\b_|_\b", re.sub(r"`[^`]*`", "", text)), text


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_has_four_choices_and_a_name_for_each_error(question: Question) -> None:
    law_four_choices_and_a_name_for_each_error(question)
    law_it_reads_the_same_everywhere(question)
    with pytest.raises(AssertionError):
        law_four_choices_and_a_name_for_each_error(replace(question, right=next(iter(question.wrong))))
    with pytest.raises(AssertionError):
        law_it_reads_the_same_everywhere(replace(question, asked="<s> is read"))


def law_letters_tell_nothing(letters: dict[str, list[str]]) -> None:
    """No letter is right much more often than another, and none stays right in the other form."""
    for form in letters.values():
        assert set(form) == set(LETTERS) and max(Counter(form).values()) <= 5
    assert not any(before == after for before, after in zip(*letters.values(), strict=True))


def test_letters_tell_nothing() -> None:
    assert len(QUESTIONS) == 12 and len({question.name for question in QUESTIONS}) == 12
    letters = {form: [key(question, form) for question in QUESTIONS] for form in FORMS}
    law_letters_tell_nothing(letters)
    with pytest.raises(AssertionError):
        law_letters_tell_nothing({"before": letters["before"], "after": letters["before"]})
    with pytest.raises(AssertionError):
        law_letters_tell_nothing({"before": ["a"] * 12, "after": ["b"] * 12})
    for question in QUESTIONS:
        assert sorted(choices(question, "before")) == sorted(choices(question, "after"))
    with pytest.raises(ValueError, match="expected a form among before, after, got 'between'"):
        choices(QUESTIONS[0], "between")


@pytest.mark.parametrize("form", FORMS)
def test_notebooks_are_what_the_questions_generate(form: str) -> None:
    assert stored("source", form) == build_inventory.instructor(form)
    assert stored("release", form) == released(build_inventory.instructor(form))


def law_no_key(notebook: NotebookNode) -> None:
    text = nbformat.writes(notebook)
    assert answers_in([cell.source for cell in notebook.cells]) == {} and "planted" not in text
    for question in QUESTIONS:
        assert f'answers["{question.name}"] = ""' in [cell.source for cell in notebook.cells]
        assert question.because not in text and not any(error in text for error in question.wrong.values())


@pytest.mark.parametrize("form", FORMS)
def test_a_release_has_every_choice_and_no_key(form: str) -> None:
    law_no_key(stored("release", form))
    with pytest.raises(AssertionError):
        law_no_key(stored("source", form))
    text = "\n".join(cell.source for cell in stored("release", form).cells)
    for question in QUESTIONS:
        for letter, choice in zip(LETTERS, choices(question, form), strict=True):
            assert f"- **{letter}**: {choice}" in text
    right = answers_in([cell.source for cell in stored("source", form).cells])
    assert right == {question.name: key(question, form) for question in QUESTIONS}


def said(answers: object) -> str:
    with pytest.raises(CheckFailed) as caught:
        check("inventory.answers", answers)
    return str(caught.value)


def test_every_answer_counts_the_same_and_none_is_missing(capsys: pytest.CaptureFixture) -> None:
    for letter in (*LETTERS, "?"):
        check("inventory.answers", dict.fromkeys((question.name for question in QUESTIONS), letter))
        assert capsys.readouterr().out == "✓ inventory.answers: all answered; what is right comes at the end\n"
    answers = dict.fromkeys((question.name for question in QUESTIONS), "a")
    assert "1 to go, the first: order" in said(answers | {"order": ""})
    assert "2 to go, the first: order" in said(answers | {"order": "abc", "bleu": None})
    assert "12 to go" in said({}) and "12 to go" in said("a")
    assert not any(question.right in said({}) for question in QUESTIONS)
    with pytest.raises(ValueError, match="expected an exercise among"):
        find("inventory.other")


def test_answers_are_read_and_not_run() -> None:
    ran = []
    codes = [
        "answers = {}",
        'answers["memory"] = "b"\nanswers["memory"] = "c"  # on second thought',
        'answers["context"] = "?"',
        'answers["norm"] = str(ran.append(1))',
        'answers["order"] = "e"\nanswers["none"] = "a"\nothers["heads"] = "a"',
        "answers[",
        "\0",
        'answers["row"] = ["a"]\nanswers[["row"]] = "a"\nanswers["row"]["row"] = "a"',
    ]
    assert answers_in(codes) == {"memory": "c", "context": "?"} and not ran


def notebook_with(answers: dict[str, str], path: Path) -> Path:
    cells = [{"cell_type": "code", "source": [f'answers["{name}"] = ', f'"{one}"']} for name, one in answers.items()]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "x"}, *cells]}), encoding="utf-8")
    return path


def test_who_learns_alone_reads_what_moved(tmp_path: Path) -> None:
    right = {form: {question.name: key(question, form) for question in QUESTIONS} for form in FORMS}
    wrong = {question.name: next(x for x in LETTERS if x != key(question, "before")) for question in QUESTIONS}
    before = notebook_with(wrong | {"memory": right["before"]["memory"]}, tmp_path / "before.ipynb")
    lines = what_moved(right["after"] | {"norm": "?"}, before).splitlines()
    assert lines[0].startswith("✓ → ✓") and lines[1].startswith("✗ → ✓")
    assert lines[-1] == "11 of 12 are right, 1 were before the course."
    (told,) = [line for line in lines if "right is:" in line]
    assert "LayerNorm(x + sublayer(x))" in told and "(lesson 06)" in told
    late = what_moved(right["before"], tmp_path / "none.ipynb")  # the letters of the wrong form: nothing is right
    assert late.count("you took:") == 12 and "– → ✗" in late and late.splitlines()[-1].startswith("0 of 12 are right; ")


def test_the_notebook_of_who_learns_alone_finds_the_one_from_before(tmp_path: Path) -> None:
    """Both lie side by side, in a checkout as among the copies."""
    assert inventory.answers.BEFORE == Path("../00_concepts_before/00_concepts_before.ipynb")
    for form in FORMS:
        assert (FOLDER / "release" / FORMS["after"] / inventory.answers.BEFORE).resolve().is_file()
        assert sum("what_moved(" in cell.source for cell in stored("release", form).cells) == (form == "after")
