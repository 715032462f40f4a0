"""How a law is tested: it holds for ours, and it fails for each mutant, or it would hold for anything."""

from collections.abc import Callable

import pytest


def tells_apart(law: Callable, ours, *mutants, match: str | None = None) -> None:
    """Asserts that the law holds for ours and fails for each mutant.

    Args:
        law: function of what it is about; asserts.
        ours: what the library has.
        mutants: the same with a mistake in it.
        match: what the law's message says of a mutant.
    """
    law(ours)
    for mutant in mutants:
        with pytest.raises(AssertionError, match=match):
            law(mutant)
            print(f"the law holds for {mutant}")
