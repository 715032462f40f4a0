"""Assignment 02: what shuffling does, the sinusoids' exponent, ALiBi, rotary positions."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

# 02.shuffled

Layer = Callable[[Tensor], Tensor]

LAYERS = (
    "attention",
    "attention with a causal mask",
    "attention after positions are added",
    "the mean of all rows, in every row",
    "running sum over the rows",
    "each column sorted",
    "tanh",
    "attention and a trace of positions",
    "the first row's sum added to every row",
    "the first row's sum taken off every row",
)


def shuffled(layer: Layer, x: Tensor, order: Tensor) -> tuple[bool, bool]:
    """Whether a layer is equivariant, and whether it is invariant, for one input and one order of its rows."""
    before, after = layer(x), layer(x[order])
    moves_along = stays = True
    for place, row in enumerate(order.tolist()):
        moves_along = moves_along and bool((after[place] - before[row]).abs().max() < 1e-6)
        stays = stays and bool((after[place] - before[place]).abs().max() < 1e-6)
    return moves_along, stays


def _ask_about_a_layer(answer: Callable, layer: str, x: Tensor, order: Tensor) -> tuple[bool, bool]:
    length, d_model = x.shape

    def attention(x: Tensor, ahead: int = length) -> Tensor:
        future = torch.ones(length, length, dtype=torch.bool).triu(1 + ahead)
        return torch.softmax((x @ x.T / d_model**0.5).masked_fill(future, -torch.inf), dim=-1) @ x

    positions = torch.arange(length, dtype=x.dtype)[:, None].sin()
    layers = {
        "attention": attention,
        "attention with a causal mask": lambda x: attention(x, ahead=0),
        "attention after positions are added": lambda x: attention(x + positions),
        "the mean of all rows, in every row": lambda x: x.mean(dim=0).expand_as(x),
        "running sum over the rows": lambda x: x.cumsum(dim=0),
        "each column sorted": lambda x: x.sort(dim=0).values,
        "tanh": torch.tanh,
        "attention and a trace of positions": lambda x: attention(x) + 1e-4 * positions,
        "the first row's sum added to every row": lambda x: x + x[0].sum(),
        "the first row's sum taken off every row": lambda x: x - x[0].sum(),
    }
    return answer(layers[layer], x, order)


def _orders(generator: torch.Generator) -> list[tuple]:
    """One case for each layer; in float64, and with an order that does not undo itself and moves the first row."""
    cases = []
    for number, layer in enumerate(LAYERS):
        length = 6 + number
        order = torch.arange(length)
        while torch.equal(order[order], torch.arange(length)) or order[0] == 0:
            order = torch.randperm(length, generator=generator)
        x = torch.randn(length, 4, generator=generator).double()
        x[0] -= 2  # its sum is the smallest, so what the last two layers add grows in one and shrinks in the other
        cases.append((layer, x, order))
    return cases


def _close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, atol=1e-6)


SHUFFLED = Exercise(
    "02.shuffled",
    shuffled,
    _orders,
    (
        Variant(
            lambda layer, x, order: (
                torch.equal(layer(x[order]), layer(x)[order]),
                torch.equal(layer(x[order]), layer(x)),
            ),
            "This wants every digit to be equal. Sums in another order differ in the last digits: allow for that.",
        ),
        Variant(
            lambda layer, x, order: (_close(layer(x[order])[order], layer(x)), _close(layer(x[order]), layer(x))),
            "The order is the wrong way round here: row k of the shuffled output belongs to row order[k] of the other.",
        ),
        Variant(
            lambda layer, x, order: shuffled(layer, x, order)[::-1],
            "The two answers are the other way round.",
        ),
        Variant(
            lambda layer, x, order: (
                shuffled(layer, x, order)[0],
                _close(layer(x[order]).mean(dim=0), layer(x).mean(dim=0)),
            ),
            "This compares the means, which may stay where the rows do not; invariant is about the rows.",
        ),
    ),
    ask=_ask_about_a_layer,
    any_device=False,
)


# 02.sinusoids


def sinusoids(max_len: int, d_model: int) -> Tensor:
    """Section 3.5, one number after another: (max_len, d_model), float32."""
    rows = []
    for position in range(max_len):
        row = []
        for pair in range(d_model // 2):
            angle = position / 10000 ** (2 * pair / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows)


def _sizes(generator: torch.Generator) -> list[tuple]:
    longest = torch.randint(3, 60, (4,), generator=generator).tolist()
    pairs = torch.randint(2, 20, (4,), generator=generator).tolist()
    return [(1, 4), *((max_len, 2 * number) for max_len, number in zip(longest, pairs, strict=True))]


def _table(exponents: Callable[[int], tuple[float, float]]) -> Callable[[int, int], Tensor]:
    """The table whose sine and cosine at an even dimension i have these exponents, times d_model."""

    def answer(max_len: int, d_model: int) -> Tensor:
        table = torch.zeros(max_len, d_model)
        for position in range(max_len):
            for i in range(0, d_model, 2):
                sine, cosine = exponents(i)
                table[position, i] = math.sin(position / 10000 ** (sine / d_model))
                table[position, i + 1] = math.cos(position / 10000 ** (cosine / d_model))
        return table

    return answer


SINUSOIDS = Exercise(
    "02.sinusoids",
    sinusoids,
    _sizes,
    (
        Variant(
            _table(lambda i: (2 * i, 2 * (i + 1))),
            "Count the pairs: the paper's i goes up to d_model / 2 - 1. How far does it go here?",
        ),
        Variant(
            _table(lambda i: (2 * i, 2 * i)),
            "Sine and cosine share their angle now. But i is even already: which exponent do dimensions 2 and 3 have?",
        ),
        Variant(
            _table(lambda i: (i, i + 1)),
            "The sines are right. A cosine has the angle of the sine beside it, not one of its own.",
        ),
        Variant(
            _table(lambda i: (i / 2, i / 2)),
            "This exponent is half of the paper's: with i for the pair, it is 2i / d_model.",
        ),
        Variant(
            lambda max_len, d_model: torch.cat([sinusoids(max_len, d_model)[:, k::2] for k in (0, 1)], dim=1),
            "Here all sines come first; the paper has sine and cosine in turns.",
        ),
    ),
)


# 02.alibi


def alibi(scores: Tensor) -> Tensor:
    """Scores (batch, heads, queries, keys) with ALiBi's bias; the queries are the last of the keys' positions."""
    _, heads, queries, keys = scores.shape
    biased = scores.clone()
    for head in range(heads):
        slope = 2 ** (-8 * (head + 1) / heads)
        for query in range(queries):
            position = keys - queries + query
            for key in range(position + 1):
                biased[:, head, query, key] -= slope * (position - key)
    return biased


def _scores(generator: torch.Generator) -> list[tuple]:
    """Square and not, one query alone; the slopes of four heads are exact in float32, too."""
    shapes = [(1, 2, 3, 3), (2, 3, 5, 5), (3, 8, 1, 6), (1, 1, 2, 4), (2, 4, 3, 7)]
    return [(torch.randn(shape, generator=generator),) for shape in shapes]


def _biased(scores: Tensor, change: Callable[[Tensor], Tensor], *, first: int = 1, late: bool = True) -> Tensor:
    """Scores minus slope · change(how far the key stands before the query); slopes from 2^(-8 first / heads)."""
    _, heads, queries, keys = scores.shape
    head = torch.arange(first, first + heads, device=scores.device, dtype=scores.dtype)
    position = torch.arange(queries, device=scores.device) + (keys - queries if late else 0)
    distance = change(position[:, None] - torch.arange(keys, device=scores.device))  # (queries, keys)
    return scores - 2 ** (-8 * head / heads)[:, None, None] * distance


def _past(distance: Tensor) -> Tensor:
    return distance.clamp(min=0)


ALIBI = Exercise(
    "02.alibi",
    alibi,
    _scores,
    (
        Variant(
            lambda scores: _biased(scores, lambda distance: -_past(distance)),
            "Here far keys gain. The bias is subtracted: they are to lose.",
        ),
        Variant(
            lambda scores: _biased(scores, lambda distance: distance),
            "Here a key after the query gains, because its distance is negative; its score is to stay as it is.",
        ),
        Variant(
            lambda scores: _biased(scores, torch.abs),
            "Here a key after the query loses as one before it does; its score is to stay as it is.",
        ),
        Variant(
            lambda scores: _biased(scores, _past, first=0),
            "The slopes begin with 1 here. The first head's is 2^(-8 / heads), the last head's 2^(-8).",
        ),
        Variant(
            lambda scores: _biased(scores, _past, late=False),
            "Here the first query stands at position 0. The queries are the last of the positions: shift them.",
        ),
    ),
    loops=False,
)


# 02.rotary


def rotate(x: Tensor, position: Tensor, frequency: Tensor) -> Tensor:
    """Turns features 2i and 2i + 1 of each token by the angle position · frequency[i], one pair at a time."""
    batch, _, length, d_k = x.shape
    turned = torch.empty_like(x)
    for sentence in range(batch):
        for token in range(length):
            for pair in range(d_k // 2):
                angle = position[sentence, token] * frequency[pair]
                even, odd = x[sentence, :, token, 2 * pair], x[sentence, :, token, 2 * pair + 1]  # (heads,)
                turned[sentence, :, token, 2 * pair] = even * angle.cos() - odd * angle.sin()
                turned[sentence, :, token, 2 * pair + 1] = even * angle.sin() + odd * angle.cos()
    return turned


def _tokens(generator: torch.Generator) -> list[tuple]:
    """Tokens at any positions, in turn or not, others in each sentence; the last case in float64."""
    cases = []
    for batch, heads, length, d_k in ((1, 1, 4, 2), (2, 3, 5, 8), (3, 2, 1, 6), (2, 2, 6, 4), (3, 2, 4, 8)):
        x = torch.randn(batch, heads, length, d_k, generator=generator, dtype=torch.float64)
        start = torch.randint(20, (batch, 1), generator=generator)
        frequency = 10000.0 ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
        position = start + (torch.arange(length) if d_k == 8 else 3 * torch.randperm(length, generator=generator))
        cases.append((x.float(), position, frequency.float()))
    cases[-1] = (x, position, frequency)
    return cases


def _rotated(x: Tensor, position: Tensor, frequency: Tensor, *, sign: int = 1, halves: bool = False) -> Tensor:
    """The right answer; turned backwards with sign -1, or with feature i + d_k/2 as the partner of feature i."""
    angle = position[:, None, :, None] * frequency  # (batch, 1, length, d_k / 2)
    first, second = x.chunk(2, dim=-1) if halves else (x[..., 0::2], x[..., 1::2])
    sine, cosine = sign * angle.sin(), angle.cos()
    turned = [first * cosine - second * sine, first * sine + second * cosine]
    return torch.cat(turned, dim=-1) if halves else torch.stack(turned, dim=-1).flatten(-2)


def _parted(x: Tensor, position: Tensor, frequency: Tensor) -> Tensor:
    turned = _rotated(x, position, frequency)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


ROTARY = Exercise(
    "02.rotary",
    rotate,
    _tokens,
    (
        Variant(
            _parted,
            "The numbers are right, in the wrong places: features 2i and 2i + 1 come back side by side.",
        ),
        Variant(
            lambda *inputs: _rotated(*inputs, halves=True),
            "This pairs feature i with i + d_k / 2, as some models do. Here neighbors are pairs: 2i and 2i + 1.",
        ),
        Variant(lambda *inputs: _rotated(*inputs, sign=-1), "This turns the other way: look at the two signs."),
        Variant(
            lambda x, position, frequency: _rotated(x, torch.arange(x.size(2)).expand_as(position), frequency),
            "Here each sentence begins at position 0. Its tokens stand where `position` says.",
        ),
        Variant(
            lambda x, position, frequency: _rotated(x, position[:1].expand_as(position), frequency),
            "All sentences are turned by the positions of the first one; each has its own.",
        ),
        Variant(
            lambda x, position, frequency: _rotated(
                x, position[:, :1] + torch.arange(x.size(2), device=x.device), frequency
            ),
            "Only the first token's position counts here, and the others follow it. Each brings its own.",
        ),
    ),
    loops=False,
)


# 02.facts

RIGHT_FACTS = {
    "sum of PE(0)": 100.0,
    "length of PE(37)": 10.0,
    "wavelength of pair 50 / 2π": 100.0,
    "PE(3)·PE(10) - PE(103)·PE(110)": 0.0,
    "mean stays, plain attention": True,
    "mean stays, causal mask": False,
    "rotary: the key at": 101,
}

FACTS = Exercise(
    "02.facts",
    RIGHT_FACTS,
    variants=(
        Variant(
            RIGHT_FACTS | {"sum of PE(0)": 0},
            "Position 0 does change something: the sine of 0 is 0, but what is its cosine?",
        ),
        Variant(
            RIGHT_FACTS | {"length of PE(37)": math.sqrt(200)},
            "Each pair has the length 1. How many pairs are there?",
        ),
        Variant(
            RIGHT_FACTS | {"wavelength of pair 50 / 2π": 10},
            "The exponent is 2i / d_model, where i is the number of the pair.",
        ),
        Variant(
            RIGHT_FACTS | {"mean stays, plain attention": False},
            "The rows move, and nothing else happens to them. What does a mean care about?",
        ),
        Variant(
            RIGHT_FACTS | {"mean stays, causal mask": True},
            "With a causal mask the order decides who sees whom, so the rows themselves change.",
        ),
        Variant(
            RIGHT_FACTS | {"rotary: the key at": 109},
            "The distance alone is not enough: in rotated scores, before and after differ.",
        ),
    ),
    ask=value,
)

EXERCISES = (SHUFFLED, SINUSOIDS, ALIBI, ROTARY, FACTS)
