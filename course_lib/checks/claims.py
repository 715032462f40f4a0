"""What a text claims of its own input: a false claim is an error, and with a reader's input a remark."""

import ast
import linecache
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import Any

import numpy as np
import torch

from course_lib.checks.tree import equal, shape_of, to

WRITTEN_FOR = "This text was written for"  # begins a remark; a stored lesson must not have one
LONGEST = 80  # characters of a value, or of a claim


@contextmanager
def written_for(original: Any, yours: Any) -> Iterator[None]:
    """Surrounds assertions that hold for one input, which a reader is asked to change.

    With the original input nothing is different: a false claim is an AssertionError. With another one an
    AssertionError becomes a printed remark, and the notebook goes on behind the block; claims that hold get a remark
    as well, so that a lesson whose own input has changed unnoticed is found by what it prints. All other exceptions
    pass.

    Args:
        original: the input that the text was written for: a string, a number, a tensor, an array; or a list, tuple or
            dict of them. Two tuples of one length are several inputs, of which the remark names those that differ.
        yours: what the notebook has in its place. The block should only assert: after a false claim the rest of it
            is left out.
    """
    if _same(original, yours):
        yield
        return
    written, got = _told(original, yours)
    try:
        yield
        print(f"{WRITTEN_FOR} {written}; what is checked here holds with {got} too.")
    except AssertionError as error:
        print(f"{WRITTEN_FOR} {written}; with {got} it does not hold here{_claim(error)}. Go on.")


def _same(original: Any, yours: Any) -> bool:
    """Wherever the tensors are."""
    return equal(*(to(each, torch.device("cpu")) for each in (original, yours)))


def _told(original: Any, yours: Any) -> tuple[str, str]:
    """Both inputs in words; of several, those that differ."""
    several = isinstance(original, tuple) and isinstance(yours, tuple) and len(original) == len(yours)
    pairs = list(zip(original, yours, strict=True)) if several else [(original, yours)]
    pairs = [pair for pair in pairs if not _same(*pair)]
    written, got = (" and ".join(map(_words, values)) for values in zip(*pairs, strict=True))
    return written, got if got != written else "other values"


def _words(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    if isinstance(value, np.ndarray):
        return f"an array {value.shape} {value.dtype}"
    words = shape_of(value)
    return words if words == repr(value) else f"a {'tensor ' if isinstance(value, torch.Tensor) else ''}{words}"


def _claim(error: AssertionError) -> str:
    """What an assertion says, or, where it says nothing, its condition, which is false."""
    said = str(error).strip().partition("\n")[0].rstrip(".!")
    if not said:
        place = traceback.extract_tb(error.__traceback__)[-1]
        condition = _condition("".join(linecache.getlines(place.filename)), place.lineno)
        said = f"{shorten(condition, LONGEST, placeholder=' …')} is false" if condition else ""
    return f" ({shorten(said, 2 * LONGEST, placeholder=' …')})" if said else ""


def _condition(source: str, line: int) -> str | None:
    """The condition of the assertion in a line of a source, if it is known."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return None
    found = [node for node in nodes if isinstance(node, ast.Assert) and node.lineno <= line <= node.end_lineno]
    return ast.unparse(found[-1].test) if found else None
