"""The layers: equal to torch.nn's in both norm orders with the weights copied, and laws of their parts."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.blocks import (
    DecoderLayer,
    Dropout,
    EncoderLayer,
    FeedForward,
    LayerCache,
    LayerNorm,
    Residual,
    attend_memory,
    layer_norm,
)
from course_lib.masks import causal_mask, padding_mask
from tests.helpers.laws import tells_apart
from tests.helpers.parity import (
    assert_same_function,
    assert_same_module,
    close,
    noise,
    permutation,
    scrambled,
)

pytestmark = pytest.mark.usefixtures("float64")
SIZES = dict(d_model=12, num_heads=3, d_ff=20, dropout=0.1)
SRC = torch.tensor([[5, 6, 7, 8, 9, 4], [5, 6, 7, 0, 0, 0]])
TGT = torch.tensor([[1, 6, 7, 8], [1, 6, 0, 0]])
both_orders = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


# --- layer norm ---------------------------------------------------------------------------------


def parity_with_torchs_layer_norm(norm):
    for eps in (1e-5, 1e-1):
        assert_same_function(
            lambda x, scale, shift, eps=eps: norm(x, scale, shift, eps=eps),
            lambda x, scale, shift, eps=eps: F.layer_norm(x, (12,), scale, shift, eps),
            [3 + 2 * noise(2, 5, 12), noise(12, seed=1), noise(12, seed=2)],
        )


def unbiased(x, scale, shift, *, eps):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps) * scale + shift


def eps_outside_the_root(x, scale, shift, *, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + eps) * scale + shift


def over_the_tokens(x, scale, shift, *, eps):
    return (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, correction=0) + eps) * scale + shift


def test_layer_norm_is_torchs():
    parity_with_torchs_layer_norm(layer_norm)
    assert_same_module(LayerNorm(12), nn.LayerNorm(12), [3 + 2 * noise(2, 5, 12)])
    assert_same_module(LayerNorm(12, eps=1e-3), nn.LayerNorm(12, eps=1e-3), [noise(2, 5, 12)])


@pytest.mark.parametrize("wrong", [unbiased, eps_outside_the_root, over_the_tokens])
def test_parity_fails_for_another_normalization(wrong):
    with pytest.raises(AssertionError):
        parity_with_torchs_layer_norm(wrong)


def test_a_constant_token_stays_finite():
    x = torch.full((1, 2, 12), 7.0, requires_grad=True)
    out = layer_norm(x, torch.ones(12), torch.zeros(12))
    out.sum().backward()
    assert (out == 0).all() and x.grad.isfinite().all()


# --- feed-forward -------------------------------------------------------------------------------


def parity_with_torchs_feed_forward(ours):
    theirs = scrambled(nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 12)))
    names = ("up.weight", "up.bias", "down.weight", "down.bias")
    ours.load_state_dict(dict(zip(names, theirs.parameters(), strict=True)))
    assert_same_function(ours, theirs, [noise(2, 5, 12)])
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        close(mine.grad, other.grad, f"gradient of {name}")


class Gelu(FeedForward):
    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class MixesPositions(FeedForward):
    def forward(self, x):
        return super().forward(x.cumsum(dim=-2))


def law_positions_are_treated_alike(module):
    x, order = noise(2, 5, 12), permutation(5)
    close(module(x[:, order]), module(x)[:, order])
    for place in range(5):
        close(module(x[:, place]), module(x)[:, place])


def test_feed_forward_is_two_linear_layers_and_a_relu():
    tells_apart(parity_with_torchs_feed_forward, FeedForward(12, 20), Gelu(12, 20))


def test_feed_forward_is_two_convolutions_of_kernel_size_1():
    """Section 3.3's other description."""
    net, x = scrambled(FeedForward(12, 20)), noise(2, 5, 12)
    inner = F.conv1d(x.mT, net.up.weight[:, :, None], net.up.bias).relu()  # (batch, d_ff, length)
    outer = F.conv1d(inner, net.down.weight[:, :, None], net.down.bias)
    close(net(x), outer.mT)
    with pytest.raises(AssertionError):
        close(net(x), (outer + inner[:, :12]).mT)


def test_feed_forward_treats_positions_alike():
    tells_apart(law_positions_are_treated_alike, scrambled(FeedForward(12, 20)), scrambled(MixesPositions(12, 20)))


# --- layers -------------------------------------------------------------------------------------


def torchs(layer, norm_first):
    return layer(12, 3, dim_feedforward=20, dropout=0.1, norm_first=norm_first, batch_first=True)


