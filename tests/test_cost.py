"""Memory in closed form: what the formulas say is what a real pass keeps and a real training step holds."""

from dataclasses import replace
from unittest import mock

import pytest
import torch

from course_lib import cost
from course_lib.config import ModelConfig, model_preset
from course_lib.cost import activation_bytes, cache_bytes, peak_bytes
from course_lib.data import Batch
from course_lib.training import batch_loss, kept_bytes
from course_lib.training import peak_bytes as measured_peak
from course_lib.transformer import Transformer
from tests.helpers.laws import raised, tells_apart

WIDE = ModelConfig(300, 24, 3, 2, 40)
MODELS = [
    WIDE,
    replace(WIDE, norm_first=True),
    replace(WIDE, dropout=0.0),
    replace(WIDE, num_layers=1, tie_weights=False, position="none"),
    replace(WIDE, norm_first=True, num_heads=4, d_ff=17),
]
SIZES = [(1, 5, 9), (3, 12, 7), (2, 60, 70), (2, 100, 53)]  # batch, src_len, tgt_len; the longer two are fused


def a_batch(config, batch, src_len, tgt_len):
    generator = torch.Generator().manual_seed(0)
    src, tgt = (
        torch.randint(4, config.vocab_size, (batch, length), generator=generator) for length in (src_len, tgt_len)
    )
    return Batch(src, tgt, tgt)


def law_a_pass_keeps_what_the_formula_says(formula, models=MODELS):
    for config in models:
        for sizes in SIZES:
            for training in (True, False):
                model, batch = Transformer(config).train(training), a_batch(config, *sizes)
                kept = kept_bytes(lambda model=model, batch=batch: batch_loss(model, batch), model)
                told = formula(config, *sizes, fused=sizes[1] > 48, training=training)
                assert sum(told.values()) == kept, f"{config}, {sizes}, training {training}"


def test_a_pass_keeps_what_the_formula_says():
    def without(part):
        return lambda *args, **options: activation_bytes(*args, **options) | {part: 0}

    parts = activation_bytes(WIDE, 1, 2, 3)
    tells_apart(law_a_pass_keeps_what_the_formula_says, activation_bytes, *map(without, parts))


def test_narrow_keys_are_counted():
    narrow = replace(WIDE, key_width=2)
    model, batch = Transformer(narrow), a_batch(narrow, 2, 9, 8)
    assert kept_bytes(lambda: batch_loss(model, batch), model) == sum(activation_bytes(narrow, 2, 9, 8).values())
    message = raised(ValueError, lambda: activation_bytes(narrow, 2, 9, 8, fused=True))
    assert str(message) == "the fused kernel needs keys as wide as values, got d_k=2"


def step_of(model, batch):
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        loss, _ = batch_loss(model, batch, smoothing=0.1)
        (loss / batch.num_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    step()  # the first one makes the optimizer's state
    return step


def law_the_peak_of_a_step_is_within_a_tenth(formula):
    """Of what the step adds to weights and optimizer, which is the part that could be wrong."""
    waiting = ModelConfig(4000, 64, 2, 2, 64), (2, 90, 4)  # of the encoder, when the decoder has gradients
    for config, sizes in (
        (model_preset("mini", 2000), (24, 30, 30)),
        (model_preset("mini", 9000), (2, 12, 12)),
        waiting,
    ):
        model, batch = Transformer(config).train(), a_batch(config, *sizes)
        held = 12 * config.num_parameters
        added = measured_peak(step_of(model, batch))
        assert formula(config, *sizes) - held == pytest.approx(added, rel=0.1), f"{config}, {sizes}"


def test_the_peak_of_a_step_is_within_a_tenth():
    def sum_of_all(config, *sizes):
        return 16 * config.num_parameters + sum(activation_bytes(config, *sizes).values())

    def gradients_only(config, *sizes):
        return 16 * config.num_parameters

    def nothing_waits(*given):
        with mock.patch.object(cost, "_encoder_bytes", return_value=0):
            return peak_bytes(*given)

    tells_apart(law_the_peak_of_a_step_is_within_a_tenth, peak_bytes, sum_of_all, gradients_only, nothing_waits)


def law_a_cache_holds_what_the_formula_says(formula):
    for config in (WIDE, replace(WIDE, key_width=2)):
        model, src = Transformer(config).eval(), torch.full((3, 7), 5)
        caches = model.new_cache()
        with torch.no_grad():
            memory = model.encode(src)
            for written in (1, 2, 3):
                model.decode(torch.full((3, 1), 6), memory, src, cache=caches)
                held = sum(each.nbytes for cache in caches for each in vars(cache).values())
                assert held == formula(config, 3, 7, written)


def test_a_cache_holds_what_the_formula_says():
    tells_apart(
        law_a_cache_holds_what_the_formula_says,
        cache_bytes,
        lambda config, batch, src_len, tgt_len: cache_bytes(config, batch, 0, tgt_len),
        lambda config, *sizes: cache_bytes(replace(config, key_width=None), *sizes),
    )


def test_what_cannot_be_counted_is_refused():
    rotary = replace(WIDE, position="rotary", d_model=24)
    message = "activations are counted for sinusoidal positions or none, got 'rotary'"
    assert str(raised(ValueError, lambda: activation_bytes(rotary, 1, 2, 3))) == message
    for sizes in ((0, 2, 3), (1, 0, 3), (1, 2, -1)):
        assert f"got {sizes}" in str(raised(ValueError, lambda sizes=sizes: peak_bytes(WIDE, *sizes)))


def test_half_precision_halves_what_is_numbers():
    full, half = (activation_bytes(WIDE, 2, 5, 6, bytes_per_number=size) for size in (4, 2))
    for part in ("attention weights", "vectors", "inner vectors", "logits"):
        assert full[part] == 2 * half[part] > 0
    assert full["masks"] == half["masks"]
