"""The figures of the course: arrays and labels in, a matplotlib Figure out; pyplot and its state stay untouched."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from course_lib.canvas import check_labels, checked_weights, draw_matrix, grid_size, new_figure, styled, write_numbers

WEIGHTS_MAP, SIGNED_MAP = "Blues", "RdBu_r"
MAY_ATTEND, HIDDEN = "#0072B2", "#e4e4e4"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 1)))
MARKERS = "osD^vPX*"

Series = Mapping[str, tuple[ArrayLike, ArrayLike]]
Marks = Mapping[str, tuple[float | None, float | None]]


@styled
def attention_map(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str) -> Figure:
    """Attention weights as a grid: a row for each query (target), a column for each key (source).

    Args:
        weights: (queries, keys), each in 0..1.
        queries: tokens of the rows, first on top.
        keys: tokens of the columns.
        title: the finding.

    Raises:
        ValueError: if labels and weights do not fit, or a weight is outside 0..1.
    """
    weights = checked_weights(weights, queries, keys, 2)
    figure = new_figure(title, *grid_size(weights.shape, width=1.9, height=1.7))
    axes = figure.add_subplot()
    image = draw_matrix(axes, weights, queries, keys, WEIGHTS_MAP, (0.0, 1.0))
    write_numbers(axes, weights, "{:.2f}", dark=weights > 0.55)
    axes.set(xlabel="key", ylabel="query")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    return figure


@styled
def attention_grid(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str) -> Figure:
    """The weights of all heads side by side, four in a row, with shared labels and one color bar.

    Args:
        weights: (heads, queries, keys), each in 0..1.
        queries, keys, title: as in attention_map.

    Raises:
        ValueError: if labels and weights do not fit, or a weight is outside 0..1.
    """
    weights = checked_weights(weights, queries, keys, 3)
    columns = min(4, len(weights))
    rows = -(-len(weights) // columns)
    width, height = grid_size((rows * weights.shape[1], columns * weights.shape[2]), width=2.2, height=1.6, cell=0.25)
    figure = new_figure(title, width, height)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for number, (axes, head) in enumerate(zip(grid, weights, strict=False)):
        image = draw_matrix(axes, head, queries, keys, WEIGHTS_MAP, (0.0, 1.0))
        axes.tick_params(labeltop=number < columns, labelleft=number % columns == 0)
        axes.set_xlabel(f"head {number}", loc="center")
        axes.xaxis.set_label_position("bottom")
    for axes in list(grid)[len(weights) :]:
        axes.remove()
    figure.supylabel("query", fontsize=10)
    figure.colorbar(image, ax=figure.axes, label="weight", shrink=0.8)
    return figure


@styled
def mask_grid(mask: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str) -> Figure:
    """A mask in two tones: dark where the query (row) may attend to the key (column).

    Args:
        mask: (queries, keys), bool, True = may attend.
        queries, keys, title: as in attention_map.

    Raises:
        ValueError: if the mask is not bool or the labels do not fit.
    """
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"expected a bool mask, True = may attend, got {mask.dtype}")
    check_labels(mask, queries, keys)
    figure = new_figure(title, *grid_size(mask.shape, width=1.4, height=2.0))
    axes = figure.add_subplot()
    tones = ListedColormap([HIDDEN, MAY_ATTEND])
    draw_matrix(axes, mask.astype(float), queries, keys, tones, (0.0, 1.0))
    axes.set(xlabel="key", ylabel="query")
    words = [Patch(color=MAY_ATTEND, label="may attend"), Patch(color=HIDDEN, label="hidden")]
    figure.legend(handles=words, loc="outside lower center", ncols=2)
    return figure


@styled
def signed_matrix(
    values: ArrayLike, rows: Sequence[str], columns: Sequence[str], *, title: str, xlabel: str = "", ylabel: str = ""
) -> Figure:
    """A matrix of signed numbers on a diverging color map, white at 0; small ones show their numbers.

    Args:
        values: (rows, columns), finite.
        rows, columns: labels; more than 40 are thinned out.
        title: the finding.
        xlabel, ylabel: what the columns and the rows are.

    Raises:
        ValueError: if the labels do not fit or a value is not finite.
    """
    values = np.asarray(values, dtype=float)
    check_labels(values, rows, columns)
    if not np.isfinite(values).all():
        raise ValueError("expected finite values, got NaN or infinity")
    largest = float(np.abs(values).max()) or 1.0
    figure = new_figure(title, *grid_size(values.shape, width=2.0, height=1.5))
    axes = figure.add_subplot()
    axes.set(xlabel=xlabel, ylabel=ylabel)
    image = draw_matrix(axes, values, rows, columns, SIGNED_MAP, (-largest, largest))
    write_numbers(axes, values, "{:.2g}", dark=np.abs(values) > 0.6 * largest)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


@styled
def curves(
    series: Series, *, xlabel: str, ylabel: str, title: str, log_y: bool = False, marks: Marks | None = None
) -> Figure:
    """Lines that differ in color, dashes and markers, so that they stay apart in grey.

    Args:
        series: name to (x, y), two sequences of one length.
        xlabel, ylabel: with units.
        title: the finding.
        log_y: logarithmic y axis.
        marks: words to what they mark: (x, None) a vertical line, (None, y) a horizontal one, (x, y) a point.

    Raises:
        ValueError: if there is no series, more than 8, x and y of one differ in length, or a mark is nowhere.
    """
    if not 1 <= len(series) <= len(LINES):
        raise ValueError(f"expected 1 to {len(LINES)} series, got {len(series)}")
    figure = new_figure(title, 7.0, 3.8)
    axes = figure.add_subplot(xlabel=xlabel, ylabel=ylabel, yscale="log" if log_y else "linear")
    axes.grid(True)
    for number, (name, (x, y)) in enumerate(series.items()):
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.ndim != 1 or x.shape != y.shape or not x.size:
            raise ValueError(f"{name}: expected x and y of one length, got {x.shape} and {y.shape}")
        every = (number * len(x) // 40, max(1, len(x) // 8))  # the markers of two lines do not coincide
        axes.plot(x, y, label=name, ls=LINES[number], marker=MARKERS[number], markevery=every)
    for number, (words, (x, y)) in enumerate((marks or {}).items()):
        _mark(axes, words, x, y, LINES[-1 - number % 3])
    if len(series) > 1 or marks:
        axes.legend()
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
    if reference is not None:
        words, value = reference if isinstance(reference, tuple) else ("reference", reference)
        axes.axvline(value, color="C6", ls="--", label=f"{words} ({value_format.format(value)})")
        figure.legend(loc="outside lower center")
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
        look = dict(color=f"C{number}", edgecolor="white", label=part)
        container = axes.barh(range(len(rows)), values[:, number], left=starts, **look)
        shown = [value_format.format(v) if v > 0.06 * widest else "" for v in values[:, number]]
        axes.bar_label(container, shown, label_type="center", color="white" if number in (0, 2, 4) else "black")
        starts += values[:, number]
    for number, total in enumerate(starts):
        axes.annotate(value_format.format(total), (total, number), (4, 0), textcoords="offset points", va="center")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _mark(axes: Axes, words: str, x: float | None, y: float | None, dashes: tuple) -> None:
    if x is None and y is None:
        raise ValueError(f"{words}: expected x, y or both, got neither")
    thin = dict(color="#555555", lw=1.2, ls=dashes, label=words)
    if y is None:
        axes.axvline(x, **thin)
    elif x is None:
        axes.axhline(y, **thin)
    else:
        axes.plot([x], [y], ls="", marker="*", ms=13, mfc="white", mec="#222222", label=words, zorder=5)


def _bar_axes(values: np.ndarray, labels: Sequence[str], xlabel: str, title: str) -> tuple[Figure, Axes]:
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"expected finite values of at least 0, got {values.tolist()}")
    figure = new_figure(title, 7.5, 1.7 + 0.36 * len(labels))
    axes = figure.add_subplot(xlabel=xlabel)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x")
    return figure, axes
