"""Where translators are: those that come with the course have names, all others are known by their folder."""

from pathlib import Path

PRETRAINED = Path(__file__).parents[1] / "pretrained"
SHIPPED = ("everyday", "course")  # translators that come with the course


def translator_folder(name_or_folder: str | Path) -> Path:
    """The folder of a translator that comes with the course, or the folder that was given.

    Raises:
        ValueError: if it is neither a text nor a path.
        FileNotFoundError: if there is no such folder; names the translators that come with the course.
    """
    if not isinstance(name_or_folder, str | Path):
        raise ValueError(f"expected the name of a translator, or its folder, got {name_or_folder!r}")
    folder = PRETRAINED / name_or_folder if name_or_folder in SHIPPED else Path(name_or_folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"no translator at {folder}: expected {', '.join(SHIPPED)}, or the folder of another")
    return folder


def saved_steps(name_or_folder: str | Path) -> list[int]:
    """The steps of its training after which a translator's weights were kept, see Experiment.snapshots."""
    steps = translator_folder(name_or_folder) / "steps"
    return sorted(int(path.stem.split("-")[1]) for path in steps.glob("step-*"))


def step_file(folder: str | Path, step: int) -> Path:
    """Where a translator's folder keeps the weights after a step of its training."""
    return Path(folder) / "steps" / f"step-{step:06d}.safetensors"


def weights_file(folder: Path, step: int | None = None) -> Path:
    """Where a translator's folder has the finished weights, or those after a step.

    Raises:
        ValueError: on a step that is none of `saved_steps`; lists those.
    """
    if step is None:
        return folder / "model.safetensors"
    if step not in (steps := saved_steps(folder)):
        kept = f"after step {', '.join(map(str, steps))}" if steps else "of no step before the last"
        raise ValueError(f"{folder} has the weights {kept}, got {step!r}")
    return step_file(folder, step)
