# %% [markdown]
# # 17 · Scaling out: more data, more processes, more money
#
# **Question.** Twice the sentence pairs, twice the processes, twice the money: what does each of them bring, and what stops it? And what would it take to get as far as the paper?
#
# **Afterwards you can**
#
# 1. train a translator on your own file with one command, in one process or many, and let it survive a crash;
# 2. say what several processes must exchange to take the same step as one, and find the mistake that weights tokens wrongly and raises no error;
# 3. estimate hours and money from a count of operations, and say what a measured data curve and a serial share can and cannot tell.
#
# **You need** the training loop (lesson [09](09_training.ipynb)), BLEU ([10](10_translation.ipynb)) and the counts of operations of lessons [08](08_transformer.ipynb) and [14](14_cost_and_memory.ipynb).
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
# We pretend that a thousand pairs of the course corpus are yours, saved as `mine.tsv`.
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
print(*alone_said.splitlines()[:2], sep="\n")

# %% [markdown]
# The command has split the file into training, validation and test parts (no source sentence appears in two of them), and learned 600 subwords from the training part.
# It has trained for two epochs, scored each on the validation part, and left a folder that `Translator.from_pretrained` reads.
# If it is interrupted, the same command continues from its last checkpoint.
# What has it learned?
# We translate a test sentence of lesson [10](10_translation.ipynb).
# Our model has not seen it, and neither has `course`, the translator that comes with the library.

# %%
from course_lib import Translator

translator = Translator.from_pretrained(folder / "alone")
trained = {"two epochs of our file": translator}
trained["four epochs of 60,000 pairs"] = Translator.from_pretrained("course")
text = "A teacher loved the beautiful city that the mother visited."
print(text)
for name, each in trained.items():
    print(f"{name:27} → {each.translate(text).text}")

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
# That training took less than five minutes on two free cores, and reached 99 BLEU on a thousand new sentences. (A small set of rules generates this corpus. Natural language has more words and more exceptions: expect less, and measure.)
#
# ## How much data does it take?
#
# Were a thousand pairs too few, or two epochs too short?
# Ours and `course` differ in both, and in other settings, so comparing them cannot tell.
# We change one thing at a time.
#
# First the pairs.
# Every training reads 32,000 pairs in all: a corpus of 1,000 is read 32 times, one of 32,000 once.
# The model is small (one layer, d_model 64).
# For each size, a record has three trainings, tested on the same thousand new sentences.
#
# (A seed decides which of the same 32,000 pairs we draw, the subwords, the first weights and the order. Of two learning rates, tried once at each size, the higher was always better. `python -m course_lib.experiments corpus_size` makes the record again, in less than half an hour on one core.)

# %%
of_data = Predict(
    "Each time the corpus doubles, at the same length of training, BLEU gains …",
    ["always as much", "less, then next to nothing", "nothing: no more is read"],
    section="How much data does it take?",
)
of_data

# %%
import statistics

from course_lib.experiments import final_results, read_record

record = read_record("records/corpus_size.json")
results = final_results(record, "bleu")  # of each side a list, seed after seed
sizes = [1000 * 2**power for power in range(6)]
bleu = [statistics.mean(results[f"{size:,} pairs"]) for size in sizes]


def with_range(runs):
    """The mean of some runs, their smallest and their largest."""
    return f"{statistics.mean(runs):.1f} BLEU ({min(runs):.1f} to {max(runs):.1f})"


for size in sizes:
    print(f"{size:6,} pairs: {with_range(results[f'{size:,} pairs'])}")
of_data.reveal(of_data.choices[1])

# %% tags=["hide-input"]
assert bleu[1] - bleu[0] > 4 and 1.5 < bleu[2] - bleu[1] < bleu[1] - bleu[0]
spreads = [max(runs) - min(runs) for runs in (results[f"{n:,} pairs"] for n in sizes)]
assert max(bleu[2:]) - min(bleu[2:]) < 1.5 and 2.5 < spreads[-1]
assert max(spreads) < 2.8
assert sum(run["cpu_seconds"] for run in record["runs"]) < 1800
final = [run["choices"] for run in record["runs"] if run["stage"] == "final"]
assert {choices["rate"] for choices in final} == {0.012}
tuned = [run for run in record["runs"] if run["stage"] == "tuning"]
by_rate = {(run["side"], run["choices"]["rate"]): run["results"] for run in tuned}
two_rates = [[by_rate[f"{n:,} pairs", peak] for peak in (0.006, 0.012)] for n in sizes]
assert all(low["valid_bleu"] < high["valid_bleu"] for low, high in two_rates)
assert len(tuned) == len(by_rate) == 12
assert {run["choices"]["seen"] for run in record["runs"]} == {32_000, 128_000}

# %% [markdown]
# Up to 4,000 pairs, each doubling helps.
# From 4,000 on, the means differ by less than 1.5 BLEU.
# That may be chance: three runs with the *same* 32,000 pairs differ by 2.7.
#
# Are 4,000 pairs enough, then? Or was the training too short to learn from more?
# Now we change the other thing: three of the corpora are read for four times as long, 128,000 pairs in all.
# (The learning rate keeps its peak; its linear decay takes four times as long.)

