# %% [markdown]
# # Assignment 05 · Masks
#
# You build masks, put one into a softmax, repair one, and write a test for leaks.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [05](../../../05_masks.ipynb).
# As there, a mask is `bool` and **True means: may attend**.
# Scores and weights are (batch, heads, queries, keys).

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="05.decoder" title="From a loop to two masks" minutes=10 points=3 difficulty=1
# A decoder layer has two attentions, and each needs its mask.
# The first mask is for self-attention, the second for cross-attention.
# This is the specification of both, one query and one key at a time.
# `src` are ids (batch, src_len), `tgt_in` ids (batch, tgt_len).

# %% tags=["specification"]
def slow_decoder_masks(src, tgt_in, pad_id):
    """Both masks of a decoder: (batch, 1, tgt_len, tgt_len) and (batch, 1, tgt_len, src_len)."""
    (batch, src_len), tgt_len = src.shape, tgt_in.size(1)
    own = torch.zeros(batch, 1, tgt_len, tgt_len, dtype=torch.bool)
    cross = torch.zeros(batch, 1, tgt_len, src_len, dtype=torch.bool)
    for sentence in range(batch):
        for query in range(tgt_len):
            for key in range(tgt_len):
                own[sentence, 0, query, key] = (tgt_in[sentence, key] != pad_id) & (key <= query)
            for key in range(src_len):
                cross[sentence, 0, query, key] = src[sentence, key] != pad_id
    return own, cross


# %% [markdown]
# Write the same without a loop.
# Return both masks, in this order and in their full shapes: `expand` repeats an axis of size 1.
# `pad_id` may be any id.
# Source and target may differ in length.
# The masks belong on the device of the ids.
#
# <details><summary>Hint</summary>
#
# Compare a row of positions 0, 1, 2, … with the same positions as a column.
#
# </details>

# %% tags=["solution"]
def decoder_masks(src, tgt_in, pad_id):
    """Both masks of a decoder: (batch, 1, tgt_len, tgt_len) and (batch, 1, tgt_len, src_len)."""
    ### BEGIN SOLUTION
    place = torch.arange(tgt_in.size(1), device=tgt_in.device)
    causal = place <= place[:, None]  # (queries, keys)
    own = (tgt_in != pad_id)[:, None, None, :] & causal  # (batch, 1, tgt_len, tgt_len)
    cross = (src != pad_id)[:, None, None, :]  # (batch, 1, 1, src_len)
    return own, cross.expand(-1, -1, tgt_in.size(1), -1)
    ### END SOLUTION


# %% tags=["check"]
check("05.decoder", decoder_masks)

# %% [markdown] exercise="05.open" title="Predict, then check" minutes=8 points=3 difficulty=1
# One pair, padded for a larger batch, but now a batch of its own:
#
# ```text
# source         The  dog  sleeps  .  <pad>  <pad>  <pad>
# target input   <s>  Der  Hund  schläft  .  <pad>
# ```
#
# Predict on paper, without building a mask.
#
# 1. The shape, as a tuple, of the mask that the lesson's `padding_mask` makes for cross-attention.
# 2. How many entries of the target's causal mask are True?
# 3. How many are True once the target's padding mask is combined with it?
# 4. How many looks (query, key) does cross-attention allow, over all queries?
# 5. In the decoder's self-attention, may the query *Hund* attend to the key *schläft*, True or False?
# 6. `torch.nn.MultiheadAttention` takes a `key_padding_mask`. What is the row of our source, as a list of True and False?
# 7. Somebody moves the target's `<pad>` to the left, before `<s>`, and combines both masks again. How many queries have nothing to attend to?
# 8. Somebody writes `tril(1)` for `tril()`. How many places ahead does a stack of three such attentions see, if the sentence is long enough?

# %% tags=["planted"]
prediction = {
    "shape of the cross mask": None,
    "open entries of the causal mask": None,
    "open entries of both masks together": None,
    "looks allowed in cross-attention": None,
    "may Hund attend to schläft": None,
    "key_padding_mask of the source": None,
    "queries with nothing, padded on the left": None,
    "places ahead, three attentions with tril(1)": None,
}

# %% tags=["solution"]
prediction = {
    "shape of the cross mask": (1, 1, 1, 7),
    "open entries of the causal mask": 1 + 2 + 3 + 4 + 5 + 6,
    "open entries of both masks together": 1 + 2 + 3 + 4 + 5 + 5,
    "looks allowed in cross-attention": 6 * 4,
    "may Hund attend to schläft": False,
    "key_padding_mask of the source": [False, False, False, False, True, True, True],
    "queries with nothing, padded on the left": 1,
    "places ahead, three attentions with tril(1)": 3,
}

# %% tags=["check"]
check("05.open", prediction)

