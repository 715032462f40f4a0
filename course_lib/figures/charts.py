"""Lines, bars and dots: numbers with names in, a matplotlib Figure out; pyplot and its state stay untouched."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.figures.canvas import new_figure, styled
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
        axes.legend(**(dict(loc="upper left", bbox_to_anchor=(1.01, 1)) if crowded else {}))
    return figure


@styled
def bars(
    labels: Sequence[str],
    values: Sequence[float],
    *,
    xlabel: str,
    title: str,
    reference: float | tuple[str, float] | None = None,
    value_format: str = "{:.0f}",
) -> Figure:
    """Horizontal bars, the first on top, each with its value.

    Args:
        labels, values: one for each bar; values at least 0.
        xlabel: with the unit.
        title: the finding.
        reference: value of a dashed line to compare with, or its (words, value).
        value_format: of the numbers beside the bars.

    Raises:
        ValueError: if there is not one label for each value, or a value is negative or not finite.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(labels) != len(values) or not len(values):
        raise ValueError(f"expected one value for each label, got {len(labels)} labels and values {values.shape}")
    figure, axes = _bar_axes(values, labels, xlabel, title)
    axes.bar_label(axes.barh(range(len(labels)), values, color="C0"), map(value_format.format, values), padding=4)
    _reference_line(axes, reference, value_format)
    if reference is not None:
        figure.legend(loc="outside lower center")
    return figure


@styled
def dots(
    rows: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    title: str,
    reference: float | tuple[str, float] | None = None,
    value_format: str = "{:.1f}",
) -> Figure:
    """Rows of dots, the first on top: a hollow one for each run, a full one for their mean, which shows its number.

    For small differences between large numbers: unlike that of bars, the axis does not begin at 0.

    Args:
        rows: name to the values of its runs.
        xlabel, title, reference: as in bars.
        value_format: of the means.

    Raises:
        ValueError: if there is no row, a row without a run, or a value is not finite.
    """
    runs = [np.asarray(values, dtype=float) for values in rows.values()]
    if not runs or any(row.ndim != 1 or not row.size or not np.isfinite(row).all() for row in runs):
        raise ValueError(f"expected finite values of one run or more in each row, got {dict(rows)}")
    figure, axes = _row_axes(list(rows), xlabel, title)
    for number, row in enumerate(runs):
        mean, run = ("mean", "a run") if number == 0 else (None, None)  # once each in the legend
        axes.plot([row.mean()], [number], ls="", marker="D", ms=8, color="C0", label=mean)
        axes.plot(row, np.full(len(row), number), ls="", marker="o", ms=6, mfc=PAPER, mec="C0", label=run)
        style = dict(textcoords="offset points", ha="center", va="bottom", bbox=dict(fc=PAPER, ec="none", pad=0.5))
        axes.annotate(value_format.format(row.mean()), (row.mean(), number), (0, 7), **style)
    axes.set_ylim(len(runs) - 0.5, -0.7)
    _reference_line(axes, reference, value_format)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


@styled
def stacked_bars(
    rows: Mapping[str, Mapping[str, float]], *, xlabel: str, title: str, value_format: str = "{:.0f}"
) -> Figure:
    """Horizontal bars, each the sum of the same named parts; wide parts show their value, each bar its total.

    Args:
        rows: name of the bar to name of the part to value; values at least 0, the same parts in each bar.
        xlabel, title, value_format: as in bars.

    Raises:
        ValueError: if the parts of two bars differ, or a value is negative or not finite.
    """
    parts = list(next(iter(rows.values()), {}))
    if not parts or any(list(row) != parts for row in rows.values()):
        raise ValueError(f"expected the same parts in each bar, got {[list(row) for row in rows.values()]}")
    values = np.array([list(row.values()) for row in rows.values()], dtype=float)  # (bars, parts)
    figure, axes = _bar_axes(values, list(rows), xlabel, title)
    starts, widest = np.zeros(len(rows)), values.sum(axis=1).max()
    for number, part in enumerate(parts):
        style = dict(color=f"C{number}", edgecolor=PAPER, label=part)
        container = axes.barh(range(len(rows)), values[:, number], left=starts, **style)
        shown = [value_format.format(v) if v > 0.06 * widest else "" for v in values[:, number]]
        axes.bar_label(container, shown, label_type="center", color=PAPER if number in (0, 2, 4) else "black")
        starts += values[:, number]
    for number, total in enumerate(starts):
        axes.annotate(value_format.format(total), (total, number), (4, 0), textcoords="offset points", va="center")
    figure.legend(loc="outside lower center", ncols=3)
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


def _reference_line(axes: Axes, reference: float | tuple[str, float] | None, value_format: str) -> None:
    if reference is not None:
        words, value = reference if isinstance(reference, tuple) else ("reference", reference)
        axes.axvline(value, color="C6", ls="--", label=f"{words} ({value_format.format(value)})")


def _bar_axes(values: np.ndarray, labels: Sequence[str], xlabel: str, title: str) -> tuple[Figure, Axes]:
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"expected finite values of at least 0, got {values.tolist()}")
    return _row_axes(labels, xlabel, title)


def _row_axes(labels: Sequence[str], xlabel: str, title: str) -> tuple[Figure, Axes]:
    figure = new_figure(title, 7.5, 1.7 + 0.36 * len(labels))
    axes = figure.add_subplot(xlabel=xlabel)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x")
    return figure, axes
