"""Checks of assignment 13: vectors for offsets, rotary layouts, a cache of turned keys that stays small, and YaRN."""

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value

WITH_VECTORS = 'torch.einsum("bhqd,qkd->bhqk", query, vectors)'
MIXED = "share * frequency + (1 - share) * frequency / factor"


def queries_keys_and_tables(generator):
    """Texts that are shorter and longer than the table; as many queries as keys, and fewer."""
    cases = []
    for batch, heads, queries, keys, d_k, farthest in (
        (1, 1, 3, 3, 4, 2),
        (2, 3, 6, 6, 3, 2),
        (1, 2, 2, 7, 2, 3),
        (3, 2, 1, 5, 4, 1),
        (2, 2, 4, 8, 5, 9),
    ):
        query = torch.randn(batch, heads, queries, d_k, generator=generator)
        key = torch.randn(batch, heads, keys, d_k, generator=generator)
        cases.append((query, key, torch.randn(2 * farthest + 1, d_k, generator=generator)))
    return cases


def layers(generator):
    """Projections with one head and with several, some of them square."""
    cases = []
    for num_heads, d_k, d_model in ((1, 6, 6), (2, 4, 8), (3, 8, 5), (2, 8, 16), (4, 6, 24)):
        weight = torch.randn(num_heads * d_k, d_model, generator=generator)
        cases.append((weight, torch.randn(num_heads * d_k, generator=generator), num_heads))
    return cases


def caches(generator):
    """Caches that have room, are full, and are too long, by one key and by many; with and without sinks."""
    cases = []
    for batch, heads, length, d_k, sinks, room, base in (
        (1, 1, 5, 4, 1, 4, 1e4),
        (2, 2, 12, 4, 2, 5, 1e3),
        (1, 3, 6, 6, 0, 4, 1e4),
        (2, 1, 4, 4, 2, 7, 100.0),
        (1, 2, 6, 4, 1, 6, 1e4),
        (2, 2, 11, 8, 3, 7, 500.0),
    ):
        frequency = base ** (-torch.arange(0, d_k, 2) / d_k)
        cases.append((torch.randn(batch, heads, length, d_k, generator=generator), sinks, room, frequency))
    return cases


