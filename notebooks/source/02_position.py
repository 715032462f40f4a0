# %% [markdown]
# # 02 · Position: telling a model what comes first
#
# **Question.** *The cat sees the dog.* and *The dog sees the cat.* have the same words. How does a Transformer notice the difference?
#
# **Afterwards you can**
#
# 1. say what attention does when its words are shuffled, and prove it;
# 2. build the paper's sinusoids by hand, and say what a wavelength, a pair and an offset are;
# 3. choose among six ways to tell a model about order, knowing what each did on longer texts than it was trained on.
#
# **You need** embeddings: sentences as tensors of (batch, length, d_model) (lesson [01](01_text_to_tensors.ipynb)).
# **Time**: 40 minutes to read, under 150 seconds to run, most of them for the experiment at the end.
# **In the paper**: section 3.5, and table 3, row (E).

# %%
import math
from itertools import permutations

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

device = "cuda" if torch.cuda.is_available() else "cpu"


def apart(a, b):
    """The largest difference between two tensors."""
    return (a - b).abs().max().item()


assert apart(torch.ones(2, device=device), torch.zeros(2, device=device)) == 1

# %% [markdown]
# ## The same words, another meaning
#
# Two of our sentences are made of the same tokens, and say different things.

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
assert cat_first.tolist() != dog_first.tolist()
assert sorted(cat_first.tolist()) == sorted(dog_first.tolist())

# %% [markdown]
# We look them up in a table with one random row for each token, as lesson 01 does.
#
# Then comes a layer that this lesson takes as given: **self-attention**.
# Each token gets a new vector, in essence a weighted mean over all tokens, with weights that say how well their vectors match its own.
# Lesson [03](03_attention.ipynb) opens it; here we only ask what it knows about order.

# %%
from course_lib.attention import MultiHeadAttention

d_model = 16
torch.manual_seed(0)
table = torch.randn(tokenizer.vocab_size, d_model, dtype=torch.float64)
attention = MultiHeadAttention(d_model, num_heads=4).double()


@torch.no_grad()
def attend(x, layer=attention, mask=None):
    """Self-attention on one sentence, (length, d_model) to (length, d_model)."""
    x = x[None]  # (1, length, d_model)
    return layer(x, x, x, mask)[0]


# %% [markdown]
# First, does it mix at all?
# We exchange one word, *sleeps* for *sees*, and look at the vector of *cat*.

# %%
words = ["The", "cat", "sleeps", "."]
x = table[sleeps]  # (length, d_model)
mixed = attend(x)
sees = sleeps.clone()
sees[2] = cat_first[2]
other_company = attend(table[sees])
for word, before, after in zip(words, mixed, other_company, strict=True):
    print(f"{word:7} changes by {apart(before, after):.2f}")
    assert apart(before, after) > 0.01

# %% [markdown]
# Every vector changes: each token knows its company.
#
# ## What does shuffling do?
#
# Now the same four words in another order: *sleeps The cat .*
# Predict: which numbers will the vector of *cat* have now?

# %%
order = [2, 0, 1, 3]  # sleeps The cat .
shuffled = attend(x[order])
print("cat in order: ", mixed[1, :4])
print("cat shuffled: ", shuffled[2, :4])
torch.testing.assert_close(shuffled, mixed[order], rtol=0, atol=1e-12)

# %% [markdown]
# The very same numbers.
# The rows moved with their words, and nothing else happened.
# There are 24 orders of four words; we try them all, in float64 and in float32.

# %%
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
# This property has a name: self-attention is **permutation-equivariant**.
# Permute the rows that go in, and the rows that come out are permuted the same way.
# To such a layer *The cat sleeps* is *sleeps the cat*: each word gets the same vector wherever it stands.
#
# **A common mistake**: "attention is permutation-*invariant*."
# Invariant would mean that the output stays the same.
# Does it?

# %%
order = [2, 0, 1, 3]
shuffled = attend(x[order])
rows, means = apart(shuffled, mixed), apart(shuffled.mean(dim=0), mixed.mean(dim=0))
print(f"the rows differ by {rows:.2f}, their means by {means:.0e}")
assert rows > 0.01 and means < 1e-12

# %% [markdown]
# The output is not invariant, because its rows move.
# Its *mean* over the tokens is invariant: a mean does not care about order.
#
# What does that do to our two sentences?
# We stack two whole encoder layers (lesson [06](06_encoder.ipynb) opens those) and take the mean, as a classifier of sentences might.

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
assert same_words < 1e-12 and other_words > 0.01

# %% [markdown]
# One vector for both.
# No training can help: whatever comes after this vector must give both sentences the same answer.
#
# A recurrent network does not have this problem, because it reads one word after another.

# %%
recurrent = nn.GRU(d_model, d_model, batch_first=True).double()
with torch.no_grad():
    _, last = recurrent(table[torch.stack([cat_first, dog_first])])
print(f"a recurrent network's last states: {apart(last[0, 0], last[0, 1]):.2f} apart")
assert apart(last[0, 0], last[0, 1]) > 0.01

# %% [markdown]
# It gets the order for free.
# Attention reads all words at once, and must be told.
#
# ### With a causal mask
#
# A decoder uses a *causal mask*: each token attends to itself and to the tokens before it, and to none after it (lesson [05](05_masks.ipynb)).
# Is attention still equivariant then?
# Is its mean still invariant?

# %%
from course_lib.masks import causal_mask

mask = causal_mask(4)
ordered, shuffled = attend(x, mask=mask), attend(x[order], mask=mask)
rows = apart(shuffled, ordered[order])
means = apart(shuffled.mean(dim=0), ordered.mean(dim=0))
print(f"not moved along: {rows:.2f} apart; the means: {means:.2f} apart")
assert rows > 0.01 and means > 0.01

