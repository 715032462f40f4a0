# %% [markdown]
# # 14 · Cost and memory: what a model needs, and how it gets by with less
#
# **Question.** A model must fit into memory before it can learn or translate anything. How many bytes does it need, can we know that before we run it, and what does a saved byte cost?
#
# **Afterwards you can**
#
# 1. predict the memory of a training step from the sizes of a model, and measure whether you were right;
# 2. train with less: attention that stores no weights, gradient accumulation, activation checkpointing, bfloat16;
# 3. translate with less: a smaller cache, int8 weights (and what they change in quality and time), and a smaller model that learns from a larger one.
#
# **You need** the whole model and its parameters (lesson [08](08_transformer.ipynb)), a training step ([09](09_training.ipynb)) and the key-value cache ([11](11_decoding.ipynb)).
# **Time**: {minutes} minutes to read, under 120 seconds to run.
# **In the paper**: table 1 gives the complexity of a layer, table 2 the FLOPs of the training [@vaswani2017]. Most of the rest came later.

# %%
import math
import time
from copy import deepcopy
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.config import model_preset
from course_lib.widgets import Predict, Predictions

torch.set_num_threads(1)  # so that times can be compared

# %% [markdown]
# `mini` of lesson [10](10_translation.ipynb), here with 2,000 subwords, has 3.7 MB of weights.
# One training step on 16 short sentence pairs needs about ten times as much.
# What is in the other nine tenths, and what of it can we do without?
#
# Training holds weights, gradients, Adam's moments and activations; translating holds weights, and keys and values of earlier tokens.
# Nearly every saving has its price, in computing, in digits or in quality.
#
# ## What does a step cost?
#
# *Training*: a step runs forward, then backward, and then the optimizer changes the weights.
# FLOPs first: some savings are paid for with them.
# Lesson [08](08_transformer.ipynb) counted the forward pass: two FLOPs for each parameter and token.

# %%
of_backward = Predict(
    "How many times the FLOPs of the forward pass do both passes take together?",
    unit="times",
    section="What does a step cost?",
)
of_backward

# %%
from torch.utils.flop_counter import FlopCounterMode

from course_lib.data import Batch
from course_lib.training import batch_loss
from course_lib.transformer import Transformer


def some_batch(config, pairs, length):
    """Ids in a row; all sentences have one length."""
    ids = torch.arange(2 * pairs * length).view(2, pairs, length)
    src, tgt = ids % (config.vocab_size - 4) + 4
    return Batch(src=src, tgt_in=tgt, tgt_out=tgt)


# %% tags=["nbval-check-output"]
mini = model_preset("mini", vocab_size=2000)
torch.manual_seed(0)
model, batch = Transformer(mini), some_batch(mini, pairs=16, length=30)
with FlopCounterMode(display=False) as forward:
    loss, _ = batch_loss(model, batch)
with FlopCounterMode(display=False) as backward:
    loss.backward()
flops = [each.get_total_flops() for each in (forward, backward)]
formula = 16 * sum(mini.flop_counts(30, 30).values())
print(f"forward {flops[0]:,}, formula {formula:,}, backward {flops[1]:,}")

# %%
of_backward.reveal(sum(flops) / flops[0])

# %% tags=["hide-input"]
assert flops[0] == formula and flops[1] == 2 * flops[0]

# %% [markdown]
# In the backward pass each matrix product becomes two: one gives the gradient of its input, the other that of its weights.
# Two FLOPs forward and four backward make six for each parameter and token.
# A "token" here is one source position together with one target position: each matrix meets one of the two, never both.
# So the cost of a training run can be estimated in advance: 6 × parameters × tokens.
# The paper's base: 6 × 63 million × 25,000 tokens × 100,000 steps ≈ 0.95 · 10¹⁸ FLOPs. (Its table 2 prints another number; lesson [17](17_scaling_out.ipynb#What-the-paper-prints) finds out why.)
#
# (Left out are scores and weighted sums, 4 · length · d_model FLOPs forward for each query token of each attention, twice that backward; norms, softmax and Adam.)
#
# ## What must be kept for the backward pass?
#
# Lesson [08](08_transformer.ipynb) found four numbers for each parameter: the weight, its gradient and Adam's two moments.
# Beside these, a training step holds activations: the results of the forward pass that the backward pass needs again.
# They grow with the batch.
# For *y = x W + b*, the gradient of *W* is computed from *x*, so *x* must be kept.
# `kept_bytes` asks PyTorch what it keeps, without the parameters.
# (That depends on its kernels, the compiled code of its operators. Our formulas are for the CPU's, so this lesson runs there even beside a GPU.)

# %% tags=["nbval-check-output"]
from course_lib.training import kept_bytes

x = torch.ones(2, 30, 128, requires_grad=True)  # (batch, length, d_model): 30,720 bytes
modules = up, norm = nn.ModuleList([nn.Linear(128, 256), nn.LayerNorm(128)])
examples = {
    "x + x": lambda: x + x,
    "relu(x)": lambda: x.relu(),
    "softmax(x)": lambda: x.softmax(dim=-1),
    "x @ relu(x)": lambda: x @ x.relu().mT,
    "norm(x)": lambda: norm(x),
    "linear(x)": lambda: up(x),
    "relu(linear(x))": lambda: up(x).relu(),
}
kept = {name: kept_bytes(example, modules) for name, example in examples.items()}
for name, size in kept.items():
    print(f"{name:16}{size:8,} bytes = {size // 4:6,} numbers")

# %% tags=["hide-input"]
assert list(kept.values())[:4] == [0, 30_720, 30_720, 2 * 30_720]
assert list(kept.values())[4:] == [30_720 + 480, 30_720, 3 * 30_720]

# %% [markdown]
# A sum keeps nothing: its gradient is passed on unchanged.
# ReLU and softmax keep their *result*, because their gradient can be computed from it.
# A product of two activations keeps *both*, a norm its input and two numbers for each token (mean and deviation), a linear layer its *input*.
# The last line holds the input of the linear layer and the result of the ReLU, which is twice as wide.
#
# ## A layer by hand
#
# With these rules we can write down what a whole encoder layer keeps.
# Its steps: norm, projections, scores, softmax, weighted sum, output projection, another norm and the feed-forward network.

# %%
of_layer = Predict(
    "16 sentences of 30 tokens, d_model 128, 4 heads, d_ff 256. Which take the most?",
    ["attention weights", "vectors of d_model", "vectors of d_ff"],
    section="A layer by hand",
)
of_layer


# %%
def kept_by_encoder_layer(config, pairs, length):
    """Numbers that a pre-norm encoder layer without dropout keeps."""
    tokens, d_model = pairs * length, config.d_model
    return {
        "inputs of two norms": 2 * tokens * d_model,
        "their outputs, inputs of products": 2 * tokens * d_model,
        "queries, keys, values, contexts": 4 * tokens * d_model,
        "vectors of d_ff, after the ReLU": tokens * config.d_ff,
        "attention weights": pairs * config.num_heads * length * length,
        "means and deviations of two norms": 2 * 2 * tokens,
    }


# %% tags=["nbval-check-output"]
layer = model.encoder.layers[0]
x = torch.ones(16, 30, mini.d_model, requires_grad=True)
by_hand = kept_by_encoder_layer(mini, pairs=16, length=30)
for name, numbers in by_hand.items():
    print(f"{name:34}{4 * numbers:10,} bytes")
measured = kept_bytes(lambda: layer(x), layer)
print(f"{'sum':34}{4 * sum(by_hand.values()):10,} bytes, measured {measured:,}")

# %%
of_layer.reveal(of_layer.choices[1], because="eight of them are kept for each token")

# %% tags=["hide-input"]
assert measured == 4 * sum(by_hand.values())
assert 8 * 16 * 30 * 128 > max(by_hand["attention weights"], 16 * 30 * 256)

# %% [markdown]
# The formula is right to the byte. It counts the attention weights once: softmax and the weighted sum keep the same table.
# At 30 tokens the attention weights are a small part of the whole.
# But they are the only line that grows with the square of the length.
#
# The whole model follows by the same rules.
# A norm brings two vectors of d_model (its input and its output), an attention four.
# We count both in `mini`, the last norm of each stack included, for a source and a target token together:

# %% tags=["nbval-check-output"]
vectors = 0
print("          norms   attentions   vectors of d_model")
for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
    kinds = [type(each).__name__ for each in stack.modules()]
    norms, attentions = kinds.count("LayerNorm"), kinds.count("MultiHeadAttention")
    vectors += 2 * norms + 4 * attentions
    print(f"{name}{norms:8}{attentions:13}   2 · {norms} + 4 · {attentions}", end=" = ")
    print(2 * norms + 4 * attentions)
