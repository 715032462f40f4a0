"""Sampling sliders: what temperature, top-k and top-p leave of a next-token distribution, and what is drawn then."""

from collections import Counter

import torch
import traitlets as t

from course_lib.decoding import greedy, place_log_probs, sample, sampling_probs
from course_lib.figures import CourseFigure, bars
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

RANGES = {"temperature": (0.05, 5.0), "top_k": (1, 50), "top_p": (0.05, 1.0), "seed": (0, 99)}
SHOWN = 12  # tokens that have a bar
DRAWS = 20  # translations that are drawn
MAX_TOKENS = 40  # of the sentence, and of a translation


class SamplingSliders(CourseWidget):
    """Shows how the sliders reshape the distribution of a next token, and draws translations with these settings.

    While a slider is dragged the browser reshapes, as `sampling_probs` does; the kernel draws when it rests.

    Args:
        translator: whose distributions are shown.
        text: sentence to begin with.
        place: tokens of the greedy translation that are there already; the distribution is that of the next one.
        temperature: 0.05 to 5.
        top_k: 1 to 50; None cuts nothing.
        top_p: 0.05 to 1; None cuts nothing, and neither does 1.
        seed: of the draws, 0 to 99.

    Raises:
        ValueError: if the sentence has no token or more than 40, there is no such place, or a number is out of range.
    """

    text = t.Unicode().tag(sync=True)
    place = t.Int(0).tag(sync=True)
    temperature = t.Float(1.0).tag(sync=True)
    top_k = t.Int(0).tag(sync=True)  # 0 cuts nothing
    top_p = t.Float(1.0).tag(sync=True)  # 1 cuts nothing
    seed = t.Int(0).tag(sync=True)
    pieces = t.List(t.Unicode()).tag(sync=True)  # tokens of the greedy translation
    tokens = t.List(t.Unicode()).tag(sync=True)  # the most probable ones at the place
    log_probs = t.Bytes().tag(sync=True)  # float64, of all tokens that are possible there, the most probable first
    drawn = t.Dict().tag(sync=True)  # translations, and the settings that they were drawn with
    message = t.Unicode().tag(sync=True)

    def __init__(
        self,
        translator: Translator,
        text: str,
        *,
        place: int = 0,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
    ):
        for name, value in dict(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed).items():
            low, high = RANGES[name]
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} must be in {low}..{high}, got {value!r}")
        self._translator = translator
        top_p = 1.0 if top_p is None else top_p
        super().__init__(text=text, temperature=temperature, top_k=top_k or 0, top_p=top_p, seed=seed)
        self._translate(text)
        if not 0 <= place < len(self.pieces):
            raise ValueError(f"place must be in 0..{len(self.pieces) - 1}, the translation's tokens, got {place!r}")
        self.place = place
        self._show()
        self._draw()
        self.observe(self._restart, "text")
        self.observe(lambda _: self._show(), "place")
        self.observe(lambda _: self._draw(), list(RANGES))

    @t.validate("place")
    def _inside(self, proposal) -> int:
        """The page may ask for a place of the former translation, which was longer."""
        return min(max(proposal.value, 0), len(self.pieces) - 1)

    @property
    def probs(self) -> torch.Tensor:
        """What the tokens are drawn with at the place, (vocab,), the most probable first."""
        return sampling_probs(self._sorted[None], **self._options)[0]

    @property
    def _options(self) -> dict:
        top_p = self.top_p if self.top_p < 1 else None
        return dict(temperature=self.temperature, top_k=self.top_k or None, top_p=top_p)

    def _restart(self, _) -> None:
        with self.hold_sync():
            try:
                self._translate(self.text)
            except ValueError as error:
                self.message = str(error)
                return
            self.message, self.place = "", min(self.place, len(self.pieces) - 1)
            self._show()
            self._draw()

    def _translate(self, text: str) -> None:
        """The greedy translation, and the log-probabilities of all tokens at each of its places."""
        model, tokenizer = self._translator.model, self._translator.tokenizer
        config, device = model.config, next(model.parameters()).device
        self._src = torch.tensor([source_ids(self._translator, text, longest=MAX_TOKENS)], device=device)
        (self._greedy,) = greedy(model, self._src, max_len=min(MAX_TOKENS, config.max_len))
        outputs = self._greedy.ids + [config.eos_id] * self._greedy.finished
        self._rows = place_log_probs(model, self._src, outputs).double().cpu()
        self.pieces = [tokenizer.token(token) for token in outputs]

    def _show(self) -> None:
        """The distribution at the place, without the tokens that are never written."""
        row, order = self._rows[self.place].sort(descending=True)
        self._sorted = row[row.isfinite()]
        with self.hold_sync():
            self.tokens = [self._translator.tokenizer.token(token) for token in order[:SHOWN].tolist()]
            self.log_probs = self._sorted.numpy().astype("<f8").tobytes()

    def _draw(self) -> None:
        settings = [self.temperature, self.top_k, self.top_p, self.seed, self.text]
        if self.drawn.get("settings") == settings:
            return  # a text and a slider that came together are drawn once
        model, tokenizer = self._translator.model, self._translator.tokenizer
        generator = torch.Generator(self._src.device).manual_seed(self.seed)
        many, limit = self._src.expand(DRAWS, -1), min(MAX_TOKENS, model.config.max_len)
        found = sample(model, many, **self._options, generator=generator, max_len=limit)
        times = Counter(tuple(each.ids) for each in found)
        outputs = {tuple(each.ids): each for each in found}
        order = sorted(outputs, key=lambda ids: (-times[ids], -outputs[ids].log_prob))
        self.drawn = {
            "settings": settings,
            "greedy": tokenizer.decode(self._greedy.ids),
            "outputs": [
                {
                    "text": tokenizer.decode(outputs[ids].ids) + ("" if outputs[ids].finished else " …"),
                    "count": times[ids],
                    "log_prob": outputs[ids].log_prob,
                    "greedy": outputs[ids].ids == self._greedy.ids,
                }
                for ids in order
            ],
        }

    def picture(self) -> CourseFigure:
        """The reshaped distribution, as a figure."""
        probs, cuts = self.probs, ", ".join(f"{name} {value}" for name, value in self._options.items() if value)
        before = " ".join(["<s>", *self.pieces[: self.place]])
        kept = f"{int((probs > 0).sum()):,} of {len(probs):,} tokens can follow {before}"
        return bars(
            [*self.tokens, f"{len(probs) - len(self.tokens):,} others"],
            [*(100 * probs[: len(self.tokens)]).tolist(), 100 * probs[len(self.tokens) :].sum().item()],
            xlabel="probability that the token is drawn (%)",
            title=f"{kept} ({cuts})",
            value_format="{:.1f}",
        )
