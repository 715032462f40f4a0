"""Answers to assignment 06: differently written right ones, and plausible wrong ones with the hint that they get."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.attention import MultiHeadAttention
from course_lib.blocks import EncoderLayer, FeedForward, layer_norm
from course_lib.config import ModelConfig
from course_lib.masks import causal_mask
from course_lib.transformer import Encoder

# 06.reach

REACHED = {
    "feed-forward network": 1,
    "self-attention": 6,
    "self-attention with the causal mask": 4,
    "layer norm": 1,
    "layer norm over the positions": 6,
    "layer norm with ε = 0, from x to 3 x + 5": 0,
}


def reached(**changed):
    names = dict(zip(("network", "attention", "causal", "norm", "wrong", "scaled"), REACHED, strict=True))
    return REACHED | {names[short]: number for short, number in changed.items()}


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

    return reached(
        network=changed(network),
        attention=changed(lambda x: attn(x, x, x)),
        causal=changed(lambda x: attn(x, x, x, causal_mask(6))),
        norm=changed(norm),
        wrong=changed(lambda x: norm(x.mT).mT),
        scaled=changed(lambda x: norm(x, eps=0.0), scaled),
    )


# 06.layer_norm


def norm_by_var_mean(x, scale, shift, eps):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps) * scale + shift


def norm_by_length(x, scale, shift, eps):
    centered = x - x.sum(-1, keepdim=True) / x.shape[-1]
    length = torch.linalg.vector_norm(centered, dim=-1, keepdim=True)
    return centered / (length**2 / x.shape[-1] + eps) ** 0.5 * scale + shift


def norm_by_projection(x, scale, shift, eps):
    width = x.size(-1)
    centered = x @ (torch.eye(width, dtype=x.dtype, device=x.device) - 1 / width)
    variance = torch.einsum("...d,...d->...", centered, centered)[..., None] / width
    return torch.addcmul(shift, scale, centered / (variance + eps).sqrt())


def norm_in_a_loop(x, scale, shift, eps):
    rows = [(row - row.mean()) / (row.var(unbiased=False) + eps).sqrt() for row in x.flatten(0, -2)]
    return torch.stack(rows).view(x.shape) * scale + shift


def given_norm(x, scale, shift, eps):
    return (x - x.mean(-1, True)) / (torch.std(x, -1, keepdim=True) + eps) * scale + shift


def norm_with(variance, divisor):
    def answer(x, scale, shift, eps):
        return (x - x.mean(-1, True)) / divisor(variance(x), eps) * scale + shift

    return answer


def biased(x):
    return (x - x.mean(-1, True)).pow(2).mean(-1, True)


def unbiased(x):
    return (x - x.mean(-1, True)).pow(2).sum(-1, True) / (x.size(-1) - 1)


def norm_of_positions(x, scale, shift, eps):
    turned = x.transpose(-1, -2)
    return norm_by_var_mean(turned, 1, 0, eps).transpose(-1, -2) * scale + shift


def norm_without_mean(x, scale, shift, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, True) + eps) * scale + shift


def norm_in_place(x, scale, shift, eps):
    x -= x.mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * scale + shift


# 06.encoder_layer


def layer_by_cases(x, self_attn, feed_forward, norms, dropout, norm_first):
    one, two = norms
    if norm_first:
        y = x + dropout(self_attn(one(x)))
        return y + dropout(feed_forward(two(y)))
    y = one(x + dropout(self_attn(x)))
    return two(y + dropout(feed_forward(y)))


def layer_with(post, pre):
    """From one path for each order, functions of x, sub-layer, norm and dropout, to a layer."""

    def answer(x, self_attn, feed_forward, norms, dropout, norm_first):
        path = pre if norm_first else post
        return path(path(x, self_attn, norms[0], dropout), feed_forward, norms[1], dropout)

    return answer


def post(x, sub, norm, drop):
    return norm(drop(sub(x)) + x)


def pre(x, sub, norm, drop):
    return drop(sub(norm(x))) + x


class Layer:
    def __call__(self, x, self_attn, feed_forward, norms, dropout, norm_first):
        for number, sublayer in enumerate([self_attn, feed_forward]):
            before, after = (norms[number], lambda x: x) if norm_first else (lambda x: x, norms[number])
            x = after(torch.add(x, dropout(sublayer(before(x)))))
        return x


def layer_in_parallel(x, self_attn, feed_forward, norms, dropout, norm_first):
    path = pre if norm_first else post
    return path(x, self_attn, norms[0], dropout) + path(x, feed_forward, norms[1], dropout) - x


def layer_in_place(x, self_attn, feed_forward, norms, dropout, norm_first):
    x += dropout(self_attn(norms[0](x) if norm_first else x))
    x = x if norm_first else norms[0](x)
    x = x + dropout(feed_forward(norms[1](x) if norm_first else x))
    return x if norm_first else norms[1](x)


class Part(nn.Module):
    """A function in the place of a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, *others):
        return self.function(x)


