"""Stopping, saving and resuming a run: nothing is lost, and a resumed run is the uninterrupted one."""

import os
import signal
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from unittest import mock

import pytest
import torch
from safetensors.torch import save

from course_lib.data.batches import BucketedBatches
from course_lib.storage import average_checkpoints, checkpoint, load_tensors, save_tensors
from course_lib.training import run as run_module
from course_lib.training.config import TrainConfig
from course_lib.training.run import Run
from tests.helpers.laws import patched, raised
from tests.helpers.tiny import tiny_model
from tests.helpers.training import assert_same_weights, fit, fit_with, reversal_pairs, weights_of

CONFIG = TrainConfig(epochs=3, batch_tokens=24, accumulate=2, peak_lr=0.01, warmup_steps=3, decay="linear")
ONE = replace(CONFIG, epochs=1)
BATCHES = BucketedBatches(reversal_pairs(16), CONFIG.batch_tokens)


def dropping(seed: int = 0):
    """A model whose training depends on the random state."""
    return tiny_model(seed, dropout=0.3)


# --- resuming -----------------------------------------------------------------------------------

def resumed_equals_uninterrupted(train, stops, folder):
    """Ctrl-C after each of the steps in `stops`; each time a model with other weights goes on."""
    whole, whole_model = uninterrupted()
    seeds = iter([0, *range(91, 99)])
    for stop in stops:

        def press(model, history, stop=stop):
            if len(history.losses) == stop:
                os.kill(os.getpid(), signal.SIGINT)

        history = train(dropping(next(seeds)), BATCHES, CONFIG, valid=BATCHES, folder=folder, on_step=press)
        assert history.stopped == "interrupted" and history.losses == whole.losses[:stop]
    model = dropping(next(seeds))
    history = train(model, BATCHES, CONFIG, valid=BATCHES, folder=folder)
    assert history.stopped == "finished"
    assert (history.losses, history.rates) == (whole.losses, whole.rates)
    for record, expected in zip(history.epochs, whole.epochs, strict=True):
        clocks = {"seconds": 0, "cpu_seconds": 0}
        assert record | clocks == expected | clocks
    assert_same_weights(model, whole_model)


@cache
def uninterrupted():
    model = dropping()
    return fit(model, BATCHES, CONFIG, valid=BATCHES), model


