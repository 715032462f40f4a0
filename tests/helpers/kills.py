"""Trains through the command line again and again, killed each time: python -m tests.helpers.kills FOLDER ...

The library is loaded once; each start is a fork of this process, or as many as torchrun would start.
"""

import argparse
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

# Loaded before the first fork, so that no child has to.
import sacremoses  # noqa: F401
import torch
import torch.distributed.rendezvous  # noqa: F401
import torch.nn.parallel  # noqa: F401

import course_lib.translator  # noqa: F401
from course_lib.__main__ import main
from course_lib.storage import checkpoint, files
from course_lib.training import experiment
from tests.helpers.corpora import toy_pairs
from tests.helpers.tiny import tiny_preset

OPTIONS = dict(epochs=3, batch_tokens=128, vocab_size=80, warmup_steps=4, average=2, snapshots=2, beam_size=2)
LONGEST = 600  # seconds of one start, on a busy machine


def start(folder: Path, data: Path, processes: int, dies=None) -> list[int]:
    """Forks a training, and returns its process ids; `dies` is called in each child before it begins."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    return [_child(rank, folder, data, processes, port, dies) for rank in range(processes)]


def _child(rank: int, folder: Path, data: Path, processes: int, port: int, dies) -> int:
    if child := os.fork():
        return child
    status = 70
    try:
        torch.set_num_threads(1)
        with open(folder.with_suffix(".txt"), "a") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        if processes > 1:  # what torchrun tells its workers
            told = dict(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=processes, LOCAL_WORLD_SIZE=processes)
            told |= dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            told |= dict(TORCHELASTIC_RUN_ID="kills", TORCHELASTIC_RESTART_COUNT=0)
            os.environ.update({name: str(value) for name, value in told.items()})
        if dies:
            dies()
        flags = [word for name, value in OPTIONS.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        with mock.patch.object(experiment, "model_preset", tiny_preset):
            status = main(["train", "--data", str(data), "--out", str(folder), "--device", "cpu", *flags])
    finally:
        os._exit(status)


def ended(children: list[int], seconds: float) -> bool:
    """Waits; whether all have ended well. After `seconds`, or the bad end of one, the others are killed."""
    deadline, running, good = time.monotonic() + seconds, set(children), True
    while running:
        for child in list(running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                running.remove(child)
                good = good and status == 0
        if running and (time.monotonic() > deadline or not good):
            for child in running:
                os.kill(child, signal.SIGKILL)
            good, deadline = False, time.monotonic() + LONGEST
        time.sleep(0.005)
    return good


def kill_again_and_again(begin: Callable, kills: int) -> int:
    """Kills trainings, each of which goes on where the one before was killed; returns how many came to an end.

    Args:
        begin: a start in a folder, by its number, which will be killed; returns whether it came to its end before.
        kills: how many.
    """
    number, killed = 0, 0
    while killed < kills:
        if begin(number, True):
            number += 1
        else:
            killed += 1
    for last in range(number + 1):
        assert begin(last, False), "a start after all kills failed"
    return number + 1


def at_random_moments(folder: Path, data: Path, processes: int, kills: int, seed: int) -> int:
    """Kills all processes at moments spread over the time of a whole run."""
    rng, began = random.Random(seed), time.monotonic()
    assert ended(start(folder / "whole", data, processes), LONGEST), "the uninterrupted run failed"
    whole = time.monotonic() - began

    def begin(number: int, kill: bool) -> bool:
        seconds = rng.uniform(0, 0.9 * whole) if kill else LONGEST
        return ended(start(folder / f"run{number}", data, processes), seconds)

    return kill_again_and_again(begin, kills)


def while_saving(folder: Path, data: Path, processes: int, kills: int, seed: int) -> int:
    """Kills the process that writes: when half of a file is written, just before and just after it is in its place."""
    assert ended(start(folder / "whole", data, processes), LONGEST), "the uninterrupted run failed"
    rng, moments = random.Random(seed), (_half_written, _not_in_place, _just_in_place)

    def begin(number: int, kill: bool) -> bool:
        dies = rng.choice(moments)(rng.randrange(1, 6)) if kill else None
        return ended(start(folder / f"run{number}", data, processes, dies), LONGEST)

    return kill_again_and_again(begin, kills)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _counted(number: int, act, before: bool):
    calls = []

    def wrapped(*args, **options):
        calls.append(1)
        if before and len(calls) == number:
            _die()
        result = act(*args, **options)
        if len(calls) == number:
            _die()
        return result

    return wrapped


def _half_written(number: int):
    def half(tensors, path, metadata=None, save=checkpoint.save_file, calls=[]):  # noqa: B006 (one list for all calls)
        calls.append(1)
        save(tensors, path, metadata=metadata)
        if len(calls) == number:
            content = Path(path).read_bytes()
            Path(path).write_bytes(content[: len(content) // 2])
            _die()

    return lambda: setattr(checkpoint, "save_file", half)


def _not_in_place(number: int):
    return lambda: setattr(files.os, "replace", _counted(number, os.replace, before=True))


def _just_in_place(number: int):
    return lambda: setattr(files.os, "replace", _counted(number, os.replace, before=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("when", choices=("random", "saving"))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    data = asked.folder / "toy.tsv"
    data.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs()[:60]), encoding="utf-8")
    act = {"random": at_random_moments, "saving": while_saving}[asked.when]
    print(act(asked.folder, data, asked.processes, asked.kills, asked.seed), "runs came to their end")
