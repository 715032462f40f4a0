"""Assignment 01: from text to tensors: merging, encoding, targets, and which rows of the table learn."""

import math
import re
from collections import Counter
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checks import Exercise, Variant, value

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2

Pair = tuple[str, str]


def _below(limit: int, generator: torch.Generator) -> int:
    return int(torch.randint(limit, (), generator=generator))


def _shuffled(letters: str, generator: torch.Generator) -> list[str]:
    return [letters[place] for place in torch.randperm(len(letters), generator=generator)]


# 01.merge


def merge(symbols: list[str], pair: Pair) -> list[str]:
    """The symbols with each occurrence of the pair made one, from left to right."""
    merged, place = [], 0
    while place < len(symbols):
        if tuple(symbols[place : place + 2]) == pair:
            merged.append("".join(pair))
            place += 2
        else:
            merged.append(symbols[place])
            place += 1
    return merged


def _merge_cases(generator: torch.Generator) -> list[tuple]:
    a, b, c = _shuffled("abcdefgh", generator)[:3]
    cases = [
        ([a, b, c, a, b], (a, b)),
        ([a, a, a, a, a], (a, a)),
        ([c + a, b, a, b + c, a, b], (a, b)),  # symbols that end or begin like those of the pair
        ([a, b, ".", ".", c], (".", ".")),
        ([a], (a, a)),
    ]
    symbols = [a, b, a + b, b + a, "▁" + a, "."]
    for _ in range(3):
        text = [symbols[_below(len(symbols), generator)] for _ in range(12)]
        place = _below(11, generator)
        cases.append((text, (text[place], text[place + 1])))
    return cases


def _replaced(symbols: list[str], pair: Pair) -> list[str]:
    return " ".join(symbols).replace(" ".join(pair), "".join(pair)).split(" ")


def _by_pattern(symbols: list[str], pair: Pair) -> list[str]:
    return re.sub(rf"(?<!\S){pair[0]} {pair[1]}(?!\S)", "".join(pair), " ".join(symbols)).split(" ")


def _first_alone(symbols: list[str], pair: Pair) -> list[str]:
    for place in range(len(symbols) - 1):
        if tuple(symbols[place : place + 2]) == pair:
            return [*symbols[:place], "".join(pair), *symbols[place + 2 :]]
    return symbols


def _second_stays(symbols: list[str], pair: Pair) -> list[str]:
    places = range(len(symbols))
    return ["".join(pair) if tuple(symbols[place : place + 2]) == pair else symbols[place] for place in places]


def _from_the_right(symbols: list[str], pair: Pair) -> list[str]:
    backwards = merge([symbol[::-1] for symbol in reversed(symbols)], (pair[1][::-1], pair[0][::-1]))
    return [symbol[::-1] for symbol in reversed(backwards)]


MERGE = Exercise(
    "01.merge",
    merge,
    _merge_cases,
    (
        Variant(
            _replaced,
            "This also merges symbols that only end or begin like those of the pair. Compare whole symbols.",
        ),
        Variant(
            _by_pattern,
            "In a pattern a full stop stands for any character. Escape the symbols, or do without a pattern.",
        ),
        Variant(_first_alone, "This stops after the first occurrence; every one is to be merged."),
        Variant(_second_stays, "The second symbol of a merged pair is still there; it has to be skipped."),
        Variant(_from_the_right, "Where occurrences overlap, the left one counts: here the last one does."),
    ),
)


# 01.encode


def encode(word: str, rank: dict[Pair, int]) -> list[str]:
    """A word to subwords: every merge in turn, in the order in which they were learned."""
    symbols = list(word)
    for pair in sorted(rank, key=rank.get):
        symbols = merge(symbols, pair)
    return symbols


def _neighbors(symbols: list[str]) -> list[Pair]:
    return list(zip(symbols, symbols[1:], strict=False))


def _learned(words: list[str], number: int) -> dict[Pair, int]:
    """Merges of byte-pair encoding with their numbers; no two of them make the same subword."""
    parts, rank = [list(word) for word in words], {}
    for step in range(number):
        made = {left + right for left, right in rank}
        counts = Counter(pair for symbols in parts for pair in _neighbors(symbols) if "".join(pair) not in made)
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        rank[best] = step
        parts = [merge(symbols, best) for symbols in parts]
    return rank


