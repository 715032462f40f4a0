"""What all figures of the course share: the page, the style, and matrices drawn as grids of cells."""

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

STYLE = str(Path(__file__).with_name("course.mplstyle"))
SHOWN_LABELS = 40  # an axis with more labels than these is thinned out, and its cells need not be square
CELLS_WITH_NUMBERS = 10  # a matrix at most this wide and high shows its numbers

styled = matplotlib.rc_context(fname=STYLE)  # a decorator: the course's style inside, the user's own outside


class CourseFigure(Figure):
    """A Figure that a notebook shows by itself, once, without pyplot; its title is the alternative text."""

    @styled
    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue(), {"alt": self.get_suptitle().replace("\n", " ")}


def new_figure(title: str, width: float, height: float) -> CourseFigure:
    """An empty figure under its title; for functions decorated with `styled`.

    Args:
        title: the finding, one sentence.
        width, height: in inches, of 100 pixels.
    """
    figure = CourseFigure(figsize=(width, height))
    lines = textwrap.fill(title, int(10.5 * width))  # about 11 bold characters an inch
    figure.suptitle(lines, x=0.02, ha="left")
    return figure


def check_labels(values: np.ndarray, rows: Sequence[str], columns: Sequence[str], dimensions: int = 2) -> None:
    """Raises ValueError where the last two dimensions are not (rows, columns), or there are no values."""
    if values.ndim != dimensions or values.shape[-2:] != (len(rows), len(columns)) or not values.size:
        leading = "heads, " if dimensions == 3 else ""
        raise ValueError(f"expected shape ({leading}{len(rows)}, {len(columns)}) as the labels say, got {values.shape}")


def checked_weights(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], dimensions: int) -> np.ndarray:
    """Attention weights as an array; raises ValueError where they do not fit the labels or are outside 0..1."""
    weights = np.asarray(weights, dtype=float)
    check_labels(weights, queries, keys, dimensions)
    if not ((weights >= -1e-6) & (weights <= 1 + 1e-6)).all():
        raise ValueError(f"expected weights in 0..1, got {weights.min():.3g} to {weights.max():.3g}")
    return weights


def grid_size(
    shape: tuple[int, int], *, width: float, height: float, cell: float | None = None
) -> tuple[float, float]:
    """Width and height in inches of a figure around a matrix of (rows, columns) cells and so much of margins."""
    if max(shape) > SHOWN_LABELS and cell is None:
        return 9.0, min(6.0, max(3.0, height + 0.07 * shape[0]))
    cell = cell or (0.42 if max(shape) <= 12 else 0.34)
    return min(13.0, max(5.0, width + cell * shape[1])), min(12.0, height + cell * shape[0])


def draw_matrix(
    axes: Axes,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    color_map: str | Colormap,
    limits: tuple[float, float],
) -> AxesImage:
    """Draws (rows, columns) values as cells, row 0 on top, with the row labels left and the column labels on top."""
    crowded = max(values.shape) > SHOWN_LABELS
    aspect = "auto" if crowded else "equal"
    image = axes.imshow(values, cmap=color_map, vmin=limits[0], vmax=limits[1], interpolation="nearest", aspect=aspect)
    for axis, labels in ((axes.xaxis, columns), (axes.yaxis, rows)):
        step = -(-len(labels) // SHOWN_LABELS)
        axis.set_ticks(range(0, len(labels), step), [str(label) for label in labels[::step]])
    axes.tick_params(top=False, bottom=False, left=False, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    axes.spines[:].set_visible(False)
    if max(len(str(label)) for label in columns) > 2:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")
    if not crowded:  # white lines between the cells
        axes.set_xticks(np.arange(values.shape[1] - 1) + 0.5, minor=True)
        axes.set_yticks(np.arange(values.shape[0] - 1) + 0.5, minor=True)
        axes.grid(which="minor", color="white", lw=1)
        axes.tick_params(which="minor", length=0)
    return image


def write_numbers(axes: Axes, values: np.ndarray, form: str, *, dark: np.ndarray) -> None:
    """Writes each value into its cell, white where the cell is dark; nothing where there is no room."""
    if max(values.shape) <= CELLS_WITH_NUMBERS:
        for (row, column), value in np.ndenumerate(values):
            text = form.format(value).replace("-", "−")
            tone = "white" if dark[row, column] else "#222222"
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=tone)