# %%
of_longer = Predict(
    "After 32,000 pairs read, corpora of 4,000 and 32,000 pairs were level: 41 and 42 "
    "BLEU. After 128,000, the larger corpus is …",
    ["level, within 3 BLEU", "ahead by more than 3", "behind: each pair is read less"],
    section="How much data does it take?",
)
of_longer

# %% tags=["nbval-check-output"]
print("corpus         32,000 read                128,000 read")
for name in ("1,000 pairs", "4,000 pairs", "32,000 pairs"):
    read_longer = results[f"{name}, longer"]
    print(f"{name:12}   {with_range(results[name])}   {with_range(read_longer)}")
of_longer.reveal(of_longer.choices[1])

# %% tags=["hide-input"]
few = (1000, 4000, 32_000)
longest = [results[f"{size:,} pairs, longer"] for size in few]
long_means = [statistics.mean(runs) for runs in longest]
assert round(bleu[2] - bleu[0]) == 11 and round(long_means[0] - bleu[0]) == 7
assert max(longest[0]) < min(results["4,000 pairs"])
assert round(spreads[-1], 1) == 2.7
assert round(long_means[1] - bleu[2]) == 23 and round(bleu[-1] - bleu[2]) == 1
assert max(longest[0]) + 20 < min(longest[1]) and max(longest[1]) + 3 < min(longest[2])
assert round(long_means[2] - long_means[1]) == 7 and round(bleu[0]) == 30

# %% [markdown]
# 4,000 pairs are not enough: after the longer reading, eight times the pairs bring 7 BLEU, not 1.
# So the length of the training was one limit. (The learning rate may be another: we tried none higher.)
#
# What helps more depends on where you stand.
# From 1,000 pairs, four times the pairs bring 11 BLEU, four times the reading 7; from 4,000 it is 0 and 23.
# (At equal reading, more pairs cost no training time; four times the reading costs four times as much.)
#
# More of one thing helps until another one is the limit.
#
# All sizes in one figure:

# %% tags=["hide-input"]
import numpy as np

from course_lib.figures import curves

short = np.array([results[f"{size:,} pairs"] for size in sizes])
slope, start = np.polyfit(np.log2(sizes[:3]), bleu[:3], 1)
line = slope * np.log2(sizes) + start
series = {"training reads 32,000 pairs, repeats included": (sizes, short.T)}
series["training reads 128,000 pairs, repeats included"] = (few, np.transpose(longest))
series[f"line fitted to 1,000, 2,000, 4,000: ends at {line[-1]:.1f}"] = (sizes, line)
title = "More than 4,000 pairs help if the training is long enough to use them"
axis = dict(xlabel="different pairs in the corpus")
axis["ylabel"] = "BLEU, mean of three runs\n(band: their range)"
figure = curves(series, **axis, title=title, log_x=True)

# %% tags=["hide-input"]
(axes,) = figure.axes
axes.lines[2].set_marker("")
axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
axes.set_xticks([], minor=True)
axes.set_ylim(0)
axes.legend(loc="lower right")
figure

# %% tags=["hide-input"]
from course_lib.experiments import corpus_size as small

assert max(bleu[3:]) - bleu[2] < 2 and min(longest[2]) > max(longest[1]) + 3
assert line[-1] > bleu[-1] + 15 and line[1] < short[1].min()
words = [entry.get_text() for entry in axes.get_legend().get_texts()]
assert words == list(series) and words[2].endswith("58.2")
assert (small.MODEL["num_layers"], small.MODEL["d_model"]) == (1, 64)
_, of_longer_runs = axes.collections  # the bands
(corners,) = (path.vertices for path in of_longer_runs.get_paths())
assert {*corners[:, 1]} >= {end for runs in longest for end in (min(runs), max(runs))}

# %% [markdown]
# The green line goes through the first three blue points, nearly.
# At 32,000 pairs, its 58.2 is 16 BLEU too high.
# Test a fit on a point it has not seen.
#
# And our own file? It was read twice, fewer than 2,000 pairs in all; the 30 BLEU above took 32,000.
# So train longer first. This takes about two minutes of one core; below is a recorded run:
#
# ```
# python -m course_lib train --data mine.tsv --preset mini --epochs 40 --vocab-size 1000 \
#     --warmup-steps 100 --dropout 0.1 --out longer
# ```

# %% tags=["hide-input"]
own = json.loads(Path("records/own_file.json").read_text(encoding="utf-8"))
greedy, beam = (entry["bleu"] for entry in own["valid"])
print(f"40 epochs of our file: {greedy:.1f} BLEU, validation part (beam 4: {beam:.1f})")
print(own["translated"][text])

# %% tags=["hide-input"]
assert own["train_pairs"] == len(corpus.train) == 900 and len(own["epochs"]) == 40
assert "verlort" in own["translated"][text] and "Stadt" not in own["translated"][text]
assert own["parameters"] == translator.model.config.num_parameters + 400 * 128
assert greedy > own["epochs"][1]["valid_bleu"] + 25 and 90 < own["cpu_seconds"] < 150

