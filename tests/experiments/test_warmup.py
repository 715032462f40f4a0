"""The experiment on the warm-up: its pairs are new ones, its cells differ in what they say, and its record says so."""

from pathlib import Path
from unittest import mock

import pytest
import torch

from course_lib.experiments import copied, copy_pairs, final_results, read_record, train_copier, warmup
from course_lib.experiments.warmup import CELLS, GRID, HELD_OUT, PAIRS, RATES
from tests.helpers.laws import tells_apart

RECORD = Path(__file__).resolve().parents[2] / "notebooks" / "records" / "warmup.json"


def law_held_out_pairs_are_new(make):
    tokenizer, train, held_out = make()
    known, new = ({tuple(src) for src, _ in pairs} for pairs in (train, held_out))
    assert len(new) == HELD_OUT and len(known) == PAIRS - HELD_OUT and not known & new
    for _, tgt in held_out[:20]:
        assert 3 <= len(tokenizer.decode(tgt).split()) <= 6


def with_known_ones():
    tokenizer, train, held_out = copy_pairs()
    return tokenizer, train, [*held_out[1:], train[0]]


def test_held_out_pairs_are_new():
    tells_apart(law_held_out_pairs_are_new, copy_pairs, with_known_ones)


def test_what_is_copied_is_counted():
    class Output:
        def __init__(self, ids):
            self.ids = ids

    pairs = copy_pairs()[2][:4]
    written = [Output(tgt) for _, tgt in pairs[:3]] + [Output(pairs[3][1][:-1])]
    with mock.patch.object(warmup, "greedy", lambda model, src: written):
        assert copied(None, pairs) == 0.75


def test_a_cell_differs_in_its_first_rate_and_its_norms():
    """With warm-up the first step is a hundredth of the peak, without it the whole; the loss of each step is kept."""
    for cell in CELLS.values():
        seen = []

        def fit(model, batches, config, *, progress, seen=seen):
            seen.append((model.config.norm_first, config.peak_lr, config.warmup_steps))
            raise warmup.DivergedError("stopped", mock.Mock(losses=[3.0]))

        with mock.patch.object(warmup, "fit", fit):
            model, losses = train_copier(**cell, rate=0.5, seed=0)
        assert seen == [(cell["norm_first"], 0.5, cell["warmup_steps"])] and losses == [3.0] and not model.training


def test_a_run_reports_what_the_record_needs(tmp_path):
    torch.manual_seed(0)
    losses = [3.0] * 20 + [2.0] * 20 + [1.0] * 19
    shares = iter([0.25, 0.5])
    with (
        mock.patch.object(warmup, "train_copier", lambda **choices: (None, losses)),
        mock.patch.object(warmup, "copied", lambda model, pairs: next(shares)),
    ):
        results = warmup.run(dict(norm_first=True, warmup_steps=1, rate=1e-3), 0, tmp_path)
    assert results["losses"] == [3.0, 2.0] and results["exact_match"] == 0.5
    assert results["valid"] == pytest.approx(0.25 - 0.002) and 3 < results["guessing"] < 4


def law_it_came_out_as_the_lesson_tells(record):
    shares = final_results(record, "exact_match")
    assert {len(each) for each in shares.values()} == {3}
    for pre in ("pre-norm, with warm-up", "pre-norm, without"):
        assert 0.91 < min(shares[pre]) and max(shares[pre]) < 0.985
    assert min(shares["post-norm, with warm-up"]) >= 0.75
    assert 0.4 < min(shares["post-norm, without"]) and max(shares["post-norm, without"]) < 0.62
    own = {run["side"]: run["choices"]["rate"] for run in record["runs"] if run["stage"] == "final"}
    assert all(min(RATES) < rate < max(RATES) for rate in own.values()), "a best rate lies at an end of those tried"
    assert own["pre-norm, with warm-up"] == 2 * own["pre-norm, without"]
    tried = {
        (run["side"], run["choices"]["rate"]): run["results"]["exact_match"]
        for run in record["runs"]
        if run["stage"] == "tuning"
    }
    assert tried["post-norm, without", 5e-3] < 0.02 and tried["pre-norm, without", 5e-3] > 0.8
    assert tried["pre-norm, without", 1e-2] < 0.1 and tried["pre-norm, with warm-up", 1e-2] > 0.6


def test_it_came_out_as_the_lesson_tells():
    record = read_record(RECORD)
    law_it_came_out_as_the_lesson_tells(record)
    swapped = {"post-norm, without": "pre-norm, without", "pre-norm, without": "post-norm, without"}
    wrong = [run | {"side": swapped.get(run["side"], run["side"])} for run in record["runs"]]
    with pytest.raises(AssertionError):
        law_it_came_out_as_the_lesson_tells(record | {"runs": wrong})


def test_every_cell_has_the_same_rates_to_choose_from():
    assert set(GRID.sides) == set(CELLS) and all(choices["rate"] == RATES for choices in GRID.sides.values())
