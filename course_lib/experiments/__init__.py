"""Experiments that take longer than a lesson: grids of runs, each made again by one command."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "catalog": ["NAMES", "find_grid"],
        "depth": [
            "CHILDREN",
            "Chaser",
            "chase_loss",
            "draw_names",
            "look_up",
            "own_share",
            "right_share",
            "train_chaser",
        ],
        "grid": ["Grid", "run_grid"],
        "positions": ["VOCABULARY", "Reader", "named_last", "right_answers", "train_reader"],
        "record": ["final_results", "read_record"],
    },
)
