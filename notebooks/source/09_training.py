# %% [markdown]
# # 09 · Training: what one step does, and what makes thousands of them work
#
# **Question.** The model of lesson 08 learned eight sentences by heart. What does it take until it solves a task on inputs that it has never seen?
#
# **Afterwards you can**
#
# 1. compute the training loss by hand, without its padding, and say why smoothed labels never let it reach 0;
# 2. write a training step: Adam, the learning rate's schedule, clipping, accumulation;
# 3. train a small Transformer, stop it, resume it, average it, and say what warm-up is for.
#
# **You need** batches ([01](01_text_to_tensors.ipynb)), the two orders of norms ([06](06_encoder.ipynb)) and the whole model ([08](08_transformer.ipynb)).
# **Time**: 40 minutes to read, under 150 seconds to run.
# **In the paper**: sections 5.3 and 5.4, and the averaged checkpoints of section 6.1.

# %%
import math
from dataclasses import replace

import torch
import torch.nn.functional as F

torch.set_num_threads(1)  # small tensors: two threads would wait for each other
device = "cuda" if torch.cuda.is_available() else "cpu"


def assert_same(ours, theirs):
    """Equal to nine digits."""
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


# %% [markdown]
# ## The loss
#
# Training makes one number small: the loss.
# To see what it measures, we take a model that is trained already: the small course translator, in float64.
# It gets four pairs of very different lengths.

# %%
from course_lib import Translator
from course_lib.data import Batch, BucketedBatches, Pair, encode_pairs, make_batch
from course_lib.tokenizer import PAD_ID

translator = Translator.from_pretrained("course")
model, tokenizer = translator.model.double(), translator.tokenizer
english = "The old woman gives the child a red apple."
german = "Die alte Frau gibt dem Kind einen roten Apfel."
pairs = [
    Pair("The cat sleeps.", "Die Katze schläft."),
    Pair("The cat sees the dog.", "Die Katze sieht den Hund."),
    Pair("The dog sees the cat.", "Der Hund sieht die Katze."),
    Pair(english, german),
]
batch = make_batch(encode_pairs(tokenizer, pairs))

# %% tags=["nbval-check-output"]
real = batch.tgt_out != PAD_ID  # (batch, tgt_len)
for row in batch.tgt_out.tolist():
    print(" ".join(tokenizer.token(number).strip("▁") for number in row))
print(f"{real.sum()} real tokens in {real.numel()} places")
assert real.sum() == batch.num_tokens < real.numel()

# %% [markdown]
# At every place the model gives a probability to each of its 2,000 subwords.
# The **cross-entropy** of a token is −log of the probability that its true subword gets.
# It is 0 if the model is certain and right, and grows without bound if it is certain and wrong.
# The loss is the mean over the *real* tokens, in nats a token.
# First in a loop:


# %%
def loss_loop(logits, tgt_out):
    """Mean of -log p[true subword] over real tokens, one after another."""
    total, count = 0.0, 0
    for row in range(tgt_out.shape[0]):
        for place in range(tgt_out.shape[1]):
            true = tgt_out[row, place].item()
            if true == PAD_ID:
                continue
            exponentials = [math.exp(score) for score in logits[row, place].tolist()]
            total -= math.log(exponentials[true] / sum(exponentials))
            count += 1
    return total / count


# %% [markdown]
# Then with a mask, then with PyTorch's `ignore_index`, then from the library: four times the same?

# %%
from course_lib.training import label_smoothed_loss

with torch.no_grad():
    logits = model(batch.src, batch.tgt_in)  # (batch, tgt_len, vocab)
by_hand = torch.tensor(loss_loop(logits, batch.tgt_out), dtype=torch.float64)
masked = F.cross_entropy(logits[real], batch.tgt_out[real])
flat = (logits.flatten(0, 1), batch.tgt_out.flatten())
assert_same(masked, by_hand)
assert_same(F.cross_entropy(*flat, ignore_index=PAD_ID), by_hand)
theirs = label_smoothed_loss(logits[real], batch.tgt_out[real])  # a sum over tokens
assert_same(theirs / batch.num_tokens, by_hand)
choices = by_hand.exp()
assert logits.shape[-1] == 2000
print(f"{by_hand:.3f} nats a token: as unsure as among {choices:.2f} equal choices")

# %% [markdown]
# (The second number, e to the power of the loss, is called *perplexity*.
# A model that is certain and right has 1.)
#
# ### Padding contributes nothing
#
# Predict: we add more padding on the right of all four pairs.
# What happens to the loss?
# And what is its gradient at a place that is padding?


# %%
def widen(batch, columns):
    """The same sentences with more padding on their right."""
    parts = (batch.src, batch.tgt_in, batch.tgt_out)
    return Batch(*(F.pad(ids, (0, columns), value=PAD_ID) for ids in parts))


wide = widen(batch, 20)
wide_real = wide.tgt_out != PAD_ID
logits = model(wide.src, wide.tgt_in).detach().requires_grad_()
loss = F.cross_entropy(logits[wide_real], wide.tgt_out[wide_real])
loss.backward()
assert_same(loss, by_hand)
assert (logits.grad[~wide_real] == 0).all()
assert (logits.grad[wide_real].abs().sum(dim=-1) > 0).all()

# %% [markdown]
# The same loss, and exactly no gradient.
#
# **A common mistake**: averaging the padding in.
# There are two ways to do it: count `<pad>` as a word to be predicted, or leave it out of the sum and divide by all places all the same.
# Which of the two makes the loss larger?

# %%
names = ("real tokens only", "padding as a word", "divided by all places")
columns, found = range(0, 41, 5), {name: [] for name in names}
for more in columns:
    wide = widen(batch, more)
    with torch.no_grad():
        logits = model(wide.src, wide.tgt_in).transpose(1, 2)  # (batch, vocab, tgt_len)
    each = F.cross_entropy(logits, wide.tgt_out, reduction="none")  # (batch, tgt_len)
    counts = wide.tgt_out != PAD_ID
    means = (each[counts].mean(), each.mean(), (each * counts).mean())
    for name, mean in zip(names, means, strict=True):
        found[name].append(mean.item())
assert counts.sum() < 0.2 * counts.numel()  # at the end more than 80 % are padding

# %%
from course_lib.figures import curves

figure = curves(
    {name: (columns, losses) for name, losses in found.items()},
    xlabel="columns of padding added",
    ylabel="loss (nats a token)",
    title="Only the mean over real tokens does not move when padding is added",
    log_y=True,
)
right, as_word, divided = found.values()
assert max(right) - min(right) < 1e-9
assert as_word == sorted(as_word) and as_word[0] > 10 * right[0]
assert divided == sorted(divided, reverse=True) and divided[-1] < 0.3 * right[-1]
figure

