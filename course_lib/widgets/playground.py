"""The translation playground: type English, read German, and see of which pieces the model is sure."""

import time

import traitlets as t

from course_lib.analysis import Exploration, explore
from course_lib.figures import CourseFigure, bars
from course_lib.preprocessing import doubts
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

MAX_TOKENS = 100  # of a sentence: more would keep a slow machine busy
MAX_WORDS = 300  # of a text


class Playground(CourseWidget):
    """Translates greedily while one types; each German piece carries its probability.

    Args:
        translator: that is tried out.
        text: sentence to begin with.
    """

    text = t.Unicode().tag(sync=True)
    view = t.Dict().tag(sync=True)  # translation, pieces of both sentences, probabilities, remarks, milliseconds
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
            view = self._answer()
        except ValueError as error:
            self.message = str(error) if self.text.strip() else "Type an English sentence."
            return
        self.view, self.message = view | {"milliseconds": 1000 * (time.perf_counter() - started)}, ""

    def _answer(self) -> dict:
        """Translation, and of one sentence the pieces; what the reader should know."""
        prepared = self._translator.prepare(self.text)
        if len(prepared.pieces) == 1:
            source_ids(self._translator, self.text, longest=MAX_TOKENS)
            self.exploration = found = explore(self._translator, self.text, num_candidates=1)
            pieces = {"src": found.src_tokens[:-1], "tgt": found.tgt_tokens, "probabilities": found.probabilities}
            return pieces | {"text": found.text, "remarks": [*prepared.remarks, *doubts(self.text, found.text)]}
        if len(self.text.split()) > MAX_WORDS:
            raise ValueError(f"the text has {len(self.text.split())} words; the widget takes up to {MAX_WORDS}")
        self.exploration, whole = None, self._translator.translate(self.text, beam_size=1)
        return {"src": [], "tgt": [], "probabilities": [], "text": whole.text, "remarks": list(whole.remarks)}

    def picture(self) -> CourseFigure:
        """How sure the model is of each German piece."""
        if self.exploration is None:
            told = self.message or self.view["text"]
            return bars(["—"], [0.0], xlabel="probability", title=f"Translation playground: {told}")
        found = self.exploration
        title = f"{self.text} → {found.text}"
        return bars(found.tgt_tokens, found.probabilities, xlabel="probability", title=title, value_format="{:.2f}")
