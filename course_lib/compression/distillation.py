"""A small model learns from a large one: from the probabilities of each word, or from whole translations."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.data import Batch, Pair
from course_lib.training import label_smoothed_loss, token_logits
from course_lib.transformer import Transformer, eval_mode
from course_lib.translator import Translator


def distillation_loss(logits: Tensor, teacher_logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Cross-entropy of the student's probabilities to the teacher's, instead of to one true id.

    With q = softmax(teacher_logits / temperature) and p likewise: - temperature² · sum of q log p. The square keeps
    the size of the gradient where the temperature changes (Hinton et al. 2015, section 2).

    Args:
        logits: (tokens, vocab), the student's.
        teacher_logits: (tokens, vocab); no gradient flows into them.
        temperature: above 0; above 1 tells more of what the teacher holds improbable.

    Returns:
        the sum over tokens, in nats.

    Raises:
        ValueError: if the shapes differ, there are no tokens, or the temperature is not above 0.
    """
    if logits.dim() != 2 or logits.shape != teacher_logits.shape or logits.numel() == 0:
        raise ValueError(
            "expected logits of student and teacher, (tokens, vocab) each, at least one token; "
            f"got {tuple(logits.shape)} and {tuple(teacher_logits.shape)}"
        )
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    targets = (teacher_logits.detach() / temperature).softmax(dim=-1)  # (tokens, vocab)
    return -(temperature**2) * (targets * (logits / temperature).log_softmax(dim=-1)).sum()


def word_level(teacher: Transformer, *, weight: float = 0.5, temperature: float = 1.0) -> Callable:
    """A loss for `fit` that mixes the true ids with what the teacher would have predicted in their place.

    Args:
        teacher: with the student's vocabulary, on the same device.
        weight: share of the teacher, 0 to 1; the rest is the usual loss.
        temperature: as in distillation_loss.

    Raises:
        ValueError: if weight is outside its range; in training, if the vocabularies differ.

    Paper: Kim and Rush 2016, section 3.1.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be in 0..1, got {weight}")

    def loss(model: Transformer, batch: Batch, *, smoothing: float = 0.0) -> tuple[Tensor, int]:
        logits, targets = token_logits(model, batch)
        with eval_mode(teacher):
            theirs, _ = token_logits(teacher, batch)
        of_teacher = distillation_loss(logits.float(), theirs.float(), temperature=temperature)
        return weight * of_teacher + (1 - weight) * label_smoothed_loss(logits.float(), targets, smoothing=smoothing), 0

    return loss


def translated(teacher: Translator, sources: Sequence[str], *, beam_size: int = 1) -> list[Pair]:
    """Sentences with the teacher's translations, for a student to learn from as if they were true.

    Args:
        teacher: the large translator.
        sources: texts that need no translation by people.
        beam_size: of the teacher's search.

    Paper: Kim and Rush 2016, section 3.2, sequence-level distillation.
    """
    with torch.inference_mode():
        found = teacher.translate_batch(sources, beam_size=beam_size)
    return [Pair(src, translation.text) for src, translation in zip(sources, found, strict=True) if translation.text]
