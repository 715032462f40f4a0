"""Renders the text source of each lesson into the notebook that students open.

    source/NN_topic.py -> read_source -> transforms -> assign_ids -> execute -> write -> NN_topic.ipynb

A lesson whose notebook already has exactly these cells, executed, is left alone, so that rebuilding an
unchanged source changes no byte. Where only prose changed, the outputs of the same code stay.
Another rendering of the same source (an assignment, its solution) is another tuple of transforms and another target.

Usage: python -m notebooks.source.build_lessons [--force] [08 10 ...]
"""

import argparse
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import jupytext
import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbformat import NotebookNode
from nbformat.reader import NotJSONError

from course_lib.storage import replacing
from notebooks.source.citations import cite
from notebooks.source.course_map import show_where
from notebooks.source.reading import tell_time

Transform = Callable[[NotebookNode], NotebookNode]

SOURCES = Path(__file__).resolve().parent
NOTEBOOKS = SOURCES.parent
CELL_TIMEOUT = 900  # seconds, as nbval's in the Makefile
TAGS = {"nbval-check-output", "hide-input", "hide-output"}
TAGS |= {"specification", "solution", "check", "planted", "answer", "home"}  # of assignments
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # No Python version: it would differ from machine to machine.
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class BuildError(Exception):
    """A lesson could not be built; its old notebook is untouched."""


def read_source(path: Path) -> NotebookNode:
    """Maps a py:percent text to a notebook without outputs, ids or pairing.

    Args:
        path: source of one lesson, `NN_topic.py`.

    Returns:
        Notebook whose cells carry only what the text says.

    Raises:
        BuildError: the text has an empty cell or a tag that nothing knows.
    """
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.metadata.pop("lines_to_next_cell", None)  # a note of jupytext to itself
        if not cell.source.strip():
            raise BuildError(f"cell {number}: expected text, got an empty cell")
        unknown = set(cell.metadata.get("tags", [])) - TAGS
        if unknown:
            raise BuildError(f"cell {number}: expected tags among {sorted(TAGS)}, got {sorted(unknown)}")
    return notebook


def assign_ids(notebook: NotebookNode) -> NotebookNode:
    """Gives each cell an id that depends on its own text alone, so that an edit elsewhere keeps it.

    A cell may name its id itself: `# %% id="..."`. Equal cells are told apart by counting.

    Raises:
        BuildError: two cells name the same id.
    """
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        text = f"{cell.cell_type}\n{cell.source}"
        key = f"{text}\n{seen[text]}"
        seen[text] += 1
        cell.id = cell.metadata.pop("id", None) or hashlib.sha256(key.encode()).hexdigest()[:12]
    repeated = [name for name, count in Counter(cell.id for cell in notebook.cells).items() if count > 1]
    if repeated:
        raise BuildError(f"expected each cell id once, got {repeated} more than once")
    return notebook


FOLDED = {"hide-input": "source_hidden", "hide-output": "outputs_hidden"}  # our tags, and JupyterLab's names


def fold(notebook: NotebookNode) -> NotebookNode:
    """Folds away what is tagged so; a click opens it."""
    for cell in notebook.cells:
        folded = {name: True for tag, name in FOLDED.items() if tag in cell.metadata.get("tags", [])}
        if folded:
            cell.metadata["jupyter"] = folded
    return notebook


STUDENT: tuple[Transform, ...] = (show_where, cite, tell_time, fold)


def generate(source: Path, transforms: Iterable[Transform] = STUDENT) -> NotebookNode:
    """The notebook that a source stands for, not yet executed.

    Args:
        source: text of the lesson.
        transforms: applied in order; ids come last.
    """
    notebook = read_source(source)
    try:
        for transform in transforms:
            notebook = transform(notebook)
    except ValueError as error:
        raise BuildError(str(error)) from error
    return assign_ids(notebook)


def differences(generated: NotebookNode, stored: NotebookNode) -> list[str]:
    """Says in words how a stored notebook differs from what its source generates, outputs apart.

    Returns:
        One line a difference; none when the stored notebook is fresh and fully executed.
    """
    found = []
    if stored.metadata != generated.metadata:
        found.append("notebook metadata differs")
    if len(stored.cells) != len(generated.cells):
        found.append(f"expected {len(generated.cells)} cells, got {len(stored.cells)}")
    for number, (ours, theirs) in enumerate(zip(generated.cells, stored.cells, strict=False)):
        found += [
            f"cell {number}: {field} differs"
            for field in ("cell_type", "id", "source", "metadata")
            if ours.get(field) != theirs.get(field)
        ]
        if theirs.cell_type == "code" and theirs.execution_count is None:
            found.append(f"cell {number}: never executed")
    return found


