"""The book, built once for all its tests; skipped, with the reason, where the extra [book] is not installed."""

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from notebooks.source.book import stage
from tests.helpers.chromium import launch_args
from tests.helpers.locks import common_folder, locked
from tests.helpers.sphinx import built
from tests.helpers.web_pages import WebPage

NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx-mathjax-offline", "onnx", "onnxscript", "onnxruntime")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all workers share."""
    place = common_folder(tmp_path_factory, worker_id) / "book"
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture(scope="session")
def installed(place: Path) -> None:
    for name in NEEDED:
        pytest.importorskip(name, reason="the extra [book] is not installed: make test-book")
    from notebooks.source.book_alive import RUNTIME, runtime

    with locked(place / "lock"):
        try:
            runtime()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            pytest.skip(f"npm cannot fetch {RUNTIME}: {error}")


@pytest.fixture(scope="session")
def folder(installed: None, root: Path, place: Path) -> Path:
    """The pages, in a folder whose name an address must quote; the first worker builds them for all."""
    with locked(place / "lock"):
        if not (place / "web pages").exists():
            stage(place / "source")
            done = built(place / "source", place / "new pages", root)
            assert done.returncode == 0, done.stderr
            (place / "new pages").rename(place / "web pages")
    return place / "web pages"


@pytest.fixture(scope="session")
def book(folder: Path) -> dict[str, WebPage]:
    """Every page by its address in the book."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]
    return {path.relative_to(folder).as_posix(): WebPage(path) for path in paths}


class Quiet(SimpleHTTPRequestHandler):
    """Writes no log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    """Of the book on loopback: below a folder of the server, as on a page of a project."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder.parent)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{folder.name.replace(' ', '%20')}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict:
    return launch_args()
