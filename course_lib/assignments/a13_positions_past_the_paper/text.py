# %% [markdown]
# # Assignment 13 · Positions past the paper
#
# You write vectors for offsets and the frequencies of YaRN, keep a cache of rotary keys within bounds, and repair a script that converts checkpoints.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [13](../../../13_positions_past_the_paper.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `torch.arange(..., device=x.device)`.

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="13.vectors" title="A vector for each offset" minutes=12 points=3 difficulty=2
# The lesson's relative bias does not look at the words.
# Shaw and others, who were first, learn a *vector* for each offset and add it to the key.
# So a query can say for itself which offsets it is looking for.
#
# `query` is (batch, heads, queries, d_k), `key` is (batch, heads, keys, d_k), and the queries stand at the **last** of the keys' positions.
# `table` is (2 · farthest + 1, d_k), one row for each offset from −farthest to farthest, the same for all heads.
# This is the specification.

# %% tags=["specification"]
def slow_scores(query, key, table):
    """Scores (batch, heads, queries, keys) of queries with keys and with the vectors of their offsets."""
    queries, keys, farthest = query.size(2), key.size(2), len(table) // 2
    scores = query.new_zeros(*query.shape[:3], keys)
    for row in range(queries):
        for column in range(keys):
            offset = column - (keys - queries + row)
            vector = table[max(-farthest, min(farthest, offset)) + farthest]  # (d_k,)
            summed = key[:, :, column] + vector  # (batch, heads, d_k)
            scores[:, :, row, column] = (query[:, :, row] * summed).sum(dim=-1) / math.sqrt(query.size(3))
    return scores


# %% [markdown]
# Write the same without a loop.
#
# <details><summary>Hint</summary>
#
# Which row of the table belongs to which place of a matrix (queries, keys)?
# A product with a sum is a sum of products: the keys have theirs, and the vectors have theirs.
#
# </details>

# %% tags=["solution"]
def scores_with_offsets(query, key, table):
    """Scores (batch, heads, queries, keys) of queries with keys and with the vectors of their offsets."""
    ### BEGIN SOLUTION
    queries, keys, farthest = query.size(2), key.size(2), len(table) // 2
    place = torch.arange(keys, device=query.device)
    offset = place - place[keys - queries :, None]  # (queries, keys)
    vectors = table[offset.clamp(-farthest, farthest) + farthest]  # (queries, keys, d_k)
    with_vectors = torch.einsum("bhqd,qkd->bhqk", query, vectors)
    return (query @ key.mT + with_vectors) / math.sqrt(query.size(3))
    ### END SOLUTION


# %% tags=["check"]
check("13.vectors", scores_with_offsets)

# %% [markdown] exercise="13.convert" title="Find the mistakes" minutes=8 points=2 difficulty=2
# A checkpoint was trained with rotary positions that pair features 0 and 1, 2 and 3, and so on, in each head.
# The program that is to run it pairs feature *i* of a head with feature *i* + d_k/2.
# The lesson reordered the features of one head: first the even ones, then the odd ones.
#
# This function converts W_Q or W_K of a whole layer, which is a `Linear` with a bias.
# `weight` is (num_heads · d_k, d_model), one row for each feature that comes out; `bias` is (num_heads · d_k).
# It was tested on a model with one head whose biases were all 0, where the scores did not change.
# On other models they do.
# There are two mistakes; repair them.
#
# <details><summary>Hint</summary>
#
# Take two heads of four features and write down where row 4 goes, and where it should go.
#
# </details>

# %% tags=["planted"]
def in_halves(weight, bias, num_heads):
    """The same weight and bias for the other layout of rotary positions."""
    row = torch.arange(len(weight), device=weight.device)
    order = torch.cat([row[0::2], row[1::2]])
    return weight[order], bias


# %% tags=["solution"]
def in_halves(weight, bias, num_heads):
    """The same weight and bias for the other layout of rotary positions."""
    row = torch.arange(len(weight), device=weight.device).view(num_heads, -1)  # (heads, d_k)
    order = torch.cat([row[:, 0::2], row[:, 1::2]], dim=1).flatten()
    return weight[order], bias[order]


# %% tags=["check"]
check("13.convert", in_halves)

# %% [markdown] exercise="13.endless" title="A text without end" minutes=14 points=3 difficulty=3
# A chat runs longer than any text of the training.
# So the cache of keys gets a bound: when it has more than `room` keys, it keeps the first `sinks` of them, which many heads use as attention sinks (lesson 12), and the newest ones, `room` in all.
# The kept keys close up: they stand at positions 0, 1, 2, … again, so that no offset is larger than in training.
#
# But the cache holds keys that are already turned.
# `keys` is (batch, heads, length, d_k); the keys were turned at positions 0 to length − 1, and `frequency` (d_k / 2,) is the angle of each pair for one position.
# Here is the specification, which turns each key back first.

