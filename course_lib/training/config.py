"""What a training run is: its configuration and named presets; needs no torch."""

from dataclasses import asdict, dataclass, replace

from course_lib.config import check_preset, from_values, require

_RUNS = {
    "mini": dict(epochs=4, batch_tokens=1024, peak_lr=6e-3, warmup_steps=400, decay="linear", clip_norm=1.0),
    "tiny": dict(epochs=14, batch_tokens=1024, peak_lr=4e-3, warmup_steps=400, decay="linear", clip_norm=1.0),
    "small": dict(epochs=14, batch_tokens=2048, peak_lr=1.5e-3, warmup_steps=800, decay="linear", clip_norm=1.0),
    "base": dict(epochs=20, batch_tokens=25_000),
    "big": dict(epochs=20, batch_tokens=25_000),
}


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
    clip_norm: float | None = None
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self):
        object.__setattr__(self, "betas", tuple(self.betas))  # JSON brings a list
        for name in ("epochs", "batch_tokens", "accumulate", "warmup_steps"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("peak_lr", "clip_norm"):
            value = getattr(self, name)
            require(value is None or value > 0, f"{name} must be positive or None, got {value}")
        require(self.weight_decay >= 0, f"weight_decay must not be negative, got {self.weight_decay}")
        require(
            0.0 <= self.label_smoothing < 1.0,
            f"label_smoothing must be in [0, 1), got {self.label_smoothing}",
        )
        require(
            self.decay in ("inverse_sqrt", "linear"),
            f"decay must be 'inverse_sqrt' or 'linear', got {self.decay!r}",
        )
        require(
            self.precision in ("float32", "bfloat16"),
            f"precision must be 'float32' or 'bfloat16', got {self.precision!r}",
        )

    def to_dict(self) -> dict:
        """The configuration as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "TrainConfig":
        """The configuration that `to_dict` wrote; unknown or missing names raise ValueError."""
        return from_values(cls, values)


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
