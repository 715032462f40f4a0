"""Answers to assignment 06: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.attention import MultiHeadAttention
from course_lib.blocks import EncoderLayer, FeedForward, layer_norm
from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.masks import causal_mask
from course_lib.transformer import Encoder

VARIANCE = "x.var(dim=-1, keepdim=True, correction=0)"
ON = "(x @ w1 + b1 > 0)"
MATRICES = "(on.unsqueeze(-2) * w1) @ w2"
BIASES = "(on * b1) @ w2 + b2"


def norm_by_projection(x, scale, shift, eps):
    width = x.size(-1)
    centered = x @ (torch.eye(width, dtype=x.dtype, device=x.device) - 1 / width)
    variance = torch.einsum("...d,...d->...", centered, centered)[..., None] / width
    return torch.addcmul(shift, scale, centered / (variance + eps).sqrt())


def norm_in_a_loop(x, scale, shift, eps):
    rows = [(row - row.mean()) / (row.var(unbiased=False) + eps).sqrt() for row in x.flatten(0, -2)]
    return torch.stack(rows).view(x.shape) * scale + shift


def layer_by_cases(x, self_attn, feed_forward, norms, dropout, norm_first):
    one, two = norms
    if norm_first:
        y = x + dropout(self_attn(one(x)))
        return y + dropout(feed_forward(two(y)))
    y = one(x + dropout(self_attn(x)))
    return two(y + dropout(feed_forward(y)))


class Layer:
    def __call__(self, x, self_attn, feed_forward, norms, dropout, norm_first):
        for number, sublayer in enumerate([self_attn, feed_forward]):
            before, after = (norms[number], lambda x: x) if norm_first else (lambda x: x, norms[number])
            x = after(torch.add(x, dropout(sublayer(before(x)))))
        return x


def matrices_by_broadcast(x, w1, b1, w2, b2):
    on = ((x @ w1 + b1) > 0)[..., None, None].to(w1.dtype)  # (batch, src_len, d_ff, 1, 1)
    matrices = (on * (w1.T[:, :, None] * w2[:, None, :])).sum(2)
    network = torch.relu(x @ w1 + b1) @ w2 + b2
    return matrices, network - (x.unsqueeze(-2) @ matrices).squeeze(-2)


RIGHT = {
    "06.reach": [Edit(), Edit('network": 1', 'network": 1.0'), Edit('5": 0', '5": torch.tensor(0)')],
    "06.layer_norm": [
        norm_by_projection,
        norm_in_a_loop,
        Edit(VARIANCE, "torch.linalg.vector_norm(x - mean, dim=-1, keepdim=True) ** 2 / x.shape[-1]"),
        Edit(VARIANCE, "torch.var_mean(x, -1, correction=0, keepdim=True)[0]", "/ torch.sqrt(", "* torch.rsqrt("),
    ],
    "06.encoder_layer": [
        layer_by_cases,
        Layer(),
        Edit("x = x + dropout(sublayer(norm(x)))", "x = dropout(sublayer(norm(x))).add(x)"),
    ],
    "06.parameters": [
        lambda d, heads, d_ff, layers, last: layers * (4 * d**2 + 9 * d + 2 * d * d_ff + d_ff) + 2 * d * last,
        Edit("4 * (d_model * d_model", "4 * (num_heads * d_model * (d_model // num_heads)"),
        Edit("2 * d_model\n", "sum(weight.numel() for weight in torch.nn.LayerNorm(d_model).parameters())\n"),
    ],
    "06.token_matrices": [
        matrices_by_broadcast,
        Edit(MATRICES, 'torch.einsum("bsf,df,fe->bsde", on, w1, w2)', ON, "torch.relu(x @ w1 + b1).sign()"),
        Edit(MATRICES, "w1 @ torch.diag_embed(on) @ w2", BIASES, "b1 @ torch.diag_embed(on) @ w2 + b2"),
    ],
}

WRONG = {
    "06.reach": [
        Edit('norm": 1', 'norm": None'),
        {"self-attention": 6},
    ],
    "06.layer_norm": [
        (lambda x, scale, shift, eps: F.layer_norm(x, x.shape[-1:], scale, shift, eps), "yours to write"),
        Edit("variance =", "x -= mean\n    variance =", "(x - mean)", "x"),
    ],
    "06.encoder_layer": [
        Edit("x = x + dropout", "x += dropout", "norm(x + dropout(sublayer(x)))", "norm(x.add_(dropout(sublayer(x))))"),
    ],
    "06.parameters": [
        Edit("norm = 2 * d_model", "norm = d_model"),
        Edit("2 * norm)", "2 * norm) / num_heads"),
    ],
    "06.token_matrices": [
        (Edit(MATRICES, "torch.stack([w1 * row @ w2 for row in on.flatten(0, 1)]).view(*x.shape, -1)"), "one by one"),
        (Edit(ON, "(torch.tensor([row.tolist() for row in x @ w1 + b1]) > 0)"), "one by one"),
    ],
}


class Part(nn.Module):
    """A function in the place of a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, *others):
        return self.function(x)


