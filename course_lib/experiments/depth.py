"""To whom does the child give that I give to? What depth is good for, and what lets a deep stack learn."""

import math
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.blocks import LayerNorm
from course_lib.config import ModelConfig
from course_lib.experiments.grid import Grid
from course_lib.transformer import Embedding, Encoder

CHILDREN = "Ada Ben Cleo Dan Eva Finn Gil Hana".split()
BATCH, D_MODEL, HEADS = 32, 32, 4
VALID, TEST = 200, 100  # seeds of draws that no training has
EVERY, WATCHED = 20, 100  # steps between two looks at a stack in training, and the draws it is looked at with


def draw_names(number: int, generator: torch.Generator) -> Tensor:
    """Each child draws the name of a child, its own perhaps, and no name is drawn twice.

    Returns:
        ids of CHILDREN, (number, children): at each child's place the child that it gives a present to.
    """
    return torch.rand(number, len(CHILDREN), generator=generator).argsort(dim=1)


def look_up(gives_to: Tensor, times: int) -> Tensor:
    """Whom we reach from each child: with one look-up the child that is given to by the child that it gives to.

    Args:
        gives_to: (number, children).
        times: look-ups, from 1 on.
    """
    reached = gives_to
    for _ in range(times):
        reached = gives_to.gather(1, reached)
    return reached


class SwitchedPath(nn.Module):
    """The path around one sub-layer with a switch for each part, and no dropout.

    Args:
        d_model: width.
        residual: whether the input is added to what the sub-layer returns.
        norm: "" is none, "pre" before the sub-layer, "post" after the sum.
    """

    def __init__(self, d_model: int, residual: bool, norm: str):
        super().__init__()
        self.residual, self.place = residual, norm
        self.norm = LayerNorm(d_model) if norm else nn.Identity()

    def forward(self, x: Tensor, sublayer) -> Tensor:
        """x (batch, length, d_model) and a function of such tensors, to such a tensor."""
        change = sublayer(self.norm(x) if self.place == "pre" else x)
        total = x + change if self.residual else change
        return self.norm(total) if self.place == "post" else total


class Chaser(nn.Module):
    """A stack of encoder layers that scores all children at each child's place.

    Args:
        num_layers: of the stack.
        norm_first: False is the paper's post-norm, True pre-norm.
        final_norm: whether a pre-norm stack ends with a norm.
        width: d_model; d_ff is twice as much.
        residual, norm: False leaves that part out of each path around a sub-layer.

    Weights start as in Transformer; the embedding's table also scores the children.
    """

    def __init__(
        self,
        num_layers: int,
        *,
        norm_first: bool,
        final_norm: bool = True,
        width: int = D_MODEL,
        residual: bool = True,
        norm: bool = True,
    ):
        super().__init__()
        sizes = dict(d_model=width, num_heads=HEADS, d_ff=2 * width, num_layers=num_layers, dropout=0.0)
        config = ModelConfig(len(CHILDREN), **sizes, norm_first=norm_first)
        self.embedding, self.encoder = Embedding(config), Encoder(config)
        if not final_norm:
            self.encoder.norm = nn.Identity()
        if not (residual and norm):
            place = ("pre" if norm_first else "post") if norm else ""
            for layer in self.encoder.layers:
                layer.self_attn_path = SwitchedPath(width, residual, place)
                layer.feed_forward_path = SwitchedPath(width, residual, place)
        for name, parameter in self.named_parameters():
            if name == "embedding.table.weight":
                nn.init.normal_(parameter, std=width**-0.5)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def encode(self, gives_to: Tensor) -> Tensor:
        """(batch, children) to vectors (batch, children, d_model)."""
        return self.encoder(self.embedding(gives_to))

    def forward(self, gives_to: Tensor) -> Tensor:
        """(batch, children) to logits (batch, children, children)."""
        return self.encode(gives_to) @ self.embedding.table.weight.T


def chase_loss(model: nn.Module, gives_to: Tensor, times: int) -> Tensor:
    """Nats per child."""
    return F.cross_entropy(model(gives_to).flatten(0, 1), look_up(gives_to, times).flatten())


