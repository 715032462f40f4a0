"""The playground, typed into: the German on the page is the library's, and the page takes any text."""

import pytest
from playwright.sync_api import Locator, expect

from course_lib.analysis.exploration import explore
from course_lib.translator import Translator
from tests.helpers.lab import eventually
from tests.helpers.pages import new_widget

CELLS = (
    """from course_lib.translator import Translator
from course_lib.widgets import Playground
Playground(Translator.from_pretrained("course"), "The cat sleeps.")""",
)
TRANSLATOR = Translator.from_pretrained("course")


playground = new_widget


@eventually
def answers(playground: Locator, text: str) -> None:
    expected = explore(TRANSLATOR, text)
    assert playground.locator(".cw-answer").inner_text() == expected.text
    pieces = playground.locator(".cw-chip[data-probability]")
    found = pieces.evaluate_all("nodes => nodes.map(n => Number(n.dataset.probability))")
    assert found == pytest.approx(expected.probabilities, abs=1e-4)
    labels = [f"{token} {p:.2f}" for token, p in zip(expected.tgt_tokens, expected.probabilities, strict=True)]
    assert pieces.all_inner_texts() == labels


def test_it_translates_what_is_typed_key_by_key(playground):
    answers(playground, "The cat sleeps.")
    box = playground.get_by_label("English")
    box.fill("")
    expect(playground.locator(".cw-error")).to_have_text("Type an English sentence.")
    box.press_sequentially("The dog sees the cat.", delay=20)
    answers(playground, "The dog sees the cat.")
    expect(playground.locator(".cw-message")).to_have_text("")
    with pytest.raises(AssertionError):
        answers(playground, "The cat sees the dog.", seconds=0.2)


def test_any_text_is_answered(playground):
    box = playground.get_by_label("English")
    for text in ("😀 & <b onclick=alert(1)>bold</b>", "word " * 40):
        box.fill(text)
        answers(playground, text)
    box.fill("word " * 200)
    expect(playground.locator(".cw-error")).to_contain_text("tokens; the widget takes up to 100")
    assert playground.locator("b").count() == 0


def test_what_the_reader_should_know_is_told(playground):
    remarks, box = playground.locator(".cw-remarks"), playground.get_by_label("English")
    expect(remarks).to_have_text("")
    box.fill("The cat sees 12345 dogs.")
    expect(remarks).to_have_text("not in the translation: 12345")
    box.fill("The cat sleeps.")
    expect(remarks).to_have_text("")


def test_a_key_is_answered_soon(playground, lab):
    """The pause after the last key is part of it; what the kernel and the page need comes on top."""
    texts = [f"The {noun} sees the dog." for noun in "cat dog bird man woman child".split()] * 4
    lab.answers_within(150 + 100, playground.get_by_label("English"), texts, playground.locator(".cw-answer"))


def test_it_is_photographed(playground, lab):
    lab.photograph(playground, "playground")
