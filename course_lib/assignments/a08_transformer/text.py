# %% [markdown]
# # Assignment 08 · The Transformer, assembled
#
# The parts are built; here is the whole: where its time goes, both ends of the shared matrix, the next token, and what its layers compute while it runs.
# Each exercise ends with a cell that checks your answer at once and says what is wrong with it.
#
# **You need** lesson [08](../../../08_transformer.ipynb).
# Names and shapes are the lesson's: `src` is (batch, src_len), `tgt_in` is (batch, tgt_len), `hidden` is the decoder's output, (batch, tgt_len, d_model).
# `table` is the shared matrix, (vocab, d_model): row *i* belongs to the token with the id *i*.
#
# Tensors in the tests may be on any device, and in float32 or float64.
# Make new ones where the given ones are: `hidden.new_zeros(...)`; and take plain numbers (`math.sqrt`), because `torch.tensor` of a number is float32.

# %%
import math

import torch

from course_lib.assignments import check

PAD_ID, BOS_ID = 0, 1  # of <pad> and <s>

# %% [markdown] exercise="08.trace" title="Where does the time go?" minutes=12 points=3 difficulty=2
# A profiler notes for each operation when it began and how long it took. PyTorch's writes this as a *trace*, which browsers draw:
#
# ```python
# with torch.profiler.profile() as run:
#     model(src, tgt_in)
# run.export_chrome_trace("trace.json")
# events = [event for event in json.load(open("trace.json"))["traceEvents"] if "cat" in event]
# ```
#
# `events` is a list of dicts, in no particular order. Each has a `"name"`, a category `"cat"`, a thread `"tid"`, a beginning `"ts"` and a duration `"dur"`, both in whole microseconds here.
# Only the category `"cpu_op"` is of interest.
#
# Operations call others: `aten::linear` calls `aten::addmm`, which lies within it, on the same thread. So durations add up to more than the run.
# What counts is an operation's time *of its own*: its duration, less that of the operations that it called itself.
# An operation was called by the shortest of the longer ones that it lies within, on its thread. Both may begin or end together, and have the same name. What begins when another operation ends is not within it.
#
# ```text
# aten::linear   0 ─────────────────────── 10     10 − 2 − 6 = 2 of its own
# aten::t          1 ── 3                         2
# aten::addmm            4 ────────── 10          6 − 1 = 5
# aten::copy_              5 ─ 6                  1
# ```
#
# Return a dict from each name to the time of its own, added up over all calls and threads.
#
# <details><summary>Hint</summary>
#
# Go through them in the order in which they began, and keep a list of those still open: which of them has called the next one?
#
# </details>

# %% tags=["solution"]
def own_times(events):
    """From the name of each operation to the microseconds that it took without those that it called."""
    ### BEGIN SOLUTION
    times, threads = {}, {}
    operations = [event for event in events if event["cat"] == "cpu_op"]
    for event in sorted(operations, key=lambda event: (event["ts"], -event["dur"])):
        running = threads.setdefault(event["tid"], [])
        while running and running[-1]["ts"] + running[-1]["dur"] <= event["ts"]:
            running.pop()
        if running:
            times[running[-1]["name"]] -= event["dur"]
        times[event["name"]] = times.get(event["name"], 0) + event["dur"]
        running.append(event)
    return times
    ### END SOLUTION


# %% tags=["check"]
check("08.trace", own_times)

# %% [markdown] exercise="08.ends" title="Find the mistake" minutes=8 points=2 difficulty=2
# Here are both ends of a model with one shared matrix: tokens go in, logits come out.
# All shapes fit, and the model trains.
# But its first loss is several times what guessing evenly would cost.
# Find the mistake, and repair it.
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
# The sentences have different lengths, so most of them end in padding. What the decoder outputs there is of no use.
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

# %% [markdown] exercise="08.record" title="Listen to a model" minutes=14 points=3 difficulty=3
# How do the lessons get attention weights out of a model that returns logits?
# A module can be given a *forward hook*: a function that PyTorch calls after each call of the module, with the module, its inputs and its output.
#
# ```python
# handle = module.register_forward_hook(lambda module, inputs, output: print(output))  # until handle.remove()
# ```
#
# Write a function that records the attention of any model.
# `kind` is a class. Its modules, and those of classes derived from it, return a pair, (context, weights), and may lie at any depth.
#
# - Run `model(x)` once, and return a dict: from the name of each module of this kind, as `named_modules` has it, to the list of the weights of its calls, in their order.
#   A module may be called several times; one that is never called has an empty list.
# - Keep only the weights, detached: a record must not hold a graph for gradients.
# - Leave the model as it was, with no hook on it, in the mode it was in, even if `model(x)` raises an error. The caller must get the error.
#
# <details><summary>Hint</summary>
#
# A function made in a loop looks the loop's variables up when it is *called*, and by then the loop is over. A default value is looked up when the function is made.
#
# </details>

# %% tags=["solution"]
def record(model, kind, x):
    """From the name of each module of this kind to the weights of its calls, one tensor for each."""
    ### BEGIN SOLUTION
    found, handles = {}, []
    for name, module in model.named_modules():
        if isinstance(module, kind):
            found[name] = []

            def keep(module, inputs, output, name=name):
                found[name].append(output[1].detach())

            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found
    ### END SOLUTION


# %% tags=["check"]
check("08.record", record)

# %% [markdown] exercise="08.costs" title="Predict, then check" minutes=8 points=2 difficulty=1
# Parameters, FLOPs and memory, each by one formula of the lesson.
# Predict on paper; a factor of 1 says that nothing changes.
#
# 1. The heads go from 8 to 16, at the same d_model: by which factor do the parameters of attention change?
# 2. d_model and d_ff are both doubled: by which factor do the matrices of a feed-forward network grow?
# 3. The sentences are twice as long: by which factor do the FLOPs of the feed-forward networks grow?
# 4. The sentences are twice as long: by which factor do the FLOPs of scores and weighted values in self-attention grow?
# 5. At which length do the FLOPs of question 4 equal those of the four projections, if d_model is 256?
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
