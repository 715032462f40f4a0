# %% [markdown]
# # 06 · The encoder: one layer, many layers
#
# **Question.** Attention lets tokens look at each other. What else does an encoder layer need, so that many of them can stand on top of each other and still learn?
#
# **Afterwards you can**
#
# 1. build an encoder layer from attention, a feed-forward network, residuals, layer normalization and dropout;
# 2. say what each of them does to one token, and which of them lets tokens meet;
# 3. see from two numbers, before any training, how a deep stack can fail.
#
# **You need** multi-head attention and the padding mask (lessons [04](04_multi_head.ipynb) and [05](05_masks.ipynb)).
# **Time**: 35 minutes to read, under a minute to run.
# **In the paper**: sections 3.1 and 3.3, equation 2, and residual dropout in section 5.4.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"


def assert_same(ours, theirs):
    """Equal to nine digits."""
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


# %% [markdown]
# ## A network for each position
#
# *The cat sleeps .* are four tokens.
# Attention lets them look at each other; then each one is worked on alone, by a **feed-forward network**.
# Section 3.3 writes it as max(0, x W₁ + b₁) W₂ + b₂.
# In the paper d_model is 512 and d_ff is 2048.
# We keep the same factor of four and take numbers that fit on the screen.

# %% tags=["nbval-check-output"]
tokens = ["The", "cat", "sleeps", "."]
d_model, d_ff = 8, 32
generator = torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


x = random(len(tokens), d_model)  # (src_len, d_model)
w1, b1 = random(d_model, d_ff), random(d_ff)
w2, b2 = random(d_ff, d_model), random(d_model)
hidden = torch.relu(x @ w1 + b1)  # (src_len, d_ff)
out = hidden @ w2 + b2  # (src_len, d_model)
print(tuple(x.shape), "up to", tuple(hidden.shape), "down to", tuple(out.shape))

# %% [markdown]
# **A common mistake**: "it projects from d_ff to d_model, and then down again".
# The shapes say it: W₁ goes *up* to d_ff, W₂ comes back *down*.
# Each of the two has its own bias, b₁ and b₂.
# (And it is an MLP, a multi-layer perceptron. Notes that call it an "NLP" have a typing error.)
#
# ### In a loop
#
# What does one token go through?
# We write it with one number at a time.


# %%
def feed_forward_loop(x):
    """(src_len, d_model) to (src_len, d_model), position after position."""
    rows = []
    for vector in x:  # one token
        row = b2.tolist()
        for unit in range(d_ff):
            total = b1[unit].item()
            for feature in range(d_model):
                total += vector[feature].item() * w1[feature, unit].item()
            if total > 0:  # the ReLU: otherwise this unit adds nothing
                for feature in range(d_model):
                    row[feature] += total * w2[unit, feature].item()
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


assert_same(feed_forward_loop(x), out)

# %% [markdown]
# Equal to the two matrix products above.
# Now the finished module.
# `nn.Linear` keeps its matrix transposed, as (outputs, inputs), so we copy W₁ and W₂ transposed.

# %%
from course_lib.blocks import FeedForward

feed_forward = FeedForward(d_model, d_ff).double()
with torch.no_grad():
    feed_forward.up.weight.copy_(w1.T)
    feed_forward.up.bias.copy_(b1)
    feed_forward.down.weight.copy_(w2.T)
    feed_forward.down.bias.copy_(b2)
    assert_same(feed_forward(x), out)

# %% [markdown]
# ### Identically and separately
#
# The paper says that the network is applied "to each position separately and identically".
# *Identically*: all positions share the same W₁, b₁, W₂ and b₂.
# (Not "the same weights for all weights", as one can read.)
# So what happens to the outputs if we shuffle the tokens?

# %% tags=["nbval-check-output"]
order = [2, 0, 3, 1]
print("in:   ", [tokens[position] for position in order])
with torch.no_grad():
    shuffled = feed_forward(x[order])
matches = [(shuffled[row] - out).abs().sum(dim=-1).argmin().item() for row in range(4)]
print("out of", [tokens[position] for position in matches])
assert_same(shuffled, out[order])

# %% [markdown]
# The outputs are shuffled in the same way, and not changed.
#
# *Separately*: no position sees another one.
# Predict: we replace the vector of *cat*. Which outputs change, and by how much do the others?

# %% tags=["nbval-check-output"]
changed = x.clone()
changed[1] = random(d_model)
with torch.no_grad():
    difference = feed_forward(changed) - feed_forward(x)  # (src_len, d_model)
difference = difference.abs().sum(dim=-1)  # (src_len,)
for token, number in zip(tokens, difference.tolist(), strict=True):
    print(f"{token:7}", "changed" if number else "exactly as before")
assert difference[1] > 0.1
assert (difference[[0, 2, 3]] == 0).all()

# %% [markdown]
# Only *cat* changes; the other differences are exactly zero, not nearly.
# We ask the same of every pair of positions at once, with gradients.
# How strongly does the output at one position depend on the input at another?
# Self-attention is our comparison.


# %%
from course_lib.attention import MultiHeadAttention


def influence(function, x):
    """(src_len, src_len): size of the gradient of each output position (row)."""
    # (output position, feature, input position, feature)
    jacobian = torch.autograd.functional.jacobian(function, x)
    return jacobian.square().sum(dim=(1, 3)).sqrt()


