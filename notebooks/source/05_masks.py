# %% [markdown]
# # 05 · Masks: who may look at whom
#
# **Question.** Attention lets every token look at every other one. Which looks must we forbid, and how, so that nothing leaks?
#
# **Afterwards you can**
#
# 1. build the padding mask, the causal mask and the cross mask, and say which attention gets which;
# 2. say where −∞ goes, and why it goes before the softmax;
# 3. prove that a mask is tight, and recognize the ways in which it is not.
#
# **You need** attention and its heads (lessons [03](03_attention.ipynb) and [04](04_multi_head.ipynb)), padding from lesson [01](01_text_to_tensors.ipynb), sinusoids from lesson [02](02_position.ipynb).
# **Time**: 35 minutes to read, under 20 seconds to run.
# **In the paper**: sections 3.1 (decoder) and 3.2.3, the box "Mask (opt.)" in figure 2.

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data import Pair, pad
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # small tensors: two threads would wait for each other
assert torch.ones(1, device=device).item() == 1

# %% [markdown]
# ## A batch has holes
#
# These are our four pairs.
# We train a tokenizer on them, so that each word is one token.

# %% tags=["nbval-check-output"]
pairs = [
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair("The cat sees the dog.", "Die Katze sieht den Hund."),
    Pair(
        "The old woman gives the child a red apple.",
        "Die alte Frau gibt dem Kind einen roten Apfel.",
    ),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
]
texts = [text for pair in pairs for text in pair]
tokenizer = Tokenizer.train(texts, vocab_size=160)
for text in texts[::2]:
    print(" ".join(tokenizer.tokens(text)))
assert all(len(tokenizer.tokens(text)) == len(text.split()) + 1 for text in texts)


# %% [markdown]
# Three English sentences of 4, 6 and 10 tokens go into one tensor.
# It must be rectangular, so the short ones are filled up with `<pad>`.


# %% tags=["nbval-check-output"]
def words(ids):
    """The tokens of a row of ids, without the mark that opens a word."""
    return [tokenizer.token(i).removeprefix("▁") for i in ids.tolist()]


src = pad([tokenizer.encode(pair.src) for pair in pairs[:3]])  # (batch, src_len)
for row in src:
    print(" ".join(words(row)))
print(f"{(src == PAD_ID).float().mean():.0%} of the batch is padding")
assert (src != PAD_ID).sum(dim=1).tolist() == [4, 6, 10]
assert (src == PAD_ID).float().mean() == 1 / 3

# %% [markdown]
# A third of this tensor is nothing but filling.
# What happens if we compute attention and do not care?
#
# We take scores as in lesson 03: random embeddings plus positions, one random matrix for queries and one for keys.

# %%
from course_lib.position import sinusoidal

d_model, generator = 16, torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


query_matrix, key_matrix = random(2, d_model, d_model) / math.sqrt(d_model)
positions = sinusoidal(src.shape[1], d_model).double()
x = random(tokenizer.vocab_size, d_model)[src] + positions  # (batch, src_len, d_model)
query, key = x @ query_matrix, x @ key_matrix
scores = query @ key.transpose(-2, -1) / math.sqrt(d_model)  # (batch, queries, keys)
assert scores.shape == (3, 10, 10)

# %% [markdown]
# Predict: *The cat sleeps .* has four tokens in ten places.
# What share of its attention goes to the six that are empty?

# %%
real = src != PAD_ID  # (batch, keys)
no_mask = scores.softmax(dim=-1)


def share_on_padding(weights):
    """For each token of the first sentence: how much of its weight is on padding."""
    return weights[0, :4, 4:].sum(dim=-1)


for word, share in zip(words(src[0]), share_on_padding(no_mask), strict=False):
    print(f"{word:8}{share:5.0%} on padding")
assert (no_mask[0, :, 4:] > 0).all()
assert (share_on_padding(no_mask) > 0.5).all()

# %% [markdown]
# More than half of it is spent on nothing, for every word.
#
# **A common mistake**: "pad the batch", and not a word about a mask.
# Padding makes the tensor rectangular; it does not make anyone look away.
#
# ## Where does the hiding go?
#
# **First try: zero padding.**
# Some descriptions fill up with vectors of zeros and stop there.
# A key of zeros has the score 0 with every query.
# Is 0 a small score?

# %%
zero_key = key.masked_fill(~real[:, :, None], 0.0)  # (batch, keys, d_model)
zero_padded = query @ zero_key.transpose(-2, -1) / math.sqrt(d_model)
zeroed_scores = scores.masked_fill(~real[:, None, :], 0.0)  # (batch, queries, keys)
torch.testing.assert_close(zero_padded, zeroed_scores)

zeroed_before = zeroed_scores.softmax(dim=-1)
print("on padding:", [f"{share:.0%}" for share in share_on_padding(zeroed_before)])
assert (share_on_padding(zeroed_before) > 0.5).all()
assert (zeroed_scores[0, :4, :4] < 0).any()

# %% [markdown]
# It is not: the softmax takes e⁰ = 1, and there are real tokens that score below 0.
# Every zero still gets weight, and there are six of them.
#
# **A common mistake**: "zero padding" as if zeros were nothing.
# Setting the *scores* of the padding to zero is the same mistake in other words: the cell shows that the two are equal.
#
# **Second try: zero the weights, after the softmax.**
# Now the padding gets nothing.
# What does a row sum to?

