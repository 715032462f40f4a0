"""The broken runs: their record is what they do today, each telltale holds, and the assignment shows both as they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from course_lib.assignments import FOLDERS, read_text
from course_lib.checks.compare import difference
from course_lib.experiments import FAULTS, Parts, broken_run, final_results, read_record, retrained
from course_lib.experiments.broken_runs import short_pairs
from course_lib.experiments.training_script import EVERY
from tests.helpers.laws import tells_apart

RECORD = read_record(Path(__file__).resolve().parents[2] / "notebooks" / "records" / "broken_runs.json")
TEXT = next(folder for folder in FOLDERS if folder.name == "a20_broken_runs") / "text.py"
LOGS = {side: logs[0] for side, logs in final_results(RECORD, "log").items()}
PLANTED = {
    "batch_of": "20.shift",
    "may_attend": "20.mask",
    "rate_at": "20.rate",
    "loss_of": "20.loss",
    "evaluate": "20.evaluate",
}


def law_a_short_run_gives_the_stored_log(side, log):
    rows = broken_run(side, steps=EVERY).log
    assert [row["step"] for row in rows] == [1, EVERY]
    for ours, stored in zip(rows, log, strict=False):
        for name in ("loss", "validation"):
            assert ours[name] == pytest.approx(stored[name], rel=0.05), (side, ours, stored)


@pytest.mark.parametrize("side", LOGS)
def test_a_short_run_gives_the_stored_log(side):
    law_a_short_run_gives_the_stored_log(side, LOGS[side])
    with pytest.raises(AssertionError):
        law_a_short_run_gives_the_stored_log(side, LOGS["B" if side != "B" else "E"])


@pytest.mark.parametrize("part", PLANTED)
def test_what_the_assignment_shows_is_what_was_run(part):
    written = read_text(TEXT)[PLANTED[part]]
    (broken,) = (parts[part] for parts in FAULTS.values() if part in parts)
    assert difference(retrained(part, broken, 3), retrained(part, written.answer(written.planted), 3), 1e-6) is None
    sound = retrained(part, getattr(Parts(), part), 3)
    assert difference(sound, retrained(part, written.answer(written.planted), 3), 1e-3)
    assert difference(sound, retrained(part, written.answer(written.solution), 3), 1e-6) is None
