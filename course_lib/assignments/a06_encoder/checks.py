"""Assignment 06: the layer norm, the paths around the sub-layers, what a stack costs, and a matrix for each token."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checks import Exercise, Variant, value

# 06.reach

REACHED = {
    "feed-forward network": 1,
    "self-attention": 6,
    "self-attention with the causal mask": 4,
    "layer norm": 1,
    "layer norm over the positions": 6,
    "layer norm with ε = 0, from x to 3 x + 5": 0,
}

REACH = Exercise(
    "06.reach",
    REACHED,
    variants=(
        Variant(
            REACHED | {"self-attention": 1},
            "Self-attention is where tokens meet: every query uses the third token's key and value.",
        ),
        Variant(
            REACHED | {"self-attention with the causal mask": 3},
            "Three positions are those that the third token may see. Which positions see the third token?",
        ),
        Variant(
            REACHED | {"layer norm over the positions": 1},
            "Over the positions, the mean of a feature is one number for the whole sentence, the third token in it.",
        ),
        Variant(
            REACHED | {"layer norm with ε = 0, from x to 3 x + 5": 1},
            "Work it out: what are the mean and the standard deviation of 3 x + 5?",
        ),
    ),
    ask=value,
)


# 06.layer_norm


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    """Each token's features with mean 0 and variance 1, then scaled and shifted, one token at a time."""
    tokens = x.reshape(-1, x.size(-1))
    result = torch.zeros_like(tokens)
    for number, token in enumerate(tokens):
        mean = token.sum() / len(token)
        variance = ((token - mean) ** 2).sum() / len(token)
        result[number] = scale * (token - mean) / (variance + eps).sqrt() + shift
    return result.reshape(x.shape)


def _tokens(generator: torch.Generator) -> list[tuple]:
    """Tokens of very different sizes, among them one whose features are all equal."""
    cases = []
    for shape, eps in (((3, 4), 1e-5), ((1, 5, 2), 0.1), ((2, 3, 6), 1e-3), ((2, 2, 3, 5), 0.01)):
        sizes = 0.1 + 2 * torch.rand(*shape[:-1], 1, generator=generator)
        x = sizes * torch.randn(shape, generator=generator) + torch.randn(*shape[:-1], 1, generator=generator)
        x.view(-1, shape[-1])[1] = 3.0
        scale, shift = 1 + torch.randn(2, shape[-1], generator=generator)
        cases.append((x, scale, shift, eps))
    return cases


def _norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float, *, dim=-1, correction=0, outside=False) -> Tensor:
    centered = x - x.mean(dim=dim, keepdim=True)
    variance = x.var(dim=dim, keepdim=True, correction=correction)
    divisor = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return scale * centered / divisor + shift


