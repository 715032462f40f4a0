"""From the instructor's version to the release: solutions become stubs, or the mistake that is to be found."""

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions

STUB = "raise NotImplementedError"


class ClearToStubs(ClearSolutions):
    """Replaces each solution by the stub that its cell's metadata names, else by one that raises NotImplementedError."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        """One cell; see nbgrader's ClearSolutions."""
        stub = cell.metadata.pop("planted", STUB)
        self.code_stub = {**self.code_stub, "python": stub}
        return super().preprocess_cell(cell, resources, index)
