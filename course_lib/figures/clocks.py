"""Sines and cosines drawn as the hands of clocks: how far right a tip is, and how far up."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from course_lib.figures.canvas import legend_of, new_figure, printable, styled
from course_lib.figures.palette import ASH, BLUE, INK, ORANGE, SNOW

COLUMN, ROW = 3.0, 2.9  # from face to face, in radii
MARGIN = 1.6  # from the middles of the outer faces to the edge, in radii
LABELS = 2.2  # for the rows' labels, in radii
RADIUS = 0.36  # in inches


@styled
def clock_faces(hands: ArrayLike, rows: Sequence[str], columns: Sequence[str], *, title: str) -> Figure:
    """Draws a clock face for each pair of a sine and a cosine, with both as the two shadows of its hand.

    The hand starts at twelve o'clock and turns clockwise, so its tip is as far right of the middle as the sine of the
    angle and as far up as the cosine, in radii.

    Args:
        hands: (rows, columns, 2): sine and cosine.
        rows: labels, the first on top.
        columns: labels above the faces.
        title: the finding.

    Raises:
        ValueError: if labels and hands do not fit, or a tip is not on its circle.
    """
    hands = np.asarray(hands, dtype=float)
    if hands.shape != (len(rows), len(columns), 2) or not hands.size:
        raise ValueError(f"expected hands ({len(rows)}, {len(columns)}, 2) for the labels, got {hands.shape}")
    if not np.allclose(np.square(hands).sum(-1), 1, atol=1e-3):
        raise ValueError("expected tips on their circles, sine² + cosine² = 1")
    left, right = -MARGIN - LABELS, COLUMN * (len(columns) - 1) + MARGIN
    bottom, top = -ROW * (len(rows) - 1) - MARGIN - 0.2, MARGIN + 0.2
    figure = new_figure(title, RADIUS * (right - left), RADIUS * (top - bottom) + 0.7)
    axes = figure.add_subplot(xlim=(left, right), ylim=(bottom, top))
    axes.set_aspect("equal")
    axes.axis("off")
    words = dict(color=INK, parse_math=False)
    for row, label in enumerate(rows):
        axes.text(-MARGIN, -ROW * row, printable(label), ha="right", va="center", **words)
        for column in range(len(columns)):
            _face(axes, COLUMN * column, -ROW * row, hands[row, column])
    for column, label in enumerate(columns):
        axes.text(COLUMN * column, 1.2, printable(label), ha="center", va="bottom", **words)
    legend_of(figure, handles=axes.lines[:2], loc="outside lower center", ncols=2)
    return figure


def _face(axes: Axes, x: float, y: float, tip: np.ndarray) -> None:
    """One face around (x, y): its circle, the two shadows, the hand over them, and both numbers below."""
    sine, cosine = tip
    axes.add_patch(Circle((x, y), 1, facecolor=SNOW, edgecolor=ASH))
    shadow = dict(lw=4, solid_capstyle="butt")
    axes.plot([x, x + sine], [y, y], color=BLUE, label="sine: how far right", **shadow)
    axes.plot([x, x], [y, y + cosine], color=ORANGE, label="cosine: how far up", **shadow)
    axes.plot([x, x + sine, x + sine], [y + cosine, y + cosine, y], color=INK, lw=0.8, ls=":")
    axes.plot([x, x + sine], [y, y + cosine], color=INK, lw=1.4, marker="o", markevery=[1], gid="hand")
    numbers = f"{sine:.2f}  {cosine:.2f}".replace("-0.00", "0.00").replace("-", "−")
    axes.text(x, y - 1.12, numbers, ha="center", va="top", fontsize=8, color=INK)
