"""The playground without a browser: its answers are the library's, and what cannot be translated changes nothing."""

import pytest

from course_lib.analysis.exploration import explore
from course_lib.widgets import Playground
from course_lib.widgets.playground import MAX_TOKENS
from tests.helpers.laws import tells_apart
from tests.helpers.tiny import Echo, toy_translator

TRANSLATOR = toy_translator(spread=4)
TEXTS = ["a dog sees a cat .", "a man hears a bird .", "a", "😀 <b>x</b>"]


def it_answers_with_the_library(make):
    playground = make(TRANSLATOR, TEXTS[0])
    for text in TEXTS:
        playground.text = text
        expected = explore(TRANSLATOR, text)
        assert playground.view["text"] == expected.text and playground.message == ""
        assert playground.view["src"] == expected.src_tokens[:-1] and playground.view["tgt"] == expected.tgt_tokens
        assert playground.view["probabilities"] == expected.probabilities
        assert 0 < playground.view["milliseconds"] < 60_000


class AlwaysTheFirst(Playground):
    def _translate(self):
        if not self.view:
            super()._translate()


def test_it_answers_with_the_library():
    it_answers_with_the_library(Playground)
    with pytest.raises(AssertionError):
        it_answers_with_the_library(AlwaysTheFirst)


@pytest.mark.parametrize(
    "text, message", [("", "Type an English"), ("   ", "Type an English"), ("a dog " * 100, f"up to {MAX_TOKENS}")]
)
def test_what_cannot_be_translated_leaves_the_last_answer(text, message):
    playground = Playground(TRANSLATOR, TEXTS[0])
    view = playground.view
    playground.text = text
    assert message in playground.message and playground.view == view
    playground.text = TEXTS[1]
    assert playground.message == "" and playground.view["text"] == explore(TRANSLATOR, TEXTS[1]).text
    assert message in Playground(TRANSLATOR, text).picture().get_suptitle().replace("\n", " ")


def test_its_picture_shows_both_sentences_and_the_probabilities():
    playground = Playground(TRANSLATOR, TEXTS[0])
    figure = playground.picture()
    assert figure.get_suptitle().replace("\n", " ") == f"{TEXTS[0]} → {playground.view['text']}"
    assert [bar.get_width() for bar in figure.axes[0].patches] == playground.view["probabilities"]


LONG = "A dog sees a cat. A bird hears a man! A child knows a horse. " * 3


def law_a_long_text_is_translated_whole(playground_class):
    """Without pieces, and with the remark that it was split; one sentence has its pieces again."""
    playground = playground_class(Echo(), LONG)
    assert playground.view["text"] == LONG.strip() and playground.message == ""
    assert playground.view["src"] == playground.view["tgt"] == playground.view["probabilities"] == []
    assert playground.view["remarks"] == ["9 sentences, translated one by one"]
    assert "A dog sees a cat." in playground.picture().get_suptitle()
    playground.text = "a dog"
    assert playground.view["src"] and playground.view["remarks"] == []
    playground.text = LONG * 10
    assert playground.message == "the text has 450 words; the widget takes up to 300"


class OfTheSentenceBefore(Playground):
    def _answer(self):
        return super()._answer() | {"src": ["a"]}


class WithoutRemarks(Playground):
    def _answer(self):
        return super()._answer() | {"remarks": []}


def test_a_long_text_is_translated_whole():
    tells_apart(law_a_long_text_is_translated_whole, Playground, OfTheSentenceBefore, WithoutRemarks)


def test_a_number_that_got_lost_is_remarked():
    assert Playground(TRANSLATOR, "a dog 12345").view["remarks"] == ["not in the translation: 12345"]
