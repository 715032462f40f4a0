# %% [markdown]
# # Assignment 15 · Alternatives
#
# You repair a recurrent layer, work out what a stack of convolutions sees, and turn two slow layers into fast ones.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [15](../../../15_alternatives.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `x.new_zeros(...)` or `torch.arange(..., device=x.device)`.

# %%
import torch

from course_lib.assignments import check

# %% [markdown] exercise="15.reach" title="Predict, then check" minutes=8 points=2 difficulty=1
# Six numbers to predict on paper.
#
# 1. Three layers of causal convolution of width 3, without gaps: how many tokens back does the last output see?
# 2. Four such layers of width 2, with gaps of 1, 2, 4 and 8 tokens (a gap of 1 means neighbors): how many tokens back?
# 3. Three layers of width 5, without gaps and centered on the token itself: on how many tokens does an output in the middle of a long text depend?
# 4. state[t] = a · state[t − 1] + x[t] with a = 1/2. The state begins with 0, x is 8 at token 0 and 0 afterwards. What is the state at token 3?
# 5. A GRU begins with the state 0.3. A huge bias holds its update gate at 1. What is the state after 100 tokens?
# 6. x is (1, 2, 3, 4) and a kernel is (1, 1, 0, 0). Both are transformed by a Fourier transform of size 4, multiplied, and transformed back. What is the first output?

# %% tags=["planted"]
prediction = {
    "width 3, three layers": None,
    "width 2, growing gaps": None,
    "width 5, centered": None,
    "the state at token 3": None,
    "the state of the GRU": None,
    "the first output": None,
}

# %% tags=["solution"]
prediction = {
    "width 3, three layers": 6,
    "width 2, growing gaps": 15,
    "width 5, centered": 13,
    "the state at token 3": 1.0,
    "the state of the GRU": 0.3,
    "the first output": 5.0,
}

# %% tags=["check"]
check("15.reach", prediction)

# %% [markdown] exercise="15.gru" title="Find the mistakes" minutes=12 points=3 difficulty=2
# Somebody has trained a GRU with PyTorch, and runs its weights in a program of their own.
# Nothing raises an error, every state looks plausible, and the model talks nonsense.
# The program took its formulas from another paper, so at *two* places it computes another GRU than the lesson's.
# Find both, and repair them.
#
# `token` is (batch, d_in), `state` and the result are (batch, d_hidden).
# The weights are PyTorch's: `w_input` (3 · d_hidden, d_in), `w_state` (3 · d_hidden, d_hidden), and two biases (3 · d_hidden,).
# Each has three parts, in the order reset, update, candidate.
#
# <details><summary>Hint</summary>
#
# Compare with the lesson's layer, line by line.
# What is multiplied by the reset gate there, bias included?
# And what should the new state be where the update gate is 1?
#
# </details>

# %% tags=["planted"]
def gru_step(token, state, w_input, b_input, w_state, b_state):
    """The state after one more token, (batch, d_hidden)."""
    of_input, of_state = token @ w_input.T + b_input, state @ w_state.T + b_state
    (r, z, new), (r_state, z_state, _) = of_input.chunk(3, dim=-1), of_state.chunk(3, dim=-1)
    reset, update = torch.sigmoid(r + r_state), torch.sigmoid(z + z_state)
    candidate = torch.tanh(new + (reset * state) @ w_state.chunk(3)[2].T + b_state.chunk(3)[2])
    return (1 - update) * state + update * candidate


# %% tags=["solution"]
def gru_step(token, state, w_input, b_input, w_state, b_state):
    """The state after one more token, (batch, d_hidden)."""
    of_input, of_state = token @ w_input.T + b_input, state @ w_state.T + b_state
    (r, z, new), (r_state, z_state, new_state) = of_input.chunk(3, dim=-1), of_state.chunk(3, dim=-1)
    reset, update = torch.sigmoid(r + r_state), torch.sigmoid(z + z_state)
    candidate = torch.tanh(new + reset * new_state)
    return update * state + (1 - update) * candidate


# %% tags=["check"]
check("15.gru", gru_step)

# %% [markdown] exercise="15.ages" title="Holes in what a stack sees" minutes=10 points=2 difficulty=2
# A causal convolution of width 3 and gap 4 reads the tokens that are 0, 4 and 8 tokens old.
# A stack of such layers is a list of pairs (width, gap).
# Its receptive field can have holes.
# Return the ages on which an output of the whole stack depends, as a list in ascending order; the token itself has the age 0.
#
# For example, `[(2, 4), (2, 4)]` sees `[0, 4, 8]`.
# An empty stack sees `[0]`.
#
# <details><summary>Hint</summary>
#
# Go through the layers from the output down.
# If some tokens of a layer's output are needed, which tokens of its input are?
#
# </details>

# %% tags=["solution"]
def ages(layers):
    """The ages that the stack's output depends on, ascending."""
    ### BEGIN SOLUTION
    seen = {0}
    for width, gap in layers:
        seen = {age + place * gap for age in seen for place in range(width)}
    return sorted(seen)
    ### END SOLUTION


# %% tags=["check"]
check("15.ages", ages)