torch.manual_seed(0)
self_attn = MultiHeadAttention(d_model, num_heads=2).double()
with_others = influence(lambda x: self_attn(x[None], x[None], x[None])[0], x)
alone = influence(feed_forward, x)
off_diagonal = ~torch.eye(4, dtype=torch.bool)
assert (with_others > 0).all()
assert (alone[off_diagonal] == 0).all() and (alone.diagonal() > 0).all()

# %%
from course_lib.figures import Panel, panels

axes = dict(rows=tokens, columns=tokens, xlabel="input at", ylabel="output at")
axes["kind"] = "weights"  # numbers from 0 to 1
figure = panels(
    [
        Panel(with_others / with_others.max(), name="self-attention", **axes),
        Panel(alone / alone.max(), name="feed-forward network", **axes),
    ],
    title="In self-attention every token reaches every token, "
    "in the feed-forward network only itself",
    words={"weights": "influence (1 = the largest)"},
)
shown = figure.axes[1].images[0].get_array()
assert (shown[off_diagonal.numpy()] == 0).all() and shown.max() == 1
figure

# %% [markdown]
# Each panel is divided by its largest number.
# So the two sub-layers share the work: attention carries things *between* tokens, the feed-forward network works on what each token has.
#
# ### The paper's other description
#
# Section 3.3 adds: "two convolutions with kernel size 1".
# A convolution slides over positions, and a kernel of size 1 sees one position at a time.
# Is that the same function?

# %%
sentence = x.T[None]  # (batch, d_model, src_len), as convolutions want it
inner = F.conv1d(sentence, w1.T[:, :, None], b1).relu()  # (batch, d_ff, src_len)
convolved = F.conv1d(inner, w2.T[:, :, None], b2)  # (batch, d_model, src_len)
assert_same(convolved[0].T, out)

# %% [markdown]
# It is.
#
# ### Why the ReLU?
#
# Up to 32 and back down to 8: are 32 hidden units worth more than none?
# Without the ReLU, what are two matrices in a row?

# %%
w, b = w1 @ w2, b1 @ w2 + b2  # (d_model, d_model) and (d_model,)
assert_same((x @ w1 + b1) @ w2 + b2, x @ w + b)
assert not torch.allclose(out, x @ w + b, rtol=0.1)
print(f"{w1.numel() + w2.numel()} weights do the work of {w.numel()}")

# %% [markdown]
# One matrix, and a small one: no d_ff, however large, would help.
# The ReLU switches hidden units off, and for each token others.

# %%
on = hidden > 0  # (src_len, d_ff)
for token, units in zip(tokens, on, strict=True):
    print(f"{token:7}", "".join("█" if unit else "·" for unit in units.tolist()))
assert len({tuple(units.tolist()) for units in on}) == len(tokens)
for token, units in enumerate(on):
    matrix, bias = (w1 * units) @ w2, (b1 * units) @ w2 + b2  # without those off
    assert_same(x[token] @ matrix + bias, out[token])

# %% [markdown]
# So each token gets one matrix again, but a matrix of its own, made of the units that are on for it.
#
# ### What it costs
#
# The feed-forward network looks like the small brother of attention.
# How many parameters of one layer of the paper's base model does it hold?

# %% tags=["nbval-check-output"]
from course_lib.blocks import EncoderLayer

with torch.device("meta"):  # shapes, without memory
    base_layer = EncoderLayer(d_model=512, num_heads=8, d_ff=2048, dropout=0.1)
counts = {
    name: sum(parameter.numel() for parameter in part.parameters())
    for name, part in base_layer.named_children()
}
for name, count in counts.items():
    print(f"{name:18}{count:10,}")
assert 1.99 < counts["feed_forward"] / counts["self_attn"] < 2

# %% [markdown]
# Two thirds of a layer are its feed-forward network.
# The two *paths* are what comes next; their few parameters belong to the norms.
#
# ## Residuals: learn the difference
#
# Section 3.1 puts a **residual connection** around each sub-layer: x + sublayer(x).
# The sub-layer does not have to say the whole new vector.
# It says what to add to the old one.
#
# Predict: what does a path compute whose sub-layer answers 0?

# %%
silent = FeedForward(d_model, d_ff).double()
nn.init.zeros_(silent.down.weight)
nn.init.zeros_(silent.down.bias)
assert torch.equal(x + silent(x), x)
assert (silent(x) == 0).all()

# %% [markdown]
# With the residual, a sub-layer that says nothing passes its input on untouched.
# Without it, the same sub-layer wipes the sentence out.
# So it only has to learn the *difference* between its input and its output.
#
# The same holds on the way back.
# A sum hands its gradient to both parts, so the gradient that arrives at x has two parts too.

# %%
leaf = x.clone().requires_grad_()
upstream = random(4, d_model)  # the gradient that comes from above
with_residual, = torch.autograd.grad(leaf + feed_forward(leaf), leaf, upstream)
without_residual, = torch.autograd.grad(feed_forward(leaf), leaf, upstream)
through_silent, = torch.autograd.grad(leaf + silent(leaf), leaf, upstream)
assert_same(with_residual, upstream + without_residual)
assert torch.equal(through_silent, upstream)

# %% [markdown]
# What comes from above arrives below *unchanged*, plus what the sub-layer adds.
# There is a second road, around every sub-layer.
# What that does to the gradient in a deep stack, we measure below.
#
# A sum needs equal widths.
# That is why every sub-layer of the model, and the embedding, produces d_model numbers (section 3.1).
#
# ## Layer normalization
#
# A sum of many parts grows; we shall see how much.
# So each sum is **normalized**: every token's features get mean 0 and variance 1, and then a learned scale and shift for each feature.
# We give our four tokens very different sizes, to see something.

