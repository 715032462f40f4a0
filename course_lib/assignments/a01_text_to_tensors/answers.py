"""Answers to assignment 01: differently written right ones, and plausible wrong ones with the hint that they get."""

import math
import re

import tokenizers
import torch
import torch.nn.functional as F

from course_lib.config import ModelConfig
from course_lib.data import make_batch
from course_lib.transformer import Embedding


def merge_with_a_stack(symbols, pair):
    merged = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged


def merge_by_recursion(symbols, pair):
    if len(symbols) < 2:
        return list(symbols)
    if (symbols[0], symbols[1]) == pair:
        return [symbols[0] + symbols[1], *merge_by_recursion(symbols[2:], pair)]
    return [symbols[0], *merge_by_recursion(symbols[1:], pair)]


def merge_with_an_iterator(symbols, pair):
    def parts():
        place = 0
        while place < len(symbols):
            step = 1 + (place + 1 < len(symbols) and (symbols[place], symbols[place + 1]) == pair)
            yield "".join(symbols[place : place + step])
            place += step

    return list(parts())


def merge_by_escaped_pattern(symbols, pair):
    left, right = map(re.escape, pair)
    pattern = re.compile(r"(?<!\S)" + left + " " + right + r"(?!\S)")
    return pattern.sub(lambda found: "".join(pair), " ".join(symbols)).split()


def merge_text(symbols, pair):
    left, right = pair
    return " ".join(symbols).replace(f"{left} {right}", left + right).split()


def merge_by_pattern(symbols, pair):
    pattern = "(^|(?<= ))" + " ".join(pair) + "($|(?= ))"
    return re.sub(pattern, "".join(pair), " ".join(symbols)).split()


def merge_once(symbols, pair):
    merged = symbols[:]
    for place, found in enumerate(zip(symbols, symbols[1:], strict=False)):
        if found == pair:
            merged[place : place + 2] = [found[0] + found[1]]
            break
    return merged


def merge_without_skipping(symbols, pair):
    merged = []
    for left, right in zip(symbols, symbols[1:], strict=False):
        merged.append(left + right if (left, right) == pair else left)
    return [*merged, symbols[-1]]


def merge_backwards(symbols, pair):
    merged, place = [], len(symbols) - 1
    while place >= 0:
        found = place > 0 and (symbols[place - 1], symbols[place]) == pair
        merged.insert(0, "".join(pair) if found else symbols[place])
        place -= 2 if found else 1
    return merged


def merge_in_place(symbols, pair):
    place = 0
    while place < len(symbols) - 1:
        if (symbols[place], symbols[place + 1]) == pair:
            symbols[place : place + 2] = ["".join(pair)]
        place += 1
    return symbols


def merge_past_the_end(symbols, pair):
    merged, place = [], 0
    while place < len(symbols):
        found = (symbols[place], symbols[place + 1]) == pair
        merged.append("".join(pair) if found else symbols[place])
        place += 2 if found else 1
    return merged


def encode_by_rank(word, rank):
    symbols = list(word)
    while len(symbols) > 1:
        pair = min(zip(symbols, symbols[1:], strict=False), key=lambda two: rank.get(two, math.inf))
        if pair not in rank:
            break
        symbols = merge_with_a_stack(symbols, pair)
    return symbols


def encode_in_turn(word, rank):
    symbols = list(word)
    for pair, _ in sorted(rank.items(), key=lambda item: item[1]):
        symbols = merge_by_recursion(symbols, pair)
    return symbols


def encode_in_the_order_of_the_dict(word, rank):
    symbols = list(word)
    for pair in rank:
        symbols = merge_by_recursion(symbols, pair)
    return symbols


def encode_one_place_at_a_time(word, rank):
    symbols = list(word)
    while True:
        places = [(rank.get((symbols[i], symbols[i + 1])), i) for i in range(len(symbols) - 1)]
        places = [(number, i) for number, i in places if number is not None]
        if not places:
            return tuple(symbols)
        _, i = min(places)
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]


