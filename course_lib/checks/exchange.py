"""Cases and replies as files: tensors and plain values only, so that reading one runs nobody's code."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from course_lib.checks.exercise import Reply
from course_lib.checks.tree import PLAIN, shape_of
from course_lib.storage import replacing

LIMIT = 64 * 2**20  # bytes of a file


def write(tree: Any, path: Path) -> None:
    """Writes a tree of tensors and plain values as a new file; what is neither is written as its description.

    Raises:
        FileExistsError: something has this name, if only a link: in a stranger's folder it may lead anywhere.
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_pack(tree, tensors)).encode()
    tensors["tree"] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(save(tensors))


def read(path: Path) -> Any:
    """Reads such a tree.

    Raises:
        ValueError: this is no such file: a link, a pipe, too large, or something else is in it.
        FileNotFoundError: there is none.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
            raise ValueError(f"expected a file of at most {LIMIT} bytes, got {status.st_size}")
        content = file.read(LIMIT)
    try:
        tensors = load(content)
        return _unpack(json.loads(bytes(tensors.pop("tree").tolist())), tensors)
    except Exception as error:  # whatever hostile bytes raise in a parser
        raise ValueError(f"expected tensors and plain values, got bytes that are none ({error})") from error


def write_replies(replies: list[Reply], path: Path) -> None:
    """Writes replies as a file that appears at once and whole."""
    with replacing(path) as partial:
        write([(reply.result, reply.problem, reply.runs) for reply in replies], partial)


def read_replies(path: Path) -> list[Reply]:
    """Reads replies.

    Raises:
        ValueError: these are none.
        FileNotFoundError: there is no such file.
    """
    tree = read(path)
    if not isinstance(tree, list) or not all(
        isinstance(item, tuple) and len(item) == 3 and isinstance(item[2], int) for item in tree
    ):
        raise ValueError("expected replies, got something else")
    return [Reply(result, None if problem is None else str(problem), runs) for result, problem, runs in tree]


def _pack(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, Tensor) and tree.is_meta:
        return {"meta": list(tree.shape), "dtype": str(tree.dtype).removeprefix("torch.")}
    if isinstance(tree, Tensor):
        name = f"tensor {len(tensors)}"
        tensors[name] = tree.detach().cpu().contiguous().clone()
        return {"tensor": name, "grad": tree.requires_grad}
    if isinstance(tree, PLAIN):
        return tree
    if type(tree) in (tuple, list):
        return {type(tree).__name__: [_pack(item, tensors) for item in tree]}
    if isinstance(tree, dict):
        return {"dict": [[_pack(key, tensors), _pack(item, tensors)] for key, item in tree.items()]}
    return {"other": shape_of(tree)}


def _unpack(packed: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(packed, dict):
        return packed
    if "meta" in packed:
        return torch.empty(packed["meta"], dtype=getattr(torch, packed["dtype"]), device="meta")
    if "tensor" in packed:
        tensor = tensors[packed["tensor"]]
        return tensor.requires_grad_() if packed["grad"] and tensor.is_floating_point() else tensor
    if "dict" in packed:
        return {_unpack(key, tensors): _unpack(item, tensors) for key, item in packed["dict"]}
    if "other" in packed:
        return Other(str(packed["other"]))
    ((kind, items),) = packed.items()
    return {"tuple": tuple, "list": list}[kind](_unpack(item, tensors) for item in items)


class Other:
    """Stands for a result that is neither a tensor nor plain; it differs from everything."""

    def __init__(self, description: str) -> None:
        self.description = description
