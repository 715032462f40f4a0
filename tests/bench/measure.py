"""Timings that can be compared: each contestant lives in a process of its own, and they take turns.

Threads that one library leaves spinning would slow down another in the same process by half; so whoever has no turn
is stopped by a signal.
"""

import multiprocessing
import os
import random
import signal
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from time import perf_counter

import torch


def interleaved(contestants: dict, rounds: int, *, warm_up: int = 1) -> tuple[dict, dict]:
    """Each contestant's seconds in each round, and what its work returned; in each round in another order.

    Args:
        contestants: by name what prepares the work and returns it: a function of the round's number. Must be
            importable by its name, with its arguments (functools.partial).
        rounds: that count.
        warm_up: rounds before, that do not count.
    """
    spawn = multiprocessing.get_context("spawn")
    pipes, processes = {}, {}
    for name, prepare in contestants.items():
        pipes[name], theirs = spawn.Pipe()
        processes[name] = spawn.Process(target=_take_turns, args=(theirs, prepare), daemon=True)
        processes[name].start()
        pipes[name].recv()  # prepared
        os.kill(processes[name].pid, signal.SIGSTOP)
    seconds, results = {name: [] for name in contestants}, {name: [] for name in contestants}
    order, shuffled = list(contestants), random.Random(0)
    for number in range(-warm_up, rounds):
        shuffled.shuffle(order)
        for name in order:
            os.kill(processes[name].pid, signal.SIGCONT)
            pipes[name].send(number)
            spent, result = pipes[name].recv()
            os.kill(processes[name].pid, signal.SIGSTOP)
            if number >= 0:
                seconds[name].append(spent)
                results[name].append(result)
    for process in processes.values():
        process.kill()
    return seconds, results


def _take_turns(pipe: Connection, prepare: Callable[[], Callable[[int], object]]) -> None:
    work = prepare()
    pipe.send("prepared")
    while True:
        number = pipe.recv()
        started = perf_counter()
        result = work(number)
        pipe.send((perf_counter() - started, result))


def ratio(times: list[float], ours: list[float]) -> float:
    """How many times as long as ours: the median over rounds of the ratio in that round."""
    return statistics.median(time / own for time, own in zip(times, ours, strict=True))


def peak(threads: int, *, size: int = 1024, rounds: int = 15) -> float:
    """Operations a second of this machine's product of two float32 matrices that fit into its cache."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    one, other, out = (torch.rand(size, size) for _ in range(3))
    times = []
    for _ in range(rounds):
        started = perf_counter()
        torch.mm(one, other, out=out)
        times.append(perf_counter() - started)
    torch.set_num_threads(before)
    return 2 * size**3 / statistics.median(times[1:])