# %%
sizes = torch.tensor([[0.3], [1.0], [2.0], [4.0]], dtype=torch.float64)
uneven = x * sizes + 3 * random(4, 1)  # (src_len, d_model)
scale, shift = 1 + 0.5 * random(d_model), 0.5 * random(d_model)
eps = 1e-5


def layer_norm_loop(x, scale, shift):
    """(src_len, d_model) to (src_len, d_model), token after token."""
    rows = []
    for vector in x.tolist():
        mean = sum(vector) / len(vector)
        variance = sum((number - mean) ** 2 for number in vector) / len(vector)
        rows.append([(number - mean) / math.sqrt(variance + eps) for number in vector])
    return torch.tensor(rows, dtype=torch.float64) * scale + shift


# %% [markdown]
# Three things are easy to overlook here.
# The mean and the variance are those of *one token*, over its features.
# The variance divides by the number of features, not by one less.
# And a small ε stands *under the root*.
#
# Vectorized, from the library, and PyTorch's own: four times the same?

# %%
from course_lib.blocks import layer_norm


def normalize(x):
    """Mean 0 and variance 1 for each token, before scale and shift."""
    centered = x - x.mean(dim=-1, keepdim=True)
    variance = centered.square().mean(dim=-1, keepdim=True)  # (src_len, 1)
    return centered / torch.sqrt(variance + eps)


by_hand = layer_norm_loop(uneven, scale, shift)
assert_same(normalize(uneven) * scale + shift, by_hand)
assert_same(layer_norm(uneven, scale, shift), by_hand)
assert_same(F.layer_norm(uneven, (d_model,), scale, shift), by_hand)

# %%
axes = dict(rows=tokens, columns=list("01234567"), xlabel="feature")
figure = panels(
    [
        Panel(uneven, name="before", **axes),
        Panel(normalize(uneven), name="mean 0, variance 1", **axes),
        Panel(by_hand, name="after scale and shift", **axes),
    ],
    title="Layer normalization makes all tokens equally loud",
    words={"signed": "value of the feature"},
)
loud, even = (each.var(dim=-1, correction=0) for each in (uneven, normalize(uneven)))
assert loud.max() > 25 * loud.min()
assert normalize(uneven).mean(dim=-1).abs().max() < 1e-9
torch.testing.assert_close(even, torch.ones_like(even), rtol=1e-3, atol=0)
figure

# %% [markdown]
# Does anything get lost on the way?
# Predict what the norm makes of 3 x + 5.

# %%
other = 3 * uneven + 5
torch.testing.assert_close(normalize(other), normalize(uneven), rtol=1e-3, atol=0)
assert not torch.allclose(other, uneven, rtol=0.5)

# %% [markdown]
# The same (up to ε): a token's overall level and size are forgotten.
# That is the price, and the purpose.
#
# **A common mistake**: `x.std()` in a hand-written norm.
# PyTorch's `std` and `var` divide by one less than the number of features, unless you say otherwise.
# How much does that change?

# %%
for width in (8, 512):
    vector = random(width)
    unbiased = (vector - vector.mean()) / vector.std()
    biased = F.layer_norm(vector, (width,), eps=0)
    ratio = (unbiased / biased).mean().item()
    print(f"{width:4} features: every number is {ratio:.4f} of what it should be")
    assert math.isclose(ratio, math.sqrt((width - 1) / width), rel_tol=1e-9)

# %% [markdown]
# At 512 features it is a tenth of a percent: easy to miss, and enough to fail a comparison to nine digits.
#
# **A common mistake**: the formula γ x̂ + β with x̂ = (x − μ) / σ, and no ε.
# What happens to a token whose features are all equal?

# %% tags=["nbval-check-output"]
constant = torch.full((d_model,), 3.0, dtype=torch.float64)
without_eps = (constant - constant.mean()) / constant.std(correction=0) * scale + shift
print("without ε:", without_eps[:3].tolist())
with_eps = layer_norm(constant, scale, shift)
print("with ε: the shift,", torch.equal(with_eps, shift))
assert without_eps.isnan().all() and torch.equal(with_eps, shift)

# %% [markdown]
# 0 / 0 is not a number.
# With ε the token becomes the shift.
#
# ### It is not batch normalization
#
# Batch normalization takes mean and variance over all tokens of the batch, one feature at a time.
# Then a sentence's result depends on the sentences that happen to be in its batch.
# We keep our sentence and change its neighbor.

# %% tags=["nbval-check-output"]
pair_a = torch.stack([uneven, random(4, d_model)])  # (batch, src_len, d_model)
pair_b = torch.stack([uneven, 10 * random(4, d_model)])


def batch_norm(x):
    flat = x.flatten(0, 1)  # (batch * src_len, d_model)
    return F.batch_norm(flat, None, None, training=True).unflatten(0, x.shape[:2])


for name, norm in (("layer norm", normalize), ("batch norm", batch_norm)):
    same = torch.equal(norm(pair_a)[0], norm(pair_b)[0])
    print(f"{name}: our sentence is", "the same" if same else "another one")
    assert same == (norm is normalize)

# %% [markdown]
# ### Break it: the wrong axis
#
# One wrong number in the code, `dim=-2` in place of `dim=-1`, normalizes over the positions.
# The shape stays the same and nothing crashes.
# What would you look at to find out?


# %%
def normalize_wrongly(x):
    centered = x - x.mean(dim=-2, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(dim=-2, keepdim=True) + eps)


