"""The cost calculator in the browser: bars and lines are the library's numbers, whatever is chosen."""

import pytest
from playwright.sync_api import Locator, expect

from course_lib.widgets import CostCalculator
from tests.helpers.lab import eventually
from tests.helpers.pages import new_widget

CELLS = ("from course_lib.widgets import CostCalculator\nCostCalculator()",)


calculator = new_widget


@eventually
def draws(calculator: Locator, **state) -> None:
    """Bars in proportion to the bytes, their words beside them, both lines, and the sentence below."""
    view = CostCalculator(**state).view
    expect(calculator.locator(".cw-message")).to_have_text(view["told"])
    drawn = calculator.locator("rect[data-name]").evaluate_all(
        "nodes => nodes.map(n => [n.dataset.name, Number(n.getAttribute('width')), n.nextSibling.textContent])"
    )
    assert [(name, words) for name, _, words in drawn] == [(name, words) for name, _, words in view["parts"]]
    largest, widest = max(size for _, size, _ in view["parts"]), max(width for _, width, _ in drawn)
    for (_, size, _), (_, width, _) in zip(view["parts"], drawn, strict=True):
        assert abs(width / widest - size / largest) < 0.01
    lines = calculator.locator("polyline").evaluate_all("nodes => nodes.map(n => n.dataset.name)")
    assert lines == [name for name, _ in view["peaks"]]


def test_each_control_moves_the_bars_to_the_librarys(calculator):
    draws(calculator)
    state = {}
    for label, words, change in (
        ("preset", "mini", dict(preset="mini")),
        ("sentence pairs", "256", dict(batch=256)),
        ("tokens in each sentence", "4,096", dict(length=4096)),
        ("preset", "big", dict(preset="big")),
        ("tokens in each sentence", "8", dict(length=8)),
        ("sentence pairs", "1", dict(batch=1)),
    ):
        calculator.get_by_label(label, exact=True).select_option(words)
        state |= change
        draws(calculator, **state)
    calculator.get_by_label("fused attention").check()
    draws(calculator, **state | {"fused": True})
    with pytest.raises(AssertionError):
        draws(calculator, seconds=0.2, **state | {"batch": 2})


def test_it_works_without_a_mouse(calculator):
    calculator.get_by_label("preset", exact=True).focus()
    calculator.page.keyboard.press("ArrowUp")
    draws(calculator, preset="small")
    for _ in range(3):
        calculator.page.keyboard.press("Tab")
    calculator.page.keyboard.press("Space")
    draws(calculator, preset="small", fused=True)


def test_a_narrow_page_shows_both_pictures(calculator):
    calculator.evaluate("node => { node.style.width = '380px'; }")
    outer = calculator.bounding_box()
    for picture in calculator.locator("svg[role=img]").all():
        box = picture.bounding_box()
        assert box["x"] + box["width"] <= outer["x"] + outer["width"]


def test_it_is_photographed(calculator, lab):
    calculator.get_by_label("tokens in each sentence", exact=True).select_option("1,024")
    draws(calculator, length=1024)
    lab.photograph(calculator, "cost")
