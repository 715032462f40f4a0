"""Where there is no time for all tests, those that come last wait; who comes first turns from run to run."""

from collections.abc import Sequence
from typing import TypeVar

import pytest

Item = TypeVar("Item", bound=pytest.Item)


def in_turn(items: Sequence[Item], turn: int) -> list[Item]:
    """The tests in another order: from another file on at each turn, or, of a single file, from another test on."""
    files = {item.path for item in items}
    keys = [item.path if len(files) > 1 else item.nodeid for item in items]
    order = list(dict.fromkeys(keys))
    place = {key: (number - turn) % len(order) for number, key in enumerate(order)}
    return [item for _, item in sorted(zip(keys, items, strict=True), key=lambda pair: place[pair[0]])]
