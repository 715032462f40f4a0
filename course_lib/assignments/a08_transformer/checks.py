"""Assignment 08: the whole Transformer, counted, and the one matrix that embeds and generates."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

PAD_ID, BOS_ID = 0, 1  # of <pad> and <s>


# 08.count


def count(vocab_size: int, d_model: int, d_ff: int, num_layers: int, tied: bool, norm_first: bool) -> dict[str, int]:
    """Parameters of a Transformer in three parts: every matrix and every vector is listed by its shape."""
    attention = 4 * [(d_model, d_model), (d_model,)]
    feed_forward = [(d_ff, d_model), (d_ff,), (d_model, d_ff), (d_model,)]
    norm = [(d_model,), (d_model,)]
    parts: dict[str, list[tuple]] = {"embeddings": [], "encoder": [], "decoder": []}
    for _ in ("shared",) if tied else ("source", "target", "generator"):
        parts["embeddings"] += [(vocab_size, d_model)]
    for _ in range(num_layers):
        parts["encoder"] += attention + feed_forward + 2 * norm
        parts["decoder"] += attention + attention + feed_forward + 3 * norm
    if norm_first:
        parts["encoder"] += norm
        parts["decoder"] += norm
    return {part: sum(math.prod(shape) for shape in shapes) for part, shapes in parts.items()}


def _sizes(generator: torch.Generator) -> list[tuple]:
    """The paper's base model, and small ones of all four kinds; with an even d_model, because of the sinusoids."""
    kinds = [(True, False), (False, False), (True, True), (False, True), (True, False), (False, True)]
    drawn = [torch.randint(2, 50, (4,), generator=generator).tolist() for _ in kinds]
    small = [
        (10 + vocab, 2 * half, d_ff, 1 + layers % 5, *kind)
        for (vocab, half, d_ff, layers), kind in zip(drawn, kinds, strict=True)
    ]
    return [(37_000, 512, 2048, 6, True, False), *small]


def _formula(
    vocab_size, d_model, d_ff, num_layers, tied, norm_first, *, once=1, separate=3, square=4, bias=1, norm=2, end=1
) -> dict[str, int]:
    """The closed form, with a number for everything that can be forgotten."""
    attention, norm = square * (d_model + bias) * d_model, norm * d_model
    layer = attention + 2 * d_model * d_ff + bias * (d_ff + d_model) + 2 * norm
    end = end * norm_first * norm
    return {
        "embeddings": (once if tied else separate) * vocab_size * d_model,
        "encoder": num_layers * layer + end,
        "decoder": num_layers * (layer + attention + norm) + end,
    }


def _decoder_like_encoder(*sizes) -> dict[str, int]:
    counted = _formula(*sizes)
    return counted | {"decoder": counted["encoder"]}


COUNT = Exercise(
    "08.count",
    count,
    _sizes,
    (
        Variant(
            _decoder_like_encoder,
            "Your decoder layer is as large as an encoder layer. It has a second attention, with a norm of its own.",
        ),
        Variant(
            lambda *sizes: _formula(*sizes, bias=0), "The biases of attention and feed-forward networks are missing."
        ),
        Variant(
            lambda *sizes: _formula(*sizes, norm=0),
            "The norms are missing: each has a scale and a shift for every feature.",
        ),
        Variant(
            lambda *sizes: _formula(*sizes, square=3),
            "Your attention has three matrices. After queries, keys and values comes the output projection.",
        ),
        Variant(
            lambda *sizes: _formula(*sizes, end=0), "Only the norms at the ends of the two pre-norm stacks are missing."
        ),
        Variant(lambda *sizes: _formula(*sizes, separate=1), "You count one matrix of the vocabulary, tied or not."),
        Variant(
            lambda *sizes: _formula(*sizes, separate=2),
            "Where nothing is shared, the generator has a matrix as well, beside the two embeddings.",
        ),
    ),
)


# 08.ends


