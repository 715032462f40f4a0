"""Several processes: together they make the step of one, one of them writes, and a killed one costs nothing."""

import json
import os
import signal
import time
from itertools import accumulate
from math import ceil
from unittest import mock

import pytest
import torch

from course_lib.__main__ import main
from course_lib.data import Batch, make_batch
from course_lib.storage import load_tensors
from course_lib.tokenizer import PAD_ID
from course_lib.training import distributed
from course_lib.training.distributed import anyone, from_everyone, process_group, rank, share_of, total, world_size
from tests.helpers.corpora import toy_pairs
from tests.helpers.laws import raised, tells_apart
from tests.helpers.training import reversal_pairs
from tests.helpers.workers import BATCHES, CONFIG, GROUP, KILLED_AT, WAYS, gradients_of, torchrun, work

# --- shares -------------------------------------------------------------------------------------


def law_shares_make_up_the_batch(share):
    for rows in (1, 2, 3, 7):
        batch = make_batch(sorted(reversal_pairs(rows), key=lambda pair: len(pair[1])))
        for count in (1, 2, 3):
            shares = [share(batch, number, count) for number in range(count)]
            counted = [own for own, factor in shares if factor]
            assert {factor for _, factor in shares} <= {0.0, 1.0} and len(counted) == min(rows, count)
            assert sum(own.num_tokens for own in counted) == batch.num_tokens
            for name in ("src", "tgt_in", "tgt_out"):
                found = sorted(ids for own in counted for ids in without_padding(getattr(own, name)))
                assert found == sorted(without_padding(getattr(batch, name))), name
                assert count == 1 or all((getattr(own, name)[:, -1] != PAD_ID).any() for own, _ in shares), "padding"
            lengths = [own.num_tokens / len(own.src) for own in counted]
            assert rows < 7 or max(lengths) < 1.5 * min(lengths), "one process has all the long sentences"


def without_padding(ids):
    return [[i for i in row if i != PAD_ID] for row in ids.tolist()]


