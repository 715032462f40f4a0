# %% [markdown]
# # 15 · Alternatives: what else can read and write
#
# **Question.** The paper's abstract announces a model "dispensing with recurrence and convolutions entirely". Was that wise? We build both, and a newer layer: what does each cost, how far does it reach, and where does the Transformer lose?
#
# **Afterwards you can**
#
# 1. write a recurrent, a convolutional and a state-space layer, and say what each passes from token to token;
# 2. count operations, sequential steps and path length, as table 1 of the paper does, and check how they grow;
# 3. judge a comparison of architectures: what was equal, what was tuned, and what does the task reward?
#
# **You need** clock hands (lesson [02](02_position.ipynb)), attention ([03](03_attention.ipynb)), masks ([05](05_masks.ipynb)), vanishing gradients ([06](06_encoder.ipynb)), the decoder with its cache ([07](07_decoder.ipynb), [11](11_decoding.ipynb)), the Transformer ([08](08_transformer.ipynb)) and the recurrent baseline ([10](10_translation.ipynb)).
# **Time**: {minutes} minutes to read, under 120 seconds to run.
# **In the paper**: section 4, "Why self-attention", with table 1 [@vaswani2017].

# %%
import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other


def apart(a, b):
    """The largest difference between two tensors."""
    return (a - b).abs().max().item()


# %% [markdown]
# ## A fact, and a question much later
#
# *Anna has the key. … Dora has the map. … What does Anna have?*
# Between the fact and the question are words that have nothing to do with it: five, or fifty.
# Here is such a story. One token states a whole fact, and one token asks.

# %% tags=["nbval-check-output"]
from course_lib.experiments import FACTS, QUESTIONS, THINGS, stories

names, things = "Anna Ben Cem Dora".split(), "ball key cup hat pen map box rope".split()


def spell(token):
    """A token of the task in words."""
    if token < FACTS:
        return f"{names[token // THINGS]}-has-{things[token % THINGS]}"
    return f"{names[token - FACTS]}?" if token < FACTS + QUESTIONS else "·"


ids, answers, distance = stories(1, 24, torch.Generator().manual_seed(3))
print(" ".join(spell(token) for token in ids[0].tolist()))
for place in distance[0].nonzero().flatten().tolist():
    thing, ago = things[answers[0, place]], distance[0, place]
    print(f"token {place}: {spell(ids[0, place])} {thing}, told {ago} tokens ago")

# %% [markdown]
# A dot is a **filler**, a token that is there to be ignored.
# When *Anna-has-key* is read, nobody has asked yet. What can a layer do with it?
#
# - **Attention** keeps every token. When the question comes, it looks back and takes the one that fits. It chooses *after* it knows the question.
# - **Recurrence** keeps one *state* of fixed size and rewrites it with every token. It must choose what to keep *before* it knows the question.
# - **Convolution** looks at a window of neighbors, which every layer widens a little. What lies outside the window does not exist for it.
# - **State space**, in its first form, is a recurrence that never chooses: all tokens enter the state in the same way and fade in the same way. In return, all its states can be computed at once.
#
# In the next picture, a fact travels from the first of six tokens to the last output.

# %% tags=["hide-input"]
from course_lib.figures import curves, new_figure, styled

FIRST, LAST = 0, 5  # of six tokens


def ways_of(name):
    """Rows of dots, and the arrows between them, as (column, row) to (column, row)."""
    up = [((token, 0), (token, 1)) for token in range(6)]
    if name == "attention":
        return 2, [((token, 0), (LAST, 1)) for token in range(6)]
    if name == "convolution":
        places = [(token, row) for row in range(3) for token in range(6)]
        return 4, [
            ((ago, row), (token, row + 1))
            for token, row in places
            for ago in range(max(0, token - 2), token + 1)
        ]
    return 2, up + [((token, 1), (token + 1, 1)) for token in range(5)]


# %% tags=["hide-input"]
ROUTES = {
    "attention": [(FIRST, 0), (LAST, 1)],
    "recurrence": [(FIRST, 0), *((token, 1) for token in range(6))],
    "convolution": [(FIRST, 0), (2, 1), (4, 2), (LAST, 3)],
    "state space": [(FIRST, 0), *((token, 1) for token in range(6))],
}
WORDS = {"recurrence": "U and tanh at each step", "state space": "times a at each step"}


def draw_ways(axes, ways, route, gap=4):
    """Gray arrows; those of the route in blue, and above the others."""
    blue = set(zip(route, route[1:], strict=False))
    for way in sorted(ways, key=blue.__contains__):
        tones = dict(color="C0", lw=2) if way in blue else dict(color="0.8", lw=0.8)
        tones |= dict(arrowstyle="->", shrinkA=gap, shrinkB=gap)
        axes.annotate("", way[1], way[0], arrowprops=tones)


# %% tags=["hide-input"]
@styled
def four_ways():
    title = "From first token to last output: at once, token by token, layer by layer"
    figure = new_figure(title, 9.0, 2.3)
    for place, name in enumerate(ROUTES):
        axes = figure.add_subplot(1, 4, place + 1, title=name)
        top = ways_of(name)[0] - 1
        axes.set(xlim=(-0.4, 5.4), ylim=(-0.3 * top, 1.25 * top))
        axes.axis("off")
        draw_ways(axes, ways_of(name)[1], ROUTES[name])
        for row in range(top + 1):
            axes.plot(range(6), [row] * 6, "o", color="0.4", ms=5)
        axes.text(2.5, -0.12 * top, "tokens", ha="center", va="top", fontsize=9)
        axes.text(2.5, 1.08, WORDS.get(name, ""), ha="center", va="bottom", fontsize=9)
    return figure


# %% tags=["hide-input"]
for name, route in ROUTES.items():
    assert route[0] == (FIRST, 0) and route[-1][0] == LAST
    assert set(zip(route, route[1:], strict=False)) <= set(ways_of(name)[1])
assert [len(route) - 1 for route in ROUTES.values()] == [1, 6, 3, 6]
four_ways()

# %% [markdown]
# The fact takes 1, 6, 3 and 6 steps, the blue arrows. (U and a come below, and so does a way to read the state space in one step.)
#
# These four ways give the five sides of our races: *Transformer* (attention), *LSTM* and *GRU* (two kinds of recurrence), *convolutional* and *state space*.
# First we build the three new layers. Then all five race, in recall and later in translation.
# The [last section](#Where-the-Transformer-loses) puts all results in one table.
#
# ## Recurrence: a state that is handed on
#
# A **recurrent layer** has one vector, the **state**, that it rewrites with every token.
# The simplest one is state = tanh(W x + U state), with the token's vector x and learned matrices W and U.
# Its weakness shows in training.
# The gradient that tells the fact "you were needed" runs back through every step between question and fact. Each step multiplies it by U and by the slope of tanh.
# If each step makes the gradient smaller, little is left after many tokens (if larger, it explodes).
# This is the vanishing gradient of lesson [06](06_encoder.ipynb), now along the text [@hochreiter1997].
#
# **Gates** are the remedy. Take one number of the state, and let 0.8 in it mean *Anna has the key*.
# A gate z between 0 and 1 says how much of the old number stays; the rest is filled with something new, a *candidate*:
#
# new state = z · state + (1 − z) · candidate
#
# Say that the candidate at a filler is 0. With z = ½, three fillers leave 0.4, 0.2, 0.1: almost forgotten. With z = 1 they leave 0.8, 0.8, 0.8, and the gradient passes untouched, too.
# For this number, z should be near 0 at *Anna-has-key*, and near 1 at fillers and at the other facts. The gate is computed from the token and the state, so the layer can learn this.
#
# Two layers have such gates, one for each feature (⊙ multiplies feature by feature):
#
# - The **GRU** [@cho2014] has this *update* gate z, and a *reset* gate r that says how much of the old state the candidate may see: candidate = tanh(W x + r ⊙ U state). (This is PyTorch's form; the paper has U (r ⊙ state).)
# - The older **LSTM** [@hochreiter1997] has a second state, its cells, and three gates: to forget (since @gers2000), to write (*input gate*) and to show (*output gate*). Its cells are forget ⊙ cells + write ⊙ candidate, and its state is show ⊙ tanh(cells).
#
# Here is the whole GRU.


# %%
class OurGRU(nn.Module):
    def __init__(self, d_in, d_hidden):
        super().__init__()
        self.of_input = nn.Linear(d_in, 3 * d_hidden)
        self.of_state = nn.Linear(d_hidden, 3 * d_hidden)

    def forward(self, x):  # (batch, length, d_in)
        state, states = x.new_zeros(len(x), self.of_state.in_features), []
        for token in x.unbind(dim=1):
            r, z, new = self.of_input(token).chunk(3, dim=-1)
            r_state, z_state, new_state = self.of_state(state).chunk(3, dim=-1)
            reset, update = torch.sigmoid(r + r_state), torch.sigmoid(z + z_state)
            state = update * state + (1 - update) * torch.tanh(new + reset * new_state)
            states.append(state)
        return torch.stack(states, dim=1)  # (batch, length, d_hidden)


