"""The position explorer without a browser: its numbers are the library's, and what does not fit is refused."""

import math

import numpy as np
import pytest
import torch
import traitlets as t

from course_lib.position import sinusoidal
from course_lib.widgets import PositionExplorer
from course_lib.widgets.position_explorer import BASES
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words


def law_it_computes_what_the_library_does(compute):
    for length, d_model, offset in ((2, 2, 0), (64, 32, 3), (128, 64, 32)):
        for base in BASES:
            table, products = compute(PositionExplorer(length, d_model, base, first=1, second=0, offset=offset))
            expected = sinusoidal(length + offset, d_model, base=base)
            torch.testing.assert_close(table, expected)
            distance = (torch.arange(length + offset)[:, None] - torch.arange(length + offset)).double()
            angles = distance[..., None] / base ** (torch.arange(0, d_model, 2).double() / d_model)
            torch.testing.assert_close(products.double(), angles.cos().sum(dim=-1), rtol=0, atol=1e-3)


def test_it_computes_what_the_library_does():
    law_it_computes_what_the_library_does(PositionExplorer.compute)


def with_table(change):
    def compute(explorer):
        table = change(explorer, explorer.compute()[0])
        return table, table @ table.T

    return compute


@pytest.mark.parametrize(
    "wrong",
    [
        with_table(lambda explorer, table: sinusoidal(len(table), explorer.d_model)),  # the base is forgotten
        with_table(lambda explorer, table: table[: explorer.length]),  # the offset is
        with_table(lambda explorer, table: torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)),
        lambda explorer: (explorer.compute()[0], explorer.compute()[1] / 2),
    ],
)
def test_the_law_can_fail(wrong):
    with pytest.raises((AssertionError, RuntimeError)):
        law_it_computes_what_the_library_does(wrong)


def test_positions_stay_inside():
    explorer = PositionExplorer(64, first=63, second=20)
    explorer.length = 32
    assert (explorer.first, explorer.second) == (31, 20)
    explorer.second = 40
    assert explorer.second == 31
    explorer.length = 2
    assert (explorer.first, explorer.second) == (1, 1)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(length=1), "length must be in 2..128, got 1"),
        (dict(length=129), "length must be in 2..128, got 129"),
        (dict(d_model=7), "d_model must be even and in 2..64, got 7"),
        (dict(d_model=0), "d_model must be even and in 2..64, got 0"),
        (dict(d_model=66), "d_model must be even and in 2..64, got 66"),
        (dict(base=9.0), "base must be one of 10, 100, 1000, 10000, 100000, got 9.0"),
        (dict(base=math.nan), "base must be one of 10, 100, 1000, 10000, 100000, got nan"),
        (dict(first=64), "positions must be in 0..63, got 64 and 12"),
        (dict(second=-1), "positions must be in 0..63, got 5 and -1"),
        (dict(offset=33), "offset must be in 0..32, got 33"),
        (dict(offset=-1), "offset must be in 0..32, got -1"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    assert str(raised(ValueError, lambda: PositionExplorer(**changes))) == message


@pytest.mark.parametrize("name, value", [("d_model", 5), ("d_model", 66), ("base", 7.0), ("offset", 33), ("length", 1)])
def test_later_values_are_checked_too(name, value):
    explorer = PositionExplorer()
    with pytest.raises(t.TraitError):
        setattr(explorer, name, value)
    assert getattr(explorer, name) == getattr(PositionExplorer(), name)


def law_the_picture_shows_the_state(picture, explorer):
    figure = picture(explorer)
    table, alike = (axes.images[0].get_array() for axes in figure.axes if axes.images)
    expected = sinusoidal(explorer.length, explorer.d_model, base=explorer.base)
    np.testing.assert_allclose(table, expected, atol=1e-6)
    np.testing.assert_allclose(alike, expected @ expected.T / (explorer.d_model / 2), atol=1e-5)
    product = expected[explorer.first] @ expected[explorer.second]
    words = f"PE({explorer.first}) · PE({explorer.second}) = {product:.2f} of at most {explorer.d_model // 2}"
    assert words in figure.get_suptitle().replace("\n", " ")


def test_the_picture_shows_the_present_state():
    explorer = PositionExplorer()
    first = explorer.picture()
    law_the_picture_shows_the_state(PositionExplorer.picture, explorer)
    assert first.get_suptitle().replace("\n", " ").endswith("and 3 words on 11.43")
    explorer.length, explorer.base, explorer.offset = 20, 10.0, 0
    law_the_picture_shows_the_state(PositionExplorer.picture, explorer)
    with pytest.raises(AssertionError):
        law_the_picture_shows_the_state(lambda _: first, explorer)


def test_a_stored_notebook_has_the_picture_and_its_words():
    assert stored_words(PositionExplorer()).startswith("Sinusoids with base 10,000: PE(5) · PE(12) = ")