# %% [markdown]
# With a causal mask attention is neither: the order decides who may see whom.
# But an encoder has no such mask.
# It needs to be told where its words stand.
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
nearest = (counted @ counted.T).argmax(dim=1)  # what matches each word best
print("best match of the words at 20, 40, 60 and 80:", nearest[20::20].tolist())
assert counter.mean() == 49.5 and abs(text.mean()) < 0.1 and text.abs().max() < 6
assert (nearest[20:] >= 95).all() and ((text @ text.T).argmax(dim=1)[20:] < 95).any()

# %% [markdown]
# The counter drowns the words.
# From position 20 on, every word matches the end of the text best, whatever it means.
# Its mean is far from 0, and a longer text brings numbers that no training has shown.
#
# What if we divide by the length, so that it stays between 0 and 1?

# %% tags=["nbval-check-output"]
for ids in (sleeps, apple):
    steps = torch.arange(len(ids)) / len(ids)
    print(f"{len(ids):2} tokens: one word further is {steps[1]:.2f} more")
assert 1 / len(sleeps) == 2.5 / len(apple)

# %% [markdown]
# Now "one word further" means something else in every sentence.
#
# We want numbers that stay small, that differ from position to position, and in which one step is the same step everywhere.
#
# ## The paper's idea: clocks
#
# A clock's hand never leaves its circle, and one minute is the same turn at any time of day.
# One hand alone comes round again, so a clock has a slow hand beside the fast one.
# Section 3.5 takes d_model / 2 hands, from fast to slow, and writes down the two coordinates of each:
#
# $$PE_{(pos,\,2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right) \qquad PE_{(pos,\,2i+1)} = \cos\left(pos / 10000^{2i/d_{model}}\right)$$
#
# Here *i* counts the **pairs**, 0 to d_model / 2 − 1: dimensions 2*i* and 2*i* + 1 are one hand and share one angle.
# 2*i*/d_model is an exponent.
# One number after another, that is:


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
assert torch.allclose(hands.square().sum(dim=-1), torch.ones(4, 4, dtype=torch.float64))

# %% [markdown]
# Read two columns at a time.
# The first pair turns by one radian a word; the last one hardly moves.
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


torch.testing.assert_close(
    sinusoids(50, 64), sinusoids_by_hand(50, 64), rtol=1e-9, atol=1e-12
)

# %% [markdown]
# `stack` and `flatten` lay sine and cosine side by side: sine, cosine, sine, cosine.
# The library's `sinusoidal` gives the same numbers, in float32.

# %%
from course_lib.position import sinusoidal

assert sinusoidal(50, 64).dtype == torch.float32
torch.testing.assert_close(sinusoidal(50, 64), sinusoids(50, 64).float())

# %% [markdown]
# **A common mistake**: formulas do not survive copying.
# `10000^(2i/d)` in Python is not a power, `10000(2i/d)` on paper has lost the exponent, and `for pos in max_len` is no loop.

# %% tags=["nbval-check-output"]
print("10000 ^ 2 is", 10000 ^ 2, "but 10000 ** 2 is", 10000**2)
assert 10000 ^ 2 == 10000 + 2  # ^ flips bits
complaints = []
for slip in ("5 / (10000 * (2 * 0 / 64))", "[position for position in 50]"):
    try:
        eval(slip)
    except (ZeroDivisionError, TypeError) as error:
        complaints.append(type(error))
        print(f"{slip}: {type(error).__name__}")
assert len(complaints) == 2

# %% [markdown]
# ## Wavelengths
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
assert wavelength[0] == 2 * math.pi and wavelength[-1] < 2 * math.pi * 10000
ratios = wavelength[1:] / wavelength[:-1]
assert torch.allclose(ratios, ratios[0])

# %% [markdown]
# They grow by the same factor from pair to pair.
# The paper says from 2π to 10000 · 2π; the last pair comes close to that end and does not reach it, because *i* stops at d_model / 2 − 1.
#
# The picture shows a narrower table, with 32 dimensions.
# Before you look: where will the stripes be narrow?

# %%
from course_lib.figures import signed_matrix

lengths = [2 * math.pi * 10000 ** (2 * pair / 32) for pair in range(16)]
names = [f"{wave} {length:,.0f}" for length in lengths for wave in ("sin", "cos")]
heatmap = sinusoids(64, 32)
figure = signed_matrix(
    heatmap,
    rows=range(64),
    columns=names,
    title="Left, the hands turn fast; right, they hardly move within a sentence",
    xlabel="function and wavelength in words, one column for each dimension",
    ylabel="position",
)
figure

# %%
for pair, length in enumerate(lengths):  # a hand is back after its wavelength
    angle = (5 + length) * 2 * math.pi / length
    assert math.isclose(math.sin(angle), heatmap[5, 2 * pair])
assert heatmap[:, :8].std(dim=0).min() > 0.6 and heatmap[:, 24:].std(dim=0).max() < 0.03
slow_sines, slow_cosines = heatmap[:, 24::2], heatmap[:, 25::2]
assert slow_sines.abs().max() < 0.1 and slow_cosines.min() > 0.9

# %% [markdown]
# A row is what is added to the word at that position.
# A column is one coordinate of one hand: read downwards, it is a wave.
# Left, the wave repeats every 6 words: it tells neighbors apart.
# Right, its wavelength is thousands of words: within a sentence the sines stay near 0 and the cosines near 1.
#
# Take the table into your hands: choose two positions, then shift both.
# What becomes of their dot product?

# %%
from course_lib.widgets import PositionExplorer

explorer = PositionExplorer(length=64, d_model=32, first=5, second=12, offset=3)
rows, products = explorer.compute()
torch.testing.assert_close(rows[:64], heatmap.float())
torch.testing.assert_close(products[5, 12], products[8, 15])
explorer

# %% [markdown]
# ## Two drawings of one table
#
# In many drawings all sines are in the left half and all cosines in the right half.
# Is that another encoding?

# %%
from course_lib.figures import Panel, panels

