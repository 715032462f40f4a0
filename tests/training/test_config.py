"""Configurations of a training: the paper's recipe, named presets, and what is refused."""

import subprocess
import sys
from dataclasses import replace

import pytest

from course_lib.config import PRESETS
from course_lib.training import TrainConfig, train_preset
from tests.helpers.laws import law_a_configuration_is_plain_data, raised


def test_defaults_are_the_papers_recipe():
    training = TrainConfig()
    assert (training.betas, training.eps, training.warmup_steps) == ((0.9, 0.98), 1e-9, 4000)
    assert (training.label_smoothing, training.decay, training.peak_lr) == (0.1, "inverse_sqrt", None)
    assert (training.clip_norm, training.weight_decay) == (None, 0.0)


@pytest.mark.parametrize("name", ["base", "big"])
def test_base_and_big_are_trained_as_in_the_paper(name):
    assert train_preset(name) == TrainConfig(epochs=train_preset(name).epochs, batch_tokens=25_000)


@pytest.mark.parametrize("config", [TrainConfig(), TrainConfig(peak_lr=1e-3, betas=(0.8, 0.9))])
def test_a_configuration_is_plain_data(config):
    law_a_configuration_is_plain_data(config)


@pytest.mark.parametrize("name", PRESETS)
def test_named_fields_of_a_preset_can_be_changed(name):
    assert train_preset(name, epochs=3) == replace(train_preset(name), epochs=3) != train_preset(name)


def test_an_unknown_preset_or_an_impossible_change_is_refused():
    message = f"preset must be one of {', '.join(PRESETS)}; got 'huge'"
    assert str(raised(ValueError, lambda: train_preset("huge"))) == message
    assert "epochs" in str(raised(ValueError, lambda: train_preset("tiny", epochs=0)))


BAD_TRAININGS = {
    **{
        f"{name} must be at least 1, got 0": {name: 0}
        for name in ("epochs", "batch_tokens", "accumulate", "warmup_steps")
    },
    "peak_lr must be positive or None, got 0": dict(peak_lr=0),
    "peak_lr must be positive or None, got nan": dict(peak_lr=float("nan")),
    "clip_norm must be positive or None, got -1": dict(clip_norm=-1),
    r"label_smoothing must be in \[0, 1\), got 1": dict(label_smoothing=1),
    "decay must be 'inverse_sqrt' or 'linear', got 'cosine'": dict(decay="cosine"),
    "precision must be 'float32' or 'bfloat16', got 'float16'": dict(precision="float16"),
    "betas must be two numbers, got 0.9": dict(betas=0.9),
    "betas must be two numbers, got None": dict(betas=None),
    r"betas must be two numbers, got \(0.9,\)": dict(betas=(0.9,)),
    "seed must be an int of at most 64 bits, got 9223372036854775808": dict(seed=2**63),
    "seed must be an int of at most 64 bits, got -9223372036854775809": dict(seed=-(2**63) - 1),
}


@pytest.mark.parametrize("message", BAD_TRAININGS)
def test_a_training_that_cannot_run_is_refused(message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**BAD_TRAININGS[message])


def test_configurations_need_no_torch():
    code = "import course_lib.training.config, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
