"""Answers to the inventory: whether all are there, as they stand in a notebook, and what moved between two of them."""

import ast
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from course_lib.assignments.inventory.forms import ACCEPTED, FORMS, meaning
from course_lib.assignments.inventory.questions import QUESTIONS
from course_lib.checks import Exercise

VARIABLE = "answers"
BEFORE = Path("..") / FORMS["before"] / f"{FORMS['before']}.ipynb"  # seen from the folder of the other form
SIGNS = {True: "✓", False: "✗", None: "–"}


def missing(answers, questions, letters):
    """What is still without an answer, in words; it travels to a submission as code, so it needs nothing else."""
    given = answers if isinstance(answers, dict) else {}
    open_ones = [name for name in questions if str(given.get(name)) not in letters]
    return f"{len(open_ones)} to go, the first: {open_ones[0]}" if open_ones else "all answered"


# Taking part is what counts: every answer is as good as any other.
EXERCISE = Exercise(
    "inventory.answers",
    cases=lambda generator: [([question.name for question in QUESTIONS], list(ACCEPTED))],
    ask=missing,
    reference={question.name: ACCEPTED[-1] for question in QUESTIONS},
    accepted="all answered; what is right comes at the end",
)


def answers_in(codes: Iterable[str]) -> dict[str, str]:
    """The answers that stand in the code of a notebook's cells, by question; none of it is run.

    An answer is a line such as `answers["memory"] = "b"` with a letter that counts; of several the last one counts.
    """
    names, found = {question.name for question in QUESTIONS}, {}
    for code in codes:
        try:
            statements = ast.parse(code).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # whatever stands in a cell
            continue
        for statement in statements:
            match statement:
                case ast.Assign([ast.Subscript(ast.Name(variable), ast.Constant(name))], ast.Constant(letter)) if (
                    variable == VARIABLE and name in names
                ):
                    found[name] = letter
    return {name: letter for name, letter in found.items() if letter in ACCEPTED}


def what_moved(answers: Mapping[str, str], before: Path = BEFORE) -> str:
    """For who learns alone: each question before and after, and of what is not right yet, why, and where to read.

    Args:
        answers: by question, of the form after the course.
        before: the notebook with the answers from before; where there is none, nothing is said of them.
    """
    earlier = answers_in(_codes(before)) if Path(before).is_file() else {}
    lines, counts = [], {"before": 0, "after": 0}
    for question in QUESTIONS:
        right, taken = {}, {}
        for form, given in (("before", earlier), ("after", answers)):
            taken[form] = meaning(question, form, str(given.get(question.name)))
            right[form] = None if question.name not in given else taken[form] == question.right
            counts[form] += bool(right[form])
        lines.append(f"{SIGNS[right['before']]} → {SIGNS[right['after']]}  {question.title}")
        if not right["after"]:
            lines += [f"       you took: {taken['after']}"] if taken["after"] else []
            lines.append(f"       right is: {question.right}. {question.because} (lesson {question.lesson})")
    said = f"{counts['after']} of {len(QUESTIONS)} are right"
    said += f", {counts['before']} were before the course." if earlier else f"; there are no answers in {before}."
    return "\n".join([*lines, said])


def _codes(path: Path) -> list[str]:
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