assert normalize_wrongly(uneven).shape == normalize(uneven).shape
assert (influence(normalize, uneven)[off_diagonal] == 0).all()
assert (influence(normalize_wrongly, uneven) > 0).all()

# %% [markdown]
# The influence of one position on another.
# The right norm has none; the wrong one lets every token see every other, the future and the padding included, past all masks.
#
# ## Dropout
#
# In training, **dropout** sets each number to 0 with probability p, and divides the others by 1 − p.
# What is the division good for?

# %%
p = 0.1
ones = torch.ones(1_000_000)
keep = torch.rand(ones.shape, generator=torch.Generator().manual_seed(0)) >= p
zeroed, divided = (ones * keep).mean(), (ones * keep / (1 - p)).mean()
print(f"mean with zeros {zeroed:.3f}, and divided {divided:.3f}")
assert abs(zeroed - (1 - p)) < 0.003 and abs(divided - 1) < 0.003

# %% [markdown]
# It keeps the mean.
# So in use, when nothing is dropped, the next layer meets numbers of the size it has learned from.
# `nn.Dropout` does the same; `train()` and `eval()` tell it which of the two it is.

# %%
dropout = nn.Dropout(p)
torch.manual_seed(0)
dropped = dropout.train()(ones)
assert torch.allclose(dropped.unique(), torch.tensor([0, 1 / (1 - p)]))
assert abs(dropped.mean() - 1) < 0.003
assert torch.equal(dropout.eval()(ones), ones)

# %% [markdown]
# Where does dropout stand?
# Section 5.4: on the output of each sub-layer, *before* it is added to x, and on the sum of embeddings and positions.
# With p = 0.1 in the base model.
# Ours stands exactly there, and not on the attention weights.

# %% tags=["nbval-check-output"]
from course_lib import ModelConfig
from course_lib.transformer import Embedding, Encoder

config = ModelConfig(vocab_size=2000, d_model=64, num_heads=4, num_layers=2, d_ff=256)
torch.manual_seed(0)
embedding, encoder = Embedding(config), Encoder(config)
whole = nn.ModuleDict({"embedding": embedding, "encoder": encoder})
places = [name for name, part in whole.named_modules() if isinstance(part, nn.Dropout)]
print(*places, sep="\n")
assert len(places) == 1 + 2 * config.num_layers
assert not any("self_attn." in name for name in places)

# %% [markdown]
# One for the embedding, two for each layer, one on each path.
#
# ## The layer
#
# Now we have all parts.
# The paper's layer has two sub-layers, and the same path around each:
# LayerNorm(x + Sublayer(x)).
# This order is called **post-norm**.
#
# **A common mistake**: "annotated" code that stands beside the paper's text and computes x + Sublayer(LayerNorm(x)).
# That is **pre-norm**.
# Both exist, and one has to say which: our `EncoderLayer` is post-norm, and pre-norm with `norm_first=True`.


# %%
def post_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


def pre_norm(x, sublayer, norm):
    return x + sublayer(norm(x))


def layer_by_hand(layer, x, mask, path):
    """One encoder layer in eval mode, with the weights of `layer`."""

    def attend(x):
        return layer.self_attn(x, x, x, mask)

    x = path(x, attend, layer.self_attn_path.norm)
    return path(x, layer.feed_forward, layer.feed_forward_path.norm)


# %% [markdown]
# We need real sentences: a short one and a long one, padded to one batch.
# The tokenizer is that of the translator which comes with the course.

# %% tags=["nbval-check-output"]
from course_lib import Translator
from course_lib.data import pad
from course_lib.masks import padding_mask

translator = Translator.from_pretrained("course")
tokenizer = translator.tokenizer
texts = ["The cat sleeps.", "The old woman gives the child a red apple."]
ids = pad([tokenizer.encode(text) for text in texts])  # (batch, src_len)
mask = padding_mask(ids, pad_id=0)  # (batch, 1, 1, keys)
for row in ids.tolist():
    print([tokenizer.token(number) for number in row])
assert mask.sum(dim=-1).flatten().tolist() == [4, ids.shape[1]]

# %% [markdown]
# Is `EncoderLayer` what we wrote, in both orders?
# And are the two orders the same function?
# We fill all parameters with random numbers, because scales of 1 and biases of 0 hide mistakes.


# %%
def random_layer(norm_first):
    layer = EncoderLayer(64, 4, 256, dropout=0.1, norm_first=norm_first).double().eval()
    filling = torch.Generator().manual_seed(1)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, mean=0.1, std=0.2, generator=filling)
    return layer


embedded = random(*ids.shape, 64)  # (batch, src_len, d_model)
outputs = {}
for path, norm_first in ((post_norm, False), (pre_norm, True)):
    layer = random_layer(norm_first)
    outputs[path] = layer_by_hand(layer, embedded, mask, path)
    assert_same(layer(embedded, mask), outputs[path])
assert layer.state_dict().keys() == random_layer(False).state_dict().keys()
assert not torch.allclose(outputs[post_norm], outputs[pre_norm], rtol=0.1)

# %% [markdown]
# With the very same weights they are two different functions.
# A file of weights does not say which one it was trained for.
#
# Post-norm ends with a norm, so nothing is left to do after the last layer.
# Pre-norm ends with a sum.
#
# **A common mistake**: a final LayerNorm behind the stack, with the paper's name on it.
# The paper's post-norm model has none; pre-norm needs one, and lesson [08](08_transformer.ipynb) shows why.

# %%
from dataclasses import replace

from course_lib.blocks import LayerNorm

