# %% [markdown]
# # Assignment 07 · The decoder
#
# You give self-attention a cache, repair two stacks, put a decoder layer together, and let a decoder write.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [07](../../../07_decoder.ipynb).
# Names and shapes are the lesson's: `x` is (batch, tgt_len, d_model), `memory` is (batch, src_len, d_model).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `x.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math

import torch

from course_lib.assignments import check

# %% [markdown] exercise="07.shapes" title="Predict, then check" minutes=6 points=2 difficulty=1
# A batch of three sentence pairs goes through the model once, for training.
# The longest source has seven tokens, `</s>` among them.
# The longest target has five tokens, `<s>` and `</s>` not counted.
# d_model is 512, there are 8 heads, and the vocabulary has 2,000 subwords.
#
# Predict seven shapes, as tuples: of `tgt_in`, of the memory, of the logits, and of four tensors inside a decoder layer.
# Those four are split into heads: (batch, heads, ..., ...).

# %% tags=["planted"]
prediction = {
    "tgt_in": None,
    "memory": None,
    "self-attention, weights": None,
    "cross-attention, weights": None,
    "cross-attention, values": None,
    "cross-attention, context": None,
    "logits": None,
}

# %% tags=["solution"]
prediction = {
    "tgt_in": (3, 6),
    "memory": (3, 7, 512),
    "self-attention, weights": (3, 8, 6, 6),
    "cross-attention, weights": (3, 8, 6, 7),
    "cross-attention, values": (3, 8, 7, 64),
    "cross-attention, context": (3, 8, 6, 64),
    "logits": (3, 6, 2000),
}

# %% tags=["check"]
check("07.shapes", prediction)

# %% [markdown] exercise="07.cache" title="Nothing is computed twice" minutes=12 points=3 difficulty=2
# At each step, the lesson's decoder computes the keys and values of all tokens again.
# But no earlier position sees the new token, so their keys and values stay as they were and can be kept, in a *cache*.
#
# Here is one head of the decoder's self-attention with its cache.
# `x` (batch, new, d_model) are the newest positions only; `keys` (batch, past, d_k) and `values` (batch, past, d_v) are what was kept of the earlier ones.
# In writing, one position is new at a time. When the decoder starts from a given text, several are new at once.
# This is the specification: one new position after the other.

# %% tags=["specification"]
def slow_extend(x, keys, values, w_query, w_key, w_value):
    """Contexts of the new positions (batch, new, d_v), and the keys and values of all positions."""
    contexts = []
    for place in range(x.size(1)):
        newest = x[:, place : place + 1]  # (batch, 1, d_model)
        keys = torch.cat([keys, newest @ w_key], dim=1)
        values = torch.cat([values, newest @ w_value], dim=1)
        scores = newest @ w_query @ keys.mT / math.sqrt(keys.size(-1))
        contexts.append(scores.softmax(dim=-1) @ values)
    return torch.cat(contexts, dim=1), keys, values


# %% [markdown]
# Write the same without a loop, all new positions at once.
# At the very beginning nothing has been kept: then past is 0.
#
# <details><summary>Hint</summary>
#
# The lesson's causal mask is a square. This one has a row for each new position, and a column for each position, kept or new.
# Which position of the text does its first row belong to?
#
# </details>

# %% tags=["solution"]
def extend(x, keys, values, w_query, w_key, w_value):
    """Contexts of the new positions (batch, new, d_v), and the keys and values of all positions."""
    ### BEGIN SOLUTION
    past = keys.size(1)
    keys = torch.cat([keys, x @ w_key], dim=1)  # (batch, past + new, d_k)
    values = torch.cat([values, x @ w_value], dim=1)
    place = torch.arange(keys.size(1), device=x.device)
    seen = place <= place[past:, None]  # (new, past + new)
    scores = x @ w_query @ keys.mT / math.sqrt(keys.size(-1))
    weights = scores.masked_fill(~seen, -math.inf).softmax(dim=-1)
    return weights @ values, keys, values
    ### END SOLUTION


# %% tags=["check"]
check("07.cache", extend)

# %% [markdown] exercise="07.stacks" title="Find the mistake" minutes=8 points=2 difficulty=2
# Popular drawings of the model have an arrow from each encoder layer to the decoder layer beside it.
# Code was written after such drawings, and it runs where both stacks have the same height.
# Find the mistake, and repair it.
#
# `x_src` (batch, src_len, d_model) and `x_tgt` (batch, tgt_len, d_model) are the embedded sentences.
# `encoder_layers` is a list of functions of `x_src`, `decoder_layers` is a list of functions of `x_tgt` and the memory; each returns a tensor like its first argument.
# Return what the last decoder layer writes.
# The two stacks need not have the same height; each has at least one layer.

# %% tags=["planted"]
def stacks(x_src, x_tgt, encoder_layers, decoder_layers):
    """The decoder's output, (batch, tgt_len, d_model)."""
    for encoder_layer, decoder_layer in zip(encoder_layers, decoder_layers, strict=True):
        x_src = encoder_layer(x_src)
        x_tgt = decoder_layer(x_tgt, x_src)
    return x_tgt


