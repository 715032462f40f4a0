"""The race viewer in the browser: lines, table and words are the recorded numbers, at every moment."""

import pytest
from playwright.sync_api import Locator, expect

from course_lib.widgets import RaceViewer
from tests.helpers.lab import eventually
from tests.helpers.pages import move, new_widget

CELL = """from course_lib.widgets import RaceViewer


def recorded(offset, gain):
    return [[{"steps": 10 * moment, "by_distance": [min(1.0, offset + gain * moment + run / 77), offset, None]}
             for moment in range(1, 11)] for run in range(2)]


def translated(offset, gain):
    return [[{"steps": 200 * moment, "valid_accuracy": offset + gain * moment} for moment in range(1, 11)]]


RACES = {
    "recall": {"early": recorded(0.3, 0.01), "late": recorded(0.1, 0.08)},
    "translation": {name: translated(0.1, 0.01 * (place + 1)) for place, name in enumerate("abcde")},
}
"""
CELLS = (CELL, "viewer = RaceViewer(RACES, distances=['1', '2-3'])\nviewer")
RECORDED: dict = {}
exec(CELL, RECORDED)
HIGH = 260 - 12 - 44  # of the axes, in pixels

viewer = new_widget


def expected(**state) -> RaceViewer:
    widget = RaceViewer(RECORDED["RACES"], distances=["1", "2-3"])
    for name, value in state.items():
        setattr(widget, name, value)
    return widget


def heights(line: Locator) -> list[float]:
    """In percent, where the axis goes from 0 to a little above 100."""
    points = [float(point.split(",")[1]) for point in line.get_attribute("points").split()]
    return [(260 - 44 - point) / HIGH * 104 for point in points]


@eventually
def shows(viewer: Locator, **state) -> None:
    widget = expected(**state)
    sides, now = widget.data[widget.race], widget.moment
    for number, side in enumerate(sides):
        line = viewer.locator("svg[role=img]").first.locator("polyline").nth(number)
        assert line.get_attribute("data-name") == side["name"]
        assert heights(line) == pytest.approx([100 * mean for mean in side["means"][:now]], abs=0.1)
        if side["profiles"][0]:
            line = viewer.locator("svg[role=img]").nth(1).locator("polyline").nth(number)
            assert heights(line) == pytest.approx([100 * each for each in side["profiles"][now - 1]], abs=0.1)
    assert viewer.locator("svg[role=img]").count() == (2 if sides[0]["profiles"][0] else 1)
    rows = viewer.locator("tbody tr").evaluate_all("rows => rows.map((row) => [...row.cells].map((c) => c.innerText))")
    assert [row[0] for row in rows] == [row[0] for row in widget.standing()]
    for row, (_, mean, lowest, highest, steps) in zip(rows, widget.standing(), strict=True):
        assert row[1:] == [f"{100 * mean:.1f} %", f"{100 * lowest:.1f} % to {100 * highest:.1f} %", f"{steps:,}"]
    told = viewer.locator(".cw-message").inner_text()
    assert told == f"{widget.race}, {10 * now} % of the time: {widget.standing()[0][0]} is ahead"


def test_every_moment_of_each_race_is_the_records(viewer):
    shows(viewer)
    for moment in (1, 10, 6):
        move(viewer, "time", moment)
        shows(viewer, moment=moment)
    viewer.get_by_label("race").select_option("translation")
    shows(viewer, race="translation", moment=6)
    with pytest.raises(AssertionError):
        shows(viewer, race="translation", moment=5, seconds=0.2)


def test_arrows_step_and_end_at_the_ends(viewer):
    back, on = (viewer.get_by_role("button", name=f"one measurement {way}") for way in ("back", "on"))
    back.click()
    back.click()
    shows(viewer, moment=1)
    expect(back).to_be_disabled()
    move(viewer, "time", 9)
    on.click()
    shows(viewer, moment=10)
    expect(on).to_be_disabled()


def test_a_race_runs_to_its_end_and_can_be_stopped(viewer):
    run = viewer.get_by_role("button", name="run")
    move(viewer, "time", 8)
    run.click()
    shows(viewer, moment=10)
    expect(viewer.get_by_role("button", name="run")).to_be_visible()
    viewer.get_by_role("button", name="run").click()  # from the start
    stop = viewer.get_by_role("button", name="stop")
    stop.click()
    expect(viewer.get_by_role("button", name="run")).to_be_visible()
    assert "100 %" not in viewer.locator(".cw-message").inner_text()


def test_the_keyboard_is_enough(viewer):
    viewer.get_by_label("race").focus()
    keyboard = viewer.page.keyboard
    keyboard.press("ArrowDown")
    keyboard.press("Tab")
    keyboard.press("End")
    shows(viewer, race="translation", moment=10)
    keyboard.press("Home")
    shows(viewer, race="translation", moment=1)


def test_sliding_is_answered_at_once(viewer, lab):
    slider = viewer.get_by_label("time", exact=True)
    lab.answers_within(100, slider, [4, 5, 6, 7, 8, 9, 10], viewer.locator(".cw-message"))


def test_it_is_photographed(viewer, lab):
    move(viewer, "time", 8)
    lab.photograph(viewer, "race_viewer")
    viewer.get_by_label("race").select_option("translation")
    lab.photograph(viewer, "race_viewer_translation")