# %%
zeroed_after = no_mask.masked_fill(~real[:, None, :], 0.0)
sums = zeroed_after[0, :4].sum(dim=-1)
print("rows sum to", [f"{total:.2f}" for total in sums])
assert (sums < 1).all()
torch.testing.assert_close(sums, 1 - share_on_padding(no_mask))

# %% [markdown]
# To less than 1: what the padding had is missing.
# The weights that are left are too small, by exactly the share that the padding had.
#
# **Third try: leave the padding out of the softmax.**
# That is what we mean, so we write it down as a loop: each query shares its weight among the keys it may attend to.


# %%
def weights_by_hand(scores, may_attend):
    """Scores (queries, keys) to weights: a softmax over each query's allowed keys."""
    weights = torch.zeros_like(scores)
    for q in range(scores.shape[0]):
        allowed = may_attend[q].nonzero().flatten()
        total = sum(scores[q, k].exp() for k in allowed)
        for k in allowed:
            weights[q, k] = scores[q, k].exp() / total
    return weights


by_hand = weights_by_hand(scores[0], real[0].expand(10, 10))
assert torch.allclose(by_hand.sum(dim=-1), torch.ones(10).double())

# %% [markdown]
# How do we say "leave it out" to a softmax that takes the whole row?
# With a score whose exponential is 0, exactly: −∞.

# %% tags=["nbval-check-output"]
print("e^0 =", math.exp(0), "  e^−∞ =", math.exp(-math.inf))
masked = scores.masked_fill(~real[:, None, :], -math.inf).softmax(dim=-1)
torch.testing.assert_close(masked[0], by_hand)
assert (masked[0, :, 4:] == 0).all()

alone = scores[0, :4, :4].softmax(dim=-1)  # as if the padding were not there
torch.testing.assert_close(masked[0, :4, :4], alone)
print("equal to the sentence alone")

# %% [markdown]
# That is the rule: **hidden scores become −∞, before the softmax.**
# Rows sum to 1, the padding has exactly nothing, and the four tokens share as if they were alone.

# %% id="four-ways-to-hide"
from course_lib.figures import Panel, panels

tried = {
    "no mask": no_mask,
    "scores set to 0": zeroed_before,
    "weights set to 0 afterwards": zeroed_after,
    "scores set to −∞": masked,
}
rows, keys = words(src[0])[:4], words(src[0])
title = "Only −∞ takes all weight from the padding and gives it to the words"
drawn = [Panel(tried[name][0, :4], rows, keys, name, kind="weights") for name in tried]
figure = panels(drawn, title=title, per_row=2)
good = [name for name, each in tried.items() if torch.allclose(each[0, :4, :4], alone)]
assert good == ["scores set to −∞"]
figure

# %% [markdown]
# ## And if we set weights to zero and divide by the new sum?
#
# A fair question.
# The sum that the softmax divided by cancels, so the result should be the same.
# Is it always?
# Let a hidden score be large: what is left of the visible ones after the first softmax?

# %% tags=["nbval-check-output"]
repaired = zeroed_after / zeroed_after.sum(dim=-1, keepdim=True)
torch.testing.assert_close(repaired, masked)

row = torch.tensor([1.0, 2.0, 200.0])  # float32; the last one is hidden
may = torch.tensor([True, True, False])
first = row.softmax(dim=-1)
afterwards = first * may / (first * may).sum()
before = row.masked_fill(~may, -math.inf).softmax(dim=-1)
print("afterwards", afterwards.tolist())
print("before    ", [round(weight, 3) for weight in before.tolist()])
assert afterwards.isnan().all()
torch.testing.assert_close(before[:2], row[:2].softmax(dim=-1))

# %% [markdown]
# On our batch the values are equal.
# But the hidden scores have taken part, and they can do harm: e⁻¹⁹⁸ is 0 in float32, and 0/0 is NaN.
# With −∞ it does not matter what was there.
#
# The gradient tells the same story.
# A hidden score must not be told to change, not even a little.

