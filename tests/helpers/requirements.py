"""What the project declares to need, and what that brings."""

import tomllib
from collections.abc import Iterator
from importlib import metadata

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SYSTEMS = (("Linux", "linux", "posix"), ("Darwin", "darwin", "posix"), ("Windows", "win32", "nt"))


def declared(project: str, *, extras: set[str] | None = None) -> list[Requirement]:
    """What the project needs, with some of its extras; None stands for all.

    Args:
        project: the text of pyproject.toml.
        extras: their names.
    """
    table = tomllib.loads(project)["project"]
    optional = table["optional-dependencies"]
    groups = [optional[name] for name in (optional if extras is None else extras)]
    return [Requirement(text) for group in (table["dependencies"], *groups) for text in group]


def platforms() -> Iterator[dict[str, str]]:
    """Marker environments of the platforms that the README promises."""
    for system, sys_platform, os_name in SYSTEMS:
        for python in ("3.11", "3.12", "3.13"):
            yield {
                **default_environment(),
                "platform_system": system,
                "sys_platform": sys_platform,
                "os_name": os_name,
                "python_version": python,
                "python_full_version": f"{python}.0",
            }


def needed(requirements: list[Requirement]) -> set[str]:
    """Names of all that the requirements bring on any platform, as the installed packages declare it."""
    environments = list(platforms())
    todo, seen, names = [(requirement, "") for requirement in requirements], set(), set()
    while todo:
        requirement, extra = todo.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate({**machine, "extra": extra}) for machine in environments):
            continue
        # A build of torch for a GPU brings its own libraries and pins them itself.
        if requirement.name.startswith(("nvidia", "cuda", "triton")):
            continue
        names.add(canonicalize_name(requirement.name))
        for wanted in {"", *requirement.extras} - {e for name, e in seen if name == requirement.name}:
            seen.add((requirement.name, wanted))
            try:
                todo += [(Requirement(text), wanted) for text in metadata.requires(requirement.name) or []]
            except metadata.PackageNotFoundError:
                continue  # of another platform
    return names
