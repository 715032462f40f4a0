"""Assignment 05: masks, from ids to the three attentions, into the softmax, and how to see that one is tight."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checks import Exercise, Variant, value

FINISHED = (F.scaled_dot_product_attention, nn.MultiheadAttention, F.multi_head_attention_forward)


def _ids(generator: torch.Generator, lengths: list[int], length: int, pad_id: int) -> Tensor:
    """Ids (batch, length) of sentences of these lengths, padded on the right."""
    ids = torch.randint(10, 100, (len(lengths), length), generator=generator)
    ids[ids == pad_id] += 1
    for sentence, end in enumerate(lengths):
        ids[sentence, end:] = pad_id
    return ids


# 05.decoder


def decoder_masks(src: Tensor, tgt_in: Tensor, pad_id: int) -> tuple[Tensor, Tensor]:
    """Masks of the decoder's self-attention (batch, 1, tgt_len, tgt_len), cross-attention (batch, 1, tgt_len, src_len).

    True where a query may attend to a key, one look after the other.
    """
    (batch, src_len), tgt_len = src.shape, tgt_in.size(1)
    own = torch.zeros(batch, 1, tgt_len, tgt_len, dtype=torch.bool, device=src.device)
    cross = torch.zeros(batch, 1, tgt_len, src_len, dtype=torch.bool, device=src.device)
    for sentence in range(batch):
        for query in range(tgt_len):
            for key in range(tgt_len):
                own[sentence, 0, query, key] = (tgt_in[sentence, key] != pad_id) & (key <= query)
            for key in range(src_len):
                cross[sentence, 0, query, key] = src[sentence, key] != pad_id
    return own, cross


def _batches(generator: torch.Generator) -> list[tuple]:
    lengths = [
        ([4, 2, 5], 5, [3, 6, 2], 6, 0),
        ([3], 4, [2], 3, 200),
        ([2, 3], 4, [4, 2], 4, 0),
        ([5, 1], 5, [2, 3], 3, 50),
    ]
    return [
        (_ids(generator, src, src_len, pad), _ids(generator, tgt, tgt_len, pad), pad)
        for src, src_len, tgt, tgt_len, pad in lengths
    ]


def _masks(src, tgt_in, pad_id, may=lambda ahead: ahead <= 0, padding=True, rows=False, cross=0, turn=0, flip=0):
    """Both masks with a slip: `may` takes how many places a key is ahead of the query."""
    place, real = torch.arange(tgt_in.size(1), device=tgt_in.device), tgt_in != pad_id
    own = may(place - place[:, None]) & (real | (not padding))[:, None, None, :]
    cross = ((src, tgt_in)[cross] != pad_id)[:, None, None, :].expand(-1, -1, tgt_in.size(1), -1)
    if rows:
        own, cross = own & real[:, None, :, None], cross & real[:, None, :, None]
    own, cross = (~own, ~cross) if flip else (own, cross)
    return own, cross.mT if turn else cross


def _slip(**slip):
    return lambda *inputs: _masks(*inputs, **slip)


_SLIPS = [
    (dict(may=lambda ahead: ahead <= 1), "Each position sees one place too many: the answer."),
    (dict(may=lambda ahead: ahead < 0), "No position may attend to itself here, so the first one has nothing."),
    (dict(may=lambda ahead: ahead >= 0), "A query sees itself and the future here; it is the past that it may."),
    (dict(padding=False), "The self-attention hides the future, but the padding of the target is open."),
    (dict(rows=True), "The rows of the padding are closed, so they have nothing to attend to. A mask hides keys."),
    (dict(cross=1), "The second mask hides the target's padding; the keys of cross-attention are the source's."),
    (dict(turn=True), "The cross mask lies on its side: its rows are the queries, which come from the target."),
    (dict(flip=True), "These say where a query may *not* attend; here True means: may."),
]

DECODER = Exercise(
    "05.decoder", decoder_masks, _batches, [Variant(_slip(**slip), hint) for slip, hint in _SLIPS], loops=False
)


# 05.weights


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Weights of the scores' shape: each query shares 1 among the keys it may attend to.

    Raises:
        ValueError: if a query may attend to nothing.
    """
    if not mask.is_meta and not mask.any(dim=-1).all():
        raise ValueError("a query has nothing to attend to")
    shown = scores.masked_fill(~mask, -math.inf)
    exponentials = (shown - shown.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def _masked_scores(generator: torch.Generator) -> list[tuple]:
    def scores(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    def real(lengths: list[int], keys: int) -> Tensor:
        return (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None, None, :]

    causal = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
    large = scores(1, 2, 3, 5)
    for row, hidden in enumerate((200.0, math.inf, math.nan)):
        large[..., row, 4] = hidden
    padded_left = causal & torch.tensor([[True] * 4, [False, True, True, True]])[:, None, None, :]
    return [
        (scores(2, 3, 4, 6), real([6, 3], 6)),
        (scores(2, 2, 4, 4), causal),
        (scores(1, 2, 3, 6) + torch.tensor([500.0, -500.0, -1e5])[:, None], real([4], 6)),
        (large, real([4], 5)),
        (scores(2, 2, 4, 4), padded_left),
        (scores(3, 1, 2, 4), real([4, 0, 1], 4)),
        (scores(1, 2, 1, 3), real([0], 3)),
        (scores(2, 2, 3, 6).half(), real([4, 2], 6)),
        (scores(3, 2, 4, 4), causal & real([4, 2, 3], 4)),
    ]


def _ask_weights(answer, scores: Tensor, mask: Tensor) -> dict:
    try:
        weights = answer(scores, mask)
    except ValueError:
        return {"outcome": "raises ValueError", "weights": None, "weights == 0": None}
    zero = weights == 0 if isinstance(weights, torch.Tensor) else None
    return {"outcome": "returns", "weights": weights, "weights == 0": zero}


def _hide(scores: Tensor, hidden: Tensor, number: float = -math.inf) -> Tensor:
    return F.softmax(scores.masked_fill(hidden, number), dim=-1)


def _careful(way, careful: bool):
    """A way to mask, with or without a look at queries that have nothing to attend to."""

    def answer(scores, mask):
        if careful and not mask.any(dim=-1).all():
            raise ValueError("a query has nothing to attend to")
        return way(scores, mask)

    return answer


def _afterwards(scores: Tensor, mask: Tensor) -> Tensor:
    weights = F.softmax(scores, dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True)


_HIDDEN_LATE = "The weights of a query do not sum to 1: they are hidden after the softmax, and their share is lost."
_WAYS = [
    (_afterwards, "Hide before the softmax: after it, a large or infinite hidden score has taken all the weight."),
    (lambda scores, mask: F.softmax(scores, dim=-1) * mask, _HIDDEN_LATE),
    (lambda scores, mask: F.softmax(scores, dim=-1).masked_fill(~mask, 0), _HIDDEN_LATE),
    (
        lambda scores, mask: F.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf), dim=-1),
        "−∞ is added to the hidden scores, and ∞ − ∞ is NaN. Put it in their place.",
    ),
    (lambda scores, mask: _hide(scores, ~mask, 0), "A hidden score of 0 is a score like any other: e⁰ = 1."),
    (lambda scores, mask: _hide(scores, mask), "The hidden keys get all the weight: here True means may attend."),
    (lambda scores, mask: _hide(scores, ~mask, -1e9), "float16 ends at 65,504, so it has no −1e9. It has −∞."),
]