def library_layer(x, self_attn, feed_forward, norms, dropout, norm_first):
    layer = EncoderLayer(x.size(-1), num_heads=1, d_ff=1, dropout=0.0, norm_first=norm_first)
    layer.self_attn, layer.feed_forward = Part(self_attn), Part(feed_forward)
    for path, norm in zip((layer.self_attn_path, layer.feed_forward_path), norms, strict=True):
        path.norm, path.dropout = Part(norm), Part(dropout)
    return layer(x)


# 06.parameters


def parameters_by_formula(d_model, num_heads, d_ff, num_layers, norm_first):
    return num_layers * (4 * d_model**2 + 9 * d_model + 2 * d_model * d_ff + d_ff) + 2 * d_model * norm_first


def parameters_of_modules(d_model, num_heads, d_ff, num_layers, norm_first):
    with torch.device("meta"):
        layer = [nn.Linear(d_model, d_model) for _ in range(4)]
        layer += [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)]
        norm = nn.LayerNorm(d_model)
    sizes = [parameter.numel() for part in layer for parameter in part.parameters()]
    return num_layers * sum(sizes) + (sum(p.numel() for p in norm.parameters()) if norm_first else 0)


def parameters_by_heads(d_model, num_heads, d_ff, num_layers, norm_first):
    d_k, total = d_model // num_heads, 0
    for _ in range(num_layers):
        total += 3 * num_heads * (d_model + 1) * d_k + (num_heads * d_k + 1) * d_model
        total += (d_model + 1) * d_ff + (d_ff + 1) * d_model
        total += 2 * 2 * d_model
    return total + [0, 2 * d_model][norm_first]


def parameters_with(layer, last=lambda d: 2 * d):
    """From a count for one layer, (d_model, num_heads, d_ff), and one for the last norm."""

    def answer(d_model, num_heads, d_ff, num_layers, norm_first):
        return num_layers * layer(d_model, num_heads, d_ff) + (last(d_model) if norm_first else 0)

    return answer


def right_layer(d, h, f):
    return 4 * d * d + 9 * d + 2 * d * f + f


def one_layer(d_model, num_heads, d_ff, num_layers, norm_first):
    return right_layer(d_model, num_heads, d_ff) + (2 * d_model if norm_first else 0)


def library_parameters(d_model, num_heads, d_ff, num_layers, norm_first):
    sizes = dict(d_model=d_model, num_heads=num_heads, d_ff=d_ff, num_layers=num_layers, position="none")
    with torch.device("meta"):
        encoder = Encoder(ModelConfig(4, **sizes, norm_first=norm_first))
    return sum(parameter.numel() for parameter in encoder.parameters())


# 06.token_matrices


def matrices_by_einsum(x, w1, b1, w2, b2):
    on = torch.relu(x @ w1 + b1).sign()
    return torch.einsum("bsf,df,fe->bsde", on, w1, w2), torch.einsum("bsf,f,fe->bse", on, b1, w2) + b2


def matrices_by_broadcast(x, w1, b1, w2, b2):
    on = ((x @ w1 + b1) > 0)[..., None, None].to(w1.dtype)  # (batch, src_len, d_ff, 1, 1)
    outer = w1.T[:, :, None] * w2[:, None, :]  # (d_ff, d_model, d_model)
    matrices = (on * outer).sum(2)
    network = torch.relu(x @ w1 + b1) @ w2 + b2
    return matrices, network - (x.unsqueeze(-2) @ matrices).squeeze(-2)


