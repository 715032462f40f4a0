"""nbgrader's configuration: a submission is rebuilt on the released notebook, run contained and judged from outside."""

from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.preprocessors import ClearSolutions, DeduplicateIds, Execute

from course_lib.grading.clear import ClearToStubs
from course_lib.grading.execute import ContainedExecute
from course_lib.grading.rebuild import Rebuild


def instead(steps, old, new):
    """The steps of a converter with one of them replaced."""
    return [new if step is old else step for step in steps]


c = get_config()  # noqa: F821  (given by nbgrader)
c.CourseDirectory.course_id = "transformer"
c.GenerateAssignment.preprocessors = instead(GenerateAssignment.preprocessors.default(), ClearSolutions, ClearToStubs)
c.Autograde.sanitize_preprocessors = instead(Autograde.sanitize_preprocessors.default(), DeduplicateIds, Rebuild)
c.Autograde.autograde_preprocessors = instead(Autograde.autograde_preprocessors.default(), Execute, ContainedExecute)
c.Autograde.pre_convert_hook = "course_lib.grading.intake.receive"
