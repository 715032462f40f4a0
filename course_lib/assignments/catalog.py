"""Exercises by name; `check`, which an exercise's cell calls."""

import importlib
from pathlib import Path
from typing import Any

from course_lib.checks import VISIBLE, Exercise, hidden_seed, replies, verdict

FOLDERS = sorted(Path(__file__).parent.glob("a[0-9][0-9]_*"))


def find(name: str) -> Exercise:
    """The exercise of a name such as "03.scores".

    Raises:
        ValueError: there is none.
    """
    folders = [folder.name for folder in FOLDERS if folder.name.startswith(f"a{name.split('.')[0]}_")]
    exercises = importlib.import_module(f"course_lib.assignments.{folders[0]}.checks").EXERCISES if folders else []
    found = {exercise.name: exercise for exercise in exercises}
    if name not in found:
        raise ValueError(f"expected an exercise among {sorted(found) or 'assignments 01 to 12'}, got {name!r}")
    return found[name]


def check(name: str, answer: Any, *, hidden: bool = False) -> None:
    """Say whether an answer to an exercise is right.

    Args:
        name: the exercise, such as "03.scores".
        answer: what was written for it.
        hidden: take the teacher's cases instead of those that everybody sees.

    Raises:
        CheckFailed: with what was tried, expected and got at the first difference.
    """
    exercise = find(name)
    cases = exercise.inputs(hidden_seed() if hidden else VISIBLE)
    print(verdict(exercise, cases, replies(exercise, answer, cases)))
