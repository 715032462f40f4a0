"""Small models and data that many tests share, and ways to break the library on purpose."""

import copy
import itertools
import random
from collections.abc import Callable
from functools import partial
from unittest import mock

import torch
from torch import Tensor

from course_lib.config import POSITIONS, ModelConfig
from course_lib.data.batches import BucketedBatches, IdPair, pad
from course_lib.data.corpus import Pair
from course_lib.tokenizer import EOS_ID, SPECIALS, Tokenizer
from course_lib.training import loop as training
from course_lib.training.run import Run
from course_lib.transformer import Transformer
from course_lib.translator import Translator

SMALL = dict(vocab_size=12, d_model=16, num_heads=2, num_layers=2, d_ff=32, dropout=0.0, max_len=24, tie_weights=False)

MODEL_SIZES = dict(vocab_size=23, d_model=12, num_heads=3, num_layers=3, d_ff=20, max_len=9)
MODEL_VARIANTS = [
    ModelConfig(**MODEL_SIZES, tie_weights=tied, norm_first=norm_first, position=position)
    for tied, norm_first, position in itertools.product((True, False), (True, False), POSITIONS)
]

fit = partial(training.fit, progress=False)


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


def random_ids(length: int, *, seed: int, vocab_size: int = 12) -> list[int]:
    """Ids of real tokens."""
    rng = random.Random(f"{length}/{seed}")
    return [rng.randrange(len(SPECIALS), vocab_size) for _ in range(length)]


def sources(lengths: list[int], *, seed: int = 0, vocab_size: int = 12) -> list[list[int]]:
    """Random source sentences, each closed by </s>."""
    return [random_ids(n, seed=seed + row, vocab_size=vocab_size) + [EOS_ID] for row, n in enumerate(lengths)]


def padded(rows: list[list[int]]) -> Tensor:
    """Rows of ids to a batch."""
    return pad(rows)


def reversal_pairs(
    count: int, *, seed: int = 0, shortest: int = 2, longest: int = 6, vocab_size: int = 12
) -> list[IdPair]:
    """Encoded pairs, all different: the target is the source reversed."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        ids = [rng.randrange(len(SPECIALS), vocab_size) for _ in range(rng.randint(shortest, longest))]
        found[tuple(ids)] = (ids + [EOS_ID], ids[::-1])
    return list(found.values())


class FixedBatches(BucketedBatches):
    """Batches that are given, in the same order in each epoch."""

    def __init__(self, groups: list[list[IdPair]]):
        super().__init__([pair for group in groups for pair in group], batch_tokens=1)
        indices = iter(range(len(self.pairs)))
        self.groups = [[next(indices) for _ in group] for group in groups]

    def plan(self, epoch: int) -> list[list[int]]:
        """The indices of the pairs in each batch."""
        return self.groups


def fit_with(run_class: type[Run]) -> Callable:
    """`fit` with another class in the place of Run: a mutant of it."""

    def mutant(*args, **options):
        with mock.patch.object(training, "Run", run_class):
            return fit(*args, **options)

    return mutant


def patched(function: Callable, *patches) -> Callable:
    """The function with the given mock.patch objects in force while it runs: a mutant of it."""

    def mutant(*args, **options):
        for patch in patches:
            patch.start()
        try:
            return function(*args, **options)
        finally:
            for patch in patches:
                patch.stop()

    return mutant


def changed(change: Callable) -> Callable:
    """A function that returns a copy of what it is given, to which `change` was done."""

    def broken(view):
        view = copy.deepcopy(view)
        change(view)
        return view

    return broken


def raised(kind: type[BaseException], call: Callable) -> BaseException | None:
    """The exception of this kind that the call raises, or None."""
    try:
        call()
    except kind as error:
        return error
    return None


def weights_of(model: Transformer) -> dict[str, Tensor]:
    """A copy of all weights."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def assert_same_weights(ours: Transformer, theirs: Transformer | dict[str, Tensor], *, atol: float = 0.0) -> None:
    """Asserts equal weights, bit for bit unless a tolerance is given."""
    theirs = theirs if isinstance(theirs, dict) else theirs.state_dict()
    for name, tensor in ours.state_dict().items():
        same = torch.allclose(tensor, theirs[name], rtol=0, atol=atol)
        assert same, f"{name} differs by {(tensor - theirs[name]).abs().max()}"


NOUNS = {"dog": "Hund", "cat": "Katze", "child": "Kind", "bird": "Vogel", "horse": "Pferd", "man": "Mann"}
VERBS = {"sees": "sieht", "hears": "hört", "likes": "mag", "knows": "kennt", "seeks": "sucht"}


def toy_pairs() -> list[Pair]:
    """180 little sentences and their word-for-word translations."""
    return [
        Pair(f"a {subject} {verb} a {thing} .", f"ein {NOUNS[subject]} {VERBS[verb]} ein {NOUNS[thing]} .")
        for subject in NOUNS
        for verb in VERBS
        for thing in NOUNS
    ]


def toy_translator(seed: int = 0, *, spread: float = 2.0, **changes) -> Translator:
    """An untrained translator with subwords of the toy sentences."""
    tokenizer = Tokenizer.train([text for pair in toy_pairs() for text in pair], 80)
    return Translator(tiny_model(seed, spread=spread, **{"vocab_size": tokenizer.vocab_size} | changes), tokenizer)