def train_chaser(
    model: nn.Module,
    times: int,
    *,
    rate: float,
    warmup: int = 0,
    steps: int,
    seed: int,
    watch: Callable[[int], None] | None = None,
) -> list[float]:
    """Trains with Adam, at a rate that stays, after a linear warm-up of so many steps.

    Args:
        watch: is called with the number of the step, from 0 on, before each.

    Returns:
        the loss before each step.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    device, losses = next(model.parameters()).device, []
    for step in range(steps):
        if watch:
            watch(step)
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / max(1, warmup))
        loss = chase_loss(model, draw_names(BATCH, generator).to(device), times)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def own_share(vectors: Tensor) -> float:
    """What is left of the vectors' length without the mean over the tokens: 0 where all tokens have one vector."""
    own = vectors - vectors.mean(dim=-2, keepdim=True)  # (..., length, d_model)
    return (own.norm() / vectors.norm()).item()


@torch.no_grad()
def chased_share(model: nn.Module, times: int, *, number: int = 500, seed: int = TEST) -> float:
    """The share of right answers on new draws."""
    gives_to = draw_names(number, torch.Generator().manual_seed(seed)).to(next(model.parameters()).device)
    return (model(gives_to).argmax(dim=-1) == look_up(gives_to, times)).float().mean().item()


def _rounded(number: float, digits: int = 3) -> float | None:
    """To so many digits; None for what JSON has no number for, as after a training that diverged."""
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one stack.

    Returns:
        valid and accuracy: shares of right answers, to choose the rate by and to report;
        losses: means over every 20 steps; first_loss: before the first step; own_share: of its vectors in the end;
        own_shares and accuracies: the same before every 20th step and in the end, accuracies on few draws;
        None where the vectors or the loss are no longer finite.
    """
    training = {name: choices[name] for name in ("times", "rate", "warmup", "steps")}
    torch.manual_seed(seed)
    model = Chaser(**{name: value for name, value in choices.items() if name not in training})
    gives_to = draw_names(WATCHED, torch.Generator().manual_seed(TEST))
    own_shares, accuracies = [], []

    def watch(step: int) -> None:
        if step % EVERY == 0:
            with torch.no_grad():
                own_shares.append(_rounded(own_share(model.encode(gives_to))))
            accuracies.append(round(chased_share(model, choices["times"], number=WATCHED), 4))

    losses = train_chaser(model, seed=seed, watch=watch, **training)
    watch(choices["steps"])
    with torch.no_grad():
        vectors = model.encode(gives_to)
    return {
        "valid": chased_share(model, choices["times"], seed=VALID),
        "accuracy": chased_share(model, choices["times"]),
        "losses": [_rounded(mean, 5) for mean in torch.tensor(losses).unflatten(0, (-1, EVERY)).mean(dim=1).tolist()],
        "first_loss": losses[0],
        "own_share": _rounded(own_share(vectors), 9),
        "own_shares": own_shares,
        "accuracies": accuracies,
    }


RATES, FEW_RATES, DEEP_RATES = (1e-3, 3e-3, 1e-2), (1e-3, 3e-3), (3e-4, 1e-3)
LESS = {
    "plain": dict(norm_first=False, residual=False, norm=False),
    "residual only": dict(norm_first=False, norm=False),
    "norm only": dict(norm_first=True, residual=False),
}
WAYS = {"post-norm": dict(norm_first=False), "pre-norm": dict(norm_first=True)}
WARM = {"post-norm, warm-up": dict(norm_first=False, warmup=100)}
MORE = {
    "pre-norm, warm-up": dict(norm_first=True, warmup=100),
    "pre-norm, no final norm": dict(norm_first=True, final_norm=False),
}
REACH = {
    "one layer": dict(num_layers=1),
    "one layer, twice as wide": dict(num_layers=1, width=2 * D_MODEL),
    "two layers": dict(num_layers=2),
}


def _sides() -> dict[str, dict]:
    """Six layers, and 24, built in each way, at some rates, and what reaches two look-ups far."""
    six = dict(num_layers=6, times=1, warmup=0, steps=300)
    deep, far = six | {"num_layers": 24}, dict(norm_first=True, times=2, warmup=0, steps=1200, rate=RATES[1:])
    stacks = (
        *(("", six, LESS, FEW_RATES), ("", six, WAYS | WARM | MORE, RATES)),
        *(("24 layers, ", deep, LESS | WAYS, DEEP_RATES), ("24 layers, ", deep, WARM, DEEP_RATES[1:])),
    )
    sides = {
        f"{depth}{way}, {rate:g}": sizes | choices | {"rate": rate}
        for depth, sizes, ways, rates in stacks
        for way, choices in ways.items()
        for rate in rates
    }
    return sides | {way: far | choices for way, choices in REACH.items()}


GRID = Grid(
    name="depth",
    question="What is depth good for, and which paths, norm, rate and warm-up let a deep stack learn?",
    sides=_sides(),
    run=run,
)
