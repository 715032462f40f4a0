"""The reader's own copies: lessons and assignments without answers, terms, questions; kept when a new edition comes.

    notebooks/NN_topic.ipynb -> bring -> my_course/NN_topic.ipynb, to be run and written in

What the reader has written in is never written over: a new edition of that notebook or page is put beside it.

Usage: python -m notebooks.copies FOLDER
"""

import argparse
import hashlib
import json
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.reader import NotJSONError

from course_lib.storage import replacing

EDITION = Path(__file__).resolve().parent
DELIVERED = ".delivered.json"  # in the reader's folder: for each notebook and page the fingerprint that it came with
WRITTEN_IN = ("[0-9][0-9]_*.ipynb", "assignments/release/*/*.ipynb", "*.md")


def bring(folder: Path, edition: Path = EDITION) -> list[str]:
    """Brings every notebook and page of the edition into the reader's folder, as far as it is not there yet.

    A notebook in which only outputs differ from how it came counts as not written in: the new edition takes its place.

    Args:
        folder: the reader's; is made where there is none.
        edition: with the executed lessons, their pages and records, and the assignments for students.

    Returns:
        a line for each notebook or page of the reader's that is kept although the edition has a newer one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    memory = folder / DELIVERED
    delivered = json.loads(memory.read_text(encoding="utf-8")) if memory.exists() else {}
    kept = []
    for source in sorted(path for pattern in WRITTEN_IN for path in edition.glob(pattern)):
        name = source.relative_to(edition).as_posix()
        came_with = fingerprint(source)
        if delivered.get(name) == came_with and (folder / name).exists():
            continue
        place = _free_place(folder, name, delivered)
        _copy(source, folder / place)
        delivered |= {name: came_with, place: came_with}
        if place != name:
            kept.append(f"{folder / name} is yours and stays as it is; the new edition is beside it: {place}")
    _bring_what_is_shown(folder, edition)
    with replacing(memory) as temporary:
        temporary.write_text(json.dumps(delivered, indent=1) + "\n", encoding="utf-8")
    return kept


def fingerprint(path: Path) -> str:
    """Of a page, or of what is written in a notebook's cells; outputs and metadata do not count."""
    if path.suffix == ".ipynb":
        text = json.dumps([[cell.cell_type, cell.source] for cell in nbformat.read(path, as_version=4).cells])
    else:
        text = path.read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def without_answers(notebook: NotebookNode) -> NotebookNode:
    """The notebook before it was run, so that no prediction has its answer below."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def _free_place(folder: Path, name: str, delivered: dict[str, str]) -> str:
    """The notebook's own name, or one beside it: the first under which nothing of the reader's would be lost."""
    path, number = Path(name), 1
    place = name
    while (folder / place).exists() and _written_in(folder / place, delivered.get(place)):
        number += 1
        place = path.with_name(f"{path.stem}-edition-{number}{path.suffix}").as_posix()
    return place


def _written_in(path: Path, came_with: str | None) -> bool:
    try:
        return fingerprint(path) != came_with
    except (NotJSONError, nbformat.ValidationError, AttributeError, UnicodeDecodeError):
        return True  # whatever it is, it is not ours


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as temporary:
        if source.suffix == ".ipynb":
            nbformat.write(without_answers(nbformat.read(source, as_version=4)), temporary)
        else:
            shutil.copyfile(source, temporary)


def _bring_what_is_shown(folder: Path, edition: Path) -> None:
    """The records that lessons plot, and the maps below their titles; nobody writes in them."""
    for source in (*edition.glob("records/*.json"), *edition.glob("maps/*.svg")):
        place = folder / source.relative_to(edition)
        place.parent.mkdir(exist_ok=True)
        with replacing(place) as temporary:
            shutil.copyfile(source, temporary)


def main() -> int:
    """Brings the edition of this checkout; prints what is kept."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.copies", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for your copies, my_course for example")
    folder = parser.parse_args().folder
    try:
        print("".join(f"{line}\n" for line in bring(folder)), end="")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
