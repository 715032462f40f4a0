"""Does it need a warm-up? Pre-norm and post-norm models, with and without, each at its own learning rate."""

import math
import random
from functools import cache
from pathlib import Path

import torch

from course_lib.config import ModelConfig
from course_lib.data import BucketedBatches, Pair, encode_pairs, make_batch
from course_lib.decoding import greedy
from course_lib.experiments.grid import Grid
from course_lib.tokenizer import Tokenizer
from course_lib.training import DivergedError, TrainConfig, fit
from course_lib.transformer import Transformer

LETTERS, LENGTHS = "abcdefghij", range(3, 7)  # what is copied
PAIRS, HELD_OUT = 4800, 400  # the held-out pairs are halved: one part chooses rates, the other is reported
WARMUP_STEPS, WINDOW = 100, 20  # steps; each point of a curve is the mean over so many losses
SIZES = dict(d_model=64, num_heads=4, num_layers=3, d_ff=128, dropout=0.0, max_len=64)
RECIPE = dict(epochs=1, batch_tokens=120, decay="linear", label_smoothing=0.0)


@cache
def copy_pairs() -> tuple[Tokenizer, list, list]:
    """A tokenizer with a token for each letter, and encoded pairs, all different: to train on, and held out."""
    rng, found = random.Random(2), {}
    while len(found) < PAIRS:
        word = " ".join(rng.choices(LETTERS, k=rng.choice(LENGTHS)))
        found[word] = Pair(word, word)
    tokenizer = Tokenizer.train(list(found), vocab_size=200)
    pairs = encode_pairs(tokenizer, list(found.values()))
    return tokenizer, pairs[HELD_OUT:], pairs[:HELD_OUT]


def train_copier(*, norm_first: bool, warmup_steps: int, rate: float, seed: int) -> tuple[Transformer, list[float]]:
    """Trains a model of three layers in each stack to copy three to six letters, for one epoch.

    Args:
        norm_first: pre-norm, or post-norm.
        warmup_steps: to the peak of the learning rate, from where it falls in a line; 1 begins at the peak.
        rate: at the peak.
        seed: of weights and batches.

    Returns:
        the model, and the loss of each step; they end early where the loss is no longer a number.
    """
    tokenizer, train, _ = copy_pairs()
    config = TrainConfig(**RECIPE, warmup_steps=warmup_steps, peak_lr=rate, seed=seed)
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(tokenizer.vocab_size, **SIZES, norm_first=norm_first))
    try:
        history = fit(model, BucketedBatches(train, config.batch_tokens, seed=seed), config, progress=False)
    except DivergedError as error:
        history = error.history
        model.eval()
    return model, history.losses


def copied(model: Transformer, pairs: list) -> float:
    """Share of the pairs that the model copies without a mistake, by greedy decoding."""
    written = greedy(model, make_batch(pairs).src)
    return sum(output.ids == tgt for output, (_, tgt) in zip(written, pairs, strict=True)) / len(pairs)


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one model and lets it copy what it has not seen.

    Returns:
        valid: share copied of the part that chooses rates, less a thousandth of the final loss, which decides among
        models that copy nothing; exact_match: on the part that is reported; losses: mean of every 20 steps; guessing:
        the loss of a model that takes all subwords for equally likely.
    """
    tokenizer, _, held_out = copy_pairs()
    model, losses = train_copier(**choices, seed=seed)
    means = [sum(losses[i : i + WINDOW]) / WINDOW for i in range(0, len(losses) - WINDOW + 1, WINDOW)]
    half = len(held_out) // 2
    return {
        "valid": copied(model, held_out[:half]) - 1e-3 * means[-1],
        "exact_match": copied(model, held_out[half:]),
        "losses": [round(mean, 4) for mean in means],
        "guessing": round(math.log(tokenizer.vocab_size), 4),
    }


RATES = (1e-3, 2.5e-3, 5e-3, 1e-2)
CELLS = {
    "pre-norm, with warm-up": dict(norm_first=True, warmup_steps=WARMUP_STEPS),
    "pre-norm, without": dict(norm_first=True, warmup_steps=1),
    "post-norm, with warm-up": dict(norm_first=False, warmup_steps=WARMUP_STEPS),
    "post-norm, without": dict(norm_first=False, warmup_steps=1),
}

GRID = Grid(
    name="warmup",
    question="Which order of norms needs a warm-up, and at which learning rate?",
    sides={name: dict(cell, rate=RATES) for name, cell in CELLS.items()},
    run=run,
)
