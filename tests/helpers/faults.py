"""Malformed calls: what may stand in the place of a good argument, and what may come of it."""

import math
import re
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

import numpy as np
import torch
from torch import Tensor

LIBRARY = str(Path(__file__).resolve().parents[2] / "course_lib")
SECONDS = 20  # a call that takes longer hangs

# --- junk ---------------------------------------------------------------------------------------

_ANY = [lambda good: None, lambda good: object(), lambda good: {"a": 1}]
JUNK: dict[str, list[Callable]] = {
    "tensor": [
        *_ANY,
        lambda good: "text",
        lambda good: 3,
        lambda good: good.tolist(),
        lambda good: good.numpy(),
        lambda good: torch.empty(0),
        lambda good: torch.tensor(1.0),
        lambda good: good[0],
        lambda good: good[None],
        lambda good: good[..., :-1],
        lambda good: torch.cat([good, good], dim=-1),
        lambda good: torch.cat([good, good], dim=0),
        lambda good: good[..., :0],
        lambda good: good[..., :0, :] if good.dim() > 1 else good[:0],
        lambda good: good[:0],
        lambda good: good[..., :1],
        lambda good: good.transpose(0, -1),
        lambda good: good.long(),
        lambda good: good.double(),
        lambda good: good.half(),
        lambda good: good.to(torch.complex64),
        lambda good: good.bool(),
        lambda good: good.to(torch.uint8),
        lambda good: -good if good.dtype != torch.bool else ~good,
        lambda good: good + (3 if good.is_floating_point() else 10**6) if good.dtype != torch.bool else good & False,
        lambda good: good * math.nan if good.is_floating_point() else good * 0,
    ],
    "int": [
        *_ANY,
        *(lambda good, value=value: value for value in ("3", [3], 2.5, 0, -1, -4, 1, 2, 7, 10**5 + 1, 10**9, 10**30)),
        *(lambda good, value=value: value for value in (True, math.nan, math.inf, 3 + 2j, b"3")),
        lambda good: float(good or 1),
    ],
    "float": [
        *_ANY,
        *(lambda good, value=value: value for value in ("x", [0.5], 0, -1, 0.0, -0.5, 0.3, 1.0, 1.5, 7, 1e-320, 1e308)),
        *(lambda good, value=value: value for value in (True, math.nan, math.inf, -math.inf, 1j, 10**400)),
    ],
    "flag": [*_ANY, *(lambda good, value=value: value for value in ("False", "", 0, 1, 2.5, [], True, False))],
    "name": [
        *_ANY,
        *(lambda good, value=value: value for value in ("", "unknown", 5, ["a"], b"a", "\0", "a" * 10_000, math.nan)),
    ],
    "text": [
        *_ANY,
        *(lambda good, value=value: value for value in (5, ["a"], b"a", "", " \n", "\0\x07\x1b[2J", "\u202eabc\u200f")),
        *(lambda good, value=value: value for value in ("\ud800", "<script>alert(1)</script>&amp;", "dog " * 10_000)),
        *(lambda good, value=value: value for value in ("</s> <pad>", "e\u0301", "🂡👩‍👩‍👧", "▁▁", "$x^$ \\frac")),
    ],
    "texts": [
        *_ANY,
        *(lambda good, value=value: value for value in ("abc", b"abc", 5, [], [5], [""], ["a", None], [["a"]], "")),
        *(lambda good, value=value: value for value in (["\ud800"], ["\0", "\u202e"], ("a dog",), [b"a"])),
        lambda good: good + good,
        lambda good: good[:1],
    ],
    "ids": [
        *_ANY,
        *(lambda good, value=value: value for value in ("45", 5, [], [2.5], ["4"], [None], [-1], [10**9], [0], [1, 2])),
        *(lambda good, value=value: value for value in ([[4, 5]], [True], [math.nan], (4, 5), range(4, 6), [4] * 100)),
        lambda good: torch.tensor(good),
        lambda good: torch.tensor([good]),
        lambda good: torch.tensor(good).float(),
        lambda good: torch.tensor([2, 0]),
        lambda good: np.array(good),
    ],
    "numbers": [
        *_ANY,
        *(lambda good, value=value: value for value in ("12", 5, [], [1.0], ["1", "2"], [None, 1], [[1], [2]])),
        *(lambda good, value=value: value for value in ([1, 1], (1.0, 2.0), [True, False])),
    ],
    "options": [
        *_ANY,
        *(lambda good, value=value: value for value in (5, "text", [], {}, [["a", 1]])),
        lambda good: {name: each for name, each in good.items() if name not in ("d_model", "epochs", "nodes")},
        lambda good: good | {"unknown": 1},
        lambda good: good | {5: 1},
        lambda good: good | {"num_layers": 10**9, "epochs": 10**12},
    ],
}


