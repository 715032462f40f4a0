"""The budget planner in the browser: its table and its curve are the library's, whatever is chosen."""

import pytest
from playwright.sync_api import Locator, expect

from course_lib.widgets import BudgetPlanner
from course_lib.widgets.base import short
from tests.helpers.lab import eventually
from tests.helpers.pages import move, new_widget

CELLS = ("from course_lib.widgets import BudgetPlanner\nBudgetPlanner()",)

planner = new_widget


def grouped(number: float) -> str:
    """As numbers.js writes counts."""
    return f"{number:,.1f}".removesuffix(".0") if number < 100 else f"{number:,.0f}"


@eventually
def shows(planner: Locator, **state) -> None:
    """The table has the library's numbers, and the line goes through its hours, both axes logarithmic."""
    view, price = BudgetPlanner(**state).view, state.get("price", 0.0)
    cell = lambda name: planner.locator(f"[data-key='{name}']")  # noqa: E731
    expect(cell("operations of the training")).to_have_text(f"{short(view['flops'])} FLOPs")
    expect(cell("what the devices could have done")).to_have_text(f"{short(view['capacity'])} FLOPs")
    expect(cell("time")).to_contain_text(f"{grouped(view['hours'])} hours")
    assert ("days" in cell("time").inner_text()) == (view["hours"] >= 48)
    expect(cell("money")).to_have_text(grouped(view["money"]) if price else "set a price")
    lines = planner.locator("polyline")
    expect(lines).to_have_count(2 if state.get("serial") else 1)
    points = [tuple(map(float, point.split(","))) for point in lines.first.get_attribute("points").split()]
    hours, (x0, y0) = view["planned"], points[0]
    assert len(points) == len(hours)
    steps = {round(x - before) for (before, _), (x, _) in zip(points, points[1:], strict=False)}
    assert max(steps) - min(steps) <= 1, "doublings are equally far apart"
    assert [y for _, y in points] == sorted(y for _, y in points), "more devices are never slower"
    if not state.get("serial"):
        slopes = [(y - y0) / (x - x0) for x, y in points[1:]]
        assert max(slopes) - min(slopes) < 0.01, "twice the devices, half the hours"


def test_each_control_changes_the_plan(planner):
    shows(planner)
    state = {}
    for label, words, change in (
        ("model", "big (28.4 BLEU)", dict(preset="big")),
        ("steps", "300,000", dict(steps=300_000)),
        ("device", "H100, 989 TFLOPS", dict(device="H100")),
        ("how many", "256", dict(devices=256)),
        ("how many", "1", dict(devices=1)),
        ("steps", "10,000", dict(steps=10_000)),
        ("device", "K80, 2.8 TFLOPS", dict(device="K80")),
    ):
        planner.get_by_label(label, exact=True).select_option(words)
        state |= change
        shows(planner, **state)
    for label, name, values in (
        ("utilization", "utilization", (1, 100, 40)),
        ("serial share", "serial", (50.0, 0.5, 0.0)),
        ("price of a device-hour", "price", (20.0, 0.25)),
    ):
        for value in values:
            move(planner, label, value)
            state[name] = value
            shows(planner, **state)
    with pytest.raises(AssertionError):
        shows(planner, seconds=0.2, **state | dict(devices=2))


def test_dragging_is_answered_soon(planner, lab):
    slider = planner.get_by_label("utilization", exact=True)
    lab.answers_within(100, slider, range(5, 95, 5), planner.locator(".cw-message"))


def test_it_is_photographed(planner, lab):
    move(planner, "serial share", 2.0)
    move(planner, "price of a device-hour", 2.0)
    lab.photograph(planner, "budget")