size = vectors * 480 * 128 * 4
print(f"{vectors} × 480 tokens × 128 numbers × 4 bytes = {size:,} bytes")

# %% [markdown]
# The last number is the line "vectors" below.
# The line "inner vectors" holds those of d_ff, "logits" what the loss keeps: a log-probability for each target token and subword. ("masks" are those of lesson 05, "rest" the norms' means and deviations, and the ids. `mini` has no dropout.)
# `course_lib.cost.activation_bytes` counts all of that:

# %% tags=["nbval-check-output"]
from course_lib.cost import activation_bytes

told = activation_bytes(mini, 16, src_len=30, tgt_len=30)
for kind, size in told.items():
    print(f"{kind:18}{size:12,} bytes")
measured = kept_bytes(lambda: batch_loss(model, batch), model)
print(f"{'sum':18}{sum(told.values()):12,} bytes, measured {measured:,}")

# %% tags=["hide-input"]
assert measured == sum(told.values())
assert vectors == 48 and told["vectors"] == 4 * 16 * 30 * 128 * vectors
assert told["logits"] == 4 * 16 * 30 * 2000
assert sum(told.values()) > 4 * 4 * mini.num_parameters == 16 * 919_040

# %% [markdown]
# The activations of these 16 pairs take more than weights, gradients and moments together (16 bytes × 919,040 parameters = 14.7 million).
# But a step never holds all of these at once.
#
# ## The peak of a step
#
# What counts is the **peak memory**: the most that is held at any moment.
# If the machine has less, the step fails, however short the moment.
# We follow one step of `mini`, tensor by tensor.

# %%
of_peak = Predict(
    "At which moment does this training step hold the most?",
    [
        "at the beginning of the forward pass",
        "when the backward pass begins",
        "when the backward pass ends",
        "while the optimizer changes the weights",
    ],
    section="The peak of a step",
)
of_peak


# %%
from course_lib.training import held_bytes


def step_of(model, batch):
    """A training step as a function; one has been made, so Adam's moments exist."""
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        loss, _ = batch_loss(model, batch, smoothing=0.1)
        (loss / batch.num_tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    return step


model.zero_grad()
held = held_bytes(step_of(model, batch))

# %% tags=["hide-input"]
from course_lib.cost import peak_bytes
from course_lib.figures import curves


def turns_of(model, batch):
    """Where the forward pass begins, the backward pass, and the optimizer."""
    alive = []  # so that the forward pass is not freed at once
    going = held_bytes(lambda: alive.append(batch_loss(model, batch, smoothing=0.1)))
    back = held_bytes(lambda: (alive[0][0] / batch.num_tokens).backward())
    model.zero_grad()
    return [0, len(going), len(going) + len(back)]


turns = turns_of(model, batch)
highest = max(range(len(held)), key=held.__getitem__)
predicted = peak_bytes(mini, 16, 30, 30) - 3 * 4 * mini.num_parameters
logits_there = next(at for at, size in enumerate(held) if size > sum(told.values()))

# %% tags=["hide-input"]
figure = curves(
    {"measured": (range(len(held)), [size / 1e6 for size in held])},
    xlabel="tensors made or freed so far",
    ylabel="MB, beside weights and moments",
    title="Activations pile up going forward, and are freed going backward",
    marks={"the formula's peak": (None, predicted / 1e6)},
)
axes = figure.axes[0]
axes.set_ylim(-1, 31)
axes.axvspan(turns[1], turns[2], color="#dddddd")
for at, words in zip(turns, ("forward", "backward", "optimizer"), strict=False):
    axes.text(at + 15, 29, words, weight="bold")
for line in (axes.lines[0], axes.get_legend().legend_handles[0]):
    line.set_marker("")

# %% tags=["hide-input"]
by_point = dict(arrowprops=dict(arrowstyle="-"), va="center")
axes.annotate("logits", (logits_there, 20), (100, 20), **by_point)
axes.annotate("log-probabilities", (logits_there + 17, 22.5), (20, 23.5), **by_point)
words = "gradients of both,\na table each"
axes.annotate(words, (highest + 2, 25.5), (570, 23.5), **by_point)
axes.text(turns[2] + 15, 4.5, "gradients of the weights")
of_peak.reveal(of_peak.choices[1])
figure

# %% tags=["hide-input"]
assert abs(held[highest] / predicted - 1) < 0.02
assert turns[1] < highest < turns[1] + 0.1 * len(held)
assert held[-1] < 0.05 * held[highest] and turns[2] < len(held)
assert sum(told.values()) < held[highest] < 1.5 * sum(told.values())
assert abs(held[turns[2]] / (4 * mini.num_parameters) - 1) < 0.05

# %% [markdown]
# In the forward pass each layer adds what it keeps.
# The narrow spike belongs to the loss: the gradients of the log-probabilities and of the logits are held together, a table each.
# In the backward pass each layer frees what it kept and leaves the gradients of its weights, which take less here.
# (`fused=True` makes Adam one kernel without intermediate tables. The dashed line is `peak_bytes`, below.)
#
# Now the opposite case, a large model and a small batch.

# %%
of_base_peak = Predict(
    "The paper's base model, two pairs of 24 tokens: when is the peak?",
    [
        "when the backward pass begins",
        "in the middle or at the end of the backward pass",
        "while the optimizer changes the weights",
    ],
    section="The peak of a step",
)
of_base_peak

# %% [markdown]
# Generator and both embeddings share one matrix of 76 MB.
# The generator's gradient comes first and stays; the decoder embedding's comes midway, and for a moment both and their sum are held.

# %% tags=["hide-input"]
config = model_preset("base", 37_000)
torch.manual_seed(0)
base_model, two_pairs = Transformer(config), some_batch(config, pairs=2, length=24)
of_base = [size / 1e6 for size in held_bytes(step_of(base_model, two_pairs))]
base_turns = turns_of(base_model, two_pairs)
summit = max(range(len(of_base)), key=of_base.__getitem__)
share = (summit - base_turns[1]) / (base_turns[2] - base_turns[1])
counts = config.parameter_counts()
shared = 4e-6 * counts["embeddings"]  # MB of the shared matrix
jump = next(at for at, size in enumerate(of_base) if size > shared)
del base_model  # with its gradients and moments a gigabyte

# %% tags=["hide-input"]
figure = curves(
    {"measured": (range(len(of_base)), of_base)},
    xlabel="tensors made or freed so far",
    ylabel="MB, beside weights and moments",
    title="Base, two sentence pairs: gradients pile up in the backward pass",
)
_ = figure.axes[0].set_ylim(-15, 390)

# %% tags=["hide-input"]
axes = figure.axes[0]
axes.axvspan(base_turns[1], base_turns[2], color="#dddddd")
for at, words in zip(base_turns, ("forward", "backward", "optimizer"), strict=True):
    axes.text(at + 25, 365, words, weight="bold")
words = "the generator's\ngradient, which stays"
axes.annotate(words, (jump, of_base[jump] - 20), (60, 150), **by_point)
words = "from decoder to encoder:\n+ a second gradient\n+ the sum of both"
axes.annotate(words, (summit - 10, of_base[summit]), (60, 290), **by_point)
last = max(range(summit + 50, base_turns[2] + 50), key=of_base.__getitem__)
words = "at its end:\n+ a third"
axes.annotate(words, (last + 10, of_base[last]), (2830, 305), **by_point)
axes.lines[0].set_marker("")
of_base_peak.reveal(of_base_peak.choices[(share > 0.1) + (share > 1)])
figure

# %% tags=["hide-input"]
assert 0.4 < share < 0.9 and 75.5 < shared < 76.5
assert base_turns[1] < jump < base_turns[1] + 0.1 * (base_turns[2] - base_turns[1])
assert abs((of_base[jump] - of_base[jump - 1]) / shared - 1) < 0.02
assert abs((of_base[summit] - of_base[summit - 20]) / (2 * shared) - 1) < 0.05
assert abs((of_base[last] - of_base[last - 20]) / shared - 1) < 0.1
decoder = sum(counts[name] for name in counts if name.startswith("decoder"))
of_gradients = 4e-6 * decoder + 3 * shared
assert of_base[summit] > of_gradients > 0.95 * of_base[summit]

# %% tags=["hide-input"]
layer_keeps = sum(kept_by_encoder_layer(config, 2, 24).values())
layer_keeps += 2 * 2 * 24 * config.d_model  # two masks of dropout
encoder = sum(counts[name] for name in counts if name.startswith("encoder"))
others = config.num_parameters - counts["embeddings"] - encoder  # decoder and norms
sums = {  # MB as the text has them, and bytes
    (19.07, 7.68): [sum(told.values()), 2 * told["logits"]],
    (8.48, 100.95, 227.33): [
        4 * config.num_layers * layer_keeps,
        4 * others,
        3 * 4 * counts["embeddings"],
    ],
    (252.33, 75.78): [4 * config.num_parameters, 4 * counts["embeddings"]],
}

# %% tags=["hide-input"]
for in_text, parts in sums.items():
    assert in_text == tuple(round(part / 1e6, 2) for part in parts)
begins, midway, ends = (sum(parts) for parts in sums.values())
by_formula = peak_bytes(config, 2, 24, 24) - 12 * config.num_parameters
assert max(abs(begins / predicted - 1), abs(midway / by_formula - 1)) < 1e-3
assert abs(1e6 * of_base[summit] / midway - 1) < 0.02
assert abs(1e6 * of_base[last] / ends - 1) < 0.02

# %% [markdown]
# Both figures show one exchange: in the backward pass *activations go and gradients come*.
# In `mini` more goes than comes, and the curve falls; in base, with two pairs, it rises.
# So the peak is the largest of three sums (here in MB):
#
# - *The backward pass begins*: all activations and the two tables of the loss, in `mini` 19.07 + 7.68 = 26.75.
# - *It goes from decoder to encoder*: the encoder's activations, the decoder's gradients and three shared matrices, in base 8.48 + 100.95 + 227.33 = 336.76.
# - *It ends*: all gradients and one more shared matrix, in base 252.33 + 75.78 = 328.11. (The third gradient is added to a sum that is there already.)
#
# `peak_bytes` adds 12 bytes per parameter to the largest: weight and two moments. Is that right? (`small`: 3 layers of width 256.)

# %% tags=["hide-input"]
from course_lib.training import peak_bytes as measured_peak

off = {}
print("model  subwords  pairs   weights, moments   beside them: measured   formula")
models = [("mini", 2_000, 16, 30), ("small", 8_000, 8, 30)]
models += [("base", 8_000, 2, 24), ("base", 37_000, 2, 24), ("base", 37_000, 12, 30)]
for name, vocab_size, pairs, length in models:
    config = model_preset(name, vocab_size)
    torch.manual_seed(0)
    step = step_of(Transformer(config), some_batch(config, pairs, length))
    states, found = 12 * config.num_parameters, measured_peak(step)
    by_formula = peak_bytes(config, pairs, length, length) - states
    off[name, vocab_size, pairs] = error = by_formula / found - 1
    print(f"{name:6}{vocab_size:9,}{pairs:7}{states / 1e6:16.1f} MB", end="")
    print(f"{found / 1e6:21.1f} MB{by_formula / 1e6:7.1f} MB ({error:+.1%})")

# %% tags=["hide-input"]
del step  # of base, a gigabyte
assert all(abs(error) < 0.04 for error in off.values())

# %% [markdown]
# The formula is right, here within one percent. (Python, PyTorch and the kernels' own scratch memory come on top.)
# So for short sentences on a CPU we know the memory of a step before we run it. For `mini`, 11.0 + 26.7 MB are about ten times its weights.
#
# The calculator shows the parts for other models and batches. (Dropout's masks count as vectors here.)
# Move the length until attention weights are larger than the vectors (near 600).

# %%
from course_lib.widgets import CostCalculator

CostCalculator()


# %% tags=["hide-input"]
def largest_part(length):
    kept = activation_bytes(model_preset("base", 37_000), 16, length, length)
    return max(kept, key=kept.get)


assert largest_part(560) == "vectors" and largest_part(640) == "attention weights"

# %% [markdown]
# ## Attention that stores no weights
#
# Now we save, beginning with what grows fastest.
# *Training* on one pair of texts, 4,096 tokens each: how much memory do base's attention weights take?

# %% tags=["nbval-check-output"]
base = replace(model_preset("base", 37_000), max_len=4096)
for length in (32, 512, 1024, 4096):
    parts = activation_bytes(base, 1, length, length)
    entries, rest = parts.pop("attention weights"), sum(parts.values())
    print(f"{length:5} tokens: attention {entries / 1e6:8,.1f} MB", end=", ")
    print(f"rest {rest / 1e6:8,.1f} MB")

# %% tags=["hide-input"]
assert 9e9 < entries < 10e9 and entries > 3 * rest

# %% [markdown]
# Almost 10 GB for one pair; everything else, except the masks, grows only linearly.
# Must attention weights be stored?
# The softmax seems to need a whole row of scores at once, because it divides by the row's sum.
# But we can go through the keys in blocks, add up the exponentials and the weighted values, and divide at the end.
# So that nothing overflows, exp(score − largest) takes the place of exp(score), which changes no weight.
# But a later block may have a larger score. Here a query has the scores 2, 3, 1 and 5, in blocks of two:

# %% tags=["hide-input", "nbval-check-output"]
largest, total = -math.inf, 0.0
print("scores    largest   sum of exp(score − largest)")
for block in ((2, 3), (1, 5)):
    higher = max(largest, *block)
    shrink, *added = (math.exp(each - higher) for each in (largest, *block))
    before = f"{total:.3f} · {shrink:.3f} + " if total else " " * 16
    largest, total = higher, total * shrink + sum(added)
    print(f"{block[0]}, {block[1]}{largest:13}   {before}", end="")
    print(f"{added[0]:.3f} + {added[1]:.3f} = {total:.3f}")
at_once = [math.exp(score - 5) for score in (2, 3, 1, 5)]
terms = " + ".join(f"{each:.3f}" for each in at_once)
print(f"at once{5:10}   {terms} = {sum(at_once):.3f}")
assert math.isclose(total, sum(at_once)) and shrink == math.exp(3 - 5)

# %% [markdown]
# `shrink`, exp(old largest − new largest), corrects this sum and that of the weighted values.
# It turns each exp(score − old) into exp(score − new), here 1.368 into 0.050 + 0.135.
# This is the **online softmax** [@milakov2018]:


# %%
def attention_in_blocks(query, key, value, size):
    """Attention that never sees more than `size` keys at a time."""
    largest = torch.full_like(query[..., :1], -math.inf)  # (..., queries, 1)
    total, context = torch.zeros_like(largest), torch.zeros_like(query)
    for keys, values in zip(key.split(size, -2), value.split(size, -2), strict=True):
        scores = query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])
        higher = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        shrink, exponentials = (largest - higher).exp(), (scores - higher).exp()
        total = total * shrink + exponentials.sum(dim=-1, keepdim=True)
        context = context * shrink + exponentials @ values
        largest = higher
    return context / total


