"""Where a token stands: added to it (sinusoidal, learned), put beside it, or told to attention (biases, rotary)."""

import torch
from torch import Tensor, nn

from course_lib.config import check_numbers, check_sizes, require
from course_lib.masks import LONGEST, check_tensor


def sinusoidal(max_len: int, d_model: int, *, base: float = 10000.0) -> Tensor:
    """The sinusoidal encodings: PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i+1) = cos(the same angle).

    Args:
        max_len: number of positions.
        d_model: width; must be even, because dimensions 2i and 2i+1 share one wavelength.
        base: the longest wavelength approaches 2π · base positions.

    Returns:
        (max_len, d_model), computed in float64 and rounded to the default dtype.

    Raises:
        ValueError: if d_model is odd, a size is no whole number from 1 on, or the base is not above 0.

    Paper: section 3.5.
    """
    check_sizes(max_len=max_len, d_model=d_model)
    check_numbers(base=base)
    require(base > 0, f"base must be above 0, got {base}")
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
        base: as in `sinusoidal`.

    Paper: section 3.5.
    """

    def __init__(self, max_len: int, d_model: int, *, base: float = 10000.0):
        super().__init__()
        self.register_buffer("table", sinusoidal(max_len, d_model, base=base), persistent=False)

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
        std: standard deviation of the numbers that it starts from; 1 / √d_model where none is given. Sinusoids have
            √½, and a table that is to be compared with them should be given the same chance.

    Paper: section 3.5 and table 3, row (E).
    """

    def __init__(self, max_len: int, d_model: int, *, std: float | None = None):
        super().__init__()
        check_sizes(max_len=max_len, d_model=d_model)
        std = d_model**-0.5 if std is None else std
        require(0 <= std < 1e30, f"std must be 0 or more, and finite, got {std}")
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=std)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """As SinusoidalPosition.forward."""
        _check(x, self.table, start)
        return x + self.table[start : start + x.shape[1]]


class ConcatenatedPosition(nn.Module):
    """Puts the sinusoidal table beside narrower embedded tokens, instead of adding it to wide ones.

    Args:
        max_len: longest sentence in tokens.
        d_model: width of the result.
        d_position: how much of it is the position; even, below d_model.

    Raises:
        ValueError: if d_position is odd or leaves the tokens no room.

    Paper: not in it; section 3.5 adds, for which both need d_model features.
    """

    def __init__(self, max_len: int, d_model: int, d_position: int):
        super().__init__()
        check_sizes(max_len=max_len, d_model=d_model)
        if not 0 < d_position < d_model:
            raise ValueError(f"d_position must be between 0 and d_model, got {d_position=}, {d_model=}")
        self.d_token = d_model - d_position
        self.register_buffer("table", sinusoidal(max_len, d_position), persistent=False)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """(batch, length, d_model - d_position) to (batch, length, d_model); else as SinusoidalPosition.forward."""
        _check(x, self.table, start, width=self.d_token)
        table = self.table[start : start + x.shape[1]].to(x.dtype)
        return torch.cat([x, table.expand(len(x), -1, -1)], dim=-1)


