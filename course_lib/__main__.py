"""The command line: python -m course_lib data | train | evaluate | translate | benchmark."""

import argparse
import json
import sys
from pathlib import Path

from course_lib.config import ARCHITECTURES, PRESETS
from course_lib.data import describe, load_corpus
from course_lib.training import SIDES, STORAGES, Experiment, train_preset

SHIPPED_PAIRS = 60_000  # of the course corpus, that the shipped translator for it learned from


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
    from course_lib.translator import SHIPPED

    if str(options.out) in SHIPPED:
        raise ValueError(f"--out {options.out} is the name of a translator that comes with the course")
    changes = {name: getattr(options, name) for name in _OVERRIDES if getattr(options, name) is not None}
    experiment = Experiment(
        training=train_preset(options.preset, **changes),
        model_changes=_model_changes(options),
        **{name: getattr(options, name) for name in _EXPERIMENT},
    )
    with process_group(_device(options)) as device:
        log = train_translator(_corpus(options), options.out, experiment, device=device)
    if log["stopped"] == "interrupted":
        _stop()


def evaluate(options: argparse.Namespace) -> None:
    """Scores a translator on a part of a corpus: BLEU with its signature, and exact match."""
    from course_lib.training import score

    translator = _translator(options)
    if options.data == "course" and options.pairs is None:
        options.pairs = _course_pairs(options.model)
    pairs = getattr(_corpus(options), options.split)
    print(score(translator, pairs, beam_size=options.beam_size, length_penalty=options.length_penalty).summary)


def _course_pairs(model: str) -> int | None:
    """How many pairs of the course corpus a translator learned from: what is unseen depends on it."""
    if model == "course":
        return SHIPPED_PAIRS
    path = Path(model) / "log.json"
    log = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return log.get("train_pairs") if log.get("corpus") == "course" else None


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


def _model_changes(options: argparse.Namespace) -> dict:
    given = {"dropout": options.dropout, "d_ff": options.d_ff}
    changes = {name: value for name, value in given.items() if value is not None}
    if options.post_norm:
        if options.architecture != "transformer":
            raise ValueError(f"--post-norm is for a Transformer, not for {options.architecture}")
        changes["norm_first"] = False
    return changes


# What the command line calls as the configuration does: fields of Experiment, and those of TrainConfig.
_EXPERIMENT = ("preset", "vocab_size", "lowercase", "architecture", "augment", "subword_dropout", "average", "report")
_EXPERIMENT += ("beam_size", "length_penalty", "snapshots", "start", "storage", "subword_dropout_side")
_OVERRIDES = "epochs batch_tokens peak_lr warmup_steps decay accumulate consistency precision seed".split()
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
    as_large = "another has as many parameters as the Transformer would have (default: transformer)"
    kind = dict(type=lambda name: name.replace("-", " "), choices=ARCHITECTURES)  # state-space is "state space"
    command.add_argument("--architecture", default="transformer", **kind, help=as_large)
    command.add_argument("--preset", default="tiny", choices=PRESETS, help="size of the model (default: tiny)")
    command.add_argument("--out", type=Path, required=True, help="folder for the translator, log and checkpoints")
    command.add_argument("--start", help="everyday, course, or a folder: a translator to go on from (default: none)")
    command.add_argument("--vocab-size", type=int, default=4000, help="most subwords (default: 4000)")
    command.add_argument("--lowercase", action="store_true", help="of both languages, as many papers do")
    command.add_argument("--dropout", type=float, help="instead of the preset's dropout")
    command.add_argument("--d-ff", type=int, help="instead of the preset's inner width of the feed-forward network")
    command.add_argument("--post-norm", action="store_true", help="normalize after the residual, as the paper does")
    command.add_argument("--augment", action="store_true", help="learn from made-up names, numbers, dates ... as well")
    command.add_argument("--subword-dropout", type=float, default=0.0, help="share of merges left out (default: 0)")
    command.add_argument("--subword-dropout-side", default="both", choices=SIDES, help="where (default: both)")
    several = "; of several numbers the validation part chooses"
    average_help = f"last epochs averaged at the end (default: 1){several}"
    command.add_argument("--average", type=int, nargs="+", default=[1], help=average_help)
    command.add_argument("--snapshots", type=int, default=0, help="times to keep the weights on the way (default: 0)")
    part_help = "part to score at the end (default: valid): test once, when nothing is left to be chosen"
    command.add_argument("--report", default="valid", choices=("valid", "test"), help=part_help)
    command.add_argument("--storage", default="float32", choices=STORAGES, help="of the finished weights")
    _add_search(command, several)
    for name in _OVERRIDES:
        kind = {"precision": str, "decay": str, "peak_lr": float, "consistency": float}.get(name, int)
        command.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"instead of the preset's {name}")


def _add_benchmark(command: argparse.ArgumentParser) -> None:
    _add_corpus(command, "multi30k")
    command.add_argument("--out", type=Path, required=True, help="folder for the runs and results.json")
    command.add_argument("--seeds", type=int, default=3, help="runs of each variant (default: 3)")
    command.add_argument("--epochs", type=int, default=8, help="of each run (default: 8)")
    _add_device(command)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    _add_model(command, "course")  # the default sentences are its own
    _add_search(command)
    _add_corpus(command, "course")
    pairs_help = "of the course corpus, in its training part (default: as many as the translator learned from)"
    command.add_argument("--pairs", type=int, help=pairs_help)
    command.add_argument("--split", default="test", choices=("train", "valid", "test"))


def _add_translate(command: argparse.ArgumentParser) -> None:
    _add_model(command, "everyday")
    _add_search(command)
    command.add_argument("text", nargs="*", help="sentences; none reads standard input, one a line")


def _add_corpus(command: argparse.ArgumentParser, default: str) -> None:
    command.add_argument("--data", default=default, help=f"{_CORPORA} (default: {default})")


def _add_model(command: argparse.ArgumentParser, default: str) -> None:
    names = f"everyday, course, or a folder of a translator (default: {default})"
    command.add_argument("--model", default=default, help=names)


def _add_search(command: argparse.ArgumentParser, several: str = "") -> None:
    """`several` says what becomes of several length penalties; without it there is one."""
    command.add_argument("--beam-size", type=int, default=4, help="1 is greedy search (default: 4)")
    number = dict(nargs="+", default=[0.6]) if several else dict(default=0.6)
    command.add_argument("--length-penalty", type=float, help=f"alpha (default: 0.6){several}", **number)
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
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:  # unknown, or not on this machine
        raise ValueError(f"device {name}: {str(error).splitlines()[0]}") from error
    if torch.device(name).type == "meta":
        raise ValueError("device meta: it holds shapes and no numbers")
    return name


if __name__ == "__main__":
    sys.exit(main())
