"""Brings the parts of the capstone from the reader's own notebooks of assignments 01 to 08.

    my_course/assignments/release/03_attention/… 08_transformer/…  ->  my_course/…/19_capstone/19_capstone.ipynb

Notebooks that lie in the folder itself, as from nbgrader's exchange, count as well.
Parts that pass their own visible check go into the cell of the parts. What is missing or wrong is borrowed from the
solutions, in a cell below the check, where it earns nothing.

Usage: .venv/bin/python -m notebooks.parts my_course
"""

import argparse
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.assignments import FOLDERS, check, read_text
from course_lib.assignments.a19_capstone.names import PARTS
from course_lib.storage import replacing

CAPSTONE = Path("19_capstone") / "19_capstone.ipynb"
PLACES = (".", "assignments/release")  # in the reader's folder: of what is fetched, and of what comes with the course
CELL, CHECK = "19-parts", "19-parts-check"
BROUGHT = "# Your parts, brought by `python -m notebooks.parts`; another call writes over this cell.\n"
BORROWED = "# Borrowed from the solutions; each of these costs its part of the points.\n"


def bring_parts(folder: Path) -> tuple[list[str], list[str]]:
    """Fills the capstone's cell of parts.

    Args:
        folder: the reader's, with 03_attention/03_attention.ipynb and so on in one of PLACES, or in both; the capstone
            is taken from the first that has it.

    Returns:
        the names of the parts that are the reader's own, and of those that are borrowed.

    Raises:
        FileNotFoundError: there is no capstone.
        ValueError: its cell of parts has been written in by hand, or is gone.
    """
    candidates = [folder / place / CAPSTONE for place in PLACES]
    path = next((path for path in candidates if path.exists()), None)
    if path is None:
        raise FileNotFoundError(f"no capstone: expected {' or '.join(map(str, candidates))}")
    notebook = nbformat.read(path, as_version=4)
    cells = {_name(cell): number for number, cell in enumerate(notebook.cells)}
    if CELL not in cells or CHECK not in cells:
        raise ValueError(f"{path} has no cell for the parts: is it the notebook that came with the course?")
    cell, text = notebook.cells[cells[CELL]], read_text(_folder("19") / "text.py")["19.parts"]
    if not cell.source.startswith(BROUGHT) and cell.source.strip() != text.planted.strip():
        raise ValueError(f"{path}: the cell of the parts is written in by hand, and stays; empty it to have it filled")
    written = {name: _written(folder, name) for name in PARTS.values()}
    own = {name: code for name, code in written.items() if code is not None}
    last_line = text.planted.strip().splitlines()[-1]
    cell.source = BROUGHT + "".join(f"\n{code.strip()}\n\n" for code in own.values()) + f"\n{last_line}"
    borrowed = [name for name in written if name not in own]
    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith(BORROWED)]
    if borrowed:
        codes = "".join(f"\n{read_text(_folder(name) / 'text.py')[name].solution}\n" for name in borrowed)
        place = next(n for n, cell in enumerate(notebook.cells) if _name(cell) == CHECK)
        notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(f"{BORROWED}{codes}".strip()))
    with replacing(path) as temporary:
        nbformat.write(notebook, temporary)
    return list(own), borrowed


def _written(folder: Path, name: str) -> str | None:
    """The reader's code for an exercise, if there is some that passes the visible check; of the newest edition."""
    topic = _folder(name).name.removeprefix("a")
    found = [path for place in PLACES for path in (folder / place / topic).glob(f"{topic}*.ipynb")]
    for path in sorted(found, key=lambda path: -path.stat().st_mtime):
        for cell in nbformat.read(path, as_version=4).cells:
            if _name(cell) == name.replace(".", "-") and _passes(name, cell.source):
                return cell.source
    return None


def _passes(name: str, code: str) -> bool:
    try:
        with redirect_stdout(StringIO()):
            check(name, read_text(_folder(name) / "text.py")[name].answer(code))
    except Exception:  # whatever unfinished code raises
        return False
    return True


def _folder(name: str) -> Path:
    return next(folder for folder in FOLDERS if folder.name.startswith(f"a{name[:2]}_"))


def _name(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def main(arguments: list[str] | None = None) -> int:
    """Brings the parts into the copies of a folder, and says which ones are borrowed."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.parts", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of your copies, my_course for example, or that of 19_capstone/")
    folder = parser.parse_args(arguments).folder
    try:
        own, borrowed = bring_parts(folder)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(own)} parts are yours: {', '.join(own) or 'none'}")
    if borrowed:
        print(f"{len(borrowed)} are borrowed from the solutions: {', '.join(borrowed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