# %% [markdown] exercise="15.dilated" title="A window with gaps" minutes=12 points=3 difficulty=2
# Here is such a layer, in loops over sentences, tokens and places of the window.
# `x` is (batch, length, d_in), `weight` is (width, d_in, d_out).
# The *last* matrix of `weight` belongs to the token itself, the one before it to the token that is `gap` tokens old, and so on.
# Before the first token there is nothing, which counts as zeros.

# %% tags=["specification"]
def slow_dilated(x, weight, gap):
    """A causal convolution whose window has gaps, (batch, length, d_out)."""
    output = x.new_zeros(x.size(0), x.size(1), weight.size(2))
    for sentence in range(x.size(0)):
        for t in range(x.size(1)):
            for place in range(weight.size(0)):
                age = (weight.size(0) - 1 - place) * gap
                if age <= t:
                    output[sentence, t] += x[sentence, t - age] @ weight[place]
    return output


# %% [markdown]
# Write the same without a loop and without PyTorch's convolutions.
#
# <details><summary>Hint</summary>
#
# With enough zeros before the text, every token has a whole window.
# Either `unfold` the windows and keep every gap-th token of them, or compute a table of positions (length, width) and index with it.
#
# </details>

# %% tags=["solution"]
def dilated(x, weight, gap):
    """A causal convolution whose window has gaps, (batch, length, d_out)."""
    ### BEGIN SOLUTION
    reach = (weight.size(0) - 1) * gap
    padded = torch.cat([x.new_zeros(x.size(0), reach, x.size(2)), x], dim=1)
    windows = padded.unfold(1, reach + 1, 1)[..., ::gap]  # (batch, length, d_in, width)
    return torch.einsum("blik,kio->blo", windows, weight)
    ### END SOLUTION


# %% tags=["check"]
check("15.dilated", dilated)

# %% [markdown] exercise="15.chunk" title="A long text, chunk by chunk" minutes=15 points=3 difficulty=3
# A text of a million tokens does not fit into memory, so a state-space model reads it in chunks.
# It gets each chunk together with the state after the chunk before.
# In this exercise all numbers are real: each feature has some hands that shrink with every token, and none of them turns.
#
# `x` is (batch, length, d_model), `state` is (batch, d_model, hands), `a` and `weights` are (d_model, hands), with 0 < a < 1.
# This is the specification, token by token.

# %% tags=["specification"]
def slow_chunk(x, state, a, weights):
    """Outputs (batch, length, d_model), and the state after the last token (batch, d_model, hands)."""
    outputs = torch.zeros_like(x)
    for t in range(x.size(1)):
        state = a * state + x[:, t, :, None]
        outputs[:, t] = (weights * state).sum(dim=-1)
    return outputs, state


# %% [markdown]
# Write it without a loop, all tokens of the chunk at once.
# A Fourier transform is not needed: chunks are short, so a table over pairs of tokens will do.
# No chunk is empty.
#
# <details><summary>Hint</summary>
#
# What is left of token s at token t ≥ s? And what at t < s?
# What is left, at token t, of the state that came in? It has shrunk once already at token 0.
#
# </details>

# %% tags=["solution"]
def chunk(x, state, a, weights):
    """Outputs (batch, length, d_model), and the state after the last token (batch, d_model, hands)."""
    ### BEGIN SOLUTION
    t = torch.arange(x.size(1), device=x.device)
    age = t[:, None] - t  # (length, length), of token s at token t
    left = a[..., None, None] ** age.clamp(min=0) * (age >= 0)  # (d_model, hands, length, length)
    states = torch.einsum("dhts,bsd->btdh", left, x)
    states = states + state[:, None] * a ** (t + 1)[:, None, None]  # (batch, length, d_model, hands)
    return (weights * states).sum(dim=-1), states[:, -1]
    ### END SOLUTION


# %% tags=["check"]
check("15.chunk", chunk)

# %% [markdown] exercise="15.two_failures" title="In your own words" minutes=8 points=3 difficulty=2
# Two models of equal size answer questions about a fact that was told 40 tokens before.
# One is a stack of convolutions without gaps, two layers of width 9; the other is a GRU.
# After an hour of training both still guess.
#
# Train both for ten times as long: what do you expect of each, and why?
# Which one measurement on the *untrained* models tells the two failures apart?
# Name a remedy for each that leaves its kind of layer in place.
# Four or five sentences.

# %% [markdown] tags=["answer"]
# The convolutions will go on guessing: two layers of width 9 see 16 tokens back, so a fact that is 40 tokens old does not get into the answer at all.
# The GRU may learn it: its state can carry the fact, and the training only lacks a clear gradient, because that fades a little with every token on the way back.
# The gradient of the last output with respect to the token 40 positions before tells them apart: for the convolutions it is exactly 0, for the GRU it is small and not 0.
# The stack needs more layers, wider windows or growing gaps, so that its receptive field reaches 40 tokens; five layers of width 9 do.
# The GRU needs an update gate that is open at the start (a bias), or more training, perhaps on short distances first.
#
# === BEGIN MARK SCHEME ===
# 1 point: the convolutions cannot (receptive field 16 < 40), the GRU can and learns slowly because its gradient fades.
# 1 point: gradient (or change of the output) for the token 40 back in the untrained models: exactly 0 against small.
# 1 point: a remedy for each: layers, width or gaps; gate bias, longer training or shorter distances first.
# === END MARK SCHEME ===
