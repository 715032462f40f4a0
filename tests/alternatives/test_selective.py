"""The selective state space is its recurrence, in both forms, and what it keeps depends on the token."""

import math
from functools import partial

import torch
from torch import nn

from course_lib.alternatives import SelectiveMixing, SelectiveStateSpace
from tests.helpers.forms import detached_state, law_goes_on, law_two_forms_agree, one_late, scanned
from tests.helpers.laws import raised, tells_apart
from tests.helpers.parity import close, noise, scrambled


def naive(layer, x):
    """Sentence by sentence, head by head, token by token: the docstring's equations in loops."""
    y, width = torch.zeros_like(x), x.shape[-1] // layer.num_heads
    for row, sentence in enumerate(x):
        for head in range(layer.num_heads):
            state, decay = torch.zeros(layer.key_proj.out_features, width).to(x), math.exp(layer.log_decay[head])
            features = slice(head * width, (head + 1) * width)
            for place, token in enumerate(sentence):
                raw = (layer.step_proj.weight[head] @ token + layer.step_proj.bias[head]).item()
                step, value = math.log1p(math.exp(raw)), layer.value_proj(token)[features]
                state = math.exp(-step * decay) * state + step * torch.outer(layer.key_proj(token), value)
                y[row, place, features] = layer.query_proj(token) @ state + layer.skip[head] * value
    return y


def a_layer(d_model=6, d_state=4, num_heads=2):
    return scrambled(SelectiveStateSpace(d_model, d_state, num_heads), scale=0.5)


def law_is_the_recurrence(call):
    layer, x = a_layer(), noise(2, 9, 6)
    with torch.no_grad():
        close(call(layer, x), naive(layer, x))


class KeepsAll(SelectiveStateSpace):
    """Linear attention: nothing shrinks."""

    def projected(self, x):
        query, key, value, step, log_a = super().projected(x)
        return query, key, value, step, torch.zeros_like(log_a)


class NotSelective(SelectiveStateSpace):
    """The same step at every token."""

    def projected(self, x):
        query, key, value, step, log_a = super().projected(x)
        return query, key, value, step.mean(dim=1, keepdim=True).expand_as(step), log_a


def as_a(kind, form=SelectiveStateSpace.forward):
    def call(layer, x):
        other = kind(6, 4, 2)
        other.load_state_dict(layer.state_dict())
        return form(other, x)

    return call


def test_both_forms_are_the_recurrence(float64):
    for form in (SelectiveStateSpace.forward, scanned):
        tells_apart(law_is_the_recurrence, form, as_a(KeepsAll, form), as_a(NotSelective, form))
    tells_apart(law_is_the_recurrence, scanned, one_late)


def test_the_forms_agree_in_values_and_gradients(float64):
    tells_apart(partial(law_two_forms_agree, a_layer, 6), scanned, detached_state)


def test_a_scan_goes_on_from_its_state(float64):
    law_goes_on(a_layer(), 6)
    assert a_layer().scan(noise(2, 4, 6))[1].shape == (2, 2, 4, 3)


def law_a_token_can_be_skipped(layer):
    """With a step of 0 at a token, nothing is written and nothing is forgotten there."""
    with torch.no_grad():
        layer.step_proj.weight.zero_()
        layer.step_proj.weight[:, 0] = 100.0  # feature 0 tells whether a token counts
        layer.step_proj.bias.zero_()
    x = noise(1, 6, 6)
    x[..., 0] = 1.0
    x[0, 2:5, 0] = -1.0  # softplus(-100) is 0
    without = torch.cat([x[:, :2], x[:, 5:]], dim=1)
    close(layer(x)[:, -1], layer(without)[:, -1])


def test_a_token_can_be_skipped(float64):
    tells_apart(law_a_token_can_be_skipped, a_layer(), as_a_layer(NotSelective))


def as_a_layer(kind):
    layer = kind(6, 4, 2)
    layer.load_state_dict(a_layer().state_dict())
    return layer


def test_long_texts_neither_explode_nor_vanish():
    torch.manual_seed(0)
    layer = SelectiveStateSpace(32, 16)
    x = torch.randn(2, 2000, 32, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.isfinite().all() and x.grad.isfinite().all()
    with torch.no_grad():
        torch.testing.assert_close(y, layer.scan(x)[0], rtol=1e-3, atol=1e-4)


def law_nothing_fades(layer):
    """Attention with the scores as weights, causal and without softmax."""
    x = noise(2, 9, 6)
    scores = (layer.query_proj(x) @ layer.key_proj(x).transpose(1, 2)).tril()
    value = layer.value_proj(x)
    close(layer(x), scores @ value + layer.skip.repeat_interleave(3) * value)
    close(layer.scan(x)[0], layer(x))


def test_without_fading_it_is_linear_attention(float64):
    linear = scrambled(SelectiveStateSpace(6, 4, 2, fading=False))
    assert not {"log_decay", "step_proj.weight"} & set(linear.state_dict())
    tells_apart(law_nothing_fades, linear, a_layer())


def law_mixing_is_gelu_and_gates(forward):
    mixing, x = scrambled(SelectiveMixing(4, 3)), noise(2, 5, 4)
    values, gates = mixing.output_proj(nn.functional.gelu(mixing.from_left(x))).chunk(2, dim=-1)
    close(forward(mixing, x), values * torch.sigmoid(gates))


def test_mixing_is_gelu_and_gates(float64):
    without_gelu = lambda mixing, x: nn.functional.glu(mixing.output_proj(mixing.from_left(x)), dim=-1)  # noqa: E731
    tells_apart(law_mixing_is_gelu_and_gates, SelectiveMixing.forward, without_gelu)


def test_heads_must_divide_the_width():
    assert "got 4 and 6" in str(raised(ValueError, lambda: SelectiveStateSpace(6, 4)))
