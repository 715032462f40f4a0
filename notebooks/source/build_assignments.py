"""Renders the text of each assignment into what teachers and students open.

    course_lib/assignments/aNN_topic/text.py
        -> source/NN_topic/NN_topic.ipynb     with solutions and hidden tests, for nbgrader
        -> release/NN_topic/NN_topic.ipynb    what students get, by nbgrader's own steps
        -> solution/NN_topic/NN_topic.ipynb   solved and executed

Usage: python -m notebooks.source.build_assignments [--force] [03 04 ...]
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from course_lib.assignments import CHECK, FOLDERS, find, with_parts
from course_lib.checks import Exercise, value
from course_lib.grading import released
from notebooks.source import build_lessons as lessons

FOLDER = lessons.NOTEBOOKS / "assignments"
KINDS = ("source", "release", "solution")
DIFFICULTY = {1: "●○○", 2: "●●○", 3: "●●●"}


def instructor(notebook: NotebookNode) -> NotebookNode:
    """The version with solutions and hidden tests: short tags of the text become nbgrader's metadata."""
    cells, about, planted, number = [], {}, None, 0
    checked = {found["name"] for cell in notebook.cells if (found := CHECK.match(cell.source))}
    for cell in notebook.cells:
        kind = next(iter(cell.metadata.pop("tags", [])), None)
        if "exercise" in cell.metadata:
            number, about = number + 1, dict(cell.metadata)
            cell.metadata.clear()
            rules = [_rules(find(about["exercise"]))] if about["exercise"] in checked else []
            cell.source = "\n\n".join([_heading(number, about), *rules, cell.source])
        if kind == "planted":
            planted = cell.source
            continue
        name = about.get("exercise", "").replace(".", "-")
        if kind == "solution":
            cell.source = with_parts(cell.source).strip()
            cell.metadata["nbgrader"] = marks(name, solution=True)
            if planted:
                cell.metadata["planted"] = planted
            planted = None
        elif kind == "answer":
            cell.metadata["nbgrader"] = marks(name, grade=True, solution=True, points=about["points"])
        elif kind == "check":
            if (found := CHECK.fullmatch(cell.source)) is None or found["name"] != about["exercise"]:
                raise lessons.BuildError(f"expected check({about['exercise']!r}, ...), got {cell.source}")
            hidden = f"### BEGIN HIDDEN TESTS\n{cell.source[:-1]}, hidden=True)\n### END HIDDEN TESTS"
            cell.source = f"{cell.source}\n{hidden}"
            cell.metadata["nbgrader"] = marks(f"{name}-check", grade=True, locked=True, points=about["points"])
        elif cell.cell_type == "code":
            given = sum("given" in other.metadata.get("nbgrader", {}).get("grade_id", "") for other in cells)
            cell.metadata["nbgrader"] = marks(f"given-{given}", locked=True)
            if kind == "home":
                cell.metadata["home"] = True
        cells.append(cell)
    notebook.cells = cells
    return notebook


def solved(notebook: NotebookNode) -> NotebookNode:
    """The solution for those who learn alone: no marks, no hidden tests, no mark schemes."""
    notebook = instructor(notebook)
    for cell in notebook.cells:
        graded = cell.metadata.pop("nbgrader", {}).get("grade", False)
        cell.metadata.pop("planted", None)
        cell.source = re.sub(r"\n### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", cell.source, flags=re.S)
        cell.source = re.sub(r"\n?=== BEGIN MARK SCHEME ===.*?=== END MARK SCHEME ===", "", cell.source, flags=re.S)
        cell.source = re.sub(r"^ *### (BEGIN|END) SOLUTION\n?", "", cell.source, flags=re.M).strip()
        checked = CHECK.match(cell.source) if graded and cell.cell_type == "code" else None
        if checked and find(checked["name"]).worth is None:  # a score may differ from machine to machine
            cell.metadata["tags"] = ["nbval-check-output"]
    return notebook


def build(text: Path, *, force: bool = False) -> None:
    """Makes all versions of one assignment; with `force` the solution is executed even when nothing changed."""
    name = name_of(text)
    source, given, solution = (FOLDER / kind / name / f"{name}.ipynb" for kind in KINDS)
    for path in (source, given, solution):
        path.parent.mkdir(parents=True, exist_ok=True)
    notebook = lessons.generate(text, (instructor,))
    lessons.write(notebook, source)
    lessons.write(released(notebook), given)
    lessons.build(text, solution, transforms=(solved,), force=force)


def texts(numbers: Sequence[str] = ()) -> list[Path]:
    """The texts of all assignments, or of those whose names begin with one of the numbers."""
    found = [folder / "text.py" for folder in FOLDERS]
    return [text for text in found if not numbers or name_of(text).startswith(tuple(numbers))]


def name_of(text: Path) -> str:
    """nbgrader's name for the assignment of a text: assignments/a03_attention/text.py → 03_attention."""
    return text.parent.name.removeprefix("a")


def _heading(number: int, about: dict) -> str:
    effort = f"{about['minutes']} minutes · {about['points']} points · {DIFFICULTY[about['difficulty']]}"
    return f"## {number} · {about['title']}\n\n*{effort}*"


def _rules(exercise: Exercise) -> str:
    """What the checks ask for beside the right result, in a line."""
    if not callable(exercise.reference):
        return "*Rules: 3.0 counts as 3.*" if exercise.ask is value else "*Rules: nothing finished of `course_lib`.*"
    names = [getattr(one, "__name__", str(one)) for one in exercise.forbidden]
    loops = {False: ["no loop over the inputs"], True: []}
    found = loops.get(exercise.loops, ["no loop but the one over the steps"])
    finished = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
    if exercise.library:
        found += [f"not {finished} of `course_lib`"] if finished else []
    else:
        found += [f"nothing finished of `course_lib`{f', and not {finished}' if finished else ''}"]
    return f"*Rules: {'; '.join([*found, 'the inputs stay unchanged; a list counts as a tuple, 3.0 as 3'])}.*"


def marks(name: str, *, grade=False, solution=False, locked=False, points=None) -> dict:
    """What nbgrader's metadata says of a cell."""
    said = dict(grade=grade, grade_id=name, locked=locked, schema_version=3, solution=solution, task=False)
    return said | ({"points": points} if grade else {})


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the assignments named on the command line, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("assignment", nargs="*", help="beginning of the file name, such as 03; default all")
    parser.add_argument("--force", action="store_true", help="execute even what did not change")
    options = parser.parse_args(arguments)
    for text in texts(options.assignment):
        build(text, force=options.force)
        print(f"{name_of(text)}: built", flush=True)


if __name__ == "__main__":
    main()
