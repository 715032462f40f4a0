"""The benchmark: each variant changes what it says, nothing reads the test part, and it goes on where it stopped."""

import json
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import pytest

from course_lib.config import model_preset
from course_lib.data.corpus import Pair
from course_lib.storage import average_checkpoints, load_tensors
from course_lib.training import benchmark, experiment
from course_lib.training.benchmark import RECIPE, VARIANTS, WITHOUT_AVERAGING, run_benchmark
from course_lib.training.config import TrainConfig, train_preset
from course_lib.training.evaluation import score
from course_lib.training.experiment import train_translator
from course_lib.training.run import Run
from course_lib.translator import Translator
from tests.helpers.corpora import CORPUS, Untouchable
from tests.helpers.laws import raised
from tests.helpers.tiny import tiny_preset
from tests.helpers.training import assert_same_weights, weights_of

EPOCHS = 8
VALID_ONLY = replace(CORPUS, test=Untouchable(CORPUS.test))


def quick_preset(name, **changes):
    return TrainConfig(**dict(batch_tokens=256, peak_lr=0.01, warmup_steps=4) | changes)


@contextmanager
def small():
    recipe = RECIPE | dict(vocab_size=60, beam_size=2, average=2)
    with (
        mock.patch.object(experiment, "model_preset", tiny_preset),
        mock.patch.object(benchmark, "train_preset", quick_preset),
        mock.patch.object(benchmark, "RECIPE", recipe),
    ):
        yield


@pytest.fixture(autouse=True)
def small_runs():
    with small():
        yield


def run(folder, **options):
    return run_benchmark(VALID_ONLY, folder, **dict(seeds=[0], epochs=EPOCHS, progress=False) | options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    with small():
        return folder, run(folder)


def test_every_variant_is_trained_and_scored_on_the_validation_part(whole):
    folder, results = whole
    assert [result["variant"] for result in results] == [
        name
        for variant in VARIANTS
        for name in ([variant] if list(VARIANTS).index(variant) else [variant, WITHOUT_AVERAGING])
    ]
    assert json.loads((folder / "results.json").read_text()) == results
    for result in results:
        assert result["seed"] == 0 and result["epochs"] == EPOCHS and result["cpu_seconds"] > 0
        assert result["scores"][-1]["beam_size"] == 2 and 0 <= result["scores"][-1]["bleu"] <= 100


def each_variant_differs_in_what_it_names(folder):
    """The logged configurations, compared with the whole recipe's."""
    logs = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("*/log.json")}
    base = logs["the-whole-recipe-0"]
    for name, change in VARIANTS.items():
        log = logs[f"{name.replace(' ', '-')}-0"]
        if name == "LSTM with attention":
            assert log["architecture"] == "lstm" and "num_heads" not in log["model"]
            continue
        assert log["model"] == base["model"] | change.get("model", {})
        assert log["training"] == base["training"] | change.get("training", {})
        assert log["subword_dropout"] == change.get("options", {}).get("subword_dropout", base["subword_dropout"])
        assert (log == base) == (not change)


def test_each_variant_differs_in_what_it_names_and_in_nothing_else(whole, tmp_path):
    each_variant_differs_in_what_it_names(whole[0])

    def preset_as_it_is(corpus, folder, experiment, **options):
        return train_translator(corpus, folder, replace(experiment, model_changes={}), **options)

    with mock.patch.object(benchmark, "train_translator", preset_as_it_is):
        run(tmp_path)
    with pytest.raises(AssertionError):
        each_variant_differs_in_what_it_names(tmp_path)


def test_each_change_really_changes_the_preset():
    for name, change in VARIANTS.items():
        for field, value in change.get("model", {}).items():
            assert getattr(model_preset(RECIPE["preset"], 100), field) != value, name
        for field, value in change.get("training", {}).items():
            assert getattr(train_preset(RECIPE["preset"]), field) != value, name


def without_averaging_the_last_epoch_is_scored(folder):
    scored = []

    def remembering(translator, *args, **options):
        scored.append(weights_of(translator.model))
        return score(translator, *args, **options)

    with mock.patch.object(benchmark, "score", remembering):
        run(folder, variants=["the whole recipe"])
    paths = sorted((folder / "the-whole-recipe-0" / "checkpoints").glob("epoch-*.safetensors"))
    assert len(paths) == 2 and len(scored) == 1
    model = Translator.from_pretrained(folder / "the-whole-recipe-0").model
    assert_same_weights(model, average_checkpoints(paths))
    model.load_state_dict(scored[0])
    assert_same_weights(model, load_tensors(paths[-1])[0])


@pytest.mark.parametrize(
    "name, wrong",
    [("load_weights", lambda *_: None), ("epoch_file", lambda folder, epoch: sorted(folder.glob("epoch-*"))[0])],
)
def test_without_averaging_the_last_epoch_is_scored(name, wrong, tmp_path):
    without_averaging_the_last_epoch_is_scored(tmp_path / "ours")
    with mock.patch.object(benchmark, name, wrong), pytest.raises(AssertionError):
        without_averaging_the_last_epoch_is_scored(tmp_path / "mutant")


def test_finished_runs_are_not_trained_again(whole):
    folder, results = whole
    with mock.patch.object(Run, "train_step", lambda *_: pytest.fail("trained again")):
        assert run(folder) == results


def test_results_of_other_calls_stay_in_the_file(tmp_path):
    first = run(tmp_path, variants=["no dropout"], epochs=1)
    second = run(tmp_path, variants=["no dropout", "post-norm"], seeds=[1], epochs=1)
    assert [(each["variant"], each["seed"]) for each in second] == [("no dropout", 1), ("post-norm", 1)]
    assert json.loads((tmp_path / "results.json").read_text()) == first + second


def test_runs_of_another_length_or_corpus_are_not_taken_for_these(whole):
    message = str(raised(ValueError, lambda: run(whole[0], variants=["no dropout"], epochs=EPOCHS + 1)))
    assert "holds another run: its training configuration differs in ['epochs']" in message
    other = replace(VALID_ONLY, train=[Pair(tgt, src) for src, tgt in VALID_ONLY.train])  # of the same name
    message = str(
        raised(ValueError, lambda: run_benchmark(other, whole[0], seeds=[0], epochs=EPOCHS, variants=["no dropout"]))
    )
    assert "holds another run" in message


def test_an_interrupted_benchmark_returns_what_it_has(tmp_path):
    def interrupted(corpus, folder, experiment, **options):
        if experiment.model_changes:
            return {"stopped": "interrupted"}
        return train_translator(corpus, folder, experiment, **options)

    variants = ["the whole recipe", "no dropout", "post-norm"]
    with mock.patch.object(benchmark, "train_translator", interrupted):
        results = run(tmp_path, variants=variants, epochs=1)
    assert [result["variant"] for result in results] == ["the whole recipe", WITHOUT_AVERAGING]
    assert [result["variant"] for result in run(tmp_path, variants=variants, epochs=1)] == [
        "the whole recipe",
        WITHOUT_AVERAGING,
        "no dropout",
        "post-norm",
    ]


def test_an_unknown_variant_is_refused(tmp_path):
    assert "unknown variants ['magic']" in str(raised(ValueError, lambda: run(tmp_path, variants=["magic"])))
