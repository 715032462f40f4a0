"""The translation playground: type English, read German, and see of which pieces the model is sure."""

import time

import traitlets as t

from course_lib.analysis import Exploration, explore
from course_lib.figures import CourseFigure, bars
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

MAX_TOKENS = 100  # of a sentence: more would keep a slow machine busy


class Playground(CourseWidget):
    """Translates greedily while one types; each German piece carries its probability.

    Args:
        translator: that is tried out.
        text: sentence to begin with.
    """

    text = t.Unicode().tag(sync=True)
    view = t.Dict().tag(sync=True)  # translation, pieces of both sentences, probabilities, milliseconds
    message = t.Unicode().tag(sync=True)

    def __init__(self, translator: Translator, text: str):
        self._translator = translator
        self.exploration: Exploration | None = None
        super().__init__(text=text)
        self._translate()
        self.observe(lambda _: self._translate(), "text")

    def _translate(self) -> None:
        started = time.perf_counter()
        try:
            source_ids(self._translator, self.text, longest=MAX_TOKENS)
            found = explore(self._translator, self.text, num_candidates=1)
        except ValueError as error:
            self.message = str(error) if self.text.strip() else "Type an English sentence."
            return
        self.exploration, self.message = found, ""
        self.view = {
            "text": found.text,
            "src": found.src_tokens[:-1],
            "tgt": found.tgt_tokens,
            "probabilities": found.probabilities,
            "milliseconds": 1000 * (time.perf_counter() - started),
        }

    def picture(self) -> CourseFigure:
        """How sure the model is of each German piece."""
        if self.exploration is None:
            return bars(["—"], [0.0], xlabel="probability", title=f"Translation playground: {self.message}")
        found = self.exploration
        title = f"{self.text} → {found.text}"
        return bars(found.tgt_tokens, found.probabilities, xlabel="probability", title=title, value_format="{:.2f}")
