"""JupyterLab on loopback and a Chromium that operates it; skipped, with the reason, where there is no browser."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
# No sandbox: containers have none to give. The rest keeps the browser from talking to anyone but us.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict:
    """Debian's Chromium, or another one that is installed."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found (tried {', '.join(BROWSERS)}); on Debian: apt-get install chromium")
    return {"executable_path": found, "args": FLAGS, "headless": True}


@pytest.fixture(scope="session")
def browser_context_args() -> dict:
    return {"viewport": {"width": 1280, "height": 1000}}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a JupyterLab with its token, and the folder it serves: a copy of the notebooks."""
    folder = tmp_path_factory.mktemp("lab") / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "source"))
    (folder.parent / "course_lib").symlink_to(ROOT / "course_lib")  # what lessons link to
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(8)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True", "--LanguageServerManager.autodetect=False"]
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {"HOME": str(home), "PYTHONPATH": str(ROOT), "JUPYTER_PREFER_ENV_PATH": "1"}
    for name in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{name}_DIR"] = str(home / name.lower())
    for name in ("SETTINGS", "WORKSPACES"):
        environment[f"JUPYTERLAB_{name}_DIR"] = str(home / name.lower())
    with open(home / "log.txt", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token={token}", process, home / "log.txt")
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}&reset", folder
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text(encoding='utf-8')[-2000:]}")


@pytest.fixture(scope="module")
def lab(browser: Browser, browser_context_args: dict, server: tuple[str, Path]) -> Iterator[Lab]:
    """JupyterLab in a page of its own, one for all tests of a file; its kernels are shut down afterwards."""
    context = browser.new_context(**browser_context_args)
    lab = Lab(context.new_page(), *server)
    yield lab
    lab.close()
    context.close()


@pytest.fixture(autouse=True)
def no_complaints(lab: Lab) -> Iterator[None]:
    """Fails a test in which the page or its console reported an error."""
    lab.complaints.clear()
    yield
    assert not lab.complaints
