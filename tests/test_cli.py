"""The command line: train, evaluate and translate; errors in one line, never a traceback."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import cache
from unittest import mock

import pytest

from course_lib import training
from course_lib.__main__ import main
from course_lib.data.course import load_course
from course_lib.decoding import beam_search
from course_lib.training import benchmark, experiment
from course_lib.training.config import Experiment, train_preset
from course_lib.translator import Translator
from tests.helpers.corpora import toy_pairs
from tests.helpers.tiny import tiny_preset, toy_translator


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A TSV file of 180 sentence pairs."""
    path = tmp_path_factory.mktemp("data") / "toy.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of an untrained translator."""
    folder = tmp_path_factory.mktemp("model")
    toy_translator().save_pretrained(folder)
    return folder


def run(*arguments, text=""):
    return subprocess.run(
        [sys.executable, "-m", "course_lib", *map(str, arguments)],
        input=text, capture_output=True, text=True, timeout=900, encoding="utf-8",
    )  # fmt: skip


def test_train_evaluate_and_translate_from_end_to_end(toy, tmp_path):
    out = tmp_path / "translator"
    sizes = ["--epochs", 2, "--batch-tokens", 512, "--vocab-size", 80, "--warmup-steps", 4, "--device", "cpu"]
    sizes += ["--report", "test"]
    trained = run("train", "--data", toy, "--preset", "tiny", "--out", out, *sizes)
    assert trained.returncode == 0, trained.stderr
    assert trained.stdout.count("epoch ") == 2 and "test, beam 4: " in trained.stdout
    log = json.loads((out / "log.json").read_text())
    assert log["corpus"] == "toy" and log["training"]["epochs"] == 2 and log["training"]["warmup_steps"] == 4
    assert log["training"]["decay"] == "linear", "the rest is the preset's"
    assert log["epochs"][1]["train_loss"] < log["epochs"][0]["train_loss"]

    scored = run("evaluate", "--model", out, "--data", toy, "--beam-size", 1, "--device", "cpu")
    assert scored.returncode == 0, scored.stderr
    assert scored.stdout.startswith(f"{log['test'][0]['bleu']:.1f} BLEU (nrefs:1|case:mixed")

    lines = "a dog sees a cat .\n\na man hears a bird .\n"
    translated = run("translate", "--model", out, "--device", "cpu", text=lines)
    assert translated.returncode == 0 and translated.stderr == "", translated.stderr
    expected = Translator.from_pretrained(out).translate_batch(["a dog sees a cat .", "a man hears a bird ."])
    assert translated.stdout.splitlines() == [translation.text for translation in expected]


# --- in this process ----------------------------------------------------------------------------


def test_translate_takes_sentences_or_standard_input(model, capsys, monkeypatch):
    translator, texts = Translator.from_pretrained(model), ["a dog sees a cat .", "a man"]
    for beam_size in (1, 4):
        expected = [translator.translate(text, beam_size=beam_size).text for text in texts]
        options = ["translate", "--model", str(model), "--beam-size", str(beam_size), "--device", "cpu"]
        assert main([*options, *texts]) == 0
        assert capsys.readouterr().out.splitlines() == expected
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(texts) + "\n"))
        assert main(options) == 0
        assert capsys.readouterr().out.splitlines() == expected


def test_translate_says_what_the_reader_should_know(model, capsys):
    """On standard error, so that the output is translations only."""
    assert main(["translate", "--model", str(model), "--device", "cpu", "a dog 12345"]) == 0
    said = capsys.readouterr()
    assert said.err == "note: not in the translation: 12345\n" and len(said.out.splitlines()) == 1


def the_search_is_what_was_asked_for(read, model, toy):
    asked, reached = dict(beam_size=3, length_penalty=2.5), []

    def spy(*args, **options):
        reached.append(options)
        return beam_search(*args, **options)

    flags = ["--model", str(model), "--device", "cpu", "--beam-size", "3", "--length-penalty", "2.5"]
    with mock.patch("course_lib.translator.beam_search", spy):
        for command in (["translate", *flags, "a dog"], ["evaluate", *flags, "--data", str(toy)]):
            reached.clear()
            assert read(command) == 0
            assert reached and all(options == asked for options in reached)


def without_the_penalty(arguments):
    at = arguments.index("--length-penalty")
    return main(arguments[:at] + arguments[at + 2 :])


def test_the_search_is_what_was_asked_for(model, toy):
    the_search_is_what_was_asked_for(main, model, toy)
    with pytest.raises(AssertionError):
        the_search_is_what_was_asked_for(without_the_penalty, model, toy)


