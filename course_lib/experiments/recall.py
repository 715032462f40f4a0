"""Who has what? Five architectures recall a fact that was told longer and longer ago."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.alternatives import GatedConvolution, StateSpaceMixing
from course_lib.blocks import EncoderLayer, FeedForward, LayerNorm, Residual
from course_lib.experiments.grid import Grid
from course_lib.experiments.timed import train_for, train_steps
from course_lib.masks import causal_mask
from course_lib.position import Rotary

NAMES, THINGS, FILLERS = 4, 8, 8
FACTS, QUESTIONS = NAMES * THINGS, NAMES  # a fact is one token, "Anna has the ball"; so is a question, "Anna?"
VOCABULARY = FACTS + QUESTIONS + FILLERS
TRAINED, TESTED = 64, (64, 256)  # tokens in a story
BATCH, SECONDS = 32, 6.0
VALID, TEST = 200, 100  # seeds of stories that no training has
BINS = (1, 3, 5, 9, 17, 33, 65, 129, 257)  # distances, from each to the one before the next
SIZE = 34_000  # parameters that each side comes nearest to
ARCHITECTURES = ("transformer", "lstm", "gru", "convolution", "state space")


def stories(number: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random stories: who has what is told once, in the first half; later a quarter of the tokens asks for it.

    Returns:
        ids (number, length); the thing that is asked for, −1 where nothing is; and how many tokens ago it was told, 0
        where nothing is asked; each (number, length).
    """
    place = torch.rand(number, length // 2, generator=generator).argsort(dim=1)[:, :NAMES]  # of each name's fact
    thing = torch.randint(THINGS, (number, NAMES), generator=generator)
    ids = FACTS + QUESTIONS + torch.randint(FILLERS, (number, length), generator=generator)
    who = torch.randint(NAMES, (number, length), generator=generator)
    distance = torch.arange(length) - place.gather(1, who)  # (number, length)
    asked = (torch.rand(number, length, generator=generator) < 0.25) & (distance > 0)
    ids = torch.where(asked, FACTS + who, ids)
    ids = ids.scatter(1, place, torch.arange(NAMES) * THINGS + thing)
    asked &= ids >= FACTS  # another name's fact may stand here
    return ids, torch.where(asked, thing.gather(1, who), -1), torch.where(asked, distance, 0)


class Recurrent(nn.Module):
    """torch's LSTM or GRU as a layer, its width the model's."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU], d_model: int):
        super().__init__()
        self.cells = kind(d_model, d_model, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) to such a tensor."""
        return self.cells(x)[0]


class Mixed(nn.Module):
    """What mixes the tokens, then the feed-forward network, each in a pre-norm residual path."""

    def __init__(self, mixing: nn.Module, d_model: int, d_ff: int):
        super().__init__()
        self.mixing, self.feed_forward = mixing, FeedForward(d_model, d_ff)
        self.mixing_path, self.feed_forward_path = (Residual(d_model, 0.0, True) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) to such a tensor."""
        return self.feed_forward_path(self.mixing_path(x, self.mixing), self.feed_forward)


class Reader(nn.Module):
    """Layers of one kind, none of which sees what comes later, and scores of the things at every token.

    Args:
        architecture: one of ARCHITECTURES.
        d_model: width.
        d_ff: of the feed-forward networks.
        layers: how many.
        position: of the Transformer: "rotary", or "none", where only the causal mask tells the order.
        kernel_width: of the convolutions.

    Raises:
        ValueError: on an unknown architecture.
    """

    def __init__(
        self,
        architecture: str,
        d_ff: int,
        *,
        d_model: int = 32,
        layers: int = 2,
        position: str = "none",
        kernel_width: int = 5,
    ):
        super().__init__()
        if architecture not in ARCHITECTURES:
            raise ValueError(f"architecture must be one of {', '.join(ARCHITECTURES)}; got {architecture!r}")
        self.attends = architecture == "transformer"
        self.embedding = nn.Embedding(VOCABULARY, d_model)
        relative = Rotary(max(TESTED), d_model // 4) if position == "rotary" else None

        def layer() -> nn.Module:
            if self.attends:
                return EncoderLayer(d_model, 4, d_ff, 0.0, norm_first=True, relative=relative)
            mixing = {
                "lstm": lambda: Recurrent(nn.LSTM, d_model),
                "gru": lambda: Recurrent(nn.GRU, d_model),
                "convolution": lambda: GatedConvolution(d_model, kernel_width, causal=True),
                "state space": lambda: StateSpaceMixing(d_model, 8, both_ways=False),
            }[architecture]()
            return Mixed(mixing, d_model, d_ff)

        self.layers = nn.ModuleList(layer() for _ in range(layers))
        self.norm, self.output = LayerNorm(d_model), nn.Linear(d_model, THINGS)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (batch, length) to logits of the things (batch, length, things)."""
        x = self.embedding(ids)
        mask = (causal_mask(ids.shape[1]),) if self.attends else ()
        for layer in self.layers:
            x = layer(x, *mask)
        return self.output(self.norm(x))


def reader_of_size(architecture: str, **options) -> Reader:
    """The reader whose number of parameters is nearest to SIZE; d_ff follows."""
    sizes = []
    for d_ff in (1, 2):
        with torch.device("meta"):
            sizes.append(sum(each.numel() for each in Reader(architecture, d_ff, **options).parameters()))
    d_ff = 1 + round((SIZE - sizes[0]) / (sizes[1] - sizes[0]))
    return Reader(architecture, max(1, d_ff), **options)


@torch.no_grad()
def right_by_distance(reader: Reader, length: int, *, number: int = 200, seed: int = TEST) -> list[float | None]:
    """The share of right answers for each of BINS' distances; None where a story has no such distance."""
    ids, things, distance = stories(number, length, torch.Generator().manual_seed(seed + length))
    right = (reader(ids).argmax(dim=-1) == things).float()
    shares = []
    for first, after in zip(BINS[:-1], BINS[1:], strict=True):
        here = (distance >= first) & (distance < after)
        shares.append(round(right[here].mean().item(), 4) if here.any() else None)
    return shares


@torch.no_grad()
def right_answers(reader: Reader, length: int, *, number: int = 200, seed: int = TEST) -> float:
    """The share of right answers at all distances."""
    ids, things, _ = stories(number, length, torch.Generator().manual_seed(seed + length))
    return (reader(ids).argmax(dim=-1) == things)[things >= 0].float().mean().item()


def train_to_recall(
    reader: Reader, *, rate: float, seed: int, seconds: float = SECONDS, steps: int | None = None
) -> list[dict]:
    """Trains on new stories of 64 tokens for a time, or for so many steps; measures the accuracy by distance ten times.

    Returns:
        the measurements, see train_for.
    """
    generator = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        ids, things, _ = stories(BATCH, TRAINED, generator)
        asked = things >= 0
        return F.cross_entropy(reader(ids)[asked], things[asked])

    def measure() -> dict:
        return {"by_distance": right_by_distance(reader, TRAINED, number=100)}

    if steps is not None:
        return train_steps(steps, reader, loss, rate=rate, measure=measure)
    return train_for(seconds, reader, loss, rate=rate, measure=measure)


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one reader and examines it, on stories as long as the trained ones and four times as long.

    Returns:
        valid: the share of right answers on the validation stories, of the trained length, by which is chosen;
        parameters and steps; accuracy and by_distance: at each tested length; history: see train_to_recall.
    """
    choices = dict(choices)
    rate, seconds = choices.pop("rate"), choices.pop("seconds")
    torch.manual_seed(seed)
    reader = reader_of_size(**choices)
    history = train_to_recall(reader, rate=rate, seed=seed, seconds=seconds)
    return {
        "valid": right_answers(reader, TRAINED, seed=VALID),
        "parameters": sum(each.numel() for each in reader.parameters()),
        "steps": history[-1]["steps"],
        "accuracy": [round(right_answers(reader, length), 4) for length in TESTED],
        "by_distance": [right_by_distance(reader, length) for length in TESTED],
        "history": history,
    }


EQUAL = dict(seconds=SECONDS, rate=(3e-3, 1e-2, 2e-2))
LONGER = dict(seconds=4 * SECONDS)  # at the rate that was chosen for the shorter training
GRID = Grid(
    name="recall",
    question="How far back does each architecture recall a fact, after equal training time?",
    sides={
        "Transformer": EQUAL | dict(architecture="transformer", position=("none", "rotary"), rate=(3e-3, 1e-2)),
        "LSTM": EQUAL | dict(architecture="lstm", rate=(1e-3, 3e-3, 1e-2)),
        "GRU": EQUAL | dict(architecture="gru"),
        "convolution": EQUAL | dict(architecture="convolution"),
        "state space": EQUAL | dict(architecture="state space"),
        "LSTM, four times as long": LONGER | dict(architecture="lstm", rate=(3e-3,)),
        "GRU, four times as long": LONGER | dict(architecture="gru", rate=(1e-2,)),
    },
    run=run,
)
