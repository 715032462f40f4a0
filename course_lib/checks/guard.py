"""Exercises ask to build what is finished elsewhere, or without a loop: this notices what an answer does instead."""

import inspect
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

LIBRARY = str(Path(__file__).absolute().parents[1])  # as code objects name it, which follow no links
CHECKS = str(Path(__file__).absolute().parent)
ASSIGNMENTS = f"{LIBRARY}/assignments"
INSTALLED = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), str(Path(torch.__file__).parents[1]))


class FinishedAnswer(Exception):
    """An answer called what it was asked to write."""


@contextmanager
def refuse(forbidden: Sequence[Any], *, library: bool = False) -> Iterator[None]:
    """Makes a call of something forbidden, or of this library, raise while it is open.

    It tells an honest learner what the exercise is about; it is no defense against somebody who works around it.

    Args:
        forbidden: functions (in Python or built in), classes (none of their methods may run), methods of tensors.
        library: let this library run.

    Raises:
        FinishedAnswer: out of the call, naming it.
    """
    codes, builtins, methods = {}, [], {}
    for thing in forbidden:
        if isinstance(thing, type):
            methods_of = map(inspect.unwrap, filter(callable, vars(thing).values()))
            codes |= {id(method.__code__): thing.__name__ for method in methods_of if hasattr(method, "__code__")}
        elif hasattr(thing, "__code__"):
            codes[id(inspect.unwrap(thing).__code__)] = thing.__name__
        elif hasattr(thing, "__objclass__"):
            methods[thing.__name__] = thing.__objclass__
        else:
            builtins.append(thing)

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            if id(frame.f_code) in codes:  # not whose code is equal: a learner may write what we wrote
                raise FinishedAnswer(f"it calls {codes[id(frame.f_code)]}; here it is yours to write")
            if not library and file.startswith(LIBRARY) and not file.startswith((CHECKS, ASSIGNMENTS)):
                module = file[len(LIBRARY) + 1 : -len(".py")].replace("/", ".")
                raise FinishedAnswer(f"it calls course_lib.{module}, the finished one; here it is yours to write")
        elif event == "c_call":
            name = getattr(argument, "__name__", "")
            on = getattr(argument, "__self__", None)
            if any(argument is one for one in builtins) or (name in methods and isinstance(on, methods[name])):
                raise FinishedAnswer(f"it calls {name}; here it is yours to write")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def counted() -> Iterator[Counter]:
    """Counts how often each line of an answer runs while it is open; lines of this library and of others are left out.

    A line of a loop runs the more often the more there is to go through, any other one as often in every case.
    """
    runs: Counter = Counter()

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            runs[frame.f_code, frame.f_lineno] += 1
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        # What a dataclass writes for itself is "<string>".
        return None if frame.f_code.co_filename.startswith((LIBRARY, "<frozen", "<string>", *INSTALLED)) else line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield runs
    finally:
        sys.settrace(before)
