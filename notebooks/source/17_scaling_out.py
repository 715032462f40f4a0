# %% [markdown]
# # 17 · Scaling out: more data, more processes, more money
#
# **Question.** You have sentence pairs of your own, and a second core, GPU or machine. How much does each of them help, and what would it take to get as far as the paper?
#
# **Afterwards you can**
#
# 1. train a translator on your own file with one command, in one process or many, and let it survive a crash;
# 2. say what several processes must exchange to take the same step as one, and find the mistake that weighs sentences wrongly without an error;
# 3. plan a training: data from a measured curve, hours from Amdahl's law, money from a count of operations.
#
# **You need** the training loop (lesson [09](09_training.ipynb)), BLEU ([10](10_translation.ipynb)) and the counts of lesson [08](08_transformer.ipynb).
# **Time**: {minutes} minutes to read, under 60 seconds to run on two free cores.
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
# You would type the command in a terminal; here a small function does.


# %%
def run(command):
    """Runs a command in our folder, and returns what it says."""
    python = [sys.executable, "-m"]
    torchrun = [*python, "torch.distributed.run", "--standalone"]
    words = command.replace("python -m", "python").split()
    words = {"python": python, "torchrun": torchrun}[words[0]] + words[1:]
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
# The command has split the file into three parts, so that no sentence is in two of them, and learned 600 subwords from the training part.
# It has trained for two epochs, scored each on the validation part, and left a folder that `Translator.from_pretrained` reads.
# If it is interrupted, the same command continues where it stopped.
# What has it learned?

# %%
from course_lib import Translator

translator = Translator.from_pretrained(folder / "alone")
trained = {"two epochs of 1,000 pairs": translator}
trained["four of 60,000 pairs"] = Translator.from_pretrained("course")
text = load_course(num_train=1).test[0].src  # a sentence that neither has seen
print(text)
for name, each in trained.items():
    print(f"{name:24} → {each.translate(text).text}")

# %% tags=["hide-input"]
import course_lib

course_log = Path(course_lib.__file__).parent / "pretrained" / "course" / "log.json"
of_course = json.loads(course_log.read_text())
assert (of_course["train_pairs"], of_course["training"]["epochs"]) == (60_000, 4)
assert round(of_course["test"][0]["bleu"]) == 99 and of_course["seconds"] < 300

# %% [markdown]
# Ours writes German subwords, and no translation.
# `course`, which comes with the library, was made by the same command with 60,000 pairs, four epochs and 2,000 subwords: 99 BLEU on new sentences, after four minutes on two cores.
# Were a thousand pairs too few, or two epochs too short?
# Below we measure what more data brings, and what more reading.
# More of either takes longer, so first we get help.
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
# During a step they communicate in step 4 only.
# A sum or mean over all processes that each of them receives is called an **all-reduce**.
# The number of a process, from 0, is its **rank**; how many processes there are is the **world size**.
#
# If steps 3 and 4 are right, the result is the gradient of the whole batch.
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
loss_of = BatchLoss(model, 0.1)  # a batch to the sum of its tokens' losses


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
# And mind the factor: the gradient is the *sum* of what the N processes get from (sum of the share's losses) / T.
# A wrapper that takes the *mean* gives 1/N of it, so each process multiplies its loss by N first.
# (Whoever forgets that sees little of it: Adam divides by the size of the gradients, and the factor cancels.)
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
# It also sends *buckets* of parameters, because one large message is faster than many small ones [@li2020].
#
# Other processes have no notebook: what they run must be in a file.
# `save(name)`, from a folded cell, writes the cell before it to such a file.

# %%
save("ours.py")

# %% [markdown]
# The next two cells say what each process does: it takes its rows of one batch, computes the gradient in four ways, and compares each with the gradient of the whole batch.
# (*sharded* comes later in this lesson.)


# %%
from course_lib.training import rank, sharded_loss, share_of, world_size