# %%
generator = torch.Generator().manual_seed(0)
text = torch.randn(2, 30, 16, generator=generator)
torch.manual_seed(0)
theirs, ours = nn.GRU(16, 16, batch_first=True), OurGRU(16, 16)
for part, side in ((ours.of_input, "ih"), (ours.of_state, "hh")):
    part.weight.data = getattr(theirs, f"weight_{side}_l0").data
    part.bias.data = getattr(theirs, f"bias_{side}_l0").data
gap_of_gru = apart(ours(text), theirs(text)[0])
print(f"ours and torch's: {gap_of_gru:.0e} apart")

# %% tags=["hide-input"]
assert gap_of_gru < 1e-5

# %% [markdown]
# How much of the gradient is left after 60 tokens?
# We give random texts to untrained layers and measure, by the norm of the gradient, how strongly the *last* output depends on each token before it.
# GRU and LSTM are there twice, the second time with a bias of +2 on the gate that keeps (update, forget), so that it starts near 0.9 instead of 0.5.

# %%
of_fading = Predict(
    "Untrained GRU: the gradient 60 tokens back, compared with 1 token back?",
    ["about a tenth", "less than a billionth", "the same"],
    section="Recurrence: a state that is handed on",
)
of_fading

# %%
from course_lib.alternatives import DiagonalStateSpace, GatedConvolution


def fades(layer, length=64, width=64):
    """Norm of the gradient of the last output, for each token, nearest first."""
    x = torch.randn(8, length, width, generator=generator).requires_grad_()
    y = layer(x)
    y = y[0] if isinstance(y, tuple) else y
    (gradient,) = torch.autograd.grad(y[:, -1].sum(), x)
    return gradient.norm(dim=-1).mean(dim=0).flip(0)  # (length,)


torch.manual_seed(1)
gradients = {}
for name, kind, gate in (("GRU", nn.GRU, "update"), ("LSTM", nn.LSTM, "forget")):
    gradients[name] = fades(kind(64, 64, batch_first=True))
    layer = kind(64, 64, batch_first=True)
    layer.bias_ih_l0.data[64:128] = 2.0  # the second gate in torch's order
    gradients[f"{name}, {gate} gate open"] = fades(layer)

# %%
print(f"{'tokens back':22}", *(f"{ago:9}" for ago in (1, 10, 30, 60)))
for name, norms in gradients.items():
    print(f"{name:22}", *(f"{norms[ago] / norms[1]:9.0e}" for ago in (1, 10, 30, 60)))
left = {name: (norms[60] / norms[1]).item() for name, norms in gradients.items()}
of_fading.reveal(of_fading.choices[1 if left["GRU"] < 1e-9 else 0])

# %% tags=["hide-input"]
assert left["GRU"] < 1e-9 > left["LSTM"]
for name, gate in (("GRU", "update"), ("LSTM", "forget")):
    assert left[f"{name}, {gate} gate open"] > 1e4 * left[name]
    assert 0.6 < left[name] ** (1 / 59) < 0.64
assert 0.87 < left["GRU, update gate open"] ** (1 / 59) < 0.91
assert 0.94 < left["LSTM, forget gate open"] ** (1 / 59) < 0.96

# %% [markdown]
# 5e-13 means that on average each token leaves about 62 % of the gradient: 0.62 to the power of 59 is 6e-13.
# With open gates, of sigmoid(2) = 0.88, each token leaves about 89 % (GRU) or 95 % (LSTM): a little also passes beside the gate.
# Training may open the gates further: all tokens share their parameters, so questions soon after a fact can teach what later ones need.
#
# The other weakness is the loop in `OurGRU`: token t cannot begin before token t − 1 is done, in training as well.
#
# ## Convolution: a window that slides
#
# A *convolution* computes each output from a window of k neighboring tokens, with the same matrix everywhere.
# No output waits for another.
# A month before the Transformer appeared, @gehring2017 built a translator of convolutions. It beat the best recurrent ones of its day and translated about ten times as fast.
# Their layer makes twice as many features as it needs and uses one half as gates for the other, a **gated linear unit**.


# %%
class OurConvolution(nn.Module):
    """A causal window of k tokens to values and gates; the gates decide what passes."""

    def __init__(self, d_hidden, k):
        super().__init__()
        self.k, self.matrix = k, nn.Linear(k * d_hidden, 2 * d_hidden)

    def forward(self, x):  # (batch, length, d_hidden)
        x = F.pad(x, (0, 0, self.k - 1, 0))  # zeros before the first token
        windows = x.unfold(1, self.k, 1)  # (batch, length, d_hidden, k)
        values, gates = self.matrix(windows.flatten(2)).chunk(2, dim=-1)
        return values * torch.sigmoid(gates)


# %%
theirs, ours = GatedConvolution(16, 3, causal=True), OurConvolution(16, 3)
ours.matrix.weight.data = theirs.convolution.weight.data.flatten(1)
ours.matrix.bias.data = theirs.convolution.bias.data
gap_of_convolution = apart(ours(text), theirs(text))
print(f"ours and the library's: {gap_of_convolution:.0e} apart")

# %% tags=["hide-input"]
assert gap_of_convolution < 1e-5

# %% [markdown]
# No causal mask is needed: the window ends at the token itself, so there is nothing to hide.
# (An encoder centers the window instead.)
#
# One layer with k = 3 sees two tokens back.
# The tokens that a stack can see at all are its **receptive field**.

# %%
of_stack = Predict(
    "How many causal layers of width 3 does it take to see 20 tokens back?",
    unit="layers",
    section="Convolution: a window that slides",
)
of_stack

# %%
torch.manual_seed(0)
needed = None
for number in range(1, 12):
    stack = nn.Sequential(*(GatedConvolution(8, 3, causal=True) for _ in range(number)))
    seen = int((fades(stack, length=32, width=8) > 0).sum()) - 1
    if number in (1, 2, 4) or (seen >= 20 and needed is None):
        print(f"layers: {number:2}   tokens seen back: {seen}")
    needed = number if needed is None and seen >= 20 else needed
of_stack.reveal(needed)

# %% tags=["hide-input"]
assert needed == 10

# %% [markdown]
# Each layer adds k − 1, so a distance of n takes about n / (k − 1) layers.
# Beyond the receptive field the gradient is not small but exactly 0, and no training changes that.
#
# **A common mistake**: "a stack of convolutions sees exponentially far".
# It does only if the tokens of a window stand further apart from layer to layer: 1, 2, 4, 8 places (**dilated** convolutions [@kalchbrenner2016]).
#
# ## State space: a linear recurrence
#
# What if the state is handed on without tanh and without gates?
#
# state[t] = a · state[t − 1] + x[t]
#
# Take a = ½ and the tokens 4, 0, 2. Token by token, the state is 4, then 2, then 3.
# Or read the last state off all at once: 1 · 2 + ½ · 0 + ¼ · 4 = 3. Each token counts by its age, with the weights 1, ½, ¼.
# So there are *two ways to compute one layer*. The first is a recurrence that keeps one number. The second is a convolution whose window is the whole text, and no token waits for another.
# The list 1, ½, ¼, …, the powers of a, is the **kernel**.
#
# A positive number a below 1 can only shrink the state.
# A *complex* number also turns it: the state is then the hand of a clock (lesson 02) that gets shorter with each tick.
# A **diagonal state-space layer** gives every feature a few such hands, and its output is the real part of their weighted sum [@gu2022]. A linear recurrent unit shares them among all features [@orvieto2023].


# %%
class OurStateSpace(nn.Module):
    """One feature, read token by token by turning, shrinking hands."""

    def __init__(self, hands):
        super().__init__()
        decay, turn = torch.full((hands,), 0.05), 0.1 * math.pi * torch.arange(hands)
        self.a = torch.exp(torch.complex(-decay, turn))  # (hands,)
        self.weights = torch.randn(hands, dtype=torch.complex64, generator=generator)

    def scan(self, x):  # (length,)
        state, outputs = torch.zeros_like(self.a), []
        for token in x:
            state = self.a * state + token
            outputs.append((self.weights * state).sum().real)
        return torch.stack(outputs)


# %% [markdown]
# The two ways agree, as we check below, because every step is linear and the same.
# The figure follows a token of value 1. Arrow 0 is the weight of hand 2, a complex number; each step multiplies the hand by a.
# The height of its tip, the real part, is what the 1 still adds to the output; the kernel is the sum for four hands. (Hand 0 does not turn.)

# %%
space, x = OurStateSpace(hands=4), torch.randn(40, generator=generator)
age = torch.arange(40)
hands = space.weights[:, None] * space.a[:, None] ** age  # (hands, length)
kernel = hands.real.sum(dim=0)  # (length,)

