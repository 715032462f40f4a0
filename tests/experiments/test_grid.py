"""Grids: each side is given its best, each run is made once, and what chooses is not what is reported."""

import json
from dataclasses import replace
from unittest import mock

import pytest
import torch

from course_lib.experiments import Grid, __main__, final_results, grid, read_record, run_grid
from course_lib.experiments.record import find_run, write_record
from tests.helpers.laws import raised


def toy_run(choices, seed, folder):
    """A run whose rate is best at 3, unless the seed is to be reported: then 1 would be."""
    torch.manual_seed(seed)
    best = 3 if seed == 1000 else 1
    return {"valid": -abs(choices["rate"] - best), "noise": torch.rand(()).item(), "threads": torch.get_num_threads()}


TOY = Grid("toy", "Which is better?", {"one": {"rate": (1, 3)}, "two": {"rate": 2, "sizes": [1, 2]}}, toy_run)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy.json"


def make(path, which=TOY, **options):
    return run_grid(which, path, folder=path.parent / "runs", progress=False, **options)


def law_every_side_has_every_seed_and_its_best_choice(path):
    record = make(path)
    assert read_record(path) == record and record["experiment"] == "toy"
    final = [run for run in record["runs"] if run["stage"] == "final"]
    assert sorted((run["side"], run["seed"]) for run in final) == [(s, n) for s in ("one", "two") for n in range(3)]
    best = {"one": {"rate": 3}, "two": {"rate": 2, "sizes": [1, 2]}}
    assert all(run["choices"] == best[run["side"]] for run in final)
    tuning = [(run["side"], run["seed"], run["choices"]["rate"]) for run in record["runs"] if run["stage"] == "tuning"]
    assert sorted(tuning) == [("one", 1000, 1), ("one", 1000, 3)]
    assert all(run["date"] and run["seconds"] >= 0 and run["machine"]["torch"] for run in record["runs"])


def test_every_side_has_every_seed_and_its_best_choice(path, tmp_path):
    law_every_side_has_every_seed_and_its_best_choice(path)
    (tmp_path / "broken").mkdir()
    with (
        mock.patch.object(grid, "chosen", lambda grid, side, record: grid.candidates(side)[0]),
        pytest.raises(AssertionError),
    ):
        law_every_side_has_every_seed_and_its_best_choice(tmp_path / "broken" / "toy.json")


def test_what_chooses_is_not_what_is_reported():
    message = str(raised(ValueError, lambda: replace(TOY, tuning_seeds=(2, 7))))
    assert message == "seeds to choose by must not be reported, got [2] in both"


def law_a_run_is_made_once(path, monkeypatch):
    make(path, sides=["two"])
    calls = []

    def counting(choices, seed, folder):
        calls.append((choices["rate"], seed))
        return toy_run(choices, seed, folder)

    make(path, replace(TOY, run=counting))
    assert sorted(calls) == [(1, 1000), (3, 0), (3, 1), (3, 2), (3, 1000)]
    make(path, replace(TOY, run=counting, seeds=(0, 1, 2, 3)))
    assert sorted(calls)[-1] == (3, 1000) and len(calls) == 7, "only the new seed"


def test_a_run_is_made_once(path, tmp_path, monkeypatch):
    law_a_run_is_made_once(path, monkeypatch)
    (tmp_path / "broken").mkdir()
    monkeypatch.setattr(grid, "find_run", lambda record, *job: job[1] == "tuning" and find_run(record, *job))
    with pytest.raises(AssertionError):
        law_a_run_is_made_once(tmp_path / "broken" / "toy.json", monkeypatch)


def test_an_interrupted_experiment_keeps_what_it_has(path):
    def stopping(choices, seed, folder):
        if seed == 1:
            raise KeyboardInterrupt
        return toy_run(choices, seed, folder)

    raised(KeyboardInterrupt, lambda: make(path, replace(TOY, run=stopping)))
    assert {run["seed"] for run in read_record(path)["runs"]} == {1000, 0}
    assert final_results(make(path), "valid") == {"one": [-2, -2, -2], "two": [-1, -1, -1]}


