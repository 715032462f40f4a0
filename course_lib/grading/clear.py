"""From the instructor's version to the release: solutions become stubs, or the mistake that is to be found."""

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions


class ClearToStubs(ClearSolutions):
    """Replaces a solution by a stub that raises, or its whole cell by what its metadata has planted."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        """Clears one cell; see nbgrader's ClearSolutions."""
        if planted := cell.metadata.pop("planted", None):
            cell.source = planted
            return cell, resources
        self.code_stub = {**self.code_stub, "python": "raise NotImplementedError"}
        return super().preprocess_cell(cell, resources, index)
