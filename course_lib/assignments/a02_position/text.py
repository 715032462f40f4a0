# %% [markdown]
# # Assignment 02 · Position
#
# You write a test for what a layer knows about order, and three ways to tell it more.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [02](../../../02_position.ipynb). All that you need of ALiBi and rotary positions stands here; lesson [13](../../../13_positions_past_the_paper.ipynb) has more.
# As in the lesson a sentence is `x`, (length, d_model); scores are (batch, heads, queries, keys).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `torch.arange(..., device=scores.device)`.

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="02.shuffled" title="Write the test" minutes=12 points=3 difficulty=2
# In the lesson we found out by hand what shuffling does to attention.
# Now write the test that says it for any layer.
#
# `layer` is a function from (length, d_model) to (length, d_model), and `x` is such an input.
# `order` has the row numbers in another order, (length,), so that `x[order]` are the shuffled rows.
# Return two values, each `True` or `False`, for this input and this order.
#
# 1. Is the layer **equivariant**: do the rows of its output move along with those of its input, and does nothing else happen?
# 2. Is it **invariant**: does the whole output stay as it is?
#
# Your test gets twelve layers, in float64.
# A difference below 1e-6 is rounding: a sum in another order has other last digits.
#
# <details><summary>Hint</summary>
#
# A layer can be both, one of the two, or neither. Which layers of the lesson are what?
#
# </details>

# %% tags=["solution"]
def shuffled(layer, x, order):
    """Whether the layer is equivariant, and whether it is invariant."""
    ### BEGIN SOLUTION
    before, after = layer(x), layer(x[order])
    equivariant = torch.allclose(after, before[order], atol=1e-6)
    invariant = torch.allclose(after, before, atol=1e-6)
    return equivariant, invariant
    ### END SOLUTION


# %% tags=["check"]
check("02.shuffled", shuffled)

# %% [markdown] exercise="02.sinusoids" title="Find the mistake" minutes=10 points=2 difficulty=2
# This function stands in popular code, and has been copied many times.
# Each position gets a row of its own, and nothing crashes.
# But no rotation leads from PE(pos) to PE(pos + *k*) any more.
# Compare it with the formula of section 3.5, and repair it.
#
# $$PE_{(pos,\,2i)} = \sin\left(pos / 10000^{2i/d_{model}}\right) \qquad PE_{(pos,\,2i+1)} = \cos\left(pos / 10000^{2i/d_{model}}\right)$$
#
# The table is (max_len, d_model), float32; d_model is even.
# You may keep the loops.
#
# <details><summary>Hint</summary>
#
# For d_model = 8, write down the exponent of each of the eight dimensions: once by the formula, once by the code.
#
# </details>

# %% tags=["planted"]
def sinusoids(max_len, d_model):
    """The paper's table, (max_len, d_model)."""
    table = torch.zeros(max_len, d_model)
    for position in range(max_len):
        for i in range(0, d_model, 2):
            table[position, i] = math.sin(position / 10000 ** (2 * i / d_model))
            table[position, i + 1] = math.cos(position / 10000 ** (2 * (i + 1) / d_model))
    return table