# %% tags=["solution"]
def stacks(x_src, x_tgt, encoder_layers, decoder_layers):
    """The decoder's output, (batch, tgt_len, d_model)."""
    for encoder_layer in encoder_layers:
        x_src = encoder_layer(x_src)
    for decoder_layer in decoder_layers:
        x_tgt = decoder_layer(x_tgt, x_src)
    return x_tgt


# %% tags=["check"]
check("07.stacks", stacks)

# %% [markdown] exercise="07.decoder_layer" title="Three sub-layers in order" minutes=12 points=3 difficulty=2
# Write one decoder layer from finished parts, in *pre-norm* order, as in the translator of the course.
# There is no dropout.
#
# - `self_attn` and `cross_attn` are functions of (query, key, value, mask), and return one vector for each query.
# - `feed_forward` is a function of `x`.
# - `norms` has three functions, in this order: the norms on the paths around self-attention, cross-attention and feed-forward network.
# - `tgt_mask` (batch, 1, tgt_len, tgt_len) hides the future and the padding of the target, `memory_mask` (batch, 1, 1, src_len) the padding of the source.
#
# The memory comes as the encoder has left it, finished.
# Return a tensor of the shape of `x`, and leave the given `x` as it is.
#
# <details><summary>Hint</summary>
#
# On each path: what is normalized, what carries the residual?
# Then ask for each of the two attentions where its queries come from, and where its keys and values do.
#
# </details>

# %% tags=["solution"]
def decoder_layer(x, memory, self_attn, cross_attn, feed_forward, norms, tgt_mask, memory_mask):
    """x (batch, tgt_len, d_model) to the layer's output, of the same shape."""
    ### BEGIN SOLUTION
    query = norms[0](x)
    x = x + self_attn(query, query, query, tgt_mask)
    x = x + cross_attn(norms[1](x), memory, memory, memory_mask)
    return x + feed_forward(norms[2](x))
    ### END SOLUTION


# %% tags=["check"]
check("07.decoder_layer", decoder_layer)

# %% [markdown] exercise="07.generate" title="Writing, several sentences at once" minutes=16 points=4 difficulty=3
# The lesson wrote one sentence, and stopped at its `</s>`.
# Now a whole batch is written, and its rows end at different times.
#
# `step(tgt_in)` is a decoder that knows its sources: it maps ids (batch, tgt_len), all tokens so far, to logits (batch, tgt_len, vocab).
# It always wants all rows, in the same order.
# `start` is (batch, 1) and holds the id of `<s>`.
#
# Write greedily, one token at a time, and return the ids (batch, written), int64, without `<s>`:
#
# - a row's `</s>` belongs to the result; behind it the row is filled up with `pad_id`;
# - writing stops as soon as every row has its `</s>`, and the result has no further columns;
# - it stops in any case after `max_len` tokens, `</s>` counted; some rows then have no `</s>`.
#
# `<s>` and `<pad>` never have the largest logit, and `max_len` is at least 1.
#
# <details><summary>Hint</summary>
#
# Keep two things from step to step: the ids so far, and for each row whether it is finished.
# What a finished row reads does not matter; what stands in the result does.
#
# </details>

# %% tags=["solution"]
def generate(step, start, eos_id, pad_id, max_len):
    """Ids that are written, (batch, written), with written at most max_len."""
    ### BEGIN SOLUTION
    ids = start
    finished = torch.zeros_like(start, dtype=torch.bool)  # (batch, 1)
    while ids.size(1) <= max_len and not finished.all():
        logits = step(ids)[:, -1:]  # (batch, 1, vocab), of the newest position
        newest = logits.argmax(dim=-1).masked_fill(finished, pad_id)
        finished = finished | (newest == eos_id)
        ids = torch.cat([ids, newest], dim=1)
    return ids[:, 1:]
    ### END SOLUTION


# %% tags=["check"]
check("07.generate", generate)

# %% [markdown] exercise="07.forcing" title="In your own words" minutes=8 points=3 difficulty=2
# Training takes one pass of the decoder for a target of 20 tokens; translating takes a pass for each token.
#
# Why is one pass enough in training, and what in the model makes sure that it teaches the same as many passes would?
# Why is it not enough in translating?
# Somebody scores a translator by BLEU of its teacher-forced predictions: what is wrong with that number?
# Four or five sentences.

# %% [markdown] tags=["answer"]
# In training the target is known, so every position can read the true tokens before it, and all positions are predicted at the same time.
# The causal mask makes sure that position *t* reads only what it would have in use: with or without later tokens its logits and gradients are the same.
# In translating the next token has to be chosen before it can be read, so the passes must come one after the other.
# In teacher-forced predictions the true token replaces each mistake before the next prediction.
# Nobody gets such a text in use: after its first mistake a translator reads its own words, so it has to be scored running free.
#
# === BEGIN MARK SCHEME ===
# 1 point: in training the true tokens are there from the start, and the causal mask makes the pass equal to the steps.
# 1 point: in use each token must be chosen before the next step can read it.
# 1 point: teacher forcing puts the right token back after each mistake, so the score is not that of what the translator writes.
# === END MARK SCHEME ===
