"""Answers to assignment 05: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import torch

from course_lib.attention import attention_weights
from course_lib.checks import Edit
from course_lib.masks import causal_mask, padding_mask

CAUSAL = "place <= place[:, None]"
LOOK = "not mask.any(dim=-1).all()"
SOFTMAX = "torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)"
JACOBIAN = "torch.autograd.functional.jacobian(layer, x)"
FOUND = "(jacobian[0, :, :, 0] != 0).any(dim=-1).any(dim=1)"


class DecoderMasks:
    def __call__(self, src, tgt_in, pad_id):
        future = tgt_in.new_ones(tgt_in.size(1), tgt_in.size(1)).triu(1).bool()
        rows = torch.ones_like(tgt_in, dtype=torch.bool)[:, None, :, None]
        return ~(future | (tgt_in == pad_id)[:, None, None]), rows & (src != pad_id)[:, None, None, :]


class MaskedSoftmax(torch.nn.Module):
    def forward(self, scores, mask):
        if not all(row.any() for row in mask.flatten(0, -2)):
            raise ValueError("a row is empty")
        shown = scores.clone()
        shown[~mask.expand(scores.shape)] = float("-inf")
        return torch.softmax(shown, -1)


def encoder_in_a_loop(scores, ids, pad_id):
    rows = zip(scores, ids, strict=True)
    return torch.stack([one.masked_fill(row == pad_id, -1e9).softmax(-1) for one, row in rows])


def sees_by_random_directions(layer, x):
    direction = torch.randn(x.shape[-1], dtype=x.dtype, generator=torch.Generator().manual_seed(5))
    x = x.clone().requires_grad_()
    told = (layer(x) @ direction)[0]
    return torch.stack([torch.autograd.grad(each, x, retain_graph=True)[0][0].ne(0).any(-1) for each in told])


RIGHT = {
    "05.decoder": [
        DecoderMasks(),
        Edit(CAUSAL, "torch.ones(len(place), len(place), device=src.device).tril().bool()"),
        Edit(CAUSAL, "(place - place.view(-1, 1)) < 1", "tgt_in != pad_id", "tgt_in.not_equal(pad_id)"),
    ],
    "05.open": [
        Edit(),
        Edit("(1, 1, 1, 7)", "[1, 1, 1, 7]", "1 + 2 + 3 + 4 + 5 + 5", "20"),
        Edit("6 * 4", "torch.tensor(24)", "1 + 2 + 3 + 4 + 5 + 6", "6 * 7 // 2"),
    ],
    "05.weights": [
        MaskedSoftmax(),
        Edit(LOOK, "bool((mask.sum(-1) == 0).any())", SOFTMAX, "torch.where(mask, scores, -math.inf).softmax(-1)"),
        Edit("-math.inf", "torch.finfo(scores.dtype).min"),
        Edit(LOOK, "(~mask).all(dim=-1).any()", "torch.softmax", "torch.log_softmax", "=-1)\n", "=-1).exp()\n"),
    ],
    "05.encoder": [
        encoder_in_a_loop,
        Edit("scores.masked_fill(~real, -math.inf)", "scores + real.to(scores).log()"),
        Edit("scores.masked_fill(~real, -math.inf)", "torch.where(real, scores, -math.inf)"),
        Edit("~real", "~real.expand_as(scores)", "-math.inf", "torch.finfo(scores.dtype).min"),
    ],
    "05.sees": [
        sees_by_random_directions,
        Edit("(layer, x)", "(layer, x, vectorize=True)"),
        Edit(JACOBIAN, "torch.func.jacrev(layer)(x)", FOUND, "jacobian.abs().amax(dim=(0, 2, 3, 5)) > 0"),
        Edit(JACOBIAN, "[layer(x * (1 + one)) - layer(x) for one in torch.eye(x.size(1)).to(x).unsqueeze(-1)]",
             FOUND, "(torch.cat(jacobian) != 0).any(dim=-1).T"),  # by changes
    ],
}

WRONG = {
    "05.decoder": [
    ],
    "05.open": [
        Edit("1 + 2 + 3 + 4 + 5 + 5", "None"),
    ],
    "05.weights": [
        *(Edit("-math.inf", number) for number in ("-1000.0", "-1e4", "-65504.0")),
    ],
    "05.encoder": [
        Edit("scores.masked_fill(~real, -math.inf)", "scores", ", dim=-1)", ", dim=-1) * real"),
        Edit("unsqueeze(1).unsqueeze(2)", "unsqueeze(2).unsqueeze(3)", "-math.inf", "-1e9"),
    ],
    "05.sees": [
        Edit("jacobian(layer, x)", "jacobian(layer, x.mul_(-2))"),
        Edit("n(layer, x)", "n(lambda x: layer(x).sum(2), x)[0, :, 0]", FOUND, "1.0 * (jacobian.abs() > 1e-6).any(-1)"),
    ],
}


def library_weights(scores, mask):
    """The finished softmax takes queries and keys; with zeros for both, the bias is all of the scores."""
    zeros = scores.new_zeros(*scores.shape[:-1], 1), scores.new_zeros(*scores.shape[:-2], scores.size(-1), 1)
    return attention_weights(*zeros, mask, bias=scores)


# What a solution must agree with.
LIBRARY = {
    "05.decoder": lambda src, tgt_in, pad_id: (
        padding_mask(tgt_in, pad_id) & causal_mask(tgt_in.size(1), device=tgt_in.device),
        padding_mask(src, pad_id).expand(-1, -1, tgt_in.size(1), -1),
    ),
    "05.weights": library_weights,
    "05.encoder": lambda scores, ids, pad_id: library_weights(scores, padding_mask(ids, pad_id)),
}
