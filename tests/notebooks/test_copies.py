"""The reader's copies: no answers in them, and nothing that the reader has written is ever lost."""

import json
import re
from pathlib import Path
from unittest import mock

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from notebooks import copies
from tests.helpers.laws import patched, tells_apart

LESSON, ASSIGNMENT = "01_a.ipynb", "assignments/release/01_a/01_a.ipynb"
ASIDE = r"```.*?```|`[^`]*`|\$[^$]*\$"  # code and formulas: no link is in them


def publish(edition: Path, text: str) -> None:
    """An edition of one lesson, one assignment, one page and one record."""
    for name in (LESSON, ASSIGNMENT):
        answer = new_code_cell("6 * 7", outputs=[new_output("stream", text="42\n")], execution_count=1)
        (edition / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=[new_markdown_cell(text), answer]), edition / name)
    (edition / "terms.md").write_text(text)
    (edition / "records").mkdir(exist_ok=True)
    (edition / "records" / "run.json").write_text(json.dumps(text))


@pytest.fixture
def edition(tmp_path):
    publish(tmp_path / "edition", "first")
    return tmp_path / "edition"


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "mine"


def texts(folder: Path) -> dict[str, str]:
    """What stands in the first cell of each notebook."""
    found = sorted(folder.rglob("*.ipynb"))
    return {path.relative_to(folder).as_posix(): nbformat.read(path, 4).cells[0].source for path in found}


def write_in(path: Path, text: str) -> None:
    notebook = nbformat.read(path, 4)
    notebook.cells[0].source = text
    nbformat.write(notebook, path)


def test_copies_come_without_answers(edition, mine):
    assert copies.bring(mine, edition) == []
    assert texts(mine) == {LESSON: "first", ASSIGNMENT: "first"}
    assert json.loads((mine / "records" / "run.json").read_text()) == "first"
    for name in texts(mine):
        cell = nbformat.read(mine / name, 4).cells[1]
        assert cell.source == "6 * 7" and not cell.outputs and cell.execution_count is None
    assert nbformat.read(edition / LESSON, 4).cells[1].outputs, "the edition keeps its own"


def test_an_unchanged_edition_touches_nothing(edition, mine):
    copies.bring(mine, edition)
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*.ipynb")}
    assert copies.bring(mine, edition) == []
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*.ipynb")} == before


def test_a_new_edition_takes_the_place_of_what_was_only_run(edition, mine):
    copies.bring(mine, edition)
    notebook = nbformat.read(mine / LESSON, 4)
    notebook.cells[1].outputs, notebook.metadata["reader"] = [new_output("stream", text="42\n")], "opened"
    nbformat.write(notebook, mine / LESSON)
    publish(edition, "second")
    assert copies.bring(mine, edition) == []
    assert texts(mine) == {LESSON: "second", ASSIGNMENT: "second"}
    assert json.loads((mine / "records" / "run.json").read_text()) == "second"


def law_what_is_written_stays(bring, edition, mine):
    publish(edition, "first")
    bring(mine, edition)
    write_in(mine / LESSON, "mine")
    publish(edition, "second")
    lines = bring(mine, edition)
    assert len(lines) == 1 and "is yours and stays" in lines[0] and lines[0].endswith("01_a-edition-2.ipynb")
    assert texts(mine) == {LESSON: "mine", "01_a-edition-2.ipynb": "second", ASSIGNMENT: "second"}
    assert bring(mine, edition) == [], "said once"
    publish(edition, "third")
    assert len(bring(mine, edition)) == 1, "the second edition was not written in: the third takes its place"
    assert texts(mine) == {LESSON: "mine", "01_a-edition-2.ipynb": "third", ASSIGNMENT: "third"}
    write_in(mine / "01_a-edition-2.ipynb", "mine too")
    publish(edition, "fourth")
    bring(mine, edition)
    found = texts(mine)
    assert (found[LESSON], found["01_a-edition-2.ipynb"]) == ("mine", "mine too")
    assert found["01_a-edition-3.ipynb"] == "fourth"


def test_what_is_written_stays(tmp_path):
    folders = iter(tmp_path / f"{number}" for number in range(3))

    def law(bring):
        folder = next(folders)
        law_what_is_written_stays(bring, folder / "edition", folder / "mine")

    overwriting = patched(copies.bring, mock.patch.object(copies, "_written_in", lambda path, came_with: False))
    doubling = patched(copies.bring, mock.patch.object(copies, "_written_in", lambda path, came_with: True))
    tells_apart(law, copies.bring, overwriting, doubling)


def test_a_file_of_the_readers_under_that_name_stays(edition, mine):
    mine.mkdir()
    (mine / LESSON).write_text("no notebook")
    assert len(copies.bring(mine, edition)) == 1
    assert (mine / LESSON).read_text() == "no notebook" and nbformat.read(mine / "01_a-edition-2.ipynb", 4).cells


def test_a_page_is_kept_like_a_notebook(edition, mine):
    copies.bring(mine, edition)
    assert (mine / "terms.md").read_text() == "first"
    publish(edition, "second")
    assert copies.bring(mine, edition) == [] and (mine / "terms.md").read_text() == "second"
    (mine / "terms.md").write_text("mine")
    publish(edition, "third")
    assert [line.endswith("terms-edition-2.md") for line in copies.bring(mine, edition)] == [True]
    assert ((mine / "terms.md").read_text(), (mine / "terms-edition-2.md").read_text()) == ("mine", "third")


def law_no_link_of_the_copies_is_dead(bring, checkout):
    mine = checkout / "my_course"
    bring(mine)
    pages = {path: path.read_text(encoding="utf-8") for path in mine.rglob("*.md")}
    for path in mine.rglob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        pages[path] = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = 0
    for path, text in pages.items():
        for target in re.findall(r"\]\(([^)#\s]+)", re.sub(ASIDE, "", text, flags=re.S)):
            if not target.startswith(("http://", "https://", "attachment:")):
                assert (path.parent / target).exists(), f"{path.relative_to(mine)}: {target} is not there"
                found += 1
    assert found > 500


def test_no_link_of_the_copies_is_dead(root, tmp_path):
    checkouts = iter(tmp_path / f"{number}" for number in range(4))

    def law(bring):
        checkout = next(checkouts)
        checkout.mkdir()
        for name in ("course_lib", "docs"):
            (checkout / name).symlink_to(root / name)
        law_no_link_of_the_copies_is_dead(bring, checkout)

    without_maps = patched(copies.bring, mock.patch.object(copies, "_bring_what_is_shown", lambda *folders: None))
    without_pages = patched(copies.bring, mock.patch.object(copies, "WRITTEN_IN", copies.WRITTEN_IN[:2]))
    tells_apart(law, copies.bring, without_maps, without_pages)


def test_a_deleted_copy_comes_back(edition, mine):
    copies.bring(mine, edition)
    (mine / LESSON).unlink()
    assert copies.bring(mine, edition) == [] and texts(mine)[LESSON] == "first"


def test_the_course_itself_is_copied(mine, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["copies", str(mine)])
    assert copies.main() == 0 and capsys.readouterr().out == ""
    lessons = {path.name for path in copies.EDITION.glob("[0-9][0-9]_*.ipynb")}
    assert lessons <= set(texts(mine)) and len(texts(mine)) > len(lessons)
    (mine / copies.DELIVERED).write_text("{")
    assert copies.main() == 1 and capsys.readouterr().err.startswith("error: ")
