"""A submission is graded on the released notebook, whatever was done to its cells; unreadable ones are put aside."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib.grading.intake import admit, receive
from course_lib.grading.rebuild import rebuild


def marked(source: str, name: str, *, solution: bool = False) -> NotebookNode:
    marks = dict(grade_id=name, grade=not solution, locked=not solution, solution=solution, schema_version=3)
    marks["task"] = False
    return new_code_cell(source, metadata={"nbgrader": marks}, id=name)


@pytest.fixture
def released() -> NotebookNode:
    cells = [
        new_markdown_cell("# An assignment", id="title"),
        marked("import math", "given-0"),
        marked("stub one", "one", solution=True),
        marked("check one", "one-check"),
        marked("stub two", "two", solution=True),
        marked("check two", "two-check"),
    ]
    return new_notebook(cells=cells)


@pytest.fixture
def submitted(released: NotebookNode) -> NotebookNode:
    notebook = deepcopy(released)
    notebook.cells[2].source, notebook.cells[4].source = "answer one", "answer two"
    notebook.cells.insert(2, new_code_cell("helper = 1", id="helper"))
    return notebook


RIGHT = ["# An assignment", "import math", "helper = 1", "answer one", "check one", "answer two", "check two"]


def texts(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells]


def edit(change: Callable[[list], object]) -> Callable[[NotebookNode], None]:
    def apply(notebook: NotebookNode) -> None:
        change(notebook.cells)

    return apply


@pytest.mark.parametrize(
    "trick",
    [
        edit(lambda cells: None),
        edit(lambda cells: cells[4].update(source="print('✓')")),
        edit(lambda cells: cells[4].metadata.nbgrader.update(points=100, grade=False)),
        edit(lambda cells: cells.pop(4)),
        edit(lambda cells: cells.pop(0)),
        edit(lambda cells: cells[1].update(source="import antigravity")),
        edit(lambda cells: cells.append(deepcopy(cells[3]))),
        edit(lambda cells: cells.extend([deepcopy(cells[4])])),
        edit(lambda cells: cells.insert(5, cells.pop(6))),
        lambda notebook: notebook.metadata.update(kernelspec={"name": "julia"}),
    ],
)
def test_tricks_with_cells_have_no_effect(released, submitted, trick: Callable) -> None:
    expected = deepcopy(released.cells[4].metadata)
    trick(submitted)
    graded = rebuild(released, submitted)
    assert texts(graded) == RIGHT
    assert graded.cells[5].metadata == expected
    assert graded.metadata == released.metadata
    nbformat.validate(graded)


def test_a_deleted_solution_is_a_stub_again(released, submitted) -> None:
    del submitted.cells[3]
    assert "stub one" in texts(rebuild(released, submitted))


def test_a_solution_of_another_type_is_none(released, submitted) -> None:
    submitted.cells[3] = new_markdown_cell("answer one", metadata=submitted.cells[3].metadata)
    assert "stub one" in texts(rebuild(released, submitted))


def test_cells_in_front_stay_in_front(released, submitted) -> None:
    submitted.cells.insert(0, new_code_cell("first"))
    assert texts(rebuild(released, submitted)) == ["first", *RIGHT]


def test_marks_that_are_no_marks_are_ignored(released, submitted) -> None:
    for marks in ("text", [1], {"grade_id": 7}, {}):
        submitted.cells.append(new_code_cell("odd", metadata={"nbgrader": marks}))
    assert set(texts(rebuild(released, submitted))) == {*RIGHT, "odd"}


def test_the_release_itself_is_not_changed(released, submitted) -> None:
    before = deepcopy(released)
    rebuild(released, submitted)
    assert released == before


@pytest.fixture
def course(tmp_path: Path, released: NotebookNode, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("release/hw", "submitted/ada/hw"):
        (tmp_path / folder).mkdir(parents=True)
    nbformat.write(released, tmp_path / "release/hw/hw.ipynb")
    return tmp_path / "submitted/ada/hw"


def test_a_readable_submission_is_left_alone(course: Path, submitted: NotebookNode) -> None:
    nbformat.write(submitted, course / "hw.ipynb")
    before = (course / "hw.ipynb").read_bytes()
    assert admit(course, "hw") is None
    assert {path.name: path.read_bytes() for path in course.iterdir()} == {"hw.ipynb": before}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "is not a notebook"),
        (b"", "is not a notebook"),
        (b'{"cells": 3}', "is not a notebook"),
        (
            b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}',
            "is not a notebook",
        ),
        (b"\xff\xfe\x00", "is not a notebook"),
        (None, "there is no hw.ipynb"),
    ],
)
def test_an_unreadable_submission_is_put_aside_and_the_release_says_why(course, released, content, why) -> None:
    if content is not None:
        (course / "hw.ipynb").write_bytes(content)
    assert why in admit(course, "hw")
    graded = nbformat.read(course / "hw.ipynb", as_version=4)
    assert why in graded.cells[0].source and texts(graded)[1:] == texts(released)
    kept = course / "hw.ipynb.as-submitted"
    assert kept.exists() == (content is not None) and (content is None or kept.read_bytes() == content)


def test_a_link_is_not_followed(course: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.ipynb"
    nbformat.write(new_notebook(cells=[new_markdown_cell("hidden tests")]), secret)
    for name in ("hw.ipynb", "other.ipynb", "data.txt"):
        (course / name).symlink_to(secret)
    assert "data.txt was a link" in admit(course, "hw")
    assert not any("hidden tests" in path.read_text() for path in course.iterdir())
    assert "hidden tests" in secret.read_text()


def test_one_notebook_of_another_name_is_taken_for_the_assignment(course: Path, submitted: NotebookNode) -> None:
    nbformat.write(submitted, course / "mine (1).ipynb")
    notebooks = [str(course / "mine (1).ipynb")]
    receive("hw", "*", notebooks)
    assert notebooks == [str(course / "hw.ipynb")]
    assert texts(nbformat.read(notebooks[0], as_version=4)) == RIGHT


def test_of_several_notebooks_of_other_names_none_is_guessed(course: Path, submitted: NotebookNode) -> None:
    for name in ("a.ipynb", "b.ipynb"):
        nbformat.write(submitted, course / name)
    assert "there is no hw.ipynb" in admit(course, "hw")
