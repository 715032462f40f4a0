"""Training: from batches to a model that has learned, and to the score that it gets."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["Experiment", "TrainConfig", "train_preset"],
        "loss": ["label_smoothed_loss", "smoothing_floor"],
        "schedule": ["learning_rate", "paper_rate"],
        "run": ["DivergedError", "History"],
        "loop": ["fit"],
        "evaluation": ["Score", "batch_loss", "score", "validate"],
        "subword_dropout": ["SubwordDropout"],
        "experiment": ["train_translator"],
        "machine": ["describe_machine", "revision"],
        "benchmark": ["VARIANTS", "run_benchmark"],
    },
)
