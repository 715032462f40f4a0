"""Malformed command lines: each is carried out, or refused in one line; never a traceback."""

import dataclasses
import json
import math
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import training
from course_lib.__main__ import main
from tests.helpers.corpora import toy_pairs
from tests.helpers.faults import at_most
from tests.helpers.tiny import toy_translator

NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1e400", "1000000000", "1" * 5000, "", "x", "1.5", "٣", "0x10", "1_0", "2")
NAMES = ("", "x", "\0", "x" * 10_000, "/dev/zero", "nowhere.tsv", "..", "nan", "course\n", "é")
WORDS = ("", " ", "\0\x07", "\u202edog", "<b>dog</b>", "dog " * 50, "\ud800", "--", "a\nb", "$x$")
COMMANDS = {
    "train": dict(
        **dict.fromkeys(
            ("vocab-size", "dropout", "d-ff", "subword-dropout", "average", "snapshots", "beam-size", "length-penalty",
             "epochs", "batch-tokens", "peak-lr", "warmup-steps", "accumulate", "seed"),
            NUMBERS,
        ),
        **dict.fromkeys(
            ("preset", "architecture", "report", "subword-dropout-side", "decay", "precision", "device", "data"), NAMES
        ),
    ),
    "evaluate": {"beam-size": NUMBERS, "length-penalty": NUMBERS, "split": NAMES, "data": NAMES, "model": NAMES,
                 "device": (*NAMES, "meta", "cuda:99", "cpu:99", "xla", "mps")},
    "translate": {"beam-size": NUMBERS, "length-penalty": NUMBERS, "model": NAMES, "text": WORDS},
    "data": {"corpus": NAMES},
    "benchmark": {"seeds": NUMBERS, "epochs": NUMBERS, "data": NAMES},
}  # fmt: skip
PAIRS = ("0", "-1", "nan", "1000000000", "9" * 5000)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A corpus, a translator, and a folder for one more."""
    folder = tmp_path_factory.mktemp("command")
    data = folder / "toy.tsv"
    data.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in toy_pairs()[:60]), encoding="utf-8")
    toy_translator().save_pretrained(folder / "model")
    return {"data": str(data), "model": str(folder / "model"), "out": str(folder / "out")}


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    """No corpus, and no network."""
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "account"))
    monkeypatch.delenv("COURSE_DATA", raising=False)
    monkeypatch.setattr("course_lib.data.download.fetch", mock.Mock(side_effect=ConnectionError("no network")))
    monkeypatch.setattr("course_lib.data.multi30k.fetch", mock.Mock(side_effect=ConnectionError("no network")))


def good(command, places):
    """Options of a call that is carried out."""
    found = {name: places[name] for name in {"train": ("data", "out"), "evaluate": ("data", "model"),
             "translate": ("model",), "benchmark": ("data", "out")}.get(command, ())}  # fmt: skip
    found |= {} if command == "data" else {"device": "cpu"}
    return found | ({"text": "a dog"} if command == "translate" else {})


def words(command, options):
    """The command line; corpus and text stand without a name."""
    named = [word for name, value in options.items() if name not in ("corpus", "text") for word in (f"--{name}", value)]
    bare = [options[name] for name in ("corpus", "text") if name in options]
    return [command, *named, *bare]


def law_carried_out_or_refused(run, arguments, capsys, asked):
    """Status 0, or 1 with one line, or 2 with the usage; what is asked for has finite numbers."""
    capsys.readouterr()
    try:
        with at_most(20):
            status = run(arguments)
    except SystemExit as stopped:
        status = stopped.code
    except BaseException as error:
        raise AssertionError(f"{arguments}: a traceback, {error!r}") from error
    said = capsys.readouterr().err
    assert status in (0, 1, 2, 130), f"{arguments}: status {status}"
    assert status in (0, 130) or "error: " in said and "Traceback" not in said, f"{arguments}: {said!r}"
    assert status != 1 or said.startswith("error: ") and len(said) < 50_000, f"{arguments}: {said!r}"
    for call in asked.call_args_list:
        experiment = call.args[2]
        numbers = [*dataclasses.asdict(experiment).values(), *experiment.training.to_dict().values()]
        flat = [each for number in numbers for each in (number if isinstance(number, tuple) else (number,))]
        assert all(math.isfinite(each) for each in flat if isinstance(each, float)), f"{arguments}: {flat}"
        assert json.dumps(experiment.training.to_dict(), allow_nan=False)
    return status


@pytest.fixture
def run(capsys):
    """Function that obeys the law for a command line; nothing is trained."""
    with (
        mock.patch.object(training, "train_translator", return_value={"stopped": "finished"}) as asked,
        mock.patch.object(training, "run_benchmark", return_value=[]),
    ):

        def check(arguments, by=main):
            asked.reset_mock()
            return law_carried_out_or_refused(by, arguments, capsys, asked)

        yield check


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_option_is_refused_in_one_line(command, places, run):
    assert command == "data" or run(words(command, good(command, places))) in (0, 130)
    for name, values in COMMANDS[command].items():
        for value in values:
            run(words(command, good(command, places) | {name: value}))


@pytest.mark.parametrize("command", [command for command, options in COMMANDS.items() if len(options) > 1])
def test_two_bad_options_are_refused_in_one_line(command, places, run):
    options = [(name, value) for name, values in COMMANDS[command].items() for value in values]

    @settings(max_examples=40, derandomize=True, database=None, deadline=None)
    @given(st.lists(st.sampled_from(options), min_size=2, max_size=3))
    def check(chosen):
        run(words(command, good(command, places) | dict(chosen)))

    check()


@pytest.mark.parametrize("pairs", PAIRS)
def test_an_impossible_number_of_pairs_is_refused(pairs, places, run):
    assert run(["train", "--out", places["out"], "--device", "cpu", "--pairs", pairs]) in (1, 2)


def test_a_command_that_shows_a_traceback_is_caught(places, run):
    def careless(arguments):
        from course_lib.__main__ import _parser

        options = _parser().parse_args(arguments)
        return options.run(options) or 0

    arguments = words("train", good("train", places) | {"epochs": "0"})
    with pytest.raises(AssertionError, match="a traceback"):
        run(arguments, careless)