# %% [markdown]
# The sentences are the same at every point of the figure.
# The first mistake asks for something that this model has never learned and nobody will ever need; where padding is plentiful, it asks for little else.
# The second one makes a batch with much padding count less.
#
# ## Label smoothing
#
# The paper smooths the labels, with ε = 0.1 (section 5.4).
# The target is no longer "this subword, with probability 1".
# It gives 1 − ε to the true subword and spreads ε evenly over the vocabulary.
# As a loop over the 2,000 subwords:


# %%
smoothing, vocab = 0.1, model.config.vocab_size


def smoothed_loop(logits, targets):
    """Sum over tokens of the cross-entropy to the smoothed target."""
    total = 0.0
    for log_probs, true in zip(logits.log_softmax(dim=-1), targets, strict=True):
        for subword, log_prob in enumerate(log_probs.tolist()):
            wanted = smoothing / vocab
            if subword == true:
                wanted += 1 - smoothing
            total -= wanted * log_prob
    return torch.tensor(total, dtype=torch.float64)


# %%
with torch.no_grad():
    logits = model(batch.src, batch.tgt_in)[real]  # (tokens, vocab)
targets = batch.tgt_out[real]  # (tokens,)
by_hand = smoothed_loop(logits, targets)
ours = label_smoothed_loss(logits, targets, smoothing=smoothing)
torchs = dict(label_smoothing=smoothing, reduction="sum")
assert_same(ours, by_hand)
assert_same(F.cross_entropy(logits, targets, **torchs), by_hand)
print(f"smoothed {ours / len(targets):.3f}, plain {masked:.3f} nats a token")
assert 8 < ours / len(targets) / masked < 12

# %% [markdown]
# Equal, and about ten times as large.
# Is the model so bad?
# Or can this loss not be small?
#
# Suppose that one subword gets probability p and all others share the rest evenly.
# Before you run the cell: where is the smoothed loss lowest, and what happens as p comes close to 1?

# %%
p = torch.linspace(0.3, 0.9995, 2000, dtype=torch.float64)
other = (1 - p) / (vocab - 1)
true_share = 1 - smoothing + smoothing / vocab
smoothed = -true_share * p.log() - (1 - true_share) * other.log()
lowest = smoothed.argmin()
assert math.isclose(true_share, 0.90005)

# %%
figure = curves(
    {"plain": (p, -p.log()), "smoothed, ε = 0.1": (p, smoothed)},
    xlabel="probability of the true subword",
    ylabel="loss (nats)",
    title="With smoothed labels 90 % is best, and the loss stays above 1",
    marks={f"lowest, at {p[lowest]:.2f}": (p[lowest], smoothed[lowest])},
)
assert abs(p[lowest] - true_share) < 1e-3
assert smoothed.min() > 1 and smoothed[-1] > smoothed[lowest] + 0.3
assert (-p.log()).argmin() == len(p) - 1
figure

# %% [markdown]
# The plain loss is never content, so it pushes the logits apart without end.
# The smoothed loss rises again near p = 1, where the others get less than they should.
# It has a best answer: the smoothed target itself.
# Its loss there is the target's own entropy, and no logits can go below.
# At the best answer the gradient must be zero; we check that, and a hundred neighbors.

# %% tags=["nbval-check-output"]
wanted = torch.full((1, vocab), smoothing / vocab, dtype=torch.float64)
wanted[0, 7] += 1 - smoothing
true, best = torch.tensor([7]), wanted.log().requires_grad_()  # softmax(best) = wanted
loss = label_smoothed_loss(best, true, smoothing=smoothing)
loss.backward()
floor = -(wanted * wanted.log()).sum()
assert_same(loss.detach(), floor)
assert best.grad.abs().max() < 1e-12
generator = torch.Generator().manual_seed(0)
for _ in range(100):
    near = wanted.log() + 0.1 * torch.randn(1, vocab, generator=generator)
    assert label_smoothed_loss(near, true, smoothing=smoothing) > floor
gap = math.log(wanted[0, 7] / wanted[0, 8])
print(f"floor {floor:.3f} nats; best logits are {gap:.1f} apart, not infinitely far")

# %% [markdown]
# So a smoothed training loss near 1.1 is a very good one, for 2,000 subwords.
#
# The translator was trained with ε = 0.1.
# If the theory is right, what probability does it give to the true subwords in 200 sentences of its corpus?

# %%
from course_lib.data import load_course

sentences = load_course(num_train=200, num_valid=1, num_test=1).train
many = make_batch(encode_pairs(tokenizer, sentences))
places = many.tgt_out != PAD_ID
with torch.no_grad():
    log_probs = model(many.src, many.tgt_in)[places].log_softmax(dim=-1)
of_true = log_probs.gather(1, many.tgt_out[places][:, None]).exp()
quartiles = of_true.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64))
print("a quarter, half, three quarters of them below:", quartiles.numpy().round(3))
assert (abs(quartiles - true_share) < 0.03).all()

# %% [markdown]
# Near 0.9, as the theory says.
# The paper sees both sides: smoothing makes the model less sure, which hurts perplexity, and it improves accuracy and BLEU.
# (We measure only the first here.)
#
# (The paper's own program, tensor2tensor, spreads ε over the *other* subwords only.
# With 2,000 of them the true one gets 0.9 there, and 0.90005 from PyTorch and us.)
#
# ## One step of Adam
#
# Now the loss has a gradient, and each weight must move.
# The paper uses **Adam** with β₁ = 0.9, β₂ = 0.98 and ε = 10⁻⁹ (section 5.3; this ε is another one).
# For each weight it keeps two running means: m of the gradient, v of its square.
# Old gradients fade: each step multiplies m by β₁ and v by β₂.
# Both start at 0, so early on they are too small; dividing by 1 − βᵗ corrects that.
# The step takes learning rate · m / (√v + ε), with both corrected, off the weight.


# %%
def adam_loop(weights, gradients, lr, beta1=0.9, beta2=0.98, eps=1e-9):
    """The weights after a step for each list of gradients, one number at a time."""
    weights = list(weights)
    m, v = [0.0] * len(weights), [0.0] * len(weights)
    for step, gradient in enumerate(gradients, start=1):
        for i, g in enumerate(gradient):
            m[i] = beta1 * m[i] + (1 - beta1) * g
            v[i] = beta2 * v[i] + (1 - beta2) * g * g
            m_corrected = m[i] / (1 - beta1**step)
            v_corrected = v[i] / (1 - beta2**step)
            weights[i] -= lr * m_corrected / (math.sqrt(v_corrected) + eps)
    return torch.tensor(weights, dtype=torch.float64)


