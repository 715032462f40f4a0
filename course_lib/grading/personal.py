"""A notebook for each student, in which some exercises have another convention; off until a teacher makes them.

    source/NN_topic -> hand_out -> personal/release/STUDENT/NN_topic   what this student gets, and is graded by
                                   personal/source/STUDENT/NN_topic    the same with solutions
                                   personal/NN_topic.csv               who has which convention
"""

import argparse
import csv
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from course_lib.assignments import Variant, variants_for
from course_lib.checks import PUBLIC, hidden_seed
from course_lib.storage import replacing

NAME = "personal"  # in the place of an assignment
FOLDER = Path("personal")
VARIANTS = "variants"  # in the metadata of a personal notebook: the name of the variant of each exercise that has one


def released_to(student: str | None, assignment: str, name: str | None = None) -> Path:
    """The notebook that a student was given: a personal one, or else everybody's."""
    file = f"{name or assignment}.ipynb"
    own = FOLDER / "release" / (student or "") / assignment / file
    return own if student and own.is_file() else Path("release") / assignment / file


def variants_of(notebook: NotebookNode) -> dict[str, str]:
    """The names of the variants that a notebook of ours has, by exercise."""
    return dict(notebook.metadata.get(VARIANTS, {}))


def about(seed: int) -> str:
    """A seed in words, for the teacher; the one that stands where none was chosen keeps nothing secret."""
    known = ", which everybody knows who has this course: choose one for your class, COURSE_CLASS_SEED"
    return f"the seed {seed}{known * (seed == PUBLIC)}."


def without_own(student: str, assignment: str) -> bool:
    """Whether others have personal notebooks of this assignment, and this student has none."""
    return (FOLDER / f"{assignment}.csv").is_file() and released_to(student, assignment).parts[0] != FOLDER.name


def personal(notebook: NotebookNode, variants: Mapping[str, Variant]) -> NotebookNode:
    """An instructor's notebook with some exercises under another convention: their text, solution and check.

    Args:
        notebook: as it is published; it stays as it is.
        variants: by exercise.

    Raises:
        ValueError: a piece that a variant changes does not stand in its exercise.
    """
    made = nbformat.from_dict(notebook)
    for exercise, variant in variants.items():
        cells = _cells_of(made, exercise)
        texts = [text for cell in cells for text in (cell.source, cell.metadata.get("planted", ""))]
        if lacking := variant.unused(texts):
            raise ValueError(f"expected {lacking[0]!r} in {exercise}, for its variant {variant.name!r}")
        for cell in cells:
            cell.source = variant.of(cell.source)
            if "planted" in cell.metadata:
                cell.metadata["planted"] = variant.of(cell.metadata["planted"])
        call = re.compile(rf'^(check\("{re.escape(exercise)}", \w+)', flags=re.M)
        cells[-1].source = call.sub(lambda found, name=variant.name: f'{found[1]}, variant="{name}"', cells[-1].source)
    made.metadata[VARIANTS] = {exercise: variant.name for exercise, variant in variants.items()}
    return made


def _cells_of(notebook: NotebookNode, exercise: str) -> list[NotebookNode]:
    """The cells of an exercise, from its heading to its check."""
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    end = names.index(f"{exercise.replace('.', '-')}-check")
    start = max(number for number in range(end) if notebook.cells[number].source.startswith("## "))
    return notebook.cells[start : end + 1]


class OwnTexts(NbGraderPreprocessor):
    """After nbgrader has put back what it knows of an assignment: what this student was given, where that differs."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Gives the cells that are only read the texts of the personal notebook; tests stay nbgrader's."""
        names = resources["nbgrader"]
        if variants_of(nb):
            path = released_to(names.get("student"), names["assignment"], names["notebook"])
            own = {_given(cell): cell.source for cell in nbformat.read(path, as_version=4).cells if _given(cell)}
            for cell in nb.cells:
                cell.source = own.get(_given(cell), cell.source)
        return nb, resources


def _given(cell: NotebookNode) -> str | None:
    marks = cell.metadata.get("nbgrader", {})
    return None if marks.get("grade") or marks.get("solution") else marks.get("grade_id")


def hand_out(assignment: str, students: Sequence[str], seed: int) -> dict[str, dict[str, str]]:
    """Makes the notebook of each student.

    Args:
        assignment: its name; everybody's release has been made.
        students: their names, as nbgrader has them.
        seed: of the class.

    Returns:
        the variants of each student, by exercise.

    Raises:
        ValueError: the assignment has no variants or no release, a name is no name of a folder, or a student has been
            given another variant before, by another seed.
    """
    if not Path("release", assignment, f"{assignment}.ipynb").is_file():
        raise ValueError(f"expected release/{assignment}: make the release for everybody first, which nbgrader needs")
    notebook = nbformat.read(Path("source", assignment, f"{assignment}.ipynb"), as_version=4)
    made = {}
    for student in students:
        if Path(student).name != student or student.startswith("."):
            raise ValueError(f"expected a name that can be a folder's, got {student!r}")
        variants = variants_for(assignment, student, seed)
        if not variants:
            raise ValueError(f"expected an assignment with variants, got {assignment}")
        made[student] = {exercise: variant.name for exercise, variant in variants.items()}
        path = FOLDER / "release" / student / assignment / f"{assignment}.ipynb"
        if path.is_file() and (had := variants_of(nbformat.read(path, as_version=4))) != made[student]:
            raise ValueError(f"{student} has {had}, and would get {made[student]}: keep the seed of the class")
    for student in students:
        _write(personal(notebook, variants_for(assignment, student, seed)), student, assignment)
    return made


def _write(notebook: NotebookNode, student: str, assignment: str) -> None:
    from course_lib.grading.steps import released  # here, because the steps need this module

    for kind, content in (("source", notebook), ("release", released(nbformat.from_dict(notebook)))):
        path = FOLDER / kind / student / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            nbformat.write(content, partial)


def main(arguments: list[str] | None = None) -> int:
    """Makes a notebook for each student, with conventions that follow from the student's name and the class's seed."""
    parser = argparse.ArgumentParser(prog=f"python -m course_lib.grading {NAME}", description=main.__doc__)
    parser.add_argument("assignment", help="its name, such as 05_masks")
    parser.add_argument("--students", type=Path, default=Path("students.txt"), help="a file with a name a line")
    options = parser.parse_args(arguments)
    try:
        lines = options.students.read_text(encoding="utf-8-sig").splitlines()  # some editors begin with a mark
        students = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        seed = hidden_seed()
        made = hand_out(options.assignment, students, seed)
        table = _enter(options.assignment)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(made)} notebooks are in {FOLDER / 'release'}; who has which variant is in {table}.")
    print(f"The variants are those of {about(seed)}")
    return 0


def _enter(assignment: str) -> Path:
    """Writes the table of who has which variant: everybody whose notebook is there, whenever it was made."""
    table, rows = FOLDER / f"{assignment}.csv", []
    for path in sorted(FOLDER.glob(f"release/*/{assignment}/{assignment}.ipynb")):
        had = variants_of(nbformat.read(path, as_version=4))
        rows += [(path.parent.parent.name, exercise, name) for exercise, name in had.items()]
    with replacing(table) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("student", "exercise", "variant"), *rows])
    return table
