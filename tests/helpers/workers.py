"""What the processes of tests/training/test_distributed.py do: torchrun workers.py TASK FOLDER, and who starts them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from course_lib.data import BucketedBatches, make_batch
from course_lib.storage import save_tensors
from course_lib.training import distributed
from course_lib.training.config import TrainConfig
from course_lib.training.distributed import gradients, process_group, rank, sharded_loss, share_of, shared_loss
from course_lib.training.run import History
from course_lib.transformer import Transformer
from tests.helpers.parity import double_precision
from tests.helpers.tiny import tiny_model
from tests.helpers.training import fit, reversal_pairs

PAIRS = reversal_pairs(12)
# Unequal shares; the second batch has a row for one process only.
GROUP = [make_batch(pairs) for pairs in (PAIRS[:7], PAIRS[7:8], PAIRS[8:])]
CONFIG = TrainConfig(epochs=4, batch_tokens=24, accumulate=2, peak_lr=0.01, warmup_steps=3, decay="linear")
BATCHES = BucketedBatches(reversal_pairs(24), CONFIG.batch_tokens)
KILLED_AT = 10  # step, in the third epoch


def torchrun(*arguments, processes: int = 2, restarts: int = 0, **options) -> subprocess.Popen:
    """Starts what follows `torchrun` on the command line."""
    # Every test has a port of its own, and is not told how many threads to take.
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command += [f"--max-restarts={restarts}", *map(str, arguments)]
    env = os.environ | {"OMP_NUM_THREADS": "1"} | options.pop("env", {})
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def work(task: str, folder: Path, *, processes: int = 2, restarts: int = 0) -> str:
    """Has processes do a task of this file to the end; returns what they printed."""
    running = torchrun("-m", __name__, task, folder, processes=processes, restarts=restarts)
    try:
        out, err = running.communicate(timeout=900)
    finally:
        running.terminate()  # which ends its workers, too
    assert running.returncode == 0, err
    return out


def threads() -> list[str]:
    """The names of this process's threads, those of PyTorch's libraries too; none where the system does not tell."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


# --- gradients ----------------------------------------------------------------------------------


def mean_of_own_tokens(loss, group, device):
    """The mistake: each process takes the mean over its own tokens, and DDP the mean of the means."""
    for batch in group:
        own, factor = share_of(batch, rank(), 2)
        (factor * loss(own) / own.num_tokens / len(group)).backward()


def counting_all_rows(loss, group, device):
    """The mistake: a process without rows of its own counts what it repeats."""
    with mock.patch.object(distributed, "share_of", lambda *args: (share_of(*args)[0], 1.0)):
        gradients(loss, group, device)


WAYS = {
    "shared": (shared_loss, gradients),
    "sharded": (sharded_loss, gradients),
    "mean of own tokens": (shared_loss, mean_of_own_tokens),
    "counting all rows": (shared_loss, counting_all_rows),
    "not exchanged": (lambda *args: distributed.BatchLoss(*args), gradients),
}


def gradients_of(way: str, **changes) -> dict[str, torch.Tensor]:
    """The gradient of the mean loss over GROUP, by name of the parameter."""
    make_loss, compute = WAYS[way]
    with double_precision():
        model = tiny_model(tie_weights=True, **changes)
        compute(make_loss(model.train(), 0.1), GROUP, torch.device("cpu"))
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {name: grad.full_tensor() if hasattr(grad, "full_tensor") else grad for name, grad in found.items()}


def save_gradients(folder: Path) -> None:
    """Of every way; and what is said to processes that do not fit together."""
    for way in WAYS:
        found = gradients_of(way)
        if rank() == 0:
            save_tensors(folder / f"{way}.safetensors", found, {})
    try:
        fit(tiny_model(), BucketedBatches(reversal_pairs(24, seed=rank()), 48), CONFIG)  # each has other sentences
    except ValueError as error:
        (folder / f"{rank()}.txt").write_text(str(error), encoding="utf-8")


# --- a whole run --------------------------------------------------------------------------------


def train(folder: Path) -> None:
    """Trains with dropout; `killed` in the folder's name ends one process in the first start."""

    def on_step(model: Transformer, history: History) -> None:
        first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if "killed" in folder.name and first and len(history.losses) == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)

    model = tiny_model(dropout=0.3)
    history = fit(model, BATCHES, CONFIG, valid=BATCHES, folder=folder / "checkpoints", keep=1, on_step=on_step)
    if rank() == 0:
        print("restarts:", os.environ["TORCHELASTIC_RESTART_COUNT"])
        assert isinstance(model, Transformer) and not isinstance(model, DistributedDataParallel)
        clocks = {"seconds": 0, "cpu_seconds": 0}
        info = asdict(history) | clocks | {"epochs": [each | clocks for each in history.epochs]}
        save_tensors(folder / "result.safetensors", model.state_dict(), info)


if __name__ == "__main__":
    tasks = {"gradients": save_gradients, "train": train}
    if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0" and os.environ["RANK"] == "0":
        time.sleep(3)  # the other one is back first, and must not find the address of who is gone
    with process_group("cpu"):
        assert dist.get_backend() == "gloo"
        tasks[sys.argv[1]](Path(sys.argv[2]))
    left = [name for name in threads() if "gloo" in name]
    assert not left, f"threads are left that may abort the process: {left}"
