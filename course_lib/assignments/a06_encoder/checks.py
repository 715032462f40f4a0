"""Checks of assignment 06: layer norm, the paths around sub-layers, what a stack costs, and a matrix for each token."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

SUMS = "x @ w1 + b1"


def tokens(generator):
    """Tokens of very different sizes, among them one whose features are all equal; scale, shift and ε."""
    cases = []
    for shape, eps in (((3, 4), 1e-5), ((1, 5, 2), 0.1), ((2, 3, 6), 1e-3), ((2, 2, 3, 5), 0.01)):
        sizes = 0.1 + 2 * torch.rand(*shape[:-1], 1, generator=generator)
        x = sizes * torch.randn(shape, generator=generator) + torch.randn(*shape[:-1], 1, generator=generator)
        x.view(-1, shape[-1])[1] = 3.0
        scale, shift = 1 + torch.randn(2, shape[-1], generator=generator)
        cases.append((x, scale, shift, eps))
    return cases


def layers(generator):
    """x, the weights of stand-ins for what is in a layer, the features that dropout keeps, and both orders."""
    cases = []
    for batch, src_len, d_model, d_ff in ((1, 3, 4, 8), (2, 4, 6, 5), (3, 1, 5, 10), (2, 5, 8, 4)):
        shapes = ((batch, src_len, d_model), (src_len, src_len), (d_model, d_ff), (d_ff, d_model), (2, d_model))
        x, mixing, w1, w2, scales = (torch.randn(shape, generator=generator) for shape in shapes)
        kept = 2.0 * (torch.arange(d_model) % 2)  # half of the features, times 1 / (1 - 0.5)
        cases += [(x, mixing, w1, w2, 1 + 0.3 * scales, kept, norm_first) for norm_first in (False, True)]
    return cases


def layer_output(answer, x, mixing, w1, w2, scales, kept, norm_first):
    """The output of the layer that the answer makes of stand-ins for its parts."""
    return answer(
        x,
        lambda x: torch.tanh(mixing @ x),  # it mixes positions, with weights that do not depend on x
        lambda x: torch.relu(x @ w1) @ w2,
        tuple(partial(F.layer_norm, normalized_shape=scale.shape, weight=scale) for scale in scales),
        lambda x: x * kept,  # it always drops the same features, so that the result is no accident
        norm_first,
    )


def sizes_of_encoders(generator):
    """d_model, num_heads, d_ff, num_layers and norm_first; the paper's base model comes first."""

    def number(low, high):
        return int(torch.randint(low, high, (), generator=generator))

    cases = [(512, 8, 2048, 6, False)]
    for norm_first in (True, False, True):
        num_heads = number(2, 9)
        cases.append((num_heads * number(2, 17), num_heads, number(3, 300), number(2, 9), norm_first))
    return cases


def networks(generator):
    """x, W₁ and b₁ in steps of a quarter: their sums have no rounding, so that nobody's unit is on by an accident."""

    def quarters(*shape):
        return torch.randint(-8, 9, shape, generator=generator) / 4

    cases = []
    for batch, src_len, d_model, d_ff in ((1, 2, 3, 4), (2, 3, 2, 8), (3, 1, 4, 6), (2, 3, 4, 5)):
        x, w1, b1 = quarters(batch, src_len, d_model), quarters(d_model, d_ff), quarters(d_ff)
        x[0, 0], b1[0], w1[0, 0] = 0, 0, 1  # the first unit's sum is exactly 0 for the first token
        w2, b2 = torch.randn(d_ff, d_model, generator=generator), torch.randn(d_model, generator=generator)
        cases.append((x, w1, b1, w2, b2))
    return cases


