"""The architecture map without a browser: boxes and sums are those of the library, for each size and length."""

from dataclasses import replace

import pytest

from course_lib.analysis.anatomy import stations
from course_lib.config import model_preset
from course_lib.widgets import ArchitectureMap
from tests.helpers.laws import changed, raised
from tests.helpers.stored import stored_words

BASE, BIG = (model_preset(name, vocab_size=37_000) for name in ("base", "big"))


@pytest.fixture
def widget():
    return ArchitectureMap(BASE)


def law_the_view_is_the_models(view, config, src_len, tgt_len):
    """Each box is the library's, and their counts add up to the library's totals."""
    assert view["parameters"] == config.num_parameters == sum(box["parameters"] for box in view["boxes"])
    flops = sum(config.flop_counts(src_len, tgt_len).values())
    assert view["flops"] == flops == sum(box["flops"] for box in view["boxes"])
    assert view["bytes"] == 16 * config.num_parameters
    assert (view["layers"], view["lengths"]) == (config.num_layers, [src_len, tgt_len])
    expected = stations(config, src_len, tgt_len)
    assert [box["name"] for box in view["boxes"]] == [station.name for station in expected]
    for box, station in zip(view["boxes"], expected, strict=True):
        assert {name: tuple(shape) for name, *shape in box["shapes"]} == station.shapes
        for name in ("label", "stack", "layers", "parameter_formula", "flop_formula", "note"):
            assert box[name] == getattr(station, name)
        for component in (config.parameter_counts(), config.flop_counts(src_len, tgt_len)):
            if station.name in component:
                assert component[station.name] in (box["parameters"], box["flops"])


def test_the_view_is_the_models(widget):
    law_the_view_is_the_models(widget.view, BASE, 7, 7)
    widget.set_state(widget.presets["big"])
    law_the_view_is_the_models(widget.view, BIG, 7, 7)
    widget.src_len, widget.tgt_len, widget.vocab_size = 3000, 1, 1000
    law_the_view_is_the_models(widget.view, replace(BIG, vocab_size=1000), 3000, 1)
    assert widget.config == replace(BIG, dropout=BASE.dropout, vocab_size=1000)


BROKEN = {
    "a box is missing": changed(lambda view: view["boxes"].pop(3)),
    "another shape": changed(lambda view: view["boxes"][3]["shapes"][3].reverse()),
    "another total": changed(lambda view: view.update(parameters=65_000_000)),
    "operations of the parameters": changed(lambda view: view["boxes"][3].update(flops=view["boxes"][3]["parameters"])),
    "float16": changed(lambda view: view.update(bytes=view["bytes"] // 2)),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_view_is_caught(broken, widget):
    with pytest.raises(AssertionError):
        law_the_view_is_the_models(broken(widget.view), BASE, 7, 7)


def test_sizes_that_fit_no_model_give_a_message_and_change_nothing_else(widget):
    before = widget.view
    widget.num_heads = 7
    assert widget.message == "d_model must be divisible by num_heads, got d_model=512, num_heads=7"
    widget.src_len = 0
    widget.num_heads = 8
    assert widget.message == "src_len must be at least 1, got 0"
    assert (widget.view, widget.config) == (before, BASE)
    widget.src_len = 7
    assert (widget.message, widget.view) == ("", before)


def test_other_models_have_other_boxes():
    mini = model_preset("mini", vocab_size=2000, position="learned", tie_weights=False)
    widget = ArchitectureMap(mini, src_len=9, tgt_len=8, box="decoder final norm")
    law_the_view_is_the_models(widget.view, mini, 9, 8)
    assert widget.box == "decoder final norm"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(src_len=0), "src_len must be at least 1, got 0"),
        (dict(tgt_len=-1), "tgt_len must be at least 1, got -1"),
        (dict(box="decoder final norm"), "got 'decoder final norm'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    assert message in str(raised(ValueError, lambda: ArchitectureMap(BASE, **arguments)))


def test_the_stored_picture_says_what_is_seen(widget):
    seen = "63.1 million parameters, 0.88 billion FLOPs for 7 + 7 tokens"
    assert widget.picture().get_suptitle() == seen
    assert stored_words(widget) == seen
    widget.set_state(widget.presets["big"])
    assert widget.picture().get_suptitle().startswith("214.2 million parameters")
