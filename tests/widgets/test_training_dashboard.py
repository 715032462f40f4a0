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


def law_the_floor_of_smoothed_labels_is_drawn(make):
    dashboard = make(floor=1.1)
    dashboard.show(history(8, epochs=EPOCHS))
    axes = dashboard.picture().axes[0]
    assert axes.lines[2].get_ydata()[0] == 1.1
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "training, smoothed",
        "validation, plain",
        "floor of the smoothed loss, 1.10",
    ]


class NoFloor(TrainingDashboard):
    def __init__(self, *, floor):
        super().__init__()


class OtherFloor(TrainingDashboard):
    def __init__(self, *, floor):
        super().__init__(floor=floor / 2)


@pytest.mark.parametrize("wrong", [NoFloor, OtherFloor])
def test_the_floor_of_smoothed_labels_is_drawn(wrong):
    law_the_floor_of_smoothed_labels_is_drawn(TrainingDashboard)
    with pytest.raises((AssertionError, IndexError)):
        law_the_floor_of_smoothed_labels_is_drawn(wrong)
    plain = TrainingDashboard()
    plain.show(history(8, epochs=EPOCHS))
    assert len(plain.picture().axes[0].lines) == 2, "without smoothing there is no floor"
