"""Matrices drawn as grids of cells: weights, masks and signed numbers, one or many on a page, each with its labels."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_lib.figures.canvas import (
    MASK_WORDS,
    checked_mask,
    checked_signed,
    checked_weights,
    draw_mask,
    draw_signed,
    draw_weights,
    mask_legend,
    new_figure,
    styled,
    write_signed,
    write_weights,
)
from course_lib.figures.sheets import Sheet, lay_out

KINDS = {"signed": "signed value", "weights": "weight", "mask": MASK_WORDS}  # and what their colors mean
Words = Mapping[str, str | tuple[str, str]]
ONE = Sheet(cells=(0.5, 0.45, 0.36), crowded=(7.2, 4.5), widest=13.0, beside=True)
ONE_MASK = replace(ONE, beside=False)
HEADS = Sheet(cells=(0.29, 0.27, 0.25), crowded=(3.0, 3.0), widest=13.0, beside=True, shared=True, numbers=False)


@dataclass(frozen=True)
class Panel:
    """One matrix of a figure of panels.

    Args:
        values: (rows, columns): signed numbers, weights in 0..1, or a bool mask, True = may attend.
        rows, columns: labels; those that find no room are thinned out.
        name: of the matrix, written below it.
        kind: "signed", "weights" or "mask".
        xlabel, ylabel: what the columns and the rows are.
    """

    values: ArrayLike
    rows: Sequence[str]
    columns: Sequence[str]
    name: str
    kind: str = "signed"
    xlabel: str = ""
    ylabel: str = ""


@styled
def panels(panels: Sequence[Panel], *, title: str, per_row: int = 4, words: Words | None = None) -> Figure:
    """Matrices side by side, each with its labels and its name, with one key for each kind.

    Signed matrices share one diverging scale, white at 0, up to the largest absolute value of them all; weights go
    from 0 to 1; masks have two tones. Small matrices show their numbers where these fit their cells.

    Args:
        panels: in reading order.
        title: the finding.
        per_row: panels in a row; fewer where their labels would not be readable.
        words: kind to what its colors mean, where KINDS does not say it; two of them for a mask, True first.

    Raises:
        ValueError: if there are no panels, per_row is below 1, a kind is unknown, labels and values do not fit,
            a signed value is not finite, a weight is outside 0..1, or a mask is not bool.
    """
    words = KINDS | dict(words or {})
    if words.keys() != KINDS.keys():
        raise ValueError(f"words: expected kinds among {', '.join(KINDS)}, got {', '.join(words)}")
    if not len(panels) or per_row < 1:
        raise ValueError(f"expected at least 1 panel and 1 per row, got {len(panels)} and {per_row}")
    return _page([_checked(panel) for panel in panels], title, Sheet(per_row=per_row), words)


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
    return _page([Panel(weights, queries, keys, "", "weights", "key", "query")], title, ONE)


@styled
def attention_grid(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str) -> Figure:
    """The weights of all heads side by side, up to four in a row, with shared labels and one color bar.

    Args:
        weights: (heads, queries, keys), each in 0..1.
        queries, keys, title: as in attention_map.

    Raises:
        ValueError: if labels and weights do not fit, or a weight is outside 0..1.
    """
    weights = checked_weights(weights, queries, keys, 3)
    heads = [Panel(head, queries, keys, "", "weights", f"head {n}", "query") for n, head in enumerate(weights)]
    return _page(heads, title, HEADS)


@styled
def mask_grid(
    mask: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str,
    xlabel: str = "key",
    ylabel: str = "query",
) -> Figure:
    """A mask in two tones: dark where the query (row) may attend to the key (column).

    Args:
        mask: (queries, keys), bool, True = may attend.
        queries, keys, title: as in attention_map.
        xlabel, ylabel: what the columns and the rows are.

    Raises:
        ValueError: if the mask is not bool or the labels do not fit.
    """
    mask = checked_mask(mask, queries, keys)
    return _page([Panel(mask, queries, keys, "", "mask", xlabel, ylabel)], title, ONE_MASK)


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
    values = checked_signed(values, rows, columns)
    return _page([Panel(values, rows, columns, "", "signed", xlabel, ylabel)], title, ONE, KINDS | {"signed": ""})


def _page(panels: Sequence[Panel], title: str, sheet: Sheet, words: Words = KINDS) -> Figure:
    """The figure of checked panels, with a key for each of their kinds."""
    largest = max((float(np.abs(panel.values).max()) for panel in panels if panel.kind == "signed"), default=0.0) or 1.0
    figure = new_figure(title, sheet.widest, sheet.widest)
    drawn = [(panel, _draw(figure, panel, sheet, largest)) for panel in panels]
    kinds, bars = {panel.kind: axes.images[0] for panel, axes in drawn}, []
    for kind, image in kinds.items():
        if kind == "mask":
            mask_legend(figure, words[kind])
            continue
        how = {} if sheet.beside else dict(orientation="horizontal", ticks=MaxNLocator(5))
        bar = figure.colorbar(image, cax=figure.add_subplot(), label=words[kind], **how)
        bar.formatter.set_powerlimits((-2, 3))
        bars.append(bar.ax)
    lay_out([axes for _, axes in drawn], bars, sheet, title)
    for kind in kinds if sheet.numbers else ():
        _write_numbers([(panel, axes) for panel, axes in drawn if panel.kind == kind], largest)
    return figure


def _checked(panel: Panel) -> Panel:
    """The panel with its values as an array of the kind's type."""
    check = {"signed": checked_signed, "weights": lambda *labeled: checked_weights(*labeled, 2), "mask": checked_mask}
    if panel.kind not in check:
        raise ValueError(f"{panel.name}: expected kind {', '.join(check)}, got {panel.kind!r}")
    try:
        return replace(panel, values=check[panel.kind](panel.values, panel.rows, panel.columns))
    except ValueError as error:
        raise ValueError(f"{panel.name}: {error}") from None


def _draw(figure: Figure, panel: Panel, sheet: Sheet, largest: float) -> Axes:
    axes = figure.add_subplot(xlabel=panel.xlabel, ylabel=panel.ylabel)
    labeled = (axes, panel.values, panel.rows, panel.columns)
    if panel.kind == "signed":
        draw_signed(*labeled, largest)
    elif panel.kind == "weights":
        draw_weights(*labeled)
    else:
        draw_mask(*labeled)
    axes.set_aspect("auto")  # the layout makes the cells square
    if sheet.shared:  # the labels stand on top of the page, the names of the axes below each matrix
        axes.xaxis.set_label_position("bottom")
    if panel.name:
        name = textwrap.fill(panel.name, max(20, 4 * len(panel.columns)))
        axes.set_title(name, y=0, pad=-7, va="top", weight="bold")
    return axes


def _write_numbers(drawn: Sequence[tuple[Panel, Axes]], largest: float) -> None:
    """Writes numbers into small panels of one kind; none where one of them is wider than its cell."""
    signed, none = lambda axes, values: write_signed(axes, values, largest), lambda axes, values: []
    write = {"signed": signed, "weights": write_weights, "mask": none}
    texts = [(axes, text) for panel, axes in drawn for text in write[panel.kind](axes, panel.values)]
    for size in (8, 7):
        for _, text in texts:
            text.set_fontsize(size)
        if all(text.get_window_extent().width < _cell_pixels(axes) - 3 for axes, text in texts):
            return
    for _, text in texts:
        text.remove()


def _cell_pixels(axes: Axes) -> float:
    return axes.bbox.width / axes.images[0].get_array().shape[1]
