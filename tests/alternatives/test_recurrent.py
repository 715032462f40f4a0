"""The recurrent baseline: torch's LSTM or GRU put together; no leak, padding, batch or cache changes a sentence."""

import dataclasses
import itertools
import math
from functools import partial
from unittest import mock

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.alternatives import recurrent
from course_lib.alternatives.recurrent import (
    CELLS,
    GATES,
    AttentiveRNN,
    Bidirectional,
    RecurrentCache,
    RecurrentConfig,
    recurrent_like,
)
from course_lib.alternatives.shared import backward_order
from course_lib.config import ModelConfig, model_preset
from course_lib.data.batches import BucketedBatches, encode_pairs, pad
from course_lib.decoding import beam_search, greedy
from course_lib.storage import load_weights
from course_lib.tokenizer import Tokenizer
from course_lib.training.config import TrainConfig
from course_lib.training.evaluation import score, validate
from course_lib.translator import Translator
from tests.helpers import decoding, interface
from tests.helpers.corpora import toy_pairs
from tests.helpers.interface import BAD_IDS, SRC, TGT, ids
from tests.helpers.laws import law_a_configuration_is_plain_data, patched, tells_apart
from tests.helpers.parity import assert_same_logits, close, double_precision, noise, scrambled
from tests.helpers.searches import a_wide_beam_is_exhaustive
from tests.helpers.tiny import padded
from tests.helpers.training import assert_same_weights, fit, reversal_pairs

SMALL = dict(vocab_size=13, d_model=12, d_hidden=10, dropout=0.3, max_len=8)
CONFIGS = {f"{n} layers": RecurrentConfig(**SMALL, num_layers=n) for n in (1, 2, 3)}
CONFIGS |= {f"gru, {n} layers": RecurrentConfig(**SMALL, cell="gru", num_layers=n) for n in (1, 2)}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


def model_of(config, model_class=AttentiveRNN):
    return scrambled(model_class(config))


# --- broken versions ----------------------------------------------------------------------------


class ReadsPaddingFirst(AttentiveRNN):
    """The padded batch is reversed as a whole: from the right, a short sentence begins with its padding."""

    def encode(self, src):
        x, order = self.src_embedding(src), torch.arange(src.shape[1]).flip(0).expand(src.shape)
        for layer in self.encoder:
            x = layer(x, order)
        return x


class StartsFromTheEnd(AttentiveRNN):
    """The first state from the last column, which is padding in a short sentence."""

    def _first_state(self, memory):
        return super()._first_state(memory.flip(1))


class AttendsToPadding(AttentiveRNN):
    def _decode(self, tgt_in, memory, src, cache):
        return super()._decode(tgt_in, memory, src.clamp(min=1), cache)


class SharesMemory(AttentiveRNN):
    def encode(self, src):
        memory = super().encode(src)
        return memory - memory.mean(dim=0, keepdim=True)


class Ahead(nn.Module):
    """An LSTM whose input is not shifted, or that reads from both ends."""

    def __init__(self, lstm, both):
        super().__init__()
        self.lstm, self.both = lstm, both

    def forward(self, x, past):
        if not self.both:
            return self.lstm(x.roll(-1, dims=1), past)
        states, newest = self.lstm(x, past)
        return states + self.lstm(x.flip(1), past)[0].flip(1), newest


class ForgetsItsState(AttentiveRNN):
    def _decode(self, tgt_in, memory, src, cache):
        return super()._decode(tgt_in, memory, src, None)


class ForgetsItsCells(AttentiveRNN):
    def _decode(self, tgt_in, memory, src, cache):
        result = super()._decode(tgt_in, memory, src, cache)
        if cache is not None:
            cache[0].cells = torch.zeros_like(cache[0].cells)
        return result


class WithoutTanh(AttentiveRNN):
    def _decode(self, tgt_in, memory, src, cache):
        output, weights = super()._decode(tgt_in, memory, src, cache)
        return output.atanh(), weights


