"""The architecture drawn from its boxes: every one with its shape and its parameters."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from course_lib.figures.canvas import new_figure, styled
from course_lib.figures.palette import CLOUD, GREY, INK, LIGHT_BLUE, LIGHT_GREEN, LIGHT_YELLOW, PAPER, SOOT

FILLS = {"attention": LIGHT_BLUE, "feed-forward": LIGHT_GREEN, "norm": CLOUD}  # by the words of the label
WIDTH, HEIGHT, GAP = 2.75, 0.46, 0.2  # of a box and between boxes, in inches
ENCODER_X, DECODER_X = 0.75, 5.15


@styled
def architecture_figure(stations: Sequence[Any], *, title: str) -> Figure:
    """Draws encoder and decoder side by side, data flowing upward, in the order of the paper's figure 1.

    Args:
        stations: the boxes in the order of data, the encoder's first, as `course_lib.analysis.stations` makes them:
            each has a label, a stack, its number of layers, shapes by name and the parameters of all its layers.
        title: the finding.

    Paper: figure 1, up to the logits.
    """
    encoder, decoder = ([each for each in stations if each.stack == stack] for stack in ("encoder", "decoder"))
    decoder = [each for each in decoder if "probabilities" not in each.shapes]  # the logits are the top
    figure = new_figure(title, 9.0, 0.3 + (HEIGHT + GAP) * max(len(encoder), len(decoder)))
    axes = figure.add_subplot(xlim=(0, 9))
    axes.axis("off")
    memory_y, _ = _column(axes, ENCODER_X, encoder, "Encoder")
    _result(axes, ENCODER_X, memory_y, f"memory {_written(encoder[-1].shapes['out'])}")
    top, cross_y = _column(axes, DECODER_X, decoder, "Decoder")
    _result(axes, DECODER_X, top, f"logits {_written(decoder[-1].shapes['logits'])}")
    _connect(axes, memory_y + 0.12, cross_y)
    axes.set_ylim(-0.1, top + 0.3)
    return figure


def _column(axes: Axes, x: float, stations: Sequence[Any], name: str) -> tuple[float, float]:
    """Draws a stack from the bottom up; returns the height above it, and that of its cross-attention."""
    layer = [each for each in stations if each.layers]
    pre_norm = _is_norm(layer[0])
    y, cross_y = 0.0, 0.0
    for station in stations:
        if station is layer[0]:
            y = _frame(axes, x, y, f"{name}: {station.layers} layers", len(layer))
        if station.label.startswith("cross"):
            cross_y = y + HEIGHT / 2
        added = ", add" if pre_norm and station.layers and not _is_norm(station) else ""
        y = _box(axes, x, y, f"{station.label}{added}{_size(station)}", _fill(station))
        if station is layer[-1]:
            _arrow(axes, (x + WIDTH / 2, y), (x + WIDTH / 2, y + GAP))  # out of the frame
            y += GAP
    return y, cross_y


def _is_norm(station: Any) -> bool:
    return station.label.endswith("norm")


def _fill(station: Any) -> str:
    if "matrix" in station.shapes:
        return LIGHT_YELLOW
    return next((fill for word, fill in FILLS.items() if word in station.label), PAPER)


def _size(station: Any) -> str:
    """What a box says after its name: shape, and parameters of one layer; tables in millions."""
    count = station.parameters // max(1, station.layers)
    if "matrix" in station.shapes:
        return f": {count / 1e6:.1f} M" if count else ": same matrix"
    vectors = "" if station.layers or _is_norm(station) else f" {_written([*station.shapes.values()][-1])}"
    return vectors + (f": {count:,}" if count else "")


def _written(shape: Sequence[int]) -> str:
    return f"({', '.join(f'{size:,}' for size in shape)})"


def _frame(axes: Axes, x: float, y: float, words: str, boxes: int) -> float:
    """Draws a frame around the boxes of one layer, and their residual paths; returns the height of the first."""
    height = boxes * (HEIGHT + GAP) + GAP
    _arrow(axes, (x + WIDTH / 2, y), (x + WIDTH / 2, y + GAP))  # into the frame
    dashed = dict(boxstyle="round,pad=0,rounding_size=0.1", facecolor="none", edgecolor=GREY, ls="--")
    axes.add_patch(FancyBboxPatch((x - 0.2, y), WIDTH + 0.4, height, **dashed))
    for index in range(0, boxes, 2):  # each sub-layer and its norm are one residual path
        _residual(axes, x + WIDTH, y + GAP + index * (HEIGHT + GAP))
    side = x - 0.34 if x == ENCODER_X else x + WIDTH + 0.34
    axes.text(side, y + height / 2, words, rotation=90, ha="center", va="center", weight="bold")
    return y + GAP


def _box(axes: Axes, x: float, y: float, words: str, fill: str) -> float:
    """Draws one box and the arrow to the next; returns the height of the next."""
    outline = dict(boxstyle="round,pad=0,rounding_size=0.06", facecolor=fill, edgecolor=GREY)
    axes.add_patch(FancyBboxPatch((x, y), WIDTH, HEIGHT, **outline))
    axes.text(x + WIDTH / 2, y + HEIGHT / 2, words, ha="center", va="center", fontsize=9, color=INK)
    _arrow(axes, (x + WIDTH / 2, y + HEIGHT), (x + WIDTH / 2, y + HEIGHT + GAP))
    return y + HEIGHT + GAP


def _result(axes: Axes, x: float, y: float, words: str) -> None:
    axes.text(x + WIDTH / 2, y + 0.12, words, ha="center", va="center", fontsize=10, weight="bold", color=INK)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "-|>") -> None:
    line = dict(arrowstyle=style, mutation_scale=9, color=SOOT, shrinkA=0, shrinkB=0)
    axes.add_patch(FancyArrowPatch(start, end, **line))


def _residual(axes: Axes, right: float, y: float) -> None:
    """The way around a sub-layer: from below it, past it, into the sum."""
    below, end = y - 0.6 * GAP, y + 1.5 * HEIGHT + GAP
    _arrow(axes, (right - WIDTH / 2, below), (right + 0.1, below), "-")
    _arrow(axes, (right + 0.1, below), (right + 0.1, end), "-")
    _arrow(axes, (right + 0.1, end), (right, end))


def _connect(axes: Axes, memory_y: float, cross_y: float) -> None:
    """The memory's way into every decoder layer's cross-attention."""
    middle = (ENCODER_X + WIDTH + DECODER_X) / 2
    _arrow(axes, (ENCODER_X + WIDTH - 0.4, memory_y), (middle, memory_y), "-")
    _arrow(axes, (middle, memory_y), (middle, cross_y), "-")
    _arrow(axes, (middle, cross_y), (DECODER_X, cross_y))
    axes.text(middle - 0.05, memory_y + 0.06, "keys, values", ha="center", va="bottom", fontsize=9, color=INK)
