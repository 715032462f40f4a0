"""The attention explorer: type a sentence, look at every head, force a token, switch heads off, play the training."""

import json
import textwrap
from collections.abc import Sequence

import numpy as np
import torch
import traitlets as t

from course_lib.analysis import (
    PREVIOUS,
    Exploration,
    Film,
    Scene,
    alignment_error_rate,
    explore,
    strongest_links,
    word_spans,
    word_weights,
)
from course_lib.figures import CourseFigure, attention_grid, attention_map
from course_lib.recording import KINDS, attentions
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

MAX_TOKENS = 40  # of a sentence that is drawn
STEPS = 65_535  # a weight in 0..1 goes to the browser as one of so many steps
WRITTEN = 100  # characters of what an early checkpoint writes
STILLS = 4  # steps of the training that a stored picture shows


class AttentionExplorer(CourseWidget):
    """Shows what every head attends to while a sentence is translated; the browser draws, the library computes.

    With the film of a training, a slider goes through its checkpoints, and a button plays them. An early checkpoint
    writes nonsense, of another length, and an attention map belongs to the text that was read. So, to begin with, every
    checkpoint reads the translation of the finished one (teacher forcing), and maps of different steps can be compared
    cell by cell; what it would write itself stands above them. The other choice shows its attention to its own text.

    Args:
        translator: whose attention is explored; or the film of its training, see `course_lib.analysis.film`.
        text: sentence to begin with.
        kind: "encoder", "decoder" or "cross".
        layer: counted from 0, or -1 for the last.
        head: counted from 0, or -1 for all of the layer.
        pairs: sentences with gold links (CoursePair), offered in a list; where the translation is theirs, the links are
            drawn, and each head's alignment error rate is given.

    Raises:
        ValueError: if the translator has no such layer or head.
    """

    text = t.Unicode().tag(sync=True)
    kind = t.Enum(KINDS, "cross").tag(sync=True)
    layer = t.Int(0).tag(sync=True)
    head = t.Int(-1).tag(sync=True)
    forced = t.List(t.Int(), []).tag(sync=True)  # ids that the translation must begin with
    silent = t.List(t.List(), []).tag(sync=True)  # heads that are switched off, (kind, layer, head) each
    shown = t.Int(0).tag(sync=True)  # target tokens that are written so far
    heads = t.Dict().tag(sync=True)  # kind → heads of each layer
    examples = t.List(t.Unicode(), []).tag(sync=True)
    view = t.Dict().tag(sync=True)  # tokens, probabilities, candidates, gold links, error rates
    weights = t.Bytes().tag(sync=True)  # uint16, kind after kind: (layers, heads, queries, keys)
    message = t.Unicode().tag(sync=True)

    def __init__(
        self,
        translator: Translator | Film,
        text: str,
        *,
        kind: str = "cross",
        layer: int = -1,
        head: int = -1,
        pairs: Sequence = (),
    ):
        self._film = translator if isinstance(translator, Film) else None
        self._translator = translator if self._film is None else self._film.finished
        heads = {name: [each.num_heads for each in attentions(self._translator.model, name)] for name in KINDS}
        layers = heads.get(kind, [])
        if not layers or not -1 <= layer < len(layers) or not -1 <= head < layers[layer]:
            raise ValueError(f"no head {head} in layer {layer} of {kind}; heads of each layer: {heads}")
        layer %= len(layers)
        self._gold = {pair.src: pair for pair in pairs}
        self.exploration: Exploration | None = None
        super().__init__(text=text, kind=kind, layer=layer, head=head, heads=heads, examples=list(self._gold))
        if self._film is not None:
            self._add_film(self._film)
        self._translate()
        self.observe(self._restart, "text")
        self.observe(lambda _: self._translate(), ["forced", "silent"])

    def _add_film(self, film: Film) -> None:
        """Traits that only an explorer with a film has."""
        last = len(film.steps) - 1
        traits = {
            "film": t.Dict(_filmed(film)),  # steps, error rates and roles at each of them
            "frame": t.Int(0, min=0, max=last),  # number of the checkpoint
            "own": t.Bool(False),  # whether it reads the translation that it writes itself
        }
        self.add_traits(**{name: trait.tag(sync=True) for name, trait in traits.items()})
        self.observe(lambda _: self._translate(), ["frame", "own"])

    def _restart(self, _) -> None:
        """A new sentence begins without forced tokens; heads that are off stay off."""
        if self.forced:
            self.forced = []  # which translates
        else:
            self._translate()

    def _translate(self) -> None:
        try:
            source_ids(self._translator, self.text, longest=MAX_TOKENS)
            found, written = self._scene(None if self._film is None else self.frame)
        except ValueError as error:
            self.message = str(error)
            return
        before = None if self.exploration is None else self.exploration.text
        self.exploration, self.message = found, ""
        with self.hold_sync():
            self.weights = b"".join(_quantized(torch.stack(getattr(found.attention, kind))) for kind in KINDS)
            view = self._described(found, before)
            if self._film is not None:
                written = textwrap.shorten(written, WRITTEN, placeholder=" …")
                view |= {"frame": self.frame, "own": self.own, "written": written}
            self.view = view
            self.shown = min(len(found.tgt_tokens), MAX_TOKENS)

    def _scene(self, frame: int | None) -> Scene:
        """The sentence as a checkpoint sees it, or the translator where there is no film."""
        asked = {"prefix": self.forced, "silent": list(map(tuple, self.silent))}
        if frame is None:
            found = explore(self._translator, self.text, **asked)
            return Scene(found, found.text)
        return self._film.scene(self.text, self._film.steps[frame], own=self.own, **asked)

    def _described(self, found: Exploration, before: str | None) -> dict:
        pair = self._gold.get(self.text)
        view = {
            "text": found.text,
            "before": before,
            "src": found.src_tokens,
            "tgt": found.tgt_tokens[:MAX_TOKENS],
            "read": ["<s>", *found.tgt_tokens[:-1]][:MAX_TOKENS],
            "ids": found.tgt_ids,
            "probabilities": found.probabilities,
            "candidates": [[[c.id, c.token, c.probability] for c in row] for row in found.candidates],
            "gold": None,
            "rates": None,
        }
        if pair is not None and pair.tgt == found.text:
            src_spans = word_spans(pair.src_words, found.src_tokens)
            tgt_spans = word_spans(pair.tgt_words, found.tgt_tokens)
            cross = word_weights(torch.stack(found.attention.cross), src_spans, tgt_spans)  # (layers, heads, …)
            view["gold"] = [[s, q] for i, j in pair.links for s in src_spans[i] for q in tgt_spans[j]]
            view["rates"] = [
                [alignment_error_rate(strongest_links(head), set(pair.links)) for head in layer] for layer in cross
            ]
        return json.loads(json.dumps(view))

    def picture(self) -> CourseFigure:
        """The chosen heads' maps, as a figure; of one head of a film, its maps of the same text at several steps."""
        if self.exploration is None:
            return attention_map([[1.0]], ["—"], ["—"], title=f"Attention explorer: {self.message}")
        where = f"layer {self.layer} of {self.kind} attention"
        if self._film is not None and self.head >= 0 and not self.own:
            return self._stills(self._film, f"Head {self.head} in {where}")
        when = "" if self._film is None else f" after step {self._film.steps[self.frame]:,}"
        maps, queries, keys = self._maps(self.exploration)
        if self.head < 0:
            title = f"All heads in {where}{when}: {self.exploration.text}"
            return self._named(attention_grid(maps, queries, keys, title=title))
        title = f"Head {self.head} in {where}{when}: {self.exploration.text}"
        return self._named(attention_map(maps[self.head], queries, keys, title=title))

    def _named(self, figure: CourseFigure) -> CourseFigure:
        """Rows of the decoder are named by the token that they predict, and the axis says so."""
        for axes in figure.axes:
            if self.kind != "encoder" and axes.get_ylabel() == "query":
                axes.set_ylabel("predicted token")
        return figure

    def _maps(self, found: Exploration) -> tuple[list[torch.Tensor], list[str], list[str]]:
        """The maps of the chosen layer, (heads, queries, keys), and the tokens of their rows and columns."""
        queries = found.src_tokens if self.kind == "encoder" else found.tgt_tokens
        keys = ["<s>", *found.tgt_tokens[:-1]] if self.kind == "decoder" else found.src_tokens
        return getattr(found.attention, self.kind)[self.layer], queries, keys

    def _stills(self, film: Film, where: str) -> CourseFigure:
        frames = sorted(set(np.linspace(0, len(film.steps) - 1, STILLS).round().astype(int).tolist()))
        found = [self._maps(self._scene(frame).exploration) for frame in frames]
        title = f"{where} as the model learns"
        if self.kind == "cross":
            rates = film.rates[:, self.layer, self.head].tolist()
            title += f": its alignment error goes from {rates[0]:.0%} to {rates[-1]:.0%}"
        figure = attention_grid(torch.stack([maps[self.head] for maps, *_ in found]), *found[0][1:], title=title)
        for axes, frame in zip(figure.axes, frames, strict=False):  # the last axes are the color bar
            axes.set_xlabel(f"step {film.steps[frame]:,}")
        return self._named(figure)


def _filmed(film: Film) -> dict:
    """What is known of all steps, for the browser."""
    shown = [role for role in film.roles if role.real or role.relation == PREVIOUS]
    return {
        "steps": film.steps,
        "sentences": film.sentences,
        "rates": film.rates.tolist(),  # of each step, layer and head
        "best": [list(place) for place in film.best],
        "best_rates": film.best_rates,
        "diagonal": film.diagonal,
        "roles": [
            {
                **{name: getattr(role, name) for name in ("relation", "kind", "layer", "head")},
                "shares": list(role.shares),
                "distance": None if role.relation == PREVIOUS else role.distance,
            }
            for role in shown
        ],
    }


def _quantized(weights: torch.Tensor) -> bytes:
    """(layers, heads, queries, keys) in 0..1 to 16-bit steps, little-endian, at most MAX_TOKENS queries and keys."""
    cut = weights[..., :MAX_TOKENS, :MAX_TOKENS].numpy()
    return np.rint(cut * STEPS).astype("<u2").tobytes()
