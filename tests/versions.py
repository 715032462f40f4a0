"""The ends of the ranges in pyproject.toml, as constraints for pip: `make test-lowest`, `make test-newest`.

Usage: python -m tests.versions lowest|newest [TORCH] > constraints.txt, with nothing but Python installed.
"""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOWEST = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)[^;]*(;.*)?")


def lowest(project: str) -> list[str]:
    """A pin for each direct dependency, with the lowest version that its range admits.

    Args:
        project: the text of pyproject.toml.

    Returns:
        Lines such as "numpy==1.26"; of a dependency with two ranges the higher one.

    Raises:
        ValueError: a dependency without a lowest version.
    """
    table = tomllib.loads(project)["project"]
    ends: dict[str, tuple[str, str]] = {}
    for text in (text for group in (table["dependencies"], *table["optional-dependencies"].values()) for text in group):
        match = LOWEST.fullmatch(text)
        if match is None:
            raise ValueError(f"expected a range from a lowest version on, got {text!r}")
        name, version, marker = match[1].lower(), match[2], match[3] or ""
        if name not in ends or _numbers(version) > _numbers(ends[name][0]):
            ends[name] = version, marker
    return [f"{name}=={version}{marker}" for name, (version, marker) in sorted(ends.items())]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def main() -> None:
    """Prints the constraints of one end; those of the newest are none, but for the version of torch that is asked."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__.splitlines()[0])
    parser.add_argument("end", choices=("lowest", "newest"))
    parser.add_argument("torch", nargs="?", help="a version of torch instead of the end's, for one with a small build")
    options = parser.parse_args()
    pins = lowest((ROOT / "pyproject.toml").read_text(encoding="utf-8")) if options.end == "lowest" else []
    if options.torch:
        pins = [pin for pin in pins if not pin.startswith("torch==")] + [f"torch=={options.torch}"]
    print("\n".join(pins))


if __name__ == "__main__":
    main()