def law_the_penalty_is_the_one_that_was_chosen(read, toy, folder):
    """By the training, or by who asks; and the API's, where neither did."""
    toy_translator().save_pretrained(folder)
    for model, log, flags, expected in (
        ("everyday", None, [], 1.0),
        ("everyday", None, ["--length-penalty", "0.2"], 0.2),
        (folder, None, [], 0.6),
        (folder, {"corpus": "toy", "stopped": "interrupted"}, [], 0.6),
        (folder, {"corpus": "toy", "length_penalty": 1.5}, [], 1.5),
    ):
        if log:
            (folder / "log.json").write_text(json.dumps(log))
        with mock.patch.object(training, "score", return_value=mock.Mock(summary="scored")) as scored:
            assert read(["evaluate", "--device", "cpu", "--data", str(toy), "--model", str(model), *flags]) == 0
        assert scored.call_args.kwargs == dict(beam_size=4, length_penalty=expected)


def of_no_log(arguments):
    with mock.patch("course_lib.__main__._log", return_value={}):
        return main(arguments)


def test_evaluate_takes_the_penalty_that_was_chosen(toy, tmp_path):
    law_the_penalty_is_the_one_that_was_chosen(main, toy, tmp_path)
    with pytest.raises(AssertionError):
        law_the_penalty_is_the_one_that_was_chosen(of_no_log, toy, tmp_path)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_evaluate_scores_the_part_that_was_asked_for(split, model, toy, capsys):
    assert main(["evaluate", "--model", str(model), "--data", str(toy), "--split", split, "--beam-size", "1"]) == 0
    count = {"train": 162, "valid": 9, "test": 9}[split]
    assert f"exact match on {count} sentences" in capsys.readouterr().out


@pytest.mark.parametrize(
    "architecture, flags, changes",
    [
        ("transformer", ["--post-norm", "--keep-subwords"], {"norm_first": False}),
        ("lstm", [], {}),
        ("state space", [], {}),
    ],
)
def test_every_option_of_train_reaches_the_training(architecture, flags, changes, tmp_path):
    options = dict(subword_dropout=0.2, made_up_share=0.4, average=(3, 5), vocab_size=90, preset="mini", report="valid")
    options |= dict(architecture=architecture, subword_dropout_side="source")
    options |= dict(beam_size=7, length_penalty=1.5)
    options |= dict(start="everyday", start_share=(0.0, 0.5)) if architecture == "transformer" else {}
    given = [
        word
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", *map(str, value if isinstance(value, tuple) else [value]))
    ]
    given += ["--augment", "--dropout", "0.4", "--d-ff", "96", "--lowercase", "--decay", "inverse_sqrt", *flags]
    with mock.patch.object(training, "train_translator", return_value={"stopped": "finished"}) as train:
        assert main(["train", "--pairs", "7", "--epochs", "3", "--device", "cpu", "--out", str(tmp_path), *given]) == 0
    (corpus, folder, asked), called = train.call_args
    assert len(corpus.train) == 7 and folder == tmp_path and called == {"device": "cpu"}
    config = train_preset("mini", epochs=3, decay="inverse_sqrt")
    changes = {"dropout": 0.4, "d_ff": 96} | changes
    options |= dict(lowercase=True, augment=True, keep_subwords="--keep-subwords" in flags)
    assert asked == Experiment(**options, training=config, model_changes=changes)


