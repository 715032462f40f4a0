# %% [markdown]
# # 17 · Scaling out: more data, more processes, more money
#
# **Question.** You have sentence pairs of your own, and a second core, GPU or machine. How much does each of them help, and what would it take to get as far as the paper?
#
# **Afterwards you can**
#
# 1. train a translator on your own file with one command, in one process or many, and let it survive a crash;
# 2. say what several processes must exchange to take the same step as one, and find the mistake that weighs tokens wrongly without an error;
# 3. estimate hours and money from a count of operations, and say what a measured data curve and a serial share can and cannot tell.
#
# **You need** the training loop (lesson [09](09_training.ipynb)), BLEU ([10](10_translation.ipynb)) and the counts of lesson [08](08_transformer.ipynb).
# **Time**: {minutes} minutes to read, about a minute to run on two free cores.
# **In the paper**: sections 5.2 and 6.1 and table 2, which prints the cost of a training [@vaswani2017].

# %%
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from course_lib.widgets import Predict

torch.set_num_threads(1)
temporary = tempfile.TemporaryDirectory()  # what we train goes here
folder = Path(temporary.name)

# %% [markdown]
# ## Your own sentences
#
# A corpus of your own is a text file with two columns: a sentence, a tab, its translation.
# We pretend that this is yours: a thousand pairs of the course corpus, saved as `mine.tsv`.
# Replace it with your own file, in any two languages: the commands stay the same.

# %%
from course_lib.data import load_course

lines = [f"{pair.src}\t{pair.tgt}\n" for pair in load_course(num_train=1000).train]
(folder / "mine.tsv").write_text("".join(lines), encoding="utf-8")
print(*lines[:3], sep="", end="")

# %% [markdown]
# One command turns it into a translator.
# You would type the command in a terminal; here a folded helper, `run`, does it for us.


# %% tags=["hide-input"]
def run(command):
    """Runs a command in our folder, and returns what it says."""
    python = [sys.executable, "-m"]
    torchrun = [*python, "torch.distributed.run", "--standalone"]
    program, *words = command.replace("python -m", "python").split()
    words = {"python": python, "torchrun": torchrun}[program] + words
    env = os.environ | {"OMP_NUM_THREADS": "1"}  # threads of each process
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


# %%
OPTIONS = "--data mine.tsv --preset mini --epochs 2 --vocab-size 600 --warmup-steps 20"
OPTIONS += " --device cpu"
alone_said = run(f"python -m course_lib train {OPTIONS} --out alone")
print(alone_said)

# %% [markdown]
# The command has split the file into training, validation and test parts, with no source sentence in two of them, and learned 600 subwords from the training part.
# It has trained for two epochs, scored each on the validation part, and left a folder that `Translator.from_pretrained` reads.
# If it is interrupted, the same command continues from its last checkpoint.
# What has it learned?
# We translate a test sentence of lesson [10](10_translation.ipynb), which is new to it and to `course`, the translator that comes with the library.

# %%
from course_lib import Translator

translator = Translator.from_pretrained(folder / "alone")
trained = {"two epochs of our file": translator}
trained["four of 60,000 pairs"] = Translator.from_pretrained("course")
text = "A teacher loved the beautiful city that the mother visited."
print(text)
for name, each in trained.items():
    print(f"{name:22} → {each.translate(text).text}")

# %% tags=["hide-input"]
import course_lib
from course_lib.checks import written_for
from course_lib.data import load_corpus

course_log = Path(course_lib.__file__).parent / "pretrained" / "course" / "log.json"
of_course = json.loads(course_log.read_text())
assert (of_course["train_pairs"], of_course["training"]["epochs"]) == (60_000, 4)
assert round(of_course["test"][0]["bleu"]) == 99 and of_course["seconds"] < 300
corpus = load_corpus(folder / "mine.tsv")
parts_of_file = (corpus.train, corpus.valid, corpus.test)
sources = [{pair.src for pair in part} for part in parts_of_file]
assert len(set().union(*sources)) == sum(map(len, sources)) and text not in sources[0]
with written_for(1000, len(lines)):
    assert 2 * len(corpus.train) < 2000

# %% [markdown]
# Ours writes German subwords, and no translation.
# `course` was made by the same program, with 60,000 pairs, four epochs and 2,000 subwords.
# That training took less than five minutes on two free cores, and reached 99 BLEU on a thousand new sentences. (A regular grammar makes this corpus. Natural language has more words and more exceptions: expect less, and measure.)
#
# ## How much data does it take?
#
# Were a thousand pairs too few, or two epochs too short?
# A comparison that changes both at once cannot tell.
# So we fix the length of training, 32,000 pairs: a corpus of 1,000 is read 32 times, one of 32,000 once.
# For each size we tried two learning rates, one run each, and kept the better.
# Then we trained three models. Each has another seed, which decides its pairs (drawn from the same 32,000), its subwords and its first weights. All were tested on the same thousand new sentences.
# The model is small (one layer, d_model 64), so that all trainings take less than half an hour on one core: `python -m course_lib.experiments corpus_size` makes the record again.

# %%
of_data = Predict(
    "Each time the corpus doubles, at the same length of training, BLEU gains …",
    ["always as much", "less, then next to nothing", "nothing: no more is read"],
    section="How much data does it take?",
)
of_data

# %%
import statistics
from itertools import pairwise

from course_lib.experiments import final_results, read_record