# %%
from course_lib.attention import attention

generator = torch.Generator().manual_seed(0)
query, key, value = torch.randn(3, 8, 100, 32, generator=generator, dtype=torch.float64)
whole, _ = attention(query, key, value)
gaps = []
for size in (1, 7, 100):
    in_blocks = attention_in_blocks(query, key, value, size)
    gaps.append((in_blocks - whole).abs().max().item())
    print(f"blocks of {size:3} keys: {gaps[-1]:.0e} from all keys at once")

# %% tags=["hide-input"]
assert max(gaps) < 1e-12

# %% [markdown]
# The result is the same, and in each head no table of scores has more than queries × size entries.
#
# But PyTorch would still keep each block for the backward pass.
# FlashAttention [@dao2022] does not: it keeps its inputs, its result and one number per query, `largest + total.log()`, the logarithm of the sum of exp(score).
# The backward pass computes the weights again, block by block, as exp(score − that number).
# Each pass is one **fused kernel**, with blocks that fit into the fastest memory of the chip.
# That takes more FLOPs, but less traffic to main memory, which is slower than arithmetic.
#
# `F.scaled_dot_product_attention` uses such a kernel where one fits the device, the type, the mask and the dropout.
# We compare it with attention written out: peak memory and time, forward and backward.

# %%
of_fused = Predict(
    "Twice as many tokens: how does the *time* of the fused kernel grow?",
    ["like the length: about 2 times", "like its square: about 4 times"],
    section="Attention that stores no weights",
)
of_fused


# %% tags=["hide-input"]
def written_out(query, key, value):
    return attention(query, key, value)[0]


def cost(kernel, length):
    """Peak bytes and seconds of the processor, the median of seven, both passes."""
    inputs = torch.randn(3, 1, 8, length, 32, generator=generator).requires_grad_()
    peak, times = measured_peak(lambda: kernel(*inputs).sum().backward()), []
    for _ in range(7):  # the peak was measured first, so the kernel is warm
        started = time.process_time()
        kernel(*inputs).sum().backward()
        times.append(time.process_time() - started)
    return peak, sorted(times)[3]


# %% tags=["hide-input"]
lengths = [256, 512, 1024, 2048]
kernels = {"written out": written_out, "fused": F.scaled_dot_product_attention}
costs = {
    name: [cost(kernel, length) for length in lengths]
    for name, kernel in kernels.items()
}