# %% [markdown]
# It begins right and sounds like German, but the city is lost, and *verlort* is no word.
# What this file now lacks is pairs: after as many readings, more pairs were better above.
# %% [markdown]
# ## Two processes, one step
#
# A **process** is a program that is running, with memory of its own.
# Its number, from 0, is its **rank**; the number of processes is the **world size**.
# **Data parallelism** is the simplest way to let several of them train one model: each has a copy of it, and takes a *share* of each batch, some of its rows.
# They combine their gradients by an **all-reduce**: a sum or mean that every process receives.
#
# Two processes, and a model with four weights:
#
# ```
#                  rank 0                   rank 1
# weights          W                        W                   the same copy
# rows             0, 2, 4                  1, 3, 5             its share
# gradient         [1, 2, 3, 4]             [10, 20, 30, 40]    differs
#                       └──── all-reduce: add ────┘             the only exchange
# sum              [11, 22, 33, 44]         [11, 22, 33, 44]    the same
# optimizer step   new W                    new W               the same copy again
# ```
#
# Equal weights, equal moments and equal gradients make equal steps, so the copies stay equal.
#
# But which loss should each process compute?
# The obvious answer is the mean over the tokens of *its* share.
# Try it with ten tokens.
# Rank 0 has 2 tokens, each with loss 4. Rank 1 has 8 tokens, each with loss 1.5.
# The loss of the batch is the mean over all ten: (2 · 4 + 8 · 1.5) / 10 = 2.

# %%
of_means = Predict(
    "Each process takes the mean of its own tokens. The average of these means is …",
    ["2", "less than 2", "more than 2"],
    section="Two processes, one step",
)
of_means

# %%
print("mean of the means:", (4 + 1.5) / 2)
of_means.reveal(of_means.choices[2])

# %% [markdown]
# The two tokens of rank 0 have half of the vote.
# Each of them counts for 1/4, each token of rank 1 for 1/16. Each should count for 1/10.
#
# The remedy: every process divides by the tokens of the *whole* batch.
# Rank 0 gets (2 · 4) / 10 = 0.8, and rank 1 gets (8 · 1.5) / 10 = 1.2. Together they make 2.
#
# The gradient of a sum is the sum of the gradients.
# So what is right for the loss is right for the gradient.
#
# **A common mistake**: the mean of the means.
# Nothing warns you: the shapes are right.
# For pictures the same code is correct, as long as the shares are equal, because every picture counts as one.
#
# So each process must know T, the number of target tokens in the whole batch.
# Ours do, because each builds the whole batch. Otherwise they add up their counts with an all-reduce.
#
# N processes take the same step as one process that adds up N micro-batches (lesson [09](09_training.ipynb), `--accumulate`): with one GPU, this is the way to a large batch.
# It invites the same mistake: Hugging Face's trainer made it until October 2024 [@debut2024].
#
# ## What a wrapper does
#
# PyTorch's `DistributedDataParallel`, **DDP** for short, is a wrapper, a module around a module: its `forward` calls the inner one's, and after `backward` each gradient is the mean over all processes.
# The core of it fits on the page.

# %% tags=["hide-input"]
import inspect

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


# %% tags=["hide-input"]
save("ours.py")

# %% [markdown]
# `average` divides by N, the number of processes.
# What must each process give, so that this mean is the 2 of our ten tokens? (Losses stand for gradients.)

# %% tags=["nbval-check-output"]
T, N = 10, 2  # tokens, processes; the losses of the shares add up to 8 and 12
gives = {"sum of its losses / its tokens": (8 / 2, 12 / 8)}
gives["sum of its losses / T"] = 8 / T, 12 / T
gives["N · sum of its losses / T"] = N * 8 / T, N * 12 / T
print("each process gives              rank 0  rank 1   the wrapper's mean")
for name, (first, second) in gives.items():
    print(f"{name:30} {first:7.1f} {second:7.1f} {(first + second) / N:8.2f}")

# %% tags=["hide-input"]
assert [round(sum(each) / N, 9) for each in gives.values()] == [2.75, 1.0, 2.0]

# %% [markdown]
# So the last is right, N · Lₖ / T (Lₖ is the sum of share k's losses):
#
# $$\sum_k \nabla \frac{L_k}{T} \;=\; \frac{1}{N} \sum_k \nabla \frac{N \, L_k}{T}$$
#
# (With Adam you may not notice if you forget the N: Adam divides by the size of the gradients, so the factor nearly cancels. With SGD it does not, and with clipping it changes which gradients are clipped.)
#
# The hook, `average`, is called for each parameter as soon as its gradient is complete, while `backward` is still busy with the layers below.
# Our `all_reduce` waits for its result, so `backward` waits, too.
# DDP starts the exchange and lets `backward` go on, so communication overlaps with computation.
# It also sends the gradients of many parameters together, in *buckets*, because one large message is faster than many small ones [@li2020].
#
# **A common mistake**: one process skips a batch in which it has no row.
# Its next gradients are added to the others' present ones, without an error; at the end the others wait for it in vain.
# So a process without a row repeats the batch's first, times 0 (`factor`).
#
# Here is a whole training with a wrapper, ours or DDP.
# Every process runs it:


# %%
from torch.nn.parallel import DistributedDataParallel

from course_lib.training import BatchLoss, rank, share_of, world_size


def train(wrap, model, batches):
    """In each process: a step for each batch, the same step in all of them."""
    # The wrapper sees only calls of its own forward, so model and loss go in together.
    loss = wrap(BatchLoss(model, smoothing=0.1))  # a batch to the sum of its losses
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for batch in batches:  # the same in every process
        # factor: 1, or 0 for a process without a row
        own, factor = share_of(batch, rank(), world_size())  # rows rank, rank + N, …
        optimizer.zero_grad()
        (loss(own) * factor * world_size() / batch.num_tokens).backward()
        optimizer.step()


