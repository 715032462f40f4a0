"""The races of architectures: equal time, equal size, and a task whose answer is what it says, where it says."""

from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import nn

from course_lib.experiments import architectures, recall, timed
from course_lib.experiments.recall import (
    ARCHITECTURES,
    BINS,
    FACTS,
    NAMES,
    QUESTIONS,
    SIZE,
    THINGS,
    Reader,
    reader_of_size,
    right_by_distance,
    stories,
)
from course_lib.experiments.timed import train_for, train_steps
from tests.helpers.laws import raised, tells_apart

# --- equal time ---------------------------------------------------------------------------------


class Clock:
    """A processor that needs a tenth of a second for each look at it."""

    def __init__(self):
        self.now = 0.0

    def process_time(self):
        self.now += 0.1
        return self.now


def test_training_ends_when_the_time_is_spent():
    model, rates, modes = nn.Linear(2, 2), [], []

    def step(model, optimizer, loss):
        rates.append(optimizer.param_groups[0]["lr"])
        modes.append(model.training)

    with mock.patch.object(timed, "time", Clock()), mock.patch.object(timed, "_step", step):
        found = train_for(4.0, model, None, rate=0.5, measure=lambda: {"mode": model.training}, measurements=4)
    assert [entry["seconds"] for entry in found] == pytest.approx([1, 2, 3, 4], abs=0.11)
    assert [entry["steps"] for entry in found] == pytest.approx([10, 20, 30, 40], abs=1)
    assert not any(entry["mode"] for entry in found) and all(modes) and not model.training
    assert rates[0] == 0 and max(rates) == pytest.approx(0.5 * 0.95, rel=0.03) and 0 <= rates[-1] < 0.02
    assert rates.index(max(rates)) in (1, 2, 3)  # a twentieth of forty steps


def law_steps_are_counted(train):
    model, rates = nn.Linear(2, 2), []
    noted = lambda model, optimizer, loss: rates.append(optimizer.param_groups[0]["lr"])  # noqa: E731
    with mock.patch.object(timed, "_step", noted):
        found = train(40, model, None, rate=0.5, measure=lambda: {"mode": model.training}, measurements=4)
    assert found == [{"steps": steps, "mode": False} for steps in (10, 20, 30, 40)]
    assert rates == pytest.approx([0.5 * timed.share_of_rate(step / 40) for step in range(40)])


def test_steps_are_counted():
    one_more = lambda steps, *args, **options: train_steps(steps + 1, *args, **options)  # noqa: E731
    half_the_rate = lambda *args, rate, **options: train_steps(*args, rate=rate / 2, **options)  # noqa: E731
    tells_apart(law_steps_are_counted, train_steps, one_more, half_the_rate)


def law_it_learns(train):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(64, 3)
    train(0.3, model, lambda: (model(x) - x.sum(dim=1, keepdim=True)).square().mean(), rate=0.1)
    assert (model(x) - x.sum(dim=1, keepdim=True)).square().mean() < 0.01


def test_what_is_trained_learns():
    tells_apart(law_it_learns, train_for, lambda *args, rate: train_for(*args, rate=0.0))


def test_what_takes_longer_is_timed_as_longer():
    x = torch.randn(200, 200)
    quick, slow = timed.seconds_a_step([lambda: x @ x, lambda: [x @ x for _ in range(20)]], rounds=5)
    assert 0 < quick < slow


# --- recall -------------------------------------------------------------------------------------


