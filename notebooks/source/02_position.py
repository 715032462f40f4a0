# %% [markdown]
# # 02 · Position: telling a model what comes first
#
# **Question.** *The cat sees the dog.* and *The dog sees the cat.* have the same words. How does a Transformer notice the difference?
#
# **Afterwards you can**
#
# 1. say what attention does when its words are shuffled, and why;
# 2. build the paper's sinusoids by hand, and say what a pair and a wavelength are;
# 3. give a model positions in three ways (sinusoids added, sinusoids concatenated, a learned table), and say what each did on texts longer than the trained ones.
#
# **You need** embeddings: sentences as tensors of (batch, length, d_model) (lesson [01](01_text_to_tensors.ipynb)).
# **Time**: {minutes} minutes to read, under 60 seconds to run.
# **In the paper**: section 3.5, and table 3, row (E).

# %%
import math

import torch
from torch import nn

from course_lib.widgets import Predict, Predictions

device = "cuda" if torch.cuda.is_available() else "cpu"


def apart(a, b):
    """The largest difference between two tensors."""
    return (a - b).abs().max().item()


# %% [markdown]
# ## The same words, another meaning
#
# Two of these sentences are made of the same tokens.

# %% tags=["nbval-check-output"]
from course_lib import Tokenizer

sentences = [
    "The cat sleeps.",
    "The cat sees the dog.",
    "The dog sees the cat.",
    "The old woman gives the child a red apple.",
]
tokenizer = Tokenizer.train(sentences, vocab_size=160)
encoded = [torch.tensor(tokenizer.encode(text)) for text in sentences]
sleeps, cat_first, dog_first, apple = encoded
print(tokenizer.tokens(sentences[1]), tokenizer.tokens(sentences[2]), sep="\n")

# %% tags=["hide-input"]
assert cat_first.tolist() != dog_first.tolist()
assert sorted(cat_first.tolist()) == sorted(dog_first.tolist())

# %% [markdown]
# We look the tokens up in a table with one random row for each, as lesson 01 does.

# %%
from course_lib.attention import MultiHeadAttention

d_model = 16
torch.manual_seed(0)
table = torch.randn(tokenizer.vocab_size, d_model, dtype=torch.float64)
attention = MultiHeadAttention(d_model, num_heads=4).double()  # for the next section

# %% [markdown]
# We stack two encoder layers (lesson [06](06_encoder.ipynb) opens those) and take the mean of what comes out, as a classifier of sentences might.

# %%
from course_lib.blocks import EncoderLayer

torch.manual_seed(1)
layers = [EncoderLayer(d_model, num_heads=4, d_ff=32, dropout=0.0) for _ in range(2)]
encoder = nn.Sequential(*layers).double()


@torch.no_grad()
def pooled(x):
    """Embedded sentence (length, d_model) to one vector (d_model,)."""
    return encoder(x[None]).mean(dim=1)[0]


same_words = apart(pooled(table[cat_first]), pooled(table[dog_first]))
other_words = apart(pooled(table[cat_first]), pooled(table[sleeps]))
print(f"the cat sees the dog, the dog sees the cat: {same_words:.0e} apart")
print(f"the cat sees the dog, the cat sleeps: {other_words:.2f} apart")

# %% tags=["hide-input"]
assert same_words < 1e-12 and other_words > 0.01

# %% [markdown]
# One vector for both, up to rounding.
# Whatever reads this vector must give both sentences the same answer.
# The weights are random: can training mend it?
#
# ## What does shuffling do?
#
# The words meet in one part of an encoder layer: self-attention.
# Each token gets a new vector, in essence a weighted mean of all vectors: the vectors that match the token's own weigh more.
# Lesson [03](03_attention.ipynb) opens it; here we only ask what it knows about order.


# %%
@torch.no_grad()
def attend(x, layer=attention, mask=None):
    """Self-attention on one sentence, (length, d_model) to (length, d_model)."""
    x = x[None]  # (1, length, d_model)
    return layer(x, x, x, mask)[0]


# %% [markdown]
# First, does it mix at all?
# We replace *sleeps* by *sees*, and look at every vector.

# %%
words = ["The", "cat", "sleeps", "."]
x = table[sleeps]  # (length, d_model)
mixed = attend(x)
sees = sleeps.clone()
sees[2] = cat_first[2]
other_company = attend(table[sees])
labels = ["The", "cat", "sleeps/sees", "."]
for label, before, after in zip(labels, mixed, other_company, strict=True):
    print(f"{label:11} changes by {apart(before, after):.2f}")

# %% tags=["hide-input"]
assert all(apart(*pair) > 0.01 for pair in zip(mixed, other_company, strict=True))

# %% [markdown]
# Every vector changes, even those of the three words that stayed: each one depends on the words around it.
#
# Now the same four words in another order: *sleeps The cat .*

# %%
of_cat = Predict(
    "In *sleeps The cat .*, which numbers will the vector of *cat* have?",
    ["the same as before", "new ones", "those that *sleeps* had"],
    section="What does shuffling do?",
)
of_cat

# %%
order = [2, 0, 1, 3]  # sleeps The cat .
shuffled = attend(x[order])
print("cat in order: ", mixed[1, :4])
print("cat shuffled: ", shuffled[2, :4])
same = apart(shuffled[2], mixed[1]) < 1e-12
of_cat.reveal(of_cat.choices[0 if same else 1])

# %% tags=["hide-input"]
torch.testing.assert_close(shuffled, mixed[order], rtol=0, atol=1e-12)

# %% [markdown]
# The same numbers, up to rounding.
# Only the rows moved, with their words.
# All 24 orders of the four words do the same:

# %% tags=["hide-input"]
from itertools import permutations

for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
    layer, rows = attention.to(dtype), x.to(dtype)
    largest = 0.0
    for order in map(list, permutations(range(4))):
        moved, expected = attend(rows[order], layer), attend(rows, layer)[order]
        largest = max(largest, apart(moved, expected))
    print(f"{dtype}: largest difference in all orders {largest:.0e}")
    assert largest < limit
attention = attention.double()

