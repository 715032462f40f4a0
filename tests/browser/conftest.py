"""JupyterLab on loopback and a Chromium that operates it; skipped, with the reason, where there is no browser."""

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from course_lib.translator import Translator
from tests.helpers.chromium import launch_args
from tests.helpers.lab import Lab
from tests.helpers.locks import common_folder, locked
from tests.helpers.serving import jupyterlab

ROOT = Path(__file__).resolve().parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side run files, each with one page for all its tests, but lessons one by one."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            group = item.name if item.path.stem == "test_lessons" else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict:
    return launch_args()


@pytest.fixture(scope="session")
def browser_context_args() -> dict:
    return {"viewport": {"width": 1280, "height": 1000}}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of notebooks in a JupyterLab, and the folder it serves: a copy of the course's."""
    folder = tmp_path_factory.mktemp("lab") / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "source"))
    (folder.parent / "course_lib").symlink_to(ROOT / "course_lib")  # what lessons link to
    with jupyterlab(folder, tmp_path_factory.mktemp("home")) as address:
        yield address.format("lab/tree/{}"), folder


@pytest.fixture(scope="module")
def lab(browser: Browser, browser_context_args: dict, server: tuple[str, Path]) -> Iterator[Lab]:
    """JupyterLab in a page of its own, one for all tests of a file; its kernels are shut down afterwards."""
    context = browser.new_context(**browser_context_args)
    lab = Lab(context.new_page(), *server)
    yield lab
    lab.close()
    context.close()


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The lock that a test holds alone or shares."""
    return common_folder(tmp_path_factory, worker_id) / "machine.lock"


@pytest.fixture(scope="module", autouse=True)
def opened(request: pytest.FixtureRequest, lab: Lab, machine: Path) -> None:
    """The notebook of a file's CELLS, where it has some."""
    cells = getattr(request.module, "CELLS", ())
    if cells:
        with locked(machine, shared=True):
            lab.open_cells(request.path.stem.removeprefix("test_"), *cells)


@pytest.fixture(autouse=True)
def undisturbed(request: pytest.FixtureRequest, machine: Path) -> Iterator[None]:
    """Nothing else runs while a test measures how soon a widget answers."""
    with locked(machine, shared="answers_within" not in inspect.getsource(request.function)):
        yield


@pytest.fixture(scope="session")
def translator() -> Translator:
    """The one that comes with the course."""
    return Translator.from_pretrained("course")


@pytest.fixture(autouse=True)
def no_complaints(lab: Lab) -> Iterator[None]:
    """Fails a test in which the page or its console reported an error."""
    lab.complaints.clear()
    yield
    assert not lab.complaints
