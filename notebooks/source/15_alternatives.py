# %% [markdown]
# # 15 · Alternatives: what else can read and write
#
# **Question.** Attention is one way to bring a word to the place where it is needed. There are others, older and newer. What does each of them cost, how far does it reach, and where does the Transformer lose?
#
# **Afterwards you can**
#
# 1. write a recurrent, a convolutional and a state-space layer, and say what each passes from token to token;
# 2. count operations, sequential steps and path length, as table 1 of the paper does, and measure all three;
# 3. judge a comparison of architectures: what was equal, what was tuned, and what does the task reward?
#
# **You need** attention (lesson [03](03_attention.ipynb)), masks ([05](05_masks.ipynb)), the decoder with its cache ([07](07_decoder.ipynb), [11](11_decoding.ipynb)) and the recurrent baseline of lesson [10](10_translation.ipynb).
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
# *Anna has the ball. … Ben has the key. … What does Anna have?*
# Between the fact and the question are words that have nothing to do with it: five, or fifty.
# Every architecture that reads text must get the fact across.
# Here is such a story from the recall task of this lesson; one token states a whole fact, and one token asks.

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
# How does the thing get from the fact to the question?
#
# - **Attention**: the question looks back at every token, and takes from the one that fits.
# - **Recurrence**: every token hands a *state* to the next; the fact must survive in it.
# - **Convolution**: every layer mixes neighbors; the fact moves a few tokens with each layer.
# - **State space**: a state is handed on, too, but nothing nonlinear happens to it on the way.
#
# We build the last three, and then let all four race.
#
# ## Recurrence: a state that is handed on
#
# A **recurrent layer** has one vector, the **state**, that it rewrites with every token.
# The simplest one is state = tanh(W x + U state).
# Its weakness shows in training.
# The gradient that tells the fact "you were needed" runs back through every step between question and fact, and each step multiplies it by U and by the slope of tanh.
# If that makes it smaller on average, it fades like the power of a number below 1: the vanishing gradient of lesson [06](06_encoder.ipynb), here along the text [@hochreiter1997].
#
# **Gates** are the remedy.
# A gate is a number between 0 and 1 for each feature, computed from the token and the state.
# The LSTM has three of them and a second state, its cells; the **GRU** [@cho2014] makes do with two gates and one state:

# %% [markdown]
# | symbol | what it is |
# |---|---|
# | reset r | how much of the old state the new candidate may see |
# | update z | how much of the old state stays |
# | candidate | tanh(W x + r ⊙ U state), what would be written (PyTorch's form; the paper has U(r ⊙ state)) |
# | new state | z ⊙ state + (1 − z) ⊙ candidate |
#
# Where z is 1, the old state passes untouched, and so does the gradient.
# Here is the whole layer.


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
# How much is left after 60 tokens?
# We take untrained layers, give them random texts, and ask how strongly the *last* output depends on each token before it: the norm of the gradient.
# One GRU is there twice, the second time with a bias of +2 on its update gate, so that z starts near 0.9 instead of 0.5.

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
open_gates = nn.GRU(64, 64, batch_first=True)
open_gates.bias_ih_l0.data[64:128] = 2.0  # torch's order: reset, update, candidate
gradients = {"GRU": fades(nn.GRU(64, 64, batch_first=True))}
gradients["GRU, update gate open"] = fades(open_gates)
gradients["LSTM"] = fades(nn.LSTM(64, 64, batch_first=True))

# %%
print(f"{'tokens back':22}", *(f"{ago:9}" for ago in (1, 10, 30, 60)))
for name, norms in gradients.items():
    print(f"{name:22}", *(f"{norms[ago] / norms[1]:9.0e}" for ago in (1, 10, 30, 60)))
left = {name: (norms[60] / norms[1]).item() for name, norms in gradients.items()}
of_fading.reveal(of_fading.choices[1 if left["GRU"] < 1e-9 else 0])

# %% tags=["hide-input"]
assert left["GRU"] < 1e-9 > left["LSTM"]
assert left["GRU, update gate open"] > 1e4 * left["GRU"]

# %% [markdown]
# The gradient of an untrained GRU or LSTM of PyTorch shrinks by almost 40 % with each token.
# Open gates keep far more, which is why the library's `AttentiveRNN` starts with a bias of 1 there.
# Training may open them further; but it has to do so through the very gradient that fades.
#
# The other weakness can be read in the loop: token t cannot begin before token t − 1 is done, in training as well.
#
# For translation one more thing is needed.
# The **encoder** reads from both ends, so that each token's output knows what comes before it and after it, and the **decoder** looks at all of these outputs with attention.
# That is @bahdanau2015, first published in 2014, three years before the Transformer; lesson 10 raced it.
# So attention is not what the Transformer added.
# What it did was to leave out the rest, and to let attention with many heads take its place: "dispensing with recurrence and convolutions entirely", says its abstract.
#
# ## Convolution: a window that slides
#
# A **convolution** computes each output from a window of k neighboring tokens, with the same matrix everywhere.
# No output waits for another.
# @gehring2017 built a translator of them, which beat the best recurrent ones of its day and translated about ten times as fast, a month before the Transformer appeared.
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
# Where does the causal mask of lesson 05 come in?
# Nowhere: the window ends at the token itself, so there is nothing to hide.
# (An encoder centers the window instead.)
#
# One layer with k = 3 sees two tokens back.
# The tokens that a stack can see at all are its **receptive field**.

