"""Convolutional and state-space models keep the laws of the Transformer's calls, are as large, and learn."""

import dataclasses
import json
from functools import partial
from unittest import mock

import pytest
import torch
from torch import nn

from course_lib.alternatives import (
    ALTERNATIVES,
    RecurrentConfig,
    config_from_values,
    config_to_values,
    convolutional,
    model_like,
    state_space_model,
)
from course_lib.alternatives.convolutional import (
    ConvolutionalCache,
    ConvolutionalConfig,
    ConvolutionalModel,
    GatedConvolution,
    convolutional_like,
)
from course_lib.alternatives.state_space import DiagonalStateSpace
from course_lib.alternatives.state_space_model import (
    StateSpaceCache,
    StateSpaceConfig,
    StateSpaceModel,
    state_space_like,
)
from course_lib.config import ModelConfig, model_preset
from course_lib.data.batches import BucketedBatches, pad
from course_lib.decoding import beam_search, greedy
from course_lib.training.config import TrainConfig
from tests.helpers import decoding, interface
from tests.helpers.interface import BAD_IDS, ids
from tests.helpers.laws import law_a_configuration_is_plain_data, patched, raised, tells_apart
from tests.helpers.parity import scrambled
from tests.helpers.searches import a_wide_beam_is_exhaustive
from tests.helpers.tiny import padded
from tests.helpers.training import fit, reversal_pairs

SMALL = dict(vocab_size=13, d_model=12, dropout=0.3, max_len=8)
CONFIGS = {
    "convolutional, 3 wide": ConvolutionalConfig(**SMALL, d_hidden=10, num_layers=2),
    "convolutional, 5 wide": ConvolutionalConfig(**SMALL, d_hidden=6, num_layers=2, kernel_width=5),
    "state space": StateSpaceConfig(**SMALL, num_heads=3, num_layers=2, d_ff=20, d_state=4),
}
KINDS = {ConvolutionalConfig: ConvolutionalModel, StateSpaceConfig: StateSpaceModel}
LIKE = {ConvolutionalConfig: convolutional_like, StateSpaceConfig: state_space_like}
TOLERANCE = {ConvolutionalConfig: 0.0, StateSpaceConfig: 1e-9}  # the Fourier transform rounds
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
TWO = ("convolutional, 3 wide", "state space")
each_kind = pytest.mark.parametrize("config", [CONFIGS[name] for name in TWO], ids=TWO)


def model_of(config):
    return scrambled(KINDS[type(config)](config), scale=0.2)


# --- broken versions ----------------------------------------------------------------------------


def all_real(ids, name, config):
    return torch.ones_like(ids, dtype=torch.bool)


def looks_ahead(convolution, x, past=None, *, original=GatedConvolution.forward):
    return original(convolution, x.roll(-1, dims=1), past)


def comes_round(layer, x):
    """The circular convolution: without the zeros behind, the end runs into the beginning."""
    spectrum = torch.fft.rfft(x, dim=1) * torch.fft.rfft(layer.kernel(x.shape[1]), dim=0)
    return torch.fft.irfft(spectrum, n=x.shape[1], dim=1) + layer.skip * x


def forgets(layer, x, state=None, *, original=DiagonalStateSpace.scan):
    return original(layer, x)


def forgets_the_last(cache, x, count, *, original=ConvolutionalCache.before):
    return torch.zeros_like(original(cache, x, count))


def counts_nothing(cache, x, count, *, original=ConvolutionalCache.before):
    past = original(cache, x, count)
    cache.length = 0
    return past


def replaced(owner, name, function):
    return mock.patch.object(owner, name, function)


SEES_THE_FUTURE = {
    ConvolutionalConfig: [replaced(GatedConvolution, "forward", looks_ahead)],
    StateSpaceConfig: [replaced(DiagonalStateSpace, "forward", comes_round)],
}
COUNTS_PADDING = {
    ConvolutionalConfig: [
        replaced(convolutional, "real_tokens", all_real),
        replaced(convolutional, "padding_mask", decoding.all_may_be_attended),
    ],
    StateSpaceConfig: [
        replaced(state_space_model, "real_tokens", all_real),
        replaced(state_space_model, "padding_mask", decoding.all_may_be_attended),
    ],
}
FORGETS = {
    ConvolutionalConfig: [
        replaced(ConvolutionalCache, "before", forgets_the_last),
        replaced(ConvolutionalCache, "before", counts_nothing),
    ],
    StateSpaceConfig: [replaced(DiagonalStateSpace, "scan", forgets)],
}


