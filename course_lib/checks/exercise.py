"""What an exercise is: a slow specification, inputs to try it on, and the mistakes that are known by name."""

import inspect
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch

from course_lib.checks.guard import ASSIGNMENTS, CHECKS, FinishedAnswer, counted, refuse
from course_lib.checks.tree import copy, equal, leaves_changed, on_meta, plain, shape_of, to


class CheckFailed(AssertionError):
    """An answer that is not right yet. A notebook shows the message alone, without a traceback.

    Args:
        message: what was tried, expected and got.
        share: of the points, that what is right of the answer is worth; see `Exercise`.
    """

    def __init__(self, message: str, share: float = 0.0):
        super().__init__(message)
        self.share = share

    def _render_traceback_(self) -> list[str]:
        return [f"✗ {self}"]


class Edit:
    """A change of an exercise's solution, which makes another answer of it: `Edit("dim=-1", "dim=-2")`.

    Args:
        pieces: old, new, old, new …: each old piece of the code gives way to the new one, wherever it stands.
    """

    def __init__(self, *pieces: str):
        self.changes = list(zip(pieces[::2], pieces[1::2], strict=True))

    def of(self, solution: str) -> str:
        """The code of the solution with the changes made.

        Raises:
            ValueError: an old piece does not stand in it.
        """
        for old, new in self.changes:
            if old not in solution:
                raise ValueError(f"expected {old!r} in the solution, got\n{solution}")
            solution = solution.replace(old, new)
        return solution


PLANTED = object()  # the known mistake that a learner is given to find: it stands in the assignment's text

NUMBERLESS = "it asks for numbers that a tensor on the device meta does not have"


@dataclass(frozen=True)
class Reply:
    """What came back for one case: a result, or a problem in words; and how often the line ran that ran most."""

    result: Any = None
    problem: str | None = None
    runs: int = 0


def call(answer: Callable, *inputs: Any) -> Any:
    """The plain question: what does this function return?"""
    return answer(*inputs)


def value(answer: Any) -> Any:
    """The question of an exercise whose answer is no function."""
    return answer


def reply_to(ask: Callable, names: Sequence[str], answer: Any, inputs: tuple, *, count: bool = False) -> Reply:
    """What an answer replies to one case; what it raises, and that it changes its inputs, is a problem in words.

    Args:
        ask: the question, see `Exercise`.
        names: of the inputs.
        answer: that is asked.
        inputs: of the case.
        count: how often its lines run.
    """
    with counted() if count else nullcontext({}) as runs:
        found = _reply_to(ask, names, answer, inputs)
    return replace(found, runs=max(runs.values(), default=0))


def _reply_to(ask: Callable, names: Sequence[str], answer: Any, inputs: tuple) -> Reply:
    given = copy(inputs)
    try:
        result = ask(answer, *given)
    except FinishedAnswer as error:
        return Reply(problem=str(error))
    except Exception as error:  # whatever an answer raises
        if isinstance(error, NotImplementedError) and not str(error):
            return Reply(problem="it is not written yet")
        return Reply(problem=NUMBERLESS if on_meta(inputs) and _wants_numbers(error) else _in_words(error))
    for name, before, after in zip(names, inputs, given, strict=False):
        if not equal(before, after):
            return Reply(problem=f"it changes its input {name}; work on a copy of it")
    return Reply(plain(result))