def measured():
    """The prediction's numbers, counted with the library's sub-layers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network, attn = FeedForward(8, 32).double(), MultiHeadAttention(8, 2).double()
        x = torch.randn(1, 6, 8, dtype=torch.float64)
        replaced, scaled = x.clone(), x.clone()
        replaced[0, 2] = torch.randn(8, dtype=torch.float64)
        scaled[0, 2] = 3 * x[0, 2] + 5

    def norm(x, eps=1e-5):
        return layer_norm(x, torch.ones(x.size(-1)).double(), torch.zeros(x.size(-1)).double(), eps=eps)

    def changed(sublayer, other=replaced):
        return int(((sublayer(other) - sublayer(x)).abs().amax(dim=-1) > 1e-9).sum())

    return {
        "feed-forward network": changed(network),
        "self-attention": changed(lambda x: attn(x, x, x)),
        "self-attention with the causal mask": changed(lambda x: attn(x, x, x, causal_mask(6))),
        "layer norm": changed(norm),
        "layer norm over the positions": changed(lambda x: norm(x.mT).mT),
        "layer norm with ε = 0, from x to 3 x + 5": changed(lambda x: norm(x, eps=0.0), scaled),
    }


def library_layer(x, self_attn, feed_forward, norms, dropout, norm_first):
    layer = EncoderLayer(x.size(-1), num_heads=1, d_ff=1, dropout=0.0, norm_first=norm_first)
    layer.self_attn, layer.feed_forward = Part(self_attn), Part(feed_forward)
    for path, norm in zip((layer.self_attn_path, layer.feed_forward_path), norms, strict=True):
        path.norm, path.dropout = Part(norm), Part(dropout)
    return layer(x)


def library_parameters(d_model, num_heads, d_ff, num_layers, norm_first):
    sizes = dict(d_model=d_model, num_heads=num_heads, d_ff=d_ff, num_layers=num_layers, position="none")
    with torch.device("meta"):
        encoder = Encoder(ModelConfig(4, **sizes, norm_first=norm_first))
    return sum(parameter.numel() for parameter in encoder.parameters())


def library_matrices(x, w1, b1, w2, b2):
    network = FeedForward(*w1.shape).to(x)
    with torch.no_grad():
        for ours, theirs in zip(network.parameters(), (w1.T, b1, w2.T, b2), strict=True):
            ours.copy_(theirs)
    jacobians = torch.func.vmap(torch.func.jacrev(network))(x.flatten(0, 1))  # (tokens, outputs, inputs)
    matrices = jacobians.mT.unflatten(0, x.shape[:2])
    return matrices, network(x) - torch.einsum("bsd,bsde->bse", x, matrices)


# What a solution must agree with.
LIBRARY = {
    "06.reach": measured(),
    "06.layer_norm": lambda x, scale, shift, eps: layer_norm(x, scale, shift, eps=eps),
    "06.encoder_layer": library_layer,
    "06.parameters": library_parameters,
    "06.token_matrices": library_matrices,
}
