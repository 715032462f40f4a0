"""A class of thirty for one assignment: right, partly right, wrong and hostile submissions, and what each must get."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from course_lib.assignments import find
from course_lib.checks.exercise import value
from course_lib.grading.sandbox import available
from notebooks.source.build_assignments import CHECK, FOLDER
from tests.helpers.answers import codes

STUB = "raise NotImplementedError"
BUILDS_ON = {"19-parts": "19-weights", "19-model": "19-weights"}  # the second gets nothing without the first
ONE_PART_WRONG = {"19-parts-check": 4.5}  # points where a mistake costs its share
LIMITS = "c.ContainedExecute.timeout = 15\nc.ContainedExecute.iopub_timeout = 8\n"


@dataclass
class Submission:
    """What a student hands in.

    Attributes:
        student: name of the folder.
        points: what it must get for each exercise, by the name of its cell; missing ones must get all points.
        cells: texts of solution cells that differ from the right ones.
        edit: whatever else is done to the notebook.
        file: name of the file, if not the assignment's.
        raw: content of the file instead of a notebook; None for no file at all if `file` is empty.
        says: a part of what the graded notebook must say.
    """

    student: str
    points: dict[str, float] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)
    edit: Callable[[NotebookNode], None] = lambda notebook: None
    file: str | None = None
    raw: str | None = None
    says: str = ""


def lost(cell: str) -> dict[str, float]:
    """No points for the exercise of this cell, nor for what builds on it."""
    return {f"{name}-check": 0.0 for name in (cell, BUILDS_ON.get(cell, cell))}


class Classroom:
    """A teacher's folder with one assignment."""

    def __init__(self, root: Path, assignment: str, settings: str = LIMITS) -> None:
        """
        Args:
            root: a folder that is not there yet.
            assignment: its name.
            settings: added to nbgrader_config.py.
        """
        self.root, self.assignment = root, assignment
        root.mkdir(parents=True, exist_ok=True)
        shutil.copytree(FOLDER / "source" / assignment, root / "source" / assignment)
        config = (FOLDER / "nbgrader_config.py").read_text(encoding="utf-8")
        (root / "nbgrader_config.py").write_text(config + settings, encoding="utf-8")
        self.nbgrader("generate_assignment", assignment)
        self.released = nbformat.read(root / "release" / assignment / f"{assignment}.ipynb", as_version=4)
        solved = FOLDER / "solution" / assignment / f"{assignment}.ipynb"
        solved = solved if solved.is_file() else root / "source" / assignment / solved.name  # questions have no lesson
        solution = nbformat.read(solved, as_version=4)
        pairs = [(_marks(cell), right) for cell, right in zip(self.released.cells, solution.cells, strict=True)]
        self.right = {marks["grade_id"]: right.source for marks, right in pairs if marks.get("solution")}
        self.points = {marks["grade_id"]: marks["points"] for marks, _ in pairs if marks.get("grade")}
        self.variables = {
            found["name"]: found["variable"] for cell in self.released.cells if (found := CHECK.match(cell.source))
        }

    def nbgrader(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run one of nbgrader's own commands in the teacher's folder."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, "TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR": "1"}
        command = [sys.executable, "-m", "nbgrader", *arguments]
        done = subprocess.run(command, cwd=self.root, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    def submit(self, submission: Submission) -> None:
        """Put a submission where `nbgrader collect` would."""
        folder = self.root / "submitted" / submission.student / self.assignment
        folder.mkdir(parents=True)
        if (solved := FOLDER / "solution" / self.assignment).exists():  # the twelve questions have none
            nothing = shutil.ignore_patterns("*.ipynb", ".*")
            shutil.copytree(solved, folder, ignore=nothing, dirs_exist_ok=True)
        path = folder / (f"{self.assignment}.ipynb" if submission.file is None else submission.file)
        if submission.raw is not None:
            path.write_text(submission.raw, encoding="utf-8")
            return
        notebook = nbformat.from_dict(json.loads(nbformat.writes(self.released)))
        for cell in notebook.cells:
            name = _marks(cell).get("grade_id")
            cell.source = submission.cells.get(name) or self.right.get(name) or cell.source
        submission.edit(notebook)
        nbformat.write(notebook, path)

    def autograde(self, *arguments: str) -> float:
        """Grade everybody as `make autograde` does; seconds that it took. `said` is what the teacher reads."""
        started = perf_counter()
        command = [sys.executable, "-m", "course_lib.grading", self.assignment, *arguments]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        self.said = done.stdout + done.stderr
        return perf_counter() - started

    def killed_after(self, lines: int) -> None:
        """Begins to grade with two processes at a time, and kills them all when so many students are done."""
        command = [sys.executable, "-m", "course_lib.grading", self.assignment, "--jobs", "2"]
        options = dict(cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with subprocess.Popen(command, start_new_session=True, **options) as grading:
            self.said = "".join(grading.stdout.readline() for _ in range(lines))
            os.killpg(grading.pid, signal.SIGKILL)

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Points of every student for every graded cell, None where a person must grade."""
        with Gradebook(f"sqlite:///{self.root}/gradebook.db") as gradebook:
            return {
                submission.student.id: {
                    grade.name: grade.auto_score for notebook in submission.notebooks for grade in notebook.grades
                }
                for submission in gradebook.assignment_submissions(self.assignment)
            }

    def graded(self, student: str) -> str:
        """Everything that a student's graded notebook says."""
        path = self.root / "autograded" / student / self.assignment / f"{self.assignment}.ipynb"
        texts = []
        for cell in nbformat.read(path, as_version=4).cells:
            texts.append(cell.source if cell.cell_type == "markdown" else "")
            for output in cell.get("outputs", []):
                texts += [output.get("text", ""), *output.get("traceback", [])]
        return "\n".join(texts)

    def students(self) -> list[Submission]:
        """More than thirty: right, partly right, wrong, hostile and unlucky, as far as this machine has limits."""
        exercises = list(self.variables)
        cells = [exercise.replace(".", "-") for exercise in exercises]
        nothing = {f"{cell}-check": 0.0 for cell in cells}

        def pasted(kind: str, number: int) -> dict[str, str]:
            """Cells with one of our answers to each exercise; none needs another one."""
            found = [codes(exercise, kind, by_results=True) for exercise in exercises]
            return {cell: answers[number % len(answers)] for cell, answers in zip(cells, found, strict=True)}

        base = pasted("RIGHT", 0)
        right = [Submission(f"right-{n}", cells=pasted("RIGHT", n)) for n in range(7)]
        partly = [
            Submission(f"partly-{n}", lost(cells[n]), base | {cells[n]: STUB}, says="there is no `")
            for n in range(min(4, len(cells)))
        ]
        little = nothing | {name: points for name, points in ONE_PART_WRONG.items() if name in nothing}
        wrong = [Submission(f"wrong-{n}", little, pasted("WRONG", n), says="✗") for n in range(6)]
        return [Submission("solution"), *right, *partly, *wrong, *self._hostile(cells, nothing, base)]

    def _hostile(self, cells: list[str], nothing: dict[str, float], base: dict[str, str]) -> list[Submission]:
        first, last = cells[0], cells[-1]
        no_first, no_last = lost(first), lost(last)
        asked = {exercise: find(exercise) for exercise in self.variables}
        exercise = next(name for name, one in asked.items() if one.ask is not value and one.worth is None)
        function, defined = exercise.replace(".", "-"), f"def {self.variables[exercise]}(*inputs):\n    "
        no_function = {f"{function}-check": 0.0}
        nowhere = {
            cell: f"{self.variables[exercise]} = lambda *inputs: None"
            for cell, exercise in zip(cells, self.variables, strict=True)
        }
        outside = f"open({str(self.root / 'gradebook.db')!r}, 'w').write('x'); open('/outside', 'w')"
        unreadable = nothing | {name: 0.0 for name in self.points}
        contained = [
            Submission("network", no_last, base | {last: NETWORK}, says="URLError"),
            Submission("outside", no_last, base | {last: outside}, says="Read-only"),
        ]
        limited = [
            Submission("bomb", no_last, base | {last: "[bytearray(10**11) for _ in range(10)]"}, says="MemoryError")
        ]
        return [
            *(contained if available() else []),
            *(limited if sys.platform == "linux" else []),
            Submission("endless", no_first, base | {first: "while True: pass"}, says="CellTimeoutError"),
            Submission("stubborn", no_first, base | {first: STUBBORN}, says="even when interrupted"),
            Submission("flood", no_last, base | {last: "for _ in range(100): print('x' * 10**6)"}, says="is not kept"),
            Submission("exit", no_first, base | {first: "import os; os._exit(0)"}, says="KernelDied"),
            Submission(
                "late-exit", no_function, base | {function: defined + "import os; os._exit(0)"}, says="KernelDied"
            ),
            Submission("late-loop", no_function, base | {function: defined + "while True: pass"}, says="no answer in"),
            Submission("syntax", no_first, base | {first: "def answer(query key):\n    return"}, says="SyntaxError"),
            Submission("patched", nothing, nowhere, insert(PATCH), says="✗"),
            Submission("forged", nothing, nowhere, forge, says="✗"),
            Submission("links", edit=insert(LINKS.format(str(self.root / "nbgrader_config.py")))),
            Submission("deleted", edit=_delete),
            Submission("reordered", edit=lambda notebook: notebook.cells.reverse()),
            Submission("renamed", file="my homework.ipynb"),
            Submission("bare", edit=_bare),
            Submission("julia", edit=lambda notebook: notebook.metadata.update(kernelspec=JULIA)),
            Submission("no-notebook", unreadable, raw="hello", says="is not a notebook"),
            Submission("no-file", unreadable, file="answers.txt", raw="42", says="there is no"),
        ]


STUBBORN = """import time
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
"""
NETWORK = "import urllib.request\nurllib.request.urlopen('http://192.0.2.1', timeout=3)"
PATCH = """import builtins
import course_lib.assignments, course_lib.assignments.catalog, course_lib.checks.judge, course_lib.checks.compare
check = course_lib.assignments.check = course_lib.assignments.catalog.check = lambda *_, **__: print("✓")
course_lib.checks.judge.difference = course_lib.checks.compare.difference = lambda *_: None
course_lib.checks.judge.verdict = lambda *_: "✓"
builtins.AssertionError = type("Nothing", (Exception,), {})
"""
LINKS = """import pathlib
for name in ("cases", "replies", "replies.partial", ".kernel/c.json.old"):
    pathlib.Path(name).symlink_to({!r})
"""
JULIA = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}


def _marks(cell: NotebookNode) -> dict:
    return cell.metadata.get("nbgrader", {})


def insert(source: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells.insert(0, nbformat.v4.new_code_cell(source))


def forge(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if _marks(cell).get("grade") and cell.cell_type == "code":
            cell.source = "print('✓')"
            cell.metadata["nbgrader"]["points"] = 100
    notebook.cells.append(nbformat.v4.new_code_cell("1 + 1", metadata=dict(notebook.cells[-2].metadata)))


def _delete(notebook: NotebookNode) -> None:
    notebook.cells = [cell for cell in notebook.cells if not _marks(cell).get("locked")]


def _bare(notebook: NotebookNode) -> None:
    """What an editor leaves that knows nothing of metadata and ids."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell["id"] = nbformat.from_dict({}), f"new-{number}"
