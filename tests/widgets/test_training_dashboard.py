"""The training dashboard without a browser: it sends the history's own numbers, thinned out where there are many."""

import pytest

from course_lib.training.loop import History
from course_lib.widgets import TrainingDashboard
from course_lib.widgets.training_dashboard import POINTS


def history(steps, *, total=5000, epochs=()):
    losses = [5 / step for step in range(1, steps + 1)]
    rates = [step / 1e4 for step in range(1, steps + 1)]
    return History(losses=losses, rates=rates, epochs=list(epochs), total_steps=total, seconds=1.5 * steps)


EPOCHS = [{"step": 2, "valid_loss": 3.5}, {"step": 4}, {"step": 6, "valid_loss": 2.5}]


def it_shows_the_history(make):
    dashboard = make()
    for steps in (1, 2, POINTS, POINTS + 1, 3 * POINTS + 7):
        run = history(steps, epochs=EPOCHS)
        dashboard.show(run)
        assert (dashboard.total, dashboard.seconds) == (5000, run.seconds)
        assert dashboard.steps[0] == 1 and dashboard.steps[-1] == steps, "the newest step is always there"
        assert dashboard.steps == sorted(set(dashboard.steps)) and len(dashboard.steps) <= POINTS + 1
        assert len(dashboard.steps) > min(steps, POINTS) / 2 - 1
        assert dashboard.losses == [run.losses[step - 1] for step in dashboard.steps]
        assert dashboard.rates == [run.rates[step - 1] for step in dashboard.steps]
        assert dashboard.valid == [[2, 3.5], [6, 2.5]]


class OneStepLate(TrainingDashboard):
    def show(self, history):
        super().show(history)
        self.losses = [history.losses[step % len(history.losses)] for step in self.steps]


class TheFirstSteps(TrainingDashboard):
    def show(self, history):
        super().show(history)
        self.steps = list(range(1, min(len(history.losses), POINTS) + 1))


@pytest.mark.parametrize("wrong", [OneStepLate, TheFirstSteps])
def test_it_shows_the_history(wrong):
    it_shows_the_history(TrainingDashboard)
    with pytest.raises(AssertionError):
        it_shows_the_history(wrong)


def test_nothing_is_shown_before_the_first_step():
    dashboard = TrainingDashboard()
    dashboard.show(history(0))
    assert dashboard.steps == [] and dashboard.picture().get_suptitle() == "The training has not begun"


def test_its_picture_has_every_step():
    dashboard = TrainingDashboard()
    dashboard.show(history(3 * POINTS, epochs=EPOCHS))
    training, validation = dashboard.picture().axes[0].lines[:2]
    assert list(training.get_ydata()) == history(3 * POINTS).losses
    assert list(validation.get_xdata()) == [2, 6] and list(validation.get_ydata()) == [3.5, 2.5]
    assert dashboard.picture().get_suptitle() == "The loss after 1,200 of 5,000 steps"
