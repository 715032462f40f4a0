"""Grades an assignment: python -m course_lib.grading 03_attention, in the folder of the course.

With `inventory` in an assignment's place it writes the page of what the course moved, with `personal` the notebooks of
single students.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TextIO

from course_lib.checks import hidden_seed
from course_lib.grading import inventory, personal
from course_lib.grading.rounds import LOG, NOT_GRADED, graded
from course_lib.grading.sandbox import available

CONFIG = Path("nbgrader_config.py")
WORTH_A_PROCESS = 4  # submissions: another process takes as long to start
UNCONTAINED = (
    "!!! NOT CONTAINED: there is no bubblewrap that works on this machine.\n"
    "!!! Submissions can read your files, write them, and use the network. Grade in a virtual machine."
)


@contextmanager
def everything_else_in(path: Path) -> Iterator[TextIO]:
    """Sends to a file whatever this process and those that it starts print; yields what still reaches the teacher."""
    sys.stdout.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with path.open("a", encoding="utf-8") as file, os.fdopen(os.dup(1), "w", errors="backslashreplace") as teacher:
        for number in kept:
            os.dup2(file.fileno(), number)
        try:
            yield teacher
        finally:
            sys.stdout.flush()
            for number, before in kept.items():
                os.dup2(before, number)
                os.close(before)


def worthwhile(submissions: int, cores: int) -> int:
    """Processes that grade so many submissions soonest."""
    return max(1, min(cores, submissions // WORTH_A_PROCESS))


def tell(results: Iterable[tuple[str, str]], count: int, teacher: TextIO) -> int:
    """Writes a line for each of so many students once there is one; how many could not be graded."""
    failed, started = 0, monotonic()
    for number, (student, said) in enumerate(results, start=1):
        failed += said.startswith(NOT_GRADED)
        left = (monotonic() - started) / number * (count - number) / 60
        print(f"[{number}/{count}, {left:.0f} min left] {student}: {said}", file=teacher, flush=True)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Grades what is new among the submissions to an assignment, a line for each student; the rest is in the log."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for other in (inventory, personal):
        if arguments[:1] == [other.NAME]:
            return other.main(arguments[1:])
    if sys.platform == "win32":
        print("Grading needs Linux or macOS: use WSL, or a virtual machine.", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading", description=main.__doc__)
    parser.add_argument("assignment", help="its name, such as 03_attention")
    parser.add_argument("--again", action="store_true", help="grade also what has not changed since it was graded")
    jobs_help = f"submissions at a time (default: one for each core, but {WORTH_A_PROCESS} submissions for each)"
    parser.add_argument("--jobs", type=int, help=jobs_help)
    options = parser.parse_args(arguments)
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    if not CONFIG.is_file():
        print(f"expected {CONFIG} here: grade in the folder of the course", file=sys.stderr)
        return 1
    students = sorted(path.parent.name for path in Path("submitted").glob(f"*/{options.assignment}") if path.is_dir())
    if not students:
        print(f"nothing is submitted: expected folders submitted/STUDENT/{options.assignment}", file=sys.stderr)
        return 1
    if not available():
        print(UNCONTAINED)
    with everything_else_in(LOG) as teacher:
        try:
            seed = hidden_seed()
            jobs = options.jobs or worthwhile(len(students), os.cpu_count() or 1)
            results = graded(options.assignment, students, again=options.again, jobs=jobs)
        except ValueError as error:
            print(error, file=teacher)
            return 1
        for file in (teacher, sys.stdout):
            print(f"The hidden tests are those of {personal.about(seed)}", file=file, flush=True)
        failed = tell(results, len(students), teacher)
    print(f"{len(students)} submissions; what nbgrader said is in {LOG}." + f" {failed} {NOT_GRADED}." * bool(failed))
    if not available():
        print(UNCONTAINED)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