# %% tags=["hide-input"]
growth = {}
print(f"{'':20}", *(f"{length:>7,} tokens" for length in lengths), "    last growth")
for name, found in costs.items():
    growth[name] = [later / before for before, later in zip(*found[-2:], strict=True)]
    for at, unit, scale in ((0, "MB", 1e-6), (1, "ms", 1e3)):
        cells = [f"{scale * each[at]:11.1f} {unit}" for each in found]
        print(f"{name:12}{('memory', 'time')[at]:8}", *cells, end="")
        print(f"  {growth[name][at]:4.1f} times")
of_fused.reveal(of_fused.choices[int(growth["fused"][1] > 3)])

# %% tags=["hide-input"]
assert growth["written out"][0] > 3.5 and growth["fused"][0] < 2.6
assert 3 < growth["fused"][1] < 6

# %% [markdown]
# The memory of the fused kernel is linear in the length.
# Its time is not: every query is still compared with every key.
# (Written out, it can grow even faster.)
#
# From which length is attention the slower part of a layer? A recorded benchmark compares whole attention layers, projections included, with the feed-forward network (d_model 256, d_ff 1,024):

# %% tags=["hide-input"]
import json
from pathlib import Path

import course_lib

results = Path(course_lib.__file__).parents[1] / "tests/bench/results.json"
lines = json.loads(results.read_text())["cost"]["lines"]
by_length = [line for line in lines if line["work"].endswith("by length")]

# %% tags=["hide-input"]
figure = curves(
    {
        line["work"].removesuffix(", by length"): (line["sizes"], line["seconds"])
        for line in by_length
    },
    xlabel="tokens",
    ylabel="seconds, forward and backward",
    title="Beyond a few hundred tokens attention is slower than feed-forward",
    log_x=True,
    log_y=True,
)
sizes = by_length[0]["sizes"]
figure.axes[0].set_xticks(sizes, [f"{size:,}" for size in sizes])
figure.axes[0].set_xticks([], minor=True)
figure

# %% tags=["hide-input"]
powers = {line["work"].split(", by")[0]: line["time ~ size^"] for line in by_length}
assert powers["feed-forward network"] < 1.3 < 1.6 < powers["attention, fused"]
seconds = {line["work"].split(", by")[0]: line["seconds"] for line in by_length}
written, fused = seconds["attention, written out"], seconds["attention, fused"]
assert written[-1] > 2 * fused[-1] and written[0] < 1.2 * fused[0]
network = seconds["feed-forward network"]
assert all(each[1] < network[1] and each[4] > network[4] for each in (written, fused))
assert sizes[1] == 128 and sizes[4] == 1024 and written[2] > network[2] > fused[2]
assert fused[3] > network[3]

# %% [markdown]
# For short sentences the feed-forward network takes longer. Attention written out becomes the slower part between 128 and 256 tokens, fused attention between 256 and 512 (for this d_model, on one CPU).
# At 4,096 tokens fused attention takes less than half the time of the other, though it computes the weights twice.
#
# ## The same gradients from less memory
#
# *Training*, still: two ways to keep fewer activations of any kind.
#
# ### In smaller portions
#
# With **gradient accumulation** a batch is cut into micro-batches, whose gradients are added up before one step of the optimizer.
# Only one micro-batch at a time has activations, and the sum is the gradient of the whole batch (lesson [09](09_training.ipynb); with dropout only on average, because each draws its own masks).
#
# ### Computing twice
#
# The fused kernel has shown a rule: *what can be computed again need not be kept*.
# **Activation checkpointing** [@chen2016] applies it to whole layers. It keeps only the *input* of each; when the backward pass reaches a layer, that layer runs forward again.

# %%
of_twice = Predict(
    "How many more FLOPs does a training step then take?",
    ["a third more at most", "a half more at most", "twice as many"],
    section="Computing twice",
)
of_twice