assert isinstance(encoder.norm, nn.Identity)
assert isinstance(Encoder(replace(config, norm_first=True)).norm, LayerNorm)

# %% [markdown]
# ## The stack
#
# The encoder of section 3.1 is a stack of N = 6 such layers.
# Each reads what the one below it wrote.
# Which shape does the sentence have at each station?

# %% tags=["nbval-check-output"]
whole.eval()
for text in texts:
    src = torch.tensor([tokenizer.encode(text)])
    x = embedding(src)
    print(f"{text}\nembedded {tuple(x.shape)}")
    for layer in encoder.layers:
        attended = layer.self_attn(x, x, x)
        x = layer.self_attn_path.norm(x + attended)
        print(f"self-attention {tuple(attended.shape)}, sum and norm {tuple(x.shape)}")
        worked = layer.feed_forward(x)
        x = layer.feed_forward_path.norm(x + worked)
        print(f"feed-forward   {tuple(worked.shape)}, sum and norm {tuple(x.shape)}")
    torch.testing.assert_close(encoder(embedding(src)), x)
    assert x.shape == (*src.shape, config.d_model)

# %% [markdown]
# src_len × d_model, everywhere.
# That is what lets us stack as many layers as we like.
#
# **A common mistake**: "the encoder turns the sentence into a fixed-length representation".
# The output, the **memory**, has one vector for each source token: 4 for the short sentence, 10 for the long one.
# Only the width is fixed.
#
# ### Do the layers share their weights?
#
# One layer, used six times, would be six times cheaper.

# %% tags=["nbval-check-output"]
def total(module):
    return sum(parameter.numel() for parameter in module.parameters())


first, second = encoder.layers
print(f"one layer {total(first):,}, a stack of two {total(encoder):,}")
assert total(encoder) == 2 * total(first)
for name in ("query_proj", "key_proj", "value_proj", "output_proj"):
    one, other = (getattr(layer.self_attn, name).weight for layer in (first, second))
    assert not torch.equal(one, other)

# %% [markdown]
# They do not.
# Same architecture, weights of their own.
#
# ### In training and in use
#
# Predict: we encode the same sentence twice. When are the two memories equal?

# %%
def encode_twice():
    return [encoder(embedding(ids), mask) for _ in range(2)]


whole.train()
once, again = encode_twice()
assert not torch.allclose(once, again, rtol=0.1)
whole.eval()
once, again = encode_twice()
assert torch.equal(once, again)

# %% [markdown]
# In training, dropout makes them differ.
# In eval mode they are equal to the last bit.
# Forget `model.eval()`, and the same sentence has another memory each time.
#
# ## Is it the same function as PyTorch's?
#
# `torch.nn.TransformerEncoderLayer` is PyTorch's own encoder layer.
# It keeps the three projections of attention in one matrix; we copy ours there.


# %%
def copy(ours, theirs):
    """Copies a weight and a bias, or a scale and a shift."""
    ours = dict(zip(("weight", "bias"), ours.parameters(), strict=True))
    theirs.load_state_dict(ours)


@torch.no_grad()
def copy_attention(ours, theirs):
    three = (ours.query_proj, ours.key_proj, ours.value_proj)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in three]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in three]))
    copy(ours.output_proj, theirs.out_proj)


# %%
def torch_layer(ours):
    """torch's encoder layer with our weights."""
    norm_first = ours.self_attn_path.norm_first
    look = dict(norm_first=norm_first, batch_first=True, dtype=torch.float64)
    theirs = nn.TransformerEncoderLayer(64, 4, 256, **look).eval()
    copy_attention(ours.self_attn, theirs.self_attn)
    copy(ours.self_attn_path.norm, theirs.norm1)
    copy(ours.feed_forward_path.norm, theirs.norm2)
    copy(ours.feed_forward.up, theirs.linear1)
    copy(ours.feed_forward.down, theirs.linear2)
    return theirs


# %% [markdown]
# We compare outputs *and* gradients, on the padded batch, in both orders.
# PyTorch's mask says the opposite of ours: there, True means hidden.

# %% tags=["nbval-check-output"]
from functools import partial

real = mask[:, 0, 0]  # (batch, keys)


def output_and_gradient(run):
    leaf = embedded.clone().requires_grad_()
    output = run(leaf)[real]  # (real tokens, d_model)
    return output, torch.autograd.grad(output.square().sum(), leaf)[0]


for norm_first in (False, True):
    ours = random_layer(norm_first)
    theirs = torch_layer(ours)
    here = output_and_gradient(partial(ours, mask=mask))
    there = output_and_gradient(partial(theirs, src_key_padding_mask=~real))
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-9)
    print(f"equals torch's with norm_first={norm_first}:", tuple(here[0].shape))

# %% [markdown]
# Equal to nine digits, and so are the gradients with respect to the input.
#
# ## How deep can we go?
#
# Residuals and norms are there for depth, so we build deep stacks and leave them out.
# `Path` is the way around one sub-layer, with a switch for each part.


# %%
class Path(nn.Module):
    """The way around one sub-layer; norm is "", "pre" or "post"."""

    def __init__(self, d_model, residual, norm):
        super().__init__()
        self.residual, self.place = residual, norm
        self.norm = LayerNorm(d_model) if norm else nn.Identity()

    def forward(self, x, sublayer):
        change = sublayer(self.norm(x) if self.place == "pre" else x)
        total = x + change if self.residual else change
        return self.norm(total) if self.place == "post" else total


