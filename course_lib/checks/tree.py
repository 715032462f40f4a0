"""Inputs and results of exercises: trees of tuples, lists and dicts with tensors and plain values as leaves."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

PLAIN = (bool, int, float, str, type(None))
LONGEST = 60  # characters of a value that is shown


def leaves_changed(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same tree with each tensor changed; every kind of tuple, list, dict and number becomes the plain one."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, np.generic):
        return tree.item()
    if isinstance(tree, (tuple, list)):
        return (tuple if isinstance(tree, tuple) else list)(leaves_changed(item, change) for item in tree)
    if isinstance(tree, dict):
        return {key: leaves_changed(item, change) for key, item in tree.items()}
    return tree


def plain(tree: Any) -> Any:
    """The same tree of tensors and plain values: torch.Size is a tuple, a number of NumPy is one of Python."""
    return leaves_changed(tree, lambda tensor: tensor)


def copy(tree: Any) -> Any:
    """The same tree in memory of its own."""
    return leaves_changed(tree, lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad))


def to(tree: Any, target: torch.dtype | torch.device) -> Any:
    """The same tree in another floating dtype (integers stay), or on another device."""
    if isinstance(target, torch.device):
        return leaves_changed(tree, lambda tensor: tensor.to(target))
    return leaves_changed(tree, lambda tensor: tensor.to(target) if tensor.is_floating_point() else tensor)


def equal(one: Any, other: Any) -> bool:
    """Whether two trees are the same in every bit, NaN included."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        same = one.shape == other.shape and one.dtype == other.dtype and one.device == other.device
        return same and (one.is_meta or bool(((one == other) | (one != one) & (other != other)).all()))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        same = one.shape == other.shape and one.dtype == other.dtype
        return same and bool(((one == other) | (one != one) & (other != other)).all())
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def leaves(tree: Any) -> list[Tensor]:
    """The tensors of a tree."""
    found: list[Tensor] = []
    leaves_changed(tree, lambda tensor: found.append(tensor) or tensor)
    return found


def on_meta(tree: Any) -> bool:
    """Whether a tensor of the tree is on the device "meta", which has shapes but no numbers."""
    return any(tensor.is_meta for tensor in leaves(tree))


def shape_of(leaf: Any) -> str:
    """A leaf or a tree in a few words: (2, 3, 4) float32, 7, ['a', 'word'], list of 300."""
    if isinstance(leaf, Tensor):
        place = f" on {leaf.device}" if leaf.device.type != "cpu" else ""
        return f"{tuple(leaf.shape)} {str(leaf.dtype).removeprefix('torch.')}{place}"
    if hasattr(leaf, "description"):  # of something that came from another process
        return leaf.description
    if isinstance(leaf, int) and leaf.bit_length() > 3 * LONGEST:  # Python itself refuses to write very long ones
        return f"int of {leaf.bit_length()} bits"
    if not leaves(leaf) and (isinstance(leaf, PLAIN) or type(leaf) in (tuple, list, dict)):
        with suppress(ValueError):  # such an int in a list
            if len(repr(leaf)) <= LONGEST:
                return repr(leaf)
    return f"{type(leaf).__name__}{f' of {len(leaf)}' if hasattr(leaf, '__len__') else ''}"
