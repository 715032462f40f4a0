"""Training for a given time of the processor, or a number of steps: models are compared at equal cost, or practice."""

import time
from collections.abc import Callable, Sequence
from itertools import count

import torch
from torch import Tensor, nn

WARM_UP = 0.05  # of the time


def train_for(
    seconds: float,
    model: nn.Module,
    loss: Callable[[], Tensor],
    *,
    rate: float,
    measure: Callable[[], dict] = dict,
    measurements: int = 10,
    clock: Callable[[], float] | None = None,
) -> list[dict]:
    """Adam until the time is spent; its rate rises in the first twentieth of it, and falls to 0 in a straight line.

    Only the time of the training steps counts, not that of the measurements.

    Args:
        seconds: of the processor, all threads together.
        model: is changed in place, and left in evaluation mode.
        loss: of the next batch.
        rate: the highest.
        measure: of the model in evaluation mode, plain JSON values.
        measurements: at equal distances of time, the last one at the end.
        clock: is read before and after each step; None is the processor's time.

    Returns:
        for each measurement its seconds, the steps so far, and what was measured.
    """
    clock = clock or time.process_time
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    spent, steps, found = 0.0, 0, []
    for number in range(1, measurements + 1):
        model.train()
        while spent < seconds * number / measurements:
            started = clock()
            optimizer.param_groups[0]["lr"] = rate * share_of_rate(spent / seconds)
            _step(model, optimizer, loss)
            spent, steps = spent + clock() - started, steps + 1
        model.eval()
        found.append({"seconds": round(spent, 2), "steps": steps, **measure()})
    return found


def train_steps(steps: int, model: nn.Module, loss: Callable[[], Tensor], **options) -> list[dict]:
    """As train_for, with its options, but until so many steps are done."""
    found = train_for(steps, model, loss, clock=count().__next__, **options)
    return [{name: value for name, value in each.items() if name != "seconds"} for each in found]


def share_of_rate(share: float) -> float:
    """Of the highest rate, when this share of the time is spent."""
    return min(1.0, share / WARM_UP) * max(0.0, 1 - share)


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor]) -> None:
    loss().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def seconds_a_step(calls: Sequence[Callable[[], object]], rounds: int = 5) -> list[float]:
    """The fastest of several rounds of each call, in seconds of the processor; the calls take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            started = time.process_time()
            call()
            best[index] = min(best[index], time.process_time() - started)
    return best