interleaved = sinusoids(24, 32)
halves = torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1)
order_of_halves = [*range(0, 32, 2), *range(1, 32, 2)]
assert torch.equal(halves, interleaved[:, order_of_halves])
look = dict(rows=range(24), xlabel="dimension", ylabel="position")
panels(
    [
        Panel(interleaved, columns=range(32), name="the paper: in turns", **look),
        Panel(halves, columns=order_of_halves, name="sines, then cosines", **look),
    ],
    title="The same columns in another order: in turns, or all sines first",
)

# %% [markdown]
# The right picture looks split: its left half starts at 0 in every column, its right half at 1.
# But its columns are the paper's columns, only in another order.
#
# Does the order of dimensions matter to a model?
# The next layer is linear, and its weights can be in that order too.

# %%
weight = torch.randn(8, 32, dtype=torch.float64)
torch.testing.assert_close(
    F.linear(interleaved, weight), F.linear(halves, weight[:, order_of_halves])
)
assert apart(F.linear(interleaved, weight), F.linear(halves, weight)) > 0.1
assert torch.equal(halves[0], torch.tensor([0.0] * 16 + [1.0] * 16).double())

# %% [markdown]
# The same outputs, so either order is as good as the other.
# But a model must keep the one it has: the same weights with the other order give other outputs.
#
# ## How large is it?
#
# **A common mistake**: "position 0 changes nothing, and the others change the word a little."
# Look at row 0 of the table above, and predict the length of a row.

# %% tags=["nbval-check-output"]
print("PE(0) =", sinusoids(1, 8)[0].tolist())
for width in (16, 128, 512):
    norms = sinusoids(1000, width).norm(dim=1)
    print(f"d_model {width:3}: every row has length {norms[0]:.2f} = √(d_model / 2)")
    assert torch.allclose(norms, torch.tensor(width / 2).double().sqrt())

# %% [markdown]
# Position 0 adds 1 to every odd dimension: sine of 0 is 0, but cosine of 0 is 1.
# And each pair has length 1, so every row has length √(d_model / 2): 16 for the paper's model.
#
# Is that little?
# We ask the small course translator for the vectors of its words (times √d_model, as lesson 01 has them).

# %%
from course_lib import Translator

translator = Translator.from_pretrained("course")
embedding = translator.model.src_embedding
ids = torch.tensor(translator.tokenizer.encode("The cat sees the dog."))
with torch.no_grad():
    vectors = embedding.table(ids) * math.sqrt(embedding.table.embedding_dim)
rows = sinusoidal(len(ids), embedding.table.embedding_dim)
for token, vector, row in zip(ids.tolist(), vectors, rows, strict=True):
    word = translator.tokenizer.token(token)
    print(f"{word:6} word {vector.norm():5.1f}, position {row.norm():4.1f}")
assert (rows.norm(dim=1) > 0.25 * vectors.norm(dim=1)).all()
assert (rows.norm(dim=1) < vectors.norm(dim=1)).all()

# %% [markdown]
# The position is more than a quarter as long as the word.
# It does not *permute* the word's vector, as is sometimes written: it *perturbs* it, by an amount that depends on the position alone, not on the word.
#
# ## How alike are two positions?
#
# Attention compares vectors by their dot product.
# What is the dot product of two rows?
# For one pair, sin *a* · sin *b* + cos *a* · cos *b* = cos(*a* − *b*): only the *difference* of the angles is left.

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
    title="The dot product falls with distance, with ripples, alike on both sides",
)
far = similarity[101:]
assert similarity.argmax() == 100 and torch.allclose(similarity, similarity.flip(0))
assert (far[1:] > far[:-1]).any() and far[:5].min() > far[50:].max()
figure

# %% [markdown]
# Near positions are alike, far ones less so.
# The curve is not monotone: in places a word further away is *more* alike.
# And it is symmetric: from the bare dot product you cannot tell *before* from *after*.
# So something must be learned on top, and the next section says what it can be.
#
# ## One step is one turn
#
# The paper's reason for the formula: "for any fixed offset *k*, PE(pos + *k*) can be represented as a linear function of PE(pos)."
# The clock says which one.
# *k* words later each hand has turned by the same angle, wherever it was.
# So the function is a rotation for each pair:


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
assert (turn != 0).sum() == 4 * 4  # four blocks of 2 × 2
assert apart(turn @ turn.T, torch.eye(8)) < 1e-12  # a rotation: lengths stay
figure = signed_matrix(
    turn,
    rows=range(8),
    columns=range(8),
    title="Three words on: one small rotation for each pair, and nothing between pairs",
    xlabel="dimension of PE(pos)",
    ylabel="dimension of PE(pos + 3)",
)
figure

# %% [markdown]
# Is it right?
# We compare with the table, for several widths and offsets.

# %%
for width in (16, 64, 512):
    for offset in (1, 5, 20):
        rows = sinusoids(1000, width)
        residual = apart(rows[:-offset] @ rotation(offset, width).T, rows[offset:])
        assert residual < 1e-9
    print(f"d_model {width:3}, {offset} words on: residual {residual:.0e}")

# %% [markdown]
# Exact, to the last digits of float64.
#
# We knew the matrix beforehand.
# Would a model find it, that knows only examples?
# We forget the formula and let least squares look for the best linear map.


# %%
def best_map(table, offset):
    """The linear map from each row to the row `offset` further on, and its residual."""
    here, there = table[:-offset], table[offset:]
    found = torch.linalg.lstsq(here, there, driver="gelsd").solution.T
    return found, apart(here @ found.T, there)


found, residual = best_map(sinusoids(1000, 16), offset=3)
error = apart(found, rotation(3, 16))
print(f"residual {residual:.0e}, distance to the rotation {error:.0e}")
assert residual < 1e-9 and error < 1e-6

# %% [markdown]
# It finds the rotation.
#
# What is the rotation good for?
# Attention multiplies its queries and its keys by learned matrices.
# If one of them holds this rotation, a token can look at *the word three places on*, wherever it stands.

