"""Configurations: the paper's numbers, what is refused, and closed-form counts equal to measured ones."""

import dataclasses
import json
import re

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import PRESETS, ModelConfig, model_preset
from course_lib.training.config import TrainConfig, train_preset
from course_lib.transformer import Transformer
from tests.helpers.tiny import MODEL_SIZES, MODEL_VARIANTS, on_paper


def component(name):
    """The component of ModelConfig.parameter_counts that a parameter or module belongs to."""
    if "norm" in name:
        return "norms"
    if "embedding" in name or "generator" in name:
        return "embeddings"
    stack, part = re.search(r"(encoder|decoder)\.layers\.\d+\.(\w+?)(?:\.|$)", name).groups()
    kinds = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward"}
    return f"{stack} {kinds[part]}"


# --- counts -------------------------------------------------------------------------------------


def law_counted_parameters_are_the_measured_ones(counts_of):
    for config in [*MODEL_VARIANTS, *(model_preset(name, 1000) for name in PRESETS)]:
        measured = dict.fromkeys(config.parameter_counts(), 0)
        for name, parameter in on_paper(config).named_parameters():
            measured[component(name)] += parameter.numel()
        assert counts_of(config) == measured


def test_counted_parameters_are_the_measured_ones():
    law_counted_parameters_are_the_measured_ones(ModelConfig.parameter_counts)


@pytest.mark.parametrize(
    "change",
    [dict(tie_weights=True), dict(tie_weights=False), dict(norm_first=False), dict(position="sinusoidal")],
)
def test_a_count_that_overlooks_something_breaks_the_law(change):
    with pytest.raises(AssertionError):
        law_counted_parameters_are_the_measured_ones(
            lambda config: dataclasses.replace(config, **change).parameter_counts()
        )


def test_base_with_37000_subwords_has_63_1_million_parameters():
    for config in (ModelConfig(37_000), model_preset("base", 37_000)):
        assert f"{config.num_parameters / 1e6:.1f}" == "63.1"
        assert config.num_parameters == sum(config.parameter_counts().values())
        assert config.num_parameters == sum(parameter.numel() for parameter in on_paper(config).parameters())


def test_the_number_of_heads_costs_nothing():
    counts = {ModelConfig(37_000, num_heads=num_heads).num_parameters for num_heads in (1, 4, 8, 16, 512)}
    assert len(counts) == 1


def measured_flops(config, src_len, tgt_len):
    """Operations of the matrix products of a real forward pass; only the plain kernel shows those of attention."""
    model = Transformer(config).eval()
    src, tgt_in = torch.full((1, src_len), 5), torch.full((1, tgt_len), 5)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(src, tgt_in)
    measured, leaf = {}, r"Transformer\.generator|.*layers\.\d+\.(self_attn|cross_attn|feed_forward)\.\w+"
    for name, operations in counter.get_flop_counts().items():
        if re.fullmatch(leaf, name):
            part = "generator" if name.endswith("generator") else component(name)
            measured[part] = measured.get(part, 0) + sum(operations.values())
    assert sum(measured.values()) == counter.get_total_flops()
    return measured


def law_counted_flops_are_the_measured_ones(counts_of):
    for config in (MODEL_VARIANTS[0], MODEL_VARIANTS[-1]):
        for src_len, tgt_len in ((7, 4), (3, 9)):
            assert counts_of(config, src_len, tgt_len) == measured_flops(config, src_len, tgt_len)


def test_counted_flops_are_the_measured_ones():
    law_counted_flops_are_the_measured_ones(ModelConfig.flop_counts)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda config, src_len, tgt_len: config.flop_counts(tgt_len, src_len),
        lambda config, src_len, tgt_len: {k: v // 2 for k, v in config.flop_counts(src_len, tgt_len).items()},
        lambda config, src_len, tgt_len: {  # linear in the length: scores and context forgotten
            k: v // src_len // tgt_len for k, v in config.flop_counts(src_len * tgt_len, src_len * tgt_len).items()
        },
    ],
    ids=["lengths exchanged", "multiply-adds", "linear"],
)
def test_other_flops_break_the_law(wrong):
    with pytest.raises(AssertionError):
        law_counted_flops_are_the_measured_ones(wrong)


def test_counted_memory_is_that_of_a_training_step():
    config = MODEL_VARIANTS[0]
    model = Transformer(config)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.tensor([[5, 6]]), torch.tensor([[1, 5]])).sum().backward()
    optimizer.step()
    moments = [m for state in optimizer.state.values() for name, m in state.items() if name != "step"]
    parameters = list(model.parameters())
    assert config.memory_bytes() == {
        "weights": sum(p.nbytes for p in parameters),
        "gradients": sum(p.grad.nbytes for p in parameters),
        "optimizer": sum(m.nbytes for m in moments),
    }
    assert config.memory_bytes(2)["weights"] == 2 * config.num_parameters


# --- values -------------------------------------------------------------------------------------


def test_defaults_are_the_papers_base_model_and_recipe():
    model, training = ModelConfig(37_000), TrainConfig()
    assert (model.d_model, model.num_heads, model.num_layers, model.d_ff, model.d_k) == (512, 8, 6, 2048, 64)
    assert (model.dropout, model.norm_first, model.position, model.tie_weights) == (0.1, False, "sinusoidal", True)
    assert (training.betas, training.eps, training.warmup_steps) == ((0.9, 0.98), 1e-9, 4000)
    assert (training.label_smoothing, training.decay, training.peak_lr) == (0.1, "inverse_sqrt", None)
    assert (training.clip_norm, training.weight_decay) == (None, 0.0)
    assert model_preset("base", 37_000) == model


