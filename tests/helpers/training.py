"""What tests of the training share: quick runs and their batches, another Run in `fit`, and weights compared."""

import random
from collections.abc import Callable
from functools import partial
from unittest import mock

import torch
from torch import Tensor

from course_lib.data import BucketedBatches, IdPair
from course_lib.tokenizer import SPECIALS, closed
from course_lib.training import loop
from course_lib.training.run import Run
from course_lib.transformer import Transformer

fit = partial(loop.fit, progress=False)


def reversal_pairs(
    count: int, *, seed: int = 0, shortest: int = 2, longest: int = 6, vocab_size: int = 12
) -> list[IdPair]:
    """Encoded pairs, all different: the target is the source reversed."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        ids = [rng.randrange(len(SPECIALS), vocab_size) for _ in range(rng.randint(shortest, longest))]
        found[tuple(ids)] = (closed(ids), ids[::-1])
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
        with mock.patch.object(loop, "Run", run_class):
            return fit(*args, **options)

    return mutant


def weights_of(model: Transformer) -> dict[str, Tensor]:
    """A copy of all weights."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def assert_same_weights(ours: Transformer, theirs: Transformer | dict[str, Tensor], *, atol: float = 0.0) -> None:
    """Asserts equal weights, bit for bit unless a tolerance is given."""
    theirs = theirs if isinstance(theirs, dict) else theirs.state_dict()
    for name, tensor in ours.state_dict().items():
        same = torch.allclose(tensor, theirs[name], rtol=0, atol=atol)
        assert same, f"{name} differs by {(tensor - theirs[name]).abs().max()}"
