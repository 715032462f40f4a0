"""Laws of every figure: nothing is left behind, the user's own style is ignored, grey is enough."""

import io

import matplotlib
import numpy as np
import pytest
from matplotlib import colormaps, colors, pyplot
from matplotlib.figure import Figure

from course_lib.figures import canvas, charts, plots
from course_lib.figures.matrices import Panel, panels

SRC, TGT = ["The", "cat", "sees", "</s>"], ["Die", "Katze", "sieht"]
SERIES = {"first": ([1, 2, 3], [3.0, 2.0, 1.0]), "second": ([1, 2], [1.0, 5.0]), "third": ([0], [1])}


def some_weights(*shape):
    raw = np.random.default_rng(0).random(shape)
    return raw / raw.sum(-1, keepdims=True)


def pixels(figure):
    png, _ = figure._repr_png_()
    return matplotlib.image.imread(io.BytesIO(png))[..., :3]


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


FIGURES = {
    "attention_map": lambda: plots.attention_map(some_weights(3, 4), TGT, SRC, title="t"),
    "attention_grid": lambda: plots.attention_grid(some_weights(2, 3, 4), TGT, SRC, title="t"),
    "mask_grid": lambda: plots.mask_grid(np.eye(3, 4, dtype=bool), TGT, SRC, title="t"),
    "signed_matrix": lambda: plots.signed_matrix(np.eye(3, 4), TGT, SRC, title="t"),
    "curves": lambda: charts.curves(SERIES, xlabel="x", ylabel="y", title="t"),
    "bars": lambda: charts.bars(["a"], [1], xlabel="x", title="t"),
    "panels": lambda: panels([Panel(np.eye(3, 4), TGT, SRC, "a"), Panel(np.eye(2), "ab", "ab", "b")], title="t"),
    "stacked_bars": lambda: charts.stacked_bars({"a": {"b": 1}}, xlabel="x", title="t"),
}


def law_nothing_is_left_behind(draw):
    before, open_before = dict(matplotlib.rcParams), pyplot.get_fignums()
    figure = draw()
    assert isinstance(figure, Figure)
    figure.savefig(io.BytesIO())
    assert pyplot.get_fignums() == open_before
    assert dict(matplotlib.rcParams) == before


def law_looks_the_same_in_a_users_own_style(draw):
    plain = pixels(draw())
    with matplotlib.style.context("dark_background"), matplotlib.rc_context({"font.size": 20, "figure.dpi": 50}):
        assert np.array_equal(plain, pixels(draw()))
    assert (plain[[0, -1]] == 1).all() and (plain[:, [0, -1]] == 1).all(), "an opaque white page"


@canvas.styled
def law_stays_on_the_page(draw):
    figure = draw()
    figure.draw_without_rendering()
    content, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert content.x0 >= 0 and content.y0 >= 0 and content.x1 <= width and content.y1 <= height, "cut off"


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
    unstyled = charts.bars.__wrapped__
    with pytest.raises(AssertionError):
        law_looks_the_same_in_a_users_own_style(lambda: unstyled(["a"], [1], xlabel="x", title="t"))


def law_a_long_title_takes_nothing_from_the_drawing(draw):
    heights = []
    for title in ("short", "a finding that goes on for several lines of this small figure " * 3):
        figure = draw(title)
        law_stays_on_the_page(lambda figure=figure: figure)
        height = figure.get_size_inches()[1]
        heights.append(figure.axes[0].get_position().height * height)
    assert heights[1] > 0.98 * heights[0], "the drawing shrinks"


@canvas.styled
def test_a_long_title_takes_nothing_from_the_drawing(monkeypatch):
    def draw(title):
        return plots.attention_map(some_weights(3, 4), TGT, SRC, title=title)

    law_a_long_title_takes_nothing_from_the_drawing(draw)
    monkeypatch.setattr(plots, "new_figure", _of_one_size)
    with pytest.raises(AssertionError):
        law_a_long_title_takes_nothing_from_the_drawing(draw)


def law_cells_are_square(size):
    margins = dict(width=2.2, height=1.6)
    for shape in ((12, 12), (12, 48), (5, 40)):
        width, height = size(shape, **margins, cell=0.25)
        assert np.isclose((width - 2.2) / shape[1], (height - 1.6) / shape[0]), shape


def test_cells_stay_square_on_a_full_page():
    law_cells_are_square(canvas.grid_size)
    with pytest.raises(AssertionError):
        law_cells_are_square(lambda shape, width, height, cell: (min(13.0, width + cell * shape[1]), 1.6 + 3.0))


def _of_one_size(title, width, height):
    figure = canvas.CourseFigure(figsize=(width, height))
    figure.suptitle(canvas.wrapped_title(title, width), x=0.02, ha="left")
    return figure


def test_the_title_is_the_alternative_text():
    figure = charts.bars(["a"], [1], xlabel="x", title="a finding that is longer than one line of this figure " * 3)
    assert "\n" in figure.get_suptitle()
    _, metadata = figure._repr_png_()
    assert metadata["alt"].split() == ("a finding that is longer than one line of this figure " * 3).split()


def lightness(color):
    """CIE L*, 0 black to 100 white: what remains of a color in grey."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(color)]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def law_more_weight_is_darker(color_map):
    shades = [lightness(colormaps[color_map](weight)[:3]) for weight in np.linspace(0, 1, 21)]
    assert all(step < 0 for step in np.diff(shades)) and shades[0] - shades[-1] > 70


def test_more_weight_is_darker_also_in_grey():
    law_more_weight_is_darker(canvas.WEIGHTS_MAP)
    for wrong in ("jet", "Blues_r"):
        with pytest.raises(AssertionError):
            law_more_weight_is_darker(wrong)
