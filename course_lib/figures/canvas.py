"""What all figures of the course share: the page, the style, and matrices drawn as grids of cells."""

import io
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.patches import Patch
from matplotlib.text import Text
from numpy.typing import ArrayLike

from course_lib.figures.palette import HIDDEN, INK, MAY_ATTEND, PAPER, SIGNED_MAP, STYLE, WEIGHTS_MAP

SHOWN_LABELS = 40  # an axis with more labels than these is thinned out, and its cells need not be square
CELLS_WITH_NUMBERS = 10  # a matrix at most this wide and high shows its numbers
MASK_WORDS = ("may attend", "hidden")

styled = style.context(STYLE, after_reset=True)  # a decorator: the course's style inside, the user's own outside


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
        width, height: in inches, of 100 pixels; a title of several lines adds their height.
    """
    figure = CourseFigure(figsize=(width, height))
    set_title(figure, title, width)
    figure.set_figheight(height + 0.19 * figure.get_suptitle().count("\n"))
    return figure


def set_title(figure: Figure, title: str, width: float) -> None:
    """Writes a title in lines that fit a page of so many inches."""
    lines = textwrap.fill(printable(title), int(10.5 * width))  # about 11 bold characters an inch
    figure.suptitle(lines, x=0.02, ha="left", parse_math=False)


def printable(words: object) -> str:
    """Words for a figure: for each character that only controls others, such as a mark of direction, stands a �."""
    return "".join(map(_printable, str(words)))


def _printable(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return " " if character.isspace() else "�"


def fit_page(axes: Axes) -> None:
    """Makes the page such that the tracks of the axes' grid get the inches that their ratios say.

    What stands around them, labels and title, takes the room that Matplotlib's layout gives it.
    """
    figure, grid, place = axes.figure, axes.get_gridspec(), axes.get_subplotspec()
    widths, heights = grid.get_width_ratios(), grid.get_height_ratios()
    wanted = np.array([widths[place.colspan.start], heights[place.rowspan.start]])
    for _ in range(5):  # slanted labels stick out less where cells are larger
        figure.get_layout_engine().execute(figure)
        got = axes.get_position(original=True).size * figure.get_size_inches()
        change = (1 - got / wanted) * [sum(widths), sum(heights)]
        if np.abs(change).max() * figure.dpi < 0.5:
            break
        pixels = np.round((figure.get_size_inches() + change) * figure.dpi)  # whole ones: a figure says its size
        figure.set_size_inches(pixels / figure.dpi)


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


def checked_mask(mask: ArrayLike, queries: Sequence[str], keys: Sequence[str]) -> np.ndarray:
    """A mask as an array; raises ValueError where it is not bool or does not fit the labels."""
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"expected a bool mask, True = may attend, got {mask.dtype}")
    check_labels(mask, queries, keys)
    return mask


def checked_signed(values: ArrayLike, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """Signed numbers as an array; raises ValueError where they do not fit the labels or are not finite."""
    values = np.asarray(values, dtype=float)
    check_labels(values, rows, columns)
    if not np.isfinite(values).all():
        raise ValueError("expected finite values, got NaN or infinity")
    return values


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
        axis.set_ticks(range(0, len(labels), step), [printable(label) for label in labels[::step]], parse_math=False)
    axes.tick_params(top=False, bottom=False, left=False, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    axes.spines[:].set_visible(False)
    if max(len(str(label)) for label in columns) > 2:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")
    if not crowded:  # white lines between the cells
        axes.set_xticks(np.arange(values.shape[1] - 1) + 0.5, minor=True)
        axes.set_yticks(np.arange(values.shape[0] - 1) + 0.5, minor=True)
        axes.grid(which="minor", color=PAPER, lw=1)
        axes.tick_params(which="minor", length=0)
    return image


def thin_out(axis: Axis, cell: float, room: float) -> None:
    """Keeps every second, fourth, eighth … label of an axis, such that they are as far apart as room, in inches."""
    places, labels = axis.get_ticklocs(), [label.get_text() for label in axis.get_ticklabels()]
    step, apart = 1, cell * (places[1] - places[0] if len(places) > 1 else 1)
    while step < len(places) and step * apart < room:
        step *= 2
    if step > 1:
        axis.set_ticks(places[::step], labels[::step], parse_math=False)


def draw_weights(axes: Axes, weights: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> AxesImage:
    """Draws weights from 0, white, to 1, dark."""
    return draw_matrix(axes, weights, queries, keys, WEIGHTS_MAP, (0.0, 1.0))


def draw_signed(
    axes: Axes, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], largest: float
) -> AxesImage:
    """Draws numbers from -largest, blue, over 0, white, to largest, red."""
    return draw_matrix(axes, values, rows, columns, SIGNED_MAP, (-largest, largest))


def draw_mask(axes: Axes, mask: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> AxesImage:
    """Draws a mask in two tones; `mask_legend` says what they mean."""
    return draw_matrix(axes, mask.astype(float), queries, keys, ListedColormap([HIDDEN, MAY_ATTEND]), (0.0, 1.0))


def legend_of(owner: Axes | Figure, **options) -> Legend:
    """The legend of axes or of a whole figure, in whose words a $ is a $."""
    legend = owner.legend(**options)
    for words in legend.get_texts():
        words.set(parse_math=False, text=printable(words.get_text()))
    return legend


def mask_legend(figure: Figure, words: tuple[str, str]) -> Legend:
    """The two tones of a mask, True and False, in words, at the foot of the page."""
    tones = [Patch(color=color, label=label) for color, label in zip((MAY_ATTEND, HIDDEN), words, strict=True)]
    return legend_of(figure, handles=tones, loc="outside lower center", ncols=2)


def write_weights(axes: Axes, weights: np.ndarray) -> list[Text]:
    """Writes small matrices' weights into their cells, as write_numbers does."""
    return write_numbers(axes, weights, "{:.2f}", dark=weights > 0.55)


def write_signed(axes: Axes, values: np.ndarray, largest: float) -> list[Text]:
    """Writes small matrices' signed numbers into their cells, as write_numbers does."""
    return write_numbers(axes, values, "{:.2g}", dark=np.abs(values) > 0.6 * largest)


def write_numbers(axes: Axes, values: np.ndarray, form: str, *, dark: np.ndarray) -> list[Text]:
    """Writes each value into its cell, white where the cell is dark; nothing where the matrix is large."""
    if max(values.shape) > CELLS_WITH_NUMBERS:
        return []
    texts = []
    for (row, column), value in np.ndenumerate(values):
        words = form.format(value + 0.0).replace("-", "−")
        tone = PAPER if dark[row, column] else INK
        texts.append(axes.text(column, row, words, ha="center", va="center", fontsize=8, color=tone))
    return texts
