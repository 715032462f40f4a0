"""The experiment on positions: its task has the answer that it says, its readers see what they may, training ends."""

import math
from unittest import mock

import pytest
import torch

from course_lib.experiments import Reader, named_last, positions, right_answers, train_reader
from course_lib.experiments.positions import ENCODINGS, GRID, LONGEST, NOUNS, TRAINED, VOCABULARY
from tests.helpers.laws import raised, tells_apart


def law_the_answer_is_the_noun_named_last(make):
    ids, answers, asked = make(50, 20, torch.Generator().manual_seed(1))
    assert ids.shape == answers.shape == asked.shape == (50, 20) and ids.max() < len(VOCABULARY)
    for story, answer, ask in zip(ids.tolist(), answers.tolist(), asked.tolist(), strict=True):
        last = None
        for word, right, here in zip(story, answer, ask, strict=True):
            assert here == (word >= len(NOUNS))
            last = last if here else word
            assert right == last
    assert 0.6 < asked.float().mean() < 0.8 and not asked[:, 0].any()


def named_first(number, length, generator):
    ids, _, asked = named_last(number, length, generator)
    return ids, ids[:, :1].expand(-1, length), asked


def asks_everywhere(number, length, generator):
    ids, answers, asked = named_last(number, length, generator)
    return ids, answers, torch.ones_like(asked)


def test_the_answer_is_the_noun_named_last():
    tells_apart(law_the_answer_is_the_noun_named_last, named_last, named_first, asks_everywhere)


def some_ids(length, seed=3):
    return named_last(2, length, torch.Generator().manual_seed(seed))[0]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_reader_scores_the_nouns_at_every_word(encoding):
    for d_k in (8, 16, 32):
        reader = Reader(encoding, d_k)
        assert reader(some_ids(LONGEST)).shape == (2, LONGEST, len(NOUNS))
        assert reader.layers[0].self_attn.num_heads == 64 // d_k


def law_only_words_in_sight_count(score, *, causal, window):
    """Changing one word changes the scores of one layer exactly where it is in sight."""
    torch.manual_seed(0)
    reader = Reader("rotary", causal=causal)
    del reader.layers[1]
    ids = some_ids(20)
    other = ids.clone()
    other[:, 8] = (other[:, 8] + 1) % len(VOCABULARY)
    changed = (score(reader, ids, window) - score(reader, other, window)).abs().amax(dim=(0, 2)) > 1e-6
    place = torch.arange(20)
    seen = (place - 8).abs() <= (20 if window is None else window)
    assert changed.tolist() == (seen & (place >= 8) if causal else seen).tolist()


@torch.no_grad()
def scores(reader, ids, window):
    return reader(ids, window=window)


@torch.no_grad()
def without_window(reader, ids, window):
    return reader(ids)


def with_one_more(reader, ids, window):
    return scores(reader, ids, None if window is None else window + 1)


@pytest.mark.parametrize("causal", [False, True])
def test_only_words_in_sight_count(causal):
    def law(score):
        for window in (None, 3, 1):
            law_only_words_in_sight_count(score, causal=causal, window=window)

    tells_apart(law, scores, without_window, with_one_more)


def test_a_story_may_start_anywhere_in_the_table():
    reader, ids = Reader("sinusoidal"), some_ids(TRAINED)
    assert not torch.allclose(reader(ids), reader(ids, start=5))
    late = raised(ValueError, lambda: reader(ids, start=LONGEST - TRAINED + 1))
    assert "positions for 64" in str(late)


def test_an_unknown_encoding_is_refused():
    message = str(raised(ValueError, lambda: Reader("rope")))
    assert message == f"encoding must be one of {', '.join(ENCODINGS)}; got 'rope'"


