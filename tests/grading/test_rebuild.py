"""A submission is graded on the released notebook, whatever was done to its cells; unreadable ones are put aside."""

import os
from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib.grading.intake import admit, content_of, printable, receive
from course_lib.grading.prose import LARGEST, text_cell
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


def split(cells: list[NotebookNode]) -> None:
    """As JupyterLab does: the second half has the metadata of the first and an id of its own."""
    cells[3].source = "first half"
    cells.insert(4, new_code_cell("second half", metadata=deepcopy(cells[3].metadata), id="split"))


@pytest.mark.parametrize(
    ("trick", "answer"),
    [
        (lambda cells: None, "first half\n\nsecond half"),
        (lambda cells: cells.insert(4, new_code_cell("print(1)")), "first half\n\nsecond half"),
        (lambda cells: cells[3].update(source="stub one"), "second half"),
        (lambda cells: cells[4].update(source="stub one"), "first half"),
        (lambda cells: cells.insert(5, cells.pop(4)), "first half"),
        (lambda cells: (cells[3].update(source="half = 1"), cells[4].update(source="half = (")), "half = 1"),
        (
            lambda cells: (cells[3].update(source="def half():"), cells[4].update(source="    return 1")),
            "def half():\n\n    return 1",
        ),
    ],
)
def test_what_an_editor_has_split_is_one_answer(released, submitted, trick: Callable, answer: str) -> None:
    split(submitted.cells)
    trick(submitted.cells)
    graded = texts(rebuild(released, submitted))
    assert answer in graded and sum("half" in text for text in graded) == 1


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


@pytest.mark.parametrize("names", [("a.ipynb", "b.ipynb"), ("hw.ipynb", "hw-Copy1.ipynb")])
def test_two_notebooks_are_an_error_that_names_both(course: Path, submitted: NotebookNode, names: tuple) -> None:
    for number, name in enumerate(names):
        submitted.cells[3].source = f"answer {number}"
        nbformat.write(submitted, course / name)
    said = admit(course, "hw")
    assert said.startswith("there are 2 notebooks") and all(name in said for name in names)
    graded = nbformat.read(course / "hw.ipynb", as_version=4)
    assert "hand in one" in graded.cells[0].source and "stub one" in texts(graded)
    assert admit(course, "hw") == said  # as long as both are there
    kept = next(path for path in course.iterdir() if path.name.startswith(names[1]))
    kept.unlink()
    assert admit(course, "hw") in (None, f"{names[0]} is graded as hw.ipynb")
    assert "answer 0" in texts(nbformat.read(course / "hw.ipynb", as_version=4))


@pytest.mark.parametrize("name", ["hw.ipynb", "mine.ipynb"])
def test_a_notebook_without_an_answer_is_left_out(course: Path, released, submitted, name: str) -> None:
    """Scratch paper, one that defines what is asked, one that cannot be read, and the release as it was given."""
    nbformat.write(submitted, course / name)
    nbformat.write(new_notebook(cells=[new_code_cell("1 + 1")]), course / "Untitled.ipynb")
    nbformat.write(new_notebook(cells=[new_code_cell("one = two = 3")]), course / "Untitled1.ipynb")
    (course / "broken.ipynb").write_text("{")
    nbformat.write(released, course / ("hw.ipynb" if name != "hw.ipynb" else "given.ipynb"))
    before = {path.name: path.read_bytes() for path in course.iterdir()}
    for _ in range(2):
        said = admit(course, "hw")
        assert all(f"{other} is left out" in said for other in before.keys() - {name})
        assert ("mine.ipynb is graded as hw.ipynb" in said) == (name != "hw.ipynb")
        assert texts(nbformat.read(course / "hw.ipynb", as_version=4)) == RIGHT
    kept = {path.name.removesuffix(".as-submitted"): path.read_bytes() for path in sorted(course.iterdir())}
    assert before.items() <= kept.items()


