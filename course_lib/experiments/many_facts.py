"""How many facts does a state of fixed size hold? Readers of one layer, and stories that tell 2 to 16 facts."""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.alternatives import SelectiveMixing, StateSpaceMixing
from course_lib.blocks import EncoderLayer, LayerNorm
from course_lib.experiments.grid import Grid
from course_lib.experiments.recall import Mixed
from course_lib.experiments.timed import train_steps
from course_lib.masks import causal_mask

NAMES, THINGS = 16, 8
COUNTS = (2, 4, 8, 16)  # facts in a story
LENGTH, BATCH, STEPS = 32, 32, 2000
VALID, TEST = 200, 100  # seeds of stories that no training has
WIDTH, SIZE = 32, 30_000  # features of a token; parameters that each side comes nearest to
ARCHITECTURES = ("transformer", "lstm", "state space", "selective", "linear attention")


def crowded_stories(number: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random stories of LENGTH tokens: the first half tells who has what, of `count` names; the second half asks.

    Returns:
        who, NAMES in a filler; what, THINGS in a question; (number, LENGTH) each; and the right answers to the
        questions, (number, LENGTH / 2).
    """
    half = LENGTH // 2
    place = torch.rand(number, half, generator=generator).argsort(dim=1)[:, :count]  # of each fact
    name = torch.rand(number, NAMES, generator=generator).argsort(dim=1)[:, :count]
    thing = torch.randint(THINGS, (number, count), generator=generator)
    who = torch.full((number, LENGTH), NAMES).scatter(1, place, name)
    what = torch.randint(THINGS, (number, LENGTH), generator=generator).scatter(1, place, thing)
    which = torch.randint(count, (number, half), generator=generator)  # of the facts each question asks for
    who[:, half:], what[:, half:] = name.gather(1, which), THINGS
    return who, what, thing.gather(1, which)


class SizedLSTM(nn.Module):
    """torch's LSTM with a state of any size between two projections."""

    def __init__(self, d_model: int, state: int):
        super().__init__()
        self.cells, self.output = nn.LSTM(d_model, state, batch_first=True), nn.Linear(state, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) to such a tensor."""
        return self.output(self.cells(x)[0])


class OneLayerReader(nn.Module):
    """One layer of a kind, none of which sees what comes later, and scores of the things at every token.

    Args:
        architecture: one of ARCHITECTURES.
        d_ff: of the feed-forward network.
        state: cells of the LSTM; real numbers of the state space, a multiple of 2 · WIDTH, or of the selective one and
            of linear attention, a multiple of WIDTH; None for attention.

    Raises:
        ValueError: on an unknown architecture.
    """

    def __init__(self, architecture: str, d_ff: int, *, state: int | None = None):
        super().__init__()
        self.attends = architecture == "transformer"
        self.who, self.what = nn.Embedding(NAMES + 1, WIDTH), nn.Embedding(THINGS + 1, WIDTH)
        if self.attends:
            self.layer = EncoderLayer(WIDTH, 4, d_ff, 0.0, norm_first=True)
        elif architecture == "lstm":
            self.layer = Mixed(SizedLSTM(WIDTH, state), WIDTH, d_ff)
        elif architecture == "state space":
            self.layer = Mixed(StateSpaceMixing(WIDTH, state // (2 * WIDTH), both_ways=False), WIDTH, d_ff)
        elif architecture in ("selective", "linear attention"):
            mixing = SelectiveMixing(WIDTH, state // WIDTH, fading=architecture == "selective")
            self.layer = Mixed(mixing, WIDTH, d_ff)
        else:
            raise ValueError(f"architecture must be one of {', '.join(ARCHITECTURES)}; got {architecture!r}")
        self.norm, self.output = LayerNorm(WIDTH), nn.Linear(WIDTH, THINGS)

    def forward(self, who: Tensor, what: Tensor) -> Tensor:
        """Stories, (batch, length) each, to logits of the answers, (batch, length / 2, things)."""
        mask = (causal_mask(who.shape[1]),) if self.attends else ()
        x = self.layer(self.who(who) + self.what(what), *mask)
        return self.output(self.norm(x[:, who.shape[1] // 2 :]))


def reader_with_state(architecture: str, state: int | None = None) -> OneLayerReader:
    """The reader whose number of parameters is nearest to SIZE; d_ff follows."""
    with torch.device("meta"):
        one, two = (OneLayerReader(architecture, d_ff, state=state) for d_ff in (1, 2))
    one, two = (sum(each.numel() for each in reader.parameters()) for reader in (one, two))
    return OneLayerReader(architecture, 1 + round((SIZE - one) / (two - one)), state=state)


@torch.no_grad()
def right_by_count(reader: nn.Module, *, number: int = 200, seed: int = TEST) -> list[float]:
    """The share of right answers in stories of each of COUNTS' numbers of facts."""
    shares = []
    for count in COUNTS:
        *told, answers = crowded_stories(number, count, torch.Generator().manual_seed(seed + count))
        right = reader(*told).argmax(dim=-1) == answers
        shares.append(round(right.float().mean().item(), 4))
    return shares


def right_with(reader: OneLayerReader, change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> list[float]:
    """right_by_count with the steps and the log a, (batch, length, heads) each, of a selective reader changed."""
    layer = reader.layer.mixing.from_left
    unchanged = layer.projected

    def changed(x: Tensor) -> tuple[Tensor, ...]:
        query, key, value, *rates = unchanged(x)
        return query, key, value, *change(*rates)

    layer.projected = changed
    try:
        return right_by_count(reader)
    finally:
        del layer.projected


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one reader on new stories, a random one of COUNTS in each batch, and examines it at each of them.

    Returns:
        valid: the mean over COUNTS of the share of right answers on the validation stories, by which is chosen;
        parameters; by_count: on the test stories; history: by_count on the validation stories, ten times. Of a
        selective reader also by_count with heads_alike, every head's step the mean of all, and with no_fading, a = 1.
    """
    torch.manual_seed(seed)
    reader = reader_with_state(choices["architecture"], choices.get("state"))
    generator = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        count = COUNTS[int(torch.randint(len(COUNTS), (), generator=generator))]
        *told, answers = crowded_stories(BATCH, count, generator)
        return F.cross_entropy(reader(*told).flatten(0, 1), answers.flatten())

    def measure() -> dict:
        return {"by_count": right_by_count(reader, number=100, seed=VALID)}

    history = train_steps(choices["steps"], reader, loss, rate=choices["rate"], measure=measure)
    results = {
        "valid": sum(right_by_count(reader, seed=VALID)) / len(COUNTS),
        "parameters": sum(each.numel() for each in reader.parameters()),
        "by_count": right_by_count(reader),
        "history": history,
    }
    if choices["architecture"] == "selective":
        results["heads_alike"] = right_with(reader, lambda step, log_a: (step.mean(-1, True).expand_as(step), log_a))
        results["no_fading"] = right_with(reader, lambda step, log_a: (step, torch.zeros_like(log_a)))
    return results


RATES = dict(steps=STEPS, rate=(3e-3, 1e-2, 2e-2))
LONGER = dict(steps=4 * STEPS, rate=1e-2)  # the rate that was chosen for the shorter training
GRID = Grid(
    name="many_facts",
    question="How many facts does a state of fixed size recall, and how many does attention?",
    sides={
        # a trial had all answers right after 200 steps
        "Transformer": dict(architecture="transformer", steps=STEPS // 4, rate=(3e-3, 1e-2)),
        "LSTM, 64 cells": RATES | dict(architecture="lstm", state=64),
        "LSTM, 32 cells": RATES | dict(architecture="lstm", state=32),
        "LSTM, 8 cells": RATES | dict(architecture="lstm", state=8),
        "state space, 512 numbers": RATES | dict(architecture="state space", state=512),
        "selective, 512 numbers": RATES | dict(architecture="selective", state=512),
        "linear attention, 512 numbers": RATES | dict(architecture="linear attention", state=512),
        "linear attention, 128 numbers": RATES | dict(architecture="linear attention", state=128),
        "selective, 128 numbers": RATES | dict(architecture="selective", state=128),
        "LSTM, 64 cells, four times as long": LONGER | dict(architecture="lstm", state=64),
        "LSTM, 8 cells, four times as long": LONGER | dict(architecture="lstm", state=8),
    },
    run=run,
)
