"""The model playground, painted on and typed into; an untrained classifier's answers are compared with its own."""

import pytest
from playwright.sync_api import Locator, expect

from tests.helpers.lab import eventually
from tests.helpers.pages import enter, new_widget

CELLS = (
    "import torch\nfrom course_lib.config import ModelConfig\nfrom course_lib.experiments import CHARACTERS\n"
    "from course_lib.families import LanguageModel, VisionTransformer\n"
    "from course_lib.widgets import ModelPlayground\ntorch.manual_seed(0)\n"
    "sizes = dict(d_model=12, num_heads=3, num_layers=2, d_ff=20, max_len=96)",
    "classifier = VisionTransformer(ModelConfig(10, **sizes), side=8, patch=2, channels=1, num_classes=10)\n"
    "writer = LanguageModel(ModelConfig(len(CHARACTERS), **sizes))\n"
    "widget = ModelPlayground(classifier, writer, CHARACTERS, torch.eye(8).expand(2, -1, -1))\nwidget",
)
widget = new_widget


def shades(widget: Locator) -> list[str]:
    return widget.locator(".cw-cell").evaluate_all("cells => cells.map(cell => cell.getAttribute('aria-label'))")


@eventually
def shows(widget: Locator, ink: set[tuple[int, int]]) -> None:
    """The pixels with ink are these, and ten probabilities sum to about 1."""
    found = {divmod(index, 8) for index, words in enumerate(shades(widget)) if words.endswith(": 100.0 %")}
    assert found == ink
    texts = widget.locator("tbody tr td:nth-child(2)").all_text_contents()
    assert len(texts) == 10 and sum(float(text.split()[0]) for text in texts) == pytest.approx(100, abs=1)


DIAGONAL = {(place, place) for place in range(8)}


def test_a_stroke_paints_and_erases(widget):
    shows(widget, DIAGONAL)
    cells = widget.locator(".cw-cell")
    cells.nth(1).click()
    shows(widget, DIAGONAL | {(0, 1)})
    cells.nth(0).click()
    shows(widget, DIAGONAL - {(0, 0)} | {(0, 1)})
    widget.get_by_role("button", name="clear").click()
    shows(widget, set())
    widget.get_by_role("button", name="example 2").click()
    shows(widget, DIAGONAL)
    with pytest.raises(AssertionError):
        shows(widget, set(), seconds=0.2)


def test_the_keyboard_paints(widget):
    widget.locator(".cw-cell").first.focus()
    widget.page.keyboard.press("ArrowRight")
    widget.page.keyboard.press("Enter")
    shows(widget, DIAGONAL | {(0, 1)})


def test_the_writer_goes_on(widget):
    texts = widget.locator("li")
    expect(texts).to_have_count(4)
    enter(widget, "the old", label="beginning")
    for number in range(4):
        expect(texts.nth(number)).to_contain_text("the old")
    enter(widget, "Tür", label="beginning")
    expect(widget.locator(".cw-error")).to_contain_text("the writer knows letters")


def test_it_is_photographed(widget, lab):
    lab.photograph(widget, "model_playground")