def gradient_of(wrap, batch, own_tokens=False):
    """In a process: the averaged gradient of its share, by a wrapper."""
    model = Translator.from_pretrained("alone").model.double()
    loss = wrap(BatchLoss(model, 0.1))
    own, _ = share_of(batch, rank(), world_size())  # rows rank, rank + world size, …
    factor = 1 / own.num_tokens if own_tokens else world_size() / batch.num_tokens
    (loss(own) * factor).backward()  # times N, because the wrapper takes the mean
    found = [each.grad for each in model.parameters()]
    if hasattr(found[0], "full_tensor"):  # sharded
        found = [each.full_tensor() for each in found]
    return torch.cat([each.flatten() for each in found])


# %%
def compare(batch):
    model = Translator.from_pretrained("alone").model.double()
    (BatchLoss(model, 0.1)(batch) / batch.num_tokens).backward()
    whole = torch.cat([each.grad.flatten() for each in model.parameters()])
    ways = {"ours": OurDataParallel, "DDP": nn.parallel.DistributedDataParallel}
    ways["sharded"] = lambda loss: sharded_loss(loss.model, 0.1)
    found = {name: gradient_of(wrap, batch) for name, wrap in ways.items()}
    found["mean of means"] = gradient_of(ways["DDP"], batch, own_tokens=True)
    for name, each in found.items() if rank() == 0 else ():
        print(f"{name}: {(each - whole).norm() / whole.norm():.0e}")


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
# (The file has a few more lines, which import what is needed and call `compare`.)

# %%
compared = run("torchrun --nproc-per-node 2 gradients.py")
print(compared)

# %% tags=["hide-input"]
away = dict(line.split(": ") for line in compared.splitlines())
assert all(float(away[name]) < 1e-12 for name in ("ours", "DDP", "sharded"))
assert float(away["mean of means"]) > 1e-3

# %% [markdown]
# Ours, PyTorch's and the sharded one agree with a single process up to rounding.
# The mean of the means does not, though here each process has long and short sentences. (The batch is the three shortest pairs of the file and the four longest.)
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
    assert abs(one["train_loss"] / two["train_loss"] - 1) < 0.01
assert two_said.count("epoch ") == alone_said.count("epoch ") == 2

# %% [markdown]
# The losses agree to all the digits shown: the training has not changed, only who computes it.
# (`mini` has no dropout. With it each process draws zeros of its own: other numbers, of the same distribution.)
# The loss is added up over both processes, but only rank 0 prints, translates the validation part and writes files.
#
# **A common mistake**: every process writes the checkpoint, to the same file.
# It works until two writes overlap, and then the file is broken.
#
# With GPUs the command is the same again: each process takes a GPU of its own, and they communicate through *nccl* instead of *gloo*.
# With several machines, each one runs the command with `--nnodes` and an address where they meet:
#
# ```
# torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint first-machine:29400 \
#     -m course_lib train --data mine.tsv --out runs/mine
# ```
#
# The output folder must then be one that all machines can see.
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
# In our test, one process kills itself as soon as there is a checkpoint:

# %%
import signal
import threading
import time

from course_lib.__main__ import main


def die_after_the_first_epoch():
    while not Path("crashed/checkpoints/last.safetensors").exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


# %%
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
# A checkpoint has all that a run consists of (lesson [09](09_training.ipynb)): weights, Adam's moments, the position in the epoch, and the state of *every* process's random generator, because with dropout each draws zeros of its own.
# (The preset `mini` has no dropout, so this test says nothing of the generators; the library's own tests have it. With dropout, one process and two would have printed different losses above. And equality to the bit is a promise for CPUs only: kernels of GPUs may add in another order each time.)
# What was computed after the checkpoint is lost: here at most an epoch.
# Save often enough that you can afford to repeat what is lost.
#
# Why three restarts for one death?
# A restart can fail too, for instance if a process tries the address that the previous start used ([PyTorch issue 135712](https://github.com/pytorch/pytorch/issues/135712)).
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
# **Amdahl's law** says what follows [@amdahl1967].
# Let s be the **serial share**: the share of one process's time that cannot be divided.
# The rest is divided by N. (A single process neither waits nor exchanges; where we fit s below, both are counted as if they were part of it.)
#
# $$\text{speed-up}(N) = \frac{1}{s + (1 - s)/N} \;\le\; \frac{1}{s}$$