record = read_record("records/corpus_size.json")
results = final_results(record, "bleu")  # of each side a list, seed after seed
sizes = [1000 * 2**power for power in range(6)]
means = {name: statistics.mean(runs) for name, runs in results.items()}
bleu = [means[f"{size:,} pairs"] for size in sizes]
for size, mean in zip(sizes, bleu, strict=True):
    runs = results[f"{size:,} pairs"]
    print(f"{size:6,} pairs: {mean:.1f} BLEU ({min(runs):.1f} to {max(runs):.1f})")
first, *_, last = (after - before for before, after in pairwise(bleu))
steady, flat = last > first / 2, first < 2.8  # seeds differ by up to 2.8 BLEU
of_data.reveal(of_data.choices[2 if flat else 0 if steady else 1])

# %% tags=["hide-input"]
assert bleu[1] - bleu[0] > 4 and 1.5 < bleu[2] - bleu[1] < bleu[1] - bleu[0]
spreads = [max(runs) - min(runs) for runs in (results[f"{n:,} pairs"] for n in sizes)]
assert max(bleu[2:]) - min(bleu[2:]) < 1.5 and 2.5 < spreads[-1]
assert max(spreads) < 2.8
assert sum(run["cpu_seconds"] for run in record["runs"]) < 1800
final = [run["choices"] for run in record["runs"] if run["stage"] == "final"]
assert {choices["rate"] for choices in final} == {0.012}
assert {run["choices"]["seen"] for run in record["runs"]} == {32_000, 128_000}

# %% [markdown]
# Up to 4,000 pairs each doubling helps, the second less than the first.
# Beyond 4,000 the means differ by less than 1.5 BLEU, while the three runs with 32,000 pairs differ by 2.7. (These have the same pairs; only their weights and the order differ.) So three runs cannot tell such a gain from chance.
# (All sizes chose the higher of the two rates; with a still higher one the plateau may begin elsewhere.)
#
# But is this plateau the limit of the data?
# A model that has read 32,000 pairs once may not have learned what is in them.
# So three of the sizes were trained four times as long, 128,000 pairs, with the same peak rate, chosen for the short training. Its linear decay takes four times as long, too.

# %%
of_reading = Predict(
    "With 4,000 pairs instead of 1,000, BLEU rose by 11. If the 1,000 are read four "
    "times as often instead, BLEU rises …",
    ["by less than 3", "by more than 3, but less than 11", "by 11 or more"],
    section="How much data does it take?",
)
of_reading

# %% tags=["nbval-check-output"]
print("corpus         32,000 read   128,000 read")
for name in ("1,000 pairs", "4,000 pairs", "32,000 pairs"):
    print(f"{name:12} {means[name]:8.1f} BLEU {means[f'{name}, longer']:9.1f} BLEU")

# %%
by_data = bleu[2] - bleu[0]  # 1,000 to 4,000 pairs, at the same length of training
by_reading = means["1,000 pairs, longer"] - bleu[0]
which = 0 if by_reading < 3 else 1 if by_reading < by_data else 2
of_reading.reveal(of_reading.choices[which])

# %% tags=["hide-input"]
few = (1000, 4000, 32_000)
longest = [results[f"{size:,} pairs, longer"] for size in few]
long_means = [statistics.mean(runs) for runs in longest]
assert (round(by_data), round(by_reading)) == (11, 7)
assert max(longest[0]) < min(results["4,000 pairs"])
assert round(spreads[-1], 1) == 2.7
assert round(long_means[1] - bleu[2]) == 23 and round(bleu[-1] - bleu[2]) == 1
assert max(longest[0]) + 20 < min(longest[1]) and max(longest[1]) + 3 < min(longest[2])

# %% tags=["hide-input"]
import numpy as np

from course_lib.figures import curves

short = np.array([results[f"{size:,} pairs"] for size in sizes])
slope, start = np.polyfit(np.log2(sizes[:3]), bleu[:3], 1)
line = slope * np.log2(sizes) + start
series = {"32,000 pairs read": (sizes, short.T)}
series["128,000 pairs read"] = (few, long_means)
series[f"line fitted to the first three: {line[-1]:.1f}"] = (sizes, line)
title = "More than 4,000 pairs help if the training is long enough to use them"
axis = dict(xlabel="pairs in the corpus", ylabel="BLEU: mean and range of three runs")
figure = curves(series, **axis, title=title, log_x=True)

# %% tags=["hide-input"]
(axes,) = figure.axes
axes.lines[2].set_marker("")
color = axes.lines[1].get_color()
ends = [min(runs) for runs in longest], [max(runs) for runs in longest]
axes.vlines(few, *ends, color=color, lw=3)
axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
axes.set_xticks([], minor=True)
axes.set_ylim(0)
axes.legend(loc="lower right")
figure

# %% tags=["hide-input"]
assert max(bleu[3:]) - bleu[2] < 2 and min(longest[2]) > max(longest[1]) + 3
assert line[-1] > bleu[-1] + 15 and line[1] < short[1].min()

