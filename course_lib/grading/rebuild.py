"""A submission is graded on the released notebook, into which the learner's own cells are put."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor


class Rebuild(NbGraderPreprocessor):
    """Undoes whatever was done to cells that are not the learner's: deleted, moved, edited, doubled or forged ones."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """The released notebook with the submitted solutions in it; see `rebuild`."""
        names = resources["nbgrader"]
        released = Path("release") / names["assignment"] / f"{names['notebook']}.ipynb"
        return rebuild(nbformat.read(released, as_version=4), nb), resources


def rebuild(released: NotebookNode, submitted: NotebookNode) -> NotebookNode:
    """Puts a learner's cells into the released notebook.

    Args:
        released: what the learner was given.
        submitted: what came back, its cells in any state.

    Returns:
        All cells of the release in their order, each solution with the submitted text if its cell is still there, of
        the same type and only once; the learner's additional cells after the cell that they were submitted after.
    """
    skeleton = {_name(cell): cell for cell in released.cells if _name(cell)}
    given = {cell.source for cell in released.cells}
    solutions: dict[str, str] = {}
    added: dict[str | None, list[NotebookNode]] = {None: []}
    last = None
    for cell in submitted.cells:
        name = _name(cell)
        if name in skeleton:
            last = name
            if _is_solution(skeleton[name]) and cell.cell_type == skeleton[name].cell_type:
                solutions.setdefault(name, cell.source)
        elif cell.source not in given and cell.cell_type in ("code", "markdown"):
            added.setdefault(last, []).append(_plain(cell))
    rebuilt = nbformat.from_dict({**released, "cells": []})
    rebuilt.cells.extend(added[None])
    for cell in released.cells:
        name = _name(cell)
        rebuilt.cells.append(nbformat.from_dict({**cell, "source": solutions.get(name, cell.source)}))
        rebuilt.cells.extend(added.get(name, []) if name else [])
    for number, cell in enumerate(rebuilt.cells):
        cell["id"] = f"cell-{number}"
    return rebuilt


def _name(cell: NotebookNode) -> str | None:
    marks = cell.metadata.get("nbgrader") if isinstance(cell.get("metadata"), dict) else None
    name = marks.get("grade_id") if isinstance(marks, dict) else None
    return name if isinstance(name, str) else None


def _is_solution(cell: NotebookNode) -> bool:
    return cell.metadata.nbgrader.get("solution", False)


def _plain(cell: NotebookNode) -> NotebookNode:
    make = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
    return make(cell.source)