# %% [markdown]
# Around the stack we need an embedding below and a task above.
# The task: *say, at each position, which token stands before it*.
# That takes attention: a feed-forward network never sees the neighbor.
# The vector on top is compared with each row of the embedding; the best match is the answer.
#
# First, how the parameters start.


# %%
def initialize(model):
    """Matrices Xavier-uniform, biases 0, embeddings normal with std 1 / √d_model."""
    for name, parameter in model.named_parameters():
        if name == "embedding.table.weight":
            nn.init.normal_(parameter, std=64**-0.5)
        elif parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


# %%
class Recaller(nn.Module):
    """An embedding and a stack, from ids to vectors (batch, src_len, d_model)."""

    def __init__(self, num_layers, residual, norm):
        super().__init__()
        sizes = dict(d_model=64, num_heads=4, d_ff=128, dropout=0.0)
        sizes |= dict(num_layers=num_layers, norm_first=norm == "pre")
        config = ModelConfig(tokenizer.vocab_size, **sizes)
        self.embedding, self.encoder = Embedding(config), Encoder(config)
        for layer in self.encoder.layers:
            layer.self_attn_path = Path(64, residual, norm)
            layer.feed_forward_path = Path(64, residual, norm)
        initialize(self)

    def encode(self, ids):
        return self.encoder(self.embedding(ids), padding_mask(ids, pad_id=0))


# %%
def recall_loss(model, ids, memory):
    """Nats a token for saying which token came before; padding does not count."""
    logits = memory @ model.embedding.table.weight.T  # (batch, src_len, vocab)
    real = ids[:, 1:] != 0  # the first token has none before it
    return F.cross_entropy(logits[:, 1:][real], ids[:, :-1][real])


# %% [markdown]
# ### Before any training: the gradient at every depth
#
# 24 layers, five ways to build them, five seeds each.
# We send one sentence up, and the gradient of its loss back down.
# At each depth we note the norm of the gradient *with respect to the vectors that stand there*: this is all that the layers below will ever hear.
#
# Predict an order: which stack hears least at its bottom?


# %%
WAYS = {
    "neither": (False, ""),
    "residual only": (True, ""),
    "norm only": (False, "pre"),
    "residual, post-norm": (True, "post"),
    "residual, pre-norm": (True, "pre"),
}


# %%
def through_the_stack(num_layers, residual, norm, seed):
    """The vectors of one sentence at every depth, and the gradients that reach them."""
    torch.manual_seed(seed)
    model = Recaller(num_layers, residual, norm).double()
    src = ids[1:]  # the long sentence has no padding
    vectors = [model.embedding(src)]  # (batch, src_len, d_model)
    for layer in model.encoder.layers:
        vectors.append(layer(vectors[-1]))
    loss = recall_loss(model, src, model.encoder.norm(vectors[-1]))
    return vectors, torch.autograd.grad(loss, vectors)


# %%
depth = 24
runs = {
    name: [through_the_stack(depth, *way, seed) for seed in range(5)]
    for name, way in WAYS.items()
}
gradient_norm = {
    name: torch.tensor([[each.norm() for each in gradients] for _, gradients in seeds])
    for name, seeds in runs.items()
}  # (seeds, depth + 1) each
reaches = {name: norms[:, 0] / norms[:, -1] for name, norms in gradient_norm.items()}
for name, ratio in reaches.items():
    print(f"{name:20} bottom / top: {ratio.min():.0e} to {ratio.max():.0e}")

# %%
from course_lib.figures import curves

figure = curves(
    {name: (range(depth + 1), norms) for name, norms in gradient_norm.items()},
    xlabel="layers passed (0 = the embedding)",
    ylabel="norm of the gradient",
    title="Through 24 layers the gradient fades with neither, "
    "explodes with residuals alone, and survives where there are norms",
    log_y=True,
)
assert (reaches["neither"] < 1e-4).all() and (reaches["residual only"] > 1e4).all()
assert (reaches["norm only"].log10().abs() < 2).all()
spread = {name: norms.amax(1) / norms.amin(1) for name, norms in gradient_norm.items()}
assert all((spread[f"residual, {norm}-norm"] < 30).all() for norm in ("post", "pre"))
assert min(spread, key=lambda name: spread[name].mean()) == "residual, pre-norm"
figure

# %% [markdown]
# The line is the mean of five seeds, the band reaches from the smallest to the largest.
# With neither, the bottom hears less than a ten-thousandth of what the top hears: the *vanishing gradient*.
# With residuals alone it is the opposite.
# With residuals and norms, the largest gradient of a run is less than 30 times its smallest, and pre-norm is the flattest.
#
# Is 24 special? Try other depths, and other weights.

# %%
from course_lib.widgets import DepthExplorer

explorer = DepthExplorer(through_the_stack, depth=depth)
shown = torch.tensor(explorer.view["gradients"], dtype=torch.double)
torch.testing.assert_close(shown, gradient_norm["residual, pre-norm"][0].double())
explorer

# %% [markdown]
# Why do residuals alone explode?
# We look at the vectors on the way up.


# %%
def size(name, layer):
    """Standard deviation of the vectors after so many layers, mean of the seeds."""
    seeds = runs[name]
    return sum(vectors[layer].std().item() for vectors, _ in seeds) / len(seeds)


for name in WAYS:
    print(f"{name:20} size after 0, 12, 24 layers:", end=" ")
    print("  ".join(f"{size(name, layer):8.2g}" for layer in (0, 12, 24)))