# %%
of_stack = Predict(
    "How many causal layers of width 3 does it take to see 16 tokens back?",
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
    if number in (1, 2, 4, 8) or (seen >= 16 and needed is None):
        print(f"{number} layers see {seen} tokens back")
    needed = number if needed is None and seen >= 16 else needed
of_stack.reveal(needed)

# %% tags=["hide-input"]
assert needed == 8

# %% [markdown]
# Each layer adds k − 1, so a distance of n takes about n / (k − 1) layers.
#
# **A common mistake**: "a stack of convolutions sees exponentially far".
# It does if the tokens of its windows stand further and further apart: 1, 2, 4, 8 places (**dilated** convolutions [@kalchbrenner2016]).
# The paper's table 1 counts log_k(n) layers for those, if the spacing grows by k each time, and its text n / k for windows without gaps.
# Gehring's have none.
#
# Beyond the receptive field the signal is not faint; there is none.
# The gradient is exactly 0, and no training changes that.
#
# ## State space: a linear recurrence
#
# What if the state is handed on without tanh, and without gates that look at it?
#
# state[t] = a · state[t − 1] + x[t]
#
# With |a| < 1 it forgets, slowly or fast.
# And we can write down what the state is: the sum of all tokens so far, each times a to the power of its age.
#
# A positive number a below 1 can only shrink the state.
# A **complex** number also turns it: it is the hand of a clock (lesson 02) that gets shorter with each tick.
# A **diagonal state-space layer** gives every feature a few such hands, and its output is the real part of their weighted sum [@gu2022]; a linear recurrent unit [@orvieto2023] has them too, shared by all features.
# "Diagonal" means that no hand influences another one; "state space" is a word of control theory.


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
# Because every step is linear, a token's contribution to an output depends on its age alone.
# So the whole layer is one list of numbers, the **kernel** (not the fused kernel of lesson 14): what a token adds to the output 0, 1, 2, … tokens later.

# %%
from course_lib.figures import curves

space, x = OurStateSpace(hands=4), torch.randn(40, generator=generator)
age = torch.arange(40)
hands = (space.weights[:, None] * space.a[:, None] ** age).real  # (hands, length)
kernel = hands.sum(dim=0)
lines = {"kernel, their sum": (age, kernel)}
lines |= {f"hand {number}": (age, hand) for number, hand in enumerate(hands)}
title = "A kernel is a sum of hands that turn at different speeds and get shorter"
curves(lines, xlabel="age of the token", ylabel="what it adds", title=title)

# %% tags=["hide-input"]
assert (space.a.abs() < 1).all()
assert kernel[35:].abs().max() < kernel.abs().max() / 2

# %% [markdown]
# The output is the sum over all ages, kernel[age] · x[t − age]: a convolution whose window is the whole text.


# %%
def by_fourier(kernel, x, size):
    """The convolution as a product of spectra of `size` numbers."""
    spectrum = torch.fft.rfft(kernel, size) * torch.fft.rfft(x, size)
    return torch.fft.irfft(spectrum, size)[: len(x)]


by_scan = space.scan(x)
windows = [kernel[: t + 1].flip(0) * x[: t + 1] for t in range(40)]
by_window = torch.stack([window.sum() for window in windows])
gaps = {"scan and window": apart(by_scan, by_window)}
gaps["scan and Fourier, size 80"] = apart(by_scan, by_fourier(kernel, x, 80))
gaps["scan and Fourier, size 40"] = apart(by_scan, by_fourier(kernel, x, 40))
for name, gap in gaps.items():
    print(f"{name:26} {gap:.0e} apart")

# %% tags=["hide-input"]
assert gaps["scan and window"] < 1e-4 > gaps["scan and Fourier, size 80"]
assert gaps["scan and Fourier, size 40"] > 0.1

# %% [markdown]
# One layer, three ways to compute it:
#
# - the **scan**, token by token, with a state that never grows: for generating text;
# - the window over the whole text, n² products: for understanding;
# - the Fourier transform, n log n operations, all tokens at once: for training.
#
# **A common mistake** hides in the last one.
# The Fourier transform treats a text as a circle.
# Without as many zeros behind the text as it has tokens, the end runs round into the beginning: a leak from the future, and no causal mask is there to stop it.
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
    title="Before training, attention hears every token, a GRU only the nearest",
    log_y=True,
)

