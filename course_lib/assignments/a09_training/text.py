# %% [markdown]
# # Assignment 09 · Training
#
# One training step, from the loss to the weights, with nothing left to a library.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [09](../../../09_training.ipynb).
# Names and shapes are the lesson's: `logits` is (batch, tgt_len, vocab), `tgt_out` is (batch, tgt_len), padded on the right with `PAD_ID`.
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `logits.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import torch

from course_lib.assignments import check

PAD_ID = 0
BETA1, BETA2, EPS = 0.9, 0.98, 1e-9  # the paper's Adam

# %% [markdown] exercise="09.loss" title="From loops to tensors: the other smoothing" minutes=12 points=3 difficulty=2
# PyTorch and the lesson spread ε over the whole vocabulary, the true subword included.
# The paper's own program spreads it over the *other* subwords only: the true one gets 1 − ε, and each of the other vocab − 1 gets an equal share of ε.
# This is the specification.

# %% tags=["specification"]
def slow_loss(logits, tgt_out, smoothing):
    """Mean cross-entropy in nats a token, over real tokens, to labels smoothed over the other subwords."""
    total, tokens = 0.0, 0
    for log_probs, ids in zip(logits.log_softmax(dim=-1), tgt_out.tolist(), strict=True):
        for place, true in enumerate(ids):
            if true == PAD_ID:
                continue
            tokens += 1
            for subword, log_prob in enumerate(log_probs[place]):
                others = len(log_probs[place]) - 1
                wanted = 1 - smoothing if subword == true else smoothing / others
                total -= wanted * log_prob
    return total / tokens


# %% [markdown]
# Write the same without a loop, and without PyTorch's finished losses; `log_softmax` is allowed.
# Return a tensor without dimensions.
# `smoothing` may be 0, `<pad>` is one of the other subwords, and there is at least one real token.
# The logits at one position may lie several hundred apart; the loss is then large, but finite.
#
# <details><summary>Hint</summary>
#
# The sum over the other subwords is the sum over all subwords, minus the true one's.
#
# </details>

# %% tags=["solution"]
def smoothed_loss(logits, tgt_out, smoothing):
    """Mean cross-entropy in nats a token, over real tokens, to labels smoothed over the other subwords."""
    ### BEGIN SOLUTION
    log_probs = logits.log_softmax(dim=-1)  # (batch, tgt_len, vocab)
    true = log_probs.gather(-1, tgt_out.unsqueeze(-1)).squeeze(-1)  # (batch, tgt_len)
    others = (log_probs.sum(dim=-1) - true) / (logits.size(-1) - 1)
    real = tgt_out != PAD_ID
    each = -(1 - smoothing) * true - smoothing * others
    return (each * real).sum() / real.sum()
    ### END SOLUTION


# %% tags=["check"]
check("09.loss", smoothed_loss)

# %% [markdown] exercise="09.adam" title="From the formula: a step of Adam" minutes=12 points=3 difficulty=2
# The lesson moved single numbers; now whole tensors, with the decoupled weight decay that the lesson only described.
# With the gradient $g$ of step $t$, which counts from 1, and all operations elementwise:
#
# $$m_t = \beta_1 m_{t-1} + (1 - \beta_1)\, g \qquad v_t = \beta_2 v_{t-1} + (1 - \beta_2)\, g^2$$
#
# $$\hat m = \frac{m_t}{1 - \beta_1^t} \qquad \hat v = \frac{v_t}{1 - \beta_2^t} \qquad
# w_t = w_{t-1} - \text{lr} \cdot \text{decay} \cdot w_{t-1} - \text{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \varepsilon}$$
#
# `weight`, `gradient`, `m` and `v` have the same shape, of any number of dimensions, and every shape decays.
# `step`, `lr` and `decay` are plain numbers; `decay` may be 0.
# Return the new weight, the new m and the new v, the last two as the next step needs them.
# β₁, β₂ and ε are `BETA1`, `BETA2` and `EPS`.
# Gradients may be as small as 10⁻⁶ and as large as 10³.

# %% tags=["solution"]
def adam_step(weight, gradient, m, v, step, lr, decay):
    """The new weight, m and v after one step of Adam with decoupled weight decay."""
    ### BEGIN SOLUTION
    m = BETA1 * m + (1 - BETA1) * gradient
    v = BETA2 * v + (1 - BETA2) * gradient**2
    m_corrected = m / (1 - BETA1**step)
    v_corrected = v / (1 - BETA2**step)
    move = m_corrected / (v_corrected.sqrt() + EPS)
    return weight - lr * decay * weight - lr * move, m, v
    ### END SOLUTION


# %% tags=["check"]
check("09.adam", adam_step)

# %% [markdown] exercise="09.clip" title="Find the mistake" minutes=8 points=2 difficulty=2
# Popular code clips like this, and calls it clipping by the norm.
# With a single tensor it is right, so a test with one tensor passes.
# With the gradients of a whole model it is not what the lesson does.
# Find the mistake, and repair it.
#
# `gradients` is a list of tensors of different shapes, one for each parameter of the model.
# `longest` is the largest norm allowed, above 0.
# Return a list of new tensors.
# If the gradient of the whole model is short enough, or 0, it stays as it is.
#
# <details><summary>Hint</summary>
#
# Take two parameters of one number each, with the gradients 3 and 4, and clip to 1.
# Does the gradient still point in the same direction?
#
# </details>

# %% tags=["planted"]
def clip(gradients, longest):
    """The gradient of the whole model, shortened to a largest norm; its direction stays."""
    clipped = []
    for gradient in gradients:
        factor = min(1.0, longest / gradient.norm())
        clipped.append(gradient * factor)
    return clipped


# %% tags=["solution"]
def clip(gradients, longest):
    """The gradient of the whole model, shortened to a largest norm; its direction stays."""
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    factor = min(1.0, longest / norm)
    return [gradient * factor for gradient in gradients]


# %% tags=["check"]
check("09.clip", clip)

# %% [markdown] exercise="09.accumulate" title="A large batch in small pieces" minutes=12 points=3 difficulty=2
# Here is one epoch of plain gradient descent.
# Each step takes n micro-batches as one large batch, and the last step what is left.
# `gradient_of` gives the gradient of the loss *summed* over a micro-batch, and its number of tokens.

# %%
def gradient_of(weight, micro_batch):
    """Gradient (vocab, d_model) of the summed cross-entropy of `hidden @ weight.T`, and the number of tokens."""
    hidden, true = micro_batch  # (tokens, d_model) and (tokens,)
    wanted = true.unsqueeze(1) == torch.arange(len(weight))  # (tokens, vocab)
    return ((hidden @ weight.T).softmax(dim=-1) - wanted.float()).T @ hidden, len(true)


def epoch_of_large_batches(weight, micro_batches, n, lr, gradient_of):
    """The weights after each step."""
    weights = []
    for start in range(0, len(micro_batches), n):
        hidden, true = zip(*micro_batches[start : start + n], strict=True)
        gradient, tokens = gradient_of(weight, (torch.cat(hidden), torch.cat(true)))
        weight = weight - lr * gradient / tokens
        weights.append(weight)
    return weights


# %% [markdown]
# Suppose that the large batch does not fit into memory.
# Write a function that returns the same weights, but gives `gradient_of` one micro-batch at a time.
#
# Micro-batches have different numbers of tokens.
# The number of micro-batches need not be divisible by n, and may be smaller than n.
# Return a list of tensors, one for each step.
# The check brings its own `gradient_of`, which refuses anything larger than the largest micro-batch.
#
# <details><summary>Hint</summary>
#
# What must be added up over the micro-batches of a step? There are two things.
# When is it time for a step, and what has to happen after it?
#
# </details>

# %% tags=["solution"]
def epoch(weight, micro_batches, n, lr, gradient_of):
    """The weights after each step, one micro-batch at a time."""
    ### BEGIN SOLUTION
    weights, total, tokens = [], 0, 0
    for i, micro_batch in enumerate(micro_batches):
        gradient, count = gradient_of(weight, micro_batch)
        total, tokens = total + gradient, tokens + count
        if (i + 1) % n == 0 or i + 1 == len(micro_batches):
            weight = weight - lr * total / tokens
            weights.append(weight)
            total, tokens = 0, 0
    return weights
    ### END SOLUTION


# %% tags=["check"]
check("09.accumulate", epoch)

# %% [markdown] exercise="09.numbers" title="Predict, then check" minutes=9 points=2 difficulty=2
# Six numbers to predict by hand; the schedule is the paper's, with warmup_steps = 4000.
#
# 1. The learning rate at step 1,000, divided by the rate at its peak.
# 2. The learning rate at step 16,000, divided by the rate at its peak.
# 3. A model has four times the d_model of another: its peak, divided by the other's.
# 4. A schedule with one wrong letter, $d^{-0.5} \cdot \min(d^{-0.5}, i \cdot w^{-1.5})$ at step i, with d = 512 and w = warmup_steps: its rate at step 40,000, divided by that at 20,000.
# 5. By how many learning rates does Adam's first step move a weight whose gradient is 0.001 (no decay)?
# 6. A model has one weight *w*, and its loss is w². Two checkpoints have w = −1 and w = 3: the loss of their average.

# %% tags=["planted"]
prediction = {
    "rate at 1,000 / peak": None,
    "rate at 16,000 / peak": None,
    "peak, four times as wide": None,
    "mistaken rate at 40,000 / at 20,000": None,
    "first step of Adam": None,
    "loss of the average": None,
}

# %% tags=["solution"]
prediction = {
    "rate at 1,000 / peak": 0.25,
    "rate at 16,000 / peak": 0.5,
    "peak, four times as wide": 0.5,
    "mistaken rate at 40,000 / at 20,000": 1.0,
    "first step of Adam": 1.0,
    "loss of the average": 1.0,
}

# %% tags=["check"]
check("09.numbers", prediction)

# %% [markdown] exercise="09.warmup" title="In your own words" minutes=7 points=2 difficulty=2
# Somebody trains a post-norm Transformer with Adam.
# The learning rate starts at its peak, without a warm-up, and the model does not learn the task.
# A colleague proposes to clip the gradient to a norm of 1.
# What is special about Adam's first step, and why does clipping not change it?
# Name a cure other than a warm-up, and its price.
# Three to five sentences.

# %% [markdown] tags=["answer"]
# In its first step Adam divides each gradient by its own size, so nearly every weight moves by one full learning rate, on the evidence of a single batch.
# Clipping multiplies all gradients by one factor, m and √v get the same factor, and their quotient stays.
# At the peak rate such moves can take a post-norm model to a place where the vectors of all tokens become alike, and from which it hardly learns.
# A smaller learning rate also helps, but then the whole run is slower.
# (Or pre-norm, which at its best rate learned with and without warm-up in the lesson; it is not the paper's model.)
#
# === BEGIN MARK SCHEME ===
# 1 point: the first move is one learning rate, whatever the size of the gradient, so a common factor such as clipping's changes nothing.
# 1 point: a smaller rate or pre-norm (or another cure that works), with its price.
# Half of a point for half of it.
# === END MARK SCHEME ===