# %% [markdown]
# PyTorch's Adam gets five weights whose gradients have very different sizes, for fifty steps.

# %%
sizes = torch.tensor([1e-6, 1e-3, 1.0, 1e3, 1e6], dtype=torch.float64)
generator = torch.Generator().manual_seed(0)
noise = torch.randn(50, 5, generator=generator, dtype=torch.float64) + 0.3
gradients = sizes * noise  # (steps, weights)


def adam(num_steps, **options):
    """Five weights of 0 after so many steps of torch's Adam with the paper's betas."""
    weights = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], betas=(0.9, 0.98), eps=1e-9, **options)
    for gradient in gradients[:num_steps]:
        weights.grad = gradient.clone()
        optimizer.step()
    return weights.detach()


assert_same(adam(50, lr=0.01), adam_loop([0.0] * 5, gradients.tolist(), lr=0.01))

# %% [markdown]
# Predict: the gradients differ by a factor of a million million.
# How far does each weight move in the *first* step?

# %% tags=["nbval-check-output"]
first = adam(1, lr=0.01).abs()
print("gradient sizes    ", "  ".join(f"{size:5.0e}" for size in sizes))
print("first step, in lr ", "  ".join(f"{move / 0.01:5.2f}" for move in first))
assert (abs(first / 0.01 - 1) < 0.01).all()

# %% [markdown]
# All by one learning rate.
# After one step the corrected m is the gradient and the corrected √v is its size, so only its sign is left.
# Keep this in mind: the first step moves nearly *every* weight of the model by the full rate, on the word of one batch.
#
# ### What β₂ does
#
# v forgets at the pace of β₂: about 1 / (1 − β₂) steps, 50 for the paper's 0.98 and 1000 for PyTorch's default 0.999.
# We follow a single weight.
# Its gradient is 1, then 10 for fifty steps, then 1 again.
# Which β₂ copes better?


# %%
def moves(gradients, **options):
    """How far one weight moves in each step of torch's Adam, in learning rates."""
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=1.0, **options)
    steps = []
    for gradient in gradients:
        before, weight.grad = weight.item(), torch.full_like(weight, gradient)
        optimizer.step()
        steps.append(before - weight.item())
    return steps


# %%
bump = [1.0] * 200 + [10.0] * 50 + [1.0] * 350
quick, slow = (moves(bump, betas=(0.9, beta2)) for beta2 in (0.98, 0.999))
figure = curves(
    {"β₂ = 0.98": (range(600), quick), "β₂ = 0.999": (range(600), slow)},
    xlabel="step",
    ylabel="move (learning rates)",
    title="With β₂ = 0.999 Adam oversteps more when gradients grow, "
    "and lags longer when they shrink again",
    marks={"gradient × 10": (200, None), "gradient as before": (250, None)},
)
assert max(slow) > 1.5 * max(quick) and math.isclose(quick[199], 1, rel_tol=1e-6)
assert quick[-1] > 0.8 and slow[-1] < 0.5
figure

# %% [markdown]
# Here, where the gradient changes its size, the paper's shorter memory is the more careful one.
#
# ### What ε does
#
# ε decides which gradient counts as nothing.
# Our model has such gradients: the bias of W_K adds the same to all scores of a query, and the softmax does not care.
# Its true gradient is 0, but the computer finds a rounding error.
# What does Adam make of that without ε, and with it?

# %%
loss = F.cross_entropy(model(batch.src, batch.tgt_in)[real], batch.tgt_out[real])
loss.backward()
layer = model.encoder.layers[0].self_attn
biases = (layer.query_proj.bias, layer.key_proj.bias)
usual, rounding = (bias.grad.abs().max().item() for bias in biases)
print(f"largest gradient: query bias {usual:.0e}, key bias {rounding:.0e}")
for eps in (0.0, 1e-9):
    (move,) = moves([rounding], eps=eps)
    print(f"with ε = {eps:g} the key bias moves by {move:.0e} learning rates")
    assert move > 0.99 if eps == 0 else move < 1e-3
assert 0 < rounding < 1e-12 and usual > 1e-6

# %% [markdown]
# Without ε the rounding error moves the bias by a full learning rate, in an arbitrary direction.
# With it, next to nothing happens.
#
# But this model computes in float64, and models are trained in float32, where rounding errors are far larger.
# Are they below ε, too?

# %%
import copy

rough = copy.deepcopy(model).float()
rough.zero_grad()
F.cross_entropy(rough(batch.src, batch.tgt_in)[real], batch.tgt_out[real]).backward()
rounding = rough.encoder.layers[0].self_attn.key_proj.bias.grad.abs().max().item()
(move,) = moves([rounding], eps=1e-9)
print(f"float32: gradient {rounding:.0e}, a move of {move:.2f} learning rates")
assert 1e-3 < move < 1

# %% [markdown]
# They come near it, and this ε only damps them.
# Here that does no harm: whatever the key bias is, the softmax does not care.
#
# ## The schedule
#
# The learning rate is not a constant.
# Equation 3 of the paper: d_model^−0.5 · min(step^−0.5, step · warmup_steps^−1.5), with warmup_steps = 4000.
# Two terms, and the smaller one counts.
# Which one is it at the first step?
# And where do they meet?


# %%
def rate_by_hand(step, d_model=512, warmup_steps=4000):
    """The paper's learning rate; steps count from 1."""
    rising, falling = step * warmup_steps**-1.5, step**-0.5
    return d_model**-0.5 * min(rising, falling)


# %% tags=["nbval-check-output"]
from course_lib import ModelConfig
from course_lib.training import TrainConfig, learning_rate, paper_rate

steps = range(1, 100_001)
rates = [rate_by_hand(step) for step in steps]
peak = rates.index(max(rates)) + 1
print(f"base: {rates[0]:.2e} at step 1, {max(rates):.2e} at {peak}, {rates[-1]:.2e}")
assert peak == TrainConfig().warmup_steps == 4000
assert math.isclose(max(rates), (512 * 4000) ** -0.5)
assert rate_by_hand(4000, d_model=1024) < rates[3999] > rate_by_hand(8000, 512, 8000)
for step in (1, 17, 3999, 4000, 4001, 100_000):
    same = dict(rel_tol=1e-12)
    paper = paper_rate(step, d_model=512, warmup_steps=4000)
    library = learning_rate(TrainConfig(), step, d_model=512, total_steps=100_000)
    assert math.isclose(rates[step - 1], paper, **same)
    assert math.isclose(rates[step - 1], library, **same)

# %% [markdown]
# Up in a straight line, the **warm-up**, then down with the root of the step.
# They meet at `warmup_steps`, where the rate is (d_model · warmup_steps)^−0.5 = 6.99 · 10⁻⁴.
# So a wider model, or a longer warm-up, gets a lower peak.
#
# **A common mistake**: lr = d^−0.5 · min(**d**^−0.5, i · w^−1.5).
# One letter is wrong: there should be a step in the first term.
# What does this schedule do in the end?


