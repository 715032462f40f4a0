"""Named configurations: the paper's two models, and three that train on a pair of CPU cores; needs no torch."""

from dataclasses import replace

from course_lib.config import ModelConfig, TrainConfig

_MODELS = {
    "mini": dict(d_model=128, num_heads=4, num_layers=2, d_ff=256, dropout=0.0, norm_first=True),
    "tiny": dict(d_model=128, num_heads=4, num_layers=4, d_ff=256, dropout=0.1, norm_first=True),
    "small": dict(d_model=256, num_heads=8, num_layers=3, d_ff=1024, dropout=0.1, norm_first=True),
    "base": dict(d_model=512, num_heads=8, num_layers=6, d_ff=2048, dropout=0.1),
    "big": dict(d_model=1024, num_heads=16, num_layers=6, d_ff=4096, dropout=0.3),
}

_RUNS = {
    "mini": dict(epochs=4, batch_tokens=1024, peak_lr=6e-3, warmup_steps=400, decay="linear", clip_norm=1.0),
    "tiny": dict(epochs=14, batch_tokens=1024, peak_lr=4e-3, warmup_steps=400, decay="linear", clip_norm=1.0),
    "small": dict(epochs=14, batch_tokens=2048, peak_lr=1.5e-3, warmup_steps=800, decay="linear", clip_norm=1.0),
    "base": dict(epochs=20, batch_tokens=25_000),
    "big": dict(epochs=20, batch_tokens=25_000),
}

PRESETS = tuple(_MODELS)


def model_preset(name: str, vocab_size: int, **changes) -> ModelConfig:
    """The model configuration called `name`, with named fields changed.

    Args:
        name: "mini" (for the course corpus, minutes on two CPU cores), "tiny" (for Multi30k, half an hour), "small"
            (for everyday sentences, hours), all pre-norm; "base" or "big" (the paper's table 3).
        vocab_size: number of subwords.
        changes: fields of ModelConfig.

    Raises:
        ValueError: on an unknown name.
    """
    _check(name)
    return replace(ModelConfig(vocab_size=vocab_size, **_MODELS[name]), **changes)


def train_preset(name: str, **changes) -> TrainConfig:
    """The training configuration called `name`, with named fields changed.

    Args:
        name: as in model_preset; "base" and "big" are the paper's recipe but for the number of steps.
        changes: fields of TrainConfig.

    Raises:
        ValueError: on an unknown name.
    """
    _check(name)
    return replace(TrainConfig(**_RUNS[name]), **changes)


def _check(name: str) -> None:
    if name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}")