# %% tags=["hide-input"]
left |= {name: (gradients[name][60] / gradients[name][1]).item() for name in shown[2:4]}
assert 1e-3 < left["state space"] < left["attention"] and left["attention"] > 0.2
assert len(gradients["4 convolutions"]) == 9

# %% [markdown]
# Attention is flat: 60 tokens back is as near as one. (Each curve is divided by its first value: what an untrained attention gives to a single token is little, and less in a longer text.)
# The state space falls slowly, because some of its hands decay slowly.
# That is what a layer starts from; what training makes of it, the races will tell.
#
# What does a state space pay for its speed?
# Its kernel is fixed once training ends.
# It weighs tokens by their age, never by what they say, so it cannot decide to keep *Anna-has-ball* and to skip a filler; the layers around it must see to that.
# Mamba [@gu2023] makes a and the weights into and out of the state depend on the token. Then there is no fixed kernel and no Fourier form, but linear steps can be combined in pairs, in log₂ n rounds: a *parallel scan*.
#
# ### Attention with a state
#
# Is attention so different?
# It looks back at all tokens because of the softmax: exp(q · k) cannot be split into a part of q times a part of k with finitely many numbers (approximations exist).
# Without the softmax there is nothing to split: (q · k) v = q (k vᵀ).
# So the output of a token, the sum of (q · k) v over the tokens so far, is q times the sum of all k vᵀ: a matrix that grows by one product with each token.


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

# %% [markdown]
# This is **linear attention** [@katharopoulos2020], whose authors also make queries and keys positive and divide by the sum of the weights.
# It trains at once like attention and writes with a fixed state like a recurrence; what it gives up is the sharp look-up, because all that it was told is added into one matrix.
# If that matrix also shrinks with each token, by a factor computed from the token, it is a state space again, Mamba-2's [@dao2024].
#
# ## One interface
#
# The library has whole translators of each kind, called exactly like the Transformer: `encode`, `decode`, `new_cache`.
# Greedy decoding, beam search, training and scoring do not know which one they work with: `python -m course_lib train --architecture gru --out runs/gru` makes a translator like any other.
# `model_like` builds each with about as many parameters as a given Transformer.
#
# - **LSTM, GRU**: an encoder that reads from both ends, a decoder with attention.
# - **Convolutional**: Gehring's encoder and decoder; every decoder layer has an attention of its own.
# - **State space**: the Transformer with state spaces instead of self-attention; the attention from decoder to encoder stays.

# %%
from course_lib.alternatives import ALTERNATIVES, model_like
from course_lib.config import ModelConfig
from course_lib.transformer import Transformer

config = ModelConfig(500, d_model=64, num_heads=4, num_layers=2, d_ff=128, max_len=128)
torch.manual_seed(0)
models = {"Transformer": Transformer(config)}
models |= {name: model_like(name, config) for name in ALTERNATIVES}


def cache_size(cache):
    """Numbers that a decoder keeps, without the projected source."""
    parts = [(name, each) for part in cache for name, each in vars(part).items()]
    kept = [x for name, x in parts if "memory" not in name and torch.is_tensor(x)]
    return sum(x.numel() * (2 if x.is_complex() else 1) for x in kept)


# %%
src, target = torch.randint(4, 500, (1, 20)), torch.randint(4, 500, (1, 100))
cache_growth = {}
for name, model in models.items():
    model.eval()
    with torch.no_grad():
        memory, cache, pieces, sizes = model.encode(src), model.new_cache(), [], []
        for token in target.split(1, dim=1):
            pieces.append(model.decode(token, memory, src, cache=cache))
            sizes.append(cache_size(cache))
        gap = apart(torch.cat(pieces, dim=1), model.decode(target, memory, src))
    cache_growth[name] = sizes[9], sizes[99], gap
    print(f"{name:14} {model.config.num_parameters:,} parameters", end=", ")
    print(f"cache {sizes[9]:6,} numbers at token 10, {sizes[99]:6,} at token 100")

# %% tags=["hide-input"]
sizes = [model.config.num_parameters for model in models.values()]
assert max(sizes) / min(sizes) < 1.03
assert all(gap < 1e-3 for _, _, gap in cache_growth.values())
grows = {name: late / early for name, (early, late, _) in cache_growth.items()}
assert grows.pop("Transformer") == 10 and set(grows.values()) == {1}

