"""Many facts: every question has one answer, it was told, and the sides differ in their state alone."""

from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import nn

from course_lib.experiments import many_facts
from course_lib.experiments.many_facts import (
    ARCHITECTURES,
    COUNTS,
    GRID,
    LENGTH,
    NAMES,
    SIZE,
    TEST,
    THINGS,
    WIDTH,
    OneLayerReader,
    crowded_stories,
    reader_with_state,
    right_by_count,
)
from tests.helpers.laws import raised, tells_apart

HALF = LENGTH // 2


def law_each_answer_was_told_once(make):
    for count in COUNTS:
        who, what, answers = make(30, count, torch.Generator().manual_seed(1))
        assert who.shape == what.shape == (30, LENGTH) and answers.shape == (30, HALF)
        for names, things, right in zip(who.tolist(), what.tolist(), answers.tolist(), strict=True):
            facts = {name: thing for name, thing in zip(names[:HALF], things[:HALF], strict=True) if name < NAMES}
            assert len(facts) == sum(name < NAMES for name in names[:HALF]) == count
            assert set(things[HALF:]) == {THINGS} and max(things[:HALF]) < THINGS
            assert [facts.get(name) for name in names[HALF:]] == right


def another_thing(number, count, generator):
    who, what, answers = crowded_stories(number, count, generator)
    return who, what, (answers + 1) % THINGS


def one_fact_more(number, count, generator):
    return crowded_stories(number, count - 1, generator)


def test_each_answer_was_told_once():
    tells_apart(law_each_answer_was_told_once, crowded_stories, another_thing, one_fact_more)


def law_no_word_sees_the_future(reader):
    who, what, _ = crowded_stories(2, 4, torch.Generator().manual_seed(3))
    other = who.clone()
    other[:, HALF + 5 :] = (other[:, HALF + 5 :] + 1) % NAMES
    with torch.no_grad():
        gap = (reader(who, what) - reader(other, what)).abs().amax(dim=-1)
    assert gap[:, :5].max() < 1e-5 < gap[:, 5].min()


@pytest.mark.parametrize("side", GRID.sides)
def test_no_word_sees_the_future_and_all_are_as_large(side):
    torch.manual_seed(0)
    reader = reader_with_state(GRID.sides[side]["architecture"], GRID.sides[side].get("state")).eval()
    law_no_word_sees_the_future(reader)
    assert abs(sum(each.numel() for each in reader.parameters()) / SIZE - 1) < 0.01
    reader.layer.forward = lambda x, *mask: x + x.mean(dim=1, keepdim=True)
    with pytest.raises(AssertionError):
        law_no_word_sees_the_future(reader)


def test_a_state_has_the_size_that_its_side_says():
    assert reader_with_state("lstm", 8).layer.mixing.cells.hidden_size == 8
    hands = reader_with_state("state space", 512).layer.mixing.from_left.output
    assert hands.numel() == 512 and hands.shape[-1] == 2  # complex ones, of two numbers each
    for architecture, size in (("selective", 512), ("selective", 128), ("linear attention", 512)):
        layer = reader_with_state(architecture, size).layer.mixing.from_left
        assert layer.fading == (architecture == "selective")
        assert layer.scan(torch.randn(1, 1, WIDTH))[1].numel() == size


def test_a_reader_of_another_kind_is_refused():
    assert set(ARCHITECTURES) == {side["architecture"] for side in GRID.sides.values()}
    assert "got 'rnn'" in str(raised(ValueError, lambda: OneLayerReader("rnn", 4)))


def test_right_answers_are_counted_by_the_number_of_facts():
    class KnowsOf(nn.Module):
        """Is right in stories of four facts only."""

        def forward(self, who, what):
            count = int((who[0, :HALF] < NAMES).sum())
            answers = crowded_stories(200, count, torch.Generator().manual_seed(TEST + count))[2]
            return nn.functional.one_hot((answers + (count != 4)) % THINGS, THINGS).float()

    assert right_by_count(KnowsOf()) == [float(count == 4) for count in COUNTS]


def law_the_rates_are_changed(right_with):
    """While the reader is examined, its layer has the other steps and log a, and all else as before."""
    torch.manual_seed(0)
    reader = reader_with_state("selective", 128)
    layer, x = reader.layer.mixing.from_left, torch.randn(2, 5, WIDTH)
    before = layer.projected(x)
    with mock.patch.object(many_facts, "right_by_count", lambda reader: layer.projected(x)):
        found = right_with(reader, lambda step, log_a: (2 * step, log_a - 1))
    expected = (*before[:3], 2 * before[3], before[4] - 1)
    for ours, wanted, after in zip(found, expected, layer.projected(x), strict=True):
        torch.testing.assert_close(ours, wanted)
        assert any(torch.equal(after, each) for each in before), "afterwards it is as it was"


def test_steps_and_fading_are_changed_for_an_examination():
    def steps_alone(reader, change):
        return many_facts.right_with(reader, lambda step, log_a: (change(step, log_a)[0], log_a))

    def for_good(reader, change):
        with mock.patch.object(nn.Module, "__delattr__", lambda *args: None):
            return many_facts.right_with(reader, change)

    tells_apart(law_the_rates_are_changed, many_facts.right_with, steps_alone, for_good)


def test_a_run_reports_what_the_record_needs():
    results = many_facts.run(dict(architecture="lstm", state=8, rate=1e-3, steps=10), 0, Path())
    assert len(results["by_count"]) == len(COUNTS) and len(results["history"]) == 10
    assert 0 <= results["valid"] <= 1 and abs(results["parameters"] / SIZE - 1) < 0.01
    results = many_facts.run(dict(architecture="selective", state=128, rate=1e-3, steps=10), 0, Path())
    assert len(results["heads_alike"]) == len(results["no_fading"]) == len(COUNTS)
