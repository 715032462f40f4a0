"""Locks between processes of one test run."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def common_folder(factory: pytest.TempPathFactory, worker: str) -> Path:
    """A folder of all workers of this run; `worker` is "master" where there is only one process."""
    mine = factory.getbasetemp()
    return mine if worker == "master" else mine.parent


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """In the block, no other process is in such a block, or, where both are shared, only such ones."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