def matrices_by_diagonals(x, w1, b1, w2, b2):
    gates = torch.diag_embed((x @ w1 + b1 > 0).to(x))  # (batch, src_len, d_ff, d_ff)
    return w1 @ gates @ w2, b1 @ gates @ w2 + b2


def matrices_by_token(x, w1, b1, w2, b2):
    rows = [torch.where(total > 0, 1.0, 0.0).to(x.dtype) for total in (x @ w1 + b1).flatten(0, 1)]
    matrices, biases = [w1 @ torch.diag(row) @ w2 for row in rows], [(row * b1) @ w2 + b2 for row in rows]
    return torch.stack(matrices).unflatten(0, x.shape[:2]), torch.stack(biases).view(x.shape)


def matrices_of_the_text(x, w1, b1, w2, b2):
    matrices = x.new_zeros(*x.shape, x.size(-1))
    biases = torch.zeros_like(x)
    for sentence in range(x.size(0)):
        for position in range(x.size(1)):
            biases[sentence, position] = b2
            for unit in range(b1.size(0)):
                total = x[sentence, position] @ w1[:, unit] + b1[unit]
                if total > 0:
                    matrices[sentence, position] += torch.outer(w1[:, unit], w2[unit])
                    biases[sentence, position] += b1[unit] * w2[unit]
    return matrices, biases


def matrices_with(switch=lambda total: total > 0, sums=lambda x, w1, b1: x @ w1 + b1, change=lambda pair, *given: pair):
    def answer(x, w1, b1, w2, b2):
        on = switch(sums(x, w1, b1)).to(x.dtype).unsqueeze(-2)  # (batch, src_len, 1, d_ff)
        pair = (on * w1) @ w2, ((on * b1) @ w2).squeeze(-2) + b2
        return change(pair, b1, w2, b2)

    return answer


def same_bias(pair, b1, w2, b2):
    return pair[0], (b1 @ w2 + b2).repeat(*pair[1].shape[:2], 1)


def library_matrices(x, w1, b1, w2, b2):
    network = FeedForward(*w1.shape).to(x)
    with torch.no_grad():
        for ours, theirs in zip(network.parameters(), (w1.T, b1, w2.T, b2), strict=True):
            ours.copy_(theirs)
    jacobians = torch.func.vmap(torch.func.jacrev(network))(x.flatten(0, 1))  # (tokens, outputs, inputs)
    matrices = jacobians.mT.unflatten(0, x.shape[:2])
    return matrices, network(x) - torch.einsum("bsd,bsde->bse", x, matrices)


RIGHT = {
    "06.reach": [measured(), reached(network=1.0), reached(scaled=torch.tensor(0))],
    "06.layer_norm": [norm_by_var_mean, norm_by_length, norm_by_projection, norm_in_a_loop],
    "06.encoder_layer": [layer_by_cases, layer_with(post, pre), Layer()],
    "06.parameters": [parameters_by_formula, parameters_of_modules, parameters_by_heads],
    "06.token_matrices": [matrices_by_einsum, matrices_by_broadcast, matrices_by_diagonals],
}

