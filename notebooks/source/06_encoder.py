# %% [markdown]
# # 06 · The encoder: one layer, many layers
#
# **Question.** Attention lets tokens look at each other. What else does an encoder layer need, so that many layers can be stacked and still learn?
#
# **Afterwards you can**
#
# 1. write the feed-forward network, layer normalization and the encoder layer, and say which part lets tokens meet;
# 2. say what a second layer can do that no single one learned here;
# 3. measure what becomes of gradients and tokens in a deep stack, and at which learning rates post-norm and pre-norm learn.
#
# **You need** multi-head attention and the padding mask (lessons [04](04_multi_head.ipynb) and [05](05_masks.ipynb)).
# **Time**: {minutes} minutes to read, under a minute to run.
# **In the paper**: sections 3.1 and 3.3, and residual dropout in section 5.4 [@vaswani2017].

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.figures import Panel, curves, panels
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"
generator = torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# %% [markdown]
# ## A network for each position
#
# An encoder layer has two **sub-layers**.
# The first is self-attention, in which tokens look at each other.
# The second, a **feed-forward network**, works on each token alone: max(0, x W₁ + b₁) W₂ + b₂ (section 3.3).
# W₁ goes *up* from d_model to d_ff numbers, W₂ comes back *down*.
# In the paper that is 512 and 2048; we keep the factor of four.
#
# Here is what happens to one token, number by number.

# %% tags=["nbval-check-output"]
tokens = ["The", "cat", "sleeps", "."]
d_model, d_ff = 8, 32
x = random(len(tokens), d_model)  # (src_len, d_model)
w1, b1 = random(d_model, d_ff), random(d_ff)
w2, b2 = random(d_ff, d_model), random(d_model)


def one_token(vector):
    """d_model numbers to d_model numbers."""
    inner = [sum(vector * w1[:, unit]) + b1[unit] for unit in range(d_ff)]
    inner = torch.stack(inner).clamp(min=0)  # max(0, …)
    return torch.stack([sum(inner * w2[:, out]) + b2[out] for out in range(d_model)])


print("in: ", *(f"{number:6.2f}" for number in x[1]))
print("out:", *(f"{number:6.2f}" for number in one_token(x[1])))

# %% [markdown]
# The same as a class, for all tokens at once:


# %%
class OurFeedForward(nn.Module):
    """max(0, x W₁ + b₁) W₂ + b₂, the same at each position."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x):
        inner = torch.relu(self.up(x))  # (..., d_ff)
        return self.down(inner)  # (..., d_model)


# %%
from course_lib.blocks import FeedForward

ours, theirs = (
    kind(d_model, d_ff).double() for kind in (OurFeedForward, FeedForward)
)
with torch.no_grad():  # nn.Linear keeps its matrix transposed, (outputs, inputs)
    for parameter, value in zip(ours.parameters(), (w1.T, b1, w2.T, b2), strict=True):
        parameter.copy_(value)
    theirs.load_state_dict(ours.state_dict())
    out = ours(x)  # (src_len, d_model)
by_hand = torch.stack([one_token(vector) for vector in x])
print(f"class and by hand differ by {(out - by_hand).abs().max():.0e}")
print(f"class and library differ by {(out - theirs(x)).abs().max():.0e}")

# %% tags=["hide-input"]
torch.testing.assert_close(out, by_hand, rtol=1e-9, atol=1e-12)
torch.testing.assert_close(out, theirs(x), rtol=1e-9, atol=1e-12)

# %% [markdown]
# ### Identically and separately
#
# The paper says that the network is applied "to each position separately and identically".
# *Identically*: all positions share W₁, b₁, W₂ and b₂.
# *Separately*: what does one position know of the others?

# %%
of_reach = Predict(
    "We replace the vector of *cat*. At how many of the four positions does the output "
    "of the feed-forward network change?",
    section="Identically and separately",
)
of_reach

# %%
changed = x.clone()
changed[1] = random(d_model)
with torch.no_grad():
    moved = (ours(changed) - ours(x)).norm(dim=-1)  # (src_len,)
for token, distance in zip(tokens, moved, strict=True):
    print(f"{token:7} moves by {distance:.2f}")
of_reach.reveal((moved != 0).sum(), because="it sees one vector at a time")

# %% tags=["hide-input"]
assert moved[1] > 0.1 and (moved[[0, 2, 3]] == 0).all()

# %% [markdown]
# Self-attention is different.
# For both sub-layers we measure how strongly the output at each position depends on the input at every other: the size of the gradient.

# %% tags=["hide-input"]
from course_lib.attention import MultiHeadAttention


def influence(function, x):
    """(src_len, src_len): size of the gradient of each output position (row)."""
    jacobian = torch.autograd.functional.jacobian(function, x)
    return jacobian.square().sum(dim=(1, 3)).sqrt()


torch.manual_seed(0)
attend = MultiHeadAttention(d_model, num_heads=2).double()
reach = {
    "self-attention": influence(lambda x: attend(x[None], x[None], x[None])[0], x),
    "feed-forward network": influence(ours, x),
}

# %% tags=["hide-input"]
axes = dict(rows=tokens, columns=tokens, xlabel="input at", ylabel="output at")
drawn = [
    Panel(each / each.max(), name=name, kind="weights", **axes)
    for name, each in reach.items()
]
title = "In self-attention tokens meet; in the feed-forward network each is alone"
panels(drawn, title=title, words={"weights": "influence (1 = the largest)"})

# %% tags=["hide-input"]
off_diagonal = ~torch.eye(4, dtype=torch.bool)
assert (reach["self-attention"] > 0).all()
assert (reach["feed-forward network"][off_diagonal] == 0).all()

# %% [markdown]
# So the two sub-layers divide the work: attention moves information *between* tokens, and the feed-forward network processes what each token has.
#
# ### Why the ReLU?
#
# Without the ReLU there would be two matrices in a row, and their product W₁ W₂ is one matrix of d_model × d_model: here 512 weights would do the work of 64, and a larger d_ff would not help.
# The ReLU switches hidden units off, different ones for each token (█ is on).

# %%
with torch.no_grad():
    on = ours.up(x) > 0  # (src_len, d_ff)
for token, units in zip(tokens, on, strict=True):
    print(f"{token:7}", "".join("█" if unit else "·" for unit in units.tolist()))

# %% tags=["hide-input"]
without = (x @ w1 + b1) @ w2 + b2
torch.testing.assert_close(without, x @ (w1 @ w2) + (b1 @ w2 + b2))
assert w1.numel() + w2.numel() == 512 and (w1 @ w2).numel() == 64
assert len({tuple(units.tolist()) for units in on}) == len(tokens)
for token, units in enumerate(on):
    matrix, bias = (w1 * units) @ w2, (b1 * units) @ w2 + b2  # without those off
    torch.testing.assert_close(x[token] @ matrix + bias, out[token])

# %% [markdown]
# So each token is still multiplied by one matrix, but by a matrix of its own, made of the units that are on for it.
#
# ### What it costs
#
# What share of the parameters of one layer does the network hold, in the paper's base model?

# %% tags=["nbval-check-output"]
from course_lib.blocks import EncoderLayer

with torch.device("meta"):  # shapes, without memory
    base_layer = EncoderLayer(d_model=512, num_heads=8, d_ff=2048, dropout=0.1)
for name, part in base_layer.named_children():
    count = sum(parameter.numel() for parameter in part.parameters())
    print(f"{name:18}{count:10,}")

# %% [markdown]
# Two thirds.
# The two *paths* come next: they are what surrounds each sub-layer, and their few parameters belong to the norms.
#
# ## Residuals: learn the difference
#
# Section 3.1 puts a **residual connection** [@he2016] around each sub-layer: x + sublayer(x).
# The sub-layer does not have to produce the whole new vector, only what to add to the old one.
# If it returns 0, the sum is its input, unchanged.
#
# The same holds for the gradient on its way back.
# A sum hands its gradient to both of its terms, so what arrives from above reaches x directly, in addition to what comes through the sub-layer.
# How much does that matter if a sub-layer passes on almost nothing?
# We divide the output of our feed-forward network by a thousand.
# (Undivided, it enlarges the gradient about tenfold. What do you expect?)

# %%
def quiet(x):
    return 0.001 * ours(x)


leaf = x.clone().requires_grad_()
from_above = random(4, d_model)  # the gradient that arrives
arrives = {
    "sublayer(x)": torch.autograd.grad(quiet(leaf), leaf, from_above)[0],
    "x + sublayer(x)": torch.autograd.grad(leaf + quiet(leaf), leaf, from_above)[0],
}
for name, gradient in arrives.items():
    share = gradient.norm() / from_above.norm()
    print(f"{name:16} passes on {share:.3f} of the gradient norm")

# %% tags=["hide-input"]
through, beside = arrives.values()
torch.testing.assert_close(beside, from_above + through)
assert through.norm() < 0.1 * from_above.norm() < 0.95 * beside.norm()

# %% [markdown]
# Through the sum the gradient can always go around a sub-layer.
# Adding needs equal widths, and that is why every sub-layer of the model, and the embedding, produces d_model numbers (section 3.1).
#
# ## Layer normalization
#
# A sum to which every layer adds grows, so vectors are normalized somewhere on their way; where, we will see.
# **Layer normalization** [@ba2016] gives the features of each token mean 0 and variance 1, and then applies a learned scale and shift to each feature.
# By hand, and as a class:


# %%
def one_token_normalized(vector, eps=1e-5):
    """A list of d_model numbers, before scale and shift."""
    mean = sum(vector) / len(vector)
    variance = sum((number - mean) ** 2 for number in vector) / len(vector)
    return [(number - mean) / math.sqrt(variance + eps) for number in vector]


# %%
class OurLayerNorm(nn.Module):
    """For each token, over its features."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(d_model))
        self.shift = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centered = x - x.mean(dim=-1, keepdim=True)
        variance = centered.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return centered / torch.sqrt(variance + self.eps) * self.scale + self.shift


