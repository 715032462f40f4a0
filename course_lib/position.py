"""Where a token stands: the sinusoidal table of the paper, and learned positions."""

import torch
from torch import Tensor, nn


def sinusoidal(max_len: int, d_model: int, *, base: float = 10000.0) -> Tensor:
    """The sinusoidal encodings: PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i+1) = cos(the same angle).

    Args:
        max_len: number of positions.
        d_model: width; must be even, because dimensions 2i and 2i+1 share one wavelength.
        base: the longest wavelength approaches 2π · base positions.

    Returns:
        (max_len, d_model), computed in float64 and rounded to the default dtype.

    Raises:
        ValueError: if d_model is odd.

    Paper: section 3.5.
    """
    if d_model % 2:
        raise ValueError(f"sinusoidal positions pair the dimensions: d_model must be even, got {d_model}")
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i, shared by a sine and a cosine
    angle = torch.arange(max_len, dtype=torch.float64)[:, None] / base ** (pair / d_model)  # (max_len, d_model / 2)
    table = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (max_len, d_model / 2, 2)
    return table.flatten(1).to(torch.get_default_dtype())  # (max_len, d_model), sine and cosine interleaved


class SinusoidalPosition(nn.Module):
    """Adds the sinusoidal table to embedded tokens; nothing is learned.

    Args:
        max_len: longest sentence in tokens.
        d_model: width; even.

    Paper: section 3.5.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.register_buffer("table", sinusoidal(max_len, d_model), persistent=False)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """x plus the encodings of positions start, start + 1, …

        Args:
            x: (batch, length, d_model).
            start: position of the first token, above 0 when earlier ones are cached.

        Raises:
            ValueError: if x has another shape, or the sentence is longer than max_len.
        """
        _check(x, self.table, start)
        return x + self.table[start : start + x.shape[1]]


class LearnedPosition(nn.Module):
    """Adds one learned vector for each position to embedded tokens.

    Args:
        max_len: longest sentence in tokens.
        d_model: width.

    Paper: section 3.5 and table 3, row (E).
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """As SinusoidalPosition.forward."""
        _check(x, self.table, start)
        return x + self.table[start : start + x.shape[1]]


def _check(x: Tensor, table: Tensor, start: int) -> None:
    max_len, d_model = table.shape
    if x.dim() != 3 or x.shape[-1] != d_model:
        raise ValueError(f"expected (batch, length, {d_model}), got {tuple(x.shape)}")
    if start + x.shape[1] > max_len:
        raise ValueError(f"the sentence has {start + x.shape[1]} tokens, the model has positions for {max_len}")