# %% [markdown]
# Here is the first race that the Transformer loses: memory while it writes.
# Its cache grows with every token, and each new token reads all of it.
# The others carry a state of fixed size, at token 10 as at token 100,000. (Not counted: the encoder's output, which all five keep and read.)
# (The state space's is not small: up to token 16, the Transformer's cache is no larger.)
#
# ## Table 1, measured
#
# The paper compares layers by three numbers, for a text of n tokens and d features:
#
# | layer | operations | sequential steps | path length |
# |---|---|---|---|
# | self-attention | n² · d | 1 | 1 |
# | recurrent | n · d² | n | n |
# | convolutional, width k | k · n · d² | 1 | log_k(n), or n / k without gaps |
#
# **Sequential steps** are operations that must wait for one another.
# The **path length** is how many steps a signal takes between two positions; the shorter it is, the paper argues, the easier it is to learn what connects them.
#
# Operations and sequential steps are those of one layer; the path length is that of as many layers as connect the two ends. (A fourth row, attention within a window, is left out here.)
# These are orders of growth.
# Can they be *measured*?
# Autograd's graph shows how our code computes: every operation is a node that points to the operations it was computed from.
# We follow all chains of nodes from the last output to the first token, for the convolutions in a stack that connects them.
# The longest one counts dependent operations; the shortest one is the path of a signal, where its gradient is not 0.


# %%
def chains(output, first):
    """Operations on the shortest and the longest way from an output to a token."""
    known = {}

    def ways(node):
        if node not in known:
            if getattr(node, "variable", None) is first:
                known[node] = (0, 0)
            else:
                found = [ways(before) for before, _ in node.next_functions if before]
                found = [each for each in found if each]
                short, long = [min(way) for way in found], [max(way) for way in found]
                known[node] = (1 + min(short), 1 + max(long)) if found else None
        return known[node]

    return ways(output.grad_fn)


# %% [markdown]
# We write the three layers in the simplest way, from tokens that are n separate tensors.

# %%
d, matrices = 32, torch.randn(5, 32, 32, generator=generator) * 32**-0.5


def self_attention(tokens):
    x = torch.cat(tokens)  # (n, d)
    query, key, value = (x @ matrix for matrix in matrices[:3])
    return ((query @ key.T / d**0.5).softmax(dim=-1) @ value)[-1]


def recurrence(tokens):
    state = torch.zeros(1, d)
    for token in tokens:
        state = (token @ matrices[0] + state @ matrices[1]).tanh()
    return state


def convolutions(tokens, k=3):
    x = torch.cat(tokens).T  # (d, n)
    for _ in range(math.ceil((len(tokens) - 1) / (k - 1))):  # until all is seen
        x = F.conv1d(F.pad(x, (k - 1, 0)), matrices[:k].permute(1, 2, 0)).tanh()
    return x[:, -1]


# %%
from torch.utils.flop_counter import FlopCounterMode

measured = {}
for layer in (self_attention, recurrence, convolutions):
    rows = []
    for n in (16, 32, 64):
        tokens = [torch.randn(1, d).requires_grad_() for _ in range(n)]
        with FlopCounterMode(display=False) as counter:
            output = layer(tokens)
        rows.append((*chains(output, tokens[0]), counter.get_total_flops()))
    short, long, flops = zip(*rows, strict=True)
    measured[layer.__name__] = short, long, flops
    print(f"{layer.__name__:15} n = 16, 32, 64: shortest {short}, longest {long}")

# %% tags=["hide-input"]
short, long, flops = measured["self_attention"]
assert len(set(short)) == len(set(long)) == 1
short, long, flops = measured["recurrence"]
assert short[2] - short[1] == 2 * (short[1] - short[0]) and long[2] > 1.9 * long[1]
assert flops == tuple(4 * n * d**2 for n in (16, 32, 64))
short, long, flops = measured["convolutions"]
assert 1.8 < short[2] / short[1] < 2.2 and short[2] < measured["recurrence"][0][2]

# %% [markdown]
# The chains grow as the path lengths in the table do.
# Attention's do not change with n.
# The recurrence has a single chain, with three operations for each token, so it doubles with n.
# So do the chains of the stacked convolutions, which need n / (k − 1) layers to connect the two ends, though each of these layers is a single step, which takes all tokens at once.
#
# And the operations?
# We count them for one layer; the factor 2 in the formulas is for multiplying and adding.

# %% tags=["nbval-check-output"]
n = 64
rows = {
    "self-attention, scores and context": (4 * n**2 * d, "4 n² d"),
    "self-attention, three projections": (6 * n * d**2, "6 n d²"),
    "recurrence": (4 * n * d**2, "4 n d²"),
    "one convolution, k = 3": (6 * n * d**2, "2 k n d²"),
}
counted = measured["self_attention"][2][2], measured["recurrence"][2][2]
for name, (operations, formula) in rows.items():
    print(f"{name:36} {formula:9} {operations:9,}")
print(f"counted: attention {counted[0]:,}, recurrence {counted[1]:,}")

# %% tags=["hide-input"]
assert counted[0] == 4 * n**2 * d + 6 * n * d**2 and counted[1] == 4 * n * d**2
layers_needed = math.ceil((n - 1) / 2)
assert measured["convolutions"][2][2] == layers_needed * 2 * 3 * n * d**2

# %% [markdown]
# By the terms of the table, n² d against n d², attention is cheaper as long as n < d.
# The paper says so, and lesson [18](18_errata_lab.ipynb) puts that sentence on trial, because it leaves out the projections.
# But is time the same as operations?
#
# ## Time per token against length
#
# We time whole layers of the library with d = 64, forward, in microseconds per token.