class _ThisEnvironment(KernelSpecManager):
    """Starts this very interpreter, whatever kernels the user has registered."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(**get_kernel_dict())


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Runs all cells in a fresh kernel of this environment and stores their outputs.

    Args:
        notebook: generated notebook; it is filled in place.
        folder: working directory of the kernel.

    Raises:
        BuildError: a cell raised, exceeded CELL_TIMEOUT or killed the kernel.
    """
    current = {"index": 0}
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_spec_manager=_ThisEnvironment()),
        timeout=CELL_TIMEOUT,
        resources={"metadata": {"path": str(folder)}},
        coalesce_streams=True,  # a progress bar is stored as its last line
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],  # hides a warning that the kernel speaks plain TCP
        on_cell_start=lambda cell, cell_index: current.update(index=cell_index),
    )
    try:
        client.execute(cleanup_kc=True)
    except (CellControlSignal, DeadKernelError) as error:
        raise BuildError(f"cell {current['index']}\n{ANSI.sub('', str(error))}") from error
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [out for out in map(_without_view, cell.outputs) if out is not None]
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def _without_view(output: NotebookNode) -> NotebookNode | None:
    """Of a widget only its picture or its HTML: without its state the view shows an error, and its ids are random."""
    data = output.get("data", {})
    if WIDGET_VIEW not in data:
        return output
    if not any(kind.startswith("image/") or kind == "text/html" for kind in data):
        return None
    del data[WIDGET_VIEW]
    return output


def write(notebook: NotebookNode, path: Path) -> None:
    """Replaces a notebook file in one step; an interrupted build leaves the old one."""
    nbformat.validate(notebook)
    with replacing(path) as partial:
        partial.write_text(nbformat.writes(notebook, version=4) + "\n", encoding="utf-8", newline="\n")


def build(
    source: Path, target: Path, *, transforms: Iterable[Transform] = STUDENT, force: bool = False
) -> bool:
    """Brings one notebook up to date with its source.

    Args:
        source: text of the lesson.
        target: notebook file; the kernel works in its folder.
        transforms: the rendering, see `generate`.
        force: execute even when nothing changed.

    Returns:
        Whether the notebook was written.

    Raises:
        BuildError: naming the lesson, the cell and the error; the target is untouched.
    """
    try:
        generated = generate(source, transforms)
        stored = None if force else _stored(target)
        if stored is not None and not differences(generated, stored):
            return False
        if stored is None or not _carry_outputs(stored, generated):
            execute(generated, target.parent)
        write(generated, target)
    except (BuildError, nbformat.ValidationError) as error:
        raise BuildError(f"{source.name}, {error}") from error
    return True


def _stored(target: Path) -> NotebookNode | None:
    try:
        return nbformat.read(target, as_version=4)
    except (FileNotFoundError, NotJSONError, nbformat.ValidationError):
        return None  # missing or damaged


def _carry_outputs(stored: NotebookNode, generated: NotebookNode) -> bool:
    """Gives the generated code cells the stored outputs, if the code is the same from the first cell to the last."""
    ours, theirs = ([cell for cell in book.cells if cell.cell_type == "code"] for book in (generated, stored))
    same = [(cell.source, cell.metadata) for cell in ours] == [(cell.source, cell.metadata) for cell in theirs]
    if not same or any(cell.execution_count is None for cell in theirs):
        return False
    for cell, executed in zip(ours, theirs, strict=True):
        cell.execution_count, cell.outputs = executed.execution_count, executed.outputs
    return True


def lessons(numbers: Sequence[str] = ()) -> list[Path]:
    """The sources of all lessons, or of those whose file name starts with one of the numbers."""
    found = sorted(SOURCES.glob("[0-9][0-9]_*.py"))
    for number in numbers:
        if not any(path.name.startswith(number) for path in found):
            raise BuildError(f"expected a lesson among {[path.stem for path in found]}, got {number!r}")
    return [path for path in found if not numbers or path.name.startswith(tuple(numbers))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the lessons named on the command line, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="beginning of the file name, such as 08; default all")
    parser.add_argument("--force", action="store_true", help="execute even what did not change")
    options = parser.parse_args(arguments)
    try:
        for source in lessons(options.lesson):
            built = build(source, NOTEBOOKS / f"{source.stem}.ipynb", force=options.force)
            print(f"{source.stem}: {'built' if built else 'unchanged'}", flush=True)
    except BuildError as error:
        sys.exit(f"{error}\nnot built; the old notebook, if any, is untouched")


if __name__ == "__main__":
    main()
