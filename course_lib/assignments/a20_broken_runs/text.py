# %% [markdown]
# # Assignment 20 · Five broken runs, and a sixth
#
# Six people have trained the same small translator with the same script.
# Each has rewritten one of its six parts, and made one mistake there.
# Nothing crashed, no number became NaN, and in every log the loss falls.
# You find each fault by measuring, and then mend five of them; the sixth is a question to answer in words.
#
# **You need** lessons [05](../../../05_masks.ipynb), [07](../../../07_decoder.ipynb) and [09](../../../09_training.ipynb).

# %%
import inspect

import torch
import torch.nn.functional as F

from course_lib.assignments import check
from course_lib.data import pad
from course_lib.experiments import ScriptRun
from course_lib.tokenizer import BOS_ID, EOS_ID, PAD_ID

print(inspect.getsource(ScriptRun.fit))  # the script; its six parts are in the table

# %% [markdown]
# | part | what it is meant to be | what you can ask of a `run` |
# |---|---|---|
# | `texts_of(train, valid, test)` | the texts that the vocabulary is learned from | `run.tokenizer` |
# | `batch_of(pairs)` | padded ids: the source, what the decoder reads, what it must predict | `src, tgt_in, tgt_out = run.batch(run.valid[:8])` |
# | `may_attend(length)` | True where a position of the decoder (row) may see another one (column) | `run.logits(src, tgt_in)` |
# | `rate_at(step, peak, warmup_steps)` | the learning rate | `run.rate(step)` |
# | `loss_of(logits, tgt_out)` | mean cross-entropy over real tokens | `run.loss(logits, tgt_out)` |
# | `evaluate(model, measure)` | what is measured between two steps, with the model as it is used later | `run.validate()`, `run.translated_right()` |
#
# Moreover there are `run.model`, `run.log`, the encoded pairs `run.train`, `run.valid` and `run.test`, and `run.translate(pairs)`.
# The model is post-norm, with two layers in each stack, d_model = 64 and dropout 0.1.
# It learns from 1,500 pairs such as *The old woman looks for the ball*; a batch has 32 of them at random, the rate should peak at 0.01, and 50 of the 300 steps are meant to be warm-up.
#
# These are the six logs: the loss of a batch / the validation loss, in nats, as each script measures them.
#
# | step | A | B | C | D | E | F |
# |---|---|---|---|---|---|---|
# | 1 | 6.76 / 6.59 | 5.31 / 4.85 | 7.02 / 6.80 | 6.87 / 6.70 | 6.66 / 6.35 | 6.76 / 5.37 |
# | 50 | 1.34 / 1.37 | 0.00 / 0.02 | 1.38 / 1.47 | 0.89 / 0.89 | 1.05 / 0.97 | 1.69 / 1.77 |
# | 150 | 0.57 / 0.67 | 0.00 / 0.01 | 0.92 / 0.83 | 0.16 / 0.16 | 0.61 / 0.55 | 1.32 / 1.40 |
# | 300 | 0.29 / 0.32 | 0.00 / 0.01 | 0.54 / 0.49 | 0.05 / 0.09 | 0.28 / 0.32 | 1.21 / 1.25 |

