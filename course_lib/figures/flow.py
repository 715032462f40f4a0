"""How data flow through a computation: each tensor as a block of its own proportions, and what makes one of others."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from course_lib.figures.canvas import new_figure, styled
from course_lib.figures.palette import CLOUD, GREY, INK, LIGHT_BLUE, LIGHT_GREEN, LIGHT_YELLOW, SOOT

FILLS = {"data": CLOUD, "learned": LIGHT_YELLOW, "weights": LIGHT_BLUE, "result": LIGHT_GREEN, "step": LIGHT_YELLOW}
COLUMN, ROW = 1.7, 1.4  # inches between the middles of neighboring blocks
UNIT, SMALLEST, LARGEST = 0.14, 0.24, 0.95  # inches of one number, and of a block's sides
SHEET = 0.07  # inches by which the sheets of a stack are shifted
STEP = (0.95, 0.55)  # inches of a step's box
PART, LETTER, APART = 0.3, 0.078, 0.05  # inches: a part's height, a letter's width, the room between parts
BELOW = 0.5  # inches from a block to the way back under it, which leaves room for the block's shape


@dataclass(frozen=True)
class Block:
    """One tensor of a flow, or a step: a computation, drawn as a box with its name.

    Args:
        name: unique in the flow.
        shape: its sizes, the last two drawn as rows and columns; a third one, before them, as a stack of sheets. ()
            for a step.
        axes: the same in words, "queries × d_k" for example.
        at: column and row of the page, from the upper left; halves are allowed.
        kind: "data", "learned", "weights", "result" or "step".
        parts: a word for each of its columns, or for each row of a single column. These are then drawn one by one,
            without the sizes: as boxes around their words, dotted where the word is "", a place still empty; columns of
            several rows as bars, each in its word's place, so that they stand below words drawn above.
        fills: colors instead of that of its kind: one for each of some equal strips of its columns, or, in a stack, for
            each sheet that is drawn, from the front.
    """

    name: str
    shape: tuple[int, ...]
    axes: str
    at: tuple[float, float]
    kind: str = "data"
    parts: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()

    @property
    def sheets(self) -> int:
        """How many are drawn; the first is in front."""
        return min(4, self.shape[0]) if len(self.shape) == 3 else 1

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        if self.kind == "step":
            return STEP
        rows, columns = self.shape[-2:]
        if self.parts:
            widths = self.widths
            return (max(widths), PART * rows) if columns == 1 else (sum(widths), PART if rows == 1 else 2 * PART)
        return tuple(min(LARGEST, max(SMALLEST, UNIT * number)) for number in (columns, rows))

    @property
    def middle(self) -> tuple[float, float]:
        """In inches, upward from row 0."""
        return COLUMN * self.at[0], -ROW * self.at[1]

    @property
    def widths(self) -> list[float]:
        """Inches that each part takes, for its word and the room beside it."""
        return [LETTER * max(3, len(word)) + 0.15 for word in self.parts]

    @property
    def entry(self) -> float:
        """Where a way back ends, in inches: below the place still empty, if the last part is one, or the middle."""
        if not self.parts or self.parts[-1]:
            return self.middle[0]
        return self.middle[0] + (self.size[0] - self.widths[-1]) / 2


@styled
def flow_figure(blocks: Sequence[Block], ways: Sequence[tuple[str, str, str]], *, title: str) -> Figure:
    """Draws tensors and the ways between them.

    Args:
        blocks: the tensors.
        ways: from one block's name to another's, and what happens on the way, in words or as a formula; "" for nothing.
            One that leads back, to a block further left in its row, is dashed, and goes under the row.
        title: the finding.

    Raises:
        ValueError: if a name is given twice, a way leads from or to no block, a kind is unknown, a shape has fewer
            than two sizes or more than three (a step has none), parts are not as many as columns, or as rows of a
            single column, or fills are not as many as the sheets of a stack, or do not divide the columns.
    """
    found = {block.name: block for block in blocks}
    if len(found) < len(blocks):
        raise ValueError(f"expected each name once, got {[block.name for block in blocks]}")
    for block in blocks:
        _check(block)
    if strange := {name for start, end, _ in ways for name in (start, end)} - set(found):
        raise ValueError(f"ways lead from or to {sorted(strange)}, the blocks are {', '.join(found)}")
    across, down = ([block.at[side] for block in blocks] for side in (0, 1))
    back = any(_leads_back(found[start], found[end]) for start, end, _ in ways)
    left = min([-0.5 * COLUMN, *(block.middle[0] - block.size[0] / 2 - APART for block in blocks)])
    right = max([COLUMN * (max(across) + 0.4), *(block.middle[0] + block.size[0] / 2 + APART for block in blocks)])
    height = ROW * (max(down) + 1) + BELOW * back
    figure = new_figure(title, right - left, height)
    axes = figure.add_subplot(xlim=(left, right), ylim=(-height + ROW / 2, ROW / 2))
    axes.set_aspect("equal")
    axes.axis("off")
    for start, end, words in ways:
        _way(axes, found[start], found[end], words)
    for block in blocks:
        _block(axes, block)
    return figure


def _check(block: Block) -> None:
    if block.kind not in FILLS or len(block.shape) not in ((0,) if block.kind == "step" else (2, 3)):
        expected = f"expected 2 or 3 sizes (none of a step) and a kind among {', '.join(FILLS)}"
        raise ValueError(f"{block.name}: {expected}, got {block.shape} and {block.kind!r}")
    rows, columns = block.shape[-2:] or (0, 0)
    if block.parts and (len(block.shape) != 2 or len(block.parts) != (rows if columns == 1 else columns)):
        raise ValueError(f"{block.name}: expected a part for each column, got {block.shape} and {block.parts}")
    count, stack = len(block.fills), len(block.shape) == 3
    if count and (block.parts or not columns or (count != block.sheets if stack else columns % count)):
        expected = "expected a fill for each sheet, or for equal strips of columns"
        raise ValueError(f"{block.name}: {expected}, got {block.shape} and {block.fills}")


def _block(axes: Axes, block: Block) -> None:
    (x, y), (width, height) = block.middle, block.size
    if block.kind == "step":
        style = dict(facecolor=FILLS["step"], edgecolor=GREY, zorder=2, boxstyle="round,pad=0,rounding_size=0.12")
        axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, **style))
        axes.text(x, y, block.name, ha="center", va="center", weight="bold", color=INK)
        return
    if block.parts:
        _parts(axes, block)
    else:
        fills, stack = block.fills or (FILLS[block.kind],) * block.sheets, len(block.shape) == 3
        wide = width if stack else width / len(fills)
        for number, fill in reversed(list(enumerate(fills))):  # a sheet behind another, or a strip beside it
            right, up = (SHEET * number, SHEET * number) if stack else (wide * number, 0)
            corner = (x - width / 2 + right, y - height / 2 + up)
            style = dict(facecolor=fill, edgecolor=GREY, zorder=2, clip_on=False)  # sheets may overhang
            axes.add_patch(Rectangle(corner, wide, height, **style))
    top = y + height / 2 + SHEET * (block.sheets - 1)
    axes.text(x, top + 0.05, block.name, ha="center", va="bottom", weight="bold", color=INK)
    sizes = "" if block.parts else " × ".join(str(size) for size in block.shape) + "\n"
    axes.text(x, y - height / 2 - 0.05, f"{sizes}{block.axes}", ha="center", va="top", fontsize=8, color=INK)


def _parts(axes: Axes, block: Block) -> None:
    (x, y), (width, height) = block.middle, block.size
    rows, columns = block.shape
    left, top = x - width / 2, y + height / 2
    for number, (word, room) in enumerate(zip(block.parts, block.widths, strict=True)):
        here = (x, top - PART * (number + 0.5)) if columns == 1 else (left + room / 2, y)
        bar = min(rows, columns) > 1
        wide = UNIT if bar else (width if columns == 1 else room) - APART
        high = height if bar else PART - APART
        style = dict(facecolor=FILLS[block.kind], edgecolor=GREY, zorder=2)
        if not word:
            style |= dict(facecolor="none", linestyle=":", linewidth=1.4)
        axes.add_patch(Rectangle((here[0] - wide / 2, here[1] - high / 2), wide, high, **style))
        axes.text(*here, "" if bar else word, ha="center", va="center", fontsize=8, color=INK)
        left += room


def _leads_back(start: Block, end: Block) -> bool:
    return start.middle[1] == end.middle[1] and end.middle[0] < start.middle[0]


def _room_below(block: Block, usual: float) -> float:
    """Inches from a block to a way under it, with what is written there."""
    return 0.1 if block.kind == "step" else 0.08 + 0.17 * bool(block.axes) if block.parts else usual


def _way(axes: Axes, start: Block, end: Block, words: str) -> None:
    """An arrow from side to side, from below to above where one block stands under the other, or back under the row."""
    (x, y), (to_x, to_y) = start.middle, end.middle
    style = dict(arrowstyle="-|>", mutation_scale=9, color=SOOT, shrinkA=0, shrinkB=0)
    box = dict(boxstyle="round,pad=0.15", facecolor="white", edgecolor="none")
    if _leads_back(start, end):
        below, above = (block.size[1] / 2 + _room_below(block, BELOW) for block in (start, end))
        low = y - max(below, above) - 0.4 * BELOW
        axes.plot((x, x, end.entry), (y - below, low, low), color=SOOT, linestyle="--", linewidth=1)
        axes.add_patch(FancyArrowPatch((end.entry, low), (end.entry, to_y - above), **style))
        axes.text((x + end.entry) / 2, low, words, ha="center", va="center", fontsize=8, color=INK, bbox=box)
        return
    if x == to_x:
        down = 1 if y > to_y else -1
        below, above = _room_below(start, 0.35), 0.1 if end.kind == "step" else 0.3
        first, last = (x, y - down * (start.size[1] / 2 + below)), (to_x, to_y + down * (end.size[1] / 2 + above))
    else:
        side = 1 if to_x > x else -1
        first = (x + side * (start.size[0] / 2 + 0.06 + SHEET * 3 * (len(start.shape) == 3)), y)
        last = (to_x - side * (end.size[0] / 2 + 0.06), to_y)
    axes.add_patch(FancyArrowPatch(first, last, **style))
    middle = ((first[0] + last[0]) / 2, (first[1] + last[1]) / 2)
    axes.text(*middle, words, ha="center", va="center", fontsize=8, color=INK, bbox=box if words else None)
