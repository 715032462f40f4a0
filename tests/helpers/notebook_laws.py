"""Laws that every lesson's notebook keeps: each is a function that raises AssertionError on a broken one."""

import ast
import re
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from notebooks.source import build_lessons as build
from notebooks.source.reading import code_lines, minutes_to_read, visible_cells

CHECKOUT = str(Path(__file__).resolve().parents[2])
CHECKED = "nbval-check-output"
NBVAL_SWITCH = re.compile(r"^\s*#+\s*(NBVAL_|PYTEST_VALIDATE_)", re.MULTILINE)
PROGRESS = re.compile(r"\d+%\||\d+it \[")  # what tqdm writes to stderr; anything else there is a warning
# What lies beside the lessons in source/.
TOOLS = {
    *("architecture", "book", "book_alive", "book_graphs", "book_model", "book_pages"),
    *("book_recorded", "book_recordings", "book_reference", "build_assignments"),
    *("build_inventory", "build_lessons", "citations", "course_map", "elsewhere", "reading", "readme", "skeleton"),
    "terms",
}
MACHINE_PATH = re.compile(r"/(?:home|Users)/\w|/root/|/tmp/|/private/|/site-packages/|[A-Z]:\\")


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_checked(cell: NotebookNode) -> bool:
    return CHECKED in cell.metadata.get("tags", [])


def has_picture(output: NotebookNode) -> bool:
    return any(kind.startswith("image/") for kind in output.get("data", {}))


def asserts_something(cell: NotebookNode) -> bool:
    """Whether the cell has an assert on more than a constant, or calls an assert_... function."""
    for node in ast.walk(ast.parse(TransformerManager().transform_cell(cell.source))):
        if isinstance(node, ast.Assert) and any(isinstance(inner, ast.Name) for inner in ast.walk(node.test)):
            return True
        if isinstance(node, ast.Call) and re.search(r"\bassert_\w+$", ast.unparse(node.func)):
            return True
    return False


def is_executed_from_top_to_bottom(notebook: NotebookNode) -> None:
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def has_checked_cells(notebook: NotebookNode) -> None:
    assert any(is_checked(cell) for cell in notebook.cells), f"expected at least one cell tagged {CHECKED}"


def has_output_wherever_it_is_checked(notebook: NotebookNode) -> None:
    """nbval passes a checked cell without stored output or execution count, and compares no pictures."""
    for cell in filter(is_checked, notebook.cells):
        assert cell.cell_type == "code", f"{cell.id}: expected {CHECKED} on a code cell"
        assert cell.execution_count, f"{cell.id}: checked, but never executed"
        assert any(not has_picture(output) for output in cell.outputs), f"{cell.id}: nothing to compare"


def asserts_on_the_data_of_each_figure(notebook: NotebookNode) -> None:
    """nbval compares no pictures: the cell that shows one, or the next code cell, asserts on its data."""
    cells = code_cells(notebook)
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if any(has_picture(output) for output in cell.outputs):
            found = asserts_something(cell) or (following is not None and asserts_something(following))
            assert found, f"{cell.id}: shows a figure, but neither it nor the next cell asserts on its data"