def parity_with_torchs_encoder_layer(ours, norm_first):
    theirs = torchs(nn.TransformerEncoderLayer, norm_first)
    for mask in (padding_mask(SRC, 0), None):
        hidden = None if mask is None else ~mask[:, 0, 0]
        assert_same_module(
            ours,
            theirs,
            [noise(2, 6, 12)],
            call_ours=lambda x, mask=mask: ours(x, mask),
            call_theirs=lambda x, hidden=hidden: theirs(x, src_key_padding_mask=hidden),
        )


def parity_with_torchs_decoder_layer(ours, norm_first):
    theirs = torchs(nn.TransformerDecoderLayer, norm_first)
    tgt_mask, memory_mask = padding_mask(TGT, 0) & causal_mask(4), padding_mask(SRC, 0)
    assert_same_module(
        ours,
        theirs,
        [noise(2, 4, 12), noise(2, 6, 12, seed=1)],
        call_ours=lambda x, memory: ours(x, memory, tgt_mask, memory_mask),
        call_theirs=lambda x, memory: theirs(
            x,
            memory,
            tgt_mask=~causal_mask(4)[0, 0],
            tgt_key_padding_mask=TGT == 0,
            memory_key_padding_mask=SRC == 0,
        ),
    )


@both_orders
def test_encoder_layer_is_torchs(norm_first):
    parity_with_torchs_encoder_layer(EncoderLayer(**SIZES, norm_first=norm_first), norm_first)


@both_orders
def test_decoder_layer_is_torchs(norm_first):
    parity_with_torchs_decoder_layer(DecoderLayer(**SIZES, norm_first=norm_first), norm_first)


@both_orders
def test_parity_fails_for_the_other_norm_order(norm_first):
    with pytest.raises(AssertionError):
        parity_with_torchs_encoder_layer(EncoderLayer(**SIZES, norm_first=not norm_first), norm_first)
    with pytest.raises(AssertionError):
        parity_with_torchs_decoder_layer(DecoderLayer(**SIZES, norm_first=not norm_first), norm_first)


class MemoryFirst(DecoderLayer):
    """Encoder-decoder attention before the masked self-attention."""

    def forward(self, x, memory, tgt_mask=None, memory_mask=None, *, cache=None):
        x = self.cross_attn_path(x, lambda x: attend_memory(self.cross_attn, x, memory, memory_mask, cache))
        x = self.self_attn_path(x, lambda x: self._attend_self(x, tgt_mask, cache))
        return self.feed_forward_path(x, self.feed_forward)


class MasksForgotten(DecoderLayer):
    def forward(self, x, memory, tgt_mask=None, memory_mask=None, *, cache=None):
        return super().forward(x, memory, tgt_mask, None, cache=cache)


@pytest.mark.parametrize("wrong", [MemoryFirst, MasksForgotten])
def test_parity_fails_for_another_decoder_layer(wrong):
    with pytest.raises(AssertionError):
        parity_with_torchs_decoder_layer(wrong(**SIZES), False)


# --- residual path and cache --------------------------------------------------------------------


@both_orders
def test_the_path_around_a_sublayer_that_gives_nothing(norm_first):
    path, x = Residual(12, 0.0, norm_first), noise(2, 5, 12)
    close(path(x, torch.zeros_like).detach(), x if norm_first else F.layer_norm(x, (12,)))


@both_orders
def test_dropout_acts_on_the_sublayer_in_training_only(norm_first):
    torch.manual_seed(0)
    path, x = Residual(50, 0.5, norm_first), noise(4, 5, 50)
    path.norm = nn.Identity()
    added = path(x, torch.ones_like).detach() - x
    dropped = added.abs() < 1e-9
    assert 0.4 < dropped.double().mean() < 0.6
    close(added[~dropped], torch.full_like(added[~dropped], 2.0))  # the kept ones make up for the dropped
    close(path.eval()(x, torch.ones_like), x + 1)


def law_dropout_is_bernoullis(dropout_of):
    for p in (0.1, 0.5, 0.9):
        torch.manual_seed(0)
        x = noise(50, 40, 101).requires_grad_()  # 202,000 numbers, not a multiple of four
        out = dropout_of(p)(x)
        kept = out != 0
        within = 5 * math.sqrt(p * (1 - p) / x.numel())
        assert abs(kept.double().mean() - (1 - p)) < within
        both = kept.flatten()[1:] & kept.flatten()[:-1]  # neighbours know nothing of one another
        assert abs(both.double().mean() - (1 - p) ** 2) < 2 * within
        close(out[kept], (x / (1 - p))[kept])
        out.sum().backward()
        close(x.grad, kept / (1 - p))