# %%
of_crossing = Predict(
    "From which length on is PyTorch's LSTM faster than attention, at d = 64?",
    ["up to 64 = d", "from 65 to 256", "more than 256"],
    section="Time per token against length",
)
of_crossing

# %%
from course_lib.experiments import seconds_a_step

lengths = (16, 64, 256, 1024, 2048)
lstm = nn.LSTM(64, 64, batch_first=True)
layers = {"attention": lambda x: attend(x, x, x), "LSTM": lstm}
layers["convolution"] = GatedConvolution(64, 3, causal=True)
layers["state space"] = DiagonalStateSpace(64, 8)
micros = {name: [] for name in layers}
for n in lengths:
    x = torch.randn(2, n, 64)
    calls = [partial(layer, x) for layer in layers.values()]
    with torch.no_grad():
        for name, seconds in zip(layers, seconds_a_step(calls, rounds=4), strict=True):
            micros[name].append(1e6 * seconds / (2 * n))

# %% tags=["hide-input"]
pairs = zip(lengths, micros["attention"], micros["LSTM"], strict=True)
crossing = next((n for n, ours, theirs in pairs if ours > theirs), 9999)
of_crossing.reveal(of_crossing.choices[(crossing > 64) + (crossing > 256)])
curves(
    {name: (lengths, values) for name, values in micros.items()},
    xlabel="tokens in the text",
    ylabel="microseconds per token",
    title="The longer the text, the more attention pays per token; the others do not",
    log_x=True,
    log_y=True,
)

# %% tags=["hide-input"]
grew = {name: values[-1] / values[2] for name, values in micros.items()}
assert grew["attention"] > 2.5 > 2 > grew["LSTM"]
assert grew["attention"] > 2 * grew["convolution"]
assert 64 < crossing <= 1024

# %% [markdown]
# The shapes are those of table 1: attention's time per token grows with the length, because every token has more to look at; that of the others does not.
# (Short texts are expensive for all: a call costs something before the first number is computed.)
# The state space is level, too, but high: each of its features has eight hands and a Fourier transform.
#
# The crossing with the LSTM is not at n = 64.
# Why?
# Let us count again, with everything in it.
# Beside its 4 n² d, attention has four projections, 8 n d²; an LSTM has eight matrices, 16 n d², four times the recurrence of the table.
# They are equal at n = 2 d = 128.

# %%
counted = [(8 * n * 64**2 + 4 * n**2 * 64) / (16 * n * 64**2) for n in lengths]
print("attention's time, where the LSTM takes 1:")
for n, ratio, *both in zip(lengths, counted, *list(micros.values())[:2], strict=True):
    print(f"{n:5} tokens: counted {ratio:5.2f}, timed {both[0] / both[1]:5.2f}")

# %% tags=["hide-input"]
assert counted[1] < 1 < counted[2]

# %% [markdown]
# So n = d is where two *terms* cross, and whole layers cross later.
# On one core, the count explains most of the clock.
# On a GPU it does not: it can do more at once, and small steps in sequence leave most of it idle.
# That was the paper's argument.
#
# ## Race 1: recall
#
# The task is the story from above: 64 tokens, four facts in the first half, questions later.
# Guessing one of eight things is right 12.5 % of the time.
#
# Each side has two layers and 34,000 parameters, and trains for **six seconds of processor time**, not for a number of steps: a side that computes faster takes more of them.
# For each, validation stories picked one of two or three learning rates; then it ran with three other seeds.
# For the Transformer, validation also chose between rotary positions and none, where the causal mask alone tells the order.
# The convolutions are 5 wide.
#
# We test on stories of 64 tokens, and of 256, with distances that no training had.

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
# One side runs here, for four seconds; all of them, with three seeds each, are in the record that `python -m course_lib.experiments recall` made.

# %%
from course_lib.experiments import (
    BINS,
    reader_of_size,
    right_by_distance,
    train_to_recall,
)

torch.manual_seed(0)
reader = reader_of_size("convolution")
history = train_to_recall(reader, rate=1e-2, seed=0, seconds=4)
live = right_by_distance(reader, 64)
print(f"{history[-1]['steps']} steps; right answers, by distance:")
print("  1-2, 3-4, 5-8:   ", *(f"{share:.0%}" for share in live[:3]))
print("  9-16, 17-32, 33-:", *(f"{share:.0%}" for share in live[3:6]))
ends = zip(BINS[1:7], live, strict=False)  # of the distances in 64 tokens
of_cliff.reveal(max(end - 1 for end, share in ends if share > 0.2))  # guessing: 0.125

