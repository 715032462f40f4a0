"""The depth and norm explorer: how a gradient fares on its way down a deep stack."""

from collections.abc import Callable

import traitlets as t
from torch import Tensor

from course_lib.figures import CourseFigure, curves
from course_lib.widgets.base import CourseWidget, short

MAX_DEPTH = 48
NORMS = {"": "no norm", "post": "post-norm", "pre": "pre-norm"}
Probe = Callable[[int, bool, str, int], tuple[list[Tensor], list[Tensor]]]


class DepthExplorer(CourseWidget):
    """Shows norms of gradients and sizes of vectors at every depth of a stack, for any depth and way of building it.

    Args:
        probe: (num_layers, residual, norm, seed) to the vectors at every depth, from the embedding up, and the
            gradients that reach them; norm is "", "post" or "pre".
        depth: layers to begin with.

    Raises:
        ValueError: if depth is outside 1..48.
    """

    depth = t.Int(24).tag(sync=True)
    residual = t.Bool(True).tag(sync=True)
    norm = t.Enum(list(NORMS), "pre").tag(sync=True)
    seed = t.Int(0).tag(sync=True)
    view = t.Dict().tag(sync=True)  # name; norms of gradients and sizes of vectors, from the embedding up

    def __init__(self, probe: Probe, *, depth: int = 24):
        if not 1 <= depth <= MAX_DEPTH:
            raise ValueError(f"depth must be in 1..{MAX_DEPTH}, got {depth}")
        self._probe, self._known = probe, {}
        super().__init__(depth=depth)
        self._compute()
        self.observe(lambda _: self._compute(), ["depth", "residual", "norm", "seed"])

    def _compute(self) -> None:
        key = self.depth, self.residual, self.norm, self.seed
        if key not in self._known:
            vectors, gradients = self._probe(*key)
            residual = "residual" if self.residual else "no residual"
            self._known[key] = {
                "name": f"{self.depth} layers, {residual}, {NORMS[self.norm]}, seed {self.seed}",
                "gradients": [each.norm().item() for each in gradients],
                "sizes": [each.std().item() for each in vectors],
            }
        self.view = self._known[key]

    def picture(self) -> CourseFigure:
        """The gradients of the present stack."""
        norms = self.view["gradients"]
        ratio = short(norms[0] / norms[-1])
        title = f"{self.view['name']}: the gradient at the bottom is {ratio} times the one at the top"
        series = {"gradient": (range(len(norms)), norms)}
        return curves(series, xlabel="layers passed", ylabel="gradient norm", title=title, log_y=True)
