"""Checks of assignment 01: from text to tensors: merging, encoding, targets, and which rows of the table learn."""

import re
from collections import Counter

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value


def number_below(limit, generator):
    return int(torch.randint(limit, (), generator=generator))


def shuffled(items, generator):
    return [items[place] for place in torch.randperm(len(items), generator=generator)]


def texts_to_merge(generator):
    """Pairs that overlap, symbols that end or begin like those of the pair, symbols with a meaning in patterns."""
    a, b, c = shuffled("abcdefgh", generator)[:3]
    cases = [
        ([a, b, c, a, b], (a, b)),
        ([a, a, a, a, a], (a, a)),
        ([c + a, b, a, b + c, a, b], (a, b)),
        ([a, b, ".", ".", c], (".", ".")),
        ([a + b, c, a, b + c], (a, b + c)),
        ([a], (a, a)),
    ]
    symbols = [a, b, a + b, b + a, "▁" + a, "."]
    for _ in range(3):
        text = [symbols[number_below(len(symbols), generator)] for _ in range(12)]
        place = number_below(11, generator)
        cases.append((text, (text[place], text[place + 1])))
    return cases


def merged_by_pattern(symbols, pair):
    """The symbols with each occurrence of the pair made one; wrong where a symbol means something in a pattern."""
    return re.sub(rf"(?<!\S){pair[0]} {pair[1]}(?!\S)", "".join(pair), " ".join(symbols)).split(" ")


def learned_merges(words, number):
    """Merges of words of letters, with their numbers; no two of them make the same subword."""
    parts, rank = [list(word) for word in words], {}
    for step in range(number):
        made = set(map("".join, rank))
        neighbors = (pair for symbols in parts for pair in zip(symbols, symbols[1:], strict=False))
        counts = Counter(pair for pair in neighbors if "".join(pair) not in made)
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        rank[best] = step
        parts = [merged_by_pattern(symbols, best) for symbols in parts]
    return rank


def words_to_encode(generator):
    """With few merges made for the purpose, then with merges that are learned; in any order."""
    a, b, c, d = shuffled("abcd", generator)

    def word(length):
        return "▁" + "".join((a, b, c, c, d)[number_below(5, generator)] for _ in range(length))

    cases = [
        (a + b + c + d, {(b, c): 0, (a, b): 1, (c, d): 2}),
        (a + b + c + d, {(b, c): 0, (a, b): 1, (a, b + c): 2}),
        (a + b + c + a + b + c, {(a, b): 0, (b, c): 1, (a + b, c): 2}),
        (a + b + c, {(a, b): 0, (b, c): 1, (a, b + c): 2}),
        (a, {(a, b): 0}),
        (c + d + c, {(a, b): 0, (d, d): 1}),
    ]
    for merges in (3, 8, 16, 30):
        words = [word(3 + number_below(5, generator)) for _ in range(15)]
        cases.append((word(10), learned_merges(words, merges)))
    return [(word, dict(shuffled(list(rank.items()), generator))) for word, rank in cases]


def padded_ids(generator):
    """The longest sentence fills its row, others do not; one sentence, and some without padding."""
    cases = []
    for batch, length, shortest in ((1, 5, 5), (2, 4, 1), (3, 3, 3), (4, 6, 1)):
        ids = torch.randint(4, 50, (batch, length), generator=generator)
        tokens = torch.randint(shortest, length + 1, (batch, 1), generator=generator)
        tokens[-1], tokens[0] = shortest, length
        cases.append((ids * (torch.arange(length) < tokens),))
    return cases


def gradients_of_vectors(generator):
    """Tokens that stand in several places; the last row of the table is never looked up."""
    cases = []
    for batch, length, d_model, vocab_size in ((1, 5, 2, 4), (2, 5, 8, 6), (3, 7, 5, 12), (2, 6, 4, 5)):
        ids = torch.randint(vocab_size - 1, (batch, length), generator=generator)
        cases.append((ids, torch.randn(batch, length, d_model, generator=generator), vocab_size))
    return cases


