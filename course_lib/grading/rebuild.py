"""A submission is graded on the released notebook, into which the learner's own cells are put."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from course_lib.grading.personal import released_to
from course_lib.grading.prose import text_cell
from course_lib.grading.reading import defined, statements


class Rebuild(NbGraderPreprocessor):
    """Undoes whatever was done to cells that are not the learner's: deleted, moved, edited, doubled or forged ones."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """The released notebook with the submitted solutions in it; see `rebuild`."""
        names = resources["nbgrader"]
        released = released_to(names.get("student"), names["assignment"], names["notebook"])
        return rebuild(nbformat.read(released, as_version=4), nb), resources


def recognized(released: NotebookNode, submitted: NotebookNode, *, by_content: bool = True) -> dict[str, int]:
    """Maps the names of the release's solution cells to the numbers of the submitted cells that take their places.

    A cell is known by nbgrader's name for it, else by its id. Where an editor has dropped both, code is known by what
    it defines, and an answer in words by the cell that it follows, unless `by_content` is False. The first one of
    several counts, and one of another type is none.
    """
    wanted = {_name(cell): cell for cell in released.cells if _name(cell) and _is_solution(cell)}
    found: dict[str, int] = {}
    for known in (_name, lambda cell: cell.get("id")):
        places = {known(cell): name for name, cell in wanted.items() if known(cell)}
        for number, cell in enumerate(submitted.cells):
            name = places.get(known(cell))
            if name and cell.cell_type == wanted[name].cell_type and number not in found.values():
                found.setdefault(name, number)
    for name, number in _by_content(released, submitted, set(wanted) - found.keys()) if by_content else ():
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
    parts = statements(cell.source) if cell.cell_type == "code" else []
    return {name for statement in parts for name in defined(statement)}


def rebuild(released: NotebookNode, submitted: NotebookNode) -> NotebookNode:
    """Puts a learner's cells into the released notebook.

    Args:
        released: what the learner was given.
        submitted: what came back, its cells in any state.

    Returns:
        All cells of the release in their order, each solution with the submitted text, and its pictures, if its cell is
        recognized; the learner's additional cells after the cell that they were submitted after.
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
    numbers = {name: number for number, name in solutions.items()}
    rebuilt = nbformat.from_dict({**released, "cells": []})
    rebuilt.cells.extend(added[None])
    for cell in released.cells:
        name = _name(cell)
        answer = _whole(submitted.cells, numbers[name], cell.source) if name in numbers else {}
        taken = {part: answer[part] for part in ("source", "attachments") if part in answer}
        rebuilt.cells.append(nbformat.from_dict({**cell, **taken}))
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
    return nbformat.v4.new_code_cell(cell.source) if cell.cell_type == "code" else text_cell(cell)


def _whole(cells: list[NotebookNode], first: int, stub: str) -> NotebookNode:
    """An answer with what an editor has split from it: further cells of its name, before a cell of another name.

    Where both together are no Python, such as with a copy that was left half written, those count that are.

    Args:
        cells: of the submission.
        first: number of the answer's first cell.
        stub: what was given in its place; a part that is still that is left out.
    """
    name, kind = _name(cells[first]), cells[first].cell_type
    rest = takewhile(lambda cell: _name(cell) in (name, None), cells[first + 1 :])
    parts = [cells[first], *(cell for cell in rest if name and _name(cell) == name and cell.cell_type == kind)]
    parts = [cell for cell in parts if cell.source != stub] or parts[:1]
    source = "\n\n".join(cell.source for cell in parts)
    if kind == "code" and not _is_python(source):
        parts = [cell for cell in parts if _is_python(cell.source)] or parts
        source = "\n\n".join(cell.source for cell in parts)
    attached = {key: item for cell in parts for key, item in _attached(cell).items()}
    return _plain(nbformat.from_dict({"cell_type": kind, "source": source, "attachments": attached}))


def _is_python(source: str) -> bool:
    from IPython.core.inputtransformer2 import TransformerManager  # a teacher has it; the library alone does not

    with suppress(SyntaxError):
        ast.parse(TransformerManager().transform_cell(source))  # with IPython's % and !
        return True
    return False


def _attached(cell: NotebookNode) -> dict:
    found = cell.get("attachments")
    return found if isinstance(found, dict) else {}
