"""Looks at each submission before nbgrader reads it, so that one unreadable file is one zero and no more."""

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.grading.personal import released_to
from course_lib.grading.rebuild import recognized

LIMIT = 50 * 2**20  # bytes of a notebook
ASIDE = ".as-submitted"
RECORD = ".intake.json"  # in the submission's folder: what was made here, so that the next look begins anew


def receive(assignment: str, student: str, notebooks: list[str]) -> None:
    """Makes sure that there is a notebook that can be read; nbgrader's hook before it converts a submission.

    Args:
        assignment: its name.
        student: what nbgrader was asked for; a pattern, so the folder is taken from the notebooks.
        notebooks: paths of the submitted ones; the list is changed in place.
    """
    if notebooks:
        folder = Path(notebooks[0]).parent
        admit(folder, assignment)
        notebooks[:] = [str(folder / f"{assignment}.ipynb")]


def admit(folder: Path, assignment: str) -> str | None:
    """Makes a submission readable, and what it did before undone first: whatever stands there now is looked at.

    Of several notebooks those count that have an answer. A single one of another name is copied to the right name.
    What cannot be graded (no notebook, two of them, one that cannot be read or in which nothing is recognized) is
    put aside under the name NAME.as-submitted, and the released notebook takes its place, with a line that says so:
    it gets no points. Links are removed: nbgrader would follow them, into the teacher's folder too.

    Args:
        folder: of the submission.
        assignment: its name.

    Returns:
        what was done, in words; None if nothing had to be.
    """
    path, done = folder / f"{assignment}.ipynb", []
    for link in [other for other in folder.rglob("*") if other.is_symlink()]:
        link.unlink()
        done.append(f"{link.name} was a link and is removed")
    _undo(folder, path)
    every = sorted(folder.glob("*.ipynb"))
    found = _meant(every, path, assignment)
    if len({content_of(other) for other in found}) > 1:
        problem = f"there are {len(found)} notebooks ({', '.join(other.name for other in found)}); hand in one"
    else:
        done += [f"{other.name} is left out" for other in every if other not in found]
        if found and path not in found:
            _aside(path)
            shutil.copyfile(found[0], path)
            _record(folder, path)
            done.append(f"{found[0].name} is graded as {path.name}")
        problem = _problem(path, assignment)
    if problem:
        _put_aside(path, assignment, problem)
        done.append(problem)
    return "; ".join(done) or None


def content_of(path: Path) -> str:
    """What a submission is known by: SHA-256 of a notebook, or of all files of a folder with their names."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = (file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith("."))
    parts = [f"{file.relative_to(path)} {content_of(file)}" for file in files]
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()


def printable(text: str) -> str:
    """A text with names of files in it that may be of any bytes: what is no character is written as its number."""
    return text.encode(errors="backslashreplace").decode()


def _meant(every: list[Path], path: Path, assignment: str) -> list[Path]:
    """Of several notebooks those that have an answer, known by the marks of its cell, else by what it defines."""
    if len({content_of(other) for other in every}) < 2:
        return every
    released, readable = _released(path, assignment), {}
    for other in every:
        with suppress(ValueError):
            readable[other] = _read(other)
    for by_content in (False, True):
        if found := [other for other, one in readable.items() if _answered(released, one, by_content)]:
            return found
    return every


def _answered(released: NotebookNode, submitted: NotebookNode, by_content: bool) -> bool:
    given = {cell.source for cell in released.cells}
    answers = recognized(released, submitted, by_content=by_content).values()
    return any(submitted.cells[number].source not in given for number in answers)


def _record(folder: Path, made: Path) -> None:
    (folder / RECORD).write_text(json.dumps({made.name: content_of(made)}), encoding="utf-8")


def _undo(folder: Path, path: Path) -> None:
    """Takes away what an earlier look put there, unless somebody changed it since, and puts back what it put aside."""
    try:
        made = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        made = {}
    if path.is_file() and isinstance(made, dict) and made.get(path.name) == content_of(path):
        path.unlink()
    aside = path.with_name(path.name + ASIDE)
    if aside.is_file() and not path.exists():
        aside.rename(path)
    (folder / RECORD).unlink(missing_ok=True)


def _put_aside(path: Path, assignment: str, problem: str) -> None:
    _aside(path)
    released = _released(path, assignment)
    note = nbformat.v4.new_markdown_cell(f"**Nothing could be graded:** {printable(problem)}.", id="intake")
    released.cells.insert(0, note)
    nbformat.write(released, path)
    _record(path.parent, path)


def _aside(path: Path) -> None:
    if path.exists():
        path.rename(path.with_name(path.name + ASIDE))


def _released(path: Path, assignment: str) -> NotebookNode:
    """What the student was given who handed this in, as submitted/STUDENT/ASSIGNMENT/NAME.ipynb."""
    return nbformat.read(released_to(path.parent.parent.name, assignment, path.stem), as_version=4)


def _problem(path: Path, assignment: str) -> str | None:
    try:
        notebook = _read(path)
    except ValueError as error:
        return str(error)
    if not recognized(_released(path, assignment), notebook):
        return f"no cell of {path.name} is recognized as an answer; is it this assignment's notebook?"
    return None


def _read(path: Path) -> NotebookNode:
    """A stranger's notebook. Raises ValueError if there is none, or none that can be read."""
    if not path.is_file():
        raise ValueError(f"there is no {path.name}")
    if path.stat().st_size > LIMIT:
        raise ValueError(f"{path.name} has {path.stat().st_size / 2**20:.0f} MB, at most {LIMIT // 2**20} are read")
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            cell.source, cell.cell_type, cell.metadata.get("nbgrader")  # an old or broken format has none
    except Exception as error:  # whatever a file of a stranger raises in a parser
        raise ValueError(f"{path.name} is not a notebook ({type(error).__name__})") from error
    return notebook