# %% tags=["hide-input"]
assert sum(live[:3]) / 3 > 0.25 > 0.2 > max(live[3:6])
assert live[2] > 0.2

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
    title="After six seconds, only attention answers at every distance",
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
cut = [share for run in by_distance["convolution"] for share in run[1][3:]]
near = [share for run in by_distance["convolution"] for share in run[1][:3]]
assert max(cut) < 0.2 and min(near) > 0.4
far = {side: mean([run[1] for run in by_distance[side]], 7) for side in sides}
assert far["state space"] < far["GRU"] - 0.05 < 0.6 < far["Transformer"]
chosen = [run["choices"] for run in recall["runs"] if run["stage"] == "final"]
assert {each["position"] for each in chosen if "position" in each} == {"none"}

# %% [markdown]
# The Transformer wins by far.
# It finds the look-up in a fraction of the time, and then distance does not matter: 256 tokens are as easy as two.
# A question needs one token of the whole text, found by *what it says*; that is what attention does.
# (It has the causal mask alone. With rotary positions it is just as perfect on the validation stories, the tie fell to the first in our list, and on the long ones it has about 80 %, as lesson [13](13_positions_past_the_paper.ipynb) leads us to expect.)
#
# The convolutions do what the formula says: they know answers up to 2 · (5 − 1) = 8 tokens back, and guess from there on.
# More training cannot move that edge.
#
# The three with a state are in between on average: better than guessing at every trained distance, but far from always right.
# At distances longer than any in training they part: the GRU still knows something at more than 128 tokens, while the state space guesses.
# Perhaps because a gate can learn "keep this until further notice", while a state space's decay is the same for every token; we have not looked.
#
# Is that a limit of theirs, or of six seconds?
# The record also has the two recurrent ones with four times the time (not the state space; for it the question stays open).

# %% tags=["hide-input"]
print(f"{'right answers, %':20}{'64 tokens':>13}{'256 tokens':>19}")
longer = {}
for side in ("GRU", "LSTM"):
    longer[side] = accuracy[f"{side}, four times as long"]
    for name, runs in ((side, accuracy[side]), ("  4 × the time", longer[side])):
        print(f"{name:15}", *(f"{told(runs, place):>18}" for place in (0, 1)))

# %% tags=["hide-input"]
assert all(min(map(min, runs)) > 0.95 for runs in longer.values())

# %% [markdown]
# For these two it was the time: with four times as much, both answer nearly every question, on the long stories as well.
# A state that has learned to keep what it is told does not fade; what it needs is the training to get there.
# But four facts are few: a state of fixed size must lose some of enough of them, and attention, which keeps every token, pays with its cache. This race does not test that.
# So the race does not say what an architecture *can* do, but what it does for a price.
#
# ## Race 2: translation
#
# Now the whole translators, with 200,000 parameters each, and all with attention from decoder to encoder, learn from some 6,000 short sentence pairs of the course corpus (sources of at most eight words), for **eight seconds** of processor time.
# Each side has its own learning rate, the best of several on validation sentences, and three seeds; we score greedy translations of unseen sentences.

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
print(f"{'':14}{'BLEU':>19}{'exact match, %':>20}{'steps':>8}{'passes':>8}")
for side in translators:
    bleu = [[value / 100] for value in results["bleu"][side]]
    exact = [[value] for value in results["exact_match"][side]]
    steps, passes = (sum(results[name][side]) / 3 for name in ("steps", "epochs"))
    print(f"{side:14}{told(bleu, 0):>19}{told(exact, 0):>20}{steps:8.0f}{passes:8.1f}")
of_translation.reveal(translators[0])

# %% tags=["hide-input"]
bleu = results["bleu"]
assert translators[0] == "LSTM" and min(bleu["LSTM"]) > max(bleu["Transformer"]) + 10
assert min(bleu["convolutional"]) > max(bleu["Transformer"]) < min(bleu["GRU"])

# %% [markdown]
# A surprise, if you expected the winner of race 1.
# The Transformer is far behind the LSTM, at its own best rate, with each of three seeds.
#
# Part of it is speed: on one core and short sentences, the LSTM takes more steps in the same time.
# Is that all?
# The record has measurements at every tenth of the time, so we can compare after equally many *steps*, as many as the slowest run of all took:

# %% tags=["hide-input"]
histories = final_results(race, "history")
wanted = min(min(steps) for steps in results["steps"].values())
at_step = {}
for side in translators:
    runs = histories[side]
    found = [min(run, key=lambda e: abs(e["steps"] - wanted)) for run in runs]
    at_step[side] = sum(entry["valid_accuracy"] for entry in found) / 3
    print(f"{side:14} about {wanted} steps: {at_step[side]:.0%} of next tokens right")

# %% tags=["hide-input"]
assert at_step["LSTM"] > at_step["Transformer"] + 0.1
assert abs(at_step["state space"] - at_step["Transformer"]) < 0.1