# %% [markdown]
# After the longer training, sizes that had been level are no longer: the plateau was that of the training.
#
# Start in the first row of the table, at 30 BLEU.
# One row down (four times the pairs) costs no more computing, and brings 11 BLEU.
# One column to the right (four times the reading) costs four times the computing, and brings 7.
# From 4,000 pairs it is the other way round: four times the reading brings 23 BLEU, eight times the pairs bring 1.
# So whether the data or the training is the limit depends on where you stand: try both, one at a time.
#
# Our own two epochs read fewer than 2,000 pairs, less than a sixteenth of the shorter trainings here, which brought a smaller model to 30 BLEU with a thousand pairs.
# So we would train longer first: it needs no new sentences.
#
# And the straight line? Somebody who has measured the first three sizes alone may be tempted to extend a line through them.
# At 32,000 pairs it is 16 BLEU too high. There was a hint: at 2,000 it passes below all three runs.
# To test a fit, keep back a point that it has not seen.
#
# Longer training takes more hours, and much data is of use only with it. So we get help.
#
# ## Two processes, one step
#
# A **process** is a program that is running, with memory of its own.
# **Data parallelism** is the simplest way to let several of them train one model:
#
# 1. each process has a whole copy of the model, with the same weights;
# 2. of each batch, each takes a **share**: some of its rows;
# 3. each computes the loss of its share and the gradients of that loss;
# 4. the gradients are combined over all processes, and everyone gets the result;
# 5. all take the same optimizer step, so that the copies stay equal.
#
# In this list they communicate in point 4 only.
# A sum or mean over all processes that each of them receives is called an **all-reduce**.
# The number of a process, from 0, is its **rank**; how many processes there are is the **world size**.
#
# If points 3 and 4 are right, the result is the gradient of the whole batch.
# Are they?
# We imitate two processes by hand, here in the notebook, with a batch of six pairs: three short sentences for one, three long ones for the other.

# %%
from course_lib.data import encode_pairs, load_corpus, make_batch

mine = sorted(load_corpus(folder / "mine.tsv").train, key=lambda pair: len(pair.tgt))
some = encode_pairs(translator.tokenizer, mine[:3] + mine[-3:])
batch = make_batch(some)
shares = [make_batch(some[:3]), make_batch(some[3:])]
print("target tokens of the batch:", batch.num_tokens)
print("of the shares:", [share.num_tokens for share in shares])

# %% [markdown]
# The loss of a batch is the mean over its target tokens.
# So the obvious thing for each process is the mean over the tokens of *its* share.

# %%
of_means = Predict(
    "Average the gradients of the two shares' mean losses: the gradient of the batch?",
    ["yes, exactly", "yes, up to rounding", "no"],
    section="Two processes, one step",
)
of_means

# %%
from course_lib.training import BatchLoss

model = translator.model.double()
loss_of = BatchLoss(model, smoothing=0.1)  # a batch to the sum of its tokens' losses


def gradient(loss):
    """The gradients of all parameters, as one vector."""
    model.zero_grad()
    loss.backward()
    return torch.cat([each.grad.flatten() for each in model.parameters()])


whole = gradient(loss_of(batch) / batch.num_tokens)
means = [gradient(loss_of(share) / share.num_tokens) for share in shares]
gap = ((means[0] + means[1]) / 2 - whole).norm() / whole.norm()
print(f"the average of the means is {gap:.0%} away from the whole")
of_means.reveal(of_means.choices[2 if gap > 1e-6 else 1])

# %% tags=["hide-input"]
assert gap > 0.05 and shares[0].num_tokens < shares[1].num_tokens
assert sum(share.num_tokens for share in shares) == batch.num_tokens

# %% [markdown]
# **A common mistake**: the mean of the means, which lesson [09](09_training.ipynb) avoided in its micro-batches.
# A token in the short share counts for more than one in the long share, because it is divided by a smaller number: here a few tokens have half of the vote.
# Nothing warns you: shapes are right, and it is the gradient of a loss, but of one that weighs the short share's tokens more.
# For pictures, in equal shares, the same code is right, because every example counts as one.
# For text it is an easy mistake: with gradient accumulation, Hugging Face's trainer made it until October 2024 [@debut2024].
#
# The remedy: every process divides by the tokens of the *whole* batch.
# Then the gradients add up.

# %%
parts = [gradient(loss_of(share) / batch.num_tokens) for share in shares]
gap_of_sums = (parts[0] + parts[1] - whole).norm() / whole.norm()
print(f"the sum of the parts is {gap_of_sums:.0e} away from the whole")

# %% tags=["hide-input"]
assert gap_of_sums < 1e-12

# %% [markdown]
# Up to rounding, the same.
# So each process needs one more number: T, the target tokens of the whole batch.
# Ours have it, because each builds the whole batch; otherwise it takes an all-reduce of the counts.
# And mind the factor.
# With Lₖ for the sum of the losses of share k, the gradient of the whole batch is
#
# $$\sum_k \nabla \frac{L_k}{T} \;=\; \frac{1}{N} \sum_k \nabla \frac{N \, L_k}{T}$$
#
# Where a wrapper takes the *mean* over N processes, as on the right, each process multiplies its loss by N first.
# (Whoever forgets that sees little of it with Adam: it divides by the size of the gradients, so the factor nearly cancels. It does not with SGD, or where gradients are clipped.)
#
# ## What a wrapper does
#
# Now with processes.
# PyTorch's `DistributedDataParallel`, DDP for short, is a module around a module: its `forward` calls that of the inner one, and after `backward` each gradient is the mean over all processes.
# The core of it fits on the page.

# %% tags=["hide-input"]
ran = []  # the text of each cell from here on
events = get_ipython().events  # noqa: F821
events.register("pre_run_cell", lambda cell: ran.append(cell.raw_cell))
HEAD = "import os\nimport sys\nfrom pathlib import Path\n\nimport torch\n\n"