# %%
scores = (positions @ rotation(3, 128).T) @ positions.T  # (query, key)
looked_at = scores.argmax(dim=1)
print("best match of positions 0, 50 and 100:", looked_at[[0, 50, 100]].tolist())
assert torch.equal(looked_at[:-3], torch.arange(201)[3:])

# %% [markdown]
# **A common mistake**: "after an offset the encodings are multiples of each other."
# Multiples point in the same direction, so their cosine would be 1 or −1.
# And the idea of position encodings is older than this paper: section 3.5 cites earlier ones, learned and fixed.

# %%
cosine = F.cosine_similarity(positions[:-3], positions[3:])
print(f"cosine between positions three apart: {cosine.min():.3f} to {cosine.max():.3f}")
assert cosine.abs().max() < 0.95

# %% [markdown]
# ### Break it: an exponent for every dimension
#
# **A common mistake**: *i* is taken for the number of the dimension, and the exponent is *i*/d_model for each of them.
# Then a cosine has another wavelength than the sine beside it.
# They are no longer two coordinates of one hand.
# Predict: what happens to lengths, dot products and the linear map?


# %%
def wrong_sinusoids(max_len, d_model):
    """The exponent i/d_model, where 2⌊i/2⌋/d_model is right."""
    dimension = torch.arange(d_model)
    angle = torch.arange(max_len).double()[:, None] / 10000 ** (dimension / d_model)
    return torch.where(dimension % 2 == 0, angle.sin(), angle.cos())


for width in (16, 64, 512):
    _, right = best_map(sinusoids(1000, width), offset=3)
    _, wrong = best_map(wrong_sinusoids(1000, width), offset=3)
    print(f"d_model {width:3}: residual {right:.0e} with pairs, {wrong:.1f} without")
    assert right < 1e-9 and 0.5 < wrong < 2

# %%
broken = wrong_sinusoids(201, 128)
lengths = broken.norm(dim=1)
along = (broken @ broken.T).diagonal(10)  # products of positions ten apart
for name, numbers in (("lengths", lengths), ("products ten apart", along)):
    print(f"{name}: from {numbers.min():.2f} to {numbers.max():.2f}")
assert lengths.max() - lengths.min() > 0.1 and along.max() - along.min() > 1

# %% [markdown]
# No linear map leads three words on any more: the best one misses by about 1, as much as the largest numbers in the table.
# Nothing crashes, and each position still has a row of its own.
# It takes a test to notice.
#
# ## Adding it to the words
#
# The paper adds the row to the word's vector, at the bottom of both stacks.
# `SinusoidalPosition` is the table and the sum.

# %%
from course_lib.position import SinusoidalPosition

add_position = SinusoidalPosition(max_len=50, d_model=d_model).double()
batch = table[torch.stack([cat_first, dog_first])]  # (batch, length, d_model)
assert apart(add_position(batch), batch + sinusoids(6, d_model)) < 1e-6
cat_sees, dog_sees = (pooled(row) for row in add_position(batch))
print(f"with positions the two sentences are {apart(cat_sees, dog_sees):.2f} apart")
assert apart(cat_sees, dog_sees) > 0.01

# %% [markdown]
# The encoder that gave one vector for both sentences now gives two.
#
# ### What does it cost to be odd?
#
# A hand has two coordinates, so the width must be even.
# Popular code fills `table[:, 0::2]` with sines and `table[:, 1::2]` with cosines, and is said to work for any width.
# Predict: what does it say to a width of 7, and what does the library say?

# %% tags=["nbval-check-output"]
odd = torch.zeros(10, 7)
angle = torch.arange(10)[:, None] / 10000 ** (torch.arange(0, 7, 2) / 7)  # (10, 4)
odd[:, 0::2] = angle.sin()
refused = []
for fill in (lambda: odd[:, 1::2].copy_(angle.cos()), lambda: sinusoidal(10, 7)):
    try:
        fill()
    except (RuntimeError, ValueError) as error:
        refused.append(type(error))
        print(f"{type(error).__name__}: {error}")
assert refused == [RuntimeError, ValueError]

# %% [markdown]
# Both refuse; only one says what is wrong.
#
# ### Break it: the wrong axis
#
# The next one does not crash.
# Older code has (length, batch, d_model), keeps a table of (max_len, 1, d_model), and slices it by `x.size(0)`.
# Now give it a batch that comes first, as ours does.
# What is added to which token?


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
    assert apart(added[row], sinusoids(2, d_model)[row].expand(6, d_model)) < 1e-6
print("each token of sentence 0 got PE(0), each token of sentence 1 got PE(1)")

# %% [markdown]
# It adds the position *in the batch*, the same to every token of a sentence.
# No error, no warning, and the order is lost again.

# %%
swapped = table[torch.stack([dog_first, cat_first])]
for name, layer in (("wrong axis", WrongAxis(50, d_model)), ("right", add_position)):
    cat_sees, dog_sees = (pooled(layer(each)[0]) for each in (batch, swapped))
    print(f"{name:10} cat and dog exchanged: {apart(cat_sees, dog_sees):.0e} apart")
    noticed = apart(cat_sees, dog_sees) > 1e-12
    assert noticed == (name == "right")

# %% [markdown]
# That line is also the test that catches it: swap two words, and ask for a difference.
#
# ## Add, or put side by side?
#
# Adding mixes two things in the same features.
# Would it not be cleaner to *concatenate*: the word's D features, then P for the position?
# A linear layer tells us how they differ.
# We split its matrix into the part for the word and the part for the position.

# %%
generator = torch.Generator().manual_seed(0)
for_word, for_position = torch.randn(2, 8, d_model, generator=generator).double()
word, position = table[cat_first], sinusoids(6, d_model)
beside = torch.cat([word, position], dim=1)  # (length, D + P)
both = F.linear(beside, torch.cat([for_word, for_position], dim=1))
assert apart(both, F.linear(word, for_word) + F.linear(position, for_position)) < 1e-12
shared = F.linear(beside, torch.cat([for_word, for_word], dim=1))
assert apart(F.linear(word + position, for_word), shared) < 1e-12