assert size("residual only", 24) > 100 * size("residual only", 12) > 1e3
assert size("neither", 24) < 1e-3 * size("neither", 0)
assert abs(size("residual, post-norm", 24) - 1) < 0.01
assert size("residual, pre-norm", 24) < 2 * size("residual, pre-norm", 12) < 20

# %% [markdown]
# Without norms, a sub-layer adds in proportion to what it gets, so sizes multiply from layer to layer, and so do gradients on the way back.
# Pre-norm hands every sub-layer an input of size 1, so the sum grows, but slowly.
# Post-norm brings every sum back to 1.
#
# ### Then are norms enough?
#
# *Norm only* looks fine in the figure: a healthy gradient without any residual.
# But the size of a gradient does not say what it is about.
# So we ask something else: how different are the tokens of the sentence still?
# We take their mean out of all vectors; what share of the length is left?


# %%
def own_share(vectors):
    """Near 0 when all tokens of a sentence have the same vector, at most 1."""
    shared = vectors.mean(dim=1, keepdim=True)  # (batch, 1, d_model)
    return max(1e-17, ((vectors - shared).norm() / vectors.norm()).item())


shares = {
    name: torch.tensor([[own_share(x) for x in vectors] for vectors, _ in seeds])
    for name, seeds in runs.items()
}  # (seeds, depth + 1) each

# %%
figure = curves(
    {name: (range(depth + 1), share) for name, share in shares.items()},
    xlabel="layers passed (0 = the embedding)",
    ylabel="own share of a token's vector",
    title="Without residuals all tokens of a sentence become one and the same vector",
    log_y=True,
)
assert all((share[:, 0] > 0.5).all() for share in shares.values())
assert all((shares[name][:, 8:] < 1e-12).all() for name in ("neither", "norm only"))
pre, post = shares["residual, pre-norm"], shares["residual, post-norm"]
assert (shares["residual only"] > 1e-5).all() and (post > 1e-5).all()
assert (pre > 0.1).all() and (post[:, 8:] < 0.5 * pre[:, 8:]).all()
figure

# %% [markdown]
# After eight layers without residuals, *woman*, *apple* and the full stop are the same vector, down to the rounding error of float64 (about 10⁻¹⁶).
# Norms keep the vectors large and the gradient strong, but there is nothing left to tell tokens apart.
# Residuals carry each token's own vector past every mixing step.
# Pre-norm keeps the most of it, post-norm clearly less.
#
# Who mixes?
# We leave the attention out and keep the feed-forward networks.

# %%
torch.manual_seed(0)
model = Recaller(depth, False, "pre").double()
vectors = model.embedding(ids[1:])
for layer in model.encoder.layers:
    vectors = layer.feed_forward_path(vectors, layer.feed_forward)
print(f"own share after {depth} feed-forward networks: {own_share(vectors):.2f}")
assert own_share(vectors) > 0.05

# %% [markdown]
# So it is attention: each layer replaces a token by an average over all tokens' values, and averages of averages agree soon.
# The literature calls it *rank collapse* [@dong2021].
#
# ## Do they learn?
#
# Now we train.
# The sentences are short ones of the course corpus.
# Two depths, with and without residuals, all of them pre-norm; the same task, the same batches, the same three seeds (on a GPU five seeds and twice the steps).
#
# What would you expect of depth: should eight layers do better or worse than two?

# %%
from course_lib.data import load_course

corpus = load_course(num_train=2000, num_valid=1, num_test=1)
rows = [tokenizer.encode(pair.src) for pair in corpus.train]
data = pad([row for row in rows if len(row) <= 7]).to(device)  # (sentences, src_len)
targets = data[:, :-1][data[:, 1:] != 0]
frequency = targets.bincount() / len(targets)  # of each token
by_frequency = -frequency[targets].log().mean().item()
print(f"{len(data)} sentences; guessing by frequency: {by_frequency:.2f} nats a token")
assert by_frequency < math.log(len(targets.unique())) - 0.1  # than guessing evenly
num_seeds, steps = (5, 200) if device == "cuda" else (3, 100)

# %% [markdown]
# That number is the loss of a model that knows how frequent each token is, and never looks at the sentence.


# %%
def train(num_layers, residual, norm, seed):
    """The trained model, and its loss as means over ten steps."""
    torch.manual_seed(seed)
    model = Recaller(num_layers, residual, norm).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    batches = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(steps):
        src = data[torch.randint(len(data), (24,), generator=batches).to(device)]
        loss = recall_loss(model, src, model.encode(src))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, torch.tensor(losses).unflatten(0, (-1, 10)).mean(dim=1)


# %%
trained, losses = {}, {}
for residual in (True, False):
    for num_layers in (2, 8):
        name = f"{num_layers} layers, {'with' if residual else 'without'} residuals"
        sizes = (num_layers, residual, "pre")
        results = [train(*sizes, seed) for seed in range(num_seeds)]
        trained[name] = results[0][0]
        losses[name] = torch.stack([loss for _, loss in results])  # (seeds, steps / 10)
        print(f"{name:26}", [f"{loss:.2f}" for loss in losses[name][:, -1]])


def last(name):
    return losses[f"{name} residuals"][:, -1]  # (seeds,)


# %%
figure = curves(
    {name: (range(10, steps + 1, 10), loss) for name, loss in losses.items()},
    xlabel="step",
    ylabel="nats a token",
    title="With residuals eight layers learn about as well as two; "
    "without, they end at guessing by frequency",
    marks={"guessing by frequency": (None, by_frequency)},
)
assert (0.93 < last("8 layers, without") / by_frequency).all()
assert (last("8 layers, without") / by_frequency < 1.07).all()
assert last("2 layers, without").max() < last("8 layers, without").min() - 1
assert last("2 layers, with").max() < last("2 layers, without").min() - 0.5
assert abs(last("8 layers, with").mean() - last("2 layers, with").mean()) < 0.5
assert last("8 layers, with").max() < 0.5 * by_frequency
figure

