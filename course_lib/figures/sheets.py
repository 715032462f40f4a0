"""Where the matrices of a page stand: how large their cells are, how many share a row, and where the color bars go."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec

from course_lib.figures.canvas import CELLS_WITH_NUMBERS, SHOWN_LABELS, fit_page, set_title, thin_out

NARROWEST = 5.0  # page, in inches, as all sizes below
EDGE = 0.04  # around the page, beside what the layout leaves
ROOM_FOR_LABEL = 0.2  # from one column to the next; rows need less
BAR = 0.14  # the thickness of a color bar
BAR_LENGTH, KEY_WIDTH, KEY_HEIGHT = 2.0, 2.4, 0.72  # of a color bar below the panels, with its words


@dataclass(frozen=True)
class Sheet:
    """How matrices share a page; sizes in inches.

    Args:
        per_row: matrices in a row; fewer where their labels would not be readable.
        cells: largest cell of matrices with up to CELLS_WITH_NUMBERS, 12 and SHOWN_LABELS rows and columns.
        crowded: largest width and height of a matrix with more of them, whose cells need not be square.
        widest: page.
        beside: the color bar stands right of the matrices, not below.
        shared: the matrices have their labels in common: only those at the edge of the page show them.
        numbers: small matrices show their numbers.
    """

    per_row: int = 4
    cells: tuple[float, float, float] = (0.5, 0.42, 0.34)
    crowded: tuple[float, float] = (4.4, 4.4)
    widest: float = 11.0
    beside: bool = False
    shared: bool = False
    numbers: bool = True


def lay_out(axes: Sequence[Axes], bars: Sequence[Axes], sheet: Sheet, title: str) -> None:
    """Gives axes with one matrix each, and those of their color bars, their final places on a page of its own size.

    Args:
        axes: in reading order, all of one figure.
        bars: those of the color bars; at most one where they stand beside the matrices.
        sheet: how they share the page.
        title: of the page.
    """
    figure = axes[0].figure
    grid, cells = _fitted(axes, bars, sheet)
    for each, (width, height) in zip(axes, cells, strict=True):
        thin_out(each.xaxis, width, 0.95 * ROOM_FOR_LABEL)
        thin_out(each.yaxis, height, 0.7 * ROOM_FOR_LABEL)
    fit_page(axes[0])
    spare = max(NARROWEST, 0 if sheet.beside else KEY_WIDTH * len(bars)) - figure.get_size_inches()[0]
    if spare > 0:
        first, *widths, last = grid.get_width_ratios()
        grid.set_width_ratios([first + spare / 2, *widths, last + spare / 2])
    set_title(figure, title, figure.get_size_inches()[0] + max(0, spare))
    fit_page(axes[0])
    figure.set_layout_engine("none")  # the page is done
    for each, size in zip(axes, _sizes(axes, cells), strict=True):
        _shrink(each, size, "N")
    for each in bars:
        if sheet.beside:
            _shrink(each, (BAR, 0.8 * _inches(each)[1]), "C")
        else:
            _shrink(each, (BAR_LENGTH, BAR), "N")


def _shrink(axes: Axes, size: Sequence[float], anchor: str) -> None:
    """Makes axes smaller than the place that the layout gives them."""
    place = axes.get_position()
    axes.set_position(place.shrunk(*size / _inches(axes)).anchored(anchor, place))
    axes.set_in_layout(True)


def _inches(axes: Axes) -> np.ndarray:
    return axes.get_position().size * axes.figure.get_size_inches()


def _words(axes: Axes) -> float:
    """The room for what is written along a matrix, its name and that of its columns, which no layout asks for."""
    lines = [text.get_window_extent().width for text in (axes.title, axes.xaxis.label) if text.get_text()]
    return max(lines, default=0.0) / axes.figure.dpi


def _shapes(axes: Sequence[Axes]) -> np.ndarray:
    return np.array([each.images[0].get_array().shape for each in axes])  # (matrices, 2): rows, columns


def _sizes(axes: Sequence[Axes], cells: np.ndarray) -> np.ndarray:
    return cells * _shapes(axes)[:, ::-1]  # (matrices, 2): width, height


def _cells(axes: Sequence[Axes], sheet: Sheet, scale: float) -> np.ndarray:
    """Width and height of each matrix's cells: square, unless there are too many; those of equal rows are alike."""
    square, cells, (few, some, many) = {}, [], sheet.cells
    for rows, columns in _shapes(axes):
        largest = max(rows, columns)
        if largest <= SHOWN_LABELS:
            cell = few if largest <= CELLS_WITH_NUMBERS else some if largest <= 12 else many
            square[rows] = min(square.get(rows, cell), scale * min(cell, 7.0 / rows))
    for rows, columns in _shapes(axes):
        width, height = (min(many, limit / count) for limit, count in zip(sheet.crowded, (columns, rows), strict=True))
        height = square.get(rows, height)
        cells.append((scale * width if max(rows, columns) > SHOWN_LABELS else height, height))
    return np.array(cells)


