"""What is chosen after a training, by the validation part: which weights to average, and the length penalty."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from torch import Tensor

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
    start_share: float
    length_penalty: float
    bleu: float | None = None


def choose(
    translator: Translator, checkpoints: Path, experiment: Experiment, pairs: list[Pair], start: dict[str, Tensor]
) -> list[Choice]:
    """Tries all that the experiment leaves open; the model ends with the weights of the best, which comes first.

    Args:
        translator: its model gets the weights.
        checkpoints: folder with the weights of the last epochs.
        experiment: with one `average`, one `start_share` and one `length_penalty`, nothing is scored.
        pairs: of the validation part.
        start: the weights that the training began with.
    """
    means = {count: _newest(checkpoints, experiment.training.epochs, count) for count in experiment.averages}
    means = {len(paths): paths for paths in means.values()}
    open_ones = list(product(means, experiment.start_share, experiment.length_penalty))

    def load(count: int, share: float) -> None:
        ends = average_checkpoints(means[count])
        load_weights(translator.model, {name: end.lerp(start[name].to(end), share) for name, end in ends.items()})

    choices = []
    for count, share, penalty in open_ones:
        bleu = None
        if len(open_ones) > 1:
            load(count, share)
            bleu = score(translator, pairs, beam_size=experiment.beam_size, length_penalty=penalty).bleu.score
        choices.append(Choice(count, share, penalty, bleu))
    choices.sort(key=lambda choice: -(choice.bleu or 0.0))
    load(choices[0].averaged_epochs, choices[0].start_share)
    return choices


def _newest(checkpoints: Path, last: int, count: int) -> list[Path]:
    """The files of the newest epochs, as far as they are there."""
    return [path for epoch in range(last - count + 1, last + 1) if (path := epoch_file(checkpoints, epoch)).exists()]