# %% [markdown]
# Three things are easy to overlook.
# Mean and variance are those of *one token*.
# The variance divides by the number of features, not by one less.
# And a small ε stands *under the root*: without it, a token whose features are all equal would give 0/0.
#
# Is it what the library and PyTorch compute?
# We try tokens of very different sizes.

# %%
from course_lib.blocks import LayerNorm

sizes = torch.tensor([[0.3], [1.0], [2.0], [4.0]], dtype=torch.float64)
uneven = x * sizes + 3 * random(4, 1)  # (src_len, d_model)
norm, library_norm = OurLayerNorm(d_model).double(), LayerNorm(d_model).double()
with torch.no_grad():
    norm.scale.copy_(1 + 0.5 * random(d_model))
    norm.shift.copy_(0.5 * random(d_model))
library_norm.load_state_dict(norm.state_dict())
normed = norm(uneven)
torchs = F.layer_norm(uneven, (d_model,), norm.scale, norm.shift)
for name, other in (("library's", library_norm(uneven)), ("PyTorch's", torchs)):
    print(f"ours and {name}: {(normed - other).abs().max():.0e} apart")

# %% tags=["hide-input"]
torch.testing.assert_close(normed, library_norm(uneven), rtol=1e-9, atol=1e-12)
torch.testing.assert_close(normed, torchs, rtol=1e-9, atol=1e-12)
looped = [one_token_normalized(vector) for vector in uneven.tolist()]
plain = torch.tensor(looped, dtype=torch.float64)  # before scale and shift
torch.testing.assert_close(plain * norm.scale + norm.shift, normed)
constant = torch.full((1, d_model), 3.0, dtype=torch.float64)
torch.testing.assert_close(norm(constant)[0], norm.shift)

# %% tags=["hide-input"]
axes = dict(rows=tokens, columns=list("01234567"), xlabel="feature")
stages = {"before": uneven, "mean 0, variance 1": plain, "scale and shift": normed}
drawn = [Panel(each.detach(), name=name, **axes) for name, each in stages.items()]
title = "The norm gives all tokens one size, before it scales and shifts"
panels(drawn, title=title, words={"signed": "value of the feature"})

# %% tags=["hide-input"]
spread = uneven.var(dim=-1, correction=0)
assert spread.max() > 25 * spread.min()
assert (plain.var(dim=-1, correction=0) - 1).abs().max() < 1e-3

