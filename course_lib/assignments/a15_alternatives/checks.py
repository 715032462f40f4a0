"""Checks of assignment 15: a GRU's step, what stacks of convolutions see, a window with gaps, and a text in chunks."""

import torch
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

SEEN = "{age + place * gap for age in seen for place in range(width)}"
OLD = "state[:, None] * a ** (t + 1)[:, None, None]"


def cells(generator):
    """A token, a state, and weights in PyTorch's order, of several sizes."""
    cases = []
    for batch, d_in, d_hidden in ((1, 3, 2), (2, 4, 4), (3, 2, 5), (2, 5, 3)):
        shapes = ((batch, d_in), (batch, d_hidden), (3 * d_hidden, d_in), 3 * d_hidden, (3 * d_hidden, d_hidden))
        cases.append(tuple(torch.randn(shape, generator=generator) for shape in (*shapes, 3 * d_hidden)))
    return cases


def stacks(generator):
    """Stacks without gaps, with growing ones, with holes; and two by chance."""

    def number(low, high):
        return int(torch.randint(low, high, (), generator=generator))

    some = [[(number(2, 5), number(1, 6)) for _ in range(layers)] for layers in (1, 2, 3, 3)]
    return [([(3, 1), (3, 1)],), ([(2, 1), (2, 2), (2, 4)],), ([(2, 4), (2, 4)],), ([],), *((one,) for one in some)]


def windows(generator):
    """Texts shorter and longer than the window, with and without gaps."""
    cases = []
    for batch, length, width, gap, d_in, d_out in (
        (1, 6, 2, 1, 2, 2), (2, 5, 3, 2, 3, 2), (2, 3, 3, 4, 2, 4), (3, 9, 4, 2, 2, 3), (2, 8, 3, 3, 4, 3)
    ):
        x = torch.randn(batch, length, d_in, generator=generator)
        cases.append((x, torch.randn(width, d_in, d_out, generator=generator), gap))
    return cases


def chunks(generator):
    """A chunk, the state before it, what each hand keeps, and how much of it is read."""
    cases = []
    for batch, length, d_model, hands in ((1, 1, 2, 2), (2, 3, 2, 1), (1, 6, 3, 2), (2, 5, 2, 3)):
        x = torch.randn(batch, length, d_model, generator=generator)
        state = torch.randn(batch, d_model, hands, generator=generator)
        a = 0.3 + 0.6 * torch.rand(d_model, hands, generator=generator)
        cases.append((x, state, a, torch.randn(d_model, hands, generator=generator)))
    return cases


