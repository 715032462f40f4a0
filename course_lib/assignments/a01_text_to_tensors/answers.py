"""Answers to assignment 01: right ones, written differently, and plausible wrong ones beside the known mistakes."""

import re
from functools import reduce

import tokenizers

from course_lib.checks import Edit
from course_lib.config import ModelConfig
from course_lib.data import make_batch
from course_lib.transformer import Embedding


def merge_with_a_stack(symbols, pair):
    merged = []
    for symbol in symbols:
        merged.append(merged.pop() + symbol if (*merged[-1:], symbol) == pair else symbol)
    return merged


def merge_by_recursion(symbols, pair):
    taken = 2 if tuple(symbols[:2]) == pair else 1
    return ["".join(symbols[:taken]), *merge_by_recursion(symbols[taken:], pair)] if symbols else []


def merge_by_pattern(symbols, pair, escape=re.escape):
    left, right = map(escape, pair)
    return re.sub(rf"(?<!\S){left} {right}(?!\S)", lambda found: "".join(pair), " ".join(symbols)).split()


def encode_one_place_at_a_time(word, rank):
    symbols = list(word)
    while known := [(rank[pair], i) for i, pair in enumerate(zip(symbols, symbols[1:], strict=False)) if pair in rank]:
        _, place = min(known)
        symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
    return tuple(symbols)


def encode_longest(word, rank):
    parts = (word[:length] for length in range(len(word), 1, -1))
    first = next((part for part in parts if part in map("".join, rank)), word[:1])
    return [first, *encode_longest(word[len(first) :], rank)] if word else []


# Pieces of the solutions that answers have in other words.
FOUND = "tuple(symbols[place : place + 2])"
TGT_OUT = "torch.where(places == tokens, EOS_ID, longer)"
ADDED = "table.index_add(0, ids.flatten(), rows)"

# The first answer to each does without the answers to the others.
RIGHT = {
    "01.merge": [
        merge_with_a_stack,
        merge_by_recursion,
        merge_by_pattern,
        Edit(f"{FOUND} == pair", "symbols[place : place + 2] == list(pair)"),
    ],
    "01.encode": [
        lambda word, rank: reduce(merge_with_a_stack, sorted(rank, key=rank.get), list(word)),
        Edit("[pair for pair in pairs if pair in rank]", "rank.keys() & set(pairs)"),
        encode_one_place_at_a_time,
    ],
    "01.targets": [
        Edit(TGT_OUT, "longer.scatter(1, tokens, EOS_ID)"),
        Edit("places == tokens", "(longer == PAD_ID) & (tgt_in != PAD_ID)"),
        Edit(
            f"return tgt_in, {TGT_OUT}",
            "longer[torch.arange(len(ids), device=ids.device), tokens[:, 0]] = EOS_ID\n    return [tgt_in, longer]",
        ),
    ],
    "01.gradient": [
        Edit(ADDED, "(ids.flatten() == torch.arange(vocab_size, device=ids.device)[:, None]).to(rows) @ rows"),
        Edit(ADDED, "table.index_put_((ids.flatten(),), rows, accumulate=True)"),
        Edit(ADDED, "table.scatter_add(0, ids.flatten()[:, None].expand_as(rows), rows)"),
    ],
    "01.sizes": [Edit(), Edit("14 / 40", "0.35", "6 / 32", "0.1875", "134", "134.0"), Edit("64", "torch.tensor(64)")],
}

# Beside the known mistakes; where a hint is known, with a part of it.
WRONG = {
    "01.merge": [
        (lambda symbols, pair: merge_by_pattern(symbols, pair, escape=str), "any character"),
        Edit("return merged", "symbols[:] = merged\n    return merged"),
        Edit(FOUND, "(symbols[place], symbols[place + 1])"),  # past the end
    ],
    "01.encode": [
        (encode_longest, "longest known subword"),
        lambda word, rank: reduce(merge_with_a_stack, sorted(rank), list(word)),
        lambda word, rank: reduce(merge_with_a_stack, rank, list(word)),
        Edit(" if pair in rank", "", "rank.get", "rank.__getitem__"),
    ],
    "01.targets": [
        (
            Edit(TGT_OUT, "torch.stack([torch.where(places == int(n), 2, row) for n, row in zip(tokens, longer)])"),
            "one by one",
        ),
        Edit("return tgt_in, ", "return "),
    ],
    "01.gradient": [
        (
            Edit(ADDED, "torch.stack([((ids == n).flatten()[:, None] * rows).sum(0) for n in range(vocab_size)])"),
            "one by one",
        ),
        Edit("rows)", "rows)[ids.unique()]"),
        (
            Edit(f"return {ADDED}", "table.requires_grad_()[ids.flatten()].backward(rows)\n    return table.grad"),
            "yours to write",
        ),
    ],
    "01.sizes": [
        Edit("14 / 40", "None"),
        {"size of the vocabulary": 134},
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
LIBRARY = {"01.encode": library_encode, "01.targets": library_targets, "01.gradient": library_gradient}
