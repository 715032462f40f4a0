"""Tensors in files: checkpoints, saved and averaged."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from course_lib.storage.files import replacing

FORMAT = "course_lib checkpoint 1"
SCALE = ":int8 scale"  # behind the name of a matrix: what each of its rows of int8 is multiplied by


def save_tensors(path: str | Path, tensors: dict[str, Tensor], info: dict, *, dtype: torch.dtype | None = None) -> None:
    """Writes tensors and JSON values to one file, which replaces the old one only when complete.

    Args:
        path: of the .safetensors file.
        tensors: by name; a tensor with several names (tied weights) is stored once.
        info: JSON values for the header.
        dtype: to store in; None keeps each tensor's own. torch.int8 is for matrices, each row with a scale of its own
            (the largest number of the row is 127 then); the rest is stored in half precision.

    Raises:
        OSError: if the disk is full or the folder cannot be written; the old file is untouched.
    """
    first: dict[tuple, str] = {}
    stored, aliases = {}, {}
    for name, tensor in tensors.items():
        same = first.setdefault((tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()), name)
        if same == name or tensor.numel() == 0:
            stored |= _rows_of_bytes(name, tensor) if dtype is torch.int8 else {name: tensor.detach().to("cpu", dtype)}
        else:
            aliases[name] = same
    tensors = {name: tensor.contiguous() for name, tensor in stored.items()}
    metadata = {"format": FORMAT, "info": json.dumps(info), "aliases": json.dumps(aliases)}
    metadata["checksum"] = _checksum(tensors, metadata)
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:  # the library's own word for an input/output error
            raise OSError(f"could not write {path}: {error}") from error


def _rows_of_bytes(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """A matrix as int8 and a scale for each row; anything else in half precision."""
    values = tensor.detach().to("cpu", torch.float32)
    if values.dim() < 2:
        return {name: values.half()}
    scale = values.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 127
    return {name: (values / scale).round().to(torch.int8), name + SCALE: scale}


def _checksum(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """Of all that is stored, but for the checksum itself: a bit that flips on the disk changes it."""
    found = zlib.crc32(json.dumps([metadata["info"], metadata["aliases"]]).encode())
    for name, tensor in sorted(tensors.items()):
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.flatten().view(torch.uint8).numpy(), found)
    return f"{found:08x}"


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict]:
    """Reads what save_tensors wrote.

    Returns:
        the tensors by name, and the JSON values.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is damaged, be it by one bit, or another program's.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # not a dict: it has no iterator
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is not from this course: expected format {FORMAT!r}, got {metadata.get('format')!r}")
    try:
        _check_unchanged(tensors, metadata)
        for name in [name for name in tensors if name.endswith(SCALE)]:
            tensors[name.removesuffix(SCALE)] = tensors[name.removesuffix(SCALE)] * tensors.pop(name)
        tensors |= {name: tensors[same] for name, same in json.loads(metadata["aliases"]).items()}
        return tensors, dict(json.loads(metadata["info"]))
    except (KeyError, ValueError, AttributeError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged: {error!r} in its header") from error


def _check_unchanged(tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Raises ValueError unless what was read is what was written; files of the first edition have no checksum."""
    if unknown := set(metadata) - {"format", "info", "aliases", "checksum"}:
        raise ValueError(f"unknown names {sorted(unknown)}")
    expected, got = metadata.get("checksum"), _checksum(tensors, metadata)
    if expected not in (None, got):
        raise ValueError(f"checksum expected {expected}, got {got}")


def check_enough(path: str | Path, tensors: dict[str, Tensor], least: int) -> None:
    """Raises ValueError if a file has fewer numbers than a model has parameters."""
    if least > (got := sum(map(Tensor.numel, tensors.values()))):
        raise ValueError(f"{path}: these weights belong to another model, {got:,} are too few for {least:,}")


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copies weights into a model, all or none.

    Raises:
        ValueError: if a name is missing or unknown, or a shape differs; the model is then unchanged.
    """
    for name, tensor in dict(tensors).items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensors must be tensors by name, got {name}: {type(tensor).__name__}")
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in dict(tensors).items()}
    wrong = sorted(name for name in expected.keys() | got.keys() if expected.get(name) != got.get(name))
    if wrong:
        name = wrong[0]
        raise ValueError(
            f"these weights belong to another model: {len(wrong)} tensors differ, "
            f"first {name}: expected {expected.get(name)}, got {got.get(name)}"
        )
    model.load_state_dict(tensors)


def average_checkpoints(paths: Sequence[str | Path]) -> dict[str, Tensor]:
    """The mean of the weights in several files.

    Args:
        paths: files of `fit`'s `keep`, of the same model.

    Raises:
        ValueError: if there is no file, or the files hold different models.

    Paper: section 6.1 (the last 5 checkpoints for base).
    """
    if not paths or isinstance(paths, str | Path):
        raise ValueError(f"no checkpoints to average: expected several files, got {paths!r}")
    total: dict[str, Tensor] = {}
    for path in paths:
        tensors, _ = load_tensors(path)
        if total and {k: v.shape for k, v in total.items()} != {k: v.shape for k, v in tensors.items()}:
            raise ValueError(f"{path} holds another model than {paths[0]}")
        for name, tensor in tensors.items():
            total[name] = total.get(name, torch.zeros_like(tensor, dtype=torch.float64)) + tensor
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
