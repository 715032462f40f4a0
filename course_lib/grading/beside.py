"""The files that are handed in beside a notebook: which of them are taken, and what a person should look at."""

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from course_lib.translator import PRETRAINED

LARGEST = 8 * 2**20  # bytes of a file; a larger one is left out
WEIGHTS = "weights.safetensors"
MATRIX = 10_000  # numbers of a tensor that nobody meets by accident
NEAR = 0.01  # mean distance of two numbers of such tensors, over their size


def taken(folder: Path) -> list[Path]:
    """The files beside a notebook that its kernel gets: not the notebook, and none that is too large."""
    return [path for path in _others(folder) if path.stat().st_size <= LARGEST]


def look_beside(folder: Path) -> Iterator[str]:
    """What a person should know of the files beside a notebook."""
    for path in _others(folder):
        if path.stat().st_size > LARGEST:
            size, most = path.stat().st_size / 2**20, LARGEST / 2**20
            yield f"{path.name} has {size:.0f} MB, which is more than {most:.0f}, and was left out"
        elif path.name == WEIGHTS:
            tensors = read_weights(path)
            if tensors is None:
                yield f"{WEIGHTS} is no file of safetensors"
            elif _are_shipped(tensors):
                yield f"{WEIGHTS} has weights of the shipped translator"


def read_weights(path: Path) -> dict[str, torch.Tensor] | None:
    """The tensors of a stranger's file by name; None if it is none of safetensors, or too large.

    Only this format is read, because reading it runs nobody's code.
    """
    try:
        return load_file(path) if path.stat().st_size <= LARGEST else None
    except (SafetensorError, OSError, ValueError):
        return None


def _others(folder: Path) -> list[Path]:
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.is_symlink())
    return [path for path in files if path.suffix != ".ipynb"]


def _are_shipped(tensors: dict[str, torch.Tensor]) -> bool:
    """Whether a large matrix is one of the shipped translator's, whatever its name, and but for rounding."""
    shipped = load_file(PRETRAINED / "course" / "model.safetensors").values()
    return any(_same(ours.float(), theirs.float()) for ours in shipped for theirs in tensors.values())


def _same(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    if ours.numel() < MATRIX or ours.numel() != theirs.numel():
        return False
    return bool((ours.flatten() - theirs.flatten()).abs().mean() < NEAR * ours.abs().mean())