# %%
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    """A layer that keeps its input only, and runs again in the backward pass."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *inputs, **options):
        return checkpoint(self.layer, *inputs, use_reentrant=False, **options)


def checkpointed(model):
    """A copy with the same weights."""
    copy = deepcopy(model)
    for stack in (copy.encoder, copy.decoder):
        stack.layers = nn.ModuleList(map(Checkpointed, stack.layers))
    return copy


# %% tags=["hide-input"]
def backward_of(model, batches):
    """Leaves the gradient of the mean loss, from one batch or from several."""
    tokens = sum(each.num_tokens for each in batches)
    for number, each in enumerate(batches):
        torch.manual_seed(number)  # the same dropout for all
        (batch_loss(model, each)[0] / tokens).backward()


def gradients(model):
    """All gradients as one vector; the model gives them up."""
    found = torch.cat([each.grad.flatten() for each in model.parameters()])
    model.zero_grad()
    return found


# %% [markdown]
# We compare four ways for a model of 6 + 6 narrow layers: 16 sentence pairs at once or four at a time, plain or checkpointed.

# %%
of_micro = Predict(
    "16 pairs at once peak at 74.5 MB; the gradients of the weights take 8.2 MB. "
    "What is the peak with four micro-batches of 4 pairs?",
    unit="MB",
    off_by=2,
    section="In smaller portions",
)
of_micro

# %% tags=["hide-input"]
deep = model_preset("tiny", 500, num_layers=6)
torch.manual_seed(0)
plain, large = Transformer(deep), some_batch(deep, pairs=16, length=40)
micro = [
    Batch(large.src[i : i + 4], large.tgt_in[i : i + 4], large.tgt_out[i : i + 4])
    for i in range(0, 16, 4)
]
twice = checkpointed(plain)
ways = {
    "all at once": (plain, [large]),
    "4 micro-batches": (plain, micro),
    "checkpointed": (twice, [large]),
    "both": (twice, micro),
}

# %% tags=["hide-input"]
peaks, spent, grads = {}, {}, {}
for name, way in ways.items():
    with FlopCounterMode(display=False) as counter:
        backward_of(*way)
    grads[name] = gradients(way[0])
    peaks[name] = measured_peak(lambda way=way: backward_of(*way))
    way[0].zero_grad()
    spent[name] = counter.get_total_flops()
    share = spent[name] / spent["all at once"]
    print(f"{name:16}peak {peaks[name] / 1e6:6.1f} MB, {share:.2f} times the FLOPs")

# %% tags=["hide-input"]
of_micro.reveal(
    round(peaks["4 micro-batches"] / 1e6, 1),
    because="the last one finds the gradients of the others there: 74.5 / 4 + 8.2",
)
share = spent["checkpointed"] / spent["all at once"]
of_twice.reveal(of_twice.choices[(share > 4 / 3) + (share > 3 / 2)])
gap = (grads["checkpointed"] - grads["all at once"]).abs().max()
print(f"largest difference of a gradient, checkpointed and all at once: {gap:.0e}")

# %% tags=["hide-input"]
assert peaks["checkpointed"] < 0.5 * peaks["all at once"]
assert peaks["both"] < 0.8 * min(peaks["checkpointed"], peaks["4 micro-batches"])
assert 8.15e6 < 4 * deep.num_parameters < 8.25e6
assert 0.6 < 4 * deep.num_parameters / peaks["both"] < 0.73
assert 1.15 < spent["checkpointed"] / spent["all at once"] < 4 / 3
assert math.isclose(
    peaks["4 micro-batches"],
    peaks["all at once"] / 4 + 4 * deep.num_parameters,
    rel_tol=0.02,
)
assert spent["4 micro-batches"] == spent["all at once"]
assert gap < 1e-6 * grads["all at once"].abs().max()

# %% [markdown]
# (The peaks are those of both passes, beside the weights, without the optimizer.)
# About two thirds of the last peak are the gradients themselves (2.05 million parameters, 8.2 MB), which neither way can save.
# The forward pass is a third of a step, so computing it twice adds at most a third; here a little less, because the generator is not computed twice.
# Even with dropout the gradients are those of the plain model, because `checkpoint` restores the random state before a layer runs again.
#
# ## Half of each number: bfloat16
#
# *Training*, one last way: shorter numbers.
# A float32 has one bit for the sign, 8 for the exponent and 23 for the digits.
# **bfloat16** has 16 bits: the sign, all 8 bits of the exponent, but only 7 of the digits. The range is the same, with two to three significant decimal digits.

# %%
of_sum = Predict(
    "In bfloat16 we add 0.001 to a weight of 1, a thousand times. What is it then?",
    unit="",
    off_by=0.05,
    section="Half of each number: bfloat16",
)
of_sum

# %% tags=["nbval-check-output"]
after = {}
for dtype in (torch.float32, torch.bfloat16):
    after[dtype], small_step = torch.tensor([1, 0.001], dtype=dtype)
    for _ in range(1000):
        after[dtype] += small_step
    print(f"{dtype}: {after[dtype].item():.3f}")

# %%
of_sum.reveal(after[torch.bfloat16].item(), because="every step was rounded away")

# %% tags=["hide-input"]
assert after[torch.bfloat16] == 1 and abs(after[torch.float32] - 2) < 1e-3
near = torch.tensor(0.05).bfloat16()
assert near + 1e-4 == near and 2e-4 < near + 2e-4 - near < 3e-4

# %% [markdown]
# The next bfloat16 above 1 is 1.0078. Near 0.05 two neighbors are 0.0002 apart.
# A step of Adam changes a weight by about the learning rate. So where the rate is below 0.0001, early in warm-up or late in a long training, such steps are lost for weights near 0.05 and larger.
# That is why weights stay in float32 while they *learn*.
#
# **Mixed precision** computes the matrix products in bfloat16, and keeps weights, norms and loss in float32. `torch.autocast` does that, by a list of operators for each device; our training uses it with `precision="bfloat16"`.
# (It began with float16 [@micikevicius2018], whose smaller range needs a scaled loss, or small gradients become 0.)
# Does it halve the activations of our 6 + 6 layers?


# %%
def mixed():
    with torch.autocast("cpu", torch.bfloat16):
        return batch_loss(plain, large)


in_full = kept_bytes(lambda: batch_loss(plain, large), plain)
in_half = kept_bytes(mixed, plain)
print(f"kept in float32 {in_full / 1e6:.1f} MB, mixed {in_half / 1e6:.1f} MB")

# %% [markdown]
# Far from it. Where are the bytes?

# %% tags=["hide-input"]
halved = {}  # what the mixed pass keeps in bfloat16, by address


def keep(tensor):
    if tensor.dtype == torch.bfloat16:
        halved[tensor.data_ptr()] = tensor.detach()
    return tensor


with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
    mixed()
matrices, single = [], {}  # of weights; of 640 tokens, each content once
for each in halved.values():
    if each.dim() == 2 and len(each) != 640:
        matrices.append(each.nbytes)
    else:
        single[each.contiguous().view(torch.int16).numpy().tobytes()] = each.nbytes

# %% tags=["hide-input"]
in_bfloat16 = sum(each.nbytes for each in halved.values())
staying, once, copied = in_half - in_bfloat16, sum(single.values()), sum(matrices)
again = in_bfloat16 - once - copied
ledger = {
    "inputs of norms, the loss, masks": (staying, staying),
    "other activations": (in_full - staying, once),
    "some of these again, for another layer": (0, again),
    "copies of the weights": (0, copied),
    "sum": (in_full, in_half),
}
print(f"{'MB':42}float32   mixed")
for name, both in ledger.items():
    print(f"{name:42}", *(f"{size / 1e6:7.1f}" for size in both))

# %% tags=["hide-input"]
assert 0.4 < in_half / in_full < 0.95
assert math.isclose(in_full - staying, 2 * once, rel_tol=0.02)
readers = 12 * 2 + 6 * 2 - 1  # but for the first, of self-attentions and memory
assert 0.8 < again / (2 * 640 * 128 * readers) < 1.2
assert min(staying, again, copied) > 0.05 * in_half
x = torch.randn(640, 128, requires_grad=True)
parts = nn.ModuleList([nn.LayerNorm(128), *(nn.Linear(128, 128) for _ in range(3))])


def three_readers():
    with torch.autocast("cpu", torch.bfloat16):
        normed = parts[0](x)
        return [each(normed) for each in parts[1:]]


in_float32 = x.nbytes + 2 * 4 * 640  # the norm's input, means and deviations
copies = 2 * 3 * (x.numel() + 128 * 128)  # of its output and of the weights
assert kept_bytes(three_readers, parts) == in_float32 + copies

# %% [markdown]
# What norms and the loss keep is still float32. Only the second line is halved.
# The third: autocast converts a vector anew for each layer that reads it, so query, key and value keep three.
# The copies of the weights matter less with a larger batch.
#
# Nothing so far has made gradients and moments smaller. Where a trained model is only adapted, **LoRA** [@hu2022] does: it freezes a matrix and trains a product of two narrow ones, which is added to it. The frozen matrix needs no gradient and no moments.
#
# ## The cache, when translating
#
# *Translating*: there are no gradients and no moments, and no activations are kept.
# Beside the weights, memory holds the keys and values of all earlier tokens (lesson [11](11_decoding.ipynb)).
# In each decoder layer a hypothesis has two vectors of d_model for each of its tokens.
# Cross-attention has keys and values of its own: two more vectors for each source token. (All hypotheses of a sentence could share these; ours are copied for each.)
# We measure the cache of `mini`:

# %% tags=["nbval-check-output", "hide-input"]
from course_lib.cost import cache_bytes

model.eval()
cache, src = model.new_cache(), some_batch(mini, pairs=4, length=12).src
with torch.no_grad():
    memory = model.encode(src)
    for _ in range(20):
        model.decode(torch.full((4, 1), 5), memory, src, cache=cache)
held_by_cache = sum(each.nbytes for layer in cache for each in vars(layer).values())
formula = cache_bytes(mini, 4, src_len=12, tgt_len=20)
print(f"measured {held_by_cache:,} bytes, formula {formula:,}")
beams = cache_bytes(replace(base, max_len=4096), 4 * 64, 1024, 1024)
print(f"base, 64 sentences, beam 4, 1,024 tokens each side: {beams / 1e9:.1f} GB")

# %% tags=["hide-input"]
assert held_by_cache == formula and beams > 4 * 63e6

# %% [markdown]
# For long texts and many hypotheses the cache is many times larger than the weights.
#
# ### Fewer keys than queries
#
# Must every head have keys and values of its own?
# In **grouped-query attention** [@ainslie2023] several query heads share one head of keys and values, as in many large language models since 2023. With one such head for all queries it is called *multi-query attention* [@shazeer2019].
# Compared with the class of lesson [04](04_multi_head.ipynb#The-class), two projections get narrower and one line repeats their results:


# %%
class GroupedQueryAttention(nn.Module):
    """Heads of queries share a few of keys and values; only the few would be cached."""

    def __init__(self, d_model, num_heads, key_heads):
        super().__init__()
        self.d_k, self.share = d_model // num_heads, num_heads // key_heads
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, key_heads * self.d_k)
        self.value_proj = nn.Linear(d_model, key_heads * self.d_k)
        self.output_proj = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        three = self.query_proj(x), self.key_proj(x), self.value_proj(x)
        query, *few = (y.unflatten(-1, (-1, self.d_k)).transpose(1, 2) for y in three)
        key, value = (y.repeat_interleave(self.share, dim=1) for y in few)
        context, _ = attention(query, key, value, mask)
        return self.output_proj(context.transpose(1, 2).flatten(2))


# %% tags=["nbval-check-output"]
x, caches = torch.ones(1, 10, base.d_model), {}
for key_heads in (8, 2, 1):
    layer = GroupedQueryAttention(base.d_model, 8, key_heads)
    caches[key_heads] = layer.key_proj(x).nbytes + layer.value_proj(x).nbytes
    gigabytes = beams * caches[key_heads] / caches[8] / 1e9
    numbers = sum(each.numel() for each in layer.parameters())
    print(f"{key_heads} key heads: cache {gigabytes:4.1f} GB", end=", ")
    print(f"{numbers:,} parameters in one attention")

# %% tags=["hide-input"]
from course_lib.attention import MultiHeadAttention

x = torch.randn(2, 10, 64, generator=generator)
plain_heads, all_keys = MultiHeadAttention(64, 8), GroupedQueryAttention(64, 8, 8)
all_keys.load_state_dict(plain_heads.state_dict())
torch.testing.assert_close(all_keys(x), plain_heads(x, x, x))
few = GroupedQueryAttention(64, 8, 2)
heads = [
    proj(x).unflatten(-1, (-1, 8)).transpose(1, 2)
    for proj in (few.query_proj, few.key_proj, few.value_proj)
]
torchs = F.scaled_dot_product_attention(*heads, enable_gqa=True)
torch.testing.assert_close(few(x), few.output_proj(torchs.transpose(1, 2).flatten(2)))
assert caches[8] == 8 * caches[1] and beams * caches[1] / caches[8] < 2e9

# %% [markdown]
# (PyTorch has it built in: `F.scaled_dot_product_attention(…, enable_gqa=True)`. The gigabytes count both attentions of the decoder as grouped.)
#
# With a **sliding window** a layer attends to the latest tokens only, so its cache stops growing [@jiang2023].
# A *paged* cache is kept in small blocks, so that a sentence wastes at most a part of its last block [@kwon2023].
#
# ## Weights of one byte: int8
#
# *Translating* needs the weights, too. A trained weight no longer takes small steps, so it can be coarser.
# **Quantization** stores each weight as a small integer (int8: −127 to 127), times a scale.
# We take one scale for each row of PyTorch's (out, in) weight, that is, for each output:


# %%
class OurInt8Linear(nn.Module):
    """A linear layer whose weights are int8, each row with a scale."""

    def __init__(self, linear):
        super().__init__()
        weight, self.bias = linear.weight.detach(), linear.bias
        self.scale = weight.abs().amax(dim=1, keepdim=True) / 127  # (out, 1)
        self.rows = (weight / self.scale).round().to(torch.int8)  # (out, in)

    def forward(self, x):
        return F.linear(x, self.rows * self.scale, self.bias)


# %% [markdown]
# torchao, PyTorch's own package, does the same for all linear layers of a model; our `quantized` returns such a copy.
# We compare the two on one layer of the translator `course`:

# %% tags=["hide-input"]
from course_lib.compression import quantized, weight_bytes
from course_lib.translator import Translator

course = Translator.from_pretrained("course")
place = "encoder.layers.0.feed_forward.up"
both_models = course.model, quantized(course.model)
linear, theirs = (each.get_submodule(place) for each in both_models)
rows = torch.randn(50, linear.in_features, generator=generator)
with torch.no_grad():
    right = linear(rows)
    for name, layer in (("ours", OurInt8Linear(linear)), ("torchao's", theirs)):
        error = (layer(rows) - right).norm() / right.norm()
        print(f"{name:10} off by {error:.2%}")

# %% tags=["hide-input"]
with torch.no_grad():
    both = [layer(rows) for layer in (OurInt8Linear(linear), theirs)]
assert all((each - right).norm() < 0.02 * right.norm() for each in both)
assert (both[0] - both[1]).norm() < 0.02 * right.norm()

# %% [markdown]
# Both results are off by less than a percent of their size. Would fewer bits do?
# We round all matrices of `course` to 8, 6, 4, 3 and 2 bits (`rounded`), translate 60 sentences of its grammar, and count exact matches: with one scale per row, and with one for the whole matrix.

# %%
of_bits = Predict(
    "With one scale per row, how few bits still give eight of ten sentences right?",
    ["8", "6", "4", "3", "2"],
    section="Weights of one byte: int8",
)
of_bits

# %% tags=["hide-input"]
from course_lib.data import load_course
from course_lib.training import score

sentences = load_course(num_train=1).test[:60]


def rounded(model, bits, per_row):
    """A copy whose matrices have 2^bits − 1 different values, times a scale."""
    copy, top = deepcopy(model), 2 ** (bits - 1) - 1
    with torch.no_grad():
        for weight in copy.parameters():
            if weight.dim() == 2:
                sizes = weight.abs()
                scale = (sizes.amax(1, keepdim=True) if per_row else sizes.max()) / top
                weight.copy_((weight / scale).round() * scale)
    return copy


# %% tags=["hide-input"]
all_bits, exact = (8, 6, 4, 3, 2), {}
for name, per_row in (("one scale per row", True), ("one per matrix", False)):
    models = [rounded(course.model, bits, per_row) for bits in all_bits]
    translators = [Translator(each, course.tokenizer) for each in models]
    scored = [score(each, sentences, beam_size=1) for each in translators]
    exact[name] = [each.exact_match for each in scored]

# %% tags=["hide-input"]
by_row, by_matrix = exact.values()
fewest = max(place for place, share in enumerate(by_row) if share >= 0.8)
of_bits.reveal(of_bits.choices[fewest])
figure = curves(
    {
        name: (all_bits, [100 * share for share in shares])
        for name, shares in exact.items()
    },
    xlabel="bits of a weight",
    ylabel="exact matches of 60 (%)",
    title="One scale per row: four bits lose nothing, three lose a tenth",
)
figure.axes[0].set_xticks(all_bits)
figure

# %% tags=["hide-input"]
full = score(course, sentences, beam_size=1).exact_match
assert by_row[:3] == [full] * 3 and 0.8 * full < by_row[3] < 0.97 * full
assert by_matrix[0] >= full - 0.06 and by_matrix[2] < by_row[2]
assert by_row[3] > by_matrix[3] + 0.3 and by_row[-1] < 0.3
assert 2 <= 60 * (full - by_matrix[2]) <= 6

# %% [markdown]
# With one scale per matrix, four bits lose a few, three nearly all: the largest weight of all decides how coarsely every row is rounded.
# (Other models may need more bits.)
#
# How many bytes does int8 save? Three quarters, but only if the embedding is converted, too.
# It shares its matrix with the generator. torchao converts the generator alone, so this matrix is stored twice.
# With `embedding=True` the embedding reads the generator's int8 rows instead. Here are `course` and the larger translator, `everyday`, in both ways:

# %% tags=["hide-input"]
everyday = Translator.from_pretrained("everyday")
megabytes, scores = {}, {}
for whose, before in (("course", course), ("everyday", everyday)):
    variants = {
        "float32": before.model,
        "int8": quantized(before.model),
        "int8, embedding too": quantized(before.model, embedding=True),
    }
    for name, variant in variants.items():
        after_it = Translator(variant, before.tokenizer)
        megabytes[whose, name] = weight_bytes(variant) / 1e6
        found = score(after_it, sentences, beam_size=1).bleu.score
        scores.setdefault(whose, []).append(found)
        print(f"{whose:10}{name:20}{megabytes[whose, name]:5.1f} MB   BLEU {found:.1f}")

# %% tags=["hide-input"]
whole, linear_only, all_int8 = list(megabytes.values())[3:]
assert 0.4 < linear_only / whole < 0.5 and 0.24 < all_int8 / whole < 0.28
assert all(max(each) - min(each) < 2 for each in scores.values())

# %% [markdown]
# Int8 hardly changes BLEU. (With `everyday` that says little: its file is in int8 already, that of `course` in float16.)
#
# ### Is int8 faster?
#
# It might be: int8 weights are a quarter of the bytes to read.
# We time a layer of `everyday` (2,048 × 256 weights) in float32, with torchao's int8 weights and with PyTorch's older `quantize_dynamic`, now deprecated.
# torchao's layer runs as it is, and compiled: **`torch.compile`** records the operators of a function once and, where it can, generates one loop for several.

# %%
of_speed = Predict(
    "One token goes through a layer with int8 weights (torchao, not compiled). "
    "Compared with float32 it takes",
    ["about a quarter of the time", "about as long", "longer"],
    section="Is int8 faster?",
)
of_speed

# %% tags=["hide-input"]
import shutil
import warnings

import torch._inductor.config
from torch._inductor.utils import run_and_get_code

of_weights, of_compiled = "torchao, int8 weights", "    the same, compiled"
models = {"float32": everyday.model, of_weights: variants["int8"]}
layers = {name: each.get_submodule(place) for name, each in models.items()}
one, written_code = torch.randn(1, everyday.model.config.d_model), []
torch._inductor.config.compile_threads = 1  # no pool of processes for one layer
torch._inductor.config.force_disable_caches = True
if shutil.which("g++") or shutil.which("clang++"):
    layers[of_compiled] = torch.compile(layers[of_weights])
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        _, written_code = run_and_get_code(layers[of_compiled], one)

# %% tags=["hide-input"]
of_older = "torch.ao, int8 products"


def packed_once(linear):
    """Int8 products by PyTorch's older way; none where that is gone."""
    try:
        from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic
    except ImportError:
        return {}
    with warnings.catch_warnings(action="ignore"):
        rule = {nn.Linear: per_channel_dynamic_qconfig}
        return {of_older: quantize_dynamic(nn.Sequential(linear), rule)[0]}


