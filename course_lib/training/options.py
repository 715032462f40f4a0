"""The options of `python -m course_lib train`, and the experiment that they ask for; needs no torch."""

import argparse

from course_lib.config import ARCHITECTURES, PRESETS, require
from course_lib.training.config import DECAYS, PRECISIONS, SIDES, STORAGES, Experiment, train_preset

SEVERAL = "; of several numbers the validation part chooses"
# What the command line calls as the configuration does: fields of Experiment, and those of TrainConfig.
_EXPERIMENT = ("preset", "vocab_size", "lowercase", "augment", "made_up_share", "subword_dropout", "average", "report")
_EXPERIMENT += ("beam_size", "length_penalty", "snapshots", "start", "start_share", "keep_subwords", "storage")
_EXPERIMENT += ("subword_dropout_side",)
_TRAINING = {
    "epochs": dict(type=int, help="passes over the training pairs"),
    "batch_tokens": dict(type=int, help="most padded tokens of a micro-batch on its longer side"),
    "peak_lr": dict(type=float, help="learning rate at the end of the warm-up"),
    "warmup_steps": dict(type=int, help="steps of linear warm-up"),
    "decay": dict(choices=DECAYS, help="of the learning rate after the warm-up: as in the paper, or down to 0"),
    "accumulate": dict(type=int, help="micro-batches whose gradients make one step"),
    "consistency": dict(type=float, help="weight with which two passes of a batch are drawn together; 0 is one pass"),
    "precision": dict(choices=PRECISIONS, help="bfloat16: mixed, matrix products in bfloat16"),
    "seed": dict(type=int, help="of the first weights, the order of the batches and the dropout"),
}


def add_experiment(command: argparse.ArgumentParser) -> None:
    """Gives a command the options of model and training; those of the search it has from elsewhere."""
    as_large = "another has as many parameters as the Transformer would have (default: transformer)"
    kind = dict(type=_one_word, choices=[_one_word(name) for name in ARCHITECTURES])
    command.add_argument("--architecture", default="transformer", **kind, help=as_large)
    command.add_argument("--preset", default="tiny", choices=PRESETS, help="size of the model (default: tiny)")
    command.add_argument("--start", help="everyday, course, or a folder: a translator to go on from (default: none)")
    command.add_argument("--keep-subwords", action="store_true", help="of --start, instead of learning new ones")
    command.add_argument("--vocab-size", type=int, default=4000, help="most subwords (default: 4000)")
    command.add_argument("--lowercase", action="store_true", help="of both languages, as many papers do")
    command.add_argument("--dropout", type=float, help="instead of the preset's dropout")
    command.add_argument("--d-ff", type=int, help="instead of the preset's inner width of the feed-forward network")
    command.add_argument("--post-norm", action="store_true", help="normalize after the residual, as the paper does")
    command.add_argument("--augment", action="store_true", help="learn from made-up names, numbers, dates ... as well")
    share_of_made = "of what --augment makes up, drawn at random (default: 1)"
    command.add_argument("--made-up-share", type=float, default=1.0, help=share_of_made)
    command.add_argument("--subword-dropout", type=float, default=0.0, help="share of merges left out (default: 0)")
    command.add_argument("--subword-dropout-side", default="both", choices=SIDES, help="where (default: both)")
    average_help = f"last epochs averaged at the end (default: 1){SEVERAL}"
    command.add_argument("--average", type=int, nargs="+", default=[1], help=average_help)
    share_help = f"of the weights of --start in the finished ones (default: 0){SEVERAL}"
    command.add_argument("--start-share", type=float, nargs="+", default=[0.0], help=share_help)
    command.add_argument("--snapshots", type=int, default=0, help="times to keep the weights on the way (default: 0)")
    part_help = "part to score at the end (default: valid): test once, when nothing is left to be chosen"
    command.add_argument("--report", default="valid", choices=("valid", "test"), help=part_help)
    command.add_argument("--storage", default="float32", choices=STORAGES, help="of the finished weights")
    for name, option in _TRAINING.items():
        told = option | {"help": f"{option['help']} (default: the preset's)"}
        command.add_argument(f"--{_one_word(name)}", **told)


def experiment_of(options: argparse.Namespace) -> Experiment:
    """What the options ask for; ValueError if it cannot be trained."""
    changes = {name: getattr(options, name) for name in _TRAINING if getattr(options, name) is not None}
    return Experiment(
        training=train_preset(options.preset, **changes),
        architecture={_one_word(name): name for name in ARCHITECTURES}[options.architecture],
        model_changes=_model_changes(options),
        **{name: getattr(options, name) for name in _EXPERIMENT},
    )


def _model_changes(options: argparse.Namespace) -> dict:
    given = {"dropout": options.dropout, "d_ff": options.d_ff}
    changes = {name: value for name, value in given.items() if value is not None}
    if options.post_norm:
        is_one = options.architecture == "transformer"
        require(is_one, f"--post-norm is for a Transformer, not for {options.architecture}")
        changes["norm_first"] = False
    return changes


def _one_word(name: str) -> str:
    """As a shell takes it without quotation marks: state-space."""
    return name.replace(" ", "-").replace("_", "-")