def ends(ids: Tensor, hidden: Tensor, table: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Embedded tokens with their positions, and logits: one row of the shared matrix after the other."""
    scale = math.sqrt(table.size(1))
    embedded = table.new_zeros(ids.size(0), ids.size(1), table.size(1))
    logits = table.new_zeros(hidden.size(0), hidden.size(1), table.size(0))
    for token in range(table.size(0)):
        here = (ids == token).unsqueeze(-1)  # (batch, length, 1)
        embedded += here * table[token] * scale
        logits[:, :, token] = (hidden * table[token]).sum(dim=-1)
    for place in range(ids.size(1)):
        embedded[:, place] += position[place]
    return embedded, logits


def _ends_cases(generator: torch.Generator) -> list[tuple]:
    shapes = [(1, 3, 2, 8, 6, 5), (2, 4, 5, 4, 9, 4), (3, 5, 3, 6, 7, 8), (4, 2, 6, 10, 11, 7)]
    return [
        (
            torch.randint(vocab, (batch, length), generator=generator),
            torch.randn(batch, tgt_len, d_model, generator=generator),
            torch.randn(vocab, d_model, generator=generator) / math.sqrt(d_model),
            torch.randn(max_len, d_model, generator=generator),
        )
        for batch, length, tgt_len, d_model, vocab, max_len in shapes
    ]


def _scaled(ids, hidden, table, position, *, token=0.5, place=0.0, logit=0.0) -> tuple[Tensor, Tensor]:
    """Both ends with powers of d_model on the token, on its position and on the logits."""
    d_model = table.size(1)
    embedded = F.embedding(ids, table) * d_model**token + position[: ids.size(1)] * d_model**place
    return embedded, F.linear(hidden, table) * d_model**logit


ENDS = Exercise(
    "08.ends",
    ends,
    _ends_cases,
    (
        Variant(
            lambda *inputs: _scaled(*inputs, logit=0.5),
            "The embedded tokens are right, but the logits are √d_model times too large. "
            "What goes in is scaled, what comes out is not.",
        ),
        Variant(
            lambda *inputs: _scaled(*inputs, token=0.0),
            "Now the scale is gone at both ends. The logits are right, but the tokens need their √d_model.",
        ),
        Variant(
            lambda *inputs: _scaled(*inputs, token=0.0, logit=0.5),
            "The scale is at the wrong end: it belongs to what goes in.",
        ),
        Variant(
            lambda *inputs: _scaled(*inputs, place=0.5),
            "The positions are scaled, too. Only the token's row is; the position comes after the scale.",
        ),
        Variant(lambda *inputs: _scaled(*inputs)[::-1], "Embedded tokens and logits are the other way round."),
    ),
)


# 08.next


def next_tokens(hidden: Tensor, tgt_in: Tensor, table: Tensor) -> Tensor:
    """Ids of the most probable next tokens: one place and one row of the matrix after the other."""
    last = hidden[:, 0]  # (batch, d_model)
    for place in range(1, tgt_in.size(1)):
        real = tgt_in[:, place] != PAD_ID
        last = torch.where(real.unsqueeze(-1), hidden[:, place], last)
    best = torch.full_like(tgt_in[:, 0], PAD_ID)
    highest = last.new_full(best.shape, -math.inf)
    for token in range(table.size(0)):
        if token not in (PAD_ID, BOS_ID):
            logit = (last * table[token]).sum(dim=-1)  # (batch,)
            best = torch.where(logit > highest, token, best)
            highest = torch.maximum(logit, highest)
    return best


def _half_written(generator: torch.Generator) -> list[tuple]:
    """Half-written sentences: <pad> is likeliest after the first, all others negative; <s> after the last."""
    shapes = [((3,), 5, 4, 9), ((6, 2, 4), 6, 8, 12), ((1, 3, 4, 2), 4, 5, 11), ((3, 3), 3, 6, 10)]
    shapes += [((2, 7, 1, 5, 4), 7, 8, 16)]
    cases = []
    for lengths, tgt_len, d_model, vocab in shapes:
        tgt_in = torch.randint(4, vocab, (len(lengths), tgt_len), generator=generator)
        tgt_in[:, 0] = BOS_ID
        for row, length in enumerate(lengths):
            tgt_in[row, length:] = PAD_ID
        hidden = torch.randn(len(lengths), tgt_len, d_model, generator=generator)
        table = torch.randn(vocab, d_model, generator=generator)
        hidden[-1, lengths[-1] - 1] = 5 * table[BOS_ID]
        hidden[0, lengths[0] - 1] = to_pad = 5 * table[PAD_ID]
        table[2:] -= 2 * (table[2:] @ to_pad).relu().outer(to_pad) / to_pad.dot(to_pad)  # mirrored
        table[:2] *= 5
        cases.append((hidden, tgt_in, table))
    return cases


def _ending(hidden, tgt_in, *, back=1) -> Tensor:
    """The vectors so many places before the end of the real tokens."""
    places = (tgt_in != PAD_ID).sum(dim=1) - back
    return hidden[torch.arange(len(places), device=places.device), places]


def _likeliest(vectors, table, *, barred=(PAD_ID, BOS_ID)) -> Tensor:
    logits = F.linear(vectors, table)
    for token in barred:
        logits[..., token] = -math.inf
    return logits.argmax(dim=-1)


NEXT = Exercise(
    "08.next",
    next_tokens,
    _half_written,
    (
        Variant(
            lambda hidden, tgt_in, table: _likeliest(hidden[:, -1], table),
            "You read the last place of the batch. In a shorter sentence that is padding.",
        ),
        Variant(
            lambda hidden, tgt_in, table: _likeliest(_ending(hidden, tgt_in), table, barred=()),
            "You choose <pad> or <s> where its logit is the largest; neither may be written.",
        ),
        Variant(
            lambda hidden, tgt_in, table: _likeliest(_ending(hidden, tgt_in, back=0), table),
            "You read one place behind the last real token. Places count from 0, so the last of n is n − 1.",
        ),
        Variant(
            lambda hidden, tgt_in, table: _likeliest(_ending(hidden, tgt_in), table) - 2,
            "Your ids are too small by 2: they count from the first token that may be written.",
        ),
        Variant(
            lambda hidden, tgt_in, table: _likeliest(hidden, table),
            "These are tokens for every place; only the last real one of each sentence is asked for.",
        ),
    ),
    loops=False,
)


# 08.gradient


def shared_gradient(
    src: Tensor, from_src: Tensor, tgt_in: Tensor, from_tgt: Tensor, hidden: Tensor, from_logits: Tensor
) -> Tensor:
    """Gradient of the shared matrix, row by row: all places where the token is read, and its logits everywhere."""
    gradient = hidden.new_zeros(from_logits.size(-1), hidden.size(-1))
    scale = math.sqrt(hidden.size(-1))
    for token in range(from_logits.size(-1)):
        for ids, arrived in ((src, from_src), (tgt_in, from_tgt)):
            here = (ids == token).unsqueeze(-1)  # (batch, length, 1)
            gradient[token] += scale * (here * arrived).sum(dim=(0, 1))
        gradient[token] += (from_logits[:, :, token].unsqueeze(-1) * hidden).sum(dim=(0, 1))
    return gradient


def _backward_cases(generator: torch.Generator) -> list[tuple]:
    """Few different tokens, so that many occur several times; the highest id is never read."""
    shapes = [(1, 4, 3, 4, 5), (2, 5, 5, 6, 7), (3, 2, 6, 8, 4), (2, 6, 4, 5, 20), (3, 4, 5, 3, 6)]
    return [
        (
            torch.randint(min(4, vocab - 1), (batch, src_len), generator=generator),
            torch.randn(batch, src_len, d_model, generator=generator),
            torch.randint(min(4, vocab - 1), (batch, tgt_len), generator=generator),
            torch.randn(batch, tgt_len, d_model, generator=generator),
            torch.randn(batch, tgt_len, d_model, generator=generator),
            torch.randn(batch, tgt_len, vocab, generator=generator),
        )
        for batch, src_len, tgt_len, d_model, vocab in shapes
    ]


def _sum(src, from_src, tgt_in, from_tgt, hidden, from_logits, *, uses=(1, 1, 1), scales=(0.5, 0), every=True):
    """The gradient with a weight for each use, powers of d_model as scales, each place counted or only the last."""
    gradient = uses[2] * torch.einsum("btv,btd->vd", from_logits, hidden) * hidden.size(-1) ** scales[1]
    for use, ids, arrived in ((uses[0], src, from_src), (uses[1], tgt_in, from_tgt)):
        arrived = use * arrived.flatten(0, 1) * hidden.size(-1) ** scales[0]
        if every:
            gradient.index_put_((ids.flatten(),), arrived, accumulate=True)
        else:
            gradient[ids.flatten()] += arrived
    return gradient


GRADIENT = Exercise(
    "08.gradient",
    shared_gradient,
    _backward_cases,
    (
        Variant(
            lambda *inputs: _sum(*inputs, every=False),
            "A token that occurs several times gets the gradient of one place only: "
            "with repeated indices, += does not add them all.",
        ),
        Variant(
            lambda *inputs: _sum(*inputs, scales=(0, 0)),
            "The embedded tokens are √d_model times the rows, so the rows get √d_model times their gradients.",
        ),
        Variant(
            lambda *inputs: _sum(*inputs, scales=(0.5, 0.5)),
            "Here the generator's part is scaled as well; only the embeddings multiply by √d_model.",
        ),
        Variant(
            lambda *inputs: _sum(*inputs, uses=(1, 1, 0)),
            "The generator's part is missing: it reaches every row, from every place.",
        ),
        Variant(
            lambda *inputs: _sum(*inputs, uses=(0, 0, 1)),
            "This is the generator's part alone; source and target are read with the same matrix.",
        ),
    ),
    forbidden=(torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward),
    loops=False,
)


# 08.costs

PREDICTED = {
    "16 heads for 8": 1,
    "d_model and d_ff doubled": 4,
    "twice as long, feed-forward": 2,
    "twice as long, scores and weighted values": 4,
    "length where both are equal": 512,
    "bytes without moments": 8,
}

COSTS = Exercise(
    "08.costs",
    PREDICTED,
    variants=(
        Variant(
            PREDICTED | {"16 heads for 8": 2},
            "More heads are narrower heads: d_k halves, and the four projections stay d_model × d_model.",
        ),
        Variant(
            PREDICTED | {"twice as long, scores and weighted values": 2},
            "Twice as many queries meet twice as many keys.",
        ),
        Variant(
            PREDICTED | {"length where both are equal": 256},
            "Put both formulas of the lesson side by side: 4 · length² · d_model and 8 · length · d_model².",
        ),
        Variant(PREDICTED | {"bytes without moments": 4}, "The weight is not all: its gradient takes as much."),
    ),
    ask=value,
)

EXERCISES = (COUNT, ENDS, NEXT, GRADIENT, COSTS)