# %% tags=["nbval-check-output"]
def mistaken_rate(step, d_model=512, warmup_steps=4000):
    return d_model**-0.5 * min(d_model**-0.5, step * warmup_steps**-1.5)


mistaken = [mistaken_rate(step) for step in steps]
top = mistaken.index(max(mistaken)) + 1
print(f"grows until step {top:,}, to {max(mistaken):.2e}")
assert set(mistaken[top - 1 :]) == {max(mistaken)}  # from there on a constant
assert all(map(math.isclose, mistaken[:4000], rates))

# %%
shown = slice(0, 20_000, 100)
x = list(steps)[shown]
figure = curves(
    {"paper": (x, rates[shown]), "with d in place of the step": (x, mistaken[shown])},
    xlabel="step",
    ylabel="learning rate",
    title="The paper's rate peaks at step 4,000; with one wrong letter it goes on "
    f"to {max(mistaken) / max(rates):.1f} times as much, and stays there",
    marks={"warmup_steps": (4000, None)},
)
lines = figure.axes[0].lines
assert lines[0].get_ydata().max() < max(rates) * 1.001
assert lines[1].get_ydata()[-1] == max(mistaken) > 2.7 * max(rates)
figure

# %% [markdown]
# Up to the peak the two are the same, so a short test would not tell.
#
# Now the right one, to play with.
# Which lowers the peak more: twice the warm-up, or twice the width?

# %%
from course_lib.widgets import ScheduleExplorer

explorer = ScheduleExplorer(d_model=512, warmup_steps=4000)
peak_step, peak_rate = explorer.view["peak"]
assert peak_step == 4000 and math.isclose(peak_rate, max(rates))
explorer

# %% [markdown]
# Neither: each divides the peak by √2.

# %%
longer = rate_by_hand(8000, warmup_steps=8000)
wider = rate_by_hand(4000, d_model=1024)
for peak in (longer, wider):
    assert math.isclose(rate_by_hand(4000) / peak, math.sqrt(2))

# %% [markdown]
# The paper's rate depends on the step alone: it does not know when a run ends.
# Our recipe for short runs differs: after the warm-up it falls **linearly**, and arrives near 0 with the last step.
# Below we train a small model, d_model = 96, for about 700 steps:

# %%
x, rates = range(1, 701), {}
decays = {"inverse root (paper)": "inverse_sqrt", "linear (ours)": "linear"}
for name, decay in decays.items():
    config = TrainConfig(warmup_steps=300, decay=decay)
    run = [learning_rate(config, step, d_model=96, total_steps=700) for step in x]
    rates[name] = (x, run)
title = "At the end of a short run the paper's rate is still high, ours near 0"
figure = curves(rates, xlabel="step", ylabel="learning rate", title=title)
inverse_root, linear = (run for _, run in rates.values())
assert inverse_root[:300] == linear[:300] and linear[-1] < 0.01 * max(linear)
assert inverse_root[-1] > 0.6 * max(inverse_root)
figure

# %% [markdown]
# Which one is better?
# We shall train with both.
#
# ## Clipping
#
# Now and then a batch has a huge gradient.
# **Clipping** shortens the gradient of the whole model to a largest norm.
# All numbers get the same factor, so its direction stays.

# %%
def norm_of(gradients):
    """Length of all gradients together, one number at a time."""
    return math.sqrt(sum(g * g for gradient in gradients for g in gradient.flatten()))


small = model.encoder.layers[0].feed_forward.up  # stands for the whole model
before = [each.grad.clone() for each in small.parameters()]  # of the last loss
longest = norm_of(before) / 5
factor = min(1.0, longest / norm_of(before))
by_hand = [gradient * factor for gradient in before]
torch.nn.utils.clip_grad_norm_(small.parameters(), longest)
after = [parameter.grad for parameter in small.parameters()]
torch.testing.assert_close(after, by_hand, rtol=1e-4, atol=0)
assert math.isclose(norm_of(after), longest, rel_tol=1e-4)

# %% [markdown]
# But Adam divides by the size of the gradient anyway.
# Why clip at all?
# Think of v: what does it remember after one step with a gradient of 1000?

# %%
broken = [1.0] * 100 + [1000.0] + [1.0] * 500
clipped = [min(gradient, 1.0) for gradient in broken]
papers = dict(betas=(0.9, 0.98), eps=1e-9)
with_spike, without = moves(broken, **papers), moves(clipped, **papers)
figure = curves(
    {"as it is": (range(601), with_spike), "clipped to 1": (range(601), without)},
    xlabel="step",
    ylabel="move (learning rates)",
    title="One broken batch nearly stops Adam for hundreds of steps, "
    "unless it is clipped",
    marks={"gradient × 1000": (100, None)},
)
stalled = sum(move < 0.1 for move in with_spike[100:])
assert 200 < stalled < 300 and min(without) > 0.99
figure

# %% [markdown]
# v remembers the one batch for much longer than m does.
# The paper does not mention clipping; our recipe clips to a norm of 1.
#
# ## Accumulation
#
# The paper's batches hold about 25,000 source and 25,000 target tokens (section 5.1).
# What if that does not fit into memory?
# `backward()` *adds* to the gradient.
# So we can send several **micro-batches** through the model, and step once.
#
# **A common mistake**: "accumulation reduces the memory of the model."
# It reduces the activations, which grow with the batch (lesson [08](08_transformer.ipynb)); weights, gradients and moments stay.
#
# Is it the same as one large batch?
# Three short pairs are one micro-batch, the long pair is another.


# %%
def accumulated(parts, divisor):
    """The model's gradient: of each micro-batch's summed loss over its divisor."""
    model.zero_grad()
    for part in parts:
        here = part.tgt_out != PAD_ID
        logits = model(part.src, part.tgt_in)[here]
        total = label_smoothed_loss(logits, part.tgt_out[here], smoothing=smoothing)
        (total / divisor(part)).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


encoded = encode_pairs(tokenizer, pairs)
micro = [make_batch(encoded[:3]), make_batch(encoded[3:])]
tokens = sum(part.num_tokens for part in micro)
large = accumulated([batch], lambda part: part.num_tokens)

# %% tags=["nbval-check-output"]
ways = {
    "sum / all tokens of the step": lambda part: tokens,
    "mean of the two means": lambda part: part.num_tokens * len(micro),
    "means, not divided by 2": lambda part: part.num_tokens,
}
off = {}
for name, divisor in ways.items():
    off[name] = ((accumulated(micro, divisor) - large).norm() / large.norm()).item()
    verdict = "equal" if off[name] < 1e-6 else "off by more than 5 %"
    print(f"{name:30}{verdict}")