def _only_if_all_is_hidden(scores: Tensor, mask: Tensor) -> Tensor:
    if not mask.any():
        raise ValueError("nothing is open")
    return _hide(scores, ~mask)


WEIGHTS = Exercise(
    "05.weights",
    masked_softmax,
    _masked_scores,
    (
        *(Variant(_careful(way, careful), hint) for way, hint in _WAYS for careful in (True, False)),
        Variant(lambda scores, mask: _hide(scores, ~mask), "A row of −∞ becomes NaN. Look for one first, and raise."),
        Variant(_only_if_all_is_hidden, "It raises only if all is hidden; one query with nothing is enough."),
    ),
    ask=_ask_weights,
    forbidden=FINISHED,
    tolerance=1e-3,  # float16 has no more
)


# 05.encoder


def encoder_weights(scores: Tensor, ids: Tensor, pad_id: int) -> Tensor:
    """Weights (batch, heads, queries, keys) that hide the padded keys, one sentence after the other."""
    weights = torch.zeros_like(scores)
    for sentence in range(scores.size(0)):
        hidden = ids[sentence] == pad_id  # (keys,)
        weights[sentence] = torch.softmax(scores[sentence].masked_fill(hidden, -math.inf), dim=-1)
    return weights


def _encoder_cases(generator: torch.Generator) -> list[tuple]:
    # As many sentences as keys first: there even a (batch, keys) mask fits, by accident.
    shapes = [([4, 2, 3, 1], 4, 2, 0), ([3], 5, 1, 200), ([2, 5, 3], 5, 2, 0), ([6, 4], 6, 3, 50)]
    return [
        (
            torch.randn(len(ends), heads, length, length, generator=generator) - 10 * pad,  # down to -2000
            _ids(generator, ends, length, pad),
            pad,
        )
        for ends, length, heads, pad in shapes
    ]


def _hiding(where, number: float):
    """The weights with `number` as the score of each place that where(padding) hides; padding is (batch, length)."""
    return lambda scores, ids, pad_id: _hide(scores, where(ids == pad_id), number)


def _rows(padding: Tensor) -> Tensor:
    return padding[:, None, :, None]


def _columns(padding: Tensor) -> Tensor:
    return padding[:, None, None, :]


def _both(padding: Tensor) -> Tensor:
    return _rows(padding) | _columns(padding)


_PLACES = [
    (_rows, -1e9, "Real tokens still attend to padding. Which axis of the scores does the padding of the mask meet?"),
    (_rows, -math.inf, "−∞ shows what −1e9 concealed: whole rows are hidden, and no column of the padding."),
    (_both, -1e9, "The columns are right. But the rows of the padding are closed too, and they should stay open."),
    (_both, -math.inf, "The columns are right. But the padded queries have nothing left, so they are NaN."),
    (lambda x: x, -1e9, "A mask (batch, keys) meets (queries, keys), and fits by accident. It needs two more axes."),
    (lambda x: ~_columns(x), -1e9, "Now it is the real tokens that are hidden."),
    (lambda x: _columns(x) & False, -1e9, "Nothing is hidden here."),
]

