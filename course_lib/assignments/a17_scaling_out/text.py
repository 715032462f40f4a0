# %% [markdown]
# # Assignment 17 · Scaling out
#
# You divide a layer and a sum among processes, and plan a training: its seconds, and its size.
# No second process is needed: where there are ranks, one notebook plays all of them, so that each can be seen.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [17](../../../17_scaling_out.ipynb).
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `x.new_zeros(...)` or `torch.arange(..., device=x.device)`.

# %%
import torch

from course_lib.assignments import check

# %% [markdown] exercise="17.numbers" title="Predict, then check" minutes=9 points=2 difficulty=1
# Seven numbers to predict on paper.
#
# 1. One process has 10 target tokens with a mean loss of 4.0, another one has 30 with a mean loss of 2.0. What is the loss of the whole batch?
# 2. And what is the mean of the means?
# 3. One device takes 10 hours, and its serial share is 0.1. What is the speed-up of 9 devices?
# 4. For how many device-hours do you pay with these 9 devices?
# 5. A model has one billion parameters, in float32, and is trained with Adam. How many GB of weights, gradients and moments does each of 8 fully sharded processes keep?
# 6. Somebody has four times as many FLOPs, and lets parameters and tokens grow by the same factor. Which factor?
# 7. A cluster has 1,000 devices, and each breaks once in 1,000 days, on average. After each failure all of them repeat the work since the last checkpoint, which is half an hour old on average. How many device-hours are lost in a day?

# %% tags=["planted"]
prediction = {
    "loss of the batch": None,
    "mean of the means": None,
    "speed-up": None,
    "device-hours": None,
    "GB in each process": None,
    "growth of the parameters": None,
    "lost device-hours": None,
}

# %% tags=["solution"]
prediction = {
    "loss of the batch": 2.5,
    "mean of the means": 3.0,
    "speed-up": 5.0,
    "device-hours": 18.0,
    "GB in each process": 2.0,
    "growth of the parameters": 2,
    "lost device-hours": 500,
}

# %% tags=["check"]
check("17.numbers", prediction)

# %% [markdown] exercise="17.parts" title="Find the mistakes" minutes=12 points=3 difficulty=2
# Data parallelism divides the batch.
# **Tensor parallelism** divides a layer: every rank has the whole of `x` and a part of the weights, computes a part of the output, and an all-reduce adds the parts up.
#
# The function below is meant to be the feed-forward network relu(x W₁ + b₁) W₂ + b₂, with *one* all-reduce at its end, and its hidden units divided among the ranks: of `d_ff` units, rank 0 has the first `d_ff / world_size`, rank 1 those behind them, and so on.
# It returns what each rank sends into the all-reduce.
# Where something must be added once only, rank 0 does it.
#
# There are *two* mistakes in it: the sum of the parts is not the network's output.
# Find both, and repair them.
#
# `x` is (batch, length, d_model), `w1` (d_model, d_ff), `b1` (d_ff,), `w2` (d_ff, d_model), `b2` (d_model,).
# `world_size` divides `d_model` and `d_ff`.
#
# <details><summary>Hint</summary>
#
# A ReLU of a sum is not the sum of ReLUs.
# How must W₁ be cut, so that each rank has the *finished* sums of some units?
#
# </details>

# %% tags=["planted"]
def parts(x, w1, b1, w2, b2, world_size):
    """What each rank sends into the all-reduce, (world_size, batch, length, d_model)."""
    sent = []
    for rank in range(world_size):
        own_x, own_w1 = x.chunk(world_size, dim=-1)[rank], w1.chunk(world_size, dim=0)[rank]
        hidden = torch.relu(own_x @ own_w1 + b1)
        sent.append(hidden @ w2 + b2)
    return torch.stack(sent)


