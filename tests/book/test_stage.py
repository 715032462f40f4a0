"""What is laid out for Sphinx: notebooks as pages show them, docstrings as it reads them."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from notebooks.source.book import present, slug, stage
from notebooks.source.book_pages import with_sizes
from notebooks.source.book_reference import as_rst
from tests.helpers.sphinx import built


def cell(source: str, data: dict[str, str] | None = None, alt: str = "") -> nbformat.NotebookNode:
    """A code cell that is folded away, with one output or none."""
    about = {"image/png": {"alt": alt}} if alt else {}
    outputs = [nbformat.v4.new_output("execute_result", data, metadata=about)] if data else []
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": ["hide-input"]})


def test_a_folded_cell_is_named_after_what_it_holds() -> None:
    cells = [cell("draw()", {"text/plain": "1"}), cell("x = 1\nassert x"), cell("torch.testing.assert_close(a, b)")]
    shown = present(nbformat.v4.new_notebook(cells=[*cells, cell("x = 'assert nothing'")]))
    titles = [each.metadata["mystnb"]["code_prompt_show"] for each in shown.cells]
    assert titles == ["The code of this output", "The proof", "The proof", "More code"]


def test_a_widget_has_a_note_and_a_figure_has_words() -> None:
    picture = {"image/png": "aGk="}
    cells = [
        cell("figure", picture | {"text/plain": "<CourseFigure size 7x4 with 1 Axes>"}, "It falls"),
        cell("widget", picture | {"text/plain": "24 layers: 6.3 times"}, "24 layers"),
        cell("asked", {"text/html": "<p>What?</p>", "text/plain": "Predict: What?"}),
        cell("print(1)", {"text/plain": "Predict: nothing, this is plain text"}),
    ]
    figure, widget, asked, plain = present(nbformat.v4.new_notebook(cells=cells)).cells
    assert figure.metadata["mystnb"]["image"] == {"alt": "It falls"}
    assert len(figure.outputs) == len(plain.outputs) == 1
    assert f'data-cell="{widget.id}">This is the first state of a widget.' in widget.outputs[1].data["text/html"]
    assert "Settle on an answer" in asked.outputs[1].data["text/html"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["|a| < 1, *args"], [r"\|a\| < 1, \*args"]),
        (["of `CoursePair`s, `a * b`"], [r"of `CoursePair`\ s, `a * b`\ "]),
        (["It is", "", "    a * b", "", "    c", "on *"], ["It is", "", "::", "", "    a * b", "", "    c", r"on \*"]),
        (["Args:", "    x: *any*."], ["Args:", r"    x: \*any\*."]),
    ],
)
def test_a_docstring_means_what_it_says(written: list[str], read: list[str]) -> None:
    as_rst(None, "function", "f", None, None, written)
    assert written == read


def test_an_anchor_is_that_of_jupyterlab() -> None:
    assert slug("Why √d_k, and not d?") == "Why-√d_k,-and-not-d?"


def test_what_has_not_changed_keeps_its_time_and_the_rest_goes(tmp_path: Path) -> None:
    pytest.importorskip("sphinx-mathjax-offline", reason="the extra [book] is not installed: make test-book")
    stage(tmp_path)
    (tmp_path / "old.md").write_text("# Of an earlier edition\n")
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*") if path.name != "old.md"}
    assert len(times) > 100
    stage(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == times


def test_the_reference_is_read_again_when_what_makes_it_has_changed(
    installed: None, root: Path, tmp_path: Path
) -> None:
    """Sphinx keeps pages whose text is as it was; here it is the reader of docstrings that changes."""
    for folder in ("notebooks/source", "docs/book"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("[0-9]*", "*.md", "alive"))
    script = tmp_path / "notebooks" / "source" / "book_reference.py"
    page = tmp_path / "pages" / "api" / "masks.html"

    def build() -> str:
        made = "from notebooks.source.book_reference import reference; print(reference()['masks'])"
        text = subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True, capture_output=True, text=True)
        source = tmp_path / "docs" / "book" / "api" / "masks.rst"
        source.parent.mkdir(exist_ok=True)
        if not source.exists() or source.read_text() != text.stdout:
            source.write_text(text.stdout)
        source.parent.with_name("index.rst").write_text("A book\n======\n\n.. toctree::\n\n   api/masks\n")
        done = built(tmp_path / "docs" / "book", tmp_path / "pages", tmp_path)
        assert done.returncode == 0, done.stderr
        return page.read_text(encoding="utf-8")

    first, time = build(), page.stat().st_mtime_ns
    assert build() == first and page.stat().st_mtime_ns == time
    code = script.read_text(encoding="utf-8")
    changed = code.replace("    lines[:] = text\n", '    lines[:] = [*text, "", "Read anew."]\n')
    assert changed != code and "Read anew." not in first
    script.write_text(changed, encoding="utf-8")
    assert "Read anew." in build()


def test_a_picture_gets_its_size(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "docs" / "pictures" / "lesson.png", tmp_path / "a lesson.png")
    shutil.copy(root / "notebooks" / "maps" / "00.svg", tmp_path)
    (tmp_path / "broken.png").write_bytes(b"nothing")
    png, svg = '<img alt="a" src="a%20lesson.png">', '<img class="b" src="00.svg">'
    assert with_sizes(png, tmp_path) == '<img width="1000" height="760" alt="a" src="a%20lesson.png">'
    assert with_sizes(svg, tmp_path) == '<img width="980" height="268" class="b" src="00.svg">'
    for kept in (
        with_sizes(png, tmp_path),
        '<img src="none.png">',
        '<img src="broken.png">',
        '<img src="https://x/y">',
    ):
        assert with_sizes(kept, tmp_path) == kept