ENCODER = Exercise(
    "05.encoder",
    encoder_weights,
    _encoder_cases,
    [Variant(_hiding(where, number), hint) for where, number, hint in _PLACES],
    forbidden=FINISHED,
)


# 05.open

PREDICTED = {
    "shape of the cross mask": (1, 1, 1, 7),
    "open entries of the causal mask": 21,
    "open entries of both masks together": 20,
    "looks allowed in cross-attention": 24,
    "may Hund attend to schläft": False,
    "key_padding_mask of the source": [False, False, False, False, True, True, True],
    "queries with nothing, padded on the left": 1,
    "places ahead, three attentions with tril(1)": 3,
}

_DIAGONAL = {"open entries of the causal mask": 15, "open entries of both masks together": 15}
_GUESSES = [
    (_DIAGONAL, "The diagonal is open too: a query attends to itself."),
    ({"open entries of both masks together": 15}, "The row of the padding stays open: five real tokens."),
    ({"looks allowed in cross-attention": 20}, "All 6 queries look, also the padded one: the mask hides keys."),
    ({"looks allowed in cross-attention": 4}, "That is one query's share; the mask has one row for all 6 queries."),
    ({"key_padding_mask of the source": [True] * 4 + [False] * 3}, "In torch.nn's attention, True means hidden."),
    ({"places ahead, three attentions with tril(1)": 1}, "Each attention looks at outputs that looked ahead too."),
]

OPEN = Exercise(
    "05.open",
    PREDICTED,
    variants=[Variant(PREDICTED | guess, hint) for guess, hint in _GUESSES],
    ask=value,
)


# 05.sees


def sees(layer, x: Tensor) -> Tensor:
    """(length, length) bool: whether output t (row) depends on input s (column), one gradient after the other."""
    x = x.clone().requires_grad_()
    output = layer(x)  # (1, length, d_model)
    found = torch.zeros(x.size(1), x.size(1), dtype=torch.bool)
    for t in range(x.size(1)):
        for feature in range(x.size(2)):
            (gradient,) = torch.autograd.grad(output[0, t, feature], x, retain_graph=True)
            found[t] |= (gradient[0] != 0).any(dim=-1)
    return found


def _layers(generator: torch.Generator) -> list[tuple]:
    def x(length: int, d_model: int) -> Tensor:
        return torch.randn(1, length, d_model, generator=generator)

    square = torch.ones(5, 5, dtype=torch.bool)
    some = (torch.rand(6, 6, generator=generator) < 0.4) | torch.eye(6, dtype=torch.bool)
    return [
        (x(5, 4), square.tril(), 1, "plain"),
        (x(5, 4), square.tril(1), 2, "plain"),
        (x(5, 8), square, 1, "plain"),
        (x(5, 8), square.tril(), 2, "centered"),
        (x(6, 4), some, 1, "centered"),
        (x(5, 4), square.tril(), 1, "last feature"),
        (x(6, 4), some, 1, "plain"),
    ]


def _ask_sees(answer, x: Tensor, mask: Tensor, attentions: int, kind: str) -> Tensor:
    def layer(x):
        x = x * torch.eye(x.size(-1)).to(x)[-1] if kind == "last feature" else x
        for _ in range(attentions):
            scores = x @ x.transpose(1, 2) / x.size(-1) ** 0.5
            x = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ x
            x = x - x.mean(dim=-1, keepdim=True) if kind == "centered" else x
        return x

    return answer(layer, x)


def _gradients_of_sums(layer, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    sums = layer(x)[0].sum(dim=-1)  # (length,)
    gradients = [torch.autograd.grad(each, x, retain_graph=True)[0][0] for each in sums]
    return torch.stack(gradients).abs().sum(dim=-1) > 1e-6


def _changes(layer, x: Tensor) -> Tensor:
    before, columns = layer(x), []
    for s in range(x.size(1)):
        changed = x.clone()
        changed[:, s] += 1
        columns.append(((layer(changed) - before)[0].abs() > 1e-5).any(dim=-1))
    return torch.stack(columns, dim=1)


SEES = Exercise(
    "05.sees",
    sees,
    _layers,
    (
        Variant(
            _gradients_of_sums, "Where features sum to 0, the gradient of their sum is 0 as well. Ask each by itself."
        ),
        Variant(_changes, "You add the same number to all features, and a centered layer takes it away again."),
        Variant(lambda layer, x: sees(layer, x).T, "Rows and columns are exchanged: the outputs are the rows."),
        Variant(
            lambda layer, x: torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril(),
            "This is what a causal layer would do; find out what this one does.",
        ),
    ),
    ask=_ask_sees,
    any_device=False,  # what an output depends on, only its numbers say
)

EXERCISES = (DECODER, WEIGHTS, ENCODER, OPEN, SEES)
