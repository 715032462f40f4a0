"""What tests of figures share: small inputs, what a figure shows, and the laws of every figure."""

import io

import matplotlib
import numpy as np
from matplotlib import colors, pyplot
from matplotlib.figure import Figure

from course_lib.figures import styled

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


def lightness(color):
    """CIE L*, 0 black to 100 white: what remains of a color in grey."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(color)]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


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


@styled
def law_stays_on_the_page(draw):
    figure = draw()
    figure.draw_without_rendering()
    content, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert content.x0 >= 0 and content.y0 >= 0 and content.x1 <= width and content.y1 <= height, "cut off"


def law_a_long_title_takes_nothing_from_the_drawing(draw):
    heights = []
    for title in ("short", "a finding that goes on for several lines of this small figure " * 3):
        figure = draw(title)
        law_stays_on_the_page(lambda figure=figure: figure)
        height = figure.get_size_inches()[1]
        heights.append(figure.axes[0].get_position().height * height)
    assert heights[1] > 0.98 * heights[0], "the drawing shrinks"