class FromRightFirst(AttentiveRNN):
    """The halves of the memory exchanged, and the first state from the half that has read one token."""

    def encode(self, src):
        return super().encode(src).roll(self.config.d_hidden // 2, dims=-1)


class AttendsWithoutScale(AttentiveRNN):
    def _decode(self, tgt_in, memory, src, cache):
        scaled = self.query_proj.weight.data
        self.query_proj.weight.data = scaled * math.sqrt(self.config.d_hidden)
        result = super()._decode(tgt_in, memory, src, cache)
        self.query_proj.weight.data = scaled
        return result


class CopiesTheMatrix(AttentiveRNN):
    """Equal numbers at the start, but three matrices."""

    def __init__(self, config):
        super().__init__(config)
        for module in (self.generator, self.tgt_embedding.table):
            module.weight = nn.Parameter(module.weight.detach().clone())


# --- parity -------------------------------------------------------------------------------------


class Theirs(nn.Module):
    """Luong's equations in loops over sentences and target positions, around torch's layers on packed sequences."""

    def __init__(self, config):
        super().__init__()
        self.config, width = config, config.d_hidden
        self.table = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        cells = CELLS[config.cell]
        self.encoder = cells(config.d_model, width // 2, config.num_layers, batch_first=True, bidirectional=True)
        self.decoder = cells(config.d_model, width, config.num_layers, batch_first=True)
        self.first = nn.Linear(width // 2, config.num_layers * width)
        self.w_a = nn.Parameter(torch.empty(width, width))
        self.w_c = nn.Parameter(torch.empty(config.d_model, 2 * width))

    def in_our_names(self, get=torch.Tensor.detach):
        named = dict.fromkeys(
            ("src_embedding.table.weight", "tgt_embedding.table.weight", "generator.weight"), get(self.table)
        )
        named |= {"first_state.weight": get(self.first.weight), "first_state.bias": get(self.first.bias)}
        named |= {"query_proj.weight": get(self.w_a), "output_proj.weight": get(self.w_c)}
        named |= {f"decoder.{name}": get(parameter) for name, parameter in self.decoder.named_parameters()}
        for name, parameter in self.encoder.named_parameters():  # weight_ih_l0, weight_ih_l0_reverse, ...
            kind, layer = name.removesuffix("_reverse").rsplit("_l", 1)
            side = "from_right" if name.endswith("_reverse") else "from_left"
            named[f"encoder.{layer}.{side}.{kind}_l0"] = get(parameter)
        return named

    def memory(self, src):
        lengths = (src != 0).sum(dim=1)
        packed = pack_padded_sequence(self.embed(src), lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0], lengths

    def embed(self, ids):
        return self.table[ids] * math.sqrt(self.config.d_model)

    def forward(self, src, tgt_in):
        memory, lengths = self.memory(src)
        width, logits = self.config.d_hidden, []
        for row, length in enumerate(lengths):
            known = memory[row, :length]  # (tokens, d_hidden)
            first = torch.tanh(self.first(known[0, width // 2 :])).view(-1, width)
            past = (first, torch.zeros_like(first)) if self.config.cell == "lstm" else first
            states, _ = self.decoder(self.embed(tgt_in[row]), past)
            for state in states:
                scores = torch.stack([state @ self.w_a.T @ each / math.sqrt(width) for each in known])
                context = sum(weight * each for weight, each in zip(scores.softmax(0), known, strict=True))
                logits.append(self.table @ torch.tanh(self.w_c @ torch.cat([context, state])))
        return torch.stack(logits).view(*tgt_in.shape, -1)


def parity_of_the_model(config, model_class=AttentiveRNN):
    """Equal logits at the real tokens, and equal gradients of all parameters."""
    real = padded(TGT) != 0
    assert_same_logits(model_class(config), Theirs(config), lambda model: model(padded(SRC), padded(TGT))[real])


@each_config
def test_the_model_is_torchs_layers_and_luongs_attention(float64, config):
    parity_of_the_model(config)


@pytest.mark.parametrize(
    "wrong", [ReadsPaddingFirst, StartsFromTheEnd, AttendsToPadding, WithoutTanh, FromRightFirst, AttendsWithoutScale]
)
def test_parity_fails_for_another_model(float64, wrong):
    with pytest.raises(AssertionError, match="logits"):
        parity_of_the_model(CONFIGS["2 layers"], wrong)


def law_layer_is_torchs_on_packed_sequences(order_of, cell="lstm"):
    """Ours on padded sentences equals torch's bidirectional layer on packed ones, in float32's fast kernel too."""
    real = padded(SRC) != 0
    theirs = scrambled(CELLS[cell](6, 5, batch_first=True, bidirectional=True))
    ours, x = Bidirectional(6, 10, cell), noise(*real.shape, 6)
    for name, parameter in theirs.state_dict().items():
        side = ours.from_right if name.endswith("_reverse") else ours.from_left
        side.state_dict()[name.removesuffix("_reverse")].copy_(parameter)
    packed = pack_padded_sequence(x, real.sum(dim=1), batch_first=True)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(ours(x, order_of(real))[real], expected[real])


def test_a_layer_is_torchs_on_packed_sequences():
    orders = [
        lambda real: torch.arange(real.shape[1]).flip(0).expand(real.shape),
        lambda real: torch.arange(real.shape[1]).expand(real.shape),
    ]
    for cell in CELLS:
        law_layer_is_torchs_on_packed_sequences(backward_order, cell)
    with double_precision():
        law_layer_is_torchs_on_packed_sequences(backward_order)
    for wrong in orders:
        with pytest.raises(AssertionError):
            law_layer_is_torchs_on_packed_sequences(wrong)


def test_the_backward_order_is_by_hand_and_its_own_inverse():
    real = torch.tensor([[True, True, True, True], [True, True, False, False], [True, False, False, False]])
    order = backward_order(real)
    assert order.tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 2, 3]]
    assert order.gather(1, order).tolist() == [[0, 1, 2, 3]] * 3


# --- what may reach what ------------------------------------------------------------------------


@each_config
def test_no_output_sees_the_future(float64, config):
    interface.law_no_output_sees_the_future(model_of(config))


@each_config
def test_a_later_token_changes_no_earlier_output(float64, config):
    interface.law_a_later_token_changes_no_earlier_output(model_of(config))


@pytest.mark.parametrize("both", [False, True], ids=["not shifted", "both ends"])
def test_a_decoder_that_reads_ahead_breaks_both_laws(float64, both):
    model = model_of(CONFIGS["1 layers"])
    model.decoder = Ahead(model.decoder, both)
    with pytest.raises(AssertionError, match="is seen wrongly"):
        interface.law_a_later_token_changes_no_earlier_output(model)
    with pytest.raises(AssertionError, match="sees the future"):
        interface.law_no_output_sees_the_future(model)


def law_every_token_reaches_every_memory(model):
    """From both ends: the gradient of each token's memory with respect to each embedded token is not zero."""
    embedded = []

    def cut(module, inputs, output):
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    handle = model.src_embedding.register_forward_hook(cut)
    memory = model.encode(torch.tensor([SRC[0]]))
    handle.remove()
    for token in range(len(SRC[0])):
        (gradient,) = torch.autograd.grad(memory[0, token].sum(), embedded, retain_graph=True)
        assert (gradient[0].abs().amax(-1) > 0).all(), f"token {token} does not see all"


class ReadsFromLeftOnly(AttentiveRNN):
    def encode(self, src):
        memory = super().encode(src)
        return torch.cat([memory[..., : self.config.d_hidden // 2]] * 2, dim=-1)


@each_config
def test_the_encoder_reads_from_both_ends(float64, config):
    tells_apart(
        law_every_token_reaches_every_memory,
        model_of(config),
        model_of(CONFIGS["1 layers"], ReadsFromLeftOnly),
        match="token 0 does not see all",
    )


# --- padding and batches ------------------------------------------------------------------------


@each_config
def test_padding_changes_nothing(float64, config):
    interface.law_padding_changes_nothing(model_of(config))


@pytest.mark.parametrize("wrong", [ReadsPaddingFirst, StartsFromTheEnd, AttendsToPadding])
def test_padding_that_counts_breaks_the_law(float64, wrong):
    with pytest.raises(AssertionError, match="row"):
        interface.law_padding_changes_nothing(model_of(CONFIGS["1 layers"], wrong))


@each_config
def test_a_batch_is_its_sentences_one_by_one(float64, config):
    law = interface.law_a_batch_is_its_sentences_one_by_one
    tells_apart(law, model_of(config), model_of(config, SharesMemory), match="row")


# --- attention ----------------------------------------------------------------------------------


def law_attention_is_spread_over_the_real_tokens(model):
    """Each row sums to 1, is positive on every token and exactly 0 on the padding; its context is what decode uses."""
    src, tgt_in = padded(SRC, 8), torch.tensor([[1, 6, 7, 8, 9]] * 3)
    weights = model.alignment(src, tgt_in)
    assert weights.shape == (3, 5, 8)
    close(weights.sum(dim=-1), torch.ones(3, 5), "sum of a row")
    assert ((weights > 0) == (src != 0)[:, None]).all(), "a weight on padding, or none on a token"
    assert (weights[0, 0] - weights[0, 4]).abs().max() > 1e-3, "all rows alike"


@each_config
def test_attention_is_spread_over_the_real_tokens(float64, config):
    tells_apart(
        law_attention_is_spread_over_the_real_tokens,
        model_of(config),
        model_of(config, AttendsToPadding),
        match="a weight on padding",
    )


# --- the cache ----------------------------------------------------------------------------------


@each_config
def test_cached_decoding_is_uncached(float64, config):
    interface.law_cached_decoding_is_uncached(model_of(config))


@pytest.mark.parametrize("wrong", [ForgetsItsState, ForgetsItsCells])
def test_a_cache_that_forgets_breaks_the_law(float64, wrong):
    with pytest.raises(AssertionError, match="in pieces"):
        interface.law_cached_decoding_is_uncached(model_of(CONFIGS["2 layers"], wrong))


def test_selected_rows_go_on_as_they_began(float64, monkeypatch):
    for config in CONFIGS.values():
        interface.law_selected_rows_go_on_as_they_began(model_of(config))

    def cells_stay(cache, rows):
        cache.state, cache.cells = cache.state[:, rows], cache.cells[:, rows.sort().values]

    monkeypatch.setattr(RecurrentCache, "select", cells_stay)
    with pytest.raises(AssertionError, match="selected rows"):
        interface.law_selected_rows_go_on_as_they_began(model_of(CONFIGS["1 layers"]))


def test_the_cache_does_not_grow_and_no_length_is_too_long(float64):
    model = model_of(CONFIGS["2 layers"])
    src, cache = ids([5, 6] * 20), model.new_cache()  # longer than max_len, which is for outputs
    memory = model.encode(src)
    for _ in range(20):
        model.decode(ids([5]), memory, src, cache=cache)
        assert cache[0].state.shape == cache[0].cells.shape == (2, 1, 10)


def test_a_gru_keeps_its_state_alone(float64):
    model = model_of(CONFIGS["gru, 2 layers"])
    cache = model.new_cache()
    model.decode(ids([5]), model.encode(ids([5, 6])), ids([5, 6]), cache=cache)
    assert cache[0].state.shape == (2, 1, 10) and cache[0].cells is None


# --- size ---------------------------------------------------------------------------------------

VARIANTS = [
    RecurrentConfig(vocab_size=23, cell=cell, d_model=d_model, d_hidden=d_hidden, num_layers=num_layers)
    for cell, d_model, d_hidden, num_layers in itertools.product(CELLS, (7, 12), (2, 10, 16), (1, 2, 4))
]
COMPONENTS = {"src_embedding": "embeddings", "encoder": "encoder", "first_state": "first state"}
COMPONENTS |= {"decoder": "decoder", "query_proj": "attention", "output_proj": "output"}


def on_paper(config):
    with torch.device("meta"):
        return AttentiveRNN(config)


def law_counted_parameters_are_the_measured_ones(counts_of):
    for config in VARIANTS:
        measured = dict.fromkeys(config.parameter_counts(), 0)
        for name, parameter in on_paper(config).named_parameters():
            measured[COMPONENTS[name.split(".")[0]]] += parameter.numel()
        assert counts_of(config) == measured
        assert config.num_parameters == sum(measured.values())


def test_counted_parameters_are_the_measured_ones():
    law_counted_parameters_are_the_measured_ones(RecurrentConfig.parameter_counts)
    for change in (dict(num_layers=1), dict(d_model=12), dict(d_hidden=10), dict(cell="gru")):
        with pytest.raises(AssertionError):
            law_counted_parameters_are_the_measured_ones(
                lambda config, change=change: dataclasses.replace(config, **change).parameter_counts()
            )


def law_as_large_as_the_transformer(like):
    """Within 2 %, for both presets that the course trains, with one layer and with several."""
    for (name, vocab_size, expected), num_layers in itertools.product(
        (("mini", 2000, 919_040), ("tiny", 6000, 2_093_568)), (1, 2, 4)
    ):
        transformer = model_preset(name, vocab_size, max_len=99)
        assert transformer.num_parameters == expected
        config = like(transformer, num_layers=num_layers)
        assert abs(config.num_parameters / expected - 1) < 0.02, config
        assert (config.vocab_size, config.d_model, config.max_len) == (vocab_size, 128, 99)
        assert (config.num_layers, config.dropout) == (num_layers, transformer.dropout)


def test_the_lstm_is_as_large_as_the_transformer():
    law_as_large_as_the_transformer(recurrent_like)
    law_as_large_as_the_transformer(partial(recurrent_like, cell="gru"))
    with pytest.raises(AssertionError, match="RecurrentConfig"):
        law_as_large_as_the_transformer(lambda config, **changes: recurrent_like(ModelConfig(6000), **changes))
    with pytest.raises(AssertionError, match="RecurrentConfig"):  # the width of one layer for all
        law_as_large_as_the_transformer(
            lambda config, **changes: dataclasses.replace(recurrent_like(config, num_layers=1), **changes)
        )
    with pytest.raises(AssertionError, match="RecurrentConfig"):  # the width of the other cell
        law_as_large_as_the_transformer(
            lambda config, **changes: dataclasses.replace(recurrent_like(config, **changes), cell="gru")
        )


def test_no_other_width_is_closer_and_fields_can_be_changed():
    for transformer in (ModelConfig(30, d_model=12, num_heads=2, num_layers=1, d_ff=5), model_preset("mini", 500)):
        found = recurrent_like(transformer, dropout=0.25, num_layers=2)
        assert (found.dropout, found.num_layers, found.vocab_size) == (0.25, 2, transformer.vocab_size)
        for step in (-2, 2):
            other = dataclasses.replace(found, d_hidden=found.d_hidden + step)
            distances = [abs(each.num_parameters - transformer.num_parameters) for each in (found, other)]
            assert distances[0] <= distances[1]


# --- configuration ------------------------------------------------------------------------------


def test_a_configuration_is_plain_data():
    config = RecurrentConfig(100, dropout=0.2, num_layers=3)
    law_a_configuration_is_plain_data(config)
    assert on_paper(config).config is config
    with pytest.raises(ValueError, match=r"ModelConfig: unknown \['cell', 'd_hidden'\], missing"):
        ModelConfig.from_dict(config.to_dict())
    first_edition = {name: value for name, value in config.to_dict().items() if name != "cell"}
    assert RecurrentConfig.from_dict(first_edition) == config  # an LSTM, as there was no other


BAD_CONFIGS = {
    **{f"{name} must be at least 1, got 0": {name: 0} for name in ("d_model", "num_layers", "max_len")},
    **{f"d_hidden must be an even int, two directions share it, got {n}": {"d_hidden": n} for n in (9, 0, 8.0)},
    "cell must be one of lstm, gru, got 'rnn'": dict(cell="rnn"),
    r"dropout must be in \[0, 1\), got 1.0": dict(dropout=1.0),
    r"special ids must differ and lie in 0..12, got \(1, 1, 2, 3\)": dict(pad_id=1),
}


@pytest.mark.parametrize("message, change", BAD_CONFIGS.items(), ids=[str(change) for change in BAD_CONFIGS.values()])
def test_a_model_that_cannot_be_built_is_refused(message, change):
    with pytest.raises(ValueError, match=message):
        RecurrentConfig(**SMALL | change)


# --- weights ------------------------------------------------------------------------------------


def law_one_matrix(model):
    model(padded(SRC), padded(TGT)).sin().sum().backward()
    weights = [model.src_embedding.table.weight, model.tgt_embedding.table.weight, model.generator.weight]
    assert all(weight is weights[0] for weight in weights)


def test_embeddings_and_generator_are_one_matrix():
    law_one_matrix(model_of(CONFIGS["2 layers"]))
    other = AttentiveRNN(CONFIGS["2 layers"])
    load_weights(other, model_of(CONFIGS["2 layers"]).state_dict())
    tells_apart(law_one_matrix, other.double(), model_of(CONFIGS["2 layers"], CopiesTheMatrix))


def law_start(make, cell="lstm"):
    """Embedded tokens with variance 1, orthogonal recurrent gates, an open gate to the old state and no other bias."""
    torch.manual_seed(0)
    count = GATES[cell]
    model = make(RecurrentConfig(vocab_size=300, cell=cell, d_model=64, d_hidden=32, num_layers=2))
    assert 0.9 < (model.src_embedding.table.weight * math.sqrt(64)).var() < 1.1
    for name, parameter in model.named_parameters():
        gates = parameter.detach().chunk(count)
        if "weight_hh" in name:
            for gate in gates:
                torch.testing.assert_close(gate @ gate.T, torch.eye(len(gate)), rtol=0, atol=1e-5)
        elif "weight_ih" in name:
            bound = math.sqrt(6 / sum(gates[0].shape))
            assert all(0.9 < gate.abs().max().item() / bound <= 1.0 for gate in gates)
        elif "bias" in name:
            opened = torch.zeros_like(parameter)
            if "bias_ih" in name:
                opened.chunk(count)[1].fill_(1.0)
            assert torch.equal(parameter, opened), name


def test_how_a_new_model_starts():
    def torchs_default(config):
        model = AttentiveRNN(config)
        model.decoder.reset_parameters()
        return model

    def torchs_embedding(config):
        model = AttentiveRNN(config)
        nn.init.normal_(model.src_embedding.table.weight)
        return model

    for cell in CELLS:
        tells_apart(partial(law_start, cell=cell), AttentiveRNN, torchs_default, torchs_embedding)


@each_config
def test_dropout_in_training_only(config):
    model, inputs = model_of(config), (padded(SRC), padded(TGT))
    assert torch.equal(model(*inputs), model(*inputs))
    model.train()
    assert not torch.equal(model(*inputs), model(*inputs))


# --- the same calls as the Transformer's ---------------------------------------------------------


def small_model(seed, vocab_size, spread):
    """A random model in evaluation mode; a spread above 1 makes it surer of its predictions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = dict(d_model=16, d_hidden=16, num_layers=1 + seed % 2, dropout=0.0, max_len=24)
        config = RecurrentConfig(vocab_size, cell="gru" if seed % 4 == 3 else "lstm", **sizes)
        model = AttentiveRNN(config).eval()
        model.generator.weight = nn.Parameter(torch.randn(vocab_size, 16) * spread)
    return model


def in_another_order(cache, rows):
    cache.state = cache.state[:, rows.flip(0)]
    cache.cells = None if cache.cells is None else cache.cells[:, rows.flip(0)]


MIXED_ROWS = mock.patch.object(RecurrentCache, "select", in_another_order)
ATTENDS_TO_PADDING = mock.patch.object(recurrent, "padding_mask", decoding.all_may_be_attended)


@pytest.mark.parametrize(
    "law, mistakes",
    [
        (decoding.cached_equals_uncached, [MIXED_ROWS]),
        (decoding.batch_equals_one_by_one, [MIXED_ROWS, ATTENDS_TO_PADDING]),
        (decoding.log_prob_is_the_teacher_forced_one, [MIXED_ROWS]),
    ],
)
def test_greedy_laws_hold(law, mistakes):
    law = partial(law, models=[small_model(seed, 8, 0.8) for seed in range(8)])
    tells_apart(law, greedy, *(patched(greedy, mistake) for mistake in mistakes))


def test_a_wide_beam_finds_what_exhaustive_search_finds():
    law = partial(a_wide_beam_is_exhaustive, models=[small_model(seed, 7, 0.8) for seed in range(8)])
    tells_apart(law, beam_search, patched(beam_search, MIXED_ROWS))


PAIRS = reversal_pairs(1500, seed=1, shortest=2, longest=4)
TRAIN, VALID = BucketedBatches(PAIRS[:1400], 300), BucketedBatches(PAIRS[1400:], 300)
RUN = TrainConfig(epochs=8, batch_tokens=300, peak_lr=1e-2, warmup_steps=50, decay="linear", clip_norm=1.0)


def reversal_is_learned(make_model):
    """At least 95 % of sequences that it has not seen are reversed; `fit` keeps its history, `validate` its best."""
    torch.manual_seed(0)
    model = make_model(RecurrentConfig(12, d_model=32, d_hidden=64, dropout=0.0, max_len=16))
    untrained = validate(model, VALID)["valid_loss"]
    history = fit(model, TRAIN, RUN, valid=VALID)
    assert history.stopped == "finished" and not model.training
    found = greedy(model, pad([src for src, _ in VALID.pairs]))
    share = sum(each.ids == tgt for each, (_, tgt) in zip(found, VALID.pairs, strict=True)) / len(found)
    print(f"{share:.1%} reversed, loss {untrained:.2f} to {history.epochs[-1]['valid_loss']:.4f}")
    assert share >= 0.95


@pytest.mark.parametrize("cell", CELLS)
def test_reversing_a_sequence_is_learned(cell):
    reversal_is_learned(lambda config: AttentiveRNN(dataclasses.replace(config, cell=cell)))


class NeverSeesTheSource(AttentiveRNN):
    def encode(self, src):
        return torch.zeros_like(super().encode(src))


def test_reversing_is_not_learned_without_the_source():
    with pytest.raises(AssertionError):
        reversal_is_learned(NeverSeesTheSource)


class CountsItsCalls(AttentiveRNN):
    """Keeps something that no checkpoint holds."""

    calls = 0

    def encode(self, src):
        self.calls += 1
        return super().encode(src) / self.calls


def law_resumed_is_uninterrupted(folder, model_class):
    """Bit for bit, with dropout, killed in the second of two epochs."""
    batches, run = BucketedBatches(PAIRS[:100], 100), dataclasses.replace(RUN, epochs=2)

    def killed(model, history):
        if history.epochs and len(history.losses) > history.epochs[0]["step"]:
            raise SystemExit

    def new_model():
        torch.manual_seed(3)
        return model_class(dataclasses.replace(CONFIGS["2 layers"], max_len=24))

    whole, resumed = new_model(), new_model()
    fit(whole, batches, run)
    with pytest.raises(SystemExit):
        fit(new_model(), batches, run, folder=folder, on_step=killed)
    fit(resumed, batches, run, folder=folder)
    assert_same_weights(resumed, whole)


def test_a_resumed_training_is_the_uninterrupted_one(tmp_path):
    law_resumed_is_uninterrupted(tmp_path / "ours", AttentiveRNN)
    with pytest.raises(AssertionError, match="differs by"):
        law_resumed_is_uninterrupted(tmp_path / "wrong", CountsItsCalls)


def test_mixed_precision_trains_almost_as_float32(monkeypatch):
    # as in test_training: oneDNN's bfloat16 crashes on virtual machines without real AMX units
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    losses = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(0)
        model = AttentiveRNN(RecurrentConfig(12, d_model=16, d_hidden=32, dropout=0.0))
        run = dataclasses.replace(RUN, epochs=1, precision=precision)
        losses.append(fit(model, BucketedBatches(PAIRS[:200], 100), run).losses)
    assert losses[0] != losses[1] and losses[0] == pytest.approx(losses[1], rel=0.02)


def test_a_translator_translates_and_is_scored():
    tokenizer = Tokenizer.train([text for pair in toy_pairs() for text in pair], 80)
    torch.manual_seed(0)
    model = AttentiveRNN(RecurrentConfig(tokenizer.vocab_size, d_model=32, d_hidden=64, dropout=0.0, max_len=20))
    translator = Translator(model.eval(), tokenizer)
    batches = BucketedBatches(encode_pairs(tokenizer, toy_pairs()), 100)
    fit(model, batches, dataclasses.replace(RUN, epochs=10, batch_tokens=100))
    for beam_size in (1, 4):
        result = score(translator, toy_pairs()[::6], beam_size=beam_size)
        assert result.exact_match >= 0.9
        alone = [translator.translate(pair.src, beam_size=beam_size).text for pair in toy_pairs()[:30:6]]
        assert alone == result.outputs[:5]


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BAD_IDS.keys() - {"too long"}))
def test_bad_ids_are_refused_on_both_sides(name):
    interface.law_bad_ids_are_refused_on_both_sides(model_of(CONFIGS["1 layers"]), name)


def test_padding_before_a_token_is_refused():
    model, good = model_of(CONFIGS["1 layers"]), ids([5, 6, 2])
    for bad in (ids([0, 5, 2]), ids([5, 0, 2])):
        with pytest.raises(ValueError, match="src has padding before a token, it must stand behind them all"):
            model(bad, good)
        with pytest.raises(ValueError, match="tgt_in has padding before a token"):
            model(good, bad)


def test_memory_and_cache_of_other_sentences_are_refused():
    model = model_of(CONFIGS["2 layers"])
    src, tgt_in, cache = ids([5, 6, 2], [7, 2, 0]), ids([1, 4], [1, 5]), model.new_cache()
    memory = model.encode(src)
    for parts in ((tgt_in[:1], memory, src), (tgt_in, memory[:1], src), (tgt_in, memory[..., :6], src)):
        with pytest.raises(ValueError, match="src, memory and tgt_in must belong together, got"):
            model.decode(*parts)
    model.decode(tgt_in, memory, src, cache=cache)
    before = cache[0].state
    with pytest.raises(ValueError, match="the cache holds 2 sentences, tgt_in has 1"):
        model.decode(tgt_in[:1], memory[:1], src[:1], cache=cache)
    assert cache[0].state is before
