# %% [markdown]
# # Assignment 14 · Cost and memory
#
# You compute how long a text may be, put together what two machines have found, and write the backward pass of attention that keeps no weights.
# A quantization gives bad models without an error, and you find out why.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [14](../../../14_cost_and_memory.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `x.new_zeros(...)`.
# Take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math
from itertools import product

import torch

from course_lib.assignments import check

# %% [markdown] exercise="14.longest" title="How long may the output be?" minutes=9 points=2 difficulty=1
# A decoder translates `sentences` sentences of `src_len` tokens each, with `beam_size` hypotheses for each sentence.
# `free` bytes are left for its key-value cache.
# How many target tokens can every hypothesis have?
#
# - Each of the `num_layers` layers keeps a key and a value for each of its `kv_heads` heads, `d_k` numbers each; a number takes `bytes_per_number` bytes. (With grouped-query attention there are more heads of queries; they are not kept.)
# - Each target token of a hypothesis needs that, in self-attention.
# - Each source token needs as much again, in cross-attention. All hypotheses of a sentence share these.
#
# Return the largest whole number of target tokens that fits for each hypothesis, 0 if none fits.
#
# <details><summary>Hint</summary>
#
# How many bytes does one token take?
# Then it is a matter of who shares what.
#
# </details>

# %% tags=["solution"]
def longest(free, num_layers, kv_heads, d_k, sentences, src_len, beam_size, bytes_per_number):
    """How many target tokens of each hypothesis the cache has room for."""
    ### BEGIN SOLUTION
    token = 2 * num_layers * kv_heads * d_k * bytes_per_number
    left = free - sentences * src_len * token
    return max(0, left // (sentences * beam_size * token))
    ### END SOLUTION


# %% tags=["check"]
check("14.longest", longest)

# %% [markdown] exercise="14.merge" title="Attention on several machines" minutes=14 points=3 difficulty=3
# The keys and values of a very long text lie on several machines, a part on each.
# Each machine computes the context of all queries from *its* keys, as if there were no others, and the logarithm of the sum of its exponentials:
#
# $$\text{logsum} = \log \sum_{\text{its keys}} e^{\text{score}}$$
#
# From that the context and logsum of *all* keys can be computed, without seeing a score again.
# It is the lesson's online softmax, all parts at once.
#
# `contexts` is (parts, batch, heads, queries, d_k), `logsums` is (parts, batch, heads, queries).
# Scores may be large: a logsum of 500 is nothing unusual.
# A mask may have hidden all keys of a part from a query.
# Then its logsum there is −∞, and its context may be anything, even NaN.
# At least one part has a key for each query.
# This is the specification.

# %% tags=["specification"]
def slow_merge(contexts, logsums):
    """Context (batch, heads, queries, d_k) and logsum (batch, heads, queries) of the keys of all parts."""
    context, logsum = torch.zeros_like(contexts[0]), torch.zeros_like(logsums[0])
    for query in product(*map(range, logsum.shape)):
        parts = [part for part in range(len(contexts)) if logsums[(part, *query)] > -math.inf]
        largest = max(logsums[(part, *query)] for part in parts)
        sums = {part: (logsums[(part, *query)] - largest).exp() for part in parts}
        logsum[query] = largest + sum(sums.values()).log()
        for part in parts:
            context[query] += sums[part] / sum(sums.values()) * contexts[(part, *query)]
    return context, logsum


# %% [markdown]
# Write the same without a loop.
#
# <details><summary>Hint</summary>
#
# Each part has a weight, and the weights of all parts sum to 1: what function makes them from logsums?
# And 0 times NaN is NaN.
#
# </details>

# %% tags=["solution"]
def merge(contexts, logsums):
    """Context (batch, heads, queries, d_k) and logsum (batch, heads, queries) of the keys of all parts."""
    ### BEGIN SOLUTION
    weights = logsums.softmax(dim=0)[..., None]  # (parts, batch, heads, queries, 1)
    seen = contexts.masked_fill(weights == 0, 0)
    return (weights * seen).sum(dim=0), logsums.logsumexp(dim=0)
    ### END SOLUTION


# %% tags=["check"]
check("14.merge", merge)

# %% [markdown] exercise="14.way_back" title="The way back without stored weights" minutes=16 points=4 difficulty=3
# A fused kernel keeps no attention weights.
# In the backward pass it goes through the keys in blocks once more, and computes the weights of each block again.
# Write what it does for *one* block, without autograd.
#
# `query`, `context` and `grad` are (batch, heads, queries, d_k): the queries, the contexts of the forward pass, and the gradient of the loss with respect to them.
# `logsum` is (batch, heads, queries): the logarithm of the sum of exp(score), score = query · key / √d_k.
# Contexts and logsums are those of **all** keys.
# `key` and `value` are (batch, heads, keys, d_k), the keys and values of this block **only**.
#
# Return three tensors: what this block adds to the gradient of the queries, the gradient of its keys, and the gradient of its values.
# There is no mask.
#
# You need the gradient of a softmax.
# For a row of weights $p$, with the gradient $g$ of the loss with respect to them, the gradient with respect to the scores is
#
# $$p_j \, \big(g_j - \sum_i p_i \, g_i\big)$$
#
# where the sum is over *all* keys, and most of them are not here.
#
# <details><summary>Hint</summary>
#
# A weight among all keys is exp(score − logsum).
# $g_i$ is the gradient's dot product with value $i$. So the sum over all keys is the gradient's dot product with ... something that you have.
#
# </details>

# %% tags=["solution"]
def way_back(query, key, value, context, logsum, grad):
    """Gradients of queries (this block's part), of the block's keys and of its values."""
    ### BEGIN SOLUTION
    scale = 1 / math.sqrt(query.size(-1))
    weights = (scale * (query @ key.mT) - logsum[..., None]).exp()  # (batch, heads, queries, keys)
    grad_weights = grad @ value.mT
    mean = (grad * context).sum(dim=-1, keepdim=True)  # over all keys
    grad_scores = weights * (grad_weights - mean)
    return scale * (grad_scores @ key), scale * (grad_scores.mT @ query), weights.mT @ grad
    ### END SOLUTION


# %% tags=["check"]
check("14.way_back", way_back)

# %% [markdown] exercise="14.groups" title="Find the mistakes" minutes=10 points=3 difficulty=2
# The lesson gave each row of a matrix a scale.
# With few bits, people give one to each *group* of neighbors in a row, so that a large weight spoils its own group only.
#
# This function makes int8 numbers of a `weight` (out, in) whose rows have groups of `size` numbers.
# It should do this:
#
# - The largest absolute value of each group becomes 127 or −127.
# - Each number is the whole number that is nearest to weight / scale.
# - A group of zeros has the scale 1.
#
# It returns the numbers (out, in) and the scales (out, in / size).
# Models that went through it translate badly.
# There are two mistakes; repair them.
#
# <details><summary>Hint</summary>
#
# Take the group 0.036, −2.54, 1.26 and compute by hand what should come out.
#
# </details>

# %% tags=["planted"]
def quantize(weight, size):
    """Numbers (out, in) in int8, and scales (out, in / size)."""
    groups = weight.unflatten(1, (-1, size))  # (out, groups, size)
    largest = groups.amax(dim=2, keepdim=True)
    scale = torch.where(largest == 0, 1, largest / 127)
    numbers = (groups / scale).clamp(-127, 127).to(torch.int8)
    return numbers.flatten(1), scale.squeeze(2)


# %% tags=["solution"]
def quantize(weight, size):
    """Numbers (out, in) in int8, and scales (out, in / size)."""
    groups = weight.unflatten(1, (-1, size))  # (out, groups, size)
    largest = groups.abs().amax(dim=2, keepdim=True)
    scale = torch.where(largest == 0, 1, largest / 127)
    numbers = (groups / scale).round().clamp(-127, 127).to(torch.int8)
    return numbers.flatten(1), scale.squeeze(2)


# %% tags=["check"]
check("14.groups", quantize)

# %% [markdown] exercise="14.predict" title="Predict, then check" minutes=8 points=2 difficulty=2
# Seven numbers to predict on paper.
# A factor of 1 says that nothing changes.
#
# 1. A model of a million parameters is trained on a thousand tokens. How many billions ($10^9$) of FLOPs is that, without attention's scores?
# 2. Texts get twice as long, with the fused kernel. By which factor does the memory of attention grow?
# 3. And by which the time of its scores and weighted sums?
# 4. A model has 32 heads of queries; groups of 4 share their keys and values. By which factor is the cache smaller than with 32 heads of keys and values?
# 5. 16 layers keep 10 MB each, of which 1 MB is the layer's input. With activation checkpointing of each layer, how many MB are kept at most at any moment, by these layers?
# 6. bfloat16 has 7 bits for the digits: the next number above 1 is 1 + 1/128. Which is the next above 8?
# 7. A teacher gives three tokens the probabilities ½, ¼ and ¼. What is the smallest cross-entropy that a student can reach there, in bits (logarithms to base 2)?

# %% tags=["planted"]
prediction = {
    "billions of FLOPs": None,
    "memory, twice as long": None,
    "time, twice as long": None,
    "cache, groups of 4": None,
    "MB with checkpointing": None,
    "bfloat16 behind 8": None,
    "bits of the student": None,
}

# %% tags=["solution"]
prediction = {
    "billions of FLOPs": 6,
    "memory, twice as long": 2,
    "time, twice as long": 4,
    "cache, groups of 4": 4,
    "MB with checkpointing": 25,
    "bfloat16 behind 8": 8.0625,
    "bits of the student": 1.5,
}

# %% tags=["check"]
check("14.predict", prediction)

# %% [markdown] exercise="14.fit" title="In your own words" minutes=8 points=2 difficulty=2
# Somebody wants to train a model of a billion parameters on a GPU with 24 GB, in float32 with Adam, on batches of 16 texts of 2,048 tokens each.
# It runs out of memory.
# "With int8 weights they take a quarter, so it will fit", says a colleague.
# How much do the parameters take, and why is int8 no remedy here?
# Which measures would you try, in which order, and what does each cost?
# How would you know beforehand?
# Five or six sentences.

# %% [markdown] tags=["answer"]
# Weights, gradients and Adam's two moments are four numbers of 4 bytes for each parameter: 16 GB, so 8 GB are left for activations.
# int8 is for a model that has been trained: a step of training is far smaller than the distance of two int8 numbers and would be rounded away, and the weights are only 4 of the 16 GB.
# It is the activations that do not fit, and they grow with the batch.
# First the fused kernel, which keeps no weights of attention and costs no time; then micro-batches with gradient accumulation, which give the same gradients for the same FLOPs, in smaller and less efficient products.
# If one text at a time is still too much, activation checkpointing, for at most a third more FLOPs; mixed precision shrinks what is kept as well.
# The activations and the peak can be computed from the sizes of model and batch before anything is run.
#
# === BEGIN MARK SCHEME ===
# 1 point: 16 bytes for each parameter, 16 GB; int8 cannot take small steps (or: touches a quarter of that at most), the activations are what does not fit.
# 1 point: at least two of fused attention, accumulation, checkpointing, mixed precision, each with its price, and a formula for the peak.
# Half of a point for half of it.
# === END MARK SCHEME ===