def in_another_order(cache, rows):
    for name, value in vars(cache).items():
        if isinstance(value, torch.Tensor):
            setattr(cache, name, value[rows.flip(0)])


MIXED_ROWS = [replaced(cache, "select", in_another_order) for cache in (ConvolutionalCache, StateSpaceCache)]


def of_both(law, config, mistakes):
    """The law holds for a model, and fails under each mistake."""
    tells_apart(lambda call: call(model_of(config)), law, *(patched(law, mistake) for mistake in mistakes))


# --- laws ---------------------------------------------------------------------------------------


@each_config
def test_no_output_sees_the_future(float64, config):
    for law in (
        interface.law_no_output_sees_the_future,
        interface.law_a_later_token_changes_no_earlier_output,
    ):
        law = partial(law, tolerance=TOLERANCE[type(config)])
        of_both(law, config, SEES_THE_FUTURE[type(config)])


@each_config
def test_padding_changes_nothing(float64, config):
    of_both(interface.law_padding_changes_nothing, config, COUNTS_PADDING[type(config)])


@each_config
def test_a_batch_is_its_sentences_one_by_one(float64, config):
    interface.law_a_batch_is_its_sentences_one_by_one(model_of(config))


@each_config
def test_cached_decoding_is_uncached(float64, config):
    of_both(interface.law_cached_decoding_is_uncached, config, FORGETS[type(config)])


@each_config
def test_selected_rows_go_on_as_they_began(float64, config):
    mixed = MIXED_ROWS[isinstance(config, StateSpaceConfig)]
    of_both(interface.law_selected_rows_go_on_as_they_began, config, [mixed])


@each_kind
def test_the_cache_does_not_grow(float64, config):
    model, src = model_of(dataclasses.replace(config, max_len=40)), ids([5, 6, 2])
    memory, cache, sizes = model.encode(src), model.new_cache(), set()
    for _ in range(20):
        model.decode(ids([5]), memory, src, cache=cache)
        sizes.add(sum(each.numel() for part in cache for each in vars(part).values() if isinstance(each, torch.Tensor)))
    assert len(sizes) == 1


@each_config
def test_gradients_reach_all_parameters(float64, config):
    model = model_of(config)
    model(padded(interface.SRC), padded(interface.TGT)).sin().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        if not name.endswith("key_proj.bias"):  # which a softmax ignores
            assert parameter.grad.abs().max() > 1e-9, f"{name} has no gradient"


@each_config
def test_dropout_in_training_only(config):
    model, inputs = model_of(config), (padded(interface.SRC), padded(interface.TGT))
    assert torch.equal(model(*inputs), model(*inputs))
    model.train()
    assert not torch.equal(model(*inputs), model(*inputs))


@each_kind
def test_embeddings_and_generator_are_one_matrix(config):
    model = model_of(config)
    weights = [model.src_embedding.table.weight, model.tgt_embedding.table.weight, model.generator.weight]
    assert all(weight is weights[0] for weight in weights)


@each_config
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_says_almost_the_same(config, dtype):
    model, inputs = model_of(config), (padded(interface.SRC), padded(interface.TGT))
    expected, found = model(*inputs), model.to(dtype)(*inputs)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    src, cache = inputs[0], model.new_cache()
    first = model.generator(model.decode(inputs[1][:, :1], model.encode(src), src, cache=cache))
    torch.testing.assert_close(first.float(), expected[:, :1], rtol=0.05, atol=0.05)


# --- size ---------------------------------------------------------------------------------------

CHANGES = [dict(d_model=24), dict(num_layers=4), dict(vocab_size=31)]
OWN = {
    ConvolutionalConfig: [dict(d_hidden=7), dict(kernel_width=7), dict(max_len=9)],
    StateSpaceConfig: [dict(d_ff=7), dict(d_state=9)],
}


def on_paper(config):
    with torch.device("meta"):
        return KINDS[type(config)](config)