# %% [markdown] exercise="05.weights" title="A softmax that knows a mask" minutes=12 points=4 difficulty=2
# From scores and a mask to weights:
#
# - a hidden key gets exactly 0, and each query's weights sum to 1;
# - whatever stands in a hidden score must not matter, even if it is 200, $\infty$ or NaN;
# - scores that are not hidden may be of any size, also −100,000;
# - a query that may attend to nothing raises a `ValueError`, be it one query or all of a sentence;
# - scores may be float16 as well as float32 and float64, and the weights have the scores' dtype.
#
# The mask has as many dimensions as the scores, with size 1 where it says the same for all: (batch, 1, 1, keys), (1, 1, queries, keys) or (batch, 1, queries, keys).
# `torch.softmax` is allowed.
#
# <details><summary>Hint</summary>
#
# Which number has an exponential of exactly 0, in every precision?
# Adding a number to a score is not the same as putting it in its place.
#
# </details>

# %% tags=["solution"]
def masked_softmax(scores, mask):
    """Weights (batch, heads, queries, keys); raises ValueError where a query may attend to nothing."""
    ### BEGIN SOLUTION
    if not mask.any(dim=-1).all():
        raise ValueError("a query has nothing to attend to")
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    ### END SOLUTION


# %% tags=["check"]
check("05.weights", masked_softmax)

# %% [markdown] exercise="05.encoder" title="Find the mistake" minutes=8 points=2 difficulty=2
# Lines like these stand in popular code.
# In an encoder, no token should attend to padding.
# The rows of the padding stay open, as in the lesson: a padded query attends to the real tokens like everybody else.
# `ids` are (batch, length), `scores` (batch, heads, length, length).
#
# Nothing crashes, no weight is NaN, and every row sums to 1.
# Find the mistake, and repair it.
#
# <details><summary>Hint</summary>
#
# Take one sentence with one `<pad>` and scores that are all 0, and print the weights.
# Does the column of `<pad>` look different from the others? Should it?
#
# </details>

# %% tags=["planted"]
def encoder_weights(scores, ids, pad_id):
    """Weights (batch, heads, queries, keys) that leave the padding alone."""
    real = (ids != pad_id).unsqueeze(1).unsqueeze(3)
    return torch.softmax(scores.masked_fill(~real, -1e9), dim=-1)


# %% tags=["solution"]
def encoder_weights(scores, ids, pad_id):
    """Weights (batch, heads, queries, keys) that leave the padding alone."""
    real = (ids != pad_id).unsqueeze(1).unsqueeze(2)  # (batch, 1, 1, keys): it hides keys, not queries
    return torch.softmax(scores.masked_fill(~real, -math.inf), dim=-1)


# %% tags=["check"]
check("05.encoder", encoder_weights)

# %% [markdown] exercise="05.sees" title="What does a layer see?" minutes=14 points=4 difficulty=2
# Somebody hands you a layer and says that it is causal.
# You cannot look at its mask: `layer` is a function, and all you can do is call it.
# It maps x (1, length, d_model) to outputs of the same shape.
#
# Write the test: it returns a `bool` tensor (length, length) whose entry [t, s] is True if output t depends on input s.
# A dependence on a single feature counts.
# What a mask hides has exactly no influence, so you need no tolerance.
#
# Your test is tried on layers of one attention and of two in a row: causal ones, one with the slip `tril(1)`, one without a mask, and ones with random masks.
# Some layers are *centered*: they subtract from each output its mean, so that its features sum to 0.
# One reads and writes a single feature.
# Do not change x itself.
#
# <details><summary>Hint</summary>
#
# There are two ways: ask for gradients, or change one input and look which outputs change.
# In their simplest form both miss something in centered layers.
#
# </details>

# %% tags=["solution"]
def sees(layer, x):
    """(length, length) bool: whether output t (row) depends on input s (column)."""
    ### BEGIN SOLUTION
    jacobian = torch.autograd.functional.jacobian(layer, x)  # (1, queries, d_model, 1, keys, d_model)
    return (jacobian[0, :, :, 0] != 0).any(dim=-1).any(dim=1)  # over the features of inputs, then of outputs
    ### END SOLUTION


# %% tags=["check"]
check("05.sees", sees)

# %% [markdown] exercise="05.parallel" title="In your own words" minutes=7 points=3 difficulty=2
# In training, the decoder gets the whole target sentence at once, and one pass gives a loss at every position.
# Why does the causal mask make that possible?
# Why does it leave the diagonal open, although position t must predict the next token?
# And how would you notice, after training, that a mask had leaked? Four or five sentences.

# %% [markdown] tags=["answer"]
# With the mask, output t depends on the tokens up to t only, so it is what the model would compute from that prefix alone.
# One masked pass therefore equals the passes over all prefixes, and all positions can be trained side by side.
# Without the mask each could read its answer one position to the right.
# The target input is shifted by one: position t reads the token before the one that it predicts, so the diagonal shows nothing that the model may not know.
# A leak shows as a training loss that falls below what is possible without the answer, while the translations that the model writes on its own are bad, because then there is no future to read.
#
# === BEGIN MARK SCHEME ===
# 1 point: each position of the masked pass equals the pass over its prefix alone, so one pass trains all positions.
# 1 point: the shift by one; position t reads the token before the one to be predicted.
# 1 point: a loss that is too good, together with bad free-running output (or the gradient test).
# === END MARK SCHEME ===