# %% tags=["nbval-check-output"]
from course_lib.training import serial_share, speed_up

print(f"{'serial share':14}{'N = 2':>8}{'8':>8}{'64':>8}{'1024':>8}")
for share in (0.0, 0.02, 0.1, 0.3):
    row = [speed_up(count, share) for count in (2, 8, 64, 1024)]
    print(f"{share:<14.0%}", *(f"{each:7.1f}" for each in row))

# %% tags=["hide-input"]
assert speed_up(1024, 0.1) < 10 and abs(speed_up(2, 0.1) - 2 / 1.1) < 1e-12

# %% [markdown]
# Look at the row of 10 %: two processes are 1.8 times as fast, which looks splendid, and a thousand are not even ten times as fast.
#
# How large is s in our training, with waiting and exchange counted in?
# With throughput measured at several N, we would fit it by least squares.
# We have two numbers, N = 1 and N = 2.
# For comparison we also fit another law, in which everything is divided, but each further process costs a constant for communication (as if one process collected all gradients in turn; in a good all-reduce each process sends less than twice the gradients, however many there are).


# %%
def amdahl_time(count, share):
    """Amdahl: time of one unit of work with so many processes."""
    return share + (1 - share) / count


def talking_time(count, each):
    """Another law: all is divided, but each further process costs a constant."""
    return 1 / count + each * (count - 1)


time_of_two = rates[1] / rates[2]
share = serial_share([1, 2], [rates[1], rates[2]])
each = time_of_two - 1 / 2
print(f"serial share {share:.3f}, or {each:.3f} for each further process")
print("time, where one process takes 1:")
for law, number in ((amdahl_time, share), (talking_time, each)):
    row = (f"N = {n}: {law(n, number):6.2f}" for n in (1, 2, 8, 64))
    print(f"{law.__name__:14}", *row)

# %% tags=["hide-input"]
for law, number in ((amdahl_time, share), (talking_time, each)):
    assert abs(law(2, number) - time_of_two) < 1e-9
assert abs(serial_share([1, 2, 4], [speed_up(n, 0.1) for n in (1, 2, 4)]) - 0.1) < 1e-12

# %% [markdown]
# Each law has two free numbers, the time of one process, which we call 1, and s or the cost. So each passes exactly through both points, and no error is left that could show one of them wrong.
# Only an impossible value can: an s above 1 is no share. It comes out where two processes are slower than one, as on a machine that is busy with something else.
# (Each point is a single run of seconds, too: if their ratio is off by 5 %, s is off by 0.1 divided by the speed-up.)
# Beyond the points the laws disagree: with an s below 1, by the first law more processes never take longer; by the second too many do.
# A fit needs more points than free numbers, and a check needs one more that the fit did not use.
# What two points *can* tell is how much is lost with two processes, on this machine, with this model and batch.
#
# What matters most is how much each process has to do between two exchanges.
# We have divided a batch of fixed size, so more processes do less between two exchanges; that is **strong scaling**.
# Usually the batch grows with the processes: **weak scaling**.
# Then the exchange stays small compared with the work, and what does not grow with the batch weighs less.
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
# An all-reduce is two exchanges: first each process gets the sum of *its* part (a **reduce-scatter**), then all collect the parts (an **all-gather**).
# Sharded training gathers the weights before the forward pass and again before the backward pass, and scatters the gradients: three exchanges instead of two.
# The memory for weights, gradients and moments shrinks with N.
# Activations are not sharded: they depend on each process's share of the batch, and are often what overflows.
# In PyTorch it takes one call, `fully_shard(layer)`, for each layer and one for the model around them; `sharded_loss`, which our comparison used, does that.
# Mixed precision, `--precision bfloat16`, works with all of this (lesson [14](14_cost_and_memory.ipynb) measures it).
#
# The largest models are divided in two more ways.
# **Tensor parallelism** divides each matrix: every device multiplies with some of its columns or rows, and they exchange results within every layer, so they need fast links [@shoeybi2019].
# **Pipeline parallelism** divides the stack: each device has some of the layers and hands its output to the next, while micro-batches follow one another so that few devices wait [@huang2019].
# Llama 3 combines both with sharding [@grattafiori2024, section 3.3.2].
#
# ## How much data does it take?
#
# Back to the first question: are a thousand pairs too few, or two epochs too short?
# An experiment that changes both at once cannot tell.
# So we fix the length of training, 32,000 pairs: a corpus of 1,000 is read 32 times, one of 32,000 once.
# Each size has its own subwords, the better of two learning rates (by validation with a fourth seed) and three seeds, each with other pairs.
# All are tested on the same thousand new sentences.
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
means = [statistics.mean(results[f"{size:,} pairs"]) for size in sizes]
for size, mean in zip(sizes, means, strict=True):
    runs = results[f"{size:,} pairs"]
    print(f"{size:6,} pairs: {mean:.1f} BLEU ({min(runs):.1f} to {max(runs):.1f})")