# %% [markdown]
# W · [word; position] = W_word · word + W_position · position.
# Adding is the special case in which both parts are the same matrix.
# So concatenation can do all that adding can, and it may look at words and positions with different matrices.
#
# What does it cost?
# We count the parameters of one attention layer whose input grows from D to D + P.


# %% tags=["nbval-check-output"]
def size(module):
    return sum(parameter.numel() for parameter in module.parameters())


plain = size(MultiHeadAttention(512, 8))
for extra in (0, 64, 512):
    factor = size(MultiHeadAttention(512 + extra, 8)) / plain
    print(f"D = 512, P = {extra:3}: {factor:.2f} times as many parameters")
    assert math.isclose(factor, ((512 + extra) / 512) ** 2, rel_tol=0.01)

# %% [markdown]
# With P = D the layer is four times as large, and P is one more number to choose.
# The other way to pay is to keep d_model and leave the word less room.
# That is what the library's `ConcatenatedPosition` does.

# %%
from course_lib.position import ConcatenatedPosition

concatenate = ConcatenatedPosition(max_len=50, d_model=d_model, d_position=4).double()
narrow = batch[..., :12]  # a table with 12 features
joined = concatenate(narrow)
print(tuple(narrow.shape), "->", tuple(joined.shape))
assert torch.equal(joined[..., :12], narrow)
assert apart(joined[..., 12:], sinusoids(6, 4).expand(2, 6, 4)) < 1e-6

# %% [markdown]
# ## Or learn it
#
# Why a formula at all?
# A table with one *learned* row for each position can become anything.
# The paper tried it and reports nearly identical results (table 3, row (E)).
#
# Which rows does a sentence teach?

# %% tags=["nbval-check-output"]
from course_lib.position import LearnedPosition

torch.manual_seed(0)
learned = LearnedPosition(max_len=10, d_model=d_model)
learned(batch.float()).square().sum().backward()
taught = learned.table.grad.abs().sum(dim=1) > 0
print(f"{learned.table.numel()} parameters; rows with a gradient: {taught.tolist()}")
assert taught.tolist() == [True] * 6 + [False] * 4
try:
    learned(torch.zeros(1, 11, d_model))
except ValueError as error:
    print(error)
    assert "11" in str(error)

# %% [markdown]
# Only the rows of positions that occur.
# Behind the longest sentence of training the rows keep their random start, and behind the end of the table there is nothing.
#
# ## Into the attention: ALiBi
#
# All encodings so far change the vectors that go into the first layer.
# Later work tells the position to the attention itself, in every layer.
#
# Attention gives each query and key a *score*: how well they match.
# **ALiBi** (Press, Smith and Lewis, 2022) subtracts the distance, times a slope.
# Each head (attention runs several times side by side, lesson [04](04_multi_head.ipynb)) has its own slope: 2^(−8/heads), 2^(−16/heads), … down to 2^(−8).
# It is made for decoders, so only keys at or before the query count.


# %%
def alibi_by_hand(num_heads, length):
    """What is added to the scores, (heads, queries, keys); 0 after the query."""
    bias = torch.zeros(num_heads, length, length)
    for head in range(num_heads):
        slope = 2 ** (-8 * (head + 1) / num_heads)
        for query in range(length):
            for key in range(query + 1):
                bias[head, query, key] = -slope * (query - key)
    return bias


# %% [markdown]
# An encoder also sees the keys *after* the query.
# The library gives those the slopes of the heads in reverse order; that is our own choice, not the paper's.

# %%
from course_lib.position import ALiBi

bias = ALiBi(num_heads=4).bias(6, 6)  # (heads, queries, keys)
by_hand = alibi_by_hand(4, 6)
torch.testing.assert_close(bias.tril(), by_hand)
torch.testing.assert_close(bias.triu(), by_hand.flip(0).transpose(1, 2))
longer = ALiBi(num_heads=4).bias(12, 12)
assert torch.equal(longer[:, :6, :6], bias)  # no table, no longest sentence

# %%
tokens = ["The", "cat", "sees", "the", "dog", "."]
figure = panels(
    [
        Panel(values, tokens, tokens, name=f"head {head}", xlabel="key", ylabel="query")
        for head, values in enumerate(bias)
    ],
    title="What ALiBi adds to the scores: near keys lose little, and left is not right",
    per_row=2,
)
assert (bias.diagonal(dim1=1, dim2=2) == 0).all() and bias.max() == 0
assert (bias[:, -1].diff(dim=-1) > 0).all()  # seen from the full stop, nearer is better
assert bias[0, 5, 0] < bias[0, 0, 5] and bias[3, 5, 0] > bias[3, 0, 5]
figure

# %% [markdown]
# Head 0 forgets quickly what lies behind it and looks far ahead; head 3 does the opposite.
# There is nothing to learn and no table that could be too short.
#
# Why not the same slope on both sides?
# Predict: what would such a layer say to a sentence that is read backwards?


# %%
class Symmetric(ALiBi):
    """One slope for both directions."""

    def forward(self, query, keys):
        past = self.bias(query.shape[-2], keys.shape[-2]).tril()
        return query, keys, (past + past.transpose(1, 2)).to(query)


backwards, x = [5, 4, 3, 2, 1, 0], table[cat_first]
for name, relative in (("one slope", Symmetric(4)), ("two slopes", ALiBi(4))):
    torch.manual_seed(2)
    layer = MultiHeadAttention(d_model, 4, relative=relative).double()
    difference = apart(attend(x[backwards], layer), attend(x, layer)[backwards])
    print(f"{name:10} forwards and backwards: {difference:.0e} apart")
    assert difference < 1e-12 if name == "one slope" else difference > 1e-3

# %% [markdown]
# With one slope the layer cannot tell left from right: only distances are left.
# With two it can.
#
# ## Into the attention: rotary
#
# The dot product of two sinusoids knows their distance.
# **Rotary** encoding (Su et al., 2021) brings that into the scores directly.
# It does not add a hand to the word; it takes the features of each query and key two by two, and *turns* each pair by the angle of its position.


