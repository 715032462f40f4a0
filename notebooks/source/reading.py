"""How long a lesson takes to read: 150 words of text a minute, and ten lines of code that are not folded away.

    **Time**: {minutes} minutes to read  ->  **Time**: 45 minutes to read
"""

from nbformat import NotebookNode

PLACE = "{minutes}"


def code_lines(cell: NotebookNode) -> list[str]:
    """The lines of a cell that are not empty."""
    return [line for line in cell.source.splitlines() if line.strip()]


def visible_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells that are not folded away."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if "hide-input" not in cell.metadata.get("tags", [])]


def minutes_to_read(notebook: NotebookNode) -> float:
    """Of the whole notebook."""
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    return words / 150 + sum(len(code_lines(cell)) for cell in visible_cells(notebook)) / 10


def tell_time(notebook: NotebookNode) -> NotebookNode:
    """Writes the minutes, in fives, where the first cell asks for them."""
    minutes = 5 * max(1, round(minutes_to_read(notebook) / 5))
    notebook.cells[0].source = notebook.cells[0].source.replace(PLACE, str(minutes))
    return notebook
