"""The sampling sliders without a browser: distributions and draws are the library's."""

import copy
import math

import numpy as np
import pytest
import torch

from course_lib.decoding import greedy, sample, sampling_probs
from course_lib.widgets import SamplingSliders
from course_lib.widgets import sampling_sliders as sampling
from course_lib.widgets.sampling_sliders import DRAWS, MAX_TOKENS, SHOWN
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

TEXT = "I play."


@pytest.fixture
def widget(translator):
    return SamplingSliders(translator, TEXT, place=1)


def source(translator, text):
    return torch.tensor([[*translator.tokenizer.encode(text), translator.model.config.eos_id]])


def law_the_distribution_is_the_models(state, translator, text, place):
    """One parallel pass over the greedy translation gives the same, for the tokens that may be written."""
    model, tokenizer = translator.model, translator.tokenizer
    (best,) = greedy(model, source(translator, text), max_len=MAX_TOKENS)
    outputs = best.ids + [2] * best.finished
    assert state["pieces"] == [tokenizer.token(token) for token in outputs]
    with torch.no_grad():
        row = model(source(translator, text), torch.tensor([[1, *outputs[:place]]]))[0, -1].log_softmax(dim=-1)
    row[[0, 1]] = -math.inf
    expected, order = row.sort(descending=True)
    np.testing.assert_allclose(np.frombuffer(state["log_probs"]), expected[:-2], atol=1e-4)
    assert len(state["tokens"]) == SHOWN
    assert state["tokens"][:5] == [tokenizer.token(index) for index in order[:5].tolist()]


