"""Every lesson in JupyterLab: all cells run, without an error, a warning, or a complaint of the page."""

import pytest
from playwright.sync_api import expect

from notebooks.source import build_lessons as build
from tests.helpers.lab import Lab

LESSONS = [path.stem for path in build.lessons()]
WIDGET = "application/vnd.jupyter.widget-view+json"
DRAWN = 2000  # milliseconds, until a script that is there has run


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_runs_from_top_to_bottom(lesson: str, lab: Lab) -> None:
    lab.open(lesson)
    lab.run_all(timeout=1800)
    counts = [cell["count"] for cell in lab.cells()]
    assert counts == list(range(1, len(counts) + 1))
    widgets = [output for cell in lab.cells() for output in cell["outputs"] if WIDGET in output.get("data", {})]
    expect(lab.page.locator(".cw")).to_have_count(len(widgets), timeout=60_000)
    lab.page.wait_for_timeout(DRAWN)


SCRIPT = "export default { render() { throw new Error('broken script') } }"


@pytest.mark.parametrize(
    "source, complaint",
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import warnings; warnings.warn('old')", "old"),
        (f"import anywidget\nclass W(anywidget.AnyWidget):\n    _esm = {SCRIPT!r}\nW()", "broken script"),
    ],
    ids=["error", "warning", "script"],
)
def test_a_broken_lesson_is_noticed(source: str, complaint: str, lab: Lab) -> None:
    lab.open_cells("broken", "1 + 1", source)
    try:
        lab.run_all()
    except AssertionError as error:
        assert complaint in str(error)
    else:
        lab.page.wait_for_timeout(DRAWN)
        assert any(complaint in each for each in lab.complaints)
    lab.complaints.clear()
