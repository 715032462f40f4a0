"""The named configurations: the paper's two, and the smaller ones that CPU cores can train."""

import subprocess
import sys
from functools import partial

import pytest

from course_lib.config import PRESETS, model_preset
from course_lib.training.config import train_preset
from tests.helpers.tiny import raised


def tiny_stays_tiny(preset):
    config = preset("tiny", 6000)
    assert (config.num_layers, config.d_model, config.num_heads, config.d_ff) == (4, 128, 4, 256)
    assert config.num_parameters <= 2_600_000


def base_and_big_are_the_papers(preset):
    """Table 3, with the shared vocabulary of about 37,000 subwords; it gives rounded millions of parameters."""
    base, big = preset("base", 37_000), preset("big", 37_000)
    assert (base.num_layers, base.d_model, base.num_heads, base.d_ff, base.dropout) == (6, 512, 8, 2048, 0.1)
    assert (big.num_layers, big.d_model, big.num_heads, big.d_ff, big.dropout) == (6, 1024, 16, 4096, 0.3)
    assert not base.norm_first and not big.norm_first
    assert base.num_parameters == pytest.approx(65e6, rel=0.04)
    assert big.num_parameters == pytest.approx(213e6, rel=0.04)


def test_tiny_stays_tiny():
    tiny_stays_tiny(model_preset)
    with pytest.raises(AssertionError):
        tiny_stays_tiny(partial(model_preset, tie_weights=False))


def test_base_and_big_are_the_papers():
    base_and_big_are_the_papers(model_preset)
    with pytest.raises(AssertionError):
        base_and_big_are_the_papers(partial(model_preset, tie_weights=False))


def test_sizes_rise_in_the_order_of_the_presets():
    sizes = [model_preset(name, 8000).num_parameters for name in PRESETS]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(PRESETS)


def test_base_is_trained_as_in_the_paper():
    for name in ("base", "big"):
        run = train_preset(name)
        assert (run.warmup_steps, run.decay, run.label_smoothing) == (4000, "inverse_sqrt", 0.1)
        assert (run.betas, run.eps, run.peak_lr, run.clip_norm) == ((0.9, 0.98), 1e-9, None, None)
        assert run.batch_tokens == 25_000


@pytest.mark.parametrize("name", PRESETS)
def test_named_fields_can_be_changed(name):
    assert model_preset(name, 50, dropout=0.0).dropout == 0.0
    assert train_preset(name, epochs=3).epochs == 3
    assert model_preset(name, 50, dropout=0.0).to_dict() == model_preset(name, 50).to_dict() | {"dropout": 0.0}


@pytest.mark.parametrize("preset", [partial(model_preset, vocab_size=50), train_preset])
def test_an_unknown_name_is_refused_with_the_known_ones(preset):
    error = raised(ValueError, lambda: preset("huge"))
    assert str(error) == f"preset must be one of {', '.join(PRESETS)}; got 'huge'"


def test_an_unknown_or_impossible_change_is_refused():
    assert "nhead" in str(raised(TypeError, lambda: model_preset("tiny", 50, nhead=8)))
    assert "num_heads=5" in str(raised(ValueError, lambda: model_preset("tiny", 50, num_heads=5)))
    assert "epochs" in str(raised(ValueError, lambda: train_preset("tiny", epochs=0)))


def test_presets_need_no_torch():
    code = "import course_lib.training.config, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
