"""Time and memory of a training step of one layer against the length of the sentence and the width of the model."""

import math
import statistics
from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor

from course_lib.attention import FusedAttention, MultiHeadAttention, attention_weights
from course_lib.blocks import FeedForward
from course_lib.figures import CourseFigure, curves
from course_lib.training import peak_bytes

LENGTHS = [2**power for power in range(6, 13)]
WIDTHS = [2**power for power in range(6, 12)]
LENGTH, WIDTH, HEADS = 256, 256, 8  # what stays when the other one grows
LARGEST = 3  # sizes that an exponent is fitted to; at small ones fixed costs are in the way


class WrittenOut(FusedAttention):
    """The formula, which stores the weights."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask=None, bias=None) -> Tensor:
        return attention_weights(query, keys, mask) @ values


class Fused(FusedAttention):
    """The kernel, which does not."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask=None, bias=None) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(query, keys, values)


def self_attention(kernel: type[FusedAttention], width: int) -> Callable[[Tensor], Tensor]:
    """Self-attention of that width with that kernel."""
    attention = MultiHeadAttention(width, HEADS)
    attention.fused = kernel()
    return lambda x: attention(x, x, x)


LAYERS = {
    "attention, written out": lambda width: self_attention(WrittenOut, width),
    "attention, fused": lambda width: self_attention(Fused, width),
    "feed-forward network": lambda width: FeedForward(width, 4 * width),
}


def rows(*, rounds: int, threads: int) -> list[dict]:
    """Lines of the table: for each layer the seconds and bytes at each size, and the exponents that fit the largest."""
    return [
        line
        for name, make in LAYERS.items()
        for line in (
            grown(f"{name}, by length", LENGTHS, lambda length, make=make: (make(WIDTH), length, WIDTH), rounds),
            grown(f"{name}, by width", WIDTHS, lambda width, make=make: (make(width), LENGTH, width), rounds),
        )
    ]


def grown(work: str, sizes: list[int], make: Callable[[int], tuple], rounds: int) -> dict:
    """One line: what a forward and a backward pass take at each size."""
    seconds, memory = [], []
    for size in sizes:
        layer, length, width = make(size)
        x = torch.randn(1, length, width, requires_grad=True)
        times = []
        for _ in range(rounds + 1):
            started = perf_counter()
            layer(x).sum().backward()
            times.append(perf_counter() - started)
        seconds.append(statistics.median(times[1:]))
        memory.append(peak_bytes(lambda layer=layer, x=x: layer(x).sum().backward()))
    found = {"work": work, "sizes": sizes, "seconds": seconds, "bytes": memory}
    return found | {"time ~ size^": exponent(sizes, seconds), "memory ~ size^": exponent(sizes, memory)}


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of the straight line through the largest sizes, both axes logarithmic."""
    slope, _ = statistics.linear_regression(*([math.log(one) for one in each[-LARGEST:]] for each in (sizes, values)))
    return round(slope, 2)


def pictures(lines: list[dict]) -> dict[str, CourseFigure]:
    """Name of the file to the figure: time and memory against the length of the sentence, all layers."""
    by_length = {line["work"].removesuffix(", by length"): line for line in lines if line["work"].endswith("by length")}

    def drawn(values: str, power: str, scale: float, ylabel: str, title: str) -> CourseFigure:
        series = {
            f"{name} (length^{line[power]})": (line["sizes"], [scale * value for value in line[values]])
            for name, line in by_length.items()
        }
        words = dict(xlabel="tokens in the sentence", ylabel=ylabel, title=title)
        return curves(series, log_x=True, log_y=True, **words)

    seconds = "A longer sentence: attention's time grows with the square, the other layer's with the length"
    room = "Stored attention weights grow with the square of the length; the fused kernel stores none"
    return {
        "time.png": drawn("seconds", "time ~ size^", 1e3, "milliseconds, forward and backward", seconds),
        "memory.png": drawn("bytes", "memory ~ size^", 1e-6, "megabytes at the peak", room),
    }