# %% [markdown]
# Why? Take round numbers.
# Say that *cat* gives these weights, or shares: 20 % to *The*, 50 % to itself, 25 % to *sleeps* and 5 % to the full stop.
# Its new vector is
#
# 0.20 · The + 0.50 · cat + 0.25 · sleeps + 0.05 · full stop.
#
# In *sleeps The cat .* it meets the same four vectors, so it gives the same four shares:
#
# 0.25 · sleeps + 0.20 · The + 0.50 · cat + 0.05 · full stop.
#
# The same terms in another order have the same sum.
# The position of a row is used nowhere.
#
# This property has a name: self-attention is **permutation-equivariant**.
# Permute the rows that go in, and the rows that come out are permuted the same way.
#
# <details><summary>The proof, in three lines</summary>
#
# X holds one row for each word.
# In its plainest form, attention has the scores S = XXᵀ of all pairs, the shares A = softmax(S), row by row, and the output AX.
# P is a matrix that puts rows in a new order; Pᵀ puts them back: PᵀP = I.
#
# 1. *Scores.* PX has the scores (PX)(PX)ᵀ = PSPᵀ: the rows and the columns of S in the new order. No number changes.
# 2. *Shares.* Softmax divides the exponential of each entry by the sum over its row, and a sum is the same in any order. So A becomes PAPᵀ.
# 3. *Output.* PAPᵀ · PX = PA(PᵀP)X = P(AX): the old output, with its rows in the new order.
#
# A real layer also multiplies X by learned matrices from the right.
# (PX)W = P(XW), so the same lines hold, whatever training does to W.
# Its scaling (lesson [03](03_attention.ipynb)) and its heads ([04](04_multi_head.ipynb)) treat all rows alike.
#
# </details>
#
# **A common mistake**: "attention is permutation-*invariant*."
# Invariant would mean that the output stays the same.
# Does it?

# %%
order = [2, 0, 1, 3]
shuffled = attend(x[order])
rows, means = apart(shuffled, mixed), apart(shuffled.mean(dim=0), mixed.mean(dim=0))
print(f"the rows differ by {rows:.2f}, their means by {means:.0e}")

# %% tags=["hide-input"]
assert rows > 0.01 and means < 1e-12

# %% [markdown]
# The output is not invariant, because its rows move.
# Its *mean* over the tokens is invariant: a mean does not care about order.
#
# That explains our two sentences.
# The other parts of an encoder layer work on each row alone, so with any weights the encoder is equivariant, and its mean invariant.
# No training can help.
#
# A recurrent network does not have this problem, because it reads one word after another.
# A decoder's *causal mask* hides from each word the words after it (lesson [05](05_masks.ipynb)), so there order matters, too:

# %% tags=["hide-input"]
recurrent = nn.GRU(d_model, d_model, batch_first=True).double()
with torch.no_grad():
    _, last = recurrent(table[torch.stack([cat_first, dog_first])])
states = apart(last[0, 0], last[0, 1])
print(f"our two sentences, recurrent network: last states {states:.2f} apart")
mask = torch.ones(1, 1, 4, 4).bool().tril()  # the causal mask
ordered, shuffled = attend(x, mask=mask), attend(x[order], mask=mask)
rows = apart(shuffled, ordered[order])
means = apart(shuffled.mean(dim=0), ordered.mean(dim=0))
told = f"rows of the same words {rows:.2f} apart, their means {means:.2f}"
print(f"four words shuffled, causal mask: {told}")

# %% tags=["hide-input"]
assert states > 0.01 and rows > 0.01 and means > 0.01

# %% [markdown]
# With a causal mask attention is not equivariant, and its mean is not invariant: the order decides who may see whom.
# So a decoder could learn some order from its mask; the paper gives it positions all the same.
# An encoder has no such mask. It reads all words at once, and must be told their order.
#
# ## A first idea: count
#
# Why not give each word one more feature that holds its position: 0, 1, 2, …?
# What would it do to features that are about as large as 1?

# %%
length = 100
text = torch.randn(length, 16, generator=torch.Generator().manual_seed(0))
counter = torch.arange(length)[:, None].float()
counted = torch.cat([text, counter], dim=1)  # (length, 17)
for name, part in (("words", text), ("counter", counter)):
    print(f"{name:8} mean {part.mean():5.2f}, largest {part.max():4.1f}")
nearest = (counted @ counted.T).argmax(dim=1)  # the largest dot product of each word
among_last = (nearest[20:] >= 95).all().item()
print("from word 20 on, all match one of the last five words best:", among_last)

# %% tags=["hide-input"]
assert counter.mean() == 49.5 and abs(text.mean()) < 0.1 and text.abs().max() < 6
assert (nearest[20:] >= 95).all() and ((text @ text.T).argmax(dim=1)[20:] < 95).any()

# %% [markdown]
# The counter drowns the words.
# Compare the vectors by plain dot products: from position 20 on, the best match of every word is one of the last five words.
#
# What if we divide the counter by the length, so that it stays between 0 and 1?

# %% tags=["nbval-check-output"]
for ids in (sleeps, apple):
    steps = torch.arange(len(ids)) / len(ids)
    print(f"{len(ids):2} tokens: one word further is {steps[1]:.2f} more")

# %% tags=["hide-input"]
assert 1 / len(sleeps) == 2.5 / len(apple)

# %% [markdown]
# Now "one word further" means something else for every sentence length.
#
# So we have three wishes:
#
# 1. the numbers stay *small*, however long the text is;
# 2. every position gets its *own* numbers, clearly different from all others;
# 3. one step is the *same* step everywhere.
#
# The counter breaks the first wish, the divided counter the third (and in long texts the second).
#
# ## The paper's sinusoids, seen as clocks
#
# A clock's hand never leaves its circle, and one minute is the same turn at any time of day.
# One hand alone comes round again, so a clock has a slow hand beside the fast one.
# The paper (section 3.5) takes d_model / 2 hands, from fast to slow.
# At position 0 all hands stand at twelve o'clock, and with every word each turns clockwise by an angle of its own.
# The row for a position holds two numbers for each hand: how far right its tip is (the sine of the angle) and how far up (the cosine).
# The paper adds this row to the word's vector.
# Its numbers are
#
# $$PE_{(pos,\,2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right) \qquad PE_{(pos,\,2i+1)} = \cos\left(pos / 10000^{2i/d_{model}}\right)$$
#
# PE, *positional encoding*, is the paper's name for this table, and PE(pos) is the row for position *pos*.
# Sine and cosine waves are called *sinusoids*.
#
# Here *i* runs from 0 to d_model / 2 − 1: dimensions 2*i* and 2*i* + 1 are one **pair**, one hand with one angle, so d_model must be even.
# 10000 is called the *base*; its exponent 2*i*/d_model sets the speed of a hand.
# For the first pair the exponent is 0, so the angle is *pos* itself: one radian (about 57°) a word.
# For the last pair the exponent is 1 − 2/d_model.
# With d_model = 8 the angle is *pos* / 1000; with 512 it is nearly *pos* / 10000.
# In code:


# %%
def sinusoids_by_hand(max_len, d_model):
    """Section 3.5, one number after another: (max_len, d_model)."""
    rows = []
    for position in range(max_len):
        row = []
        for pair in range(d_model // 2):
            angle = position / 10000 ** (2 * pair / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


# %% tags=["nbval-check-output"]
small = sinusoids_by_hand(4, 8)
for word, row in zip(words, small.tolist(), strict=True):
    print(f"{word:7}", *(f"{number:6.2f}" for number in row))
hands = small.unflatten(1, (4, 2))  # (position, pair, sine and cosine)

# %% tags=["hide-input"]
assert torch.allclose(hands.square().sum(dim=-1), torch.ones(4, 4, dtype=torch.float64))

# %% [markdown]
# Two columns of this table, a sine and a cosine, are one hand. As clocks:

# %% tags=["hide-input"]
from course_lib.figures import clock_faces

figure = clock_faces(
    hands,
    [f"{position} {word}" for position, word in enumerate(words)],
    [f"pair {pair}" for pair in range(4)],
    title="d_model = 8: each hand turns a tenth as fast as the one before",
)
figure

# %% tags=["hide-input"]
turned = torch.atan2(hands[:, :, 0], hands[:, :, 1]).diff(dim=0)  # clockwise
expected = torch.tensor([1, 0.1, 0.01, 0.001]).double()
torch.testing.assert_close(turned, expected.expand(3, 4))
assert 57 < math.degrees(1) < 57.5

# %% [markdown]
# Within this sentence the last hand hardly moves.
# Sine² + cosine² = 1 for each pair: the tip of the hand stays on its circle.
#
# ### All at once
#
# Without loops: a column of positions divided by a row of powers gives all angles.


# %%
def sinusoids(max_len, d_model, base=10000.0):
    """The same, all at once, in float64."""
    pair = torch.arange(d_model // 2, dtype=torch.float64)
    position = torch.arange(max_len, dtype=torch.float64)[:, None]  # (max_len, 1)
    angle = position / base ** (2 * pair / d_model)  # (max_len, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


gap = apart(sinusoids(50, 64), sinusoids_by_hand(50, 64))
print(f"the loop and this: {gap:.0e} apart")

# %% tags=["hide-input"]
assert gap < 1e-12

# %% [markdown]
# `stack` and `flatten` lay sine and cosine side by side: sine, cosine, sine, cosine.
# Other code puts all sines first, then all cosines.
# For a new model either order is fine; a trained one needs its own.
# The library's `sinusoidal` returns the same numbers, in float32.

# %% tags=["hide-input"]
from course_lib.position import sinusoidal

assert sinusoidal(50, 64).dtype == torch.float32
torch.testing.assert_close(sinusoidal(50, 64), sinusoids(50, 64).float())

# %% [markdown]
# ## Wish 1: do the numbers stay small?
#
# The paper's model has d_model = 512.
# How long (by its norm) is the first row of its table?

# %%
of_row_0 = Predict(
    "What is the norm of PE(0) in a table with d_model = 512?",
    ["1", "16", "22.6", "256"],
    section="Wish 1: do the numbers stay small?",
)
of_row_0

# %% tags=["nbval-check-output"]
why = "256 of its numbers are 1, the others 0, and √256 is 16"
of_row_0.reveal(f"{sinusoids(1, 512).norm():.0f}", because=why)
for width in (16, 128, 512):
    norms = sinusoids(1000, width).norm(dim=1)
    print(f"d_model {width:3}: every row has length {norms[0]:.2f} = √(d_model / 2)")

# %% tags=["hide-input"]
for width in (16, 128, 512):
    norms = sinusoids(1000, width).norm(dim=1)
    assert torch.allclose(norms, torch.tensor(width / 2).double().sqrt())
    assert sinusoids(1000, width).abs().max() <= 1
assert sinusoids(1, 512).unique(return_counts=True)[1].tolist() == [256, 256]
chance = torch.randn(1000, 512, generator=torch.Generator().manual_seed(0))
assert abs(math.sqrt(512) - 22.6) < 0.05 > abs(chance.norm(dim=1).mean() - 22.6)

# %% [markdown]
# **A common mistake**: "position 0 changes nothing."
# It adds 1 to every odd dimension: sine of 0 is 0, but cosine of 0 is 1.
#
# First wish granted: no number is larger than 1.
# Each pair has length 1, so a row has length √(d_model / 2): 16 at 512, where 512 standard random numbers have about √512 = 22.6.
#
# ## Wish 2: does every position differ?
#
# Could one fast hand do? Look at word 44, with d_model = 8:

# %% tags=["nbval-check-output"]
for position in (0, 44):
    row = sinusoids(45, 8)[position]
    print(f"word {position:2}:", *(f"{number:6.2f}" for number in row))

# %% tags=["hide-input"]
assert abs(44 / (2 * math.pi) - 7 - 1 / 360) < 0.0001  # seven times round and a degree
assert math.isclose(44 / 10000 ** (2 / 8), 4.4)  # the second hand, in radians

# %% [markdown]
# By word 44 the first hand has gone round seven times, and stands about one degree from where it began.
# By that hand alone (the first two columns), word 44 looks almost like word 0.
# The second hand has turned by 4.4 radians meanwhile, and tells the two apart.
#
# How many words until a hand is back where it was?
# That is its **wavelength**: 2π · 10000^(2i/d_model).
# For the paper's d_model of 512:

# %% tags=["nbval-check-output"]
pair = torch.arange(256, dtype=torch.float64)
wavelength = 2 * math.pi * 10000 ** (2 * pair / 512)
for number in (0, 64, 128, 192, 255):
    print(f"pair {number:3}: once around in {wavelength[number]:9,.1f} words")
print(f"2π · 10000 is {2 * math.pi * 10000:,.1f}")

# %% tags=["hide-input"]
assert wavelength[0] == 2 * math.pi and wavelength[-1] < 2 * math.pi * 10000
ratios = wavelength[1:] / wavelength[:-1]
assert torch.allclose(ratios, ratios[0])
closest = torch.pdist(sinusoids(1000, 128)).min()  # of all pairs of rows
assert 1.95 < closest < 1.96

# %% [markdown]
# The wavelengths grow by the same factor from pair to pair.
# The paper says up to 2π · 10000; that is not quite reached, as *i* stops at d_model / 2 − 1.
# With so large a base the slowest hand makes less than one turn in any text that we will read.
# And the rows do differ: with d_model = 128, where each is 8 long, no two of the first 1000 are closer than 1.95 (folded).
# Second wish granted.
#
# The picture shows a narrower table, with 32 dimensions.

# %%
from course_lib.figures import signed_matrix

lengths = [2 * math.pi * 10000 ** (2 * pair / 32) for pair in range(16)]
names = ["" if column % 4 else f"{lengths[column // 2]:,.0f}" for column in range(32)]
heatmap = sinusoids(64, 32)
figure = signed_matrix(
    heatmap,
    rows=range(64),
    columns=names,
    title="Left, the hands turn fast; right, they hardly move within a sentence",
    xlabel="sine and cosine of each pair (numbers: every second wavelength, in words)",
    ylabel="position",
)
figure

# %% tags=["hide-input"]
for pair, length in enumerate(lengths):  # a hand is back after its wavelength
    angle = (5 + length) * 2 * math.pi / length
    assert math.isclose(math.sin(angle), heatmap[5, 2 * pair])
assert heatmap[:, :8].std(dim=0).min() > 0.6 and heatmap[:, 24:].std(dim=0).max() < 0.03
slow_sines, slow_cosines = heatmap[:, 24::2], heatmap[:, 25::2]
assert slow_sines.abs().max() < 0.1 and slow_cosines.min() > 0.9

# %% [markdown]
# A row is what is added to the word at that position.
# A column is one coordinate of one hand: read downwards, it is a wave.
# In the first two columns the wave repeats about every 6 words: it tells neighbors apart.
# On the right its wavelength is thousands of words: within a sentence the sines stay near 0 and the cosines near 1.
#
# ## Wish 3: is one step the same everywhere?
#
# The paper hoped that the formula "would allow the model to easily learn to attend by relative positions, since for any fixed offset *k*, PE(pos + *k*) can be represented as a linear function of PE(pos)."
# The clock tells us which linear function.
# *k* words later (at an *offset* of *k*) a hand has turned by its angle *b*, whatever its angle *a* was:
#
# $$\sin(a + b) = \cos b \cdot \sin a + \sin b \cdot \cos a \qquad \cos(a + b) = -\sin b \cdot \sin a + \cos b \cdot \cos a$$
#
# The factors of sin *a* and cos *a* make a 2 × 2 matrix, a rotation, one for each pair:


# %%
def rotation(offset, d_model):
    """The matrix that turns PE(pos) into PE(pos + offset), the same for every pos."""
    blocks = []
    for pair in range(d_model // 2):
        angle = offset / 10000 ** (2 * pair / d_model)
        sine, cosine = math.sin(angle), math.cos(angle)
        turn = [[cosine, sine], [-sine, cosine]]
        blocks.append(torch.tensor(turn, dtype=torch.float64))
    return torch.block_diag(*blocks)  # zeros outside the 2 × 2 blocks


# %%
turn = rotation(3, 8)
degrees = [math.degrees(3 / 10000 ** (2 * pair / 8)) for pair in range(4)]
print("turned by", *(f"{each:.1f}°" for each in degrees))
figure = signed_matrix(
    turn,
    rows=range(8),
    columns=range(8),
    title="Three words on: one rotation for each pair, and nothing between pairs",
    xlabel="dimension of PE(pos)",
    ylabel="dimension of PE(pos + 3)",
)
figure

# %% tags=["hide-input"]
assert (turn != 0).sum() == 4 * 4  # four blocks of 2 × 2
assert apart(turn @ turn.T, torch.eye(8)) < 1e-12  # a rotation: lengths stay

# %% [markdown]
# Is the matrix right for 1000 rows of the table?

# %% tags=["hide-input"]
residuals = []
for width in (16, 64, 512):
    rows = sinusoids(1000, width)
    for offset in (1, 5, 20):
        there = rows[:-offset] @ rotation(offset, width).T
        residuals.append(apart(there, rows[offset:]))
        assert residuals[-1] < 1e-9
print(f"widths 16, 64, 512 and offsets 1, 5, 20: at most {max(residuals):.0e} apart")

# %% [markdown]
# Exact up to rounding.
# Third wish granted: three words on is the same turn, wherever you start.
#
# ### How alike are two positions?
#
# Attention compares two rows by their dot product.
# In each pair of dimensions, that compares two hands, one of each position.
# Shift both positions by three words: both hands turn by the same angle, so the angle *between* them stays as it was.
# And the dot product of hands at angles *a* and *c* depends on that angle alone:
# sin *a* · sin *c* + cos *a* · cos *c* = cos(*a* − *c*).

# %%
positions = sinusoids(201, 128)
products = positions @ positions.T  # (position, position)
frequency = 10000 ** (-torch.arange(0, 128, 2, dtype=torch.float64) / 128)
for distance in range(201):
    expected = (distance * frequency).cos().sum()  # one cosine for each pair
    along = products.diagonal(distance)  # all positions that are so far apart
    torch.testing.assert_close(along, expected.expand_as(along), rtol=1e-9, atol=1e-9)
print("the same distance, the same product, at every position")

# %%
from course_lib.figures import curves

distances = torch.arange(-100, 101)
similarity = products[100] / products[100, 100]  # from position 100 to all, 1 to itself
figure = curves(
    {"position 100 with all others": (distances, similarity)},
    xlabel="distance in words (negative: before)",
    ylabel="dot product / largest",
    title="The dot product tends to fall with distance, alike on both sides",
)
figure.axes[0].lines[0].set_marker("")
figure.axes[0].set_ylim(0)
figure

# %% tags=["hide-input"]
far = similarity[101:]
assert far.min() > 0.37 and math.degrees(100 * frequency[32]) < 60
assert similarity.argmax() == 100 and torch.allclose(similarity, similarity.flip(0))
assert (far[1:] > far[:-1]).any() and far[:5].min() > far[50:].max()

# %% [markdown]
# Near positions are alike, far ones less so.
# But within 100 words the curve stays above 0.37: half of the hands turn by less than 60° there.
# And the curve is symmetric: from the bare dot product you cannot tell *before* from *after*.
#
# Choose two positions, then shift both.
# On the right, each diagonal has one color: one distance, one product.

# %%
from course_lib.widgets import PositionExplorer

explorer = PositionExplorer(length=64, d_model=32, first=5, second=12, offset=3)
explored, alike = explorer.compute()
explorer

# %% tags=["hide-input"]
torch.testing.assert_close(explored[:64], heatmap.float())
for distance in range(64):
    along = alike.diagonal(distance)
    torch.testing.assert_close(along, along[:1].expand_as(along), rtol=0, atol=1e-4)

# %% [markdown]
# ### Break it: an exponent for every dimension
#
# **A common mistake**: *i* is taken for the number of the dimension, and each dimension gets the exponent *i*/d_model.

# %%
still_linear = Predict(
    "Is there still one matrix that turns every row into the row three words later?",
    ["yes, the same rotation", "yes, another matrix", "no"],
    section="Break it: an exponent for every dimension",
)
still_linear


# %%
def best_map(table, offset):
    """By least squares: the map to the rows `offset` further on, and its residual."""
    here, there = table[:-offset], table[offset:]
    found = torch.linalg.lstsq(here, there, driver="gelsd").solution.T
    return found, apart(here @ found.T, there)


def wrong_sinusoids(max_len, d_model):
    """The exponent i/d_model, where 2⌊i/2⌋/d_model is right."""
    dimension = torch.arange(d_model)
    angle = torch.arange(max_len).double()[:, None] / 10000 ** (dimension / d_model)
    return torch.where(dimension % 2 == 0, angle.sin(), angle.cos())


# %%
for width in (16, 64, 512):
    _, right = best_map(sinusoids(1000, width), offset=3)
    _, wrong = best_map(wrong_sinusoids(1000, width), offset=3)
    print(f"d_model {width:3}: residual {right:.0e} with pairs, {wrong:.1f} without")
why = "sine and cosine of a pair turn at different speeds"
still_linear.reveal("no" if wrong > 0.5 else "yes, another matrix", because=why)

# %% tags=["hide-input"]
for width in (16, 64, 512):
    assert best_map(sinusoids(1000, width), offset=3)[1] < 1e-9
    assert 1 < best_map(wrong_sinusoids(1000, width), offset=3)[1] < 2
assert wrong_sinusoids(1000, 512).abs().max() <= 1

# %% tags=["hide-input"]
broken = wrong_sinusoids(201, 128)
lengths = broken.norm(dim=1)
along = (broken @ broken.T).diagonal(10)  # products of positions ten apart
for name, numbers in (("lengths", lengths), ("products ten apart", along)):
    print(f"{name}: from {numbers.min():.2f} to {numbers.max():.2f}")

# %% tags=["hide-input"]
assert lengths.max() - lengths.min() > 0.1 and along.max() - along.min() > 1

# %% [markdown]
# A sine and its cosine are no longer the coordinates of one hand.
# No matrix leads three words on any more.
# The best one (by least squares over 1000 positions) misses somewhere by more than 1, in a table of numbers no larger than 1.
# Lengths and products now depend on the position, too.
# Nothing crashes; it takes a test to notice.
#
# ## Adding it to the words
#
# With the right exponent all three wishes hold.
# Back to our two sentences.
# The paper adds the row before the first layer of encoder and decoder.
# `SinusoidalPosition` is the table and the sum.

# %%
from course_lib.position import SinusoidalPosition

add_position = SinusoidalPosition(max_len=50, d_model=d_model).double()
batch = table[torch.stack([cat_first, dog_first])]  # (batch, length, d_model)
cat_sees, dog_sees = (pooled(row) for row in add_position(batch))
print(f"with positions the two sentences are {apart(cat_sees, dog_sees):.2f} apart")

# %% tags=["hide-input"]
assert apart(add_position(batch), batch + sinusoids(6, d_model)) < 1e-6
assert apart(cat_sees, dog_sees) > 0.01

# %% [markdown]
# The encoder that gave one vector for both sentences now gives two.
#
# ### Break it: the wrong axis
#
# In older code the length comes first: (length, batch, d_model).
# Its table is (max_len, 1, d_model), cut to the length with `x.size(0)`.
# In our tensors the batch comes first.
# What does the old code do to them?


# %%
class WrongAxis(nn.Module):
    """Made for (length, batch, d_model)."""

    def __init__(self, max_len, d_model):
        super().__init__()
        self.table = sinusoidal(max_len, d_model)[:, None]  # (max_len, 1, d_model)

    def forward(self, x):
        return x + self.table[: x.size(0)]


added = WrongAxis(50, d_model)(batch) - batch  # (batch, length, d_model)
for row in range(2):
    gap = apart(added[row], sinusoids(2, d_model)[row].expand(6, d_model))
    print(f"every token of sentence {row} got PE({row}), to within {gap:.0e}")

# %% tags=["hide-input"]
for row in range(2):
    assert apart(added[row], sinusoids(2, d_model)[row].expand(6, d_model)) < 1e-6

# %% [markdown]
# It adds the sentence's position *in the batch*, the same to each of its tokens.
# There is no error, unless the batch is larger than the table.
# And the order is lost again:

# %% tags=["hide-input"]
swapped = table[torch.stack([dog_first, cat_first])]
for name, layer in (("wrong axis", WrongAxis(50, d_model)), ("right", add_position)):
    cat_sees, dog_sees = (pooled(layer(each)[0]) for each in (batch, swapped))
    print(f"{name:10} cat and dog exchanged: {apart(cat_sees, dog_sees):.0e} apart")
    noticed = apart(cat_sees, dog_sees) > 1e-12
    assert noticed == (name == "right")

# %% [markdown]
# Keep this comparison as a test: swap two words, and check that the mean of the output differs. (With a causal mask it would differ anyway.)
#
# ### Does the sum spoil the word?
#
# Can the word still be recognized once its position is added?
# Lesson [01](01_text_to_tensors.ipynb) tests this on random rows: is a sum most similar, by dot product, to its own row?
# We repeat the test on the trained rows of the small course translator (d_model = 128), times √d_model.

# %%
from course_lib import Translator

translator = Translator.from_pretrained("course")
name_of = translator.tokenizer.token
trained = translator.model.src_embedding.table.weight.detach()  # (vocab, d_model)
vectors = trained * math.sqrt(128)
ids = translator.tokenizer.encode("The cat sees the dog.")
sums = vectors[ids] + sinusoidal(len(ids), 128)
highest, similar = (sums @ vectors.T).topk(2)  # over the whole vocabulary
print("sum              the two most similar rows, with their dot products")
for place, (best, second) in enumerate(similar.tolist()):
    token, (high, low) = name_of(ids[place]), highest[place]
    two = f"{name_of(best):6} {high:3.0f}    {name_of(second):6} {low:3.0f}"
    print(f"{token:6} + PE({place})   {two}")

# %% tags=["hide-input"]
assert similar[:, 0].tolist() == ids
assert (highest[:, 0] > 1.5 * highest[:, 1]).all()
with torch.no_grad():  # the sums are what the encoder gets
    assert apart(translator.model.src_embedding(torch.tensor([ids]))[0], sums) < 1e-4

# %% [markdown]
# Each sum is far more similar to its own row than to any other.
# Is that so for all tokens of lesson 01's 500 English test sentences?
# `right place %` asks the same of the position: is its row the most similar one of 100?

# %% tags=["hide-input"]
from course_lib.data import load_course

test = load_course(num_train=4_000, num_valid=500, num_test=500).test
tested = [translator.tokenizer.encode(pair.src) for pair in test]
tokens = torch.tensor(sum(tested, []))
place_of = torch.cat([torch.arange(len(each)) for each in tested])
hundred = sinusoidal(100, 128)
kinds = {
    "word alone": vectors[tokens],
    "word + position": vectors[tokens] + hundred[place_of],
    "without √d_model": trained[tokens] + hundred[place_of],
}

# %% tags=["hide-input"]
recognized = []
print(f"{f'{len(tokens):,} tokens:':16}  right token %   right place %")
for name, compared in kinds.items():
    right_token = (compared @ vectors.T).argmax(dim=1) == tokens
    right_place = (compared @ hundred.T).argmax(dim=1) == place_of
    token_share = 100 * right_token.float().mean().item()
    place_share = 100 * right_place.float().mean().item()
    recognized.append((token_share, place_share))
    print(f"{name:16}{token_share:15.1f}{place_share:16.1f}")

# %% tags=["hide-input"]
alone, both_added, no_factor = recognized
assert len(tested) == 500 and alone[0] > 99.5 and alone[1] < 5
assert alone[0] - both_added[0] < 0.5 and 63 < both_added[1] < 72
assert no_factor[0] < 35 and no_factor[1] > 99
assert 15 < vectors[tokens].norm(dim=1).mean() < 22  # the next section draws such words

# %% [markdown]
# Nearly every token is still recognized, and two of three positions.
# The last line leaves out the factor √d_model that these rows were trained with: the position drowns three tokens in four.
#
# ### Can attention use it?
#
# Say that each word looks for the word three places on.
# It turns its own vector by our rotation: PE(pos) becomes PE(pos + 3).
# Its best match is the unturned vector with the largest dot product.
#
# Does it find that word by bare positions (length 8)?
# And with random words added (about 17 long, like the translator's)?

# %%
scores = (positions @ rotation(3, 128).T) @ positions.T  # (position, position)
looked_at = scores.argmax(dim=1)
print("best match of positions 0, 50 and 100:", looked_at[[0, 50, 100]].tolist())
seeded = torch.Generator().manual_seed(0)
added = positions + 1.5 * torch.randn(201, 128, generator=seeded)  # words of length 17
with_words = ((added @ rotation(3, 128).T) @ added.T).argmax(dim=1)
print("with words added:", with_words[[0, 50, 100]].tolist())

# %% tags=["hide-input"]
assert torch.equal(looked_at[:-3], torch.arange(201)[3:])
assert torch.equal(with_words, torch.arange(201))
assert 16 < (added - positions).norm(dim=1).mean() < 18

# %% [markdown]
# With bare positions it does.
# With words added, each of the 201 finds itself (folded).
# Why? Before, we compared a sum with bare positions. Here we compare sums with sums, so words meet words (*mixed*: a word meets a position):


# %%
def mean_product(rows, offset):
    """Rows 0 to 197, turned, times the rows `offset` places on."""
    turned_rows = rows[:198] @ rotation(3, 128).T
    return (turned_rows * rows[offset : offset + 198]).sum(dim=1).mean().item()


random_words, split = added - positions, []
print("mean dot product        words   positions   mixed   total")
for name, offset in (("with itself", 0), ("with the word 3 on", 3)):
    of_words = mean_product(random_words, offset)
    of_positions, total = mean_product(positions, offset), mean_product(added, offset)
    split.append((of_words, of_positions, total - of_words - of_positions, total))
    told = "{:9}{:12}{:8}{:8}".format(*map(round, split[-1]))
    print(f"{name:20}{told}")

# %% tags=["hide-input"]
itself, three_on = split
assert 225 < itself[0] < 245 and abs(three_on[0]) < 5 and itself[3] > 3 * three_on[3]
assert abs(three_on[1] - 64) < 1e-9 and 51 < itself[1] < 53
assert max(abs(itself[2]), abs(three_on[2])) < 10
assert (3 * frequency < 0.5).double().mean() > 0.75  # most hands turn little

# %% [markdown]
# The positions favor the word three places on, 64 to 52.
# But the words drown them: most pairs turn little, so a turned word looks like itself, 236 to 0.
#
# In attention, learned matrices multiply the rows before they are compared (lesson [03](03_attention.ipynb)).
# Can a matrix look past the words?
# `hit_rates` fits one (least squares: from sum to PE(pos)) on ten texts of 201 words and tries it on an eleventh.
# The words are drawn from 64, 96 or 2,000 random rows, then from our test sentences, with the translator's rows:


# %% tags=["hide-input"]
def hits(sums):
    """% of words that, turned, best match the word three places on."""
    best = (sums @ by_three @ sums.T).argmax(dim=1)
    return 100 * (best[:-3] == torch.arange(3, len(sums))).double().mean().item()


def hit_rates(rows_of, texts):
    """Fit on all texts but the last; % of hits there, without and with the matrix."""
    *seen, tried = rows_of[texts] + positions  # each (position, d_model)
    goal = positions.repeat(len(seen), 1)
    matrix = torch.linalg.lstsq(torch.cat(seen), goal, driver="gelsd").solution
    return hits(tried), hits(tried @ matrix)  # matrix: (128, 128)


# %%
by_three, pool = rotation(3, 128).T, 1.5 * torch.randn(2000, 128, generator=seeded)
long = {n: torch.randint(n, (11, 201), generator=seeded) for n in (64, 96, 2000)}
rates = {f"vocabulary {n:,}": hit_rates(pool, long[n]) for n in long}
from_test = tokens[torch.randint(len(tokens), (11, 201), generator=seeded)]
rates["the translator's rows"] = hit_rates(vectors, from_test)
print("% that find the word 3 on    without the matrix  with it")
for name, (by_sums, by_matrix) in rates.items():
    print(f"{name:30}{by_sums:17.0f}{by_matrix:8.0f}")

# %% tags=["hide-input"]
assert all(by_sums < 8 for by_sums, _ in rates.values())
few, more, many, real = (by_matrix for _, by_matrix in rates.values())
assert few > 96 > 93 > more > 55 and many < 20 and real < 20
for n, rank in ((64, 64), (96, 96), (2000, 128)):  # the dimensions that they fill
    assert torch.linalg.matrix_rank(pool[:n]) == rank
assert torch.linalg.matrix_rank(vectors[tokens.unique()]) == 128
for _ in range(3):  # drawn anew, also with random rows in place of the trained ones
    again = tokens[torch.randint(len(tokens), (11, 201), generator=seeded)]
    assert hit_rates(vectors, again)[1] < 20 and hit_rates(pool, again)[1] < 20

# %% [markdown]
# It can, where the words leave room.
# 64 words fill at most 64 of the 128 dimensions; in the rest it reads the position.
# 96 leave a quarter, 2,000 none.
# The translator's rows leave none either, and the matrix finds few words.
#
# [Below](#Which-one-is-best?) we see whether a model learns to use added positions.
# Lesson [13](13_positions_past_the_paper.ipynb) builds the distance into the comparison.
#
# ## Add, or put side by side?
#
# In a sum, word and position share the same features.
# Would it not be cleaner to *concatenate*, that is, to put the features of the position beside those of the word?
#
# Take one feature each: the word is 3, the position is 5.
# What can the next linear layer make of them?
#
# - Side by side it has two weights: *a* · 3 + *b* · 5. With *a* = 0 it looks past the word.
# - Added it has one: *a* · (3 + 5) = *a* · 3 + *a* · 5.
#
# So adding is concatenating with both weights the same.
# With many features *a* and *b* are matrices, and the same holds (folded cell).
# If the position has as many features as the word (d_position = d_model), a linear layer can do after concatenation all that it can do after adding, and more.

# %% tags=["hide-input"]
import torch.nn.functional as F

generator = torch.Generator().manual_seed(0)
for_word, for_position = torch.randn(2, 8, d_model, generator=generator).double()
word, position = table[cat_first], sinusoids(6, d_model)
concatenated = torch.cat([word, position], dim=1)  # (length, d_model + d_position)
both = F.linear(concatenated, torch.cat([for_word, for_position], dim=1))
parts = F.linear(word, for_word) + F.linear(position, for_position)
shared = F.linear(concatenated, torch.cat([for_word, for_word], dim=1))
added = F.linear(word + position, for_word)
assert apart(both, parts) < 1e-12
assert apart(added, shared) < 1e-12

# %% [markdown]
# What does "more" cost?
# We count the parameters of one attention layer, as wide out as in, when its width grows from d_model to d_model + d_position.


# %% tags=["nbval-check-output"]
def size(module):
    return sum(parameter.numel() for parameter in module.parameters())


plain = size(MultiHeadAttention(512, 8))
for extra in (0, 64, 512):
    factor = size(MultiHeadAttention(512 + extra, 8)) / plain
    print(f"512 + {extra:3} features: {factor:.2f} times as many parameters")

# %% tags=["hide-input"]
assert math.isclose(factor, ((512 + extra) / 512) ** 2, rel_tol=0.01)

# %% [markdown]
# With d_position = d_model the layer is four times as large; a smaller d_position is one more number to choose.
# The other way to pay is to keep d_model and leave the word less room.
# That is what the library's `ConcatenatedPosition` does.

# %%
from course_lib.position import ConcatenatedPosition

concatenate = ConcatenatedPosition(max_len=50, d_model=d_model, d_position=4).double()
narrow = batch[..., :12]  # a table with 12 features
joined = concatenate(narrow)
print(tuple(narrow.shape), "->", tuple(joined.shape))

# %% tags=["hide-input"]
assert torch.equal(joined[..., :12], narrow)
assert apart(joined[..., 12:], sinusoids(6, 4).expand(2, 6, 4)) < 1e-6

# %% [markdown]
# Adding, as in the paper, costs no feature and no parameter.
#
# ## Or learn it
#
# Why a formula at all?
# A table with one *learned* row for each position can become anything.
# The paper tried it in translation and found it nearly equal: 25.7 BLEU, and 25.8 with sinusoids (table 3, row (E)).
# BLEU scores translations; more is better.
#
# Which rows does a sentence teach?

# %% tags=["nbval-check-output"]
from course_lib.position import LearnedPosition

torch.manual_seed(0)
learned = LearnedPosition(max_len=10, d_model=d_model)
learned(batch.float()).square().sum().backward()
taught = learned.table.grad.abs().sum(dim=1) > 0
print(f"{learned.table.numel()} parameters; rows with a gradient: {taught.tolist()}")
try:
    learned(torch.zeros(1, 11, d_model))
except ValueError as error:
    print(error)

# %% tags=["hide-input"]
assert taught.tolist() == [True] * 6 + [False] * 4

# %% [markdown]
# Only the rows of positions that occur are trained.
# A row beyond the longest training sentence gets no gradient and (without weight decay) keeps its random start.
# Beyond the last row there is an error.
#
# ## Which one is best?
#
# The formula has no last row.
# Does that help on texts longer than the trained ones?
#
# We want a task that is easy when one knows the order, and cannot be solved without it: **who was named last** before this word?
# A story is a row of random words, some of them nouns.
# At every word that is not a noun, the model must name the last noun before it.

# %% tags=["nbval-check-output"]
from course_lib.experiments import VOCABULARY, named_last

ids, answers, asked = named_last(1, 16, torch.Generator().manual_seed(0))
for id, answer, ask in zip(ids[0], answers[0], asked[0], strict=True):
    print(f"{VOCABULARY[id]:8}", f"-> {VOCABULARY[answer]}" if ask else "")

# %% tags=["hide-input"]
assert (answers[~asked] == ids[~asked]).all()

# %% [markdown]
# The model is two encoder layers, 64 wide, over embedded words, and a linear layer that scores eight nouns.
# With one of the three encodings or none, it trains on stories of 16 words, and is tested on 16, 32 and 64.
# The learned table has 64 rows; training reaches 16, the rest stay random.
# We read the record of earlier runs.
#
# <details><summary>How the models were trained</summary>
#
# `python -m course_lib.experiments positions` makes the record.
# All have four heads of width 16.
# Concatenated positions take 16 of the 64 features from the word.
# Each model trains on new stories until its validation accuracy on stories of 16 words no longer rises.
# Each encoding has three seeds.
# For each encoding we tried two learning rates, and for the learned table two starting scales.
# We kept the best on validation stories of all three lengths.
# So the choice of settings has seen long stories; the training has not.
#
# </details>

# %%
at_64_words = Predict(
    "Trained on 16 words: which encodings still answer 95 % right at 64?",
    ["all three", "sinusoids added", "sinusoids concatenated", "none of them"],
    section="Which one is best?",
)
at_64_words

# %%
from course_lib.experiments import Reader, final_results, read_record

record = read_record("records/positions.json")
results = final_results(record, "accuracy")  # side to (seeds, lengths)
sides = {  # d_k: the width of a head (lesson 04)
    "no position": "none",
    "sinusoids added": "sinusoidal, d_k 16, base 10000",
    "learned table added": "learned, d_k 16",
    "sinusoids concatenated": "concatenated",
}
runs_of = {name: torch.tensor(results[side]) for name, side in sides.items()}

# %% tags=["hide-input"]
assert len(Reader("learned").position.table) == 64
for name, side in sides.items():
    final = [run for run in record["runs"] if run["side"] == side]
    model = Reader(final[0]["choices"]["encoding"])
    width = model.embedding.embedding_dim
    assert len(runs_of[name]) == 3 and width == (48 if name.endswith("ated") else 64)
    assert {run["choices"]["d_k"] for run in final} == {16}
    assert model.layers[0].self_attn.num_heads == 4

# %% tags=["hide-input"]
guessed, seeded = [], torch.Generator().manual_seed(1)
for length in (16, 32, 64):
    stories, last_nouns, asked = named_last(2000, length, seeded)
    counts = F.one_hot(stories, len(VOCABULARY))[..., :8].sum(dim=1)  # of the nouns
    most_frequent = counts.argmax(dim=1)[:, None]  # (stories, 1)
    guessed.append((most_frequent == last_nouns)[asked].float().mean().item())
drawn = {**runs_of, "always the most frequent noun": torch.tensor(guessed)}
for name, runs in drawn.items():
    means = torch.atleast_2d(runs).mean(dim=0)
    told = ", ".join(f"{share:.0%}" for share in means)
    print(f"{name:30} right at 16, 32, 64 words: {told}")
solved = [name for name, runs in runs_of.items() if runs[:, 2].mean() > 0.95]
at_64_words.reveal(*solved or ["none of them"])

# %% tags=["hide-input"]
none, *tables = runs_of.values()
assert all(runs[:, 0].min() > 0.98 for runs in tables) and none.max() < 0.5
assert all(runs[:, 1:].max() < 0.8 for runs in tables)

# %% tags=["hide-input"]
shares = 100 * torch.stack(list(runs_of.values())).mean(dim=1)  # (side, length)
assert (none.mean(dim=0) - torch.tensor(guessed)).abs().max() < 0.04
assert guessed[0] > guessed[1] > guessed[2]
torch.testing.assert_close(shares[0], torch.tensor([45.0, 32, 25]), rtol=0, atol=0.6)
assert 35.5 < shares[1, 2] < 36.5
for length in (1, 2):
    assert (shares[1:, length] - shares[0, length]).min() > 5

# %% [markdown]
# Without positions the model knows only how often each word occurs: it is about as good as always naming the most frequent noun.
# With 16 words all three encodings are right nearly every time.
# With 64 words they are right about once in three, formula or not.
#
# At 64 words added sinusoids reach 36 %: does the model know a little everywhere?
# A total hides *where* a model goes wrong, so we take the share of right answers at each place.
# (Each point is a mean over four neighboring words; each band spans three runs.)

# %%
fours = final_results(record, "by_position")  # four neighboring words each
middles = [4 * group + 1.5 for group in range(16)]
figure = curves(
    {name: (middles, [run[2] for run in fours[side]]) for name, side in sides.items()},
    xlabel="position of the question in a story of 64 words",
    ylabel="right answers (share)",
    title="Every encoding helps left of the line; right of it, two soon do harm",
    marks={"training ended": (15.5, None)},
)
figure

# %% tags=["hide-input"]
by_place = {}
for name, side in sides.items():
    each = torch.tensor([run[2] for run in fours[side]]).mean(dim=0)  # (16,)
    by_place[name] = [part.mean().item() for part in (each[:4], each[4:8], each[8:])]
print(f"{'right answers at positions':28}  0-15  16-31  32-63")
for name, found in by_place.items():
    print(f"{name:28}", *(f"{share:5.0%} " for share in found))
blind = by_place["no position"]
assert all(0.2 < share < 0.3 for share in blind)
for name in list(sides)[1:]:
    first, second, last = by_place[name]
    assert 0.66 < first < 0.89 and second < blind[1] + 0.06 and last < blind[2] + 0.06
    at_32_words = torch.tensor([run[1] for run in fours[sides[name]]])  # (seeds, 8)
    assert at_32_words[:, 4:].mean() < 0.5

# %% tags=["hide-input"]
for name in ("sinusoids added", "learned table added"):
    per_seed = torch.tensor([run[2] for run in fours[sides[name]]])[:, 8:].mean(dim=1)
    assert per_seed.max() < 0.21 < min(blind)  # all three seeds
first, _, last = by_place["sinusoids added"]
assert 0.885 < first < 0.895 and 0.165 < last < 0.175

# %% tags=["hide-input"]
at_64 = [torch.tensor([run[2] for run in fours[side]]) for side in sides.values()]
nothing, sines, learned_rows, beside = at_64  # each (seeds, 16 groups of four words)
assert sines.mean(dim=0)[4] > 0.5 > sines.mean(dim=0)[5:].max()
assert sines[:, 4].min() > nothing[:, 4].max()
assert learned_rows[:, 4].max() < nothing[:, 4].min()
for harmed, start in ((sines, 5), (learned_rows, 4)):  # from word 20, from word 16
    assert (harmed.mean(dim=0) < nothing.mean(dim=0))[start:].all()
for bump in (7, 8):  # words 28 to 35, with every seed
    assert beside[:, bump].min() > nothing[:, bump].max()
assert beside[:, 8:].mean(dim=1).min() > nothing[:, 8:].mean(dim=1).max()
for each in at_64[1:]:  # every seed and every four words, left of the line
    assert (each[:, :4].amin(dim=0) > nothing[:, :4].amax(dim=0)).all()
assert beside[:, 6].max() < 0.27 and 0.5 < beside[:, 8].mean() < 0.6

# %% [markdown]
# No: added sinusoids are 89 % right at the trained positions, and 17 % from position 32 on.
#
# - Left of the line, all three encodings help, but less than in a story of 16 words. Possible reasons: 48 words are at untrained positions, or more words share the attention (lesson [13](13_positions_past_the_paper.ipynb) tests such causes).
# - Right of it, the learned table falls at once, and the added sinusoids a few words later. Over positions 32 to 63 both are worse than no positions, with every seed.
# - The concatenated sinusoids fall too, but rise once more around word 33. Over positions 32 to 63 they are better than no positions, with every seed. We have not looked into why in either case.
#
# We train one of these models ourselves, with sinusoids added and seed 0. (On a GPU the cell trains five seeds.)

# %%
from course_lib.experiments import right_answers, train_reader

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
for seed in range(5 if device == "cuda" else 1):
    torch.manual_seed(seed)
    reader = Reader("sinusoidal").to(device)
    history = train_reader(reader, rate=1e-3, seed=seed)
    trained_length = right_answers(reader, 16).nanmean().item()
    right = right_answers(reader, 64)  # (stories, positions), NaN where we do not ask
    places = [part.nanmean().item() for part in right.split([16, 16, 32], dim=1)]
    told = ", ".join(f"{share:.0%}" for share in places)
    print(f"seed {seed}, {50 * len(history)} steps: 16 words {trained_length:.0%}")
    print(f"64 words, positions 0-15, 16-31, 32-63: {told}")
    assert trained_length > 0.95 and places[0] > 0.6 and max(places[1:]) < 0.45

# %% [markdown]
# As in the record.
#
# **A common mistake**: "sinusoids let the model extrapolate to longer sentences."
# Section 3.5 says that they *may*.
# Here they hardly do.
# A formula can make a mark for any position; reading it must be learned.
# Lesson [13](13_positions_past_the_paper.ipynb) is about what does better.
# Until then the course uses the paper's sinusoids, on sentences no longer than in training.

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **permutation-equivariant**: when the inputs are permuted, the outputs are permuted the same way and do not change otherwise.
# - **wavelength**: how many positions a sine and cosine take to repeat.
# - **pair**: dimensions 2*i* and 2*i* + 1, which share one wavelength.

# %% [markdown]
# ## Summary
#
# Self-attention is permutation-equivariant: shuffle the words, and the outputs are shuffled the same way.
# So without positions an encoder has one mean for *The cat sees the dog.* and *The dog sees the cat.*, whatever its weights.
# Something else must bring in the order: a causal mask or a position encoding.
# The paper adds sinusoids: pairs of sine and cosine, one clock hand each, with wavelengths from 2π towards 2π · 10000.
# Their numbers stay small (every row has length √(d_model / 2)), and every position has its own.
# A step of *k* words is one rotation, the same everywhere, and the dot product of two bare positions depends on their distance alone, as long as each pair shares one exponent.
# Added to words, positions can be read by a matrix as far as the words leave dimensions free.
# Positions can also be learned, or concatenated to the words.
# In stories of the trained length all three ways tell who was named last; in longer ones most answers of all three are wrong beyond that length.
#
# **Practice**: [assignment 02](assignments/release/02_position/02_position.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [03](03_attention.ipynb) opens the layer that we took as given: attention.
