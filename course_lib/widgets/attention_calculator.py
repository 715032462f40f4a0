"""The attention calculator: change a number of Q, K or V, the scale or the temperature, and see what moves."""

import math
from collections.abc import Sequence

import torch
import traitlets as t
from torch import Tensor

from course_lib.attention import attention_scores
from course_lib.figures import CourseFigure, Panel, panels
from course_lib.widgets.base import CourseWidget

LARGEST = 20.0  # number in Q, K and V
COOLEST, HOTTEST = 0.1, 5.0
MOST = 8  # rows or columns, for which the page has room
TIE = 1e-6  # weights as far apart as this are equally large
LISTED = 3  # of the largest weights that the picture's title names


class AttentionCalculator(CourseWidget):
    """Computes scores, weights and context of queries, keys and values that a person changes.

    Args:
        query: (queries, d_k).
        key: (keys, d_k).
        value: (keys, d_v).
        queries, keys: tokens of the rows.
        kinds: names of what queries and keys are matched by, d_k of them; numbers where none are given.
        facts: names of what values hand over, d_v of them; likewise.
        scaled: whether dot products are divided by √d_k.
        temperature: what they are divided by on top of that.

    Raises:
        ValueError: if shapes or names do not fit or are too many, a number is not in -20..20, or the temperature is
            not in 0.1..5.
    """

    query = t.List(t.List(t.Float())).tag(sync=True)
    key = t.List(t.List(t.Float())).tag(sync=True)
    value = t.List(t.List(t.Float())).tag(sync=True)
    scaled = t.Bool(True).tag(sync=True)
    temperature = t.Float(1.0, min=COOLEST, max=HOTTEST).tag(sync=True)
    names = t.Dict().tag(sync=True)  # of rows and columns: queries, keys, kinds, facts
    first = t.Dict().tag(sync=True)  # the traits that Reset brings back
    limits = t.Dict({"number": LARGEST, "coolest": COOLEST, "hottest": HOTTEST}).tag(sync=True)

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        queries: Sequence[str],
        keys: Sequence[str],
        kinds: Sequence[str] | None = None,
        facts: Sequence[str] | None = None,
        *,
        scaled: bool = True,
        temperature: float = 1.0,
    ):
        names = {"queries": queries, "keys": keys, "kinds": kinds, "facts": facts}
        widths = {"kinds": query.shape[-1], "facts": value.shape[-1]}
        names = {name: list(map(str, range(widths[name]) if each is None else each)) for name, each in names.items()}
        for name, matrix, (rows, columns) in (
            ("query", query, ("queries", "kinds")),
            ("key", key, ("keys", "kinds")),
            ("value", value, ("keys", "facts")),
        ):
            wanted = len(names[rows]), len(names[columns])
            if tuple(matrix.shape) != wanted or not 1 <= min(wanted) <= max(wanted) <= MOST:
                limit = f"({rows}, {columns}) = {wanted} as the names say, 1 to {MOST} each"
                raise ValueError(f"{name}: expected {limit}; got {tuple(matrix.shape)}")
            if not (matrix.abs() <= LARGEST).all():  # NaN is not either
                raise ValueError(f"{name}: expected numbers in {-LARGEST:.0f}..{LARGEST:.0f}, got {matrix.tolist()}")
        if not COOLEST <= temperature <= HOTTEST:
            raise ValueError(f"expected a temperature in {COOLEST}..{HOTTEST:.0f}, got {temperature}")
        first = {"query": query.tolist(), "key": key.tolist(), "value": value.tolist()}
        first |= {"scaled": scaled, "temperature": float(temperature)}
        super().__init__(names=names, first=first, **first)

    @t.validate("query", "key", "value")
    def _fits(self, proposal: dict) -> list:
        """Later numbers are as many as the first ones, and as large."""
        shape = [len(row) for row in self.first[proposal.trait.name]] if self.first else None
        rows = proposal.value
        if shape not in (None, [len(row) for row in rows]) or not all(abs(x) <= LARGEST for row in rows for x in row):
            raise t.TraitError(f"{proposal.trait.name}: expected {shape} numbers up to {LARGEST}, got {rows}")
        return rows

    @property
    def divisor(self) -> float:
        """What dot products are divided by."""
        return self.temperature * (math.sqrt(len(self.query[0])) if self.scaled else 1.0)

    def compute(self) -> tuple[Tensor, Tensor, Tensor]:
        """Scores and weights (queries, keys), and context (queries, d_v), in float64."""
        query, key, value = (torch.tensor(each, dtype=torch.float64) for each in (self.query, self.key, self.value))
        scores = attention_scores(query, key, temperature=self.divisor)
        weights = scores.softmax(dim=-1)
        return scores, weights, weights @ value

    def picture(self) -> CourseFigure:
        """Q, K and V, and what comes of them."""
        queries, keys, kinds, facts = self.names.values()
        scores, weights, context = self.compute()
        largest = (weights > weights.max() - TIE).nonzero().tolist()
        pairs = [f"“{queries[row]}” to “{keys[column]}”" for row, column in largest]
        most = f"most from {_listed(pairs)}, {weights.max():.2f}"
        drawn = [
            Panel(self.query, queries, kinds, "Q: asks for"),
            Panel(self.key, keys, kinds, "K: is found by"),
            Panel(self.value, keys, facts, "V: hands over"),
            Panel(scores, queries, keys, "scores", xlabel="key", ylabel="query"),
            Panel(weights, queries, keys, "weights", kind="weights", xlabel="key", ylabel="query"),
            Panel(context, queries, facts, "context"),
        ]
        title = f"Scores → weights → context: {most}; dot products divided by {self.divisor:.3g}"
        return panels(drawn, title=title, per_row=3, words={"signed": "number; score; context"})


def _listed(pairs: list[str]) -> str:
    """The first of them in words, and how many more there are."""
    words, more = pairs[:LISTED], len(pairs) - LISTED
    if more > 0:
        words.append(f"{more} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
