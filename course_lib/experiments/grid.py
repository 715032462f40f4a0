"""A comparison: each side at its best, with every seed, recorded by code and resumed where it was stopped."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import date
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import torch
from tqdm import tqdm

from course_lib.experiments.record import as_json, find_run, new_record, read_record, write_record
from course_lib.training import describe_machine, revision

Job = tuple[str, str, int, dict]  # side, stage, seed, choices


@dataclass(frozen=True)
class Grid:
    """What is compared, and how one run is made.

    Args:
        name: of the experiment and of its record.
        question: that the record answers, one sentence.
        sides: for each side its choices. A tuple is open: of its values the validation part chooses, by runs with
            the tuning seeds, and several open choices are tried in all combinations.
        run: choices, seed and a folder for the run's own files to its results, plain JSON values; a function of a
            module, so that other processes find it.
        best: the result by which open choices are chosen, measured on the validation part; larger is better.
        seeds: of the runs that are reported.
        tuning_seeds: of the runs that choose; a choice is as good as its mean over them.

    Raises:
        ValueError: if a seed is in both, and what is chosen would be reported on the runs that chose it.
    """

    name: str
    question: str
    sides: dict[str, dict]
    run: Callable[[dict, int, Path], dict]
    best: str = "valid"
    seeds: tuple[int, ...] = (0, 1, 2)
    tuning_seeds: tuple[int, ...] = (1000,)

    def __post_init__(self):
        if both := set(self.seeds) & set(self.tuning_seeds):
            raise ValueError(f"seeds to choose by must not be reported, got {sorted(both)} in both")

    def candidates(self, side: str) -> list[dict]:
        """All choices that a side leaves open, one dictionary for each combination."""
        values = (value if isinstance(value, tuple) else (value,) for value in self.sides[side].values())
        return [dict(zip(self.sides[side], combination, strict=True)) for combination in product(*values)]


def run_grid(
    grid: Grid, path: str | Path, *, folder: str | Path, sides: Sequence[str] = (), jobs: int = 1, progress: bool = True
) -> dict:
    """Makes all runs that the record lacks; each computes with one thread, so that no result depends on `jobs`.

    Args:
        grid: the comparison.
        path: of the record, read and written after each run; runs that it has are not made again, and those that
            another process has added by then stay.
        folder: gets a folder for each run.
        sides: that are run; none stands for all.
        jobs: runs at a time, each in a process of its own.
        progress: show a progress bar.

    Returns:
        the record, see read_record.

    Raises:
        ValueError: on an unknown side, or if the record is another experiment's.
    """
    if unknown := set(sides) - set(grid.sides):
        raise ValueError(f"sides must be among {', '.join(grid.sides)}; got {sorted(unknown)}")
    path, folder = Path(path), Path(folder)
    record = _record(grid, path)
    for stage in ("tuning", "final"):
        missing = [job for job in _jobs(grid, stage, sides or tuple(grid.sides), record) if not find_run(record, *job)]
        bar = tqdm(total=len(missing), desc=f"{grid.name}, {stage}", unit="run", disable=not progress)
        with bar:
            for (side, stage_, seed, choices), outcome in _outcomes(grid, missing, folder, jobs):
                record = _record(grid, path)  # again: another process may have added runs of other sides
                if not find_run(record, side, stage_, seed, choices):
                    run = {"side": side, "stage": stage_, "seed": seed, "choices": as_json(choices), **outcome}
                    record["runs"].append(run)
                    write_record(path, record)
                bar.update()
    return _record(grid, path)


def _record(grid: Grid, path: Path) -> dict:
    """What is recorded by now; ValueError if the record is another experiment's."""
    record = read_record(path) if path.exists() else new_record(grid.name, grid.question)
    if record["experiment"] != grid.name:
        raise ValueError(f"{path} is the record of {record['experiment']!r}, not of {grid.name!r}")
    return record


def chosen(grid: Grid, side: str, record: dict) -> dict:
    """The candidate of a side whose mean result over the tuning seeds is best; the only one needs no runs.

    Raises:
        ValueError: if the record lacks a run that is needed to choose.
    """
    candidates = grid.candidates(side)
    if len(candidates) == 1:
        return candidates[0]

    def merit(choices: dict) -> float:
        runs = [find_run(record, side, "tuning", seed, choices) for seed in grid.tuning_seeds]
        if None in runs:
            raise ValueError(f"{side}: not all of {choices} has been run")
        return sum(run["results"][grid.best] for run in runs) / len(runs)

    return max(candidates, key=merit)


def _jobs(grid: Grid, stage: str, sides: Sequence[str], record: dict) -> Iterator[Job]:
    """Seed after seed, so that an interrupted experiment has something of every side."""
    if stage == "tuning":
        open_sides = [side for side in sides if len(grid.candidates(side)) > 1]
        for seed in grid.tuning_seeds:
            yield from ((side, stage, seed, choices) for side in open_sides for choices in grid.candidates(side))
    else:
        for seed in grid.seeds:
            yield from ((side, stage, seed, chosen(grid, side, record)) for side in sides)


def _outcomes(grid: Grid, jobs: list[Job], folder: Path, processes: int) -> Iterator[tuple[Job, dict]]:
    """What came of each job, as they end."""
    if processes == 1:
        for job in jobs:
            yield job, _outcome(grid.run, job[3], job[2], folder / _run_name(job))
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running: dict[Future, Job] = {
            pool.submit(_outcome, grid.run, job[3], job[2], folder / _run_name(job)): job for job in jobs
        }
        try:
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _run_name(job: Job) -> str:
    """The folder of a run: the same whenever the experiment is started again."""
    side, stage, seed, choices = job
    values = [f"{name}-{value}" for name, value in choices.items() if isinstance(value, (str, int, float))]
    return re.sub(r"[^\w.-]+", "_", "-".join([side, stage, str(seed), *values]))


def _outcome(run: Callable[[dict, int, Path], dict], choices: dict, seed: int, folder: Path) -> dict:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        started, cpu_started = time.perf_counter(), time.process_time()
        results = run(choices, seed, folder)
        return {
            "results": results,
            "seconds": round(time.perf_counter() - started, 1),
            "cpu_seconds": round(time.process_time() - cpu_started, 1),
            "date": date.today().isoformat(),
            "commit": revision(),
            "machine": describe_machine("cpu"),
        }
    finally:
        torch.set_num_threads(threads)
