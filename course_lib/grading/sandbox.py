"""Where a submission runs: a folder of its own, no network, everything else read-only or out of sight."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import course_lib

LIBRARY = Path(course_lib.__file__).resolve().parent


@cache
def available() -> bool:
    """Whether bubblewrap is here and may make namespaces."""
    if not shutil.which("bwrap"):
        return False
    tried = subprocess.run([*_bubblewrap([], Path("/")), "true"], capture_output=True)
    return tried.returncode == 0


def command(folder: Path, hidden: Sequence[Path]) -> list[str]:
    """What to put before a command so that it runs contained; nothing where this machine cannot.

    Args:
        folder: the only one that it may write to.
        hidden: folders that it sees empty: the teacher's course, the home, other submissions.
    """
    return _bubblewrap(hidden, folder) if available() else []


def _bubblewrap(hidden: Sequence[Path], folder: Path) -> list[str]:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in sorted({path.resolve() for path in hidden}):
        words += ["--tmpfs", str(path)]
    for path in (Path(sys.prefix), Path(sys.base_prefix), LIBRARY):
        if any(path.resolve().is_relative_to(other.resolve()) for other in hidden):
            words += ["--ro-bind", str(path), str(path)]
    if folder != Path("/"):
        words += ["--bind", str(folder), str(folder), "--chdir", str(folder)]
    return words


def environment(folder: Path, memory: int, file: int) -> dict[str, str]:
    """Variables of a submission's kernel; none of the teacher's but the path and the language.

    Args:
        folder: its own, also its home.
        memory: bytes, see `contained_kernel.limit`.
        file: bytes, see `contained_kernel.limit`.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "MPLCONFIGDIR": str(folder / ".matplotlib"),
        "IPYTHONDIR": str(folder / ".ipython"),
        "PYTHONPATH": str(LIBRARY.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "COURSE_MEMORY": str(memory),
        "COURSE_FILE": str(file),
    }
