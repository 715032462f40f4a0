"""The schedule explorer without a browser: its curve is the library's learning rate at every step it names."""

import pytest

from course_lib.training.config import TrainConfig
from course_lib.training.schedule import learning_rate, paper_rate
from course_lib.widgets import ScheduleExplorer
from course_lib.widgets.base import short
from tests.helpers.laws import raised

STATES = [
    dict(d_model=512, warmup_steps=4000, total_steps=100_000, decay="inverse_sqrt"),
    dict(d_model=64, warmup_steps=100, total_steps=700, decay="linear"),
    dict(d_model=2048, warmup_steps=16_000, total_steps=700, decay="linear"),
    dict(d_model=96, warmup_steps=300, total_steps=300_000, decay="linear"),
]


def the_curve_is_the_librarys(make):
    explorer = make()
    for state in STATES:
        for name, value in state.items():
            setattr(explorer, name, value)
        view, config = explorer.view, TrainConfig(warmup_steps=state["warmup_steps"], decay=state["decay"])
        rest = dict(d_model=state["d_model"], total_steps=state["total_steps"])
        assert view["steps"][0] == 1 and view["steps"][-1] == state["total_steps"]
        assert view["steps"] == sorted(set(view["steps"])) and 100 < len(view["steps"]) < 500
        assert view["rates"] == [learning_rate(config, step, **rest) for step in view["steps"]]
        peak, rate = view["peak"]  # in a run that is shorter than its warm-up the highest rate is the last
        assert peak == min(state["warmup_steps"], state["total_steps"]) and rate == max(view["rates"])
        assert f"{state['warmup_steps']:,}" in view["name"] and str(state["d_model"]) in view["name"]
        assert view["name"].endswith(f"{state['total_steps']:,} steps")


class StaysAtTheFirst(ScheduleExplorer):
    def _compute(self):
        if not self.view:
            super()._compute()


class ForgetsTheWarmup(ScheduleExplorer):
    def rate(self, step):
        return learning_rate(TrainConfig(decay=self.decay), step, d_model=self.d_model, total_steps=self.total_steps)


@pytest.mark.parametrize("wrong", [StaysAtTheFirst, ForgetsTheWarmup])
def test_the_curve_is_the_librarys(wrong):
    the_curve_is_the_librarys(ScheduleExplorer)
    with pytest.raises(AssertionError):
        the_curve_is_the_librarys(wrong)


def test_it_begins_with_the_papers_base_model():
    step, rate = ScheduleExplorer().view["peak"]
    assert (step, rate) == (4000, paper_rate(4000, d_model=512, warmup_steps=4000)) and f"{rate:.2e}" == "6.99e-04"
    picture = ScheduleExplorer().picture()
    assert "peaks at step 4,000, at 6.99·10⁻⁴" in picture.get_suptitle()
    assert "warmup_steps" in [text.get_text() for text in picture.axes[0].get_legend().get_texts()]


def test_a_run_that_ends_before_its_warm_up_has_no_peak():
    picture = ScheduleExplorer(total_steps=700).picture()
    words = f"Still warming up at the last step, 700: the rate is {short(ScheduleExplorer().rate(700), 2)}"
    assert picture.get_suptitle() == words
    assert picture.axes[0].get_legend() is None, "nothing there is marked as warmup_steps"


@pytest.mark.parametrize("options", [dict(d_model=0), dict(warmup_steps=0), dict(total_steps=-1), dict(decay="cosine")])
def test_what_no_schedule_has_is_refused(options):
    assert raised(ValueError, lambda: ScheduleExplorer(**options))
