"""Exercises by name; `check`, which an exercise's cell calls."""

import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from course_lib.assignments import inventory
from course_lib.assignments.reader import Written, read_text
from course_lib.assignments.variants import Variant, chosen, variants_in, varied
from course_lib.checks import PLANTED, VISIBLE, Edit, Exercise, hidden_seed, replies, verdict

FOLDERS = sorted(Path(__file__).parent.glob("a[0-9][0-9]_*"))


def find(name: str, variant: str | None = None) -> Exercise:
    """The exercise of a name such as "03.scores", as it is published, or under another convention.

    Raises:
        ValueError: there is none.
    """
    if name == inventory.EXERCISE.name:
        return inventory.EXERCISE
    folders = [folder for folder in FOLDERS if folder.name.startswith(f"a{name.split('.')[0]}_")]
    found = load(folders[0]) if folders else {}
    if name not in found:
        numbers = [folder.name[1:3] for folder in FOLDERS]
        among = sorted(found) or f"assignments {numbers[0]} to {numbers[-1]}"
        raise ValueError(f"expected an exercise among {among}, got {name!r}")
    return found[name] if variant is None else _find_variant(folders[0], name, variant)


@cache
def _find_variant(folder: Path, name: str, variant: str) -> Exercise:
    among = {one.name: one for one in variants_in(folder).get(name, ())}
    if variant not in among:
        raise ValueError(f"expected a variant of {name} among {sorted(among)}, got {variant!r}")
    return varied(declared(folder)[name], read_text(folder / "text.py")[name], among[variant], answer_of)


def variants_for(assignment: str, student: str, seed: int) -> dict[str, Variant]:
    """The other conventions that a student gets, by exercise; empty where the assignment has none.

    Args:
        assignment: its name, such as "05_masks".
        student: the name that nbgrader knows the student by.
        seed: of the class.
    """
    found = [variants_in(folder) for folder in FOLDERS if folder.name == f"a{assignment}"]
    return {name: chosen(some, name, student, seed) for variants in found for name, some in variants.items()}


@cache
def load(folder: Path) -> dict[str, Exercise]:
    """The exercises of an assignment's folder by name: text.py has their solutions, checks.py all else.

    Raises:
        ValueError: the two files have not the same exercises, or a mistake edits what the solution does not have.
    """
    written, exercises = read_text(folder / "text.py"), declared(folder)
    if list(exercises) != list(written):
        raise ValueError(f"{folder.name}: expected the text's exercises {list(written)}, got {list(exercises)}")
    return {name: _complete(exercise, written[name]) for name, exercise in exercises.items()}


@cache
def declared(folder: Path) -> dict[str, Exercise]:
    """The exercises of an assignment's folder as checks.py has them, by name: without solutions, mistakes as edits."""
    return {exercise.name: exercise for exercise in runpy.run_path(str(folder / "checks.py"))["EXERCISES"]}


def _complete(exercise: Exercise, written: Written) -> Exercise:
    mistakes: dict[str, tuple] = {}
    for hint, mistake in exercise.known_mistakes:
        mistakes[hint] = (*mistakes.get(hint, ()), answer_of(mistake, written))
    return replace(exercise, reference=written.answer(written.solution), mistakes=mistakes)


def answer_of(what: Any, written: Written) -> Any:
    """The answer that stands for itself, or that an edit of the solution makes, or that is planted in the text."""
    if isinstance(what, Edit):
        return written.answer(what.of(written.solution))
    return written.answer(written.planted) if what is PLANTED else what


def check(name: str, answer: Any, *, variant: str | None = None, hidden: bool = False) -> None:
    """Says whether an answer to an exercise is right.

    Args:
        name: the exercise, such as "03.scores".
        answer: what was written for it.
        variant: the convention that the text asks for, where it is not the published one.
        hidden: take the teacher's cases instead of those that everybody sees.

    Raises:
        CheckFailed: with what was tried, expected and got at the first difference.
    """
    exercise = find(name, variant)
    cases = exercise.inputs(hidden_seed() if hidden else VISIBLE)
    print(verdict(exercise, cases, replies(exercise, answer, cases)))