# %% tags=["solution"]
def sinusoids(max_len, d_model):
    """The paper's table, (max_len, d_model)."""
    table = torch.zeros(max_len, d_model)
    for position in range(max_len):
        for i in range(d_model // 2):
            angle = position / 10000 ** (2 * i / d_model)
            table[position, 2 * i] = math.sin(angle)
            table[position, 2 * i + 1] = math.cos(angle)
    return table


# %% tags=["check"]
check("02.sinusoids", sinusoids)

# %% [markdown] exercise="02.alibi" title="From four loops to tensors" minutes=12 points=3 difficulty=2
# ALiBi adds nothing to the embeddings: it takes from each score the distance between query and key, times the slope of the head.
# A decoder that writes word by word asks with its newest words alone, while all words so far are keys.
# So the queries are the **last** of the keys' positions: with 7 keys and 3 queries they stand at 4, 5 and 6.
# There are at most as many queries as keys.
#
# This is the specification.
# It is right, and slow.
# Scores of keys *after* the query stay as they are: a decoder's causal mask hides them.

# %% tags=["specification"]
def slow_alibi(scores):
    """Scores (batch, heads, queries, keys) with ALiBi's bias, in the same shape."""
    batch, heads, queries, keys = scores.shape
    biased = scores.clone()
    for head in range(heads):
        slope = 2 ** (-8 * (head + 1) / heads)
        for query in range(queries):
            position = keys - queries + query
            for key in range(position + 1):
                for sentence in range(batch):
                    biased[sentence, head, query, key] -= slope * (position - key)
    return biased


# %% [markdown]
# Write the same without a loop.
#
# <details><summary>Hint</summary>
#
# First make one matrix (queries, keys) of distances, and decide what is to stand in it where the key comes after the query.
# Then each head needs its slope in a dimension of its own.
#
# </details>

# %% tags=["solution"]
def alibi(scores):
    """Scores (batch, heads, queries, keys) with ALiBi's bias, in the same shape."""
    ### BEGIN SOLUTION
    _, heads, queries, keys = scores.shape
    key = torch.arange(keys, device=scores.device)
    distance = (key[keys - queries :, None] - key).clamp(min=0)  # (queries, keys)
    head = torch.arange(1, heads + 1, device=scores.device, dtype=scores.dtype)
    slope = 2 ** (-8 * head / heads)  # (heads,)
    return scores - slope[:, None, None] * distance
    ### END SOLUTION


# %% tags=["check"]
check("02.alibi", alibi)

# %% [markdown] exercise="02.rotary" title="Rotary, wherever a sentence begins" minutes=14 points=3 difficulty=3
# Rotary positions are not added either: each pair of features of a query or key is turned like the hand of a clock, by an angle that grows with the position.
# Each token of a batch brings its own position: its sentence may continue a text that was read before, or leave places out.
#
# `x` is (batch, heads, length, d_k) with an even d_k, `position` is (batch, length), whole numbers in any order.
# `frequency` is (d_k / 2,), the angle by which each pair turns in one word: $10000^{-2i/d_k}$.
# For a token at position $p$, features $2i$ and $2i+1$ are turned by the angle $\alpha = p \cdot \text{frequency}_i$:
#
# $$x'_{2i} = x_{2i} \cos\alpha - x_{2i+1} \sin\alpha \qquad x'_{2i+1} = x_{2i} \sin\alpha + x_{2i+1} \cos\alpha$$
#
# Return the turned features in the shape of `x`, without a loop.
#
# <details><summary>Hint</summary>
#
# The angles are (batch, length, d_k / 2). Which dimension is missing, so that they meet (batch, heads, length, d_k / 2)?
# And at the end: `stack` and `cat` are not the same.
#
# </details>

# %% tags=["solution"]
def rotate(x, position, frequency):
    """x (batch, heads, length, d_k) with each pair of features turned by its position."""
    ### BEGIN SOLUTION
    angle = position[:, None, :, None] * frequency  # (batch, 1, length, d_k / 2)
    even, odd = x[..., 0::2], x[..., 1::2]  # (batch, heads, length, d_k / 2)
    turned = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return torch.stack(turned, dim=-1).flatten(-2)
    ### END SOLUTION


# %% tags=["check"]
check("02.rotary", rotate)

# %% [markdown] exercise="02.facts" title="Predict, then check" minutes=10 points=2 difficulty=2
# Seven questions; answer them on paper, without running anything.
# In 1 to 4, PE is the paper's table with d_model = 200.
#
# 1. What is the sum of the 200 numbers of PE(0)?
# 2. What is the length of the vector PE(37)?
# 3. Pairs are counted from 0. The wavelength of pair 50 is how many times 2π?
# 4. How much larger is the dot product PE(3)·PE(10) than PE(103)·PE(110)?
# 5. The words of a sentence are shuffled. No positions are added. Does the mean over the outputs of a self-attention layer stay the same (`True` or `False`)?
# 6. The same question, for self-attention with a causal mask.
# 7. Rotary, queries and keys turned as above: a query at position 5 and a key at position 1 have some score. Now the same query stands at 105. At which position does the same key get the same score, whatever the two vectors are?

# %% tags=["planted"]
prediction = {
    "sum of PE(0)": None,
    "length of PE(37)": None,
    "wavelength of pair 50 / 2π": None,
    "PE(3)·PE(10) - PE(103)·PE(110)": None,
    "mean stays, plain attention": None,
    "mean stays, causal mask": None,
    "rotary: the key at": None,
}

# %% tags=["solution"]
prediction = {
    "sum of PE(0)": 100,
    "length of PE(37)": 10,
    "wavelength of pair 50 / 2π": 100,
    "PE(3)·PE(10) - PE(103)·PE(110)": 0,
    "mean stays, plain attention": True,
    "mean stays, causal mask": False,
    "rotary: the key at": 101,
}

# %% tags=["check"]
check("02.facts", prediction)

# %% [markdown] exercise="02.longer" title="In your own words" minutes=6 points=2 difficulty=2
# A translator with the paper's sinusoids was trained on sentences of up to 20 tokens.
# "The formula gives a row for every position", says a colleague, "so it will translate sentences of 40 tokens just as well. With rotary positions it would in any case."
# What is right about that, what is not, and how would you find out? Four or five sentences.

# %% [markdown] tags=["answer"]
# It is right that the table has a row for each position, so the model runs on 40 tokens without an error.
# But training has shown no row beyond 20, and nothing says what the learned matrices make of those rows.
# The paper says that sinusoids *may* allow longer sentences; in lesson 02, accuracy beyond the trained length was hardly better than without positions.
# With rotary positions, distances beyond 20 are as new: slow pairs meet angles between query and key that they never met in training. (Lesson 13 measures what comes of it.)
# I would score sentences of 20, 30 and 40 tokens separately.
#
# === BEGIN MARK SCHEME ===
# 1 point: a row exists, but it was never trained with ("may" in the paper; measured, it fails); with rotary, distances beyond the trained ones are as new, or: "in any case" was never measured.
# 1 point: a measurement that separates lengths or positions beyond the trained length.
# === END MARK SCHEME ===
