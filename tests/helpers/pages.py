"""What the browser tests of widgets share: a new widget for each test, and what is typed into it."""

import pytest
from playwright.sync_api import Locator

from tests.helpers.lab import Lab

REFUSED = (("", "an empty sentence"), ("word " * 200, "the widget takes up to 40"))  # texts and messages


@pytest.fixture
def new_widget(lab: Lab) -> Locator:
    """The widget of the file's notebook, all of whose cells are run anew."""
    lab.run_all()
    return lab.widget()


def enter(widget: Locator, text: str, *, label: str = "English") -> None:
    """Types a text and sends it."""
    box = widget.get_by_label(label)
    box.fill(text)
    box.press("Enter")


def move(widget: Locator, name: str, value: float) -> None:
    """Sets a slider in one leap, with the event of a drag."""
    slider = widget.get_by_label(name, exact=True)
    slider.evaluate("(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value)