first, *_, last = (after - before for before, after in pairwise(means))
steady, flat = last > first / 2, first < 2  # 2 BLEU: what seeds differ by
of_data.reveal(of_data.choices[2 if flat else 0 if steady else 1])

# %% tags=["hide-input"]
assert means[1] - means[0] > 4 and means[2] - means[1] > 1.5
assert max(means[3:]) - means[2] < 2
assert all(abs(mean - means[2]) < 3 for mean in means[2:])
final = [run["choices"] for run in record["runs"] if run["stage"] == "final"]
assert {choices["rate"] for choices in final} == {0.012}
assert {run["choices"]["seen"] for run in record["runs"]} == {32_000, 128_000}

# %% [markdown]
# Up to 4,000 pairs each doubling helps, the second less than the first.
# From there on it makes no step: the mean falls a little, then rises a little, and the seeds differ by as much.
# (All sizes chose the higher of the two rates; with a still higher one the plateau may begin elsewhere.)
#
# A curve through measured points is a **scaling curve**, and it is tempting to extend it.
# We fit two: a straight line in log n, through the three sizes that a small project would have measured, and $c - a \, n^{-b}$, which levels off at the ceiling c.

# %%
import numpy as np


def saturating(sizes, bleu):
    """c, a, b of c − a·n^−b by least squares, n in thousands; many b are tried."""
    fits = []
    n = np.array(sizes) / 1000
    for b in np.linspace(0.1, 4, 79):
        columns = np.stack([np.ones(len(n)), -(n**-b)], axis=1)
        (c, a), *_ = np.linalg.lstsq(columns, np.array(bleu), rcond=None)
        fits.append((((columns @ (c, a) - bleu) ** 2).sum(), c, a, b))
    return min(fits)[1:]


# %%
said = {}  # what each says for 32,000 pairs
for known in (3, 5):
    slope, start = np.polyfit(np.log2(sizes[:known]), means[:known], 1)
    c, a, b = saturating(sizes[:known], means[:known])
    said["line", known] = slope * np.log2(sizes[-1]) + start
    said["curve", known] = c - a * (sizes[-1] / 1000) ** -b
    print(f"from the first {known}: the line says {said['line', known]:.1f}", end=", ")
    print(f"c − a/n^b {said['curve', known]:.1f}")
print(f"measured: {means[-1]:.1f}")

# %% tags=["hide-input"]
from course_lib.figures import curves

slope, start = np.polyfit(np.log2(sizes[:3]), means[:3], 1)
c, a, b = saturating(sizes, means)

# %% tags=["hide-input"]
many = np.geomspace(1000, 32_000, 40)
measured = np.array([results[f"{size:,} pairs"] for size in sizes])
curves(
    {
        "measured, three seeds": (sizes, measured.T),
        "c − a/n^b": (many, c - a * (many / 1000) ** -b),
        "line of the first three": (many, slope * np.log2(many) + start),
    },
    xlabel="pairs in the corpus",
    ylabel="BLEU",
    title="After 32,000 pairs read, more than 4,000 different ones bring little",
    log_x=True,
)

