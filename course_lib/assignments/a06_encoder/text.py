# %% [markdown]
# # Assignment 06 · The encoder
#
# You repair a layer norm, put an encoder layer together in both orders, and look into the feed-forward network.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [06](../../../06_encoder.ipynb).
# Names and shapes are the lesson's: `x` is (batch, src_len, d_model), `scale` and `shift` are (d_model,).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `x.new_zeros(...)`; and take plain numbers, because `torch.tensor` of a number is float32.

# %%
import torch

from course_lib.assignments import check

# %% [markdown] exercise="06.reach" title="Predict, then check" minutes=6 points=2 difficulty=1
# A sentence of six tokens goes through one sub-layer or one norm, without a residual or dropout around it.
# Then the vector of the *third* token is replaced by another one, and the same part runs again.
# At how many of the six positions does the output change?
# Predict the six numbers on paper, without running anything.
#
# 1. A feed-forward network.
# 2. Self-attention without a mask.
# 3. Self-attention with the causal mask: each position sees itself and those before it.
# 4. A layer norm.
# 5. A layer norm by mistake over the positions (`dim=-2`).
# 6. A layer norm with ε = 0, where the third vector, x, is replaced by 3 x + 5.

# %% tags=["planted"]
prediction = {
    "feed-forward network": None,
    "self-attention": None,
    "self-attention with the causal mask": None,
    "layer norm": None,
    "layer norm over the positions": None,
    "layer norm with ε = 0, from x to 3 x + 5": None,
}

# %% tags=["solution"]
prediction = {
    "feed-forward network": 1,
    "self-attention": 6,
    "self-attention with the causal mask": 4,
    "layer norm": 1,
    "layer norm over the positions": 6,
    "layer norm with ε = 0, from x to 3 x + 5": 0,
}

# %% tags=["check"]
check("06.reach", prediction)

# %% [markdown] exercise="06.layer_norm" title="Find the mistakes" minutes=10 points=3 difficulty=2
# This layer norm stands in popular code, and models were trained with it.
# But it is not the layer norm of the lesson: there are *two* mistakes in it.
# With many features and a small ε the results are nearly the same, so the mistakes go unnoticed.
# Find both, and repair them.
#
# `x` is (..., d_model), with one or more dimensions before the last.
# `eps` is the lesson's ε.
# The result has the shape of `x`.
# The tests have few features, an ε of up to 0.1, and tokens whose features are all equal.
#
# <details><summary>Hint</summary>
#
# Take a token of two features, 1 and 3, and an ε of 0.
# What should come out, and what does?
#
# </details>

# %% tags=["planted"]
def layer_norm(x, scale, shift, eps=1e-6):
    """Each token's features with mean 0 and variance 1, then scaled and shifted."""
    mean = x.mean(dim=-1, keepdim=True)
    std = x.std(dim=-1, keepdim=True)
    return scale * (x - mean) / (std + eps) + shift


# %% tags=["solution"]
def layer_norm(x, scale, shift, eps=1e-6):
    """Each token's features with mean 0 and variance 1, then scaled and shifted."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return scale * (x - mean) / torch.sqrt(variance + eps) + shift


# %% tags=["check"]
check("06.layer_norm", layer_norm)

# %% [markdown] exercise="06.encoder_layer" title="One layer, two orders" minutes=12 points=3 difficulty=2
# Write one encoder layer from finished parts.
# Each part is a function from (batch, src_len, d_model) to the same shape:
#
# - `self_attn` and `feed_forward` are the sub-layers, in this order;
# - `norms` is a pair: the norm on the path around the attention, and the one on the path around the feed-forward network;
# - `dropout` stands where section 5.4 of the paper puts it.
#   To make it visible, the tests' dropout is not random: it always drops the same features.
#
# `norm_first=False` is the paper's post-norm, `norm_first=True` is pre-norm.
# Return (batch, src_len, d_model), and leave the given `x` as it is.
#
# <details><summary>Hint</summary>
#
# Write the path around one sub-layer as a function of its own, for both orders; then a layer is two calls.
#
# </details>

# %% tags=["solution"]
def encoder_layer(x, self_attn, feed_forward, norms, dropout, norm_first):
    """x (batch, src_len, d_model) to the layer's output, of the same shape."""
    ### BEGIN SOLUTION
    for sublayer, norm in zip((self_attn, feed_forward), norms, strict=True):
        if norm_first:
            x = x + dropout(sublayer(norm(x)))
        else:
            x = norm(x + dropout(sublayer(x)))
    return x
    ### END SOLUTION


# %% tags=["check"]
check("06.encoder_layer", encoder_layer)

