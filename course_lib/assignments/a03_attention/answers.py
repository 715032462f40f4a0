"""Answers to assignment 03: differently written right ones, and plausible wrong ones with the hint that they get."""

import math

import torch

from course_lib.attention import attention

SCALE = "without the division by √d_k"


def einsum_scores(query, key):
    return torch.einsum("bqd,bkd->bqk", query, key) / query.shape[-1] ** 0.5


def broadcast_scores(query, key):
    return (query[:, :, None] * key[:, None]).sum(-1).div(math.sqrt(key.size(2)))


def scores_by_bmm(query, key):
    return torch.bmm(query * query.size(-1) ** -0.5, key.permute(0, 2, 1))


def looped_scores(query, key):
    sentences = [q @ k.T for q, k in zip(query, key, strict=True)]
    return torch.stack(sentences) * query.size(-1) ** -0.5


def scores_in_place(query, key):
    query /= math.sqrt(query.size(-1))
    return query @ key.transpose(1, 2)


def scores_of_square_shapes(query, key):
    return query @ key.reshape(key.size(0), key.size(2), key.size(1)) / math.sqrt(query.size(-1))


def scores_by_a_root_in_float32(query, key):
    return query @ key.mT / torch.sqrt(torch.tensor(query.size(-1)))


def scores_of_one_sentence(query, key):
    return (query[0] @ key[0].T).unsqueeze(0) / math.sqrt(query.size(-1))


def stable_softmax(scores):
    return (scores - torch.logsumexp(scores, dim=-1, keepdim=True)).exp()


def softmax_by_max(scores):
    powers = torch.exp(scores - scores.max(-1, keepdim=True)[0])
    return powers / powers.sum(-1)[..., None]


def softmax_in_steps(scores):
    result = torch.empty_like(scores)
    flat, rows = scores.reshape(-1, scores.size(-1)), result.view(-1, scores.size(-1))
    for number, row in enumerate(flat):
        powers = (row - row.max()).exp()
        rows[number] = powers / powers.sum()
    return result


