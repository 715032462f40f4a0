"""The broken runs: their record is what they do today, each telltale holds, and the assignment shows them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch.nn.functional as F

from course_lib.assignments import FOLDERS, read_text
from course_lib.checks.compare import difference
from course_lib.experiments import FAULTS, Parts, ScriptRun, broken_run, final_results, read_record, retrained
from course_lib.experiments.broken_runs import simple_pairs
from course_lib.experiments.training_script import EVERY
from course_lib.transformer import eval_mode
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


def tables(logs):
    """The lines in which the assignment shows the logs: loss and validation loss; then the norm of the gradient."""
    for step in (1, 50, 150, 300):
        rows = [next(row for row in logs[run] if row["step"] == step) for run in FAULTS]
        yield f"| {step} | " + " | ".join(f"{row['loss']:.2f} / {row['validation']:.2f}" for row in rows) + " |"


def test_the_assignment_shows_the_stored_logs():
    text = TEXT.read_text(encoding="utf-8")

    def law_the_logs_are_shown(logs):
        assert all(f"# {line}\n" in text for line in tables(logs))

    tells_apart(law_the_logs_are_shown, LOGS, LOGS | {"A": LOGS["sound"]})


def law_each_telltale_holds(logs, right):
    """What the assignment says of the runs."""
    last = {side: log[-1]["loss"] for side, log in logs.items()}
    guess = {side: log[0]["loss"] for side, log in logs.items()}
    assert last["B"] < 0.01 and last["D"] < 0.1 and right["B"] == right["D"] == 0, "low losses, nothing translated"
    assert guess["B"] < guess["sound"] - 1, "what is read must be said: the first loss is lower"
    assert last["F"] > 1 and right["F"] < 0.05, "without warm-up it stays where it is"
    assert logs["F"][0]["validation"] < logs["sound"][0]["validation"] - 0.5, "the first step is a large one"
    assert all(row["loss"] < sound["loss"] for row, sound in zip(logs["E"][:2], logs["sound"], strict=False))
    assert all(right[side] > 0.2 for side in ("sound", "A", "C", "E")), "they translate, each in its way"
    assert all(abs(last[side] - last["sound"]) < 0.3 for side in ("A", "C", "E")), "and look alike"


def of_seed(seed, what):
    return {side: values[seed] for side, values in final_results(RECORD, what).items()}


@pytest.mark.parametrize("seed", (0, 1, 2))
def test_each_telltale_holds_with_each_seed(seed):
    law_each_telltale_holds(of_seed(seed, "log"), of_seed(seed, "exact_match"))


def test_each_telltale_is_of_its_run():
    right = of_seed(0, "exact_match")
    for one, other in (("B", "D"), ("A", "F"), ("sound", "F"), ("C", "B")):
        with pytest.raises(AssertionError):
            law_each_telltale_holds(LOGS | {one: LOGS[other], other: LOGS[one]}, right)


def test_a_vocabulary_of_test_texts_has_what_no_training_text_has():
    def law_every_token_stands_in_a_training_text(run):
        train = "".join(f" {text}" for pair in run.split[0] for text in (pair.src, pair.tgt))
        tokens = [run.tokenizer.token(i) for i in range(4, run.tokenizer.vocab_size)]
        assert all(token.replace("▁", " ") in train for token in tokens), "▁windows" in tokens

    sound, leaked = (ScriptRun(replace(Parts(), **FAULTS.get(name, {})), simple_pairs()) for name in ("sound", "C"))
    tells_apart(law_every_token_stands_in_a_training_text, sound, leaked, match="True")


def test_what_is_measured_of_the_others_tells_them_apart():
    """With a few steps only: dropout that stays on, padding that counts, a rate that begins at its peak."""
    dropout, padding, sound = (broken_run(name, steps=2) for name in ("A", "E", "sound"))
    assert dropout.validate() != dropout.validate() and sound.validate() == sound.validate()
    with eval_mode(sound.model):
        src, tgt_in, tgt_out = sound.batch(sound.valid)
        wide = [F.pad(ids, (0, 20), value=0) for ids in (tgt_in, tgt_out)]
        for run, same in ((sound, True), (padding, False)):
            found = [run.loss(sound.logits(src, reads), says).item() for reads, says in ((tgt_in, tgt_out), wide)]
            assert (abs(found[0] - found[1]) < 1e-4) == same
    assert replace(Parts(), **FAULTS["F"]).rate_at(1, 0.01, 50) == 0.01 == 50 * sound.rate(1)
