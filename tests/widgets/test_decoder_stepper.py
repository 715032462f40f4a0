"""The decoder stepper without a browser: tokens, candidates and weights are those of the library's exploration."""

import numpy as np
import pytest
import torch

from course_lib.analysis.exploration import explore
from course_lib.widgets import DecoderStepper
from course_lib.widgets.decoder_stepper import CANDIDATES, MAX_TOKENS
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

TEXT = "The cat sees the dog."


@pytest.fixture
def stepper(translator):
    return DecoderStepper(translator, TEXT)


def law_the_steps_are_the_explorations(state, translator, text):
    found, view = explore(translator, text), state["view"]
    steps = min(len(found.tgt_ids), MAX_TOKENS)
    assert (view["src"], view["predicted"], view["text"]) == (found.src_tokens, found.tgt_tokens[:steps], found.text)
    for row, expected in zip(view["candidates"], found.candidates, strict=True):
        assert row == [[each.token, each.probability] for each in expected]
    assert len(view["candidates"][0]) + view["others"] == translator.model.config.vocab_size
    for name, layers, columns in (
        ("cross", found.attention.cross, len(view["src"])),
        ("own", found.attention.decoder, steps),
    ):
        heads = torch.stack(layers)[:, :, :steps, :columns]
        expected = torch.cat([heads, heads.mean(dim=1, keepdim=True)], dim=1)
        assert (view["layers"], view["heads"] + 1) == expected.shape[:2]
        ours = np.frombuffer(state[name], dtype="<f4").reshape(expected.shape)
        np.testing.assert_allclose(ours, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("text", [TEXT, "I play.", "😀 <b onclick=alert(1)>bold</b> & 'so' on"])
def test_the_steps_are_the_explorations(text, translator):
    law_the_steps_are_the_explorations(DecoderStepper(translator, text).get_state(), translator, text)


def _scaled(stepper, name):
    setattr(stepper, name, (np.frombuffer(getattr(stepper, name), dtype="<f4") * np.float32(0.9)).tobytes())


BROKEN = {
    "another sentence": lambda stepper: setattr(stepper, "text", "The dog sees the cat."),
    "cross-attention fades": lambda stepper: _scaled(stepper, "cross"),
    "self-attention fades": lambda stepper: _scaled(stepper, "own"),
    "not shifted": lambda stepper: setattr(
        stepper, "view", stepper.view | {"predicted": ["<s>", *stepper.view["predicted"][:-1]]}
    ),
    "candidates moved": lambda stepper: setattr(
        stepper, "view", stepper.view | {"candidates": stepper.view["candidates"][::-1]}
    ),
}


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN.keys())
def test_wrong_steps_are_caught(breaks, stepper, translator):
    breaks(stepper)
    with pytest.raises(AssertionError):
        law_the_steps_are_the_explorations(stepper.get_state(), translator, TEXT)


def test_a_new_sentence_begins_at_its_first_step(stepper, translator):
    stepper.step, stepper.head = 7, 2
    stepper.text = "I play."
    assert (stepper.step, stepper.head, stepper.layer, stepper.message) == (1, 2, 1, "")
    law_the_steps_are_the_explorations(stepper.get_state(), translator, "I play.")


def test_a_step_of_the_former_sentence_stays_inside_the_new_one(stepper):
    """The page may have asked for it before it heard of the new sentence."""
    stepper.text = "I play."
    last = len(stepper.view["predicted"])
    stepper.set_state({"step": 7})
    assert stepper.step == last < 7
    assert stepper.picture().get_suptitle().startswith("Having read <s> ▁Ich ")
    stepper.set_state({"step": 0, "layer": 2, "head": 4})
    assert (stepper.step, stepper.layer, stepper.head) == (1, 1, 3)
    stepper.set_state({"layer": -1, "head": -2})
    assert (stepper.layer, stepper.head) == (0, -1) and stepper.picture()


def test_a_text_that_cannot_be_translated_gives_a_message_and_changes_nothing_else(stepper):
    stepper.step = 4
    before = {name: value for name, value in stepper.get_state().items() if name not in ("text", "message")}
    for text, message in {
        "": "an empty sentence cannot be translated: ''",
        "word " * 200: f"the sentence has 401 tokens; the widget takes up to {MAX_TOKENS}",
    }.items():
        stepper.text = text
        assert stepper.message == message
        assert {name: stepper.get_state()[name] for name in before} == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(text=""), "an empty sentence cannot be translated: ''"),
        (dict(step=0), "step must be in 1..7, got 0"),
        (dict(step=8), "step must be in 1..7, got 8"),
        (dict(layer=2), "layer must be in -1..1, got 2"),
        (dict(head=4), "head must be in -1..3, got 4"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, translator):
    assert str(raised(ValueError, lambda: DecoderStepper(translator, **{"text": TEXT} | arguments))) == message


def test_the_stored_picture_says_what_is_seen(translator):
    stepper = DecoderStepper(translator, TEXT, step=3, head=0)
    assert stepper.picture().get_suptitle() == "Having read <s> ▁Die ▁Katze, the decoder predicts ▁sieht (92 %)"
    stepper.step = 1
    assert stepper.picture().get_suptitle() == "Having read <s>, the decoder predicts ▁Die (89 %)"
    words = stored_words(stepper)
    assert words.startswith("Having read <s>,") and CANDIDATES == 5
