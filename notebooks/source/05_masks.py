# %% [markdown]
# # 05 · Masks: who may attend to whom
#
# **Question.** Attention lets every token attend to every other one. Which pairs must we forbid, and how, so that nothing leaks?
#
# **Afterwards you can**
#
# 1. build the padding mask, the causal mask and the cross mask, and say which attention gets which;
# 2. say where −∞ goes, and why it goes before the softmax;
# 3. explain why a correct mask lets nothing through, test that your code has no leak, and recognize the usual slips.
#
# **You need** attention and its heads (lessons [03](03_attention.ipynb) and [04](04_multi_head.ipynb)), padding from lesson [01](01_text_to_tensors.ipynb), sinusoids from lesson [02](02_position.ipynb).
# **Time**: {minutes} minutes to read, under 20 seconds to run.
# **In the paper**: sections 3.1 (decoder) and 3.2.3, the box "Mask (opt.)" in figure 2 [@vaswani2017].

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.attention import MultiHeadAttention
from course_lib.data import Pair, pad
from course_lib.figures import Panel, curves, mask_grid, panels
from course_lib.position import sinusoidal
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from course_lib.widgets import MaskPainter, Predict, Predictions

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # small tensors: two threads would wait for each other

# %% [markdown]
# ## Too good a loss
#
# We take the four pairs of lesson 01, and train a tokenizer on them, so that each word is one token.

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
tokenizer = Tokenizer.train([text for pair in pairs for text in pair], vocab_size=160)
for english, _ in pairs:
    print(" ".join(tokenizer.tokens(english)))

# %% [markdown]
# Models of three kinds, A, B and C, learn to continue the four German sentences.
# As in lesson [00](00_welcome.ipynb), each position answers with the token that follows.
# A model has embeddings, positions, *one* attention and a linear layer for the logits.
# The kinds differ only in who may attend to whom. (The code is folded: it tells how.)


# %% tags=["hide-input"]
class NextToken(nn.Module):
    """Ids (batch, length) to logits (batch, length, vocab), through one attention."""

    def __init__(self, d_model=32, num_heads=4):
        super().__init__()
        self.table = nn.Embedding(tokenizer.vocab_size, d_model)
        self.attend = MultiHeadAttention(d_model, num_heads)
        self.to_logits = nn.Linear(d_model, tokenizer.vocab_size)

    def forward(self, ids, mask=None):
        embedded = self.table(ids)
        embedded = embedded + sinusoidal(*embedded.shape[1:]).to(embedded)
        return self.to_logits(self.attend(embedded, embedded, embedded, mask))


# %% tags=["nbval-check-output", "hide-input"]
from course_lib.masks import padding_mask

targets = [tokenizer.encode(pair.tgt) for pair in pairs]
tgt_in = pad([[BOS_ID, *ids] for ids in targets]).to(device)  # (batch, tgt_len)
tgt_out = pad([[*ids, EOS_ID] for ids in targets]).to(device)
print(f"{len(targets)} sentences, {(tgt_out != PAD_ID).sum()} tokens to predict")


def opened(length, ahead):
    """A mask (1, 1, length, length): each query sees so many positions ahead."""
    return torch.ones(1, 1, length, length, device=device).tril(ahead).bool()


def loss_of(model, ahead):
    mask = padding_mask(tgt_in, PAD_ID) & opened(tgt_in.shape[1], ahead)
    logits = model(tgt_in, mask).mT  # (batch, vocab, tgt_len), for cross_entropy
    return F.cross_entropy(logits, tgt_out, ignore_index=PAD_ID)


# %% [markdown]
# The loss is that of lesson 00, the mean of −log(probability) of the right tokens, called **cross-entropy**.
# How low can it go?
# Even a model that knows our four sentences by heart has to guess which of them comes: at best it gives each of them 1/4.
# The probabilities of a sentence's tokens then multiply to 1/4.
# So a sentence costs ln 4 = 1.39 nats (the unit of the natural logarithm); four sentences over 30 tokens make 0.185 per token.

# %% tags=["hide-input"]
bound = len(targets) * math.log(4) / (tgt_out != PAD_ID).sum().item()
assert math.isclose(bound, 4 * math.log(4) / 30) and round(bound, 3) == 0.185
assert round(math.log(4), 2) == 1.39
some_model = NextToken().to(device)
causal_padding = padding_mask(tgt_in, PAD_ID) & opened(tgt_in.shape[1], 0)
log_probabilities = some_model(tgt_in, causal_padding).log_softmax(dim=-1)
of_right = log_probabilities.gather(2, tgt_out[..., None])[..., 0]
by_definition = -of_right[tgt_out != PAD_ID].mean()
torch.testing.assert_close(loss_of(some_model, 0), by_definition)

# %% [markdown]
# We train each kind. (Lines are means over three seeds, bands reach from the smallest to the largest.)


# %% tags=["hide-input"]
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


rules = {"causal": 0, "tril(1)": 1, "no causal mask": tgt_in.shape[1]}
seeds = range(3)
runs = {name: [train(ahead, seed) for seed in seeds] for name, ahead in rules.items()}

# %% tags=["hide-input"]
losses = {name: [each for _, each in trained] for name, trained in runs.items()}
curves(
    {
        letter: (range(len(each[0])), each)
        for letter, each in zip("ABC", losses.values(), strict=True)
    },
    xlabel="step",
    ylabel="cross-entropy (nats per token)",
    title="B and C do better than a model that knows the sentences by heart",
    log_y=True,
    marks={"the four known by heart": (None, bound)},
)

# %% tags=["hide-input"]
assert all(loss > bound - 1e-5 for run in losses["causal"] for loss in run)
assert all(run[-1] < 1.1 * bound for run in losses["causal"])
assert all(run[-1] < bound / 4 for run in losses["tril(1)"] + losses["no causal mask"])

# %% [markdown]
# A comes down to the dashed line and stays there.
# B and C go through it, toward zero.
# How can they? And which kind would you take?
#
# We begin with tokens to which nobody should attend.
#
# ## A batch contains padding
#
# The first three English sentences, of 4, 6 and 10 tokens, go into one tensor.
# (To keep the pictures small, we leave out the `</s>` at the end of each.)
# It must be rectangular, so the short ones are filled up with `<pad>`.


# %% tags=["nbval-check-output"]
def words(ids):
    """The tokens of a row of ids, without the mark that opens a word."""
    return [tokenizer.token(i).removeprefix("▁") for i in ids.tolist()]


src = pad([tokenizer.encode(pair.src) for pair in pairs[:3]])  # (batch, src_len)
for ids in src:
    print(" ".join(words(ids)))
print(f"{(src == PAD_ID).float().mean():.0%} of the batch is padding")

# %% tags=["hide-input"]
for text in (text for pair in pairs for text in pair):
    assert len(tokenizer.tokens(text)) == len(text.split()) + 1  # a word, a token
assert (src != PAD_ID).sum(dim=1).tolist() == [4, 6, 10]

# %% [markdown]
# What if attention ignores this?
# We make scores as in lesson 03, from random embeddings plus positions, and with random matrices.

# %%
d_model, rng = 16, torch.Generator().manual_seed(0)


def random(*shape):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


w_query, w_key = random(2, d_model, d_model) / math.sqrt(d_model)
positions = sinusoidal(src.shape[1], d_model).double()
x = random(tokenizer.vocab_size, d_model)[src] + positions  # (batch, src_len, d_model)
query, key = x @ w_query, x @ w_key
scores = query @ key.mT / math.sqrt(d_model)  # (batch, queries, keys)
print("scores", tuple(scores.shape), "= batch × queries × keys")

