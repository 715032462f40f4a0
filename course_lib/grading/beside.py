"""The files that are handed in beside a notebook: which of them are taken, and what a person should look at."""

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file

from course_lib.translator import PRETRAINED

LARGEST = 8 * 2**20  # bytes of a file; a larger one is left out
WEIGHTS = "weights.safetensors"
MATRIX = 10_000  # numbers of a tensor that nobody meets by accident
NEAR = 0.01  # mean distance of two numbers of such tensors, over their size


def taken(folder: Path) -> list[Path]:
    """The files beside a notebook that its kernel gets: not the notebook, and none that is too large."""
    return [path for path in _others(folder) if path.stat().st_size <= LARGEST]


def look_beside(folder: Path, *, weights: bool) -> Iterator[str]:
    """What a person should know of the files beside a notebook.

    Args:
        folder: with the notebook.
        weights: whether the assignment asks for them; then they may also stand in a file of another name or kind.
    """
    for path in _others(folder):
        tensors, size = read_weights(path), path.stat().st_size
        if size > LARGEST:
            yield f"{path.name} has {size / 2**20:.0f} MB, which is more than {LARGEST / 2**20:.0f}, and was left out"
        elif tensors is not None:
            yield from (f"{path.name} has {what}" for what in _about(tensors))
        elif path.suffix == ".safetensors":
            yield f"{path.name} is no file of safetensors"
        elif weights and size >= MATRIX:
            yield f"{path.name} has {size:,} bytes, and could hold weights"


def numbers(folder: Path) -> int:
    """How many numbers the files beside a notebook may bring: those of safetensors, the bytes of other large ones."""
    found = 0
    for path in taken(folder):
        tensors, size = read_weights(path), path.stat().st_size
        if tensors is not None:
            found += sum(tensor.numel() for tensor in tensors.values())
        else:
            found += size if size >= MATRIX else 0
    return found


def read_weights(path: Path) -> dict[str, torch.Tensor] | None:
    """The tensors of a stranger's file by name; None if it is none of safetensors, or too large.

    Only this format is read, because reading it runs nobody's code.
    """
    try:
        return load_file(path) if path.stat().st_size <= LARGEST else None
    except Exception:  # whatever a file of a stranger raises in a parser
        return None


def _others(folder: Path) -> list[Path]:
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.is_symlink())
    return [path for path in files if path.suffix not in (".ipynb", ".as-submitted")]


def _about(tensors: dict[str, torch.Tensor]) -> Iterator[str]:
    """What large matrices say: whether one is the shipped translator's, whatever its name, and but for rounding."""
    shipped = load_file(PRETRAINED / "course" / "model.safetensors").values()
    try:
        theirs = [tensor.float().flatten() for tensor in tensors.values() if tensor.numel() >= MATRIX]
    except NotImplementedError as error:  # of a dtype that holds two numbers in a byte
        yield f"numbers that cannot be compared ({error})"
        return
    if any(_same(ours.float().flatten(), one) for ours in shipped for one in theirs):
        yield "weights of the shipped translator"


def _same(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return ours.shape == theirs.shape and bool((ours - theirs).abs().mean() < NEAR * ours.abs().mean())
