"""What a training takes: the paper's own numbers come out, and Amdahl's law is found again in what follows it."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import model_preset
from course_lib.data import make_batch
from course_lib.training import Budget, budget, capacity, paper_utilization, serial_share, speed_up, training_flops
from course_lib.training.distributed import BatchLoss
from course_lib.transformer import Transformer
from tests.helpers.laws import raised, tells_apart
from tests.helpers.training import reversal_pairs


def law_operations_are_those_of_a_step(count):
    """Counted by PyTorch on a forward and a backward pass, all rows of one length."""
    config = model_preset("mini", 50)
    pairs = reversal_pairs(6, shortest=9, longest=9, vocab_size=50)  # 10 source tokens with </s>, 10 target tokens
    with FlopCounterMode(display=False) as counter:
        BatchLoss(Transformer(config).train(), 0.1)(make_batch(pairs)).backward()
    assert count(config, steps=1, batch_tokens=60, length=10) == pytest.approx(counter.get_total_flops(), rel=0.02)


def forward_only(*args, **options):
    return training_flops(*args, **options) / 3


def test_operations_are_those_of_a_step():
    torch.manual_seed(0)
    tells_apart(law_operations_are_those_of_a_step, training_flops, forward_only)


def test_the_papers_training_cost_is_what_its_devices_could_have_done():
    """Table 2: 3.3 · 10^18 and 2.3 · 10^19."""
    assert f"{capacity(12, 8, 'P100'):.1e}" == "3.3e+18" and f"{capacity(84, 8, 'P100'):.1e}" == "2.3e+19"
    for preset in ("base", "big"):
        plan = Budget(preset=preset, steps=budget.PAPER_STEPS[preset], utilization=paper_utilization(preset))
        assert plan.hours == pytest.approx(budget.PAPER_HOURS[preset])
        assert plan.capacity == pytest.approx(capacity(plan.hours, 8, "P100"))
        assert plan.flops < plan.capacity
    assert 0.25 < paper_utilization("base") < paper_utilization("big") < 0.5


def test_money_is_hours_of_all_devices():
    one = Budget(devices=1, device="H100", price=2.0)
    many = Budget(devices=16, device="H100", price=2.0)
    assert one.money == pytest.approx(2 * one.hours) and many.money == pytest.approx(one.money)
    assert many.hours == pytest.approx(one.hours / 16)
    serial = Budget(devices=16, device="H100", price=2.0, serial=0.1)
    assert serial.hours > many.hours and serial.money > many.money


def law_a_serial_share_is_found_again(find):
    for share in (0.0, 0.03, 0.25, 1.0):
        for devices in ([1, 2], [1, 2, 4, 8]):
            assert find(devices, [7 * speed_up(count, share) for count in devices]) == pytest.approx(share, abs=1e-12)
    noisy = [1.02, 1.9, 3.3, 5.1]
    found = find([1, 2, 4, 8], noisy)
    assert 0.02 < found < 0.12 and find([1, 2], [1.0, 2.2]) < 0

    def missed(share):
        return sum((1.02 / rate - 1 / speed_up(n, share)) ** 2 for n, rate in zip((1, 2, 4, 8), noisy, strict=True))

    assert missed(found) < min(missed(found - 1e-3), missed(found + 1e-3))


def from_the_last(devices, rates):
    return serial_share([1, devices[-1]], [rates[0], rates[-1]])


def of_speed_ups(devices, rates):
    return 1 - rates[-1] / rates[0] / devices[-1]


def test_a_serial_share_is_found_again():
    tells_apart(law_a_serial_share_is_found_again, serial_share, from_the_last, of_speed_ups)
    assert speed_up(1, 0.3) == 1 and speed_up(10**9, 0.25) == pytest.approx(4)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: Budget(device="abacus"), "device must be one of K80"),
        (lambda: Budget(steps=0), "expected steps and devices, got 0, 8"),
        (lambda: Budget(utilization=0.0), "utilization must be in"),
        (lambda: Budget(serial=1.5), "serial must be in"),
        (lambda: Budget(price=-1.0), "price must not be negative"),
        (lambda: serial_share([2, 4], [1.0, 2.0]), "expected the rate of 1 device first, got 2"),
        (lambda: serial_share([1], [1.0]), "at least 2 numbers"),
    ],
)
def test_what_is_no_budget_is_refused(wrong, message):
    assert message in str(raised(ValueError, wrong))