def plain_softmax(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def softmax_of_columns(scores):
    powers = (scores - scores.amax(-2, keepdim=True)).exp()
    return powers / powers.sum(-2, keepdim=True)


def softmax_of_everything(scores):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum()


def softmax_from_the_top(scores):
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(-1, keepdim=True)


def softmax_with_floor(scores):
    powers = (scores - scores.amax(-1, keepdim=True)).exp() + 1e-3
    return powers / powers.sum(-1, keepdim=True)


def softmax_base_2(scores):
    powers = 2 ** (scores - scores.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def softmax_in_place(scores):
    scores -= scores.amax(-1, keepdim=True)
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def attention_by_einsum(query, key, value):
    weights = torch.einsum("bqd,bkd->bqk", query, key).mul(key.size(-1) ** -0.5).softmax(-1)
    return torch.einsum("bqk,bkv->bqv", weights, value), weights


def attention_by_bmm(query, key, value):
    weights = torch.bmm(query, key.mT).div(math.sqrt(query.size(2))).softmax(dim=2)
    return torch.bmm(weights, value), weights


class Attention:
    def __call__(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        weights = torch.nn.functional.softmax(scores, dim=-1)
        return weights @ value, weights


def attention_with(divisor, dim=-1, swap=False):
    def answer(query, key, value):
        weights = (query @ key.transpose(1, 2) / divisor(query, key, value)).softmax(dim)
        pair = weights @ value, weights
        return pair[::-1] if swap else pair

    return answer


def root_d_k(query, key, value):
    return math.sqrt(key.size(-1))


def additive_by_parts(query, key, to_query, to_key, score):
    hidden = torch.tanh((query @ to_query.mT)[:, :, None] + (key @ to_key.mT)[:, None, :])
    return (hidden * score).sum(-1).softmax(-1)


def additive_by_einsum(query, key, to_query, to_key, score):
    left = torch.einsum("bqd,hd->bqh", query, to_query)
    right = torch.einsum("bkd,hd->bkh", key, to_key)
    return torch.einsum("bqkh,h->bqk", (left.unsqueeze(2) + right.unsqueeze(1)).tanh(), score).softmax(2)


def additive_by_linear(query, key, to_query, to_key, score):
    left, right = torch.nn.functional.linear(query, to_query), torch.nn.functional.linear(key, to_key)
    scores = (left[:, :, None] + right[:, None]).tanh().matmul(score)
    return torch.softmax(scores, dim=-1)


def additive_in_a_loop(query, key, to_query, to_key, score):
    rows = [((q @ to_query.T).unsqueeze(1) + key @ to_key.T).tanh() @ score for q in query.unbind(1)]
    return torch.stack(rows, dim=1).softmax(-1)


def additive_with(bend=torch.tanh, dim=-1, turn=False, normalize=True):
    def answer(query, key, to_query, to_key, score):
        scores = bend((query @ to_query.T).unsqueeze(2) + (key @ to_key.T).unsqueeze(1)) @ score
        weights = scores.softmax(dim) if normalize else scores
        return weights.transpose(1, 2) if turn else weights

    return answer


PREDICTED = {
    "one key, any score": 1.0,
    "four equal keys": 0.25,
    "the same key twice, and one that scores ln 2 less": 0.4,
    "the query is zero, five keys": 0.2,
}


def predicted(**changed):
    names = dict(zip(("one", "four", "twice", "zero"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


RIGHT = {
    "03.scores": [einsum_scores, broadcast_scores, scores_by_bmm],
    "03.softmax": [stable_softmax, softmax_by_max, softmax_in_steps],
    "03.attention": [attention_by_einsum, attention_by_bmm, Attention()],
    "03.repeated": [PREDICTED, predicted(one=1, four=1 / 4), predicted(twice=2 / 5, zero=torch.tensor(0.2))],
    "03.additive": [additive_by_parts, additive_by_einsum, additive_by_linear],
}

# What the specification must agree with.
LIBRARY = {
    "03.attention": attention,
    "03.softmax": lambda scores: torch.softmax(scores, dim=-1),
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "03.scores": [
        (looped_scores, "one by one"),
        (lambda query, key: query @ key.transpose(1, 2), SCALE),
        (lambda query, key: query @ key.mT / query.size(-1), "divided by d_k"),
        (lambda query, key: query @ key.mT / math.sqrt(key.size(1)), "number of keys"),
        (lambda query, key: (query @ key.mT / math.sqrt(query.size(-1))).softmax(-1), "after the softmax"),
        (lambda query, key: key @ query.mT / math.sqrt(query.size(-1)), None),
        (lambda query, key: query @ key.mT * math.sqrt(query.size(-1)), None),
        (scores_in_place, None),
        (scores_by_a_root_in_float32, None),
        (scores_of_square_shapes, None),
        (scores_of_one_sentence, None),
    ],
    "03.softmax": [
        (plain_softmax, "infinite"),
        (softmax_of_columns, "each column"),
        (softmax_of_everything, "all weights together"),
        (softmax_from_the_top, "Each row has its own"),
        (lambda scores: scores.log_softmax(-1).exp(), "yours to write"),
        (lambda scores: scores / scores.sum(-1, keepdim=True), "exponential is missing"),
        (softmax_with_floor, None),
        (softmax_base_2, None),
        (softmax_in_place, None),
        (lambda scores: scores.sigmoid(), None),
    ],
    "03.attention": [
        (attention_with(lambda *_: 2), "still 4"),
        (attention_with(lambda *_: 1), SCALE),
        (attention_with(lambda query, key, value: key.size(-1)), "divided by d_k"),
        (attention_with(root_d_k, swap=True), "other way round"),
        (attention_with(lambda query, key, value: math.sqrt(value.size(-1))), None),
        (attention_with(root_d_k, dim=1), None),
        (lambda query, key, value: attention_with(root_d_k)(query, key, value)[0], None),
    ],
    "03.repeated": [
        (predicted(twice=0.8), "together"),
        (predicted(zero=0.0), "0 is a score like any other"),
        (predicted(four=1.0), None),
        (predicted(twice=1 / 3), None),
        (predicted(one=None), None),
        ({"four equal keys": 0.25}, None),
    ],
    "03.additive": [
        (additive_in_a_loop, "one by one"),
        (additive_with(bend=lambda hidden: hidden), "tanh is missing"),
        (additive_with(dim=1), "each column"),
        (additive_with(bend=torch.sigmoid), None),
        (additive_with(bend=torch.relu), None),
        (additive_with(turn=True), None),
        (additive_with(normalize=False), None),
        (lambda query, key, to_query, to_key, score: additive_by_parts(key, query, to_key, to_query, score), None),
    ],
}
