"""Laws of every figure: nothing is left behind, the user's own style is ignored, grey is enough."""

import matplotlib
import numpy as np
import pytest
from matplotlib import colormaps, pyplot

from course_lib.figures import canvas, charts, matrices, palette, row_charts
from course_lib.figures.matrices import Panel, attention_grid, attention_map, mask_grid, panels, signed_matrix
from tests.helpers.figures import (
    SERIES,
    SRC,
    TGT,
    law_a_long_title_takes_nothing_from_the_drawing,
    law_looks_the_same_in_a_users_own_style,
    law_nothing_is_left_behind,
    law_stays_on_the_page,
    lightness,
    some_weights,
)

FIGURES = {
    "attention_map": lambda: attention_map(some_weights(3, 4), TGT, SRC, title="t"),
    "attention_grid": lambda: attention_grid(some_weights(2, 3, 4), TGT, SRC, title="t"),
    "mask_grid": lambda: mask_grid(np.eye(3, 4, dtype=bool), TGT, SRC, title="t"),
    "signed_matrix": lambda: signed_matrix(np.eye(3, 4), TGT, SRC, title="t"),
    "curves": lambda: charts.curves(SERIES, xlabel="x", ylabel="y", title="t"),
    "bars": lambda: row_charts.bars(["a"], [1], xlabel="x", title="t"),
    "panels": lambda: panels([Panel(np.eye(3, 4), TGT, SRC, "a"), Panel(np.eye(2), "ab", "ab", "b")], title="t"),
    "stacked_bars": lambda: row_charts.stacked_bars({"a": {"b": 1}}, xlabel="x", title="t"),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_a_figure_leaves_nothing_behind_and_ignores_the_users_style(draw):
    law_nothing_is_left_behind(draw)
    law_looks_the_same_in_a_users_own_style(draw)
    law_stays_on_the_page(draw)


def test_the_laws_of_all_figures_can_fail():
    def with_pyplot():
        return pyplot.figure()

    def that_changes_the_style():
        matplotlib.rcParams["font.size"] = 11.5
        return FIGURES["bars"]()

    with matplotlib.rc_context():
        for wrong in (with_pyplot, that_changes_the_style):
            with pytest.raises(AssertionError):
                law_nothing_is_left_behind(wrong)
    pyplot.close("all")

    def too_wide():
        figure = FIGURES["bars"]()
        figure.text(0.9, 0.5, "words that leave the page")
        return figure

    with pytest.raises(AssertionError, match="cut off"):
        law_stays_on_the_page(too_wide)
    unstyled = row_charts.bars.__wrapped__
    with pytest.raises(AssertionError):
        law_looks_the_same_in_a_users_own_style(lambda: unstyled(["a"], [1], xlabel="x", title="t"))


def _of_one_size(title, width, height):
    figure = canvas.CourseFigure(figsize=(width, height))
    canvas.set_title(figure, title, width)
    return figure


@canvas.styled
@pytest.mark.parametrize(
    ("draw", "sizing"),
    [
        (lambda title: attention_map(some_weights(3, 4), TGT, SRC, title=title), (matrices, "lay_out")),
        (lambda title: row_charts.bars(["a", "b"], [1, 2], xlabel="x", title=title), (row_charts, "new_figure")),
    ],
    ids=["matrices", "charts"],
)
def test_a_long_title_takes_nothing_from_the_drawing(monkeypatch, draw, sizing):
    law_a_long_title_takes_nothing_from_the_drawing(draw)
    wrong = {"new_figure": _of_one_size, "lay_out": _on_a_page_of_one_size}[sizing[1]]
    monkeypatch.setattr(*sizing, wrong)
    with pytest.raises(AssertionError):
        law_a_long_title_takes_nothing_from_the_drawing(draw)


def _on_a_page_of_one_size(axes, bars, sheet, title):
    axes[0].figure.set_size_inches(5, 3)
    canvas.set_title(axes[0].figure, title, 5)


def test_the_title_is_the_alternative_text():
    figure = row_charts.bars(["a"], [1], xlabel="x", title="a finding that is longer than one line of this figure " * 3)
    assert "\n" in figure.get_suptitle()
    _, metadata = figure._repr_png_()
    assert metadata["alt"].split() == ("a finding that is longer than one line of this figure " * 3).split()


def law_more_weight_is_darker(color_map):
    shades = [lightness(colormaps[color_map](weight)[:3]) for weight in np.linspace(0, 1, 21)]
    assert all(step < 0 for step in np.diff(shades)) and shades[0] - shades[-1] > 70


def test_more_weight_is_darker_also_in_grey():
    law_more_weight_is_darker(palette.WEIGHTS_MAP)
    for wrong in ("jet", "Blues_r"):
        with pytest.raises(AssertionError):
            law_more_weight_is_darker(wrong)
