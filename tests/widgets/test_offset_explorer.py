"""The offset explorer without a browser: its scores are the library's, and what does not fit is refused."""

import math

import numpy as np
import pytest
import torch
import traitlets as t

from course_lib.position import ALiBi, RelativeBias, Rotary, sinusoidal
from course_lib.widgets import OffsetExplorer
from course_lib.widgets.offset_explorer import BASES, ENCODINGS, LENGTH, VECTORS, WIDTHS
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

LEARNED = RelativeBias(8, 15)
torch.nn.init.normal_(LEARNED.table, generator=torch.Generator().manual_seed(1))


def states():
    """An explorer in every state that the kernel computes."""
    explorer = OffsetExplorer(LEARNED, seed=3)
    for encoding in ENCODINGS:
        explorer.encoding = encoding
        for name, values in (("base", BASES), ("d_k", WIDTHS)) if encoding in VECTORS else (("head", range(8)),):
            for value in values:
                setattr(explorer, name, value)
                yield explorer


def sent(explorer):
    """The numbers that the page gets: scores, queries, keys."""
    shown = (np.frombuffer(raw, np.float32) for raw in (explorer.scores, explorer.query_rows, explorer.key_rows))
    scores, *rows = (torch.tensor(each) for each in shown)
    scores = scores.view(-1, LENGTH, LENGTH)
    assert len(scores) == (1 if explorer.encoding in VECTORS else 8)
    return [scores[explorer.head if len(scores) > 1 else 0], *(each.view(LENGTH, -1) for each in rows)]


def law_scores_are_the_librarys(scores_of):
    for explorer in states():
        scores, vectors = scores_of(explorer), explorer._vectors[:, : explorer.d_k]
        if explorer.encoding in ("alibi", "relative"):
            biases = ALiBi(8) if explorer.encoding == "alibi" else LEARNED
            torch.testing.assert_close(scores, biases.bias(LENGTH, LENGTH)[explorer.head].detach())
            continue
        rows = [each.expand(LENGTH, -1).float() for each in vectors]
        table = sinusoidal(LENGTH, explorer.d_k, base=explorer.base)
        rotary = Rotary(LENGTH, explorer.d_k, base=explorer.base)
        changed = {
            "rotary": rotary.rotate,
            "sinusoids": lambda row, table=table: table,
            "words": lambda row, table=table: row + table,
        }[explorer.encoding]
        query, key = map(changed, rows)
        torch.testing.assert_close(scores, query @ key.T / math.sqrt(explorer.d_k), rtol=1e-4, atol=1e-4)


def test_scores_are_the_librarys():
    law_scores_are_the_librarys(lambda explorer: sent(explorer)[0])
    first = OffsetExplorer(LEARNED, seed=3)
    for wrong in (
        lambda explorer: sent(explorer)[0].T,
        lambda explorer: sent(explorer)[0] / 2,
        lambda explorer: sent(first)[0],  # a control that nothing answers
        lambda explorer: sent(OffsetExplorer(encoding=explorer.encoding))[0],  # other vectors
    ):
        with pytest.raises(AssertionError):
            law_scores_are_the_librarys(wrong)


def test_scores_are_the_products_of_the_rows_that_are_sent():
    for explorer in states():
        scores, queries, keys = sent(explorer)
        if explorer.encoding in VECTORS:
            torch.testing.assert_close(scores, queries @ keys.T / math.sqrt(explorer.d_k), rtol=1e-4, atol=1e-4)
        else:
            assert queries.numel() == keys.numel() == 0


def test_only_the_sum_of_words_and_sinusoids_feels_a_shift():
    """The answer to the widget's question."""
    for explorer in states():
        scores = sent(explorer)[0]
        change = (scores[1:, 1:] - scores[:-1, :-1]).abs().max()
        assert (change > 0.1) == (explorer.encoding == "words"), explorer.name()


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            dict(encoding="rope"),
            "encoding must be one of rotary, relative, alibi, sinusoids, words; got 'rope'",
        ),
        (dict(query=48), "positions must be in 0..47, got 48 and 14"),
        (dict(key=-1), "positions must be in 0..47, got 20 and -1"),
        (dict(shift=17), "shift must be in 0..16, got 17"),
        (dict(relative=RelativeBias(4, 15)), "expected biases of 8 heads, got 4"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    assert str(raised(ValueError, lambda: OffsetExplorer(**changes))) == message


@pytest.mark.parametrize("name, value", [("base", 7), ("d_k", 5), ("head", 8), ("query", 48), ("shift", 17)])
def test_later_values_are_checked_too(name, value):
    explorer = OffsetExplorer()
    with pytest.raises(t.TraitError):
        setattr(explorer, name, value)
    assert getattr(explorer, name) == getattr(OffsetExplorer(), name)


def law_the_picture_shows_the_state(picture, explorer):
    figure = picture(explorer)
    drawn = [axes for axes in figure.axes if axes.images and axes.get_title()]
    vectors, table = explorer._vectors[:, : explorer.d_k], sinusoidal(LENGTH, explorer.d_k, base=explorer.base)
    query, key = (each.expand(LENGTH, -1) for each in vectors)
    if explorer.encoding == "words":
        rotary = Rotary(LENGTH, explorer.d_k, base=explorer.base)
        beside = rotary.rotate(query) @ rotary.rotate(key).T
    else:
        beside = (query + table) @ (key + table).T
    both = (sent(explorer)[0], beside / math.sqrt(explorer.d_k))
    moved = [[place, place + explorer.shift] for place in (explorer.key, explorer.query)]
    for axes, scores in zip(drawn, both, strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), scores, atol=1e-4)
        told = axes.get_title().replace("\n", " ")
        for on in (0, explorer.shift):
            assert f"{scores[explorer.query + on, explorer.key + on]:.2f}" in told
        for line in axes.lines:
            np.testing.assert_array_equal(line.get_data(), moved)
        assert axes.lines[-1].get_marker() == "o"
    assert explorer.name() in drawn[0].get_title().replace("\n", " ")
    title = figure.get_suptitle().replace("\n", " ")
    assert f"query {explorer.query}, key {explorer.key}" in title
    assert ("words on" in title) == (explorer.shift > 0)


def test_the_picture_shows_the_present_state():
    explorer = OffsetExplorer(LEARNED)
    first = explorer.picture()
    law_the_picture_shows_the_state(OffsetExplorer.picture, explorer)
    for changes in (dict(encoding="words", shift=16), dict(encoding="alibi", head=7, shift=0, key=47), dict(query=0)):
        for name, value in changes.items():
            setattr(explorer, name, value)
        law_the_picture_shows_the_state(OffsetExplorer.picture, explorer)
        with pytest.raises(AssertionError):
            law_the_picture_shows_the_state(lambda _: first, explorer)


def test_a_stored_notebook_has_the_picture_and_its_words():
    words = stored_words(OffsetExplorer())
    assert words.startswith("Circles: query 20, key 14, and both 8 words on")
