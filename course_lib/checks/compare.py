"""The first difference between what was expected and what came, in words."""

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.checks.tree import shape_of


def difference(
    expected: Any, got: Any, tolerance: float, where: str = "the result", *, reveal: bool = True
) -> str | None:
    """The first difference between a result and the expected one, in words.

    Args:
        expected, got: trees of tensors and plain values.
        tolerance: relative and absolute, for floating values; at float64 1e-9.
        where: name of this part, for the message.
        reveal: whether the message may say what was expected.

    Returns:
        None if they are the same within the tolerance.
    """
    if isinstance(expected, Tensor):
        return _tensors(expected, got, tolerance, where)
    if isinstance(got, Tensor) and got.numel() == 1 and not got.is_meta:
        got = got.item()
    if got is None and expected is not None:
        return f"{where} is None" + ("; does your code return it?" if where == "the result" else "")
    if isinstance(expected, dict):
        return _dicts(expected, got, tolerance, where, reveal)
    if isinstance(expected, (tuple, list)):
        return _sequences(expected, got, tolerance, where, reveal)
    if isinstance(expected, bool) or isinstance(expected, str) or expected is None:
        same = type(got) is type(expected) and got == expected
    elif isinstance(got, (int, float)) and not isinstance(got, bool):
        same = isinstance(expected, (int, float)) and _close(expected, got, tolerance)
    else:
        same = False
    if same:
        return None
    return f"{where}: expected {shape_of(expected)}, got {shape_of(got)}" if reveal else f"{where}: not {shape_of(got)}"


def _close(expected: int | float, got: int | float, tolerance: float) -> bool:
    """Whether two numbers are the same; for an int, one that was computed may be whole but for rounding."""
    try:
        if isinstance(expected, int):
            return abs(got - expected) <= 1e-9
        close = math.isclose(expected, got, rel_tol=tolerance, abs_tol=tolerance)
        return close or (expected != expected and got != got)
    except OverflowError:  # an int that no float can hold
        return False


def _dicts(expected: dict, got: Any, tolerance: float, where: str, reveal: bool) -> str | None:
    if not isinstance(got, dict):
        return f"{where}: expected a dict, got {shape_of(got)}"
    if missing := [key for key in expected if key not in got]:
        return f"{where} has no {missing[0]!r}"
    if extra := [key for key in got if key not in expected]:
        return f"{where} has {extra[0]!r}, which was not asked for"
    parts = (difference(expected[key], got[key], tolerance, _part(where, key), reveal=reveal) for key in expected)
    return next((part for part in parts if part), None)


def _sequences(expected: tuple | list, got: Any, tolerance: float, where: str, reveal: bool) -> str | None:
    if not isinstance(got, (tuple, list)):
        return f"{where}: expected {len(expected)} values in a {type(expected).__name__}, got {shape_of(got)}"
    if len(got) != len(expected):
        return f"{where}: expected {len(expected)} values, got {len(got)}"
    parts = (
        difference(ours, theirs, tolerance, _part(where, index), reveal=reveal)
        for index, (ours, theirs) in enumerate(zip(expected, got, strict=True))
    )
    return next((part for part in parts if part), None)


def _part(where: str, key: Any) -> str:
    return f"{key}" if where == "the result" and isinstance(key, str) else f"{where}[{key!r}]"


def _tensors(expected: Tensor, got: Any, tolerance: float, where: str) -> str | None:
    if got is None:
        return f"{where} is None" + ("; does your code return it?" if where == "the result" else "")
    if not isinstance(got, Tensor):
        return f"{where}: expected a tensor, got {shape_of(got)}"
    if got.shape != expected.shape:
        return f"{where}: expected the shape {tuple(expected.shape)}, got {tuple(got.shape)}"
    if got.dtype != expected.dtype:
        return f"{where}: expected {expected.dtype}, got {got.dtype}"
    if got.device.type != expected.device.type:
        return f"{where}: expected it on the device {expected.device}, got {got.device}"
    if expected.is_meta:
        return None
    tight = 1e-9 if expected.dtype == torch.float64 else tolerance
    ours, theirs = expected.detach(), got.detach()
    if ours.is_floating_point():
        wrong = ~torch.isclose(theirs, ours, rtol=tight, atol=tight, equal_nan=True)
    else:
        wrong = ours != theirs
    if not wrong.any():
        return None
    index = tuple(wrong.nonzero()[0].tolist())
    place = f"{where}[{', '.join(map(str, index))}]" if index else where
    want, have = ours[index].item(), theirs[index].item()
    if isinstance(want, float) and f"{want:.6g}" == f"{have:.6g}":
        single = "; in float32 that is right: is something in it no float64, such as torch.tensor(a number)?"
        return f"{place}: expected {want:.12g}, got {have:.12g}{single if tight < tolerance else ''}"
    if isinstance(want, float):
        want, have = f"{want:.6g}", f"{have:.6g}"
    return f"{place}: expected {want}, got {have}"