def test_what_is_right_is_counted_where_we_ask():
    class Knows(torch.nn.Module):
        """Right at all words but those at odd places."""

        def __init__(self):
            super().__init__()
            self.output = torch.nn.Linear(1, 1)

        def forward(self, ids, *, window):
            assert window == 4
            _, answers, _ = named_last(300, 16, torch.Generator().manual_seed(100 + 16))
            answers[:, 1::2] += 1
            return torch.nn.functional.one_hot(answers % len(NOUNS), len(NOUNS)).float()

    right = right_answers(Knows(), 16, window=4)
    asked = named_last(300, 16, torch.Generator().manual_seed(116))[2]
    assert torch.equal(right.isnan(), ~asked)
    assert right[:, 1::2].nanmean() == 0 and right[:, 2::2].nanmean() == 1 and math.isnan(right[0, 0])


def law_training_ends_when_nothing_is_gained(converged):
    assert not converged([0.5] * 7)  # too short to tell
    assert not converged([0.1 * step for step in range(8)]) and not converged([0.01 * step for step in range(59)])
    assert converged([0.5] * 8) and converged([0.2, 0.5, 0.6, 0.9, 0.95, 0.99, 0.995, 0.996])
    assert converged([0.01 * step for step in range(60)])  # the budget is spent


def test_training_ends_when_nothing_is_gained():
    tells_apart(
        law_training_ends_when_nothing_is_gained,
        positions._has_converged,
        lambda accuracies: len(accuracies) >= 8,
        lambda accuracies: len(accuracies) >= 60,
        lambda accuracies: len(accuracies) >= 2 and accuracies[-1] - accuracies[-2] < 0.003,
    )


def test_the_rate_stays_and_then_falls_to_0():
    rates = []

    def step(reader, optimizer, generator, random_start):
        rates.append(optimizer.param_groups[0]["lr"])

    with mock.patch.object(positions, "_step", step), mock.patch.object(positions, "BLOCK", 2):
        history = train_reader(Reader("none"), rate=0.5, seed=0)
        assert len(rates) == 2 * len(history) == 24  # eight measurements are the fewest, half as many follow
        assert rates[:16] == [0.5] * 16 and rates[16:] == pytest.approx([0.5 * (1 - n / 8) for n in range(8)])
        assert len(train_reader(Reader("none"), rate=0.5, seed=0, fewest=10)) == 15


def test_a_reader_learns():
    torch.manual_seed(0)
    reader = Reader("rotary", 8)
    before = right_answers(reader, TRAINED).nanmean().item()
    with mock.patch.multiple(positions, BLOCK=15, MOST=8):
        history = train_reader(reader, rate=3e-3, seed=0)
    after = right_answers(reader, TRAINED).nanmean().item()
    assert before < 0.3 < 0.6 < after and len(history) == 12 and history[-1] == pytest.approx(after, abs=0.05)


def test_the_sides_are_what_the_lesson_names():
    assert {(c["encoding"], c["d_k"]) for c in GRID.sides.values()} >= {
        (encoding, d_k) for encoding in ("sinusoidal", "learned", "relative", "alibi", "rotary") for d_k in (8, 16, 32)
    }
    for name, choices in GRID.sides.items():
        for candidate in GRID.candidates(name):
            training = ("rate", "random_start", "fewest")
            options = {key: value for key, value in candidate.items() if key not in training}
            assert isinstance(Reader(**options), torch.nn.Module), name
        assert isinstance(choices["rate"], tuple), f"{name} has no rate of its own"


def test_a_run_reports_what_the_record_needs(tmp_path):
    with mock.patch.multiple(positions, BLOCK=1):
        results = positions.run({"encoding": "alibi", "d_k": 8, "scale": 4.0, "rate": 1e-3}, 0, tmp_path)
    assert [len(fours) for fours in results["by_position"]] == [4, 8, 16]
    assert len(results["accuracy"]) == len(results["windowed"]) == 3
    assert results["accuracy"][0] == results["windowed"][0]  # at the trained length the window hides nothing
    assert results["steps"] == len(results["history"]) >= 12 and 0 < results["valid"] < 1