right, means, undivided = off.values()
assert right < 1e-6 and means > 0.05 and 0.7 < undivided < 1.5  # 1: twice as long
print([part.num_tokens for part in micro], "tokens in the micro-batches")

# %% [markdown]
# Weighted by tokens, it is the large batch, to the last few digits.
#
# **A common mistake**: each micro-batch's mean divided by their number.
# That is right only if all have equally many tokens; here the long pair gets too much weight.
#
# **A common mistake**: the loss not divided at all.
# With n micro-batches the gradient is then about n times too long.
# Adam hides that, because it divides by the size; but the norm that clipping measures is n times too large.
#
# **A common mistake**: stepping at `i % n == 0`.
# Which micro-batches go into which step?


# %% tags=["nbval-check-output"]
def groups(count, is_time):
    """Numbers of the micro-batches that go into each step, and of those left over."""
    steps, waiting = [], []
    for i in range(count):
        waiting.append(i)  # here stands backward()
        if is_time(i):
            steps.append(waiting)  # here stand step() and zero_grad()
            waiting = []
    return steps, waiting


count, n = 10, 4
mistaken = groups(count, lambda i: i % n == 0)
right = groups(count, lambda i: (i + 1) % n == 0 or i + 1 == count)
print("i % n == 0:      ", *mistaken[0], " left over", mistaken[1])
print("(i + 1) % n == 0:", *right[0], " left over", right[1])
assert len(mistaken[0][0]) == 1 and mistaken[1] and not right[1]

# %% [markdown]
# The mistake steps after the very first micro-batch, and forgets the last ones, or carries them into the next epoch.
#
# The library's training loop is `fit`, and `accumulate` in `TrainConfig` is its n.
# Is one step of `fit` with two micro-batches the same as one with a large batch?
# (We give Adam a larger ε here: in float32, rounding errors are larger, too.)

# %%
from course_lib import Transformer
from course_lib.training import fit

results, once = {}, dict(epochs=1, peak_lr=1e-3, warmup_steps=1, eps=1e-4)
for batch_tokens in (1000, 24):  # all pairs in one batch, or at most 24 tokens
    torch.manual_seed(0)
    fresh, batches = Transformer(model.config), BucketedBatches(encoded, batch_tokens)
    count = len(batches.plan(0))  # micro-batches
    config = TrainConfig(**once, batch_tokens=batch_tokens, accumulate=count)
    assert len(fit(fresh, batches, config, progress=False).losses) == 1
    results[count] = torch.cat([each.detach().flatten() for each in fresh.parameters()])
one, several = results.values()
difference = (one - several).abs().max()
print(f"{list(results)} micro-batches: weights differ by {difference:.0e}")
assert min(results) == 1 < max(results) and difference < 1e-5

# %% [markdown]
# ## Against learning by heart
#
# Lesson 08's model knew eight sentences by heart.
# Two things make that harder: dropout and weight decay.
#
# Lesson [06](06_encoder.ipynb) built **dropout** (section 5.4): in training, each number is set to 0 with probability p, and the others are divided by 1 − p.
# That keeps the mean of every number.
# Does it keep the mean of the loss?
# We switch dropout on in our translator, which has learned without.


# %%
def loss_of(model, batch):
    """Plain loss in nats a token, in whatever mode the model is."""
    with torch.no_grad():
        places = batch.tgt_out != PAD_ID
        logits = model(batch.src, batch.tgt_in)[places]
    return F.cross_entropy(logits, batch.tgt_out[places]).item()


dropping = Transformer(replace(model.config, dropout=0.1)).double()
dropping.load_state_dict(model.state_dict())
torch.manual_seed(0)
in_training = [loss_of(dropping.train(), batch) for _ in range(10)]
in_use = loss_of(dropping.eval(), batch)
print(f"model: {in_use:.3f} in eval mode, in training mode", end=" ")
print(f"{min(in_training):.3f} to {max(in_training):.3f}")
assert model.config.dropout == 0 and math.isclose(in_use, loss_of(model, batch))
assert len(set(in_training)) == 10 and min(in_training) > in_use

# %% [markdown]
# It does not: the loss is no linear function of the numbers, and all ten are larger.
# So with dropout the training loss makes a model look worse than it is, and so does evaluating without `model.eval()`.
#
# **Weight decay** pulls weights toward 0.
# There are two ways to build it into Adam.
# *L2* adds decay · weight to the gradient.
# *Decoupled* (AdamW) takes lr · decay · weight off the weight itself, past m and v.
# To see the difference, we take a weight of 1 whose gradients cancel: +size, −size, +size, …
# Only the decay should move it; after 200 steps, what is left?


# %% tags=["nbval-check-output"]
def what_is_left(optimizer_class, size, lr=0.01, weight_decay=0.1):
    weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
    optimizer = optimizer_class([weight], lr, **papers, weight_decay=weight_decay)
    for step in range(200):
        weight.grad = torch.full_like(weight, size * (-1) ** step)
        optimizer.step()
    return weight.item()


left = {}
for name, kind in (("L2", torch.optim.Adam), ("decoupled", torch.optim.AdamW)):
    left[name] = [what_is_left(kind, size) for size in (0.1, 10)]
    print(f"{name:10}gradients ± 0.1: {left[name][0]:.1f}   ± 10: {left[name][1]:.1f}")
assert left["L2"][0] < 0.3 and left["L2"][1] > 0.9
assert all(abs(each - (1 - 0.01 * 0.1) ** 200) < 0.02 for each in left["decoupled"])

# %% [markdown]
# With L2, Adam divides the decay by √v like everything else: the weight with small gradients loses most of itself, the one with large gradients hardly anything.
# Decoupled, both keep about (1 − lr · decay)²⁰⁰ of themselves.
# The library's is decoupled, and off unless we ask for it: the paper does not mention weight decay.
#
# ### Do they help?
#
# We let a tiny model learn about a hundred short sentences, forty times over, with three seeds.
# Predict for dropout: what happens to the loss on the sentences that it learns, and on sentences that it has never seen?

# %%
from course_lib import Tokenizer
from course_lib.training import validate

assert TrainConfig().weight_decay == 0
corpus = load_course(num_train=400, num_valid=400, num_test=1)
known, new = (
    [pair for pair in part if len(pair.src.split()) <= 6]
    for part in (corpus.train, corpus.valid)
)
texts = [text for pair in known for text in (pair.src, pair.tgt)]
few_subwords = Tokenizer.train(texts, vocab_size=500)
known, new = encode_pairs(few_subwords, known), encode_pairs(few_subwords, new)
print(f"{len(known)} sentences to learn, {len(new)} new ones")
assert not {tuple(src) for src, _ in known} & {tuple(src) for src, _ in new}