# %%
def turned(x, angle):
    """x (..., d_k) with features 2i and 2i + 1 turned by angle (..., d_k / 2)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return torch.stack(pairs, dim=-1).flatten(-2)


# %% tags=["specification"]
def slow_bounded(keys, sinks, room, frequency):
    """At most `room` keys, (batch, heads, length or room, d_k), turned for positions from 0 on."""
    length = keys.size(2)
    places = list(range(length))
    if length > room:
        places = places[:sinks] + places[length - (room - sinks) :]
    kept = []
    for position, place in enumerate(places):
        unturned = turned(keys[:, :, place], -place * frequency)
        kept.append(turned(unturned, position * frequency))
    return torch.stack(kept, dim=2)


# %% [markdown]
# Write the same without a loop; `turned` may be used.
# No key need be turned twice.
# `sinks` may be 0, and is smaller than `room`.
#
# <details><summary>Hint</summary>
#
# A turn by −37 positions and a turn by 5 are one turn, and by how much?
# It is the same for all keys but the first ones.
#
# </details>

# %% tags=["solution"]
def bounded(keys, sinks, room, frequency):
    """At most `room` keys, (batch, heads, length or room, d_k), turned for positions from 0 on."""
    ### BEGIN SOLUTION
    dropped = max(0, keys.size(2) - room)
    first, newest = keys[:, :, :sinks], keys[:, :, sinks + dropped :]
    return torch.cat([first, turned(newest, -dropped * frequency)], dim=2)
    ### END SOLUTION


# %% tags=["check"]
check("13.endless", bounded)

# %% [markdown] exercise="13.yarn" title="YaRN's frequencies" minutes=10 points=3 difficulty=2
# The lesson stretched the slow pairs by a factor and left the fast ones alone, with a sharp border.
# YaRN has a ramp there.
# Let $r_i$ be how many turns pair $i$ makes within the trained length; $r_i$ need not be whole.
#
# - Pairs with at least `fast` turns keep their frequency.
# - Pairs with at most `slow` turns get their frequency divided by `factor`.
# - Between them, the new frequency is a mix of both: the share of the old one grows linearly with $r_i$, from 0 at `slow` to 1 at `fast`.
#
# `frequency` (d_k / 2,) has the angles of all pairs for one position, in radians; `trained`, `factor`, `slow` and `fast` are numbers.
# Return the new frequencies (YaRN also scales the scores; leave that out).
#
# <details><summary>Hint</summary>
#
# A whole turn is 2π. `clamp` makes both ends of the ramp.
#
# </details>

# %% tags=["solution"]
def yarn(frequency, trained, factor, slow, fast):
    """The frequencies (d_k / 2,) for texts `factor` times as long as the trained length."""
    ### BEGIN SOLUTION
    turns = trained * frequency / (2 * math.pi)
    share = ((turns - slow) / (fast - slow)).clamp(0, 1)  # of the old frequency
    return share * frequency + (1 - share) * frequency / factor
    ### END SOLUTION


# %% tags=["check"]
check("13.yarn", yarn)

# %% [markdown] exercise="13.predict" title="Predict, then check" minutes=8 points=2 difficulty=2
# Seven numbers to predict on paper.
#
# In 1 to 3, heads have one pair of features.
# It is turned by a quarter of a whole turn for each position, and query and key are both (1, 0) before that.
# Scores are not divided by $\sqrt{d_k}$.
#
# 1. The query stands at position 9, the key at 7. What is the score?
# 2. The query stands at 9, the key at 5. What is it now?
# 3. Position interpolation with the factor 2; query at 9, key at 7. What is it now?
# 4. ALiBi with 8 heads: what is the slope of the second one?
# 5. A head of ALiBi has the slope ln 2. Two keys, 2 and 6 positions before the query, have the same score without the bias. How many times the weight of the far one does the near one get?
# 6. A relative bias has 12 heads and gives offsets of up to 20 words, to either side, a number of their own. How many numbers does it learn?
# 7. It is trained on texts of 16 words. How many numbers of each head stay as they were at the start?

# %% tags=["planted"]
prediction = {
    "score, 9 and 7": None,
    "score, 9 and 5": None,
    "score, interpolated": None,
    "slope of the second head": None,
    "near weight / far weight": None,
    "learned numbers": None,
    "numbers that never change": None,
}

# %% tags=["solution"]
prediction = {
    "score, 9 and 7": -1,
    "score, 9 and 5": 1,
    "score, interpolated": 0,
    "slope of the second head": 0.25,
    "near weight / far weight": 16,
    "learned numbers": 492,
    "numbers that never change": 10,
}

# %% tags=["check"]
check("13.predict", prediction)

# %% [markdown] exercise="13.longer" title="In your own words" minutes=8 points=2 difficulty=2
# A team stretches the rotary positions of a causal language model from 4,096 to 16,384 tokens by position interpolation, and continues its training a little.
# Then it reports: "On documents of 16,384 tokens the mean loss per token is lower than on documents of 4,096 tokens. So the model uses the long context."
# Why does this number not show it?
# Which measurement would, with which control?
# And what should the team measure besides?
# Four or five sentences.

# %% [markdown] tags=["answer"]
# The two losses are of different texts: long documents may be easier, and in them a smaller share of the tokens stands at the beginning, where any model has little context and a high loss.
# So the mean falls even if no token ever uses what is more than 4,096 tokens back.
# I would take the tokens after the 4,096th of the long documents and compute their loss twice: with everything before them, and as a control with the last 4,096 tokens only.
# If the far context is used, the first loss is lower on the same tokens; a question whose answer stands only far back would show it too, position by position.
# Besides, the loss on short texts before and after: interpolation brings near positions closer together, and in the lesson short stories paid for it.
#
# === BEGIN MARK SCHEME ===
# 1 point: other documents and other shares of early tokens are compared; the same tokens must be compared with and without the far context (a window or mask as control, or an answer that stands only far back).
# 1 point: short texts before and after stretching, because interpolation costs resolution there.
# Half of a point for half of it.
# === END MARK SCHEME ===