def spectra(generator):
    """Frequencies of several widths and bases; in each case some pairs before, on and behind the ramp."""
    cases = []
    for d_k, base, trained, factor, slow, fast in (
        (16, 1e4, 16, 4, 0.2, 1.5),
        (32, 1e4, 64, 8.0, 1, 8),
        (64, 5e5, 4096, 4, 1, 32),
        (24, 1e3, 40, 2.5, 0.5, 4.0),
    ):
        jitter = 1 + 0.1 * torch.rand(d_k // 2, generator=generator)
        cases.append((base ** (-torch.arange(0, d_k, 2) / d_k) * jitter, trained, factor, slow, fast))
    return cases


EXERCISES = (
    Exercise(
        "13.vectors",
        queries_keys_and_tables,
        {
            "The queries stand at the first positions here. They are the last of the keys' positions.":
                Edit("place[keys - queries :, None]", "place[:queries, None]"),
            "The sign of the offset is wrong: it is the key's position minus the query's.":
                Edit("place - place[keys - queries :, None]", "place[keys - queries :, None] - place"),
            "The offset has lost its sign. A key before the query has another vector than one after it.":
                Edit("offset.clamp(-farthest, farthest)", "offset.abs().clamp(max=farthest)"),
            "The first row of the table is that of offset −farthest; offset 0 has the row in the middle.":
                Edit("farthest) + farthest]", "farthest)]"),
            "The keys' part of the score is not divided by √d_k.":
                Edit("(query @ key.mT + with_vectors)", "query @ key.mT + with_vectors"),
            "The vectors' part of the score is not divided by √d_k: they are added to the keys before that.":
                Edit("(query @ key.mT + with_vectors) / math.sqrt(query.size(3))",
                     "query @ key.mT / math.sqrt(query.size(3)) + with_vectors"),
            "These are the scores without the division by √d_k.": Edit(" / math.sqrt(query.size(3))", ""),
            "You divide by d_k; the scores are divided by its root.": Edit("math.sqrt(query.size(3))", "query.size(3)"),
            "The keys are missing: this is the vectors' part alone.": Edit("query @ key.mT + ", ""),
            "The vectors are missing: this is the keys' part alone.": Edit(" + with_vectors", ""),
            "The vectors are multiplied by the keys here. They are added to them, and the query asks for both.":
                Edit(WITH_VECTORS, 'torch.einsum("bhkd,qkd->bhqk", key, vectors)'),
            "Offsets are clipped one step too early: −farthest and farthest have rows of their own.":
                Edit("clamp(-farthest, farthest)", "clamp(1 - farthest, farthest - 1)"),
        },
        loops=False,
    ),
    Exercise(
        "13.convert",
        layers,
        {
            "Both mistakes are still there. How many heads do the rows belong to, and what else has one number a row?":
                PLANTED,
            "The bias is right, the order is not: evens and odds of all heads are sorted together. "
            "A head has d_k rows of its own.": Edit(".view(num_heads, -1)", ".view(1, -1)"),
            "The weight is right. But the bias has one number for each feature as well, and stays where it was.":
                Edit("bias[order]", "bias"),
            "This converts the other way, from halves to pairs.": Edit("[order]", "[order.argsort()]"),
            "The odd features come first here; the even ones must.":
                Edit("0::2", "_::2", "1::2", "0::2", "_::2", "1::2"),
            "The even features are there twice, the odd ones are lost.": Edit("1::2", "0::2"),
            "The heads are mixed: the rows of one head are next to each other, d_k of them.":
                Edit(".view(num_heads, -1)", ".view(-1, num_heads).mT"),
            "The bias is reordered, the weight is not.": Edit("weight[order]", "weight"),
            "All heads are in order, but they stand in each other's place: the last head comes first.":
                Edit(".view(num_heads, -1)", ".view(num_heads, -1).flip(0)"),
            "All heads get the rows of the first one.":
                Edit(".view(num_heads, -1)", ".view(num_heads, -1)[:1].expand(num_heads, -1)"),
        },
    ),
    Exercise(
        "13.endless",
        caches,
        {
            "The right keys are kept, but the newest ones are still turned for their old positions.":
                Edit("turned(newest, -dropped * frequency)", "newest"),
            "The newest keys are turned on, away from the beginning. They move back.": Edit("-dropped", "dropped"),
            "The first keys are turned, too. They stay where they are, and only what comes after them moves.":
                Edit("[first, turned(newest, ", "[turned(first, -dropped * frequency), turned(newest, "),
            "The newest `room` keys are kept, and the first ones besides. Together they are `room` keys.":
                Edit("keys[:, :, sinks + dropped :]", "keys[:, :, dropped:]"),
            "The first `sinks` keys are lost.": Edit("[first, ", "[first[:, :, :0], "),
            "It is the newest keys that are dropped here. Behind the first ones, the oldest have to go.":
                Edit("keys[:, :, sinks + dropped :]", "keys[:, :, sinks : keys.size(2) - dropped]"),
            "A cache that still has room must stay as it is.":
                Edit("max(0, keys.size(2) - room)", "keys.size(2) - room"),
            "The newest keys move by one position too few.":
                Edit("-dropped * frequency", "-max(0, dropped - 1) * frequency"),
            "The newest keys move back by `sinks` positions too many. How many keys are gone before them?":
                Edit("-dropped * frequency", "-(dropped + sinks) * frequency"),
            "One key too many is dropped.":
                Edit("max(0, keys.size(2) - room)", "max(0, keys.size(2) - room + 1)"),
            "The kept keys are turned for their new positions as if they were not turned yet.":
                Edit("-dropped * frequency",
                     "torch.arange(sinks, sinks + newest.size(2), device=keys.device)[:, None] * frequency"),
        },
        loops=False,
    ),
    Exercise(
        "13.yarn",
        spectra,
        {
            "The ramp has no ends: beyond `slow` and `fast` the share has to stay 0 and 1.": Edit(".clamp(0, 1)", ""),
            "The slow pairs are kept here and the fast ones stretched. It is the other way round.":
                Edit("share * frequency + (1 - share)", "(1 - share) * frequency + share"),
            "The slow pairs are made faster here. A frequency that is `factor` times as small turns more slowly.":
                Edit("/ factor", "* factor"),
            "These are radians within the trained length; a whole turn has 2π of them.": Edit(" / (2 * math.pi)", ""),
            "All pairs are stretched: this is plain position interpolation.": Edit(MIXED, "frequency / factor"),
            "There is no ramp: all pairs below `fast` turns are stretched in full.":
                Edit("((turns - slow) / (fast - slow)).clamp(0, 1)", "(turns >= fast).to(frequency.dtype)"),
            "There is no ramp: all pairs above `slow` turns are kept.":
                Edit("((turns - slow) / (fast - slow)).clamp(0, 1)", "(turns > slow).to(frequency.dtype)"),
            "You mix the wavelengths. It is the frequencies that are mixed.":
                Edit(MIXED, "1 / (share / frequency + (1 - share) * factor / frequency)"),
            "You count turns within the long text. It is the trained length that tells what was seen.":
                Edit("trained * frequency", "trained * factor * frequency"),
            "The turns are upside down: a pair with a higher frequency makes more of them.":
                Edit("trained * frequency / (2 * math.pi)", "2 * math.pi / (trained * frequency)"),
            "The ramp begins at 0 turns; it begins at `slow`.": Edit("(turns - slow) / (fast - slow)", "turns / fast"),
            "Old and stretched frequency are mixed in equal parts, wherever the pair is.":
                Edit("((turns - slow) / (fast - slow)).clamp(0, 1)", "0.5"),
        },
    ),
    Exercise(
        "13.predict",
        mistakes={
            "Two positions are two quarters of a turn. Where does (1, 0) point then?":
                Edit('7": -1', '7": 0'),
            "The query looks for its own direction. After half a turn, the key points the other way.":
                Edit('7": -1', '7": 1'),
            "Four quarters are a whole turn: this offset is an alias of 0.": Edit('5": 1', '5": -1'),
            "Interpolated, positions are half as large: two of them are one quarter of a turn.":
                Edit('interpolated": 0', 'interpolated": -1'),
            "The first of 8 heads has 2^(−1).": Edit("0.25", "0.125"),
            "With the slope ln 2, each position halves a weight. How many positions lie between the two keys?":
                Edit(": 16", ": 4"),
            "Weights are made of scores by exp.": Edit(": 16", ": 3"),
            "Offset 0 has a number of its own.": Edit(": 492", ": 480"),
            "Offsets before *and* after the query have numbers.": Edit(": 492", ": 252"),
            "In 16 words the farthest offset is 15.": Edit(": 10", ": 8"),
            "Offsets are missing on both sides.": Edit(": 10", ": 5"),
        },
        ask=value,
    ),
)
