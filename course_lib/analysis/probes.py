"""Linear probes: what can be read off the vectors of each layer, and the controls that say what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.grammar import english
from course_lib.transformer import Transformer, eval_mode

DECAY = 1e-4  # of a probe's squared weights
STEPS = 60  # of L-BFGS at most
PARTS_OF_SPEECH = {
    "noun": "noun",
    "det": "determiner",
    "pronoun": "pronoun",
    "name": "name",
    "verb": "verb",
    "tense": "verb",
    "preposition": "preposition",
    "conjunction": "conjunction",
    "and": "conjunction",
    "number": "number",
}


class Label(NamedTuple):
    """What the grammar knows of one English word.

    Args:
        word: in lower case.
        part_of_speech: "noun" for example; None for punctuation marks, adverbs and the like.
        noun: of its noun phrase, in the singular, if it is that noun, its determiner or its adjective; else None.
        gender: the German gender of that noun, "m", "f" or "n"; else None.
    """

    word: str
    part_of_speech: str | None
    noun: str | None
    gender: str | None


def word_labels(tree: Any) -> list[Label]:
    """One label for each English word of a tree of the course corpus, in the order of `realize(tree).src_words`."""
    return [_label(word.text, word.parts) for word in english.sentence(tree)]


def _label(text: str, parts: Sequence[tuple[Any, str]]) -> Label:
    node, part = parts[0] if parts else (None, "")
    adjectives = [each.english for each in getattr(node, "adjectives", ())]
    kinds = PARTS_OF_SPEECH | dict.fromkeys(("adjective", *adjectives), "adjective")
    kind = kinds.get(part)
    noun = getattr(node, "noun", None) if part in ("noun", "det", *adjectives) else None
    return Label(text.lower(), kind, noun and noun.english, noun and noun.gender)


def layer_states(model: Transformer, src: Tensor, tgt_in: Tensor) -> dict[str, list[Tensor]]:
    """The vectors between the layers of both stacks.

    Args:
        model: any Transformer.
        src, tgt_in: as of its `forward`.

    Returns:
        "encoder" → (batch, src_len, d_model), "decoder" → (batch, tgt_len, d_model): the embeddings first, then what
        each layer puts out, before the norm that may follow the last.
    """
    found: dict[str, list[Tensor]] = {"encoder": [], "decoder": []}
    handles = []
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        keep = found[name].append
        handles.append(stack.layers[0].register_forward_pre_hook(lambda module, args, keep=keep: keep(args[0])))
        for layer in stack.layers:
            handles.append(layer.register_forward_hook(lambda module, args, output, keep=keep: keep(output)))
    try:
        with eval_mode(model):
            model(src, tgt_in)
    finally:
        for handle in handles:
            handle.remove()
    return found


@dataclass(frozen=True, eq=False)
class Probe:
    """A linear classifier of vectors.

    Args:
        mean, spread: (features,), of the vectors it was fitted to; they are taken off and divided by.
        weight: (features, classes).
        bias: (classes,).
    """

    mean: Tensor
    spread: Tensor
    weight: Tensor
    bias: Tensor

    def predict(self, vectors: Tensor) -> Tensor:
        """(count, features) to the number of the most probable class, (count,)."""
        return ((vectors - self.mean) / self.spread @ self.weight + self.bias).argmax(dim=-1)

    def accuracy(self, vectors: Tensor, labels: Tensor) -> float:
        """The share of vectors whose class it names."""
        return (self.predict(vectors) == labels).float().mean().item()


def fit_probe(vectors: Tensor, labels: Tensor, *, classes: int | None = None) -> Probe:
    """Fits multinomial logistic regression to vectors and their classes.

    Args:
        vectors: (count, features).
        labels: (count,), classes from 0 on.
        classes: how many there are; as many as occur if not given.

    Raises:
        ValueError: if there are no vectors, or their number differs from that of the labels.

    Paper: none in Vaswani et al.; probes as in Hewitt and Liang 2019.
    """
    if not len(vectors) or len(vectors) != len(labels):
        raise ValueError(f"expected a label for each of some vectors, got {len(vectors)} vectors, {len(labels)} labels")
    mean, spread = vectors.mean(dim=0), vectors.std(dim=0, correction=0).clamp(min=1e-6)
    inputs, classes = (vectors - mean) / spread, classes or int(labels.max()) + 1
    weight = torch.zeros(inputs.shape[1], classes, dtype=inputs.dtype, device=inputs.device, requires_grad=True)
    bias = torch.zeros(classes, dtype=inputs.dtype, device=inputs.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(inputs @ weight + bias, labels) + DECAY * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return Probe(mean, spread, weight.detach(), bias.detach())