def law_the_draws_are_the_librarys(drawn, translator, text, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    many = source(translator, text).expand(DRAWS, -1)
    found = sample(translator.model, many, **options, generator=generator, max_len=MAX_TOKENS)
    (best,) = greedy(translator.model, many[:1], max_len=MAX_TOKENS)
    decode = translator.tokenizer.decode
    assert drawn["greedy"] == decode(best.ids)
    assert sum(each["count"] for each in drawn["outputs"]) == DRAWS
    counts = [each["count"] for each in drawn["outputs"]]
    assert counts == sorted(counts, reverse=True)
    for each in found:
        text = decode(each.ids) + ("" if each.finished else " …")
        same = [output for output in drawn["outputs"] if output["text"] == text]
        assert any(math.isclose(output["log_prob"], each.log_prob, abs_tol=1e-4) for output in same)
    right = sum(each.ids == best.ids for each in found)
    assert sum(output["count"] for output in drawn["outputs"] if output["greedy"]) == right
    return right


@pytest.mark.parametrize("text, place", [(TEXT, 1), (TEXT, 5), ("The cat sleeps.", 1)])
def test_the_distribution_is_the_models(text, place, translator):
    state = SamplingSliders(translator, text, place=place).get_state()
    law_the_distribution_is_the_models(state, translator, text, place)


BROKEN = {
    "another place": lambda widget: setattr(widget, "place", 2),
    "another sentence": lambda widget: setattr(widget, "text", "You play."),
    "reshaped twice": lambda widget: setattr(widget, "log_probs", (np.frombuffer(widget.log_probs) / 2).tobytes()),
    "tokens moved": lambda widget: setattr(widget, "tokens", widget.tokens[1:]),
}


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_distribution_is_caught(breaks, widget, translator):
    breaks(widget)
    with pytest.raises(AssertionError):
        law_the_distribution_is_the_models(widget.get_state(), translator, TEXT, 1)


def test_the_settings_reshape_as_the_library_does(widget):
    log_probs = torch.tensor(np.frombuffer(widget.log_probs).copy())[None]
    for settings, options in (
        (dict(temperature=1.0, top_k=0, top_p=1.0), {}),
        (dict(temperature=0.5, top_k=5, top_p=1.0), dict(temperature=0.5, top_k=5)),
        (dict(temperature=2.0, top_k=0, top_p=0.8), dict(temperature=2.0, top_p=0.8)),
    ):
        widget.set_state(settings)
        assert torch.equal(widget.probs, sampling_probs(log_probs, **options)[0])


def test_the_draws_are_the_librarys(widget, translator):
    assert law_the_draws_are_the_librarys(widget.drawn, translator, TEXT) < DRAWS / 4
    widget.text, widget.temperature, widget.top_k, widget.top_p, widget.seed = "The cat sleeps.", 0.7, 4, 0.9, 3
    assert widget.drawn["settings"] == [0.7, 4, 0.9, 3, "The cat sleeps."]
    options = dict(temperature=0.7, top_k=4, top_p=0.9)
    assert law_the_draws_are_the_librarys(widget.drawn, translator, "The cat sleeps.", seed=3, **options) == DRAWS
    wrong = copy.deepcopy(widget.drawn)
    wrong["outputs"][0]["greedy"] = False
    for drawn, changed in ((wrong, {}), (widget.drawn, dict(temperature=3.0, top_k=None, top_p=None))):
        with pytest.raises(AssertionError):
            law_the_draws_are_the_librarys(drawn, translator, "The cat sleeps.", **{"seed": 3} | options | changed)


def test_what_comes_together_is_drawn_once(widget, monkeypatch):
    """The page sends a new sentence with the sliders that were moved before it."""
    asked, draw = [], sampling.sample
    monkeypatch.setattr(sampling, "sample", lambda *given, **options: asked.append(options) or draw(*given, **options))
    widget.set_state({"temperature": 0.7, "seed": 3, "text": "The cat sleeps."})
    assert len(asked) == 1 and widget.drawn["settings"] == [0.7, 0, 1.0, 3, "The cat sleeps."]


def test_a_text_that_cannot_be_translated_gives_a_message_and_changes_nothing_else(widget):
    before = {name: value for name, value in widget.get_state().items() if name not in ("text", "message")}
    for text, message in {
        "": "an empty sentence cannot be translated: ''",
        "word " * 200: f"the sentence has 401 tokens; the widget takes up to {MAX_TOKENS}",
    }.items():
        widget.text = text
        assert widget.message == message
        assert {name: widget.get_state()[name] for name in before} == before
    widget.text = "The cat sleeps."
    assert widget.message == "" and widget.pieces[0] == "▁Die"


def test_a_shorter_translation_keeps_the_place_in_it(translator):
    widget = SamplingSliders(translator, TEXT, place=5)
    widget.text = "The cat sleeps."
    assert widget.place == len(widget.pieces) - 1 == 4
    law_the_distribution_is_the_models(widget.get_state(), translator, "The cat sleeps.", 4)


def test_a_place_of_the_former_sentence_stays_inside_the_new_one(translator):
    """The page may have asked for it before it heard of the new sentence."""
    widget = SamplingSliders(translator, TEXT, place=5)
    widget.text = "The cat sleeps."
    for asked, given in ((5, 4), (-1, 0)):
        widget.set_state({"place": asked})
        assert widget.place == given and widget.picture()
        law_the_distribution_is_the_models(widget.get_state(), translator, "The cat sleeps.", given)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(text=""), "an empty sentence cannot be translated: ''"),
        (dict(text="a " * 50), "the sentence has 51 tokens; the widget takes up to 40"),
        (dict(place=6), "place must be in 0..5, the translation's tokens, got 6"),
        (dict(place=-1), "place must be in 0..5, the translation's tokens, got -1"),
        (dict(temperature=0.0), "temperature must be in 0.05..5.0, got 0.0"),
        (dict(temperature=math.nan), "temperature must be in 0.05..5.0, got nan"),
        (dict(top_k=0), "top_k must be in 1..50, got 0"),
        (dict(top_p=1.2), "top_p must be in 0.05..1.0, got 1.2"),
        (dict(seed=100), "seed must be in 0..99, got 100"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, translator):
    assert str(raised(ValueError, lambda: SamplingSliders(translator, **{"text": TEXT} | arguments))) == message


def test_the_stored_picture_says_what_is_seen(widget):
    assert widget.picture().get_suptitle() == "1,998 of 1,998 tokens can follow <s> ▁Ich (temperature 1.0)"
    widget.top_k, widget.temperature = 3, 0.5
    assert widget.picture().get_suptitle() == "3 of 1,998 tokens can follow <s> ▁Ich (temperature 0.5, top_k 3)"
    words = stored_words(widget)
    assert words.startswith("3 of 1,998 tokens")
