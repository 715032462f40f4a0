"""The command line: python -m course_lib data | train | evaluate | translate | benchmark."""

import argparse
import json
import sys
from pathlib import Path

from course_lib.data import describe, load_corpus
from course_lib.storage import SHIPPED, read_as, translator_folder
from course_lib.training import SEVERAL, add_experiment, experiment_of

DEVICES = ("cpu", "cuda", "mps")


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0, 1 after an error (which is printed), 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def data(options: argparse.Namespace) -> None:
    """Downloads a corpus if it is not here yet, checks it, and says what is in it."""
    print(describe(load_corpus(options.corpus, download=True)))


def train(options: argparse.Namespace) -> None:
    """Trains a translator into a folder, with its log; goes on where an earlier call stopped. Also under torchrun."""
    from course_lib.training import process_group, train_translator

    if str(options.out) in SHIPPED:
        raise ValueError(f"--out {options.out} is the name of a translator that comes with the course")
    experiment = experiment_of(options)
    with process_group(_device(options)) as device:
        log = train_translator(_corpus(options), options.out, experiment, device=device)
    if log["stopped"] == "interrupted":
        _stop()


def evaluate(options: argparse.Namespace) -> None:
    """Scores a translator on a part of a corpus: BLEU with its signature, and exact match."""
    from course_lib.training import score

    translator, log = _translator(options), _log(options.model)
    if options.data == "course" and options.pairs is None:
        options.pairs = _course_pairs(log)
    if options.length_penalty is None:
        options.length_penalty = log.get("length_penalty", 0.6)
    pairs = getattr(_corpus(options), options.split)
    print(score(translator, pairs, beam_size=options.beam_size, length_penalty=options.length_penalty).summary)


def _log(model: str) -> dict:
    """What a translator's training has written, if it is there."""
    path = translator_folder(model) / "log.json"
    return read_as(path, lambda text: dict(json.loads(text))) if path.exists() else {}


def _course_pairs(log: dict) -> int | None:
    """How many pairs of the course corpus a translator learned from: what is unseen depends on it."""
    return log.get("corpus_pairs", log.get("train_pairs")) if log.get("corpus") == "course" else None


def translate(options: argparse.Namespace) -> None:
    """Translates the given sentences, or each line of standard input."""
    translator = _translator(options)
    for line in options.text or sys.stdin:
        if line.strip():
            found = translator.translate(line, beam_size=options.beam_size, length_penalty=options.length_penalty)
            print(found)
            for remark in found.remarks:
                print(f"note: {remark}", file=sys.stderr)


def benchmark(options: argparse.Namespace) -> None:
    """Trains the recipe again and again with one ingredient changed, and scores each on the validation part."""
    from course_lib.training import VARIANTS, run_benchmark

    results = run_benchmark(
        load_corpus(options.data),
        options.out,
        seeds=range(options.seeds),
        epochs=options.epochs,
        device=_device(options),
    )
    for result in results:
        best = result["scores"][-1]
        print(f"{result['variant']:24}seed {result['seed']}  beam {best['beam_size']}  {best['bleu']:.1f} BLEU")
    if len(results) < options.seeds * (len(VARIANTS) + 1):  # the whole recipe is scored twice
        _stop()


def _stop() -> None:
    """After an interrupted training, which has saved its state and returned."""
    print("interrupted; the same command goes on from here")
    raise KeyboardInterrupt


_CORPORA = "course, multi30k, tatoeba, or the path of a two-column TSV file"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m course_lib", description="Train and use a Transformer.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for run, add_arguments in (
        (data, _add_data),
        (train, _add_train),
        (benchmark, _add_benchmark),
        (evaluate, _add_evaluate),
        (translate, _add_translate),
    ):
        command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        add_arguments(command)
    return parser


def _add_data(command: argparse.ArgumentParser) -> None:
    command.add_argument("corpus", help=_CORPORA)


def _add_train(command: argparse.ArgumentParser) -> None:
    _add_corpus(command, "course")
    command.add_argument("--pairs", type=int, help="of the course corpus, to train on (default: 30000)")
    command.add_argument("--out", type=Path, required=True, help="folder for the translator, log and checkpoints")
    add_experiment(command)
    _add_search(command, dict(nargs="+", default=[0.6], help=f"alpha (default: 0.6){SEVERAL}"))


def _add_benchmark(command: argparse.ArgumentParser) -> None:
    _add_corpus(command, "multi30k")
    command.add_argument("--out", type=Path, required=True, help="folder for the runs and results.json")
    command.add_argument("--seeds", type=int, default=3, help="runs of each variant (default: 3)")
    command.add_argument("--epochs", type=int, default=8, help="of each run (default: 8)")
    _add_device(command)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    _add_model(command, "course")  # the default sentences are its own
    _add_search(command, dict(help="alpha (default: what the training chose, or 0.6)"))
    _add_corpus(command, "course")
    pairs_help = "of the course corpus, in its training part (default: as many as the translator learned from)"
    command.add_argument("--pairs", type=int, help=pairs_help)
    command.add_argument("--split", default="test", choices=("train", "valid", "test"))


def _add_translate(command: argparse.ArgumentParser) -> None:
    _add_model(command, "everyday")
    _add_search(command, dict(default=0.6, help="alpha (default: 0.6)"))
    command.add_argument("text", nargs="*", help="sentences; none reads standard input, one a line")


def _add_corpus(command: argparse.ArgumentParser, default: str) -> None:
    command.add_argument("--data", default=default, help=f"{_CORPORA} (default: {default})")


def _add_model(command: argparse.ArgumentParser, default: str) -> None:
    names = f"everyday, course, or a folder of a translator (default: {default})"
    command.add_argument("--model", default=default, help=names)


def _add_search(command: argparse.ArgumentParser, penalty: dict) -> None:
    command.add_argument("--beam-size", type=int, default=4, help="1 is greedy search (default: 4)")
    command.add_argument("--length-penalty", type=float, **penalty)
    _add_device(command)


def _add_device(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", help="cpu, cuda or mps (default: cuda where there is one, else cpu)")


def _corpus(options: argparse.Namespace):
    if options.pairs is None:
        return load_corpus(options.data)
    if options.data != "course":
        raise ValueError(f"--pairs is for the course corpus, which is generated; {options.data} has its own size")
    from course_lib.data import load_course

    return load_course(num_train=options.pairs)


def _translator(options: argparse.Namespace):
    from course_lib.translator import Translator

    translator = Translator.from_pretrained(options.model)
    translator.model.to(_device(options))
    return translator


def _device(options: argparse.Namespace) -> str:
    import torch

    name = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name.split(":")[0] not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {name!r}")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:  # not on this machine
        raise ValueError(f"device {name}: {str(error).splitlines()[0]}") from error
    return name


if __name__ == "__main__":
    sys.exit(main())
