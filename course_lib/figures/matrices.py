"""Several labeled matrices on one page: the steps of a computation side by side, on one scale."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_lib.figures.canvas import (
    CELLS_WITH_NUMBERS,
    MASK_WORDS,
    SHOWN_LABELS,
    checked_mask,
    checked_signed,
    checked_weights,
    draw_mask,
    draw_signed,
    draw_weights,
    mask_legend,
    new_figure,
    styled,
    thin_out,
    wrapped_title,
    write_signed,
    write_weights,
)

KINDS = {"signed": "signed value", "weights": "weight", "mask": MASK_WORDS}  # and what their colors mean
Words = Mapping[str, str | tuple[str, str]]
NARROWEST, WIDEST = 5.0, 11.0  # a figure, in inches, as all sizes below
EDGE, GAP = 0.12, 0.18  # around the page, and between neighbors
ROOM_FOR_LABEL = 0.2  # from one column to the next; rows need less
KEY_WIDTH, KEY_HEIGHT = 2.4, 0.56  # a color bar or a legend below the panels


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


Drawn = Sequence[tuple[Panel, Axes]]


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
    panels = [_checked(panel) for panel in panels]
    largest = max((float(np.abs(panel.values).max()) for panel in panels if panel.kind == "signed"), default=0.0) or 1.0
    figure = new_figure(title, WIDEST, WIDEST)
    figure.set_layout_engine("none")
    drawn = [(panel, _draw(figure, panel, largest)) for panel in panels]
    per_row, scale = _fit(drawn, per_row)
    _place(figure, title, drawn, _cells(panels, scale), per_row, words)
    for kind in KINDS:
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


def _draw(figure: Figure, panel: Panel, largest: float) -> Axes:
    axes = figure.add_axes((0, 0, 1, 1), xlabel=panel.xlabel, ylabel=panel.ylabel)
    labeled = (axes, panel.values, panel.rows, panel.columns)
    if panel.kind == "signed":
        draw_signed(*labeled, largest)
    elif panel.kind == "weights":
        draw_weights(*labeled)
    else:
        draw_mask(*labeled)
    axes.set_aspect("auto")  # the layout makes the cells square
    name = textwrap.fill(panel.name, max(20, 4 * len(panel.columns)))
    axes.set_title(name, y=0, pad=-7, va="top", weight="bold")
    return axes


# --- sizes, in inches -----------------------------------------------------------------------------


def _cells(panels: Sequence[Panel], scale: float) -> np.ndarray:
    """Width and height of each panel's cells: square, unless there are too many; panels of equal rows are alike."""
    square = {}
    for panel in panels:
        rows, largest = len(panel.rows), max(panel.values.shape)
        if largest <= SHOWN_LABELS:
            cell = 0.5 if largest <= CELLS_WITH_NUMBERS else 0.42 if largest <= 12 else 0.34
            cell = scale * min(cell, 7.0 / rows)
            square[rows] = min(square.get(rows, cell), cell)
    cells = []
    for rows, columns in (panel.values.shape for panel in panels):
        height = square.get(rows) or min(0.34, 4.4 / rows)
        crowded = max(rows, columns) > SHOWN_LABELS
        cells.append((scale * min(0.34, 4.4 / columns) if crowded else height, height))
    return np.array(cells)


def _sizes(panels: Sequence[Panel], cells: np.ndarray) -> np.ndarray:
    return cells * [panel.values.shape[::-1] for panel in panels]  # (panels, 2): width, height


