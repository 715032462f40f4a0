"""What tests need to compare our modules with torch.nn's: the same weights, the same gradients, inverted masks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from course_lib.checks import in_our_names


@contextmanager
def double_precision() -> Iterator[None]:
    """New floating-point tensors and parameters are float64 inside the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers of the default dtype."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def scrambled(module: nn.Module, *, seed: int = 0, scale: float = 0.3) -> nn.Module:
    """The module in eval mode with every parameter random: biases of 0 and norms of 1 would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=0.1, std=scale, generator=generator)
    return module.eval()


def copy_weights(theirs: nn.Module, ours: nn.Module) -> nn.Module:
    """Ours with their weights, in eval mode; each parameter has exactly one counterpart."""
    ours.load_state_dict({name: tensor.clone() for name, tensor in in_our_names(theirs).items()}, strict=True)
    return ours.eval()


def close(ours: Tensor, theirs: Tensor, what: str = "output") -> None:
    """Asserts equality to float64's rounding."""
    assert ours.dtype == theirs.dtype == torch.float64, f"{what}: parity is measured in float64"
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12, msg=lambda text: f"{what}: {text}")


def assert_same_function(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], inputs: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """Asserts equal outputs and, for one random gradient of the output, equal gradients of every input.

    Where `ours` and `theirs` use modules, the gradients of their parameters are left in `.grad` for the caller.
    """
    results = []
    for function in (ours, theirs):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        output = function(*leaves)
        output.backward(noise(*output.shape, seed=99))
        results.append((output.detach(), [leaf.grad for leaf in leaves]))
    close(results[0][0], results[1][0])
    for index, (our_grad, their_grad) in enumerate(zip(results[0][1], results[1][1], strict=True)):
        assert their_grad.abs().max() > 1e-6, f"gradient of input {index} is all zero: this compares nothing"
        close(our_grad, their_grad, f"gradient of input {index}")
    return results[0][1], results[1][1]


def assert_same_module(
    ours: nn.Module,
    theirs: nn.Module,
    inputs: list[Tensor],
    *,
    call_ours: Callable[..., Tensor] | None = None,
    call_theirs: Callable[..., Tensor] | None = None,
) -> None:
    """Asserts that, their weights copied, outputs and the gradients of all inputs and parameters are equal.

    The calls default to the modules themselves; pass functions where masks or copies of an input are needed.
    """
    copy_weights(scrambled(theirs), ours)
    ours.zero_grad()
    theirs.zero_grad()
    assert_same_function(call_ours or ours, call_theirs or theirs, inputs)
    _same_gradients(ours, in_our_names(theirs, lambda parameter: parameter.grad))


def assert_same_logits(ours: nn.Module, theirs: nn.Module, call: Callable[[nn.Module], Tensor]) -> None:
    """Asserts that, their weights copied, the logits of a call and the gradients of all parameters are equal.

    Args:
        ours: a whole model.
        theirs: the same from parts of torch; has its own `in_our_names`.
        call: model to logits.
    """
    scrambled(theirs)
    ours.load_state_dict({name: tensor.clone() for name, tensor in theirs.in_our_names().items()}, strict=True)
    logits = [call(model) for model in (ours.eval(), theirs)]
    close(*logits, "logits")
    for each in logits:
        each.backward(noise(*each.shape))
    _same_gradients(ours, theirs.in_our_names(lambda parameter: parameter.grad))


def _same_gradients(ours: nn.Module, theirs: dict[str, Tensor]) -> None:
    for name, parameter in ours.named_parameters():
        close(parameter.grad, theirs[name], f"gradient of {name}")


def permutation(length: int) -> Tensor:
    """The odd places, then the even ones: another order than the sorted one, no mere shift and no reversal."""
    return torch.cat([torch.arange(1, length, 2), torch.arange(0, length, 2)])
