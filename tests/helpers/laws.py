"""How a law is tested: it holds for ours, and it fails for each mutant, or it would hold for anything."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError

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


def law_a_configuration_is_plain_data(config) -> None:
    """It cannot change, comes back from JSON, and names what it does not know and what it lacks."""
    kind, values = type(config), config.to_dict()
    again = kind.from_dict(json.loads(json.dumps(values)))
    assert again == config and hash(again) == hash(config)
    (first, value), *rest = values.items()
    with pytest.raises(FrozenInstanceError):
        setattr(config, first, value)
    for given, unknown, missing in (
        (values | {"colour": 1}, ["colour"], []),
        (dict(rest), [], [first]),
        ({"colour": value, **dict(rest)}, ["colour"], [first]),
    ):
        with pytest.raises(ValueError, match=re.escape(f"{kind.__name__}: unknown {unknown}, missing {missing}")):
            kind.from_dict(given)


def patched(function: Callable, *patches) -> Callable:
    """The function with the given mock.patch objects in force while it runs: a mutant of it."""

    def mutant(*args, **options):
        for patch in patches:
            patch.start()
        try:
            return function(*args, **options)
        finally:
            for patch in patches:
                patch.stop()

    return mutant


def changed(change: Callable) -> Callable:
    """A function that returns a copy of what it is given, to which `change` was done."""

    def broken(view):
        view = copy.deepcopy(view)
        change(view)
        return view

    return broken


def raised(kind: type[BaseException], call: Callable) -> BaseException | None:
    """The exception of this kind that the call raises, or None."""
    try:
        call()
    except kind as error:
        return error
    return None
