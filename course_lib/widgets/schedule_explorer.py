"""The schedule explorer: what d_model, the warm-up and the kind of decay make of the learning rate."""

import traitlets as t

from course_lib.figures import CourseFigure, curves
from course_lib.training import TrainConfig, learning_rate
from course_lib.widgets.base import CourseWidget, short

POINTS = 240  # of a curve
DECAYS = {"inverse_sqrt": "inverse square root (paper)", "linear": "linear"}


class ScheduleExplorer(CourseWidget):
    """Draws the learning rate of every step; a curve can be kept beside the next ones.

    Args:
        d_model: width of the model.
        warmup_steps: steps of linear warm-up.
        total_steps: of the run.
        decay: "inverse_sqrt" or "linear".

    Raises:
        ValueError: on numbers below 1, or another decay.

    Paper: section 5.3, equation 3.
    """

    d_model = t.Int(512).tag(sync=True)
    warmup_steps = t.Int(4000).tag(sync=True)
    total_steps = t.Int(100_000).tag(sync=True)
    decay = t.Unicode("inverse_sqrt").tag(sync=True)
    view = t.Dict().tag(sync=True)  # name, steps, rates, the highest one's step and rate

    def __init__(
        self, *, d_model: int = 512, warmup_steps: int = 4000, total_steps: int = 100_000, decay: str = "inverse_sqrt"
    ):
        if min(d_model, warmup_steps, total_steps) < 1:
            raise ValueError(f"expected numbers from 1 on, got {d_model}, {warmup_steps} and {total_steps}")
        TrainConfig(decay=decay)  # refuses another one
        super().__init__(d_model=d_model, warmup_steps=warmup_steps, total_steps=total_steps, decay=decay)
        self._compute()
        self.observe(lambda _: self._compute(), ["d_model", "warmup_steps", "total_steps", "decay"])

    def rate(self, step: int) -> float:
        """The learning rate at a step, from 1 on."""
        config = TrainConfig(warmup_steps=self.warmup_steps, decay=self.decay)
        return learning_rate(config, step, d_model=self.d_model, total_steps=self.total_steps)

    def _compute(self) -> None:
        stride = max(1, self.total_steps // POINTS)
        peak = min(self.warmup_steps, self.total_steps)
        steps = sorted({1, peak, self.total_steps, *range(stride, self.total_steps, stride)})
        self.view = {
            "name": f"d_model {self.d_model}, warm-up {self.warmup_steps:,}, {DECAYS[self.decay]}, "
            f"{self.total_steps:,} steps",
            "steps": steps,
            "rates": [self.rate(step) for step in steps],
            "peak": [peak, self.rate(peak)],
        }

    def picture(self) -> CourseFigure:
        """The present curve."""
        step, rate = self.view["peak"]
        series = {self.view["name"]: (self.view["steps"], self.view["rates"])}
        if step < self.total_steps:
            title, marks = f"The rate peaks at step {step:,}, at {short(rate, 2)}", {"warmup_steps": (step, None)}
        else:
            title, marks = f"Still warming up at the last step, {step:,}: the rate is {short(rate, 2)}", {}
        return curves(series, xlabel="step", ylabel="learning rate", title=title, marks=marks)