def law_runs_of_another_process_stay(path, theirs):
    """It records all its runs while we make our first."""

    def meanwhile(choices, seed, folder):
        if not path.exists():
            write_record(path, theirs)
        return toy_run(choices, seed, folder)

    record = make(path, replace(TOY, run=meanwhile), sides=["two"])
    assert all(run in record["runs"] for run in theirs["runs"]), "runs are lost"
    assert len(record["runs"]) == 8, "runs are recorded twice"
    assert read_record(path) == record


def reading_once():
    seen, read = {}, grid._record
    return lambda which, path: seen.setdefault(path, read(which, path))


def finding_none():
    return lambda *_: None


@pytest.mark.parametrize("sides, name, wrong", [(["one"], "_record", reading_once), ([], "find_run", finding_none)])
def test_runs_of_another_process_stay(sides, name, wrong, path, tmp_path):
    """Those of another side, and those that are ours, too."""
    theirs = make(tmp_path / "theirs.json", sides=sides)
    law_runs_of_another_process_stay(path, theirs)
    (tmp_path / "broken").mkdir()
    with mock.patch.object(grid, name, wrong()), pytest.raises(AssertionError, match="runs are"):
        law_runs_of_another_process_stay(tmp_path / "broken" / "toy.json", theirs)


def test_results_do_not_depend_on_the_number_of_processes(path, tmp_path):
    one, two = make(path), make(tmp_path / "two.json", jobs=2)
    assert final_results(one, "noise") == final_results(two, "noise")
    assert len(set(final_results(one, "noise")["one"])) == 3, "seeds differ"
    assert all(run["results"]["threads"] == 1 for record in (one, two) for run in record["runs"])


def test_a_folder_belongs_to_one_run(path):
    seen = set()

    def remembering(choices, seed, folder):
        seen.add(folder)
        return toy_run(choices, seed, folder)

    make(path, replace(TOY, run=remembering))
    assert len(seen) == 8 and {folder.parent for folder in seen} == {path.parent / "runs"}


def test_bad_input_is_refused(path):
    assert "sides must be among one, two; got ['three']" == str(raised(ValueError, lambda: make(path, sides=["three"])))
    make(path)
    other = raised(ValueError, lambda: make(path, replace(TOY, name="other")))
    assert "the record of 'toy', not of 'other'" in str(other)
    unmeasured = raised(ValueError, lambda: final_results(make(path), "bleu"))
    assert "['noise', 'threads', 'valid'], got 'bleu'" in str(unmeasured)
    path.write_text("[]")
    assert "is not the record of an experiment" in str(raised(ValueError, lambda: read_record(path)))


def test_the_command_line_makes_a_record(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "NAMES", ("toy",))
    monkeypatch.setattr(__main__, "find_grid", lambda name: TOY)
    out = tmp_path / "toy.json"
    command = ["toy", "--out", str(out), "--folder", str(tmp_path)]
    assert __main__.main([*command, "--sides", "two"]) == 0 and set(final_results(read_record(out), "valid")) == {"two"}
    assert __main__.main([*command, "--sides", "six"]) == 1
    assert "error: sides must be among one, two" in capsys.readouterr().err
    monkeypatch.setattr(__main__, "run_grid", mock.Mock(side_effect=KeyboardInterrupt))
    assert __main__.main(command) == 130


def test_a_record_is_a_line_for_each_run(path):
    record = make(path)
    lines = path.read_text().splitlines()
    assert sum(line.startswith('{"side"') for line in lines) == len(record["runs"])
    record["runs"].reverse()
    write_record(path, record)
    assert path.read_text().splitlines() == lines and json.loads(path.read_text())["question"] == "Which is better?"
