"""The course as web pages: lays out what the book shows in one folder, for Sphinx to read; nothing is executed.

    lessons, assignments, docs, docs/book, docstrings -> stage -> build/book-source -> Sphinx -> build/book

Pages keep their places in the checkout, so that their links stay right.

Usage: python -m notebooks.source.book FOLDER
"""

import argparse
import importlib.util
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from notebooks.source.book_alive import enliven
from notebooks.source.book_alive import files as alive
from notebooks.source.book_reference import reference
from notebooks.source.readme import lessons_table
from notebooks.source.terms import INDEX, indexed

ROOT = Path(__file__).resolve().parents[2]
FRAME = ROOT / "docs" / "book"  # the settings of Sphinx, the style, and the pages that only the book has
PAGES = (
    "notebooks/[0-9][0-9]_*.ipynb",
    "notebooks/assignments/release/*/*.ipynb",
    "notebooks/*.md",
    "notebooks/assignments/*.md",
    "course_lib/pretrained/*/README.md",
    "docs/*.md",
    "C*.md",
)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
LESSONS = "<!-- lessons -->"  # where the first page has the table
MATHJAX = "sphinx-mathjax-offline"  # a package that holds the program
NEEDED_OF_MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2/*.woff")
PROOF = re.compile(r"^\s*assert |\bassert_\w+\(", re.MULTILINE)
HOME = '<a href="../index.html#run-it-at-home">Run the lesson at home</a>'
NOTES = {  # below the first state of what can be operated
    "Predict: ": f"Settle on an answer before you read on. {HOME} to note it and to see what came of it.",
    "Predictions: ": f"{HOME} to have your own answers here.",
    "": f"This is the first state of a widget. {HOME} to operate it.",
}


def present(notebook: NotebookNode) -> NotebookNode:
    """What a page shows of a stored notebook: figures with their words, folded cells with a title, notes of widgets."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        about: dict = {"code_prompt_show": _title(cell)}
        for output in list(cell.outputs):
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                about["image"] = {"alt": alt}
            if (kind := _kind(output)) is not None:
                # A script that lets the widget answer on the page finds its cell by this name.
                html = f'<p class="course-widget" data-cell="{cell.id}">{NOTES[kind]}</p>'
                cell.outputs.append(nbformat.v4.new_output("display_data", {"text/html": html}))
                if kind:  # the code says what the output says
                    cell.metadata.setdefault("tags", []).append("hide-input")
        cell.metadata["mystnb"] = about
    return notebook


def _title(cell: NotebookNode) -> str:
    """Of a folded cell."""
    if cell.outputs:
        return "The code of this output"
    return "The proof" if PROOF.search(cell.source) else "More code"


def _kind(output: NotebookNode) -> str | None:
    """How the plain text of a widget begins, which is one of NOTES; of a figure it is in angle brackets."""
    data = output.get("data", {})
    plain = data.get("text/plain", "<")
    if plain.startswith("<") or not {"image/png", "text/html"} & data.keys():
        return None
    return next(begin for begin in NOTES if plain.startswith(begin))


def slug(heading: str) -> str:
    """The anchor of a heading, as JupyterLab names it."""
    return heading.strip().replace(" ", "-")


def stage(folder: Path) -> None:
    """Fills the folder with all that the book is made of; what has not changed keeps its time, the rest goes."""
    wanted: dict[str, str | Path] = {path.relative_to(FRAME).as_posix(): path for path in _files(FRAME)}
    wanted["index.md"] = (FRAME / "index.md").read_text(encoding="utf-8").replace(LESSONS, lessons_table())
    wanted |= {f"api/{name}.rst": text for name, text in reference().items()}
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    for path in pages:
        wanted[path.relative_to(ROOT).as_posix()] = _page(path)
        wanted |= {beside.relative_to(ROOT).as_posix(): beside for beside in _linked(path) if beside not in pages}
    wanted |= {f"_static/mathjax/{name}": path for name, path in _mathjax().items()}
    wanted |= {f"_static/alive/{name}": content for name, content in alive().items()}
    for name, content in wanted.items():
        _keep(folder / name, content)
    for path in _files(folder):
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()


def _page(path: Path) -> str:
    if path.suffix != ".ipynb":
        text = path.read_text(encoding="utf-8")
        return indexed(text) if path == INDEX else text
    notebook = present(nbformat.read(path, as_version=4))
    enliven(path.relative_to(ROOT).as_posix(), notebook)
    return nbformat.writes(notebook, version=4)


def _linked(path: Path) -> list[Path]:
    """The files of the checkout that a page leads to."""
    found = (path.parent / link for link in LINK.findall(path.read_text(encoding="utf-8")))
    return [target.resolve() for target in found if target.is_file()]


def _mathjax() -> dict[str, Path]:
    spec = importlib.util.find_spec(MATHJAX)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"expected the package {MATHJAX}, which the extra [book] brings")
    folder = Path(spec.origin).parent / "static" / "mathjax"
    return {path.relative_to(folder).as_posix(): path for name in NEEDED_OF_MATHJAX for path in folder.glob(name)}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def _keep(path: Path, content: str | Path) -> None:
    """Writes what is not there yet: Sphinx reads a page again when its file is newer."""
    data = content.encode() if isinstance(content, str) else content.read_bytes()
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def main() -> None:
    """Lays out the book in the folder of the command line."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.source.book", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for the sources of the book, build/book-source for example")
    stage(parser.parse_args().folder)


if __name__ == "__main__":
    main()