# %%
sizes = dict(d_model=64, num_heads=2, num_layers=1, d_ff=128, norm_first=True)
by_heart = dict(epochs=40, peak_lr=3e-3, warmup_steps=40, decay="linear")


def learn(seed, dropout=0.0, weight_decay=0.0):
    """Loss on the known and on the new sentences, both in eval mode."""
    config = ModelConfig(few_subwords.vocab_size, **sizes, dropout=dropout)
    recipe = TrainConfig(**by_heart, weight_decay=weight_decay, seed=seed)
    torch.manual_seed(seed)
    fresh = Transformer(replace(config, max_len=64)).to(device)
    batches = BucketedBatches(known, 512, seed=seed)
    fit(fresh, batches, replace(recipe, label_smoothing=0.0), progress=False)
    both = (batches, BucketedBatches(new, 512))
    return [validate(fresh, each)["valid_loss"] for each in both]


# %%
ways = {"nothing": {}, "dropout": dict(dropout=0.1)}
ways["weight decay"] = dict(weight_decay=1.0)
ends = {}
for name, options in ways.items():
    ends[name] = torch.tensor([learn(seed, **options) for seed in range(3)])
    for row, sentences in enumerate(("known", "new")):
        losses = ends[name][:, row].tolist()
        print(f"{name:13}{sentences:6}", *(f"{loss:6.2f}" for loss in losses))
bare_known, bare_new = ends.pop("nothing").unbind(dim=1)  # (seeds,) each
for end in ends.values():
    assert (end[:, 0] > bare_known + 0.1).all()
    assert end[:, 1].mean() < bare_new.mean() - 0.1

# %% [markdown]
# Both make the known sentences harder to learn and the new ones easier to predict.
# (A hundred sentences are far too few for German, so all losses on new ones are high.)

# %% [markdown]
# ## A task: copy and reverse
#
# Now a whole run, with everything together.
# The task needs no grammar: repeat some letters, or say them backwards, as the first word tells.
# Three to eight letters, drawn at random; all commands are different, so those that we hold out are new.

# %%
import random
import string