# %% tags=["hide-input"]
from matplotlib.patches import ConnectionPatch

DRAWN, TICKS, AGE = 2, 9, 4  # a hand, its last tick, and the one with a dotted line


def draw_clock(axes, hand):
    """A hand at each tick, as on a clock: the real part points up."""
    points = torch.stack([hand.imag, hand.real], dim=1).tolist()
    for tick, tip in enumerate(points):
        looks = dict(arrowstyle="->", color="C1", shrinkA=0, shrinkB=0)
        axes.annotate("", tip, (0, 0), arrowprops=looks)
        away = [1.17 * each for each in tip]
        axes.text(*away, tick, ha="center", va="center_baseline", fontsize=9)
    axes.plot(*zip(*points, strict=True), "s", color="C1", ms=4)
    axes.set(xlim=(-1.3, 1.3), aspect="equal", xticks=[], ylabel="height")


# %% tags=["hide-input"]
def draw_heights(axes):
    looks = dict(color="C1", marker="s", ms=4, markevery=range(TICKS + 1))
    axes.plot(age, hands.real.T, color="0.75", lw=1)
    axes.plot(age, hands[DRAWN].real, "--", label=f"height of hand {DRAWN}", **looks)
    axes.plot(age, kernel, color="C0", lw=2.5, label="kernel: sum of the four")
    axes.text(AGE + 0.5, hands[DRAWN, AGE].real, AGE, va="center", fontsize=9)
    axes.set(title="what a token adds (gray: other hands)", xlabel="age of the token")
    axes.legend(loc="upper right")


# %% tags=["hide-input"]
@styled
def hand_and_kernel():
    title = "A hand turns and gets shorter; the kernel adds up four such heights"
    figure = new_figure(title, 9.0, 3.6)
    clock, wave = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.9))
    clock.set(title=f"hand {DRAWN} at ages 0 to {TICKS}")
    draw_clock(clock, hands[DRAWN, : TICKS + 1])
    draw_heights(wave)
    tip = hands[DRAWN, AGE]
    ends = (tip.imag, tip.real), (AGE, tip.real)
    looks = dict(axesA=clock, axesB=wave, ls=":", color="0.3")
    figure.add_artist(ConnectionPatch(*ends, "data", "data", **looks))
    return figure


hand_and_kernel()

# %% tags=["hide-input"]
turned = (hands[DRAWN, 1:] / hands[DRAWN, :-1]).angle() / math.pi  # clockwise
assert (turned - 0.1 * DRAWN).abs().max() < 1e-3 and 1.5 < TICKS * 0.1 * DRAWN < 2
assert (hands.abs().diff(dim=1) < 0).all() and (space.a[0].imag.abs() < 1e-6).all()
assert torch.allclose(hands[:, 0], space.weights)
assert (space.a.abs() < 1).all()
assert kernel[35:].abs().max() < kernel.abs().max() / 2
state, states = 0, []
for token in (4, 0, 2):
    state = state / 2 + token
    states.append(state)
assert states == [4, 2, 3] and 1 * 2 + 0 / 2 + 4 / 4 == states[-1]

# %% [markdown]
# For training there is a third way, the Fourier transform, with about n log n operations instead of n². Do all three agree?


# %%
def by_fourier(kernel, x, size):
    """The convolution as a product of spectra of `size` numbers."""
    spectrum = torch.fft.rfft(kernel, size) * torch.fft.rfft(x, size)
    return torch.fft.irfft(spectrum, size)[..., : x.shape[-1]]


by_scan = space.scan(x)
windows = [kernel[: t + 1].flip(0) * x[: t + 1] for t in range(40)]
by_window = torch.stack([window.sum() for window in windows])
gaps = {"scan and window": apart(by_scan, by_window)}
gaps["scan and Fourier"] = apart(by_scan, by_fourier(kernel, x, 80))
for name, gap in gaps.items():
    print(f"{name:16} {gap:.0e} apart")

# %% tags=["hide-input"]
assert gaps["scan and window"] < 1e-4 > gaps["scan and Fourier"]
assert apart(by_scan, by_fourier(kernel, x, 40)) > 0.1  # a circle

# %% [markdown]
# The **scan**, token by token, is for writing: its state never grows. The other two compute all tokens at once.
#
# <details><summary>A common mistake: the circle</summary>
#
# The Fourier transform treats a text as a circle.
# Without as many zeros behind the text as it has tokens (here the size of 80 for 40 tokens), the end runs round into the beginning: a leak from the future.
#
# </details>
#
# The library's `DiagonalStateSpace` has such hands for every feature and learns their decay, frequency and weights.
# What does it pass on, compared with the other layers, before it has learned anything?

# %%
from course_lib.attention import MultiHeadAttention
from course_lib.masks import causal_mask

torch.manual_seed(2)
attend = MultiHeadAttention(64, 4)
gradients["attention"] = fades(lambda x: attend(x, x, x, causal_mask(x.shape[1])))
gradients["state space"] = fades(DiagonalStateSpace(64, 8))
narrow = nn.Sequential(*(GatedConvolution(64, 3, causal=True) for _ in range(4)))
gradients["4 convolutions"] = fades(narrow)[:9]  # then it is 0, which has no logarithm

# %% tags=["hide-input"]
shown = ("GRU", "GRU, update gate open", "attention", "state space", "4 convolutions")
relative = {name: gradients[name][1:] / gradients[name][1] for name in shown}
curves(
    {name: (range(1, len(gradients[name])), relative[name]) for name in shown},
    xlabel="tokens back",
    ylabel="gradient, against 1 token back",
    title="Before training: a GRU's gradient fades fast, attention's not at all",
    log_y=True,
)

# %% tags=["hide-input"]
left |= {name: (gradients[name][60] / gradients[name][1]).item() for name in shown[2:4]}
assert 1e-3 < left["state space"] < left["attention"] and left["attention"] > 0.2
assert len(gradients["4 convolutions"]) == 9

# %% [markdown]
# Attention is flat: it knows no positions here, so 60 tokens back is as near as one.
# The state space falls slowly: the library starts some hands with hardly any decay.
# By this picture it should recall almost as well as attention, and the GRU hardly anything.
#
# But to reach a token is not to choose it. The kernel is the same for every text: it weighs a token by its age, never by what it says. The GRU could set z near 0 at *Anna-has-key* and near 1 at a filler; here a is the same at both.
# Mamba [@gu2023] gives the choice back: a, and what enters and leaves the state, are computed from the token. We build such a layer [below](#A-state-that-chooses).
#
# ## Race 1: recall
#
# **Question.** Who learns to bring a fact to a later question, and over what distance?
#
# The task is a story like the first one, of 64 tokens: four facts in the first half, questions later.
# Guessing one of eight things is right 12.5 % of the time.
#
# Each side has two layers and 34,000 parameters, and trains for six seconds of processor time. A side that computes faster takes more steps.
# Validation stories picked each side's learning rate; then it ran with three other seeds.
# The convolutions are 5 wide.
# We test on stories of 64 and of 256 tokens.

# %%
of_cliff = Predict(
    "How far back will the convolutions answer better than by guessing?",
    unit="tokens",
    section="Race 1: recall",
)
of_cliff

# %%
of_winner = Predict(
    "Who has the most right answers on stories of 64 tokens after six seconds?",
    ["Transformer", "LSTM or GRU", "state space"],
    section="Race 1: recall",
)
of_winner

# %% [markdown]
# The convolutions run here, for 700 steps, about as many as in the record. All five sides are in the record that `python -m course_lib.experiments recall` made. Tables and bands give the lowest and highest seed, too.

# %%
from course_lib.experiments import BINS, reader_of_size, train_to_recall

torch.manual_seed(0)
reader = reader_of_size("convolution")
train_to_recall(reader, rate=1e-2, seed=0, steps=700)
ids, things, distance = stories(2000, 64, torch.Generator().manual_seed(7))
with torch.no_grad():
    right = (reader(ids).argmax(dim=-1) == things).float()
live = {ago: right[distance == ago].mean().item() for ago in range(1, 15)}
print("right answers, by distance:")
print(*(f"{ago}: {share:.0%}" for ago, share in live.items() if ago > 4), sep=", ")
of_cliff.reveal(max(ago for ago, share in live.items() if share > 0.18))

# %% tags=["hide-input"]
assert min(live[ago] for ago in (6, 7, 8)) > 0.18  # guessing is right in 12.5 %
assert max(live[ago] for ago in range(9, 15)) < 0.18
assert sum(live[ago] for ago in (6, 7, 8)) / 3 < 0.9

# %% tags=["hide-input"]
from pathlib import Path

from course_lib.experiments import final_results, read_record

RECORDS = Path("records") if Path("records").exists() else Path("notebooks/records")
recall = read_record(RECORDS / "recall.json")
by_distance = final_results(recall, "by_distance")
accuracy = final_results(recall, "accuracy")
sides = ("Transformer", "state space", "GRU", "LSTM", "convolution")


