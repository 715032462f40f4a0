"""A submission is graded on the released notebook, into which the learner's own cells are put."""

import ast
from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from course_lib.grading.personal import released_to


class Rebuild(NbGraderPreprocessor):
    """Undoes whatever was done to cells that are not the learner's: deleted, moved, edited, doubled or forged ones."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """The released notebook with the submitted solutions in it; see `rebuild`."""
        names = resources["nbgrader"]
        released = released_to(names.get("student"), names["assignment"], names["notebook"])
        return rebuild(nbformat.read(released, as_version=4), nb), resources


def recognized(released: NotebookNode, submitted: NotebookNode) -> dict[str, int]:
    """Maps the names of the release's solution cells to the numbers of the submitted cells that take their places.

    A cell is known by nbgrader's name for it, else by its id. Where an editor has dropped both, code is known by what
    it defines, and an answer in words by the cell that it follows. The first one of several counts, and one of another
    type is none.
    """
    wanted = {_name(cell): cell for cell in released.cells if _name(cell) and _is_solution(cell)}
    found: dict[str, int] = {}
    for known in (_name, lambda cell: cell.get("id")):
        places = {known(cell): name for name, cell in wanted.items() if known(cell)}
        for number, cell in enumerate(submitted.cells):
            name = places.get(known(cell))
            if name and cell.cell_type == wanted[name].cell_type and number not in found.values():
                found.setdefault(name, number)
    for name, number in _by_content(released, submitted, set(wanted) - found.keys()):
        if number not in found.values():
            found.setdefault(name, number)
    return found


def _by_content(released: NotebookNode, submitted: NotebookNode, names: set[str]) -> Iterator[tuple[str, int]]:
    """Pairs of a solution cell and a submitted cell without a name that could be meant for it."""
    own = {cell.source for cell in released.cells if not _is_solution(cell)}
    unnamed = [n for n, cell in enumerate(submitted.cells) if not _name(cell) and cell.source not in own]
    for before, cell in zip(released.cells, released.cells[1:], strict=False):
        if _name(cell) not in names:
            continue
        if cell.cell_type == "code":
            meant = [n for n in unnamed if _defined(cell) & _defined(submitted.cells[n])]
        else:
            heads = [n for n, other in enumerate(submitted.cells) if other.source == before.source]
            meant = [n for n in unnamed if n - 1 in heads and submitted.cells[n].cell_type == "markdown"]
        yield from ((_name(cell), n) for n in meant)


def _defined(cell: NotebookNode) -> set[str]:
    """The names that a code cell defines at its top."""
    try:
        statements = ast.parse(cell.source).body if cell.cell_type == "code" else []
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found = {node.name for node in statements if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in statements:
        targets = node.targets if isinstance(node, ast.Assign) else []
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def rebuild(released: NotebookNode, submitted: NotebookNode) -> NotebookNode:
    """Puts a learner's cells into the released notebook.

    Args:
        released: what the learner was given.
        submitted: what came back, its cells in any state.

    Returns:
        All cells of the release in their order, each solution with the submitted text if its cell is recognized; the
        learner's additional cells after the cell that they were submitted after.
    """
    names = {_name(cell) for cell in released.cells if _name(cell)}
    given = {cell.source for cell in released.cells}
    solutions = {number: name for name, number in recognized(released, submitted).items()}
    added: dict[str | None, list[NotebookNode]] = {None: []}
    last = None
    for number, cell in enumerate(submitted.cells):
        name = solutions.get(number, _name(cell))
        if name in names:
            last = name
        elif cell.source not in given and cell.cell_type in ("code", "markdown"):
            added.setdefault(last, []).append(_plain(cell))
    sources = {name: submitted.cells[number].source for number, name in solutions.items()}
    rebuilt = nbformat.from_dict({**released, "cells": []})
    rebuilt.cells.extend(added[None])
    for cell in released.cells:
        name = _name(cell)
        rebuilt.cells.append(nbformat.from_dict({**cell, "source": sources.get(name, cell.source)}))
        rebuilt.cells.extend(added.get(name, []) if name else [])
    for number, cell in enumerate(rebuilt.cells):
        cell["id"] = f"cell-{number}"
    return rebuilt


def _name(cell: NotebookNode) -> str | None:
    marks = cell.metadata.get("nbgrader") if isinstance(cell.get("metadata"), dict) else None
    name = marks.get("grade_id") if isinstance(marks, dict) else None
    return name if isinstance(name, str) else None


def _is_solution(cell: NotebookNode) -> bool:
    return bool(_name(cell)) and cell.metadata.nbgrader.get("solution", False)


def _plain(cell: NotebookNode) -> NotebookNode:
    make = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
    return make(cell.source)