def save(name, cells=1, before="", after=""):
    """Writes the last cells before this one into a file."""
    text = HEAD + before + "\n\n".join(ran[-1 - cells : -1]) + after
    (folder / name).write_text(text, encoding="utf-8")


# %%
import torch.distributed as dist
from torch import nn


class OurDataParallel(nn.Module):
    """After backward, each gradient is the mean over all processes."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        for parameter in module.parameters():
            dist.broadcast(parameter.data, src=0)  # all begin with rank 0's weights
            parameter.register_post_accumulate_grad_hook(self.average)

    def average(self, parameter):
        dist.all_reduce(parameter.grad)  # the sum, in every process
        parameter.grad /= dist.get_world_size()

    def forward(self, batch):
        return self.module(batch)


# %% [markdown]
# The hook is called for each parameter as soon as its gradient is complete, while `backward` is still busy with the layers below.
# Our `all_reduce` waits for its result, so `backward` waits, too.
# DDP starts the exchange and lets `backward` go on, so communication overlaps with computation.
# It also sends the gradients of many parameters together, in *buckets*, because one large message is faster than many small ones [@li2020].
#
# Other processes have no notebook: what they run must be in a file.
# A folded helper, `save`, writes the cell above to `ours.py`.

# %%
save("ours.py")

# %% [markdown]
# The next cell says what each process does: it takes its rows of one batch and computes the gradient.
# A folded cell does this in several ways and compares each with the gradient of the whole batch.


# %%
from course_lib.training import rank, share_of, world_size


def gradient_of(wrap, batch, own_tokens=False):
    """In a process: the averaged gradients of its share, by a wrapper."""
    model = Translator.from_pretrained("alone").model.double()
    loss = wrap(BatchLoss(model, smoothing=0.1))
    own, _ = share_of(batch, rank(), world_size())  # rows rank, rank + world size, …
    factor = 1 / own.num_tokens if own_tokens else world_size() / batch.num_tokens
    (loss(own) * factor).backward()  # times N, because the wrapper takes the mean
    return [each.grad for each in model.parameters()]


# %% tags=["hide-input"]
from course_lib.training import sharded_loss


def compare(batch):
    model = Translator.from_pretrained("alone").model.double()
    (BatchLoss(model, smoothing=0.1)(batch) / batch.num_tokens).backward()
    whole = torch.cat([each.grad.flatten() for each in model.parameters()])
    ways = {"ours": OurDataParallel, "DDP": nn.parallel.DistributedDataParallel}
    found = {name: gradient_of(wrap, batch) for name, wrap in ways.items()}
    found["mean of means"] = gradient_of(ways["DDP"], batch, own_tokens=True)
    sharded = gradient_of(lambda loss: sharded_loss(loss.model, smoothing=0.1), batch)
    found["sharded"] = [each.full_tensor() for each in sharded]
    for name, grads in found.items() if rank() == 0 else ():
        away = torch.cat([each.flatten() for each in grads]) - whole
        print(f"{name}: {away.norm() / whole.norm():.0e}")


# %% tags=["hide-input"]
imports = """
from torch import nn

from course_lib import Translator
from course_lib.data import encode_pairs, load_corpus, make_batch
from course_lib.training import BatchLoss, process_group
from ours import OurDataParallel

"""
start = """

mine = sorted(load_corpus("mine.tsv").train, key=lambda pair: len(pair.tgt))
tokenizer = Translator.from_pretrained("alone").tokenizer
with process_group("cpu"):
    compare(make_batch(encode_pairs(tokenizer, mine[:3] + mine[-4:])))