def encode_longest(word, rank):
    vocab = {"".join(pair) for pair in rank} | set(word)
    tokens, start = [], 0
    while start < len(word):
        end = len(word)
        while word[start:end] not in vocab:
            end -= 1
        tokens.append(word[start:end])
        start = end
    return tokens


def encode_from_the_left(word, rank):
    symbols = list(word)
    while pair := next((two for two in zip(symbols, symbols[1:], strict=False) if two in rank), None):
        symbols = merge_with_a_stack(symbols, pair)
    return symbols


def encode_latest_first(word, rank):
    symbols = list(word)
    while pairs := set(zip(symbols, symbols[1:], strict=False)) & rank.keys():
        symbols = merge_by_recursion(symbols, sorted(pairs, key=lambda pair: -rank[pair])[0])
    return symbols


def encode_one_merge(word, rank):
    symbols = list(word)
    if pairs := set(zip(symbols, symbols[1:], strict=False)) & rank.keys():
        symbols = merge_by_recursion(symbols, sorted(pairs, key=rank.get)[0])
    return symbols


def encode_by_alphabet(word, rank):
    symbols = list(word)
    for pair in sorted(rank):
        symbols = merge_by_recursion(symbols, pair)
    return symbols


def encode_unless_unknown(word, rank):
    symbols = list(word)
    while len(symbols) > 1:
        symbols = merge_by_recursion(symbols, min(zip(symbols, symbols[1:], strict=False), key=rank.__getitem__))
    return symbols


def encode_known_characters(word, rank):
    return [symbol for symbol in encode_in_turn(word, rank) if any(symbol == left + right for left, right in rank)]


def targets_by_scatter(ids):
    rows, blank = ids.size(0), ids.new_zeros(ids.size(0), 1)
    tgt_out = torch.cat((ids, blank), 1).scatter(1, ids.ne(0).sum(1)[:, None], 2)
    return torch.cat((ids.new_ones(rows, 1), ids), dim=1), tgt_out


def targets_by_neighbors(ids):
    tgt_in = F.pad(ids, (1, 0), value=1)
    tgt_out = F.pad(ids, (0, 1))
    ends = (tgt_out == 0) & (tgt_in != 0)
    return tgt_in, tgt_out + 2 * ends


def targets_by_index(ids):
    tgt_in = torch.empty(len(ids), ids.shape[1] + 1, dtype=ids.dtype, device=ids.device)
    tgt_out = torch.zeros_like(tgt_in)
    tgt_in[:, 0], tgt_in[:, 1:], tgt_out[:, :-1] = 1, ids, ids
    tgt_out[torch.arange(len(ids), device=ids.device), (ids > 0).sum(-1)] = 2
    return [tgt_in, tgt_out]


def targets_by_row(ids):
    tgt_in, tgt_out = F.pad(ids, (1, 0), value=1), F.pad(ids, (0, 1))
    for row, length in enumerate((ids != 0).sum(1)):
        tgt_out[row, int(length)] = 2
    return tgt_in, tgt_out


def end_behind_padding(ids):
    return F.pad(ids, (1, 0), value=1), F.pad(ids, (0, 1), value=2)


def end_on_last_token(ids):
    tgt_out = F.pad(ids, (0, 1))
    tgt_out[torch.arange(len(ids)), (ids != 0).sum(1) - 1] = 2
    return F.pad(ids, (1, 0), value=1), tgt_out


def one_row_cut_twice(ids):
    whole = F.pad(ids, (1, 1))
    whole[:, 0] = 1
    whole.scatter_(1, (ids != 0).sum(1, keepdim=True) + 1, 2)
    return whole[:, :-1], whole[:, 1:]


def targets_of_the_same_length(ids):
    tgt_in, tgt_out = targets_by_scatter(ids)
    return tgt_in[:, :-1], tgt_out[:, :-1]


