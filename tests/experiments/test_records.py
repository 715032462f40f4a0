"""The committed records are whole, and are what the experiments of today would write."""

from pathlib import Path

import pytest

from course_lib.experiments import NAMES, find_grid, read_record
from course_lib.experiments.grid import chosen
from course_lib.experiments.record import find_run
from tests.helpers.laws import raised

RECORDS = Path(__file__).resolve().parents[2] / "notebooks" / "records"


def law_a_record_is_whole(grid, record):
    assert (record["experiment"], record["question"]) == (grid.name, grid.question)
    wanted = [(side, seed, chosen(grid, side, record)) for side in grid.sides for seed in grid.seeds]
    missing = [(side, seed) for side, seed, choices in wanted if not find_run(record, side, "final", seed, choices)]
    assert not missing, f"{grid.name} lacks {missing}"
    final = [run for run in record["runs"] if run["stage"] == "final"]
    assert len(final) == len(wanted), f"{grid.name} holds runs that it would not make today"
    assert all(run["commit"] and run["date"] for run in record["runs"])


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_whole(name):
    grid, record = find_grid(name), read_record(RECORDS / f"{name}.json")
    law_a_record_is_whole(grid, record)
    for stage in {run["stage"] for run in record["runs"]}:
        last = [run for run in record["runs"] if run["stage"] == stage][-1]
        with pytest.raises((AssertionError, ValueError)):  # ValueError where a run that chooses is missing
            law_a_record_is_whole(grid, record | {"runs": [run for run in record["runs"] if run is not last]})


def test_an_unknown_experiment_is_refused():
    assert "got 'zebra'" in str(raised(ValueError, lambda: find_grid("zebra")))