# %%
of_affine = Predict(
    "What does the norm return for 3 x + 5, compared with x?",
    ["three times as much", "the same plus 5", "the same"],
    section="Layer normalization",
)
of_affine

# %%
for name, each in (("x", uneven), ("3 x + 5", 3 * uneven + 5)):
    print(f"{name:8}", *(f"{number:6.3f}" for number in norm(each)[1].tolist()))
is_same = torch.allclose(norm(3 * uneven + 5), norm(uneven), rtol=1e-2, atol=1e-3)
told = "the same" if is_same else "three times as much"
of_affine.reveal(told, because="mean and size are taken out")

# %% tags=["hide-input"]
assert is_same and not torch.allclose(3 * uneven + 5, uneven, rtol=0.5)

# %% [markdown]
# The same, up to ε: the norm forgets a token's overall level and size.
# That is its purpose, and its price: what stands behind a norm cannot tell a long vector from a short one.
#
# **A common mistake**: `x.std()` in a hand-written norm.
# PyTorch's `std` and `var` divide by one less than the number of features, unless told otherwise.

# %% tags=["nbval-check-output"]
for width in (8, 512):
    vector = random(width)
    unbiased = (vector - vector.mean()) / vector.std()
    ratio = (unbiased / F.layer_norm(vector, (width,), eps=0)).mean().item()
    print(f"{width:4} features: every number is {ratio:.4f} of what it should be")

# %% [markdown]
# At 512 features it is a tenth of a percent: easy to miss, and enough for outputs to differ from those of the model whose weights were loaded.
#
# ### It is not batch normalization
#
# **Batch normalization** takes mean and variance over all tokens of the batch, one feature at a time.
# Then, in training, a sentence's result depends on the sentences that happen to be in its batch.
# We put our sentence into two batches: next to a neighbor of small numbers, and next to one of large numbers.


# %% tags=["nbval-check-output"]
def batch_norm(x):
    flat = x.flatten(0, 1)  # (batch * src_len, d_model)
    return F.batch_norm(flat, None, None, training=True).unflatten(0, x.shape[:2])


two_batches = [torch.stack([uneven, size * random(4, d_model)]) for size in (1, 10)]
for name, kind in (("layer norm", norm), ("batch norm", batch_norm)):
    first, second = (kind(batch)[0] for batch in two_batches)  # our sentence
    moved = (first - second).abs().max()
    print(f"{name}: our sentence changes by up to {moved:.3g}")

# %% tags=["hide-input"]
assert (batch_norm(two_batches[0])[0] - batch_norm(two_batches[1])[0]).abs().max() > 0.1

# %% [markdown]
# **A common mistake**: the wrong axis.
# With `dim=-2` in place of `dim=-1` the norm runs over the positions.
# The shape stays the same and nothing crashes, but now every token influences every other, the future and the padding included, past all masks.

# %% tags=["hide-input", "nbval-check-output"]
def normalize_wrongly(x):
    centered = x - x.mean(dim=-2, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(dim=-2, keepdim=True) + 1e-5)


for name, kind in (("dim=-1", norm), ("dim=-2", normalize_wrongly)):
    crossing = (influence(kind, uneven)[off_diagonal] > 0).sum()
    print(f"{name}: {crossing} of 12 pairs of different tokens influence each other")
assert (influence(normalize_wrongly, uneven) > 0).all()

# %% [markdown]
# ## Dropout
#
# In training, **dropout** [@srivastava2014] sets each number to 0 with probability p, so no part of the model can rely on a single number, which counters overfitting.
# Today's implementations divide the others by 1 − p: that keeps the expected value, so that after training, when nothing is dropped, the next layer gets numbers of the size that it was trained on.

# %%
p, ones = 0.1, torch.ones(1_000_000)
torch.manual_seed(0)
dropped = nn.Dropout(p)(ones)
print("values:", dropped.unique().tolist(), f" mean: {dropped.mean():.3f}")

# %% tags=["hide-input"]
assert abs(dropped.mean() - 1) < 0.003
assert torch.allclose(dropped.unique(), torch.tensor([0, 1 / (1 - p)]))
assert torch.equal(nn.Dropout(p).eval()(ones), ones)

# %% [markdown]
# `model.eval()` switches it off; forget that, and the same sentence comes out differently each time.
# Section 5.4 applies dropout to the output of each sub-layer, *before* it is added to x, and to the sum of embeddings and positions; p is 0.1 in the base model.
#
# ## The layer
#
# The paper puts the same path around both sub-layers: LayerNorm(x + Dropout(Sublayer(x))).
# This order is called **post-norm**.
# Many later models compute x + Dropout(Sublayer(LayerNorm(x))) instead, which is **pre-norm**.


# %%
class OurResidual(nn.Module):
    """The path around one sub-layer."""

    def __init__(self, d_model, dropout, norm_first):
        super().__init__()
        self.norm = OurLayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, sublayer):
        if self.norm_first:  # pre-norm
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))  # post-norm, the paper's


# %% [markdown]
# Unrolled, pre-norm is x + change₁ + change₂ + …: nothing stands on the sum, so a gradient has one way down that nothing alters.
# Post-norm is LayerNorm(LayerNorm(x + change₁) + change₂): each way down leads through all the norms.
# We will measure what this means for a deep stack.