def test_big_is_the_papers():
    big = model_preset("big", 37_000)
    assert (big.d_model, big.num_heads, big.num_layers, big.d_ff, big.dropout, big.d_k) == (1024, 16, 6, 4096, 0.3, 64)


def test_presets_take_changes_and_refuse_unknown_names():
    assert model_preset("tiny", 100, dropout=0.0, max_len=7) == dataclasses.replace(
        model_preset("tiny", 100), dropout=0.0, max_len=7
    )
    assert train_preset("tiny", epochs=1) == dataclasses.replace(train_preset("tiny"), epochs=1)
    assert model_preset("tiny", 6000).num_parameters <= 2_600_000
    for preset in (lambda name: model_preset(name, 100), train_preset):
        with pytest.raises(ValueError, match=f"preset must be one of {', '.join(PRESETS)}; got 'huge'"):
            preset("huge")


def test_configurations_cannot_change():
    for config in (ModelConfig(100), TrainConfig()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.seed = 1


@pytest.mark.parametrize("config", [MODEL_VARIANTS[0], MODEL_VARIANTS[-1], TrainConfig(peak_lr=1e-3, betas=(0.8, 0.9))])
def test_a_configuration_survives_json(config):
    again = type(config).from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config and hash(again) == hash(config)


@pytest.mark.parametrize("config", [MODEL_VARIANTS[0], TrainConfig()])
def test_unknown_and_missing_names_are_named(config):
    values = config.to_dict()
    (first, of_first), *rest = values.items()
    with pytest.raises(ValueError, match=rf"{type(config).__name__}: unknown \['colour'\], missing \[\]"):
        type(config).from_dict(values | {"colour": 1})
    with pytest.raises(ValueError, match=rf"{type(config).__name__}: unknown \[\], missing \['{first}'\]"):
        type(config).from_dict(dict(rest))
    with pytest.raises(ValueError, match=rf"unknown \['colour'\], missing \['{first}'\]"):
        type(config).from_dict({"colour": of_first, **dict(rest)})


BAD_MODELS = {
    "d_model must be divisible by num_heads, got d_model=12, num_heads=5": dict(num_heads=5),
    "d_model must be divisible by num_heads, got d_model=12, num_heads=24": dict(num_heads=24),
    "d_model must be even, got 9": dict(d_model=9),
    "d_model must be at least 1, got 0": dict(d_model=0),
    "num_heads must be at least 1, got 0": dict(num_heads=0),
    "num_heads must be at least 1, got -3": dict(num_heads=-3),
    "num_layers must be at least 1, got 0": dict(num_layers=0),
    "d_ff must be at least 1, got -1": dict(d_ff=-1),
    "max_len must be at least 1, got 0": dict(max_len=0),
    r"dropout must be in \[0, 1\), got 1.0": dict(dropout=1.0),
    r"dropout must be in \[0, 1\), got -0.1": dict(dropout=-0.1),
    r"dropout must be in \[0, 1\), got nan": dict(dropout=float("nan")),
    "position must be one of .'sinusoidal', 'learned', 'alibi', 'rotary', 'none'., got 'rope'": dict(position="rope"),
    "rotary positions pair the dimensions: d_k must be even, got 3": dict(num_heads=4, position="rotary"),
    r"special ids must differ and lie in 0..22, got \(1, 1, 2, 3\)": dict(pad_id=1),
    r"special ids must differ and lie in 0..22, got \(0, 1, 2, 23\)": dict(unk_id=23),
    r"special ids must differ and lie in 0..2, got": dict(vocab_size=3),
}
BAD_TRAININGS = {
    "epochs must be at least 1, got 0": dict(epochs=0),
    "batch_tokens must be at least 1, got 0": dict(batch_tokens=0),
    "accumulate must be at least 1, got 0": dict(accumulate=0),
    "warmup_steps must be at least 1, got 0": dict(warmup_steps=0),
    "peak_lr must be positive or None, got 0": dict(peak_lr=0),
    "peak_lr must be positive or None, got nan": dict(peak_lr=float("nan")),
    "clip_norm must be positive or None, got -1": dict(clip_norm=-1),
    r"label_smoothing must be in \[0, 1\), got 1": dict(label_smoothing=1),
    "decay must be 'inverse_sqrt' or 'linear', got 'cosine'": dict(decay="cosine"),
    "precision must be 'float32' or 'bfloat16', got 'float16'": dict(precision="float16"),
}


@pytest.mark.parametrize("message, change", BAD_MODELS.items(), ids=[str(change) for change in BAD_MODELS.values()])
def test_a_model_that_cannot_be_built_is_refused(message, change):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**MODEL_SIZES | change)


@pytest.mark.parametrize("message, change", BAD_TRAININGS.items(), ids=[str(c) for c in BAD_TRAININGS.values()])
def test_a_training_that_cannot_run_is_refused(message, change):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**change)


def test_learned_positions_take_an_odd_width():
    assert ModelConfig(23, d_model=9, num_heads=3, position="learned").d_k == 3