EXERCISES = (
    Exercise(
        "15.reach",
        mistakes={
            "A layer of width 3 adds two tokens to what is seen: the third of its window is the own one.":
                Edit(": 6", ": 9"),
            "Asked is how far back; the own token is 0 tokens back.": Edit(": 6", ": 7"),
            "With gaps of 1, 2, 4 and 8, the oldest token is so many back as these add up to; "
            "the own one is not counted.": Edit(": 15", ": 16"),
            "Each of the four layers reaches back by its gap, and not by one token.": Edit(": 15", ": 4"),
            "A centered window has two tokens on each side, so the stack sees as far ahead as it sees back.":
                Edit(": 13", ": 7"),
            "The own token is one of those on which the output depends.": Edit(": 13", ": 12"),
            "Two layers share tokens: of each window of 5, only four are new.": Edit(": 13", ": 15"),
            "From token 0 to token 3 the state shrinks three times.": Edit(": 1.0", ": 2.0"),
            "Where the update gate is 1, the old state stays as it is.": Edit(": 0.3", ": 0.0"),
            "A Fourier transform of size 4 takes four tokens as a circle: what comes before the first one?":
                Edit(": 5.0", ": 1.0"),
        },
        ask=value,
    ),
    Exercise(
        "15.gru",
        cells,
        {
            "Both mistakes are still there. What does the reset gate multiply, and what the update gate?": PLANTED,
            "The reset gate is right. The update gate keeps the old state where it is 1, not where it is 0.":
                Edit("update * state + (1 - update)", "(1 - update) * state + update"),
            "The update gate is right. The reset gate multiplies what the matrix and the bias have made of the state, "
            "not the state itself.":
                Edit("reset * new_state", "(reset * state) @ w_state.chunk(3)[2].T + b_state.chunk(3)[2]"),
            "The reset gate multiplies the product with the state, but not its bias. The bias belongs to it.":
                Edit("reset * new_state", "reset * (new_state - b_state.chunk(3)[2]) + b_state.chunk(3)[2]"),
            "Reset and update are exchanged: the first third of the weights is the reset gate's.":
                Edit("reset, update =", "update, reset ="),
            "The reset gate is forgotten: the candidate sees all of the old state.":
                Edit("reset * new_state", "new_state"),
            "The reset gate also multiplies what comes from the token. It belongs to the old state alone.":
                Edit("new + reset * new_state", "reset * (new + new_state)"),
            "The candidate has no tanh.": Edit("torch.tanh", ""),
            "The candidate is squeezed by a sigmoid. Gates are between 0 and 1, a candidate between −1 and 1.":
                Edit("torch.tanh", "torch.sigmoid"),
            "The gates look at the token alone. The old state has a say in them.":
                Edit("r + r_state", "r", "z + z_state", "z"),
            "The candidate is added in full. It gets what the update gate leaves, 1 − z.":
                Edit("(1 - update) * candidate", "candidate"),
        },
        forbidden=(nn.GRU, nn.GRUCell, torch.gru_cell),
    ),
    Exercise(
        "15.ages",
        stacks,
        {
            "The oldest age is right. But between the ages there are holes, tokens that no window meets.":
                Edit("sorted(seen)", "list(range(max(seen) + 1))"),
            "The gaps are forgotten: in a window, neighbors are gap tokens apart.": Edit("place * gap", "place"),
            "A gap of 1 means neighbors; here the tokens of a window are gap + 1 apart.":
                Edit("place * gap", "place * (gap + 1)"),
            "Each window has one token too many: of width k it reads k tokens, the own one among them.":
                Edit("range(width)", "range(width + 1)"),
            "The windows do not contain the own token.": Edit("range(width)", "range(1, width + 1)"),
            "You unite what each layer alone would see. One layer reads what another has read: ages add up.":
                Edit("seen = {age + place * gap for age in seen", "seen |= {place * gap"),
            "Only the last layer is in the result.": Edit("for age in seen ", "for age in [0] "),
            "All ages are asked for, not the oldest alone.": Edit("sorted(seen)", "max(seen)"),
            "An age that is reached in several ways counts once.":
                Edit("{0}", "[0]", SEEN, SEEN.replace("{", "[").replace("}", "]")),
            "These windows look ahead as well; causal ones end at the own token.":
                Edit("place in range(width)", "place in range(1 - width, width)"),
            "The own token is missing: its age is 0.": Edit("sorted(seen)", "sorted(seen)[1:]"),
        },
    ),
    Exercise(
        "15.dilated",
        windows,
        {
            "There are no gaps: your window takes neighbors.":
                Edit("* gap", "", "[..., ::gap]", ""),
            "The last matrix belongs to the own token; your weights are the other way round.":
                Edit("windows, weight", "windows, weight.flip(0)"),
            "The window begins at the own token and looks ahead, where a causal one looks back.":
                Edit("[x.new_zeros(x.size(0), reach, x.size(2)), x]", "[x, x.new_zeros(x.size(0), reach, x.size(2))]"),
            "The window is centered on the own token, so it sees the future.":
                Edit("torch.cat([x.new_zeros(x.size(0), reach, x.size(2)), x], dim=1)",
                     "torch.nn.functional.pad(x, (0, 0, reach - reach // 2, reach // 2))"),
            "The window ends one token too early: the own token is not in it.":
                Edit("x.size(2)), x]", "x.size(2)), x.new_zeros(x.size(0), 1, x.size(2)), x[:, :-1]]"),
            "Before the first token you repeat it. There is nothing, so zeros.":
                Edit("x.new_zeros(x.size(0), reach, x.size(2))", "x[:, :1].expand(-1, reach, -1)"),
            "The text goes round like a circle: before the first token stands the last one.":
                Edit("x.new_zeros(x.size(0), reach, x.size(2))",
                     "x[:, torch.arange(-reach, 0, device=x.device) % x.size(1)]"),
            "The tokens of the window are gap + 1 apart; a gap of 1 means neighbors.":
                Edit("* gap", "* (gap + 1)", "::gap", ":: gap + 1"),
            "All places of the window have the own token's matrix.":
                Edit("windows, weight", "windows, weight[-1:].expand_as(weight)"),
            "This is the mean over the window; asked is the sum.":
                Edit("windows, weight)", "windows, weight) / weight.size(0)"),
            "The tokens where the window is not full are missing. They have an output, too.":
                Edit("return torch.einsum(\"blik,kio->blo\", windows, weight)",
                     "return torch.einsum(\"blik,kio->blo\", windows, weight)[:, reach:]"),
        },
        forbidden=(torch.conv1d, torch.convolution, torch.conv2d, nn.Conv1d),
        loops=False,
    ),
    Exercise(
        "15.chunk",
        chunks,
        {
            "The state that came in is forgotten.": Edit(f" + {OLD}", ""),
            "The state that came in is one shrinking short: at token 0 it has been multiplied by a once.":
                Edit("(t + 1)", "t"),
            "The state that came in does not shrink.": Edit(OLD, "state[:, None]"),
            "A token that is still to come is in the state as if it had the age 0.": Edit(" * (age >= 0)", ""),
            "Tokens that are still to come are in the state, shrunk by their distance.":
                Edit("age.clamp(min=0) * (age >= 0)", "age.abs()"),
            "The own token is missing in the state: its age is 0, and nothing of it has shrunk.":
                Edit("(age >= 0)", "(age > 0)"),
            "The own token has shrunk already. It enters the state as it is.":
                Edit("age.clamp(min=0)", "(age + 1).clamp(min=0)"),
            "Nothing shrinks within the chunk: all of its tokens count as if they were new.":
                Edit("age.clamp(min=0)", "(0 * age)"),
            "The second result is the state after the first token; asked is that after the last.":
                Edit("states[:, -1]", "states[:, 0]"),
            "The state that is handed on is a weighted one. The weights are for the outputs only.":
                Edit("states[:, -1]", "weights * states[:, -1]"),
            "The outputs are plain sums over the hands; each hand has its weight.":
                Edit("(weights * states).sum", "states.sum"),
            "Two results are asked for: outputs, and the state after the last token.":
                Edit(".sum(dim=-1), states[:, -1]", ".sum(dim=-1)"),
            "The old state is handed on. The next chunk needs the one after this chunk.":
                Edit(", states[:, -1]", ", state"),
        },
        loops=False,
    ),
)