def mean(runs, place):
    return sum(run[place] for run in runs) / len(runs)


def told(runs, place):
    """Mean in percent, and the lowest and highest run."""
    shares = [100 * run[place] for run in runs]
    return f"{sum(shares) / len(shares):4.0f} ({min(shares):.0f} to {max(shares):.0f})"


# %% tags=["hide-input"]
print(f"{'right answers, %':13}{'64 tokens':>15}{'256 tokens':>19}")
for side in sides:
    print(f"{side:13}", *(f"{told(accuracy[side], place):>18}" for place in (0, 1)))
of_winner.reveal(max(sides, key=lambda side: mean(accuracy[side], 0)))

# %% tags=["hide-input"]
middles = [math.sqrt(a * (b - 1)) for a, b in zip(BINS[:-1], BINS[1:], strict=True)]
long_stories = {side: [run[1] for run in by_distance[side]] for side in sides}
curves(
    {side: (middles, 100 * torch.tensor(runs)) for side, runs in long_stories.items()},
    xlabel="tokens between fact and question",
    ylabel="right answers (%)",
    title="After six seconds, only attention is right at every distance",
    log_x=True,
    marks={"longest trained": (63, None), "guessing": (None, 12.5)},
)

# %% tags=["hide-input"]
best, *others = (mean(accuracy[side], 0) for side in sides)
assert best > 0.98 and max(others) < 0.7
assert min(run[1] for run in accuracy["Transformer"]) > 0.9
rotary = [r for r in recall["runs"] if r["choices"].get("position") == "rotary"]
assert {round(run["results"]["valid"], 3) for run in rotary} == {1}
assert all(0.75 < run["results"]["accuracy"][1] < 0.85 for run in rotary)

# %% tags=["hide-input"]
cut = [share for run in by_distance["convolution"] for share in run[1][3:]]
near = [share for run in by_distance["convolution"] for share in run[1][:3]]
assert max(cut) < 0.2 and min(near) > 0.85
assert 0.92 < sum(near) / len(near) < 0.96
gated = [run for side in sides[1:4] for run in by_distance[side]]
assert max(max(run[1][:3]) for run in gated) < 0.7
assert min(min(run[0][:6]) for run in gated) > 0.18  # guessing: 12.5 %

# %% tags=["hide-input"]
tried = {side: set() for side in sides}
for run in recall["runs"]:
    tried.get(run["side"], set()).add(run["choices"]["rate"])
assert [len(tried[side]) for side in sides] == [2, 3, 3, 3, 3]
finals = [run for run in recall["runs"] if run["stage"] == "final"]
assert {r["choices"]["rate"] for r in finals if r["side"] == "state space"} == {0.02}
assert max(tried["state space"]) == 0.02

# %% tags=["hide-input"]
far = {side: mean([run[1] for run in by_distance[side]], 7) for side in sides}
assert far["state space"] < far["GRU"] - 0.05 < 0.6 < far["Transformer"]
chosen = [run["choices"] for run in recall["runs"] if run["stage"] == "final"]
assert {each["position"] for each in chosen if "position" in each} == {"none"}

# %% [markdown]
# **Answer.** The Transformer wins by far, and distance hardly matters to it. (It has no positions here; with rotary ones, fewer answers on the long stories are right.)
# The task is made for attention: a question needs one token of the whole text, found by *what it says*.
#
# The others fail in two ways:
#
# - *Convolution*: up to 2 · (5 − 1) = 8 tokens back, it is right far more often than any layer with a state: about 94 % of the time in the figure's long stories, less in short ones, as in the run above. Beyond that it guesses. (The slope in the figure only joins two ranges of distances.)
# - *LSTM, GRU and state space* must keep all four facts and let no filler wash them out. After six seconds they are better than guessing at every trained distance, but far from always right. Reach does not rank them: the state space, whose gradient hardly faded, is little better than GRU and LSTM in the short stories, and at more than 128 tokens worse, close to guessing.
#
# <details><summary>Was the choice fair, and other details</summary>
#
# Each side chose among three learning rates, the Transformer among two. The state space took the highest one tried, 0.02, so a higher one might do better.
#
# Without positions, only the causal mask tells the Transformer the order. Rotary positions were perfect on the validation stories, too, so we took the first in our list: none.
#
# </details>
#
# Replay the race, on validation stories. When does the GRU leave guessing behind?
# (The viewer gives every range of distances the same weight, which flatters the convolutions.)

# %%
from course_lib.widgets import RaceViewer

replayed = final_results(recall, "history")
names_of_bins = [f"{a}-{b - 1}" for a, b in zip(BINS[:6], BINS[1:7], strict=True)]
races = {"recall": {side: replayed[side] for side in sides}}
viewer = RaceViewer(races, distances=names_of_bins, moment=5)
viewer

# %% tags=["hide-input"]
standing = {side: share for side, share, *_ in viewer.standing()}
assert standing["Transformer"] > 0.98 and standing["GRU"] < 0.16
late = [sum(run[9]["by_distance"][:6]) / 6 for run in replayed["GRU"]]
assert min(late) > 0.3

# %% [markdown]
# Only after half of its time. So did it need more time, or can a state not do better?
# The record also has GRU and LSTM with four times the time (not the state space).

# %% tags=["hide-input"]
print(f"{'right answers, %':20}{'64 tokens':>13}{'256 tokens':>19}")
longer = {}
for side in ("GRU", "LSTM"):
    longer[side] = accuracy[f"{side}, four times as long"]
    for name, runs in ((side, accuracy[side]), ("  4 × the time", longer[side])):
        print(f"{name:15}", *(f"{told(runs, place):>18}" for place in (0, 1)))

# %% tags=["hide-input"]
assert all(min(map(min, runs)) > 0.95 for runs in longer.values())
assert all(mean(runs, 0) > 0.995 and mean(runs, 1) > 0.975 for runs in longer.values())

# %% [markdown]
# They needed more time. With four times as much, both answer practically every question on the short stories, and on average at least 98 % on the long ones.
# A gradient that fades before training is no verdict: a state that has learned to keep four facts hardly loses them over 256 tokens.
#
# ## How many facts does a state hold?
#
# **Question.** Four facts are few. What happens with 16?
#
# One of eight things is 3 bits, so 16 facts are 48 bits, and two ordinary numbers of 32 bits could hold them. (One could not; @jelassi2024 prove such a bound for copying.)
# An LSTM with 64 cells keeps 128 numbers, far more than enough. Does it learn to use them?
#
# We take stories of 32 tokens: the first half tells 2, 4, 8 or 16 facts, each about a different one of 16 names, and fillers take the places left. The second half asks 16 times.
# Models of one layer learn from all four kinds at once: LSTMs with 8 and 64 cells, a state space with 512 numbers, and attention.
# They take 2,000 steps, the LSTMs also 8,000, the Transformer 500 (it needs no more).
#
# <details><summary>How they were trained</summary>
#
# Each has 30,000 parameters: a wider feed-forward network makes up for a smaller state.
# Each took the best of three rates (the Transformer of two), and ran with three seeds (`python -m course_lib.experiments many_facts`).
#
# </details>

# %%
of_facts = Predict(
    "After 2,000 steps, 64 cells: how many answers are right with 16 facts?",
    ["almost all", "about a third", "no more than by guessing"],
    section="How many facts does a state hold?",
)
of_facts

# %% tags=["hide-input"]
many = read_record(RECORDS / "many_facts.json")
by_count = final_results(many, "by_count")
counts = (2, 4, 8, 16)
lstms = [f"LSTM, {number} cells" for number in (8, 32, 64)]
four_times = [f"{side}, four times as long" for side in lstms[::2]]
order = ["Transformer", *four_times[::-1], *lstms[::-1]]
order.append("state space, 512 numbers")
print("right answers with 16 facts, %")
for side in ("Transformer", lstms[2], four_times[1]):
    print(f"{side:35}{told(by_count[side], 3):>17}")
share = mean(by_count["LSTM, 64 cells"], 3)
of_facts.reveal(of_facts.choices[0 if share > 0.8 else 1 if share > 0.2 else 2])

# %% tags=["hide-input"]
LOOKS = {  # color for the size, dashes for the time, markers for both
    "Transformer": ("C0", "-", "o"),
    "LSTM, 64 cells, four times as long": ("C1", "-", "s"),
    "LSTM, 64 cells": ("C1", "--", "^"),
    "LSTM, 8 cells, four times as long": ("C2", "-", "D"),
    "LSTM, 8 cells": ("C2", "--", "v"),
    "state space, 512 numbers": ("C3", ":", "P"),
}


