"""The new layers are what their papers' equations say, token by token: gated convolutions, and diagonal states."""

import cmath
import math
from functools import partial

import pytest
import torch
from torch import nn

from course_lib.alternatives import ConvolutionalConfig, ConvolutionalModel, DiagonalStateSpace, GatedConvolution
from course_lib.alternatives.shared import backward_order
from course_lib.alternatives.state_space import STEPS, StateSpaceMixing
from tests.helpers.forms import detached_state, law_goes_on, law_two_forms_agree, one_late, scanned
from tests.helpers.interface import SRC, TGT
from tests.helpers.laws import tells_apart
from tests.helpers.parity import close, noise, scrambled
from tests.helpers.tiny import padded

# --- convolution --------------------------------------------------------------------------------


def by_hand(layer, x, causal):
    """Gehring's equation in loops: a window of tokens, one matrix, values times sigmoid(gates)."""
    weight, bias = layer.convolution.weight, layer.convolution.bias  # (2 d_hidden, d_hidden, kernel_width)
    width, rows = weight.shape[-1], []
    first = -(width - 1) if causal else -(width // 2)
    for sentence in x:
        outputs = []
        for place in range(len(sentence)):
            both = bias.clone()
            for tap in range(width):
                seen = place + first + tap
                if 0 <= seen < len(sentence):
                    both = both + weight[:, :, tap] @ sentence[seen]
            values, gates = both.chunk(2)
            outputs.append(values * torch.sigmoid(gates))
        rows.append(torch.stack(outputs))
    return torch.stack(rows)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_gated_convolution_is_the_equation(float64, causal, width):
    layer, x = scrambled(GatedConvolution(6, width, causal=causal)), noise(2, 7, 6)
    close(layer(x), by_hand(layer, x, causal))
    if width > 1:
        with pytest.raises(AssertionError):
            close(layer(x), by_hand(layer, x, not causal))


def law_sees_so_far(layers, far):
    """The last output of a stack of causal convolutions depends on the inputs up to `far` tokens back, and no other."""
    x = noise(1, 20, 6).requires_grad_()
    y = x
    for layer in layers:
        y = layer(y)
    (gradient,) = torch.autograd.grad(y[0, -1].sum(), x)
    seen = (gradient[0].abs().amax(dim=-1) > 0).tolist()
    assert seen == [place >= 19 - far for place in range(20)]


def test_a_stack_sees_layers_times_width_less_one(float64):
    for width, number in ((3, 1), (3, 4), (5, 3)):
        stack = [scrambled(GatedConvolution(6, width, causal=True)) for _ in range(number)]
        law_sees_so_far(stack, number * (width - 1))
        with pytest.raises(AssertionError):
            law_sees_so_far(stack, number * width)


def naive_model(model, src, tgt_in):
    """The logits of one sentence pair without padding, from Gehring's equations."""
    half, config, d_model = 0.5**0.5, model.config, model.config.d_model
    table, logits = model.src_embedding.table.weight, []

    def embedded(ids, positions):
        return table[ids] * math.sqrt(d_model) + positions[: len(ids)]

    source = embedded(src, model.src_embedding.position.table)
    x = model.encoder_in(source)
    for layer in model.encoder:
        x = (x + by_hand(layer, x[None], False)[0]) * half
    keys = model.encoder_out(x)
    values = (keys + source) * half
    target = embedded(tgt_in, model.tgt_embedding.position.table)
    x = model.decoder_in(target)
    for layer, attend in zip(model.decoder, model.attentions, strict=True):
        seen, context = by_hand(layer, x[None], True)[0], []
        for state, token in zip(seen, target, strict=True):
            query = (attend.query_proj(state) + token) * half
            scores = torch.stack([query @ key / math.sqrt(d_model) for key in keys])
            context.append(sum(weight * each for weight, each in zip(scores.softmax(0), values, strict=True)))
        seen = (seen + attend.output_proj(torch.stack(context))) * half
        x = (x + seen) * half
    logits = model.decoder_out(x) @ table.T
    assert config.num_layers == len(model.decoder)
    return logits


class WithoutTheToken(ConvolutionalModel):
    """Values without the source's embedded tokens."""

    def encode(self, src):
        keys = super().encode(src).chunk(2, dim=-1)[0]
        return torch.cat([keys, keys], dim=-1)


class OnlyTheLastLooks(ConvolutionalModel):
    """One attention for the whole decoder, as a recurrent model has."""

    def __init__(self, config):
        super().__init__(config)
        for attend in self.attentions[:-1]:
            attend.forward = lambda x, embedded, memory, mask: torch.zeros_like(x)


def law_the_model_is_its_equations(kind):
    model = scrambled(kind(ConvolutionalConfig(13, d_model=8, d_hidden=6, num_layers=2, dropout=0.3, max_len=8)))
    logits = model(padded(SRC), padded(TGT))
    for row, (src, tgt_in) in enumerate(zip(SRC, TGT, strict=True)):
        close(logits[row, : len(tgt_in)], naive_model(model, torch.tensor(src), torch.tensor(tgt_in)), f"row {row}")


def test_the_convolutional_model_is_its_equations(float64):
    tells_apart(law_the_model_is_its_equations, ConvolutionalModel, WithoutTheToken, OnlyTheLastLooks, match="row")


# --- state space --------------------------------------------------------------------------------


def naive_state_space(layer, x):
    """Each feature by itself in Python's complex numbers: the recurrence of the docstring."""
    batch, length, d_model = x.shape
    y = torch.empty_like(x)
    for row in range(batch):
        for feature in range(d_model):
            step = math.exp(layer.log_step[feature].item())
            state = [0j] * layer.frequency.shape[1]
            for place in range(length):
                total = 0j
                for index in range(len(state)):
                    decay = math.exp(layer.log_decay[feature, index].item())
                    rate = complex(-decay, layer.frequency[feature, index].item())
                    turn = cmath.exp(rate * step)
                    weight = complex(*layer.output[feature, index].tolist()) * math.sqrt(1 - abs(turn) ** 2)
                    state[index] = turn * state[index] + x[row, place, feature].item()
                    total += weight * state[index]
                y[row, place, feature] = 2 * total.real + layer.skip[feature].item() * x[row, place, feature].item()
    return y


def a_layer(d_model=3, d_state=4):
    return scrambled(DiagonalStateSpace(d_model, d_state), scale=0.5)


def law_is_the_recurrence(call):
    layer, x = a_layer(), noise(2, 9, 3)
    close(call(layer, x), naive_state_space(layer, x))


def comes_round(layer, x):
    spectrum = torch.fft.rfft(x, dim=1) * torch.fft.rfft(layer.kernel(x.shape[1]), dim=0)
    return torch.fft.irfft(spectrum, n=x.shape[1], dim=1) + layer.skip * x


def without_the_skip(layer, x):
    return layer(x) - layer.skip * x


def test_scan_and_convolution_are_the_recurrence(float64):
    tells_apart(law_is_the_recurrence, DiagonalStateSpace.forward, comes_round, without_the_skip)
    tells_apart(law_is_the_recurrence, scanned, one_late)


def test_scan_and_convolution_agree_in_values_and_gradients(float64):
    law = partial(law_two_forms_agree, lambda: a_layer(5, 6), 5)
    tells_apart(law, scanned, detached_state, one_late)


def test_a_scan_goes_on_from_its_state(float64):
    law_goes_on(a_layer(), 3)


def test_a_new_layer_remembers_between_10_and_400_tokens():
    torch.manual_seed(0)
    layer = DiagonalStateSpace(200, 8)
    turn = layer._discrete()[0].exp()
    assert (turn.abs() < 1).all()  # it never explodes
    memory = -1 / turn.abs().log()[:, 0]  # tokens after which 1/e is left
    low, high = (1 / (0.5 * step) for step in reversed(STEPS))
    assert low <= memory.min() < 1.2 * low and 0.8 * high < memory.max() <= high
    torch.testing.assert_close(layer.frequency[7], math.pi * torch.arange(8.0))
    sizes = layer(torch.randn(8, 2000, 200))[:, 1000:]
    assert 0.5 < (sizes.std() / (1 + layer.skip.square().mean()).sqrt()) < 2  # as large as its two parts together


def law_both_ways_is_two_layers(forward):
    """Each sentence alone: from the left, and turned round from the right."""
    mixing = scrambled(StateSpaceMixing(3, 4, both_ways=True))
    x, real = noise(3, 7, 3), padded(SRC) != 0
    together = forward(mixing, x, real)
    for row, length in enumerate(real.sum(dim=1).tolist()):
        own = x[row : row + 1, :length]
        y = mixing.from_left(own) + mixing.from_right(own.flip(1)).flip(1)
        values, gates = mixing.output_proj(nn.functional.gelu(y)).chunk(2, dim=-1)
        close(together[row, :length], (values * torch.sigmoid(gates))[0])


def test_an_encoder_reads_from_both_ends(float64):
    tells_apart(
        law_both_ways_is_two_layers,
        lambda mixing, x, real: mixing(x, backward_order(real)),
        lambda mixing, x, real: mixing(x, backward_order(torch.ones_like(real))),
        lambda mixing, x, real: mixing.mix(mixing.from_left(x)),
    )