EXERCISES = (
    Exercise(
        "01.merge",
        texts_to_merge,
        {
            "This also merges symbols that only end or begin like those of the pair. Compare whole symbols.": PLANTED,
            "In a pattern a full stop stands for any character. Escape the symbols, or do without a pattern.":
                merged_by_pattern,
            "This stops after the first occurrence; every one is to be merged.":
                Edit("== pair", "== pair and place == len(merged)"),
            "The second symbol of a merged pair is still there; it has to be skipped.": Edit("2 if found else 1", "1"),
            "Where occurrences overlap, the left one counts: here the last one does.":
                Edit("symbols[p", "symbols[::-1][p", "== pair", "== pair[::-1]", "n merged", "n merged[::-1]"),
            "You look for the pair the other way round.":
                Edit("== pair", "== pair[::-1]", "join(pair)", "join(pair[::-1])"),
            "This is one text. The result is a list of symbols.": Edit("return merged", 'return " ".join(merged)'),
            "You compare joined text: ab and c look like a and bc then. Compare the two symbols one by one.":
                Edit("tuple(symbols[place : place + 2]) == pair",
                     '"".join(symbols[place : place + 2]) == "".join(pair)'),
        },
    ),
    Exercise(
        "01.encode",
        words_to_encode,
        {
            "This takes the longest known subword first. What counts is which merge was learned first.":
                lambda word, rank: re.findall("|".join([*sorted(map("".join, rank), key=len)[::-1], "."]), word),
            "This merges the known pair that comes first in the word. What counts is which was learned first.":
                Edit("min(known, key=rank.get)", "known[0]"),
            "This begins with the pair that was learned last; the smallest number comes first.": Edit("min(", "max("),
            "This stops after one merge. The new symbol may have neighbors that merge as well.":
                Edit("symbols = merge(", "return merge("),
            "Symbols that no merge made are lost. They stay as they are.":
                Edit("return symbols", 'return [symbol for symbol in symbols if symbol in map("".join, rank)]'),
            "Nothing is merged here.": Edit("[pair for pair in pairs if pair in rank]", "[]"),
            "You know a merge by its joined text. The pair itself must have been learned: "
            "ab and c is not a and bc.":
                Edit("if pair in rank", 'if "".join(pair) in map("".join, rank)', "rank.get",
                     'lambda pair: min(n for known, n in rank.items() if "".join(known) == "".join(pair))'),
        },
    ),
    Exercise(
        "01.targets",
        padded_ids,
        {
            "Here </s> stands behind the padding; it belongs right after the last token of each sentence.":
                Edit("places == tokens", "places == ids.size(1)"),
            "Here </s> replaces the last token; it belongs after it.": Edit("places == tokens", "places == tokens - 1"),
            "The tgt_in of the shorter sentences contains </s>. Nothing is predicted after it, so it is no input.":
                Edit("return tgt_in", "return torch.where(places == tokens + 1, EOS_ID, tgt_in)"),
            "tgt_in and tgt_out are the other way round.":
                Edit("return tgt_in, ", "return ", "longer)", "longer), tgt_in"),
            "One column is missing: both are (batch, length + 1), because the longest sentence has a </s> as well.":
                Edit("tgt_in, torch", "tgt_in[:, :-1], torch", "longer)", "longer)[:, :-1]"),
            "All places behind the sentence are </s>. Only one is; padding follows it.":
                Edit("places == tokens", "places >= tokens"),
            "Every </s> stands where the shortest sentence ends. Each sentence has its own end.":
                Edit("places == tokens", "places == int(tokens.min())"),
            "There is no </s> in tgt_out. The model has to learn where to stop.":
                Edit("torch.where(places == tokens, EOS_ID, longer)", "longer"),
        },
        loops=False,
    ),
    Exercise(
        "01.gradient",
        gradients_of_vectors,
        {
            "A token that stands in several places keeps the gradient of one of them. They have to be added.":
                Edit("index_add(0, ids.flatten(), rows)", "index_put((ids.flatten(),), rows)"),
            "The factor is missing: the vectors are √d_model times the rows.": Edit(" * math.sqrt(d_model)", ""),
            "This takes the mean over the places of a token; it is their sum.":
                Edit("* math", "/ (ids.flatten() == ids.flatten()[:, None]).sum(1, keepdim=True) * math"),
            "This divides by √d_model. In the backward pass the factor of the forward pass multiplies once more.":
                Edit("* math", "/ math"),
            "You multiply by the root of the vocabulary's size; the vectors are √d_model times the rows.":
                Edit("math.sqrt(d_model)", "math.sqrt(vocab_size)"),
            "You multiply by d_model; the vectors are √d_model times the rows.": Edit("math.sqrt(d_model)", "d_model"),
            "The row of <pad> gets nothing here. This table has no padding row: id 0 learns as the others do.":
                Edit("math.sqrt(d_model)", "math.sqrt(d_model) * (ids.flatten() != PAD_ID)[:, None]"),
        },
        forbidden=(torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward),
        loops=False,
    ),
    Exercise(
        "01.sizes",
        mistakes={
            "Each sentence ends with </s>, and that is a token too.": Edit("14 / 40", "14 / 36", "6 / 32", "6 / 28"),
            "This is the mean of the two shares. "
            "The larger batch counts for more: count the tokens of both together.":
                Edit("6 / 32", "(2 / 12 + 4 / 20) / 2"),
            "The four special symbols have numbers as well.": Edit("134", "130"),
            "The pair is counted four times, but its occurrences overlap: a symbol that is merged is gone.":
                Edit(": 2,", ": 4,"),
            "Lengths grow by √d_model, squares by the square of it.": Edit("64", "8"),
            "These are the shares of real tokens; the shares of padding are asked for.":
                Edit("14 / 40", "26 / 40", "6 / 32", "26 / 32"),
            "Where merges overlap, a symbol is used once. Go from left to right.": Edit(": 2,", ": 3,"),
        },
        ask=value,
    ),
)