def never_switches_nbval_off(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        assert not NBVAL_SWITCH.search(cell.source), f"{cell.id}: expected a tag, got a comment for nbval"
        unknown = set(cell.metadata.get("tags", [])) - build.TAGS
        assert not unknown, f"{cell.id}: expected tags among {sorted(build.TAGS)}, got {sorted(unknown)}"


def stores_no_error_and_no_warning(notebook: NotebookNode) -> None:
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.output_type != "error", f"{cell.id}: {output.ename}"
            if output.get("name") == "stderr":
                strange = [line for line in output.text.splitlines() if line and not PROGRESS.search(line)]
                assert not strange, f"{cell.id}: {strange}"


def stores_no_widget_state(notebook: NotebookNode) -> None:
    assert "widgets" not in notebook.metadata
    for cell in code_cells(notebook):
        assert not any(build.WIDGET_VIEW in output.get("data", {}) for output in cell.outputs), cell.id


def names_no_path_of_a_machine(notebook: NotebookNode) -> None:
    for cell in code_cells(notebook):
        for output in cell.outputs:
            text = output.get("text", "") + "".join(
                str(data) for kind, data in output.get("data", {}).items() if not kind.startswith("image/")
            )
            assert not MACHINE_PATH.search(text) and CHECKOUT not in text, f"{cell.id}: {text[:200]}"


def fits_a_narrow_page(notebook: NotebookNode) -> None:
    """One idea a cell: at most 15 lines of code, none so long that it scrolls in a narrow window."""
    for cell in code_cells(notebook):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        long = [line for line in lines if len(line) > 88]
        assert not long, f"{cell.id}: expected at most 88 columns, got {long[0]}"
        assert len(lines) <= 15, f"{cell.id}: expected at most 15 lines, got {len(lines)}: {lines[0]}"


def says_what_it_is_for(notebook: NotebookNode) -> None:
    first, last = notebook.cells[0].source, notebook.cells[-1].source
    for part in ("# ", "**Question.**", "**Afterwards you can**", "**You need**", "**Time**"):
        assert part in first, f"expected {part} in the first cell"
    assert len(re.findall(r"^\d\. ", first, re.MULTILINE)) <= 3, "expected at most three things to learn"
    assert last.startswith("## Summary") and "**Next**" in last, "expected a summary and the next lesson at the end"


def links_to_notebooks_that_exist(notebook: NotebookNode) -> None:
    lessons, folder = {path.stem for path in build.lessons()}, build.lessons()[0].parents[1]
    for cell in notebook.cells:
        for target in re.findall(r"\]\(([\w/]+)\.ipynb", cell.source):
            exists = target in lessons or "/" in target and (folder / f"{target}.ipynb").is_file()
            assert exists, f"{cell.id}: links to {target}.ipynb, which does not exist"


LAWS = (
    is_executed_from_top_to_bottom,
    has_checked_cells,
    has_output_wherever_it_is_checked,
    asserts_on_the_data_of_each_figure,
    never_switches_nbval_off,
    stores_no_error_and_no_warning,
    stores_no_widget_state,
    names_no_path_of_a_machine,
    fits_a_narrow_page,
    says_what_it_is_for,
    links_to_notebooks_that_exist,
)


def reads_within_an_hour(notebook: NotebookNode) -> None:
    minutes = minutes_to_read(notebook)
    assert minutes <= 60, f"expected an hour at most, got {minutes:.0f} minutes"
    told = re.search(r"\*\*Time\*\*: (\d+) minutes to read", notebook.cells[0].source)
    assert told and abs(int(told[1]) - minutes) <= 5, f"expected **Time**: {5 * round(minutes / 5)} minutes to read"


def asserting_lines(cell: NotebookNode) -> int:
    tree = ast.parse(TransformerManager().transform_cell(cell.source))
    return sum(
        node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        or isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and re.search(r"\bassert_\w+$", ast.unparse(node.value.func))
    )


def shows_more_than_it_asserts(notebook: NotebookNode) -> None:
    """Of the lines that a reader sees at most one in twelve asserts."""
    cells = visible_cells(notebook)
    proof, lines = sum(map(asserting_lines, cells)), sum(len(code_lines(cell)) for cell in cells)
    assert 12 * proof <= lines, f"expected at most {lines // 12} asserting lines of {lines}, got {proof}"


def tells_few_mistakes(notebook: NotebookNode) -> None:
    told = sum(cell.source.count("**A common mistake**") for cell in notebook.cells)
    assert told <= 4, f"expected at most four mistakes, got {told}"


def explains_its_terms(notebook: NotebookNode) -> None:
    """Before the summary a glossary, of terms that were in bold where they were explained."""
    glossary = notebook.cells[-2].source
    assert glossary.startswith("## Glossary"), "expected the glossary before the summary"
    terms = re.findall(r"^- \*\*(.+?)\*\*: \S", glossary, re.MULTILINE)
    bold = {term.lower() for cell in notebook.cells[:-2] for term in re.findall(r"\*\*(.+?)\*\*", cell.source)}
    unexplained = [term for term in terms if term.lower() not in bold]
    assert len(terms) >= 3 and not unexplained, f"expected terms in bold in the text, got {terms}, not {unexplained}"


def shows_what_was_asked(notebook: NotebookNode) -> None:
    """What follows a prediction is seen: a number, a shape, a picture or printed words, not the right choice alone."""
    cells = code_cells(notebook)
    for number, cell in enumerate(cells):
        for name in re.findall(r"^(\w+) = Predict\(", cell.source, re.MULTILINE):
            told = next((n for n, later in enumerate(cells) if n > number and f"{name}.reveal(" in later.source), None)
            assert told, f"{cell.id}: the result of {name} is never told"
            seen = [output for later in cells[number + 1 : told + 2] for output in later.outputs]
            lines = [line.split(", because")[0] for one in seen for line in one.get("text", "").splitlines()]
            told_more = (not line.startswith("Result: ") or re.search(r"\d", line) for line in lines)
            shown = any(map(has_picture, seen)) or any(told_more)
            assert shown, f"{cell.id}: nothing but the right choice follows {name}"


# Widgets that a reader operates, so that what they hold is no longer what the text was written for.
OPERATED = re.compile(r"^(\w+) = \w*(?:Explorer|Stepper|Calculator|Painter|Sliders|Playground|Planner)\(", re.MULTILINE)


def bare_assertions(node: ast.AST) -> list[ast.AST]:
    """Those that no `with written_for(...)` surrounds."""
    if isinstance(node, ast.With) and "written_for(" in ast.unparse(node.items[0]):
        return []
    called = isinstance(node, ast.Call) and re.search(r"\bassert_\w+$", ast.unparse(node.func))
    inner = [found for child in ast.iter_child_nodes(node) for found in bare_assertions(child)]
    return [node, *inner] if called or isinstance(node, ast.Assert) else inner


def claims_only_what_its_reader_cannot_change(notebook: NotebookNode) -> None:
    """A cell that looks at a widget of an earlier one asserts in `written_for`: the reader may have operated it."""
    operated: set[str] = set()
    for cell in code_cells(notebook):
        tree = ast.parse(TransformerManager().transform_cell(cell.source))
        here = sorted(operated & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
        assert not here or not bare_assertions(tree), f"{cell.id}: expected written_for around what is said of {here}"
        operated |= set(OPERATED.findall(cell.source))


def names_what_is_folded(notebook: NotebookNode) -> None:
    """The text names each function of a folded cell before a visible one calls it: its definition is out of sight."""
    folded: set[str] = set()
    text = ""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            text += cell.source
            continue
        tree = ast.parse(TransformerManager().transform_cell(cell.source))
        if "hide-input" in cell.metadata.get("tags", []):
            folded |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        else:
            used = folded & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            unnamed = sorted(name for name in used if not re.search(rf"`{name}\b", text))
            assert not unnamed, f"{cell.id}: no text before says what the folded {unnamed} are for"


# Of the lessons of the second edition: what makes them readable.
READABLE = (
    reads_within_an_hour,
    shows_more_than_it_asserts,
    tells_few_mistakes,
    explains_its_terms,
    shows_what_was_asked,
    claims_only_what_its_reader_cannot_change,
    names_what_is_folded,
)


def is_fresh(generated: NotebookNode, stored: NotebookNode) -> None:
    found = build.differences(generated, stored)
    assert not found, f"run `make notebooks`: {found}"


def pair_up(sources: list[Path], notebooks: list[Path]) -> None:
    """Each lesson has a source and a notebook, and nothing else lies among the sources."""
    lessons = {path.stem for path in sources if path.stem not in TOOLS}
    strange = sorted(stem for stem in lessons if not re.fullmatch(r"\d\d_[a-z0-9_]+", stem))
    assert not strange, f"expected sources named NN_topic.py, got {strange}"
    assert lessons == {path.stem for path in notebooks}