# %% [markdown]
# No: at this early stage the Transformer also learns less from each step.
# So does the state space, which *is* the Transformer with other self-attention; so the cause may be in what the two share.
#
# ### An echo
#
# Lesson [08](08_transformer.ipynb#Break-it:-forget-the-shift) met a suspect: an untrained Transformer repeats what it reads.
# The residual path carries a token's row up to the generator, whose matrix is tied: it compares the vector with all rows, and finds that one again.
# The next token is almost never the one just read, so training must first push its score down.
# The other models tie their matrices, too; but around the LSTM no such path leads, and around the convolutions one with a matrix at each end.
# At how many tokens is the most likely next one the token just read, before training?

# %% tags=["hide-input"]
from course_lib.experiments import echo_model, echoes

untrained = {}
for name, path in (
    *(("transformer", False), ("state space", False), ("convolutional", False)),
    *(("lstm", False), ("lstm", True)),
):
    torch.manual_seed(0)
    share = untrained[name, path] = echoes(echo_model(name, path=path).eval())
    print(f"{name + path * ' with a path':16} echoes {share:.0%}")

# %% tags=["hide-input"]
assert min(untrained["transformer", False], untrained["state space", False]) > 0.5
assert max(untrained["convolutional", False], untrained["lstm", False]) < 0.05
assert untrained["lstm", True] > 0.9

# %% [markdown]
# Is unlearning this **echo** what costs the steps?
# We take it away in two ways: *projected* puts one more matrix (64 × 64) before the tied one, and *untied* has three matrices in place of one, and a third more parameters.
# And the last line above is the counter-test: an LSTM with a path around its decoder, from the embedded token to the generator.
# Each side takes 400 steps at the best of four rates, with three seeds (`python -m course_lib.experiments echo`).

# %%
of_path = Predict(
    "What does the path do to the LSTM in these 400 steps?",
    ["it helps, as residuals do", "little", "it falls to the Transformer's level"],
    section="An echo",
)
of_path

# %% tags=["hide-input"]
of_echo = read_record(RECORDS / "echo.json")
begins = final_results(of_echo, "echo")  # of each run before training, and after
silent = [side for side in begins if "projected" in side or "untied" in side]
most = max(run[0] for side in silent for run in begins[side])
print(f"echoes before training, projected or untied: {most:.1%} at most")

# %% tags=["hide-input"]
echo = final_results(of_echo, "test")
echo = {side: [[share] for share in shares] for side, shares in echo.items()}
print(f"next tokens right, %{'tied':>14}{'projected':>15}{'untied':>15}")
for side in ("Transformer", "state space", "LSTM with a path", "LSTM", "convolutional"):
    names = side, f"{side}, projected", f"{side}, untied"
    cells = [told(echo[name], 0) if name in echo else "" for name in names]
    print(f"{side:19}", *(f"{cell:>14}" for cell in cells))
middle = {side: mean(shares, 0) for side, shares in echo.items()}
later = ("Transformer", "Transformer, projected", "LSTM", "LSTM with a path")
shares = (f"{side} {middle[f'{side}, longer']:.0%}" for side in later)
print("after 1,600 steps:", *shares, sep="\n  ")
lost = middle["LSTM"] - middle["LSTM with a path"]
fallen = middle["LSTM with a path"] < middle["Transformer"] + 0.05
of_path.reveal(of_path.choices[2 if fallen else 1 if lost > -0.02 else 0])

# %% tags=["hide-input"]
assert fallen and middle["LSTM with a path, projected"] > middle["LSTM"] - 0.06
for side in ("Transformer", "state space", "LSTM with a path"):
    for output in ("projected", "untied"):
        assert min(echo[f"{side}, {output}"])[0] > max(echo[side])[0], (side, output)

# %% tags=["hide-input"]
gaps = {
    output: middle[f"LSTM{output}"] - middle[f"Transformer{output}"]
    for output in ("", ", untied")
}
assert most < 0.02 and 0.2 < gaps[""] < 0.25 and 0.07 < gaps[", untied"] < 0.11
matrix = middle["Transformer, projected"] - middle["Transformer"]
back = middle["LSTM with a path, projected"] - middle["LSTM with a path"]
sides_longer = ("Transformer", "LSTM", "LSTM with a path")
longer = {side: middle[f"{side}, longer"] for side in sides_longer}
behind = longer["LSTM"] - longer["Transformer"]
points = lost, back, gaps[""], matrix, gaps[", untied"], behind
assert [round(100 * each) for each in points] == [22, 21, 22, 6, 9, 3]
assert 0.85 < longer["Transformer"] < longer["LSTM"] < longer["Transformer"] + 0.05
assert longer["LSTM with a path"] < longer["LSTM"] - 0.1
assert abs(middle["Transformer, projected, longer"] - longer["Transformer"]) < 0.03

