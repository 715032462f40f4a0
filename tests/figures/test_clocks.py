"""Clock faces: each hand's tip is its sine to the right and its cosine up, and the shadows are both numbers."""

import numpy as np
import pytest
from matplotlib.patches import Circle

from course_lib.figures import clock_faces, clocks
from tests.helpers.figures import (
    law_looks_the_same_in_a_users_own_style,
    law_nothing_is_left_behind,
    law_stays_on_the_page,
)
from tests.helpers.laws import raised, tells_apart

ANGLES = np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 4.0]])
HANDS = np.stack([np.sin(ANGLES), np.cos(ANGLES)], axis=-1)
ROWS, COLUMNS = ["0 The", "1 cat"], ["pair 0", "pair 1", "pair 2"]


def draw(hands=HANDS, rows=ROWS, columns=COLUMNS, title="t"):
    return clock_faces(hands, rows, columns, title=title)


def faces(figure):
    """Each face's middle, hand and shadows, row after row: the lines are drawn face after face."""
    (axes,) = figure.axes
    middles = [np.array(patch.center) for patch in axes.patches if isinstance(patch, Circle)]
    lines = [line.get_xydata() for line in axes.lines]
    return [(middle, lines[4 * n + 3], lines[4 * n], lines[4 * n + 1]) for n, middle in enumerate(middles)]


def law_a_tip_is_sine_right_and_cosine_up(make):
    found = faces(make())
    assert len(found) == ANGLES.size
    for angle, (middle, hand, _, _) in zip(ANGLES.flat, found, strict=True):
        assert np.allclose(hand, [middle, middle + [np.sin(angle), np.cos(angle)]])


def law_shadows_are_the_two_numbers(make):
    for angle, (middle, _, sine, cosine) in zip(ANGLES.flat, faces(make()), strict=True):
        assert np.allclose(sine, [middle, middle + [np.sin(angle), 0]])
        assert np.allclose(cosine, [middle, middle + [0, np.cos(angle)]])


def law_rows_go_down_and_columns_to_the_right(make):
    middles = np.array([middle for middle, *_ in faces(make())]).reshape(2, 3, 2)
    assert (np.diff(middles[..., 0], axis=1) > 2).all() and (np.diff(middles[..., 1], axis=0) < -2).all()


def law_labels_and_numbers_are_written(make):
    figure = make()
    words = [text.get_text() for text in figure.axes[0].texts]
    assert set(ROWS + COLUMNS) <= set(words) and {"0.84  0.54", "−0.76  −0.65", "0.10  1.00"} <= set(words)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["sine: how far right", "cosine: how far up"]


def test_laws_of_the_clocks():
    def mathematicians_clock():
        return draw(HANDS[..., ::-1])

    def upside_down():
        return draw(HANDS[::-1])

    def without_words():
        return draw(rows=["", ""])

    tells_apart(law_a_tip_is_sine_right_and_cosine_up, draw, mathematicians_clock, upside_down)
    tells_apart(law_shadows_are_the_two_numbers, draw, mathematicians_clock, upside_down)
    tells_apart(law_labels_and_numbers_are_written, draw, mathematicians_clock, without_words)


def test_the_faces_stand_as_in_a_table(monkeypatch):
    law_rows_go_down_and_columns_to_the_right(draw)
    for name in ("ROW", "COLUMN"):
        with monkeypatch.context() as patch:
            patch.setattr(clocks, name, 1.5)  # radii: neighbors overlap
            with pytest.raises(AssertionError):
                law_rows_go_down_and_columns_to_the_right(draw)


def test_clocks_leave_nothing_behind_and_stay_on_the_page():
    for law in (law_nothing_is_left_behind, law_looks_the_same_in_a_users_own_style, law_stays_on_the_page):
        law(lambda: draw(title="a finding " * 15))


@pytest.mark.parametrize(
    ("hands", "message"),
    [
        (HANDS[:1], "expected hands (2, 3, 2) for the labels, got (1, 3, 2)"),
        (HANDS[..., :1], "expected hands (2, 3, 2) for the labels, got (2, 3, 1)"),
        (HANDS * 0.9, "expected tips on their circles, sine² + cosine² = 1"),
    ],
)
def test_bad_hands_are_refused(hands, message):
    assert str(raised(ValueError, lambda: draw(hands))) == message