# %% tags=["hide-input"]
from course_lib.data import encode_pairs, make_batch
from course_lib.storage import save_tensors
from course_lib.training import sharded_loss


def saved_model():
    """In a process: the translator of two epochs, in double precision."""
    return Translator.from_pretrained("alone").model.double()


def vector(model):
    """In a process: all gradients; those of a sharded model are put together."""
    grads = [each.grad for each in model.parameters()]
    grads = [g.full_tensor() if hasattr(g, "to_local") else g for g in grads]
    return torch.cat([each.flatten() for each in grads])


# %% tags=["hide-input"]
gathered = []  # names of the weights that the sharded model holds whole after forward


def sharded(loss):
    """In a process: the wrapper that shards; after forward it fills `gathered`."""
    wrapped = sharded_loss(loss.model, smoothing=0.1)

    def look(*_):
        named = dict(wrapped.named_parameters())
        gathered.extend(name for name in named if not hasattr(named[name], "to_local"))

    wrapped.register_forward_hook(look)
    return wrapped


# %% tags=["hide-input"]
def save_gradients(batch, mistaken):
    """In a process: saves what all wrappers give, each as one vector."""
    ways = {"ours": OurDataParallel, "DDP": DistributedDataParallel, "sharded": sharded}
    models = {name: saved_model() for name in (*ways, "mean of the means")}
    for name, wrap in ways.items():
        train(wrap, models[name], [batch])
    mistaken(DistributedDataParallel, models["mean of the means"], [batch])
    found = {name: vector(model) for name, model in models.items()}
    kept = sum(each.to_local().numel() for each in models["sharded"].parameters())
    if rank() == 0:
        names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        given = {name: os.environ[name] for name in names}
        notes = {"kept": kept, "gathered": gathered, "environment": given}
        save_tensors("gradients.safetensors", found, notes)


# %% tags=["hide-input"]
start = """

mine = sorted(load_corpus("mine.tsv").train, key=lambda pair: len(pair.tgt))
tokenizer = Translator.from_pretrained("alone").tokenizer
with process_group("cpu"):
    seven = make_batch(encode_pairs(tokenizer, mine[:3] + mine[-4:]))
    save_gradients(seven, mean_of_means)
"""
by_all = "(loss(own) * factor * world_size() / batch.num_tokens).backward()"
by_own = "(loss(own) / own.num_tokens).backward()"
of_means_too = inspect.getsource(train).replace(by_all, by_own)
of_means_too = of_means_too.replace("def train", "\n\ndef mean_of_means")
imports = "from course_lib import Translator\nfrom course_lib.data import load_corpus\n"
imports += "from course_lib.training import process_group\n"
imports += "from ours import OurDataParallel\n\n"
save("gradients.py", cells=4, before=imports, after=of_means_too + start)

# %% [markdown]
# `torchrun`, a part of PyTorch, starts the same program N times.
# Environment variables tell each process its rank (`RANK`), the world size (`WORLD_SIZE`) and where all meet (`MASTER_ADDR`, `MASTER_PORT`).
# `process_group("cpu")` reads them and connects the processes:
#
# ```python
# with process_group("cpu"):
#     train(DistributedDataParallel, model, batches)
# ```
#
# Our program (`gradients.py`: the folded cells write this and the comparison into it) calls `train` with one batch, `seven`: the three shortest pairs of our file and the four longest, because seven rows do not divide evenly.
# It also tries DDP with one line changed, `(loss(own) / own.num_tokens).backward()`: the mean of the means.
# How far are the gradients from that of one process, without a wrapper?
# (The unit is the length of that gradient.)

# %% tags=["hide-input"]
mine = sorted(corpus.train, key=lambda pair: len(pair.tgt))
seven = make_batch(encode_pairs(translator.tokenizer, mine[:3] + mine[-4:]))

# %%
model = translator.model.double()  # in float32, 1e-7 may be rounding or a mistake
loss_of = BatchLoss(model, smoothing=0.1)  # a batch to the sum of its losses


def gradient(loss):
    """The gradients of all parameters, as one vector."""
    model.zero_grad()
    loss.backward()
    return torch.cat([each.grad.flatten() for each in model.parameters()])


# %%
from course_lib.storage import load_tensors

run("torchrun --nproc-per-node 2 gradients.py")  # rank 0 saves the gradients
saved, told_by_rank_0 = load_tensors(folder / "gradients.safetensors")
of_one = gradient(loss_of(seven) / seven.num_tokens)  # one process, no wrapper
far = {name: (each - of_one).norm() / of_one.norm() for name, each in saved.items()}
for name in ("ours", "DDP", "mean of the means"):
    print(f"{name:17}  {far[name]:.2g}")

# %% tags=["hide-input"]
from course_lib.data import BucketedBatches

program = (folder / "gradients.py").read_text(encoding="utf-8")
assert inspect.getsource(train) in program  # the visible one, and once the line changed
assert program.count(by_all) == program.count(by_own) == 1
assert all(far[name] < 1e-12 for name in ("ours", "DDP", "sharded"))
assert 0.05 < far["mean of the means"] < 0.15
pairs = encode_pairs(translator.tokenizer, corpus.train)
for each in list(BucketedBatches(pairs, 1024).epoch(0))[:5]:
    right = gradient(loss_of(each) / each.num_tokens)
    owns = [share_of(each, number, 2)[0] for number in range(2)]
    means = [gradient(loss_of(own) / own.num_tokens) for own in owns]
    assert (sum(means) / 2 - right).norm() < 0.05 * right.norm()
