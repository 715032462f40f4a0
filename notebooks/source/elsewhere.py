"""The lessons for places that have only the notebook, such as Colab: a first cell finds the course or installs it.

    notebooks/NN_topic.ipynb, address of the repository -> elsewhere -> build/elsewhere/NN_topic.ipynb

At home the cell does nothing. Links and pictures lead to the repository, because nothing lies beside the notebook.

Usage: python -m notebooks.source.elsewhere https://github.com/OWNER/REPOSITORY build/elsewhere
"""

import argparse
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.storage import replacing
from notebooks.copies import without_answers

LESSONS = Path(__file__).resolve().parents[1]
SETUP = """\
# Finds the course, or fetches and installs it where there is only this notebook. At home this does nothing.
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("course_lib") is None:
    if not os.path.isdir("course"):
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "@ADDRESS@", "course"], check=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "./course[course]"], check=True)
    importlib.invalidate_caches()
if os.path.isdir("course/notebooks"):
    os.chdir("course/notebooks")  # where the records are that lessons plot; a kernel that starts again forgets it
"""
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|attachment:)([^)\s]+)\)")


def elsewhere(notebook: NotebookNode, address: str) -> NotebookNode:
    """A lesson that has not run, with the first cell, and links that lead to the repository.

    Args:
        notebook: a lesson; it is changed in place.
        address: of the repository, as a browser and git take it.
    """
    notebook = without_answers(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda match: _far(match, address), cell.source)
    setup = nbformat.v4.new_code_cell(SETUP.replace("@ADDRESS@", address), id="find-the-course")
    notebook.cells.insert(1, setup)
    return notebook


def _far(link: re.Match, address: str) -> str:
    """A link from the lessons' folder, from anywhere."""
    picture, words, target = link.groups()
    path, mark, anchor = target.partition("#")
    whole = Path("notebooks", path).as_posix()
    while "/../" in whole:
        whole = re.sub(r"[^/]+/\.\./", "", whole, count=1)
    return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/HEAD/{whole}{mark}{anchor})"


def main() -> None:
    """Writes all lessons into a folder."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.source.elsewhere", description=__doc__.splitlines()[0])
    parser.add_argument("address", help="of the repository: https://github.com/OWNER/REPOSITORY")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if not re.fullmatch(r"https://[\w.-]+/[\w./-]+", options.address):
        parser.error(f"expected an address like https://github.com/OWNER/REPOSITORY, got {options.address!r}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(LESSONS.glob("[0-9][0-9]_*.ipynb")):
        with replacing(options.folder / path.name) as temporary:
            nbformat.write(elsewhere(nbformat.read(path, as_version=4), options.address.rstrip("/")), temporary)
    print(options.folder)


if __name__ == "__main__":
    main()
