"""What a training run is, and the experiment around it: configurations and named presets; needs no torch."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from course_lib.config import (
    check_architecture,
    check_flags,
    check_numbers,
    check_preset,
    check_shares,
    check_sizes,
    from_values,
    require,
)
from course_lib.decoding import check_search

_RUNS = {
    "mini": dict(epochs=4, batch_tokens=1024, peak_lr=6e-3, warmup_steps=400, decay="linear", clip_norm=1.0),
    "tiny": dict(epochs=14, batch_tokens=1024, peak_lr=4e-3, warmup_steps=400, decay="linear", clip_norm=1.0),
    "small": dict(epochs=14, batch_tokens=2048, peak_lr=1.5e-3, warmup_steps=800, decay="linear", clip_norm=1.0),
    "base": dict(epochs=20, batch_tokens=25_000),
    "big": dict(epochs=20, batch_tokens=25_000),
}

MOST_SNAPSHOTS = 1000
SIDES = ("both", "source")  # whose subwords are dropped
DECAYS = ("inverse_sqrt", "linear")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that fixes a training run; the defaults are the paper's, but for the size of the run.

    Args:
        epochs: passes over the training pairs.
        batch_tokens: most padded tokens a micro-batch holds on its longer side.
        accumulate: micro-batches whose gradients make one step.
        peak_lr: learning rate at the end of the warm-up; None takes the paper's d_model ** -0.5 * warmup_steps ** -0.5.
        warmup_steps: steps of linear warm-up.
        decay: after the warm-up, "inverse_sqrt" (paper) or "linear" down to 0 at the last step.
        label_smoothing: share of the target probability that is spread over the whole vocabulary.
        consistency: weight α with which the predictions of two passes are drawn together (R-Drop, see
            consistent_loss); 0 is the paper's one pass. With it a step takes twice as long.
        clip_norm: largest norm of the gradient; None does not clip (paper).
        weight_decay: decoupled, as in AdamW; 0 is the paper's Adam.
        betas, eps: Adam's.
        precision: "float32" or "bfloat16" (mixed precision: matrix products in bfloat16).
        seed: fixes the order of the batches and the dropout.

    Paper: sections 5.3 and 5.4.
    """

    epochs: int = 10
    batch_tokens: int = 4096
    accumulate: int = 1
    peak_lr: float | None = None
    warmup_steps: int = 4000
    decay: str = "inverse_sqrt"
    label_smoothing: float = 0.1
    consistency: float = 0.0
    clip_norm: float | None = None
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self):
        two = isinstance(self.betas, list | tuple) and len(self.betas) == 2
        require(two, f"betas must be two numbers, got {self.betas!r}")
        object.__setattr__(self, "betas", tuple(self.betas))  # JSON brings a list
        check_sizes(**{name: getattr(self, name) for name in ("epochs", "batch_tokens", "accumulate", "warmup_steps")})
        for name in ("peak_lr", "clip_norm"):
            value = getattr(self, name)
            positive = value is None or isinstance(value, int | float) and 0 < value < math.inf
            require(positive, f"{name} must be positive or None, got {value!r}")
        check_numbers(weight_decay=self.weight_decay, eps=self.eps, consistency=self.consistency)
        for name in ("weight_decay", "consistency"):
            require(getattr(self, name) >= 0, f"{name} must not be negative, got {getattr(self, name)}")
        require(self.eps > 0, f"eps must be above 0, got {self.eps}")
        check_shares(label_smoothing=self.label_smoothing, beta_1=self.betas[0], beta_2=self.betas[1])
        small = isinstance(self.seed, int) and -(2**63) <= self.seed < 2**63
        require(small, f"seed must be an int of at most 64 bits, got {self.seed!r}")
        for name, known in (("decay", DECAYS), ("precision", PRECISIONS)):
            value = getattr(self, name)
            require(value in known, f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")

    def to_dict(self) -> dict:
        """The configuration as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "TrainConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, values, consistency=0.0)  # earlier files do not name it


STORAGES = ("float32", "float16", "int8")


@dataclass(frozen=True)
class Experiment:
    """Everything that makes a translator out of a corpus.

    Args:
        preset: of the model, see model_preset.
        vocab_size: most subwords.
        training: the run.
        lowercase: learn from, and translate to, lower case only, as many papers do.
        architecture: one of ARCHITECTURES; another than "transformer" has as many parameters as that would have.
        model_changes: fields of the model's configuration that differ from the preset.
        start: a translator to go on from, by its name or its folder; None starts anew.
        keep_subwords: go on in the subwords of `start`; vocab_size and lowercase are then its own. Otherwise subwords
            are learned from this corpus, and each begins with what `start` knows of it.
        augment: learn from made-up pairs too, see course_lib.data.augment.
        made_up_share: of these pairs that are used, in (0, 1].
        subword_dropout, subword_dropout_side: share of merges left out in training, and where, see SubwordDropout.
        average: last epochs whose weights are averaged at the end: at most a quarter of the run, and what the folder
            has kept of it (as many as an earlier call asked for). 5 in the paper's section 6.1; with a learning rate
            that comes down to 0, 1 can be better. Of several numbers, the validation part chooses.
        start_share: share that the weights of `start` keep in the finished ones, which are a mean of both ends of the
            training (Wortsman et al. 2022, Robust fine-tuning); of several shares as for average.
        beam_size, length_penalty: of the final scores, beside greedy search; of several penalties as for average.
        snapshots: how many times to keep the weights on the way, in the folder's steps/: from step 100 to the last,
            each time the same factor later.
        report: part that is scored at the end: "valid", or "test", once, when nothing is left to be chosen.
        storage: of the finished weights: "float32", "float16", or "int8", a quarter of the size. What is stored is
            what is scored.

    Raises:
        ValueError: on a preset, an architecture or a part that does not exist, a search that check_search refuses, or
            a start for another architecture than a Transformer.
    """

    preset: str
    vocab_size: int
    training: TrainConfig
    lowercase: bool = False
    architecture: str = "transformer"
    model_changes: dict = field(default_factory=dict)
    start: str | None = None
    keep_subwords: bool = False
    augment: bool = False
    made_up_share: float = 1.0
    subword_dropout: float = 0.0
    subword_dropout_side: str = "both"
    average: int | tuple[int, ...] = 1
    start_share: float | tuple[float, ...] = 0.0
    beam_size: int = 4
    length_penalty: float | tuple[float, ...] = 0.6
    snapshots: int = 0
    report: str = "valid"
    storage: str = "float32"

    def __post_init__(self):
        for name in ("average", "start_share", "length_penalty"):  # one number, a list of the command line, or a tuple
            given = getattr(self, name)
            object.__setattr__(self, name, tuple(given) if isinstance(given, Sequence) else (given,))
            require(getattr(self, name), f"{name} must be one number or several, got none")
        check_preset(self.preset)
        check_sizes(vocab_size=self.vocab_size, **{"number of epochs to average": min(self.average)})
        check_flags(lowercase=self.lowercase, augment=self.augment, keep_subwords=self.keep_subwords)
        check_numbers(
            subword_dropout=self.subword_dropout, snapshots=self.snapshots, made_up_share=self.made_up_share
        )
        require(0 < self.made_up_share <= 1, f"made_up_share must be in (0, 1], got {self.made_up_share}")
        require(0 <= self.subword_dropout <= 1, f"subword_dropout must be in [0, 1], got {self.subword_dropout}")
        side = self.subword_dropout_side
        require(side in SIDES, f"subword_dropout_side must be one of {', '.join(SIDES)}, got {side!r}")
        few = isinstance(self.snapshots, int) and 0 <= self.snapshots <= MOST_SNAPSHOTS
        require(few, f"snapshots must be in 0..{MOST_SNAPSHOTS}, got {self.snapshots!r}")
        check_architecture(self.architecture)
        from_scratch = self.architecture == "transformer" or self.start is None
        require(from_scratch, "only a Transformer can start from another translator")
        require(self.start is not None or not self.keep_subwords, "keep_subwords needs a start whose subwords to keep")
        for share in self.start_share:
            check_shares(start_share=share)
        require(self.start is not None or set(self.start_share) == {0}, "a start_share needs a start to keep it of")
        for penalty in self.length_penalty:
            check_search(self.beam_size, penalty)
        require(self.report in ("valid", "test"), f"report must be 'valid' or 'test', got {self.report!r}")
        require(self.storage in STORAGES, f"storage must be one of {', '.join(STORAGES)}, got {self.storage!r}")

    @property
    def averages(self) -> tuple[int, ...]:
        """Numbers of last epochs to average: those that were asked for, but at most a quarter of all epochs."""
        return tuple(dict.fromkeys(max(1, min(asked, self.training.epochs // 4)) for asked in self.average))

    @property
    def kept_epochs(self) -> int:
        """Last epochs whose weights are kept for the averages."""
        return max(self.averages)


def train_preset(name: str, **changes) -> TrainConfig:
    """The training configuration called `name`, with named fields changed.

    Args:
        name: as in model_preset; "base" and "big" are the paper's recipe but for the number of steps.
        changes: fields of TrainConfig.

    Raises:
        ValueError: on an unknown name.
    """
    check_preset(name)
    return replace(TrainConfig(**_RUNS[name]), **changes)
