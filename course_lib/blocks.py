"""The layers of encoder and decoder: layer norm, feed-forward network, and the residual paths around them."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.attention import MultiHeadAttention
from course_lib.config import check_flags, check_numbers, check_sizes, require
from course_lib.masks import check_features, check_norm, check_tensor


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor, *, eps: float = 1e-5) -> Tensor:
    """Gives each token's features mean 0 and variance 1, then scales and shifts them.

    Args:
        x: (..., d_model).
        scale, shift: (d_model,).
        eps: under the root, keeps a constant token finite.

    Returns:
        (..., d_model).

    Raises:
        ValueError: if scale or shift is of another width or dtype than x, or eps is below 0.

    Paper: section 3.1, with the biased variance of Ba et al. 2016.
    """
    check_norm(x, scale, shift, eps)
    centered = x - x.mean(dim=-1, keepdim=True)
    variance = centered.square().mean(dim=-1, keepdim=True)
    return centered / torch.sqrt(variance + eps) * scale + shift


class Dropout(nn.Dropout):
    """torch's dropout; in training on a CPU with cheaper random bits, which makes it three times as fast.

    There the probability is rounded to a multiple of 2⁻¹⁶, unless that is 0 or 1.
    """

    def __init__(self, p: float = 0.5):
        check_numbers(p=p)
        require(0 <= p <= 1, f"the probability of dropout must be in [0, 1], got {p}")
        super().__init__(p)

    def forward(self, x: Tensor) -> Tensor:
        """A tensor of any shape: each number becomes 0 with probability p, or is divided by 1 - p."""
        steps = round(self.p * 2**16)
        if not self.training or steps in (0, 2**16) or x.device.type != "cpu":
            return super().forward(x)
        words = torch.empty(x.numel() // 4 + 1, dtype=torch.int64).random_(-(2**63), None)  # all 64 bits are random
        bits = words.view(torch.int16)[: x.numel()].view(x.shape)  # even over -2¹⁵ … 2¹⁵ - 1
        return x * (bits >= steps - 2**15).to(x.dtype).div_(1 - self.p)


class LayerNorm(nn.Module):
    """`layer_norm` with learned scale and shift, on torch's fused version of it.

    Args:
        d_model: number of features.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        check_sizes(d_model=d_model)
        check_numbers(eps=eps)
        require(0 <= eps < 1e30, f"expected eps from 0 on, got {eps}")
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(d_model))
        self.shift = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model)."""
        check_features(x, len(self.scale), self.scale.dtype)
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift, self.eps)


class FeedForward(nn.Module):
    """The same two-layer network for each position: max(0, x W₁ + b₁) W₂ + b₂.

    Args:
        d_model: width of input and output.
        d_ff: inner width.

    Paper: section 3.3, equation 2.
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        check_sizes(d_model=d_model, d_ff=d_ff)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) to (..., d_model)."""
        check_features(x, self.up.in_features, self.up.bias.dtype)
        return self.down(F.relu(self.up(x)))


class Residual(nn.Module):
    """The path around one sub-layer: norm(x + dropout(sublayer(x))), or x + dropout(sublayer(norm(x))).

    Args:
        d_model: width.
        dropout: probability, on the sub-layer's output.
        norm_first: False is the paper's post-norm, True pre-norm.

    Paper: sections 3.1 and 5.4 (residual dropout).
    """

    def __init__(self, d_model: int, dropout: float, norm_first: bool):
        super().__init__()
        check_flags(norm_first=norm_first)
        self.norm = LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer) -> Tensor:
        """x (batch, length, d_model) and a function of such tensors, to such a tensor."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each in a residual path.

    Args:
        d_model, num_heads, d_ff, dropout, norm_first, key_width: as in ModelConfig.
        relative: of the self-attention, as in MultiHeadAttention.

    Paper: section 3.1, encoder.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        *,
        norm_first: bool = False,
        key_width: int | None = None,
        relative: nn.Module | None = None,
    ):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads, key_width=key_width, relative=relative)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_attn_path = Residual(d_model, dropout, norm_first)
        self.feed_forward_path = Residual(d_model, dropout, norm_first)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, src_len, d_model) and a mask for (batch, heads, src_len, src_len), to (batch, src_len, d_model)."""
        check_tensor(x, "x")
        x = self.self_attn_path(x, lambda x: self.self_attn(x, x, x, mask))
        return self.feed_forward_path(x, self.feed_forward)


@dataclass
class LayerCache:
    """What one decoder layer keeps between steps: projected keys and values, (batch, heads, length, d_k) each."""

    keys: Tensor | None = None
    values: Tensor | None = None
    memory_keys: Tensor | None = None
    memory_values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the newest positions; returns all so far."""
        if self.keys is not None:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keeps the given batch rows, in the given order, repeats allowed (beam search)."""
        for name, tensor in vars(self).items():
            setattr(self, name, tensor[rows])


def attend_memory(attention: MultiHeadAttention, x: Tensor, memory: Tensor, mask: Tensor | None, cache) -> Tensor:
    """As attention(x, memory, memory, mask); a cache keeps the projected memory, which is that of all steps."""
    if cache is None:
        return attention(x, memory, memory, mask)
    if cache.memory_keys is None:
        cache.memory_keys, cache.memory_values = attention.keys_values(memory, memory)
    return attention.attend(x, cache.memory_keys, cache.memory_values, mask)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's memory, feed-forward network, each in a residual path.

    Args:
        d_model, num_heads, d_ff, dropout, norm_first, key_width, relative: as in EncoderLayer.

    Paper: section 3.1, decoder.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        *,
        norm_first: bool = False,
        key_width: int | None = None,
        relative: nn.Module | None = None,
    ):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads, key_width=key_width, relative=relative)
        self.cross_attn = MultiHeadAttention(d_model, num_heads, key_width=key_width)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_attn_path = Residual(d_model, dropout, norm_first)
        self.cross_attn_path = Residual(d_model, dropout, norm_first)
        self.feed_forward_path = Residual(d_model, dropout, norm_first)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """The next representation of each target position.

        Args:
            x: (batch, tgt_len, d_model).
            memory: (batch, src_len, d_model), the encoder's output.
            tgt_mask: for (batch, heads, tgt_len, tgt_len); with a cache, keys are all positions so far.
            memory_mask: for (batch, heads, tgt_len, src_len).
            cache: of the positions before x; is extended by x.

        Returns:
            (batch, tgt_len, d_model).
        """
        check_tensor(x, "x")
        check_tensor(memory, "memory")
        x = self.self_attn_path(x, lambda x: self._attend_self(x, tgt_mask, cache))
        x = self.cross_attn_path(x, lambda x: attend_memory(self.cross_attn, x, memory, memory_mask, cache))
        return self.feed_forward_path(x, self.feed_forward)

    def _attend_self(self, x, mask, cache):
        keys, values = self.self_attn.keys_values(x, x)
        if cache is not None:
            keys, values = cache.append(keys, values)
        return self.self_attn.attend(x, keys, values, mask)