def halves(batch, rank, count):
    size = -(-len(batch.src) // count)
    part = slice(rank * size, (rank + 1) * size)
    own, factor = share_of(batch, rank, count)
    return (rows(batch, part), factor) if len(batch.src[part]) else (own, factor)


def rows(batch, part):
    return Batch(batch.src[part], batch.tgt_in[part], batch.tgt_out[part])


def padded(batch, rank, count):
    return rows(batch, slice(rank, None, count)) if rank < len(batch.src) else rows(batch, slice(1)), 1.0


def doubled(batch, rank, count):
    return share_of(batch, 0, count)


def test_shares_make_up_the_batch():
    tells_apart(law_shares_make_up_the_batch, share_of, halves, padded, doubled)


def test_alone_nothing_is_different():
    with process_group("cpu") as device:
        assert (device, rank(), world_size()) == ("cpu", 0, 1)
    batch = make_batch(reversal_pairs(3))
    assert share_of(batch, 0, 1) == (batch, 1.0)
    tensor = torch.ones(2)
    assert total(0.1) == 0.1 and anyone(True) and not anyone(False) and from_everyone(tensor)[0] is tensor


# --- gradients ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The folder of what two processes have written."""
    folder = tmp_path_factory.mktemp("gradients")
    work("gradients", folder)
    return folder


@pytest.fixture(scope="module")
def both(found):
    """The gradients of two processes, by the way they were computed."""
    return {way: load_tensors(found / f"{way}.safetensors")[0] for way in WAYS}


def law_two_processes_have_the_gradients_of_one(theirs):
    ours = gradients_of("shared")
    assert len({own.num_tokens for batch in GROUP for own in (share_of(batch, 0, 2)[0], share_of(batch, 1, 2)[0])}) > 3
    assert ours.keys() == theirs.keys()
    largest = max(grad.abs().max().item() for grad in ours.values())
    apart = max((theirs[name] - grad).abs().max().item() for name, grad in ours.items())
    assert largest > 1e-3 and apart < 1e-13 * largest, f"they differ by {apart:.1e}"
    assert all(grad.dtype == torch.float64 for grad in theirs.values())


def test_two_processes_have_the_gradients_of_one(both):
    tells_apart(
        law_two_processes_have_the_gradients_of_one,
        both["shared"],
        *(both[way] for way in ("mean of own tokens", "counting all rows", "not exchanged")),
        match="differ",
    )


def test_so_have_two_processes_that_hold_a_part_of_the_weights_each(both):
    law_two_processes_have_the_gradients_of_one(both["sharded"])


def test_processes_with_other_sentences_are_refused(found):
    texts = {path.name: path.read_text(encoding="utf-8") for path in found.glob("*.txt")}
    assert texts == dict.fromkeys(("0.txt", "1.txt"), "the 2 processes differ in their sentence pairs")


# --- a killed process ---------------------------------------------------------------------------


def test_a_killed_process_costs_nothing(tmp_path):
    """A start may fail on a busy machine, so there are three; what was computed must not show it."""
    ends = list(accumulate(ceil(len(BATCHES.plan(epoch)) / CONFIG.accumulate) for epoch in range(CONFIG.epochs)))
    assert ends[1] < KILLED_AT < ends[2], "the kill is between two checkpoints"
    for name, restarts in (("whole", 2), ("killed", 3)):
        (tmp_path / name).mkdir()
        told = work("train", tmp_path / name, restarts=restarts)
        assert name == "whole" or "restarts: 0" not in told, "nobody was killed"
    (whole, history), (again, history_again) = (
        load_tensors(tmp_path / name / "result.safetensors") for name in ("whole", "killed")
    )
    assert history_again == history and len(history["losses"]) > KILLED_AT and history["stopped"] == "finished"
    assert all("valid_loss" in epoch for epoch in history["epochs"])
    assert all(torch.equal(again[name], tensor) for name, tensor in whole.items())


# --- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A TSV file of 180 sentence pairs."""
    path = tmp_path_factory.mktemp("data") / "toy.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs()), encoding="utf-8")
    return path


def command(toy, out, **changes):
    options = dict(epochs=2, batch_tokens=256, vocab_size=80, warmup_steps=4, preset="mini", device="cpu") | changes
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    return ["-m", "course_lib", "train", "--data", toy, "--out", out, *flags]


def test_the_command_runs_unchanged_under_torchrun(toy, tmp_path, capsys):
    logs, files, epochs = {}, {}, {}
    for count in (1, 2):
        if count == 1:
            assert main([str(word) for word in command(toy, tmp_path / "1")[2:]]) == 0
            out = capsys.readouterr().out
        else:
            running = torchrun(*command(toy, tmp_path / "2"))
            out, err = running.communicate(timeout=900)
            assert running.returncode == 0, err
        epochs[count] = [line for line in out.splitlines() if line.startswith(("epoch", "valid, beam"))]
        logs[count] = json.loads((tmp_path / str(count) / "log.json").read_text())
        found = (path for path in (tmp_path / str(count)).rglob("*") if path.is_file())
        files[count] = {str(path.relative_to(tmp_path / str(count))) for path in found}
    assert files[1] == files[2] and not any("tmp" in name for name in files[2])
    assert len(epochs[1]) == len(epochs[2]) == 4, "one process alone prints"
    assert (logs[1]["processes"], logs[2]["processes"]) == (1, 2)
    for one, two in zip(logs[1]["epochs"], logs[2]["epochs"], strict=True):
        assert two["train_loss"] == pytest.approx(one["train_loss"], rel=1e-4)
        assert two["valid_loss"] == pytest.approx(one["valid_loss"], rel=1e-3)


def test_ctrl_c_stops_all_processes_after_the_same_step(toy, tmp_path):
    """As the terminal sends it to torchrun, whose workers are in sessions of their own."""
    running = torchrun(*command(toy, tmp_path, epochs=400), start_new_session=True)
    deadline = time.monotonic() + 900
    while not (tmp_path / "checkpoints" / "last.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert out.count("interrupted; the same command goes on from here") == 2, err
    _, info = load_tensors(tmp_path / "checkpoints" / "last.safetensors")
    log = json.loads((tmp_path / "log.json").read_text())
    assert log["stopped"] == "interrupted" and len(info["history"]["losses"]) == info["step"] > 0


# --- devices ------------------------------------------------------------------------------------


def test_each_process_takes_a_gpu_of_its_own():
    with (
        mock.patch.dict(os.environ, LOCAL_RANK="1"),
        mock.patch.object(torch.cuda, "device_count", return_value=2),
        mock.patch.object(torch.cuda, "set_device") as chosen,
    ):
        assert distributed._own_device("cpu") == ("cpu", "gloo")
        assert distributed._own_device("cuda") == ("cuda:1", "cpu:gloo,cuda:nccl")
        chosen.assert_called_once_with(1)
        torch.cuda.device_count.return_value = 1
        message = str(raised(ValueError, lambda: distributed._own_device("cuda")))
        assert message == "process 1 of this machine needs a GPU of its own, there are 1"
        message = str(raised(ValueError, lambda: distributed._own_device("mps")))
        assert message == "several processes train on cpu or cuda, got mps"
