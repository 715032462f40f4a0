"""A loss or gradient that is no finite number stops the training, and nothing is lost."""

import math
from types import SimpleNamespace
from unittest import mock

import pytest

from course_lib.training import run as run_module
from course_lib.training.config import TrainConfig
from course_lib.training.run import DivergedError, Run
from course_lib.training.schedule import learning_rate
from tests.helpers.laws import patched, raised
from tests.helpers.tiny import tiny_model
from tests.helpers.training import FixedBatches, assert_same_weights, fit, fit_with, reversal_pairs, weights_of

CONFIG = TrainConfig(epochs=2, peak_lr=0.05, warmup_steps=2, eps=1e-2)
PAIRS = reversal_pairs(12)
UNEQUAL = FixedBatches([PAIRS[:2], PAIRS[2:9], PAIRS[9:]])

def spoil(model, what, factor):
    """From now on the loss, or only the gradient, is multiplied by the factor."""
    if what == "loss":
        model.generator.register_forward_hook(lambda module, args, logits: logits * factor)
    else:
        model.generator.weight.register_hook(lambda gradient: gradient * factor)


def training_stops_before_a_broken_step(train, what, factor, folder):
    model, kept = tiny_model(), {}

    def on_step(model, history):
        if len(history.losses) == 4:  # the first step of the second epoch is the last good one
            kept.update(weights_of(model), checkpoint=(folder / "last.safetensors").read_bytes())
            spoil(model, what, factor)

    error = raised(DivergedError, lambda: train(model, UNEQUAL, CONFIG, folder=folder, on_step=on_step))
    assert isinstance(error, ValueError), "training went on"
    rate = learning_rate(CONFIG, 5, d_model=16, total_steps=6)
    assert "step 5," in str(error) and f"learning rate {rate:.2e}" in str(error) and str(folder) in str(error)
    assert len(error.history.losses) == 4 and all(map(math.isfinite, error.history.losses))
    assert_same_weights(model, kept)
    assert (folder / "last.safetensors").read_bytes() == kept["checkpoint"]
    resumed, whole = tiny_model(seed=1), tiny_model()
    history = fit(resumed, UNEQUAL, CONFIG, folder=folder)
    assert history.losses == fit(whole, UNEQUAL, CONFIG).losses
    assert_same_weights(resumed, whole)


def blind(train):
    """The training takes every number for finite."""
    careless = SimpleNamespace(isfinite=lambda number: True, inf=math.inf, ceil=math.ceil)
    return patched(train, mock.patch.object(run_module, "math", careless))


class Late(Run):
    def train_step(self, group):
        super().train_step(group)
        if not math.isfinite(self.history.losses[-1]):
            raise DivergedError(f"loss at step {self.step}", self.history)


@pytest.mark.parametrize("factor", [math.nan, math.inf])
@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_a_broken_loss_or_gradient_stops_training_and_costs_nothing(what, factor, tmp_path):
    training_stops_before_a_broken_step(fit, what, factor, tmp_path / "run")
    with pytest.raises(AssertionError):
        training_stops_before_a_broken_step(blind(fit), what, factor, tmp_path / "blind")


def test_divergence_law_catches_a_check_after_the_step(tmp_path):
    with pytest.raises(AssertionError):
        training_stops_before_a_broken_step(blind(fit_with(Late)), "loss", math.nan, tmp_path)