@dataclass(frozen=True)
class Exercise:
    """One exercise of an assignment.

    Attributes:
        name: assignment and exercise, such as "03.scores".
        cases: from a generator to the inputs of each case: tuples of tensors, numbers, strings, lists, dicts.
        mistakes: those that are known: what to say to whoever makes one, and an answer that makes it, or the `Edit` of
            the solution that does, or PLANTED; several of them in a tuple. Each differs from the solution on some case
            of every seed; those that explain all replies are named, one as what it is, two as a perhaps.
        ask: what is asked of an answer: from (answer, *inputs) to a result, a tree of tensors and plain values.
            Default: call it.
        forbidden: finished answers, functions or classes, that an answer must not call.
        loops: whether an answer may have loops over what it gets; or, from the inputs of a case to how often the loop
            goes round that is allowed, such as one over the steps of a search.
        library: whether the question itself puts the answer to work in this library, which runs then. An answer may
            call it, too.
        any_dtype: ask again in float64, and want the result in it.
        any_device: ask again on the device "meta", which has shapes but no numbers: whoever makes tensors on the CPU
            there cannot run on a GPU.
        tolerance: relative and absolute, in float32; float64 is held to 1e-9.
        reference: the solution, which the assignment's text has.
        truth: from the inputs of a case to what is right, where that is not what the solution returns.
        worth: from what is right and what came to the share of the points that it earns, 0 to 1, and to what is said of
            it. Default: all where both are the same, and nothing where they differ.
        accepted: what is said of an answer in which nothing is wrong.
    """

    name: str
    cases: Callable[[torch.Generator], Sequence[tuple]] = field(default=lambda generator: [()])
    mistakes: Mapping[str, Any] = field(default_factory=dict)
    ask: Callable[..., Any] = call
    forbidden: Sequence[Any] = ()
    loops: bool | Callable[..., int] = True
    library: bool = False
    any_dtype: bool = True
    any_device: bool = True
    tolerance: float = 1e-4
    reference: Any = None
    truth: Callable[..., Any] | None = None
    worth: Callable[[Any, Any], tuple[float, str]] | None = None
    accepted: str = "right"

    @property
    def counts(self) -> bool:
        """Whether it matters how often the lines of an answer run."""
        return self.loops is not True

    @property
    def known_mistakes(self) -> list[tuple[str, Any]]:
        """Each known mistake behind its hint."""
        pairs = [(hint, ways if isinstance(ways, tuple) else (ways,)) for hint, ways in self.mistakes.items()]
        return [(hint, way) for hint, ways in pairs for way in ways]

    def inputs(self, seed: int) -> list[tuple]:
        """The cases of a seed; the last one again in float64 and on the device "meta", where the exercise admits it."""
        cases = [tuple(case) for case in self.cases(torch.Generator().manual_seed(seed))]
        last, extra = cases[-1], []
        if self.any_dtype and not equal(last, to(last, torch.float64)):
            extra.append(to(last, torch.float64))
        if self.any_device and not equal(last, to(last, torch.device("meta"))):
            extra.append(to(last, torch.device("meta")))
        return cases + extra

    def reply(self, answer: Any, inputs: tuple, *, ours: bool = False) -> Reply:
        """What an answer replies to one case; that it calls what it must not is a problem, too.

        Args:
            answer: a learner's, or one of the known mistakes.
            inputs: of the case.
            ours: whether it is one of ours; a learner's must not call the solution or a known mistake.
        """
        if on_meta(inputs):
            warm_up()  # not under the eyes of `refuse`, which makes it three times as slow
        known = [] if ours else [self.reference, *(mistake for _, mistake in self.known_mistakes)]
        with refuse([*self.forbidden, *filter(callable, known)], library=self.library):
            return reply_to(self.ask, self.names(), answer, inputs, count=self.counts)

    def expected(self, inputs: tuple) -> Any:
        """The truth of one case: the reference's result; that of zeros, moved to "meta", where it asks for numbers."""
        if self.truth is not None:
            return self.truth(*inputs)
        try:
            return self.ask(self.reference, *copy(inputs))
        except (NotImplementedError, RuntimeError) as error:
            if not (on_meta(inputs) and _wants_numbers(error)):
                raise
        zeros = leaves_changed(inputs, lambda tensor: torch.zeros_like(tensor, device="cpu"))
        return to(self.ask(self.reference, *zeros), torch.device("meta"))

    def names(self) -> list[str]:
        """Names of the inputs: the parameters of the reference, or of `ask` after the answer."""
        function = self.reference if self.ask is call else self.ask
        names = list(inspect.signature(function).parameters)
        return names if self.ask is call else names[1:]

    def describe(self, inputs: tuple) -> str:
        """The inputs of a case in one line: names, shapes and short values."""
        return ", ".join(f"{name} {shape_of(item)}" for name, item in zip(self.names(), inputs, strict=False))


@cache
def warm_up() -> None:
    """Loads what PyTorch loads at its first operations on the device "meta"; about a second."""
    nothing = torch.empty(1, 1, device="meta")
    (nothing != 0, nothing.log_softmax(dim=-1))


def _wants_numbers(error: Exception) -> bool:
    """Whether an answer failed only because a tensor on the device "meta" has no numbers to look at."""
    wishes = (
        "on meta tensors",
        "out of meta tensor",
        "with Meta tensors",
        "Tensor.__format__",
        "without output_size",
        "nonzero",
        "_local_scalar",
        "no fake impl",
    )
    return isinstance(error, NotImplementedError) or any(wish in str(error) for wish in wishes)


def _in_words(error: Exception) -> str:
    """An exception of an answer, with the line of the notebook where it came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    lines = [frame for frame in frames if not frame.filename.startswith((CHECKS, ASSIGNMENTS)) and frame.line]
    where = f", in the line: {lines[-1].line}" if lines else ""
    message = textwrap.shorten(str(error), 300, placeholder=" …")
    return f"it raises {type(error).__name__}: {message}{where}"
