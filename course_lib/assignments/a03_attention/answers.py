"""Answers to assignment 03: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import math

import torch

from course_lib.attention import attention
from course_lib.checks import Edit


def softmax_in_steps(scores):
    result = torch.empty_like(scores)
    rows = result.view(-1, scores.size(-1))
    for number, row in enumerate(scores.reshape(-1, scores.size(-1))):
        powers = (row - row.max()).exp()
        rows[number] = powers / powers.sum()
    return result


def softmax_in_place(scores):
    scores -= scores.amax(-1, keepdim=True)
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def scores_in_place(query, key):
    query /= math.sqrt(query.size(-1))
    return query @ key.transpose(1, 2)


class Attention:
    def __call__(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        weights = torch.nn.functional.softmax(scores, dim=-1)
        return weights @ value, weights


def attention_by_einsum(query, key, value):
    weights = torch.einsum("bqd,bkd->bqk", query, key).mul(key.size(-1) ** -0.5).softmax(-1)
    return torch.einsum("bqk,bkv->bqv", weights, value), weights


def attention_by_bmm(query, key, value):
    weights = torch.bmm(query, key.mT).div(math.sqrt(query.size(2))).softmax(dim=2)
    return torch.bmm(weights, value), weights


def additive_by_parts(query, key, to_query, to_key, score):
    hidden = torch.tanh((query @ to_query.mT)[:, :, None] + (key @ to_key.mT)[:, None, :])
    return (hidden * score).sum(-1).softmax(-1)


def additive_by_einsum(query, key, to_query, to_key, score):
    left = torch.einsum("bqd,hd->bqh", query, to_query)
    right = torch.einsum("bkd,hd->bkh", key, to_key)
    return torch.einsum("bqkh,h->bqk", (left.unsqueeze(2) + right.unsqueeze(1)).tanh(), score).softmax(2)


def additive_by_linear(query, key, to_query, to_key, score):
    left, right = torch.nn.functional.linear(query, to_query), torch.nn.functional.linear(key, to_key)
    return torch.softmax((left[:, :, None] + right[:, None]).tanh().matmul(score), dim=-1)


def additive_in_a_loop(query, key, to_query, to_key, score):
    rows = [((q @ to_query.T).unsqueeze(1) + key @ to_key.T).tanh() @ score for q in query.unbind(1)]
    return torch.stack(rows, dim=1).softmax(-1)


RIGHT = {
    "03.scores": [
        lambda query, key: torch.einsum("bqd,bkd->bqk", query, key) / query.shape[-1] ** 0.5,
        lambda query, key: (query[:, :, None] * key[:, None]).sum(-1).div(math.sqrt(key.size(2))),
        lambda query, key: torch.bmm(query * query.size(-1) ** -0.5, key.permute(0, 2, 1)),
    ],
    "03.softmax": [
        lambda scores: (scores - torch.logsumexp(scores, dim=-1, keepdim=True)).exp(),
        Edit("scores.amax(dim=-1, keepdim=True)", "scores.max(-1, keepdim=True)[0]"),
        softmax_in_steps,
    ],
    "03.attention": [attention_by_einsum, attention_by_bmm, Attention()],
    "03.repeated": [Edit(), Edit("1.0", "1", "0.25", "1 / 4"), Edit("0.4", "2 / 5", "0.2,", "torch.tensor(0.2),")],
    "03.additive": [additive_by_parts, additive_by_einsum, additive_by_linear],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "03.scores": [
        (lambda query, key: torch.stack([q @ key[n].T / q.size(-1) ** 0.5 for n, q in enumerate(query)]), "one by one"),
        scores_in_place,
        Edit("math.sqrt(query.size(-1))", "torch.sqrt(torch.tensor(query.size(-1)))"),  # in float32
    ],
    "03.softmax": [
        (lambda scores: scores.log_softmax(-1).exp(), "yours to write"),
        lambda scores: 2 ** (scores - scores.amax(-1, True)) / (2 ** (scores - scores.amax(-1, True))).sum(-1, True),
        softmax_in_place,
    ],
    "03.attention": [
        (lambda query, key, value: attention_by_bmm(query, key, value)[::-1], "the other way round"),
    ],
    "03.repeated": [Edit("1.0", "0.5"), Edit("1.0", "None"), {"four equal keys": 0.25}],
    "03.additive": [
        (additive_in_a_loop, "one by one"),
        lambda query, key, to_query, to_key, score: additive_by_parts(key, query, to_key, to_query, score),
    ],
}

# What a solution must agree with.
LIBRARY = {"03.attention": attention, "03.softmax": lambda scores: torch.softmax(scores, dim=-1)}
