"""Laws of the drawn architecture: its boxes hold the model's own numbers, and it follows the stations."""

import re
from dataclasses import replace

import pytest

from course_lib.analysis import stations
from course_lib.config import POSITIONS, ModelConfig
from course_lib.figures import architecture_figure

SMALL = ModelConfig(vocab_size=1000, d_model=16, num_heads=2, num_layers=3, d_ff=40, max_len=50)


def drawn(config, *, src_len, tgt_len, title):
    return architecture_figure(stations(config, src_len, tgt_len), title=title)


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def law_boxes_add_up_to_the_model(draw, config):
    drawn = words(draw(config, src_len=5, tgt_len=7, title="t"))
    position = drawn.index(next(word for word in drawn if word.startswith("memory")))
    total = 0
    for column in (drawn[:position], drawn[position:]):
        for word in column:
            if count := re.fullmatch(r"[a-z].*: ([\d,]+)", word):
                repeats = 1 if word.startswith("final") else config.num_layers
                total += repeats * int(count[1].replace(",", ""))
            elif count := re.search(r": ([\d.]+) M$", word):
                total += round(1e6 * float(count[1]))
            elif word.startswith("+ learned"):
                total += int(word.rpartition(": ")[2].replace(",", ""))
    assert total == config.num_parameters


CONFIGS = [
    replace(SMALL, vocab_size=100_000),  # a table of 1.6 million numbers, shown exactly
    replace(SMALL, vocab_size=100_000, norm_first=True, tie_weights=False),
    replace(SMALL, vocab_size=100_000, norm_first=True, position="learned"),
    replace(SMALL, vocab_size=100_000, position="rotary"),
]


@pytest.mark.parametrize("config", CONFIGS, ids=["paper", "pre-norm untied", "learned", "rotary"])
def test_boxes_add_up_to_the_model(config):
    law_boxes_add_up_to_the_model(drawn, config)
    for wrong in (dict(d_ff=41), dict(norm_first=not config.norm_first), dict(tie_weights=not config.tie_weights)):
        with pytest.raises(AssertionError):
            law_boxes_add_up_to_the_model(
                lambda config, wrong=wrong, **named: drawn(replace(config, **wrong), **named), config
            )


def law_positions_are_where_they_are_told(draw):
    drawn = {name: words(draw(replace(SMALL, position=name), src_len=5, tgt_len=7, title="t")) for name in POSITIONS}
    for name, found in drawn.items():
        added = [word for word in found if "position (" in word]
        assert len(added) == (2 if name in ("sinusoidal", "learned") else 0), name
        told = [word for word in found if word.lower().startswith(("self-", "masked")) and name in word.lower()]
        assert len(told) == (2 if name in ("alibi", "rotary") else 0), name


def test_positions_are_where_they_are_told():
    law_positions_are_where_they_are_told(drawn)
    with pytest.raises(AssertionError):
        law_positions_are_where_they_are_told(
            lambda config, **named: drawn(replace(config, position="sinusoidal"), **named)
        )


def law_shapes_are_those_of_the_sentence(draw):
    drawn = words(draw(SMALL, src_len=5, tgt_len=7, title="t"))
    assert {"source ids (5)", "target ids, shifted right (7)", "memory (5, 16)", "logits (7, 1,000)"} <= set(drawn)
    assert {"Encoder: 3 layers", "Decoder: 3 layers"} <= set(drawn)


def test_shapes_are_those_of_the_sentence():
    law_shapes_are_those_of_the_sentence(drawn)
    with pytest.raises(AssertionError):
        law_shapes_are_those_of_the_sentence(
            lambda config, src_len, tgt_len, title: drawn(config, src_len=tgt_len, tgt_len=src_len, title=title)
        )


def law_order_of_the_norms(draw):
    """From the bottom up, post-norm ends each sub-layer with a norm, pre-norm begins with one."""
    for norm_first in (False, True):
        drawn = words(draw(replace(SMALL, norm_first=norm_first), src_len=5, tgt_len=7, title="t"))
        attention = next(index for index, word in enumerate(drawn) if word.startswith("self-attention"))
        assert drawn[attention - 1].startswith("norm") == norm_first
        assert drawn[attention + 1].startswith("add & norm") == (not norm_first)
        assert any(word.startswith("final norm") for word in drawn) == norm_first


def test_order_of_the_norms():
    law_order_of_the_norms(drawn)
    with pytest.raises(AssertionError):
        law_order_of_the_norms(
            lambda config, **named: drawn(replace(config, norm_first=not config.norm_first), **named)
        )


def law_nothing_is_written_over_an_edge(draw, config):
    figure = draw(config, src_len=30, tgt_len=30, title="t")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [patch.get_window_extent() for patch in axes.patches]
    for text in axes.texts:
        extent = text.get_window_extent()
        middle = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
        around = [box for box in boxes if box.contains(*middle)]
        fits = [box.x0 <= extent.x0 and extent.x1 <= box.x1 for box in around]
        assert all(fits), f"{text.get_text()!r} leaves its box"
        assert figure.bbox.contains(extent.x0, extent.y0) and figure.bbox.contains(extent.x1, extent.y1)


def test_nothing_is_written_over_an_edge():
    wide = ModelConfig(vocab_size=37_000, d_model=1024, num_heads=16, d_ff=4096, norm_first=True, position="learned")
    law_nothing_is_written_over_an_edge(drawn, wide)
    with pytest.raises(AssertionError):
        law_nothing_is_written_over_an_edge(drawn, replace(wide, vocab_size=10**9, d_model=10_240, d_ff=10**15))
