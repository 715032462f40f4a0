"""A whole experiment on toy sentences: what is learned from, averaged, saved, scored and logged."""

import json
import os
import shutil
import signal
import subprocess
import unicodedata
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, replace
from datetime import date
from functools import partial
from unittest import mock

import pytest
import torch
from safetensors import safe_open

from course_lib.alternatives import ALTERNATIVES, model_like
from course_lib.config import ModelConfig
from course_lib.data import Corpus, Pair
from course_lib.metrics import bleu, tokenized_bleu
from course_lib.storage import average_checkpoints, load_tensors
from course_lib.tokenizer import Tokenizer
from course_lib.training import choice, experiment, machine
from course_lib.training import loop as training
from course_lib.training.config import Experiment, TrainConfig
from course_lib.training.evaluation import score
from course_lib.training.experiment import train_translator
from course_lib.training.machine import revision
from course_lib.training.run import Run
from course_lib.transformer import Transformer
from course_lib.translator import Translator, saved_steps
from tests.helpers.corpora import CORPUS, PAIRS, Untouchable
from tests.helpers.laws import patched, raised, tells_apart
from tests.helpers.tiny import tiny_preset, toy_translator
from tests.helpers.training import assert_same_weights, weights_of

CLOCKS = {"seconds": 0, "cpu_seconds": 0}
CONFIG = TrainConfig(epochs=2, batch_tokens=256, peak_lr=0.01, warmup_steps=4)


@pytest.fixture(autouse=True)
def small_models():
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        yield


def run(folder, *, train=train_translator, corpus=CORPUS, config=CONFIG, vocab_size=60, **options):
    options = {"report": "test"} | options
    return train(corpus, folder, Experiment("tiny", vocab_size, config, **options), progress=False)


