"""Answers to the exercises of an assignment, as a learner would write them: in a notebook, not in this library."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from course_lib.assignments import FOLDERS, Written, answer_of, declared, read_text
from course_lib.checks import PLANTED, Edit


def folder_of(name: str) -> Path:
    """The folder of an assignment such as "03", or of an exercise such as "03.scores"."""
    return next(folder for folder in FOLDERS if folder.name.startswith(f"a{name[:2]}_"))


def written(name: str) -> Written:
    """What the text has of an exercise."""
    return read_text(folder_of(name) / "text.py")[name]


@cache
def answers_of(number: str) -> SimpleNamespace:
    """The answers as they stand there: RIGHT, WRONG and, where something proves the solution, LIBRARY."""
    names: dict[str, Any] = {"LIBRARY": {}}
    source = (folder_of(number) / "answers.py").read_text(encoding="utf-8")
    exec(compile(source, f"<answers {number}>", "exec"), names)
    return SimpleNamespace(**names, source=source)


def listed(name: str, kind: str) -> list[tuple[Any, str | None, str]]:
    """The answers to an exercise: each as it stands, what must be said of it (None: anything), and where it stands.

    Args:
        name: of the exercise.
        kind: RIGHT, or WRONG: the known mistakes that are code first, then the other wrong answers.
    """
    mistakes = declared(folder_of(name))[name].known_mistakes if kind == "WRONG" else []
    found = [(change, hint, "") for hint, change in mistakes if isinstance(change, Edit) or change is PLANTED]
    for number, answer in enumerate(getattr(answers_of(name[:2]), kind)[name]):
        place = f"{kind}[{name!r}][{number}]"
        found.append((*answer, f"{place}[0]") if isinstance(answer, tuple) else (answer, None, place))
    return found


def right_answers(name: str) -> list[Any]:
    """The right answers to an exercise."""
    return [answer_of(answer, written(name)) for answer, _, _ in listed(name, "RIGHT")]


def wrong_answers(name: str) -> list[tuple[Any, str | None]]:
    """The wrong answers to an exercise, each with what must be said of it, or None."""
    return [(answer_of(answer, written(name)), hint) for answer, hint, _ in listed(name, "WRONG")]


RULES = ("one by one", "yours to write")  # what is said of right results that were come by as they should not be


def codes(name: str, kind: str, *, by_results: bool = False) -> list[str]:
    """What a learner who gives these answers has in the cell; by_results: without those that only break rules."""
    found = [one for one in listed(name, kind) if not (by_results and one[1] in RULES)]
    return [_code(written(name), answer, place) for answer, _, place in found]


def _code(exercise: Written, answer: Any, place: str) -> str:
    if isinstance(answer, Edit):
        return answer.of(exercise.solution)
    if answer is PLANTED:
        return exercise.planted
    source = answers_of(exercise.name[:2]).source
    return f"_answers = {{}}\nexec({source!r}, _answers)\n{exercise.variable} = _answers{_subscripts(place)}"


def _subscripts(place: str) -> str:
    """RIGHT['03.scores'][0] → ['RIGHT']['03.scores'][0]"""
    kind, rest = place.split("[", 1)
    return f"[{kind!r}][{rest}"