# %%
on_padding = Predict(
    "*The cat sleeps .* fills 4 of 10 positions. How much of its attention goes to the "
    "6 that are padding?",
    ["none", "a few percent", "more than half"],
    section="A batch contains padding",
)
on_padding

# %%
real = src != PAD_ID  # (batch, keys)
no_mask = scores.softmax(dim=-1)


def share_on_padding(weights):
    """For each token of the first sentence: how much of its weight is on padding."""
    return weights[0, :4, 4:].sum(dim=-1)


for word, share in zip(words(src[0]), share_on_padding(no_mask), strict=False):
    print(f"{word:8}{share:5.0%} on padding")
much = share_on_padding(no_mask).mean() > 0.5
why = "equal scores would give 60 %, and ours give padding more on average"
on_padding.reveal("more than half" if much else "a few percent", because=why)

# %% tags=["hide-input"]
assert (no_mask[0, :, 4:] > 0).all() and (share_on_padding(no_mask) > 0.5).all()
assert share_on_padding(no_mask).mean() > 0.7

# %% [markdown]
# Every token here gives more than half to `<pad>`.
# What is missing is a **mask**: a tensor that says which query may attend to which key.
#
# ## Where does the mask go?
#
# Take one query and three keys, with the scores 1, 2 and 3. The third key is padding.
# The softmax makes e¹, e², e³ = 2.7, 7.4, 20.1, and divides by their sum, 30.2: the weights are 0.09, 0.24 and 0.67.
# We want 0 for the padding, and the two words should share as if they were alone: 2.7/10.1 = 0.27 and 7.4/10.1 = 0.73.
#
# ### First try: keys of zeros
#
# `nn.Embedding(…, padding_idx=…)` gives `<pad>` a vector of zeros.
# Without positions and biases its key is zero, too (we set ours to zero).
# Is that enough?
# A key of zeros has a score of 0 with every query: the row 1, 2, 3 becomes 1, 2, 0.
# In our batch, for each query of *The cat sleeps .*, e^score sums to less than 2 over the four words.

# %%
of_zeros = Predict(
    "The keys of the padding are set to zero. How much attention do the six get now?",
    ["none", "less than half", "more than half"],
    section="First try: keys of zeros",
)
of_zeros

# %%
zero_key = key.masked_fill(~real[:, :, None], 0.0)  # (batch, keys, d_model)
zeroed_before = (query @ zero_key.mT / math.sqrt(d_model)).softmax(dim=-1)
for word, share in zip(words(src[0]), share_on_padding(zeroed_before), strict=False):
    print(f"{word:8}{share:5.0%} on padding")
is_most = share_on_padding(zeroed_before).mean() > 0.5
why = "the six zeros add 6 to the sum, and the four words less than 2"
of_zeros.reveal(f"{'more' if is_most else 'less'} than half", because=why)

# %% tags=["hide-input"]
assert (share_on_padding(zeroed_before) > 0.5).all()
assert (scores[0, :4, :4].exp().sum(dim=-1) < 2).all()
zeroed_scores = scores.masked_fill(~real[:, None, :], 0.0)
torch.testing.assert_close(zeroed_before, zeroed_scores.softmax(dim=-1))
assert not nn.Embedding(5, d_model, padding_idx=0).weight[0].any()
small = torch.tensor([[1.0, 2, 3], [1, 2, 0]]).softmax(dim=-1)
assert [round(share, 2) for share in small[0].tolist()] == [0.09, 0.24, 0.67]
assert round(small[1, 2].item(), 2) == 0.09
assert [round(math.exp(score), 1) for score in (1, 2, 3)] == [2.7, 7.4, 20.1]

# %% [markdown]
# **A common mistake**: "zero padding needs no mask".
# Zero is a score like any other, and e⁰ = 1.
# In the small row the padding's weight falls from 0.67 to 1/11.1 = 0.09, but not to 0.
#
# ### Second try: zero the weights, after the softmax
#
# We set the weight itself to zero, after the softmax: 0.09, 0.24, 0.
# The two words keep their ratio, but their weights sum to 0.33.
# And in our batch?

# %%
zeroed_after = no_mask.masked_fill(~real[:, None, :], 0.0)
sums = zeroed_after[0, :4].sum(dim=-1)
for word, total in zip(words(src[0]), sums, strict=False):
    print(f"{word:8}weights sum to {total:.2f}")

# %% tags=["hide-input"]
torch.testing.assert_close(sums, 1 - share_on_padding(no_mask))

# %% [markdown]
# Each sum is below 1: what is missing is exactly the padding's share.
#
# ### Third try: leave the padding out of the softmax
#
# To hide a key is to leave it out: only e¹ and e² are summed, and the weights are 0.27, 0.73 and 0.
# As a loop over each query's allowed keys:


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
print("rows sum to", [round(total, 3) for total in by_hand.sum(dim=-1).tolist()[:4]])

# %% [markdown]
# How do we say "leave it out" to a softmax that takes the whole row?
# With the score whose exponential is exactly 0: −∞.