def with_always(**fields):
    """A training that takes other options than those it is given: a mutant."""

    def mutant(corpus, folder, experiment, **options):
        return train_translator(corpus, folder, replace(experiment, **fields), **options)

    return mutant


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run, and its log."""
    folder = tmp_path_factory.mktemp("finished")
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        return folder, run(folder)


# --- the log ------------------------------------------------------------------------------------


def test_the_log_tells_the_whole_experiment(finished):
    folder, log = finished
    assert json.loads((folder / "log.json").read_text()) == json.loads(json.dumps(log))
    assert log["corpus"] == "toy" and log["train_pairs"] == 40 and log["stopped"] == "finished"
    assert ModelConfig.from_dict(log["model"]).num_parameters == log["parameters"]
    assert TrainConfig.from_dict(log["training"]) == CONFIG
    assert log["machine"] == machine.describe_machine("cpu") and log["machine"]["torch"] == torch.__version__
    assert [record["epoch"] for record in log["epochs"]] == [1, 2]
    names = {"epoch", "step", "train_loss", "seconds", "cpu_seconds", "valid_loss", "valid_accuracy", "valid_bleu"}
    assert all(set(record) == names | {"valid_exact_match"} for record in log["epochs"])
    assert log["seconds"] >= log["epochs"][-1]["seconds"] > 0
    assert log["cpu_seconds"] >= log["epochs"][-1]["cpu_seconds"] > 0
    assert [entry["beam_size"] for entry in log["test"]] == [1, 4]
    assert all("tok:13a" in entry["signature"] and 0 <= entry["exact_match"] <= 1 for entry in log["test"])
    assert all("case:lc|eff:no|tok:moses" in entry["tokenized_signature"] for entry in log["test"])


def test_the_folder_holds_a_translator_its_log_and_checkpoints(finished):
    folder, _ = finished
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    checkpoints = {f"checkpoints/{name}.safetensors" for name in ("last", "epoch-0002")}
    assert names == {"config.json", "tokenizer.json", "model.safetensors", "log.json"} | checkpoints


# --- laws ---------------------------------------------------------------------------------------


def the_saved_translator_scores_as_logged(train, folder):
    log = run(folder, train=train, beam_size=3, length_penalty=5.0)
    translator = Translator.from_pretrained(folder)
    assert [(entry["beam_size"], entry["length_penalty"]) for entry in log["test"]] == [(1, 5.0), (3, 5.0)]
    for entry in log["test"]:
        search = {name: entry[name] for name in ("beam_size", "length_penalty")}
        assert score(translator, CORPUS.test, **search).entry == entry


def test_the_saved_translator_scores_as_logged(tmp_path):
    the_saved_translator_scores_as_logged(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        the_saved_translator_scores_as_logged(with_always(length_penalty=0.6), tmp_path / "mutant")


def another_architecture_is_trained_saved_and_loaded(name, train, folder):
    """It is what was asked for, as large as the Transformer of the same preset, with the weights that were learned."""
    log = run(folder, train=train, architecture=name, config=replace(CONFIG, epochs=1))
    translator = Translator.from_pretrained(folder)
    transformer = tiny_preset("tiny", translator.tokenizer.vocab_size)
    assert log["architecture"] == translator.model.config.architecture == name
    assert type(translator.model) is type(model_like(name, transformer))
    assert log["parameters"] == pytest.approx(transformer.num_parameters, rel=0.03)
    learned = average_checkpoints([folder / "checkpoints" / "epoch-0001.safetensors"])
    for part, tensor in translator.model.state_dict().items():
        assert torch.equal(tensor, learned[part]), part
    greedy, _ = log["test"]
    assert score(translator, CORPUS.test, beam_size=1, length_penalty=greedy["length_penalty"]).entry == greedy


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_another_architecture_is_trained_saved_and_loaded(name, tmp_path):
    law = partial(another_architecture_is_trained_saved_and_loaded, name)
    law(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        law(with_always(architecture="transformer"), tmp_path / "transformer")
    with pytest.raises(AssertionError):
        law(patched(train_translator, mock.patch.object(Translator, "save_pretrained", spoilt)), tmp_path / "spoilt")


def spoilt(translator, *args, original=Translator.save_pretrained, **options):
    with torch.no_grad():
        translator.model.generator.weight[-1, -1] += 1
    original(translator, *args, **options)


def weights_are_the_average_of_the_kept_epochs(train, folder):
    """As many as asked for, also when asked later, but at most a quarter of the run, and what is there."""
    for average, kept in ((5, 2), (1, 1), (5, 2)):
        log = run(folder, train=train, config=replace(CONFIG, epochs=8), average=average)
        paths = sorted((folder / "checkpoints").glob("epoch-*.safetensors"))
        assert [path.name for path in paths] == ["epoch-0007.safetensors", "epoch-0008.safetensors"]
        saved, _ = load_tensors(folder / "model.safetensors")
        for name, tensor in average_checkpoints(paths[-kept:]).items():
            assert torch.equal(saved[name], tensor), name
        assert log["averaged_epochs"] == kept
    paths[0].unlink()
    assert run(folder, train=train, config=replace(CONFIG, epochs=8), average=5)["averaged_epochs"] == 1


def the_test_part_can_be_scored_after_the_choice(train, folder):
    """A run scored on the validation part gets its test scores later, without a further step."""
    chosen = run(folder, train=train, report="valid")
    final = run(folder, train=train, report="test")
    assert "test" not in chosen and "valid" not in final
    assert final["epochs"] == chosen["epochs"]
    for part in ("valid", "test"):
        found = score(Translator.from_pretrained(folder), getattr(CORPUS, part), beam_size=4)
        assert {"valid": chosen, "test": final}[part][part][1] == found.entry


def looking_at_the_test_part(corpus, folder, experiment, **options):
    log = with_always(report="test")(corpus, folder, experiment, **options)
    scores = log.pop("test")
    return log | {experiment.report: scores}


def training_again(corpus, folder, experiment, **options):
    shutil.rmtree(folder, ignore_errors=True)
    return train_translator(corpus, folder, experiment, **options)


@pytest.mark.parametrize("wrong", [looking_at_the_test_part, training_again])
def test_the_test_part_can_be_scored_after_the_choice(wrong, tmp_path):
    the_test_part_can_be_scored_after_the_choice(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        the_test_part_can_be_scored_after_the_choice(wrong, tmp_path / "wrong")


TABLE = {(1, 0.0): 3.0, (1, 2.0): 7.0, (2, 0.0): 9.0, (2, 2.0): 1.0}  # BLEU of averaged epochs and length penalty


def the_validation_part_chooses(train, folder):
    """Among all that was left open; what it chose is saved, and reported with the test part."""
    seen = []

    def scored(translator, pairs, *, length_penalty, **search):
        assert list(pairs) == CORPUS.valid
        kept = sorted((folder / "checkpoints").glob("epoch-*.safetensors"))
        weights = weights_of(translator.model)
        same = [n for n in (1, 2) if all(torch.equal(weights[k], v) for k, v in average_checkpoints(kept[-n:]).items())]
        seen.append((same[0], length_penalty))
        found = score(translator, pairs, length_penalty=length_penalty, **search)
        return replace(found, bleu=replace(found.bleu, score=TABLE[seen[-1]]))

    with mock.patch.object(choice, "score", scored):
        open_ones = dict(average=(1, 2), length_penalty=(0.0, 2.0), beam_size=2)
        log = run(folder, train=train, config=replace(CONFIG, epochs=8), **open_ones)
    assert sorted(seen) == sorted(TABLE)
    best_first = sorted(TABLE, key=TABLE.get, reverse=True)
    tried = [(entry["averaged_epochs"], entry["length_penalty"]) for entry in log["choices"]]
    assert tried == best_first and [entry["bleu"] for entry in log["choices"]] == [9.0, 7.0, 3.0, 1.0]
    assert (log["averaged_epochs"], log["length_penalty"]) == best_first[0]
    assert log["test"][1]["length_penalty"] == best_first[0][1]
    paths = sorted((folder / "checkpoints").glob("epoch-*.safetensors"))
    assert_same_weights(Translator.from_pretrained(folder).model, average_checkpoints(paths))


def choosing(change):
    """The training with another choice: a mutant."""
    return patched(train_translator, mock.patch.object(experiment, "choose", change))


def what_is_stored_is_scored(train, folder):
    """A quarter of the size, and the scores in the log are those of the rounded weights."""
    scored = []

    def watched(translator, pairs, **search):
        scored.append(weights_of(translator.model))
        return score(translator, pairs, **search)

    with mock.patch.object(experiment, "score", watched):
        log = run(folder, train=train, config=replace(CONFIG, epochs=1), storage="int8")
    assert log["storage"] == "int8"
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        assert "I8" in {file.get_slice(name).get_dtype() for name in file.keys()}
    assert_same_weights(Translator.from_pretrained(folder).model, scored[-1])


def unread(self, weights):
    """Loads nothing."""


def test_what_is_stored_is_scored(tmp_path):
    what_is_stored_is_scored(train_translator, tmp_path / "ours")
    wrong = [
        with_always(storage="float16"),
        patched(train_translator, mock.patch.object(Transformer, "load_state_dict", unread)),
    ]
    for number, mutant in enumerate(wrong):
        with pytest.raises(AssertionError):
            what_is_stored_is_scored(mutant, tmp_path / f"wrong {number}")


def test_the_validation_part_chooses(tmp_path):
    the_validation_part_chooses(train_translator, tmp_path / "ours")
    wrong = [
        choosing(lambda model, folder, asked, pairs, start: choice.choose(model, folder, asked, CORPUS.test, start)),
        choosing(lambda *arguments: choice.choose(*arguments)[::-1]),
        with_always(average=1),
    ]
    for number, mutant in enumerate(wrong):
        with pytest.raises(AssertionError):
            the_validation_part_chooses(mutant, tmp_path / f"wrong {number}")


def test_what_is_not_open_is_not_scored(tmp_path):
    with mock.patch.object(choice, "score", None):
        log = run(tmp_path, length_penalty=1.0)
    assert log["choices"] == [{"averaged_epochs": 1, "start_share": 0.0, "length_penalty": 1.0, "bleu": None}]


def law_snapshots_are_the_weights_on_the_way(train, folder):
    """The last is the finished model, and the translator of a step is the model of then."""
    weights = {}
    fit = training.fit

    def watched(model, *arguments, on_step, **options):
        def both(model, history):
            on_step(model, history)
            weights[len(history.losses)] = weights_of(model)

        return fit(model, *arguments, on_step=both, **options)

    with mock.patch.object(experiment, "fit", watched), mock.patch.object(experiment, "FIRST_SNAPSHOT", 3):
        log = run(folder, train=train, snapshots=4)
    steps = saved_steps(folder)
    total = log["epochs"][-1]["step"]
    assert steps == [3, round((3 * 3 * total) ** (1 / 3)), round((3 * total * total) ** (1 / 3)), total]
    for step in steps:
        ours = Translator.from_pretrained(folder, step=step).model
        assert_same_weights(ours, weights[step], atol=0.02)
        own = ours.state_dict()
        far = {n: sum((own[k] - v).square().sum() for k, v in then.items()) for n, then in weights.items()}
        assert min(far, key=far.get) == step
    assert saved_steps(folder.parent) == []


def test_snapshots_are_the_weights_on_the_way(tmp_path):
    law_snapshots_are_the_weights_on_the_way(train_translator, tmp_path / "ours")
    always_last = mock.patch.object(experiment, "snapshot_steps", lambda total, count: [total])
    with pytest.raises(AssertionError):
        law_snapshots_are_the_weights_on_the_way(patched(train_translator, always_last), tmp_path / "wrong")


def test_the_log_says_when_and_with_which_code(tmp_path):
    log = run(tmp_path)
    assert date.fromisoformat(log["date"]) and log["commit"] == revision()


def test_the_revision_is_that_of_the_repository(tmp_path):
    def git(*command):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(["git", "-C", tmp_path, *identity, *command], capture_output=True, text=True).stdout

    with mock.patch.object(machine, "HERE", tmp_path):
        assert revision() is None
        git("init")
        (tmp_path / "code").write_text("1")
        git("add", "code")
        git("commit", "-m", "first")
        assert revision() == git("rev-parse", "HEAD").strip() and len(revision()) == 40
        (tmp_path / "code").write_text("2")
        assert revision() == git("rev-parse", "HEAD").strip() + "+"


def newest_only(paths):
    return average_checkpoints(paths[-1:])


def asked_for(corpus, folder, experiment, **options):
    log = train_translator(corpus, folder, experiment, **options)
    return log | {"averaged_epochs": experiment.average[0]}


def test_the_saved_weights_are_the_average_of_the_newest_epochs(tmp_path):
    weights_are_the_average_of_the_kept_epochs(train_translator, tmp_path / "ours")
    mutant = patched(train_translator, mock.patch.object(choice, "average_checkpoints", newest_only))
    for number, wrong in enumerate((mutant, with_always(average=5), asked_for)):
        with pytest.raises(AssertionError):
            weights_are_the_average_of_the_kept_epochs(wrong, tmp_path / f"wrong {number}")


def subwords_come_from_the_training_part(train, folder):
    run(folder, train=train, config=replace(CONFIG, epochs=1))
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    assert 3 in tokenizer.encode("fox"), "x is in the test part only"
    assert 3 not in [i for pair in CORPUS.train for text in pair for i in tokenizer.encode(text)]


def from_all_parts(texts, vocab_size, train=Tokenizer.train, **options):
    return train([*texts, *(text for pair in CORPUS.test for text in pair)], vocab_size, **options)


def weights_are_those_of_this_run(train, folder):
    """What an earlier, longer run has left in the folder is not averaged with them."""
    run(folder, config=replace(CONFIG, epochs=4, seed=1), average=1)
    (folder / "checkpoints" / "last.safetensors").unlink()
    run(folder, train=train)
    expected, _ = load_tensors(folder / "checkpoints" / "epoch-0002.safetensors")
    assert (folder / "checkpoints" / "epoch-0004.safetensors").exists(), "this compares nothing"
    assert_same_weights(Translator.from_pretrained(folder).model, expected)


def takes_the_last_file(folder, epoch):
    return sorted(folder.glob("epoch-*"))[-1]


def test_weights_are_those_of_this_run(tmp_path):
    weights_are_those_of_this_run(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        mutant = patched(train_translator, mock.patch.object(choice, "epoch_file", takes_the_last_file))
        weights_are_those_of_this_run(mutant, tmp_path / "mutant")


def test_subwords_come_from_the_training_part_only(tmp_path):
    subwords_come_from_the_training_part(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        mutant = patched(train_translator, mock.patch.object(Tokenizer, "train", from_all_parts))
        subwords_come_from_the_training_part(mutant, tmp_path / "mutant")


@contextmanager
def ctrl_c_after_the_first_epoch():
    def pressing(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return score(*args, **options)

    with mock.patch.object(experiment, "score", pressing):
        yield


def resumed_equals_uninterrupted(train, whole, folder):
    with ctrl_c_after_the_first_epoch():
        log = run(folder, train=train)
    assert log["stopped"] == "interrupted" and len(log["epochs"]) == 1 and "test" not in log
    assert json.loads((folder / "log.json").read_text())["stopped"] == "interrupted"
    assert not (folder / "model.safetensors").exists()
    log = run(folder, train=train)
    assert log["stopped"] == "finished" and log["test"] == whole["test"]
    for ours, theirs in zip(log["epochs"], whole["epochs"], strict=True):
        assert ours | CLOCKS == theirs | CLOCKS


class ForgetsRandomState(Run):
    def resume(self):
        state = torch.get_rng_state()
        super().resume()
        torch.set_rng_state(state)


def test_a_resumed_experiment_equals_an_uninterrupted_one(finished, tmp_path):
    resumed_equals_uninterrupted(train_translator, finished[1], tmp_path / "ours")
    mutant = patched(train_translator, mock.patch.object(training, "Run", ForgetsRandomState))
    with pytest.raises(AssertionError):
        resumed_equals_uninterrupted(mutant, finished[1], tmp_path / "mutant")


def test_the_folder_of_another_experiment_is_refused(tmp_path):
    """The same sizes, other sentences: weights and subwords would not belong together."""
    folder, config = tmp_path / "run", replace(CONFIG, epochs=1)
    run(folder, config=config)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    other = Corpus("other", [Pair(tgt, src) for src, tgt in PAIRS[60:100]], CORPUS.valid, CORPUS.test)
    error = raised(ValueError, lambda: run(folder, corpus=other, config=config))
    assert error and "another run" in str(error)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def an_unfinished_run_leaves_the_translator_in_its_folder(train, folder):
    translator = toy_translator()
    translator.save_pretrained(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with ctrl_c_after_the_first_epoch():
        run(folder, train=train)
    assert {name: (folder / name).read_bytes() for name in before} == before


def saves_at_once(corpus, folder, experiment, **options):
    toy_translator(1).tokenizer.save(folder / "config.json")
    return train_translator(corpus, folder, experiment, **options)


def test_an_unfinished_run_leaves_the_translator_in_its_folder(tmp_path):
    an_unfinished_run_leaves_the_translator_in_its_folder(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        an_unfinished_run_leaves_the_translator_in_its_folder(saves_at_once, tmp_path / "mutant")


def test_another_vocabulary_is_another_experiment(tmp_path):
    with ctrl_c_after_the_first_epoch():
        run(tmp_path)
    assert "holds another run" in str(raised(ValueError, lambda: run(tmp_path, vocab_size=59)))


def choosing_never_reads_the_test_part(train, folder):
    corpus = replace(CORPUS, test=Untouchable(CORPUS.test))
    log = run(folder, train=train, corpus=corpus, config=replace(CONFIG, epochs=1), report="valid")
    assert "test" not in log and log["valid"][0]["bleu"] == log["epochs"][-1]["valid_bleu"]


def test_choosing_never_reads_the_test_part(tmp_path):
    choosing_never_reads_the_test_part(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        choosing_never_reads_the_test_part(with_always(report="test"), tmp_path / "mutant")


def test_changes_of_model_and_data_are_used_and_logged(finished, tmp_path):
    config = replace(CONFIG, epochs=8)
    plain = run(tmp_path / "plain", config=config)
    assert (plain["subword_dropout"], plain["averaged_epochs"]) == (0, 1)
    pieces = run(tmp_path / "pieces", config=config, subword_dropout=0.3, subword_dropout_side="source", average=2)
    assert (pieces["subword_dropout"], pieces["subword_dropout_side"]) == (0.3, "source")
    assert pieces["averaged_epochs"] == 2
    assert len(list((tmp_path / "pieces/checkpoints").glob("epoch-*"))) == 2
    assert pieces["epochs"][0]["train_loss"] != plain["epochs"][0]["train_loss"]
    wider = run(tmp_path / "wider", config=replace(CONFIG, epochs=1), model_changes={"d_ff": 50})
    assert wider["model"] == plain["model"] | {"d_ff": 50} and wider["parameters"] > plain["parameters"]
    assert Translator.from_pretrained(tmp_path / "wider").model.config.d_ff == 50


def the_seed_is_that_of_the_configuration(train, folder):
    """Of the first weights, of the order of the batches, of the cuts of subword dropout, and of the run."""
    config = replace(CONFIG, epochs=1, peak_lr=1e-30, seed=7)
    with (
        mock.patch.object(experiment, "BucketedBatches", wraps=experiment.BucketedBatches) as batches,
        mock.patch.object(experiment, "SubwordDropout", wraps=experiment.SubwordDropout) as noise,
    ):
        run(folder / "7", train=train, config=config, subword_dropout=0.1)
    assert batches.call_args_list[0].kwargs["seed"] == noise.call_args.kwargs["seed"] == 7
    run(folder / "8", train=train, config=replace(config, seed=8))
    first, other = (Translator.from_pretrained(folder / seed).model for seed in "78")
    assert raised(AssertionError, lambda: assert_same_weights(first, other, atol=1e-3)), "first weights do not differ"


def test_the_seed_is_that_of_the_configuration(tmp_path):
    the_seed_is_that_of_the_configuration(train_translator, tmp_path)

    def forgetful(corpus, folder, experiment, **options):
        training = replace(experiment.training, seed=0)
        return train_translator(corpus, folder, replace(experiment, training=training), **options)

    with pytest.raises(AssertionError):
        the_seed_is_that_of_the_configuration(forgetful, tmp_path / "forgetful")
    fixed = mock.patch.object(experiment.torch, "manual_seed", lambda seed, set_to=torch.manual_seed: set_to(0))
    with pytest.raises(AssertionError):
        the_seed_is_that_of_the_configuration(patched(train_translator, fixed), tmp_path / "fixed")


# --- scoring ------------------------------------------------------------------------------------


def outputs_keep_the_order_of_the_pairs(scorer):
    translator, pairs = toy_translator(), PAIRS[::30]
    found = scorer(translator, pairs, beam_size=1)
    expected = [translator.translate(pair.src, beam_size=1).text for pair in pairs]
    assert len(set(expected)) > 2 and found.outputs == expected
    assert found.bleu == bleu(expected, [pair.tgt for pair in pairs])
    perfect = [Pair(pair.src, text) for pair, text in zip(pairs[:-1], expected, strict=False)]
    assert scorer(translator, [*perfect, pairs[-1]], beam_size=1).exact_match == (len(pairs) - 1) / len(pairs)


def backwards(translator, pairs, **options):
    return score(translator, pairs[::-1], **options)


def test_outputs_keep_the_order_of_the_pairs():
    tells_apart(outputs_keep_the_order_of_the_pairs, score, backwards)


def targets_of_one_source_are_references_for_one_another(scorer):
    translator = toy_translator()
    text = translator.translate(PAIRS[0].src, beam_size=1).text
    pairs = [Pair(PAIRS[0].src, "etwas ganz anderes hier"), PAIRS[30], Pair(PAIRS[0].src, text)]
    found = scorer(translator, pairs, beam_size=1)
    assert found.outputs == [text, translator.translate(PAIRS[30].src, beam_size=1).text]
    assert found.references == [["etwas ganz anderes hier", text], [PAIRS[30].tgt]] and found.exact_match >= 0.5
    assert found.tokenized_bleu == tokenized_bleu(found.outputs, found.references)


def first_target_only(translator, pairs, **options):
    return score(translator, list({pair.src: pair for pair in pairs[::-1]}.values())[::-1], **options)


def test_targets_of_one_source_are_references_for_one_another():
    tells_apart(targets_of_one_source_are_references_for_one_another, score, first_target_only)


def lower_case_is_compared_without_case(train, folder):
    """Learned from the same pairs in capitals, the scores are those of small letters, and the signature tells."""
    texts = [(pair.src, pair.tgt) for pair in PAIRS[:48]]
    small, capital = (
        Corpus("toy", pairs[:40], pairs[40:44], pairs[44:])
        for pairs in ([Pair(*map(change, pair)) for pair in texts] for change in (str.lower, str.upper))
    )
    expected, log = (
        run(folder / name, train=train, corpus=corpus, config=replace(CONFIG, epochs=1), lowercase=True)
        for name, corpus in (("small", small), ("capital", capital))
    )
    assert log["test"] == expected["test"] and log["lowercase"]
    assert all("case:lc" in entry["signature"] for entry in log["test"])
    assert Translator.from_pretrained(folder / "capital").tokenizer.lowercase


def with_capitals(corpus, folder, experiment, **options):
    return with_always(lowercase=False)(corpus, folder, experiment, **options) | {"lowercase": experiment.lowercase}


def references_are_as_the_tokenizer_has_texts(scorer):
    """Decomposed accents and no-break spaces are no mistakes of the translator, which never writes them."""
    translator, src = toy_translator(2), PAIRS[0].src
    text = translator.translate(src, beam_size=1).text
    assert "ö" in text and " " in text, "this compares nothing"
    for written in (text.replace(" ", "\u00a0"), unicodedata.normalize("NFD", text), f" {text}  "):
        assert written != text and scorer(translator, [Pair(src, written)], beam_size=1).exact_match == 1


def with_references_as_they_are(*args, **options):
    with mock.patch.object(Tokenizer, "normalize", lambda self, text: text):
        return score(*args, **options)


def test_references_are_as_the_tokenizer_has_texts():
    tells_apart(references_are_as_the_tokenizer_has_texts, score, with_references_as_they_are)


def test_lower_case_is_compared_without_case(tmp_path):
    lower_case_is_compared_without_case(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        lower_case_is_compared_without_case(with_capitals, tmp_path / "mutant")


def test_the_summary_is_one_line_with_the_signature():
    found = score(toy_translator(), PAIRS[:3])
    assert "\n" not in found.summary
    assert "BLEU (nrefs:1|case:mixed" in found.summary and "exact match on 3 sentences" in found.summary


def test_progress_prints_a_line_for_each_epoch(tmp_path, capsys):
    once = replace(CONFIG, epochs=1)
    train_translator(CORPUS, tmp_path / "loud", Experiment("tiny", 60, once))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch   1") and "BLEU" in lines[0]
    assert [line.split(":")[0] for line in lines[1:]] == ["valid, beam 1", "valid, beam 4"]
    run(tmp_path / "quiet", config=once)
    assert capsys.readouterr().out == ""


LONG = Pair("a dog " * 40, "ein Hund")  # more than 64 tokens
FULL = Pair("a dog", "ein " * 64)  # 64 tokens
REFUSED = {
    "nothing to learn from": (replace(CORPUS, train=[]), {}, "no text to learn subwords from"),
    "nothing to choose by": (replace(CORPUS, valid=[]), {}, "the valid part of corpus toy has no pairs"),
    "nothing to report": (replace(CORPUS, test=[]), {}, "the test part of corpus toy has no pairs"),
    "long targets only": (replace(CORPUS, valid=[Pair(*LONG[::-1])]), {}, "valid part of corpus toy has no pairs of"),
    "target without room for <s>": (replace(CORPUS, valid=[FULL]), {}, "no pairs of at most 64 tokens"),
    "only a long test": (replace(CORPUS, test=[LONG]), {}, "the test part of corpus toy has no pairs of at most"),
    "no such storage": (CORPUS, {"storage": "int4"}, "storage must be one of float32, float16, int8, got 'int4'"),
    "no such part": (CORPUS, {"report": "tset"}, "report must be 'valid' or 'test', got 'tset'"),
    "no beam": (CORPUS, {"beam_size": 0}, "whole number from 1 to 1000, got 0"),
    "no such architecture": (CORPUS, {"architecture": "rnn"}, "convolutional, state space; got 'rnn'"),
    "no such share": (CORPUS, {"subword_dropout": 2}, "subword_dropout must be in [0, 1], got 2"),
    "nothing made up": (CORPUS, {"made_up_share": 0}, "made_up_share must be in (0, 1], got 0"),
    "no such side": (CORPUS, {"subword_dropout_side": "target"}, "subword_dropout_side must be one of"),
}


@pytest.mark.parametrize("corpus, options, message", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_finished_is_not_begun(corpus, options, message, tmp_path):
    with mock.patch.object(Run, "train_step", lambda *_: pytest.fail("trained first")):
        assert message in str(raised(ValueError, partial(run, tmp_path, corpus=corpus, **options)))


def law_a_long_pair_is_skipped_and_told(train, folder, capsys):
    lines = {pair: number for number, pair in enumerate([*PAIRS, LONG], start=1)}
    corpus = replace(CORPUS, train=[*PAIRS[:20], LONG, *PAIRS[20:40]], lines=lines)
    options = dict(config=replace(CONFIG, epochs=1), report="valid")
    log = run(folder / "with", corpus=corpus, train=train, **options)
    assert log["skipped_pairs"] == 1 and log["train_pairs"] == 40 and log["corpus_pairs"] == 41
    told = f"skipped 1 of the sentence pairs, longer than 64 tokens: line {len(PAIRS) + 1}\n"
    assert told in capsys.readouterr().out


def test_a_long_pair_is_skipped_and_told(tmp_path, capsys):
    def loud(corpus, folder, experiment, progress):
        return train_translator(corpus, folder, experiment, progress=True)

    def without_lines(corpus, folder, experiment, progress):
        return train_translator(replace(corpus, lines={}), folder, experiment, progress=True)

    law_a_long_pair_is_skipped_and_told(loud, tmp_path, capsys)
    for number, mutant in enumerate((without_lines, train_translator)):
        with pytest.raises(AssertionError):
            law_a_long_pair_is_skipped_and_told(mutant, tmp_path / str(number), capsys)


def test_the_course_corpus_can_be_logged(tmp_path):
    """It has a class of its own, with alignments."""
    from course_lib.data.course import load_course

    corpus = load_course(num_train=40, num_valid=3, num_test=3)
    log = run(tmp_path, corpus=corpus, config=replace(CONFIG, epochs=1), vocab_size=150)
    assert log["corpus"] == "course" and log["train_pairs"] == log["corpus_pairs"] == 40


def what_is_made_up_is_learned_from_and_counted_apart(train, folder):
    """And what is held out is not made up; a share of the made pairs is asked for where they are made."""
    given = []

    def some_more(pairs, *, held_out, share):
        given.append((list(pairs), list(held_out), share))
        return [*pairs, *pairs[:5]]

    with mock.patch.object(experiment, "augmented", some_more):
        log = run(folder, train=train, augment=True, made_up_share=0.3, config=replace(CONFIG, epochs=1))
    assert given == [(CORPUS.train, [*CORPUS.valid, *CORPUS.test], 0.3)] and log["made_up_share"] == 0.3
    assert (log["corpus_pairs"], log["train_pairs"]) == (40, 45)


def test_what_is_made_up_is_learned_from_and_counted_apart(tmp_path):
    what_is_made_up_is_learned_from_and_counted_apart(train_translator, tmp_path / "ours")
    with pytest.raises(AssertionError):
        what_is_made_up_is_learned_from_and_counted_apart(with_always(augment=False), tmp_path / "mutant")
    with pytest.raises(AssertionError):
        what_is_made_up_is_learned_from_and_counted_apart(with_always(made_up_share=1.0), tmp_path / "all")


def test_a_configuration_refuses_what_cannot_be_trained_and_cannot_change():
    assert "preset must be one of mini" in str(raised(ValueError, lambda: Experiment("huge", 60, CONFIG)))
    with pytest.raises(FrozenInstanceError):
        Experiment("tiny", 60, CONFIG).report = "valid"
