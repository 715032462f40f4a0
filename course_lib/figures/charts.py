"""Lines: numbers with names in, a matplotlib Figure out; pyplot and its state stay untouched."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.figures.canvas import legend_of, new_figure, styled
from course_lib.figures.palette import INK, PAPER, SOOT

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 1)))
MARKERS = "osD^vPX*"
LEGEND_INSIDE = 5  # a longer legend stands beside the lines, not on them

Series = Mapping[str, tuple[ArrayLike, ArrayLike]]
Marks = Mapping[str, tuple[float | None, float | None]]


@styled
def curves(
    series: Series,
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    log_x: bool = False,
    log_y: bool = False,
    marks: Marks | None = None,
) -> Figure:
    """Lines that differ in color, dashes and markers, so that they stay apart in grey.

    Where y holds several runs, the line is their mean, and a band spans from the smallest to the largest of them.

    Args:
        series: name to (x, y): x is (points,), y is (points,) or (runs, points).
        xlabel, ylabel: with units.
        title: the finding.
        log_x, log_y: logarithmic axes.
        marks: words to what they mark: (x, None) a vertical line, (None, y) a horizontal one, (x, y) a point.

    Raises:
        ValueError: if there is no series, more than 8, x and y of one do not fit, a mark is nowhere,
            or a number is not above 0 on a logarithmic axis.
    """
    if not 1 <= len(series) <= len(LINES):
        raise ValueError(f"expected 1 to {len(LINES)} series, got {len(series)}")
    crowded = len(series) + len(marks or {}) > LEGEND_INSIDE
    figure = new_figure(title, 9.0 if crowded else 7.0, 3.8)
    axes = figure.add_subplot(xlabel=xlabel, ylabel=ylabel)
    axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    axes.grid(True)
    for number, (name, (x, y)) in enumerate(series.items()):
        x, runs = _checked_runs(name, x, y)
        _check_above_zero(axes, name, x, runs)
        _line_and_band(axes, number, name, x, runs)
    for number, (words, (x, y)) in enumerate((marks or {}).items()):
        _mark(axes, words, x, y, LINES[-1 - number % 3])
    if len(series) > 1 or marks:
        legend_of(axes, **(dict(loc="upper left", bbox_to_anchor=(1.01, 1)) if crowded else {}))
    return figure


def _checked_runs(name: str, x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """x (points,) and y (runs, points) as arrays; raises ValueError where they do not fit."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or y.ndim not in (1, 2) or y.shape[-1:] != x.shape or not y.size:
        fit = "x (points,) and y (points,) or (runs, points)"
        raise ValueError(f"{name}: expected {fit}, got {x.shape} and {y.shape}")
    return x, np.atleast_2d(y)


def _check_above_zero(axes: Axes, name: str, x: ArrayLike | None, y: ArrayLike | None) -> None:
    for letter, scale, values in (("x", axes.get_xscale(), x), ("y", axes.get_yscale(), y)):
        if scale == "log" and values is not None and np.min(values) <= 0:
            raise ValueError(f"{name}: expected {letter} above 0 on a logarithmic axis, got {np.min(values):.3g}")


def _line_and_band(axes: Axes, number: int, name: str, x: np.ndarray, runs: np.ndarray) -> None:
    every = (number * len(x) // 40, max(1, len(x) // 8))  # the markers of two lines do not coincide
    style = dict(ls=LINES[number], marker=MARKERS[number], markevery=every)
    (line,) = axes.plot(x, runs.mean(axis=0), label=name, **style)
    if len(runs) > 1:
        tones = dict(facecolor=(line.get_color(), 0.25), edgecolor=(line.get_color(), 0.6), lw=0.8)
        axes.fill_between(x, runs.min(axis=0), runs.max(axis=0), **tones)


def _mark(axes: Axes, words: str, x: float | None, y: float | None, dashes: tuple) -> None:
    if x is None and y is None:
        raise ValueError(f"{words}: expected x, y or both, got neither")
    _check_above_zero(axes, words, x, y)
    thin = dict(color=SOOT, lw=1.2, ls=dashes, label=words)
    if y is None:
        axes.axvline(x, **thin)
    elif x is None:
        axes.axhline(y, **thin)
    else:
        axes.plot([x], [y], ls="", marker="*", ms=13, mfc=PAPER, mec=INK, label=words, zorder=5)
