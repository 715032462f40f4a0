"""nbgrader's steps, with ours in their places; nbgrader_config.py and the builder of releases take them from here."""

from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.preprocessors import ClearSolutions, DeduplicateIds, Execute, SaveCells

from course_lib.grading.clear import ClearToStubs
from course_lib.grading.execute import ContainedExecute
from course_lib.grading.personal import OwnTexts
from course_lib.grading.rebuild import Rebuild


def _instead(steps: list[type], old: type, new: type) -> list[type]:
    return [new if step is old else step for step in steps]


RELEASE = _instead(GenerateAssignment.preprocessors.default(), ClearSolutions, ClearToStubs)
SANITIZE = [*_instead(Autograde.sanitize_preprocessors.default(), DeduplicateIds, Rebuild), OwnTexts]
GRADE = _instead(Autograde.autograde_preprocessors.default(), Execute, ContainedExecute)


class Sanitize(SanitizeHTML):
    """Takes from a notebook whatever a browser would run; folded hints stay folded."""

    def __init__(self, **options):
        super().__init__(**options)
        self.enabled, self.tags = True, [*self.tags, "details", "summary"]


FEEDBACK = [Sanitize, *GenerateFeedback.preprocessors.default()]


def released(notebook: NotebookNode) -> NotebookNode:
    """What students get of an instructor's notebook: as nbgrader's command makes it, without a gradebook."""
    resources: dict = {}
    for step in RELEASE:
        if step is not SaveCells:
            notebook, resources = step()(notebook, resources)
    return notebook