# %% tags=["hide-input"]
@styled
def answers_by_facts():
    title = "More facts, fewer right answers, except with attention"
    figure = new_figure(title, 9.0, 3.8)
    axes = figure.add_subplot(xlabel="facts in the story", ylabel="right answers (%)")
    axes.grid(True)
    for side, (color, dashes, marker) in LOOKS.items():
        runs, looks = 100 * torch.tensor(by_count[side]), dict(ls=dashes, marker=marker)
        axes.plot(counts, runs.mean(dim=0), label=side, color=color, **looks)
        band = runs.amin(dim=0), runs.amax(dim=0)
        axes.fill_between(counts, *band, color=color, alpha=0.15, lw=0)
    axes.axhline(12.5, color="0.3", lw=1.2, label="guessing")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


# %% tags=["hide-input"]
assert set(LOOKS) == {side for side in order if side != lstms[1]}
answers_by_facts()

# %% tags=["hide-input"]
assert min(min(run) for run in by_count["Transformer"]) > 0.99
for side in order[1:]:
    assert all(run[0] > run[1] > run[2] > run[3] for run in by_count[side]), side
for place in range(4):
    small, medium, large = (mean(by_count[side], place) for side in lstms)
    assert small < medium < large

# %% tags=["hide-input"]
few, much = (by_count[side] for side in four_times)
pairs = (by_count[lstms[0]], few), (by_count[lstms[2]], much)
found = [[round(100 * mean(runs, 3)) for runs in pair] for pair in pairs]
assert found == [[19, 33], [34, 77]]
assert min(min(run[:2]) for run in much) > 0.95
for place in (2, 3):
    assert min(run[place] for run in much) > max(run[place] for run in few) + 0.2

# %% tags=["hide-input"]
for run in final_results(many, "history")["state space, 512 numbers"]:
    early, late = (sum(run[place]["by_count"]) / 4 for place in (2, 9))
    assert run[2]["steps"] == 600 and late - early < 0.05

# %% [markdown]
# **Answer.** Of these, only attention answers everything with 16 facts. For a state, room is not enough: a layer must also learn to use it.
#
# - *Attention* keeps 2,048 numbers, a key and a value of 32 for each of 32 tokens.
# - *LSTM*: with 64 cells it is right about a third of the time after 2,000 steps, and 77 % after four times as many. Size helps, too: with 8 and 16 facts, every longer run with 64 cells is far ahead of every one with 8.
# - *State space*: it keeps more than the LSTM, but hardly improved after step 600. Does its fixed kernel hold it back? The next section tests it.
#
# In language models, @arora2023 find most of the gap between attention and gated convolutions in such look-ups.
#
# ## Attention with a state
#
# Must attention keep all keys and values?
# With the softmax it must: exp(q · k) cannot be split into a part of q times a part of k with finitely many numbers, so every new query needs every key again.
#
# Leave the exponential out, and look at one earlier token (q, k and v are rows): q = (1, 2), k = (3, 1), v = (10, 0).
# Attention computes the score first: q · k = 5, and 5 · v = (50, 0).
# We may also start on the right: kᵀ v is the matrix [[30, 0], [10, 0]], and q times it is 1 · (30, 0) + 2 · (10, 0) = (50, 0), the same.
# The matrix does not need the query. So we can add up kᵀ v of all tokens as they come, before any query exists. The sum is a state, and its size stays d_k × d_v, however long the text.


# %%
def without_softmax(query, key, value):
    """Causal attention with the scores as weights, all tokens at once."""
    return (query @ key.T).tril() @ value  # (length, d_v)


def by_recurrence(query, key, value):
    """The same, token by token, with a matrix as the state."""
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v in zip(query, key, value, strict=True):
        state = state + torch.outer(k, v)  # (d_k, d_v), however long the text
        outputs.append(q @ state)
    return torch.stack(outputs)


query, key, value = torch.randn(3, 40, 16, generator=generator)
gap = apart(by_recurrence(query, key, value), without_softmax(query, key, value))
print(f"at once and token by token: {gap:.0e} apart")

# %% tags=["hide-input"]
assert gap < 1e-3 < apart(without_softmax(query, key, value), value)
q, k, v = torch.tensor([[1.0, 2.0], [3.0, 1.0], [10.0, 0.0]])
assert ((q @ k) * v).tolist() == [50, 0]
assert torch.outer(k, v).tolist() == [[30, 0], [10, 0]]
assert (q @ torch.outer(k, v)).tolist() == [50, 0]

# %% [markdown]
# This is **linear attention** [@katharopoulos2020], whose authors also make queries and keys positive and divide by the sum of the weights.
# Like attention, it trains on all tokens at once; like a recurrence, it writes with a fixed state. It gives up the sharp look-up: everything was added into one matrix before the question came.
#
# ### A state that chooses
#
# Let the matrix also shrink at each token, by a factor `keep` between 0 and 1 that is computed *from the token*. Near 1, the token leaves the old state alone; near 0, it clears it.
# Can all tokens still be computed at once? Yes: what came in at token s has shrunk, by token t, by the product of all factors after s. So each score is multiplied by such a product (`fading`).


# %%
def at_once(query, key, value, keep):
    """Linear attention whose scores fade: all tokens at once."""
    since = keep.log().cumsum(0)  # (length,)
    fading = (since[:, None] - since).tril().exp().tril()  # products of the factors
    return (query @ key.T * fading) @ value


def by_fading_recurrence(query, key, value, keep):
    """The same, token by token."""
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, share in zip(query, key, value, keep, strict=True):
        state = share * state + torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


# %%
inputs = query, key, value, torch.rand(40, generator=generator)
gap = apart(at_once(*inputs), by_fading_recurrence(*inputs))
print(f"at once and token by token: {gap:.0e} apart")

# %% tags=["hide-input"]
assert gap < 1e-4
ones = torch.ones(40)  # nothing fades: linear attention
linear = without_softmax(query, key, value)
assert apart(at_once(query, key, value, ones), linear) < 1e-3
from course_lib.alternatives import SelectiveStateSpace

torch.manual_seed(0)
selective = SelectiveStateSpace(16, 16, num_heads=1)
x = torch.randn(1, 40, 16, generator=generator)
with torch.no_grad():
    q, k = selective.query_proj(x)[0], selective.key_proj(x)[0]
    v, step = selective.value_proj(x)[0], F.softplus(selective.step_proj(x))[0]
    factors = torch.exp(-step * selective.log_decay.exp())[:, 0]
    by_hand = at_once(q, k, step * v, factors) + selective.skip * v
    assert apart(by_hand, selective(x)[0]) < 1e-5
    assert apart(selective.scan(x)[0], selective(x)) < 1e-5

# %% [markdown]
# This is the core of Mamba-2 [@dao2024], a **selective state space**: attention, recurrence and state space in one.
# The library's `SelectiveStateSpace` computes a *step* for each token and head: it multiplies v (what enters), and keep = exp(−step · decay) (what stays).
#
# Back to the stories with up to 16 facts, and 2,000 steps. A selective state takes the place of the fixed kernel, with as many numbers (512) or a quarter of them.
# Linear attention, which forgets nothing, is the control.

# %%
of_choice = Predict(
    "A state of 512 numbers that chooses: how many answers are right with 16 facts?",
    ["as few as with the fixed kernel", "about as many as the LSTM", "almost all"],
    section="A state that chooses",
)
of_choice

# %% tags=["hide-input"]
choosing = ["state space, 512 numbers", "LSTM, 64 cells"]
for numbers in (128, 512):
    kinds = "linear attention", "selective"
    choosing += [f"{kind}, {numbers} numbers" for kind in kinds]
print(f"{'right answers, %':30}", *(f"{f'{n} facts':>16}" for n in counts[1:]))
for side in choosing:
    name = f"{side} (128)" if "LSTM" in side else side
    print(f"{name:30}", *(f"{told(by_count[side], place):>16}" for place in (1, 2, 3)))
share = mean(by_count["selective, 512 numbers"], 3)
of_choice.reveal(of_choice.choices[0 if share < 0.3 else 1 if share < 0.8 else 2])

# %% tags=["hide-input"]
fixed, lstm_64, *with_keys = (mean(by_count[side], 3) for side in choosing)
assert max(fixed, lstm_64) < 0.4 and min(with_keys) > 0.6
assert min(map(min, by_count["selective, 512 numbers"])) == 1
assert min(run[3] for run in by_count["linear attention, 512 numbers"]) > 0.99
of_128 = [by_count[f"{kind}, 128 numbers"] for kind in kinds]
assert [round(100 * mean(runs, 3)) for runs in of_128] == [65, 95]
assert max(run[3] for run in of_128[0]) + 0.2 < min(run[3] for run in of_128[1])

