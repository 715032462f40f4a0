"""The budget planner without a browser: what it shows is the library's budget, whatever is chosen."""

import pytest

from course_lib.training import PEAKS, Budget
from course_lib.widgets import BudgetPlanner
from course_lib.widgets.budget_planner import COUNTS, PRESETS, STEPS
from tests.helpers.laws import raised, tells_apart

STATES = [
    dict(preset="base", steps=100_000, device="P100", devices=8, utilization=29, serial=0.0, price=0.0),
    dict(preset="big", steps=300_000, device="H100", devices=256, utilization=100, serial=50.0, price=20.0),
    dict(preset="base", steps=10_000, device="K80", devices=1, utilization=1, serial=2.5, price=0.25),
]


def library(state):
    shares = {name: state[name] / 100 for name in ("utilization", "serial")}
    return Budget(**state | shares)


def law_the_plan_is_the_librarys(make):
    planner = make()
    for state in STATES:
        for name, value in state.items():
            setattr(planner, name, value)
        plan, view = library(state), planner.view
        assert [view[name] for name in ("flops", "hours", "money", "capacity")] == pytest.approx(
            [plan.flops, plan.hours, plan.money, plan.capacity]
        )
        assert view["counts"] == list(COUNTS)
        for name, serial in (("planned", state["serial"]), ("ideal", 0.0)):
            hours = [library(state | dict(devices=count, serial=serial)).hours for count in COUNTS]
            assert view[name] == pytest.approx(hours), name


class StaysAtTheFirst(BudgetPlanner):
    def _compute(self):
        if not self.view:
            super()._compute()


class ForgetsTheSerialShare(BudgetPlanner):
    def budget(self, devices=None, serial=None):
        return super().budget(devices, 0.0)


class ForgetsTheUtilization(BudgetPlanner):
    def budget(self, devices=None, serial=None):
        return library(dict(STATES[1], utilization=100))


def test_the_plan_is_the_librarys():
    tells_apart(
        law_the_plan_is_the_librarys, BudgetPlanner, StaysAtTheFirst, ForgetsTheSerialShare, ForgetsTheUtilization
    )


def test_it_begins_with_the_papers_training():
    view = BudgetPlanner().view
    assert view["hours"] == pytest.approx(12, rel=0.01) and view["capacity"] == pytest.approx(3.3e18, rel=0.01)
    title = BudgetPlanner().picture().get_suptitle()
    assert title == "base, 100,000 steps: 9.5·10¹⁷ FLOPs, 12.0 hours on 8 P100"


def test_its_picture_has_both_curves_where_a_share_is_serial():
    for serial, names in ((0.0, 1), (5.0, 2)):
        picture = BudgetPlanner(serial=serial).picture()
        lines = [line for line in picture.axes[0].lines if len(line.get_xdata()) == len(COUNTS)]
        assert len(lines) == names and list(lines[0].get_ydata()) == BudgetPlanner(serial=serial).view["planned"]


def test_its_controls_offer_what_the_library_has():
    limits = BudgetPlanner().limits
    assert [name for name, _ in limits["devices"]] == list(PEAKS) and dict(limits["presets"]) == PRESETS
    assert limits["steps"] == list(STEPS) and limits["counts"] == list(COUNTS)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(preset="huge"), "preset must be one of base, big; got 'huge'"),
        (dict(steps=5), "steps must be one of"),
        (dict(device="abacus"), "device must be one of"),
        (dict(devices=3), "devices must be one of"),
        (dict(utilization=0), "utilization must be in 1..100, got 0"),
        (dict(serial=51.0), "serial must be in 0..50"),
        (dict(price=-1.0), "price must be in 0..20"),
    ],
)
def test_what_no_control_has_is_refused(options, message):
    assert message in str(raised(ValueError, lambda: BudgetPlanner(**options)))
