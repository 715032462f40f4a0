"""Ctrl-C: the first one asks, the second one insists, and afterwards it is as before."""

import os
import signal
import threading
from unittest import mock

import pytest

from course_lib.storage import load_tensors
from course_lib.training import loop as training
from course_lib.training.config import TrainConfig
from course_lib.training.interrupt import Interrupt
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import tiny_model
from tests.helpers.training import FixedBatches, fit, reversal_pairs

CONFIG = TrainConfig(epochs=3, peak_lr=0.01, warmup_steps=3)
PAIRS = reversal_pairs(8)
BATCHES = FixedBatches([PAIRS[:3], PAIRS[3:6], PAIRS[6:]])


@pytest.fixture(autouse=True)
def own_handler():
    """The mutants may leave theirs behind."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def the_first_asks_and_the_second_raises(interrupt_class):
    with interrupt_class() as interrupt:
        assert not interrupt.requested
        assert raised(KeyboardInterrupt, press) is None
        assert interrupt.requested
        assert raised(KeyboardInterrupt, press) is not None


def the_handler_is_restored(interrupt_class):
    def handler(number, frame):
        raise RuntimeError("the handler of before")

    signal.signal(signal.SIGINT, handler)
    with interrupt_class():
        assert signal.getsignal(signal.SIGINT) is not handler
    assert signal.getsignal(signal.SIGINT) is handler

    def fail():
        with interrupt_class():
            raise OSError("in the block")

    assert raised(OSError, fail)
    assert signal.getsignal(signal.SIGINT) is handler, "after an error"


def other_threads_may_use_it(interrupt_class):
    seen = []

    def work():
        before = signal.getsignal(signal.SIGINT)
        error = raised(ValueError, lambda: interrupt_class().__enter__().__exit__(None, None, None))
        seen.append((error, signal.getsignal(signal.SIGINT) is before))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(None, True)]


class RaisesAtOnce(Interrupt):
    def _on_signal(self, number, frame):
        self.requested = True
        raise KeyboardInterrupt


class NeverRaises(Interrupt):
    def _on_signal(self, number, frame):
        self.requested = True


class KeepsTheHandler(Interrupt):
    def __exit__(self, *exception):
        pass


class AnyThread(Interrupt):
    def __enter__(self):
        self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self


LAWS = [
    (the_first_asks_and_the_second_raises, RaisesAtOnce),
    (the_first_asks_and_the_second_raises, NeverRaises),
    (the_handler_is_restored, KeepsTheHandler),
    (other_threads_may_use_it, AnyThread),
]


@pytest.mark.parametrize("law, mutant", LAWS)
def test_interrupt_law(law, mutant):
    tells_apart(law, Interrupt, mutant)


# --- in training --------------------------------------------------------------------------------


def interrupted_training_returns_its_history(train, folder):
    handler = signal.getsignal(signal.SIGINT)
    seen = []

    def on_step(model, history):
        seen.append(history.losses[-1])
        if len(seen) == 5:
            press()

    model = tiny_model()
    history = {}
    error = raised(KeyboardInterrupt, lambda: history.update(vars(train(model, BATCHES, CONFIG, folder=folder,
                                                                        on_step=on_step))))
    assert error is None, "the first Ctrl-C must not raise"
    assert history["stopped"] == "interrupted" and history["losses"] == seen and len(seen) == 5
    assert len(history["epochs"]) == 1 and not model.training
    _, info = load_tensors(folder / "last.safetensors")
    assert (info["epoch"], info["batch"], info["step"]) == (1, 2, 5)
    assert signal.getsignal(signal.SIGINT) is handler


def with_interrupt(interrupt_class):
    return patched(fit, mock.patch.object(training, "Interrupt", interrupt_class))


@pytest.mark.parametrize("mutant", [RaisesAtOnce, KeepsTheHandler])
def test_an_interrupted_training_returns_its_history_and_saves(mutant, tmp_path):
    interrupted_training_returns_its_history(fit, tmp_path / "ours")
    with pytest.raises(AssertionError):
        interrupted_training_returns_its_history(with_interrupt(mutant), tmp_path / "mutant")


def test_ctrl_c_after_the_last_step_is_no_interruption():
    def on_step(model, history):
        if len(history.losses) == 9:
            press()

    assert fit(tiny_model(), BATCHES, CONFIG, on_step=on_step).stopped == "finished"


def impatience_stops_training_at_once(train, folder):
    handler, steps = signal.getsignal(signal.SIGINT), []

    def on_step(model, history):
        steps.append(history.losses[-1])
        if len(steps) == 5:
            press()
            press()

    assert raised(KeyboardInterrupt, lambda: train(tiny_model(), BATCHES, CONFIG, folder=folder, on_step=on_step))
    assert len(steps) == 5
    assert load_tensors(folder / "last.safetensors")[1]["step"] == 3, "the checkpoint of the last epoch stays"
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_second_ctrl_c_stops_training_at_once(tmp_path):
    impatience_stops_training_at_once(fit, tmp_path / "ours")
    with pytest.raises(AssertionError):
        impatience_stops_training_at_once(with_interrupt(NeverRaises), tmp_path / "mutant")


def training_works_in_another_thread(train):
    results = []

    def work():
        error = raised(ValueError, lambda: results.append(train(tiny_model(), BATCHES, CONFIG).losses))
        results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results[-1] is None, results[-1]
    assert len(results[0]) == 9


def test_training_works_outside_the_main_thread():
    tells_apart(training_works_in_another_thread, fit, with_interrupt(AnyThread))