layers |= packed_once(layers["float32"])


# %% tags=["hide-input"]
def microseconds(layer, x, calls=3):
    """Per call, in the fastest of 100 rounds: other work can only slow them down."""
    rounds = []
    for _ in range(100):
        started = time.perf_counter()
        for _ in range(calls):
            layer(x)
        rounds.append((time.perf_counter() - started) / calls)
    return 1e6 * min(rounds)


# %% tags=["hide-input"]
times, made = {}, {}
with torch.no_grad():
    for name, layer in layers.items():
        times[name] = min(microseconds(layer, one) for _ in range(3))
        made[name] = measured_peak(lambda layer=layer: layer(one))
print(f"{'one token':26}{'time':>8}{'memory of a call':>22}")
for name, spent in times.items():
    print(f"{name:26}{spent:5.0f} µs{made[name] / 1e6:19.2f} MB")
if not written_code:
    print("(no C++ compiler here)")
longer = times[of_weights] / times["float32"]
of_speed.reveal(of_speed.choices[(longer > 0.5) + (longer > 1.3)])

# %% tags=["hide-input"]
matrix = layers["float32"].weight
assert matrix.shape == (2048, 256) and made[of_weights] >= matrix.nbytes
assert times[of_weights] > 1.3 * times["float32"]
with torch.no_grad():
    right, as_it_is = (layers[name](one) for name in models)
    if written_code:  # what the compiled layer takes differs from machine to machine
        (code,) = written_code
        assert "_to_copy" in code and "extern_kernels.mm" in code
        again = layers[of_compiled](one)
        torch.testing.assert_close(again, as_it_is, rtol=1e-4, atol=1e-4)
    if of_older in layers:
        assert times[of_older] < 0.9 * times[of_weights]
        assert made[of_older] < 0.5 * matrix.nbytes
        assert (layers[of_older](one) - right).norm() < 0.03 * right.norm()

