"""One round of grading: each submission once, several at a time, each kept as soon as it is graded."""

import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from glob import escape
from multiprocessing import get_context
from pathlib import Path

import nbformat
import torch
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGrader, NbGraderAPI

from course_lib.checks import hidden_seed
from course_lib.grading import leaderboard, personal
from course_lib.grading.beside import look_beside
from course_lib.grading.execute import NOT_COMPARED, OUT_OF_TIME
from course_lib.grading.intake import admit, content_of, printable
from course_lib.grading.reading import look_at

LOG = Path("autograde.log")
GRADED = ".graded"  # in the folder of a graded submission: the content that it was graded for, and the seed
FILE = "sqlite:///"  # begins the address of a gradebook that is a file
NOT_GRADED = "NOT GRADED"


class Grading:
    """Grades submissions one by one.

    Args:
        assignment: its name; the course is in the working directory.

    Raises:
        ValueError: the gradebook does not know the assignment.
    """

    def __init__(self, assignment: str):
        app = NbGrader(raise_config_file_errors=True)  # with its defaults nbgrader would grade uncontained
        app.load_config_file()
        self.assignment, self.api = assignment, NbGraderAPI(config=app.config)
        if not _is_released(self.api.coursedir.db_url, assignment):
            number = assignment.split("_")[0]
            raise ValueError(f"{assignment} is not released: make release ASSIGNMENT={number} first")

    def grade(self, student: str, *, again: bool) -> str:
        """Grades one student's submission, unless it was graded as it stands; what the teacher should know of it."""
        if escape(student) != student:  # and would find no notebook, in the feedback neither
            return f"{NOT_GRADED}: nbgrader takes the name of the folder for a pattern; rename it, without * ? ["
        folder = Path("submitted") / student / self.assignment
        said = [admit(folder, self.assignment)]
        mark = Path("autograded") / student / self.assignment / GRADED
        content, seed = content_of(folder), str(hidden_seed())
        had, _, seed_then = mark.read_text(encoding="utf-8").partition(" ") if mark.is_file() else ("", "", "")
        if again or had != content:
            result = self.api.autograde(self.assignment, student, force=True)
            _log(result.get("log", ""), result.get("error", ""))
            if not result["success"]:
                return f"{NOT_GRADED}, see {LOG} ({_last_line(result['error'])})"
            mark.write_text(f"{content} {seed}", encoding="utf-8")
        else:
            said.insert(0, "unchanged")
            if seed_then not in ("", seed):
                said.append(f"look: graded with the seed {seed_then}, not {seed}")
        if personal.without_own(student, self.assignment):
            said.append("look: has no personal notebook, and is graded by everybody's")
        looks = (f"look: {what}" for what in self.looks(mark.parent))
        return "; ".join(filter(None, [self.points(student), *looks, *said]))

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
        """What a person should look at in a graded submission, and beside it."""
        notebook = nbformat.read(folder / f"{self.assignment}.ipynb", as_version=4)
        yield from look_beside(folder, weights=leaderboard.EXERCISE in map(leaderboard.name_of, notebook.cells))
        yield from late(notebook)
        yield from undecided(notebook)
        yield from look_at(notebook)


def _is_released(gradebook: str, assignment: str) -> bool:
    """Whether a gradebook, which comes with the first release, knows an assignment."""
    if gradebook.startswith(FILE) and not Path(gradebook.removeprefix(FILE)).is_file():
        return False
    try:
        with Gradebook(gradebook) as found:
            return bool(found.find_notebook(assignment, assignment))
    except MissingEntry:
        return False


def late(notebook: NotebookNode) -> Iterator[str]:
    """What did not run in a graded notebook, because its time was over."""
    cells = [cell for cell in notebook.cells if any(out.get("ename") == OUT_OF_TIME for out in cell.get("outputs", []))]
    if cells:
        own = [leaderboard.name_of(cell) for cell in cells if leaderboard.name_of(cell)]
        added = [f"{len(cells) - len(own)} added cells"] if len(cells) > len(own) else []
        yield f"out of time for {', '.join([*added, *own])}"


def undecided(notebook: NotebookNode) -> Iterator[str]:
    """The checks of a graded notebook whose verdict failed: it counts as wrong, and may be a fault of the grading."""
    for cell in notebook.cells:
        if any(NOT_COMPARED in out.get("evalue", "") for out in cell.get("outputs", [])):
            yield f"no verdict on {leaderboard.name_of(cell)}, see {LOG}"


def graded(assignment: str, students: list[str], *, again: bool = False, jobs: int = 1) -> Iterator[tuple[str, str]]:
    """Each student in turn with what is said of the submission.

    Whoever stops this loses what was in hand, and no grade: the next round goes on with those that have none.

    Raises:
        ValueError: see `Grading`; at once, as whatever is wrong with the configuration.
    """
    jobs, grading = min(jobs, len(students)), Grading(assignment)
    if jobs == 1:
        return ((student, _said(grading, student, again)) for student in students)
    return _side_by_side(assignment, students, again, jobs)


def _side_by_side(assignment: str, students: list[str], again: bool, jobs: int) -> Iterator[tuple[str, str]]:
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
    """What is said of a submission; one that the grading fails at is said to be so, and the others have their turn."""
    _log(f"== {student}")
    try:
        return printable(grading.grade(student, again=again))
    except Exception as error:  # whatever a submission does to one of the libraries
        _log(traceback.format_exc())
        return printable(f"{NOT_GRADED}, see {LOG} ({type(error).__name__}: {error})")


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def _log(*texts: str) -> None:
    print(*map(printable, texts), flush=True)