assert share_of(make_batch(pairs[:1]), 1, 2)[1] == 0
assert [*told_by_rank_0["environment"].values()][:2] == ["0", "2"]

# %% [markdown]
# Both wrappers agree with one process up to rounding.
# The mean of the means is 10 % off, though each process has long and short sentences.
# (In five of the library's batches, of sentences about equally long, the folded cell above finds less than 5 %.)
#
# ## The same command, twice as many processes
#
# The library does all this by the same command, with `torchrun` in place of `python`:

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
# The losses agree up to rounding.
# As far as losses show, it is the same training, shared by two.
# (`mini` has no dropout. With dropout, each process would draw its own zeros, so the losses would differ slightly.)
# The printed loss is added up over both processes, but only rank 0 prints, translates the validation part and writes files.
#
# **A common mistake**: every process writes the checkpoint, to the same file.
# It works until two writes overlap, and then the file may be broken.
#
# With GPUs, leave out `--device cpu`: each process takes a GPU of its own, and they communicate through the library *nccl* (CPUs use *gloo*).
# With several machines, each one runs the command with `--nnodes` and an address where they meet:
#
# ```
# torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint first-machine:29400 \
#     -m course_lib train --data mine.tsv --out runs/mine
# ```
#
# All machines must then see the data file and the output folder.
# (This lesson tests gloo on one machine, and not nccl.)
#
# ## What a second process brings
#
# Is it faster, too? Both logs have the seconds that the training steps took.
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
# These numbers depend on the machine and its other work.
# With two free cores, expect a speed-up below 2: some work is not divided.
# Each process prepares the whole batches and updates all weights, and they wait for each other and for the exchange.
#
# How far can more processes take us?
# Suppose a step takes one process 10 seconds, and 1 of these seconds cannot be divided.
# Two processes take 1 + 9/2 = 5.5 seconds: 1.8 times as fast.
# Ten take 1.9 seconds. A thousand take 1.009.
# However many there are, the one second stays, so they are never ten times as fast.
#
# This is **Amdahl's law** [@amdahl1967].
# The part that cannot be divided, here 10 %, is the **serial share** s of one process's time:
#
# $$\text{speed-up}(N) = \frac{1}{s + (1 - s)/N} \;\le\; \frac{1}{s}$$
#
# How large is our s?
# One speed-up is one equation: two processes take s + (1 − s)/2 of the time of one.
# We solve it for s. (Below 0 or above 1 it is no share: measure again.)
#
# Another law fits as well: everything is divided, but each further process adds the same cost.
# Then N processes take 1/N + cost · (N − 1).

# %%
times = {count: rates[1] / rate for count, rate in rates.items()}  # all we measured
s, cost = 2 * times[2] - 1, times[2] - 1 / 2
print(f"s = {s:.1f}, or a cost of {cost:.1f} for each further process")


# %% tags=["hide-input"]
def draw_serial(axes):
    """What 10 % serial leave of the time."""
    counts, divided = (1, 2, 8, 64), [0.9 / count for count in (1, 2, 8, 64)]
    places, look = range(4), dict(color="C1", hatch="//", edgecolor="white")
    axes.bar(places, [0.1] * 4, color="C0", label="serial: cannot be divided")
    axes.bar(places, divided, bottom=0.1, label="divided among the processes", **look)
    axes.set_xticks(places, map(str, counts))
    for place, part in zip(places, divided, strict=True):
        words = f"speed-up\n{1 / (0.1 + part):.2g}"
        axes.annotate(words, (place, 0.1 + part), ha="center", va="bottom")
    axes.set(xlabel="processes", ylabel="time, one process = 1", ylim=(0, 1.2))
    axes.set_title("Calculated: an example, 10 % serial")
    axes.legend(loc="upper right")


# %% tags=["hide-input"]
def draw_laws(axes, s, cost, times):
    """Both laws through the measured points; where there is none, a shade."""
    many, points = np.linspace(1, 8, 71), dict(marker="o", markevery=[30, 70])
    by_cost = 1 / many + cost * (many - 1)
    axes.plot(many, s + (1 - s) / many, label="calculated: Amdahl's law", **points)
    axes.plot(many, by_cost, "--", label="calculated: cost per process", **points)
    star = dict(ls="", marker="*", ms=13, mfc="white", mec="black", zorder=5)
    axes.plot([*times], [*times.values()], label="measured here", **star)
    axes.axvspan(max(times) + 0.2, 8.2, fc="#eeeeee", zorder=0, label="not measured")
    axes.set(xlabel="processes", ylabel="time, one process = 1", xlim=(0.8, 8.2))
    axes.set(xticks=(1, 2, 4, 8), title="Two laws through our two points")
    low, high = axes.get_ylim()
    axes.set_ylim(min(0, low), low + 1.8 * (high - low))  # room for the legend
    axes.legend(loc="upper right")


# %% tags=["hide-input"]
from course_lib.figures import new_figure, styled