def test_each_choice_that_the_help_shows_is_one_word_and_is_taken(toy, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = dict(re.findall(r"^  --([\w-]+) \{(.+?)\}", capsys.readouterr().out, flags=re.M))
    assert {"architecture", "decay", "precision", "storage"} <= set(shown)
    for name, choices in shown.items():
        for choice in choices.split(","):
            with mock.patch.object(training, "train_translator", return_value={"stopped": "finished"}) as train:
                command = f"train --data {toy} --out {tmp_path} --device cpu --{name} {choice}"
                assert main(command.split()) == 0
            field, asked = name.replace("-", "_"), train.call_args.args[2]
            value = getattr(asked if hasattr(asked, field) else asked.training, field)
            assert value == (choice.replace("-", " ") if name == "architecture" else choice)


def test_benchmark_trains_what_was_asked_for_and_prints_each_result(toy, tmp_path, capsys):
    result = {
        "variant": "post-norm",
        "seed": 1,
        "scores": [{"beam_size": 1, "bleu": 3}, {"beam_size": 5, "bleu": 12.34}],
    }
    command = ["benchmark", "--data", str(toy), "--out", str(tmp_path), "--seeds", "2", "--epochs", "4"]
    whole = [result] * 2 * (len(benchmark.VARIANTS) + 1)
    with mock.patch.object(training, "run_benchmark", return_value=whole) as run:
        assert main([*command, "--device", "cpu"]) == 0
    (corpus, folder), called = run.call_args
    assert len(corpus.train) == 162 and folder == tmp_path
    assert called == dict(seeds=range(2), epochs=4, device="cpu")
    line = "post-norm seed 1 beam 5 12.3 BLEU"
    assert [" ".join(each.split()) for each in capsys.readouterr().out.splitlines()] == [line] * len(whole)
    with mock.patch.object(training, "run_benchmark", return_value=whole[1:]):
        assert main([*command, "--device", "cpu"]) == 130
    assert capsys.readouterr().out.endswith("interrupted; the same command goes on from here\n")


def test_an_interrupted_training_says_how_to_go_on_and_does(toy, tmp_path, capsys):
    def pressing(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return score(*args, **options)

    score = experiment.score
    command = ["train", "--data", str(toy), "--out", str(tmp_path), "--epochs", "2", "--vocab-size", "80"]
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        with mock.patch.object(experiment, "score", pressing):
            assert main(command) == 130
        assert "the same command goes on from here" in capsys.readouterr().out
        assert len(json.loads((tmp_path / "log.json").read_text())["epochs"]) == 1
        assert main(command) == 0
    out = capsys.readouterr().out
    assert "epoch   2" in out and "epoch   1" not in out
    assert len(json.loads((tmp_path / "log.json").read_text())["epochs"]) == 2


def test_data_describes_a_corpus(toy, capsys):
    assert main(["data", str(toy)]) == 0
    assert "162" in capsys.readouterr().out


def evaluated_pairs(arguments, read):
    """The pairs that `evaluate` scores."""
    with mock.patch.object(training, "score", return_value=mock.Mock(summary="scored")) as scored:
        assert read(["evaluate", "--device", "cpu", *arguments]) == 0
    return scored.call_args.args[1]


generated = cache(load_course)


def what_is_scored_is_unseen(read, folder):
    """Of the sentences that a translator of the course corpus is scored on by default, it has learned none."""
    learned = {"course": generated(num_train=60_000).train, str(folder): generated(num_train=50_000).train}
    for name, train in learned.items():
        scored, seen = evaluated_pairs(["--model", name], read), {pair.src for pair in train}
        assert len(scored) == 1000 and not seen & {pair.src for pair in scored}, name


def of_the_default_size(arguments):
    with mock.patch("course_lib.__main__._course_pairs", return_value=None):
        return main(arguments)


def test_a_translator_is_scored_on_what_it_has_not_learned(tmp_path, monkeypatch):
    monkeypatch.setattr("course_lib.data.load_course", generated)
    toy_translator().save_pretrained(tmp_path)
    for pairs in ({"train_pairs": 50_000}, {"train_pairs": 85_000, "corpus_pairs": 50_000}):  # the rest was made up
        (tmp_path / "log.json").write_text(json.dumps({"corpus": "course"} | pairs))
        what_is_scored_is_unseen(main, tmp_path)
    with pytest.raises(AssertionError):
        what_is_scored_is_unseen(of_the_default_size, tmp_path)
    (tmp_path / "log.json").write_text(json.dumps({"corpus": "multi30k", "train_pairs": 29_000}))
    assert evaluated_pairs(["--model", str(tmp_path)], main) == generated().test  # none of it was learned
    assert evaluated_pairs(["--pairs", "70"], main) == generated(num_train=70).test


def test_the_help_of_each_command_says_what_it_does(capsys):
    for command in ("data", "train", "evaluate", "translate", "benchmark"):
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        assert "usage: python -m course_lib" in capsys.readouterr().out


# --- errors -------------------------------------------------------------------------------------


def error_of(run_main, arguments, capsys):
    """The error line of a command that must fail."""
    try:
        status = run_main([str(argument) for argument in arguments])
    except Exception as error:
        raise AssertionError(f"a traceback: {error!r}") from error
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1, captured.err
    return captured.err


def uncaught(arguments):
    from course_lib.__main__ import _parser

    options = _parser().parse_args(arguments)
    return options.run(options) or 0


TRAIN = ["train", "--data", "TOY", "--out", "OUT"]
TRANSLATE = ["translate", "--model", "MODEL"]
ERRORS = {
    "unknown corpus": (["data", "klingon"], "expected one of course, multi30k, tatoeba"),
    "pairs of another corpus": ([*TRAIN, "--pairs", 9], "--pairs is for the course corpus"),
    "no UTF-8": ([*TRANSLATE, os.fsdecode(b"caf\xe9")], "lone surrogate"),
    "no such file": (["evaluate", "--model", "MODEL", "--data", "nowhere.tsv"], "nowhere.tsv"),
    "no translator": (["translate", "--model", "nowhere", "a dog"], "nowhere"),
    "no epochs": ([*TRAIN, "--epochs", 0], "epochs must be at least 1, got 0"),
    "norms of an LSTM": ([*TRAIN, "--architecture", "lstm", "--post-norm"], "is for a Transformer, not for lstm"),
    "unknown translator": (["translate", "--model", "german"], "no translator at german: expected everyday, course"),
    "a large seed": ([*TRAIN, "--seed", 2**70], "seed must be an int of at most 64 bits"),
    "a log that is none": (["evaluate", "--model", "MODEL WITH LOG", "--data", "TOY"], "log.json is damaged"),
    "no room for characters": ([*TRAIN, "--vocab-size", 9], "vocab_size must hold"),
    "negative vocabulary": ([*TRAIN, "--vocab-size", -1], "vocab_size"),
    "no beam": ([*TRANSLATE, "--beam-size", 0, "a dog"], "beam_size must be a whole number from 1 to 1000, got 0"),
    "a wide beam": ([*TRAIN, "--beam-size", 100_000], "from 1 to 1000, got 100000"),
    "no penalty": ([*TRANSLATE, "--length-penalty", "nan", "a dog"], "must be a finite number, got nan"),
    "endless penalty": ([*TRAIN, "--length-penalty", "0.6", "inf"], "must be a finite number, got inf"),
    "too long": ([*TRANSLATE, "a dog " * 20], "the model has positions for 24"),
    "device": ([*TRANSLATE, "--device", "gpu", "a dog"], "device must be one of cpu, cuda, mps, got 'gpu'"),
    "device without numbers": ([*TRANSLATE, "--device", "meta", "a dog"], "device must be one of cpu, cuda, mps"),
    "absent device": ([*TRANSLATE, "--device", "cuda:77", "a dog"], "cuda"),
    "name that is taken": (["train", "--data", "TOY", "--out", "everyday"], "comes with the course"),
    "folder is a file": (["train", "--data", "TOY", "--out", "TOY"], "toy.tsv"),
}


@pytest.fixture
def filled_in(toy, model, tmp_path, monkeypatch):
    """Function that puts real paths into a command; no corpus is at hand."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "account"))
    monkeypatch.delenv("COURSE_DATA", raising=False)
    logged = shutil.copytree(model, tmp_path / "logged")
    (logged / "log.json").write_text("[1]")
    paths = {"TOY": toy, "MODEL": model, "OUT": tmp_path / "out", "MODEL WITH LOG": logged}
    return lambda arguments: [paths.get(argument, argument) for argument in arguments]


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line(name, filled_in, capsys):
    arguments, message = ERRORS[name]
    assert message in error_of(main, filled_in(arguments), capsys)


def test_error_law_catches_a_traceback(filled_in, capsys):
    with pytest.raises(AssertionError):
        error_of(uncaught, filled_in([*TRAIN, "--epochs", 0]), capsys)


def test_a_missing_corpus_says_both_ways_out(filled_in, capsys):
    assert main([str(part) for part in filled_in(["evaluate", "--model", "MODEL", "--data", "multi30k"])]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: corpus multi30k")
    assert "COURSE_DATA" in captured.err and "python -m course_lib data multi30k" in captured.err


def test_a_malformed_line_is_named(tmp_path, capsys):
    path = tmp_path / "bad.tsv"
    path.write_text("a dog\tein Hund\na cat\n")
    assert "line 2" in error_of(main, ["train", "--data", path, "--out", tmp_path / "out"], capsys)
    assert not (tmp_path / "out").exists()


def test_the_same_folder_with_another_configuration_is_refused(toy, tmp_path, capsys):
    command = ["train", "--data", toy, "--out", tmp_path, "--vocab-size", 80, "--epochs", 1]
    with mock.patch.object(experiment, "model_preset", tiny_preset):
        assert main([str(part) for part in command]) == 0
        capsys.readouterr()
        told = error_of(main, [*command, "--seed", 5], capsys)
        assert f"{tmp_path / 'checkpoints'} holds another run" in told and "differs in ['seed']" in told
        assert "delete this one to begin anew" in told
        shutil.rmtree(tmp_path / "checkpoints")
        assert main([str(part) for part in [*command, "--seed", 5]]) == 0
    assert json.loads((tmp_path / "log.json").read_text())["training"]["seed"] == 5


@pytest.mark.parametrize("flags", [["--preset=huge"], ["--precision=int4"], ["--decay=cosine"], ["--architecture=rnn"]])
def test_a_choice_that_there_is_not_shows_those_that_there_are(flags, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--out=x", *flags])
    assert stopped.value.code == 2 and "(choose from " in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["train"], ["fly"]])
def test_a_wrong_command_shows_its_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage:" in capsys.readouterr().err