# %% tags=["solution"]
def parts(x, w1, b1, w2, b2, world_size):
    """What each rank sends into the all-reduce, (world_size, batch, length, d_model)."""
    sent = []
    for rank in range(world_size):
        own_w1, own_b1 = w1.chunk(world_size, dim=1)[rank], b1.chunk(world_size)[rank]
        own_w2 = w2.chunk(world_size, dim=0)[rank]
        hidden = torch.relu(x @ own_w1 + own_b1)
        sent.append(hidden @ own_w2 + (b2 if rank == 0 else 0))
    return torch.stack(sent)


# %% tags=["check"]
check("17.parts", parts)

# %% [markdown] exercise="17.ring" title="A sum goes round" minutes=15 points=3 difficulty=3
# How do n ranks add up their gradients, if each talks only to its neighbor?
# The **ring all-reduce** cuts the gradients of every rank into n chunks.
# In each step every rank sends *one* chunk to the next rank, and the last rank sends to the first.
#
# - First round, n − 1 steps: what arrives is *added* to the own chunk of that number. After it, each rank has one chunk that is finished.
# - Second round, n − 1 steps: what arrives *replaces* the own chunk. After it, everyone has everything.
#
# In step 0 rank r sends chunk r, and in each further step the chunk before that, r − 1, r − 2, …, counted in a circle.
#
# `values` is (ranks, chunks, size), with as many chunks as ranks, and at least two.
# This is the specification; it keeps what everybody holds after each step.

# %% tags=["specification"]
def slow_ring(values):
    """What all ranks hold after each step, (steps, ranks, chunks, size)."""
    number = values.size(0)
    held, states = values.clone(), []
    for step in range(2 * (number - 1)):
        before = held.clone()
        for rank in range(number):
            chunk, receiver = (rank - step) % number, (rank + 1) % number
            if step < number - 1:
                held[receiver, chunk] += before[rank, chunk]
            else:
                held[receiver, chunk] = before[rank, chunk]
        states.append(held.clone())
    return torch.stack(states)


# %% [markdown]
# Write the same without the loop over ranks; the loop over steps stays.
#
# <details><summary>Hint</summary>
#
# Think from the receiver: which chunk *arrives* at rank r, and from where?
# That is a tensor with one number for each rank, and `held[rank, chunk]` with two such tensors is (ranks, size).
#
# </details>

# %% tags=["solution"]
def ring(values):
    """What all ranks hold after each step, (steps, ranks, chunks, size)."""
    ### BEGIN SOLUTION
    number = values.size(0)
    rank = torch.arange(number, device=values.device)
    held, states = values, []
    for step in range(2 * (number - 1)):
        chunk = (rank - 1 - step) % number  # what arrives at each rank
        arrived = held[rank - 1, chunk]  # (ranks, size)
        if step < number - 1:
            arrived = arrived + held[rank, chunk]
        held = held.index_put((rank, chunk), arrived)
        states.append(held)
    return torch.stack(states)
    ### END SOLUTION


# %% tags=["check"]
check("17.ring", ring)

# %% [markdown] exercise="17.step" title="Who waits for whom?" minutes=10 points=2 difficulty=2
# How long does one step of data parallelism take?
# Compute it from a few numbers, by these rules:
#
# - A token costs 6 operations for each parameter, 2 of them in the forward pass and 4 in the backward pass. `tokens` are those of the whole batch, which is divided evenly among the devices.
# - Each device does `peak` · `utilization` operations a second while it computes.
# - Gradients are exchanged by a ring all-reduce, as in the exercise before, 4 bytes for each parameter. A device sends `bandwidth` bytes a second, and all devices send at the same time.
# - The exchange hides behind the backward pass: it begins with it, and the step is over when both are.
#
# Return a dict of four floats: the seconds of `"compute"` (forward and backward), of `"exchange"` and of the whole `"step"`; and the `"utilization"` that is left, the operations done in a step, divided by what all devices could have done at their peak in that time.
#
# <details><summary>Hint</summary>
#
# In a ring of n devices, each one sends a chunk of 1/n of the gradients in each step. How many steps are there?
#
# </details>

