"""The learner's side of a check across processes: reads the cases, asks the answer, writes the replies."""

from pathlib import Path
from typing import Any

from course_lib.assignments import find
from course_lib.checks import Reply, read, replies, write_replies


def missing(variable: str) -> Reply:
    """The reply of a notebook that has no such variable."""
    return Reply(problem=f"there is no `{variable}`; does the cell that defines it run without an error?")


def answer(name: str, variable: str, namespace: dict[str, Any], folder: str, token: str) -> None:
    """Asks the answer that stands in a variable.

    Args:
        name: the exercise.
        variable: the name under which the learner's code keeps the answer.
        namespace: of the learner's code.
        folder: has a file of cases, gets one of replies.
        token: part of the names of both.
    """
    if variable not in namespace:
        found = [missing(variable)]
    else:
        found = replies(find(name), namespace[variable], read(Path(folder) / f"cases-{token}"))
    write_replies(found, Path(folder) / f"replies-{token}")
