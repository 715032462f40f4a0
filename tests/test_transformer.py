"""The whole model: equal to torch's stacks; what may reach what; batches, padding and caches change nothing."""

import math

import pytest
import torch
from torch import nn

from course_lib import transformer
from course_lib.blocks import LayerCache
from course_lib.checks import in_our_names
from course_lib.config import ModelConfig
from course_lib.masks import causal_mask, padding_mask
from course_lib.position import ALiBi, Rotary
from course_lib.transformer import Decoder, Encoder, Transformer
from tests.helpers.interface import (
    BAD_IDS,
    SRC,
    TGT,
    ids,
    law_a_batch_is_its_sentences_one_by_one,
    law_bad_ids_are_refused_on_both_sides,
    law_cached_decoding_is_uncached,
    law_no_output_sees_the_future,
    law_padding_changes_nothing,
)
from tests.helpers.laws import tells_apart
from tests.helpers.parity import (
    assert_same_logits,
    assert_same_module,
    close,
    noise,
    permutation,
    scrambled,
)
from tests.helpers.tiny import padded

pytestmark = pytest.mark.usefixtures("float64")
SMALL = dict(vocab_size=13, d_model=12, num_heads=3, num_layers=2, d_ff=20, max_len=8)
CONFIGS = {
    "paper": ModelConfig(**SMALL),
    "pre-norm": ModelConfig(**SMALL, norm_first=True, position="learned"),
    "untied": ModelConfig(**SMALL, tie_weights=False),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
POSITIONS = CONFIGS | {name: ModelConfig(**SMALL, position=name) for name in ("alibi", "rotary", "none")}
each_position = pytest.mark.parametrize("config", POSITIONS.values(), ids=POSITIONS.keys())
def model_of(config, model_class=Transformer):
    return scrambled(model_class(config))


# --- parity -------------------------------------------------------------------------------------


def torchs_stacks(config):
    """torch's encoder and decoder; post-norm without the final norms that nn.Transformer adds."""
    sizes = dict(dim_feedforward=config.d_ff, norm_first=config.norm_first, batch_first=True)
    layers = [
        layer(config.d_model, config.num_heads, **sizes)
        for layer in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    ]
    norms = [nn.LayerNorm(config.d_model) if config.norm_first else None for _ in range(2)]
    return (
        nn.TransformerEncoder(layers[0], config.num_layers, norm=norms[0], enable_nested_tensor=False),
        nn.TransformerDecoder(layers[1], config.num_layers, norm=norms[1]),
    )


def parity_of_the_stacks(encoder, decoder, config):
    src, tgt_in, future = padded(SRC), padded(TGT), ~causal_mask(5)[0, 0]
    their_encoder, their_decoder = torchs_stacks(config)
    x, memory = noise(3, 5, 12), noise(3, 7, 12, seed=1)
    assert_same_module(
        encoder,
        their_encoder,
        [memory],
        call_ours=lambda x: encoder(x, padding_mask(src, 0)),
        call_theirs=lambda x: their_encoder(x, src_key_padding_mask=src == 0),
    )
    assert_same_module(
        decoder,
        their_decoder,
        [x, memory],
        call_ours=lambda *x: decoder(*x, padding_mask(tgt_in, 0) & causal_mask(5), padding_mask(src, 0)),
        call_theirs=lambda *x: their_decoder(
            *x, tgt_mask=future, tgt_key_padding_mask=tgt_in == 0, memory_key_padding_mask=src == 0
        ),
    )


class Theirs(nn.Module):
    """Figure 1 of the paper from torch's parts only."""

    def __init__(self, config):
        super().__init__()
        self.encoder, self.decoder = torchs_stacks(config)
        self.src_table = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        self.tgt_table, self.output = self.src_table, self.src_table
        if not config.tie_weights:
            self.tgt_table = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
            self.output = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        self.positions = None
        if config.position == "learned":
            self.positions = nn.ParameterList(torch.empty(config.max_len, config.d_model) for _ in range(2))

    def in_our_names(self, get=torch.Tensor.detach):
        named = {"src_embedding.table.weight": get(self.src_table), "tgt_embedding.table.weight": get(self.tgt_table)}
        named |= {"generator.weight": get(self.output)}
        if self.positions is not None:
            named |= {"src_embedding.position.table": get(self.positions[0])}
            named |= {"tgt_embedding.position.table": get(self.positions[1])}
        for part in ("encoder", "decoder"):
            named |= {f"{part}.{name}": of for name, of in in_our_names(getattr(self, part), get).items()}
        return named

    def embed(self, ids, table, side):
        length, d_model = ids.shape[1], table.shape[1]
        if self.positions is not None:
            return table[ids] * d_model**0.5 + self.positions[side][:length]
        encodings = [
            [(math.cos if i % 2 else math.sin)(pos / 10000 ** (i // 2 * 2 / d_model)) for i in range(d_model)]
            for pos in range(length)
        ]
        return table[ids] * d_model**0.5 + torch.tensor(encodings)

    def forward(self, src, tgt_in):
        memory = self.encoder(self.embed(src, self.src_table, 0), src_key_padding_mask=src == 0)
        hidden = self.decoder(
            self.embed(tgt_in, self.tgt_table, 1),
            memory,
            tgt_mask=~causal_mask(tgt_in.shape[1])[0, 0],
            tgt_key_padding_mask=tgt_in == 0,
            memory_key_padding_mask=src == 0,
        )
        return hidden @ self.output.T


def parity_of_the_model(ours, config):
    assert_same_logits(ours, Theirs(config), lambda model: model(padded(SRC), padded(TGT)))


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_both_stacks_are_torchs(norm_first):
    config = ModelConfig(**SMALL, norm_first=norm_first)
    parity_of_the_stacks(Encoder(config), Decoder(config), config)


@each_config
def test_the_model_is_torchs_stacks_put_together(config):
    parity_of_the_model(Transformer(config), config)


def test_parity_fails_for_another_model():
    config = CONFIGS["paper"]
    without_root = Transformer(config)
    without_root.src_embedding.table.embedding_dim = 1  # the factor √d_model forgotten
    extra_norm = Transformer(config)
    extra_norm.encoder.norm = nn.LayerNorm(12, elementwise_affine=False)  # nn.Transformer's, not the paper's
    for wrong in (without_root, extra_norm, EncodesPadding(config), ReadsPaddedMemory(config)):
        with pytest.raises(AssertionError, match="logits"):
            parity_of_the_model(wrong, config)
    encoder = Encoder(config)
    encoder.layers[1].self_attn_path.norm.eps = 1e-3
    with pytest.raises(AssertionError):
        parity_of_the_stacks(encoder, Decoder(config), config)


# --- no leak from the future --------------------------------------------------------------------


@each_position
def test_no_output_sees_the_future(config):
    law_no_output_sees_the_future(model_of(config))


@pytest.mark.parametrize("ahead", [1, 100], ids=["one ahead", "no mask"])
def test_a_mask_that_shows_the_future_breaks_the_law(monkeypatch, ahead):
    def wrong(length, *, device=None):
        return torch.ones(1, 1, length, length, dtype=torch.bool).tril(ahead)

    monkeypatch.setattr(transformer, "causal_mask", wrong)
    with pytest.raises(AssertionError, match="sees the future"):
        law_no_output_sees_the_future(model_of(CONFIGS["paper"]))


# --- padding and batches ------------------------------------------------------------------------


class EncodesPadding(Transformer):
    def encode(self, src):
        return self.encoder(self.src_embedding(src), None)


class ReadsPaddedMemory(Transformer):
    def decode(self, tgt_in, memory, src, *, cache=None):
        return self.decoder(self.tgt_embedding(tgt_in), memory, causal_mask(tgt_in.shape[1]), None)


class CountsFromTheRight(Transformer):
    def encode(self, src):
        x = self.src_embedding.table(src) * math.sqrt(self.config.d_model)
        x = self.src_embedding.position(x.flip(1)).flip(1)
        return self.encoder(x, padding_mask(src, 0))


class PositionByBatch(Transformer):
    """The positional table sliced by the batch index."""

    def encode(self, src):
        x = self.src_embedding.table(src) * math.sqrt(self.config.d_model)
        return self.encoder(x + self.src_embedding.position.table[: len(src), None], padding_mask(src, 0))


class NormalizedOverTheBatch(Transformer):
    def encode(self, src):
        memory = super().encode(src)
        return memory - memory.mean(dim=0, keepdim=True)


WRONG = {
    law_padding_changes_nothing: [EncodesPadding, ReadsPaddedMemory, CountsFromTheRight, PositionByBatch],
    law_a_batch_is_its_sentences_one_by_one: [PositionByBatch, NormalizedOverTheBatch],
}


@each_position
@pytest.mark.parametrize("law", WRONG)
def test_neither_padding_nor_company_counts(law, config):
    law(model_of(config))


@pytest.mark.parametrize("law", WRONG)
def test_where_padding_or_company_counts_the_laws_are_broken(law):
    paper = CONFIGS["paper"]
    tells_apart(law, model_of(paper), *(model_of(paper, wrong) for wrong in WRONG[law]), match="row")


# --- the cache ----------------------------------------------------------------------------------


@each_position
def test_cached_decoding_is_uncached(config):
    law_cached_decoding_is_uncached(model_of(config))


def test_a_cache_that_forgets_breaks_the_law(monkeypatch):
    append = LayerCache.append

    def forgets_values(self, keys, values):
        keys, all_values = append(self, keys, values)
        return keys, all_values.roll(1, dims=2)

    monkeypatch.setattr(LayerCache, "append", forgets_values)
    with pytest.raises(AssertionError, match="in pieces"):
        law_cached_decoding_is_uncached(model_of(CONFIGS["paper"]))


def test_a_cached_position_that_starts_again_breaks_the_law():
    model = model_of(CONFIGS["paper"])
    position = model.tgt_embedding.position.forward
    model.tgt_embedding.position.forward = lambda x, *, start=0: position(x)
    with pytest.raises(AssertionError, match="in pieces"):
        law_cached_decoding_is_uncached(model)


def test_relative_positions_that_start_again_break_the_law(monkeypatch):
    bias = ALiBi.bias
    monkeypatch.setattr(ALiBi, "bias", lambda self, queries, keys: bias(self, keys, keys)[:, :queries])
    monkeypatch.setattr(Rotary, "forward", lambda self, query, keys: (self.rotate(query), self.rotate(keys), None))
    for name in ("alibi", "rotary"):
        with pytest.raises(AssertionError, match="in pieces"):
            law_cached_decoding_is_uncached(model_of(POSITIONS[name]))


def test_a_cached_step_too_many_is_refused_and_leaves_the_cache_as_it_was():
    model = model_of(CONFIGS["paper"])
    src, cache = torch.tensor([[5, 2]]), model.new_cache()
    memory = model.encode(src)
    model.decode(torch.full((1, 8), 5), memory, src, cache=cache)
    with pytest.raises(ValueError, match="the sentence has 9 tokens, the model has positions for 8"):
        model.decode(torch.tensor([[5]]), memory, src, cache=cache)
    assert all(part.keys.shape[2] == part.values.shape[2] == 8 for part in cache)


# --- order of the tokens ------------------------------------------------------------------------


def law_equivariant(encode):
    """encode(shuffled tokens) = shuffled encode(tokens)."""
    x, order = noise(2, 6, 12), permutation(6)
    close(encode(x[:, order]), encode(x)[:, order])


def test_the_encoder_without_positions_is_equivariant_and_with_positions_or_a_causal_mask_is_not():
    for norm_first in (False, True):
        encoder = scrambled(Encoder(ModelConfig(**SMALL, norm_first=norm_first)))
        law_equivariant(encoder)
        positions = {name: Transformer(config).src_embedding.position for name, config in CONFIGS.items()}
        for position in positions.values():
            with pytest.raises(AssertionError):
                law_equivariant(lambda x, position=position, encoder=encoder: encoder(position(x)))
        with pytest.raises(AssertionError):
            law_equivariant(lambda x, encoder=encoder: encoder(x, causal_mask(6)))


def test_each_way_to_tell_positions_breaks_the_equivariance_and_none_keeps_it():
    for name, config in POSITIONS.items():
        model = model_of(config)
        shuffled, ids = permutation(6), padded(SRC)[:1, :6]
        encoded, of_shuffled = model.encode(ids), model.encode(ids[:, shuffled])
        assert torch.allclose(of_shuffled, encoded[:, shuffled], rtol=1e-9) == (name == "none"), name


def law_embedded_tokens_are_scaled_rows(config, scale):
    embedding, ids = model_of(config).src_embedding, padded(SRC)
    close(embedding(ids), embedding.table.weight[ids] * scale)


def test_where_no_position_is_added_embedded_tokens_are_scaled_rows():
    for name in ("alibi", "rotary", "none"):
        law_embedded_tokens_are_scaled_rows(POSITIONS[name], math.sqrt(12))
        with pytest.raises(AssertionError):
            law_embedded_tokens_are_scaled_rows(POSITIONS[name], 1)
    with pytest.raises(AssertionError):
        law_embedded_tokens_are_scaled_rows(POSITIONS["paper"], math.sqrt(12))


# --- weight tying and initialization ------------------------------------------------------------


def law_one_matrix_and_its_gradients_add(make):
    """The tied gradient is the sum of the three that an untied model with the same numbers has."""
    tied, untied = make(CONFIGS["paper"]), model_of(CONFIGS["untied"])
    untied.load_state_dict(tied.state_dict())
    for model in (tied, untied):
        model(padded(SRC), padded(TGT)).sin().sum().backward()
    shared = [tied.src_embedding.table.weight, tied.tgt_embedding.table.weight, tied.generator.weight]
    assert all(weight is shared[0] for weight in shared)
    parts = [untied.src_embedding.table.weight, untied.tgt_embedding.table.weight, untied.generator.weight]
    assert all(part.grad.abs().max() > 1e-3 for part in parts)
    close(shared[0].grad, sum(part.grad for part in parts), "gradient")


class CopiesTheMatrix(Transformer):
    """Equal numbers at the start, but three matrices."""

    def __init__(self, config):
        super().__init__(config)
        self.generator.weight = nn.Parameter(self.generator.weight.detach().clone())


def test_tied_weights_are_one_matrix_and_their_gradients_add():
    tells_apart(law_one_matrix_and_its_gradients_add, model_of, lambda config: model_of(config, CopiesTheMatrix))


def test_weights_stay_tied_after_loading_and_casting():
    model = model_of(CONFIGS["paper"])
    other = Transformer(CONFIGS["paper"])
    other.load_state_dict(model.state_dict())
    other.float().double()
    assert other.generator.weight is other.src_embedding.table.weight is other.tgt_embedding.table.weight


def law_starts_at_variance_1_without_biases(make):
    for norm_first in (False, True):
        torch.manual_seed(0)
        sizes = dict(vocab_size=300, d_model=64, num_heads=4, num_layers=2, d_ff=128)
        model = make(ModelConfig(**sizes, norm_first=norm_first))
        assert all((of == 0).all() for name, of in model.named_parameters() if name.endswith("bias"))
        query = model.encoder.layers[0].self_attn.query_proj.weight
        assert 0.9 < query.abs().max().item() / math.sqrt(6 / (64 + 64)) <= 1.0  # Xavier's bound
        ids = torch.randint(4, 300, (4, 30))
        embedded = model.src_embedding.table(ids) * math.sqrt(64)
        for numbers in (embedded, model.eval()(ids, ids)):
            assert 0.8 < numbers.var().item() < 1.25


def test_a_new_model_starts_with_variance_1_and_without_biases():
    law_starts_at_variance_1_without_biases(Transformer)

    def torchs_default(config):  # N(0, 1), then times √d_model
        model = Transformer(config)
        nn.init.normal_(model.src_embedding.table.weight)
        return model

    def torchs_biases(config):
        model = Transformer(config)
        model.decoder.layers[0].cross_attn.value_proj.reset_parameters()
        return model

    for wrong in (torchs_default, torchs_biases):
        with pytest.raises(AssertionError):
            law_starts_at_variance_1_without_biases(wrong)


def test_dropout_in_training_only():
    model = model_of(CONFIGS["paper"])
    inputs = padded(SRC), padded(TGT)
    assert torch.equal(model(*inputs), model(*inputs))
    model.train()
    assert not torch.equal(model(*inputs), model(*inputs))


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_IDS)
def test_bad_ids_are_refused_on_both_sides(name):
    law_bad_ids_are_refused_on_both_sides(model_of(CONFIGS["paper"]), name)


def test_a_target_that_starts_with_padding_is_refused():
    with pytest.raises(ValueError, match="a query has nothing to attend to"):
        model_of(CONFIGS["paper"])(ids([5, 2]), ids([0, 1]))


def test_memory_of_another_source_is_refused():
    model = model_of(CONFIGS["paper"])
    src, tgt_in = ids([5, 6, 2], [7, 2, 0]), ids([1, 4], [1, 5])
    memory = model.encode(src)
    for parts in ((tgt_in[:1], memory, src), (tgt_in, memory[:1], src), (tgt_in, memory, src[:, :2])):
        with pytest.raises(ValueError, match="src, memory and tgt_in must belong together, got"):
            model.decode(*parts)
    with pytest.raises(ValueError, match=r"expected \(batch, length, 12\), got \(2, 3, 6\)"):
        model.decode(tgt_in, memory[..., :6], src)
    with pytest.raises(ValueError, match="an empty sentence"):
        model.decode(tgt_in, memory, torch.zeros_like(src))


def test_a_cache_of_other_sentences_is_refused():
    model = model_of(CONFIGS["paper"])
    src, cache = ids([5, 2], [4, 2]), model.new_cache()
    model.decode(ids([1], [1]), model.encode(src), src, cache=cache)
    longer = ids([5, 6, 2], [4, 3, 2])
    with pytest.raises(ValueError, match="keys in full; got"):
        model.decode(ids([4], [4]), model.encode(longer), longer, cache=cache)
    three = ids([5, 2], [4, 2], [3, 2])
    with pytest.raises(ValueError, match="3.*2|2.*3"):
        model.decode(ids([4], [4], [4]), model.encode(three), three, cache=cache)
