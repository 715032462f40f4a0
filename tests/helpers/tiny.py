"""Small models, batches and translators that many tests share."""

import itertools
import random

import torch
from torch import Tensor

from course_lib.config import POSITIONS, ModelConfig
from course_lib.data import pad
from course_lib.decoding import Hypothesis
from course_lib.preprocessing import PLACEHOLDERS
from course_lib.tokenizer import EOS_ID, PAD_ID, SPECIALS, Tokenizer
from course_lib.transformer import Transformer
from course_lib.translator import Translator
from tests.helpers.corpora import TEXTS, toy_pairs

SMALL = dict(vocab_size=12, d_model=16, num_heads=2, num_layers=2, d_ff=32, dropout=0.0, max_len=24, tie_weights=False)

MODEL_SIZES = dict(vocab_size=23, d_model=12, num_heads=3, num_layers=3, d_ff=20, max_len=9)
MODEL_VARIANTS = [
    ModelConfig(**MODEL_SIZES, tie_weights=tied, norm_first=norm_first, position=position)
    for tied, norm_first, position in itertools.product((True, False), (True, False), POSITIONS)
]
MODEL_VARIANTS += [ModelConfig(**MODEL_SIZES, key_width=width) for width in (2, 6)]  # d_v is 4


def tiny_model(seed: int = 0, *, spread: float = 1.0, **changes) -> Transformer:
    """A random model in evaluation mode; a spread above 1 makes it surer of its predictions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(ModelConfig(**SMALL | changes)).eval()
    with torch.no_grad():
        model.generator.weight *= spread
    return model


def on_paper(config: ModelConfig) -> Transformer:
    """The model without its numbers: built at once, whatever its size."""
    with torch.device("meta"):
        return Transformer(config)


def tiny_preset(name: str, vocab_size: int, **changes) -> ModelConfig:
    """In the place of model_preset: the same small configuration under each name."""
    return ModelConfig(**SMALL | dict(vocab_size=vocab_size, max_len=64, dropout=0.2) | changes)


def random_ids(length: int, *, seed: int, vocab_size: int = 12) -> list[int]:
    """Ids of real tokens."""
    rng = random.Random(f"{length}/{seed}")
    return [rng.randrange(len(SPECIALS), vocab_size) for _ in range(length)]


def sources(lengths: list[int], *, seed: int = 0, vocab_size: int = 12) -> list[list[int]]:
    """Random source sentences, each closed by </s>."""
    return [random_ids(n, seed=seed + row, vocab_size=vocab_size) + [EOS_ID] for row, n in enumerate(lengths)]


def padded(rows: list[list[int]], longest: int = 0) -> Tensor:
    """Rows of ids to a batch, with at least so many columns."""
    return pad([*rows, [PAD_ID] * longest])[:-1]


def tiny_batch() -> tuple[Tensor, Tensor]:
    """Three sources and the inputs of their targets, (3, src_len) and (3, tgt_len), with padding in both."""
    return padded(sources([5, 3, 1])), padded([[1, *random_ids(4, seed=1)], [1, *random_ids(2, seed=2)], [1]])


def toy_translator(seed: int = 0, *, spread: float = 2.0, **changes) -> Translator:
    """An untrained translator with subwords of the toy sentences."""
    tokenizer = Tokenizer.train([text for pair in toy_pairs() for text in pair], 80)
    return Translator(tiny_model(seed, spread=spread, **{"vocab_size": tokenizer.vocab_size} | changes), tokenizer)


class Echo(Translator):
    """Knows placeholders, and says what it read."""

    def __init__(self):
        tokenizer = Tokenizer.train([*TEXTS, *PLACEHOLDERS, "Is it 5 or 1234567890? , !"], 90)
        super().__init__(tiny_model(vocab_size=tokenizer.vocab_size), tokenizer)

    def _search(self, src, beam_size, length_penalty):
        rows = [[i for i in row if i not in (0, 2)] for row in src.tolist()]
        return [[Hypothesis(row, -1.0, -1.0, True)] for row in rows]
