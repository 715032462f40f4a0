"""The browser of the tests: Debian's Chromium, or another one that is installed."""

import shutil

import pytest

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


def launch_args() -> dict:
    """What Playwright starts it with; the test skips where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found (tried {', '.join(BROWSERS)}); on Debian: apt-get install chromium")
    return {"executable_path": found, "args": FLAGS, "headless": True}
