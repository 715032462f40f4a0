"""kill -9 at any moment costs nothing: the next start ends with the weights of a run that nobody killed."""

import json
import os
import subprocess
import sys

import pytest

from course_lib.storage import load_tensors, save_tensors

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def killed(folder, when, root, *, processes, kills):
    command = ["-m", "tests.helpers.kills", folder, when, "--processes", processes, "--kills", kills]
    done = subprocess.run(
        [sys.executable, *map(str, command)],
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


def other_weights(run):
    tensors, info = load_tensors(run / "model.safetensors")
    name = next(iter(tensors))
    save_tensors(run / "model.safetensors", tensors | {name: tensors[name] + 1}, info)


def left_behind(run):
    (run / "checkpoints" / "last.safetensors.part").write_text("half a file")


@pytest.mark.parametrize("spoil", [other_weights, left_behind])
def test_a_training_that_loses_something_is_caught(spoil, root, tmp_path):
    folder = killed(tmp_path, "random", root, processes=1, kills=1)
    law_nothing_is_lost(folder)
    spoil(min(path for path in folder.iterdir() if path.is_dir() and path.name not in ("data", "whole")))
    with pytest.raises(AssertionError, match="other"):
        law_nothing_is_lost(folder)
