# %% [markdown]
# # Assignment 03 · Attention
#
# You write attention once more, this time without a look at the lesson's code.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [03](../../../03_attention.ipynb).
# Names and shapes are the lesson's: `query` is (batch, queries, d_k), `key` is (batch, keys, d_k), `value` is (batch, keys, d_v).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `query.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="03.scores" title="From three loops to one product" minutes=8 points=2 difficulty=1
# This is the specification.
# It is right, and slow: it takes one dot product at a time.

# %% tags=["specification"]
def slow_scores(query, key):
    """Scaled scores (batch, queries, keys) of every query with every key."""
    scores = query.new_zeros(query.size(0), query.size(1), key.size(1))
    for sentence in range(query.size(0)):
        for row in range(query.size(1)):
            for column in range(key.size(1)):
                product = (query[sentence, row] * key[sentence, column]).sum()
                scores[sentence, row, column] = product / math.sqrt(query.size(-1))
    return scores


# %% [markdown]
# Write the same without a loop.
#
# <details><summary>Hint</summary>
#
# A product of matrices takes all dot products of rows with columns; the keys are rows, so they have to be turned.
#
# </details>

# %% tags=["solution"]
def scores(query, key):
    """Scaled scores (batch, queries, keys) of every query with every key."""
    ### BEGIN SOLUTION
    return query @ key.transpose(1, 2) / math.sqrt(query.size(-1))
    ### END SOLUTION


# %% tags=["check"]
check("03.scores", scores)

# %% [markdown] exercise="03.softmax" title="Weights from scores" minutes=10 points=3 difficulty=2
# The weights of a query are the exponentials of its scores, divided by their sum.
# Write that, with `exp`, `sum` and what you need besides, but without a finished softmax.
# Scores lie between −1,300 and 1,300, or are $-\infty$, which blocks a key; no weight may become NaN.
# Each query has at least one key that is not blocked.
# The scores have any number of dimensions; the last one is that of the keys.
#
# <details><summary>Hint</summary>
#
# What happens to the weights if you add the same number to all scores of a query?
#
# </details>

# %% tags=["solution"]
def softmax(scores):
    """Weights of the same shape as the scores; each row of the last dimension sums to 1."""
    ### BEGIN SOLUTION
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)
    ### END SOLUTION


# %% tags=["check"]
check("03.softmax", softmax)

# %% [markdown] exercise="03.attention" title="Find the mistake" minutes=10 points=2 difficulty=2
# This code stands in a popular explanation.
# Its authors saw nothing wrong: their example has large scores, so the softmax puts all its weight on one key anyway.
# Find the mistake, and repair it.
# The function returns the context (batch, queries, d_v) and the weights (batch, queries, keys).

# %% tags=["planted"]
def attention(query, key, value, d_k=4):
    """Context and weights of every query."""
    weights = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(d_k), dim=-1)
    return weights @ value, weights


# %% tags=["solution"]
def attention(query, key, value):
    """Context and weights of every query."""
    d_k = key.size(-1)
    weights = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(d_k), dim=-1)
    return weights @ value, weights


# %% tags=["check"]
check("03.attention", attention)

# %% [markdown] exercise="03.repeated" title="Predict, then check" minutes=6 points=2 difficulty=1
# Four situations, and in each the weight of *one* key is asked for.
# Predict them on paper, without running attention.
#
# 1. There is one key, whatever it scores.
# 2. There are four equal keys: what does one of them get?
# 3. The same key stands there twice, and a third key scores $\ln 2$ less: what does one of the two equal keys get?
# 4. The query is all zeros, and there are five keys.

# %% tags=["planted"]
prediction = {
    "one key, any score": None,
    "four equal keys": None,
    "the same key twice, and one that scores ln 2 less": None,
    "the query is zero, five keys": None,
}

# %% tags=["solution"]
prediction = {
    "one key, any score": 1.0,
    "four equal keys": 0.25,
    "the same key twice, and one that scores ln 2 less": 0.4,
    "the query is zero, five keys": 0.2,
}

# %% tags=["check"]
check("03.repeated", prediction)

# %% [markdown] exercise="03.additive" title="The attention that came before" minutes=12 points=3 difficulty=3
# Before dot products, a small network scored each pair of query and key (Bahdanau et al. 2015):
#
# $$\text{score}(q, k) = v^\top \tanh(W q + U k)$$
#
# `to_query` is $W$ (d_hidden, d_query), `to_key` is $U$ (d_hidden, d_key), `score` is $v$ (d_hidden,).
# Return the weights (batch, queries, keys), without a loop.
# Queries and keys need not have the same width here.
#
# <details><summary>Hint</summary>
#
# Each query meets each key: put a dimension of size 1 where the other one has its own, and add.
#
# </details>

# %% tags=["solution"]
def additive(query, key, to_query, to_key, score):
    """Weights (batch, queries, keys) of additive attention."""
    ### BEGIN SOLUTION
    from_query = (query @ to_query.T).unsqueeze(2)  # (batch, queries, 1, d_hidden)
    from_key = (key @ to_key.T).unsqueeze(1)  # (batch, 1, keys, d_hidden)
    return torch.softmax(torch.tanh(from_query + from_key) @ score, dim=-1)
    ### END SOLUTION


# %% tags=["check"]
check("03.additive", additive)

# %% [markdown] exercise="03.scale" title="In your own words" minutes=6 points=2 difficulty=2
# A model has $d_k = 64$; somebody forgets the division by $\sqrt{d_k}$.
# Queries and keys have independent components with mean 0 and variance 1.
# What happens to the scores, to the weights, and to the learning? Three or four sentences.

# %% [markdown] tags=["answer"]
# The variance of a score is 64 instead of 1, its standard deviation 8.
# The softmax of such scores often puts nearly all weight on the largest: many queries start saturated, on a key that chance has chosen.
# There the derivative of the softmax is near 0, so hardly any gradient reaches those queries.
# And every step of the training moves the scores 8 times as far, which saturates more of them.
#
# === BEGIN MARK SCHEME ===
# 1 point: variance d_k, or standard deviation √d_k.
# 1 point: saturation and what it does to the gradient.
# === END MARK SCHEME ===
