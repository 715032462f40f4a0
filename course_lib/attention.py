"""Scaled dot-product attention, written out once, and multi-head attention on torch's fused version of it."""

import math
import sys
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_lib.config import check_sizes
from course_lib.masks import check_bias, check_features, check_mask, check_product, check_values


def attention_scores(query: Tensor, key: Tensor, *, temperature: float | None = None) -> Tensor:
    """How well each query matches each key: query @ keyᵀ / temperature.

    Args:
        query: (..., queries, d_k).
        key: (..., keys, d_k).
        temperature: above 0; √d_k, the paper's, where none is given.

    Returns:
        (..., queries, keys).

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, there is no key, or the temperature is not above 0.

    Paper: section 3.2.1, equation 1, which has no other temperature.
    """
    check_product(query, key)
    if temperature is None:
        temperature = math.sqrt(query.shape[-1])
    if not 0 < temperature <= sys.float_info.max:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return query @ key.transpose(-2, -1) / temperature  # (..., queries, keys)


def attention_weights(
    query: Tensor, key: Tensor, mask: Tensor | None = None, *, bias: Tensor | None = None
) -> Tensor:
    """How much each query attends to each key: softmax(query @ keyᵀ / √d_k).

    Args:
        query: (..., queries, d_k).
        key: (..., keys, d_k).
        mask: bool, True = may attend, as many dimensions as the weights; None lets all attend to all.
        bias: added to the scores, broadcastable to (..., queries, keys), never -inf; see position.ALiBi.

    Returns:
        (..., queries, keys); rows sum to 1.

    Raises:
        ValueError: as attention_scores, or if bias or mask do not fit (see masks.check_mask).

    Paper: section 3.2.1, equation 1.
    """
    scores = attention_scores(query, key)
    if bias is not None:
        check_bias(bias, scores.shape)
        scores = scores + bias
    if mask is not None:
        check_mask(mask, scores.shape)
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1)


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """For each query, the mean of the values, weighted by how well their keys match it.

    Args:
        query: (..., queries, d_k).
        key: (..., keys, d_k).
        value: (..., keys, d_v).
        mask: bool, True = may attend, as many dimensions as the weights.

    Returns:
        context (..., queries, d_v) and weights (..., queries, keys).

    Raises:
        ValueError: if the shapes or the mask do not fit.

    Paper: section 3.2.1, equation 1.
    """
    check_values(key, value)
    weights = attention_weights(query, key, mask)
    return weights @ value, weights  # (..., queries, d_v)


# All but cuDNN's, which plans each new shape anew, for tenths of a second: batches of sentences have ever new shapes.
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
SHORT = 48  # keys; up to here training on a CPU is faster with the formula written out, up to three times at 8 keys


class FusedAttention(nn.Module):
    """The context of `attention` from torch's fused kernel, which never stores the weights; short ones written out.

    A module of its own, without parameters, so that `record_attention` can listen to what goes in.
    """

    def forward(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, bias: Tensor | None = None
    ) -> Tensor:
        """As `attention`, on (batch, heads, length, d_k) tensors, with the bias of `attention_weights`; the context."""
        if torch.is_grad_enabled() and query.device.type == "cpu" and keys.shape[-2] <= SHORT:
            return attention_weights(query, keys, mask, bias=bias) @ values
        if bias is not None:
            check_bias(bias, (*query.shape[:-1], keys.shape[-2]))
            mask = bias if mask is None else torch.where(mask, bias, -math.inf)
        with sdpa_kernel(KERNELS) if query.device.type == "cuda" else nullcontext():
            return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


class MultiHeadAttention(nn.Module):
    """Attends num_heads times in parallel, each time in a d_k-wide projection, and mixes the results.

    Args:
        d_model: width of the input and of the output.
        num_heads: heads; must divide d_model.
        key_width: d_k, of each head's queries and keys; d_model / num_heads where none is given.
        relative: position.RelativeBias, ALiBi or Rotary, for self-attention that is told the positions here.

    Raises:
        ValueError: if a size is no whole number from 1 on, or num_heads does not divide d_model.

    Paper: section 3.2.2, with d_v = d_model / num_heads; the biases are torch's, not in the paper's formula.
    """

    def __init__(
        self, d_model: int, num_heads: int, *, key_width: int | None = None, relative: nn.Module | None = None
    ):
        super().__init__()
        check_sizes(d_model=d_model, num_heads=num_heads)
        if d_model % num_heads:
            raise ValueError(f"d_model must be divisible by num_heads, got {d_model=}, {num_heads=}")
        self.num_heads = num_heads
        key_width = d_model // num_heads if key_width is None else key_width
        check_sizes(key_width=key_width)
        keys = num_heads * key_width
        self.query_proj = nn.Linear(d_model, keys)
        self.key_proj = nn.Linear(d_model, keys)
        self.value_proj = nn.Linear(d_model, d_model)
        self.relative = relative
        self.fused = FusedAttention()
        self.output_proj = nn.Linear(d_model, d_model)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """The attended values for each query.

        Args:
            query: (batch, queries, d_model).
            key: (batch, keys, d_model).
            value: (batch, keys, d_model).
            mask: bool, True = may attend, broadcastable from (1 or batch, 1 or heads, 1 or queries, keys).

        Returns:
            (batch, queries, d_model).

        Raises:
            ValueError: if a shape or the mask does not fit.
        """
        return self.attend(query, *self.keys_values(key, value), mask)

    def keys_values(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The projected keys and values of all heads, (batch, heads, keys, d_k) each: what a cache keeps."""
        if self._checked(key, "key").shape != self._checked(value, "value").shape:
            raise ValueError(f"each key needs one value, got key {tuple(key.shape)} and value {tuple(value.shape)}")
        return self._split(self.key_proj(key)), self._split(self.value_proj(value))

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """As forward, on keys and values that `keys_values` has projected."""
        heads = self._split(self.query_proj(self._checked(query, "query")))  # (batch, heads, queries, d_k)
        if keys.shape[-2] == 0:
            raise ValueError("a query has nothing to attend to: there are no keys")
        if heads.shape[0] != keys.shape[0]:
            raise ValueError(f"query and key must share the batch, got {heads.shape[0]} and {keys.shape[0]} rows")
        if mask is not None:
            check_mask(mask, (*heads.shape[:-1], keys.shape[-2]))
        bias = None
        if self.relative is not None:
            heads, keys, bias = self.relative(heads, keys)
        context = self.fused(heads, keys, values, mask, bias)  # (batch, heads, queries, d_k)
        return self.output_proj(context.transpose(1, 2).flatten(2))  # (batch, queries, d_model)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, length, d_k)

    def _checked(self, x: Tensor, name: str) -> Tensor:
        check_features(x, self.query_proj.in_features, self.output_proj.bias.dtype, dims=3, name=name)
        return x
