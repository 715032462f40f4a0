"""Configurations: the paper's numbers, what is refused, and closed-form counts equal to measured ones."""

import dataclasses
import re
from functools import partial

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import PRESETS, ModelConfig, model_preset
from course_lib.transformer import Transformer
from tests.helpers.laws import law_a_configuration_is_plain_data, raised, tells_apart
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
    [
        dict(tie_weights=True),
        dict(tie_weights=False),
        dict(norm_first=False),
        dict(position="sinusoidal"),
        dict(key_width=None),
    ],
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
    for config in (MODEL_VARIANTS[0], MODEL_VARIANTS[-3], MODEL_VARIANTS[-1]):
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
        lambda config, src_len, tgt_len: dataclasses.replace(config, key_width=None).flop_counts(src_len, tgt_len),
    ],
    ids=["lengths exchanged", "multiply-adds", "linear", "one width"],
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


def test_defaults_are_the_papers_base_model():
    model = ModelConfig(37_000)
    assert (model.d_model, model.num_heads, model.num_layers, model.d_ff, model.d_k) == (512, 8, 6, 2048, 64)
    assert (model.dropout, model.norm_first, model.position, model.tie_weights) == (0.1, False, "sinusoidal", True)
    assert model_preset("base", 37_000) == model


@pytest.mark.parametrize("config", [MODEL_VARIANTS[0], MODEL_VARIANTS[-1]])
def test_a_configuration_is_plain_data(config):
    law_a_configuration_is_plain_data(config)


BAD_MODELS = {
    "d_model must be divisible by num_heads, got d_model=12, num_heads=5": dict(num_heads=5),
    "d_model must be divisible by num_heads, got d_model=12, num_heads=24": dict(num_heads=24),
    "d_model must be even, got 9": dict(d_model=9),
    **{
        f"{name} must be at least 1, got {size}": {name: size}
        for name, sizes in dict(d_model=[0], num_heads=[0, -3], num_layers=[0], d_ff=[-1], max_len=[0]).items()
        for size in sizes
    },
    "d_ff must be an int, got 8.0": dict(d_ff=8.0),
    "num_layers must be an int, got True": dict(num_layers=True),
    "num_layers must be at most 1,000, got 1000000000": dict(num_layers=10**9),
    "d_ff must be at most 1,000,000,000,000,000,000, got 1": dict(d_ff=10**30),
    "norm_first must be True or False, got 'False'": dict(norm_first="False"),
    "tie_weights must be True or False, got 0": dict(tie_weights=0),
    r"dropout must be in \[0, 1\), got '0.1'": dict(dropout="0.1"),
    "key_width must be at least 1, got 0": dict(key_width=0),
    "rotary positions pair the dimensions: d_k must be even, got 7": dict(key_width=7, position="rotary"),
    **{rf"dropout must be in \[0, 1\), got {share}": dict(dropout=share) for share in (1.0, -0.1, float("nan"))},
    "position must be one of .'sinusoidal', 'learned', 'alibi', 'rotary', 'none'., got 'rope'": dict(position="rope"),
    "rotary positions pair the dimensions: d_k must be even, got 3": dict(num_heads=4, position="rotary"),
    r"special ids must differ and lie in 0..22, got \(1, 1, 2, 3\)": dict(pad_id=1),
    r"special ids must differ and lie in 0..22, got \(0, 1, 2, 23\)": dict(unk_id=23),
    r"special ids must differ and lie in 0..2, got": dict(vocab_size=3),
}


@pytest.mark.parametrize("message, change", BAD_MODELS.items(), ids=[str(change) for change in BAD_MODELS.values()])
def test_a_model_that_cannot_be_built_is_refused(message, change):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**MODEL_SIZES | change)


def test_a_file_of_the_first_edition_names_no_key_width():
    config = ModelConfig(23)
    older = {name: value for name, value in config.to_dict().items() if name != "key_width"}
    assert ModelConfig.from_dict(older) == config


def test_keys_may_be_narrower_than_values():
    """Table 3, row B, prints 65, 58 and 60 million parameters: 7 and 5 less than base."""
    base, narrow, wider = (ModelConfig(37_000, key_width=width) for width in (None, 16, 32))
    assert (base.d_k, narrow.d_k, wider.d_k) == (64, 16, 32)
    assert [round((base.num_parameters - less.num_parameters) / 1e6) for less in (narrow, wider)] == [7, 5]


def test_learned_positions_take_an_odd_width():
    assert ModelConfig(23, d_model=9, num_heads=3, position="learned").d_k == 3


# --- presets ------------------------------------------------------------------------------------


def tiny_stays_tiny(preset):
    config = preset("tiny", 6000)
    assert (config.num_layers, config.d_model, config.num_heads, config.d_ff) == (4, 128, 4, 256)
    assert config.num_parameters <= 2_600_000


def base_and_big_are_the_papers(preset):
    """Table 3, with the shared vocabulary of about 37,000 subwords; it gives rounded millions of parameters."""
    base, big = preset("base", 37_000), preset("big", 37_000)
    assert (base.num_layers, base.d_model, base.num_heads, base.d_ff, base.dropout) == (6, 512, 8, 2048, 0.1)
    assert (big.num_layers, big.d_model, big.num_heads, big.d_ff, big.dropout) == (6, 1024, 16, 4096, 0.3)
    assert base.d_k == big.d_k == 64 and not base.norm_first and not big.norm_first
    assert base.num_parameters == pytest.approx(65e6, rel=0.04)
    assert big.num_parameters == pytest.approx(213e6, rel=0.04)


@pytest.mark.parametrize("law", [tiny_stays_tiny, base_and_big_are_the_papers])
def test_a_preset_has_the_size_that_it_is_known_for(law):
    tells_apart(law, model_preset, partial(model_preset, tie_weights=False))


def test_sizes_rise_in_the_order_of_the_presets():
    sizes = [model_preset(name, 8000).num_parameters for name in PRESETS]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_named_fields_of_a_preset_can_be_changed(name):
    plain, changed = model_preset(name, 50), model_preset(name, 50, dropout=0.0, max_len=7)
    assert changed.to_dict() == plain.to_dict() | {"dropout": 0.0, "max_len": 7} and changed != plain


def test_an_unknown_preset_or_change_is_refused():
    message = f"preset must be one of {', '.join(PRESETS)}; got 'huge'"
    assert str(raised(ValueError, lambda: model_preset("huge", 50))) == message
    assert "nhead" in str(raised(TypeError, lambda: model_preset("tiny", 50, nhead=8)))
    assert "num_heads=5" in str(raised(ValueError, lambda: model_preset("tiny", 50, num_heads=5)))
