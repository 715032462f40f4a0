"""The model playground without a browser: what it shows is the models', whatever is painted or typed."""

import pytest
import torch
import traitlets as t

from course_lib.config import ModelConfig
from course_lib.experiments import CHARACTERS
from course_lib.families import LanguageModel, VisionTransformer, write
from course_lib.widgets import ModelPlayground
from course_lib.widgets.model_playground import DRAWS, LONGEST
from tests.helpers.laws import raised, tells_apart

SIZES = dict(d_model=12, num_heads=3, num_layers=2, d_ff=20, dropout=0.1, max_len=96)


@pytest.fixture
def playground():
    torch.manual_seed(0)
    classifier = VisionTransformer(ModelConfig(vocab_size=10, **SIZES), side=8, patch=2, channels=1, num_classes=10)
    writer = LanguageModel(ModelConfig(vocab_size=len(CHARACTERS), **SIZES))
    return ModelPlayground(classifier, writer, CHARACTERS, torch.rand(2, 8, 8))


def law_the_answer_is_the_classifiers(widget):
    picture = torch.tensor(widget.pixels).view(1, 1, 8, 8)
    with torch.no_grad():
        wanted = widget._classifier.eval()(picture).softmax(dim=-1)[0]
    torch.testing.assert_close(torch.tensor(widget.probs), wanted)
    assert len(widget.looks) == 16 and 0 < sum(widget.looks) < 1


def upside_down(widget):
    widget.probs = widget.probs[::-1]
    return widget


def test_the_answer_is_the_classifiers(playground):
    law_the_answer_is_the_classifiers(playground)
    before = list(playground.probs)
    for pixels in ([0.0] * 64, [1.0] * 64, playground.examples[1]):
        playground.pixels = pixels
        law_the_answer_is_the_classifiers(playground)
    assert before != playground.probs
    tells_apart(lambda change: law_the_answer_is_the_classifiers(change(playground)), lambda same: same, upside_down)
    assert raised(t.TraitError, lambda: setattr(playground, "pixels", [0.0] * 5))
    playground.pixels = [7.0] * 64
    assert playground.pixels == [1.0] * 64


def test_the_texts_are_drawn_as_the_library_does(playground):
    playground.text, playground.seed, playground.temperature = "the old", 3, 0.5
    start = torch.tensor([[1, *CHARACTERS.ids("the old")]]).expand(DRAWS, -1)
    generator = torch.Generator().manual_seed(3)
    rows = write(playground._writer, start, most=LONGEST - 7, temperature=0.5, generator=generator).tolist()
    spelled = ["".join(CHARACTERS.words(i for i in row if i > 2)).replace("<unk>", "_") for row in rows]
    assert playground.written == spelled
    assert all(text.startswith("the old") for text in playground.written)


def test_an_unknown_character_is_shown_as_a_gap(playground):
    bias = torch.zeros(len(CHARACTERS)).index_fill(0, torch.tensor([3]), 99.0)
    playground._writer.generator.bias = torch.nn.Parameter(bias)
    playground.text = "The"
    assert not playground.message and all(text.startswith("The") for text in playground.written)
    assert all(set(text[3:]) == {"_"} for text in playground.written)


def test_what_the_writer_cannot_read_is_told(playground):
    before = playground.written
    for text in ("die Tür", "a" * 200):
        playground.text = text
        assert "the writer knows letters" in playground.message and playground.written == before
    playground.text = ""
    assert playground.message == ""
    playground.temperature, playground.seed = 99.0, 1000
    assert (playground.temperature, playground.seed) == (2.0, 99)


def test_its_picture_says_what_it_shows(playground):
    assert f"{max(playground.probs):.0%}" in playground.picture()._repr_png_()[1]["alt"]