@styled
def two_panels(s, cost, times):
    """Left an example of Amdahl's law, right what was measured."""
    figure = new_figure("What is not divided stays; two laws fit two points", 9, 3.8)
    left, right = figure.subplots(1, 2)
    draw_serial(left)
    draw_laws(right, s, cost, times)
    return figure


two_laws = two_panels(s, cost, times)
two_laws

# %% tags=["hide-input"]
from course_lib.training import serial_share, speed_up

# An s above 1 (two processes slower than one) rules out Amdahl's law, an s below 0
# (more than twice as fast) both. But first measure again: short runs are noisy.
assert (s > 1) == (rates[2] < rates[1])
assert (s < 0) == (cost < 0) == (rates[2] > 2 * rates[1])
assert abs(serial_share([1, 2], [rates[1], rates[2]]) - s) < 1e-9
assert times.keys() >= {1, 2} and times[1] == 1
laws = {n: (s + (1 - s) / n, 1 / n + cost * (n - 1)) for n in (1, 2, 4, 8)}
assert all(abs(law - times[n]) < 1e-9 for n in (1, 2) for law in laws[n])
assert [round(10 / speed_up(count, 0.1), 3) for count in (2, 10)] == [5.5, 1.9]
assert round(10 / speed_up(1000, 0.1), 3) == 1.009 and speed_up(10**9, 0.1) < 10
assert [round(speed_up(count, 0.1), 1) for count in (2, 8, 64)] == [1.8, 4.7, 8.8]
assert round(25_000 / 8, -2) == 3100 and round(25_000 / 64, -1) == 390

# %% tags=["hide-input"]
_, laws_axes = two_laws.axes
drawn = {line.get_label(): line.get_xydata() for line in laws_axes.lines}
assert np.allclose(drawn.pop("measured here"), [*times.items()])
for number, points in enumerate(drawn.values()):  # Amdahl's law, cost per process
    wanted = [law[number] for law in laws.values()]
    assert np.allclose(points[[0, 10, 30, 70], 1], wanted)
(shade,) = laws_axes.patches
assert max(times) < shade.get_x() < max(times) + 1

# %% [markdown]
# Left, the example.
# Right, both curves go through our points, and part where nothing is measured.
# So the two points tell roughly (one short run each) how much two processes lose, on this machine, with this model and batch.
# They do not tell which law holds, or what eight would take.
#
# It also matters how much each process has to do between two exchanges.
# The paper's batch had about 25,000 target tokens: some 3,100 for each of 8 GPUs, but only 390 for each of 64.
# Dividing a batch of fixed size is called **strong scaling**.
# Usually the batch grows with the processes: **weak scaling**.
# But a larger batch is another training: it needs another learning rate, and beyond some size it saves no more steps [@shallue2019].
#
# ## When a process dies
#
# More processes fail more often.
# On 16,000 GPUs something breaks about every three hours: Llama 3's training was interrupted unexpectedly 419 times in 54 days [@grattafiori2024, section 3.3.4].
# When one process is gone, the others cannot go on: they wait for its gradients until an error or a time limit ends them.
# `torchrun` watches them.
# If a process dies, it ends all others and starts all of them again, up to `--max-restarts` times (without that option, never).
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

# %% tags=["hide-input"]
save("crash.py", cells=2)

# %%
of_crash = Predict(
    "Killed after its first epoch and started again: what are the final weights?",
    ["those of the uninterrupted run", "others, equally good", "worse by an epoch"],
    section="When a process dies",
)
of_crash

# %%
from course_lib.storage import load_tensors

# One restart would do, but a restart can fail as well (PyTorch issue 135712).
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
# The new processes load the newest checkpoint and continue.
# It has all that a run consists of (lesson [09](09_training.ipynb)): weights, Adam's moments, the position in the epoch, and the state of *every* process's random generator, which dropout uses. (Without dropout, our test does not check the generators; the library's own tests do.)
#
# Equal bits need the same number of processes and threads.
# On GPUs, do not expect them: kernels may add in another order each time.
#
# What was computed after the checkpoint is lost, here at most an epoch.
# Save often enough that repeating it does not hurt.
#
# ## When the model does not fit
#
# In data parallelism each device holds everything: the 16 bytes for each parameter of lesson [08](08_transformer.ipynb).
# The paper's models are small: even `big` needs only 3.4 GB. A model of 7 billion parameters needs far more.
# What if each of 8 processes held an eighth?

# %% tags=["nbval-check-output"]
print(f"7 billion parameters: {16 * 7} GB; an eighth: {16 * 7 // 8} GB")

# %% tags=["hide-input"]
from course_lib.config import model_preset

assert round(sum(model_preset("big", 37_000).memory_bytes().values()) / 1e9, 1) == 3.4