def end_everywhere(ids):
    tgt_out = F.pad(ids, (0, 1))
    return F.pad(ids, (1, 0), value=1), tgt_out.masked_fill(tgt_out == 0, 2)


def end_of_the_shortest_row(ids):
    tgt_out = F.pad(ids, (0, 1))
    tgt_out[:, (ids != 0).sum(1).min()] = 2
    return F.pad(ids, (1, 0), value=1), tgt_out


def gradient_by_one_hot(ids, upstream, vocab_size):
    one_hot = (ids.unsqueeze(-1) == torch.arange(vocab_size, device=ids.device)).to(upstream)
    return torch.einsum("blv,bld->vd", one_hot, upstream) * upstream.shape[-1] ** 0.5


def gradient_by_index_put(ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.size(2), dtype=upstream.dtype, device=upstream.device)
    return table.index_put_((ids,), upstream * math.sqrt(upstream.size(2)), accumulate=True)


def gradient_by_scatter(ids, upstream, vocab_size):
    width = upstream.size(-1)
    rows = upstream.reshape(-1, width)
    index = ids.reshape(-1, 1).expand(-1, width)
    return upstream.new_zeros(vocab_size, width).scatter_add(0, index, rows) * math.sqrt(width)


def gradient_in_a_loop(ids, upstream, vocab_size):
    rows = [((ids == token)[..., None] * upstream).sum((0, 1)) for token in range(vocab_size)]
    return torch.stack(rows) * math.sqrt(upstream.size(-1))


def gradient_of_the_last(ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.size(-1), dtype=upstream.dtype, device=upstream.device)
    table[ids] += upstream * math.sqrt(upstream.size(-1))
    return table


def gradient_times(factor, mean=False):
    def answer(ids, upstream, vocab_size):
        one_hot = (ids.flatten() == torch.arange(vocab_size, device=ids.device)[:, None]).to(
            upstream
        )  # (vocab, tokens)
        if mean:
            one_hot = one_hot / one_hot.sum(1, keepdim=True).clamp(min=1)
        return one_hot @ upstream.flatten(0, 1) * factor(upstream, vocab_size)

    return answer


def gradient_of_seen_rows(ids, upstream, vocab_size):
    return gradient_by_one_hot(ids, upstream, vocab_size)[ids.unique()]


def gradient_but_padding(ids, upstream, vocab_size):
    table = gradient_by_scatter(ids, upstream, vocab_size)
    table[0] = 0
    return table


def gradient_by_autograd(ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.size(-1), dtype=upstream.dtype, requires_grad=True)
    (table[ids] * math.sqrt(upstream.size(-1))).backward(upstream)
    return table.grad


def root(upstream, vocab_size):
    return math.sqrt(upstream.size(-1))


PREDICTED = {
    "share of padding, one batch": 0.35,
    "share of padding, two batches": 0.1875,
    "size of the vocabulary": 134,
    "symbols saved in ▁aaaaa": 2,
    "mean square, times": 64,
}


def predicted(**changed):
    names = dict(zip(("one", "two", "size", "saved", "square"), PREDICTED, strict=True))
    return PREDICTED | {names[short]: number for short, number in changed.items()}


RIGHT = {
    "01.merge": [merge_with_a_stack, merge_by_recursion, merge_with_an_iterator, merge_by_escaped_pattern],
    "01.encode": [encode_by_rank, encode_in_turn, encode_one_place_at_a_time],
    "01.targets": [targets_by_scatter, targets_by_neighbors, targets_by_index],
    "01.gradient": [gradient_by_one_hot, gradient_by_index_put, gradient_by_scatter],
    "01.sizes": [PREDICTED, predicted(one=14 / 40, two=6 / 32, size=134.0), predicted(square=torch.tensor(64))],
}