# %% [markdown] exercise="20.faults" title="Find the faults by measuring" minutes=25 points=6 difficulty=3
# Train the runs in cells of your own; it takes a minute. Comment them out before you hand in: where your work is graded, your own cells have a minute together.
#
# ```python
# from course_lib.experiments import broken_run
#
# runs = {name: broken_run(name) for name in "ABCDEF"}
# ```
#
# Then measure, and name the fault of each run.
# Every name comes once: `"shift"` (each position reads what it must predict), `"mask"` (the decoder's mask is upside down), `"warm-up"` (there is none), `"padding"` (it counts in the loss), `"dropout"` (it stays on while the model is evaluated), `"vocabulary"` (it is learned from test sentences, too).
#
# These questions decide; each takes a line or two.
#
# - What should the loss be before the first step? (The logits of the first step have variance about 1.)
# - A loss is nearly 0. Can the model translate? If not: does an output change when a token changes that comes *later*? And what stands in `tgt_in` and `tgt_out` at the same position?
# - Does the same measurement, made twice, give the same number?
# - Does the loss of a batch change when the batch gets 20 more columns of padding?
# - How large are the first steps, and does the model translate anything right?
# - Which tokens of the vocabulary stand in no training text, not even as a part of a word? (`run.split[0]` has the pairs as texts.)
#
# <details><summary>Hint</summary>
#
# `run.model.eval()` before measurements of your own, or dropout moves them; not before `run.validate()`.
# For the later token: `other = tgt_in.clone(); other[0, -1] = BOS_ID`, then compare `run.logits(src, tgt_in)[0]` with `run.logits(src, other)[0]` position by position.
# For the padding: `F.pad(tgt_in, (0, 20), value=PAD_ID)`, and `tgt_out` likewise.
# Compare with `broken_run("sound")`, which has no fault.
#
# </details>

# %% tags=["planted"]
faults = {"A": None, "B": None, "C": None, "D": None, "E": None, "F": None}

# %% tags=["solution"]
faults = {"A": "dropout", "B": "shift", "C": "vocabulary", "D": "mask", "E": "padding", "F": "warm-up"}

# %% tags=["check"]
check("20.faults", faults)

# %% [markdown] exercise="20.shift" title="Mend the batches" minutes=6 points=2 difficulty=1
# This is the part of the run whose fault you named *shift*.
# Mend it.
# The check puts your function into the script, and trains a small model on sentences that you have not seen.
#
# Each pair has two lists of ids: a source that ends with `</s>`, and a bare target.
# Sentences of the batch may differ in length.
#
# <details><summary>Hint</summary>
#
# What does the decoder have, and what must it say, when nothing has been written yet?
#
# </details>

# %% tags=["planted"]
def make_batch(pairs):
    """The source, what the decoder reads, what it must predict; padded ids, (batch, length) each."""
    tgt = pad([[BOS_ID, *tgt, EOS_ID] for _, tgt in pairs])
    return pad([src for src, _ in pairs]), tgt, tgt


# %% tags=["solution"]
def make_batch(pairs):
    """The source, what the decoder reads, what it must predict; padded ids, (batch, length) each."""
    tgt = pad([[BOS_ID, *tgt, EOS_ID] for _, tgt in pairs])
    return pad([src for src, _ in pairs]), tgt[:, :-1], tgt[:, 1:]


# %% tags=["check"]
check("20.shift", make_batch)

# %% [markdown] exercise="20.mask" title="Mend the mask" minutes=5 points=2 difficulty=1
# Here `True` means *may attend*; rows are queries, columns are keys.
# (`nn.Transformer` asks for a mask in which True means *blocked*, and that is where the triangle below comes from.)
# Mend it.
#
# <details><summary>Hint</summary>
#
# Print it for a length of 4.
# Which row is the first position's, and what may it see?
#
# </details>

# %% tags=["planted"]
def visible(length):
    """(1, 1, length, length): True where a position of the decoder (row) may see another one (column)."""
    return torch.ones(length, length, dtype=torch.bool).triu()[None, None]


# %% tags=["solution"]
def visible(length):
    """(1, 1, length, length): True where a position of the decoder (row) may see another one (column)."""
    return torch.ones(length, length, dtype=torch.bool).tril()[None, None]


# %% tags=["check"]
check("20.mask", visible)

# %% [markdown] exercise="20.rate" title="Mend the learning rate" minutes=6 points=2 difficulty=1
# Mend the rate: it rises in a line, from `peak / warmup_steps` at step 1 to `peak` at step `warmup_steps`.
# Then it falls with the inverse square root of the step: at four times `warmup_steps` it is half the peak.
#
# <details><summary>Hint</summary>
#
# The smaller of two terms, as in the paper; both are 1 at `warmup_steps`.
#
# </details>

