"""Assignments in JupyterLab: a check answers a student at once; nbgrader's formgrader takes a teacher's points."""

import re
from collections.abc import Iterator

import nbformat
import pytest
from nbgrader.api import Gradebook
from playwright.sync_api import Browser, Locator, Page, expect

from notebooks.source.build_assignments import FOLDER
from tests.helpers.classroom import Classroom, Submission
from tests.helpers.lab import NOTEBOOK, Lab, eventually
from tests.helpers.serving import jupyterlab

ASSIGNMENT = "03_attention"
FILL_IN = f"""(answers) => {{
  const cells = {NOTEBOOK}.content.model.cells;
  for (let i = 0; i < cells.length; i += 1) {{
    const answer = answers[cells.get(i).getMetadata("nbgrader")?.grade_id];
    if (answer) cells.get(i).sharedModel.setSource(answer);
  }}
}}"""


def right_answers() -> dict[str, str]:
    """The solution cells of the assignment by their name."""
    solution = nbformat.read(FOLDER / "solution" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    released = nbformat.read(FOLDER / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    pairs = zip(released.cells, solution.cells, strict=True)
    return {released.metadata.nbgrader.grade_id: cell.source for released, cell in pairs if _is_solution(released)}


def _is_solution(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution", False)


def told(lab: Lab) -> str:
    """Everything that stands below the code cells."""
    outputs = [output for cell in lab.cells() for output in cell["outputs"]]
    return "".join("".join(output.get("text", "")) + "".join(output.get("traceback", [])) for output in outputs)


def all_are_right(lab: Lab, answers: dict[str, str]) -> None:
    lab.page.evaluate(FILL_IN, answers)
    lab.run_all()
    assert told(lab).count("✓") == len(answers)


def test_a_release_answers_in_words_at_once(lab: Lab) -> None:
    lab.open(f"assignments/release/{ASSIGNMENT}/{ASSIGNMENT}")
    answers = right_answers()
    unscaled = "def scores(query, key):\n    return query @ key.transpose(-2, -1)"
    with pytest.raises(AssertionError):
        all_are_right(lab, {"03-scores": unscaled})
    assert "without the division by √d_k" in told(lab)
    assert "✗ 03.scores, case 1 of" in told(lab) and "✓" not in told(lab)
    all_are_right(lab, answers)
    lab.complaints.clear()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """A teacher's folder with one graded submission, right in all that a machine can judge."""
    classroom = Classroom(tmp_path_factory.mktemp("teacher") / "course", ASSIGNMENT)
    classroom.submit(Submission("ada"))
    classroom.autograde()
    return classroom


@pytest.fixture(scope="module")
def teachers(course: Classroom, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab as teachers have it, on their folder."""
    with jupyterlab(course.root, tmp_path_factory.mktemp("home"), teacher=True) as address:
        yield address


def parts_of_nbgrader(page: Page) -> list[str]:
    """What JupyterLab has of it, once the page is there."""
    page.wait_for_selector(".jp-Launcher, .jp-Notebook", timeout=120_000)
    return page.evaluate("window.jupyterapp.listPlugins().filter((name) => name.startsWith('@jupyter/nbgrader'))")


def test_a_teacher_has_the_menus_of_nbgrader_and_a_learner_has_not(lab: Lab, teachers: str, browser: Browser) -> None:
    lab.open(f"assignments/release/{ASSIGNMENT}/{ASSIGNMENT}")
    assert parts_of_nbgrader(lab.page) == []
    page = browser.new_page()
    page.goto(teachers.format("lab"))
    assert len(parts_of_nbgrader(page)) > 3
    page.close()


def test_a_teacher_grades_the_words_in_formgrader(course: Classroom, teachers: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(teachers.format("formgrader/manage_assignments"))
    row = page.locator("tr", has_text=ASSIGNMENT)
    expect(row.locator("td.num-submissions")).to_have_text("1")
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        (submission,) = gradebook.notebook_submissions(ASSIGNMENT, ASSIGNMENT)
        before, submission_id = submission.score, submission.id
    page.goto(teachers.format(f"formgrader/submissions/{submission_id}/"))
    (words,) = (name for name in course.points if not name.endswith("-check"))
    points = page.locator(f"input.score[id='{words}']")
    expect(points).to_have_class(re.compile("needs_manual_grade"))  # before, formgrader hears no change
    points.fill(str(course.points[words]))
    points.press("Tab")
    kept_all_points(points, course, before + course.points[words])
    page.close()


@eventually
def kept_all_points(points: Locator, course: Classroom, expected: float) -> None:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        (submission,) = gradebook.notebook_submissions(ASSIGNMENT, ASSIGNMENT)
        assert submission.score == expected == sum(course.points.values())