# %% [markdown]
# For the LSTM the test is clean: the path costs 22 points, and one matrix brings 21 of them back.
# For the Transformer the same matrix brings six of the 22 points to the LSTM: the echo is about a quarter of what holds it back.
# Tying is more: with three matrices on both sides, nine points are left of the 22. Why one matrix costs the Transformer more than its echo is open, and so are the nine.
#
# All this is a matter of the beginning: after 1,600 steps the Transformer is three points behind the LSTM. (The LSTM with a path stays far behind; nothing normalizes what its path carries.)
#
# In lesson [10](10_translation.ipynb#Is-it-the-Transformer?) both had more than five minutes, and ended less than one point apart; on the captions of Multi30k the LSTM was still ahead after eight passes.
# With plenty of data and time it turned out otherwise: the paper's models beat the best recurrent and convolutional ones of 2017 at a fraction of their training cost (its table 2), and nearly all large language models since then have been Transformers.
#
# ## Watch the races
#
# The viewer replays both records, on validation data.
# In recall, its score gives every range of distances the same weight, which flatters the convolutions.
# When does each side leave guessing behind, and does the order change after that?

# %%
from course_lib.widgets import RaceViewer

replayed = final_results(recall, "history")
names_of_bins = [f"{a}-{b - 1}" for a, b in zip(BINS[:6], BINS[1:7], strict=True)]
races = {"recall": {side: replayed[side] for side in sides}, "translation": histories}
viewer = RaceViewer(races, distances=names_of_bins, moment=4)
viewer

# %% tags=["hide-input"]
viewer.race, viewer.moment = "translation", 10
assert viewer.standing()[0][0] == translators[0]
viewer.race = "recall"
assert viewer.standing()[0][0] == "Transformer" and viewer.standing()[0][1] > 0.98
viewer.moment = 4

# %% [markdown]
# ## Where the Transformer loses
#
# | what | who does better | measured here |
# |---|---|---|
# | memory while it writes | recurrent and convolutional at once, state space after some tokens | their cache does not grow; the Transformer's is ten times as large after ten times as many tokens |
# | time per token in long texts | convolution and LSTM; a state space's curve is flat, too, but still above attention's at 2,048 tokens | "Time per token against length" |
# | the first seconds of learning to translate | LSTM, GRU, convolutional | race 2, the opposite of race 1; more than half of it only with tied matrices |
#
# And where does it win? A fact at any distance, found by its content, after a fraction of the training (race 1), in a constant number of sequential steps.
# Some of today's long-context models mix both: a few layers of attention for the look-up, and many with a state of fixed size for the rest.
# Jamba [@lieber2024], for example, has one layer of attention for every seven of Mamba.
#
# **A common mistake**: reading such a race as a verdict on architectures.
# Ours has two tasks, one size, one processor, and seconds of training. Equal are parameters and processor time; each side has a learning rate of its own. Windows of 5 in two layers were our choice, and so was a task that one look-up solves.
# Change the task (and, here, size and time), and another one wins, as between race 1 and race 2.
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **recurrent layer**: a layer that rewrites a state with every token and hands it to the next.
# - **state**: what such a layer knows of all tokens so far, a vector of fixed size.
# - **gates**: numbers between 0 and 1, computed from the input, that decide how much passes.
# - **GRU**: a recurrent layer with two gates and one state.
# - **gated linear unit**: half of the features, times the sigmoid of the other half.
# - **receptive field**: the tokens that an output can depend on at all.
# - **dilated**: of a convolution whose window has gaps; with growing gaps, a stack sees exponentially far.
# - **diagonal state-space layer**: a linear recurrence in which no number of the state influences another.
# - **kernel**: what a token adds to the outputs 0, 1, 2, … tokens later.
# - **scan**: computing a recurrence along a text, token by token; if it is linear, also in pairs and in parallel.
# - **linear attention**: attention without the softmax, which is a recurrence with a matrix as its state.
# - **sequential steps**: operations that must wait for one another.
# - **path length**: the steps of a signal between two positions.
# - **echo**: what a model does whose most likely next token is the one that it has just read.
# - **filler**: a token of the recall task that is there to be ignored.

# %% [markdown]
# ## Summary
#
# A recurrent layer hands a state from token to token, a convolution slides a window, a state space is a recurrence that can be computed as a convolution, and attention looks back at everything; without its softmax it is a recurrence, too.
# Table 1's three numbers can be measured: operations by a counter, sequential steps and path length as the longest and the shortest chain in autograd's graph.
# The terms n² d and n d² cross at n = d, whole layers of attention and LSTM at n = 2 d, and seconds about there.
# With equal size and time, the Transformer wins recall at every distance, while convolutions end at their receptive field and a GRU or LSTM does nearly as well with four times the time; on short translations after seconds of training the LSTM with attention wins: it takes more steps in the time and learns more from each, most of all where one tied matrix serves a Transformer's residual path at both ends.
# The Transformer loses where memory must not grow, in time per token on long texts, and, in translation, in the first seconds of training.
#
# **Practice**: [assignment 15](assignments/release/15_alternatives/15_alternatives.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [16](16_one_block_many_models.ipynb) builds other models from the same blocks: classifiers, language models, pictures.
