"""Files that are written whole or not at all."""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`; on success it takes the place of `path` at once, else it is removed.

    Args:
        path: the file to write; its folder is made if missing.

    Raises:
        OSError: whatever writing raised; the old file is then untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_half_written(*folders: Path) -> None:
    """Removes what processes have left that were killed while they wrote; nobody may be writing there now."""
    for folder in folders:
        for path in folder.glob("*.[0-9]*.tmp"):
            path.unlink(missing_ok=True)


def read_text(path: str | Path) -> str:
    """The text of a file; never of a pipe or a device, which may have no end.

    Raises:
        FileNotFoundError: if there is no file.
        ValueError: if it is not UTF-8.
    """
    return read_bytes(path).decode("utf-8")


def read_bytes(path: str | Path) -> bytes:
    """As read_text, the bytes."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file at {path}")
    return path.read_bytes()


def read_as(path: str | Path, parse: Callable):
    """What a function makes of the text of a file.

    Raises:
        FileNotFoundError: if there is no file.
        ValueError: if the function cannot read it; names the file.
    """
    try:
        return parse(read_text(path))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:  # also of JSON and of the encoding
        raise ValueError(f"{path} is damaged or another program's: {error}") from error


def hashes(paths: dict[str, Path]) -> dict[str, str]:
    """The SHA-256 of each file, by the name that is given to it."""
    return {name: hashlib.sha256(read_bytes(path)).hexdigest() for name, path in paths.items()}


def check_files(folder: Path, expected: dict[str, str | None]) -> None:
    """Raises ValueError unless each named file of the folder has its SHA-256; None is not known."""
    for name, got in hashes({name: folder / name for name in expected}).items():
        if expected[name] not in (None, got):
            raise ValueError(
                f"{folder / name} is damaged, or not what was saved with the weights: "
                f"expected SHA-256 {expected[name]}, got {got}"
            )
