"""The live training dashboard: a run's progress, loss and learning rate, drawn while the kernel trains."""

import traitlets as t

from course_lib.figures import CourseFigure, curves
from course_lib.training import History
from course_lib.widgets.base import CourseWidget

POINTS = 400  # of a curve: more would not be seen


class TrainingDashboard(CourseWidget):
    """Follows a run: call `show` now and then with its history.

    Args:
        floor: the lowest training loss that is possible, where labels are smoothed (see smoothing_floor): it is drawn,
            and the lines say that the training loss is the smoothed one, and the validation loss is not.

    The page can switch between loss and learning rate, to a logarithmic axis, and read any step, also while the kernel
    is busy with training.
    """

    total = t.Int(0).tag(sync=True)  # steps of the whole run
    seconds = t.Float(0.0).tag(sync=True)
    steps = t.List(t.Int(), []).tag(sync=True)  # of which losses and rates are shown
    losses = t.List(t.Float(), []).tag(sync=True)
    rates = t.List(t.Float(), []).tag(sync=True)
    valid = t.List([]).tag(sync=True)  # [step, validation loss] of each epoch
    floor = t.Float(0.0).tag(sync=True)  # 0 without smoothing
    what = t.Enum(["loss", "rate"], "loss").tag(sync=True)  # that is drawn
    log_y = t.Bool(False).tag(sync=True)

    def __init__(self, *, floor: float = 0.0):
        super().__init__(floor=floor)
        self._history = History()

    def show(self, history: History) -> None:
        """Sends the state of a run to the page.

        Args:
            history: of the run so far; of long runs every n-th step is drawn, and always the newest.
        """
        self._history = history
        done = len(history.losses)
        stride = -(-done // POINTS) or 1
        steps = sorted({*range(1, done + 1, stride), *([done] if done else [])})
        with self.hold_sync():
            self.total, self.seconds, self.steps = history.total_steps, history.seconds, steps
            self.losses = [history.losses[step - 1] for step in steps]
            self.rates = [history.rates[step - 1] for step in steps]
            self.valid = [[each["step"], each["valid_loss"]] for each in history.epochs if "valid_loss" in each]

    def picture(self) -> CourseFigure:
        """Training loss of each step, and validation loss of each epoch where it was measured."""
        done = len(self._history.losses)
        training, validation = ("training, smoothed", "validation, plain") if self.floor else ("training", "validation")
        series = {training: (range(1, done + 1), self._history.losses)} if done else {training: ([0], [0.0])}
        if self.valid:
            series[validation] = tuple(zip(*self.valid, strict=True))
        title = f"The loss after {done:,} of {self.total:,} steps" if done else "The training has not begun"
        marks = {f"floor of the smoothed loss, {self.floor:.2f}": (None, self.floor)} if self.floor else {}
        return curves(series, xlabel="step", ylabel="loss (nats per token)", title=title, marks=marks)
