"""Sentence pairs to padded batches of about equal size, bucketed by length so that little of them is padding."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.tokenizer import BOS_ID, PAD_ID, Tokenizer, closed

IdPair = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Batch:
    """Padded ids of some sentence pairs.

    Args:
        src: (batch, src_len), each row ends with </s>.
        tgt_in: (batch, tgt_len), the target shifted right: each row starts with <s>.
        tgt_out: (batch, tgt_len), what each position must predict: each row ends with </s>.
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def num_tokens(self) -> int:
        """Target tokens to predict, padding not counted."""
        return int((self.tgt_out != PAD_ID).sum())

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return Batch(self.src.to(device), self.tgt_in.to(device), self.tgt_out.to(device))


def pad(rows: Sequence[list[int]]) -> Tensor:
    """Maps lists of ids to (rows, longest) int64, filled up with <pad>."""
    if not rows:
        raise ValueError("no sentences to pad")
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows], dtype=torch.long)


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence) -> list[IdPair]:
    """Maps sentence pairs to ids: the source with </s>, the target bare.

    Args:
        tokenizer: of both languages.
        pairs: objects with texts `src` and `tgt`.

    Raises:
        ValueError: on a pair with an empty side.
    """
    sources = tokenizer.encode_batch([pair.src for pair in pairs])
    targets = tokenizer.encode_batch([pair.tgt for pair in pairs])
    for number, (src, tgt) in enumerate(zip(sources, targets, strict=True)):
        if not src or not tgt:
            raise ValueError(f"pair {number} has an empty side: {pairs[number].src!r}, {pairs[number].tgt!r}")
    return [(closed(src), tgt) for src, tgt in zip(sources, targets, strict=True)]


class BucketedBatches:
    """Batches of pairs of like length, in an order that depends on seed and epoch only.

    Args:
        pairs: from `encode_pairs`.
        batch_tokens: most padded tokens of a batch on its longer side; a longer single sentence is a batch alone.
        seed: of the shuffling.
        noise: (epoch, index) to the pair that takes the place of pairs[index] in that epoch; the plan does not change,
            so that a batch can be somewhat larger then. Its repr must say all that it depends on.

    Raises:
        ValueError: if there are no pairs.
    """

    def __init__(
        self,
        pairs: Sequence[IdPair],
        batch_tokens: int,
        *,
        seed: int = 0,
        noise: Callable[[int, int], IdPair] | None = None,
    ):
        if not pairs:
            raise ValueError("no sentence pairs to make batches of")
        if batch_tokens < 1:
            raise ValueError(f"batch_tokens must be at least 1, got {batch_tokens}")
        self.pairs, self.batch_tokens, self.seed, self.noise = pairs, batch_tokens, seed, noise

    def checksum(self) -> str:
        """SHA-256 of all that the batches depend on, by which a resumed run knows its data."""
        parts = [self.seed, self.batch_tokens, self.pairs] + ([repr(self.noise)] if self.noise else [])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def plan(self, epoch: int) -> list[list[int]]:
        """The indices of the pairs in each batch of an epoch: every pair once."""
        rng = random.Random(f"{self.seed}/{epoch}")
        order = list(range(len(self.pairs)))
        rng.shuffle(order)  # pairs of the same length meet in another order each epoch
        order.sort(key=lambda index: (len(self.pairs[index][1]), len(self.pairs[index][0])))
        batches, longest = [[]], 0
        for index in order:
            src, tgt = self.pairs[index]
            longest = max(longest, len(src), len(tgt) + 1)
            if batches[-1] and longest * (len(batches[-1]) + 1) > self.batch_tokens:
                batches.append([])
                longest = max(len(src), len(tgt) + 1)
            batches[-1].append(index)
        rng.shuffle(batches)
        return batches

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from number `start` on."""
        for indices in self.plan(epoch)[start:]:
            yield make_batch([self.noise(epoch, i) if self.noise else self.pairs[i] for i in indices])


def make_batch(pairs: Sequence[IdPair]) -> Batch:
    """Pads encoded pairs and shifts their targets right; ValueError without pairs."""
    return Batch(
        src=pad([src for src, _ in pairs]),
        tgt_in=pad([[BOS_ID, *tgt] for _, tgt in pairs]),
        tgt_out=pad([closed(tgt) for _, tgt in pairs]),
    )