def test_a_file_may_have_a_name_that_is_no_text(course: Path, submitted: NotebookNode) -> None:
    nbformat.write(submitted, course / "hw.ipynb")
    without = content_of(course)
    try:
        (course / os.fsdecode(b"L\xf6sung.txt")).write_text("42")
    except OSError:
        pytest.skip("this file system has no such names")
    assert admit(course, "hw") is None and content_of(course) != without
    submitted.cells[3].source = "another"
    nbformat.write(submitted, course / os.fsdecode(b"L\xf6sung.ipynb"))
    assert printable(admit(course, "hw")).startswith(r"there are 2 notebooks (L\udcf6sung.ipynb, hw.ipynb)")
    assert r"L\udcf6sung" in nbformat.read(course / "hw.ipynb", as_version=4).cells[0].source


def test_the_same_notebook_twice_is_one(course: Path, submitted: NotebookNode) -> None:
    for name in ("hw.ipynb", "hw-Copy1.ipynb"):
        nbformat.write(submitted, course / name)
    assert admit(course, "hw") is None


def test_what_comes_again_is_looked_at_again(course: Path, submitted: NotebookNode) -> None:
    (course / "hw.ipynb").write_bytes(b"hello")
    assert "is not a notebook" in admit(course, "hw")
    nbformat.write(submitted, course / "hw.ipynb")
    before = content_of(course)
    assert admit(course, "hw") is None
    assert texts(nbformat.read(course / "hw.ipynb", as_version=4)) == RIGHT
    submitted.cells[3].source = "better"
    nbformat.write(submitted, course / "hw.ipynb")
    assert admit(course, "hw") is None and content_of(course) != before
    assert "better" in texts(nbformat.read(course / "hw.ipynb", as_version=4))


def test_a_renamed_notebook_that_comes_again_is_graded_as_it_is_now(course: Path, submitted: NotebookNode) -> None:
    for answer in ("answer one", "better"):
        submitted.cells[3].source = answer
        nbformat.write(submitted, course / "mine.ipynb")
        assert admit(course, "hw") == "mine.ipynb is graded as hw.ipynb"
        assert answer in texts(nbformat.read(course / "hw.ipynb", as_version=4))


def test_a_notebook_in_which_nothing_is_recognized_is_said(course: Path) -> None:
    nbformat.write(new_notebook(cells=[new_code_cell("print(1)"), new_markdown_cell("hello")]), course / "hw.ipynb")
    assert "no cell of hw.ipynb is recognized as an answer" in admit(course, "hw")


@pytest.fixture
def defining() -> NotebookNode:
    """A release whose solutions define something, and an answer in words."""
    cells = [
        new_markdown_cell("# An assignment", id="title"),
        marked("def twice(x):\n    raise NotImplementedError", "one", solution=True),
        marked("check('hw.one', twice)", "one-check"),
        marked("prediction = {1: None}", "two", solution=True),
        new_markdown_cell("## In your own words", id="head"),
        marked("YOUR ANSWER HERE", "words", solution=True),
    ]
    cells[5] = new_markdown_cell(cells[5].source, metadata=cells[5].metadata, id="words")
    return new_notebook(cells=cells)


def without_metadata(cells: list[NotebookNode]) -> None:
    for number, cell in enumerate(cells):
        cell.metadata = nbformat.from_dict({})
        cell["id"] = f"new-{number}"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cells: None,
        lambda cells: cells.insert(0, new_code_cell("import math")),
        lambda cells: cells.append(new_code_cell("def twice(x):\n    return 'tried later'")),
        lambda cells: cells.insert(1, cells.pop(3)),
        lambda cells: cells.insert(1, new_markdown_cell("My notes")),
    ],
)
def test_cells_without_metadata_are_known_by_what_they_define(defining: NotebookNode, spoil: Callable) -> None:
    submitted = deepcopy(defining)
    answers = {1: "def twice(x):\n    return x + x", 3: "prediction = {1: 2}", 5: "Because."}
    for number, answer in answers.items():
        submitted.cells[number].source = answer
    without_metadata(submitted.cells)
    spoil(submitted.cells)
    cells = rebuild(defining, submitted).cells
    graded = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in cells}
    assert [graded[name] for name in ("one", "two", "words")] == list(answers.values())