"""
save("gradients.py", cells=2, before=imports, after=start)

# %% [markdown]
# `torchrun` starts the processes, tells each its rank and the world size, and connects them.
# It comes with PyTorch.
# Both cells are in the file `gradients.py` now, with a batch of seven pairs (the three shortest of the file and the four longest), so that the rows cannot be divided evenly.

# %%
*compared, of_sharded = run("torchrun --nproc-per-node 2 gradients.py").splitlines()
print(*compared, sep="\n")

# %% tags=["hide-input"]
away = dict(line.split(": ") for line in [*compared, of_sharded])
assert all(float(away[name]) < 1e-12 for name in ("ours", "DDP", "sharded"))
assert float(away["mean of means"]) > 1e-3

# %% [markdown]
# Ours and PyTorch's agree with a single process up to rounding.
# The mean of the means does not, though here each process has long and short sentences.
#
# We compare in float64, because in float32 a difference of 10⁻⁷ could be rounding or a small mistake.
#
# ## The same command, twice as many processes
#
# The library's training does all this by itself.
# The command is the same, with `torchrun` in place of `python`:

# %%
two_said = run(f"torchrun --nproc-per-node 2 -m course_lib train {OPTIONS} --out two")

# %%
logs = {}
for name in ("alone", "two"):
    logs[name] = log = json.loads((folder / name / "log.json").read_text())
    print(f"{name:6}", *(f"{epoch['train_loss']:.4f}" for epoch in log["epochs"]))

# %% tags=["hide-input"]
assert (logs["alone"]["processes"], logs["two"]["processes"]) == (1, 2)
for one, two in zip(logs["alone"]["epochs"], logs["two"]["epochs"], strict=True):
    assert abs(one["train_loss"] / two["train_loss"] - 1) < 0.001
assert two_said.count("epoch ") == alone_said.count("epoch ") == 2

# %% [markdown]
# The losses agree up to rounding: as far as they tell, the training is the same, and only who computes it has changed.
# (`mini` has no dropout. With dropout, each process would draw its own zeros, so the losses would differ slightly.)
# The loss is added up over both processes, but only rank 0 prints, translates the validation part and writes files.
#
# **A common mistake**: every process writes the checkpoint, to the same file.
# It works until two writes overlap, and then the file may be broken.
#
# With GPUs, leave out `--device cpu`: each process takes a GPU of its own, and they communicate through *nccl* instead of *gloo*.
# With several machines, each one runs the command with `--nnodes` and an address where they meet:
#
# ```
# torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint first-machine:29400 \
#     -m course_lib train --data mine.tsv --out runs/mine
# ```
#
# All machines must then see the data file and the output folder.
# (The tests of this lesson run two processes on one machine with gloo; the path through nccl is not tested here.)
#
# ## When a process dies
#
# On 16,000 GPUs something breaks about every three hours: Llama 3's training was interrupted 466 times in 54 days, 419 times unexpectedly [@grattafiori2024, section 3.3.4].
# When one process is gone, the others cannot go on: they wait for its gradients until an error or a time limit ends them.
# `torchrun` watches them.
# If a process dies, it ends all others and starts all of them again, up to `--max-restarts` times (without that option, never).
# They load the newest checkpoint and continue.
#
# In our test, one process kills itself as soon as there is a checkpoint (a folded cell starts this in rank 1, the first time only):

# %%
import signal
import threading
import time

from course_lib.__main__ import main


def die_after_the_first_epoch():
    while not Path("crashed/checkpoints/last.safetensors").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


# %% tags=["hide-input"]
starts = os.environ.get("TORCHELASTIC_RESTART_COUNT")  # None in the notebook
if (starts, os.environ.get("RANK")) == ("0", "1"):
    threading.Thread(target=die_after_the_first_epoch, daemon=True).start()
if starts is not None:
    print(f"rank {os.environ['RANK']} started, after {starts} restarts")
    sys.exit(main())

# %%
save("crash.py", cells=2)
of_crash = Predict(
    "Killed after its first epoch and started again: what are the final weights?",
    ["those of the uninterrupted run", "others, equally good", "worse by an epoch"],
    section="When a process dies",
)
of_crash

# %%
from course_lib.storage import load_tensors

RESTARTS = "torchrun --nproc-per-node 2 --max-restarts 3"
crash_said = run(f"{RESTARTS} crash.py train {OPTIONS} --out crashed")
told = [line for line in crash_said.splitlines() if line.startswith(("rank", "epoch"))]
print(*(line.split("  valid")[0] for line in told), sep="\n")
files = [folder / name / "model.safetensors" for name in ("two", "crashed")]
whole_run, crashed = (load_tensors(file)[0] for file in files)
furthest = max((whole_run[name] - crashed[name]).abs().max() for name in crashed)
print(f"largest difference of a weight: {furthest}")
of_crash.reveal(of_crash.choices[0 if furthest == 0 else 1])

# %% tags=["hide-input"]
assert furthest == 0 and whole_run.keys() == crashed.keys()
assert "after 1 restarts" in crash_said
kept = [sorted((folder / name).rglob("*.safe*")) for name in ("two", "crashed")]
assert [path.name for path in kept[0]] == [path.name for path in kept[1]]

# %% [markdown]
# Not one bit is different.
# A checkpoint has all that a run consists of (lesson [09](09_training.ipynb)): weights, Adam's moments, the position in the epoch, and the state of *every* process's random generator, which dropout uses.
# (So our test, without dropout, says nothing of the generators; the library's own tests have it. And expect equality to the bit on CPUs only, with as many processes and threads as before: kernels of GPUs may add in another order each time.)
# What was computed after the checkpoint is lost: here at most an epoch.
# Save often enough that repeating the lost work does not hurt.
#
# One restart would have done here. We allow three, because a restart can fail as well, for example when a process uses the address of the previous start ([PyTorch issue 135712](https://github.com/pytorch/pytorch/issues/135712), with nccl).
#
# ## What a second process brings
#
# Both logs have the seconds that the training steps took.
# **Throughput** is work per second, here target tokens:

# %%
from course_lib.data import BucketedBatches

pairs = encode_pairs(translator.tokenizer, load_corpus(folder / "mine.tsv").train)
tokens = sum(each.num_tokens for each in BucketedBatches(pairs, 1024).epoch(0))
rates = {log["processes"]: 2 * tokens / log["seconds"] for log in logs.values()}
for count, rate in rates.items():
    print(f"{count} process(es): {rate:,.0f} target tokens per second")
print(f"speed-up: {rates[2] / rates[1]:.2f}")

# %% tags=["hide-input"]
assert 0.1 < rates[2] / rates[1] < 10  # a busy machine can make anything of it

# %% [markdown]
# These numbers depend on the machine, and on what else it is doing.
# With two free cores, expect a speed-up below 2: some work is not divided.
# Each process prepares the whole batches and updates all weights, and they wait for each other and for the exchange.
#
# **Amdahl's law** says how far the part that is not divided limits the speed-up [@amdahl1967].
# Let s be the **serial share**: the share of one process's time that cannot be divided.
# The rest is divided by N:
#
# $$\text{speed-up}(N) = \frac{1}{s + (1 - s)/N} \;\le\; \frac{1}{s}$$

# %% tags=["nbval-check-output"]
from course_lib.training import speed_up

print(f"{'s':6}{'N = 2':>8}{'8':>8}{'64':>8}{'1024':>8}")
for s in (0.0, 0.02, 0.1, 0.3):
    row = [speed_up(count, s) for count in (2, 8, 64, 1024)]
    print(f"{s:<6.0%}", *(f"{each:7.1f}" for each in row))

# %% tags=["hide-input"]
assert speed_up(1024, 0.1) < 10 and abs(speed_up(2, 0.1) - 2 / 1.1) < 1e-12

# %% [markdown]
# Look at the row of 10 %: two processes are 1.8 times as fast, which looks splendid, and a thousand are not even ten times as fast.
#
# How large is s in our training?
# If one process takes the time 1, Amdahl's law says that two take s + (1 − s)/2, so s follows from the measured speed-up.
# (Waiting and exchange are not in one process's time, but they end up in this s.)
# For comparison, another law: everything is divided, but each further process adds a constant cost of communication, 1/N + cost · (N − 1), as if one process collected all gradients in turn.

# %%
time_of_two = rates[1] / rates[2]
s, cost = 2 * time_of_two - 1, time_of_two - 1 / 2
print(f"s = {s:.2f}, or a cost of {cost:.2f} for each further process")
for count in (8, 64):
    print(f"N = {count:2}: time {1 / speed_up(count, s):.2f} by Amdahl's law", end=", ")
    print(f"{1 / count + cost * (count - 1):.2f} by the other")

# %% tags=["hide-input"]
from course_lib.training import serial_share

assert abs(1 / speed_up(2, s) - time_of_two) < 1e-9
assert abs(serial_share([1, 2], [rates[1], rates[2]]) - s) < 1e-9
assert (s > 1) == (rates[2] < rates[1])
assert (s < 0) == (cost < 0) == (rates[2] > 2 * rates[1])

# %% [markdown]
# Each law has one free number and fits our one speed-up exactly, so no error is left that could show it wrong; only an impossible number can.
# An s above 1 (two processes slower than one) rules out Amdahl's law; an s below 0 (more than twice as fast) rules out both. But repeat the measurement first: two short runs on a busy machine are noisy.
# For larger N the laws can differ widely: measure N = 4 before you trust either.
# What two points *can* tell is how much is lost with two processes, on this machine, with this model and batch.
#
# What matters most is how much each process has to do between two exchanges.
# We have divided a batch of fixed size, so more processes do less between two exchanges; that is **strong scaling**.
# Usually the batch grows with the processes: **weak scaling**.
# Then each process does as much work between two exchanges as before, so the exchange takes a larger part of the time only if it itself becomes slower with more processes. (What every process does for the whole batch, such as preparing it here, grows.)
# But a larger batch is another training: it needs another learning rate, and beyond some size it saves no more steps [@shallue2019].
# The paper's batch had about 25,000 target tokens, on 8 GPUs: some 3,100 for each.
#
# ## When the model does not fit
#
# In data parallelism each device holds everything: the 16 bytes for each parameter of lesson [08](08_transformer.ipynb).
# What if each of 8 processes held an eighth?

# %% tags=["nbval-check-output"]
from course_lib.config import model_preset

for name in ("mini", "base", "big"):
    needed = sum(model_preset(name, 37_000).memory_bytes().values())
    print(f"{name:5} {needed / 1e9:.2f} GB; an eighth: {needed / 8e9:.2f}")
print(f"7 billion parameters: {16 * 7} GB; an eighth: {16 * 7 // 8}")

# %% tags=["hide-input"]
assert 0.9e9 < sum(model_preset("base", 37_000).memory_bytes().values()) < 1.1e9

# %% [markdown]
# The copies are a waste, because a process needs the weights of one layer at a time.
# With **fully sharded** training each process keeps 1/N of every weight, gradient and moment; before a layer computes, its weights are gathered from all processes, and dropped afterwards [@zhao2023].
# What does it send?
# An all-reduce is two exchanges: first each process gets the sum of *its* part (a *reduce-scatter*), then all collect the parts (an *all-gather*).
# Sharded training gathers the weights before the forward pass and again before the backward pass, and scatters the gradients: three exchanges instead of two.
# The memory for weights, gradients and moments shrinks with N.
# Activations are not sharded: they depend on each process's share of the batch, and are often what overflows.
# In PyTorch it takes one call, `fully_shard(layer)`, for each layer and one for the model around them.
# The processes of our comparison have done that as well, with the library's `sharded_loss`.
# This is how far their gradient is from that of the whole batch:

# %%
print(of_sharded)

# %% [markdown]
# Up to rounding, the same.
# Mixed precision, `--precision bfloat16`, can be combined with all of this (lesson [14](14_cost_and_memory.ipynb) measures it).
#
# The largest models are divided in two more ways.
# **Tensor parallelism** divides each matrix: every device multiplies with some of its columns or rows, and they exchange results within every layer, so they need fast links [@shoeybi2019].
# **Pipeline parallelism** divides the stack: each device has some of the layers and hands its output to the next, while micro-batches follow one another so that few devices wait [@huang2019].
# Llama 3 combines both with sharding [@grattafiori2024, section 3.3.2].
#
# ## What 27.3 BLEU takes
#
# The paper's base model reaches 27.3 BLEU on newstest2014, English to German, after 100,000 steps of 25,000 target tokens each.
# What does such a training take?
# We count FLOPs, as lesson [08](08_transformer.ipynb) did for one sentence; a training step takes three times the operations of its forward pass (lesson [14](14_cost_and_memory.ipynb#What-does-a-step-cost?)).

# %%
from course_lib.training import training_flops

base = model_preset("base", 37_000)
forward = sum(base.flop_counts(src_len=25, tgt_len=25).values())  # one sentence pair
sentences = 25_000 / 25  # of a batch
by_hand = 3 * forward * sentences * 100_000
by_library = training_flops(base, steps=100_000, batch_tokens=25_000)
print(f"one pair forward: {forward:.1e} FLOPs")
print(f"the whole training: {by_hand:.1e}, by the library: {by_library:.1e}")

# %% tags=["hide-input"]
assert by_hand == by_library and 9e17 < by_hand < 1e18
assert abs(6 * base.num_parameters * 100_000 * 25_000 / by_hand - 1) < 0.05

# %% [markdown]
# Nearly all the operations are products with weights, 6 for each weight and target token (if the source is as long as the target), so the length of the sentences hardly matters here.
#
# ### What the paper prints
#
# The paper's table 2 has a training cost, too.

# %%
of_cost = Predict(
    "We count 9.5 · 10¹⁷ FLOPs. What does the paper print for the base model?",
    ["about the same", "less than a third", "more than three times as much"],
    section="What 27.3 BLEU takes",
)
of_cost

# %%
from course_lib.training import PEAKS, capacity, paper_utilization

of_cost.reveal(of_cost.choices[2])
could = capacity(12, 8, "P100")
print(f"12 hours × 3,600 s × 8 GPUs × {PEAKS['P100']:.1e} per second = {could:.1e}")
for name in ("base", "big"):
    print(f"{name:4} used {paper_utilization(name):.0%} of what its GPUs could do")

# %% tags=["hide-input"]
assert f"{could:.1e}" == "3.3e+18" and f"{capacity(84, 8, 'P100'):.1e}" == "2.3e+19"
assert 3 < could / by_hand < 4
assert paper_utilization("base") < paper_utilization("big")

# %% [markdown]
# 3.3 · 10¹⁸ is, to both digits, hours times devices times operations per second.
# The paper says so in section 6.1: it *estimates* the cost from what the GPUs can sustain, and does not count what was computed.
# Both numbers are right, about different things.
# Their quotient is the **utilization**: the part of the peak that a training uses (here, of what the paper says its GPUs sustain).
# It is less than a third for base and more for big: larger matrices probably keep a GPU busier. The rest may go into products that run below the peak, padding (computed, and not counted here), all that is not a matrix product, and the exchange; the paper does not say how much each takes.
#
# **A common mistake**: dividing FLOPs by the peak on a data sheet.
# That assumes a utilization of 100 %, which nobody reaches.
#
# ## The budget planner
#
# The widget plans this training for other devices.
# It starts with the paper's: 8 P100, 29 % of the 9.5 · 10¹² that the paper gives them, 12 hours, and no serial share.
# Set the serial share to 5 %: the curve bends, by Amdahl's law. Our second law would bend it upwards. (The 29 % include what 8 GPUs lost already, so a serial share on top makes the plan for 8 pessimistic.)
# Fill in the price of a device-hour: prices differ by provider, year and contract.

# %%
from course_lib.widgets import BudgetPlanner

planner = BudgetPlanner()
planner

# %% tags=["hide-input"]
shown_plan = planner.preset, planner.steps, planner.device, planner.devices
with written_for(("base", 100_000, "P100", 8), shown_plan):
    assert abs(planner.view["hours"] - 12) < 0.1

# %% [markdown]
# Here are three plans with A100s. They rest on three assumptions:
#
# - The peak: 312 · 10¹² is the data sheet's, for bfloat16 products. So bfloat16 must do.
# - The utilization: 29 % of it. The paper's 29 % are of what a P100 sustains in float32. A faster GPU is probably kept less busy by so small a model, and still less with 64 devices, where each gets about 390 tokens of the batch.
# - The serial share: none, or the s of our two processes, as if it were that of the GPUs. Measure yours.
#
# The price of 2 per device-hour, in any currency, is a number to replace.

# %%
from course_lib.training import Budget

ours = min(max(s, 0.0), 1.0)  # a share, even if the measurement is noisy
plans = []
for devices, serial in ((1, 0.0), (64, 0.0), (64, ours)):
    kind = dict(device="A100", utilization=0.29, price=2)
    plans.append(Budget(devices=devices, serial=serial, **kind))
    name, plan = f"{devices:2} A100, {serial:.0%} serial", plans[-1]
    print(f"{name:21} {plan.hours:.2f} hours, {plan.money:6.2f} to pay")

# %% tags=["hide-input"]
assert 2.7 < plans[0].hours < 3.3 and abs(plans[1].money - plans[0].money) < 1e-9
assert abs(plans[2].money / plans[0].money - (1 + 63 * ours)) < 1e-9
assert abs(64 / speed_up(64, 0.05) - (1 + 63 * 0.05)) < 1e-9 and 4 < 1 + 63 * 0.05 < 4.5
assert PEAKS["A100"] == 312e12 and round(25_000 / 64, -1) == 390

# %% [markdown]
# What took eight GPUs half a day in 2017 takes one GPU three hours, if the first two assumptions hold.
# More devices buy time, and a serial share makes them cost more.
# If one device takes the time 1, each of N devices takes s + (1 − s)/N, so you pay for the time 1 + (N − 1) s.
# With 5 % serial, 64 devices cost four times as much as one.
#
# And your machine?
# We measure what it can do with one matrix product.

# %%
left, right = torch.randn(2, 1024, 1024)
left @ right  # warm up
started = time.perf_counter()
for _ in range(5):
    left @ right
here = 5 * 2 * 1024**3 / (time.perf_counter() - started)
print(f"this machine, one thread: {here:.1e} operations per second")
print(f"the training, if nothing is lost: {by_hand / here / 3600 / 24:.0f} days on it")

# %% tags=["hide-input"]
assert by_hand / here / 3600 / 24 > 10  # days

# %% [markdown]
# Divide by your cores, at best. So this course trains small models on a corpus of its own.
#
# ### A larger model, or more tokens?
#
# The same FLOPs could train a larger model on fewer tokens.
# @kaplan2020 found **scaling laws**: a language model's loss falls like a power of its parameters, of its tokens and of its FLOPs, if the other two are no limit. They would put most of a larger budget into a larger model.
# @hoffmann2022 came to another answer: parameters and tokens should grow *together*, both like the square root of the FLOPs, with about 20 tokens a parameter.
# They suspected the learning-rate schedule; @porian2024 found other causes: how the last layer's FLOPs are counted, the length of the warm-up, and the tuning of the optimizer for each size.

# %% tags=["nbval-check-output"]
best = (by_hand / (6 * 20)) ** 0.5  # FLOPs = 6 · parameters · 20 · parameters
paper = base.num_parameters, 100_000 * 25_000
for name, (size, read) in {"paper": paper, "20 each": (best, 20 * best)}.items():
    print(f"{name:8}{size / 1e6:3.0f} million parameters", end=", ")
    print(f"{read / 1e9:.1f} billion target tokens: {read / size:.0f} a parameter")

# %% tags=["hide-input"]
assert 35 < paper[1] / paper[0] < 45 and abs(6 * best * 20 * best / by_hand - 1) < 1e-9

# %% [markdown]
# The paper's model read twice as many target tokens for each parameter as this rule asks for.
# But the rule is one of language models that read new text at every step, and the paper's model reads its 4.5 million pairs again and again.
# The rule also counts the training only. A smaller model is cheaper to *use*, so many are trained far beyond 20: Llama 3 reads some 15 trillion tokens, which makes nearly 2,000 for each parameter of its smallest model [@grattafiori2024].
#
# ## What to take home
#
# | you add | what you get | what you do not get |
# |---|---|---|
# | processes | the same steps, sooner if each has a free core or device | better translations from the same steps |
# | checkpoints and restarts | a run that survives a crash | the work since the last checkpoint |
# | shards | models that do not fit one device | more speed than plain data parallelism; room for activations |
# | data | better translations, if the training is long enough to learn it | anything that its sentences do not show |
# | training time | more of what the data can teach | more than that |
#
# ## Your predictions

# %%
from course_lib.widgets import Predictions

Predictions()

# %% [markdown]
# ## Glossary
#
# - **process**: a program that is running, with memory of its own.
# - **data parallelism**: every process has the whole model and a share of each batch; gradients are combined.
# - **rank**: the number of a process, from 0.
# - **world size**: the number of processes on all machines together.
# - **all-reduce**: a sum or mean over all processes that each of them receives.
# - **fully sharded**: each process keeps a part of every weight, gradient and moment, and gathers a layer when it is needed.
# - **tensor parallelism**: every device multiplies with a part of each matrix.
# - **pipeline parallelism**: every device has some of the layers.
# - **throughput**: work per second, such as target tokens per second.
# - **Amdahl's law**: the speed-up of N devices is 1 / (s + (1 − s)/N) if a share s of the time cannot be divided.
# - **serial share**: the share of one device's time that more devices do not shorten.
# - **strong scaling**: more devices for the same batch.
# - **weak scaling**: a batch that grows with the devices.
# - **scaling laws**: the loss of a language model falls like a power of its parameters, its tokens and its FLOPs.
# - **utilization**: operations done, divided by those that the devices could have done in that time.

# %% [markdown]
# ## Summary
#
# In data parallelism every process computes the gradients of its rows, and their sum is the gradient of the whole batch, if each divides by the tokens of all (where a wrapper takes the mean, the loss is multiplied by the number of processes first); the mean of the means is another training.
# Rank 0 alone prints and writes, and after a crash `torchrun` starts all of them again from the checkpoint, with the same weights in the end: here, on CPUs, bit for bit.
# Amdahl's law turns a serial share into a limit of the speed-up; one measured speed-up determines that share, and can rule out the law only where the share is above 1 or below 0.
# How much data a training can use depends on its length: at 32,000 pairs read, ours gained little from more than 4,000 different ones; with 128,000 pairs read, it gained 7 BLEU when the corpus grew from 4,000 pairs to 32,000.
# The paper's 3.3 · 10¹⁸ FLOPs are what its GPUs could have done in 12 hours; the training itself took 9.5 · 10¹⁷, so plan with a utilization, and with your own price. For language models, one measured rule asks for about 20 tokens a parameter.
#
# **Practice**: [assignment 17](assignments/release/17_scaling_out/17_scaling_out.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: the errata lab, lesson [18](18_errata_lab.ipynb), puts what is said about Transformers to the test.