def _fitted(axes: Sequence[Axes], bars: Sequence[Axes], sheet: Sheet) -> tuple[GridSpec, np.ndarray]:
    """The grid with the most matrices in a row whose labels are readable on a page that is not too wide; the cells."""
    count, columns = len(axes), _shapes(axes)[:, 1]
    wanted = np.where(columns <= 20, ROOM_FOR_LABEL * columns, 3.0)
    for number in range(min(sheet.per_row, count), 0, -1):
        if number < min(sheet.per_row, count):  # rows of one length, where there is a choice
            number = -(-count // -(-count // number))
        scale = 1.0
        for _ in range(3):  # names and labels stick out more where matrices shrink
            cells = _cells(axes, sheet, scale)
            grid = _grid(axes, bars, sheet, _sizes(axes, cells), number)
            fit_page(axes[0])
            widths = sum(grid.get_width_ratios()[1 : number + 1])
            room = sheet.widest - axes[0].figure.get_size_inches()[0] + widths
            before, scale = scale, min(1.0, scale * max(0.1, room / widths))
            if abs(scale - before) < 0.002:
                break
        if (_sizes(axes, cells)[:, 0] >= 0.99 * wanted).all():
            break
    return grid, cells


def _grid(axes: Sequence[Axes], bars: Sequence[Axes], sheet: Sheet, sizes: np.ndarray, per_row: int) -> GridSpec:
    """Puts the matrices into columns and rows, in inches, between two margins; the color bars after them."""
    tracks = [max(width, _words(each)) for each, width in zip(axes, sizes[:, 0], strict=True)]
    columns = [max(tracks[first::per_row]) for first in range(per_row)]
    rows = [sizes[first : first + per_row, 1].max() for first in range(0, len(sizes), per_row)]
    widths = [EDGE, *columns, *([BAR] if sheet.beside else []), EDGE]
    heights = [*rows, *([KEY_HEIGHT] if bars and not sheet.beside else [])]
    figure = axes[0].figure
    figure.set_size_inches(sum(widths) + len(widths), sum(heights) + 1 + len(heights))  # about enough, to begin with
    grid = figure.add_gridspec(len(heights), len(widths), width_ratios=widths, height_ratios=heights)
    for number, each in enumerate(axes):
        row, column = divmod(number, per_row)
        each.set_subplotspec(grid[row, 1 + column])
        if sheet.shared:
            each.tick_params(labeltop=row == 0, labelleft=column == 0)
            each.yaxis.label.set_visible(column == 0)
    places = grid[:, -2] if sheet.beside else grid[-1, 1:-1].subgridspec(1, max(1, len(bars)))
    for number, each in enumerate(bars):
        each.set_subplotspec(places if sheet.beside else places[number])
    return grid
