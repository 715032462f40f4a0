"""Every lesson: fresh, executed, and with outputs that nbval can and does compare.

`make test` executes the lessons with nbval; the laws close what nbval lets through.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from notebooks.source import build_lessons as build
from notebooks.source.reading import tell_time
from tests.helpers.notebook_laws import (
    CHECKED,
    LAWS,
    READABLE,
    asserts_on_the_data_of_each_figure,
    claims_only_what_its_reader_cannot_change,
    code_cells,
    explains_its_terms,
    fits_a_narrow_page,
    has_checked_cells,
    has_output_wherever_it_is_checked,
    has_picture,
    is_executed_from_top_to_bottom,
    is_fresh,
    links_to_notebooks_that_exist,
    names_no_path_of_a_machine,
    names_what_is_folded,
    never_switches_nbval_off,
    pair_up,
    reads_within_an_hour,
    says_what_it_is_for,
    shows_more_than_it_asserts,
    shows_what_was_asked,
    stores_no_error_and_no_warning,
    stores_no_widget_state,
    tells_few_mistakes,
)

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LESSONS = [path.stem for path in build.lessons()]
FIRST_EDITION = ()  # not yet rewritten
SECOND_EDITION = [lesson for lesson in LESSONS if lesson[:2] not in FIRST_EDITION]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson(lesson: str, law: Callable[[NotebookNode], None]) -> None:
    law(nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4))


@pytest.mark.parametrize("law", READABLE)
@pytest.mark.parametrize("lesson", SECOND_EDITION)
def test_lesson_is_readable(lesson: str, law: Callable[[NotebookNode], None]) -> None:
    law(nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4))


@pytest.mark.parametrize("lesson", LESSONS)
def test_notebook_is_what_its_source_generates(lesson: str) -> None:
    generated = build.generate(build.SOURCES / f"{lesson}.py")
    is_fresh(generated, nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4))


def test_every_source_has_its_notebook_and_the_other_way_round() -> None:
    pair_up(list(build.SOURCES.glob("*.py")), list(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")))
    lesson, notebook = Path("01_a.py"), Path("01_a.ipynb")
    pair_up([lesson, Path("build_lessons.py")], [notebook])
    for sources, notebooks in (([lesson], []), ([], [notebook]), ([lesson, Path("2_b.py")], [notebook])):
        with pytest.raises(AssertionError):
            pair_up(sources, notebooks)


TOY = '''# %% [markdown]
# # A toy lesson
#
# **Question.** Is this a lesson?
# **Afterwards you can**
#
# 1. tell.
#
# **You need** nothing. **Time**: 2 minutes to read.

# %% tags=["nbval-check-output"]
print("checked")

# %%
import sys
import time

from matplotlib import pyplot

%time time.sleep(0.01)
print("  50%|##", file=sys.stderr)

# %%
figure, axes = pyplot.subplots()
axes.plot([1, 2])
pyplot.show()

# %% tags=["hide-input"]
assert len(axes.lines) == 1

# %% [markdown]
# A **line** has **points**, and **ends**.

# %% [markdown]
# ## Glossary
#
# - **line**: what is drawn.
# - **points**: where it is.
# - **ends**: where it is not.

# %% [markdown]
# ## Summary
#
# It is. **Next**: lesson [00](00_welcome.ipynb).
'''


@pytest.fixture(scope="module")
def toy_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("toy") / "01_toy.py"
    source.write_text(TOY.replace("%time", "# %time"), encoding="utf-8")
    build.build(source, source.with_suffix(".ipynb"))
    return source


@pytest.fixture
def toy(toy_source: Path) -> NotebookNode:
    return nbformat.read(toy_source.with_suffix(".ipynb"), as_version=4)


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return nbformat.v4.new_output("stream", name=name, text=text)


def add(number: int, output: NotebookNode) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[number].outputs.append(output)


def change(number: int, **fields: object) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[number].update(fields)


def tag(number: int, *tags: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells[number].metadata.update(tags=list(tags))


def _append(notebook: NotebookNode, number: int, text: str) -> None:
    notebook.cells[number].source += text


def insert(*cells: tuple[str, str]) -> Callable[[NotebookNode], None]:
    """Code cells and what they print, behind the last one."""

    def put(notebook: NotebookNode) -> None:
        new = [nbformat.v4.new_code_cell(source, outputs=[stream(text)]) for source, text in cells]
        notebook.cells[5:5] = new

    return put


ERROR = nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])
ASKED, OPENED, SEEN, CHECK = "asked = Predict('?')", "explorer = DepthExplorer(3)", "explorer.view", "assert shown"
VIEW = nbformat.v4.new_output("display_data", {build.WIDGET_VIEW: {"model_id": "0"}})
REPR = nbformat.v4.new_output("display_data", {"text/plain": "Path('/root/x')"})

# Cells: 0 text, 1 checked, 2 progress, 3 figure, 4 its assertion, 5 terms, 6 glossary, 7 summary.
WIDGETS = {
    "00_welcome": ("Playground", "AttentionExplorer"),
    "01_text_to_tensors": ("MergeStepper",),
    "02_position": ("PositionExplorer",),
    "03_attention": ("AttentionCalculator",),
    "04_multi_head": ("AttentionExplorer",),
    "05_masks": ("MaskPainter",),
    "06_encoder": ("DepthExplorer",),
    "07_decoder": ("DecoderStepper", "AttentionExplorer"),
    "08_transformer": ("ArchitectureMap",),
    "09_training": ("ScheduleExplorer", "LiveTraining"),
    "10_translation": ("LiveTraining",),
    "11_decoding": ("SamplingSliders", "BeamTreeExplorer"),
    "12_reading_attention": ("AttentionExplorer",),
    "13_positions_past_the_paper": ("OffsetExplorer",),
    "14_cost_and_memory": ("CostCalculator",),
    "15_alternatives": ("RaceViewer",),
    "16_one_block_many_models": ("ModelPlayground",),
    "17_scaling_out": ("BudgetPlanner",),
    "18_errata_lab": ("ErrataLab",),
}


def has_its_widgets(notebook: NotebookNode, names: Iterable[str]) -> None:
    """Each is made in a cell that keeps a picture of it."""
    for name in names:
        cells = [cell for cell in code_cells(notebook) if re.search(rf"\b{name}\(", cell.source)]
        assert any(map(has_picture, chain.from_iterable(cell.outputs for cell in cells))), f"no picture of {name}"


def test_every_lesson_has_widgets() -> None:
    assert list(WIDGETS) == LESSONS


@pytest.mark.parametrize("lesson", WIDGETS)
def test_lesson_has_its_widgets(lesson: str) -> None:
    has_its_widgets(nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4), WIDGETS[lesson])


def test_a_lesson_without_its_widgets_is_found(toy: NotebookNode) -> None:
    has_its_widgets(toy, ["pyplot.subplots"])  # its picture stands for a widget's
    for name in ("Playground", "print"):
        with pytest.raises(AssertionError, match=f"no picture of {name}"):
            has_its_widgets(toy, [name])


def folded_and_used(notebook: NotebookNode) -> None:
    insert(("def helper():\n    pass", ""), ("helper()", ""))(notebook)
    tag([cell.source for cell in notebook.cells].index("def helper():\n    pass"), "hide-input")(notebook)


MUTANTS: dict[str, tuple[Callable[[NotebookNode], None], Callable[[NotebookNode], object]]] = {
    "executed out of order": (is_executed_from_top_to_bottom, change(2, execution_count=7)),
    "not executed": (is_executed_from_top_to_bottom, change(4, execution_count=None)),
    "nothing checked": (has_checked_cells, tag(1)),
    "checked without output": (has_output_wherever_it_is_checked, change(1, outputs=[])),
    "checked without count": (has_output_wherever_it_is_checked, change(1, execution_count=None)),
    "only a picture to check": (has_output_wherever_it_is_checked, tag(3, CHECKED)),
    "text checked": (has_output_wherever_it_is_checked, tag(0, CHECKED)),
    "no assertion": (asserts_on_the_data_of_each_figure, change(4, source="axes")),
    "nothing after the figure": (asserts_on_the_data_of_each_figure, lambda notebook: notebook.cells.pop(4)),
    "assertion on a constant": (asserts_on_the_data_of_each_figure, change(4, source="assert 1 == 1")),
    "comment for nbval": (never_switches_nbval_off, change(1, source="# NBVAL_SKIP\n1 / 0")),
    "tag for nbval": (never_switches_nbval_off, tag(1, "nbval-skip")),
    "tag that allows an error": (never_switches_nbval_off, tag(1, "raises-exception")),
    "stored warning": (stores_no_error_and_no_warning, add(2, stream("UserWarning: x", "stderr"))),
    "stored error": (stores_no_error_and_no_warning, add(2, ERROR)),
    "state of widgets": (stores_no_widget_state, lambda notebook: notebook.metadata.update(widgets={})),
    "view of a widget": (stores_no_widget_state, add(2, VIEW)),
    "path of a home": (names_no_path_of_a_machine, add(2, stream("/home/ada/x"))),
    "path in a repr": (names_no_path_of_a_machine, add(2, REPR)),
    "path of the checkout": (names_no_path_of_a_machine, add(2, stream(str(NOTEBOOKS)))),
    "a wide cell": (fits_a_narrow_page, change(1, source=f"print({'1' * 90})")),
    "a long cell": (fits_a_narrow_page, change(1, source="print()\n" * 16)),
    "no question": (says_what_it_is_for, change(0, source="# A toy lesson")),
    "too many aims": (says_what_it_is_for, lambda notebook: _append(notebook, 0, "\n2. a\n3. b\n4. c")),
    "no summary": (says_what_it_is_for, lambda notebook: notebook.cells.pop()),
    "a dead link": (links_to_notebooks_that_exist, change(5, source="[99](99_none.ipynb)")),
    "a dead link to an assignment": (
        links_to_notebooks_that_exist,
        change(5, source="[99](assignments/release/99_none/99_none.ipynb)"),
    ),
    "more than an hour": (reads_within_an_hour, change(5, source="word " * 9000)),
    "another time": (reads_within_an_hour, lambda notebook: _append(notebook, 5, "word " * 1500)),
    "no time": (reads_within_an_hour, change(0, source="# A toy lesson")),
    "proof in sight": (shows_more_than_it_asserts, tag(4)),
    "proof by a function": (shows_more_than_it_asserts, change(1, source="torch.testing.assert_close(1, 1)")),
    "five mistakes": (tells_few_mistakes, lambda notebook: _append(notebook, 5, "**A common mistake**" * 5)),
    "no glossary": (explains_its_terms, change(6, source="Text.")),
    "a term that is never explained": (explains_its_terms, change(5, source="A **line** has **points**.")),
    "two terms": (explains_its_terms, change(6, source="## Glossary\n\n- **line**: a\n- **points**: b")),
    "a silent answer": (shows_what_was_asked, insert((ASKED, ""), ("asked.reveal(1)", "Result: so, because of 1\n"))),
    "no answer": (shows_what_was_asked, insert((ASKED, ""), ("print(1)", "1\n"))),
    "a reader's widget": (
        claims_only_what_its_reader_cannot_change,
        insert((OPENED, ""), (f"shown = {SEEN}\n{CHECK}", "")),
    ),
    "torch on a reader's widget": (
        claims_only_what_its_reader_cannot_change,
        insert((OPENED, ""), (f"torch.testing.assert_close({SEEN}, 1)", "")),
    ),
    "a folded function": (names_what_is_folded, folded_and_used),
}


def test_every_law_has_a_mutant() -> None:
    assert {law for law, _ in MUTANTS.values()} == {*LAWS, *READABLE}


def test_the_build_tells_how_long_a_lesson_takes(toy: NotebookNode) -> None:
    first = toy.cells[0].source
    toy.cells[0].source = first.replace("2 minutes", "{minutes} minutes")
    assert "**Time**: 5 minutes to read" in tell_time(deepcopy(toy)).cells[0].source
    toy.cells[5].source += "word " * 3000  # 20 minutes more
    told = tell_time(toy)
    assert "**Time**: 20 minutes to read" in told.cells[0].source
    reads_within_an_hour(told)


def test_an_answer_that_is_seen_and_a_widget_that_may_change_are_no_mistake(toy: NotebookNode) -> None:
    insert((ASKED, ""), ("asked.reveal(1)", "it is 1\nResult: 1\n"))(toy)
    surrounded = f"with written_for(3, {SEEN}):\n    shown = {SEEN}\n    {CHECK}"
    insert((OPENED, ""), (surrounded, ""), (f"print({SEEN})", ""))(toy)
    shows_what_was_asked(toy)
    claims_only_what_its_reader_cannot_change(toy)


def test_a_folded_function_that_the_text_names_is_no_riddle(toy: NotebookNode) -> None:
    folded_and_used(toy)
    toy.cells[0].source += "\n`helper` does nothing."
    names_what_is_folded(toy)


@pytest.mark.parametrize("law", LAWS + READABLE)
def test_a_good_lesson_keeps_each_law(toy: NotebookNode, law: Callable[[NotebookNode], None]) -> None:
    law(toy)


@pytest.mark.parametrize(("law", "mutate"), MUTANTS.values(), ids=MUTANTS)
def test_a_broken_lesson_is_caught(toy: NotebookNode, law: Callable, mutate: Callable) -> None:
    mutate(toy)
    with pytest.raises(AssertionError):
        law(toy)


@pytest.mark.parametrize(
    "mutate",
    [
        lambda notebook: notebook.cells.pop(),
        lambda notebook: notebook.cells.insert(0, deepcopy(notebook.cells[0])),
        lambda notebook: notebook.metadata.update(jupytext={"formats": "ipynb,py:percent"}),
        change(0, source="# Another title"),
        change(1, id="other"),
        change(1, execution_count=None),
        tag(1),
    ],
)
def test_a_stale_notebook_is_caught(toy_source: Path, toy: NotebookNode, mutate: Callable) -> None:
    is_fresh(build.generate(toy_source), toy)
    mutate(toy)
    with pytest.raises(AssertionError, match="make notebooks"):
        is_fresh(build.generate(toy_source), toy)


def test_nbval_as_make_test_calls_it_can_fail(
    tmp_path: Path, root: Path, toy: NotebookNode, make_env: Callable[..., dict[str, str]]
) -> None:
    (flags,) = re.findall(r"^NBVAL := (.*)$", (root / "Makefile").read_text(), flags=re.MULTILINE)
    assert "$(LESSONS) $(SOLUTIONS) tests $(NBVAL)" in (root / "Makefile").read_text()
    nbformat.write(toy, tmp_path / "good.ipynb")
    toy.cells[1].outputs[0].text = "another\n"
    nbformat.write(toy, tmp_path / "differs.ipynb")
    toy.cells[4].source = "1 / 0"
    nbformat.write(toy, tmp_path / "raises.ipynb")
    settings = ["-c", str(root / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(tmp_path), *shlex.split(flags), *settings],
        env=make_env(root),
        capture_output=True,
        text=True,
        timeout=120,
    )
    failed = re.findall(r"^FAILED .*?(\w+)\.ipynb::Cell (\d)", done.stdout, flags=re.MULTILINE)
    assert failed == [("differs", "0"), ("raises", "0"), ("raises", "3")], done.stdout + done.stderr
    assert "3 failed, 9 passed" in done.stdout.splitlines()[-1]
