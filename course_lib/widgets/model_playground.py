"""The model playground: paint a digit and see what a vision transformer makes of it; let a language model go on."""

import torch
import traitlets as t
from torch import Tensor

from course_lib.experiments import WordIds
from course_lib.families import LanguageModel, VisionTransformer, write
from course_lib.figures import CourseFigure, bars
from course_lib.recording import record_weights
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from course_lib.transformer import eval_mode
from course_lib.widgets.base import CourseWidget

RANGES = {"temperature": (0.05, 2.0), "seed": (0, 99)}
DRAWS, LONGEST = 4, 90  # texts, and characters of a text


class ModelPlayground(CourseWidget):
    """Classifies what a person paints, and writes on from what a person types.

    Args:
        classifier: of gray pictures.
        writer: of characters.
        vocabulary: the writer's.
        examples: (number, side, side), 0 to 1, pictures to begin with.

    Raises:
        ValueError: if there is no example.
    """

    pixels = t.List(t.Float()).tag(sync=True)  # row by row, 0 to 1
    examples = t.List(t.List(t.Float())).tag(sync=True)
    probs = t.List(t.Float()).tag(sync=True)
    looks = t.List(t.Float()).tag(sync=True)  # of the class token to each patch, mean over the last layer's heads
    text = t.Unicode("").tag(sync=True)
    temperature = t.Float(0.7).tag(sync=True)
    seed = t.Int(0).tag(sync=True)
    written = t.List(t.Unicode()).tag(sync=True)
    message = t.Unicode().tag(sync=True)

    def __init__(self, classifier: VisionTransformer, writer: LanguageModel, vocabulary: WordIds, examples: Tensor):
        if not len(examples):
            raise ValueError("expected at least one example to begin with")
        self._classifier, self._writer, self._vocabulary = classifier, writer, vocabulary
        self._side = examples.shape[-1]
        rows = examples.flatten(1).tolist()
        super().__init__(pixels=rows[0], examples=rows)
        self._classify()
        self._write()
        self.observe(lambda _: self._classify(), "pixels")
        self.observe(lambda _: self._write(), ["text", *RANGES])

    @t.validate("pixels")
    def _fits(self, proposal) -> list[float]:
        if len(proposal.value) != self._side**2:
            raise t.TraitError(f"expected {self._side**2} pixels, got {len(proposal.value)}")
        return [min(max(pixel, 0.0), 1.0) for pixel in proposal.value]

    @t.validate(*RANGES)
    def _inside(self, proposal):
        low, high = RANGES[proposal.trait.name]
        return min(max(proposal.value, low), high)

    def _classify(self) -> None:
        picture = torch.tensor(self.pixels).view(1, 1, self._side, self._side)
        last = self._classifier.picture_encoder.encoder.layers[-1].self_attn
        with eval_mode(self._classifier), record_weights([last]) as weights:
            logits = self._classifier(picture)
        with self.hold_sync():
            self.probs = logits.softmax(dim=-1)[0].tolist()
            self.looks = weights[0][0, :, 0, 1:].mean(dim=0).tolist()  # without the class token itself

    def _write(self) -> None:
        ids = self._vocabulary.ids(self.text)
        if len(ids) >= LONGEST or UNK_ID in ids:
            self.message = f"the writer knows letters and . , ? ' and reads fewer than {LONGEST} of them"
            return
        start = torch.tensor([[BOS_ID, *ids]]).expand(DRAWS, -1)
        generator = torch.Generator().manual_seed(self.seed)
        options = dict(temperature=self.temperature, generator=generator)
        rows = write(self._writer, start, most=LONGEST - len(ids), **options).tolist()
        with self.hold_sync():
            self.message = ""
            self.written = [self.text + self._spelled(row[1 + len(ids) :]) for row in rows]

    def _spelled(self, ids: list[int]) -> str:
        """The characters of ids, with _ for an unknown one."""
        ids = [index for index in ids if index not in (PAD_ID, BOS_ID, EOS_ID)]
        words = zip(ids, self._vocabulary.words(ids), strict=True)
        return "".join("_" if index == UNK_ID else word for index, word in words)

    def picture(self) -> CourseFigure:
        """How sure the classifier is of each class, and beside it what is painted."""
        best = max(range(len(self.probs)), key=self.probs.__getitem__)
        title = f"The classifier says {best}, with {self.probs[best]:.0%}; the writer: {self.written[0]}"
        labels = [str(number) for number in range(len(self.probs))]
        figure = bars(labels, self.probs, xlabel="probability", title=title, value_format="{:.2f}")
        grid = figure.add_gridspec(1, 2, width_ratios=(5, 2))
        figure.axes[0].set_subplotspec(grid[0])
        painted = figure.add_subplot(grid[1], xticks=[], yticks=[], xlabel="painted")
        picture = torch.tensor(self.pixels).view(self._side, -1).numpy()
        painted.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
        return figure