class RelativeBias(nn.Module):
    """Attention with one learned number for each head and offset, added to the scores; all start at 0.

    Offsets beyond `farthest` words share the number at that end. Shaw et al. 2018 learn a vector for each offset and
    clip as we do; Raffel et al. 2020 (T5) learn a number as we do, and put far offsets into ever wider buckets.

    Args:
        num_heads: heads.
        farthest: the largest offset that has a number of its own, in words, on either side of the query.

    Raises:
        ValueError: if a size is no whole number from 1 on: with 0, before, here and after could not be told apart.
    """

    def __init__(self, num_heads: int, farthest: int):
        super().__init__()
        check_sizes(num_heads=num_heads, farthest=farthest)
        self.farthest = farthest
        self.table = nn.Parameter(torch.zeros(num_heads, 2 * farthest + 1))

    def bias(self, queries: int, keys: int) -> Tensor:
        """As ALiBi.bias."""
        offset = _offsets(queries, keys, self.table.device).clamp(-self.farthest, self.farthest)
        return self.table[:, offset + self.farthest]  # (heads, queries, keys)

    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As ALiBi.forward."""
        _check_heads(query, keys)
        return query, keys, self.bias(query.shape[-2], keys.shape[-2]).to(query.dtype)


class ALiBi(nn.Module):
    """Attention with linear biases: each head prefers near keys, with a slope of its own; nothing is learned.

    Before the query, head h (from 0) subtracts 2^(-8(h + 1) / num_heads) for each token of distance, as Press et al.
    2022 do in a decoder. They see no keys after the query; there we take the slopes of the heads in reverse order,
    because with one slope for both directions an encoder could not tell left from right.

    Args:
        num_heads: heads.
        scale: factor on all slopes; 1 is Press et al.'s.
    """

    def __init__(self, num_heads: int, *, scale: float = 1.0):
        super().__init__()
        check_sizes(num_heads=num_heads)
        check_numbers(scale=scale)
        require(abs(scale) < 1e30, f"scale must be a finite number, got {scale}")
        exponents = -8.0 * torch.arange(1, num_heads + 1, dtype=torch.float64) / num_heads
        self.register_buffer("slopes", (scale * 2**exponents).to(torch.get_default_dtype()), persistent=False)

    def bias(self, queries: int, keys: int) -> Tensor:
        """What is added to the scores, (heads, queries, keys); the queries are the last of the keys' positions."""
        offset = _offsets(queries, keys, self.slopes.device)
        before, after = self.slopes[:, None, None], self.slopes.flip(0)[:, None, None]
        return torch.where(offset > 0, -after * offset, before * offset)  # (heads, queries, keys)

    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns query (batch, heads, queries, d_k) and keys as they are, and the bias (heads, queries, keys)."""
        _check_heads(query, keys)
        return query, keys, self.bias(query.shape[-2], keys.shape[-2]).to(query.dtype)


class Rotary(nn.Module):
    """Turns queries and keys by angles that grow with their positions, so that scores know the distance.

    Features 2i and 2i+1 are turned by pos / base^(2i/d_k): the angle whose sine and cosine the sinusoidal table has.

    Args:
        max_len: longest sentence in tokens.
        d_k: width of one head; even.
        base: as in `sinusoidal`.

    Raises:
        ValueError: if d_k is odd.

    Paper: not in it; Su et al. 2021 (RoFormer), section 3.2.2.
    """

    def __init__(self, max_len: int, d_k: int, *, base: float = 10000.0):
        super().__init__()
        self.register_buffer("table", sinusoidal(max_len, d_k, base=base), persistent=False)

    def rotate(self, x: Tensor, *, start: int = 0) -> Tensor:
        """(..., length, d_k), the first at position `start`, to the same shape; lengths of vectors stay."""
        _check(x, self.table, start, before="...")
        sine, cosine = self.table[start : start + x.shape[-2]].to(x.dtype).unflatten(-1, (-1, 2)).unbind(-1)
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)  # (..., length, d_k / 2) each
        return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)

    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, None]:
        """Turns query (batch, heads, queries, d_k), the last of the keys' positions, and keys; adds no bias."""
        _check_heads(query, keys)
        return self.rotate(query, start=keys.shape[-2] - query.shape[-2]), self.rotate(keys), None


def _offsets(queries: int, keys: int, device: torch.device) -> Tensor:
    """How many words each key is after each query, which are the last of the keys' positions; (queries, keys)."""
    _check_last(queries, keys)
    position = torch.arange(keys, device=device)
    return position - position[keys - queries :, None]  # 0 at itself


def _check(x: Tensor, table: Tensor, start: int, *, width: int | None = None, before: str = "batch") -> None:
    max_len, width = len(table), width or table.shape[1]
    check_tensor(x, "x")
    if x.dim() < 2 or x.shape[-1] != width or not x.is_floating_point() or before == "batch" and x.dim() != 3:
        raise ValueError(f"expected ({before}, length, {width}), got {tuple(x.shape)} {x.dtype}")
    if start < 0:
        raise ValueError(f"start must be 0 or more, got {start}")
    if (last := start + x.shape[-2]) > max_len:
        raise ValueError(f"the sentence has {last} tokens, the model has positions for {max_len}")


def _check_heads(query: Tensor, keys: Tensor) -> None:
    check_tensor(query, "query")
    check_tensor(keys, "keys")
    if query.dim() != 4 or keys.dim() != 4 or query.shape[::3] != keys.shape[::3]:
        got = f"{tuple(query.shape)} and {tuple(keys.shape)}"
        raise ValueError(f"expected query and keys (batch, heads, length, d_k), got {got}")
    _check_last(query.shape[-2], keys.shape[-2])


def _check_last(queries: int, keys: int) -> None:
    numbers = all(isinstance(number, int | torch.SymInt) for number in (queries, keys))
    if not numbers or not 0 <= queries <= keys <= LONGEST:
        got = f"got {queries} queries and {keys} keys; {LONGEST:,} is the most"
        raise ValueError(f"queries must be the last of the keys' positions, {got}")
