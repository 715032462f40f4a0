"""Which architecture translates best after equal training time, at equal size?"""

from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.alternatives import model_like
from course_lib.config import ModelConfig
from course_lib.data import BucketedBatches, encode_pairs, load_course
from course_lib.experiments.grid import Grid
from course_lib.experiments.timed import train_for
from course_lib.tokenizer import Tokenizer
from course_lib.training import batch_loss, score, validate
from course_lib.translator import Translator

PAIRS, HELD_OUT, WORDS = 12_000, 600, 8  # drawn from the course corpus; of these the sources of up to 8 words
SECONDS, BATCH_TOKENS, VOCAB_SIZE = 8.0, 512, 500
SIZES = dict(d_model=64, num_heads=4, num_layers=2, d_ff=128, dropout=0.0, max_len=48, norm_first=True)


@cache
def corpus() -> tuple[Tokenizer, dict[str, list]]:
    """The subwords, and the short sentence pairs of each part."""
    found = load_course(num_train=PAIRS, num_valid=HELD_OUT, num_test=HELD_OUT)
    parts = {"train": found.train, "valid": found.valid, "test": found.test}
    short = {name: [pair for pair in pairs if len(pair.src.split()) <= WORDS] for name, pairs in parts.items()}
    texts = (text for pair in short["train"] for text in (pair.src, pair.tgt))
    return Tokenizer.train(texts, VOCAB_SIZE), short


def batches(part: str, *, seed: int = 0) -> BucketedBatches:
    """The batches of a part, as ids."""
    tokenizer, parts = corpus()
    return BucketedBatches(encode_pairs(tokenizer, parts[part]), BATCH_TOKENS, seed=seed)


def new_model(architecture: str, **changes) -> nn.Module:
    """A Transformer of SIZES, or an alternative that is as large.

    Args:
        architecture: one of ARCHITECTURES.
        changes: fields of the configuration.
    """
    return model_like(architecture, ModelConfig(corpus()[0].vocab_size, **SIZES), **changes)


def train_model(model: nn.Module, *, rate: float, seed: int, seconds: float = SECONDS) -> list[dict]:
    """Trains for a time; measures loss and accuracy on the validation part ten times, see train_for."""
    loss, measure = exercise(model, seed)
    return train_for(seconds, model, loss, rate=rate, measure=measure)


def exercise(model: nn.Module, seed: int) -> tuple[Callable[[], Tensor], Callable[[], dict]]:
    """The loss of the next batch, and loss and accuracy on the validation part, as train_for asks for them."""
    train, valid = batches("train", seed=seed), batches("valid")
    stream = (batch for epoch in count() for batch in train.epoch(epoch))

    def loss() -> Tensor:
        batch = next(stream)
        return batch_loss(model, batch, smoothing=0.1)[0] / batch.num_tokens

    def measure() -> dict:
        return {name: round(value, 4) for name, value in validate(model, valid).items()}

    return loss, measure


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one model and scores its greedy translations.

    Returns:
        valid: accuracy of the next token on the validation part, by which is chosen; valid_loss in nats a token;
        parameters, steps, and epochs: passes over the training part; bleu and exact_match of the test part; history:
        see train_model.
    """
    choices = dict(choices)
    rate, seconds = choices.pop("rate"), choices.pop("seconds")
    torch.manual_seed(seed)
    model = new_model(**choices)
    history = train_model(model, rate=rate, seed=seed, seconds=seconds)
    tokenizer, parts = corpus()
    found = score(Translator(model, tokenizer), parts["test"], beam_size=1)
    last = history[-1]
    return {
        "valid": last["valid_accuracy"],
        "valid_loss": last["valid_loss"],
        "parameters": model.config.num_parameters,
        "steps": last["steps"],
        "epochs": round(last["steps"] / len(batches("train").plan(0)), 2),
        "bleu": round(found.bleu.score, 2),
        "exact_match": round(found.exact_match, 4),
        "history": history,
    }


EQUAL = dict(seconds=SECONDS, rate=(4e-3, 1e-2, 2e-2))
GRID = Grid(
    name="architectures",
    question="Which architecture translates best after equal training time, at equal size?",
    sides={
        "Transformer": EQUAL | dict(architecture="transformer", rate=(2e-3, 4e-3, 1e-2)),
        "LSTM": EQUAL | dict(architecture="lstm"),
        "GRU": EQUAL | dict(architecture="gru"),
        "convolutional": EQUAL | dict(architecture="convolutional"),
        # in a trial 2e-2 did as well as 1e-2: no third rate here
        "state space": EQUAL | dict(architecture="state space", rate=(4e-3, 1e-2)),
    },
    run=run,
)
