# %% [markdown]
# # Assignment 04 · Multi-head attention
#
# You take tensors apart into heads, put them together again, and say what each head adds and what it costs.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [04](../../../04_multi_head.ipynb).
# Names and shapes are the lesson's: a token has d_model features, each of `num_heads` heads is d_k = d_model / num_heads wide, and all heads together are (batch, heads, length, d_k).
# A batch has one sentence or several, and there may be more or fewer keys than queries.
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `query.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="04.unpack" title="From a loop to heads" minutes=9 points=3 difficulty=1
# Query, key and value of self-attention come from the same tokens.
# So popular code puts W_Q, W_K and W_V side by side and makes all three with one product.
# What comes out is `packed`, (batch, length, 3 · d_model): first the d_model features of the query, then those of the key, then those of the value.
# Within each, head 0 has the first d_k features, head 1 the next d_k, and so on.
#
# This is the specification, one slice at a time.

# %% tags=["specification"]
def slow_unpack(packed, num_heads):
    """Query, key and value, each (batch, heads, length, d_k), from (batch, length, 3 * d_model)."""
    d_model = packed.size(-1) // 3
    d_k = d_model // num_heads
    parts = []
    for part in range(3):
        heads = []
        for head in range(num_heads):
            start = part * d_model + head * d_k
            heads.append(packed[:, :, start : start + d_k])  # (batch, length, d_k)
        parts.append(torch.stack(heads, dim=1))
    return tuple(parts)


# %% [markdown]
# Write the same without a loop over the heads.
# Return a tuple of three tensors.
#
# <details><summary>Hint</summary>
#
# `unflatten` cuts one axis into several, the largest pieces first; it moves nothing.
# Moving an axis is a second step.
#
# </details>

# %% tags=["solution"]
def unpack(packed, num_heads):
    """Query, key and value, each (batch, heads, length, d_k), from (batch, length, 3 * d_model)."""
    ### BEGIN SOLUTION
    parts = packed.unflatten(-1, (3, num_heads, -1))  # (batch, length, 3, heads, d_k)
    query, key, value = parts.unbind(2)  # (batch, length, heads, d_k) each
    return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    ### END SOLUTION


# %% tags=["check"]
check("04.unpack", unpack)

# %% [markdown] exercise="04.sizes" title="Predict, then check" minutes=8 points=3 difficulty=1
# The lesson's `MultiHeadAttention(64, 4)`: d_model is 64, there are 4 heads, and all four projections have biases.
# The query is (2, 5, 64), key and value are (2, 7, 64).
# Predict on paper, without building it; write a shape as a tuple.
#
# 1. The width d_k of a head.
# 2. The shape of the weights.
# 3. The shape of the contexts before the heads are merged.
# 4. The shape of the output.
# 5. The number of parameters. (Find a formula in d_model first.)
# 6. The same for `MultiHeadAttention(64, 8)`.
# 7. The number of its attention weights, for the same query and key.
# 8. A tensor of shape (1, 4, 8) has four positions, and each feature of a position is its number: 0, 1, 2 or 3.
#    Somebody splits it into two heads with `x.view(1, 2, 4, 4)`. Which of these numbers are in head 1? Write a list in rising order.

# %% tags=["planted"]
prediction = {
    "d_k": None,
    "shape of the weights": None,
    "shape of the contexts before the merge": None,
    "shape of the output": None,
    "parameters": None,
    "parameters with 8 heads": None,
    "numbers in the weights with 8 heads": None,
    "positions in head 1 after the view": None,
}

# %% tags=["solution"]
prediction = {
    "d_k": 16,
    "shape of the weights": (2, 4, 5, 7),
    "shape of the contexts before the merge": (2, 4, 5, 16),
    "shape of the output": (2, 5, 64),
    "parameters": 4 * (64 * 64 + 64),
    "parameters with 8 heads": 4 * (64 * 64 + 64),
    "numbers in the weights with 8 heads": 2 * 8 * 5 * 7,
    "positions in head 1 after the view": [2, 3],
}

# %% tags=["check"]
check("04.sizes", prediction)

# %% [markdown] exercise="04.contexts" title="Find the mistake" minutes=9 points=2 difficulty=2
# A mistake like this one has stood in popular code.
# The function gets query, key and value *after* their projections: (batch, queries, d_model) and twice (batch, keys, d_model).
# It returns the contexts of all heads side by side, (batch, queries, d_model); W_O would come next.
# The shape is right and the weights of every query sum to 1, but the numbers are not those of a loop over the heads.
# Find the mistake, and repair it.
#
# <details><summary>Hint</summary>
#
# Take random queries and keys with variance 1 and look at the variance of the scores, for 1 head and for 16.
# What should it be?
#
# </details>

# %% tags=["planted"]
def contexts(query, key, value, num_heads):
    """Contexts of all heads side by side, (batch, queries, d_model)."""
    scale = math.sqrt(query.size(-1))
    query, key, value = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (query, key, value))
    weights = torch.softmax(query @ key.transpose(2, 3) / scale, dim=-1)  # (batch, heads, queries, keys)
    return (weights @ value).transpose(1, 2).flatten(2)


# %% tags=["solution"]
def contexts(query, key, value, num_heads):
    """Contexts of all heads side by side, (batch, queries, d_model)."""
    query, key, value = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (query, key, value))
    scale = math.sqrt(query.size(-1))  # after the split: √d_k, not √d_model
    weights = torch.softmax(query @ key.transpose(2, 3) / scale, dim=-1)  # (batch, heads, queries, keys)
    return (weights @ value).transpose(1, 2).flatten(2)


# %% tags=["check"]
check("04.contexts", contexts)

# %% [markdown] exercise="04.contributions" title="What each head adds" minutes=10 points=3 difficulty=2
# W_O mixes the heads, so which head said what?
# The lesson showed that the output is a sum with one term for each head, plus the bias.
# Here is a slow way to get the terms: silence all heads but one, and see what comes out.
# (Lesson [12](../../../12_reading_attention.ipynb) switches off heads of a trained model.)

# %% tags=["specification"]
def slow_contributions(context, to_output):
    """Contexts (batch, heads, queries, d_k) to what each head adds, (batch, heads, queries, d_model)."""
    num_heads, added = context.size(1), []
    for head in range(num_heads):
        alone = torch.zeros_like(context)
        alone[:, head] = context[:, head]
        concatenated = torch.cat([alone[:, other] for other in range(num_heads)], dim=-1)
        added.append(concatenated @ to_output)  # (batch, queries, d_model)
    return torch.stack(added, dim=1)


# %% [markdown]
# Write the same without a loop, and without multiplying zeros.
# `to_output` is W_O as the paper writes it, (heads · d_k, d_model), and stands on the right of the product.
# d_model may be any number here, not only heads · d_k.
#
# <details><summary>Hint</summary>
#
# Which rows of W_O does head 0 meet?
# And `@` takes every axis but the last two as a batch, also of W_O.
#
# </details>

# %% tags=["solution"]
def contributions(context, to_output):
    """Contexts (batch, heads, queries, d_k) to what each head adds, (batch, heads, queries, d_model)."""
    ### BEGIN SOLUTION
    slices = to_output.unflatten(0, (context.size(1), -1))  # (heads, d_k, d_model)
    return context @ slices  # (batch, heads, queries, d_model)
    ### END SOLUTION


# %% tags=["check"]
check("04.contributions", contributions)

# %% [markdown] exercise="04.multi_head" title="All heads, from the formula" minutes=14 points=4 difficulty=3
# Section 3.2.2 of the paper gives each head its own narrow matrices:
#
# $$\text{head}_i = \text{Attention}(Q W_i^Q,\; K W_i^K,\; V W_i^V)$$
#
# $$\text{MultiHead}(Q, K, V) = \text{Concat}(\text{head}_1, \ldots, \text{head}_h)\, W^O$$
#
# Write it down as it stands, but for all heads at once, without a loop.
# The matrices come stacked, and there are no biases:
#
# | name | shape |
# |---|---|
# | `query` | (batch, queries, d_model) |
# | `key`, `value` | (batch, keys, d_model) |
# | `to_query`, `to_key` | (heads, d_model, d_k) |
# | `to_value` | (heads, d_model, d_v) |
# | `to_output` | (heads · d_v, d_model) |
#
# The paper's formula leaves d_k and d_v free, so d_k, d_v and d_model / heads may all differ here.
# Return the output (batch, queries, d_model).
# `torch.softmax` is allowed, a finished attention is not.
#
# <details><summary>Hint 1</summary>
#
# Here no axis has to be cut into heads: the matrices already have one.
# What does `query` need, so that it meets each of them?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Write the shape behind every line.
# Before Concat, where does the axis of the heads stand, and where must it stand?
#
# </details>

# %% tags=["solution"]
def multi_head(query, key, value, to_query, to_key, to_value, to_output):
    """Output (batch, queries, d_model) of all heads."""
    ### BEGIN SOLUTION
    queries = query.unsqueeze(1) @ to_query  # (batch, heads, queries, d_k)
    keys = key.unsqueeze(1) @ to_key  # (batch, heads, keys, d_k)
    values = value.unsqueeze(1) @ to_value  # (batch, heads, keys, d_v)
    scores = queries @ keys.transpose(2, 3) / math.sqrt(keys.size(-1))  # (batch, heads, queries, keys)
    context = torch.softmax(scores, dim=-1) @ values  # (batch, heads, queries, d_v)
    return context.transpose(1, 2).flatten(2) @ to_output  # (batch, queries, d_model)
    ### END SOLUTION


# %% tags=["check"]
check("04.multi_head", multi_head)

# %% [markdown] exercise="04.cost" title="In your own words" minutes=7 points=3 difficulty=2
# A layer has d_model = 512 and 8 heads.
# One colleague wants 16 heads "for twice the power"; another one objects that 16 heads need twice the memory for parameters.
# What do both get wrong?
# Say what stays the same, what grows, what a head can do less well, and what several heads can do that one cannot. Four or five sentences.

# %% [markdown] tags=["answer"]
# d_model is divided among the heads: 16 heads are 32 wide instead of 64, so all projections stay 512 × 512 and the parameters stay the same.
# The multiplications stay the same too, because heads × d_k stays 512.
# What grows is the number of attention weights, 16 matrices instead of 8, and that of exponentials.
# Several heads give a token several means at once, and W_O gets them side by side; one head gives one mean, from which two independent things cannot be recovered.
# But each head compares queries and keys in fewer dimensions, so heads that are too narrow aim badly, and more heads are not better without end.
#
# === BEGIN MARK SCHEME ===
# 1 point: parameters (or multiplications) stay the same, because d_k is halved; the number of attention weights doubles.
# 1 point: several heads carry several means side by side, one head only one.
# 1 point: narrower heads compare less well, so twice the heads are not twice the power.
# === END MARK SCHEME ===
