"""Table 3 in miniature: each row changes what it is named after, and nothing else."""

from dataclasses import asdict
from unittest import mock

import pytest

from course_lib.config import model_preset
from course_lib.experiments import table3, table3_multi30k
from course_lib.experiments.table3 import CORPORA, GRID, ROWS, train_row
from course_lib.training import train_preset
from tests.helpers.corpora import CORPUS
from tests.helpers.laws import raised, tells_apart

# For each row what differs from the base: fields of the experiment, of its training, and of the model's configuration.
EXPECTED = {
    "A 1 head": {"num_heads": 1},
    "A 16 heads": {"num_heads": 16},
    "B d_k 8": {"key_width": 8},
    "C d_ff 1024": {"d_ff": 1024},
    "C d_model 256": {"d_model": 256, "peak_lr": 0.003},
    "D dropout 0": {"dropout": 0.0},
    "D label smoothing 0": {"label_smoothing": 0.0},
    "E learned positions": {"position": "learned"},
    "F post-norm": {"norm_first": False, "peak_lr": 0.0015},
    "F subword dropout 0.1": {"subword_dropout": 0.1},
    "F LSTM with attention": {"architecture": "lstm", "peak_lr": 0.003},
    "big": {"d_model": 256, "num_heads": 8, "d_ff": 1024, "num_layers": 3, "peak_lr": 0.003},
}
LOG = {
    "stopped": "finished", "parameters": 7, "cpu_seconds": 3.0, "epochs": [{"valid_loss": 2.0}],
    "valid": [{"bleu": 30.0}, {"bleu": 31.0, "exact_match": 0.5}],
    "choices": [{"averaged_epochs": 2, "bleu": 31.0}, {"averaged_epochs": 1, "bleu": 30.5}],
}  # fmt: skip


def made(row, seed=3, run=train_row):
    """What a row's run asks `train_translator` for, flat, with its first candidate."""
    with (
        mock.patch.object(table3, "train_translator", return_value=LOG) as train,
        mock.patch.object(table3, "load_course", return_value=CORPUS) as load,
    ):
        assert run(GRID.candidates(row)[0], seed, "folder")["bleu"] == 31.0
    load.assert_called_with(num_train=20_000)
    (corpus, folder, experiment), _ = train.call_args
    assert (corpus, folder) == (CORPUS, "folder")
    values = asdict(experiment)
    training, changes = values.pop("training"), values.pop("model_changes")
    model = asdict(model_preset(values["preset"], 2000, **changes))
    if values["architecture"] == "lstm":
        assert changes == {"dropout": 0.1}
    return values | training | model


def law_a_row_changes_what_it_names(row, run=train_row):
    base, changed = made("base"), made(row, run=run)
    assert {name: value for name, value in changed.items() if base[name] != value} == EXPECTED[row]
    assert changed["seed"] == 3 and changed["report"] == "valid"


@pytest.mark.parametrize("row", EXPECTED)
def test_a_row_changes_what_it_names(row):
    def forgetting(choices, seed, folder):
        base = GRID.candidates("base")[0]
        return train_row(base | {"precision": "float32"}, seed, folder)

    tells_apart(lambda run: law_a_row_changes_what_it_names(row, run), train_row, forgetting)


def test_the_base_is_the_preset_with_the_papers_regularization():
    base, preset, run = made("base"), model_preset("mini", 2000, dropout=0.1), train_preset("mini")
    assert {name: base[name] for name in asdict(preset)} == asdict(preset)
    assert base["label_smoothing"] == 0.1 and base["peak_lr"] == run.peak_lr


def test_both_corpora_have_every_row():
    other = table3_multi30k.GRID
    assert set(GRID.sides) == set(other.sides) == set(ROWS)
    for grid, corpus in ((GRID, "course"), (other, "multi30k")):
        assert all(side.items() >= ({"corpus": corpus} | CORPORA[corpus]).items() for side in grid.sides.values())
    assert {row.split()[0] for row in ROWS} == {"base", "A", "B", "C", "D", "E", "F", "big"}


def test_an_interrupted_row_is_no_result():
    with mock.patch.object(table3, "train_translator", return_value=LOG | {"stopped": "interrupted"}):
        raised(KeyboardInterrupt, lambda: train_row(GRID.candidates("base")[0] | {"pairs": 10}, 0, "folder"))