# %%
def masked_weights(query, key, mask):
    """Weights (..., queries, keys); a mask is bool, True = may attend."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


masked = masked_weights(query, key, real[:, None, :])
print("e^0 =", math.exp(0), "  e^−∞ =", math.exp(-math.inf))
print("on padding:", share_on_padding(masked).tolist())
without_padding = scores[0, :4, :4].softmax(dim=-1)  # the sentence alone
difference = (masked[0, :4, :4] - without_padding).abs().max()
print(f"differs from the sentence alone by {difference:.0e}")
print("equal to the loop:", torch.allclose(masked[0], by_hand, rtol=1e-12, atol=0))

# %% tags=["hide-input"]
torch.testing.assert_close(by_hand.sum(dim=-1), torch.ones(10).double())
torch.testing.assert_close(masked[0], by_hand)
torch.testing.assert_close(masked[0, :4, :4], without_padding)
assert (masked[0, :, 4:] == 0).all()

# %% [markdown]
# That is the rule: **hidden scores become −∞, before the softmax.**
# The paper says so of its decoder (3.2.3): "masking out (setting to −∞) all values in the input of the softmax which correspond to illegal connections".

# %% tags=["hide-input"]
tried = {
    "no mask": no_mask,
    "keys set to 0": zeroed_before,
    "weights set to 0 afterwards": zeroed_after,
    "scores set to −∞": masked,
}
first_words, first_positions = words(src[0])[:4], words(src[0])
axes = dict(kind="weights", xlabel="key", ylabel="query")
drawn = [
    Panel(weights[0, :4], first_words, first_positions, name, **axes)
    for name, weights in tried.items()
]

# %% id="four-ways-to-hide" tags=["hide-input"]
title = "Of these four, −∞ alone gives the words all of the weight (empty: exactly 0)"
figure = panels(drawn, title=title, per_row=2)
for drawing, panel in zip(figure.axes, drawn, strict=False):
    for number in drawing.texts:
        column, row = number.get_position()
        number.set_visible(bool(panel.values[row, column] > 0))
figure

# %% tags=["hide-input"]
to_words = {name: weights[0, :4, :4].sum(dim=-1) for name, weights in tried.items()}
whole = [name for name, total in to_words.items() if (total > 0.999).all()]
assert whole == ["scores set to −∞"]

# %% [markdown]
# ### And if we divide by the new sum?
#
# We could also zero the weights and then divide by their sum: 0.09/0.33 = 0.27 and 0.24/0.33 = 0.73.
# That is right again, because the softmax's own divisor cancels.
# Now let the hidden score be 200 instead of 3.

# %% tags=["nbval-check-output"]
renormalized = zeroed_after / zeroed_after.sum(dim=-1, keepdim=True)
print("on our batch both agree:", torch.allclose(renormalized, masked))
large_last = torch.tensor([1.0, 2.0, 200.0])  # scores, float32; the last is hidden
open_keys = torch.tensor([True, True, False])
left_over = large_last.softmax(dim=-1) * open_keys
before = large_last.masked_fill(~open_keys, -math.inf).softmax(dim=-1)
print("divided afterwards", (left_over / left_over.sum()).tolist())
print("−∞ before         ", [round(weight, 3) for weight in before.tolist()])

# %% tags=["hide-input"]
torch.testing.assert_close(renormalized, masked)
assert (left_over / left_over.sum()).isnan().all()
torch.testing.assert_close(before[:2], large_last[:2].softmax(dim=-1))

# %% [markdown]
# With a hidden score of 200 the softmax gives the words e⁻¹⁹⁹ and e⁻¹⁹⁸.
# In float32 both are 0, and 0/0 is NaN, "not a number".
# With −∞ it does not matter which number was there.
#
# Our library's `attention_weights` does what `masked_weights` does, and checks the mask first.

# %% tags=["hide-input"]
from course_lib.attention import attention_weights

theirs = attention_weights(query, key, real[:, None, :])
assert torch.equal(masked, theirs)
assert torch.equal(theirs == 0, ~real[:, None, :].expand(3, 10, 10))

# %% [markdown]
# ## The padding mask
#
# The **padding mask** is made from ids, first in a loop.
# Why does it have two axes of size 1?


# %%
def padding_by_hand(ids, pad_id):
    """Ids (batch, keys) to a mask (batch, 1, 1, keys)."""
    mask = torch.zeros(len(ids), 1, 1, ids.shape[1], dtype=torch.bool)
    for sentence in range(len(ids)):
        for k in range(ids.shape[1]):
            mask[sentence, 0, 0, k] = ids[sentence, k].item() != pad_id
    return mask


def hide_padding(ids, pad_id):
    """The same without a loop."""
    return (ids != pad_id)[:, None, None, :]


# %% tags=["nbval-check-output"]
from course_lib.masks import padding_mask

src_mask = padding_mask(src, PAD_ID)
print("mask", tuple(src_mask.shape))
print("equal to the loop's:     ", torch.equal(src_mask, padding_by_hand(src, PAD_ID)))
print("equal to ours:           ", torch.equal(src_mask, hide_padding(src, PAD_ID)))

# %% [markdown]
# The scores of all heads have the shape (batch, heads, queries, keys).
# **Broadcasting** lines two shapes up from the right, and counts an axis that is missing on the left as one of size 1.
# It repeats an axis of size 1 as often as needed:
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
# The mask hides *keys*, which are columns of the scores.
# The rows of the padding stay open.
# A `<pad>` still asks and gets an answer, which nobody reads: the next attention hides its key again, and the loss skips its position.
#
# ### Does padding change anything now?
#
# We take a whole multi-head attention of the library, untrained.
# Test *alone*: each sentence goes through alone, and once more in the batch, next to its `<pad>`.

# %%
torch.manual_seed(0)
attend = MultiHeadAttention(d_model, num_heads=4).double()
lengths = real.sum(dim=1).tolist()
with_mask = attend(x, x, x, src_mask)  # (batch, src_len, d_model)
careless = attend(x, x, x)
for number, length in enumerate(lengths):
    one = x[number : number + 1, :length]  # (1, length, d_model): no padding, no mask
    alone = attend(one, one, one)[0]
    off = [(z[number, :length] - alone).abs().max() for z in (with_mask, careless)]
    print(f"{length:2} tokens: off by {off[0]:.0e} with the mask, {off[1]:.0e} without")

# %% tags=["hide-input"]
repeated = attend(x, x, x, src_mask.expand(3, 4, 10, 10))  # as the drawing says
torch.testing.assert_close(with_mask, repeated)
for number, length in enumerate(lengths):
    one = x[number : number + 1, :length]
    alone, padded = attend(one, one, one)[0], with_mask[number, :length]
    torch.testing.assert_close(alone, padded, rtol=1e-12, atol=1e-14)
    difference = (careless[number, :length] - padded).abs().max()
    assert (difference > 0.01) == (length < 10)

# %% [markdown]
# With the mask each comes out as if alone, up to rounding.
# Without it only the longest does, which has no padding.
#
# A second test, *refilled*, to the last bit: we put other numbers into the padding, 1000 times as large.
# Does any word of the two padded sentences notice?

# %%
is_word = real[:, :, None]  # (batch, src_len, 1)
large = torch.where(is_word, x, 1000 * random(*x.shape))
after = attend(large, large, large, src_mask)
same = (after == with_mask)[:2][real[:2]].all(dim=-1)  # (words,)
print(f"{same.sum()} of {len(same)} words have the same output")

# %% tags=["hide-input"]
assert torch.equal(after[real], with_mask[real])
assert not torch.equal(after[~real], with_mask[~real])
unmasked = attend(large, large, large)
assert not torch.allclose(unmasked[:2][real[:2]], careless[:2][real[:2]])
of_nan = torch.where(is_word, x, math.nan)
after = attend(of_nan, of_nan, of_nan, src_mask)
broken = after[:2][real[:2]]  # of the sentences that have padding, filled with NaN
assert broken.isnan().all() and not after[2].isnan().any()

# %% [markdown]
# ## The causal mask
#
# The decoder learns to continue a sentence.
# In training it reads the whole sentence at once, and at each position it must predict the next token:
#
# ```text
# position     0      1      2      3      4      5      6
# reads        <s>    Die    Katze  sieht  den    Hund   .
# predicts     Die    Katze  sieht  den    Hund   .      </s>
# ```
#
# Position 2 must predict *sieht*, which is in the input, at position 3.
# Without a mask the model need not learn any German: it can look one position to the right and copy.
# Nothing hides that position from kind C.
#
# The **causal mask**, also called **look-ahead mask**, closes that way.
# A query may attend to its own position and to those before it:


# %%
def causal_by_hand(length):
    """A mask (1, 1, length, length)."""
    mask = torch.zeros(1, 1, length, length, dtype=torch.bool)
    for q in range(length):
        for k in range(length):
            mask[0, 0, q, k] = k <= q
    return mask


def hide_future(length):
    """The same without a loop: ones on and below the diagonal."""
    return torch.ones(length, length, dtype=torch.bool).tril()[None, None]


# %% tags=["nbval-check-output"]
from course_lib.masks import causal_mask

target = tokenizer.encode(pairs[1].tgt)
one_tgt = torch.tensor([[BOS_ID, *target]])  # (1, tgt_len)
tgt_len = one_tgt.shape[1]
causal = causal_mask(tgt_len)
print("mask", tuple(causal.shape))
print("equal to the loop's:     ", torch.equal(causal, causal_by_hand(tgt_len)))
print("equal to ours:           ", torch.equal(causal, hide_future(tgt_len)))

# %%
german = words(one_tgt[0])
title = f"{causal.sum()} of {causal.numel()} pairs are open: none of them looks ahead"
mask_grid(causal[0, 0], german, german, title=title)

# %% tags=["hide-input"]
assert causal.sum() == tgt_len * (tgt_len + 1) / 2
assert not causal[0, 0].triu(1).any()

# %% [markdown]
# Each row is one exercise for the model: what it may read, and what it must predict.

# %% tags=["nbval-check-output"]
answers = [*words(torch.tensor(target)), "</s>"]
for t, answer in enumerate(answers):
    readable = [word for word, may in zip(german, causal[0, 0, t], strict=True) if may]
    print(f"{' '.join(readable):32} → {answer}")

# %% tags=["hide-input"]
for t in range(tgt_len):
    read = [word for word, may in zip(german, causal[0, 0, t], strict=True) if may]
    assert read == ["<s>", *answers[:t]]  # and not the answer, answers[t]

# %% [markdown]
# Does the open diagonal give an answer away?
# No: at position 2 the diagonal shows *Katze*, and the answer is *sieht*.
# The mask alone is not enough: what the model predicts must also be shifted by one against what it reads.
# Section 3.1 of the paper names both: the masking, and "output embeddings" (what the decoder reads) that are "offset by one position".
# (Without the shift every test of the mask still passes: lesson [08](08_transformer.ipynb) tries it.)
#
# ### Does anything leak?
#
# A **leak** is a way by which something that should be hidden reaches an output.
# With a correct mask there is none.
# To see why, we put *Apfel* in place of *Hund*, at position 5, and send both sentences through two attentions.
# How far apart are the two vectors at each position?


# %%
def through(layers, y, mask):
    """y (batch, length, d_model) through some attentions, one after the other."""
    for layer in layers:
        y = layer(y, y, y, mask)
    return y


two_layers = [attend, MultiHeadAttention(d_model, num_heads=4).double()]
vectors = random(tokenizer.vocab_size, d_model)
other_tgt = torch.tensor([[BOS_ID, *tokenizer.encode("Die Katze sieht den Apfel.")]])
y, y_apfel = (vectors[ids] + positions[:tgt_len] for ids in (one_tgt, other_tgt))
print("Hund → Apfel    ", *(f"{word:>6}" for word in german))
for depth, name in enumerate(("input", "first attention", "second attention")):
    layers = two_layers[:depth]
    of_hund, of_apfel = (through(layers, z, causal)[0] for z in (y, y_apfel))
    change = (of_hund - of_apfel).norm(dim=-1)  # (tgt_len,)
    print(f"{name:16}", *(f"{each:6.2g}" for each in change))

# %% tags=["hide-input"]
torch.testing.assert_close(of_hund[:5], of_apfel[:5], rtol=1e-12, atol=1e-14)
assert (change[5:] > 1e-4).all()  # of the second attention
assert german[5] == "Hund" and german[3] == "sieht"
assert words(other_tgt[0])[5] == "Apfel" and (one_tgt != other_tgt).sum() == 1

# %% [markdown]
# Before position 5 nothing changes: take *sieht*, at position 3.
# In the first attention it uses positions 0 to 3 only: the softmax leaves hidden scores out, and hidden values get the weight 0.
# In the second it reads outputs 0 to 3 of the first, and none of them has changed.
# So it goes on through any number of layers, if nothing but attention mixes positions.
# (All numbers must be finite: we will meet the exception.)
#
# The gradient tests every pair of positions: how much does output *t* change with a small change of input *s*?
# For *s* > *t* it must be **exactly 0**, not only small.


# %%
def influence(layers, y, mask):
    """Size of the gradient of each output (row) with respect to each input (column)."""
    jacobian = torch.autograd.functional.jacobian(lambda y: through(layers, y, mask), y)
    # jacobian: (1, queries, d_model, 1, keys, d_model)
    return jacobian.square().sum(dim=(0, 2, 3, 5)).sqrt()  # (queries, keys)


# %% [markdown]
# We test one attention and a stack of two, with the causal mask and with the slip of kind B: `tril(1)` instead of `tril()` opens one position too many.

# %%
how_far = Predict(
    "With the slip, one layer sees one position ahead. How many does a stack of two?",
    unit="positions",
    section="Does anything leak?",
)
how_far

# %%
slip = torch.ones(1, 1, tgt_len, tgt_len).tril(1).bool()
seen = {
    "causal, one attention": influence(two_layers[:1], y, causal),
    "causal, two attentions": influence(two_layers, y, causal),
    "tril(1), one attention": influence(two_layers[:1], y, slip),
    "tril(1), two attentions": influence(two_layers, y, slip),
}
ahead = (seen["tril(1), two attentions"][0] > 0).sum() - 1  # of the first output
how_far.reveal(ahead, because="the second one reads outputs that have seen one already")

# %% tags=["hide-input"]
axes = dict(kind="mask", xlabel="input s", ylabel="output t")
drawn = [Panel(found > 0, german, german, name, **axes) for name, found in seen.items()]
print("largest gradient for s > t, as a share of the largest of all:")
for name, found in seen.items():
    print(f"{name:24}{(found.triu(1).max() / found.max()).item():.2g}")
title = "The slip adds up: one attention sees one position ahead, two see two"
meaning = "s changes output t", "changes nothing: gradient exactly 0"
figure = panels(drawn, title=title, words={"mask": meaning})
edge = torch.arange(tgt_len + 1) - 0.5  # of the diagonal
for drawing in figure.axes:
    drawing.step(edge, edge, where="post", color="black", linewidth=2)
figure

# %% tags=["hide-input"]
future = ~causal[0, 0]  # strictly above the diagonal
for name in ("causal, one attention", "causal, two attentions"):
    assert (seen[name][future] == 0).all() and (seen[name][~future] > 0).all()
for name, far in (("tril(1), one attention", 1), ("tril(1), two attentions", 2)):
    reached = torch.ones(tgt_len, tgt_len).tril(far).bool()
    assert torch.equal(seen[name] > 0, reached)
other_input = random(*y.shape)  # the argument says: at every input
assert (influence(two_layers, other_input, causal)[future] == 0).all()
assert (influence(two_layers, y, None)[future] > 0).all()  # kind C

# %% [markdown]
# The black line is the edge of the causal mask.
# With the right mask the gradient above it is exactly 0, in one attention and in the stack.
#
# ### One pass instead of seven
#
# Cut the sentence off after one of its tokens: what is left is a **prefix**.
# With the causal mask, one pass over the whole sentence should give the same as seven passes, one over each prefix.
#
# We compare the last output of each prefix with the same position of the one pass.

# %%
at_once = {"causal": through(two_layers, y, causal)}  # (1, tgt_len, d_model)
at_once["none"] = through(two_layers, y, None)
print("difference between prefix and whole sentence: with mask, without")
for t in range(tgt_len):
    off = []
    for name, mask in (("causal", causal_mask(t + 1)), ("none", None)):
        prefix = through(two_layers, y[:, : t + 1], mask)  # (1, t + 1, d_model)
        off.append((prefix[0, -1] - at_once[name][0, t]).abs().max())
    print(f"{german[t]:8}{off[0]:.0e}   {off[1]:.0e}")

# %% tags=["hide-input"]
at_once["tril(1)"] = through(two_layers, y, slip)
for t in range(tgt_len):
    prefix = through(two_layers, y[:, : t + 1], causal_mask(t + 1))
    whole = at_once["causal"][:, : t + 1]
    torch.testing.assert_close(prefix, whole, rtol=1e-12, atol=1e-14)
    for name, mask in (("none", None), ("tril(1)", slip[..., : t + 1, : t + 1])):
        prefix = through(two_layers, y[:, : t + 1], mask)
        same = torch.allclose(prefix[:, -1], at_once[name][:, t], rtol=1e-3)
        assert same == (t == tgt_len - 1)

# %% [markdown]
# With the mask, every position of the one pass gets what its prefix alone would get, up to rounding.
# So seven exercises cost one pass (lesson [07](07_decoder.ipynb)).
# Without the mask, or with `tril(1)`, only the last position agrees, because its prefix is the whole sentence.
#
# When the model writes, the newest token has no future to hide.
# Can we drop the mask then?

# %%
for depth in (1, 2):
    newest = [through(two_layers[:depth], y, mask)[0, -1] for mask in (causal, None)]
    gap = (newest[0] - newest[1]).abs().max()
    print(f"depth {depth}: without the mask the newest output changes by {gap:.0e}")

# %% tags=["hide-input"]
assert gap > 0.01  # of two
without = two_layers[0](y, y, y)[0, -1]
hidden = two_layers[0](y, y, y, causal)[0, -1]
torch.testing.assert_close(without, hidden, rtol=1e-12, atol=1e-14)

# %% [markdown]
# In one attention, yes.
# In a stack, no: there the newest token reads earlier outputs, which must not see more than they saw in training.
# So keep the mask on.
# (Lesson [11](11_decoding.ipynb) shows how not to run the whole prefix again.)
#
# ## What a leak does to training
#
# A leak gives what everybody wants: a lower loss.
# A, B and C of the first figure all have the padding mask.
# A adds the causal mask, B the slip `tril(1)`, C nothing.
# The position that the slip opens holds the answer.
# So B and C need not guess which sentence comes.
# On a real corpus nobody knows the dashed line, and the validation loss has the same leak, because it uses the same mask.
#
# Now let the three kinds write.
# From `<s>` on, `write` appends the most probable token (greedy decoding, lesson [11](11_decoding.ipynb)).
# With one attention the newest token needs no mask.


# %% tags=["hide-input"]
@torch.no_grad()
def write(model, max_len=12):
    """From <s> on, until </s>; one layer: only the last query counts, so no mask."""
    ids = torch.tensor([[BOS_ID]], device=device)
    while ids.shape[1] < max_len and ids[0, -1] != EOS_ID:
        best = model(ids)[:, -1:].argmax(dim=-1)  # (1, 1)
        ids = torch.cat([ids, best], dim=1)
    return tokenizer.decode(ids[0].tolist())


# %%
who_writes = Predict(
    "Which models write one of our four sentences, for most seeds?",
    ["all three kinds", "the causal ones", "those that leak"],
    section="What a leak does to training",
)
who_writes

# %% tags=["hide-input"]
can_write, outcomes = [], {}  # of each rule: right ones, mean loss
for kind, (name, trained) in zip("ABC", runs.items(), strict=True):
    written = [write(model) for model, _ in trained]
    good_ones = sum(text in [pair.tgt for pair in pairs] for text in written)
    can_write += [name] if good_ones > len(seeds) / 2 else []
    blind = sum(loss_of(model, 0).item() for model, _ in trained) / len(trained)
    outcomes[name] = good_ones, blind
    right = f"{good_ones} of {len(seeds)} right"
    print(f"{kind}, {name}: {right}, the first: {written[0]!r}")
    print(f"    loss with the future hidden, mean of the seeds: {blind:.2f}")
only_causal = can_write == ["causal"]
writers = "the causal ones" if only_causal else "all three kinds"
who_writes.reveal(writers, because="the others have learned to read the answer")

# %% tags=["hide-input"]
assert only_causal
alike = math.log(tokenizer.vocab_size)  # the loss of guessing all tokens alike
assert tokenizer.vocab_size == 127 and round(alike, 2) == 4.84
for name, (good_ones, blind) in outcomes.items():
    assert good_ones == len(seeds) if name == "causal" else good_ones < len(seeds) / 2
    assert blind < 1.1 * bound if name == "causal" else blind > alike

# %% [markdown]
# The causal model, A, writes one of the four memorized sentences with every seed.
# When the others write, there is no answer to read.
# With the future hidden, their mean loss is above ln 127 = 4.84: they are worse than guessing evenly among the tokenizer's 127 tokens.
# So take A, although its training loss is the highest.
#
# ## Both masks, and the third
#
# The targets of a batch differ in length, too.
# So the decoder's self-attention must hide two things, the future and the padding.
# `&` opens a pair only where both masks open it, and broadcasting fits their shapes.
#
# Cross-attention is different: German queries ask English keys.
# Must its mask be causal?
# No: the English sentence is known from the start, and every German position may read all of it.
# (That is also why the encoder needs no causal mask.)
# Only the English padding must be hidden, and the encoder has that mask already.
# Used here, it is called the **cross mask**.

# %% tags=["nbval-check-output"]
short_src = pad([tokenizer.encode(pair.src) for pair in pairs[:2]])  # (batch, src_len)
short_tgt = pad([[BOS_ID, *tokenizer.encode(pair.tgt)] for pair in pairs[:2]])
masks = {
    "padding": padding_mask(short_tgt, PAD_ID),  # (batch, 1, 1, tgt_len)
    "causal": causal_mask(short_tgt.shape[1]),  # (1, 1, tgt_len, tgt_len)
}
masks["both"] = masks["padding"] & masks["causal"]  # (batch, 1, tgt_len, tgt_len)
masks["cross"] = padding_mask(short_src, PAD_ID)  # (batch, 1, 1, src_len)
for name, mask in masks.items():
    print(f"{name:8}{tuple(mask.shape)}")
table = random(tokenizer.vocab_size, d_model)
english_x, german_x = table[short_src], table[short_tgt]  # (batch, length, d_model)

# %% tags=["hide-input"]
assert masks["both"].shape == (2, 1, 7, 7) and masks["cross"].shape == (2, 1, 1, 6)
assert masks["padding"].shape == (2, 1, 1, 7) and masks["causal"].shape == (1, 1, 7, 7)

# %% [markdown]
# As pictures, for the first pair:

# %% id="four-masks" tags=["hide-input"]
short_english, short_german = words(short_src[0]), words(short_tgt[0])
keys_of = dict.fromkeys(masks, short_german) | {"cross": short_english}
squares = {n: masks[n][0, 0].expand(7, len(keys)) for n, keys in keys_of.items()}
axes = dict(kind="mask", xlabel="key", ylabel="query")
drawn = [
    Panel(mask, short_german, keys_of[name], name, **axes)
    for name, mask in squares.items()
]
title = (
    "The decoder's self-attention hides padding and future, "
    "its cross-attention padding only"
)
panels(drawn, title=title)

# %% tags=["hide-input"]
expected = [[k <= q and short_german[k] != "<pad>" for k in range(7)] for q in range(7)]
assert squares["both"].tolist() == expected
real_rows = torch.tensor([word != "<pad>" for word in short_german])
assert torch.equal(squares["both"][real_rows], squares["causal"][real_rows])
assert (squares["both"] != squares["causal"]).sum() == 3
assert squares["cross"].all(dim=0).tolist() == [True] * 4 + [False] * 2
assert all(mask.any(dim=1).all() for mask in squares.values())

# %% [markdown]
# The masks "causal" and "both" differ in three cells only, all in rows of `<pad>`.
# The padding stands on the right, in the future of every word, so the causal mask hides it anyway.
# We keep the padding mask all the same: then no query reads a `<pad>`.
#
# Section 3.2.3 of the paper names three uses of attention, but only one mask, the causal one; the padding masks are added here.
#
# | attention | queries | keys | mask | shape |
# |---|---|---|---|---|
# | encoder self-attention | source | source | source padding | (batch, 1, 1, src_len) |
# | decoder self-attention | target | target | target padding & causal | (batch, 1, tgt_len, tgt_len) |
# | cross-attention | target | source | source padding | (batch, 1, 1, src_len) |
#
# In this widget, click a cell to hide it or to open it, and see where the weight goes.
# Choose "causal". Can you make a *sliding window* of it, in which each token sees itself and the token before it (`tril() & triu(-1)`)?
# And what does the widget say when a whole row is hidden?

# %% tags=["hide-input"]
painter_rng = torch.Generator().manual_seed(3)
painted_query, painted_key = torch.randn(2, 7, d_model, generator=painter_rng)
offered = {name: squares[name] for name in ("padding", "causal", "both")}
sides = short_german, short_german  # queries, keys
painter = MaskPainter(painted_query, painted_key, *sides, offered, mask="both")
painter

# %% tags=["hide-input"]
from course_lib.checks import written_for

with written_for(offered["both"].tolist(), painter.mask):
    assert torch.equal(painter.compute() > 0, masks["both"][0, 0])

# %% [markdown]
# ## What a mask must never do
#
# Four slips follow, and in plain PyTorch none of them is sure to stop with an error.
#
# ### Leave a query without keys
#
# The weights of a row must sum to 1.
# In a **fully masked** row every key is hidden. Who gets the 1?

# %%
of_nothing = Predict(
    "What does a softmax make of four scores of −∞?",
    ["zeros", "a quarter each", "NaN", "an error"],
    section="Leave a query without keys",
)
of_nothing

# %% tags=["nbval-check-output"]
empty = torch.full((4,), -math.inf)
print(empty.softmax(dim=-1).tolist())
nothing_left = "NaN" if empty.softmax(dim=-1).isnan().all() else "zeros"
why = "every exponential is 0, and so is their sum: 0/0"
of_nothing.reveal(nothing_left, because=why)

# %% tags=["hide-input"]
assert nothing_left == "NaN"
square = torch.ones(7, 7, dtype=torch.bool)
assert not square.tril(-1)[0].any() and square.tril(-1)[1:].any(dim=1).all()
assert square.triu()[0].all() and not square.triu()[6, :6].any()  # the past is hidden


def refuses(call, *inputs):
    try:
        call(*inputs)
    except (RuntimeError, ValueError):
        return True
    return False


# %% [markdown]
# How does a row become fully masked?
# `tril(-1)` for `tril()` hides the diagonal too, and leaves `<s>` without a key.
# Another way is padding on the *left*, together with a causal mask:

# %% tags=["nbval-check-output"]
on_the_right = short_tgt[:1]  # <s> Die Katze schläft . <pad> <pad>
on_the_left = on_the_right.roll(2, dims=1)  # <pad> <pad> <s> Die Katze schläft .
left_mask = padding_mask(on_the_left, PAD_ID) & causal_mask(7)  # (1, 1, 7, 7)
for ids, mask in ((on_the_right, masks["both"][:1]), (on_the_left, left_mask)):
    nothing = (~mask.any(dim=-1)).flatten().nonzero().flatten().tolist()
    print(f"{' '.join(words(ids[0])):40}queries without keys: {nothing}")

# %% [markdown]
# Rows 0 and 1 belong to the two `<pad>`.
# Their keys are hidden from every word.
# We send the left-padded sentence through two layers of bare attention: queries, keys and values are the vectors themselves.

# %%
spreads = Predict(
    "After the first layer 2 of the 7 tokens are NaN, both `<pad>`. How many after the "
    "second?",
    unit="tokens",
    section="Leave a query without keys",
)
spreads


# %% tags=["nbval-check-output"]
def bare(states, mask, hidden_score):
    """States (length, d_model) through one attention."""
    raw = states @ states.mT / math.sqrt(d_model)
    return raw.masked_fill(~mask, hidden_score).softmax(dim=-1) @ states


states = table[on_the_left[0]]
for depth in (1, 2):
    states = bare(states, left_mask[0, 0], -math.inf)
    is_nan = states.isnan().any(dim=-1)  # (length,)
    print(f"layer {depth}:", *("NaN" if bad else "fine" for bad in is_nan))
spreads.reveal(is_nan.sum(), because="0 × NaN is NaN")

# %% tags=["hide-input"]
assert nothing == [0, 1] and states.isnan().all()
from_left, from_right = table[on_the_left[0]], table[on_the_right[0]]
mean = from_left.mean(dim=0).expand(2, d_model)
torch.testing.assert_close(bare(from_left, left_mask[0, 0], -1e9)[:2], mean)
for _ in range(2):
    from_left = bare(from_left, left_mask[0, 0], -1e9)
    from_right = bare(from_right, masks["both"][0, 0], -math.inf)
torch.testing.assert_close(from_left[2:], from_right[:5])
hidden = [scores.float().masked_fill(~real[:, None], s) for s in (-1e9, -math.inf)]
assert torch.equal(*(each.softmax(dim=-1) for each in hidden))

# %% [markdown]
# In the second layer the two `<pad>` have the weight 0 for every word.
# But attention sums weight × value, and 0 × NaN is NaN.
# A weight of 0 stops only finite numbers, however large.
#
# The cure is to leave no row fully masked.
# We pad on the right, and leave the rows of `<pad>` open.
# (If you must pad on the left, open the diagonal too.)
# Our library and the widget refuse a fully masked row: "a query has nothing to attend to".
#
# **A common mistake**: `-1e9` instead of −∞, to get rid of the NaN.
# It only silences it: a query without keys attends evenly to all keys. Under `tril(-1)`, `<s>` attends even to its answer, *Die*.
# Queries with open keys get the same weights from both: with left padding and `-1e9`, the words come out as with right padding.
# (And float16 ends at 65,504: `masked_fill` refuses −1e9.)

# %% tags=["hide-input"]
assert german == words(short_tgt[1]) and german[1] == "Die"
no_diagonal = square.tril(-1)  # leaves <s> without a key
filled = [bare(german_x[1], no_diagonal, s) for s in (-1e9, -math.inf)]
torch.testing.assert_close(filled[0][0], german_x[1].mean(dim=0))
assert filled[1][0].isnan().all()
torch.testing.assert_close(filled[0][1:], filled[1][1:])

# %% tags=["hide-input"]
half = torch.zeros(3, dtype=torch.float16)
assert torch.finfo(torch.float16).max == 65504 and torch.tensor(-1e9).half().isinf()
assert refuses(half.masked_fill, ~open_keys, -1e9)
shared = half.masked_fill(~open_keys, -math.inf).softmax(dim=-1)
assert shared.tolist() == [0.5, 0.5, 0]
two_empty = masks["causal"][0, 0] & ~torch.eye(7).bool()
assert refuses(attention_weights, german_x[0], german_x[0], two_empty)
assert left_mask[0, 0].logical_or(torch.eye(7).bool()).any(dim=1).all()

# %% [markdown]
# ### Broadcast by accident
#
# Take a mask of shape (batch, keys), without the two axes of size 1, and scores (batch, heads, queries, keys).
# Lined up from the right, its first axis meets the *queries*.
# We try six sentences of at most six tokens, and then the first five.

# %%
refused = Predict(
    "Scores (batch, 4, 6, 6), a mask (batch, 6). Which batch does PyTorch refuse?",
    ["both", "neither", "five sentences", "six sentences"],
    section="Broadcast by accident",
)
refused

# %%
texts = [f"The {who}." for who in ("cat sees the dog", "dog sees the cat")]
texts += [f"The {who} sleeps." for who in ("cat", "dog", "child", "woman")]
six = pad([tokenizer.encode(text) for text in texts])  # (6, 6)
two_axes, four_axes = six != PAD_ID, padding_mask(six, PAD_ID)
flat_scores = torch.zeros(6, 4, 6, 6)  # (batch, heads, queries, keys)
for size in (6, 5):
    try:
        flat_scores[:size].masked_fill(~two_axes[:size], -math.inf)
    except RuntimeError as error:
        print(f"{size} sentences: {error}")

# %% tags=["hide-input"]
complaints = [
    f"{name} sentences"
    for name, size in (("five", 5), ("six", 6))
    if refuses(flat_scores[:size].masked_fill, ~two_axes[:size], -math.inf)
]
refused.reveal(*complaints, because="with six there are as many sentences as queries")

# %% [markdown]
# With six there is no error, the right shape, and a wrong result.
# What may *The cat sleeps .*, the third sentence, attend to now?

# %% tags=["hide-input"]
by_accident = flat_scores.masked_fill(~two_axes, -math.inf).softmax(dim=-1)
axes = dict(kind="mask", xlabel="key", ylabel="query")
drawn = []
for name, number in (("the first", 0), ("the third", 2)):
    labels = words(six[number])
    meant, applied = four_axes[number, 0].expand(6, 6), by_accident[number, 0] > 0
    drawn.append(Panel(meant, labels, labels, f"meant for {name}", **axes))
    drawn.append(Panel(applied, labels, labels, f"applied to {name}", **axes))
title = "A (batch, keys) mask is read as (queries, keys), for every sentence"
panels(drawn, title=title)

# %% tags=["hide-input"]
assert complaints == ["five sentences"]
assert torch.equal(by_accident > 0, two_axes.expand(6, 4, 6, 6))
for number in (0, 2):
    assert not torch.equal(four_axes[number, 0].expand(6, 6), two_axes)
one_sentence = (mask[2:3].expand(1, 4, 6, 6) for mask in (two_axes, four_axes))
assert torch.equal(*one_sentence)

# %% [markdown]
# All sentences get the same square, made of everyone's padding.
# In the third, *The* and *cat* attend to `<pad>`; in the first, four tokens cannot see *dog* and the full stop.
# A test with one sentence never finds this, because a mask (1, keys) broadcasts as it should.
# Our library refuses any mask with too few axes.

# %% tags=["hide-input"]
from course_lib.masks import check_mask

assert not refuses(check_mask, four_axes, tuple(flat_scores.shape))
for mask in (two_axes, two_axes[None], two_axes[:, None]):
    assert refuses(check_mask, mask, tuple(flat_scores.shape))

# %% [markdown]
# ### Come from the wrong sentence
#
# **A common mistake**: the *target's* padding mask in cross-attention.
# We cut the German off after six tokens, so that both sides have six: nothing complains.
#
# Again *alone* and *refilled*: a pair goes through alone, and the source's padding gets other numbers.

# %%
who_fails = Predict(
    "Six German and six English tokens, and the target's mask. Which test fails?",
    ["only refilled", "only alone", "both", "neither"],
    section="Come from the wrong sentence",
)
who_fails

# %%
six_tgt = short_tgt[:, :6]  # (batch, 6)
six_x, is_source = table[six_tgt], (short_src != PAD_ID)[:, :, None]
refilled = torch.where(is_source, english_x, 1000.0)  # other numbers in the padding
first_alone = attend(six_x[:1], english_x[:1, :4], english_x[:1, :4])  # no padding
for name, ids in (("source's", short_src), ("target's", six_tgt)):
    mask = padding_mask(ids, PAD_ID)
    got, other = (attend(six_x, z, z, mask) for z in (english_x, refilled))
    passed = torch.allclose(got, other), torch.allclose(got[:1], first_alone)
    verdicts = ["pass" if each else "FAIL" for each in passed]
    print(f"{name} mask: refilled {verdicts[0]}, alone {verdicts[1]}")

# %% tags=["hide-input"]
failing = f"only {'alone' if passed[0] else 'refilled'}"
failing = {0: "both", 2: "neither"}.get(sum(passed), failing)  # of the target's mask
who_fails.reveal(failing, because="an English padding key stays open")
assert passed == (False, False)  # of the target's mask
assert padding_mask(six_tgt, PAD_ID)[0].flatten().tolist() == [True] * 5 + [False]
assert words(short_src[0])[4:] == ["<pad>"] * 2
mask = padding_mask(short_src, PAD_ID)
got, other = (attend(six_x, z, z, mask) for z in (english_x, refilled))
torch.testing.assert_close(got, other)
torch.testing.assert_close(got[:1], first_alone)

# %% tags=["hide-input"]
of_one = masks["padding"][..., :1]  # (batch, 1, 1, 1)
for queries, mask in ((7, masks["padding"]), (1, of_one)):
    plain = torch.zeros(2, 4, queries, 6)
    assert refuses(plain.masked_fill, ~mask, -math.inf) == (queries == 7)
    assert refuses(attend, german_x[:, :queries], english_x, english_x, mask)

# %% [markdown]
# The German padding now decides which English keys are hidden: in the first pair it hides one `<pad>` and leaves the other open.
#
# If the two lengths differ, PyTorch refuses the mask, except for a target of one token: that one broadcasts.
# Our library refuses both.
#
# ### Invert its meaning
#
# In `torch.nn.MultiheadAttention`, and so in `torch.nn.Transformer`, which is made of it, True means *hidden*.
# We hand it a padding mask in the shape it wants, (batch, keys), but with our meaning, True = may attend.
# The first sentence has two `<pad>`, the second none.

# %%
inverted = Predict(
    "What weights does the second sentence, without padding, get with our meaning?",
    ["its usual ones", "a sixth each", "zeros", "NaN"],
    section="Invert its meaning",
)
inverted

# %%
torch.manual_seed(0)
torchs = nn.MultiheadAttention(d_model, 4, batch_first=True, dtype=torch.float64)
ours = short_src != PAD_ID  # (batch, keys), sentences of 4 and of 6 tokens
given = {}
for name, mask in (("ours", ours), ("~ours", ~ours)):
    _, weights = torchs(english_x, english_x, english_x, key_padding_mask=mask)
    given[name] = weights  # (batch, queries, keys), mean of the heads
    for number, shares in enumerate(weights[:, 0], start=1):  # of the first query
        print(f"{name:6} sentence {number}", *(f"{share:5.2f}" for share in shares))

# %% tags=["hide-input"]
gone = "NaN" if given["ours"][1].isnan().all() else "zeros"
inverted.reveal(gone, because="without padding all of its keys are hidden")
assert (given["ours"][0, :, :4] == 0).all()  # for all queries
assert not (given["ours"][1] > 0).any()  # NaN or 0, by version
assert (given["~ours"][0, :, 4:] == 0).all() and not given["~ours"].isnan().any()
wide = (~ours)[:, None, None].expand(2, 4, 6, 6).flatten(0, 1)  # (batch · heads, ...)
added = torch.zeros(2, 6).double().masked_fill(~ours, -math.inf)
for setting in (dict(attn_mask=wide), dict(key_padding_mask=added)):
    _, weights = torchs(english_x, english_x, english_x, **setting)
    torch.testing.assert_close(weights, given["~ours"])

# %% [markdown]
# The first sentence attends to *nothing but* its padding (line 1: its first query), and no error says so.
# `~ours` is right.
#
# ## When you use a library
#
# What does True mean, and in which shape does the mask come?
# A mask of floats is *added* to the scores: 0 for open, −∞ for hidden.
# We try calls on six keys with equal scores, and look at query 3, which may see four.
# First the right calls, with the values that open and hide a key.

# %%
keep = torch.tensor([[True] * 4 + [False] * 2])  # (batch, keys): four words, two <pad>
may = keep[:, None, None]  # (batch, 1, 1, keys)
past = causal_mask(6)[0, 0]  # (queries, keys); query 3 sees the four words
print("may.log() =", may.log().flatten().tolist())

# %% tags=["hide-input"]
six_queries, six_keys = torch.zeros(1, 1, 6, 6), torch.ones(1, 1, 6, 6)
layer = nn.MultiheadAttention(6, num_heads=1, batch_first=True)


def sdpa(query=six_queries, **given):  # unit vectors as values: context = weights
    units = torch.eye(6)[None, None]
    return F.scaled_dot_product_attention(query, six_keys, units, **given)


def of_layer(**given):
    return layer(six_queries[0], six_keys[0], six_keys[0], **given)[1][None]


wants = [  # library, argument, our mask's name, the mask, the call that gets it
    ("F.scaled_dot_product_attention", "attn_mask", "may", may, sdpa),
    ("", "attn_mask", "may.log()", may.log(), sdpa),
    ("nn.MultiheadAttention", "key_padding_mask", "~keep", ~keep, of_layer),
    ("", "attn_mask", "~past", ~past, of_layer),
]

# %% tags=["hide-input"]
axes_of = {(1, 6): "(batch, keys)", (6, 6): "(queries, keys)"}
axes_of[1, 1, 1, 6] = "(batch, 1, 1, keys)"
line = "{:31}{:17}{:8}{:20}{:6}{:6}{}".format
print(line("library", "argument", "dtype", "shape", "opens", "hides", "our mask"))
right_weights = []  # of query 3
for library, argument, name, mask, call in wants:
    right_weights.append(call(**{argument: mask})[0, 0, 3])
    is_open = right_weights[-1] > 0
    of_three = mask.reshape(-1, 6).expand(6, 6)[3]  # the mask's row of query 3
    values = [str(of_three[keys].unique().item()) for keys in (is_open, ~is_open)]
    dtype = str(mask.dtype).removeprefix("torch.")
    shape = axes_of[tuple(mask.shape)]
    print(line(library, argument, dtype, shape, *values, name))

# %% tags=["hide-input"]
four_shares = torch.tensor([3.0] * 4 + [0.0] * 2) / 12
for weights in right_weights:
    torch.testing.assert_close(weights, four_shares)
assert refuses(lambda: of_layer(attn_mask=~keep))  # (batch, keys) where it wants past's
two = torch.cat([keep, ~keep])  # two sentences: (batch, keys)
inputs = [t.expand(2, 1, 6, 6) for t in (six_queries, six_keys, torch.eye(6))]
got = F.scaled_dot_product_attention(*inputs, attn_mask=two[:, None, None])
assert torch.equal(got[:, 0, 3] > 0, two)

# %% [markdown]
# In `attn_mask`, True opens for `F.scaled_dot_product_attention` and hides for `nn.MultiheadAttention` (where it may also be (batch · heads, queries, keys)).
# Not run here: Hugging Face's `attention_mask` is 1 for open; `flex_attention` [@dong2024] takes a function of batch, head, query and key, True for open.
#
# Now wrong calls, among them `attn_mask=may.float()`.

# %%
as_floats = Predict(
    "As floats: 1 for open, 0 for hidden. What do the two `<pad>` get together?",
    ["nothing", "less than a third", "a third", "more than a third"],
    section="When you use a library",
)
as_floats

# %% tags=["hide-input"]
single = sdpa(six_queries[:, :, 3:4], is_causal=True)  # (1, 1, 1, keys)
calls = {  # to the weights of query 3
    "any right call": right_weights[0],
    "F.scaled_dot_product_attention: attn_mask=may.float()": (
        sdpa(attn_mask=may.float())[0, 0, 3]
    ),
    "F.scaled_dot_product_attention: is_causal=True, one query": single[0, 0, 0],
    "no mask": sdpa()[0, 0, 3],
}
of_floats, of_single, of_none = [*calls.values()][1:]
as_much = f"{'less' if of_floats[4:].sum() < 0.33 else 'more'} than a third"
why = "a hidden score is only 1 below an open one"
as_floats.reveal(as_much if of_floats[5] > 0 else "nothing", because=why)

# %% tags=["hide-input"]
should_be = ["open"] * 4 + ["hidden"] * 2
shares = torch.stack([*calls.values()]).detach()  # (calls, keys)
axes = dict(kind="weights", xlabel="what each key should be", ylabel="call")
title = "Wrong calls (all but the first row) raise no error: look at the weights"
panels([Panel(shares, [*calls], should_be, "", **axes)], title=title)

# %% tags=["hide-input"]
torch.testing.assert_close(of_floats[0] / of_floats[5], torch.tensor(math.e))
torch.testing.assert_close(of_none, torch.full((6,), 1 / 6))
assert of_single.tolist() == [1, 0, 0, 0, 0, 0]
torch.testing.assert_close(sdpa(is_causal=True)[0, 0, 3], four_shares)  # six queries
assert not sdpa(attn_mask=may & False).any()  # older versions: NaN

# %% [markdown]
# `is_causal=True` makes the causal mask, from the upper left, so a single query sees key 0 only.
# `F.scaled_dot_product_attention` gives 0 for a row without keys (older versions: NaN).
#
# ## Every slip, and what finds it
#
# No slip has to raise an error, but each can be found:
#
# | slip | what one sees | what finds it |
# |---|---|---|
# | padding left open | nothing | *alone*, *refilled* |
# | the future left open, or one position of it | a lower loss | gradient, prefix, writing |
# | a query without keys | NaN or 0; with −1e9, nothing | counting open keys |
# | a mask (batch, keys) | nothing, if batch = queries | another batch size, not 1 |
# | the target's mask in cross-attention | nothing, if lengths agree | *alone*, *refilled* |
# | True for hidden | nothing, where there is padding | looking at the weights |
#
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **mask**: a tensor that says which query may attend to which key; here bool, True = may attend.
# - **padding mask**: hides the keys that are padding, (batch, 1, 1, keys).
# - **causal mask**: hides the keys after the query, (1, 1, length, length).
# - **look-ahead mask**: another name for the causal mask.
# - **cross mask**: the source's padding mask, for queries of the target.
# - **broadcasting**: lining shapes up from the right, and repeating axes of size 1.
# - **fully masked**: said of a row of a mask that hides every key from its query.
# - **prefix**: a sequence cut off after one of its tokens.
# - **leak**: a way by which something that should be hidden reaches an output.
# - **cross-entropy**: the mean of −log of the probability that the right token gets.

# %% [markdown]
# ## Summary
#
# A mask says which keys a query may attend to: True = may.
# What is hidden gets −∞ before the softmax, so its weight is 0 and the rest sums to 1.
# The padding mask (batch, 1, 1, keys) makes a sentence independent of how much padding it got on its right, as long as the hidden vectors are finite.
# The causal mask (1, 1, length, length) is open on and below the diagonal; with it, gradients from the future are exactly 0, and one pass trains all positions at once.
# The decoder combines both with `&`, and cross-attention needs only the source's padding mask.
# A wrong mask need not raise an error, and a leak even lowers the loss; but each slip has its test.
#
# **Practice**: [assignment 05](assignments/release/05_masks/05_masks.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [06](06_encoder.ipynb): attention mixes tokens; now we build the rest of an encoder layer around it.
