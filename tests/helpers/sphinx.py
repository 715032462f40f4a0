"""Sphinx, as `make book` runs it."""

import subprocess
import sys
from pathlib import Path


def built(sources: Path, pages: Path, root: Path) -> subprocess.CompletedProcess[str]:
    """Makes pages of the sources; a warning is an error.

    Args:
        sources: folder with a conf.py.
        pages: folder for the pages; what Sphinx remembers lies beside it.
        root: of the checkout.
    """
    options = ["-q", "-W", "--keep-going", "-d", str(pages.with_name(f"{pages.name}-doctrees"))]
    command = [sys.executable, "-m", "sphinx", *options, str(sources), str(pages)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)