def _fit(drawn: Drawn, per_row: int) -> tuple[int, float]:
    """Panels in a row and scale of their cells, such that the page is not too wide and the labels are readable."""
    panels, axes = zip(*drawn, strict=True)
    wanted = [ROOM_FOR_LABEL * len(panel.columns) if len(panel.columns) <= 20 else 3.0 for panel in panels]
    count = len(panels)
    for number in range(min(per_row, count), 0, -1):
        if number < min(per_row, count):  # rows of one length, where there is a choice
            number = -(-count // -(-count // number))
        scale = 1.0
        for _ in range(3):  # names and labels stick out more where panels shrink
            sizes = _sizes(panels, _cells(panels, scale))
            before, widths, after = _tracks(sizes[:, 0], _margins(axes, sizes)[:, :2], _grid(count, number)[0])
            room = WIDEST - 2 * EDGE - GAP * (number - 1) - before.sum() - after.sum()
            before_this, scale = scale, min(1.0, scale * max(0.1, room / widths.sum()))
            if abs(scale - before_this) < 0.002:
                break
        if (_sizes(panels, _cells(panels, scale))[:, 0] >= 0.99 * np.array(wanted)).all():
            break
    return number, scale


def _margins(axes: Sequence[Axes], sizes: np.ndarray) -> np.ndarray:
    """What sticks out of axes of these sizes, labels and names: (panels, 4), left, right, top, bottom."""
    margins = []
    for each, size in zip(axes, sizes, strict=True):
        each.set_position((0, 0, *size / each.figure.get_size_inches()))
        inner, outer = each.bbox, each.get_tightbbox()
        margins.append((inner.x0 - outer.x0, outer.x1 - inner.x1, outer.y1 - inner.y1, inner.y0 - outer.y0))
    return np.maximum(margins, 0) / axes[0].figure.dpi


def _grid(count: int, per_row: int) -> tuple[list[slice], list[slice]]:
    """The panels of each column, and those of each row."""
    columns = [slice(first, None, per_row) for first in range(min(count, per_row))]
    return columns, [slice(first, first + per_row) for first in range(0, count, per_row)]


def _tracks(sizes: np.ndarray, margins: np.ndarray, groups: list[slice]) -> tuple[np.ndarray, ...]:
    """Room before, for and after the panels of each column, or of each row of panels: the most that one needs."""
    parts = np.column_stack([margins[:, 0], sizes, margins[:, 1]])
    return tuple(np.array([parts[group].max(axis=0) for group in groups]).T)


# --- the page -------------------------------------------------------------------------------------


def _place(figure: Figure, title: str, drawn: Drawn, cells: np.ndarray, per_row: int, words: Words) -> None:
    panels, axes = zip(*drawn, strict=True)
    for each, (width, height) in zip(axes, cells, strict=True):
        thin_out(each.xaxis, width, 0.95 * ROOM_FOR_LABEL)
        thin_out(each.yaxis, height, 0.7 * ROOM_FOR_LABEL)
    sizes = _sizes(panels, cells)
    margins = _margins(axes, sizes)
    columns, rows = _grid(len(panels), per_row)
    left, widths, right = _tracks(sizes[:, 0], margins[:, :2], columns)
    above, heights, below = _tracks(sizes[:, 1], margins[:, 2:], rows)
    keys = {panel.kind: each for panel, each in drawn}
    content = (left + widths + right + GAP).sum() - GAP
    width = max(NARROWEST, KEY_WIDTH * len(keys), content) + 2 * EDGE
    title = wrapped_title(title, width)
    top = EDGE + 0.19 * (title.count("\n") + 1) + 0.1
    key_height = 0.3 if set(keys) == {"mask"} else KEY_HEIGHT
    height = top + (above + heights + below + GAP).sum() + key_height + EDGE
    figure.set_size_inches(width, height)
    figure.suptitle(title, x=EDGE / width, y=1 - EDGE / height, ha="left", va="top")
    x = (width - content) / 2 + np.cumsum(left + widths + right + GAP) - widths - right - GAP
    y = top + np.cumsum(above + heights + below + GAP) - heights - below - GAP  # downward
    for number, (each, size) in enumerate(zip(axes, sizes, strict=True)):
        corner = x[number % per_row], height - y[number // per_row] - size[1]
        each.set_position((corner[0] / width, corner[1] / height, size[0] / width, size[1] / height))
    for number, kind in enumerate(keys):
        middle = width / 2 + KEY_WIDTH * (number - (len(keys) - 1) / 2)
        _key(figure, keys[kind], words[kind], middle, EDGE + key_height)


def _key(figure: Figure, axes: Axes, words: str | tuple[str, str], middle: float, top: float) -> None:
    """What the colors of a kind mean, at the foot of the page."""
    width, height = figure.get_size_inches()
    if isinstance(words, tuple):
        mask_legend(figure, "upper center", (middle / width, top / height), words)
        return
    bar = figure.add_axes(((middle - 1.0) / width, (top - 0.12) / height, 2.0 / width, 0.12 / height))
    bar = figure.colorbar(axes.images[0], cax=bar, orientation="horizontal", label=words, ticks=MaxNLocator(5))
    bar.formatter.set_powerlimits((-2, 3))


def _write_numbers(drawn: Drawn, largest: float) -> None:
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