def test_an_id_is_enough(defining: NotebookNode) -> None:
    submitted = deepcopy(defining)
    submitted.cells[1].source = "from operator import neg as twice"  # defines nothing that could be recognized
    for cell in submitted.cells:
        cell.metadata = nbformat.from_dict({})
    cells = texts(rebuild(defining, submitted))
    assert cells[1] == submitted.cells[1].source and defining.cells[1].source not in cells


def test_what_was_given_is_no_answer(defining: NotebookNode) -> None:
    given = "def twice(x):\n    return 2 * x  # slow"
    defining.cells.insert(1, new_code_cell(given))
    submitted = deepcopy(defining)
    del submitted.cells[2]
    without_metadata(submitted.cells)
    assert texts(rebuild(defining, submitted)).count(given) == 1


def test_code_is_no_answer_in_words(defining: NotebookNode) -> None:
    submitted = deepcopy(defining)
    submitted.cells[5] = new_code_cell("print('because')")
    without_metadata(submitted.cells)
    assert "YOUR ANSWER HERE" in texts(rebuild(defining, submitted))


# Pictures.

PICTURE = b64encode(b"a picture").decode()


def text(source: str, **attached: object) -> NotebookNode:
    return NotebookNode(cell_type="markdown", source=source, metadata={}, attachments=attached)


def page(*cells: NotebookNode) -> str:
    return HTMLExporter().from_notebook_node(new_notebook(cells=list(cells)))[0]


def test_pictures_of_an_answer_and_of_notes_come_along(defining: NotebookNode) -> None:
    submitted = deepcopy(defining)
    drawn = text("Because: ![t](attachment:t.png)", **{"t.png": {"image/png": PICTURE}})
    submitted.cells[5] |= {"source": drawn.source, "attachments": drawn.attachments}
    submitted.cells.append(text("Notes: ![s](attachment:s.jpg)", **{"s.jpg": {"image/jpeg": PICTURE}}))
    graded = rebuild(defining, submitted)
    nbformat.validate(graded)
    assert graded.cells[5].attachments == drawn.attachments and graded.cells[5].source == drawn.source
    shown = page(*graded.cells)
    assert all(f"data:image/{kind};base64,{PICTURE}" in shown for kind in ("png", "jpeg"))


def test_a_picture_may_have_any_name() -> None:
    for name, referred in (("ä.png", "ä.png"), ("a b.png", "a%20b.png"), ("a(1).png", "a(1).png")):
        for data in (PICTURE, f"{PICTURE[:4]}\n{PICTURE[4:]}\n"):  # in lines, as a notebook may have it
            cell = text_cell(text(f"![t](attachment:{referred})", **{name: {"image/png": data}}))
            assert f"data:image/png;base64,{PICTURE}" in page(cell), name


@pytest.mark.parametrize(
    "attached",
    [
        {},
        {"t.png": {"image/svg+xml": "<svg onload='alert(1)'/>", "text/html": PICTURE}},
        {"t.png": {"image/png": f'{PICTURE}"><script>alert(1)</script>'}},
        {"t.png": {"image/png": "A" * (LARGEST + 4)}},
        {"t.png": {"image/png": [PICTURE]}},
        {"t.png": 3},
        3,
    ],
)
def test_what_is_no_picture_stays_out_and_the_text_can_still_be_shown(attached: object) -> None:
    cell = text("# See\n\n![t](attachment:t.png)")
    cell["attachments"] = attached
    cell = text_cell(cell)
    assert "attachments" not in cell
    shown = page(cell)
    assert "![t](attachment:t.png)" in shown and "alert(1)" not in shown and "<h1" not in shown
