# %% [markdown]
# # Assignment 08 · The Transformer, assembled
#
# The parts are built; here we look at what joins them: the sizes, the one matrix that is used three times, and the next token.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [08](../../../08_transformer.ipynb).
# Names and shapes are the lesson's: `src` is (batch, src_len), `tgt_in` is (batch, tgt_len), `hidden` is what leaves the decoder, (batch, tgt_len, d_model).
# `table` is the shared matrix, (vocab, d_model): row *i* belongs to the token with the id *i*.
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `hidden.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math

import torch

from course_lib.assignments import check

PAD_ID, BOS_ID = 0, 1  # of <pad> and <s>

# %% [markdown] exercise="08.count" title="Count before you build" minutes=10 points=3 difficulty=2
# The lesson counts the parameters of the paper's model.
# Write a count for four kinds of model: with one shared matrix or with three separate ones, post-norm or pre-norm.
#
# - `tied` says whether both embeddings and the generator share one matrix (vocab_size × d_model).
# - `norm_first` says whether the model is pre-norm; then each stack ends with one norm more.
# - Attention and feed-forward networks have biases, as in the lesson; the generator has none. Positions are sinusoids.
#
# All sizes are whole numbers, and both stacks have `num_layers` layers.
# Return a dict of three whole numbers: `"embeddings"` (the generator included), `"encoder"` and `"decoder"`; the norm at the end of a stack belongs to the stack.
# For base with one shared matrix of 37,000 subwords the three add up to 63,082,496.
#
# <details><summary>Hint</summary>
#
# Write down what one attention, one feed-forward network and one norm have.
# How many of each are there in an encoder layer, and how many in a decoder layer?
#
# </details>

# %% tags=["solution"]
def count(vocab_size, d_model, d_ff, num_layers, tied, norm_first):
    """Parameters of a Transformer in three parts."""
    ### BEGIN SOLUTION
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    end = norm if norm_first else 0
    return {
        "embeddings": (1 if tied else 3) * vocab_size * d_model,
        "encoder": num_layers * (attention + feed_forward + 2 * norm) + end,
        "decoder": num_layers * (2 * attention + feed_forward + 3 * norm) + end,
    }
    ### END SOLUTION


# %% tags=["check"]
check("08.count", count)

# %% [markdown] exercise="08.ends" title="Find the mistake" minutes=8 points=2 difficulty=2
# Here are both ends of a model with one shared matrix: tokens go in, logits come out.
# All shapes fit, and the model trains.
# But its first loss is several times what guessing evenly would cost.
# Code that prepares the shared matrix in advance can make this mistake in one line; find it, and repair it.
#
# `ids` is (batch, length), `hidden` is (batch, tgt_len, d_model), and `position` is a table (max_len, d_model) with at least as many rows as the sentences have tokens.
# The function returns the embedded tokens (batch, length, d_model) and the logits (batch, tgt_len, vocab).
#
# <details><summary>Hint</summary>
#
# The rows of the matrix start with a standard deviation of 1/√d_model.
# How large are then the embedded tokens, and how large are the logits?
#
# </details>

# %% tags=["planted"]
def ends(ids, hidden, table, position):
    """Embedded tokens with their positions, and the logits of the generator."""
    table = table * math.sqrt(table.size(1))
    embedded = table[ids] + position[: ids.size(1)]
    logits = hidden @ table.T
    return embedded, logits


# %% tags=["solution"]
def ends(ids, hidden, table, position):
    """Embedded tokens with their positions, and the logits of the generator."""
    embedded = table[ids] * math.sqrt(table.size(1)) + position[: ids.size(1)]
    logits = hidden @ table.T
    return embedded, logits


# %% tags=["check"]
check("08.ends", ends)

# %% [markdown] exercise="08.next" title="From loops to tensors: the next token" minutes=12 points=3 difficulty=2
# A batch of half-written sentences has gone through the decoder, and each waits for its next token.
# The sentences have different lengths, so most of them end in padding, and what the decoder puts out there is of no use.
# This is the specification, slow and right.

# %% tags=["specification"]
def slow_next_tokens(hidden, tgt_in, table):
    """Ids (batch,) of the most probable next tokens."""
    chosen = []
    for sentence, ids in zip(hidden, tgt_in, strict=True):
        for vector, token in zip(sentence, ids, strict=True):
            if token != PAD_ID:
                last = vector  # of the last real token in the end
        scores = [(last * row).sum() for row in table]
        scores[PAD_ID] = scores[BOS_ID] = -math.inf  # never written
        chosen.append(scores.index(max(scores)))
    return torch.tensor(chosen)


# %% [markdown]
# Write the same without a loop.
# `tgt_in` starts with `<s>` and is padded on the right; some sentences have no padding, some nothing but `<s>`.
# The logits of `<pad>` and `<s>` may be the largest ones, or the only positive ones; neither token may be chosen.
# Return ids (batch,), int64.
#
# <details><summary>Hint</summary>
#
# How many real tokens does each sentence have?
# Two lists of numbers as indices, one for each of the first two dimensions, take one vector from each sentence.
#
# </details>

# %% tags=["solution"]
def next_tokens(hidden, tgt_in, table):
    """Ids (batch,) of the most probable next tokens."""
    ### BEGIN SOLUTION
    lengths = (tgt_in != PAD_ID).sum(dim=1)  # (batch,)
    rows = torch.arange(len(tgt_in), device=tgt_in.device)
    logits = hidden[rows, lengths - 1] @ table.T  # (batch, vocab)
    logits[:, [PAD_ID, BOS_ID]] = -math.inf
    return logits.argmax(dim=-1)
    ### END SOLUTION


# %% tags=["check"]
check("08.next", next_tokens)

# %% [markdown] exercise="08.gradient" title="Three uses, one gradient" minutes=15 points=3 difficulty=3
# The lesson let PyTorch show that the gradient of the shared matrix is the sum of three.
# Compute it yourself.
# The backward pass has already brought the gradient of the loss to three places:
#
# - `from_src`, (batch, src_len, d_model): at the embedded source, where row `src` of the matrix times √d_model went in;
# - `from_tgt`, (batch, tgt_len, d_model): at the embedded target, the same for `tgt_in`;
# - `from_logits`, (batch, tgt_len, vocab): at the logits, which are `hidden` times the rows of the matrix.
#
# So the row $E_i$ of token $i$ gets
#
# $$\frac{\partial L}{\partial E_i} = \sqrt{d_\text{model}} \Bigl(\sum_{\text{src} = i} g^\text{src} + \sum_{\text{tgt\_in} = i} g^\text{tgt}\Bigr) + \sum_{\text{all places}} g^\text{logits}_i \, h$$
#
# where $g^\text{src}$, $g^\text{tgt}$ and $h$ are the vectors of `from_src`, `from_tgt` and `hidden` at a place.
# Return the gradient (vocab, d_model), without a loop and without autograd.
# Many tokens occur several times, in one sentence and in several; some tokens never occur.
# No id is special here: the gradients that you get are 0 where padding must not count.
#
# <details><summary>Hint</summary>
#
# Try `x = torch.zeros(3)` and `x[torch.tensor([1, 1])] += 1`.
# Is `x[1]` what you expect?
# Look for a method of tensors that *adds* at an index.
#
# </details>

# %% tags=["solution"]
def shared_gradient(src, from_src, tgt_in, from_tgt, hidden, from_logits):
    """Gradient (vocab, d_model) of the matrix that embeds source and target and makes the logits."""
    ### BEGIN SOLUTION
    gradient = from_logits.flatten(0, 1).T @ hidden.flatten(0, 1)  # (vocab, d_model)
    scale = math.sqrt(hidden.size(-1))
    gradient.index_add_(0, src.flatten(), scale * from_src.flatten(0, 1))
    gradient.index_add_(0, tgt_in.flatten(), scale * from_tgt.flatten(0, 1))
    return gradient
    ### END SOLUTION


# %% tags=["check"]
check("08.gradient", shared_gradient)

# %% [markdown] exercise="08.costs" title="Predict, then check" minutes=8 points=2 difficulty=1
# Parameters, operations and memory, each by one formula of the lesson.
# Predict on paper; a factor of 1 says that nothing changes.
#
# 1. The heads go from 8 to 16, at the same d_model: by which factor do the parameters of attention change?
# 2. d_model and d_ff are both doubled: by which factor do the matrices of a feed-forward network grow?
# 3. The sentences are twice as long: by which factor do the operations of the feed-forward networks grow?
# 4. The sentences are twice as long: by which factor do the operations grow that make scores and weighted values in self-attention?
# 5. At which length do the operations of question 4 equal those of the four projections, if d_model is 256?
# 6. Plain gradient descent keeps no moments: how many bytes does it hold for each parameter in float32, without activations?

# %% tags=["planted"]
prediction = {
    "16 heads for 8": None,
    "d_model and d_ff doubled": None,
    "twice as long, feed-forward": None,
    "twice as long, scores and weighted values": None,
    "length where both are equal": None,
    "bytes without moments": None,
}

# %% tags=["solution"]
prediction = {
    "16 heads for 8": 1,
    "d_model and d_ff doubled": 4,
    "twice as long, feed-forward": 2,
    "twice as long, scores and weighted values": 4,
    "length where both are equal": 512,
    "bytes without moments": 8,
}

# %% tags=["check"]
check("08.costs", prediction)

# %% [markdown] exercise="08.shift" title="In your own words" minutes=7 points=2 difficulty=2
# A new model reaches a loss of 0.05 in half the steps of any model before it, on training and on validation data.
# But what it writes by itself is useless.
# What is probably wrong, and why does the causal mask not prevent it?
# Describe one experiment that shows it and needs no new training.
# Three to five sentences.

# %% [markdown] tags=["answer"]
# The target is probably not shifted: the decoder reads `tgt_out`, so each position reads the very token that it must predict.
# The causal mask hides only later positions; a position may see itself.
# So the model has learned to copy, and when it writes there is nothing to copy from.
# Experiment: give it the sources of other sentences, with the right targets to read; if the loss stays low, the model does not use the source.
# (Or let it read random tokens: it repeats them.)
#
# === BEGIN MARK SCHEME ===
# 1 point: the missing shift, and that the causal mask lets a position see itself.
# 1 point: an experiment with the trained model that tells copying from translating: wrong sources, or random tokens to read, with its expected result.
# Half of a point for half of it.
# === END MARK SCHEME ===