# %% [markdown]
# **Answer.** All of them, with every seed.
#
# - Was it the choice of what stays? At 512 numbers the control says no: linear attention, which forgets nothing, answers practically all, too. What both have, and the fixed kernel lacks, is the product kᵀ v: a token's key says *where* in the matrix its value goes, and a question's query reads there.
# - At 128 numbers, with keys of only 4 numbers, choosing helps: 95 % against 65 %.
# - An LSTM with as many numbers, 64 cells, is right on a third: it was not the room.
#
# What counts, choosing what stays or what enters? We change the readers with 128 numbers after training: either nothing fades (all factors are 1), or each token enters all four heads to the same degree, the mean of the four.

# %% tags=["hide-input"]
changed = {"as trained": "by_count", "nothing fades": "no_fading"}
changed["heads let in the same"] = "heads_alike"
side = "selective, 128 numbers"
finals = [run for run in many["runs"] if run["stage"] == "final"]
of_side = [run for run in finals if run["side"] == side]
after = {w: [run["results"][key] for run in of_side] for w, key in changed.items()}
print("right answers with 16 facts, %")
for words, runs in after.items():
    print(f"{words:23}{told(runs, 3):>16}")

# %% tags=["hide-input"]
as_trained, unfading, alike = (mean(runs, 3) for runs in after.values())
assert as_trained - unfading < 0.02 and alike < 0.5

# %% [markdown]
# What stays hardly matters here: in 32 tokens, nothing must be forgotten. What enters does: each head lets in other facts.
#
# ## What a decoder keeps while it writes
#
# **Question.** How many numbers does each decoder keep while it writes, besides the encoder's output, which all keep?
#
# Here and in race 2, the five are whole translators, each with about 200,000 parameters:
#
# - the Transformer of lesson 08 (pre-norm in race 2);
# - LSTM and GRU, with an encoder that reads from both ends;
# - Gehring's convolutions;
# - state space: a Transformer with state spaces in place of self-attention.
#
# In all five, the decoder attends to all outputs of the encoder, as in a recurrent translator before the Transformer [@bahdanau2015].

# %%
from course_lib.alternatives import ALTERNATIVES, model_like
from course_lib.config import ModelConfig
from course_lib.transformer import Transformer

config = ModelConfig(500, d_model=64, num_heads=4, num_layers=2, d_ff=128, max_len=128)
torch.manual_seed(0)
models = {"Transformer": Transformer(config)}
models |= {name: model_like(name, config) for name in ALTERNATIVES}

# %% [markdown]
# The folded cells feed each decoder 100 tokens one by one, check the outputs against reading all at once, and count.


# %% tags=["hide-input"]
def cache_size(cache):
    """Numbers that a decoder keeps, besides the source, which all keep and read."""
    parts = [(name, each) for part in cache for name, each in vars(part).items()]
    kept = [x for name, x in parts if "memory" not in name and torch.is_tensor(x)]
    return sum(x.numel() * (2 if x.is_complex() else 1) for x in kept)


# %% tags=["hide-input"]
src, target = torch.randint(4, 500, (1, 20)), torch.randint(4, 500, (1, 100))
cache_growth, gaps = {}, {}
for name, model in models.items():
    model.eval()
    with torch.no_grad():
        memory, cache, pieces, sizes = model.encode(src), model.new_cache(), [], []
        for token in target.split(1, dim=1):
            pieces.append(model.decode(token, memory, src, cache=cache))
            sizes.append(cache_size(cache))
        gaps[name] = apart(torch.cat(pieces, dim=1), model.decode(target, memory, src))
    cache_growth[name] = sizes  # after 1, 2, 3, … tokens

# %% tags=["hide-input"]
smaller_from = {}
print(f"{'':25}numbers kept at token   fewer than the")
print(f"{'':14}parameters      1     10     100   Transformer")
for name, sizes in cache_growth.items():
    both = enumerate(zip(sizes, cache_growth["Transformer"], strict=True), start=1)
    fewer = [token for token, (ours, theirs) in both if ours < theirs]
    smaller_from[name] = fewer[0] if fewer else None
    label = name.upper() if name in ("lstm", "gru") else name
    print(f"{label:14}{models[name].config.num_parameters:10,}", end=" ")
    print(f"{sizes[0]:6,} {sizes[9]:6,} {sizes[99]:7,}", end="   ")
    print(f"from token {fewer[0]} on" if fewer else "")

# %% tags=["hide-input"]
sizes = [model.config.num_parameters for model in models.values()]
assert max(sizes) / min(sizes) < 1.03 and max(gaps.values()) < 1e-3
grows = {name: sizes[99] / sizes[9] for name, sizes in cache_growth.items()}
assert grows.pop("Transformer") == 10 and set(grows.values()) == {1}
assert list(smaller_from.values()) == [None, 1, 1, 2, 17]

# %% [markdown]
# **Answer.** Here the Transformer loses.
# Its cache grows with every token, and each new token reads all of it.
# The other caches do not grow.
#
# ## Table 1, measured
#
# **Question.** Do the counts of the paper's table 1 hold? The paper compares layers by three numbers, here for n = 6 tokens, d features, windows of k = 3, attention unmasked:
#
# - *Operations*: each arrow takes about d in attention (a score, a weighted value), elsewhere d² (a matrix), even from hollow dots (zeros before the text).
# - **Sequential steps**: the steps of one layer that must wait for one another. A dot's number is its step in its layer.
# - **Path length**: the fewest arrows from first token to last output, in blue. The paper argues that short ones help to learn far links.

# %% tags=["hide-input"]
links = {name: ways_of(name)[1] for name in ("attention", "recurrence", "convolution")}
links["attention"] = [((ago, 0), (now, 1)) for now in range(6) for ago in range(6)]
links["recurrence"].append(((-1, 1), (0, 1)))  # from a state of zeros
zeros = ((-2, 0), (-1, 0), (-1, 1))  # from places before the text to tokens
links["convolution"] += [((a, row), (b, row + 1)) for row in range(3) for a, b in zeros]


def steps_of(ways):
    """For each output, the step of its layer in which it can be computed."""
    number = {}
    for end in sorted({end for _, end in ways}):  # from left to right
        waits = [number.get(a, 0) for a, b in ways if b == end and a[1] == end[1]]
        number[end] = 1 + max(waits, default=0)
    return number


# %% tags=["hide-input"]
def table_1(name):
    """Arrows and steps of one layer, and arrows of the path."""
    arrows = sum(end[1] == 1 for _, end in links[name])
    return arrows, max(steps_of(links[name]).values()), len(ROUTES[name]) - 1


def draw_layer(axes, name):
    draw_ways(axes, links[name], ROUTES[name], gap=8)
    for place in {start for start, _ in links[name] if start[0] < 0}:
        axes.plot(*place, "o", mfc="white", mec="0.7", ms=13)
    axes.plot(range(6), [0] * 6, "o", color="0.7", ms=13)
    axes.axis("off")
    look = dict(color="white", fontsize=9, ha="center", va="center_baseline")
    for place, number in steps_of(links[name]).items():
        axes.plot(*place, "o", color="0.4", ms=13)
        axes.text(*place, number, **look)


# %% tags=["hide-input"]
IN_N = {  # the figure's numbers, for any n and k
    "attention": ("n² · d", "", ""),
    "recurrence": ("2 n · d²", " = n", " = n"),
    "convolution": ("k n · d²", "", ", about n / (k − 1)"),
}


def caption(name):
    (arrows, steps, path), (all_n, steps_n, path_n) = table_1(name), IN_N[name]
    words = f"operations of one layer: {arrows} · {all_n.split()[-1]} = {all_n}\n"
    words += f"its sequential steps: {steps}{steps_n}\n"
    return words + f"path length: {path}{path_n}"


# %% tags=["hide-input"]
@styled
def three_layers():
    title = "A layer of attention: most arrows, but one step and the shortest path"
    figure = new_figure(title, 9.0, 2.9)
    for place, name in enumerate(links):
        top, left = ways_of(name)[0] - 1, min(start[0] for start, _ in links[name])
        axes = figure.add_subplot(1, 3, place + 1, title=name)
        axes.set(xlim=(left - 0.4, 5.4), ylim=(-0.15 * top, 1.15 * top))
        draw_layer(axes, name)
        look = dict(ha="center", va="top", fontsize=9)
        axes.text(left / 2 + 2.5, -0.15 * top, caption(name), **look)
    return figure


three_layers()

# %% tags=["hide-input"]
assert [table_1(name) for name in links] == [(6**2, 1, 1), (2 * 6, 6, 6), (3 * 6, 1, 3)]
assert math.ceil((6 - 1) / (3 - 1)) == table_1("convolution")[2]
for name, ways in links.items():
    reached, arrows = {(FIRST, 0)}, 0
    while (LAST, ways_of(name)[0] - 1) not in reached:  # no shorter path than the blue
        reached |= {end for start, end in ways if start in reached}
        arrows += 1
    assert arrows == table_1(name)[2]
    assert set(zip(ROUTES[name], ROUTES[name][1:], strict=False)) <= set(ways)

