"""Where a submission runs: a folder of its own, no network, no answers; everything else read-only or out of sight."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

import course_lib

LIBRARY = Path(course_lib.__file__).resolve().parent
LEFT_OUT = ("assignments", "grammar", "*.safetensors", "__pycache__")
# Of every machine: homes, what other programs and students put down, and sockets, which a read-only mount leaves open.
HIDDEN = tuple(map(Path, ("/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var")))
CHECKED_LATER = '''"""In grading the exercises are checked from outside, when their cells of tests have their turn."""


def check(name, answer, *, variant=None, hidden=False):
    """Says that it is checked later."""
    print(f"{name}: is checked from outside")


def what_moved(answers):
    """Says nothing: it is for who learns alone."""
    return ""
'''


@cache
def library() -> Path:
    """A copy of this library for submissions, made once, without what could answer for them.

    That is: assignments, with their answers and mistakes; the grammar, which knows the translation of each sentence of
    the course corpus; and the weights of the shipped translators.
    """
    folder = Path(tempfile.mkdtemp(prefix="course-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = folder / LIBRARY.name
    shutil.copytree(LIBRARY, made, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (made / "assignments").mkdir()
    (made / "assignments" / "__init__.py").write_text(CHECKED_LATER, encoding="utf-8")
    return made


def elsewhere() -> list[Path]:
    """Other copies of this library that this Python would find, of which an editable installation knows one."""
    name = LIBRARY.name
    specs = [finder.find_spec(name, None) for finder in sys.meta_path]
    specs += [PathFinder.find_spec(name, [entry]) for entry in sys.path]
    found = {Path(spec.origin).resolve().parent for spec in specs if spec and spec.origin}
    return sorted(found - {LIBRARY})


@cache
def available() -> bool:
    """Whether bubblewrap is here, may make namespaces, and leaves in them all that this Python needs."""
    if not shutil.which("bwrap"):
        return False
    python = [sys.executable, "-c", "import ctypes, sqlite3, ssl"]  # libraries that may lie outside its folder
    tried = subprocess.run([*_bubblewrap([], Path("/")), *python], capture_output=True)
    return tried.returncode == 0


def command(folder: Path, hidden: Sequence[Path]) -> list[str]:
    """What to put before a command so that it runs contained; nothing where this machine cannot.

    Args:
        folder: the only one that it may write to.
        hidden: folders that it sees empty, beside `HIDDEN`: the teacher's course, the home, other submissions.
            Of all these it sees the Python environment, this library's copy and its own folder, and nothing else.
    """
    around = [place.parent for place in (LIBRARY, *elsewhere())]
    solutions = [checkout for checkout in around if (checkout / "pyproject.toml").exists()]
    return _bubblewrap([*hidden, *solutions, library().parent], folder) if available() else []


def _bubblewrap(hidden: Sequence[Path], folder: Path) -> list[str]:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    empty = {path.resolve() for path in (*HIDDEN, *hidden) if path.is_dir()} - {Path("/")}
    for path in sorted(empty):
        words += ["--tmpfs", str(path)]
    needed = [Path(sys.prefix), Path(sys.base_prefix)]
    for path in dict.fromkeys([*needed, *(path.resolve() for path in needed)]):  # under a link's name and its own
        if any(path.is_relative_to(other) for other in empty):
            words += ["--ro-bind", str(path), str(path)]
    for path in elsewhere():  # after what is needed, which may have one inside
        words += ["--tmpfs", str(path)]
    words += ["--ro-bind", str(library()), str(LIBRARY)]
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
        "PYTHONPATH": str(LIBRARY.parent if available() else library().parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "COURSE_MEMORY": str(memory),
        "COURSE_FILE": str(file),
    }