# %% [markdown]
# The copies are a waste: a process needs the weights of only one layer at a time.
#
# The all-reduce of our four numbers can be done in two moves.
# First each process gets the sum of *its* half only: rank 0 gets [11, 22], rank 1 gets [33, 44]. This is a **reduce-scatter**.
# Then they exchange the halves, and both have [11, 22, 33, 44]. This is an **all-gather**.
#
# In **fully sharded** training (ZeRO, FSDP), each process keeps its half for good [@rajbhandari2020; @zhao2023]:
#
# ```
#                  rank 0                   rank 1
# keeps            first half of W          second half of W        and of its moments
# forward          all-gather the layer, compute, drop the other half
# backward         all-gather again, compute the gradient, drop the other half
#                       └──── reduce-scatter: add ────┘
# sum              [11, 22]                 [33, 44]                its half
# optimizer step   first half of new W      second half of new W
# ```
#
# Each of N processes needs 1/N of the memory for weights, gradients and moments, plus a gathered layer.
# What lies outside the layers, such as the embeddings, stays gathered from forward to backward.
# Activations are not sharded. They depend on each process's share of the batch, and are often what overflows.
#
# The price is communication.
# In a ring, where each process passes parts on to the next, each sends (N − 1)/N of the model in a move.
# An all-reduce is two moves: for `base` in float32, (N − 1)/N of 2 · 63 million · 4 bytes = 0.5 GB a step. That is 0.44 GB with 8 processes, and 0.50 GB with 800.
# Sharding makes three such moves for each layer, where an all-reduce makes two.
#
# In PyTorch, sharding takes one call for each layer and one for the model around them:
#
# ```
# for layer in (*model.encoder.layers, *model.decoder.layers):
#     fully_shard(layer)
# loss = fully_shard(BatchLoss(model, smoothing=0.1))
# ```
#
# The library's `sharded_loss` does this. Like DDP, `fully_shard` takes the mean, so `gradients.py` gave it to `train`, too.
# What did rank 0 keep, and how far off is the gradient?

# %%
numbers = sum(each.numel() for each in model.parameters())
print(f"rank 0 keeps {told_by_rank_0['kept']:,} of {numbers:,} parameters")
print(f"gradient of the sharded model: {far['sharded']:.2g}")

# %% tags=["hide-input"]
whole = told_by_rank_0["gathered"]  # after forward
assert any("embedding" in name for name in whole) and ".layers." not in str(whole)
assert 0.49 < told_by_rank_0["kept"] / numbers < 0.51
weights = model_preset("base", 37_000).num_parameters
assert round(weights / 1e6) == 63 and round(2 * 4 * weights / 1e9, 1) == 0.5
sent = [2 * 4 * weights * (count - 1) / count / 1e9 for count in (8, 800)]
assert [round(each, 2) for each in sent] == [0.44, 0.5]

# %% [markdown]
# Half of the parameters, and up to rounding the same gradient.
# Mixed precision, `--precision bfloat16`, can be combined with all of this (lesson [14](14_cost_and_memory.ipynb) measures it).
#
# The largest models are divided in two more ways.
# **Tensor parallelism** divides each matrix: every device multiplies with some of its columns or rows, and they exchange results within every layer, so they need fast links [@shoeybi2019].
# **Pipeline parallelism** divides the stack: each device has some of the layers and hands its output to the next, while micro-batches follow one another so that few devices wait [@huang2019].
# Llama 3 combines both with sharding [@grattafiori2024, section 3.3.2].
#
# ## What 27.3 BLEU takes
#
# The paper's base model reaches 27.3 BLEU from English to German (test set: newstest2014), after 100,000 steps of 25,000 target tokens.
# We count FLOPs, as lesson [08](08_transformer.ipynb) did for one sentence; a training step takes three times the operations of its forward pass (lesson [14](14_cost_and_memory.ipynb#What-does-a-step-cost?)).

# %%
from course_lib.config import model_preset

base = model_preset("base", 37_000)
forward = sum(base.flop_counts(src_len=25, tgt_len=25).values())  # one sentence pair
sentences = 25_000 / 25  # of a batch
by_hand = 3 * forward * sentences * 100_000
print(f"one pair forward: {forward:.1e} FLOPs")
print(f"the whole training: {by_hand:.1e}")

# %% tags=["hide-input"]
from course_lib.training import training_flops

assert by_hand == training_flops(base, steps=100_000, batch_tokens=25_000)
assert 9e17 < by_hand < 1e18 and round(2.5e9 / base.num_parameters) == 40
assert abs(6 * base.num_parameters * 100_000 * 25_000 / by_hand - 1) < 0.05
assert f"{6 * base.num_parameters * 2.5e9:.1e}" == f"{by_hand:.1e}" == "9.5e+17"

# %% [markdown]
# Nearly all the operations are products with weights: 6 for each weight and target token, if the source is as long as the target.
# 6 · 63 million · 2.5 billion ≈ 9.5 · 10¹⁷: you can do it by hand.
#
# Is that much? We measure how fast this machine computes a matrix product.

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
# With all your cores it takes fewer days: at best, divide by their number.
# So this course trains small models on a corpus of its own.
#
# ### What the paper prints
#
# The paper's table 2 has a training cost, too: hours times devices times an estimate of the operations per second that a GPU sustains (section 6.1).

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
# The paper calls its 3.3 · 10¹⁸ the operations used; it is what the GPUs could have done. We count what the training needs. (That both counts have 9.5 is chance.)
#
# Ours divided by the paper's is the **utilization**: the part of the possible operations that a training uses.
# It is less than a third for base and more for big: larger matrices probably keep a GPU busier.
# Where the rest goes, the paper does not say: perhaps into products below full speed, padding, all that is not a matrix product, and the exchange.
#
# **A common mistake**: dividing FLOPs by the peak on a data sheet.
# That assumes a utilization of 100 %, which nobody reaches. Llama 3's large runs report 38 to 43 % of it [@grattafiori2024, section 3.3.2].
#
# ## The budget planner
#
# The widget plans the base training on other devices.
# It starts with the paper's 8 P100 GPUs, at 29 % of what the paper says they sustain.
# Both axes are logarithmic, so without a serial share the line is straight; 8 devices take the paper's 12 hours (marked).
# Set 5 % serial: the line bends. The planner now reads 29 % as *one* GPU's, so eight take 16 hours, not 12.
# Then try other devices, and fill in your price of a device-hour.