# %% tags=["hide-input"]
assert said["line", 3] > means[-1] + 8 and 2 < said["line", 5] - means[-1] < 6
assert all(abs(said["curve", known] - means[-1]) < 3 for known in (3, 5))
assert a > 0 and np.abs(c - a * (np.array(sizes) / 1000) ** -b - means).max() < 2

# %% [markdown]
# The line goes on as the first three began, and is far too high beyond them; with five points even this wrong shape misses by less.
# The curve with a ceiling is near both times. But for three points it has as many free numbers as points: it passes through them whatever they are.
# And what is this ceiling?
# It need not be the most that can be learned from the sentences: a model that has read 32,000 pairs once may not have learned what is in them.
# To find out, we change the reading alone: three of the sizes were trained four times as long, 128,000 pairs, with nothing else changed.

# %%
of_reading = Predict(
    "Four times the reading: who gains most BLEU?",
    ["1,000 pairs", "4,000 pairs", "32,000 pairs", "all alike, within 3 BLEU"],
    section="How much data does it take?",
)
of_reading

# %% tags=["nbval-check-output"]
gained = {}
for size in (1000, 4000, 32_000):
    short, long = results[f"{size:,} pairs"], results[f"{size:,} pairs, longer"]
    before, after = statistics.mean(short), statistics.mean(long)
    gained[f"{size:,} pairs"] = after - before
    print(f"{size:6,} pairs: {before:.1f} BLEU after 32,000 read;", end=" ")
    print(f"{after:.1f} ({min(long):.1f} to {max(long):.1f}) after 128,000")

# %%
even = max(gained.values()) - min(gained.values()) < 3
of_reading.reveal(of_reading.choices[3] if even else max(gained, key=gained.get))

# %% tags=["hide-input"]
assert list(gained.values()) == sorted(gained.values()) and gained["1,000 pairs"] > 4
assert gained["4,000 pairs"] > 3 * gained["1,000 pairs"] / 2
assert gained["32,000 pairs"] > gained["4,000 pairs"] + 3
longest = [results[f"{size:,} pairs, longer"] for size in (1000, 4000, 32_000)]
assert max(longest[0]) + 20 < min(longest[1]) and max(longest[1]) + 3 < min(longest[2])

# %% [markdown]
# So the ceiling was that of the training.
# After the longer one, sizes that had been level are no longer: the more a model reads, the more different sentences it can use.
# A thousand pairs, too, are worth reading more than 32 times, but they gain least.
#
# So ask two questions, in this order:
#
# - Does it help to train longer? Then train longer first; more data may help as well.
# - If it does not, or if validation gets worse while the training loss falls, the data is the limit, or the model.
#
# Our own two epochs read fewer than 2,000 pairs, a sixteenth of the shorter trainings here.
# So the first thing to do with a small file is to train longer; a thousand pairs become the limit later.
# (The corpus is made by a regular grammar. Natural language has more words and more exceptions: how the curve looks for it must be measured.)
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
ours = 3 * forward * sentences * 100_000
theirs = training_flops(base, steps=100_000, batch_tokens=25_000)
print(f"one pair forward: {forward:.1e} FLOPs")
print(f"the whole training: {ours:.1e}, by the library: {theirs:.1e}")

# %% tags=["hide-input"]
assert ours == theirs and 9e17 < ours < 1e18

# %% [markdown]
# Nearly all the operations are products with weights, 6 for each weight and target token (if the source is as long as the target), so the length of the sentences hardly matters here.
#
# ### A larger model, or more tokens?
#
# The same FLOPs could train a larger model on fewer tokens.
# What is best?
# @kaplan2020 found **scaling laws**: a language model's loss falls like a power of its parameters, of its tokens and of its FLOPs, over many orders of magnitude, if the other two are no limit.
# They concluded that most of a larger budget should go into a larger model.
# @hoffmann2022 came to another answer: parameters and tokens should grow *together*, both like the square root of the FLOPs, with about 20 tokens a parameter. (They let the learning rate fall to its end within each length of training.)
# How far is the paper's run from that?

