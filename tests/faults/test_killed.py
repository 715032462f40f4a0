"""kill -9 at any moment costs nothing: the next start ends with the weights of a run that nobody killed."""

import json
import os
import subprocess
import sys

import pytest

from course_lib.storage import load_tensors

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def killed(folder, when, root, *, processes, kills, mutant=""):
    command = ["-m", "tests.helpers.kills", folder, when, "--processes", processes, "--kills", kills]
    done = subprocess.run(
        [sys.executable, *map(str, command), *(["--mutant", mutant] if mutant else [])],
        cwd=root, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=1800,
    )
    told = "".join(path.read_text()[-2000:] for path in folder.glob("*.txt"))
    assert done.returncode == 0, done.stderr + told
    return folder


def law_nothing_is_lost(folder):
    """Every run has the files of the uninterrupted one, with the same weights, bit for bit, and the same scores."""
    whole, *runs = sorted(path for path in folder.iterdir() if path.is_dir() and path.name != "data")[::-1]
    assert whole.name == "whole" and runs
    names = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()}
    assert {"model.safetensors", "log.json", "checkpoints/last.safetensors"} <= names
    for run in runs:
        assert {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} == names, "other files"
        for name in names:
            if name.endswith(".safetensors"):
                (ours, _), (theirs, _) = load_tensors(run / name), load_tensors(whole / name)
                assert ours.keys() == theirs.keys()
                assert all(ours[key].equal(tensor) for key, tensor in theirs.items()), f"{run.name}: other {name}"
            elif name != "log.json":
                assert (run / name).read_bytes() == (whole / name).read_bytes()
        ours, theirs = (json.loads((each / "log.json").read_text()) for each in (run, whole))
        assert [each["train_loss"] for each in ours["epochs"]] == [each["train_loss"] for each in theirs["epochs"]]
        assert ours["valid"] == theirs["valid"] and ours["stopped"] == "finished"


@pytest.mark.parametrize("when, processes, kills", [("random", 1, 20), ("random", 2, 8), ("saving", 1, 6)])
def test_a_killed_training_loses_nothing(when, processes, kills, root, tmp_path, pytestconfig):
    kills = pytestconfig.getoption("--kills") or kills
    law_nothing_is_lost(killed(tmp_path, when, root, processes=processes, kills=kills))


@pytest.mark.parametrize("mutant, when", [("writes in place", "saving"), ("forgets moments", "random")])
def test_a_training_that_loses_something_is_caught(mutant, when, root, tmp_path):
    with pytest.raises(AssertionError):
        law_nothing_is_lost(killed(tmp_path, when, root, processes=1, kills=4, mutant=mutant))
