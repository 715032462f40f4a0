"""From the replies of an answer to a verdict in words."""

import os
import re
from collections.abc import Sequence
from typing import Any

from course_lib.checks.compare import difference
from course_lib.checks.exercise import NUMBERLESS, CheckFailed, Exercise, Reply, value
from course_lib.checks.relations import kind_of_case, relation
from course_lib.checks.tree import on_meta

VISIBLE = 0  # the seed of the cases that everybody sees
PUBLIC = 1  # the seed of the teacher's cases where none is chosen
SEEDS = 2**32  # so many give a generator different numbers
ELSEWHERE = (
    "\n  The device meta stands for any other than the CPU. "
    "Make new tensors where the inputs are: x.new_zeros(...) or torch.arange(..., device=x.device) for an input x."
)

LOOPS = (
    "{}: every result is right, but one of its lines runs {} times in one case and {} times in another. "
    "So it goes through something one by one; write it without a loop."
)
LOOPS_IN_STEPS = (
    "{}: every result is right, but one of its lines runs {} times where {} steps are to be made. "
    "So it goes through more than the steps one by one; each step is one operation for the whole batch."
)
HINTS = 2  # of several that explain an answer, as many are told


def hidden_seed() -> int:
    """The seed of the teacher's cases: the environment variable COURSE_CLASS_SEED; `PUBLIC` if it is not set.

    Raises:
        ValueError: it is no whole number, or one whose cases everybody sees, as with 0.
    """
    said = os.environ.get("COURSE_CLASS_SEED", str(PUBLIC))
    if not re.fullmatch(r"\s*-?\d+\s*", said) or int(said) % SEEDS == VISIBLE:
        raise ValueError(f"expected COURSE_CLASS_SEED to be a whole number, but not {VISIBLE}, got {said!r}")
    return int(said)


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
            right, with a loop where none is allowed. Its `share` is that of the case that is worth least.
    """
    earned = [_worth(exercise, *pair) for pair in zip(cases, found, strict=False)]
    least = min((share for share, _ in earned), default=0.0) if len(found) == len(cases) else 0.0
    for number, (inputs, (share, problem)) in enumerate(zip(cases, earned, strict=False), start=1):
        if share < 1:
            problem += ELSEWHERE if on_meta(inputs) else ""
            tried = f"case {number} of {len(cases)}: {exercise.describe(inputs)}\n  " if inputs else ""
            raise CheckFailed(f"{exercise.name}, {tried}{problem}{_hint(exercise, cases, found)}", least)
    if len(found) < len(cases):
        raise CheckFailed(f"{exercise.name}, case {len(found) + 1} of {len(cases)}: no reply")
    tried = zip(cases, found, strict=True)
    _check_loops(exercise, [(inputs, reply.runs) for inputs, reply in tried if not on_meta(inputs)])
    if exercise.worth is not None:
        return f"✓ {exercise.name}: {earned[-1][1]}"
    return f"✓ {exercise.name}: {exercise.accepted}" + (f" in {len(cases)} cases" if len(cases) > 1 else "")


def _worth(exercise: Exercise, inputs: tuple, reply: Reply) -> tuple[float, str]:
    """The share of the points that a reply earns, and what is to be said of it."""
    if reply.problem == NUMBERLESS and on_meta(inputs):
        return 1.0, ""
    if reply.problem:
        return 0.0, reply.problem
    if exercise.worth is not None:
        return exercise.worth(exercise.expected(inputs), reply.result)
    problem = _difference(exercise, inputs, reply)
    return (0.0, problem) if problem else (1.0, "")


def _check_loops(exercise: Exercise, runs: Sequence[tuple[tuple, int]]) -> None:
    """Raises CheckFailed where a line ran more often than the exercise admits."""
    if exercise.loops is False:
        least, most = (extreme(count for _, count in runs) for extreme in (min, max))
        if most > least:
            raise CheckFailed(LOOPS.format(exercise.name, least, most))
    elif exercise.loops is not True:
        for inputs, count in runs:
            steps = exercise.loops(*inputs)
            if count > 2 * steps + 2:  # a loop in two lines, and its ends
                raise CheckFailed(LOOPS_IN_STEPS.format(exercise.name, count, steps))


def _difference(exercise: Exercise, inputs: tuple, reply: Reply) -> str | None:
    """The first difference; of a prediction without what is right, which would be all that there is to find."""
    expected = exercise.expected(inputs)
    return difference(expected, reply.result, exercise.tolerance, reveal=exercise.ask is not value)


def _hint(exercise: Exercise, cases: Sequence[tuple], found: Sequence[Reply]) -> str:
    """What is known of the mistakes that explain every reply; problems alone are too little to know one by."""
    pairs = [(inputs, reply) for inputs, reply in zip(cases, found, strict=False) if not on_meta(inputs)]
    if all(reply.problem for _, reply in pairs):
        return ""
    hints: list[str] = []
    for hint, answer in exercise.known_mistakes:
        theirs = (exercise.reply(answer, inputs, ours=True) for inputs, _ in pairs)
        if all(
            (mine.problem is None) == (reply.problem is None)
            and (mine.problem or not difference(mine.result, reply.result, exercise.tolerance))
            for mine, (_, reply) in zip(theirs, pairs, strict=True)
        ):
            hints += [hint] * (hint not in hints)
    if not hints:
        return _common(exercise, pairs)
    if len(hints) == 1:
        return f"\n  {hints[0]}"
    return "\n  Perhaps: " + "\n  Or: ".join(hints[:HINTS])


def _common(exercise: Exercise, pairs: Sequence[tuple[tuple, Reply]]) -> str:
    """What the wrong results have in common, where no known mistake explains them; nothing of predictions."""
    if exercise.ask is value or exercise.worth is not None:
        return ""
    results = [(exercise.expected(inputs), reply.result) for inputs, reply in pairs if not reply.problem]
    said = [relation(results, exercise.tolerance)]
    if len(results) == len(pairs):
        right = [not difference(*pair, exercise.tolerance) for pair in results]
        said.append(kind_of_case(exercise.names(), [inputs for inputs, _ in pairs], right))
    return "".join(f"\n  {one}" for one in said if one)