# %% [markdown]
# Int8 weights are *slower* here: each call makes the float32 matrix again (2.1 MB), as our class does.
# Compiling does not remove this step. It generates a loop for it, which need not be faster than PyTorch's own.
# The older form is faster than torchao's: it packs the matrix once, beforehand. A call only makes the layer's input int8, too, and multiplies integers.
#
# So int8 saves bytes; it saves time only with a kernel that prepares nothing again at each call.
# (One layer, called again and again, may stay in the processor's cache: reading from memory is not timed here.)
#
# ## What does a size bring?
#
# Which of a model's parameters are worth their bytes?
# The paper's table 3 starts from base, mostly changes one thing at a time, and compares the BLEU.
# We do the same with `mini`, now with the paper's dropout and label smoothing, on 20,000 pairs of the course corpus: six epochs, three seeds for each row.
# (Recorded by `python -m course_lib.experiments table3`. Rows that may need another learning rate, such as another d_model or depth, use the best of three, chosen with another seed.)

# %%
of_table = Predict(
    "`mini` has 2 layers, 4 heads, d_ff 256. Which change raises its BLEU most?",
    [
        "16 heads",
        "4 layers",
        "d_ff 1,024",
        "generator and embeddings no longer share their weights",
    ],
    section="What does a size bring?",
)
of_table

# %% [markdown]
# The letters are those of the paper's rows (F is ours).
# The figure shows other sizes, and 16 heads. The folded table below it has all rows, also other dropout and label smoothing (D) and positions (E).

# %% tags=["hide-input"]
from course_lib.experiments import final_results, read_record
from course_lib.figures import dots

table = read_record("records/table3.json")
bleu_of = final_results(table, "bleu")
millions = {run["side"]: run["results"]["parameters"] / 1e6 for run in table["runs"]}
mean_of = {row: sum(runs) / len(runs) for row, runs in bleu_of.items()}

# %% tags=["hide-input"]
labels = {
    "base": "mini: 2 layers, 4 heads,\nd_model 128, d_ff 256",
    "A 1 head": "(A) heads 4 → 1",
    "A 2 heads": "(A) heads 4 → 2",
    "A 8 heads": "(A) heads 4 → 8",
    "A 16 heads": "(A) heads 4 → 16",
    "B d_k 8": "(B) d_k 32 → 8",
    "B d_k 16": "(B) d_k 32 → 16",
    "C 1 layer": "(C) layers 2 → 1",
    "C 4 layers": "(C) layers 2 → 4",
    "C d_model 64": "(C) d_model 128 → 64",
    "C d_model 256": "(C) d_model 128 → 256",
    "C d_ff 64": "(C) d_ff 256 → 64",
    "C d_ff 1024": "(C) d_ff 256 → 1,024",
}

# %% tags=["hide-input"]
labels |= {
    "D dropout 0": "(D) dropout 0.1 → 0",
    "D dropout 0.2": "(D) dropout 0.1 → 0.2",
    "D label smoothing 0": "(D) label smoothing 0.1 → 0",
    "D label smoothing 0.2": "(D) label smoothing 0.1 → 0.2",
    "E learned positions": "(E) sinusoidal → learned positions",
    "F no positions": "(F) sinusoidal → no positions",
    "F post-norm": "(F) pre-norm → post-norm",
    "F subword dropout 0.1": "(F) subword dropout 0 → 0.1",
    "F LSTM with attention": "(F) Transformer → LSTM with attention",
    "F weights not tied": "(F) tied → untied weights",
    "big": "small: 3 layers, 8 heads,\nd_model 256, d_ff 1,024",
}

# %% tags=["hide-input"]
changes = ["A 16 heads", "C 4 layers", "C d_ff 1024", "F weights not tied"]
shown = [row for row in labels if row[0] in "bBC" or row in changes]
figure = dots(
    {labels[row]: bleu_of[row] for row in shown},
    xlabel="BLEU on the validation part, beam 4",
    title="Untied weights score like small, with a quarter of its parameters",
    reference=("mini", mean_of["base"]),
)
sizes_axis = figure.axes[0].secondary_yaxis("right")
sizes_axis.set_yticks(range(len(shown)), [f"{millions[row]:.2f}" for row in shown])
sizes_axis.tick_params(length=0, labelsize=9)
sizes_axis.spines["right"].set_visible(False)
sizes_axis.set_ylabel("million parameters")
figure

# %% tags=["hide-input"]
best = max(changes, key=mean_of.get)
of_table.reveal(of_table.choices[changes.index(best)])
gains = [mean_of[row] - mean_of["base"] for row in changes]
more = [millions[row] - millions["base"] for row in changes]
assert [round(gain, 1) for gain in gains] == [0, 0.4, 1.1, 1.6]
assert [round(each, 2) for each in more] == [0, 0.66, 0.79, 0.51]
assert set(changes) < set(shown) and len(shown) == 12

# %% tags=["hide-input"]
assert set(labels) == set(bleu_of) and {len(runs) for runs in bleu_of.values()} == {3}
assert abs(mean_of[best] - mean_of["big"]) < 0.5
assert min(bleu_of[best] + bleu_of["big"]) > max(bleu_of["base"])
assert 4 < millions["big"] / millions[best] < 4.5
small = model_preset("small", 2000)
assert round(1e6 * millions["big"]) == small.num_parameters
wide = [run for run in table["runs"] if run["side"] == "C d_model 256"]
wide = [run for run in wide if run["stage"] == "tuning"]
by_rate = {run["choices"]["factor"]: run["results"]["bleu"] for run in wide}
assert len(by_rate) == 3 and min(by_rate) == max(by_rate, key=by_rate.get)
assert abs(mean_of["C d_model 256"] - mean_of["base"]) < 0.1

# %% tags=["hide-input", "hide-output", "nbval-check-output"]
print(f"{'BLEU of three seeds':57}{'mean':>6}{'low':>6}{'high':>6}   parameters")
for row, words in labels.items():
    runs, words = bleu_of[row], " ".join(words.split())
    print(f"{words:57}{mean_of[row]:6.1f}{min(runs):6.1f}{max(runs):6.1f}", end="")
    print(f"{millions[row]:7.2f} million")

# %% tags=["hide-input"]
import re

usual = next(run["choices"] for run in table["runs"] if run["side"] == "base")
assert (mini.num_layers, mini.num_heads, mini.d_model, mini.d_ff) == (2, 4, 128, 256)
assert mini.d_k == 32 and usual["dropout"] == usual["label_smoothing"] == 0.1
for run in table["runs"]:
    new = dict(run["choices"].items() - usual.items())
    new.pop("factor", None)  # of the learning rate
    numbers = [f"{each:,g}" for each in new.values() if type(each) in (int, float)]
    words = re.split(r",?\s", labels[run["side"]])
    assert set(numbers) <= set(words), (run["side"], numbers)

# %% [markdown]
# Untied weights bring 1.6 BLEU for 0.51 million parameters, d_ff 1,024 brings 1.1 for 0.79, four layers 0.4 for 0.66.
# Twice d_model brings nothing, but its best learning rate was the lowest tried.
# (Untied weights score like `small`: perhaps both are near what 20,000 pairs allow. Whether the parameters or easier training did it, the table cannot say.)
#
# On another corpus the numbers differ: on Multi30k, untied weights could not be told from luck (lesson [10](10_translation.ipynb)).
#
# ## A smaller model that learns from a larger one
#
# Suppose that there is room for *a third of the parameters* only, and few sentence pairs.
# In **knowledge distillation** [@hinton2015] a small model, the **student**, learns from a large trained one, the **teacher**.
# Our teacher is the translator `course`, trained on 60,000 pairs; the student has half of its widths, and 250 sentence pairs of up to six words.
# The teacher can help in two ways [@kim2016]:
#
# - *Sequence level*: it translates more sentences, and the student learns from these translations as if they were references.
# - *Word level*: at each position the student's target is the teacher's whole distribution, not one token only.
#
# What does a distribution say that a token does not? Here are two sentences, translated up to where the teacher is least sure, with its three likeliest subwords:

# %% tags=["hide-input"]
from course_lib.data import make_batch
from course_lib.metrics import mean_estimate
from course_lib.training import token_logits

token_of, sure = course.tokenizer.token, []
for number in (14, 49):
    pair = sentences[number]
    ids = course.encode([pair.src])[0], course.tokenizer.encode(pair.tgt)
    with torch.no_grad():
        by_teacher, _ = token_logits(course.model, make_batch([ids]))
    tops = by_teacher.softmax(dim=-1).topk(3)
    sure += tops.values[:, 0].tolist()
    at = tops.values[:, 0].argmin()
    options = zip(tops.indices[at].tolist(), tops.values[at].tolist(), strict=True)
    print(f"{pair.src}\n    {course.tokenizer.decode(ids[1][:at])} …", end="   ")
    print(*(f"{token_of(i)} {p:.2f}  " for i, p in options))

# %% [markdown]
# The teacher finds *putze* (clean) possible beside *putzte* (cleaned).
# For *at* it also weighs *um* and *am*, which suit other times of day.
# The loss is again a cross-entropy, with these probabilities as the target:


# %%
def our_distillation_loss(logits, teacher_logits):
    """Cross-entropy of the student to the teacher, summed over tokens."""
    targets = teacher_logits.softmax(dim=-1)  # (tokens, vocab)
    return -(targets * logits.log_softmax(dim=-1)).sum()


# %% tags=["hide-input"]
from course_lib.compression import distillation_loss, translated

some_logits = torch.randn(by_teacher.shape, generator=generator)
torch.testing.assert_close(
    our_distillation_loss(some_logits, by_teacher),
    distillation_loss(some_logits, by_teacher),
)
assert min(sure) < 0.7 and sorted(sure)[len(sure) // 2] > 0.85

# %% [markdown]
# Now we compare students after 3,000 steps: with the 250 pairs alone, and with 4,000 more sentences, whose translations are true or the teacher's.
# Indented lines have the data of the unindented line above, but other targets.
# (Recorded by `python -m course_lib.experiments distillation`; learning rates chosen on the validation part.)

# %%
of_student = Predict(
    "Which student will translate best?",
    [
        "4,000 more true pairs",
        "4,000 more sentences, translated by the teacher",
        "the same, with the teacher's probabilities for each token",
    ],
    section="A smaller model that learns from a larger one",
)
of_student

# %% tags=["hide-input"]
bleu = final_results(read_record("records/distillation.json"), "bleu")
names = {
    "alone": "250 true pairs",
    "word level": "    with the teacher's probabilities",
    "4,000 more true pairs": "4,000 more true pairs",
    "sequence level, 4,000 more": "4,000 more by the teacher",
    "both levels, 4,000 more": "    with its probabilities",
    "sequence level, 4,000 more, without smoothing": "    without label smoothing",
}
points = {side: mean_estimate(bleu[f"{side}, longer"]) for side in names}
print("BLEU on 200 unseen sentences, mean of three seeds with its 95 % interval")
for name, point in zip(names.values(), points.values(), strict=True):
    print(f"{name:40}{point.value:5.1f} ± {point.value - point.low:.1f}")
best = max(points, key=lambda side: points[side].value)
of_student.reveal(of_student.choices[list(names).index(best) - 2])

# %% tags=["hide-input"]
drawn = load_course(num_train=1)
short = [pair for pair in drawn.test + drawn.valid if len(pair.src.split()) <= 6]
as_taught = translated(course, [pair.src for pair in short])
equal = sum(a.tgt == b.tgt for a, b in zip(short, as_taught, strict=True))
print(f"Of {len(short)} sentences of up to six words", end=" ")
print(f"the teacher translates {equal} like the corpus.")
assert equal > 0.97 * len(short)

# %% tags=["hide-input"]
runs = {side: bleu[f"{side}, longer"] for side in names}
assert max(runs["alone"] + runs["word level"]) < 6
true, taught, both, unsmoothed = (runs[side] for side in list(names)[2:])
assert 75 < min(true + taught) < max(true + taught) < 80 < min(both)
assert abs(sum(true) - sum(taught)) / 3 < 1
assert max(unsmoothed) < min(taught) and 77 < sum(taught) / 3 and max(taught) < 79
assert 80 < sum(both) / 3 < 82
record = read_record("records/distillation.json")
of_students = {run["results"]["parameters"] for run in record["runs"]}
assert 0.3 < max(of_students) / course.model.config.num_parameters < 0.37

# %% [markdown]
# With 250 pairs every student fails, with the teacher's probabilities (there half of the loss) or without.
# 4,000 more sentences bring the student to 78 BLEU. True translations and the teacher's do equally well: they are nearly always the same.
# (In natural language a sentence has many translations. A teacher picks a typical one, which is easier to learn [@kim2016]. Our corpus has only one.)
#
# But a distribution does say more: with the teacher's probabilities as the only targets (the share that the validation part chose), the student gets to 81.
# It is not only that such targets are smooth: so are the others, by label smoothing.

# %% tags=["hide-input"]
bill = {  # MB before and after, as the summary has them
    (404.8, 12.6): [costs[name][-1][0] for name in ("written out", "fused")],
    (74.5, 26.8): [peaks[name] for name in ("all at once", "4 micro-batches")],
    (74.5, 16.4): [peaks[name] for name in ("all at once", "checkpointed")],
    (71.9, 52.1): [in_full, in_half],
    (12_900, 1_600): [beams, beams * caches[1] / caches[8]],
    (42.9, 11.0): [1e6 * whole, 1e6 * all_int8],
}
for told, found in bill.items():
    for expected, size in zip(told, found, strict=True):
        assert math.isclose(size / 1e6, expected, rel_tol=0.05), (told, found)

# %% [markdown]
# ## Your predictions

# %%
Predictions()

# %% [markdown]
# ## Glossary
#
# - **peak memory**: the most bytes that are held at any moment.
# - **online softmax**: a softmax over blocks of scores, corrected whenever a larger score turns up.
# - **fused kernel**: one operator for several steps, whose large intermediate results never reach main memory.
# - **gradient accumulation**: adding up the gradients of micro-batches before a step.
# - **activation checkpointing**: keeping only the inputs of layers (or groups of layers), and running them again in the backward pass.
# - **bfloat16**: numbers of 16 bits with the range of float32 and two to three significant decimal digits.
# - **mixed precision**: products in 16 bits; weights, norms and loss in float32.
# - **LoRA**: training two narrow matrices whose product is added to a fixed one.
# - **grouped-query attention**: several heads of queries share one of keys and values, so the cache is smaller.
# - **sliding window**: each token attends to the latest ones only.
# - **quantization**: storing numbers as small integers, times a scale.
# - **`torch.compile`**: records the operators of a function and, where it can, generates one loop for several.
# - **knowledge distillation**: training a small model on the output of a large one.
# - **student**: the small model, which learns.
# - **teacher**: the large model, which is already trained.

# %% [markdown]
# ## Summary
#
# A step takes six FLOPs for each parameter and token.
# Its peak, for `mini` ten times the weights, is known before it runs (short sentences, a CPU, a fused Adam): 12 bytes for each parameter, and the most that is held beside them while activations go and gradients come.
# Nearly every saving has its price:
#
# | | makes smaller | price | here |
# |---|---|---|---|
# | fused attention, 2,048 tokens | attention weights | computed twice, yet faster in long texts | 404.8 → 12.6 MB |
# | gradient accumulation | activations | none in FLOPs | 74.5 → 26.8 MB |
# | checkpointing | activations | up to a third more FLOPs | 74.5 → 16.4 MB |
# | bfloat16 products | some activations | digits, but not of weights that learn | 71.9 → 52.1 MB |
# | one head of keys and values | cache | quality, not measured here | 12.9 → 1.6 GB |
# | int8 weights | weights | digits, and with torchao here time | 42.9 → 11.0 MB |
#
# (The time of accumulation, checkpointing, mixed precision and a smaller cache is not measured, either.)
#
# Fused attention takes memory linear in the length; its time stays quadratic.
# With one scale per row, even four bits lost none of sixty sentences.
# Parameters are not equally useful: untied weights scored like a model four times as large.
# A student learns more from its teacher's probabilities (81 BLEU) than from its translations alone (78).
#
# **Practice**: [assignment 14](assignments/release/14_cost_and_memory/14_cost_and_memory.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [15](15_alternatives.ipynb) puts other architectures beside the Transformer, at equal parameters and equal time.