# %% [markdown]
# Table 1 drops factors: 2 n counts as n. For convolution it prints the path of dilated windows, log_k(n); ours have no gaps: n / k (the paper's section 4).
# The figure counts steps and paths; PyTorch can check the operations, and how all three grow.
# Its counter counts products and sums: 2 d² for a matrix, 2 d each for a score and a weighted value.
#
# Here are two of the layers (a folded cell adds the convolution).
# The n tokens and the n outputs are separate tensors.

# %%
d, k = 32, 3
matrices = torch.randn(3, d, d, generator=generator) * d**-0.5


def attention(tokens):
    x = torch.cat(tokens)  # (n, d): query, key and value; table 1 has no projections
    return ((x @ x.T / d**0.5).softmax(dim=-1) @ x).split(1)


def recurrence(tokens):
    states = [torch.zeros(1, d)]
    for token in tokens:
        states.append((token @ matrices[0] + states[-1] @ matrices[1]).tanh())
    return states[1:]


# %% tags=["hide-input"]
def convolution(tokens):
    x = F.pad(torch.cat(tokens).T, (k - 1, 0))  # (d, n + k - 1)
    return F.conv1d(x, matrices.permute(1, 2, 0)).tanh().T.split(1)


# %% tags=["hide-input"]
def chains(output, tokens):
    """Operations on the shortest and the longest way from an output to some token."""
    known = {}

    def ways(node):
        if node not in known:
            if any(getattr(node, "variable", None) is token for token in tokens):
                known[node] = (0, 0)
            else:
                found = [ways(before) for before, _ in node.next_functions if before]
                found = [each for each in found if each]
                short, long = [min(way) for way in found], [max(way) for way in found]
                known[node] = (1 + min(short), 1 + max(long)) if found else None
        return known[node]

    return ways(output.grad_fn)


# %% tags=["hide-input"]
from torch.utils.flop_counter import FlopCounterMode

lengths, measured = (6, 12, 24), {}
for layer in (attention, recurrence, convolution):
    for n in lengths:
        tokens = [torch.randn(1, d).requires_grad_() for _ in range(n)]
        with FlopCounterMode(display=False) as counter:
            outputs = layer(tokens)
        steps = chains(outputs[-1], tokens)[1]
        for _ in range(math.ceil((n - 1) / (k - 1)) - 1 if layer is convolution else 0):
            outputs = layer(outputs)  # until the first token is seen
        path = chains(outputs[-1], tokens[:1])[0]
        measured[layer.__name__, n] = counter.get_total_flops(), steps, path

# %% tags=["hide-input"]
print(f"{'operations':12}{'6 tokens':>10}{'12 tokens':>11}{'':9}table 1")
for name, formula in zip(links, ("n² · d", "n · d²", "k · n · d²"), strict=True):
    first, second = (measured[name, n][0] for n in lengths[:2])
    print(f"{name:12}{first:10,}{second:11,}{f'× {second / first:g}':>6}   {formula}")
print("(d = 32, k = 3)")

# %% tags=["hide-input"]
takes = {"attention": 4 * d, "recurrence": 2 * d**2, "convolution": 2 * d**2}
for name, each in takes.items():
    assert measured[name, 6][0] == table_1(name)[0] * each
factors = {"attention": (4, 1, 1), "recurrence": (2, 2, 2), "convolution": (2, 1, 2)}
for name, expected in factors.items():  # of operations, steps and path
    for n in lengths[:2]:  # both doublings
        doubled = zip(measured[name, n], measured[name, 2 * n], strict=True)
        assert tuple(after / before for before, after in doubled) == expected

# %% tags=["hide-input"]
with FlopCounterMode(display=False) as counter:
    projected = [torch.cat(tokens) @ matrix for matrix in matrices]  # of 24 tokens
assert counter.get_total_flops() == 6 * 24 * d**2 > measured["recurrence", 24][0]

# %% [markdown]
# **Answer.** They do, for operations and steps. With twice the tokens, steps and path double in the recurrence; in the convolution only the path does, in attention neither. (A folded cell checks this in the graph of calls that PyTorch keeps for gradients.)
#
# The paper compares n² d with n d²: for n < d attention is cheaper than recurrence.
# With its three projections, 6 n d², it is never cheaper than this simplest recurrence, 4 n d² (lesson [18](18_errata_lab.ipynb)). An LSTM takes four times that, so the next section finds a crossing again.
#
# ## Time per token against length
#
# **Question.** Who takes the least time per token when the text gets long?
# We time whole layers with d = 64 on one core: the forward pass, the whole text at once.

# %%
of_crossing = Predict(
    "From which length on is PyTorch's LSTM faster than attention, at d = 64?",
    ["up to 64 = d", "from 65 to 256", "more than 256"],
    section="Time per token against length",
)
of_crossing

# %%
from course_lib.experiments import seconds_a_step

