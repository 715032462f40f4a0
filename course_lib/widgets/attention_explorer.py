"""The attention explorer: type a sentence, look at every head, force a token, switch heads off."""

import json
from collections.abc import Sequence

import numpy as np
import torch
import traitlets as t

from course_lib.analysis import Exploration, alignment_error_rate, explore, strongest_links, word_spans, word_weights
from course_lib.figures import CourseFigure, attention_grid, attention_map
from course_lib.recording import KINDS, attentions
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

MAX_TOKENS = 40  # of a sentence that is drawn
STEPS = 65_535  # a weight in 0..1 goes to the browser as one of so many steps


class AttentionExplorer(CourseWidget):
    """Shows what every head attends to while a sentence is translated; the browser draws, the library computes.

    Args:
        translator: whose attention is explored.
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
        translator: Translator,
        text: str,
        *,
        kind: str = "cross",
        layer: int = -1,
        head: int = -1,
        pairs: Sequence = (),
    ):
        heads = {name: [each.num_heads for each in attentions(translator.model, name)] for name in KINDS}
        layers = heads.get(kind, [])
        if not layers or not -1 <= layer < len(layers) or not -1 <= head < layers[layer]:
            raise ValueError(f"no head {head} in layer {layer} of {kind}; heads of each layer: {heads}")
        layer %= len(layers)
        self._translator, self._gold = translator, {pair.src: pair for pair in pairs}
        self.exploration: Exploration | None = None
        super().__init__(text=text, kind=kind, layer=layer, head=head, heads=heads, examples=list(self._gold))
        self._translate()
        self.observe(self._restart, "text")
        self.observe(lambda _: self._translate(), ["forced", "silent"])

    def _restart(self, _) -> None:
        """A new sentence begins without forced tokens; heads that are off stay off."""
        if self.forced:
            self.forced = []  # which translates
        else:
            self._translate()

    def _translate(self) -> None:
        try:
            source_ids(self._translator, self.text, longest=MAX_TOKENS)
            found = explore(self._translator, self.text, prefix=self.forced, silent=map(tuple, self.silent))
        except ValueError as error:
            self.message = str(error)
            return
        before = None if self.exploration is None else self.exploration.text
        self.exploration, self.message = found, ""
        with self.hold_sync():
            self.weights = b"".join(_quantized(torch.stack(getattr(found.attention, kind))) for kind in KINDS)
            self.view = self._described(found, before)
            self.shown = min(len(found.tgt_tokens), MAX_TOKENS)

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
        """The chosen heads' maps, as a figure."""
        if self.exploration is None:
            return attention_map([[1.0]], ["—"], ["—"], title=f"Attention explorer: {self.message}")
        found = self.exploration
        queries = found.src_tokens if self.kind == "encoder" else found.tgt_tokens
        keys = ["<s>", *found.tgt_tokens[:-1]] if self.kind == "decoder" else found.src_tokens
        maps = getattr(found.attention, self.kind)[self.layer]
        where = f"layer {self.layer} of {self.kind} attention: {self.text}"
        if self.head < 0:
            return attention_grid(maps, queries, keys, title=f"All heads in {where}")
        return attention_map(maps[self.head], queries, keys, title=f"Head {self.head} in {where}")


def _quantized(weights: torch.Tensor) -> bytes:
    """(layers, heads, queries, keys) in 0..1 to 16-bit steps, little-endian, at most MAX_TOKENS queries and keys."""
    cut = weights[..., :MAX_TOKENS, :MAX_TOKENS].numpy()
    return np.rint(cut * STEPS).astype("<u2").tobytes()