# %%
class OurEncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each in its path."""

    def __init__(self, d_model, num_heads, d_ff, dropout, *, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = OurFeedForward(d_model, d_ff)
        self.self_attn_path = OurResidual(d_model, dropout, norm_first)
        self.feed_forward_path = OurResidual(d_model, dropout, norm_first)

    def forward(self, x, mask=None):
        x = self.self_attn_path(x, lambda x: self.self_attn(x, x, x, mask))
        return self.feed_forward_path(x, self.feed_forward)


# %% [markdown]
# We compare it with the library's and with `torch.nn.TransformerEncoderLayer`, on a short and a long sentence in one padded batch, cut by the tokenizer of the `course` translator.

# %% tags=["nbval-check-output"]
from course_lib import Translator
from course_lib.data import pad
from course_lib.tokenizer import EOS_ID, PAD_ID

translator = Translator.from_pretrained("course")
tokenizer = translator.tokenizer
texts = ["The cat sleeps.", "The old woman gives the child a red apple."]
ids = pad([tokenizer.encode(text) for text in texts])  # (batch, src_len)
real = ids != PAD_ID  # (batch, src_len)
mask = real[:, None, None]  # (batch, 1, 1, keys), as in lesson 05
for row in ids.tolist():
    print(*(tokenizer.token(number) for number in row))

# %% tags=["hide-input"]
from course_lib.checks import copy_into_torch


def output_and_gradient(run):
    leaf = embedded.clone().requires_grad_()
    output = run(leaf)[real]  # (real tokens, d_model)
    return output, torch.autograd.grad(output.square().sum(), leaf)[0]


# %% tags=["hide-input"]
embedded, outputs = random(*ids.shape, 64), {}  # (batch, src_len, d_model)
for norm_first in (False, True):
    layer = OurEncoderLayer(64, 4, 256, 0.1, norm_first=norm_first).double().eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, 0.1, 0.2, generator=torch.Generator().manual_seed(1))
    library_layer = EncoderLayer(64, 4, 256, 0.1, norm_first=norm_first).double().eval()
    library_layer.load_state_dict(layer.state_dict())
    options = dict(norm_first=norm_first, batch_first=True, dropout=0.0)
    torchs = copy_into_torch(layer, nn.TransformerEncoderLayer(64, 4, 256, **options))
    here = output_and_gradient(lambda x, layer=layer: layer(x, mask))
    library = output_and_gradient(lambda x, layer=library_layer: layer(x, mask))
    there = output_and_gradient(lambda x, t=torchs: t(x, src_key_padding_mask=~real))
    outputs[norm_first] = here, library, there
    off = max((here[i] - b[i]).abs().max() for b in (library, there) for i in (0, 1))
    print(f"norm_first={norm_first}: outputs and gradients differ by {off:.0e}")

# %% tags=["hide-input"]
both = [F.layer_norm(outputs[order][0][0], (64,)) for order in (False, True)]
apart_by = (both[0] - both[1]).abs().max()
print(f"even after a norm on both, the two orders differ by up to {apart_by:.1f}")
for here, *others in outputs.values():
    for other in others:
        torch.testing.assert_close(here, other, rtol=1e-9, atol=1e-8)
assert not torch.allclose(*both, rtol=0.1)

# %% [markdown]
# The same function three times, in evaluation mode.
# In training PyTorch's layer differs: it also drops attention weights and hidden units of the feed-forward network, which the paper does not mention.
#
# With the very same weights the two *orders* are two different functions, and the weights of a layer do not say which one they were trained for.
#
# **A common mistake**: pre-norm code beside the paper's post-norm text.
# Both orders exist, so one has to say which: our `EncoderLayer` is post-norm, and pre-norm with `norm_first=True`.
#
# ## The stack
#
# The encoder of section 3.1 is a stack of N = 6 such layers, each with weights of its own.
# Each reads what the one below it wrote, under the same mask.


# %%
class OurEncoder(nn.Module):
    """num_layers layers; pre-norm ends with a sum, and so with one more norm."""

    def __init__(self, num_layers, *sizes, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList(
            OurEncoderLayer(*sizes, norm_first=norm_first) for _ in range(num_layers)
        )
        self.norm = OurLayerNorm(sizes[0]) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)  # (batch, src_len, d_model), in and out
        return self.norm(x)


# %% [markdown]
# With the weights of the translator `course`, which has two pre-norm layers, it makes the same memory:

# %%
encoder = OurEncoder(2, 128, 4, 256, 0.1, norm_first=True).eval()
encoder.load_state_dict(translator.model.encoder.state_dict())
with torch.no_grad():
    embedded_ids = translator.model.src_embedding(ids)
    memory = encoder(embedded_ids, mask)
    off = (memory - translator.model.encode(ids))[real].abs().max()
print(f"embedded {tuple(embedded_ids.shape)}, memory {tuple(memory.shape)}")
print(f"ours and the translator's differ by {off:.0e}")

# %% tags=["hide-input"]
assert off < 1e-5

# %% [markdown]
# src_len × d_model, in and out: that is what lets us stack as many layers as we like.
# The output is the memory of lesson [00](00_welcome.ipynb): one vector for each source token.
#
# ## What is depth good for?
#
# A puzzle that needs no language.
# Eight children draw names, and each gives a present to the child it drew; no name is drawn twice, and a child may draw its own.
# The input has one token for each child: the name that it drew.
# The model must say, at each child's position: *I give to someone; whom does that child give to?*
#
# That takes one **look-up**: go to the position of the child I give to, and read the name there.
# Attention does look-ups: at Ada's position the query is made from the *name* there, Ben, each key from a *position*, each value from the name that stands there. So one layer should be enough.
# Two look-ups in a row go one child further: is one layer enough for them?

# %% tags=["nbval-check-output"]
from course_lib.experiments import CHILDREN, draw_names, look_up

gives_to = draw_names(1, torch.Generator().manual_seed(7))  # (batch, children)
print("child           ", *(f"{child:5}" for child in CHILDREN))
print("gives to        ", *(f"{CHILDREN[i]:5}" for i in gives_to[0]))
for times in (1, 2):
    reached = look_up(gives_to, times)[0]
    print(f"after {times} look-up{'s' if times > 1 else ' '}", end="")
    print("", *(f"{CHILDREN[i]:5}" for i in reached))

# %% [markdown]
# Ada gives to Ben, and Ben to Gil, so after one look-up the answer at Ada's position is Gil.
#
# `Chaser` is a small model for this puzzle: the embedded names with their positions (so it knows at which child it is), a stack of our encoder layers, here pre-norm with 32 features and 4 heads, and at each position a score for each of the eight children, the product with the row of its name.

# %%
of_hops = Predict(
    "Can one layer learn two look-ups in a row, or a layer that is twice as wide?",
    ["both can", "only the wide one can", "neither can"],
    section="What is depth good for?",
)
of_hops

# %%
from course_lib.experiments import Chaser, chased_share, train_chaser

steps = 2400 if device == "cuda" else 800
shares = {}
for num_layers, times in ((1, 1), (1, 2), (2, 2)):
    torch.manual_seed(0)
    chaser = Chaser(num_layers, norm_first=True).to(device)
    train_chaser(chaser, times, rate=3e-3, steps=steps, seed=0)
    shares[num_layers, times] = chased_share(chaser, times)
    print(f"layers: {num_layers}, look-ups: {times}", end="  ")
    print(f"{shares[num_layers, times]:4.0%} right")

# %% tags=["hide-input"]
assert shares[1, 1] > 0.95 and shares[2, 2] > 0.95 and shares[1, 2] < 0.5

# %% [markdown]
# Is that luck, or a bad learning rate?
# A longer experiment, recorded by `python -m course_lib.experiments depth`, has three seeds, 1,200 steps, for each model the better of two rates, and also a layer with twice the d_model.

# %%
from course_lib.experiments import final_results, read_record

record = read_record("records/depth.json")
accuracy = final_results(record, "accuracy")  # side to three seeds
far = ("one layer", "one layer, twice as wide", "two layers")
for name in far:
    print(f"{name:26}", *(f"{share:4.0%}" for share in accuracy[name]))
able = sum(max(accuracy[name]) > 0.6 for name in far[:2])
of_hops.reveal(["neither can", "only the wide one can", "both can"][able])

# %% tags=["hide-input"]
assert able == 0 and min(accuracy["two layers"]) > 0.95
many = draw_names(20_000, torch.Generator().manual_seed(0))
own_name, told_once = torch.arange(len(CHILDREN)), look_up(many, 1)
guess = torch.where(told_once == own_name, many, own_name)  # in circles of two
assert abs((guess == look_up(many, 2)).float().mean() - 3 / 8) < 0.01
assert max(accuracy[far[0]] + accuracy[far[1]]) < 3 / 8 + 0.01

# %% [markdown]
# One layer gets about a third right, with twice the width too.
# Without any look-up, one's own name is right in a quarter of the cases: in circles of one and of three children.
# Who knows the first look-up only could get 3/8: circles of one and of two are settled, a quarter again, and in the others six names are equally likely, 3/4 · 1/6.
# The second look-up must start where the first one ended, but within one layer all queries are made before anything has been looked up.
# (Several heads could gather all the names, for the feed-forward network to work on; training did not find that.)
# So depth is not more of the same: a layer can ask about what the layer below has found.
# For long inputs it can even be proved that a single layer cannot compose two functions, unless it is very wide [@peng2024]; our eight children are too few for the proof, so this is a result of training.
#
# ## How deep can we go?
#
# If two layers do more than one, why not 24?
# Residuals and norms are there for depth, so we see what happens without them.
# We look at four things: the gradient at every depth, how different the tokens stay, the gradients of the parameters, and what the model learns.
#
# `Switched` is the path around a sub-layer with a switch for each part (and no dropout).


# %%
class Switched(nn.Module):
    """The path around one sub-layer; norm is "", "pre" or "post"."""

    def __init__(self, d_model, residual, norm):
        super().__init__()
        self.residual, self.place = residual, norm
        self.norm = LayerNorm(d_model) if norm else nn.Identity()

    def forward(self, x, sublayer):
        change = sublayer(self.norm(x) if self.place == "pre" else x)
        total = x + change if self.residual else change
        return self.norm(total) if self.place == "post" else total


# %%
def build(num_layers, residual, norm, seed):
    """A chaser with such paths."""
    torch.manual_seed(seed)
    model = Chaser(num_layers, norm_first=norm == "pre")
    for layer in model.encoder.layers:
        layer.self_attn_path = Switched(32, residual, norm)
        layer.feed_forward_path = Switched(32, residual, norm)
    return model


# %% [markdown]
# We measure with random answers, and this is a choice.
# In the puzzle each name is the answer exactly once; where all tokens are alike, most of the gradient would cancel, and tokens that merge would look like a gradient that vanishes.

# %%
draws = draw_names(16, torch.Generator().manual_seed(1))
answers = torch.randint(8, draws.shape, generator=torch.Generator().manual_seed(2))


def loss_of(logits):
    return F.cross_entropy(logits.flatten(0, 1), answers.flatten())


def through_the_stack(num_layers, residual, norm, seed):
    """Vectors at every depth, and the gradients that reach them."""
    model = build(num_layers, residual, norm, seed).double()
    vectors = [model.embedding(draws)]  # (batch, children, d_model)
    for layer in model.encoder.layers:
        vectors.append(layer(vectors[-1]))
    logits = model.encoder.norm(vectors[-1]) @ model.embedding.table.weight.T
    gradients = torch.autograd.grad(loss_of(logits), vectors)
    return [each.detach() for each in vectors], gradients


# %% [markdown]
# ### The gradient at every depth, before training
#
# 24 layers, five ways to build them, three seeds.
# We send a batch up and the gradient of its loss back down, and record the **gradient norm** at each depth.

# %%
of_bottom = Predict(
    "In which stack is the gradient at the bottom weakest, compared with the top?",
    ["neither", "residual only", "norm only"]
    + ["residual, post-norm", "residual, pre-norm"],
    section="The gradient at every depth, before training",
)
of_bottom

# %%
WAYS = {
    "neither": (False, ""),
    "residual only": (True, ""),
    "norm only": (False, "pre"),
    "residual, post-norm": (True, "post"),
    "residual, pre-norm": (True, "pre"),
}

# %%
depth, seeds = 24, range(3)
runs = {
    name: [through_the_stack(depth, *way, seed) for seed in seeds]
    for name, way in WAYS.items()
}
gradient_norm = {
    name: torch.tensor([[each.norm() for each in gradients] for _, gradients in run])
    for name, run in runs.items()
}  # (seeds, depth + 1) each
ratios = {name: (norms[:, 0] / norms[:, -1]) for name, norms in gradient_norm.items()}
for name, ratio in ratios.items():
    print(f"{name:20} bottom / top: {ratio.min():.0e} to {ratio.max():.0e}")
of_bottom.reveal(min(ratios, key=lambda name: ratios[name].max()))

# %% tags=["hide-input"]
title = "The gradient vanishes with neither, and explodes with residuals alone"
x_axis = dict(xlabel="layers passed (0 = the embedding)", log_y=True)
series = {name: (range(depth + 1), norms) for name, norms in gradient_norm.items()}
curves(series, ylabel="gradient norm", title=title, **x_axis)

# %% tags=["hide-input"]
assert (ratios["neither"] < 5e-4).all() and (ratios["residual only"] > 1e4).all()
for name in ("norm only", "residual, post-norm", "residual, pre-norm"):
    assert ((1 / 15 < ratios[name]) & (ratios[name] < 15)).all()
of_post = ratios["residual, post-norm"]
assert 0.3 < of_post.min() < of_post.max() < 0.8

# %% [markdown]
# Lines are means over the seeds, bands reach from the smallest to the largest.
# The gradient travels from right to left.
# With neither, almost nothing arrives at the bottom: the **vanishing gradient**.
# With residuals alone it explodes: each sub-layer adds an amount in proportion to its input, so vectors grow by a factor from layer to layer, and so do gradients on the way back.
# With a norm it changes by a factor of about twelve at most. Post-norm's way through 48 norms costs it only about half: its trouble is not here.
#
# Try other depths and other weights.

# %% tags=["hide-input"]
from course_lib.widgets import DepthExplorer

explorer = DepthExplorer(through_the_stack, depth=depth)
explorer

# %% tags=["hide-input"]
from course_lib.checks import written_for

shown = torch.tensor(explorer.view["gradients"], dtype=torch.double)
now = explorer.depth, explorer.residual, explorer.norm, explorer.seed
with written_for((depth, True, "pre", 0), now):
    torch.testing.assert_close(shown, gradient_norm["residual, pre-norm"][0].double())

# %% [markdown]
# ### A healthy gradient is not enough
#
# A stack can pass gradients on and still lose its information.
# So we ask how different the tokens of a sequence still are.
# We subtract their mean from all vectors, and call what is left of their length the **own share**: near 0, all tokens have the same vector.

# %%
of_collapse = Predict(
    "With residuals *and* norms, 24 layers: which stack's tokens become one vector?",
    ["post-norm's", "pre-norm's", "both", "neither"],
    section="A healthy gradient is not enough",
)
of_collapse

# %%
from course_lib.experiments import own_share

own = {
    name: torch.tensor([[own_share(x) + 1e-17 for x in vectors] for vectors, _ in run])
    for name, run in runs.items()
}  # (seeds, depth + 1) each
for name, share in own.items():
    print(f"{name:20} own share at the top: {share[:, -1].mean():.2g}")
post, pre = own["residual, post-norm"][:, -1], own["residual, pre-norm"][:, -1]
gone = [name for name, top in (("post", post), ("pre", pre)) if top.max() < 0.01]
told = {0: "neither", 1: f"{gone[0]}-norm's" if gone else "", 2: "both"}[len(gone)]
of_collapse.reveal(told)

# %% tags=["hide-input"]
title = "Without residuals tokens merge at once, in post-norm layer by layer"
series = {name: (range(depth + 1), share) for name, share in own.items()}
curves(series, ylabel="own share", title=title, **x_axis)

# %% tags=["hide-input"]
assert all((own[name][:, 10:] < 1e-12).all() for name in ("neither", "norm only"))
assert gone == ["post"] and (post < 2e-3).all() and (pre > 0.1).all()
falls = own["residual, post-norm"]
per_layer = (falls[:, 24] / falls[:, 4]) ** 0.05
assert ((0.65 < per_layer) & (per_layer < 0.8)).all()

# %% [markdown]
# Attention contributes: each layer replaces the tokens by averages over all of them, and averages of averages soon agree.
# Without residuals five layers are enough to make all tokens equal, down to rounding (**rank collapse** [@dong2021]).
#
# Residuals carry each token's own vector past every averaging step, and one often reads that this solves the problem.
# In pre-norm they slow it down: more than a tenth is left.
# For post-norm it does not: after 24 layers less than a thousandth is left, and residuals alone do little better.
# Why?
# Let us see how much a layer changes its input.

# %%
for name in ("residual only", "residual, post-norm", "residual, pre-norm"):
    vectors = runs[name][0][0]  # below each layer: (batch, tokens, d_model)
    for layer in (0, 23):
        change = vectors[layer + 1] - vectors[layer]
        by = change.norm() / vectors[layer].norm()
        print(f"{name:20} layer {layer:2} changes x by {by:.0%},", end=" ")
        print(f"the change's own share is {own_share(change):.2f}")

# %% tags=["hide-input"]
for name, ends_small in (("residual only", False), ("residual, pre-norm", True)):
    for vectors, _ in runs[name]:
        steps_up = [(vectors[n - 1], vectors[n]) for n in (1, 24)]
        moves = [(after - before).norm() / before.norm() for before, after in steps_up]
        assert (moves[-1] < 0.5 * moves[0]) == ends_small

# %% [markdown]
# In pre-norm the sum grows while what a sub-layer adds keeps its size, so the top layer changes it far less than the first.
# In the other two, each layer adds a fixed proportion. And what it adds is much the same for every token: attention adds averages, and a network gives similar vectors similar answers. So the common part grows, and in post-norm each layer leaves about 0.7 of the own share.
#
# ### What the parameters get
#
# Training moves parameters, not vectors, so we need *their* gradients too.
# We take two matrices of each layer: W₂, the last one of the feed-forward network, and W_Q, which makes the queries of attention.
# If all tokens are nearly one vector, which of the two still gets a gradient?


# %%
def matrix_gradients(order, seed):
    """Gradient norms of two matrices, layer by layer."""
    model = build(depth, True, order, seed).double()
    loss_of(model(draws)).backward()
    layers = model.encoder.layers
    return {
        "W₂": [each.feed_forward.down.weight.grad.norm() for each in layers],
        "W_Q": [each.self_attn.query_proj.weight.grad.norm() for each in layers],
    }


# %%
parameter_gradient = {}  # (seeds, depth) each
for order in ("post", "pre"):
    found = [matrix_gradients(order, seed) for seed in seeds]
    for name in ("W₂", "W_Q"):
        norms = torch.tensor([of_seed[name] for of_seed in found])
        parameter_gradient[f"{name}, {order}-norm"] = norms
        bottom, top = norms.mean(dim=0)[[0, -1]]
        print(f"{name:4}{order + '-norm':10}", end=" ")
        print(f"layer 0: {bottom:.1g}, layer {depth - 1}: {top:.1g}")

# %% tags=["hide-input"]
title = "At the top, post-norm's gradient is large for W₂, near 0 for W_Q"
series = {n: (range(depth), each) for n, each in parameter_gradient.items()}
labels = dict(xlabel="layer", ylabel="gradient norm of the matrix", title=title)
curves(series, **labels, log_y=True)

# %% tags=["hide-input"]
last = {name: norms[:, -1] for name, norms in parameter_gradient.items()}
assert (last["W₂, post-norm"] > 2 * last["W₂, pre-norm"]).all()
assert (last["W_Q, post-norm"] < 1e-5).all() and (last["W_Q, pre-norm"] > 1e-3).all()

# %% [markdown]
# W_Q gets almost none: among equal tokens it makes no difference where a query looks, and at the top of post-norm its gradient is below 10⁻⁵.
# W₂'s does not need the tokens to differ: there it is several times as large as pre-norm's, as @xiong2020 predict. But from equal tokens W₂ can learn only one answer for all.
# (Our optimizer, Adam, makes steps of similar size out of small gradients too. So this tells of a bad start, and does not prove that nothing can be learned.)
#
# ### Which rate lets it learn?
#
# Now we train, but six layers only, as many as the paper has, on one look-up, which a single layer learns.
# First at one learning rate: without residuals, then with them in both orders.

# %%
@torch.no_grad()
def share_at_top(model):
    return own_share(model.encode(draws.to(device)))


trained = {}
for name, way in (
    ("no residuals, pre-norm", (False, "pre")),
    ("residuals, post-norm", (True, "post")),
    ("residuals, pre-norm", (True, "pre")),
):
    trained[name] = build(6, *way, seed=0).to(device)
    print(f"{name:24}own share {share_at_top(trained[name]):.1g}", end=", ")
    train_chaser(trained[name], 1, rate=3e-3, steps=300, seed=0)
    print(f"after training {share_at_top(trained[name]):.1g}", end=", ")
    print(f"{chased_share(trained[name], 1):.0%} right")

# %% tags=["hide-input"]
tops = [share_at_top(each) for each in trained.values()]
rights = [chased_share(each, 1) for each in trained.values()]
assert max(rights[:2]) < 0.5 < 0.95 < rights[2] and max(tops[:2]) < 0.1 < tops[2]

# %% [markdown]
# Six post-norm layers start with an own share of about 0.1, and *training* takes most of that away. From vectors that are almost equal come answers that are almost equal, so it can only guess.
# Is it the rate?
# The recorded experiment has three rates, three seeds, and each order also with a warm-up (lesson [09](09_training.ipynb)): the rate grows from 0 during the first 100 of 300 steps (the paper takes 4,000 steps, section 5.3).

# %%
of_rates = Predict(
    "At how many of the rates 0.001, 0.003 and 0.01 does post-norm learn *without* "
    "warm-up: over 80 % right with each of three seeds?",
    section="Which rate lets it learn?",
)
of_rates

# %% tags=["hide-input"]
rates = (0.001, 0.003, 0.01)
ways = ("post-norm", "post-norm, warm-up", "pre-norm", "pre-norm, warm-up")
table = {way: [accuracy[f"{way}, {rate:g}"] for rate in rates] for way in ways}
print(" " * 20, *(f"rate {rate:<8g}" for rate in rates))
for way, shares in table.items():
    print(f"{way:20}", *(" ".join(f"{x:4.0%}" for x in seeds_) for seeds_ in shares))
learns = [min(shares) > 0.8 for shares in table["post-norm"]]
of_rates.reveal(sum(learns))

# %% tags=["hide-input"]
either = [a + b for a, b in zip(table[ways[2]], table[ways[3]], strict=True)]
drawn = {way: table[way] for way in ways[:2]} | {"pre-norm, with or without": either}
series = {way: (rates, torch.tensor(shares).T) for way, shares in drawn.items()}
title = "Post-norm learns at the smallest rate; a warm-up allows a larger one"
labels = dict(xlabel="learning rate", ylabel="share of right answers", title=title)
curves(series, **labels, log_x=True)

# %% tags=["hide-input"]
assert learns == [True, False, False]
assert min(min(shares) for way in ways[2:] for shares in table[way]) > 0.9
warm = table["post-norm, warm-up"]
assert min(warm[0] + warm[1]) > 0.7 and min(warm[1]) > 0.95 and max(warm[2]) < 0.5
collapsed = final_results(record, "own_share")
assert max(collapsed["post-norm, 0.01"]) < 0.01
assert max(collapsed["post-norm, warm-up, 0.01"]) < 0.05
assert min(min(collapsed[f"post-norm, warm-up, {rate}"]) for rate in rates[:2]) > 0.7
assert min(collapsed["post-norm, 0.001"]) > 0.9
at_middle = zip(table["post-norm"][1], collapsed["post-norm, 0.003"], strict=True)
late, *stuck = sorted(at_middle, reverse=True)
assert late[0] < 0.5 < 0.7 < late[1]
assert all(share < 0.2 and x < 0.01 for share, x in stuck)
assert sum(warm[0]) < sum(table["post-norm"][0])

# %% [markdown]
# So it *is* the rate, together with the order of norm and sum.
# At the smallest rate post-norm learns, and within these 300 steps a warm-up costs it more than it brings.
# At three times that rate, two seeds of three only guess, and the third gets only part of the way; with a warm-up all three learn. (In the record, all seeds that guess end with an own share below 0.05, all others above 0.7.)
# At ten times it fails with and without.
# A warm-up does not make post-norm robust, but it allows a larger rate; the paper's six post-norm layers were trained with one.
# Pre-norm learns at every rate here without a warm-up.
# Lesson [09](09_training.ipynb) tries larger rates, and the whole model.
#
# ### Does pre-norm need a final norm?
#
# Post-norm ends with a norm.
# Pre-norm ends with a sum, so implementations, ours too, add one more norm after the last layer.
# What happens without it?

# %%
first_loss = final_results(record, "first_loss")
for name in ("pre-norm", "pre-norm, no final norm"):
    at_start = [loss for rate in rates for loss in first_loss[f"{name}, {rate:g}"]]
    print(f"{name:24} loss before step 1: {min(at_start):.1f} to {max(at_start):.1f}")
    for rate in rates:
        got = accuracy[f"{name}, {rate:g}"]
        print(f"{'':8}rate {rate:<8g}", *(f"{share:4.0%}" for share in got))
print(f"guessing costs ln 8 = {math.log(8):.1f}")

# %% tags=["hide-input"]
bare = first_loss["pre-norm, no final norm, 0.001"]
for without, with_norm in zip(bare, first_loss["pre-norm, 0.001"], strict=True):
    assert without > 1.4 * with_norm and without > 1.5 * math.log(8)
for rate in rates:
    assert min(accuracy[f"pre-norm, no final norm, {rate:g}"]) > 0.9

# %% [markdown]
# Without it the loss starts well above that of guessing, because the sum has grown, and the scores with it.
# But it learns all the same, at each of the rates, and about as well as with the norm.
# So "need" is too strong: the final norm gives a better start, and here that is all.
#
# ## What a stack does to "it"
#
# Back to language: the translator `course`, with two pre-norm layers.
# We need a word whose translation depends on another word.

# %% tags=["nbval-check-output"]
cat_text = "The cat eats the meat because it is hungry."
dog_text = "The dog eats the meat because it is hungry."
for text in (cat_text, dog_text):
    print(translator.translate(text))

# %% [markdown]
# The cat is *sie*, the dog is *er*, because the noun *Katze* is feminine and *Hund* is masculine.
# The two English sentences have the same *it* at the same place.
# `stations` keeps the vectors after each sub-layer: where do the two of *it* come apart?

# %% tags=["hide-input"]
@torch.no_grad()
def stations(text):
    """Name of each station to the vectors there, (src_len, d_model)."""
    model = translator.model
    x = model.src_embedding(torch.tensor([tokenizer.encode(text) + [EOS_ID]]))
    found = {"embedded": x[0]}
    for number, layer in enumerate(model.encoder.layers):
        x = layer.self_attn_path(x, lambda x, attn=layer.self_attn: attn(x, x, x))
        found[f"self-attention {number}"] = x[0]
        x = layer.feed_forward_path(x, layer.feed_forward)
        found[f"feed-forward {number}"] = x[0]
    return found | {"memory": model.encoder.norm(x)[0]}

# %%
cat, dog = stations(cat_text), stations(dog_text)
apart = {
    name: (cat[name] - dog[name]).norm(dim=-1) / cat[name].norm(dim=-1) for name in cat
}  # (src_len,) each
words = [token.strip("▁") for token in tokenizer.tokens(cat_text)] + ["</s>"]
it = words.index("it")
for name, distance in apart.items():
    print(f"{name:17} the vectors of “it” are {distance[it]:.0%} of their length apart")

# %% tags=["hide-input"]
others = [position for position in range(len(words)) if words[position] != "cat"]
values = torch.stack([apart[name][others] for name in apart])  # (stations, words)
columns = [words[position] for position in others]
title = "The cat or the dog: the difference spreads to “The” and to “it”"
shares_of = {"weights": "difference, as a share of the vector"}
drawn = [Panel(values, list(apart), columns, "", "weights", "token", "after")]
panels(drawn, title=title, words=shares_of)

# %% tags=["hide-input"]
assert "weil sie" in translator.translate(cat_text).text
assert "weil er" in translator.translate(dog_text).text
assert (apart["embedded"][others] == 0).all()
by_size = sorted(others, key=lambda position: -apart["memory"][position])
assert {words[position] for position in by_size[:2]} == {"The", "it"}
assert apart["memory"][it] > 3 * apart["feed-forward 0"][it]

# %% [markdown]
# At the embedding all other words are equal, to the last bit.
# In the memory two differ most: *it*, which must become *sie* or *er*, and *The*, which must become *die* or *der*.
# For both that happens in layer 1, the second one.
# For *it* this fits the puzzle of the children: a layer has to find out what to look for before another can look it up.
# But *The* needs only its neighbor *cat*, one look-up, and is as late. So from *when* a vector changes one cannot tell how many steps its task takes.

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **sub-layers**: the parts of a layer that have a path of their own, in the encoder self-attention and the feed-forward network.
# - **feed-forward network**: two linear layers with a ReLU between them, the same at each position.
# - **residual connection**: x + sublayer(x), a way around a sub-layer for vectors and gradients.
# - **layer normalization**: mean 0 and variance 1 for each token over its features, then a learned scale and shift.
# - **batch normalization**: the same for each feature over all tokens of the batch.
# - **dropout**: setting numbers to 0 at random in training; the others are divided by 1 − p.
# - **post-norm**: the norm after the sum, LayerNorm(x + Sublayer(x)), as in the paper.
# - **pre-norm**: the norm before the sub-layer, x + Sublayer(LayerNorm(x)).
# - **look-up**: reading at one position what stands at another.
# - **gradient norm**: the length of a gradient, as one vector.
# - **vanishing gradient**: one that shrinks from layer to layer on its way down.
# - **own share**: the share of the vectors' length that is left when the mean over the tokens is subtracted.
# - **rank collapse**: all tokens of a sequence becoming one and the same vector.

# %% [markdown]
# ## Summary
#
# An encoder layer is self-attention, where tokens meet, and a feed-forward network, which works on each of them alone; around each is a path of dropout, residual and layer norm.
# The feed-forward network goes up to d_ff, through a ReLU, and back down; it holds two thirds of the layer.
# Layer normalization is per token and over features, with the biased variance and ε under the root; post-norm puts it after the sum, pre-norm before the sub-layer, and these are different functions.
# Depth lets a layer ask about what the layer below has found: two look-ups in a row took two layers.
# A healthy gradient is not enough: a deep post-norm stack starts with nearly the same vector for all tokens. Six such layers learned at the smallest rate, at three times that rate only with a warm-up, and at ten times not at all; pre-norm learned at all three.
#
# **Practice**: [assignment 06](assignments/release/06_encoder/06_encoder.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [07](07_decoder.ipynb) builds the decoder, which reads this memory and writes a sentence.