# %%
some = torch.randn(100, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()
may = torch.arange(6) < 4
visible = some.softmax(dim=-1) * may
ways = {
    "−∞ before": some.masked_fill(~may, -math.inf).softmax(dim=-1),
    "divided afterwards": visible / visible.sum(dim=-1, keepdim=True),
}
for name, weights in ways.items():
    (gradient,) = torch.autograd.grad(weights[:, 0].sum(), some)
    print(f"{name:20}a hidden score gets up to {gradient[:, 4:].abs().max():.0e}")
    assert (gradient[:, 4:] == 0).all() == (name == "−∞ before")

# %% [markdown]
# Exactly zero, against the dust of rounding.
#
# ## The library's version
#
# `course_lib.attention` does what we did, in this order: scale, mask, softmax.
# It wants a mask with as many dimensions as the scores.

# %%
from course_lib.attention import attention_weights

theirs = attention_weights(query, key, real[:, None, :])
torch.testing.assert_close(masked, theirs)
assert torch.equal(theirs == 0, ~real[:, None, :].expand(3, 10, 10))

# %% [markdown]
# Here and everywhere in this course a mask is a tensor of `bool`, and **True means: may attend**.
# `F.scaled_dot_product_attention` says it the same way.
# `torch.nn.Transformer` and `torch.nn.MultiheadAttention` say the opposite; we come to that.
#
# ## The padding mask
#
# From ids to a mask, first as a loop.
# Why the two axes of size 1?


# %%
def padding_by_hand(ids, pad_id):
    """Ids (batch, keys) to a mask (batch, 1, 1, keys)."""
    mask = torch.zeros(len(ids), 1, 1, ids.shape[1], dtype=torch.bool)
    for row in range(len(ids)):
        for k in range(ids.shape[1]):
            mask[row, 0, 0, k] = ids[row, k].item() != pad_id
    return mask


from course_lib.masks import padding_mask

mask = padding_by_hand(src, PAD_ID)
assert torch.equal(mask, (src != PAD_ID)[:, None, None, :])
assert torch.equal(mask, padding_mask(src, PAD_ID))

# %% [markdown]
# The scores of all heads have the shape (batch, heads, queries, keys).
# PyTorch lines shapes up from the right and repeats an axis of size 1 as often as needed:
#
# ```text
# scores         (batch, heads, queries, keys)      3   4   10   10
#                   │      │       │      │
# padding mask   (batch,   1,      1,   keys)       3   1    1   10
#                   │      │       │      └── hidden or not: depends on the key
#                   │      │       └───────── the same for every query
#                   │      └───────────────── the same for every head
#                   └──────────────────────── each sentence its own
# ```
#
# The mask hides *keys*: columns.
# The rows of the padding stay open: a `<pad>` still asks, gets an answer, and nobody reads it.
# Why we must not close them comes below.
#
# ## Proof: padding changes nothing
#
# A whole multi-head attention now, with the weights of no particular model.
# Each sentence goes through alone, and once more in the batch, next to its `<pad>`.
# (The first assertion tests the drawing: the mask repeated in full does the same.)

# %%
from course_lib.attention import MultiHeadAttention

torch.manual_seed(0)
attend = MultiHeadAttention(d_model, num_heads=4).double()
lengths = real.sum(dim=1).tolist()

in_batch = attend(x, x, x, mask)  # (batch, src_len, d_model)
torch.testing.assert_close(in_batch, attend(x, x, x, mask.expand(3, 4, 10, 10)))
for row, length in enumerate(lengths):
    one = x[row : row + 1, :length]  # (1, length, d_model): no padding, no mask
    alone, padded = attend(one, one, one)[0], in_batch[row, :length]
    torch.testing.assert_close(alone, padded, rtol=1e-12, atol=1e-14)

# %% [markdown]
# Equal to twelve digits, for all three sentences.
# Is the test able to fail?
# Without the mask it must, wherever there is padding.

# %%
careless = attend(x, x, x)
for row, length in enumerate(lengths):
    difference = (careless[row, :length] - in_batch[row, :length]).abs().max().item()
    print(f"{length:2} tokens, {10 - length} padded: off by {difference:.2f}")
    assert (difference > 0.01) == (length < 10)

# %% [markdown]
# Only the longest sentence comes out right: it has no padding.
# Without a mask, what a sentence means depends on how long its neighbors are.
#
# A sharper test: we put something else into the padding, numbers a thousand times as large.
# Then the outputs of the real tokens must not move, not by one bit.

# %%
other = torch.where(real[:, :, None], x, 1000 * random(*x.shape))
changed = attend(other, other, other, mask)
assert torch.equal(changed[real], in_batch[real])
assert not torch.equal(changed[~real], in_batch[~real])

# %% [markdown]
# ## The causal mask
#
# The decoder learns to continue: `<s>` → *Die* → *Katze* → *sieht* → …
# In training we know the whole sentence, and we want to learn from all its places at once.
# But then the answer lies in the input, one place to the right.
# Who may see what?
#
# As a loop: a query may attend to the keys up to itself.


# %%
def causal_by_hand(length):
    """A mask (1, 1, length, length)."""
    mask = torch.zeros(1, 1, length, length, dtype=torch.bool)
    for q in range(length):
        for k in range(length):
            mask[0, 0, q, k] = k <= q
    return mask


# %%
from course_lib.masks import causal_mask

target = tokenizer.encode(pairs[1].tgt)
tgt_in = torch.tensor([[BOS_ID, *target]])  # (1, tgt_len)
tgt_len = tgt_in.shape[1]
causal = causal_by_hand(tgt_len)
assert torch.equal(causal[0, 0], torch.ones(tgt_len, tgt_len).tril().bool())
assert torch.equal(causal, causal_mask(tgt_len))

# %%
from course_lib.figures import mask_grid

german = words(tgt_in[0])
title = f"{causal.sum()} of {causal.numel()} looks are allowed: none of them ahead"
figure = mask_grid(causal[0, 0], german, german, title=title)
shown = figure.axes[0].images[0].get_array()
assert all(shown[q, k] == (k <= q) for q in range(tgt_len) for k in range(tgt_len))
assert shown.sum() == tgt_len * (tgt_len + 1) / 2
figure

# %% [markdown]
# **A common mistake**: "every position of the decoder attends to all positions".
# It attends to those up to and including itself: 1, 2, 3, … of them, row by row.
#
# Each row is one exercise for the model.
# What it may read is on the left, what it must predict on the right.

# %% tags=["nbval-check-output"]
answers = [*words(torch.tensor(target)), "</s>"]
for t, answer in enumerate(answers):
    readable = [word for word, may in zip(german, causal[0, 0, t], strict=True) if may]
    print(f"{' '.join(readable):32} → {answer}")
    assert readable == ["<s>", *answers[:t]]

# %% [markdown]
# One sentence makes seven exercises.
# Does the diagonal give the answer away?
# No: the input is shifted by one, so row *t* holds the word *before* the one it predicts.
# Section 3.1 of the paper says so: the mask, *combined with* the offset by one position, lets predictions depend on earlier outputs only.
#
# **A common mistake**: "the mask keeps word *t* + 1 out of the prediction of word *t*".
# That would allow word *t* itself, which is the answer.
# To predict word *t*, only the words *before* it may be used: that is the assertion in the cell above.
#
# ## Proof: nothing leaks
#
# How do we know that no path leads from the future into an output?
# We ask the gradient: how much does output *t* change when input *s* changes?
# Not small, but **exactly 0** is what we want for every *s* > *t*.


# %%
def through(layers, x, mask):
    """x (batch, length, d_model) through some attentions, one after the other."""
    for layer in layers:
        x = layer(x, x, x, mask)
    return x


def influence(layers, x, mask):
    """Size of the gradient of each output (row) with respect to each input (column)."""
    jacobian = torch.autograd.functional.jacobian(lambda x: through(layers, x, mask), x)
    return jacobian.square().sum(dim=(0, 2, 3, 5)).sqrt()  # (queries, keys)


# %%
layers = [attend, MultiHeadAttention(d_model, num_heads=4).double()]
y = random(tokenizer.vocab_size, d_model)[tgt_in] + positions[:tgt_len]  # of our target
future = ~causal[0, 0]  # strictly above the diagonal
assert future.sum() == tgt_len * (tgt_len - 1) / 2

# %% [markdown]
# We look through one attention and through two in a row, with and without the mask.
# One more mask is in the game: a single slip, `tril(1)` instead of `tril()`, which opens one place too many.
# Predict: how far ahead does a stack of *two* see with that slip?

# %%
slip = torch.ones(1, 1, tgt_len, tgt_len).tril(1).bool()
seen = {
    "causal, one attention": influence(layers[:1], y, causal),
    "causal, two": influence(layers, y, causal),
    "no mask, one": influence(layers[:1], y, None),
    "tril(1), two": influence(layers, y, slip),
}
for name in ("causal, one attention", "causal, two"):
    assert (seen[name][future] == 0).all() and (seen[name][~future] > 0).all()
assert (seen["no mask, one"] > 0).all()
two_ahead = torch.ones(tgt_len, tgt_len).tril(2).bool()
assert torch.equal(seen["tril(1), two"] > 0, two_ahead)

# %%
look = dict(xlabel="input s", ylabel="output t")
drawn = [Panel(each, german, german, name, **look) for name, each in seen.items()]
title = "Gradient of output t by input s: with the causal mask exactly 0 where s > t"
words_of = {"signed": "size of the gradient"}
figure = panels(drawn, title=title, per_row=2, words=words_of)
shown = [axes.images[0].get_array() for axes in figure.axes[:4]]
tight = [bool((each[future.numpy()] == 0).all()) for each in shown]
assert tight == [True, True, False, False]
figure

# %% [markdown]
# With the causal mask the upper triangle is exactly zero, through one attention and through two.
# Without it every output knows every input.
# And the slip adds up: two attentions see two places ahead.
#
# **A common mistake**: "the upper triangle is masked".
# The *strictly* upper one: the diagonal stays open.
# Here are two ways to get it wrong.
# What may the first query, `<s>`, attend to?

# %% tags=["nbval-check-output"]
square = torch.ones(tgt_len, tgt_len, dtype=torch.bool)
slips = {"tril()": square.tril(), "tril(-1)": square.tril(-1), "triu()": square.triu()}
for name, each in slips.items():
    row = [word for word, may in zip(german, each[0], strict=True) if may]
    print(f"{name:9}<s> may attend to {row}")
assert not slips["tril(-1)"][0].any()
assert torch.equal(~slips["triu()"], square.tril(-1))  # the past, and nothing else

# %% [markdown]
# With the diagonal hidden, the first row is empty: there is nothing that its weights could sum over.
# With `triu` for `tril`, everyone sees the future, and what is hidden is the past.
#
# ## What is the causal mask for?
#
# **A common mistake**: "we need the mask because the translation starts with nothing".
# When the model writes, its last position has no future that could be hidden.
# The mask is for training: it makes one pass over the whole sentence equal to many passes over its beginnings.
#
# Is it equal?
# We cut the sentence after each token, and compare with the one masked pass.

# %%
whole = through(layers, y, causal)  # (1, tgt_len, d_model)
for t in range(tgt_len):
    beginning = through(layers, y[:, : t + 1], causal_mask(t + 1))
    torch.testing.assert_close(beginning, whole[:, : t + 1], rtol=1e-12, atol=1e-14)

unmasked = through(layers, y, None)
for t in range(tgt_len - 1):
    beginning = through(layers, y[:, : t + 1], None)
    assert not torch.allclose(beginning[:, -1], unmasked[:, t], rtol=1e-3)

# %% [markdown]
# Every position of the masked pass is what the beginning alone gives.
# (A beginning has a mask too: its earlier positions must not learn from its later ones on the way through the stack.)
# So seven exercises cost one pass, side by side, and no recurrence.
# Without the mask not one of the beginnings agrees.
#
# ## Both masks, and the third
#
# Targets have different lengths too.
# Then a key must be real *and* not in the future: the two masks are combined with `&`.
# We take the two short pairs, so that the pictures stay small.

# %% tags=["nbval-check-output"]
src = pad([tokenizer.encode(pair.src) for pair in pairs[:2]])  # (batch, src_len)
tgt_in = pad([[BOS_ID, *tokenizer.encode(pair.tgt)] for pair in pairs[:2]])
padding = padding_mask(tgt_in, PAD_ID)  # (batch, 1, 1, tgt_len)
causal = causal_mask(tgt_in.shape[1])  # (1, 1, tgt_len, tgt_len)
both = padding & causal  # (batch, 1, tgt_len, tgt_len)
cross = padding_mask(src, PAD_ID)  # (batch, 1, 1, src_len)
named = {"padding": padding, "causal": causal, "both": both, "cross": cross}
for name, each in named.items():
    print(f"{name:8}{tuple(each.shape)}")
assert both.shape == (2, 1, 7, 7)

# %% [markdown]
# `&` lines the shapes up as well, and repeats what has size 1:
#
# ```text
# padding             (batch,  1,      1,     tgt_len)      2   1   1   7
# causal              (  1,    1,   tgt_len,  tgt_len)      1   1   7   7
# padding & causal    (batch,  1,   tgt_len,  tgt_len)      2   1   7   7
# ```
#
# The third mask, for cross-attention, belongs to scores of shape (batch, heads, tgt_len, src_len).
# There the queries are German and the keys are English.
# Must it be causal?
#
# No: the English sentence is known from the start, so every German position may read all of it.
# For the same reason the encoder looks both ways.
# What remains is the *source's* padding.

# %% id="four-masks"
english, german = words(src[0]), words(tgt_in[0])
keys_of = {"padding": german, "causal": german, "both": german, "cross": english}
drawn = {name: named[name][0, 0].expand(7, len(keys)) for name, keys in keys_of.items()}
look = dict(kind="mask", xlabel="key", ylabel="query")
figure = panels(
    [Panel(each, german, keys_of[name], name, **look) for name, each in drawn.items()],
    title="The decoder hides padding and future; cross-attention hides padding only",
)
expected = [[k <= q and german[k] != "<pad>" for k in range(7)] for q in range(7)]
assert drawn["both"].tolist() == expected
assert drawn["cross"].all(dim=0).tolist() == [True] * 4 + [False] * 2
assert all(each.any(dim=1).all() for each in drawn.values())
figure

# %% [markdown]
# Rows are queries, columns are keys.
# The cross mask is no square: it is tgt_len × src_len.
# And no row of any of them is empty, not even those of `<pad>`.
#
# Paint your own: hide a cell, and see where its weight goes.
# What does the widget say when a whole row is hidden?

# %%
from course_lib.widgets import MaskPainter

generator = torch.Generator().manual_seed(3)
asks, found_by = torch.randn(2, 7, d_model, generator=generator)  # queries, keys
offered = {name: drawn[name] for name in ("padding", "causal", "both")}
painter = MaskPainter(asks, found_by, german, german, offered, mask="both")
assert torch.equal(painter.compute() > 0, both[0, 0])
painter

# %% [markdown]
# Section 3.2.3 of the paper names three uses of attention.
# Each has its mask (the paper speaks of the causal one; padding is a matter of batches):
#
# | attention | queries | keys | mask | shape |
# |---|---|---|---|---|
# | encoder self-attention | source | source | source padding | (batch, 1, 1, src_len) |
# | decoder self-attention | target | target | target padding & causal | (batch, 1, tgt_len, tgt_len) |
# | cross-attention | target | source | source padding | (batch, 1, 1, src_len) |

# %% tags=["nbval-check-output"]
table = random(tokenizer.vocab_size, d_model)
english_x, german_x = table[src], table[tgt_in]
uses = {
    "encoder self-attention": (english_x, english_x, cross),
    "decoder self-attention": (german_x, german_x, both),
    "cross-attention": (german_x, english_x, cross),
}
for name, (query, key, mask) in uses.items():
    shape = (2, attend.num_heads, query.shape[1], key.shape[1])
    print(f"{name:24}scores {shape}   mask {tuple(mask.shape)}")
    assert attend(query, key, key, mask).shape == query.shape

# %% [markdown]
# **A common mistake**: the *target's* padding mask in cross-attention.
# Our library stops it, as long as the two lengths differ.

# %% tags=["nbval-check-output"]
try:
    attend(german_x, english_x, english_x, padding)
    caught = False
except ValueError as error:
    caught = True
    print(error)
assert caught

equal = padding[..., :6]  # had the target one token less, both would be six long
wrong = attend(german_x, english_x, english_x, equal)
assert not torch.allclose(wrong, attend(german_x, english_x, english_x, cross))

# %% [markdown]
# With equal lengths no check of shapes can help: the last assertion shows another output, and no error.
# So name your masks well.
#
# ## What a mask must never do: leave a query with nothing
#
# Weights sum to 1.
# If every key is hidden, there is nothing to share.
# Predict: what does a softmax make of a row of −∞?

# %% tags=["nbval-check-output"]
empty, large = torch.full((4,), -math.inf), torch.full((4,), -1e9)
print("−∞    ", empty.softmax(dim=-1).tolist())
print("−1e9  ", large.softmax(dim=-1).tolist())
assert empty.softmax(dim=-1).isnan().all()
assert (large.softmax(dim=-1) == 0.25).all()

mask = torch.tensor([[True, True, False], [False, False, False]])  # one empty row
value = torch.ones(3, 2, requires_grad=True)
weights = torch.zeros(2, 3).masked_fill(~mask, -math.inf).softmax(dim=-1)
(weights @ value).sum().backward()
assert not weights[0].isnan().any() and value.grad.isnan().all()

# %% [markdown]
# NaN, and it spreads: in the second half of the cell one query of two is empty, and the gradients of *all* values are NaN.
#
# **A common mistake**: `masked_fill(mask == 0, -1e9)`, which avoids the NaN and gives something worse.
# The row becomes *uniform*: the query attends to everything that was forbidden, in equal parts, and nothing warns you.
#
# And `F.scaled_dot_product_attention`, which lesson 03 found equal to our attention?

# %%
query, key = torch.ones(2, 4), torch.ones(3, 4)
fused = F.scaled_dot_product_attention(query, key, torch.ones(3, 2), attn_mask=mask)
print("context of the empty row:", fused[1].tolist())
torch.testing.assert_close(fused[0], torch.ones(2))  # the mean of ones
assert fused[1].isnan().all() or (fused[1] == 0).all()  # depends on the version

# %% [markdown]
# NaN in older versions of PyTorch, zeros in newer ones.
# Zeros are no attention either: all values are 1 here, so every mean of them is 1.
# And again nothing warns you.
#
# Our library does none of this: it refuses.

# %% tags=["nbval-check-output"]
try:
    attention_weights(query, key, mask)
    caught = False
except ValueError as error:
    caught = True
    print(error)
assert caught

# %% [markdown]
# How does a row become empty in practice?
# Padding on the *left* is one way, together with a causal mask.

# %% tags=["nbval-check-output"]
on_the_right = tgt_in[:1]  # <s> Die Katze schläft . <pad> <pad>
on_the_left = on_the_right.roll(2, dims=1)  # <pad> <pad> <s> Die Katze schläft .
nothing = []
for ids in (on_the_right, on_the_left):
    mask = padding_mask(ids, PAD_ID) & causal_mask(7)
    nothing.append((~mask.any(dim=-1)).flatten().nonzero().flatten().tolist())
    print(f"{' '.join(words(ids[0])):40}queries with nothing: {nothing[-1]}")
assert nothing == [[], [0, 1]]

# %% [markdown]
# That is why we pad on the right, and why the rows of `<pad>` stay open.
#
# ### A second reason against −1e9
#
# Half precision, float16, holds numbers up to 65,504.
# What becomes of −1e9 there?

# %% tags=["nbval-check-output"]
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    large = torch.full((4,), -1e9).to(dtype)
    weights = large.softmax(dim=-1)
    print(f"{str(dtype):15} −1e9 → {large[0].item():13,.0f}   {weights.tolist()}")
    assert large.isinf().all() == weights.isnan().all() == (dtype == torch.float16)
assert torch.finfo(torch.float16).max == 65504

# %% [markdown]
# It overflows to −∞, and the empty row is NaN again.
# So the same code is silently uniform in one precision and NaN in another.
# And `masked_fill` itself?

# %%
half, hide = torch.zeros(3, dtype=torch.float16), torch.tensor([True, False, False])
try:
    half.masked_fill(hide, -1e9)
    caught = False
except RuntimeError as error:
    caught = True
    print(error)
assert caught
assert half.masked_fill(hide, -math.inf).softmax(dim=-1).tolist() == [0, 0.5, 0.5]

# %% [markdown]
# PyTorch refuses to write a number that float16 does not have.
# −∞ it has.
#
# ## What a mask must never do: fit by accident
#
# Shapes are lined up from the right.
# Take a mask of shape (batch, keys), without the two axes of size 1, against scores (batch, heads, queries, keys).
# Its first axis meets the *queries*.
# When does that go unnoticed?
# We try six sentences of at most six tokens, and then the first five of them.

# %%
texts = [f"The {who}." for who in ("cat sees the dog", "dog sees the cat")]
texts += [f"The {who} sleeps." for who in ("cat", "dog", "child", "woman")]
ids = pad([tokenizer.encode(text) for text in texts])
four_axes, two_axes = padding_mask(ids, PAD_ID), ids != PAD_ID
scores = torch.zeros(6, 4, 6, 6)  # (batch, heads, queries, keys)
accepted = []
for batch in (6, 5):
    try:
        wrong = scores[:batch].masked_fill(~two_axes[:batch], -math.inf)
        accepted.append(tuple(wrong.shape))
    except RuntimeError as error:
        print(f"{batch} sentences: {error}")
assert accepted == [(6, 4, 6, 6)]

# %% [markdown]
# With five, PyTorch complains.
# With six there are as many sentences as queries: no error, the right shape, and a wrong result.
# Which weights does *The cat sleeps .* put on padding now?

# %%
weights = scores.masked_fill(~two_axes, -math.inf).softmax(dim=-1)
allowed = {"the first": (0, words(ids[0])), "the third": (2, words(ids[2]))}
drawn = []
for name, (number, labels) in allowed.items():
    meant, applied = four_axes[number, 0].expand(6, 6), weights[number, 0] > 0
    drawn.append(Panel(meant, labels, labels, f"meant for {name}", kind="mask"))
    drawn.append(Panel(applied, labels, labels, f"applied to {name}", kind="mask"))
    assert not torch.equal(applied, meant)
title = "A (batch, keys) mask gives sentence 0's padding to query 0, 1's to query 1, …"
figure = panels(drawn, title=title)
assert torch.equal(weights > 0, two_axes.expand(6, 4, 6, 6))
figure

# %% [markdown]
# All sentences get the same square, made of everybody's padding.
# In the third sentence *The* and *cat* attend to `<pad>`; in the first, four tokens cannot see *dog* and the full stop.
# The library refuses such a mask, with what it expected and what it got.

# %% tags=["nbval-check-output"]
from course_lib.masks import check_mask

for each in (four_axes, two_axes, two_axes[:, None, :]):
    try:
        check_mask(each, tuple(scores.shape))
        print(f"{tuple(each.shape)}: accepted")
        assert each is four_axes
    except ValueError as error:
        print(f"{tuple(each.shape)}: {error}")
        assert each is not four_axes

# %% [markdown]
# ## What a mask must never do: mean the opposite
#
# In `torch.nn.MultiheadAttention`, and so in `torch.nn.Transformer`, which is made of it, True means *hidden*.
# We hand it our mask, as it is, for a sentence with two `<pad>` and for one with none.
# Predict: where does the attention go?

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(d_model, 4, batch_first=True, dtype=torch.float64)
ours = src != PAD_ID  # (batch, keys), sentences of 4 and of 6 tokens
_, confused = theirs(english_x, english_x, english_x, key_padding_mask=ours)
_, inverted = theirs(english_x, english_x, english_x, key_padding_mask=~ours)
for name, weights in (("confused", confused), ("inverted", inverted)):
    for row in weights[:, 0]:  # of the first query of each sentence, mean of the heads
        print(name, [f"{weight:.2f}" for weight in row])
assert (confused[0, :, :4] == 0).all()
assert not (confused[1] > 0).any()  # NaN or 0, as above
assert (inverted[0, :, 4:] == 0).all() and not inverted.isnan().any()

# %% [markdown]
# The first sentence attends to *nothing but* its padding, and no error says so.
# The second has no padding, so all of it is hidden, and its rows are empty.
# When you use those classes, invert the mask.
#
# The other way to lose the meaning is the type.
# `F.scaled_dot_product_attention` takes a mask of numbers too, and *adds* it to the scores.
# What do ones and zeros do then?

# %%
query = torch.zeros(1, 1, 6, d_model)  # all scores are 0
key, value = torch.ones(1, 1, 6, d_model), torch.eye(6)[None, None]  # context = weights
mask = padding_mask(src[:1], PAD_ID)  # (1, 1, 1, keys)
as_bool, as_float = (
    F.scaled_dot_product_attention(query, key, value, attn_mask=each)[0, 0, 0]
    for each in (mask, mask.float())
)
print("bool ", [f"{weight:.2f}" for weight in as_bool])
print("float", [f"{weight:.2f}" for weight in as_float])
assert (as_bool[4:] == 0).all() and (as_float[4:] > 0.05).all()
torch.testing.assert_close(as_float, mask.float().flatten().softmax(dim=-1))

# %% [markdown]
# A score of 1 instead of 0 is a hint, not a prohibition: every `<pad>` has weight.
# Our library takes `bool` only.

# %% tags=["nbval-check-output"]
try:
    check_mask(mask.float(), (1, 1, 6, 6))
    caught = False
except ValueError as error:
    caught = True
    print(error)
assert caught

# %% [markdown]
# ## What a leak does to training
#
# Now we let a model learn with a leak.
# It is the smallest one that can: embeddings, positions, *one* attention, and a linear layer that scores the next token.
# It reads our four German sentences and predicts each next token, as in the table of seven exercises.

# %% tags=["nbval-check-output"]
targets = [tokenizer.encode(pair.tgt) for pair in pairs]
tgt_in = pad([[BOS_ID, *ids] for ids in targets]).to(device)  # (batch, tgt_len)
tgt_out = pad([[*ids, EOS_ID] for ids in targets]).to(device)
counted = tgt_out != PAD_ID
print(f"{len(targets)} sentences, {counted.sum()} tokens to predict")
assert counted.sum() == sum(len(ids) + 1 for ids in targets)


# %%
class NextToken(nn.Module):
    """Ids (batch, length) to logits (batch, length, vocab), through one attention."""

    def __init__(self, d_model=32, num_heads=4):
        super().__init__()
        self.table = nn.Embedding(tokenizer.vocab_size, d_model)
        self.attend = MultiHeadAttention(d_model, num_heads)
        self.generator = nn.Linear(d_model, tokenizer.vocab_size)

    def forward(self, ids, mask=None):
        x = self.table(ids)
        x = x + sinusoidal(*x.shape[1:]).to(x)  # (batch, length, d_model)
        return self.generator(self.attend(x, x, x, mask))


# %% [markdown]
# How low can the loss go without looking ahead?
# After `<s>` nobody can know whether *Die* or *Der* follows; after *Die Katze* nobody can know the verb.
# We count it by hand: for each beginning, how the sentences go on.

# %%
from collections import Counter, defaultdict

next_tokens = defaultdict(Counter)
for ids in targets:
    for t, token in enumerate([*ids, EOS_ID]):
        next_tokens[tuple(ids[:t])][token] += 1
nats = -sum(
    count * math.log(count / follows.total())
    for follows in next_tokens.values()
    for count in follows.values()
)
bound = nats / counted.sum().item()  # per token
print(f"no honest model gets below {bound:.3f} nats a token")
assert math.isclose(nats, 4 * math.log(4))

# %% [markdown]
# The sum has a short form: 4 · ln 4.
# Whoever cannot look ahead must guess which of four sentences it will be, and that costs ln 4 nats each.
#
# Now three kinds of models, each with the padding mask and one more: the causal one, the slip `tril(1)`, or none.


# %%
def opened(length, ahead):
    """A mask (1, 1, length, length): each position sees so many places ahead."""
    return torch.ones(1, 1, length, length, device=device).tril(ahead).bool()


def loss_of(model, ahead):
    mask = padding_mask(tgt_in, PAD_ID) & opened(tgt_in.shape[1], ahead)
    return F.cross_entropy(model(tgt_in, mask)[counted], tgt_out[counted])


# %%
def train(ahead, seed, steps=60):
    """A trained model and its loss before each step."""
    torch.manual_seed(seed)
    model, losses = NextToken().to(device), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = loss_of(model, ahead)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


# %% [markdown]
# Three seeds each, ten on a GPU.
# Which curve would you like best, if the loss were all you saw?

# %%
rules = {"causal": 0, "tril(1)": 1, "no causal mask": tgt_in.shape[1]}
seeds = range(10 if device == "cuda" else 3)
runs = {name: [train(ahead, seed) for seed in seeds] for name, ahead in rules.items()}
losses = {name: [each for _, each in trained] for name, trained in runs.items()}
assert all(loss > bound - 1e-5 for run in losses["causal"] for loss in run)
assert all(run[-1] < 1.1 * bound for run in losses["causal"])
assert all(run[-1] < bound / 4 for run in losses["tril(1)"] + losses["no causal mask"])

# %%
from course_lib.figures import curves

figure = curves(
    {name: (range(len(each[0])), each) for name, each in losses.items()},
    xlabel="step",
    ylabel="nats a token",
    title="Two of the three losses fall below what is possible without looking ahead",
    log_y=True,
    marks={"best without looking ahead": (None, bound)},
)
ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[0].lines}
assert [name for name in rules if ends[name] < 0.9 * bound] == list(rules)[1:]
figure

