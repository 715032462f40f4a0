"""Scikit-learn's handwritten digits: 1,797 pictures of 8 × 8 pixels, which come with the package."""

from dataclasses import dataclass

import torch
from torch import Tensor

SIDE, CLASSES = 8, 10


@dataclass(frozen=True)
class Pictures:
    """Pictures (number, channels, side, side), values 0 to 1, and their classes (number,)."""

    pictures: Tensor
    classes: Tensor


def load_digits(*, num_valid: int = 200, num_test: int = 400, seed: int = 0) -> tuple[Pictures, Pictures, Pictures]:
    """Training, validation and test part of the digits, divided at random.

    People who wrote for one part wrote for the others, too: the package does not say who wrote what.

    Args:
        num_valid: pictures to choose by.
        num_test: pictures to report on.
        seed: of the division.

    Raises:
        ValueError: if nothing is left to train with.
    """
    from sklearn.datasets import load_digits as stored  # here, because it takes long to load and few need it

    found = stored()
    pictures = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16  # (number, 1, 8, 8)
    classes = torch.tensor(found.target)
    num_train = len(classes) - num_valid - num_test
    if min(num_train, num_valid, num_test) < 1:
        raise ValueError(f"{len(classes)} digits cannot be divided into {num_train}, {num_valid} and {num_test}")
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))
    parts = order.split([num_train, num_valid, num_test])
    return tuple(Pictures(pictures[part], classes[part]) for part in parts)