EXERCISES = (
    Exercise(
        "06.reach",
        mistakes={
            "Self-attention is where tokens meet: every query uses the third token's key and value.":
                Edit('"self-attention": 6', '"self-attention": 1'),
            "Three positions are those that the third token may see. Which positions see the third token?":
                Edit('mask": 4', 'mask": 3'),
            "Over the positions, the mean of a feature is one number for the whole sentence, the third token in it.":
                Edit('positions": 6', 'positions": 1'),
            "Work it out: what are the mean and the standard deviation of 3 x + 5?": Edit('5": 0', '5": 1'),
            "The feed-forward network treats each position by itself.": Edit('network": 1', 'network": 6'),
            "Position 3 itself and all after it see the third token.": Edit('mask": 4', 'mask": 2'),
        },
        ask=value,
    ),
    Exercise(
        "06.layer_norm",
        tokens,
        {
            "Both mistakes are still there. What does `std` divide by, and what is ε added to?": PLANTED,
            "ε stands in the right place. The variance still divides by one less than the number of features.":
                Edit("correction=0", "correction=1"),
            "The variance is right. ε is still added after the root.":
                Edit("torch.sqrt(variance + eps)", "(torch.sqrt(variance) + eps)"),
            "Here each feature has mean 0 over the positions; each token must have it over its features.":
                Edit("dim=-1", "dim=-2"),
            "There is no ε. A token whose features are all equal becomes 0 / 0.": Edit(" + eps", ""),
            "The token's mean is never taken off.":
                Edit("x.var(dim=-1, keepdim=True, correction=0)", "(x**2).mean(dim=-1, keepdim=True)", "x - mean", "x"),
            "ε is squared here; it is added to the variance as it is.": Edit("+ eps", "+ eps**2"),
            "You divide by the variance; its root is the standard deviation.":
                Edit("torch.sqrt(variance + eps)", "(variance + eps)"),
            "The shift is scaled as well. First scale, then shift.":
                Edit("scale * (x", "scale * ((x", "+ shift", "+ shift)"),
            "Mean and variance are those of everything; each token has its own.":
                Edit("dim=-1, keepdim=True, ", "", "dim=-1, keepdim=True", ""),
        },
        forbidden=(F.layer_norm, nn.LayerNorm, torch.layer_norm, torch.native_layer_norm, F.batch_norm, F.group_norm),
    ),
    Exercise(
        "06.encoder_layer",
        layers,
        {
            "This is post-norm, whatever `norm_first` says.": Edit("if norm_first", "if False"),
            "The two orders are exchanged: `norm_first=False` is the paper's post-norm.":
                Edit("if norm_first", "if not norm_first"),
            "In post-norm the residual is added after the norm here; the norm is that of the sum.":
                Edit("norm(x + dropout(", "x + norm(dropout("),
            "In pre-norm the residual carries the normalized x here; it has to carry x itself.":
                Edit("x = x +", "x = norm(x) +"),
            "Dropout also drops features of x here. It belongs on the sub-layer's output.":
                Edit("x + dropout(", "dropout(x + "),
            "There is no residual: what a sub-layer says replaces x.": Edit("x + dropout", "dropout"),
            "This is pre-norm, whatever `norm_first` says.": Edit("if norm_first", "if True"),
            "Both paths have the first norm. The second one has its own.":
                Edit("norms, strict", "norms[:1] * 2, strict"),
            "The feed-forward network comes before the attention here.":
                Edit("(self_attn, feed_forward)", "(feed_forward, self_attn)"),
            "Dropout is forgotten. It belongs on each sub-layer's output.": Edit("dropout(sublayer(", "(sublayer("),
            "The feed-forward network is missing.": Edit("(self_attn, feed_forward), norms", "(self_attn,), norms[:1]"),
            "Both sub-layers read the same x. The second reads what the first one has left.":
                Edit("    for", "    y = -x\n    for", "    x =", "    y +=", "return x", "return y"),
        },
        ask=layer_output,
    ),
    Exercise(
        "06.parameters",
        sizes_of_encoders,
        {
            "Here every head has projections of its own from d_model to d_model. A head is d_model / num_heads wide.":
                Edit("4 * (", "(3 * num_heads + 1) * ("),
            "Attention has one more projection, behind the heads.": Edit("4 * (", "3 * ("),
            "The biases of projections and feed-forward network are missing.":
                Edit("d_model + d_model", "d_model", "d_ff + d_ff * d_model", "d_ff * d_model"),
            "The norms count half: a layer has two, and each has a scale and a shift for every feature.":
                Edit("2 * norm", "norm"),
            "A pre-norm encoder has one more norm, behind the stack.": Edit("norm if norm_first else 0", "0"),
            "This is a stack of one layer. The layers do not share their weights.": Edit("num_layers * (", "("),
            "You take d_ff for 4 · d_model. It is given.": Edit("    norm =", "    d_ff = 4 * d_model\n    norm ="),
            "A post-norm encoder has no norm behind the stack.": Edit("norm if norm_first else 0", "norm"),
        },
        forbidden=(nn.TransformerEncoderLayer, nn.TransformerEncoder, nn.MultiheadAttention),
    ),
    Exercise(
        "06.token_matrices",
        networks,
        {
            "A unit whose sum is exactly 0 is off.": Edit("> 0", ">= 0"),
            "All tokens have the same matrix here, W₁ W₂, as if there were no ReLU.":
                Edit(f"({SUMS} > 0)", f"torch.ones_like({SUMS})"),
            "Here a unit counts by its value; it counts in full if it is on.":
                Edit(f"({SUMS} > 0)", f"torch.relu({SUMS})"),
            "What decides whether a unit is on is x W₁ + b₁; the b₁ is missing there.": Edit(SUMS, "x @ w1"),
            "The matrices are right. The biases still contain units that are off.":
                Edit("(on * b1) @ w2 + b2", "(b1 @ w2 + b2).expand(x.shape)"),
            "The matrices are turned: a token stands to the left of its matrix, x @ matrix + bias.":
                Edit("return matrices", "return matrices.mT"),
            "The biases lack b₂.": Edit("(on * b1) @ w2 + b2", "(on * b1) @ w2"),
            "The units that are off are counted. A unit is on where its sum is above 0.": Edit("> 0", "< 0"),
            "A unit is on or off here, not in between: the network has a ReLU.":
                Edit("(x @ w1 + b1 > 0)", "torch.sigmoid(x @ w1 + b1)"),
            "Two tensors are asked for: matrices, biases.": Edit("matrices, (on * b1) @ w2 + b2", "matrices"),
            "Matrices and biases are the other way round.":
                Edit("matrices, (on * b1) @ w2 + b2", "(on * b1) @ w2 + b2, matrices"),
        },
        loops=False,
    ),
)