# %% tags=["planted"]
def rate(step, peak, warmup_steps):
    """The learning rate of a step; steps count from 1."""
    return peak * min(1, (warmup_steps / step) ** 0.5)


# %% tags=["solution"]
def rate(step, peak, warmup_steps):
    """The learning rate of a step; steps count from 1."""
    return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)


# %% tags=["check"]
check("20.rate", rate)

# %% [markdown] exercise="20.loss" title="Mend the loss" minutes=9 points=3 difficulty=2
# This is the loss that was meant, slow and right.

# %% tags=["specification"]
def slow_loss(logits, tgt_out):
    """Mean cross-entropy over real tokens in nats; logits are (batch, tgt_len, vocab)."""
    losses = []
    for scores, ids in zip(logits, tgt_out, strict=True):
        for score, true in zip(scores, ids, strict=True):
            if true != PAD_ID:
                losses.append(score.logsumexp(dim=0) - score[true])
    return torch.stack(losses).mean()


# %% [markdown]
# And this is what stands in the script.
# Mend it, without a loop; `F.cross_entropy` may stay.
#
# <details><summary>Hint</summary>
#
# `F.cross_entropy` can leave an id out, of the sum and of the count.
#
# </details>

# %% tags=["planted"]
def mean_loss(logits, tgt_out):
    """Mean cross-entropy over real tokens in nats; logits are (batch, tgt_len, vocab)."""
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten())


# %% tags=["solution"]
def mean_loss(logits, tgt_out):
    """Mean cross-entropy over real tokens in nats; logits are (batch, tgt_len, vocab)."""
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID)


# %% tags=["check"]
check("20.loss", mean_loss)

# %% [markdown] exercise="20.evaluate" title="Mend the evaluation" minutes=6 points=2 difficulty=1
# `measure` takes nothing and returns a number, such as the loss on the validation pairs.
# Between two steps of the training the script calls this function.
# Mend it; the training must go on afterwards as if nothing had been measured.
#
# <details><summary>Hint</summary>
#
# `torch.no_grad()` switches gradients off, and nothing else.
#
# </details>

# %% tags=["planted"]
def measured(model, measure):
    """What is measured of a model between two steps of its training."""
    with torch.no_grad():
        result = measure()
    return result


# %% tags=["solution"]
def measured(model, measure):
    """What is measured of a model between two steps of its training."""
    model.eval()
    with torch.no_grad():
        result = measure()
    model.train()
    return result


# %% tags=["check"]
check("20.evaluate", measured)

# %% [markdown] exercise="20.leak" title="In your own words" minutes=10 points=3 difficulty=3
# The fault *vocabulary* is left, and no function of that run is yours to mend.
# "My model has never been trained on a test sentence", says the author, "and the score is no better for it."
# Which measurement shows the fault, and why does no log and no score of a single run show it?
# Why is it a fault nevertheless?
# And which of the six faults would you find last in a training of your own, and by what?
# Four or five sentences.

# %% [markdown] tags=["answer"]
# The vocabulary has tokens that stand in no training text, such as *▁tomatoes*; a vocabulary learned from the training texts cannot have one.
# The log shows losses, and these are computed with the vocabulary that there is: nothing in them says where it comes from.
# Nor does the score: few test sentences have such a word, and two seeds of one script may differ by more than the fault.
# It is a fault because test sentences have decided what the model is made of: its test is no longer one on unseen text, and how much that matters on another corpus nobody can tell afterwards.
# I would find the vocabulary or dropout last, because their models translate about as well as the sound one; the first by comparing the vocabulary with the training texts, the second by measuring twice.
# (Shift and mask are found at once by whoever looks at translations: their losses are the lowest of all, and no sentence is right.)
#
# === BEGIN MARK SCHEME ===
# 1 point: tokens (or merges) that no training text has; or the vocabulary is learned again from the training texts and compared.
# 1 point: losses and scores are relative to the vocabulary and to the noise of seeds; the test has taken part in building what it tests.
# 1 point: one of the faults with a reason, and a measurement that finds it.
# === END MARK SCHEME ===
