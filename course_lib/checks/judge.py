"""From the replies of an answer to a verdict in words."""

import os
from collections.abc import Sequence
from typing import Any

from course_lib.checks.compare import difference
from course_lib.checks.exercise import NUMBERLESS, CheckFailed, Exercise, Reply, value
from course_lib.checks.tree import on_meta

VISIBLE = 0  # the seed of the cases that everybody sees
ELSEWHERE = (
    "\n  The device meta stands for any other than the CPU. "
    "Make new tensors where the inputs are: x.new_zeros(...) or torch.arange(..., device=x.device) for an input x."
)

LOOPS = (
    "{}: every result is right, but one of its lines runs {} times in one case and {} times in another. "
    "So it goes through something one by one; write it without a loop."
)


def hidden_seed() -> int:
    """The seed of the teacher's cases: the environment variable COURSE_CLASS_SEED, a number; 1 if it is not set."""
    return int(os.environ.get("COURSE_CLASS_SEED", "1"))


def replies(exercise: Exercise, answer: Any, cases: Sequence[tuple]) -> list[Reply]:
    """What an answer replies to the cases, up to its first problem."""
    found = []
    for inputs in cases:
        found.append(exercise.reply(answer, inputs))
        if found[-1].problem:
            break
    return found


def verdict(exercise: Exercise, cases: Sequence[tuple], found: Sequence[Reply]) -> str:
    """The line of success.

    Args:
        exercise: whose reference says what is right.
        cases: that were tried.
        found: the replies to them; they may end at a problem.

    Raises:
        CheckFailed: with the first difference, and a hint if every result is that of a known mistake; or because it is
            right, with a loop where none is allowed.
    """
    for number, (inputs, reply) in enumerate(zip(cases, found, strict=False), start=1):
        elsewhere = on_meta(inputs)
        if elsewhere and reply.problem == NUMBERLESS:
            continue
        problem = reply.problem or _difference(exercise, inputs, reply)
        if problem:
            problem += ELSEWHERE if elsewhere else ""
            tried = f"case {number} of {len(cases)}: {exercise.describe(inputs)}\n  " if inputs else ""
            raise CheckFailed(f"{exercise.name}, {tried}{problem}{_hint(exercise, cases, found)}")
    if len(found) < len(cases):
        raise CheckFailed(f"{exercise.name}, case {len(found) + 1} of {len(cases)}: no reply")
    runs = [reply.runs for inputs, reply in zip(cases, found, strict=False) if not on_meta(inputs)]
    if not exercise.loops and max(runs) > min(runs):
        raise CheckFailed(LOOPS.format(exercise.name, min(runs), max(runs)))
    return f"✓ {exercise.name}: right" + (f" in {len(cases)} cases" if len(cases) > 1 else "")


def _difference(exercise: Exercise, inputs: tuple, reply: Reply) -> str | None:
    """The first difference; of a prediction without what is right, which would be all that there is to find."""
    expected = exercise.expected(inputs)
    return difference(expected, reply.result, exercise.tolerance, reveal=exercise.ask is not value)


def _hint(exercise: Exercise, cases: Sequence[tuple], found: Sequence[Reply]) -> str:
    """What is known of a mistake that explains every reply; problems alone are too little to know it by."""
    pairs = [(inputs, reply) for inputs, reply in zip(cases, found, strict=False) if not on_meta(inputs)]
    if all(reply.problem for _, reply in pairs):
        return ""
    for hint, answer in exercise.known_mistakes:
        theirs = (exercise.reply(answer, inputs, ours=True) for inputs, _ in pairs)
        if all(
            (mine.problem is None) == (reply.problem is None)
            and (mine.problem or not difference(mine.result, reply.result, exercise.tolerance))
            for mine, (_, reply) in zip(theirs, pairs, strict=True)
        ):
            return f"\n  {hint}"
    return ""
