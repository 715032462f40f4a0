"""An exercise can be worth a part of its points, and what is right need not be what its solution returns."""

import pytest

from course_lib.checks import CheckFailed, Exercise
from course_lib.checks.judge import replies, verdict


def counted(expected: list[int], got: list[int]) -> tuple[float, str]:
    right = sum(map(int.__eq__, expected, got))
    return right / len(expected), f"{right} of {len(expected)}"


def squares(numbers: list[int]) -> list[int]:
    return [number * number for number in numbers]


SQUARES = Exercise(
    "00.squares",
    lambda generator: [([1, 2, 3, 4],), ([1, 1, 2, 2],)],
    reference=lambda numbers: numbers,
    truth=squares,
    worth=counted,
)


def judged(answer, exercise: Exercise = SQUARES) -> tuple[str, float]:
    cases = exercise.inputs(0)
    try:
        return verdict(exercise, cases, replies(exercise, answer, cases)), 1.0
    except CheckFailed as error:
        return str(error), error.share


def test_the_truth_is_not_what_the_solution_returns() -> None:
    assert judged(squares) == ("✓ 00.squares: 4 of 4", 1.0)
    said, share = judged(lambda numbers: list(numbers))
    assert share == 0.25 and "case 1 of 2" in said and "1 of 4" in said


def test_the_case_that_is_worth_least_counts() -> None:
    said, share = judged(lambda numbers: squares(numbers)[:3] + [0] if numbers[1] == 2 else [1, 0, 0, 0])
    assert share == 0.25 and "case 1 of 2" in said and "3 of 4" in said


def test_a_problem_is_worth_nothing() -> None:
    def answer(numbers: list[int]) -> list[int]:
        return squares(numbers) if numbers[1] == 2 else 1 / 0

    said, share = judged(answer)
    assert share == 0 and "ZeroDivisionError" in said


@pytest.mark.parametrize("kept", [0, 1])
def test_cases_without_a_reply_are_worth_nothing(kept: int) -> None:
    cases = SQUARES.inputs(0)
    with pytest.raises(CheckFailed, match="no reply") as caught:
        verdict(SQUARES, cases, replies(SQUARES, squares, cases)[:kept])
    assert caught.value.share == 0


def test_without_a_worth_it_is_all_or_nothing() -> None:
    plain = Exercise("00.plain", SQUARES.cases, reference=squares)
    assert judged(lambda numbers: [number**2 for number in numbers], plain)[1] == 1
    assert judged(lambda numbers: [number**2 for number in numbers[:3]] + [0], plain)[1] == 0
