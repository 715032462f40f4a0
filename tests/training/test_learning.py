"""The whole library at work: a model learns to reverse sequences that it has never seen, free-running."""

import time
from functools import partial

import pytest
import torch

from course_lib.config import ModelConfig
from course_lib.data.batches import BucketedBatches
from course_lib.decoding import greedy
from course_lib.training.config import TrainConfig
from course_lib.transformer import Transformer
from tests.helpers.laws import tells_apart
from tests.helpers.tiny import padded
from tests.helpers.training import fit, reversal_pairs

HELD_OUT = 500
pytestmark = pytest.mark.usefixtures("one_thread")  # a second one gains little, and costs tenfold on a busy machine


def reversing_transformer(symbols):
    torch.manual_seed(0)
    sizes = dict(d_model=96, num_heads=4, num_layers=1, d_ff=192, dropout=0.0, max_len=16)
    return Transformer(ModelConfig(vocab_size=4 + symbols, **sizes, norm_first=True))


def without_positions(symbols):
    model = reversing_transformer(symbols)
    for embedding in (model.src_embedding, model.tgt_embedding):
        embedding.position.table.zero_()
    return model


def reversal_is_learned(make_model, *, symbols, shortest, longest, num_train, epochs):
    """At least 99 % of the held-out sequences are reversed without a single wrong token."""
    started = time.perf_counter()
    lengths = dict(shortest=shortest, longest=longest, vocab_size=4 + symbols)
    pairs = reversal_pairs(num_train + HELD_OUT, seed=1, **lengths)  # all different
    held_out, train = pairs[:HELD_OUT], pairs[HELD_OUT:]
    schedule = dict(epochs=epochs, peak_lr=3e-3, warmup_steps=100, decay="linear")
    config = TrainConfig(**schedule, batch_tokens=600, label_smoothing=0.0, clip_norm=1.0)
    model = make_model(symbols)
    history = fit(model, BucketedBatches(train, config.batch_tokens), config)
    found = greedy(model, padded([src for src, _ in held_out]))
    share = sum(hypothesis.ids == tgt for hypothesis, (_, tgt) in zip(found, held_out, strict=True)) / HELD_OUT
    print(f"{share:.1%} of {HELD_OUT} reversed after {len(history.losses)} steps, loss {history.losses[-1]:.4f}, "
          f"{time.perf_counter() - started:.0f} s")  # fmt: skip
    assert share >= 0.99


def test_reversing_a_sequence_is_learned():
    reversal_is_learned(reversing_transformer, symbols=20, shortest=4, longest=10, num_train=8000, epochs=7)


short = partial(reversal_is_learned, symbols=8, shortest=3, longest=5, num_train=3000, epochs=12)


def test_short_sequences_are_learned_with_positions_and_only_with_them():
    tells_apart(short, reversing_transformer, without_positions)
