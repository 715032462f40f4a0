"""What several test files share."""

import gc
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import pytest

from tests.helpers.turns import in_turn

matplotlib.use("Agg")  # not through the environment: the lessons' kernels would inherit it and show no figure

ROOT = Path(__file__).resolve().parents[1]

# What the Makefile sets, and what a make started by `make test` would inherit.
_SET_BY_MAKE = ("JUPYTER", "IPYTHON", "MPLCONFIGDIR", "PIP_", "MAKE", "MFLAGS", "COURSE_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, help="how often each training is killed, instead of 34 times all together")
    parser.addoption("--all-assignments", action="store_true", help="grade a class for each of them, not for one")
    parser.addoption("--until", type=float, default=math.inf, help="time (of date +%%s) from which on no test begins")
    parser.addoption("--turn", type=int, default=0, help="number of the file, or of the test, that comes first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = in_turn(items, config.getoption("turn"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() >= item.config.getoption("until"):
        pytest.skip("there is no time left for it; it comes first at another turn (--until, --turn)")


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def course_data() -> Path:
    """Folder with local copies of the corpora; the test skips where there is none."""
    folder = os.environ.get("COURSE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("COURSE_DATA names no folder with local copies of the corpora")
    return Path(folder)


@pytest.fixture(scope="session")
def stranger_env() -> dict[str, str]:
    """Environment variables of a user who has set nothing for this course."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_SET_BY_MAKE)}


@pytest.fixture
def one_thread() -> Iterator[None]:
    """PyTorch computes with one thread."""
    import torch  # here, because few tests need it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def float64() -> Iterator[None]:
    """New floating-point tensors and parameters are float64."""
    from tests.helpers.parity import double_precision  # here, because few tests need torch

    with double_precision():
        yield


@pytest.fixture(scope="session")
def make(stranger_env: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Function that runs make in a folder as that user would: make(folder, *arguments, text="", **env)."""

    def run(folder: Path, *arguments: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "--no-print-directory", *arguments],
            cwd=folder,
            env=stranger_env | env,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def make_env(make: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., dict[str, str]]:
    """Function that returns the environment which the Makefile gives its commands: make_env(folder, **env)"""

    def env(folder: Path, **variables: str) -> dict[str, str]:
        code = "import json, os; print(json.dumps({**os.environ}))"
        show = f"include Makefile\nshow:\n\t@'{sys.executable}' -c '{code}'\n"
        shown = make(folder, "-f", "-", "show", text=show, **variables)
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)

    return env


@pytest.fixture(scope="session")
def dictionary():
    """German nouns from german-nouns, an oracle for morphology; the test skips where that has no build."""
    lookup = pytest.importorskip("german_nouns.lookup", reason="german-nouns has no build for this Python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the package leaves its file to the garbage collector
        nouns = lookup.Nouns()
        gc.collect()
    return nouns