# %% tags=["solution"]
def step_seconds(parameters, tokens, devices, peak, utilization, bandwidth):
    """Seconds of "compute", "exchange" and "step", and the "utilization" that is left."""
    ### BEGIN SOLUTION
    compute = 6 * parameters * tokens / (devices * peak * utilization)
    exchange = 2 * (devices - 1) / devices * 4 * parameters / bandwidth
    step = compute / 3 + max(2 * compute / 3, exchange)
    left = utilization * compute / step
    return {"compute": compute, "exchange": exchange, "step": step, "utilization": left}
    ### END SOLUTION


# %% tags=["check"]
check("17.step", step_seconds)

# %% [markdown] exercise="17.budget" title="How large, and how long?" minutes=14 points=3 difficulty=3
# A budget of FLOPs can go into a larger model or into more tokens.
# Many trainings of language models were measured [(Hoffmann et al. 2022)](https://arxiv.org/abs/2203.15556), and this curve was fitted to their losses, with N parameters and D tokens:
#
# $$L(N, D) = e + \frac{a}{N^\alpha} + \frac{b}{D^\beta}$$
#
# A training takes about 6 N D operations.
# Return the number of parameters with the smallest loss for a budget of `flops`, the number of tokens that the budget then pays for, and the loss; three floats, not rounded.
# All inputs are positive.
#
# <details><summary>Hint</summary>
#
# Put D = flops / (6 N) into the formula. Where is the derivative with respect to N zero?
# At the best place the two terms are not equal, but α times the one is β times the other.
#
# </details>

# %% tags=["solution"]
def best_size(flops, e, a, b, alpha, beta):
    """Parameters, tokens and loss of the best training for a budget."""
    ### BEGIN SOLUTION
    work = flops / 6  # parameters · tokens
    ratio = (alpha * a) / (beta * b)
    parameters = ratio ** (1 / (alpha + beta)) * work ** (beta / (alpha + beta))
    tokens = work / parameters
    return parameters, tokens, e + a / parameters**alpha + b / tokens**beta
    ### END SOLUTION


# %% tags=["check"]
check("17.budget", best_size)

# %% [markdown] exercise="17.eight" title="In your own words" minutes=8 points=3 difficulty=2
# Somebody trains on one GPU, 20 epochs with batches of 4,000 target tokens, and gets 30 BLEU.
# With eight GPUs and batches of 4,000 *for each* of them, 20 epochs take a sixth of the time, and give 24 BLEU.
# "The gradients must be averaged in a wrong way", says a colleague.
#
# Which test would show whether they are?
# If they are right, what has changed, and what would you try in order to get the 30 BLEU back?
# And where may the rest of the factor 8 have gone?
# Four or five sentences.

# %% [markdown] tags=["answer"]
# Take one batch, in float64 and without dropout, and compare the averaged gradient of eight processes with the gradient of the whole batch in one process: they must agree up to rounding, with shares of different length too.
# If they do, the training is another one: a batch is now eight times as large, so 20 epochs have only an eighth of the optimizer's steps.
# First of all I would train for more steps, or divide the old batch by eight (500 tokens for each GPU), which is the old training again; or choose a larger learning rate and another warm-up for the large batch, by validation.
# If that does not help, the batch may be too large to save steps.
# The speed-up is 6 and not 8, as some work is not divided (every process steps the optimizer and makes batches), and processes wait for the exchange and for the longest share.
#
# === BEGIN MARK SCHEME ===
# 1 point: compares gradients (or weights after a step) of one batch with those of one process; in float64, or says up to rounding.
# 1 point: the batch is eight times as large, an eighth of the steps; more steps, a smaller share, or another learning rate.
# 1 point: serial share (optimizer, data), exchange, or waiting for the slowest.
# === END MARK SCHEME ===
