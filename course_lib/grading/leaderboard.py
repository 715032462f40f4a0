"""The capstone's leaderboard: exact match on the hidden sentences against parameters, by nickname, as one page.

Usage: python -m course_lib.grading.leaderboard 19_capstone, in the folder of the course
"""

import ast
import html
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import NbGrader, NbGraderAPI

from course_lib.grading.beside import WEIGHTS, numbers, read_weights

PAGE = Path("leaderboard.html")
EXERCISE = "19-weights"
LONGEST = 24  # characters of a nickname
SCORE = re.compile(r"^(?:✓ 19\.weights: |  )([\d.]+)% of \d+ sentences", re.MULTILINE)
WIDTH, HEIGHT, EDGE = 640, 320, 48  # of the drawing, in pixels
STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.4 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td, th { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8886 }
td:nth-child(2), th:nth-child(2) { text-align: left } svg { max-width: 100%; height: auto }
svg text { font-size: 12px; fill: currentColor } svg line { stroke: #8888 } circle { fill: #0072b2 }
"""


@dataclass(frozen=True)
class Entry:
    """One student's line.

    Attributes:
        nickname: that the student chose.
        exact_match: on the hidden sentences, in percent.
        parameters: numbers in the files beside the notebook.
    """

    nickname: str
    exact_match: float
    parameters: int


def entries(assignment: str, students: list[str]) -> list[Entry]:
    """The lines of those who chose a nickname and earned points for their weights, the best first.

    Args:
        assignment: its name; the course is in the working directory.
        students: whose graded submissions are looked at.
    """
    found = (_entry(Path("autograded") / student / assignment, assignment) for student in students)
    return sorted(filter(None, found), key=lambda entry: (-entry.exact_match, entry.parameters, entry.nickname))


def _entry(folder: Path, assignment: str) -> Entry | None:
    path = folder / f"{assignment}.ipynb"
    if not path.is_file():
        return None
    cells = {name_of(cell): cell for cell in nbformat.read(path, as_version=4).cells}
    chosen, share = nickname(cells[EXERCISE].source), hidden_score(cells[f"{EXERCISE}-check"])
    if not chosen or share is None or read_weights(folder / WEIGHTS) is None:
        return None
    return Entry(chosen, share, numbers(folder))


def nickname(code: str) -> str:
    """What a learner's cell assigns to NICKNAME, if that is a text; nothing of the cell is run."""
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return ""
    for statement in statements:
        match statement:
            case ast.Assign([ast.Name("NICKNAME")], ast.Constant(str(chosen))):
                shown = (letter for letter in chosen if letter.isprintable() or letter.isspace())
                return " ".join("".join(shown).split())[:LONGEST]
    return ""


def hidden_score(cell: NotebookNode) -> float | None:
    """The exact match of the hidden sentences in percent; None if there is none that earned points.

    The cell's output was written by the grader. It has one line for the visible sentences, then one for the hidden.
    """
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    found = SCORE.findall(text)
    return float(found[1]) if len(found) == 2 else None


def page(found: list[Entry]) -> str:
    """The leaderboard as HTML that needs nothing else and can be printed."""
    head = "<tr><th></th><th>name</th><th>exact match</th><th>parameters</th></tr>"
    rows = [
        f"<tr><td>{place}</td><td>{html.escape(entry.nickname)}</td>"
        f"<td>{entry.exact_match:.1f} %</td><td>{entry.parameters:,}</td></tr>"
        for place, entry in enumerate(found, start=1)
    ]
    body = f"{_drawing(found)}<table>{head}{''.join(rows)}</table>" if found else "<p>Nobody is on it yet.</p>"
    title = "Leaderboard of the capstone"
    about = "Exact match on hidden sentences, running free, against the numbers in the files beside the notebook."
    start = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return f"{start}<h1>{title}</h1><p>{about}</p>{body}</html>\n"


def _drawing(found: list[Entry]) -> str:
    """A point for each entry: parameters to the right, on a logarithmic axis, exact match upward."""
    sizes = [math.log10(max(1, entry.parameters)) for entry in found]
    left, right = math.floor(2 * min(sizes)) / 2, math.ceil(2 * max(sizes) + 0.01) / 2
    low = min(90.0, 5 * math.floor(min(entry.exact_match for entry in found) / 5))

    def place(size: float, share: float) -> tuple[str, str]:
        x = EDGE + (size - left) / (right - left) * (WIDTH - 2 * EDGE)
        return f"{x:.0f}", f"{HEIGHT - EDGE - (share - low) / (100 - low) * (HEIGHT - 2 * EDGE):.0f}"

    parts = []
    for share in (low, (low + 100) / 2, 100.0):
        x, y = place(left, share)
        parts.append(f'<line x1="{x}" x2="{WIDTH - EDGE}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{EDGE - 6}" y="{y}" text-anchor="end" dominant-baseline="middle">{share:g} %</text>')
    for size in (left, (left + right) / 2, right):
        x, _ = place(size, low)
        parts.append(f'<text x="{x}" y="{HEIGHT - EDGE + 18}" text-anchor="middle">{10**size:,.0f}</text>')
    for entry, size in zip(found, sizes, strict=True):
        x, y = place(size, entry.exact_match)
        parts.append(f'<circle cx="{x}" cy="{y}" r="4"/><text x="{int(x) + 7}" y="{int(y) - 6}">')
        parts.append(f"{html.escape(entry.nickname)}</text>")
    parts.append(f'<text x="{WIDTH // 2}" y="{HEIGHT - 8}" text-anchor="middle">parameters</text>')
    label = 'role="img" aria-label="Exact match against parameters; the table below has the numbers."'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {label}>{"".join(parts)}</svg>'


def name_of(cell: NotebookNode) -> str:
    """The name that nbgrader knows a cell of ours by; empty for a learner's."""
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def main(arguments: list[str] | None = None) -> int:
    """Writes the page for all submissions that the gradebook has of an assignment, if it is the capstone."""
    (assignment,) = sys.argv[1:] if arguments is None else arguments
    if not assignment.startswith(EXERCISE.split("-")[0]):
        return 0
    app = NbGrader(raise_config_file_errors=True)
    app.load_config_file()
    with Gradebook(NbGraderAPI(config=app.config).coursedir.db_url) as gradebook:
        students = [submission.student.id for submission in gradebook.assignment_submissions(assignment)]
    found = entries(assignment, students)
    PAGE.write_text(page(found), encoding="utf-8")
    print(f"{PAGE} has {len(found)} of {len(students)} submissions: those with a nickname and points for their weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
