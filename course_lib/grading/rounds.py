"""One round of grading: each submission once, several at a time, each kept as soon as it is graded."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import nbformat
import torch
from nbgrader.api import Gradebook
from nbgrader.apps import NbGrader, NbGraderAPI

from course_lib.assignments import find
from course_lib.grading import personal
from course_lib.grading.beside import look_beside
from course_lib.grading.intake import admit, content_of
from course_lib.grading.reading import needs_a_look

LOG = Path("autograde.log")
GRADED = ".graded"  # in the folder of a graded submission: the content that it was graded for


class Grading:
    """Grades submissions one by one.

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


def graded(assignment: str, students: list[str], *, again: bool = False, jobs: int = 1) -> Iterator[tuple[str, str]]:
    """Each student in turn with what is said of the submission.

    Whoever stops this loses what was in hand, and no grade: the next round goes on with those that have none.
    """
    jobs, grading = min(jobs, len(students)), Grading(assignment)  # where the configuration is broken, it fails here
    if jobs == 1:
        yield from ((student, _said(grading, student, again)) for student in students)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (assignment,)) as pool:
        waiting = [(student, pool.submit(_in_worker, student, again)) for student in students]
        yield from ((student, said.result()) for student, said in waiting)


def _begin(assignment: str) -> None:
    """In a process that grades some of the students; what it prints goes where its parent's does."""
    global _grading
    torch.set_num_threads(1)
    _grading = Grading(assignment)


def _in_worker(student: str, again: bool) -> str:
    return _said(_grading, student, again)


def _said(grading: Grading, student: str, again: bool) -> str:
    print(f"== {student}", flush=True)
    return grading.grade(student, again=again)
