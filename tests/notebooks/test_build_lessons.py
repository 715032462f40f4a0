"""The notebook builder: same source, same bytes; an edit changes one id; a failure changes nothing."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from notebooks.source import build_lessons as build

LESSON = '''# %% [markdown]
# # A lesson

# %%
from pathlib import Path
from time import sleep

with Path("runs.txt").open("a") as file:
    file.write("x")

# %% tags=["nbval-check-output"]
for step in range(3):
    print(f"{step} of 3", end="\\r")
print("done")

# %% id="named" alt="A line"
import ipywidgets
ipywidgets.IntSlider()
'''


def write(folder: Path, text: str) -> Path:
    path = folder / "01_lesson.py"
    path.write_text(text, encoding="utf-8")
    return path


def ids(folder: Path, text: str) -> list[str]:
    return [cell.id for cell in build.generate(write(folder, text)).cells]


def test_building_is_stable_lazy_and_safe(tmp_path: Path) -> None:
    source, target = write(tmp_path, LESSON), tmp_path / "01_lesson.ipynb"

    def runs() -> int:
        return len((tmp_path / "runs.txt").read_text())

    assert build.build(source, target) and runs() == 1
    first = target.read_bytes()

    assert not build.build(source, target), "an unchanged lesson is not executed"
    assert runs() == 1 and target.read_bytes() == first

    assert build.build(source, target, force=True) and runs() == 2
    assert target.read_bytes() == first, "executing an unchanged deterministic lesson changes no byte"

    write(tmp_path, LESSON + "\n# %%\nprint('before')\n\n# %%\n1 / 0\n")
    with pytest.raises(build.BuildError, match=r"(?s)^01_lesson\.py, cell 5.*1 / 0.*ZeroDivisionError: div"):
        build.build(source, target)
    assert target.read_bytes() == first, "a failing lesson leaves the old notebook"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["01_lesson.ipynb", "01_lesson.py", "runs.txt"]

    write(tmp_path, LESSON.replace("done", "ready"))
    assert build.build(source, target) and runs() == 4
    notebook = nbformat.read(target, as_version=4)
    assert notebook.cells[2].outputs == [{"output_type": "stream", "name": "stdout", "text": "ready\n"}]
    assert notebook.cells[3].outputs == [], "a view of a widget is not stored"
    assert [cell.get("execution_count") for cell in notebook.cells] == [None, 1, 2, 3]
    assert notebook.metadata == build.METADATA


def keeps_the_picture_of_a_widget_and_not_its_view(keep) -> None:
    def shown(data: dict[str, str]) -> nbformat.NotebookNode:
        return nbformat.v4.new_output("display_data", data=data)

    text, picture, view = {"text/plain": "1"}, {"image/png": "x"}, {build.WIDGET_VIEW: "id"}
    assert keep(shown(text | picture)) == shown(text | picture)
    assert keep(shown(view | text | picture)) == shown(text | picture)
    assert keep(shown(view | text)) is None
    stream = nbformat.v4.new_output("stream", text="1")
    assert keep(stream) == stream


@pytest.mark.parametrize(
    "wrong", [lambda output: output, lambda output: None if build.WIDGET_VIEW in output.get("data", {}) else output]
)
def test_of_a_widget_the_picture_is_stored_and_not_the_view(wrong) -> None:
    keeps_the_picture_of_a_widget_and_not_its_view(build._without_view)
    with pytest.raises(AssertionError):
        keeps_the_picture_of_a_widget_and_not_its_view(wrong)


def test_new_prose_keeps_the_outputs_and_new_code_does_not(tmp_path: Path) -> None:
    source, target = write(tmp_path, LESSON), tmp_path / "01_lesson.ipynb"

    def runs_after(text: str) -> int:
        write(tmp_path, text)
        assert build.build(source, target)
        return len((tmp_path / "runs.txt").read_text())

    assert runs_after(LESSON) == 1
    first = nbformat.read(target, as_version=4)
    assert runs_after("# %% [markdown]\n# A cell in front\n\n" + LESSON.replace("# # A lesson", "# # Prose")) == 1
    second = nbformat.read(target, as_version=4)
    assert [cell.source for cell in second.cells[:2]] == ["A cell in front", "# Prose"]
    assert second.cells[2:] == first.cells[1:]
    assert runs_after(LESSON.replace("done", "ready")) == 2
    assert runs_after(LESSON.replace('print("done")', 'print("done")  # really')) == 3
    swapped = "# %%\nfirst = 1\n\n# %%\nfirst = 2\n"
    assert runs_after(f"{LESSON}\n{swapped}") == 4
    assert runs_after(LESSON + "\n# %%\nfirst = 2\n\n# %%\nfirst = 1\n") == 5, "their order counts"


def test_a_damaged_or_unexecuted_notebook_is_executed(tmp_path: Path) -> None:
    source, target = write(tmp_path, "# %% [markdown]\n# Prose\n\n# %%\n1\n"), tmp_path / "01_lesson.ipynb"
    target.write_text("{ not json")
    assert build.build(source, target)
    executed = target.read_bytes()
    assert nbformat.read(target, as_version=4).cells[1].execution_count == 1
    generated = build.generate(source)
    nbformat.write(generated, target)
    assert build.differences(generated, nbformat.read(target, as_version=4)) == ["cell 1: never executed"]
    write(tmp_path, "# %% [markdown]\n# Other prose\n\n# %%\n1\n")
    assert build.build(source, target) and target.read_bytes() != executed
    assert nbformat.read(target, as_version=4).cells[1].execution_count == 1


def check_ids_survive_edits(ids_of: Callable[[str], list[str]]) -> None:
    before = ids_of(LESSON)
    assert len(set(before)) == 4 and before[3] == "named"
    edited = ids_of(LESSON.replace("done", "ready"))
    assert [a == b for a, b in zip(before, edited, strict=True)] == [True, True, False, True]
    assert ids_of("# %% [markdown]\n# new\n\n" + LESSON)[1:] == before
    twins = ids_of("# %%\nx\n\n# %%\nx\n")
    assert len(set(twins)) == 2 and ids_of("# %%\nx\n") == twins[:1]


def test_an_edit_changes_the_id_of_its_cell_alone(tmp_path: Path) -> None:
    check_ids_survive_edits(lambda text: ids(tmp_path, text))

    def numbered(text: str) -> list[str]:
        return [f"cell-{number}" for number, _ in enumerate(ids(tmp_path, text))]

    with pytest.raises(AssertionError):
        check_ids_survive_edits(numbered)


def test_the_text_decides_what_a_cell_carries(tmp_path: Path) -> None:
    header = "# ---\n# jupyter:\n#   jupytext:\n#     formats: ipynb,py:percent\n# ---\n\n"
    notebook = build.generate(write(tmp_path, header + LESSON))
    assert notebook.metadata == build.METADATA, "no pairing"
    assert [dict(cell.metadata) for cell in notebook.cells] == [
        {},
        {},
        {"tags": ["nbval-check-output"]},
        {"alt": "A line"},
    ]
    shorter = build.generate(write(tmp_path, LESSON), [drop_code])
    assert [cell.cell_type for cell in shorter.cells] == ["markdown"], "a rendering is a list of transforms"


def drop_code(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    return notebook


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('# %% tags=["nbval-chek"]\n1\n', r"cell 0: expected tags among .*, got \['nbval-chek'\]"),
        ("# %%\n1\n\n# %%\n\n# %%\n2\n", "cell 1: expected text, got an empty cell"),
        ('# %% id="a"\n1\n\n# %% id="a"\n2\n', r"expected each cell id once, got \['a'\]"),
        ('# %% id="a b"\n1\n', "'a b' does not match"),
    ],
)
def test_a_bad_source_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    source, target = write(tmp_path, text), tmp_path / "01_lesson.ipynb"
    with pytest.raises(build.BuildError, match=r"^01_lesson\.py, " + message):
        build.build(source, target)
    assert not target.exists()


def test_a_lesson_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="expected a lesson among .*, got '77'"):
        build.main(["77"])


def test_what_is_tagged_so_is_folded_away(tmp_path: Path) -> None:
    source = tmp_path / "01_folded.py"
    source.write_text('# %% tags=["hide-input"]\n1\n\n# %% tags=["hide-output", "hide-input"]\n2\n\n# %%\n3\n')
    folded = [cell.metadata.get("jupyter") for cell in build.generate(source).cells]
    assert folded == [{"source_hidden": True}, {"source_hidden": True, "outputs_hidden": True}, None]
    assert [cell.metadata.get("jupyter") for cell in build.generate(source, ()).cells] == [None] * 3
