"""A beam search drawn as a tree: a column for each step, a box for each token that was considered."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch
from matplotlib.text import Text

from course_lib.figures.canvas import fit_page, new_figure, printable, set_title, styled
from course_lib.figures.palette import ASH, BLUE, GREY, INK, LIGHT_BLUE, LIGHT_GREEN, PAPER, SNOW

WINNER, DROPPED = "best output", "dropped"
LOOKS = {  # of a box by the fate of its node; in grey they differ by line and text
    WINNER: dict(facecolor=LIGHT_BLUE, edgecolor=BLUE, lw=2.2),
    "kept": dict(facecolor=PAPER, edgecolor=INK, lw=1.2),
    "finished": dict(facecolor=LIGHT_GREEN, edgecolor=INK, lw=2.2),
    "unfinished": dict(facecolor=PAPER, edgecolor=INK, lw=1.2, ls="--"),
    DROPPED: dict(facecolor=SNOW, edgecolor=ASH, lw=0.8),
}
EDGES = {WINNER: dict(color=BLUE, lw=2.6), DROPPED: dict(color=ASH, lw=0.8)}
HEIGHT, ROW, GAP = 0.36, 0.46, 0.34  # of a box, from row to row, and between columns, in inches
HEAD = 0.3  # for the steps' numbers
NARROWEST = 6.2


@styled
def beam_figure(tree: Any, labels: Sequence[str], *, title: str) -> Figure:
    """Draws a beam search from left to right: what it kept, what it dropped, what finished and what won.

    Each box holds a token and the log-probability of the output up to and including it, in nats; where the search
    has a length penalty, a finished output also shows its score. Readable up to a beam of 4 and about 10 steps.

    Args:
        tree: of one sentence, as `record_beam` makes it. `nodes`, the root first: each with its step, parent, total,
            fate and score; `best`, the indices of the ends of the outputs, best first; `path(index)`; `length_penalty`.
        labels: a token for each of its nodes.
        title: the finding.

    Raises:
        ValueError: if there is not one label for each node.
    """
    if len(labels) != len(tree.nodes):
        raise ValueError(f"expected a label for each of {len(tree.nodes)} nodes, got {len(labels)}")
    columns, looks = _columns(tree), _looks(tree)
    figure = new_figure(title, NARROWEST, NARROWEST)
    axes = figure.add_subplot()
    axes.axis("off")
    texts = [_text(axes, tree, index, label, looks[index]) for index, label in enumerate(labels)]
    boxes, width = _place(columns, [text.get_window_extent().width / figure.dpi + 0.16 for text in texts])
    width, height = max(NARROWEST, width), HEAD + ROW * max(map(len, columns))
    axes.set(xlim=(0, width), ylim=(height, 0))  # in inches
    for step, column in enumerate(columns[1:], start=1):
        left, _, wide = boxes[column[0]]
        axes.text(left + wide / 2, HEAD / 2, f"step {step}", ha="center", va="center", fontsize=9, color=GREY)
    for index in sorted(range(len(boxes)), key=lambda index: (looks[index] != DROPPED, looks[index] == WINNER)):
        _draw(axes, tree, index, boxes, texts[index], looks[index])
    handles = [Patch(label=name, **style) for name, style in LOOKS.items() if name in looks]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    set_title(figure, title, width)
    axes.set_subplotspec(figure.add_gridspec(width_ratios=[width], height_ratios=[height])[0])
    figure.set_size_inches(width + 1, height + 3)  # more than enough
    fit_page(axes)
    return figure


def _columns(tree: Any) -> list[list[int]]:
    """The nodes of each step from top to bottom: in the order of their parents, so that no two edges cross."""
    columns = [[] for _ in range(1 + max(node.step for node in tree.nodes))]
    for index, node in enumerate(tree.nodes):
        columns[node.step].append(index)
    for before, column in zip(columns, columns[1:], strict=False):
        column.sort(key=lambda index: before.index(tree.nodes[index].parent))  # siblings stay as they are
    return columns


def _looks(tree: Any) -> list[str]:
    """A name of LOOKS for each node."""
    winner = set(tree.path(tree.best[0])) if tree.best else set()
    return [WINNER if index in winner else node.fate for index, node in enumerate(tree.nodes)]


def _place(columns: list[list[int]], widths: list[float]) -> tuple[dict[int, tuple[float, float, float]], float]:
    """Left edge, middle and width of each box, in inches from the top left; and the width of the tree."""
    boxes, left, tallest = {}, 0.0, max(map(len, columns))
    for column in columns:
        wide = max(widths[index] for index in column)
        first = HEAD + ROW * (tallest - len(column) + 1) / 2
        boxes |= {index: (left, first + ROW * row, wide) for row, index in enumerate(column)}
        left += wide + GAP
    return boxes, left - GAP


def _text(axes: Axes, tree: Any, index: int, label: str, role: str) -> Text:
    node = tree.nodes[index]
    numbers = f"{node.total:.2f}"
    if node.score is not None and tree.length_penalty:
        numbers += f" → {node.score:.2f}"
    words = f"{printable(label)}\n{numbers}".replace("-0.00", "0.00").replace("\n-", "\n−").replace("→ -", "→ −")
    style = dict(ha="center", va="center", fontsize=8.5, linespacing=1.25, parse_math=False, gid=f"node {index}")
    return axes.text(0, 0, words, color=GREY if role == DROPPED else INK, zorder=3, **style)


def _draw(axes: Axes, tree: Any, index: int, boxes: dict, text: Text, role: str) -> None:
    """One box with its text, and the edge that leads to it."""
    left, middle, wide = boxes[index]
    text.set_position((left + wide / 2, middle))
    shape = dict(clip_on=False, boxstyle="round,pad=0,rounding_size=0.06", gid=f"box {index}", zorder=2)
    axes.add_patch(FancyBboxPatch((left, middle - HEIGHT / 2), wide, HEIGHT, **shape, **LOOKS[role]))
    parent = tree.nodes[index].parent
    if parent is not None:
        start = boxes[parent][0] + boxes[parent][2], boxes[parent][1]
        style = EDGES.get(role, dict(color=INK, lw=1.2))
        curve = dict(arrowstyle="-", connectionstyle="arc3,rad=0", shrinkA=0, shrinkB=0, gid=f"edge {parent} {index}")
        axes.add_patch(FancyArrowPatch(start, (left, middle), zorder=1, **curve, **style))
