"""What is measured is what tensors hold: counted once, at its largest, without the parameters."""

import torch
from torch import nn

from course_lib.training import held_bytes, kept_bytes, peak_bytes
from tests.helpers.laws import tells_apart

MEGABYTE = 250_000  # numbers


def law_the_peak_is_the_most_at_once(measure):
    def one_after_the_other():
        for _ in range(3):
            torch.ones(MEGABYTE)

    def together():
        kept = [torch.ones(MEGABYTE) for _ in range(3)]
        del kept

    before = torch.ones(2 * MEGABYTE)  # is not counted
    assert measure(one_after_the_other) == 1_000_000
    assert measure(together) == 3_000_000
    assert measure(before.zero_) == 0


def test_the_peak_is_the_most_at_once():
    def at_the_end(work):
        work()
        return 0

    tells_apart(law_the_peak_is_the_most_at_once, peak_bytes, at_the_end, lambda work: 2 * peak_bytes(work))


def test_what_comes_and_goes_is_followed():
    def work():
        first = torch.ones(MEGABYTE)
        second = torch.ones(MEGABYTE)
        del first
        return second

    assert held_bytes(work)[:3] == [1_000_000, 2_000_000, 1_000_000]


def law_what_is_kept_is_counted_once(measure):
    layer = nn.Linear(8, 8)
    x = torch.ones(4, 8, requires_grad=True)
    assert measure(lambda: layer(x).relu(), layer) == 2 * 4 * 8 * 4  # x and the result of the ReLU, not the weight
    assert measure(lambda: x * x, layer) == 4 * 8 * 4  # twice the same tensor
    with torch.no_grad():
        assert measure(lambda: layer(x), layer) == 0


def test_what_is_kept_is_counted_once():
    def with_parameters(work, model):
        return kept_bytes(work, nn.Identity())

    tells_apart(law_what_is_kept_is_counted_once, kept_bytes, with_parameters)


def test_measuring_says_nothing(capfd):
    peak_bytes(lambda: torch.ones(3))
    assert capfd.readouterr() == ("", "")