def law_the_answer_is_in_the_fact(make):
    """Each name's fact stands once, before each question for it; the answer is its thing, the distance the way back."""
    ids, things, distance = make(40, 32, torch.Generator().manual_seed(1))
    assert ids.shape == things.shape == distance.shape == (40, 32)
    for story, answers, ways in zip(ids.tolist(), things.tolist(), distance.tolist(), strict=True):
        facts = {token // THINGS: place for place, token in enumerate(story) if token < FACTS}
        assert len(facts) == NAMES == sum(token < FACTS for token in story) and max(facts.values()) < 16
        for place, (token, answer, way) in enumerate(zip(story, answers, ways, strict=True)):
            asks = FACTS <= token < FACTS + QUESTIONS
            assert asks == (answer >= 0) == (way > 0)
            if asks:
                assert place - way == facts[token - FACTS] and story[place - way] % THINGS == answer
    assert 0.1 < (things >= 0).float().mean() < 0.25


def one_too_far(number, length, generator):
    ids, things, distance = stories(number, length, generator)
    return ids, things, distance + (distance > 0)


def another_thing(number, length, generator):
    ids, things, distance = stories(number, length, generator)
    return ids, torch.where(things >= 0, (things + 1) % THINGS, things), distance


def test_the_answer_is_in_the_fact():
    tells_apart(law_the_answer_is_in_the_fact, stories, one_too_far, another_thing)


def law_no_word_sees_the_future(architecture, change=lambda reader: None):
    torch.manual_seed(0)
    reader = reader_of_size(architecture).eval()
    change(reader)
    ids = stories(2, 20, torch.Generator().manual_seed(3))[0]
    other = ids.clone()
    other[:, 11:] = (other[:, 11:] + 5) % 40
    with torch.no_grad():
        gap = (reader(ids) - reader(other)).abs().amax(dim=-1)
    assert gap[:, :11].max() < 1e-5 and gap[:, 11].min() > 1e-5


def lets_all_see(reader):
    for layer in reader.layers:
        layer.forward = lambda x, *mask: x + x.mean(dim=1, keepdim=True)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_word_sees_the_future_and_all_are_as_large(architecture):
    law_no_word_sees_the_future(architecture)
    with pytest.raises(AssertionError):
        law_no_word_sees_the_future(architecture, lets_all_see)
    size = sum(each.numel() for each in reader_of_size(architecture).parameters())
    assert abs(size / SIZE - 1) < 0.01


def test_a_reader_of_another_kind_is_refused():
    assert "got 'rnn'" in str(raised(ValueError, lambda: Reader("rnn", 4)))


def test_right_answers_are_counted_by_distance():
    class Near(nn.Module):
        """Knows what was told up to 8 tokens ago."""

        def forward(self, ids):
            _, things, distance = stories(200, 64, torch.Generator().manual_seed(recall.TEST + 64))
            guesses = torch.where(distance <= 8, things, (things + 1) % THINGS).clamp(min=0)
            return nn.functional.one_hot(guesses, THINGS).float()

    assert right_by_distance(Near(), 64) == [1, 1, 1, 0, 0, 0, None, None]
    assert BINS[3] == 9 and len(BINS) == 9
    assert 0.1 < recall.right_answers(Near(), 64) < 0.6


def test_training_to_recall_takes_as_many_steps_as_it_is_given():
    for steps in (1, 12):
        torch.manual_seed(0)
        history = recall.train_to_recall(reader_of_size("convolution"), rate=1e-3, seed=0, steps=steps)
        assert history[-1]["steps"] == steps and len(history) == 10


def test_a_run_of_recall_reports_what_the_record_needs():
    results = recall.run(dict(architecture="gru", rate=1e-3, seconds=0.05), 0, Path())
    assert len(results["accuracy"]) == len(results["by_distance"]) == 2 and len(results["history"]) == 10
    assert len(results["by_distance"][1]) == len(BINS) - 1 and 0 <= results["valid"] <= 1
    assert abs(results["parameters"] / SIZE - 1) < 0.01


# --- translation --------------------------------------------------------------------------------


def test_a_run_of_translation_reports_what_the_record_needs():
    architectures.corpus.cache_clear()
    with mock.patch.multiple(architectures, PAIRS=300, HELD_OUT=40):
        results = architectures.run(dict(architecture="convolutional", rate=1e-3, seconds=0.1), 0, Path())
        transformer = architectures.new_model("transformer").config.num_parameters
    architectures.corpus.cache_clear()
    assert abs(results["parameters"] / transformer - 1) < 0.02
    assert results["valid"] == results["history"][-1]["valid_accuracy"] and results["epochs"] > 0
    assert 0 <= results["exact_match"] <= 1 and 0 <= results["bleu"] <= 100


def test_each_side_has_its_own_rate_and_all_the_same_time():
    for grid in (recall.GRID, architectures.GRID):
        race = {name: choices for name, choices in grid.sides.items() if "four times" not in name}
        assert len(race) == 5 and len(grid.seeds) == 3
        assert len({choices["seconds"] for choices in race.values()}) == 1
        assert all(len(choices["rate"]) >= 2 for choices in race.values())
        longer = {choices["seconds"] for name, choices in grid.sides.items() if name not in race}
        assert longer <= {4 * recall.SECONDS}