# %% tags=["nbval-check-output"]
weights, tokens = base.num_parameters, 100_000 * 25_000
best = (ours / (6 * 20)) ** 0.5  # FLOPs = 6 · parameters · 20 · parameters
for name, size, read in (("paper", weights, tokens), ("20 each", best, 20 * best)):
    print(f"{name:8}{size / 1e6:3.0f} million parameters", end=", ")
    print(f"{read / 1e9:.1f} billion target tokens: {read / size:.0f} a parameter")
times = 100_000 * sentences / 4.5e6
print(f"the paper's model read each pair {times:.0f} times;", end=" ")
print(f"counted once: {tokens / times / weights:.1f} target tokens a parameter")

# %% tags=["hide-input"]
assert 35 < tokens / weights < 45 and abs(6 * weights * tokens / ours - 1) < 0.05
assert abs(6 * best * 20 * best / ours - 1) < 1e-9

# %% [markdown]
# With our 25 target tokens a pair, the paper's model read twice as many of them for each parameter as the rule asks for; counted once, a tenth. (With the source tokens, twice that.)
# The rule is one of language models that read new text at every step, and does not say what reading the same 4.5 million pairs again is worth.
# The rule also counts the training only.
# A smaller model is cheaper to *use*, so many are trained far beyond 20: Llama 3 reads some 15 trillion tokens, which makes nearly 2,000 for each parameter of its smallest model [@grattafiori2024].
#
# ### What the paper prints
#
# The paper's table 2 has a training cost, too.

# %%
of_cost = Predict(
    "We count 9.5 · 10¹⁷ FLOPs. What does the paper print for the base model?",
    ["about the same", "about three times less", "about three times more"],
    section="What 27.3 BLEU takes",
)
of_cost

# %%
from course_lib.training import PEAKS, capacity, paper_utilization

of_cost.reveal(of_cost.choices[2])
could = capacity(12, 8, "P100")
print(f"12 hours × 8 GPUs × {PEAKS['P100']:.1e} per second = {could:.1e}")
for name in ("base", "big"):
    print(f"{name:4} used {paper_utilization(name):.0%} of what its GPUs could do")

# %% tags=["hide-input"]
assert f"{could:.1e}" == "3.3e+18" and f"{capacity(84, 8, 'P100'):.1e}" == "2.3e+19"
assert 3 < could / ours < 4
assert paper_utilization("base") < paper_utilization("big")

# %% [markdown]
# 3.3 · 10¹⁸ is exactly hours times devices times operations per second.
# The paper says so in section 6.1: it *estimates* the cost from what the GPUs can sustain, and does not count what was computed.
# Both numbers are right, about different things.
# Their quotient is the **utilization**: the share of the peak that a training uses (here, of what the paper says its GPUs sustain).
# It is less than a third for base and more for big: larger matrices probably keep a GPU busier. The rest may go into products that run below the peak, padding (computed, and not counted here), all that is not a matrix product, and the exchange; the paper does not say in which shares.
# (If you pay by the hour, you pay for the peak.)
# The largest model of Llama 3 was trained at 38 to 43 % [@grattafiori2024, table 4].
#
# **A common mistake**: dividing FLOPs by the peak on a data sheet.
# That assumes a utilization of 100 %, which nobody reaches.
#
# ## The budget planner
#
# The widget plans this training for other devices.
# It starts with the paper's: 8 P100, 29 % of the peak, 12 hours, and no serial share (set it to 5 % and watch the curve bend; more devices follow Amdahl's law, the more hopeful of our two).
# Fill in the price of a device-hour: prices differ by provider, year and contract.

# %%
from course_lib.widgets import BudgetPlanner

planner = BudgetPlanner()
planner