# Each wrong answer with a part of the hint that it must get; None where no hint is known.
WRONG = {
    "01.merge": [
        (merge_text, "only end or begin"),
        (merge_by_pattern, "any character"),
        (merge_once, "first occurrence"),
        (merge_without_skipping, "has to be skipped"),
        (merge_backwards, "the left one counts"),
        (merge_in_place, None),
        (merge_past_the_end, None),
        (lambda symbols, pair: merge_by_recursion(symbols, pair[::-1]), None),
        (lambda symbols, pair: " ".join(merge_by_recursion(symbols, pair)), None),
    ],
    "01.encode": [
        (encode_longest, "longest known subword"),
        (encode_from_the_left, "comes first in the word"),
        (encode_latest_first, "learned last"),
        (encode_one_merge, "after one merge"),
        (encode_by_alphabet, None),
        (encode_in_the_order_of_the_dict, None),
        (encode_unless_unknown, None),
        (encode_known_characters, None),
        (lambda word, rank: list(word), None),
    ],
    "01.targets": [
        (targets_by_row, "one by one"),
        (end_behind_padding, "behind the padding"),
        (end_on_last_token, "replaces the last token"),
        (one_row_cut_twice, "is no input"),
        (lambda ids: targets_by_neighbors(ids)[::-1], "other way round"),
        (targets_of_the_same_length, None),
        (end_everywhere, None),
        (end_of_the_shortest_row, None),
        (lambda ids: (targets_by_scatter(ids)[0], F.pad(ids, (0, 1))), None),
        (lambda ids: targets_by_scatter(ids)[1], None),
    ],
    "01.gradient": [
        (gradient_in_a_loop, "one by one"),
        (gradient_of_the_last, "have to be added"),
        (gradient_times(lambda *_: 1), "factor is missing"),
        (gradient_times(root, mean=True), "mean over the places"),
        (gradient_times(lambda *inputs: 1 / root(*inputs)), "multiplies once more"),
        (gradient_times(lambda upstream, vocab_size: math.sqrt(vocab_size)), None),
        (gradient_times(lambda upstream, vocab_size: upstream.size(-1)), None),
        (gradient_of_seen_rows, None),
        (gradient_but_padding, None),
        (gradient_by_autograd, None),
    ],
    "01.sizes": [
        (predicted(one=14 / 36, two=6 / 28), "is a token too"),
        (predicted(two=11 / 60), "mean of the two shares"),
        (predicted(size=130), "special symbols"),
        (predicted(saved=4), "overlap"),
        (predicted(square=8), "square of it"),
        (predicted(one=26 / 40, two=26 / 32), None),
        (predicted(saved=3), None),
        (predicted(one=None), None),
        ({"size of the vocabulary": 134}, None),
    ],
}


def library_encode(word, rank):
    """The `tokenizers` library's byte-pair encoding, on which the course's Tokenizer builds."""
    merges = sorted(rank, key=rank.get)
    symbols = [*word, *(symbol for pair in merges for symbol in pair), *("".join(pair) for pair in merges)]
    vocab = {symbol: number for number, symbol in enumerate(dict.fromkeys(symbols))}
    return tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges)).encode(word).tokens


def library_targets(ids):
    batch = make_batch([([2], [token for token in row if token]) for row in ids.tolist()])
    return batch.tgt_in, batch.tgt_out


def library_gradient(ids, upstream, vocab_size):
    sizes = dict(d_model=upstream.size(-1), num_heads=1, d_ff=1, position="none", dropout=0.0)
    embedding = Embedding(ModelConfig(vocab_size=vocab_size, **sizes)).to(upstream)
    embedding(ids).backward(upstream)
    return embedding.table.weight.grad


# The course's own code, or that on which it builds: on tensors with numbers, so not on the device "meta".
LIBRARY = {
    "01.encode": library_encode,
    "01.targets": library_targets,
    "01.gradient": library_gradient,
}
