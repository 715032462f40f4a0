"""Laws of a layer with two forms: all tokens at once, and a scan that carries a state from token to token."""

import pytest
import torch

from tests.helpers.parity import close, noise


def law_two_forms_agree(make, width, call):
    """Outputs, and gradients of the input and of all parameters, at odd and even lengths."""
    for length in (1, 2, 13, 64):
        results = []
        for form in (type(make()).forward, call):
            layer, x = make(), noise(2, length, width).requires_grad_()
            y = form(layer, x)
            y.backward(noise(*y.shape, seed=9))
            results.append([y.detach(), x.grad, *(parameter.grad for parameter in layer.parameters())])
        for ours, theirs in zip(*results, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-9)


def law_goes_on(layer, width):
    """A scan from the state of an earlier one is one scan, and from no state it is not."""
    x = noise(2, 9, width)
    first, state = layer.scan(x[:, :4])
    rest, _ = layer.scan(x[:, 4:], state)
    close(torch.cat([first, rest], dim=1), layer.scan(x)[0])
    with pytest.raises(AssertionError):
        close(torch.cat([first, layer.scan(x[:, 4:])[0]], dim=1), layer.scan(x)[0])


def scanned(layer, x):
    return layer.scan(x)[0]


def detached_state(layer, x):
    """The right numbers, but no gradient passes from token to token."""
    outputs, state = [], None
    for token in x.split(1, dim=1):
        y, state = layer.scan(token, state)
        outputs.append(y)
        state = state.detach()
    return torch.cat(outputs, dim=1)


def one_late(layer, x):
    return layer.scan(x.roll(1, dims=1))[0]