@dataclass(frozen=True)
class Case:
    """A public function, good arguments, and what must hold of whatever it returns.

    Args:
        function: that is called.
        good: its keyword arguments, made anew for each call.
        kinds: of those that may be replaced, what they are, as in JUNK.
        specification: of the result and the arguments; asserts.
        own: code that counts as the called function itself, where `function` only leads to it.
    """

    function: Callable
    good: Callable[[], dict]
    kinds: dict[str, str]
    specification: Callable
    own: tuple = field(default=())

    def codes(self) -> set[CodeType]:
        """Where a TypeError may come from."""
        found = set()
        for each in self.own or (self.function,):
            each = getattr(each, "__func__", each)
            parts = [getattr(each, name, None) for name in ("__init__", "__post_init__", "__new__")]
            found |= {part.__code__ for part in (each, *parts) if hasattr(part, "__code__")}
        return found


def replacements(case: Case) -> list[tuple[str, int]]:
    """All single faults of a call: which argument, and which junk."""
    return [(name, index) for name, kind in case.kinds.items() for index in range(len(JUNK[kind]))]


def malformed(case: Case, faults: list[tuple[str, int]]) -> dict:
    """The arguments of a call with these faults."""
    arguments = case.good()
    for name, index in faults:
        arguments[name] = JUNK[case.kinds[name]][index](arguments[name])
    return arguments


# --- the oracle ---------------------------------------------------------------------------------


class Hangs(BaseException):
    """The call took too long."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises Hangs where the block takes longer: seconds of the processor, or six times as many by the clock."""
    if not hasattr(signal, "setitimer"):  # Windows has none: there a block may take as long as it does
        yield
        return

    def stop(number, frame):
        raise Hangs(f"no end after {seconds} seconds")

    clocks = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 6 * seconds)}
    before = {number: signal.signal(number, stop) for number in clocks}
    for clock, limit in clocks.values():
        signal.setitimer(clock, limit)
    try:
        yield
    finally:
        for number, (clock, _) in clocks.items():
            signal.setitimer(clock, 0)
            signal.signal(number, before[number])


def law_right_or_refused(case: Case, faults: list[tuple[str, int]]) -> str:
    """The result is what the specification says, or a ValueError or TypeError says what is wrong; which it was."""
    arguments = malformed(case, faults)
    told = f"{faults}: {shown(arguments)}"
    try:
        with at_most(SECONDS):
            result = case.function(**arguments)
    except ValueError as error:
        assert readable(error), f"{told}: a raw error from inside, {trace(error)}"
        return "refused"
    except TypeError as error:
        assert named(error, case, arguments), f"{told}: a TypeError that names no argument, {trace(error)}"
        return "refused"
    except (Exception, Hangs) as error:
        raise AssertionError(f"{told}: a raw error from inside, {trace(error)}") from error
    try:
        case.specification(result, **arguments)
    except Exception as error:
        raise AssertionError(f"{told}: a silent wrong answer, {shown({'result': result})}, {trace(error)}") from error
    return "right"


def readable(error: ValueError) -> bool:
    """Whether our own code raised it, with a message."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    return place.startswith(LIBRARY) and len(str(error)) > 12


def named(error: TypeError, case: Case, arguments: dict) -> bool:
    """Whether the call itself raised it, or it names an argument."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    while frames[-1].co_name.lstrip("_").startswith("check"):  # its checks are part of a function
        frames.pop()
    names = {code.co_qualname for code in case.codes()}
    itself = frames[-1].co_qualname.split(".<locals>")[0] in names or not any(
        code.co_filename.startswith(LIBRARY) for code in frames
    )
    said = re.match(r"(\w+) must be", str(error))
    return itself or bool(said) and any(said[1] in name for name in arguments)


def trace(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:200]} ({Path(last.filename).name}:{last.lineno})"


def shown(arguments: dict) -> str:
    """The arguments in short."""
    return ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())


def _short(value: object) -> str:
    if isinstance(value, Tensor):
        return f"<{tuple(value.shape)} {value.dtype} {value.device}>"
    return repr(value)[:60]
