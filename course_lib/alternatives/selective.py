"""The selective state space: what is kept and what is written is computed from the token, and all tokens at once."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.alternatives.state_space import STEPS, gated


class SelectiveStateSpace(nn.Module):
    """Keeps a matrix for each head, which shrinks with each token and takes in a key times a value.

        state[t] = a[t] · state[t - 1] + step[t] · key[t]ᵀ value[t]        y[t] = query[t] · state[t] + skip · value[t]

    with step[t] = softplus(a projection of the token) and a[t] = exp(-step[t] · decay): the token itself says how much
    of the old state stays and how much of it enters. No step depends on the state, so all tokens can be computed at
    once, as attention without softmax whose scores fade with the decays between the two tokens.

    Args:
        d_model: features; each head has d_model / num_heads of them as its value.
        d_state: width of keys and queries, which the heads share; the state has d_state · d_model numbers.
        num_heads: each has its own steps and decay; must divide d_model.
        fading: False keeps everything and lets everything in, step and a are 1: linear attention, without its norm.

    Raises:
        ValueError: if num_heads does not divide d_model.

    Paper: Dao and Gu 2024, "Transformers are SSMs" (Mamba-2), without its short convolution and norm; linear attention
    is Katharopoulos et al. 2020, "Transformers are RNNs".
    """

    def __init__(self, d_model: int, d_state: int, num_heads: int = 4, *, fading: bool = True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"num_heads must divide d_model, got {num_heads} and {d_model}")
        self.num_heads, self.fading = num_heads, fading
        self.key_proj, self.query_proj = (nn.Linear(d_model, d_state, bias=False) for _ in range(2))
        self.value_proj = nn.Linear(d_model, d_model, bias=False)
        if fading:
            self.step_proj = nn.Linear(d_model, num_heads)
            low, high = (math.log(step) for step in STEPS)
            steps = (torch.rand(num_heads) * (high - low) + low).exp()
            with torch.no_grad():
                self.step_proj.bias.copy_(steps.expm1().log())  # the inverse of softplus
            self.log_decay = nn.Parameter(torch.zeros(num_heads))
        self.skip = nn.Parameter(torch.ones(num_heads))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, length, d_model) to y of that shape, all tokens at once."""
        query, key, value, step, log_a = self.projected(x)
        since = log_a.cumsum(dim=1).transpose(1, 2)  # (batch, heads, length)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        fading = (since[..., None] - since[..., None, :]).masked_fill(later, -math.inf).exp()  # (…, queries, keys)
        scores = (query @ key.transpose(1, 2))[:, None] * fading
        y = (scores @ (step[..., None] * value).transpose(1, 2)).transpose(1, 2)  # (batch, length, heads, width)
        return (y + self.skip[:, None] * value).flatten(2)

    def scan(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The same by the recurrence, one token after another.

        Args:
            x: (batch, length, d_model).
            state: (batch, num_heads, d_state, d_model / num_heads), after the tokens before x; zeros before the first.

        Returns:
            y as x, and the newest state.
        """
        state, outputs = x.new_zeros(()) if state is None else state, []
        for query, key, value, step, log_a in zip(*(each.unbind(dim=1) for each in self.projected(x)), strict=True):
            entering = torch.einsum("bs,bhv->bhsv", key, step[..., None] * value)
            state = log_a.exp()[..., None, None] * state + entering
            outputs.append(torch.einsum("bs,bhsv->bhv", query, state) + self.skip[:, None] * value)
        return torch.stack(outputs, dim=1).flatten(2), state

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Query and key (batch, length, d_state), value (batch, length, heads, width), step and log a (…, heads)."""
        step = F.softplus(self.step_proj(x)) if self.fading else x.new_ones(*x.shape[:2], self.num_heads)
        log_a = -step * self.log_decay.exp() if self.fading else torch.zeros_like(step)
        value = self.value_proj(x).unflatten(-1, (self.num_heads, -1))
        return self.query_proj(x), self.key_proj(x), value, step, log_a


class SelectiveMixing(nn.Module):
    """As StateSpaceMixing from the left, with a selective state space: then GELU, and values · sigmoid(gates).

    Args:
        d_model, d_state, fading: as in SelectiveStateSpace.
    """

    def __init__(self, d_model: int, d_state: int, *, fading: bool = True):
        super().__init__()
        self.from_left = SelectiveStateSpace(d_model, d_state, fading=fading)
        self.output_proj = nn.Linear(d_model, 2 * d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, length, d_model) to such a tensor."""
        return gated(self.from_left(x), self.output_proj)