STEPS = -(-len(BATCHES.plan(0)) // CONFIG.accumulate)  # of the first epoch
STOPS = {"in mid-epoch": [2], "after an epoch": [STEPS], "again and again": [1, STEPS, STEPS + 1, 2 * STEPS + 2]}


class ForgetsRandomState(Run):
    def resume(self):
        state = torch.get_rng_state()
        super().resume()
        torch.set_rng_state(state)


class ForgetsMoments(Run):
    def resume(self):
        super().resume()
        self.optimizer.state.clear()


class RepeatsTheEpoch(Run):
    def resume(self):
        super().resume()
        self.batch = 0


@pytest.mark.parametrize("stops", STOPS.values(), ids=STOPS.keys())
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(stops, tmp_path):
    assert STEPS >= 3, "too few steps to stop in the middle of an epoch"
    resumed_equals_uninterrupted(fit, stops, tmp_path)


@pytest.mark.parametrize("mutant", [ForgetsRandomState, ForgetsMoments, RepeatsTheEpoch])
def test_resume_law_catches(mutant, tmp_path):
    with pytest.raises((AssertionError, ValueError)):  # more steps than the run has: no rate is left for them
        resumed_equals_uninterrupted(fit_with(mutant), [2], tmp_path)


def test_a_finished_run_is_not_trained_again(tmp_path):
    first, second = dropping(), dropping(seed=1)
    history = fit(first, BATCHES, ONE, folder=tmp_path)
    again = fit(second, BATCHES, ONE, folder=tmp_path, on_step=lambda *_: pytest.fail("trained again"))
    assert again == history and again.stopped == "finished"
    assert_same_weights(second, first)


OTHERS = {
    "training": (dropping, BATCHES, replace(ONE, seed=1), "training configuration differs in ['seed']"),
    "model": (lambda: tiny_model(d_ff=24, dropout=0.3), BATCHES, ONE, "model configuration differs in ['d_ff']"),
    "data": (dropping, BucketedBatches(reversal_pairs(16, seed=1), 24), ONE, "holds another run"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_folder_of_another_run_is_refused(other, tmp_path):
    fit(dropping(), BATCHES, ONE, folder=tmp_path)
    before = (tmp_path / "last.safetensors").read_bytes()
    make_model, batches, other_config, message = OTHERS[other]
    model = make_model()
    weights = weights_of(model)
    error = raised(ValueError, lambda: fit(model, batches, other_config, folder=tmp_path))
    assert error and str(tmp_path) in str(error) and message in str(error)
    assert str(error).endswith("; train into another folder, or delete this one to begin anew")
    assert (tmp_path / "last.safetensors").read_bytes() == before
    assert_same_weights(model, weights)


def the_start_is_a_part_of_the_run(train, folder):
    history = train(dropping(), BATCHES, ONE, folder=folder, start="everyday")
    assert train(dropping(), BATCHES, ONE, folder=folder, start="everyday") == history
    for other in ("course", None):
        error = raised(ValueError, partial(train, dropping(), BATCHES, ONE, folder=folder, start=other))
        assert error and "training configuration differs in ['start']" in str(error)


def without_its_start(*args, start, **options):
    return fit(*args, **options)


def test_the_start_is_a_part_of_the_run(tmp_path):
    the_start_is_a_part_of_the_run(fit, tmp_path / "ours")
    with pytest.raises(AssertionError):
        the_start_is_a_part_of_the_run(without_its_start, tmp_path / "mutant")


@pytest.mark.parametrize("start", [None, "everyday"])
def test_a_run_that_began_before_there_was_a_consistency_or_a_start_goes_on(start, tmp_path):
    path = tmp_path / "last.safetensors"
    history = fit(dropping(), BATCHES, ONE, folder=tmp_path, start=start)
    state, info = load_tensors(path)
    assert info["training"].pop("consistency") == 0.0 and info["training"].pop("start") == start
    save_tensors(path, state, info)
    assert fit(dropping(), BATCHES, ONE, folder=tmp_path, start=start) == history
    other = raised(ValueError, lambda: fit(dropping(), BATCHES, replace(ONE, consistency=1.0), folder=tmp_path))
    assert "differs in ['consistency']" in str(other)


# --- keeping and averaging ----------------------------------------------------------------------

def the_newest_epochs_are_kept(train, folder):
    snapshots = []

    def on_epoch(model, history):
        snapshots.append(weights_of(model))

    train(dropping(), BATCHES, replace(CONFIG, epochs=4), folder=folder, keep=2, on_epoch=on_epoch)
    paths = sorted(folder.glob("epoch-*.safetensors"))
    assert [path.name for path in paths] == ["epoch-0003.safetensors", "epoch-0004.safetensors"]
    mean = average_checkpoints(paths)
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, (snapshots[2][name] + snapshots[3][name]) / 2, rtol=0, atol=1e-7)
    assert not torch.equal(mean["generator.weight"], snapshots[3]["generator.weight"])


class KeepsStaleWeights(Run):
    def finish_epoch(self, valid, on_epoch):
        weights = weights_of(self.model)
        super().finish_epoch(valid, on_epoch)
        with torch.no_grad():
            self.model.load_state_dict({name: tensor * 0.9 for name, tensor in weights.items()})


def test_the_newest_epochs_are_kept_and_averaged(tmp_path):
    the_newest_epochs_are_kept(fit, tmp_path / "ours")
    with pytest.raises(AssertionError):
        the_newest_epochs_are_kept(fit_with(KeepsStaleWeights), tmp_path / "mutant")


# --- damage and full disks ----------------------------------------------------------------------

DAMAGES = {
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-100]), "damaged"),
    "empty": (lambda path: path.write_bytes(b""), "damaged"),
    "noise": (lambda path: path.write_bytes(bytes(range(256)) * 9), "damaged"),
    "another program's": (lambda path: path.write_bytes(save({"x": torch.zeros(2)})), "not from this course"),
    "weights without a run": (lambda path: save_tensors(path, tiny_model().state_dict(), {}), "no training run"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_not_overwritten(damage, tmp_path):
    path = tmp_path / "last.safetensors"
    fit(dropping(), BATCHES, ONE, folder=tmp_path)
    spoil, message = DAMAGES[damage]
    spoil(path)
    before = path.read_bytes()
    error = raised(ValueError, lambda: fit(dropping(), BATCHES, ONE, folder=tmp_path))
    assert error and message in str(error) and str(path) in str(error)
    assert path.read_bytes() == before


@contextmanager
def nearly_full_disk(limit):
    """No file may grow beyond `limit` bytes: the operating system refuses, as on a full disk."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def full_disk_costs_one_epoch_at_most(train, folder):
    path, kept = folder / "last.safetensors", {}
    with ExitStack() as disk:

        def on_epoch(model, history):
            if len(history.epochs) == 2:
                kept["checkpoint"] = path.read_bytes()
                disk.enter_context(nearly_full_disk(2000))

        options = dict(folder=folder, valid=BATCHES, on_epoch=on_epoch)
        error = raised(OSError, lambda: train(dropping(), BATCHES, CONFIG, **options))
    assert error and str(path) in str(error)
    assert path.read_bytes() == kept["checkpoint"]
    assert [file.name for file in folder.iterdir()] == [path.name], "half-written files stay"
    model = dropping(seed=1)
    assert fit(model, BATCHES, CONFIG, valid=BATCHES, folder=folder).losses == uninterrupted()[0].losses
    assert_same_weights(model, uninterrupted()[1])


@contextmanager
def replacing(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    yield path  # in place


def save_file(tensors, path, metadata):
    path.write_bytes(save(tensors, metadata))


def test_a_full_disk_leaves_the_last_checkpoint_intact(tmp_path):
    full_disk_costs_one_epoch_at_most(fit, tmp_path / "ours")
    mutant = patched(fit, *(mock.patch.object(checkpoint, f.__name__, f) for f in (replacing, save_file)))
    with pytest.raises(AssertionError):
        full_disk_costs_one_epoch_at_most(mutant, tmp_path / "mutant")


def a_failed_save_loses_no_epoch_of_the_average(train, folder):
    """The weights of epoch 2 cannot be written; resuming ends with those of all epochs nevertheless."""

    def failing(path, *args, **options):
        if "epoch-0002" in str(path):
            raise OSError("disk full")
        save_tensors(path, *args, **options)

    with mock.patch.object(run_module, "save_tensors", failing):
        assert raised(OSError, lambda: train(dropping(), BATCHES, CONFIG, folder=folder, keep=3))
    train(dropping(), BATCHES, CONFIG, folder=folder, keep=3)
    assert len(list(folder.glob("epoch-*.safetensors"))) == 3


class StateFirst(Run):
    def save(self):
        keep, self.keep = self.keep, 0
        super().save()
        self.keep = keep
        super().save()


def test_a_failed_save_loses_no_epoch_of_the_average(tmp_path):
    a_failed_save_loses_no_epoch_of_the_average(fit, tmp_path / "ours")
    with pytest.raises(AssertionError):
        a_failed_save_loses_no_epoch_of_the_average(fit_with(StateFirst), tmp_path / "mutant")


def law_what_was_half_written_is_removed(train, folder):
    """A process that is killed while it saves leaves a file behind; twenty of them would fill a disk."""
    train(dropping(), BATCHES, ONE, folder=folder, keep=1)
    before = sorted(path.name for path in folder.iterdir())
    for name in ("last.safetensors.77.tmp", "epoch-0003.safetensors.78.tmp"):
        (folder / name).write_bytes(b"half of it")
    train(dropping(), BATCHES, ONE, folder=folder, keep=1)
    assert sorted(path.name for path in folder.iterdir()) == before


class LeavesThem(Run):
    def resume(self):
        with mock.patch.object(run_module, "remove_half_written"):
            super().resume()


def test_what_was_half_written_is_removed(tmp_path):
    law_what_was_half_written_is_removed(fit, tmp_path / "ours")
    with pytest.raises(AssertionError):
        law_what_was_half_written_is_removed(fit_with(LeavesThem), tmp_path / "mutant")
