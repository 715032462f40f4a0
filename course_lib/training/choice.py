"""What is chosen after a training, by the validation part: how many epochs to average, and the length penalty."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from course_lib.data import Pair
from course_lib.storage import average_checkpoints, load_weights
from course_lib.training.config import Experiment
from course_lib.training.evaluation import score
from course_lib.training.run import epoch_file
from course_lib.translator import Translator


@dataclass(frozen=True)
class Choice:
    """One way to finish a training, and its BLEU on the validation part if it was compared with others."""

    averaged_epochs: int
    length_penalty: float
    bleu: float | None = None


def choose(translator: Translator, checkpoints: Path, experiment: Experiment, pairs: list[Pair]) -> list[Choice]:
    """Tries all that the experiment leaves open; the model ends with the weights of the best, which comes first.

    Args:
        translator: its model gets the weights.
        checkpoints: folder with the weights of the last epochs.
        experiment: with one `average` and one `length_penalty`, nothing is scored.
        pairs: of the validation part.
    """
    means = {count: _newest(checkpoints, experiment.training.epochs, count) for count in experiment.averages}
    open_ones = list(product({len(paths): paths for paths in means.values()}.items(), experiment.length_penalty))
    choices = []
    for (count, paths), penalty in open_ones:
        bleu = None
        if len(open_ones) > 1:
            load_weights(translator.model, average_checkpoints(paths))
            bleu = score(translator, pairs, beam_size=experiment.beam_size, length_penalty=penalty).bleu.score
        choices.append(Choice(count, penalty, bleu))
    choices.sort(key=lambda choice: -(choice.bleu or 0.0))
    best = _newest(checkpoints, experiment.training.epochs, choices[0].averaged_epochs)
    load_weights(translator.model, average_checkpoints(best))
    return choices


def _newest(checkpoints: Path, last: int, count: int) -> list[Path]:
    """The files of the newest epochs, as far as they are there."""
    return [path for epoch in range(last - count + 1, last + 1) if (path := epoch_file(checkpoints, epoch)).exists()]
