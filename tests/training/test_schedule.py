"""The learning rate: the paper's peak, both decays, and the formula that popular explanations print."""

import math

import pytest

from course_lib.training.config import TrainConfig
from course_lib.training.schedule import learning_rate, paper_rate
from tests.helpers.laws import raised, tells_apart


def law_peaks_where_the_warmup_ends(rate):
    for d_model, warmup_steps in ((512, 4000), (128, 400), (1024, 10), (64, 1)):
        rates = [rate(step, d_model=d_model, warmup_steps=warmup_steps) for step in range(1, 4 * warmup_steps + 1)]
        assert rates.index(max(rates)) + 1 == warmup_steps
        assert math.isclose(max(rates), (d_model * warmup_steps) ** -0.5, rel_tol=1e-12)
        for step in range(1, warmup_steps + 1):  # a line through 0
            assert math.isclose(rates[step - 1], max(rates) * step / warmup_steps, rel_tol=1e-9)
        assert math.isclose(rates[-1], max(rates) / 2, rel_tol=1e-9)  # at 4 times the warm-up: one over its root


def as_often_printed(step, *, d_model, warmup_steps):
    """d^-0.5 · min(d^-0.5, i · w^-1.5)."""
    return d_model**-0.5 * min(d_model**-0.5, step * warmup_steps**-1.5)


def roots_exchanged(step, *, d_model, warmup_steps):
    return d_model**-0.5 * max(step**-0.5, step * warmup_steps**-1.5)


def counted_from_0(step, *, d_model, warmup_steps):
    return paper_rate(max(step - 1, 1), d_model=d_model, warmup_steps=warmup_steps)


def test_the_papers_rate_peaks_where_the_warmup_ends():
    law_peaks_where_the_warmup_ends(paper_rate)


@pytest.mark.parametrize("wrong", [as_often_printed, roots_exchanged, counted_from_0])
def test_another_rate_breaks_the_law(wrong):
    with pytest.raises(AssertionError):
        law_peaks_where_the_warmup_ends(wrong)


def test_the_papers_base_model_peaks_at_6_99e_4():
    assert f"{paper_rate(4000, d_model=512, warmup_steps=4000):.2e}" == "6.99e-04"


def test_the_formula_as_often_printed_never_decays():
    rates = [as_often_printed(step, d_model=512, warmup_steps=4000) for step in range(1, 100_000)]
    assert rates.index(max(rates)) + 1 == 11_181 and f"{max(rates):.2e}" == "1.95e-03"
    assert rates[-1] == max(rates)


def scheduled(**changes):
    """Rates of steps 1 … 100 of a run with 10 steps of warm-up."""
    config = TrainConfig(warmup_steps=10, **changes)
    return [learning_rate(config, step, d_model=64, total_steps=100) for step in range(1, 101)]


def test_without_a_peak_the_rate_is_the_papers():
    ours = scheduled()
    theirs = [paper_rate(step, d_model=64, warmup_steps=10) for step in range(1, 101)]
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert scheduled(decay="linear")[:10] == pytest.approx(theirs[:10], rel=1e-12)


def law_reaches_the_configured_peak_and_no_more(rates_of):
    for decay in ("inverse_sqrt", "linear"):
        rates = rates_of(peak_lr=4e-3, decay=decay)
        assert rates.index(max(rates)) + 1 == 10 and math.isclose(max(rates), 4e-3, rel_tol=1e-12)
        assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)
        assert rates[0] == pytest.approx(4e-4, rel=1e-12)


def law_linear_decay_ends_one_step_above_0(rates_of):
    rates = rates_of(peak_lr=4e-3, decay="linear")[9:]  # from the peak on
    drops = [before - after for before, after in zip(rates, rates[1:], strict=False)]
    assert drops == pytest.approx([drops[0]] * 90, rel=1e-9) and drops[0] > 0
    assert rates[-1] == pytest.approx(drops[0], rel=1e-9)


def test_the_configured_peak_is_reached_and_no_more():
    law_reaches_the_configured_peak_and_no_more(scheduled)
    with pytest.raises(AssertionError):  # the peak ignored
        law_reaches_the_configured_peak_and_no_more(lambda peak_lr, decay: scheduled(decay=decay))


def test_linear_decay_ends_one_step_above_0():
    def ends_at_0(peak_lr, decay):
        return [peak_lr * min(step / 10, (100 - step) / 90) for step in range(1, 101)]

    tells_apart(
        law_linear_decay_ends_one_step_above_0, scheduled, ends_at_0, lambda peak_lr, decay: scheduled(peak_lr=peak_lr)
    )


def test_a_run_that_ends_in_its_warmup_has_rates():
    config = TrainConfig(warmup_steps=50, decay="linear", peak_lr=1.0)
    rates = [learning_rate(config, step, d_model=64, total_steps=20) for step in range(1, 21)]
    assert rates == pytest.approx([step / 50 for step in range(1, 21)], rel=1e-12)


@pytest.mark.parametrize("step", [0, -1])
def test_steps_count_from_1(step):
    with pytest.raises(ValueError, match=f"steps count from 1, got {step}"):
        paper_rate(step, d_model=64, warmup_steps=10)
    with pytest.raises(ValueError, match=f"steps count from 1, got {step}"):
        learning_rate(TrainConfig(), step, d_model=64, total_steps=100)


def law_no_rate_is_below_0(rate):
    """A step is given a rate from 0 on, or is refused: the first after the last one has 0, schedulers ask for it."""
    config = TrainConfig(warmup_steps=4, decay="linear", peak_lr=1.0)
    assert rate(config, 11, d_model=64, total_steps=10) == 0
    for step in (12, 13, 1000):
        found = []
        error = raised(ValueError, lambda step=step, found=found: found.append(
            rate(config, step, d_model=64, total_steps=10)))
        assert error and f"a run of 10 steps has no learning rate at step {step}" in str(error), found


def going_on_below_0(config, step, *, d_model, total_steps):
    return config.peak_lr * (total_steps - step + 1) / (total_steps - config.warmup_steps + 1)


def test_no_rate_is_below_0():
    tells_apart(law_no_rate_is_below_0, learning_rate, going_on_below_0)


@pytest.mark.parametrize("sizes", [dict(d_model=0), dict(d_model=-4), dict(warmup_steps=0), dict(warmup_steps=1.5)])
def test_a_rate_has_sizes_from_1_on(sizes):
    name, value = next(iter(sizes.items()))
    error = raised(ValueError, lambda: paper_rate(3, **dict(d_model=64, warmup_steps=10) | sizes))
    assert name in str(error) and str(value) in str(error)