# %% tags=["hide-input"]
from course_lib.checks import written_for

shown_plan = planner.preset, planner.steps, planner.device, planner.devices
with written_for(("base", 100_000, "P100", 8), shown_plan):
    assert abs(planner.view["hours"] - 12) < 0.1

# %% [markdown]
# Here are four plans, with the same utilization as the paper's.
# The A100's peak, 312 · 10¹², is that of bfloat16 products, the P100's 9.5 · 10¹² that of float32. In float32, without the tensor cores, an A100 has 19.5 · 10¹²: of the factor 33, 16 comes from bfloat16 on tensor cores.
# The utilization, too, is a hope: the paper's 29 % include the exchange of 8 GPUs, and a faster GPU is kept less busy by so small a model, and still less by a 64th of its batch. The 5 % serial share is an assumption. Measure yours.
# The price of 2 per device-hour, in any currency and for either device, is a number to replace, not a quotation.

# %%
from course_lib.training import Budget

plans = [
    Budget(device="P100", devices=1, utilization=0.29, price=2),
    Budget(device="A100", devices=1, utilization=0.29, price=2),
    Budget(device="A100", devices=8, utilization=0.29, serial=0.05, price=2),
    Budget(device="A100", devices=64, utilization=0.29, serial=0.05, price=2),
]
for plan in plans:
    name = f"{plan.devices} {plan.device}, {plan.serial:.0%} serial"
    print(f"{name:22} {plan.hours:7.2f} hours, {plan.money:7.2f} for the devices")

# %% tags=["hide-input"]
assert round(PEAKS["A100"] / PEAKS["P100"]) == 33 and PEAKS["A100"] / 19.5e12 == 16
assert plans[0].hours > 90 and plans[1].hours < 4 and plans[2].money > plans[1].money
assert plans[3].hours < plans[2].hours and plans[3].money > plans[2].money

# %% [markdown]
# What took eight GPUs half a day in 2017 takes one GPU three hours, if bfloat16 will do, and if it is used as well.
# More devices buy time and never save money: with 5 % serial, 64 of them wait most of the time that you pay for.
#
# And your machine?
# We measure what it can do with one matrix product.

# %%
a, b = torch.randn(2, 1024, 1024)
a @ b  # warm up
started = time.perf_counter()
for _ in range(5):
    a @ b
here = 5 * 2 * 1024**3 / (time.perf_counter() - started)
print(f"this machine, one thread: {here:.1e} operations per second")
print(f"the training, if nothing is lost: {ours / here / 3600 / 24:.0f} days on it")

# %% tags=["hide-input"]
assert ours / here / 3600 / 24 > 10  # days

# %% [markdown]
# Divide by your cores, at best. So this course trains small models on a corpus of its own.
#
# ## What to take home
#
# | you add | what you get | what you do not get |
# |---|---|---|
# | processes | the same steps, sooner if each has a free core or device | better translations from the same steps |
# | checkpoints and restarts | a run that survives a crash | the work since the last checkpoint |
# | shards | models that do not fit one device | speed |
# | data | better translations, if the training is long enough to learn it | anything that its sentences do not show |
# | training time | more of what the data can teach | more than that; too much of it, and the model learns the data by heart |
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
# Amdahl's law turns a serial share into a limit of the speed-up; two measured points determine its numbers, and test them only where a share above 1 comes out.
# How much data a training can use depends on its length: at 32,000 pairs read, ours gained little from more than 4,000 different ones; at 128,000 it gained again; for language models, about 20 tokens a parameter use the FLOPs of a training best.
# The paper's 3.3 · 10¹⁸ FLOPs are what its GPUs could have done in 12 hours; the training itself took 9.5 · 10¹⁷, so plan with a utilization, and with your own price.
#
# **Practice**: [assignment 17](assignments/release/17_scaling_out/17_scaling_out.ipynb): exercises that are checked at once, and a question to answer in words.
#
# **Next**: the errata lab, lesson [18](18_errata_lab.ipynb), puts what is said about Transformers to the test.