def law_counted_parameters_are_the_measured_ones(config, count):
    assert count(config) == sum(parameter.numel() for parameter in on_paper(config).parameters())


@each_config
def test_counted_parameters_are_the_measured_ones(config):
    for change in [{}, *CHANGES, *OWN[type(config)]]:
        changed = dataclasses.replace(config, **change)
        law_counted_parameters_are_the_measured_ones(changed, lambda config: sum(config.parameter_counts().values()))
        assert changed.num_parameters == sum(changed.parameter_counts().values())
        if change:
            with pytest.raises(AssertionError):
                law_counted_parameters_are_the_measured_ones(changed, lambda _: config.num_parameters)


@each_kind
def test_a_model_is_as_large_as_the_transformer(config):
    like, free = LIKE[type(config)], "d_hidden" if isinstance(config, ConvolutionalConfig) else "d_ff"
    for transformer in (
        model_preset("mini", 2000, max_len=99),
        model_preset("tiny", 6000, max_len=64),
        ModelConfig(300, d_model=64, num_heads=4, num_layers=2, d_ff=128, max_len=50),
    ):
        found = like(transformer, dropout=0.25)
        assert abs(found.num_parameters / transformer.num_parameters - 1) < 0.02, found
        assert (found.d_model, found.num_layers, found.dropout) == (transformer.d_model, transformer.num_layers, 0.25)
        for step in (-1, 1):
            other = dataclasses.replace(found, **{free: getattr(found, free) + step})
            distances = [abs(each.num_parameters - transformer.num_parameters) for each in (found, other)]
            assert distances[0] <= distances[1]


def test_each_alternative_is_built_by_its_name():
    transformer = ModelConfig(200, d_model=32, num_heads=4, num_layers=2, d_ff=64, max_len=50)
    for name in ALTERNATIVES:
        model = model_like(name, transformer, dropout=0.5)
        assert model.config.dropout == 0.5
        assert abs(model.config.num_parameters / transformer.num_parameters - 1) < 0.03, name
    assert [model_like(name, transformer).config.cell for name in ("lstm", "gru")] == ["lstm", "gru"]
    assert model_like("transformer", transformer, dropout=0.5).config == dataclasses.replace(transformer, dropout=0.5)
    message = "architecture must be one of transformer, lstm, gru, convolutional, state space; got 'perceptron'"
    assert str(raised(ValueError, lambda: model_like("perceptron", transformer))) == message


def a_written_configuration_is_read_as_what_it_was(read):
    recurrent = [RecurrentConfig(13, cell=cell) for cell in ("lstm", "gru")]
    for config in (ModelConfig(13), *recurrent, *CONFIGS.values()):
        values = json.loads(json.dumps(config_to_values(config)))
        assert values.get("architecture", "transformer") == config.architecture
        assert read(values) == config


def test_a_written_configuration_is_read_as_what_it_was():
    def every_cell_an_lstm(values):
        return config_from_values(values | ({"architecture": "lstm", "cell": "lstm"} if "cell" in values else {}))

    tells_apart(a_written_configuration_is_read_as_what_it_was, config_from_values, every_cell_an_lstm)
    values = config_to_values(RecurrentConfig(13, cell="gru"))
    for change, message in (
        ({"architecture": "rnn"}, "architecture must be one of transformer, lstm, gru, convolutional, state"),
        ({"architecture": "lstm"}, "architecture is 'lstm', but the other values are of gru"),
        ({"architecture": "state space"}, "StateSpaceConfig: unknown ['cell', 'd_hidden'], missing"),
        ({"architecture": ["gru"]}, "architecture must be one of"),
    ):
        assert message in str(raised(ValueError, lambda change=change: config_from_values(values | change)))
    assert "expected names with values, got ['gru']" in str(raised(ValueError, lambda: config_from_values(["gru"])))


# --- configuration and input --------------------------------------------------------------------


@each_kind
def test_a_configuration_is_plain_data(config):
    law_a_configuration_is_plain_data(config)
    assert on_paper(config).config is config