# What the library makes of the same inputs: proof that the references say what the course says.
LIBRARY = {
    "06.reach": measured(),
    "06.layer_norm": lambda x, scale, shift, eps: layer_norm(x, scale, shift, eps=eps),
    "06.encoder_layer": library_layer,
    "06.parameters": library_parameters,
    "06.token_matrices": library_matrices,
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "06.reach": [
        (reached(attention=1), "where tokens meet"),
        (reached(causal=3), "may see"),
        (reached(wrong=1), "one number for the whole sentence"),
        (reached(scaled=1), "Work it out"),
        (reached(network=6), None),
        (reached(causal=2), None),
        (reached(norm=None), None),
        ({"self-attention": 6}, None),
    ],
    "06.layer_norm": [
        (given_norm, "Both mistakes"),
        (norm_with(unbiased, lambda variance, eps: (variance + eps).sqrt()), "one less"),
        (norm_with(biased, lambda variance, eps: variance.sqrt() + eps), "after the root"),
        (norm_with(biased, lambda variance, eps: variance.sqrt()), "0 / 0"),
        (norm_of_positions, "over the positions"),
        (norm_without_mean, "never taken off"),
        (norm_with(biased, lambda variance, eps: (variance + eps**2).sqrt()), None),
        (norm_with(biased, lambda variance, eps: variance + eps), None),
        (lambda x, scale, shift, eps: (norm_by_var_mean(x, 1, 0, eps) + shift) * scale, None),
        (lambda x, scale, shift, eps: norm_by_var_mean(x.flatten(), 1, 0, eps).view(x.shape) * scale + shift, None),
        (lambda x, scale, shift, eps: F.layer_norm(x, x.shape[-1:], scale, shift, eps), None),
        (norm_in_place, None),
    ],
    "06.encoder_layer": [
        (layer_with(post, post), "whatever `norm_first` says"),
        (layer_with(pre, post), "exchanged"),
        (layer_with(lambda x, sub, norm, drop: x + norm(drop(sub(x))), pre), "after the norm"),
        (layer_with(post, lambda x, sub, norm, drop: pre(norm(x), sub, lambda x: x, drop)), "the normalized x"),
        (
            layer_with(
                lambda x, sub, norm, drop: norm(drop(x + sub(x))), lambda x, sub, norm, drop: drop(x + sub(norm(x)))
            ),
            "features of x",
        ),
        (
            layer_with(lambda x, sub, norm, drop: norm(drop(sub(x))), lambda x, sub, norm, drop: drop(sub(norm(x)))),
            "no residual",
        ),
        (layer_with(pre, pre), None),
        (lambda x, attn, net, norms, *rest: layer_by_cases(x, attn, net, (norms[0], norms[0]), *rest), None),
        (lambda x, attn, net, norms, *rest: layer_by_cases(x, net, attn, norms, *rest), None),
        (lambda x, attn, net, norms, drop, first: layer_by_cases(x, attn, net, norms, lambda x: x, first), None),
        (lambda x, attn, net, norms, drop, first: (pre if first else post)(x, attn, norms[0], drop), None),
        (layer_in_parallel, None),
        (layer_in_place, None),
    ],
    "06.parameters": [
        (parameters_with(lambda d, h, f: right_layer(d, h, f) + 3 * (h - 1) * (d * d + d)), "every head"),
        (parameters_with(lambda d, h, f: right_layer(d, h, f) - d * d - d), "one more projection"),
        (parameters_with(lambda d, h, f: 4 * d * d + 2 * d * f + 4 * d), "biases"),
        (parameters_with(lambda d, h, f: right_layer(d, h, f) - 2 * d), "one norm"),
        (parameters_with(right_layer, lambda d: 0), "behind the stack"),
        (one_layer, "one layer"),
        (parameters_with(lambda d, h, f: right_layer(d, h, f) - 2 * d, lambda d: d), None),
        (parameters_with(lambda d, h, f: right_layer(d, h, 4 * d)), None),
        (parameters_with(lambda d, h, f: right_layer(d, h, f) / h), None),
        (lambda d, h, f, layers, norm_first: layers * right_layer(d, h, f) + 2 * d, None),
    ],
    "06.token_matrices": [
        (matrices_of_the_text, "one by one"),
        (matrices_by_token, "one by one"),
        (matrices_with(lambda total: total >= 0), "exactly 0 is off"),
        (matrices_with(lambda total: total == total), "same matrix"),
        (matrices_with(lambda total: total.clamp(min=0)), "by its value"),
        (matrices_with(sums=lambda x, w1, b1: x @ w1), "b₁ is missing"),
        (matrices_with(change=same_bias), "still contain units"),
        (matrices_with(change=lambda pair, *given: (pair[0].transpose(2, 3), pair[1])), "are turned"),
        (matrices_with(change=lambda pair, b1, w2, b2: (pair[0], pair[1] - b2)), None),
        (matrices_with(lambda total: total < 0), None),
        (matrices_with(torch.sigmoid), None),
        (matrices_with(change=lambda pair, *given: pair[0]), None),
        (matrices_with(change=lambda pair, *given: pair[::-1]), None),
    ],
}