# %%
from course_lib.widgets import BudgetPlanner

planner = BudgetPlanner()
planner

# %% tags=["hide-input"]
shown_plan = planner.preset, planner.steps, planner.device, planner.devices
with written_for((("base", 100_000, "P100", 8), 0.0), (shown_plan, planner.serial)):
    assert abs(planner.view["hours"] - 12) < 0.1
    assert abs(planner.budget(serial=5).hours - 16) < 0.4

# %% [markdown]
# Here are three plans with A100 GPUs of 2020, in bfloat16, at a price of 2 for a device-hour.
# We assume that one uses 29 % of the data sheet's peak, 312 · 10¹². (A guess: the paper's 9.5 · 10¹² is no data sheet's peak, so its 29 % need not carry over.)

# %%
from course_lib.training import Budget

plans = []
for devices, serial in ((1, 0.0), (64, 0.0), (64, 0.05)):
    kind = dict(device="A100", utilization=0.29, price=2)
    plans.append(Budget(devices=devices, serial=serial, **kind))
    name, plan = f"{devices:2} A100, {serial:.0%} serial", plans[-1]
    print(f"{name:21} {plan.hours:.2f} hours, {plan.money:6.2f} to pay")

# %% tags=["hide-input"]
assert 2.7 < plans[0].hours < 3.3 and abs(plans[1].money - plans[0].money) < 1e-9
assert abs(plans[2].money / plans[0].money - (1 + 63 * 0.05)) < 1e-9
assert round(1 + 63 * 0.05, 2) == 4.15
assert PEAKS["A100"] == 312e12
assert round(0.05 / (0.05 + 0.95 / 64), 2) == 0.77

# %% [markdown]
# What took eight GPUs half a day in 2017 takes one GPU three hours, if our 29 % holds.
# (That is optimistic: so small a model probably keeps a faster GPU less busy, and with 64 devices each gets only 390 tokens of the batch.)
#
# Without a serial share, 64 devices cost as much as one: you save time at no extra cost.
# With 5 %, they cost four times as much.
# The 5 % is of one device's time.
# With 64 devices they fill 77 % of the hours, and then 63 of the devices add nothing, but cost: N devices cost 1 + (N − 1) s times as much as one, here 1 + 63 · 0.05 = 4.15.
#
# ### A larger model, or more tokens?
#
# By the same formula, 6 · parameters · tokens, a model twice as large can read half as many tokens for the same FLOPs.
# Which is better?
#
# For language models this has been measured.
# Their loss falls like a power of the parameters, of the tokens and of the FLOPs, as long as the other two are no limit: these are **scaling laws** [@kaplan2020].
# (Where the reading was the limit, our curve was flat.)
# Kaplan et al. would put most of a larger budget into a larger model.
# @hoffmann2022 let both grow together, with about 20 tokens for each parameter: a rule of thumb.
# The paper's model read about 40 target tokens for each parameter; but the rule is for new text at every step, and this model reads its 4.5 million pairs again and again.
# And the rule counts only the training.
# A smaller model is cheaper to *use*, so many are trained far beyond 20: the smallest Llama 3 read nearly 2,000 tokens for each parameter [@grattafiori2024].
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
# - **DDP**: `DistributedDataParallel`, PyTorch's wrapper for data parallelism; after `backward`, each gradient is the mean over all processes.
# - **reduce-scatter**: a sum over all processes of which each receives only its part.
# - **all-gather**: every process receives the parts of all.
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
# More of one thing helps until another one is the limit:
#
# - **more pairs**, until the training is too short to use them. At 32,000 pairs read, more than 4,000 brought next to nothing; at 128,000, eight times the pairs brought 7 BLEU. Change one at a time;
# - **more processes**, until the serial part is all that is left: by Amdahl's law, the speed-up stays below 1/s. One measured speed-up gives s, but cannot show that the law is right;
# - **sharding**, until the activations fill the memory. It makes room, not speed;
# - **more money**, until devices wait: if 5 % were serial, 64 devices would cost four times as much as one.
#
# More processes take the same step if each divides the loss of its rows by the tokens of the *whole* batch, and the gradients are added. (If the wrapper takes the mean, multiply by N.) The mean of the means is another training.
# After a crash, `torchrun` starts all processes again and the library loads the last checkpoint; on CPUs the final weights were equal to the bit.
#
# We count 9.5 · 10¹⁷ FLOPs for the paper's training; its 3.3 · 10¹⁸ is what eight GPUs could have done in 12 hours. One A100 would need three hours at an assumed 29 % of its peak. Plan with a utilization, and with your own price.
#
# **Practice**: [assignment 17](assignments/release/17_scaling_out/17_scaling_out.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: the errata lab, lesson [18](18_errata_lab.ipynb), puts what is said about Transformers to the test.
