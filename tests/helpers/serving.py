"""JupyterLab on loopback, with nothing of the machine's own settings."""

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ROOT / "notebooks" / "source" / "jupyter"  # the settings of `make lab` and `make teach`


@contextmanager
def jupyterlab(folder: Path, home: Path, *, teacher: bool = False) -> Iterator[str]:
    """JupyterLab on a folder, with a home of its own; its address with a token, and with {} for what is opened.

    Args:
        folder: that it serves.
        home: an empty folder.
        teacher: as `make teach` starts it, with nbgrader's menus; otherwise as `make lab` does.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(8)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"]
    command += ["--LanguageServerManager.autodetect=False"]
    environment = os.environ | {"HOME": str(home), "PYTHONPATH": str(ROOT), "JUPYTER_PREFER_ENV_PATH": "1"}
    settings = [SHOWN / "teacher"] * teacher + [SHOWN / "learner"]
    environment["JUPYTER_CONFIG_PATH"] = os.pathsep.join(map(str, settings))
    for name in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{name}_DIR"] = str(home / name.lower())
    for name in ("SETTINGS", "WORKSPACES"):
        environment[f"JUPYTERLAB_{name}_DIR"] = str(home / name.lower())
    with open(home / "log.txt", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token={token}", process, home / "log.txt")
        yield f"http://127.0.0.1:{port}/{{}}?token={token}&reset"
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # one of its threads did not end: seen, rarely, after a short session
            process.kill()
            process.wait()


def _wait_for(address: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text(encoding='utf-8')[-2000:]}")