def _encode_cases(generator: torch.Generator) -> list[tuple]:
    a, b, c, d = _shuffled("abcd", generator)

    def word(length: int) -> str:
        return "▁" + "".join((a, b, c, c, d)[_below(5, generator)] for _ in range(length))

    cases = [
        (a + b + c + d, {(b, c): 0, (a, b): 1, (c, d): 2}),
        (a + b + c + d, {(b, c): 0, (a, b): 1, (a, b + c): 2}),
        (a + b + c + a + b + c, {(a, b): 0, (b, c): 1, (a + b, c): 2}),
        (a, {(a, b): 0}),
        (c + d + c, {(a, b): 0, (d, d): 1}),
    ]
    for merges in (3, 8, 16, 30):
        words = [word(3 + _below(5, generator)) for _ in range(15)]
        cases.append((word(10), _learned(words, merges)))
    return [(word, dict(_shuffled(list(rank.items()), generator))) for word, rank in cases]


def _longest_first(word: str, rank: dict[Pair, int]) -> list[str]:
    known, subwords = {left + right for left, right in rank}, []
    while word:
        length = next(length for length in range(len(word), 0, -1) if length == 1 or word[:length] in known)
        subwords.append(word[:length])
        word = word[length:]
    return subwords


def _merged_by(choose: Callable, times: int = 20) -> Callable[..., list[str]]:
    """An answer that merges, again and again, what choose(known pairs of the word, rank) says."""

    def answer(word: str, rank: dict[Pair, int]) -> list[str]:
        symbols = list(word)
        for _ in range(times):
            if known := [pair for pair in _neighbors(symbols) if pair in rank]:
                symbols = merge(symbols, choose(known, rank))
        return symbols

    return answer


ENCODE = Exercise(
    "01.encode",
    encode,
    _encode_cases,
    (
        Variant(
            _longest_first,
            "This takes the longest known subword first. What counts is which merge was learned first.",
        ),
        Variant(
            _merged_by(lambda known, rank: known[0]),
            "This merges the known pair that comes first in the word. What counts is which was learned first.",
        ),
        Variant(
            _merged_by(lambda known, rank: max(known, key=rank.get)),
            "This begins with the pair that was learned last; the smallest number comes first.",
        ),
        Variant(
            _merged_by(lambda known, rank: min(known, key=rank.get), times=1),
            "This stops after one merge. The new symbol may have neighbors that merge as well.",
        ),
    ),
)


# 01.targets


