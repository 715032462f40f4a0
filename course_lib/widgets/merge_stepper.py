"""The merge stepper: byte-pair encoding learns a small text, one merge after the other, forwards and backwards."""

from collections import Counter
from textwrap import shorten

import traitlets as t

from course_lib.analysis import Merges, learn_merges
from course_lib.figures import CourseFigure, bars
from course_lib.widgets.base import CourseWidget

LONGEST = 300  # characters, for which the page has room
OFFERED = 12  # pairs that are shown


class MergeStepper(CourseWidget):
    """Shows a text in pieces after any number of merges, and the pairs that are counted for the next one.

    Args:
        text: to learn from.
        merges: steps that are made to begin with.

    Raises:
        ValueError: if the text is empty or longer than 300 characters, or has not so many merges.
    """

    text = t.Unicode().tag(sync=True)
    merges = t.Int(0, min=0).tag(sync=True)
    view = t.Dict().tag(sync=True)  # words, steps and vocabulary of the text
    message = t.Unicode().tag(sync=True)

    def __init__(self, text: str, *, merges: int = 0):
        self.learned: Merges = _learn(text)
        if not 0 <= merges <= len(self.learned.pairs):
            raise ValueError(f"merges must be in 0..{len(self.learned.pairs)}, got {merges}")
        super().__init__(text=text, merges=merges, view=_described(self.learned))
        self.observe(self._relearn, "text")
        self.observe(self._stay_inside, "merges")

    def _relearn(self, _) -> None:
        try:
            self.learned = _learn(self.text)
        except ValueError as error:
            self.message = str(error)
            return
        with self.hold_sync():
            self.message, self.merges, self.view = "", 0, _described(self.learned)

    def _stay_inside(self, _) -> None:
        self.merges = min(self.merges, len(self.learned.pairs))

    def pieces(self) -> list[str]:
        """The text in symbols, after so many merges."""
        stage = self.learned.stages[self.merges]
        return [symbol for word in self.learned.words for symbol in stage[word]]

    def picture(self) -> CourseFigure:
        """The text in symbols, and the pairs that are counted next, or the symbols where no pair is left."""
        counts = self.learned.counts[self.merges] if self.merges < len(self.learned.pairs) else Counter(self.pieces())
        most = sorted(counts, key=counts.get, reverse=True)[:OFFERED]
        shown = shorten(" ".join(self.pieces()), 120, placeholder=" …")
        return bars(
            [_printable(" ".join(pair) if isinstance(pair, tuple) else pair) for pair in most],
            [counts[pair] for pair in most],
            xlabel="times side by side" if self.merges < len(self.learned.pairs) else "times in the text",
            title=_printable(f"After {self.merges} of {len(self.learned.pairs)} merges: {shown}"),
        )


def _learn(text: str) -> Merges:
    if len(text) > LONGEST:
        raise ValueError(f"the text has {len(text)} characters; the stepper shows up to {LONGEST}")
    return learn_merges(text)


def _described(learned: Merges) -> dict:
    """What the script picks from, whatever step it is at."""
    different = list(learned.stages[0])
    words = []
    for word in different:
        stages = [stage[word] for stage in learned.stages]
        words.append([[at, parts] for at, parts in enumerate(stages) if at == 0 or parts != stages[at - 1]])
    steps = []
    for pair, counts in zip(learned.pairs, learned.counts, strict=True):
        most = sorted(counts, key=counts.get, reverse=True)  # tied pairs stay in the order of the text
        offered = most[:OFFERED] if pair in most[:OFFERED] else [*most[: OFFERED - 1], pair]
        tied = sum(count == counts[pair] for count in counts.values()) - 1
        steps.append(
            {
                "pair": list(pair),
                "count": counts[pair],
                "tied": tied,
                "different": len(counts),
                "offered": [[*each, counts[each]] for each in offered],
            }
        )
    return {
        "words": words,  # of each different word: [merges made, symbols] where it changes
        "order": [different.index(word) for word in learned.words],
        "steps": steps,
        "numbers": learned.vocab,
        "start": len(learned.vocab) - len({"".join(pair) for pair in learned.pairs}),  # symbols before any merge
    }


def _printable(text: str) -> str:
    """A box for each character that the figures' font may lack."""
    return "".join(c if ord(c) < 0x590 or 0x2000 <= ord(c) < 0x2600 else "□" for c in text)
