"""The decoder stepper: one token after another, what was read, what is predicted, and what it looks at meanwhile."""

import torch
import traitlets as t

from course_lib.analysis import Exploration, explore
from course_lib.figures import CourseFigure, Panel, panels
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

MAX_TOKENS = 40  # of a sentence that is drawn, and steps that are shown
CANDIDATES = 5


class DecoderStepper(CourseWidget):
    """Shows one step of a greedy translation: the tokens read, the next one predicted, and both attentions of a layer.

    Args:
        translator: whose decoder is watched.
        text: sentence to begin with.
        step: predictions that are made, at least 1; the last of them is looked into.
        layer: counted from 0; -1 is the last.
        head: counted from 0; -1 is the mean over the heads.

    Raises:
        ValueError: if the sentence has no token or more than 40, or there is no such step, layer or head.
    """

    text = t.Unicode().tag(sync=True)
    step = t.Int(1).tag(sync=True)
    layer = t.Int(0).tag(sync=True)
    head = t.Int(-1).tag(sync=True)
    view = t.Dict().tag(sync=True)  # tokens, candidates, and how many layers and heads there are
    cross = t.Bytes().tag(sync=True)  # float32, (layers, heads and their mean, tgt_len, src_len)
    own = t.Bytes().tag(sync=True)  # the same of the masked self-attention, (…, tgt_len, tgt_len)
    message = t.Unicode().tag(sync=True)

    def __init__(self, translator: Translator, text: str, *, step: int = 1, layer: int = -1, head: int = -1):
        self._translator = translator
        self.exploration = self._explored(text)
        steps, layers, heads = self._sizes()
        for name, value, low, high in (
            ("step", step, 1, steps),
            ("layer", layer, -1, layers - 1),
            ("head", head, -1, heads - 1),
        ):
            if not low <= value <= high:
                raise ValueError(f"{name} must be in {low}..{high}, got {value!r}")
        super().__init__(text=text, step=step, layer=layer % layers, head=head)
        self._show()
        self.observe(self._restart, "text")

    def _sizes(self) -> tuple[int, int, int]:
        """Steps, layers, and heads of a layer."""
        layers = self.exploration.attention.cross
        return min(len(self.exploration.tgt_ids), MAX_TOKENS), len(layers), len(layers[0])

    @t.validate("step", "layer", "head")
    def _inside(self, proposal) -> int:
        """The page may ask for a step of the former sentence, which was longer."""
        steps, layers, heads = self._sizes()
        low, high = {"step": (1, steps), "layer": (0, layers - 1), "head": (-1, heads - 1)}[proposal.trait.name]
        return min(max(proposal.value, low), high)

    def _restart(self, _) -> None:
        try:
            self.exploration = self._explored(self.text)
        except ValueError as error:
            self.message = str(error)
            return
        with self.hold_sync():
            self.message, self.step = "", 1
            self._show()

    def _explored(self, text: str) -> Exploration:
        source_ids(self._translator, text, longest=MAX_TOKENS)
        return explore(self._translator, text, num_candidates=CANDIDATES)

    def _show(self) -> None:
        found = self.exploration
        vocab = self._translator.model.config.vocab_size
        self._cross, self._own = (
            torch.stack([torch.cat([each, each.mean(dim=0, keepdim=True)]) for each in layers])[..., :MAX_TOKENS, :]
            for layers in (found.attention.cross, found.attention.decoder)
        )
        self._own = self._own[..., :MAX_TOKENS]
        with self.hold_sync():
            self.cross, self.own = (each.numpy().astype("<f4").tobytes() for each in (self._cross, self._own))
            self.view = {
                "src": found.src_tokens,
                "predicted": found.tgt_tokens[:MAX_TOKENS],
                "candidates": [[[each.token, each.probability] for each in row] for row in found.candidates],
                "others": vocab - CANDIDATES,
                "text": found.text,
                "layers": self._cross.shape[0],
                "heads": self._cross.shape[1] - 1,
            }

    def picture(self) -> CourseFigure:
        """Both attention maps up to the present step, a row for each prediction."""
        src, predicted = self.view["src"], self.view["predicted"][: self.step]
        read = ["<s>", *predicted[:-1]]
        rows = [f"predicts {token}" for token in predicted]
        words = ("weights", "looks at", "")
        shown = [
            Panel(self._own[self.layer, self.head, : self.step, : self.step], rows, read, "self-attention", *words),
            Panel(self._cross[self.layer, self.head, : self.step], rows, src, "cross-attention", *words),
        ]
        probability = self.exploration.probabilities[self.step - 1]
        title = f"Having read {' '.join(read)}, the decoder predicts {predicted[-1]} ({100 * probability:.0f} %)"
        return panels(shown, title=title)