# %% [markdown]
# The honest model comes down to the bound and stays there.
# The other two go to zero: a loss that is too good is a symptom.
# Now let all of them write, one token after the other, always the most probable one.


# %%
@torch.no_grad()
def write(model, max_len=12):
    """Greedy: from <s> on, until </s>."""
    ids = torch.tensor([[BOS_ID]], device=device)
    while ids.shape[1] < max_len and ids[0, -1] != EOS_ID:
        best = model(ids)[:, -1:].argmax(dim=-1)  # (1, 1); the last query sees all
        ids = torch.cat([ids, best], dim=1)
    return tokenizer.decode(ids[0].tolist())


# %%
sentences = [pair.tgt for pair in pairs]
for name, trained in runs.items():
    written = [write(model) for model, _ in trained]
    right = sum(text in sentences for text in written)
    blind = min(loss_of(model, 0).item() for model, _ in trained)
    print(f"{name}: {right} of {len(seeds)} right, the first: {written[0]!r}")
    print(f"    loss with the future hidden: {blind:.2f} or more")
    assert right == len(seeds) if name == "causal" else right < len(seeds) / 2
    assert blind < 1.1 * bound if name == "causal" else blind > 1

# %% [markdown]
# The honest model writes a German sentence with every seed.
# The others learned to read the answer, and when they write there is none to read.
# Hide the future from them, and their loss is far above the bound.

# %% [markdown]
# ## Summary
#
# A mask says which keys a query may attend to: True = may, and what is hidden gets −∞ before the softmax, so that it has weight 0 and the rest sums to 1.
# The padding mask (batch, 1, 1, keys) makes a sentence independent of its neighbors in the batch: padded or alone, the outputs agree.
# The causal mask (1, 1, length, length) is open on and below the diagonal; with it, gradients from the future are exactly 0, and one pass trains all positions at once.
# The decoder combines both with `&`, and cross-attention needs only the source's padding mask.
# A mask must leave every query something, must not fit by accident, and must not mean the opposite; a loss that falls too low is how a leak shows.
#
# **Practice**: [assignment 05](assignments/release/05_masks/05_masks.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [06](06_encoder.ipynb): attention mixes tokens; now we build the rest of an encoder layer around it.
