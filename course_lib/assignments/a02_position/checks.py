"""Checks of assignment 02: what shuffling does, the sinusoids' exponent, ALiBi, rotary positions."""

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value

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
    "positions added to all rows but the largest",
    "attention, and positions in the last feature",
)


def asked_about_a_layer(answer, layer, x, order):
    """What the answer says of a layer, which it gets as a function."""

    def attention(x, *, causal=False):
        future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        scores = (x @ x.T / x.size(1) ** 0.5).masked_fill(future & causal, -torch.inf)
        return torch.softmax(scores, dim=-1) @ x

    def below(sums):
        return sums < sums.max()

    def positions(x):
        return torch.arange(len(x), dtype=x.dtype)[:, None].sin()

    layers = {
        "attention": attention,
        "attention with a causal mask": lambda x: attention(x, causal=True),
        "attention after positions are added": lambda x: attention(x + positions(x)),
        "the mean of all rows, in every row": lambda x: x.mean(dim=0).expand_as(x),
        "running sum over the rows": lambda x: x.cumsum(dim=0),
        "each column sorted": lambda x: x.sort(dim=0).values,
        "tanh": torch.tanh,
        "attention and a trace of positions": lambda x: attention(x) + 1e-4 * positions(x),
        "the first row's sum added to every row": lambda x: x + x[0].sum(),
        "the first row's sum taken off every row": lambda x: x - x[0].sum(),
        "positions added to all rows but the largest": lambda x: x + positions(x) * below(x.sum(1, keepdim=True)),
        "attention, and positions in the last feature": lambda x: attention(x) + positions(x) * torch.eye(4)[3].to(x),
    }
    return answer(layers[layer], x, order)


def layers_and_orders(generator):
    """One case for each layer; in float64, and with an order that does not undo itself and moves the first row."""
    cases = []
    for number, layer in enumerate(LAYERS):
        length = 6 + number
        order = torch.arange(length)
        while torch.equal(order[order], torch.arange(length)) or order[0] == 0:
            order = torch.randperm(length, generator=generator)
        x = torch.randn(length, 4, generator=generator).double()
        x[0] -= 2  # its sum is the smallest: what is made of it grows in one layer and shrinks in another
        x[order[0]] += 2  # the row that comes first has the largest sum
        cases.append((layer, x, order))
    return cases


def lengths_and_widths(generator):
    longest = torch.randint(3, 60, (4,), generator=generator).tolist()
    pairs = torch.randint(2, 20, (4,), generator=generator).tolist()
    return [(1, 4), *((max_len, 2 * number) for max_len, number in zip(longest, pairs, strict=True))]


def scores_of_late_queries(generator):
    """Square and not, one query alone; the slopes of four heads are exact in float32, too."""
    shapes = [(1, 2, 3, 3), (2, 3, 5, 5), (3, 8, 1, 6), (1, 1, 2, 4), (2, 4, 3, 7)]
    return [(torch.randn(shape, generator=generator),) for shape in shapes]


def tokens_at_positions(generator):
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


