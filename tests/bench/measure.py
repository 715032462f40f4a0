"""Timings that can be compared: all contestants take turns in the same process."""

import statistics
from collections.abc import Callable
from time import perf_counter, sleep

import torch


def interleaved(contestants: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each contestant's seconds in each round, in turn; a first round, which warms up, does not count.

    Args:
        contestants: what does the work once, by name; takes no arguments.
        rounds: that count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, work in contestants.items():
            sleep(0.5)  # threads of the one before spin for a while
            started = perf_counter()
            work()
            if number:
                seconds[name].append(perf_counter() - started)
    return seconds


def medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    """The median of each contestant's rounds."""
    return {name: statistics.median(times) for name, times in seconds.items()}


def ratios(seconds: dict[str, list[float]], ours: str) -> dict[str, float]:
    """How many times as long as ours each other one takes: the median over rounds of the ratio in that round."""
    own = seconds[ours]
    return {
        name: statistics.median(time / mine for time, mine in zip(times, own, strict=True))
        for name, times in seconds.items()
        if name != ours
    }


def peak(size: int = 1024, rounds: int = 9) -> float:
    """Operations a second of this machine's product of two float32 matrices that fit into its cache."""
    one, other, out = (torch.rand(size, size) for _ in range(3))
    (times,) = interleaved({"product": lambda: torch.mm(one, other, out=out)}, rounds).values()
    return 2 * size**3 / min(times)