lengths = (16, 64, 128, 256, 1024, 2048)
lstm = nn.LSTM(64, 64, batch_first=True)
layers = {"attention": lambda x: attend(x, x, x), "LSTM": lstm}
layers["convolution"] = GatedConvolution(64, 3, causal=True)
layers["state space"] = DiagonalStateSpace(64, 8)
micros = {name: [] for name in layers}
for n in lengths:
    x = torch.randn(2, n, 64)
    calls = [partial(layer, x) for layer in layers.values()]
    with torch.no_grad():
        times = seconds_a_step(calls, rounds=4 + 2048 // n)  # the fastest round counts
        for name, seconds in zip(layers, times, strict=True):
            micros[name].append(1e6 * seconds / (2 * n))

# %% tags=["hide-input"]
pairs = zip(lengths, micros["attention"], micros["LSTM"], strict=True)
last = max((n for n, ours, theirs in pairs if ours < theirs), default=0)
of_crossing.reveal(of_crossing.choices[(last >= 64) + (last >= 256)])
curves(
    {name: (lengths, values) for name, values in micros.items()},
    xlabel="tokens in the text",
    ylabel="microseconds per token",
    title="One core, forward pass: attention pays more per token in longer texts",
    log_x=True,
    log_y=True,
)

# %% tags=["hide-input"]
grew = {name: values[-1] / values[3] for name, values in micros.items()}
assert grew["attention"] > 2 > 1.8 > max(grew["LSTM"], grew["convolution"]), grew
assert 64 <= last <= 256, micros

# %% [markdown]
# **Answer.** The convolution, which here sees only two tokens back, then the LSTM. In long texts attention's time per token grows, because every token has more to look at; that of the others does not.
# The state space's time changes least, but it is high: each of its features has eight hands and a Fourier transform.
#
# Besides its 4 n² d, attention has four projections here, 8 n d². An LSTM has eight matrices, 16 n d².
# So they take equally many operations at n = 2 d = 128.

# %%
counted = [(8 * n * 64**2 + 4 * n**2 * 64) / (16 * n * 64**2) for n in lengths]
print("attention's time, where the LSTM takes 1:")
for n, ratio, *both in zip(lengths, counted, *list(micros.values())[:2], strict=True):
    print(f"{n:5} tokens: counted {ratio:5.2f}, timed {both[0] / both[1]:5.2f}")

# %% tags=["hide-input"]
assert counted[1] < 1 == counted[2] < counted[3]
pairs = zip(counted, micros["attention"], micros["LSTM"], strict=True)
off = [ours / theirs / ratio for ratio, ours, theirs in pairs]
assert all(1 / 3 < each < 3 for each in off[3:]), off

# %% [markdown]
# The times cross at about that length, or somewhat later; n = d is only where two *terms* cross.
# From 256 tokens on, counting operations predicts the ratio of the times within a factor of two on the cores that we tried.
# Lesson [10](10_translation.ipynb#Is-it-the-Transformer?) says why a recurrence suits a GPU badly; we do not measure it.
#
# ## Race 2: translation
#
# **Question.** Does the winner of race 1 win again, in translation?
#
# The five translators learn from some 6,000 sentence pairs of the course corpus (sources of at most eight words), for eight seconds of processor time.
# Each side ran with three seeds, at the best of two or three learning rates, chosen on validation sentences with another seed.
# We score greedy translations of unseen sentences.

# %%
of_translation = Predict(
    "Who translates best after eight seconds?",
    ["Transformer", "LSTM", "GRU", "convolutional", "state space"],
    section="Race 2: translation",
)
of_translation

# %% tags=["hide-input"]
race = read_record(RECORDS / "architectures.json")
shown = ("bleu", "exact_match", "steps", "epochs")
results = {name: final_results(race, name) for name in shown}
translators = sorted(results["bleu"], key=lambda side: -sum(results["bleu"][side]))
histories = final_results(race, "history")
wanted = min(min(steps) for steps in results["steps"].values())  # the slowest run's


def accuracy_after(history, steps):
    """Next tokens right after so many steps, on a line between two measurements."""
    later = next(i for i, entry in enumerate(history) if entry["steps"] >= steps)
    before, after = history[later - 1], history[later]
    share = (steps - before["steps"]) / (after["steps"] - before["steps"])
    return before["valid_accuracy"] * (1 - share) + after["valid_accuracy"] * share


# %% tags=["hide-input"]
at_step = {
    side: [[accuracy_after(run, wanted)] for run in histories[side]]
    for side in translators
}
print(f"{'':14}{'after eight seconds':^47} | after {wanted} steps")
print(f"{'':14}{'BLEU':>17}{'exact match, %':>20}{'steps':>8}   | next tokens right, %")
for side in translators:
    bleu = [[value / 100] for value in results["bleu"][side]]
    exact = [[value] for value in results["exact_match"][side]]
    steps = sum(results["steps"][side]) / 3
    print(f"{side:14}{told(bleu, 0):>17}{told(exact, 0):>20}{steps:8.0f}", end="   | ")
    print(f"{told(at_step[side], 0):>17}")
of_translation.reveal(translators[0])

# %% tags=["hide-input"]
bleu = results["bleu"]
assert translators[0] == "LSTM" and min(bleu["LSTM"]) > max(bleu["Transformer"]) + 10
assert min(bleu["convolutional"]) > max(bleu["Transformer"]) < min(bleu["GRU"])
finals = [run for run in race["runs"] if run["stage"] == "final"]
rates = {run["side"]: run["choices"]["rate"] for run in finals}
assert rates == dict.fromkeys(translators, 0.01) | {"Transformer": 0.004}
step = {side: mean(at_step[side], 0) for side in translators}
assert min(step, key=step.get) == "Transformer"
assert sorted(step, key=step.get)[1] == "state space"
steps = {side: sum(results["steps"][side]) / 3 for side in translators}
assert sorted(steps, key=steps.get, reverse=True) == translators
assert round(steps["Transformer"]) == 319 and round(sum(bleu["Transformer"]) / 3) == 6

# %% [markdown]
# **Answer.** No. After 319 steps, the Transformer has hardly begun (BLEU 6).
# Nor is this attention against recurrence: every side attends to the source. Of the five, the LSTM is furthest after eight seconds.
#
# In BLEU the order is that of the steps.
# The last column compares what the sides have learned after as many steps as the slowest run made: there, too, Transformer and state space are last.
# The state space is the Transformer with its self-attention replaced, so the cause may lie in what the two share.
#
# <details><summary>Which rates were tried?</summary>
#
# Transformer: 0.002, 0.004 (taken), 0.01. LSTM, GRU and convolutional: 0.004, 0.01 (taken), 0.02. State space: 0.004, 0.01 (taken; a higher one might do better).
#
# </details>
#
# ### An echo
#
# Why does a new Transformer learn so little from each step?
# Lesson [08](08_transformer.ipynb#How-does-it-start?) met one suspect: untrained, it favors the token that it has just read. Must training first unlearn this *echo*?
#
# We give one to the LSTM, by a residual path around its decoder (*with a path*).
# And we take it from the Transformer, by separate matrices for source, target and generator (*untied*, for the LSTM as well).
# Each side takes 400 steps at its best of four rates, with three seeds (`python -m course_lib.experiments echo`).

# %% tags=["hide-input"]
of_echo = read_record(RECORDS / "echo.json")
begins = final_results(of_echo, "echo")  # of each run before training, and after
ends = final_results(of_echo, "test")
echo_sides = ["LSTM", "LSTM with a path", "Transformer"]
echo_sides += ["LSTM, untied", "Transformer, untied"]
print(f"{'':20}{'echo before':>12}{'next tokens right':>21}")
print(f"{'':20}{'training, %':>12}{'after 400 steps, %':>21}")
for side in echo_sides:
    shares = [[share] for share in ends[side]]
    print(f"{side:20}{100 * mean(begins[side], 0):>12.0f}{told(shares, 0):>21}")

# %% tags=["hide-input"]
ended = {side: 100 * sum(ends[side]) / 3 for side in echo_sides}
assert [round(share) for share in ended.values()] == [80, 58, 58, 82, 73]
assert round(ended["LSTM"] - ended["Transformer"]) == 22
assert round(ended["LSTM, untied"] - ended["Transformer, untied"]) == 9
echoes = [round(100 * mean(begins[side], 0)) for side in echo_sides]
assert echoes == [0, 100, 69, 0, 0]

# %% [markdown]
# The path makes the LSTM learn as little in 400 steps as the Transformer.
# But without its echo, the Transformer is still 9 points behind the LSTM, instead of 22. The rest is open.
#
# ## Where the Transformer loses
#
# | contest | who is best | the Transformer | with more training |
# |---|---|---|---|
# | [race 1](#Race-1:-recall): recall of four facts | Transformer | wins, at every distance (without positions) | GRU and LSTM draw level, or nearly |
# | recall of [16 facts](#How-many-facts-does-a-state-hold?) | Transformer | wins: of the three tested it alone answers all | LSTM, 64 cells: 77 % right, not 34 % (a [state with keys](#A-state-that-chooses): all, without more) |
# | [race 2](#Race-2:-translation): the first seconds of learning to translate | LSTM | loses, to GRU and convolutional as well | after more than five minutes, less than a point of exact match apart (lesson [10](10_translation.ipynb#Is-it-the-Transformer?)) |
# | [memory](#What-a-decoder-keeps-while-it-writes) while it writes | GRU and LSTM, then convolutional | loses: ten times as large after ten times as many tokens; the others do not grow | the same |
# | [time per token](#Time-per-token-against-length) in long texts, on one core | convolution, then LSTM | loses to both | the same |
#
# The state space with its fixed kernel is best in none of them.
#
# In each of the first three rows the lead shrinks with more training; the convolution's window stays.
# In translation it is not always gone: with less training (lesson [14](14_cost_and_memory.ipynb)), or on Multi30k (lesson 10), the LSTM was ahead.
# No row tests the paper's main reason to leave recurrence: on a GPU, all tokens of a text are trained at once.
# In the paper, with millions of sentence pairs, the big model beats every earlier translator of table 2. From English to German the base model does, too, at a third of the lowest training cost given there.
#
# The last two rows follow from how a layer computes, so no training changes them.
#
# **Answer.** Without recurrence, no token waits in training; without a window, attention keeps everything. That is wise where many facts must be kept and nobody knows which one will be asked. The price is memory and time.
# Some of today's long-context models take recurrence back: a few layers of attention for the look-up, and many with a state of fixed size for the rest.
# Jamba [@lieber2024] has one layer of attention for every seven of Mamba.
#
# **A common mistake**: reading such a race as a verdict on architectures.
# Ask what was equal (in the two races, parameters and processor time), what was tuned (a few learning rates), what the task rewards (in race 1 one look-up), and whether the lead lasts.
# Small sizes, one processor and windows of 5 in two layers were our choice, too. With another task, size and time, another side won race 2.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **recurrent layer**: a layer that rewrites a state with every token and hands it to the next.
# - **state**: what such a layer knows of all tokens so far; its size is fixed.
# - **gates**: numbers between 0 and 1 that decide how much passes, computed from the tokens (in a GRU or LSTM also from the state).
# - **LSTM**: a recurrent layer with three gates and two states, one of which is its cells.
# - **GRU**: a recurrent layer with two gates and one state.
# - **gated linear unit**: half of the features, times the sigmoid of the other half.
# - **receptive field**: the tokens that an output can depend on at all.
# - **dilated**: of a convolution whose window has gaps; with growing gaps, a stack sees exponentially far.
# - **diagonal state-space layer**: a linear recurrence in which no number of the state influences another.
# - **kernel**: what a token adds to the outputs 0, 1, 2, … tokens later.
# - **scan**: computing a recurrence along a text, token by token.
# - **linear attention**: attention without the softmax, which is a recurrence with a matrix as its state.
# - **selective state space**: linear attention whose state shrinks, at each token, by a factor computed from the token.
# - **sequential steps**: the steps within one layer that must wait for one another.
# - **path length**: the smallest number of steps that a signal takes between two positions.
# - **filler**: a token of the recall task that is there to be ignored.

# %% [markdown]
# ## Summary
#
# A layer with a state fills it before it knows the question; attention keeps everything and chooses afterwards. A convolution sees its window and no more.
# A state that files values under keys, as linear attention and Mamba-2 do, recalled 16 facts; after as many steps, gates and a fixed kernel did not.
# At equal size, the Transformer (without positions) won recall after six seconds, and the LSTM with attention won translation after eight. With more training such leads shrank.
# Table 1: its terms n² d and n d² cross at n = d; whole layers of attention and LSTM have equally many operations at n = 2 d.
# Attention's memory and its time per token grow with the text, and no training changes that.
#
# **Practice**: [assignment 15](assignments/release/15_alternatives/15_alternatives.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [16](16_one_block_many_models.ipynb) builds other models from the same blocks: classifiers, language models, pictures.
