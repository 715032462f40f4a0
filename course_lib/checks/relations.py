"""What wrong results have in common: a factor, another order, one part that is right, one kind of case."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.checks.compare import difference
from course_lib.checks.tree import shape_of

Pairs = Sequence[tuple[Any, Any]]  # of each case what was expected, and what came
PLACES = ("first", "last")


def relation(pairs: Pairs, tolerance: float) -> str:
    """One sentence on what is wrong in every wrong result; empty if nothing simple fits.

    Args:
        pairs: results of all cases that have one.
        tolerance: see `difference`.
    """
    wrong = [(expected, got) for expected, got in pairs if difference(expected, got, tolerance)]
    if not wrong:
        return ""
    if said := _of_parts(wrong, tolerance):
        return said
    if all(_comparable(*pair) for pair in wrong):
        tensors = [tuple(torch.as_tensor(one) for one in pair) for pair in wrong]
        return next((said for found in _RELATIONS if (said := found(tensors, tolerance))), "")
    return ""


def kind_of_case(names: Sequence[str], cases: Sequence[tuple], right: Sequence[bool]) -> str:
    """The input that tells the cases with a right result from the others, in a sentence; empty if none does.

    Args:
        names: of the inputs.
        cases: their values.
        right: of each case whether its result is.
    """
    if all(right) or not any(right):
        return ""
    for place, name in enumerate(names):
        if not all(isinstance(case[place], bool) for case in cases):
            continue
        for value in (False, True):
            if all((case[place] is value) == fine for case, fine in zip(cases, right, strict=True)):
                return f"It is right wherever {name} is {value}, and nowhere else."
    for place, name in enumerate(names):
        if not all(isinstance(case[place], Tensor) and case[place].dim() for case in cases):
            continue
        if all((len(case[place]) == 1) == fine for case, fine in zip(cases, right, strict=True)):
            return f"It is right where {name} is {shape_of(cases[right.index(True)][place])}, and nowhere else."
    return ""


def _of_parts(wrong: Pairs, tolerance: float) -> str:
    """Which parts of a tuple, a list or a dict are right in all cases, if some are, and what the others have."""
    first = wrong[0][0]
    kind, alike = type(first), (tuple, list) if isinstance(first, (tuple, list)) else dict
    if kind not in (tuple, dict) or not all(isinstance(got, alike) and len(got) == len(ours) for ours, got in wrong):
        return ""
    keys = list(first) if kind is dict else list(range(len(first)))
    if any((list(ours) if kind is dict else list(range(len(ours)))) != keys for ours, _ in wrong):
        return ""
    if kind is dict and any(set(got) != set(keys) for _, got in wrong):
        return ""
    parts = {key: [(ours[key], got[key]) for ours, got in wrong] for key in keys}
    bad = [key for key in keys if any(difference(*pair, tolerance) for pair in parts[key])]
    inner = {relation(parts[key], tolerance) for key in bad}
    said = inner.pop() if len(inner) == 1 else ""
    if len(bad) == len(keys):
        return said
    names = ", ".join(repr(key) if kind is dict else f"result[{key}]" for key in bad)
    return f"Only {names} is wrong, the rest is right. {said}".strip()


def _comparable(expected: Any, got: Any) -> bool:
    """Whether both are tensors or numbers of one kind, and of as many values."""
    plain = (int, float)
    if isinstance(expected, plain) and isinstance(got, plain):
        return all(isinstance(one, float) or abs(one) < 2**63 for one in (expected, got))  # what a tensor can hold
    if not (isinstance(expected, Tensor) and isinstance(got, Tensor)) or expected.is_meta or got.is_meta:
        return False
    return expected.numel() == got.numel() and expected.dtype == got.dtype and expected.numel() > 0


def _same(one: Tensor, other: Tensor, tolerance: float) -> bool:
    if one.shape != other.shape:
        return False
    if not one.is_floating_point():
        return bool((one == other).all())
    return torch.allclose(one, other.to(one.dtype), rtol=tolerance, atol=tolerance, equal_nan=True)


def _holds(change: Callable[[Tensor], Tensor]) -> Callable[[Pairs, float], bool]:
    return lambda pairs, tolerance: all(_same(change(ours), got, tolerance) for ours, got in pairs)


def _exchanged(pairs: Pairs, tolerance: float) -> str:
    matrices = [pair for pair in pairs if pair[0].dim() > 1]
    fits = len(matrices) == len(pairs) and _holds(lambda ours: ours.mT)(pairs, tolerance)
    return "The last two axes are exchanged." if fits else ""


def _opposite(pairs: Pairs, tolerance: float) -> str:
    truths = all(ours.dtype == torch.bool for ours, _ in pairs)
    return "Every True is a False, and the other way round." if truths and _holds(torch.logical_not)(pairs, 0) else ""


def _factor(pairs: Pairs, tolerance: float) -> str:
    """One factor for all numbers; or one for those of each case."""
    if any(ours.dtype == torch.bool or not ours.isfinite().all() or not got.isfinite().all() for ours, got in pairs):
        return ""
    factors = []
    for ours, got in pairs:
        ours, got = ours.double(), got.double()
        if ours.shape != got.shape or not ours.square().sum():
            return ""
        factors.append(((ours * got).sum() / ours.square().sum()).item())
        if not _same(ours * factors[-1], got, tolerance) or not factors[-1]:
            return ""
    if sum(ours.numel() for ours, _ in pairs) < 2:
        return ""
    if max(factors) - min(factors) <= tolerance * max(map(abs, factors)):
        return "The sign is wrong everywhere." if abs(factors[0] + 1) < tolerance else _times(factors[0])
    several = all(ours.numel() > 1 for ours, _ in pairs)
    return f"All numbers of a case have one factor too much: {_list(factors)}." if several else ""


def _times(factor: float) -> str:
    return f"Every number is {factor:.4g} times as large as it should be."


def _list(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers[:3]) + (" ..." if len(numbers) > 3 else "")


def _offset(pairs: Pairs, tolerance: float) -> str:
    if any(ours.dtype == torch.bool or ours.shape != got.shape for ours, got in pairs):
        return ""
    offsets = torch.cat([(got.double() - ours.double()).flatten() for ours, got in pairs])
    if len(offsets) < 2 or not offsets.isfinite().all() or (offsets - offsets[0]).abs().max() > tolerance:
        return ""
    return f"Every number is too {'large' if offsets[0] > 0 else 'small'} by {offsets[0].abs().item():.4g}."


def _rows_without_sum(pairs: Pairs, tolerance: float) -> str:
    """Weights that are none."""
    shares = [ours for ours, _ in pairs if ours.is_floating_point() and ours.dim() and ours.shape[-1] > 1]
    if len(shares) < len(pairs) or not all(_sums_to_one(ours, -1) for ours in shares):
        return ""
    for axis in range(-4, -1):
        if all(got.dim() >= -axis and _sums_to_one(got, axis) for _, got in pairs):
            return f"Yours sum to 1 along axis {axis}; each row, along the last axis, must."
    if not any(got.dim() and _sums_to_one(got, -1) for _, got in pairs):
        return "The rows of your weights do not sum to 1."
    return ""


def _sums_to_one(weights: Tensor, axis: int) -> bool:
    sums = weights.sum(axis)
    return _same(torch.ones_like(sums), sums, 1e-2)


def _flipped(pairs: Pairs, tolerance: float, axis: int) -> bool:
    fits = all(ours.dim() >= max(1, -axis) for ours, _ in pairs)
    return fits and _holds(lambda ours: ours.flip(axis))(pairs, tolerance)


def _other_places(pairs: Pairs, tolerance: float) -> str:
    if sum(ours.numel() for ours, _ in pairs) < 4 or any(ours.dtype == torch.bool for ours, _ in pairs):
        return ""
    for axis in (-1, -2, 0):
        if _flipped(pairs, tolerance, axis):
            return f"Everything is there, in reverse order along axis {axis}."
    in_order = all(_same(ours.flatten().sort().values, got.flatten().sort().values, tolerance) for ours, got in pairs)
    return "The numbers are right, but they stand in the wrong places." if in_order else ""


def _one_slice(pairs: Pairs, tolerance: float) -> str:
    """The first or the last index of an axis, if all that is wrong lies there."""
    if any(ours.shape != got.shape or ours.dim() == 0 for ours, got in pairs):
        return ""
    for axis in (-1, -2, -3, 0):
        if any(ours.dim() < max(1, -axis) or ours.shape[axis] < 2 for ours, _ in pairs):
            continue
        for place, rest in zip(PLACES, (slice(1, None), slice(None, -1)), strict=True):
            kept = [tuple(one.movedim(axis, 0)[rest] for one in pair) for pair in pairs]
            if all(_same(ours, got, tolerance) for ours, got in kept):
                return f"Only the {place} index of axis {axis} is wrong, all others are right."
    return ""


_RELATIONS = (_exchanged, _opposite, _factor, _offset, _rows_without_sum, _other_places, _one_slice)
