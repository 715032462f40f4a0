"""What a course moved: the collected forms of the concept inventory, counted, on a page without names.

    submitted/STUDENT/NN_concepts_…  ->  gather  ->  report  ->  inventory.html

Nothing of a submission is run; its answers are read as text.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from course_lib.assignments.inventory import FORMS, QUESTIONS, Question, answers_in, choices, key, meaning
from course_lib.grading.intake import LIMIT
from course_lib.metrics import Estimate, share_estimate

NAME = "inventory"  # in the place of an assignment
PAGE = Path("inventory.html")
FEW = 10  # students; an interval from fewer says so itself, and single answers could be told apart
RESAMPLES = 4_000
Answers = Mapping[str, str]


@dataclass(frozen=True)
class Class:
    """The answers of a class, without names: those of the same student have the same number in both lists.

    Attributes:
        before, after: by question; of everybody who handed in both forms, or of all where nobody has the second one.
        single: how many handed in one form only, and are left out.
        unread: how many notebooks could not be read.
    """

    before: Sequence[Answers]
    after: Sequence[Answers]
    single: int
    unread: int


@dataclass(frozen=True)
class Choice:
    """How often a choice was taken. `error` is the one behind a wrong choice; None for the right one."""

    text: str
    error: str | None
    before: int
    after: int


@dataclass(frozen=True)
class Moved:
    """One question. Shares are those of right answers; `gain` is None where nothing could be gained, or is known."""

    question: Question
    before: Estimate
    after: Estimate | None
    gain: float | None
    learned: int
    lost: int
    choices: Sequence[Choice]


def gather(submitted: Path) -> Class:
    """Reads both forms of all students.

    Args:
        submitted: nbgrader's folder, or any with STUDENT/NN_concepts_…/*.ipynb.
    """
    forms: dict[str, dict[str, Answers]] = {form: {} for form in FORMS}
    unread = 0
    for form, name in FORMS.items():
        for folder in sorted(submitted.glob(f"*/{name}")):
            answers = _read(folder)
            if answers is None:
                unread += 1
            elif answers:
                forms[form][folder.parent.name] = answers
    both = [student for student in forms["before"] if student in forms["after"]] if forms["after"] else None
    chosen = list(forms["before"]) if both is None else both
    single = len(forms["before"].keys() | forms["after"].keys()) - len(chosen)
    before, after = ([forms[form][student] for student in chosen if student in forms[form]] for form in FORMS)
    return Class(before, after, single, unread)


def _read(folder: Path) -> Answers | None:
    """The answers of a submission: of the notebook of its name, else of its one; None where none can be read."""
    found = [path for path in sorted(folder.glob("*.ipynb")) if path.is_file() and not path.is_symlink()]
    found = [path for path in found if path.stem == folder.name] or found
    if len(found) != 1 or found[0].stat().st_size > LIMIT:
        return None
    try:
        cells = nbformat.read(found[0], as_version=4).cells
        return answers_in([cell.source for cell in cells if cell.cell_type == "code"])
    except Exception:  # whatever a file of a stranger raises in a parser
        return None


def moved(question: Question, room: Class) -> Moved:
    """What moved in one question. A question without an answer is not right, as in any test."""
    before, after = ([answers.get(question.name) for answers in form] for form in (room.before, room.after))
    right_before, right_after = ([one == key(question, form) for one in given]
                                 for form, given in zip(FORMS, (before, after), strict=True))
    was = share_estimate(sum(right_before), len(before))
    now = share_estimate(sum(right_after), len(after)) if after else None
    pairs = list(zip(right_before, right_after, strict=True)) if after else []
    taken = [(meaning(question, form, str(one)), form) for form, given in zip(FORMS, (before, after), strict=True)
             for one in given]
    listed = [
        Choice(text, question.wrong.get(text), *(taken.count((text, form)) for form in FORMS))
        for text in choices(question, "before")
    ]
    undecided = Choice("no choice", "does not know, or left it open", *(taken.count((None, form)) for form in FORMS))
    return Moved(question, was, now, gain(was.value, now.value) if now else None,
                 pairs.count((False, True)), pairs.count((True, False)), [*listed, undecided])


def gain(before: float, after: float) -> float | None:
    """Hake's normalized gain: of what could be gained, the share that was; None where all was right already.

    Paper: Hake 1998, American Journal of Physics 66, 64-74: g = (after - before) / (1 - before), of class averages.
    """
    return (after - before) / (1 - before) if before < 1 else None


def scores(form: str, answers: Sequence[Answers]) -> np.ndarray:
    """The share of right answers of each student; (students,)."""
    right = [[given.get(question.name) == key(question, form) for question in QUESTIONS] for given in answers]
    return np.array(right, dtype=float).mean(axis=1)


def bootstrap(statistic: Callable[..., float | None], *samples: np.ndarray, level: float = 0.95) -> Estimate | None:
    """A statistic of the class with its interval, by drawing students again, each with all that is known of them.

    The answers of one student hang together, so it is students that are drawn, and not answers.
    None where the class leaves nothing to gain.
    """
    value, random, count = statistic(*samples), np.random.default_rng(0), len(samples[0])
    draws = [random.integers(count, size=count) for _ in range(RESAMPLES)]
    drawn = [one for one in (statistic(*(sample[draw] for sample in samples)) for draw in draws) if one is not None]
    if value is None:
        return None
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(value), float(low), float(high))


def report(room: Class) -> str:
    """The page of a class, as HTML that needs nothing else.

    Raises:
        ValueError: there is nobody to report on.
    """
    if not room.before:
        raise ValueError("expected students with answers from before the course, and from after it if there are any")
    before = scores("before", room.before)
    after = scores("after", room.after) if room.after else None
    pages = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
    pages.filters |= {"percent": percent, "marked": marked}
    return pages.get_template("inventory.html").render(
        room=room,
        few=len(room.before) < FEW,
        before=bootstrap(np.mean, before),
        after=None if after is None else bootstrap(np.mean, after),
        gain=None if after is None else bootstrap(lambda *both: gain(*map(np.mean, both)), before, after),
        questions=[moved(question, room) for question in QUESTIONS],
    )


def percent(share: float) -> str:
    """0.257 → 26 %, with the sign that a drop has."""
    return f"{100 * share:.0f} %".replace("-", "−")


def marked(text: str) -> Markup:
    """Text as HTML, with `code` as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def main(arguments: list[str] | None = None) -> int:
    """Writes the page of what moved between both forms of the concept inventory, as they stand in submitted/."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading inventory", description=main.__doc__)
    parser.add_argument("--submitted", type=Path, default=Path("submitted"), help="nbgrader's folder")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"file to write; default {PAGE}")
    options = parser.parse_args(arguments)
    room = gather(options.submitted)
    if not room.before:
        places = " or ".join(FORMS.values())
        print(f"nobody to report on: expected answers in {options.submitted}/STUDENT/{places}", file=sys.stderr)
        return 1
    options.page.write_text(report(room), encoding="utf-8")
    said = f"{len(room.before)} students" + (", before and after" if room.after else ", before the course")
    said += f"; {room.single} with one form only are left out" * bool(room.single)
    said += f"; {room.unread} notebooks cannot be read" * bool(room.unread)
    print(f"{said}: {options.page}")
    return 0
