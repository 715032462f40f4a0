"""An exercise is added as the page for teachers says: it is found, checked, proven and made into notebooks."""

import re
from pathlib import Path

import pytest
import torch

from course_lib.assignments import catalog
from course_lib.checks import CheckFailed
from course_lib.grading import released
from notebooks.source import build_assignments, skeleton
from notebooks.source import build_lessons as build
from tests.helpers import answers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An assignment of two exercises, as `make new` writes it, beside those of the course."""
    folder = skeleton.make("exercise", "99_twice", tmp_path)[0].parent
    for module in (catalog, answers):
        monkeypatch.setattr(module, "FOLDERS", [*catalog.FOLDERS, folder])
    return folder


def said(name: str, answer: object) -> str:
    with pytest.raises(CheckFailed) as caught:
        catalog.check(name, answer)
    return str(caught.value)


def test_an_added_exercise_is_checked_and_its_mistakes_are_named(folder: Path) -> None:
    for name in catalog.load(folder):
        for answer in answers.right_answers(name):
            catalog.check(name, answer)
        for answer, hint in answers.wrong_answers(name):
            assert (hint or "") in said(name, answer)
    assert "That is the square." in said("99.double", lambda x: x**2)
    assert "one by one" in said("99.double", lambda x: torch.stack([2 * one for one in x]))


def test_an_added_exercise_becomes_notebooks(folder: Path) -> None:
    instructor = build.generate(folder / "text.py", (build_assignments.instructor,))
    given = [cell.source for cell in released(instructor).cells if cell.cell_type == "code"]
    assert sum("raise NotImplementedError" in source for source in given) == 1
    assert 'prediction = {"1 + 1": None}' in given and any("slow_double" in source for source in given)
    assert not any("return x + x" in source or "hidden=True" in source for source in given)
    names: dict = {}
    for cell in build.generate(folder / "text.py", (build_assignments.solved,)).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    assert names["double"](2) == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("checks", '"99.sum"', '"99.total"', "expected the text's exercises"),
        ("checks", '"x + x"', '"x - x"', "expected 'x - x' in the solution"),
        ("text", '# %% tags=["solution"]\nprediction', "# %%\nprediction", "expected a solution, then check"),
        ("text", 'check("99.sum", prediction)', "print(prediction)", "expected a solution, then check"),
    ],
)
def test_what_does_not_fit_together_is_refused(folder: Path, file: str, old: str, new: str, words: str) -> None:
    path = folder / f"{file}.py"
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(words)):
        catalog.load(folder)


def test_the_page_for_teachers_says_it_in_ten_lines() -> None:
    page = (build_assignments.FOLDER / "TEACHING.md").read_text(encoding="utf-8")
    section = page.split("## Write an exercise\n")[1].split("\n## ")[0].strip().splitlines()
    assert len(section) <= 10
    for word in ("text.py", "checks.py", "answers.py", '"solution"', '"check"', "Edit(", "RIGHT", "WRONG"):
        assert word in "\n".join(section)