# %% [markdown] exercise="06.parameters" title="What does an encoder cost?" minutes=10 points=2 difficulty=2
# Count the parameters of an encoder from its sizes alone, as an `int`.
# It is the encoder of the lesson:
#
# - every projection of the attention and both matrices of the feed-forward network have a bias;
# - every norm has a scale and a shift;
# - the layers share nothing;
# - pre-norm (`norm_first=True`) has one more norm, behind the stack;
# - the embedding does not belong to it.
#
# The function gets all sizes, whether the count depends on them or not.
# `num_heads` divides `d_model`; `d_ff` can be any number.

# %% tags=["solution"]
def parameters(d_model, num_heads, d_ff, num_layers, norm_first):
    """Number of parameters of the encoder's layers, and of the norm behind them."""
    ### BEGIN SOLUTION
    norm = 2 * d_model
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    return num_layers * (attention + feed_forward + 2 * norm) + (norm if norm_first else 0)
    ### END SOLUTION


# %% tags=["check"]
check("06.parameters", parameters)

# %% [markdown] exercise="06.token_matrices" title="A matrix for each token" minutes=14 points=3 difficulty=3
# The lesson found that the ReLU gives each token a matrix of its own, made of the hidden units that are on for it.
# So for each token the feed-forward network is `x @ matrix + bias`.
# This is the specification, one token and one unit at a time.
# `w1` is (d_model, d_ff), `b1` (d_ff,), `w2` (d_ff, d_model) and `b2` (d_model,).

# %% tags=["specification"]
def slow_token_matrices(x, w1, b1, w2, b2):
    """Matrices (batch, src_len, d_model, d_model) and biases (batch, src_len, d_model)."""
    matrices = x.new_zeros(*x.shape, x.size(-1))
    biases = torch.zeros_like(x)
    for sentence in range(x.size(0)):
        for position in range(x.size(1)):
            biases[sentence, position] = b2
            for unit in range(b1.size(0)):
                total = x[sentence, position] @ w1[:, unit] + b1[unit]
                if total > 0:  # a unit whose sum is exactly 0 is off
                    matrices[sentence, position] += torch.outer(w1[:, unit], w2[unit])
                    biases[sentence, position] += b1[unit] * w2[unit]
    return matrices, biases


# %% [markdown]
# Write the same without a loop.
# The tests also have units whose sum is exactly 0.
#
# <details><summary>Hint</summary>
#
# Which units are on is a table of zeros and ones, (batch, src_len, d_ff).
# Each row of the table keeps some of the columns of W₁ and turns the others into zeros.
#
# </details>

# %% tags=["solution"]
def token_matrices(x, w1, b1, w2, b2):
    """Matrices (batch, src_len, d_model, d_model) and biases (batch, src_len, d_model)."""
    ### BEGIN SOLUTION
    on = (x @ w1 + b1 > 0).to(x.dtype)  # (batch, src_len, d_ff)
    matrices = (on.unsqueeze(-2) * w1) @ w2  # (batch, src_len, d_model, d_model)
    return matrices, (on * b1) @ w2 + b2
    ### END SOLUTION


# %% tags=["check"]
check("06.token_matrices", token_matrices)

# %% [markdown] exercise="06.residuals" title="In your own words" minutes=8 points=3 difficulty=2
# Somebody builds eight pre-norm encoder layers and leaves out the residuals: x becomes Sublayer(LayerNorm(x)).
# Before training, a healthy gradient reaches the bottom of the stack.
# After training, the loss is still that of guessing by frequency, without a look at the sentence.
#
# What has become of the tokens' vectors, and which sub-layer does that?
# What do residuals change about it?
# And what would the gradient look like if the norms were missing too?
# Four or five sentences.

# %% [markdown] tags=["answer"]
# All tokens of a sentence have nearly the same vector at the top, so the model has one answer for all of them, and the best single answer is the frequencies.
# Attention does it: it replaces each token by an average over all tokens, and averages of averages soon agree; a feed-forward network alone leaves the tokens apart.
# A residual carries each token's own vector past every sub-layer, and a sub-layer only adds to it.
# On the way back it hands the gradient on unchanged, besides what goes through the sub-layer.
# Without the norms too, every layer makes the gradient smaller, and hardly any of it reaches the bottom.
#
# === BEGIN MARK SCHEME ===
# 1 point: the tokens become (nearly) the same vector, and it is attention that averages them.
# 1 point: the residual keeps each token's own vector (x stays in the sum), or learns only the difference to it.
# 1 point: without norms and residuals the gradient vanishes toward the bottom.
# === END MARK SCHEME ===
