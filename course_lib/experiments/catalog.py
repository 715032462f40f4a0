"""The experiments that the command line knows by name; each is a module of this folder with a `GRID`."""

from importlib import import_module

from course_lib.experiments.grid import Grid

NAMES: tuple[str, ...] = (
    *("architectures", "broken_runs", "corpus_size", "depth", "distillation", "echo"),
    *("families", "many_facts", "positions", "recall", "table3", "warmup"),
)


def find_grid(name: str) -> Grid:
    """The grid called `name`.

    Raises:
        ValueError: if there is none.
    """
    if name not in NAMES:
        raise ValueError(f"experiment must be one of {', '.join(NAMES)}; got {name!r}")
    return import_module(f"course_lib.experiments.{name}").GRID
