"""Grades an assignment: python -m course_lib.grading 03_attention, in the folder of the course.

With `inventory` in an assignment's place it writes the page of what the course moved, with `personal` the notebooks of
single students.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TextIO

import nbformat
from nbgrader.api import Gradebook
from nbgrader.apps import NbGrader, NbGraderAPI

from course_lib.assignments import find
from course_lib.grading import inventory, personal
from course_lib.grading.beside import look_beside
from course_lib.grading.intake import admit, content_of
from course_lib.grading.reading import needs_a_look
from course_lib.grading.sandbox import available

CONFIG = Path("nbgrader_config.py")
LOG = Path("autograde.log")
GRADED = ".graded"  # in the folder of a graded submission: the content that it was graded for
UNCONTAINED = (
    "!!! NOT CONTAINED: there is no bubblewrap that works on this machine.\n"
    "!!! Submissions can read your files, write them, and use the network. Grade in a virtual machine."
)


class Grading:
    """One round of grading.

    Args:
        assignment: its name; the course is in the working directory.
    """

    def __init__(self, assignment: str):
        app = NbGrader(raise_config_file_errors=True)  # with its defaults nbgrader would grade uncontained
        app.load_config_file()
        self.assignment, self.api = assignment, NbGraderAPI(config=app.config)

    def grade(self, student: str, *, again: bool) -> str:
        """Grades one student's submission, unless it was graded as it stands; what the teacher should know of it."""
        folder = Path("submitted") / student / self.assignment
        said = admit(folder, self.assignment)
        mark = Path("autograded") / student / self.assignment / GRADED
        content = content_of(folder)
        if again or not mark.is_file() or mark.read_text(encoding="utf-8") != content:
            result = self.api.autograde(self.assignment, student, force=True)
            print(result.get("log", ""), result.get("error", ""), flush=True)
            if not result["success"]:
                return f"NOT GRADED, see {LOG}"
            mark.write_text(content, encoding="utf-8")
        else:
            said = "; ".join(filter(None, ["unchanged", said]))
        if personal.without_own(student, self.assignment):
            said = "; ".join(filter(None, [said, "look: has no personal notebook, and is graded by everybody's"]))
        return "; ".join(filter(None, [self.points(student), *self.looks(mark.parent), said]))

    def points(self, student: str) -> str:
        """The points of a student, and what waits for a person."""
        with Gradebook(self.api.coursedir.db_url) as gradebook:
            submission = gradebook.find_submission(self.assignment, student)
            grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
            automatic = [grade for grade in grades if grade.auto_score is not None]
            waiting = sum(grade.needs_manual_grade for grade in grades)
            reached, most = sum(grade.auto_score for grade in automatic), sum(grade.max_score for grade in automatic)
        return f"{reached:g} of {most:g}" + (f", {waiting} in words to read" if waiting else "")

    def looks(self, folder: Path) -> Iterator[str]:
        """What a person should look at in the code of a graded submission, and beside it."""
        yield from (f"look: {what}" for what in look_beside(folder))
        notebook = nbformat.read(folder / f"{self.assignment}.ipynb", as_version=4)
        variants = personal.variants_of(notebook)
        for cell in notebook.cells:
            marks = cell.metadata.get("nbgrader", {})
            name = marks.get("grade_id", "").replace("-", ".", 1)
            if cell.cell_type == "code" and marks.get("solution") and not name.startswith("inventory."):
                exercise = find(name, variants.get(name))
                yield from (f"look: {name} {what}" for what in needs_a_look(exercise, cell.source))


@contextmanager
def everything_else_in(path: Path) -> Iterator[TextIO]:
    """Sends to a file whatever this process and those that it starts print; yields what still reaches the teacher."""
    sys.stdout.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with path.open("a", encoding="utf-8") as file, os.fdopen(os.dup(1), "w") as teacher:
        for number in kept:
            os.dup2(file.fileno(), number)
        try:
            yield teacher
        finally:
            sys.stdout.flush()
            for number, before in kept.items():
                os.dup2(before, number)
                os.close(before)


def main(arguments: list[str] | None = None) -> int:
    """Grades what is new among the submissions to an assignment, a line for each student; the rest is in the log."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for other in (inventory, personal):
        if arguments[:1] == [other.NAME]:
            return other.main(arguments[1:])
    if sys.platform == "win32":
        print("Grading needs Linux or macOS: use WSL, or a virtual machine.", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading", description=main.__doc__)
    parser.add_argument("assignment", help="its name, such as 03_attention")
    parser.add_argument("--again", action="store_true", help="grade also what has not changed since it was graded")
    options = parser.parse_args(arguments)
    if not CONFIG.is_file():
        print(f"expected {CONFIG} here: grade in the folder of the course", file=sys.stderr)
        return 1
    students = sorted(path.parent.name for path in Path("submitted").glob(f"*/{options.assignment}") if path.is_dir())
    if not students:
        print(f"nothing is submitted: expected folders submitted/STUDENT/{options.assignment}", file=sys.stderr)
        return 1
    if not available():
        print(UNCONTAINED)
    failed = 0
    with everything_else_in(LOG) as teacher:
        grading, started = Grading(options.assignment), monotonic()
        for number, student in enumerate(students, start=1):
            print(f"== {student}", flush=True)
            said = grading.grade(student, again=options.again)
            failed += said.startswith("NOT GRADED")
            left = (monotonic() - started) / number * (len(students) - number) / 60
            print(f"[{number}/{len(students)}, {left:.0f} min left] {student}: {said}", file=teacher, flush=True)
    print(f"{len(students)} submissions; what nbgrader said is in {LOG}." + f" {failed} NOT GRADED." * bool(failed))
    if not available():
        print(UNCONTAINED)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