EXERCISES = (
    Exercise(
        "02.shuffled",
        layers_and_orders,
        {
            "This wants every digit to be equal. Sums in another order differ in the last digits: allow for that.":
                Edit("allclose", "equal", ", atol=1e-6", ""),
            "The order is the wrong way round here: row k of the shuffled output belongs to row order[k] of the other.":
                Edit("after, before[order]", "after[order], before"),
            "The two answers are the other way round.": Edit("equivariant, invariant", "invariant, equivariant"),
            "This compares the means, which may stay where the rows do not; invariant is about the rows.":
                Edit("after, before,", "after.mean(dim=0), before.mean(dim=0),"),
            "A layer may be both, or neither. Ask each question by itself.":
                Edit("equivariant, invariant", "equivariant, not equivariant"),
            "You compare the columns sorted, each by itself. The rows must move as wholes, and in the order given.":
                Edit("after, before[order]", "after.sort(0).values, before.sort(0).values"),
            "Two answers are asked for: equivariant, invariant.": Edit("equivariant, invariant", "equivariant"),
            "You allow for too much: rounding is far below 1e-2, and a trace of positions is not.":
                Edit("1e-6", "1e-2"),
            "A difference that is far below zero passes. Take its absolute value.":
                Edit("torch.allclose(after, ", "bool((after - ", ", atol=1e-6)", ").max() < 1e-6)"),
            "A difference that is far above zero passes, because you look at one side only. "
            "Take its absolute value.":
                Edit("torch.allclose(after, ", "bool((-after + ", ", atol=1e-6)", ").max() < 1e-6)"),
            "You compare the first rows alone. All rows must be as they should.":
                Edit("after, before[order],", "after[0], before[order][0],", "after, before,", "after[0], before[0],"),
            "You compare the first feature alone. All features must be as they should.":
                Edit("after, before[order],", "after[:, 0], before[order][:, 0],", "after, before,",
                     "after[:, 0], before[:, 0],"),
        },
        ask=asked_about_a_layer,
        any_device=False,
    ),
    Exercise(
        "02.sinusoids",
        lengths_and_widths,
        {
            "Count the pairs: the paper's i goes up to d_model / 2 - 1. How far does it go here?": PLANTED,
            "Sine and cosine share their angle now. "
            "But i is even already: which exponent do dimensions 2 and 3 have?":
                Edit("(2 * i / d_model)", "(4 * i / d_model)"),
            "The sines are right. A cosine has the angle of the sine beside it, not one of its own.":
                Edit("math.cos(angle)", "math.cos(position / 10000 ** ((2 * i + 1) / d_model))"),
            "This exponent is half of the paper's: with i for the pair, it is 2i / d_model.":
                Edit("(2 * i / d_model)", "(i / d_model)"),
            "Here all sines come first; the paper has sine and cosine in turns.":
                Edit("2 * i]", "i]", "2 * i + 1]", "d_model // 2 + i]"),
            "Positions count from 0: the first row has sines of 0 and cosines of 1.":
                Edit("= position /", "= (position + 1) /"),
            "The base is 10,000, with four zeros.": Edit("10000", "1000"),
            "Sine and cosine are exchanged: the even dimensions have the sine.":
                Edit("2 * i] = math.sin", "2 * i] = math.cos", "2 * i + 1] = math.cos", "2 * i + 1] = math.sin"),
            "There is a dimension too many: the table is (max_len, d_model).":
                Edit("return table", "return table[:, None]"),
        },
    ),
    Exercise(
        "02.alibi",
        scores_of_late_queries,
        {
            "Here far keys gain. The bias is subtracted: they are to lose.": Edit("scores - slope", "scores + slope"),
            "Here a key after the query gains, because its distance is negative; its score is to stay as it is.":
                Edit(".clamp(min=0)", ""),
            "Here a key after the query loses as one before it does; its score is to stay as it is.":
                Edit("clamp(min=0)", "abs()"),
            "The slopes begin with 1 here. The first head's is 2^(-8 / heads), the last head's 2^(-8).":
                Edit("1, heads + 1", "heads"),
            "Here the first query stands at position 0. The queries are the last of the positions: shift them.":
                Edit("key[keys - queries :", "key[:queries"),
            "The exponents go down to −8 for the last head; yours end at −4.": Edit("-8", "-4"),
            "What is taken off grows with the distance, not with its square.":
                Edit("clamp(min=0)", "clamp(min=0) ** 2"),
            "All heads have the slope of the first one. Each has its own.": Edit("slope[:, None, None]", "slope[0]"),
            "This is the bias alone. It is added to the scores.": Edit("scores - slope", "0 * scores - slope"),
            "The slopes are in the wrong order: the first head's is the steepest.": Edit("slope[:", "slope.flip(0)[:"),
        },
        loops=False,
    ),
    Exercise(
        "02.rotary",
        tokens_at_positions,
        {
            "The numbers are right, in the wrong places: features 2i and 2i + 1 come back side by side.":
                Edit("torch.stack(turned, dim=-1).flatten(-2)", "torch.cat(turned, dim=-1)"),
            "This pairs feature i with i + d_k / 2, as some models do. Here neighbors are pairs: 2i and 2i + 1.":
                Edit(
                    *("x[..., 0::2], x[..., 1::2]", "x.chunk(2, dim=-1)"),
                    *("torch.stack(turned, dim=-1).flatten(-2)", "torch.cat(turned, dim=-1)"),
                ),
            "This turns the other way: look at the two signs.": Edit("* frequency", "* -frequency"),
            "Here each sentence begins at position 0. Its tokens stand where `position` says.":
                Edit("position[:, None, :, None]", "torch.arange(x.size(2), device=x.device)[:, None]"),
            "All sentences are turned by the positions of the first one; each has its own.":
                Edit("position[:, None", "position[:1, None"),
            "Only the first token's position counts here, and the others follow it. Each brings its own.":
                Edit("position[:, None", "(position[:, :1] + torch.arange(x.size(2), device=x.device))[:, None"),
            "The second feature is turned by the first one's new value. Both are made of the old ones.":
                Edit("turned = [even", "even = even", ", even * angle.sin()",
                     "\n    turned = [even, even * angle.sin()"),
            "The positions of a sentence meet its heads. Put the new axis behind the batch.":
                Edit("position[:, None, :, None]", "position[None, :, :, None]"),
            "The frequencies are in the wrong order: the first pair turns fastest.":
                Edit("* frequency", "* frequency.flip(0)"),
        },
        loops=False,
    ),
    Exercise(
        "02.facts",
        mistakes={
            "Position 0 does change something: the sine of 0 is 0, but what is its cosine?":
                Edit('PE(0)": 100', 'PE(0)": 0'),
            "Each pair has the length 1. How many pairs are there?": Edit(": 10,", ": math.sqrt(200),"),
            "The exponent is 2i / d_model, where i is the number of the pair.": Edit('2π": 100', '2π": 10'),
            "The rows move, and nothing else happens to them. What does a mean care about?": Edit("True", "False"),
            "With a causal mask the order decides who sees whom, so the rows themselves change.":
                Edit("False", "True"),
            "The distance alone is not enough: in rotated scores, before and after differ.": Edit("101", "109"),
            "The sine of 0 is 0. Which of the numbers at position 0 are sines?": Edit(": 0,", ": 100,"),
        },
        ask=value,
    ),
)
