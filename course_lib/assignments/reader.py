"""The text of an assignment, read for what it defines: what is given, what is planted, and how it is solved."""

import re
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

CELL = re.compile(r"^# %%(.*)\n", flags=re.M)
TAG = re.compile(r'tags=\["(\w+)"\]')
CHECK = re.compile(r'check\("(?P<name>\d\d\.\w+)", (?P<variable>\w+)\)')
MARKER = re.compile(r"^ *### (BEGIN|END) SOLUTION\n", flags=re.M)
PARTS = re.compile(r"^### PARTS (.*)\n", flags=re.M)
NOT_FOR_CHECKS = "home"  # tag of a cell that no exercise needs and that takes its time, such as a training


@dataclass(frozen=True)
class Written:
    """One exercise as the text of its assignment has it.

    Attributes:
        name: assignment and exercise, such as "03.scores".
        variable: the name under which a notebook keeps the answer.
        solution: its code.
        planted: what a learner is given to repair or to fill in, as code; None where it is a stub.
        specification: the slow function that the text shows, as code; None where it shows none.
        given: all that stands before the solution, by name.
    """

    name: str
    variable: str
    solution: str
    planted: str | None
    specification: str | None
    given: dict[str, Any] = field(repr=False)

    def answer(self, code: str) -> Any:
        """The answer that is there once this code has run in the place of the solution's."""
        names = dict(self.given)
        exec(compile(code, f"<{self.name}>", "exec"), names)
        return names[self.variable]


@cache
def read_text(path: Path) -> dict[str, Written]:
    """Maps the text of an assignment to the exercises that it checks, by name and in their order.

    Args:
        path: a py:percent text. A cell tagged "solution", "planted", "specification" or "check" belongs to an exercise,
            which ends with its check; every other code cell is given, but for those tagged "home".

    Raises:
        ValueError: a check has no solution before it, or calls something else than `check`.
    """
    found: dict[str, Written] = {}
    given: dict[str, Any] = {}
    parts: dict[str, str] = {}
    _, *pieces = CELL.split(path.read_text(encoding="utf-8"))
    for head, body in zip(pieces[::2], pieces[1::2], strict=True):
        if "[markdown]" in head:
            continue
        tag = TAG.search(head)
        kind, code = tag[1] if tag else "given", MARKER.sub("", with_parts(body)).rstrip() + "\n"
        if kind == NOT_FOR_CHECKS:
            continue
        if kind in ("given", "specification"):
            with redirect_stdout(StringIO()):  # what a cell shows belongs to that cell, not to whoever asks for a check
                exec(compile(code, str(path), "exec"), given)
        if kind != "check":
            parts[kind] = code
            continue
        about = CHECK.match(code)
        if not about or "solution" not in parts:
            raise ValueError(f"{path}: expected a solution, then check(name, variable), got {[*parts, code]}")
        codes = {part: parts.get(part) for part in ("solution", "planted", "specification")}
        found[about["name"]] = Written(**about.groupdict(), **codes, given=dict(given))
        exec(compile(parts["solution"], str(path), "exec"), given)
        parts = {}
    return found


def with_parts(code: str) -> str:
    """The code with other exercises' solutions in the place of their names: `### PARTS 03.scores 05.weights`."""

    def solutions(found: re.Match) -> str:
        return "".join(f"{_solution(name)}\n\n" for name in found[1].split())

    return PARTS.sub(solutions, code)


def _solution(name: str) -> str:
    (folder,) = Path(__file__).parent.glob(f"a{name[:2]}_*")
    return read_text(folder / "text.py")[name].solution
