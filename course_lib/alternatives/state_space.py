"""The diagonal state-space layer: a recurrence without a nonlinearity, which is a long convolution as well."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.alternatives.shared import reordered

STEPS = (0.005, 0.2)  # shortest and longest at the start: memories of 10 to 400 tokens


class DiagonalStateSpace(nn.Module):
    """Filters each feature by itself: its d_state complex numbers turn and shrink with each token, and are summed.

        state[t] = a · state[t - 1] + x[t]        y[t] = 2 Re(w · state[t]) + skip · x[t]

    with a = exp(step · (-decay + i · frequency)), so that |a| < 1, and w = output · √(1 - |a|²), which keeps y about as
    large as x. As nothing between the tokens is nonlinear, y is a convolution of x, too, with the kernel 2 Re(Σ w aˡ).

    Args:
        d_model: features.
        d_state: complex numbers for each feature.

    Paper: Gu et al. 2022, "On the parameterization and initialization of diagonal state space models" (S4D-Lin); the
    root is that of Orvieto et al. 2023, "Resurrecting recurrent neural networks for long sequences".
    """

    def __init__(self, d_model: int, d_state: int):
        super().__init__()
        low, high = (math.log(step) for step in STEPS)
        self.log_step = nn.Parameter(torch.rand(d_model, 1) * (high - low) + low)
        self.log_decay = nn.Parameter(torch.full((d_model, d_state), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(d_state).to(self.log_step).repeat(d_model, 1))
        self.output = nn.Parameter(torch.randn(d_model, d_state, 2) * 0.5 * d_state**-0.5)  # real and imaginary part
        self.skip = nn.Parameter(torch.randn(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, length, d_model) to y of that shape, by the convolution, through the Fourier transform."""
        length = x.shape[1]
        size = 2 * length  # zeros behind, so that nothing comes round
        spectrum = torch.fft.rfft(_wide(x), n=size, dim=1) * torch.fft.rfft(self.kernel(length), n=size, dim=0)
        return (torch.fft.irfft(spectrum, n=size, dim=1)[:, :length] + self.skip * x).to(x.dtype)

    def scan(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The same by the recurrence, one token after another.

        Args:
            x: (batch, length, d_model).
            state: (batch, d_model, d_state) complex, after the tokens before x; zeros before the first.

        Returns:
            y as x, and the newest state.
        """
        turns, weights = self._discrete()
        turn, outputs = turns.exp(), []  # (d_model, d_state)
        state = torch.zeros((), dtype=turn.dtype, device=x.device) if state is None else state
        for token in x.unbind(dim=1):  # (batch, d_model)
            state = turn * state + token[:, :, None]
            outputs.append(2 * (weights * state).sum(dim=-1).real)
        return (torch.stack(outputs, dim=1) + self.skip * x).to(x.dtype), state

    def kernel(self, length: int) -> Tensor:
        """What a token adds to the outputs 0, 1, … length - 1 tokens later, (length, d_model); without the skip."""
        turns, weights = self._discrete()
        later = torch.arange(length, device=turns.device)
        powers = (turns[:, :, None] * later).exp()  # (d_model, d_state, length)
        return 2 * torch.einsum("ds,dsl->ld", weights, powers).real

    def _discrete(self) -> tuple[Tensor, Tensor]:
        """log a, and w; (d_model, d_state) complex each."""
        step, decay, output = _wide(self.log_step).exp(), _wide(self.log_decay).exp(), _wide(self.output)
        size = (-torch.expm1(-2 * step * decay)).sqrt()  # 1 - |a|², without a difference of almost equal numbers
        return torch.complex(-step * decay, step * self.frequency), torch.view_as_complex(output) * size


def _wide(x: Tensor) -> Tensor:
    """In float32 at least: of half precision torch has no complex numbers."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def gated(y: Tensor, output_proj: nn.Linear) -> Tensor:
    """The features of each token: GELU, a projection to values and gates, values · sigmoid(gates)."""
    return F.glu(output_proj(F.gelu(y)), dim=-1)


class StateSpaceMixing(nn.Module):
    """What stands where self-attention stood: state spaces from one end or both, and a gated mixing of the features.

    Args:
        d_model: width of input and output.
        d_state: as in DiagonalStateSpace.
        both_ways: read from the right, too, as an encoder may.

    Paper: the gated output is that of Gu et al. 2022, section 5 and appendix.
    """

    def __init__(self, d_model: int, d_state: int, *, both_ways: bool):
        super().__init__()
        self.from_left = DiagonalStateSpace(d_model, d_state)
        self.from_right = DiagonalStateSpace(d_model, d_state) if both_ways else None
        self.output_proj = nn.Linear(d_model, 2 * d_model)

    def forward(self, x: Tensor, order: Tensor | None = None) -> Tensor:
        """x (batch, length, d_model) to such a tensor; `order` is the tokens' backward_order, for both ways."""
        y = self.from_left(x)
        if self.from_right is not None:
            y = y + reordered(self.from_right(reordered(x, order)), order)
        return self.mix(y)

    def mix(self, y: Tensor) -> Tensor:
        """The features of each token, see `gated`."""
        return gated(y, self.output_proj)
