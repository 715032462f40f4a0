"""The record of an experiment: a JSON file of its runs, each with its choices, results, date and commit."""

import json
from pathlib import Path

from course_lib.storage import read_as, replacing

# What every run has.
RUN = {"side", "stage", "seed", "choices", "results", "seconds", "cpu_seconds", "date", "commit", "machine"}


def new_record(experiment: str, question: str) -> dict:
    """A record without runs."""
    return {
        "experiment": experiment,
        "question": question,
        "command": f"python -m course_lib.experiments {experiment}",
        "runs": [],
    }


def read_record(path: str | Path) -> dict:
    """What an experiment has written: experiment, question, command, and runs.

    Each run has its side, stage ("tuning" or "final"), seed, choices, results, seconds, cpu_seconds, date, commit and
    machine.

    Raises:
        ValueError: if the file holds no such record.
    """
    record = read_as(path, json.loads)
    runs = record.get("runs") if isinstance(record, dict) and set(record) == set(new_record("", "")) else None
    if not isinstance(runs, list) or not all(isinstance(run, dict) and set(run) >= RUN for run in runs):
        raise ValueError(f"{path} is not the record of an experiment")
    return record


def write_record(path: str | Path, record: dict) -> None:
    """Writes it whole or not at all, one run a line, in the order of sides, stages and seeds."""
    head = {name: value for name, value in record.items() if name != "runs"}
    runs = sorted(record["runs"], key=lambda run: (run["side"], run["stage"], run["seed"], json.dumps(run["choices"])))
    lines = ",\n".join(json.dumps(run) for run in runs)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(head, indent=1)[:-2] + f',\n "runs": [\n{lines}\n]\n}}\n', encoding="utf-8")


def find_run(record: dict, side: str, stage: str, seed: int, choices: dict) -> dict | None:
    """The run that was made so, if there is one."""
    wanted = (side, stage, seed, as_json(choices))
    found = (run for run in record["runs"] if (run["side"], run["stage"], run["seed"], run["choices"]) == wanted)
    return next(found, None)


def final_results(record: dict, result: str) -> dict[str, list]:
    """One result of all runs that are reported: for each side a list, seed after seed.

    Raises:
        ValueError: if a run has no such result.
    """
    found: dict[str, list[tuple[int, object]]] = {}
    for run in record["runs"]:
        if run["stage"] == "final":
            if result not in run["results"]:
                raise ValueError(f"runs of {record['experiment']} have {sorted(run['results'])}, got {result!r}")
            found.setdefault(run["side"], []).append((run["seed"], run["results"][result]))
    return {side: [value for _, value in sorted(values, key=lambda each: each[0])] for side, values in found.items()}


def as_json(values: dict) -> dict:
    """What comes back of these values when they have been written and read."""
    return json.loads(json.dumps(values))
