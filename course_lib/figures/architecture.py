"""The architecture drawn from a configuration: every box with its shape and its parameters."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from course_lib.config import ModelConfig
from course_lib.figures.canvas import new_figure, styled

FILL = {"embedding": "#fbe3b5", "attention": "#cfe6f7", "feed_forward": "#cdebdf", "norm": "#eeeeee", "plain": "white"}
WIDTH, HEIGHT, GAP = 2.75, 0.46, 0.2  # of a box and between boxes, in inches
ENCODER_X, DECODER_X = 0.75, 5.15
INK = "#222222"


@dataclass(frozen=True)
class _Box:
    kind: str
    name: str
    parameters: int | None = None


@styled
def architecture_figure(config: ModelConfig, *, src_len: int, tgt_len: int, title: str) -> Figure:
    """Draws encoder and decoder side by side, data flowing upward, in the order of the paper's figure 1.

    Args:
        config: sizes; norm_first and tie_weights change the drawing too.
        src_len, tgt_len: tokens of the sentence pair whose shapes are shown, as (length, width).
        title: the finding.

    Paper: figure 1.
    """
    figure = new_figure(title, 9.0, 7.6 if config.norm_first else 6.9)
    axes = figure.add_subplot(xlim=(0, 9))
    axes.axis("off")
    attention, feed_forward, norm = _sizes(config)
    first = _column(axes, ENCODER_X, _inputs(config, "source ids", src_len))
    layer = _sublayers(config, [_Box("attention", f"self-attention{_relative(config)}", attention), feed_forward], norm)
    memory_y = _stack(axes, config, ENCODER_X, first, "Encoder", layer, norm)
    _shape(axes, ENCODER_X, memory_y, f"memory ({src_len}, {config.d_model})")

    first = _column(axes, DECODER_X, _inputs(config, "target ids, shifted right", tgt_len))
    masked = _Box("attention", f"masked self-attention{_relative(config)}", attention)
    layer = _sublayers(config, [masked, _Box("attention", "cross-attention", attention), feed_forward], norm)
    hidden_y = _stack(axes, config, DECODER_X, first, "Decoder", layer, norm)
    shared = "same matrix" if config.tie_weights else f"{config.vocab_size * config.d_model / 1e6:.1f} M"
    top = _box(axes, DECODER_X, hidden_y, _Box("embedding", f"generator: {shared}"))
    _shape(axes, DECODER_X, top, f"logits ({tgt_len}, {config.vocab_size:,})")

    cross_index = next(index for index, box in enumerate(layer) if box.name.startswith("cross"))
    _connect(axes, memory_y + 0.12, first + GAP + (cross_index + 0.5) * (HEIGHT + GAP))
    axes.set_ylim(-0.1, top + 0.3)
    return figure


def _sizes(config: ModelConfig) -> tuple[int, _Box, _Box]:
    d_model, d_ff = config.d_model, config.d_ff
    feed_forward = _Box("feed_forward", "feed-forward", 2 * d_model * d_ff + d_ff + d_model)
    return 4 * (d_model * d_model + d_model), feed_forward, _Box("norm", "norm", 2 * d_model)


def _inputs(config: ModelConfig, words: str, length: int) -> list[_Box]:
    table = config.vocab_size * config.d_model
    shared = "same matrix" if config.tie_weights and words.startswith("target") else f"{table / 1e6:.1f} M"
    boxes = [_Box("plain", f"{words} ({length})"), _Box("embedding", f"embedding × √d_model: {shared}")]
    if config.position in ("sinusoidal", "learned"):
        learned = config.max_len * config.d_model if config.position == "learned" else None
        boxes.append(_Box("plain", f"+ {config.position} position ({length}, {config.d_model})", learned))
    return boxes


def _relative(config: ModelConfig) -> str:
    return {"alibi": ", ALiBi", "rotary": ", rotary"}.get(config.position, "")


def _sublayers(config: ModelConfig, boxes: list[_Box], norm: _Box) -> list[_Box]:
    add_norm = _Box("norm", "add, norm", norm.parameters)
    if not config.norm_first:
        return [part for box in boxes for part in (box, add_norm)]
    return [part for box in boxes for part in (norm, _Box(box.kind, f"{box.name}, add", box.parameters))]


def _column(axes: Axes, x: float, boxes: list[_Box], y: float = 0.0) -> float:
    for box in boxes:
        y = _box(axes, x, y, box)
    return y


def _stack(axes: Axes, config: ModelConfig, x: float, y: float, name: str, layer: list[_Box], norm: _Box) -> float:
    """Draws a frame around one layer; returns the height above it, and above the final norm if there is one."""
    top = _column(axes, x, layer, y + GAP)
    for height in (y, top):  # through the frame, into the layer and out of it
        _arrow(axes, (x + WIDTH / 2, height), (x + WIDTH / 2, height + GAP))
    look = dict(boxstyle="round,pad=0,rounding_size=0.1", facecolor="none", edgecolor="#777777", ls="--")
    axes.add_patch(FancyBboxPatch((x - 0.2, y), WIDTH + 0.4, top - y, **look))
    for index in range(0, len(layer), 2):  # each sub-layer and its norm are one residual path
        _residual(axes, x + WIDTH, y + GAP + index * (HEIGHT + GAP))
    side = x - 0.34 if name == "Encoder" else x + WIDTH + 0.34
    words = f"{name}: {config.num_layers} layers"
    axes.text(side, (y + top) / 2, words, rotation=90, ha="center", va="center", weight="bold")
    top += GAP
    return _box(axes, x, top, _Box("norm", "final norm", norm.parameters)) if config.norm_first else top


def _box(axes: Axes, x: float, y: float, box: _Box) -> float:
    """Draws one box and the arrow to the next; returns the height of the next."""
    look = dict(boxstyle="round,pad=0,rounding_size=0.06", facecolor=FILL[box.kind], edgecolor="#777777")
    axes.add_patch(FancyBboxPatch((x, y), WIDTH, HEIGHT, **look))
    size = "" if box.parameters is None else f": {box.parameters:,}"
    axes.text(x + WIDTH / 2, y + HEIGHT / 2, box.name + size, ha="center", va="center", fontsize=9, color=INK)
    _arrow(axes, (x + WIDTH / 2, y + HEIGHT), (x + WIDTH / 2, y + HEIGHT + GAP))
    return y + HEIGHT + GAP


def _shape(axes: Axes, x: float, y: float, words: str) -> None:
    axes.text(x + WIDTH / 2, y + 0.12, words, ha="center", va="center", fontsize=10, weight="bold", color=INK)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "-|>") -> None:
    look = dict(arrowstyle=style, mutation_scale=9, color="#555555", shrinkA=0, shrinkB=0)
    axes.add_patch(FancyArrowPatch(start, end, **look))


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