def test_dropout_is_bernoullis():
    class Unscaled(Dropout):
        def forward(self, x):
            return super().forward(x) * (1 - self.p)

    class InPairs(Dropout):
        def forward(self, x):
            kept = (torch.rand(x.numel() // 2 + 1) >= self.p).repeat_interleave(2)[: x.numel()]
            return x * kept.view(x.shape) / (1 - self.p)

    class TheOtherWayRound(Dropout):
        def forward(self, x):
            return Dropout(1 - self.p)(x) * self.p / (1 - self.p)

    tells_apart(law_dropout_is_bernoullis, Dropout, Unscaled, InPairs, TheOtherWayRound)
    law_dropout_is_bernoullis(nn.Dropout)


def test_dropout_follows_the_seed_and_the_mode():
    x, dropout = noise(4, 9), Dropout(0.5)
    first, second = (torch.manual_seed(seed) and dropout(x) for seed in (3, 3))
    assert torch.equal(first, second) and not torch.equal(first, dropout(x))
    assert dropout.eval()(x) is x and Dropout(0)(x) is x and not Dropout(1)(x).any()
    assert dropout.train()(x.to("meta")).shape == x.shape and dropout(torch.ones(3, dtype=torch.bfloat16)).sum() >= 0
    assert repr(dropout) == repr(nn.Dropout(0.5))


def test_dropout_of_almost_all_drops_almost_all():
    for p in (1 - 1e-5, 1 - 1e-9):  # of 2¹⁶ steps one or none is left
        torch.manual_seed(0)
        assert (Dropout(p)(torch.ones(1000)) == 0).double().mean() > 0.99


def law_selected_rows_go_on_as_those_sentences(select):
    layer, x, memory = scrambled(DecoderLayer(**SIZES)), noise(3, 4, 12), noise(3, 6, 12, seed=1)
    rows, cache = torch.tensor([2, 0, 0, 1]), LayerCache()
    layer(x[:, :3], memory, causal_mask(3), cache=cache)
    select(cache, rows)
    step = layer(x[rows][:, 3:], memory[rows], causal_mask(4)[:, :, 3:], cache=cache)
    close(step, layer(x, memory, causal_mask(4))[rows][:, 3:])


def test_selected_cache_rows_go_on_as_those_sentences():
    def forgets_the_memory(cache, rows):
        cache.keys, cache.values = cache.keys[rows], cache.values[rows]
        cache.memory_keys, cache.memory_values = (t[[0, 1, 2, 2]] for t in (cache.memory_keys, cache.memory_values))

    tells_apart(law_selected_rows_go_on_as_those_sentences, LayerCache.select, forgets_the_memory)


@pytest.mark.parametrize("layer", [EncoderLayer, DecoderLayer])
def test_heads_must_divide_the_model(layer):
    with pytest.raises(ValueError, match="d_model must be divisible by num_heads"):
        layer(12, 5, 20, 0.1)


def test_inputs_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"expected \(batch, length, 12\), got \(2, 5, 8\)"):
        EncoderLayer(**SIZES, norm_first=False)(noise(2, 5, 8))
    with pytest.raises(ValueError, match=r"expected \(batch, length, 12\), got \(2, 6, 8\)"):
        DecoderLayer(**SIZES)(noise(2, 5, 12), noise(2, 6, 8))


def law_features_have_a_scale_and_a_shift_each(norm):
    """A scale of another width, or one for each token, is refused and never broadcast."""
    x, ones = noise(2, 5, 12), torch.ones(12, dtype=torch.float64)
    for shape in [(1,), (), (5, 1), (2, 5, 12), (6,)]:
        for scale, shift in ((ones.new_ones(shape), ones), (ones, ones.new_ones(shape))):
            with pytest.raises(ValueError, match=r"expected x \(..., d_model\), scale and shift \(d_model,\)"):
                norm(x, scale, shift)
                raise AssertionError(f"{shape} was broadcast")


def unchecked(x, scale, shift, *, eps=1e-5):
    centered = x - x.mean(dim=-1, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(dim=-1, keepdim=True) + eps) * scale + shift


def test_features_have_a_scale_and_a_shift_each():
    tells_apart(law_features_have_a_scale_and_a_shift_each, layer_norm, unchecked)


@pytest.mark.parametrize("eps", [-1.0, 1e31])
def test_a_norm_has_an_eps_from_0_on(eps):
    for norm in (partial(LayerNorm, 12), partial(layer_norm, noise(2, 12), torch.ones(12), torch.zeros(12))):
        with pytest.raises(ValueError, match="eps from 0 on"):
            norm(eps=eps)


@pytest.mark.parametrize("module", [LayerNorm(12), FeedForward(12, 20)])
def test_other_widths_and_dtypes_are_refused(module):
    with pytest.raises(ValueError, match=r"expected \(..., 12\), got \(2, 5, 8\)"):
        module(torch.randn(2, 5, 8))
    with pytest.raises(ValueError, match="expected torch.float32, got torch.float64"):
        module(torch.randn(2, 5, 12).double())