def targets(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Padded targets (batch, length) to tgt_in and tgt_out, (batch, length + 1) each, one number at a time."""
    batch, length = ids.shape
    wider = torch.cat([ids, ids.new_zeros(batch, 1)], dim=1)
    tgt_in, tgt_out = torch.zeros_like(wider), torch.zeros_like(wider)
    for row in range(batch):
        tokens = (ids[row] != PAD_ID).sum()
        tgt_in[row, 0] = BOS_ID
        for place in range(length):
            tgt_in[row, place + 1] = ids[row, place]
        for place in range(length + 1):
            tgt_out[row, place] = torch.where(tokens == place, EOS_ID, wider[row, place])
    return tgt_in, tgt_out


def _ids(generator: torch.Generator) -> list[tuple]:
    """Padded ids: the longest sentence fills its row, others do not; one sentence, and some without padding."""
    cases = []
    for batch, length, shortest in ((1, 5, 5), (2, 4, 1), (3, 3, 3), (4, 6, 1)):
        ids = torch.randint(4, 50, (batch, length), generator=generator)
        tokens = torch.randint(shortest, length + 1, (batch, 1), generator=generator)
        tokens[-1], tokens[0] = shortest, length
        cases.append((ids * (torch.arange(length) < tokens),))
    return cases


def _targets(ids: Tensor, *, past: int = 0) -> tuple[Tensor, Tensor]:
    """The right answer, or one that writes </s> some places past the right one."""
    places = torch.arange(ids.size(1) + 1, device=ids.device)
    ends = places == (ids != PAD_ID).sum(dim=1, keepdim=True) + past
    return F.pad(ids, (1, 0), value=BOS_ID), F.pad(ids, (0, 1)).masked_fill(ends, EOS_ID)


def _shifted(ids: Tensor) -> tuple[Tensor, Tensor]:
    tgt_out = _targets(ids)[1]
    return F.pad(tgt_out[:, :-1], (1, 0), value=BOS_ID), tgt_out


TARGETS = Exercise(
    "01.targets",
    targets,
    _ids,
    (
        Variant(
            lambda ids: (_targets(ids)[0], F.pad(ids, (0, 1), value=EOS_ID)),
            "Here </s> stands behind the padding; it belongs right after the last token of each sentence.",
        ),
        Variant(lambda ids: _targets(ids, past=-1), "Here </s> replaces the last token; it belongs after it."),
        Variant(
            _shifted,
            "The tgt_in of the shorter sentences contains </s>. Nothing is predicted after it, so it is no input.",
        ),
        Variant(lambda ids: _targets(ids)[::-1], "tgt_in and tgt_out are the other way round."),
    ),
    loops=False,
)


# 01.gradient


def gradient(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
    """Gradient of the table: each row sums over the places where its token stands, times √d_model."""
    d_model = upstream.size(-1)
    result = upstream.new_zeros(vocab_size, d_model)
    for token in range(vocab_size):
        here = (ids == token).unsqueeze(-1)  # (batch, length, 1)
        result[token] = math.sqrt(d_model) * (here * upstream).sum(dim=(0, 1))
    return result


def _gradient_cases(generator: torch.Generator) -> list[tuple]:
    cases = []
    for batch, length, d_model, vocab_size in ((1, 5, 2, 4), (2, 5, 8, 6), (3, 7, 5, 12), (2, 6, 4, 5)):
        ids = torch.randint(vocab_size - 1, (batch, length), generator=generator)  # the last row is never looked up
        cases.append((ids, torch.randn(batch, length, d_model, generator=generator), vocab_size))
    return cases


def _scattered(power: float, *, mean: bool = False) -> Callable[..., Tensor]:
    """An answer with the factor d_model^power, which adds the places of a token or takes their mean."""

    def answer(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
        places = upstream.flatten(0, 1)  # (batch * length, d_model)
        sums = upstream.new_zeros(vocab_size, upstream.size(-1)).index_add(0, ids.flatten(), places)
        often = torch.zeros_like(sums).index_add(0, ids.flatten(), torch.ones_like(places))
        return upstream.size(-1) ** power * (sums / often.clamp(min=1) if mean else sums)

    return answer


def _overwritten(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
    rows = upstream.new_zeros(vocab_size, upstream.size(-1))
    return rows.index_put((ids,), math.sqrt(upstream.size(-1)) * upstream)


GRADIENT = Exercise(
    "01.gradient",
    gradient,
    _gradient_cases,
    (
        Variant(
            _overwritten,
            "A token that stands in several places keeps the gradient of one of them. They have to be added.",
        ),
        Variant(_scattered(0.0), "The factor is missing: the vectors are √d_model times the rows."),
        Variant(_scattered(0.5, mean=True), "This takes the mean over the places of a token; it is their sum."),
        Variant(
            _scattered(-0.5),
            "This divides by √d_model. In the backward pass the factor of the forward pass multiplies once more.",
        ),
    ),
    forbidden=(torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward),
    loops=False,
)


# 01.sizes

RIGHT_SIZES = {
    "share of padding, one batch": 0.35,
    "share of padding, two batches": 0.1875,
    "size of the vocabulary": 134,
    "symbols saved in ▁aaaaa": 2,
    "mean square, times": 64,
}

SIZES = Exercise(
    "01.sizes",
    RIGHT_SIZES,
    variants=(
        Variant(
            RIGHT_SIZES | {"share of padding, one batch": 14 / 36, "share of padding, two batches": 6 / 28},
            "Each sentence ends with </s>, and that is a token too.",
        ),
        Variant(
            RIGHT_SIZES | {"share of padding, two batches": (2 / 12 + 4 / 20) / 2},
            "This is the mean of the two shares. The larger batch counts for more: count the tokens of both together.",
        ),
        Variant(RIGHT_SIZES | {"size of the vocabulary": 130}, "The four special symbols have numbers as well."),
        Variant(
            RIGHT_SIZES | {"symbols saved in ▁aaaaa": 4},
            "The pair is counted four times, but its occurrences overlap: a symbol that is merged is gone.",
        ),
        Variant(RIGHT_SIZES | {"mean square, times": 8}, "Lengths grow by √d_model, squares by the square of it."),
    ),
    ask=value,
)

EXERCISES = (MERGE, ENCODE, TARGETS, GRADIENT, SIZES)
