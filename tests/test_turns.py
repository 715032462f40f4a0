"""What a slow machine has no time for is skipped, with the reason, and comes first another time."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from tests.helpers.laws import tells_apart
from tests.helpers.turns import in_turn


def law_each_comes_first_once(order: Callable) -> None:
    """Whole files turn, each in its own order; of a single file the tests turn; turn 0 leaves all as it was."""
    several = [SimpleNamespace(path=path, nodeid=path + name) for path in "cab" for name in "21"]
    for items, keys in ((several, ["c2c1", "a2a1", "b2b1"]), (several[:2], ["c2", "c1"])):
        for turn in range(5):
            first = turn % len(keys)
            found = "".join(item.nodeid for item in order(items, turn))
            assert found == "".join(keys[first:] + keys[:first]), (turn, found)


def test_each_comes_first_once() -> None:
    def by_tests(items, turn):
        return items[turn % len(items) :] + items[: turn % len(items)]

    def turning_back(items, turn):
        return in_turn(items, -turn)

    def by_name(items, turn):
        return in_turn(sorted(items, key=lambda item: item.nodeid), turn)

    tells_apart(law_each_comes_first_once, in_turn, by_tests, turning_back, by_name)


def outcomes(root: Path, *options: str) -> list[str]:
    """What pytest says of each test of two small files, in their order."""
    files = ["tests/test_position.py", "tests/checks/test_worth.py"]
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *files, *options]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_after_its_time_no_test_begins(root: Path) -> None:
    early, late = outcomes(root, "--until=9e9", "--turn=1"), outcomes(root, "--until=9")
    assert len(early) == len(late) > 20
    assert all(" PASSED " in line for line in early) and all(" SKIPPED " in line for line in late)
    assert early[0].startswith("tests/checks/test_worth.py::") and late[0].startswith("tests/test_position.py::")
