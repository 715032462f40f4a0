"""Distillation: the teacher's probabilities are the target, no gradient reaches it, and its translations are pairs."""

import math

import pytest
import torch

from course_lib.compression import distillation_loss, translated, word_level
from course_lib.config import model_preset
from course_lib.data import BucketedBatches, encode_pairs
from course_lib.training import batch_loss, fit, token_logits, train_preset
from course_lib.transformer import Transformer
from course_lib.translator import Translator
from tests.helpers.corpora import toy_pairs
from tests.helpers.laws import raised, tells_apart
from tests.helpers.tiny import tiny_model, toy_translator


def some_logits(seed, tokens=4, vocab=6):
    return torch.randn(tokens, vocab, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def law_it_is_the_cross_entropy_to_the_teacher(loss_of):
    student, teacher = some_logits(0), some_logits(1)
    by_hand = 0.0
    for row, theirs in zip(student.tolist(), teacher.tolist(), strict=True):
        p, q = ([math.exp(each) for each in values] for values in (row, theirs))
        by_hand -= sum(b / sum(q) * math.log(a / sum(p)) for a, b in zip(p, q, strict=True))
    assert loss_of(student, teacher).item() == pytest.approx(by_hand, rel=1e-9)


def test_it_is_the_cross_entropy_to_the_teacher():
    tells_apart(
        law_it_is_the_cross_entropy_to_the_teacher,
        distillation_loss,
        lambda student, teacher: distillation_loss(teacher, student),
        lambda student, teacher: distillation_loss(student, teacher) / len(student),
        lambda student, teacher: distillation_loss(student, teacher, temperature=1.01),
    )


def law_a_sure_teacher_is_the_true_id(loss_of):
    logits, targets = some_logits(0), torch.tensor([5, 0, 2, 2])
    sure = 1e4 * torch.nn.functional.one_hot(targets, 6).double()
    plain = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(loss_of(logits, sure), plain, rtol=1e-9, atol=0)


def test_a_sure_teacher_is_the_true_id():
    tells_apart(
        law_a_sure_teacher_is_the_true_id, distillation_loss, lambda ours, theirs: distillation_loss(ours, -theirs)
    )


def law_the_gradient_is_as_large_at_every_temperature(loss_of):
    """With logits near 0, where softmax is nearly linear: (p - q) / vocab, whatever the temperature."""
    gradients = []
    for temperature in (1.0, 2.0, 8.0):
        student = (some_logits(0) / 1e4).requires_grad_()
        loss_of(student, some_logits(1) / 1e4, temperature=temperature).backward()
        gradients.append(student.grad)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-3, atol=1e-9)
    torch.testing.assert_close(gradients[2], gradients[0], rtol=1e-3, atol=1e-9)


def test_the_gradient_is_as_large_at_every_temperature():
    def without_the_square(student, teacher, *, temperature):
        return distillation_loss(student, teacher, temperature=temperature) / temperature**2

    tells_apart(law_the_gradient_is_as_large_at_every_temperature, distillation_loss, without_the_square)


def test_no_gradient_reaches_the_teacher():
    student, teacher = some_logits(0).requires_grad_(), some_logits(1).requires_grad_()
    distillation_loss(student, teacher).backward()
    assert teacher.grad is None and student.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distillation_loss(some_logits(0), some_logits(1, vocab=7)), "got (4, 6) and (4, 7)"),
        (lambda: distillation_loss(some_logits(0)[:0], some_logits(1)[:0]), "got (0, 6) and (0, 6)"),
        (
            lambda: distillation_loss(some_logits(0), some_logits(1), temperature=0),
            "temperature must be above 0, got 0",
        ),
        (lambda: word_level(tiny_model(), weight=1.5), "weight must be in 0..1, got 1.5"),
    ],
)
def test_what_cannot_be_distilled_is_refused(call, message):
    assert message in str(raised(ValueError, call))


@pytest.fixture(scope="module")
def lesson():
    """A teacher, a student with its vocabulary, and a batch."""
    teacher = toy_translator(1, spread=8.0)
    batches = BucketedBatches(encode_pairs(teacher.tokenizer, toy_pairs()), 200)
    student = tiny_model(vocab_size=teacher.tokenizer.vocab_size, d_model=8).train()
    return teacher.model, student, next(batches.epoch(0)), batches


def law_the_weight_mixes(make, lesson):
    teacher, student, batch, _ = lesson
    plain, _ = batch_loss(student, batch, smoothing=0.1)
    whole = distillation_loss(token_logits(student, batch)[0], token_logits(teacher, batch)[0])
    for weight in (0.0, 0.3, 1.0):
        mixed, _ = make(teacher, weight=weight)(student, batch, smoothing=0.1)
        torch.testing.assert_close(mixed, weight * whole + (1 - weight) * plain)


def test_the_weight_mixes(lesson):
    tells_apart(
        lambda make: law_the_weight_mixes(make, lesson),
        word_level,
        lambda teacher, weight: word_level(teacher, weight=1 - weight),
        lambda teacher, weight: word_level(teacher, weight=weight, temperature=2.0),
    )


def test_a_student_approaches_its_teacher(lesson):
    teacher, _, batch, batches = lesson
    config = model_preset("mini", teacher.config.vocab_size, d_model=16, num_heads=2, d_ff=32)
    gaps = {}
    for name, loss in (("plain", None), ("word level", word_level(teacher, weight=1.0))):
        torch.manual_seed(0)
        student = Transformer(config)
        fit(student, batches, train_preset("mini", epochs=40, warmup_steps=5), loss=loss, progress=False)
        with torch.no_grad():
            gaps[name] = distillation_loss(token_logits(student, batch)[0], token_logits(teacher, batch)[0]).item()
    assert gaps["word level"] < 0.8 * gaps["plain"]
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_translations_become_pairs():
    teacher = toy_translator()
    sources = [pair.src for pair in toy_pairs()][:5]
    found = translated(teacher, sources)
    known = {src: teacher.translate(src, beam_size=1).text for src in sources}
    assert found and all(known[pair.src] == pair.tgt for pair in found)
    assert isinstance(teacher, Translator) and {pair.src for pair in found} <= set(sources)
