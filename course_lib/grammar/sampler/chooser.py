"""Random choices that are the same on every platform and Python version.

Python promises that `random.Random(seed).random()` never changes; `choice`, `shuffle` and the like have
no such promise, so they are built here on it alone.
"""

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

T = TypeVar("T")


class Chooser:
    """A seeded source of choices."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self.random() * len(options))]

    def weighted(self, table: "Weighted[T]") -> T:
        """One of the options of a table, as likely as its weight says."""
        point = self.random() * table.total
        for option, bound in table.bounds:
            if point < bound:
                return option
        return table.bounds[-1][0]

    def shuffle(self, items: list[T]) -> None:
        """Shuffles in place (Fisher and Yates)."""
        for last in range(len(items) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            items[last], items[other] = items[other], items[last]


class Weighted(tuple[T, ...]):
    """Options with weights, prepared for `Chooser.weighted`."""

    def __new__(cls, weights: dict[T, float]) -> "Weighted[T]":
        """Keeps the options of {option: weight}."""
        return super().__new__(cls, weights)

    def __init__(self, weights: dict[T, float]) -> None:
        self.bounds = tuple(zip(weights, accumulate(weights.values()), strict=True))
        self.total = self.bounds[-1][1]
