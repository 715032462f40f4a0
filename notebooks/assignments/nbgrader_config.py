"""nbgrader's configuration: a submission is rebuilt on the released notebook, run contained and judged from outside."""

from course_lib.grading import FEEDBACK, GRADE, RELEASE, SANITIZE

c = get_config()  # noqa: F821  (given by nbgrader)
c.CourseDirectory.course_id = "transformer"
c.GenerateAssignment.preprocessors = RELEASE
c.Autograde.sanitize_preprocessors = SANITIZE
c.Autograde.autograde_preprocessors = GRADE
c.GenerateFeedback.preprocessors = FEEDBACK
c.Autograde.pre_convert_hook = "course_lib.grading.intake.receive"
