"""The schedule explorer in the browser: the polyline on the page is the library's curve, whatever is chosen."""

import re
import unicodedata

import pytest
from playwright.sync_api import Locator, expect

from course_lib.widgets import ScheduleExplorer
from course_lib.widgets.base import short
from tests.helpers.lab import eventually
from tests.helpers.pages import move, new_widget

CELLS = ("from course_lib.widgets import ScheduleExplorer\nScheduleExplorer()",)


explorer = new_widget


def rate_on(told: Locator) -> float:
    """The rate that the words under the chart end with."""
    factor, power = told.inner_text().split(": rate ")[1].split("·10")
    return float(factor) * 10 ** int(unicodedata.normalize("NFKC", power).replace("−", "-"))


@eventually
def draws(explorer: Locator, **state) -> None:
    """The first line goes through the library's points: heights in proportion to the rates."""
    view = ScheduleExplorer(**state).view
    step, rate = view["peak"]
    line = explorer.locator("polyline").first
    assert line.get_attribute("data-name") == view["name"]
    warm = step < view["steps"][-1]
    words = "peak at step" if warm else "still warming up at the last step,"
    expect(explorer.locator(".cw-message")).to_have_text(f"{words} {step:,}: rate {short(rate, 2)}")
    expect(explorer.locator("svg[role=img] text", has_text="warmup_steps")).to_have_count(int(warm))
    points = [tuple(map(float, point.split(","))) for point in line.get_attribute("points").split()]
    assert len(points) == len(view["steps"])
    (x0, _), (x1, _) = points[0], points[-1]
    top, bottom = min(y for _, y in points), 280 - 44
    for (x, y), at, value in zip(points, view["steps"], view["rates"], strict=True):
        assert abs((x - x0) / (x1 - x0) - (at - 1) / (view["steps"][-1] - 1)) < 1e-3
        assert abs((bottom - y) / (bottom - top) - value / rate) < 2e-3


def test_each_control_moves_the_curve_to_the_librarys(explorer):
    draws(explorer)
    state = {}
    for label, words, change in (
        ("d_model", "64", dict(d_model=64)),
        ("d_model", "2048", dict(d_model=2048)),
        ("steps of the run", "700", dict(total_steps=700)),
        ("after the warm-up", "linear to 0", dict(decay="linear")),
        ("steps of the run", "300,000", dict(total_steps=300_000)),
    ):
        explorer.get_by_label(label, exact=True).select_option(words)
        state |= change
        draws(explorer, **state)
    for value in (100, 16_000, 5_000):
        move(explorer, "warmup_steps", value)
        state["warmup_steps"] = value
        draws(explorer, **state)
    with pytest.raises(AssertionError):
        draws(explorer, seconds=0.2, **state | {"d_model": 512})


def test_curves_can_be_kept_and_forgotten(explorer):
    keep = explorer.get_by_role("button", name="keep this curve")
    for value in (2_000, 8_000, 12_000):
        keep.click()
        move(explorer, "warmup_steps", value)
        newest = f"d_model 512, warm-up {value:,}, inverse square root (paper), 100,000 steps"
        expect(explorer.locator("polyline").first).to_have_attribute("data-name", newest)
    names = explorer.locator("polyline").evaluate_all("nodes => nodes.map(n => n.dataset.name)")
    assert [name.split(", ")[1] for name in names] == [f"warm-up {n}" for n in ("12,000", "8,000", "2,000", "4,000")]
    explorer.get_by_role("button", name="forget the others").click()
    expect(explorer.locator("polyline")).to_have_count(1)
    keep.click()
    explorer.get_by_label("steps of the run", exact=True).select_option("10,000")
    expect(explorer.locator("polyline")).to_have_count(2)  # the same schedule in a longer run is another curve


def test_the_slider_tells_steps_as_the_chart_does(explorer):
    move(explorer, "warmup_steps", 12_000)
    expect(explorer.locator("output")).to_have_text("12,000")
    expect(explorer.get_by_label("warmup_steps", exact=True)).to_have_attribute("aria-valuetext", "12,000")


def step_on(told: Locator) -> int:
    """The step that the words under the chart begin with, once it is pointed at."""
    expect(told).to_have_text(re.compile("^step "))
    return int(told.inner_text().removeprefix("step ").split(": rate ")[0].replace(",", ""))


def test_pointing_reads_the_rate(explorer):
    explorer.locator("svg[role=img]").hover(position={"x": 400, "y": 100})
    told = explorer.locator(".cw-message")
    step = step_on(told)
    assert rate_on(told) == pytest.approx(ScheduleExplorer().rate(step), rel=5e-3)


def test_the_arrow_keys_read_the_rate(explorer):
    view, chart, told = ScheduleExplorer().view, explorer.locator("svg[role=img]"), explorer.locator(".cw-message")
    explorer.get_by_role("button", name="forget the others").focus()
    for key, index in (
        ("Tab", None),
        ("ArrowRight", 0),
        ("ArrowRight", 1),
        ("End", -1),
        ("ArrowRight", -1),
        ("ArrowLeft", -2),
        ("Home", 0),
        ("ArrowLeft", 0),
    ):
        explorer.page.keyboard.press(key)
        expect(chart).to_be_focused()
        if index is not None:
            expect(told).to_contain_text(f"step {view['steps'][index]:,}: rate ")
            assert rate_on(told) == pytest.approx(view["rates"][index], rel=5e-3)


@eventually
def tells_the_step(told: Locator, step: float) -> None:
    assert step_on(told) == pytest.approx(step, abs=1000)


def test_a_narrow_page_shows_all_of_the_chart_and_reads_the_step_that_is_pointed_at(explorer):
    chart, told = explorer.locator("svg[role=img]"), explorer.locator(".cw-message")
    explorer.evaluate("node => { node.style.width = '360px'; }")
    box, outer = chart.bounding_box(), explorer.bounding_box()
    assert box["width"] < 360 and box["height"] == pytest.approx(box["width"] * 280 / 640, abs=1)
    right = explorer.locator("polyline").bounding_box()
    assert right["x"] + right["width"] < outer["x"] + outer["width"]
    for share in (0.1, 0.5, 0.9):
        at = right["x"] + share * right["width"], box["y"] + box["height"] / 2
        explorer.page.mouse.move(*at)
        tells_the_step(told, 1 + share * 99_999)


def test_dragging_is_answered_soon(explorer, lab):
    slider = explorer.get_by_label("warmup_steps", exact=True)
    lab.answers_within(100, slider, range(1000, 15_000, 500), explorer.locator(".cw-message"))


def test_it_is_photographed(explorer, lab):
    explorer.get_by_role("button", name="keep this curve").click()
    move(explorer, "warmup_steps", 12_000)
    lab.photograph(explorer, "schedule")