# %%
def rotate_by_hand(x):
    """Turns features 2i and 2i + 1 of row pos by pos / 10000^(2i/d_k)."""
    turned = torch.empty_like(x)
    length, d_k = x.shape
    for position in range(length):
        for pair in range(d_k // 2):
            angle = position / 10000 ** (2 * pair / d_k)
            sine, cosine = math.sin(angle), math.cos(angle)
            even, odd = x[position, 2 * pair], x[position, 2 * pair + 1]
            turned[position, 2 * pair] = even * cosine - odd * sine
            turned[position, 2 * pair + 1] = even * sine + odd * cosine
    return turned


# %% [markdown]
# Sine and cosine of these angles are the paper's table, so without loops it is short.


# %%
def rotate(x):
    """The same, all at once, on (length, d_k)."""
    hands = sinusoids(*x.shape)
    sine, cosine = hands[:, 0::2], hands[:, 1::2]  # (length, d_k / 2)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = [even * cosine - odd * sine, even * sine + odd * cosine]
    return torch.stack(turned, dim=-1).flatten(1)


# %%
from course_lib.position import Rotary

d_k = 16
generator = torch.Generator().manual_seed(0)
query, key = torch.randn(2, d_k, generator=generator).double()  # two vectors
queries, keys = query.expand(40, d_k), key.expand(40, d_k)  # the same at 40 positions
assert apart(rotate(queries), rotate_by_hand(queries)) < 1e-12
assert apart(Rotary(max_len=40, d_k=d_k).rotate(queries), rotate(queries)) < 1e-6

# %% [markdown]
# Turning keeps every length.
# And now the point: turn a query at position *m* and a key at position *n*, and take their product.
# What can it depend on?

# %%
scores = rotate(queries) @ rotate(keys).T  # (queries, keys)
assert apart(scores[1:, 1:], scores[:-1, :-1]) < 1e-9  # both one word further
print(f"key one word after: {scores[5, 6]:.2f}, one word before: {scores[5, 4]:.2f}")
assert apart(scores, scores.T) > 0.1
assert apart(rotate(queries).norm(dim=1), query.norm()) < 1e-9

# %% [markdown]
# Only on the difference *n* − *m*, sign included: the scores are not symmetric, so before and after differ.
#
# If query and key are both a row of ones, each pair gives 2 · cos of its angle: twice the dot product of two sinusoids.
# We show both cases.

# %%
ones = torch.ones(40, d_k, dtype=torch.float64)
same = rotate(ones) @ rotate(ones).T
assert apart(same, 2 * sinusoids(40, d_k) @ sinusoids(40, d_k).T) < 1e-9
look = dict(rows=range(40), columns=range(40), xlabel="key at", ylabel="query at")
figure = panels(
    [
        Panel(same / same.abs().max(), name="the same vector", **look),
        Panel(scores / scores.abs().max(), name="two different vectors", **look),
    ],
    title="Scores of rotated vectors are the same along every diagonal",
)
assert apart(same[1:, 1:], same[:-1, :-1]) < 1e-9 and apart(same, same.T) < 1e-9
figure

# %% [markdown]
# What is mixed in the end, the *values*, is not turned: the position decides who is listened to, not what is said.
# We check that with a layer whose queries are all 0, so that every score is 0 and every weight is the same.

# %%
torch.manual_seed(3)
turned = MultiHeadAttention(d_model, 2, relative=Rotary(50, d_model // 2)).double()
plain = MultiHeadAttention(d_model, 2).double()
plain.load_state_dict(turned.state_dict())
assert apart(attend(x, turned), attend(x, plain)) > 1e-3
for layer in (turned, plain):
    nn.init.zeros_(layer.query_proj.weight)
    nn.init.zeros_(layer.query_proj.bias)
assert apart(attend(x, turned), attend(x, plain)) < 1e-12

# %% [markdown]
# With equal weights the rotation leaves no trace: the values came through as they were.
#
# ## Which one is best?
#
# We have six candidates: no position, sinusoidal, learned, concatenated, ALiBi and rotary.
# Opinions are cheap; we run a race.
#
# A pronoun often refers to the noun that was named last.
# So the task is: **who was named last?**
# A story is a row of random words, some of them nouns.
# For every other word, the model must say which noun was the last one before it.

# %%
nouns = "cat dog child woman man boy girl bird".split()
others = "the a old red small sees gives sleeps loves and today .".split()
vocabulary = nouns + others


def stories(number, length, generator):
    """Ids (number, length), the noun named last at each word, and True where we ask."""
    shape = (number, length)
    is_noun = torch.rand(shape, generator=generator) < 0.25
    is_noun[:, 0] = True  # there is always an answer
    noun = torch.randint(len(nouns), shape, generator=generator)
    other = torch.randint(len(nouns), len(vocabulary), shape, generator=generator)
    ids = torch.where(is_noun, noun, other)
    where = torch.where(is_noun, torch.arange(length), 0).cummax(dim=1).values
    return ids, ids.gather(1, where), ~is_noun


# %%
ids, answers, asked = stories(1, 16, torch.Generator().manual_seed(0))
for id, answer, ask in zip(ids[0], answers[0], asked[0], strict=True):
    print(f"{vocabulary[id]:8}", f"-> {vocabulary[answer]}" if ask else "")
assert (answers[~asked] == ids[~asked]).all() and (answers < len(nouns)).all()

# %% [markdown]
# Stories of 16 words are for training.
# For the test there are stories of 16, 24 and 32 words: 1, 1.5 and 2 times the trained length.
#
# What can a model reach that does not know the order?
# Its best answer is the noun that is named most often, anywhere in the story.

# %%
trained_len = 16
generator = torch.Generator().manual_seed(100)
exams = {length: stories(500, length, generator) for length in (16, 24, 32)}


def order_blind(ids, answers, asked):
    """Accuracy of always answering the noun that is named most often in the story."""
    counts = F.one_hot(ids, len(vocabulary))[..., : len(nouns)].sum(dim=1)
    most_often = counts.argmax(dim=1)[:, None]  # (stories, 1)
    return (most_often == answers)[asked].float().mean().item()


blind = {length: order_blind(*exam) for length, exam in exams.items()}
print({length: f"{accuracy:.0%}" for length, accuracy in blind.items()})
assert 0.5 > blind[16] > blind[24] > blind[32] > 1 / len(nouns)

# %% [markdown]
# The model: embedded words, two encoder layers, and a linear layer that scores the nouns.
# Everything is the same for all candidates but the encoding.
# All tables reach twice the trained length, so that the learned one has rows for the test.
#
# We add a seventh: rotary with a base of 100 instead of 10000.
# Its hands are the same in number, but not as slow.

# %%
max_len, d_model, heads = 2 * trained_len, 64, 8
d_k = d_model // heads
encodings = {  # what changes the embedded words; what is told to the attention
    "none": lambda: (nn.Identity(), None),
    "sinusoidal": lambda: (SinusoidalPosition(max_len, d_model), None),
    "learned": lambda: (LearnedPosition(max_len, d_model), None),
    "concatenated": lambda: (ConcatenatedPosition(max_len, d_model, 16), None),
    "ALiBi": lambda: (nn.Identity(), ALiBi(heads)),
    "rotary": lambda: (nn.Identity(), Rotary(max_len, d_k)),
    "rotary, base 100": lambda: (nn.Identity(), Rotary(max_len, d_k, base=100.0)),
}


# %%
def new_reader(encoding):
    """Ids (batch, length) to scores of the nouns (batch, length, nouns)."""
    position, relative = encodings[encoding]()
    width = getattr(position, "d_token", d_model)  # concatenated: the words get less
    return nn.Sequential(
        nn.Embedding(len(vocabulary), width),
        position,
        EncoderLayer(d_model, heads, d_ff=128, dropout=0.0, relative=relative),
        EncoderLayer(d_model, heads, d_ff=128, dropout=0.0, relative=relative),
        nn.Linear(d_model, len(nouns)),
    )


# %% tags=["nbval-check-output"]
for encoding in encodings:
    print(f"{encoding:17}{size(new_reader(encoding)):7,} parameters")
    assert new_reader(encoding)(exams[32][0][:2]).shape == (2, 32, len(nouns))

# %% [markdown]
# Training shows every candidate the same stories, with the same seeds.


# %%
def train(encoding, seed, steps=450):
    torch.manual_seed(seed)
    reader = new_reader(encoding).to(device)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3, fused=True)
    for _ in range(steps):
        ids, answers, asked = stories(32, trained_len, generator)
        logits = reader(ids.to(device))[asked.to(device)]  # (asked words, nouns)
        loss = F.cross_entropy(logits, answers[asked].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return reader.eval()


# %%
@torch.no_grad()
def right_answers(reader, length):
    """(stories, length): 1 where right, 0 where wrong, NaN where we do not ask."""
    ids, answers, asked = exams[length]
    right = (reader(ids.to(device)).argmax(dim=-1).cpu() == answers).float()
    return right.masked_fill(~asked, math.nan)


# %% [markdown]
# Before you run it, write down your bets.
# Which candidates solve the task at 16 words?
# Which of them still solve it at 32?
#
# Each is trained with three seeds, or with eight on a GPU: most of this lesson's running time.

# %%
torch.set_num_threads(1)  # small tensors: two threads would wait for each other
seeds = range(8 if device == "cuda" else 3)
accuracy = {encoding: [] for encoding in encodings}  # (seeds, lengths)
by_position = {encoding: [] for encoding in encodings}  # (seeds, positions)
with tqdm(total=len(encodings) * len(seeds), mininterval=1.0) as progress:
    for encoding in encodings:
        progress.set_description(encoding)
        for seed in seeds:
            reader = train(encoding, seed)
            right = [right_answers(reader, length) for length in exams]
            accuracy[encoding].append([each.nanmean().item() for each in right])
            by_position[encoding].append(right[-1].nanmean(dim=0))
            progress.update()
accuracy = {encoding: torch.tensor(runs) for encoding, runs in accuracy.items()}
assert all(runs.shape == (len(seeds), 3) for runs in accuracy.values())

# %% [markdown]
# ### The result
#
# The mean over the seeds, and in parentheses the worst and the best run.

# %%
print(f"{'words in a story:':17}", *(f"{length:12}{'':8}" for length in exams))
for encoding, runs in accuracy.items():
    row = f"{encoding:17}"
    for mean, low, high in zip(runs.mean(0), runs.amin(0), runs.amax(0), strict=True):
        row += f"{mean:7.0%} ({low:4.0%} to {high:4.0%})"
    print(row)
print("best blind guess ", *(f"{share:6.0%}{'':14}" for share in blind.values()))
short = {encoding: runs[:, 0] for encoding, runs in accuracy.items()}  # (seeds,)
assert short["none"].max() < blind[16]
assert all(runs.min() > 0.65 for encoding, runs in short.items() if encoding != "none")

# %% [markdown]
# At the trained length every encoding beats the blind guess by far, and without one no run is better than that guess.
# At twice the length they come apart.

# %%
lengths = list(exams)
drawn = {name: runs for name, runs in accuracy.items() if name != "rotary, base 100"}
figure = curves(
    {name: (lengths, runs) for name, runs in drawn.items()}
    | {"best blind guess": (lengths, list(blind.values()))},
    xlabel="words in a story (trained on 16)",
    ylabel="right answers (share)",
    title="Encodings that work at 16 words come apart at 32",
)
long = {encoding: runs[:, 2] for encoding, runs in accuracy.items()}  # (seeds,)
tables = [long[name].max() for name in ("sinusoidal", "learned", "concatenated")]
assert max(tables) < long["ALiBi"].min() - 0.05 < long["rotary"].min() - 0.1
figure

# %% [markdown]
# The band is from the worst run to the best.
#
# Where in a story of 32 words do they fail?
# We average over four neighboring words, and draw four of the candidates.

# %%
groups = {  # (seeds, 8): each four neighboring words of 32
    encoding: torch.stack(runs).unflatten(1, (8, 4)).nanmean(dim=2)
    for encoding, runs in by_position.items()
}
beyond = {encoding: runs[:, 4:].mean(dim=1) for encoding, runs in groups.items()}
assert all(runs.shape == (len(seeds), 8) for runs in groups.values())

# %%
drawn = ["rotary", "ALiBi", "rotary, base 100", "sinusoidal"]
figure = curves(
    {name: (torch.arange(8) * 4 + 1.5, groups[name]) for name in drawn},
    xlabel="position of the word in a story of 32 words",
    ylabel="right answers (share)",
    title="Beyond word 16 the sinusoids are lost, and rotary depends on its base",
    marks={"trained up to here": (15.5, None)},
)
tables = [beyond[name].max() for name in ("sinusoidal", "learned", "concatenated")]
assert max(tables) < 0.55 < beyond["ALiBi"].min() and beyond["rotary"].min() > 0.85
figure

# %% [markdown]
# All three tables fail beyond word 16.
# The learned one has rows there that no story has taught; the sinusoids have rows that no story has shown.
#
# **A common mistake**: "sinusoids let the model extrapolate to longer sentences."
# Section 3.5 says that they *may*.
# How good are they here, beyond word 16?

# %%
lost = {encoding: short[encoding] - beyond[encoding] for encoding in encodings}
for name in ("sinusoidal", "learned", "ALiBi", "rotary"):
    here, share = short[name].mean(), beyond[name].mean()
    print(f"{name:11}{here:4.0%} at 16 words, {share:4.0%} beyond word 16 of 32")
assert max(beyond["sinusoidal"].max(), beyond["learned"].max()) < blind[32] + 0.05
assert min(lost["sinusoidal"].min(), lost["learned"].min()) > 0.35
assert lost["ALiBi"].max() < 0.3 and lost["rotary"].max() < 0.1
assert short["ALiBi"].max() < short["rotary"].min()

# %% [markdown]
# No run with the sinusoidal or the learned table is clearly better there than the guess that knows no order.
# ALiBi knows less at 16 words than rotary does, and loses some of it; rotary loses almost nothing.
#
# ### One number decides
#
# But look at rotary with a base of 100.
# It solves the task at 16 words, and fails at 32.
# Only its wavelengths are different:

# %%
between = {}
for name, width, base in (
    ("rotary", d_k, 10000),
    ("base 100", d_k, 100),
    ("d_k = 16", 16, 10000),
):
    waves = [2 * math.pi * base ** (2 * pair / width) for pair in range(width // 2)]
    print(f"{name:10}", *(f"{wave:7,.0f}" for wave in waves))
    between[name] = [f"{wave:.1f}" for wave in waves if trained_len < wave < max_len]
print("between the trained and the tested length:", between)
assert between == {"rotary": [], "base 100": ["19.9"], "d_k = 16": ["19.9"]}
assert short["rotary, base 100"].min() > 0.95

# %% [markdown]
# With base 100 one hand comes round after 19.9 words.
# In training no two words were 20 apart.
# In the longer story, to this hand, a word 20 places away looks like the word itself, and one 17 places *ahead* looks like one 3 places *behind*.
#
# Which words are safe from that?
# Those with fewer than 20 words before them, and fewer than 16 after them.
# If this is the trap, they do better than all others.

# %%
safe = [word for word in range(32) if word < 20 and 31 - word < 16]
shares = groups["rotary, base 100"].mean(dim=0)  # (8,): each four neighboring words
for number, share in enumerate(shares):
    print(f"words {4 * number:2} to {4 * number + 3:2}: {share:.0%} right")
assert safe == [16, 17, 18, 19]
assert shares.argmax() == 4 and shares[4] > shares[[0, 1, 2, 3, 5, 6, 7]].max() + 0.04
assert beyond["rotary, base 100"].max() < beyond["rotary"].min() - 0.1

# %% [markdown]
# They do: words 16 to 19.
# So "rotary extrapolates" would be as wrong as "sinusoids extrapolate": it depends on wavelengths and lengths.
# Heads twice as wide have a hand of 19.9 words at base 10000 already: it stands in the last row above.
#
# One small task and one small model show what *can* happen.
# Whoever needs longer texts than the training had must measure, as we did.
#
# | encoding | where | learned | beyond the trained length, here |
# |---|---|---|---|
# | sinusoidal | added to the words (paper) | no | hardly better than a blind guess, if at all |
# | learned | added to the words | yes | hardly better than a blind guess, if at all |
# | concatenated | beside the words | no | fails |
# | ALiBi | subtracted from the scores | no | loses some |
# | rotary | turns queries and keys | no | keeps it, or fails: look at the wavelengths |
#
# The course goes on with the paper's sinusoids.

# %% [markdown]
# ## Summary
#
# Self-attention is permutation-equivariant: shuffled words get shuffled outputs, their mean does not change at all, and only a mask or an encoding brings in the order.
# The paper adds sinusoids: pairs of sine and cosine, one clock hand each, with wavelengths from 2π towards 2π · 10000 and a length of √(d_model / 2) for every position.
# The dot product of two positions depends on their distance alone, and a step of *k* words is one rotation, the same everywhere, as long as each pair shares one exponent.
# Positions can also be put beside the words, learned, subtracted from the scores (ALiBi) or turned into queries and keys (rotary), where only the difference counts.
# At the trained length all of them tell who was named last; beyond it the tables failed, ALiBi lost some, and rotary depended on its wavelengths.
#
# **Practice**: [assignment 02](assignments/release/02_position/02_position.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [03](03_attention.ipynb) opens the layer that we took as given: attention.