# %% [markdown]
# Without residuals, more layers make even the *training* loss worse: this is not overfitting, the deep stack does not learn.
# With residuals, the depth does little harm.
#
# Has the failed stack found a way to keep its tokens apart?
# And what does it answer?

# %%
src = torch.tensor([tokenizer.encode("The dog sees the cat.")], device=device)
own, correct = {}, {}
for name in ("8 layers, with", "8 layers, without"):
    model = trained[f"{name} residuals"]
    with torch.no_grad():
        vectors = model.encode(src)
        best = (vectors @ model.embedding.table.weight.T)[0, 1:].argmax(dim=-1)
    own[name], correct[name] = own_share(vectors), (best == src[0, :-1]).float().mean()
    answer = [tokenizer.token(number) for number in best.tolist()]
    print(f"{name:18} own share {own[name]:.0e}", answer)
assert own["8 layers, without"] < 1e-3 and len(best.unique()) == 1
assert own["8 layers, with"] > 0.1 and correct["8 layers, with"] > 0.5

# %% [markdown]
# After training, too, its tokens are one vector, and so it has one answer for all of them.
#
# ### And the paper's post-norm?
#
# The same eight layers with residuals, the norms after the sums, everything else equal.

# %%
results = [train(8, True, "post", seed) for seed in range(num_seeds)]
post_norm_last = torch.stack([loss[-1] for _, loss in results])
print("post-norm", [f"{loss:.2f}" for loss in post_norm_last])
print("pre-norm ", [f"{loss:.2f}" for loss in last("8 layers, with")])
assert post_norm_last.min() > last("8 layers, with").max() + 1

# %% [markdown]
# With this learning rate from the first step on, post-norm lags far behind.
# The paper does not train like this: it raises the learning rate slowly over 4,000 steps (section 5.3).
# Lesson [09](09_training.ipynb) tests what that does.
# Until then: post-norm is the paper's model, and here pre-norm is the easier one to train.
#
# ## What a stack does to "it"
#
# Back to a trained model: the translator that comes with the course, with two pre-norm layers.
# We need a word whose translation depends on another word.

# %% tags=["nbval-check-output"]
cat_text = "The cat eats the meat because it is hungry."
dog_text = "The dog eats the meat because it is hungry."
for text in (cat_text, dog_text):
    print(translator.translate(text))
assert "weil sie" in translator.translate(cat_text).text
assert "weil er" in translator.translate(dog_text).text

# %% [markdown]
# The cat is *sie*, the dog is *er*, because the noun *Katze* is feminine and *Hund* is masculine.
# The two English sentences have the same *it* at the same place.
# At which station do the two vectors of *it* begin to differ, and which sub-layer does it?


# %%
@torch.no_grad()
def stations(text):
    """Name of each station to the vectors there, (src_len, d_model)."""
    model = translator.model
    x = model.src_embedding(torch.tensor([tokenizer.encode(text) + [2]]))  # 2 is </s>
    found = {"embedded": x[0]}
    for number, layer in enumerate(model.encoder.layers, start=1):
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
others = [position for position in range(len(words)) if words[position] != "cat"]
assert (apart["embedded"][others] == 0).all()
assert (apart["self-attention 1"][others] > 0).all()
by_size = sorted(others, key=lambda position: -apart["memory"][position])
assert {words[position] for position in by_size[:2]} == {"The", "it"}
it = words.index("it")
assert apart["memory"][it] > 3 * apart["feed-forward 1"][it]

# %%
values = torch.stack([apart[name][others] for name in apart])  # (stations, words)
columns = [words[position] for position in others]
figure = panels(
    [Panel(values, list(apart), columns, "", "weights", "token", "station")],
    title="The cat or the dog: the difference spreads to “The” and to “it”",
    words={"weights": "difference, as a share of the vector"},
)
shown = figure.axes[0].images[0].get_array()  # (stations, words)
assert others[shown.max(axis=0).argmax()] == it and (shown[0] == 0).all()
figure

# %% [markdown]
# We leave out the word that was exchanged.
# At the embedding all other words are equal, to the last bit.
# Self-attention brings the first difference; a feed-forward network could not, as we have seen.
# In the memory, two words have changed most: *it*, which must become *sie* or *er*, and *The*, which must become *die* or *der*.
# They look the same in English, and no longer in the encoder's output.

# %% [markdown]
# ## Summary
#
# An encoder layer is self-attention, where tokens meet, and a feed-forward network, which works on each of them alone; around each stands a path of dropout, residual and layer norm.
# The feed-forward network goes up to d_ff, through a ReLU, and back down; it holds two thirds of the layer.
# Layer normalization is per token and over features, with the biased variance and ε under the root; the paper normalizes after the sum, many others before the sub-layer, and these are different functions.
# The shape stays src_len × d_model from the embedding to the memory, and our layer computes what PyTorch's computes, gradients included.
# Norms keep a deep stack's numbers and gradients in range, residuals keep its tokens apart, and without residuals eight layers learn no more than how frequent each token is.
#
# **Practice**: [assignment 06](assignments/release/06_encoder/06_encoder.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [07](07_decoder.ipynb) builds the decoder, which reads this memory and writes a sentence.
