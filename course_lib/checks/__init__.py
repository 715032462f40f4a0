"""Answers at once whether an exercise is solved: `check("03.scores", scores)`, and in words where it is not."""

from course_lib.checks.exercise import CheckFailed, Exercise
from course_lib.checks.judge import check, find

__all__ = ["CheckFailed", "Exercise", "check", "find"]
