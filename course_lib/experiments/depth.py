"""To whom does the child give that I give to? What depth is good for, and what lets a deep stack learn."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import ModelConfig
from course_lib.experiments.grid import Grid
from course_lib.transformer import Embedding, Encoder

CHILDREN = "Ada Ben Cleo Dan Eva Finn Gil Hana".split()
BATCH, D_MODEL, HEADS = 32, 32, 4
VALID, TEST = 200, 100  # seeds of draws that no training has


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


class Chaser(nn.Module):
    """A stack of encoder layers that scores all children at each child's place.

    Args:
        num_layers: of the stack.
        norm_first: False is the paper's post-norm, True pre-norm.
        final_norm: whether a pre-norm stack ends with a norm.
        width: d_model; d_ff is twice as much.

    Weights start as in Transformer; the embedding's table also scores the children.
    """

    def __init__(self, num_layers: int, *, norm_first: bool, final_norm: bool = True, width: int = D_MODEL):
        super().__init__()
        sizes = dict(d_model=width, num_heads=HEADS, d_ff=2 * width, num_layers=num_layers, dropout=0.0)
        config = ModelConfig(len(CHILDREN), **sizes, norm_first=norm_first)
        self.embedding, self.encoder = Embedding(config), Encoder(config)
        if not final_norm:
            self.encoder.norm = nn.Identity()
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


def train_chaser(model: nn.Module, times: int, *, rate: float, warmup: int = 0, steps: int, seed: int) -> list[float]:
    """Trains with Adam, at a rate that stays, after a linear warm-up of so many steps.

    Returns:
        the loss before each step.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    device, losses = next(model.parameters()).device, []
    for step in range(steps):
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


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one stack.

    Returns:
        valid and accuracy: shares of right answers, to choose the rate by and to report;
        losses: means over every 20 steps; first_loss: before the first step; own_share: of its vectors in the end.
    """
    training = {name: choices[name] for name in ("times", "rate", "warmup", "steps")}
    torch.manual_seed(seed)
    model = Chaser(**{name: value for name, value in choices.items() if name not in training})
    losses = train_chaser(model, seed=seed, **training)
    with torch.no_grad():
        vectors = model.encode(draw_names(100, torch.Generator().manual_seed(TEST)))
    return {
        "valid": chased_share(model, choices["times"], seed=VALID),
        "accuracy": chased_share(model, choices["times"]),
        "losses": [round(mean, 4) for mean in torch.tensor(losses).unflatten(0, (-1, 20)).mean(dim=1).tolist()],
        "first_loss": losses[0],
        "own_share": own_share(vectors),
    }


RATES = (1e-3, 3e-3, 1e-2)
WAYS = {
    "post-norm": dict(norm_first=False),
    "post-norm, warm-up": dict(norm_first=False, warmup=100),
    "pre-norm": dict(norm_first=True),
    "pre-norm, warm-up": dict(norm_first=True, warmup=100),
    "pre-norm, no final norm": dict(norm_first=True, final_norm=False),
}
REACH = {
    "one layer": dict(num_layers=1),
    "one layer, twice as wide": dict(num_layers=1, width=2 * D_MODEL),
    "two layers": dict(num_layers=2),
}


def _sides() -> dict[str, dict]:
    """Six layers with each norm at each rate, and what reaches two look-ups far."""
    six = dict(num_layers=6, times=1, warmup=0, steps=300)
    sides = {f"{way}, {rate:g}": six | choices | {"rate": rate} for way, choices in WAYS.items() for rate in RATES}
    far = dict(norm_first=True, times=2, warmup=0, steps=1200, rate=RATES[1:])
    return sides | {way: far | choices for way, choices in REACH.items()}


GRID = Grid(
    name="depth",
    question="What is depth good for, and which norm, rate and warm-up let a deep stack learn?",
    sides=_sides(),
    run=run,
)
