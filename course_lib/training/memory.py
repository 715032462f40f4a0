"""What a computation holds in a CPU's memory: what it keeps for its backward pass, and the most at any moment."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


def kept_bytes(work: Callable[[], object], model: nn.Module) -> int:
    """Bytes that a forward pass keeps for the backward pass: its activations, of which the parameters are none.

    Args:
        work: the forward pass.
        model: whose parameters are not counted.
    """
    parameters = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept: dict[
        int, torch.UntypedStorage
    ] = {}  # held, or another one could take its address

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = work()
    del result
    return sum(storage.nbytes() for pointer, storage in kept.items() if pointer not in parameters)


def held_bytes(work: Callable[[], object]) -> list[int]:
    """Bytes that tensors which the work makes hold, after each one that comes or goes.

    What was there before is not counted, and below 0 is what goes of it.
    """
    with _quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    events = sorted(watched.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    return list(accumulate(event.nbytes() for event in events if event.name() == "[memory]"))


def peak_bytes(work: Callable[[], object]) -> int:
    """The most bytes that tensors which the work makes hold at once."""
    return max(held_bytes(work), default=0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the profiler says on standard error, past Python, whenever it starts and stops."""
    said = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(said, 2)
            os.close(said)
