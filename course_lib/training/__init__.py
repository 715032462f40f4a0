"""Training: from batches to a model that has learned, and to the score that it gets."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "budget": ["PEAKS", "Budget", "capacity", "paper_utilization", "serial_share", "speed_up", "training_flops"],
        "config": ["Experiment", "TrainConfig", "train_preset"],
        "options": ["SEVERAL", "add_experiment", "experiment_of"],
        "loss": ["label_smoothed_loss", "smoothing_floor"],
        "schedule": ["learning_rate", "paper_rate"],
        "distributed": [
            "BatchLoss",
            "gradients",
            "process_group",
            "rank",
            "share_of",
            "shared_loss",
            "sharded_loss",
            "world_size",
        ],
        "run": ["DivergedError", "History"],
        "loop": ["fit"],
        "evaluation": ["Score", "batch_loss", "score", "token_logits", "validate"],
        "subword_dropout": ["SubwordDropout"],
        "experiment": ["train_translator"],
        "course_run": ["train_on_course"],
        "memory": ["held_bytes", "kept_bytes", "peak_bytes"],
        "machine": ["describe_machine", "revision"],
        "benchmark": ["VARIANTS", "run_benchmark"],
    },
)