def make_pairs(count, letters, lengths, tasks, seed):
    """Different commands, each with what it asks for."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        word = rng.choices(letters, k=rng.choice(lengths))
        task = rng.choice(tasks)
        answer = word if task == "copy" else word[::-1]
        found[" ".join([task, *word])] = " ".join(answer)
    return [Pair(*both) for both in found.items()]


both_tasks = make_pairs(
    8500, string.ascii_lowercase, range(3, 9), ("copy", "reverse"), seed=1
)
held_out, train_pairs = both_tasks[:500], both_tasks[500:]

# %% tags=["nbval-check-output"]
texts = [text for pair in train_pairs for text in pair]
tokenizer = Tokenizer.train(texts, vocab_size=200)
for pair in train_pairs[:3]:
    print(f"{pair.src}  →  {pair.tgt}")
print(f"{tokenizer.vocab_size} subwords")
assert not {pair.src for pair in train_pairs} & {pair.src for pair in held_out}
assert all(len(tokenizer.tokens(text)) == len(text.split()) for text in texts)

# %% [markdown]
# Each word is one token: a letter, *copy* or *reverse*.
#
# The model has one layer in each stack, in pre-norm order.
# It sees the 8,000 training pairs six times; on a GPU, eight times.
# The recipe is what we have taken apart above: smoothed labels, Adam, the paper's schedule with a shorter warm-up, and clipping to 1.
#
# **A common mistake**: notes that say "trained with Adam" and stop.
# Without β₂, ε, warm-up, label smoothing and the averaging below, nobody can repeat the paper's run.
# The first four are the defaults of `TrainConfig`.

# %%
sizes = dict(d_model=96, num_heads=4, num_layers=1, d_ff=192, dropout=0.0, max_len=64)
config = ModelConfig(tokenizer.vocab_size, **sizes, norm_first=True)
epochs = 8 if device == "cuda" else 6
recipe = TrainConfig(epochs=epochs, batch_tokens=512, warmup_steps=300, clip_norm=1.0)
batches = BucketedBatches(encode_pairs(tokenizer, train_pairs), recipe.batch_tokens)
valid = BucketedBatches(encode_pairs(tokenizer, held_out), recipe.batch_tokens)


def new_model(seed):
    torch.manual_seed(seed)
    return Transformer(config).to(device)


assert TrainConfig().decay == "inverse_sqrt" and TrainConfig().warmup_steps == 4000
assert TrainConfig().label_smoothing == smoothing
assert (TrainConfig().betas, TrainConfig().eps) == ((0.9, 0.98), 1e-9)

# %% [markdown]
# Three commands that it will never train on are answered after 100 steps, 200, 400, and at the end.
# Before you run the next cell: will it get any of the three right within 100 steps?

# %%
import tempfile
from pathlib import Path

from course_lib.widgets import LiveTraining

scratch = tempfile.TemporaryDirectory()  # is deleted with the kernel
folder = Path(scratch.name)
watched = ["copy l e s s o n", "reverse l e s s o n", "reverse w o n d e r"]
learner = Translator(new_model(0), tokenizer)
live = LiveTraining(learner, watched)
watch = dict(on_step=live.on_step, on_epoch=live.on_epoch, progress=False)
files = dict(folder=folder / "paper", keep=3)
history = fit(learner.model, batches, recipe, valid=valid, **files, **watch)

# %%
vocab = tokenizer.vocab_size
wanted = torch.full((vocab,), smoothing / vocab)
wanted[0] += 1 - smoothing
floor = -(wanted * wanted.log()).sum().item()
ended = sum(history.losses[-50:]) / 50
print(f"the training loss ends near {ended:.2f}, its floor is {floor:.2f}")
assert not set(watched) & {pair.src for pair in train_pairs}
assert history.stopped == "finished" and history.losses[0] > 2 * ended
assert floor < min(history.losses) and ended < floor + 0.4
step, first = live.translations[0]
assert step == 100 and not {"l e s s o n", "n o s s e l", "r e d n o w"} & set(first)

# %% [markdown]
# After 100 steps none of the three answers is right; the table shows what came next.
# The training loss comes close to its floor, and no step falls below it.
# The validation loss is the plain one, so it may.
#
# Now the strict test.
# 500 commands that it has never seen, *free-running*: the decoder reads only what it has written itself.
# A single wrong letter counts as wrong.


# %%
from course_lib.training import score


def show_score(name, model):
    """Prints exact match, in all and of each task; returns that of the worse task."""
    outputs = score(Translator(model, tokenizer), held_out, beam_size=1).outputs
    right = {}
    for pair, output in zip(held_out, outputs, strict=True):
        right.setdefault(pair.src.split()[0], []).append(output == pair.tgt)
    share = {task: sum(each) / len(each) for task, each in right.items()}
    total = sum(map(sum, right.values())) / len(held_out)
    print(f"{name:28}{total:6.1%} right, copy {share['copy']:.1%}, "
          f"reverse {share['reverse']:.1%}")
    return min(share.values())


at_the_end = show_score("after the last step", learner.model)
assert at_the_end > 0.5 > 10 * show_score("untrained", new_model(0))

# %% [markdown]
# It has learned both tasks.
# Is the learning rate to blame for the mistakes that are left?
# It is still high at the end, as we have drawn, so each of the last steps still moves the weights far.
#
# ## Averaging checkpoints
#
# The paper averages the weights of its last five checkpoints for the base model (section 6.1).
# We have kept those of the last three epochs.
# Predict: is the loss of the average larger or smaller than the average of the losses?

# %%
from course_lib.storage import average_checkpoints, load_tensors, load_weights

paths = sorted((folder / "paper").glob("epoch-*.safetensors"))
members = []
for path in paths:
    load_weights(learner.model, load_tensors(path)[0])
    members.append(validate(learner.model, valid)["valid_loss"])
average = average_checkpoints(paths)
name = "encoder.layers.0.feed_forward.up.weight"
by_hand = sum(load_tensors(path)[0][name].double() for path in paths) / len(paths)
torch.testing.assert_close(average[name], by_hand.float())

# %%
load_weights(learner.model, average)
averaged = validate(learner.model, valid)["valid_loss"]
print("losses of the members:", *(f"{loss:.3f}" for loss in members))
mean = sum(members) / len(members)
print(f"their mean {mean:.3f}, loss of the average {averaged:.3f}")
assert len(members) == 3 and averaged < 0.8 * mean
assert show_score("average of three epochs", learner.model) > 0.9

# %% [markdown]
# The average is better than the mean of its members, without a single step of training.
# It is as if the weights moved around a good place, and the average stood nearer to its middle.
#
# If so, there is another way to get there: let the rate fall.
# Same model, same batches, same peak, but the linear decay of our recipe:

# %%
calm = new_model(0)
linear = replace(recipe, decay="linear")
calm_history = fit(calm, batches, linear, valid=valid)
last = {}
for name, each in (("inverse root", history), ("linear", calm_history)):
    last[name] = each.epochs[-1]["valid_loss"]
    print(f"{name:14}loss {last[name]:.3f}, last rate {each.rates[-1]:.1e}")
assert max(history.rates) == max(calm_history.rates)
assert last["linear"] < last["inverse root"]
assert show_score("linear decay, not averaged", calm) > 0.95

# %% [markdown]
# Without any averaging it hardly makes a mistake.
# That is why our short runs decay linearly: they know when they will end.
# The paper's schedule needs no end, and can go on for as long as one likes.
# (This was one run of each, with seed 0.)
#
# ## Stop and go on
#
# A training of hours will be interrupted.
# What must a checkpoint hold, so that the resumed run equals the uninterrupted one, bit for bit?
# On the CPU we can demand exactly that.
# With dropout, so that chance plays a part too:

# %%
import signal

tiny = dict(d_model=32, num_heads=2, num_layers=1, d_ff=64, dropout=0.1, max_len=64)
pairs_here = encode_pairs(tokenizer, train_pairs[:400])
few = BucketedBatches(pairs_here, batch_tokens=512)
short = TrainConfig(epochs=3, batch_tokens=512, warmup_steps=10)


def run(seed, **options):
    """A little model, from the weights of its seed, after a run on the CPU."""
    torch.manual_seed(seed)
    fresh = Transformer(ModelConfig(vocab, **tiny))
    return fresh, fit(fresh, few, short, progress=False, **options)


whole, whole_history = run(seed=0)

# %% [markdown]
# We press the stop button in the middle of the second epoch, by program.
# `fit` finishes its step, writes `last.safetensors`, and returns.
# Then a *new* model, with other first weights, goes on from that folder.

# %%
middle = len(few.plan(0)) + len(few.plan(1)) // 2


def stop_in_the_middle(model, history):
    if len(history.losses) == middle:
        signal.raise_signal(signal.SIGINT)  # what the stop button sends


stopped_at = folder / "stopped"
_, stopped = run(seed=0, folder=stopped_at, on_step=stop_in_the_middle)
state, info = load_tensors(stopped_at / "last.safetensors")
resumed, history = run(seed=1, folder=stopped_at)
assert stopped.stopped == "interrupted" and len(stopped.losses) == middle
assert history.losses == whole_history.losses and history.stopped == "finished"
for name, tensor in whole.state_dict().items():
    assert torch.equal(resumed.state_dict()[name], tensor)

# %% [markdown]
# Every weight and every loss is the same, to the last bit.
# What was in the file?

# %% tags=["nbval-check-output"]
from collections import Counter

kinds = Counter(name.split(".")[0] for name in state)
for kind, number in kinds.items():
    print(f"{kind:10}{number:4} tensors")
number = len(list(whole.parameters()))
assert (kinds["model"], kinds["optimizer"]) == (number + 2, 3 * number)
assert {"epoch", "batch", "step"} <= info.keys()

# %% [markdown]
# The weights: one matrix serves both embeddings and the output, and stands here under all three names.
# For each parameter Adam's m, v and number of steps; the state of the random generator; and where the run stands.
# Can one of these be left out?
# We resume twice more: once with Adam's moments lost, once with another random state.

# %%
from course_lib.storage import save_tensors

torch.manual_seed(5)
losses = {
    "Adam's moments": {n: t for n, t in state.items() if not n.startswith("optimizer")},
    "random state": state | {"rng.cpu": torch.get_rng_state()},
}
for lost, tensors in losses.items():
    place = folder / lost
    save_tensors(place / "last.safetensors", tensors, info)
    _, history = run(seed=1, folder=place)
    both = zip(history.losses, whole_history.losses, strict=True)
    gap = max(abs(one - other) for one, other in both)
    print(f"{lost:15}lost: losses differ by up to {gap:.3f}")
    assert gap > 1e-4

# %% [markdown]
# Nothing crashes, and the run is another one.
#
# ## Warm-up and the order of norms
#
# Lesson 06 left a question open: post-norm lagged far behind, and a warm-up might help.
# Now we can ask it properly, in a table of two by two: pre-norm or post-norm, with or without warm-up.
# "With" means that the rate takes 100 steps to its peak of 5 · 10⁻³, "without" that it starts there.
# Everything else is the same: three layers in each stack, the same batches, a linear decay to the same end, no smoothing and no clipping.
# The task is to copy three to six of ten letters, with three seeds (five on a GPU).

# %%
copies = make_pairs(4800, "abcdefghij", range(3, 7), ["copy"], seed=2)
texts = [text for pair in copies for text in pair]
ten_letters = Tokenizer.train(texts, vocab_size=200)
copy_test, copy_train = copies[:200], encode_pairs(ten_letters, copies[200:])
common = dict(epochs=1, batch_tokens=120, decay="linear", label_smoothing=0.0)
deep = dict(d_model=64, num_heads=4, num_layers=3, d_ff=128, dropout=0.0, max_len=64)
seeds = range(5 if device == "cuda" else 3)


# %%
def train_one(norm_first, warmup_steps, seed, peak_lr=5e-3):
    """A trained model of one cell of the table, and its losses."""
    rate = dict(warmup_steps=warmup_steps, peak_lr=peak_lr)
    recipe = TrainConfig(**common, **rate, seed=seed)
    batches = BucketedBatches(copy_train, recipe.batch_tokens, seed=seed)
    torch.manual_seed(seed)
    config = ModelConfig(ten_letters.vocab_size, **deep, norm_first=norm_first)
    fresh = Transformer(config).to(device)
    return fresh, fit(fresh, batches, recipe, progress=False).losses


# %% [markdown]
# Predict: which of the four will not learn?

# %%
from tqdm import tqdm

cells = {
    "pre-norm, with warm-up": (True, 100),
    "pre-norm, without": (True, 1),
    "post-norm, with warm-up": (False, 100),
    "post-norm, without": (False, 1),
}
trained, losses = {}, {}
with tqdm(total=len(cells) * len(seeds), unit="run") as bar:
    for name, cell in cells.items():
        for seed in seeds:
            trained[name, seed], losses[name, seed] = train_one(*cell, seed)
            bar.update()


# %%
def smooth(runs, width=20):
    """Lists of losses to their means over so many steps, (seeds, steps / width)."""
    count = len(runs[0]) // width * width
    return torch.tensor(runs)[:, :count].unflatten(1, (-1, width)).mean(dim=2)


# %%
curve = {name: smooth([losses[name, seed] for seed in seeds]) for name in cells}
*learning, stuck = curve.values()  # (seeds, points) each
points = range(20, 20 * stuck.shape[1] + 1, 20)
figure = curves(
    {name: (points, runs) for name, runs in curve.items()},
    xlabel="step",
    ylabel="loss (nats a token)",
    title="At this rate pre-norm learns with and without warm-up, "
    "post-norm only with it",
    log_y=True,
)
assert stuck[:, -1].min() > 2 * max(runs[:, -1].max() for runs in learning)
figure

# %% [markdown]
# Each line is the mean of the seeds, its band reaches from the best to the worst of them.
# How many of 200 unseen sequences does each model copy without a mistake?


# %%
from course_lib import greedy

test_ids = encode_pairs(ten_letters, copy_test)
src = make_batch(test_ids).src.to(device)


def copied(model):
    """Share of the unseen sequences that it copies, free-running."""
    written = zip(greedy(model, src), test_ids, strict=True)
    return sum(output.ids == tgt for output, (_, tgt) in written) / len(test_ids)


share = {}
for name in cells:
    share[name] = [copied(trained[name, seed]) for seed in seeds]
    print(f"{name:25}", *(f"{each:4.0%}" for each in share[name]))
means = [sum(shares) / len(shares) for shares in share.values()]
assert min(means[:3]) > 0.5 and max(share["post-norm, without"]) < 0.2

# %% [markdown]
# Only post-norm without warm-up copies next to nothing.
# What is wrong with it?
# Lesson 06 saw deep stacks in which all tokens of a sentence become one vector.
# We measure the same here: what share of the memory's length is a token's own?


# %%
def own_share(model):
    """Near 0 when all tokens of a sequence have the same vector, at most 1."""
    longest = [pair for pair in test_ids if len(pair[1]) == 6]  # no padding
    with torch.no_grad():
        memory = model.encode(make_batch(longest).src.to(device))
    shared = memory.mean(dim=1, keepdim=True)  # (batch, 1, d_model)
    return ((memory - shared).norm() / memory.norm()).item()


own = {name: [own_share(trained[name, seed]) for seed in seeds] for name in cells}
for name, shares in own.items():
    print(f"{name:25}", *(f"{each:.2f}" for each in shares))
wrote = Translator(trained["post-norm, without", 0], ten_letters)
for pair in copy_test[:3]:
    print(f"{pair.src}  →  {wrote.translate(pair.src, beam_size=1).text[:30]}")
assert sum(own["post-norm, without"]) < 0.75 * sum(own["post-norm, with warm-up"])

# %% [markdown]
# Its memory keeps much less of what tells the letters apart; lesson 06's failed stacks went that way, too.
#
# We chose depth and rate so that the effect is large.
# Is a warm-up the only cure?
# Or would a smaller rate do as well?
# Post-norm without warm-up once more, at a fifth of the rate:

# %%
gentle = smooth([train_one(False, 1, seed, peak_lr=1e-3)[1] for seed in seeds])
rows = {"without, 1/5 of the rate": gentle, "without": stuck}
rows["with warm-up"] = learning[2]
for name, runs in rows.items():
    print(f"{name:25}", *(f"{loss:.2f}" for loss in runs[:, -1]))
small_rate, full_rate, warm = (runs[:, -1] for runs in rows.values())
assert small_rate.max() < full_rate.min()
assert warm.mean() < small_rate.mean() < 0.6 * full_rate.mean()

# %% [markdown]
# A small rate learns too, but slower.
# So this is what the warm-up buys here: a rate that would be too large for the first steps.
# (Three layers, one task and a few seeds: with other sizes the numbers will differ.)

# %% [markdown]
# ## Summary
#
# The loss is the mean of −log p over real tokens; padding must add nothing, neither to the sum nor to the count, and smoothed labels give it a floor above 0.
# Adam moves each weight in units of the learning rate, whatever the size of its gradient; the paper's rate rises for `warmup_steps` steps and then falls with the root of the step.
# Clipping keeps one broken batch out of Adam's memory, and accumulated micro-batches equal one large batch if they are weighted by tokens.
# A run resumes bit for bit if its file holds weights, moments, random state and place; and the average of a few checkpoints beats the mean of its members.
# Our small Transformer copies and reverses what it has never seen; without warm-up, at the same rate, post-norm copies next to nothing, while pre-norm learns either way.
#
# **Practice**: [assignment 09](assignments/release/09_training/09_training.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: lesson [10](10_translation.ipynb) trains the whole model to translate.
