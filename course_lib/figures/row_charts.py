"""Rows: bars, dots and intervals, one below the other; numbers with names in, a matplotlib Figure out."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.figures.canvas import legend_of, new_figure, printable, styled
from course_lib.figures.palette import PAPER


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
        legend_of(figure, loc="outside lower center")
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
    _number_above(axes, [row.mean() for row in runs], value_format)
    _reference_line(axes, reference, value_format)
    legend_of(figure, loc="outside lower center", ncols=3)
    return figure


@styled
def intervals(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    xlabel: str,
    title: str,
    reference: float | tuple[str, float] | None = None,
    value_format: str = "{:.1f}",
) -> Figure:
    """Rows of estimates, the first on top: a dot with its number, and a line from the low to the high end.

    Args:
        rows: name to (value, low, high), low <= value <= high.
        xlabel, title, reference, value_format: as in dots.

    Raises:
        ValueError: if there is no row, or one is not finite or not in order.
    """
    values = np.asarray(list(rows.values()), dtype=float)
    if values.ndim != 2 or values.shape[1] != 3 or not (np.diff(values[:, [1, 0, 2]]) >= 0).all():
        raise ValueError(f"expected (value, low, high) with low <= value <= high in each row, got {dict(rows)}")
    value, low, high = values.T
    figure, axes = _row_axes(list(rows), xlabel, title)
    axes.errorbar(value, range(len(rows)), xerr=(value - low, high - value), fmt="D", ms=6, color="C0", capsize=3)
    _number_above(axes, value, value_format)
    _reference_line(axes, reference, value_format)
    if reference is not None:
        legend_of(figure, loc="outside lower center")
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
    legend_of(figure, loc="outside lower center", ncols=3)
    return figure


def _number_above(axes: Axes, values: Sequence[float], value_format: str) -> None:
    style = dict(textcoords="offset points", ha="center", va="bottom", bbox=dict(fc=PAPER, ec="none", pad=0.5))
    for row, value in enumerate(values):
        axes.annotate(value_format.format(value), (value, row), (0, 7), **style)
    axes.set_ylim(len(values) - 0.5, -0.7)


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
    axes.set_yticks(range(len(labels)), map(printable, labels), parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x")
    return figure, axes