@pytest.mark.parametrize(
    "name, message, change",
    [
        ("convolutional, 3 wide", "d_hidden must be at least 1, got 0", dict(d_hidden=0)),
        ("convolutional, 3 wide", "kernel_width must be odd, as many tokens on each side, got 4", dict(kernel_width=4)),
        ("state space", "d_state must be an int, got 2.0", dict(d_state=2.0)),
        ("state space", "d_model must be divisible by num_heads, got d_model=12, num_heads=5", dict(num_heads=5)),
        ("state space", r"dropout must be in \[0, 1\), got 1.0", dict(dropout=1.0)),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(name, message, change):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIGS[name], **change)


@pytest.mark.parametrize("name", BAD_IDS)
def test_bad_ids_are_refused_on_both_sides(name):
    interface.law_bad_ids_are_refused_on_both_sides(model_of(CONFIGS["convolutional, 3 wide"]), name)
    if name != "too long":  # without positions no input is
        interface.law_bad_ids_are_refused_on_both_sides(model_of(CONFIGS["state space"]), name)


@each_kind
def test_memory_and_cache_of_other_sentences_are_refused(config):
    model = model_of(config)
    src, tgt_in, cache = ids([5, 6, 2], [7, 2, 0]), ids([1, 4], [1, 5]), model.new_cache()
    memory = model.encode(src)
    for parts in ((tgt_in[:1], memory, src), (tgt_in, memory[:1], src), (tgt_in, memory[..., :6], src)):
        with pytest.raises(ValueError, match="src, memory and tgt_in must belong together, got"):
            model.decode(*parts)
    model.decode(tgt_in, memory, src, cache=cache)
    with pytest.raises(ValueError, match="the cache holds 2 sentences, tgt_in has 1"):
        model.decode(tgt_in[:1], memory[:1], src[:1], cache=cache)
    with pytest.raises(ValueError, match="src has padding before a token"):
        model(ids([0, 5, 2]), ids([1, 5, 2]))


# --- searching and learning ---------------------------------------------------------------------


def small_models(vocab_size, spread=1.0):
    """Random models in evaluation mode, of both kinds; a smaller spread makes them less sure."""
    models = []
    for seed in range(6):
        transformer = ModelConfig(vocab_size, d_model=16, num_heads=2, num_layers=1 + seed // 2 % 2, d_ff=32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            name = ALTERNATIVES[2 + seed % 2]
            models.append(model_like(name, transformer, dropout=0.0, max_len=24).eval())
            models[-1].generator.weight = nn.Parameter(torch.randn(vocab_size, 16) * spread)
    return models


@pytest.mark.parametrize(
    "law",
    [
        decoding.cached_equals_uncached,
        decoding.batch_equals_one_by_one,
        decoding.log_prob_is_the_teacher_forced_one,
    ],
)
def test_greedy_laws_hold(law):
    law = partial(law, models=small_models(8))
    tells_apart(law, greedy, *(patched(greedy, mistake) for mistake in MIXED_ROWS))


def test_a_wide_beam_finds_what_exhaustive_search_finds():
    law = partial(a_wide_beam_is_exhaustive, models=small_models(7, 0.3))
    tells_apart(law, beam_search, *(patched(beam_search, mistake) for mistake in MIXED_ROWS))


PAIRS = reversal_pairs(1500, seed=1, shortest=2, longest=4)
TRAIN = BucketedBatches(PAIRS[:1400], 300)
RUN = TrainConfig(epochs=10, batch_tokens=300, peak_lr=5e-3, warmup_steps=50, decay="linear", clip_norm=1.0)


def reversal_is_learned(name, encode=None):
    """At least 95 % of sequences that it has not seen are reversed."""
    torch.manual_seed(0)
    transformer = ModelConfig(12, d_model=32, num_heads=4, num_layers=2, d_ff=64, dropout=0.0, max_len=16)
    model = model_like(name, transformer)
    if encode is not None:
        model.encode = lambda src, original=model.encode: encode(original(src))
    fit(model, TRAIN, RUN)
    found = greedy(model, pad([src for src, _ in PAIRS[1400:]]))
    share = sum(each.ids == tgt for each, (_, tgt) in zip(found, PAIRS[1400:], strict=True)) / len(found)
    print(f"{share:.1%} reversed")
    assert share >= 0.95


@pytest.mark.parametrize("name", ["convolutional", "state space"])
def test_reversing_a_sequence_is_learned(name):
    tells_apart(partial(reversal_is_learned, name), None, torch.zeros_like)
