"""The digits of scikit-learn: three parts, each picture in one."""

import pytest
import torch

from course_lib.data import load_digits
from tests.helpers.laws import tells_apart


def law_each_digit_is_in_one_part(parts):
    everything = torch.cat([part.pictures for part in parts])
    assert [len(part.classes) for part in parts] == [1197, 200, 400]
    assert everything.shape == (1797, 1, 8, 8) and everything.min() == 0 and everything.max() == 1
    assert len(everything.flatten(1).unique(dim=0)) == 1797
    for part in parts:
        assert (part.classes.bincount(minlength=10) / len(part.classes) - 0.1).abs().max() < 0.05


def test_each_digit_is_in_one_part():
    train, valid, test = load_digits()
    tells_apart(law_each_digit_is_in_one_part, (train, valid, test), (train, valid, valid), (train, test, valid))


def test_a_seed_divides_the_digits():
    assert load_digits()[0].pictures.equal(load_digits()[0].pictures)
    assert not load_digits()[0].pictures.equal(load_digits(seed=1)[0].pictures)
    with pytest.raises(ValueError, match="1797 digits cannot be divided into -1, 1000 and 798"):
        load_digits(num_valid=1000, num_test=798)