def _root_mean_square(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    return scale * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() + shift


LAYER_NORM = Exercise(
    "06.layer_norm",
    layer_norm,
    _tokens,
    (
        Variant(
            lambda *inputs: _norm(*inputs, correction=1, outside=True),
            "Both mistakes are still there. What does `std` divide by, and what is ε added to?",
        ),
        Variant(
            lambda *inputs: _norm(*inputs, correction=1),
            "ε stands in the right place. The variance still divides by one less than the number of features.",
        ),
        Variant(
            lambda *inputs: _norm(*inputs, outside=True), "The variance is right. ε is still added after the root."
        ),
        Variant(
            lambda *inputs: _norm(*inputs, dim=-2),
            "Here each feature has mean 0 over the positions; each token must have it over its features.",
        ),
        Variant(
            lambda *inputs: _norm(*inputs[:3], 0.0),
            "There is no ε. A token whose features are all equal becomes 0 / 0.",
        ),
        Variant(_root_mean_square, "The token's mean is never taken off."),
    ),
    forbidden=(F.layer_norm, nn.LayerNorm, torch.layer_norm, torch.native_layer_norm, F.batch_norm, F.group_norm),
)


# 06.encoder_layer


def encoder_layer(
    x: Tensor, self_attn: Callable, feed_forward: Callable, norms: tuple, dropout: Callable, norm_first: bool
) -> Tensor:
    """One encoder layer; everything in it that has weights is given as a function."""
    if norm_first:
        x = x + dropout(self_attn(norms[0](x)))
        return x + dropout(feed_forward(norms[1](x)))
    x = norms[0](x + dropout(self_attn(x)))
    return norms[1](x + dropout(feed_forward(x)))


def _ask_layer(answer, x, mixing, w1, w2, scales, kept, norm_first):
    def self_attn(x):  # a stand-in: it mixes positions, with weights that do not depend on x
        return torch.tanh(mixing @ x)

    def feed_forward(x):
        return torch.relu(x @ w1) @ w2

    def norm(scale):
        return lambda x: F.layer_norm(x, scale.shape, scale)

    def dropout(x):  # always drops the same features, so that the result is no accident
        return x * kept

    return answer(x, self_attn, feed_forward, (norm(scales[0]), norm(scales[1])), dropout, norm_first)


def _layer_cases(generator: torch.Generator) -> list[tuple]:
    cases = []
    for batch, src_len, d_model, d_ff in ((1, 3, 4, 8), (2, 4, 6, 5), (3, 1, 5, 10), (2, 5, 8, 4)):
        shapes = ((batch, src_len, d_model), (src_len, src_len), (d_model, d_ff), (d_ff, d_model), (2, d_model))
        x, mixing, w1, w2, scales = (torch.randn(shape, generator=generator) for shape in shapes)
        kept = 2.0 * (torch.arange(d_model) % 2)  # half of the features, times 1 / (1 - 0.5)
        cases += [(x, mixing, w1, w2, 1 + 0.3 * scales, kept, norm_first) for norm_first in (False, True)]
    return cases


def _layer(path: Callable) -> Callable:
    """A layer with the same path around both sub-layers."""

    def variant(x, self_attn, feed_forward, norms, dropout, norm_first):
        x = path(x, self_attn, norms[0], dropout, norm_first)
        return path(x, feed_forward, norms[1], dropout, norm_first)

    return variant


def _post(x, sublayer, norm, dropout, norm_first=False):
    return norm(x + dropout(sublayer(x)))


def _pre(x, sublayer, norm, dropout):
    return x + dropout(sublayer(norm(x)))


def _exchanged(x, sublayer, norm, dropout, norm_first):
    return (_post if norm_first else _pre)(x, sublayer, norm, dropout)


def _added_after(x, sublayer, norm, dropout, norm_first):
    return _pre(x, sublayer, norm, dropout) if norm_first else x + norm(dropout(sublayer(x)))


def _from_the_norm(x, sublayer, norm, dropout, norm_first):
    return norm(x) + dropout(sublayer(norm(x))) if norm_first else _post(x, sublayer, norm, dropout)


def _dropped_sum(x, sublayer, norm, dropout, norm_first):
    return dropout(x + sublayer(norm(x))) if norm_first else norm(dropout(x + sublayer(x)))


def _replaced(x, sublayer, norm, dropout, norm_first):
    return dropout(sublayer(norm(x))) if norm_first else norm(dropout(sublayer(x)))


ENCODER_LAYER = Exercise(
    "06.encoder_layer",
    encoder_layer,
    _layer_cases,
    (
        Variant(_layer(_post), "This is post-norm, whatever `norm_first` says."),
        Variant(_layer(_exchanged), "The two orders are exchanged: `norm_first=False` is the paper's post-norm."),
        Variant(
            _layer(_added_after), "In post-norm the residual is added after the norm here; the norm is that of the sum."
        ),
        Variant(
            _layer(_from_the_norm), "In pre-norm the residual carries the normalized x here; it has to carry x itself."
        ),
        Variant(_layer(_dropped_sum), "Dropout also drops features of x here. It belongs on the sub-layer's output."),
        Variant(_layer(_replaced), "There is no residual: what a sub-layer says replaces x."),
    ),
    ask=_ask_layer,
)


# 06.parameters


def parameters(d_model: int, num_heads: int, d_ff: int, num_layers: int, norm_first: bool) -> int:
    """Parameters of an encoder: the sizes of all its tensors, added up. The number of heads is in none of them."""
    projection = [(d_model, d_model), (d_model,)]
    network = [(d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)]
    norm = [(d_model,), (d_model,)]
    layer = 4 * projection + network + 2 * norm
    shapes = num_layers * layer + (norm if norm_first else [])
    return sum(math.prod(shape) for shape in shapes)


def _sizes(generator: torch.Generator) -> list[tuple]:
    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    cases = [(512, 8, 2048, 6, False)]  # the paper's base model
    for norm_first in (True, False, True):
        num_heads = number(2, 9)
        cases.append((num_heads * number(2, 17), num_heads, number(3, 300), number(2, 9), norm_first))
    return cases


def _count(d_model, num_heads, d_ff, num_layers, norm_first, *, projections=4, bias=1, norms=2, behind=None):
    behind = norm_first if behind is None else behind
    attention = projections * (d_model * d_model + bias * d_model)
    network = 2 * d_model * d_ff + bias * (d_ff + d_model)
    return num_layers * (attention + network + norms * 2 * d_model) + behind * 2 * d_model


PARAMETERS = Exercise(
    "06.parameters",
    parameters,
    _sizes,
    (
        Variant(
            lambda *sizes: _count(*sizes, projections=3 * sizes[1] + 1),
            "Here every head has projections of its own from d_model to d_model. A head is d_model / num_heads wide.",
        ),
        Variant(lambda *sizes: _count(*sizes, projections=3), "Attention has one more projection, behind the heads."),
        Variant(
            lambda *sizes: _count(*sizes, bias=0), "The biases of projections and feed-forward network are missing."
        ),
        Variant(lambda *sizes: _count(*sizes, norms=1), "Here a layer has one norm; each of its two paths has one."),
        Variant(lambda *sizes: _count(*sizes, behind=False), "A pre-norm encoder has one more norm, behind the stack."),
        Variant(
            lambda *sizes: _count(*sizes[:3], 1, sizes[4]),
            "This is a stack of one layer. The layers do not share their weights.",
        ),
    ),
    forbidden=(nn.TransformerEncoderLayer, nn.TransformerEncoder, nn.MultiheadAttention),
)


# 06.token_matrices


def token_matrices(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix and the bias that the feed-forward network is for each token, one hidden unit at a time."""
    matrices, biases = x.new_zeros(*x.shape, x.size(-1)), torch.zeros_like(x)
    for sentence in range(x.size(0)):
        for position in range(x.size(1)):
            biases[sentence, position] = b2
            for unit in range(len(b1)):
                on = (x[sentence, position] @ w1[:, unit] + b1[unit] > 0).to(x.dtype)
                matrices[sentence, position] += on * torch.outer(w1[:, unit], w2[unit])
                biases[sentence, position] += on * b1[unit] * w2[unit]
    return matrices, biases


def _networks(generator: torch.Generator) -> list[tuple]:
    """x, W₁ and b₁ in steps of a quarter: their sums have no rounding, so that nobody's unit is on by an accident."""

    def quarters(*shape: int) -> Tensor:
        return torch.randint(-8, 9, shape, generator=generator) / 4

    cases = []
    for batch, src_len, d_model, d_ff in ((1, 2, 3, 4), (2, 3, 2, 8), (3, 1, 4, 6), (2, 3, 4, 5)):
        x, w1, b1 = quarters(batch, src_len, d_model), quarters(d_model, d_ff), quarters(d_ff)
        x[0, 0], b1[0], w1[0, 0] = 0, 0, 1  # the first unit's sum is exactly 0 for the first token
        w2, b2 = torch.randn(d_ff, d_model, generator=generator), torch.randn(d_model, generator=generator)
        cases.append((x, w1, b1, w2, b2))
    return cases


def _summed(on: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor]:
    return torch.einsum("bsf,df,fe->bsde", on, w1, w2), (on * b1) @ w2 + b2


def _by(switch) -> Callable:
    """The answer that takes `switch(sums)` for what is on, where the sums are x W₁ + b₁."""
    return lambda x, w1, b1, w2, b2: _summed(switch(x @ w1 + b1).to(x.dtype), w1, b1, w2, b2)


def _without_b1(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor]:
    return _summed((x @ w1 > 0).to(x.dtype), w1, b1, w2, b2)


def _one_bias(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor]:
    return token_matrices(x, w1, b1, w2, b2)[0], (b1 @ w2 + b2).expand(x.shape)


def _turned(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    matrices, biases = token_matrices(*inputs)
    return matrices.mT, biases


TOKEN_MATRICES = Exercise(
    "06.token_matrices",
    token_matrices,
    _networks,
    (
        Variant(_by(lambda sums: sums >= 0), "A unit whose sum is exactly 0 is off."),
        Variant(_by(torch.ones_like), "All tokens have the same matrix here, W₁ W₂, as if there were no ReLU."),
        Variant(_by(torch.relu), "Here a unit counts by its value; it counts in full if it is on."),
        Variant(_without_b1, "What decides whether a unit is on is x W₁ + b₁; the b₁ is missing there."),
        Variant(_one_bias, "The matrices are right. The biases still contain units that are off."),
        Variant(_turned, "The matrices are turned: a token stands to the left of its matrix, x @ matrix + bias."),
    ),
    loops=False,
)

EXERCISES = (REACH, LAYER_NORM, ENCODER_LAYER, PARAMETERS, TOKEN_MATRICES)
