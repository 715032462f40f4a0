"""The offset explorer: what a score knows of two positions, and what becomes of it when both are shifted."""

import torch
import traitlets as t
from torch import Tensor

from course_lib.attention import attention_scores
from course_lib.figures import CourseFigure, Panel, panels, styled
from course_lib.position import ALiBi, RelativeBias, Rotary, sinusoidal
from course_lib.widgets.base import CourseWidget

LENGTH, HEADS = 64, 8
FARTHEST = 16  # shift; query and key stay so far from the end
ENCODINGS = {
    "rotary": "rotary",
    "relative": "relative bias",
    "alibi": "ALiBi",
    "sinusoids": "sinusoids alone",
    "words": "words + sinusoids",
}
VECTORS = ("rotary", "sinusoids", "words")  # scores that are dot products; the others are biases
BASES = (10, 100, 1_000, 10_000, 100_000_000)
WIDTHS = (8, 16, 32)


class OffsetExplorer(CourseWidget):
    """Shows scores of one query and one key at all pairs of positions, as a matrix, along a row, and as hands.

    The vectors of the query and the key are the same at every position; what differs is what the encoding does.

    Args:
        relative: the biases to show, of 8 heads; without it, small random ones.
        encoding: to begin with, one of ENCODINGS.
        query, key: their positions, 0 to 47.
        shift: words that both are moved on, 0 to 16.
        seed: of the two vectors.

    Raises:
        ValueError: if one of them is not so.
    """

    encoding = t.Enum(list(ENCODINGS), "rotary").tag(sync=True)
    base = t.Enum(BASES, 10_000).tag(sync=True)
    d_k = t.Enum(WIDTHS, 16).tag(sync=True)
    head = t.Int(0, min=0, max=HEADS - 1).tag(sync=True)
    query = t.Int(0, min=0, max=LENGTH - FARTHEST - 1).tag(sync=True)
    key = t.Int(0, min=0, max=LENGTH - FARTHEST - 1).tag(sync=True)
    shift = t.Int(0, min=0, max=FARTHEST).tag(sync=True)
    scores = t.Bytes().tag(sync=True)  # (8, 64, 64) of all heads, or (1, 64, 64), float32
    query_rows = t.Bytes().tag(sync=True)  # (64, d_k), float32; none where the score is a bias
    key_rows = t.Bytes().tag(sync=True)
    limits = t.Dict(
        {"length": LENGTH, "shift": FARTHEST, "heads": HEADS, "bases": list(BASES), "widths": list(WIDTHS)}
        | {"encodings": [list(each) for each in ENCODINGS.items()], "vectors": list(VECTORS)}
    ).tag(sync=True)

    def __init__(
        self,
        relative: RelativeBias | None = None,
        *,
        encoding: str = "rotary",
        query: int = 20,
        key: int = 14,
        shift: int = 8,
        seed: int = 0,
    ):
        last = LENGTH - FARTHEST - 1
        if encoding not in ENCODINGS:
            raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}; got {encoding!r}")
        if not (0 <= query <= last and 0 <= key <= last):
            raise ValueError(f"positions must be in 0..{last}, got {query} and {key}")
        if not 0 <= shift <= FARTHEST:
            raise ValueError(f"shift must be in 0..{FARTHEST}, got {shift}")
        if relative is not None and len(relative.table) != HEADS:
            raise ValueError(f"expected biases of {HEADS} heads, got {len(relative.table)}")
        generator = torch.Generator().manual_seed(seed)
        self._vectors = torch.randn(2, max(WIDTHS), generator=generator, dtype=torch.float64)
        self._table = torch.randn(HEADS, 31, generator=generator) if relative is None else relative.table.detach().cpu()
        super().__init__(encoding=encoding, query=query, key=key, shift=shift)
        self._compute()
        self.observe(lambda _: self._compute(), ["encoding", "base", "d_k"])

    def compute(self, encoding: str = "") -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Scores (1, 64, 64) of queries (64, d_k) and keys (64, d_k); or biases (8, 64, 64), None and None.

        Args:
            encoding: one of ENCODINGS; the chosen one where none is given.
        """
        encoding = encoding or self.encoding
        if encoding == "alibi":
            return ALiBi(HEADS).bias(LENGTH, LENGTH), None, None
        if encoding == "relative":
            biases = RelativeBias(HEADS, self._table.shape[1] // 2)
            biases.load_state_dict({"table": self._table})
            return biases.bias(LENGTH, LENGTH).detach(), None, None
        query, key = (each[: self.d_k].expand(LENGTH, -1) for each in self._vectors)
        if encoding == "rotary":
            rotary = Rotary(LENGTH, self.d_k, base=self.base).double()
            query, key = rotary.rotate(query), rotary.rotate(key)
        else:
            table = sinusoidal(LENGTH, self.d_k, base=self.base).double()
            query, key = (table, table) if encoding == "sinusoids" else (query + table, key + table)
        return attention_scores(query, key)[None], query, key

    def name(self) -> str:
        """The encoding with what was chosen for it."""
        chosen = f"base {self.base:,}, d_k {self.d_k}" if self.encoding in VECTORS else f"head {self.head}"
        return f"{ENCODINGS[self.encoding]}, {chosen}"

    def _compute(self) -> None:
        scores, *vectors = (b"" if each is None else each.float().numpy().tobytes() for each in self.compute())
        with self.hold_sync():
            self.scores, self.query_rows, self.key_rows = scores, *vectors

    @styled
    def picture(self) -> CourseFigure:
        """The present scores beside those of the paper's way, or of rotary; in both the pair, and where it moves."""
        other = "rotary" if self.encoding == "words" else "words"
        beside = f"{ENCODINGS[other]}, base {self.base:,}, d_k {self.d_k}"
        shown = [self._panel(self.encoding, self.name()), self._panel(other, beside)]
        moved = f", and both {self.shift} words on" if self.shift else ""
        title = f"Circles: query {self.query}, key {self.key}{moved}; does the score stay?"
        figure = panels(shown, title=title, words={"signed": "score" if self.query_rows else "bias, score"})
        for axes in figure.axes[: len(shown)]:
            places = [[place, place + self.shift] for place in (self.key, self.query)]
            axes.plot(*places, "-", color="black", lw=1)
            axes.plot(*places, "o", mfc="white", mec="black", ms=7)
        return figure

    def _panel(self, encoding: str, name: str) -> Panel:
        """The scores of an encoding at all pairs of positions, with the numbers at the circles below."""
        scores = self.compute(encoding)[0].float()
        scores = scores[self.head if len(scores) > 1 else 0]
        told = [f"{scores[self.query + on, self.key + on]:.2f}" for on in sorted({0, self.shift})]
        axes = dict(xlabel="position of the key", ylabel="position of the query")
        return Panel(scores, range(LENGTH), range(LENGTH), name=f"{name}: {', then '.join(told)}", **axes)
