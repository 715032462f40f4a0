"""Matrices of attention: arrays and labels in, a matplotlib Figure out; pyplot and its state stay untouched."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.figures.canvas import (
    checked_mask,
    checked_signed,
    checked_weights,
    draw_mask,
    draw_signed,
    draw_weights,
    grid_size,
    mask_legend,
    new_figure,
    styled,
    write_signed,
    write_weights,
)


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
    image = draw_weights(axes, weights, queries, keys)
    write_weights(axes, weights)
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
        image = draw_weights(axes, head, queries, keys)
        axes.tick_params(labeltop=number < columns, labelleft=number % columns == 0)
        axes.set_xlabel(f"head {number}", loc="center")
        axes.xaxis.set_label_position("bottom")
    for axes in list(grid)[len(weights) :]:
        axes.remove()
    figure.supylabel("query", fontsize=10)
    figure.colorbar(image, ax=figure.axes, label="weight", shrink=0.8)
    return figure


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
    figure = new_figure(title, *grid_size(mask.shape, width=1.4, height=2.0))
    axes = figure.add_subplot()
    draw_mask(axes, mask, queries, keys)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    mask_legend(figure, "outside lower center")
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
    values = checked_signed(values, rows, columns)
    largest = float(np.abs(values).max()) or 1.0
    figure = new_figure(title, *grid_size(values.shape, width=2.0, height=1.5))
    axes = figure.add_subplot()
    axes.set(xlabel=xlabel, ylabel=ylabel)
    image = draw_signed(axes, values, rows, columns, largest)
    write_signed(axes, values, largest)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure
