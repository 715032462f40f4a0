"""The submission's side of grading: asks the answer that stands in a variable, and writes what comes back.

Everything here runs in the submission's own process, which can replace it: what it writes counts as results, no more.
"""

import ast
import inspect
import math
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import Exercise, Reply, call, read, reply_to, value, write_replies

COMMON = {"call": call, "value": value}
NAMES = {"torch": torch, "math": math, "F": F, "nn": nn, "partial": partial}  # all that a way to ask may use


def missing(variable: str) -> Reply:
    """The reply of a notebook that has no such variable."""
    return Reply(problem=f"there is no `{variable}`; does the cell that defines it run without an error?")


def answer(variable: str, namespace: dict[str, Any], folder: str, token: str) -> None:
    """Asks the answer that stands in a variable.

    Args:
        variable: the name under which the learner's code keeps the answer.
        namespace: of the learner's code.
        folder: has a file with the way to ask, the inputs' names, whether lines are counted, and the cases; gets one
            of replies.
        token: part of the names of both.
    """
    if variable not in namespace:
        found = [missing(variable)]
    else:
        source, names, count, cases = read(Path(folder) / f"cases-{token}")
        ask = way_to_ask(source)
        found = [reply_to(ask, names, namespace[variable], inputs, count=count) for inputs in cases]
    write_replies(found, Path(folder) / f"replies-{token}")


def source_of_ask(exercise: Exercise) -> str:
    """An exercise's way to ask as code that needs nothing but `NAMES`."""
    common = {function: name for name, function in COMMON.items()}
    return common.get(exercise.ask) or textwrap.dedent(inspect.getsource(exercise.ask))


def way_to_ask(source: str) -> Callable[..., Any]:
    """The function that `source_of_ask` wrote down."""
    if source in COMMON:
        return COMMON[source]
    names = dict(NAMES)
    exec(source, names)
    return names[ast.parse(source).body[0].name]
