"""How byte-pair encoding learns: the merges of a text one after the other, and the pairs that were counted for each."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.tokenizer import Tokenizer

Pair = tuple[str, str]


@dataclass(frozen=True)
class Merges:
    """What the course's tokenizer learns from a text, step by step.

    Args:
        words: of the text, in order; merges never cross them.
        pairs: which two symbols each step makes one.
        counts: how often each pair of symbols stood side by side before each step, in the order of the text.
        stages: each different word's symbols before the first step, after it, after the second, …
        vocab: symbol to its number.
    """

    words: list[str]
    pairs: list[Pair]
    counts: list[dict[Pair, int]]
    stages: list[dict[str, list[str]]]
    vocab: dict[str, int]


def learn_merges(text: str) -> Merges:
    """All merges of a text, until each of its words is one symbol.

    Raises:
        ValueError: if there is nothing in the text but space.

    Paper: section 5.1, which cites Sennrich, Haddow and Birch (2016); of pairs with one count, the tokenizers library
        takes that whose left symbol has the smallest number, then that with the smallest right one.
    """
    tokenizer = Tokenizer.train([text], vocab_size=10 * len(text) + 10)  # room for all
    model = json.loads(tokenizer.to_json())["model"]
    words, pairs = tokenizer.words(text), [tuple(pair) for pair in model["merges"]]
    repeats, stages, counts = Counter(words), [{word: list(word) for word in words}], []
    for pair in pairs:
        counts.append(count_pairs(stages[-1], repeats))
        stages.append({word: merge_pair(symbols, pair) for word, symbols in stages[-1].items()})
    return Merges(words, pairs, counts, stages, model["vocab"])


def count_pairs(symbols: Mapping[str, Sequence[str]], repeats: Mapping[str, int]) -> dict[Pair, int]:
    """How often two symbols stand side by side in a text, given each word's symbols and how often the word occurs."""
    counts: Counter[Pair] = Counter()
    for word, parts in symbols.items():
        for pair in zip(parts, parts[1:], strict=False):
            counts[pair] += repeats[word]
    return dict(counts)


def merge_pair(symbols: Sequence[str], pair: Pair) -> list[str]:
    """The symbols with each occurrence of the pair made one, from left to right."""
    merged: list[str] = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged
