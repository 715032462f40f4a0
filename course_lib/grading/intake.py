"""Looks at each submission before nbgrader reads it, so that one unreadable file is one zero and no more."""

import shutil
import sys
from pathlib import Path

import nbformat

from course_lib.grading.sandbox import available

LIMIT = 50 * 2**20  # bytes of a notebook


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
    """Makes a submission readable.

    A file that is no notebook is put aside under the name NAME.as-submitted, and the released notebook takes its place,
    with a line that says so: it gets no points. A single notebook of another name is copied to the right name.
    Links are removed: nbgrader would follow them, into the teacher's folder too.

    Args:
        folder: of the submission.
        assignment: its name.

    Returns:
        What was done, in words; None if nothing had to be.
    """
    path, done = folder / f"{assignment}.ipynb", []
    for link in [other for other in folder.rglob("*") if other.is_symlink()]:
        link.unlink()
        done.append(f"{link.name} was a link and is removed")
    others = sorted(folder.glob("*.ipynb"))
    if len(others) == 1 and others[0] != path:
        shutil.copyfile(others[0], path)
        done.append(f"{others[0].name} is graded as {path.name}")
    if problem := _problem(path):
        _put_aside(path, assignment, problem)
        done.append(problem)
    return "; ".join(done) or None


def _put_aside(path: Path, assignment: str, problem: str) -> None:
    if path.exists():
        path.rename(path.with_name(f"{path.name}.as-submitted"))
    released = nbformat.read(Path("release") / assignment / path.name, as_version=4)
    note = nbformat.v4.new_markdown_cell(f"**Nothing could be graded:** {problem}.", id="intake")
    released.cells.insert(0, note)
    nbformat.write(released, path)


def _problem(path: Path) -> str | None:
    if not path.is_file():
        return f"there is no {path.name}"
    if path.stat().st_size > LIMIT:
        return f"{path.name} has {path.stat().st_size / 2**20:.0f} MB, at most {LIMIT // 2**20} are read"
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            cell.source, cell.cell_type, cell.metadata.get("nbgrader")  # an old or broken format has none
    except Exception as error:  # whatever a file of a stranger raises in a parser
        return f"{path.name} is not a notebook ({type(error).__name__})"
    return None


def main(assignment: str) -> None:
    """Admits every submission of an assignment, also those without a notebook, which nbgrader would pass over."""
    if not available():
        print("no bubblewrap that works on this machine: submissions can write files and use the network")
    for folder in sorted(Path("submitted").glob(f"*/{assignment}")):
        if done := admit(folder, assignment):
            print(f"{folder.parent.name}: {done}")


if __name__ == "__main__":
    main(sys.argv[1])
