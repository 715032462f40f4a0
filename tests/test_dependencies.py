"""The pins, the declared dependencies and the absence of package indexes."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

TORCH_PIN = "2.13.0"
PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.]+)")  # a name and a public version: no address, no local build
PINNED_FILES = ("pyproject.toml", "environment.yml", "constraints.txt", ".github/workflows/ci.yml")
SYSTEMS = (("Linux", "linux", "posix"), ("Darwin", "darwin", "posix"), ("Windows", "win32", "nt"))
INDEX_HOSTS = re.compile("download" r"\.pytorch|files" r"\.pythonhosted|pypi\.org/" "simple|index" "-url")


def read(root: Path, *names: str | Path) -> list[str]:
    return [(root / name).read_text(encoding="utf-8") for name in names]


def parse_pins(constraints: str) -> dict[str, str]:
    lines = constraints.splitlines()
    assert all(PIN.fullmatch(line) for line in lines), [line for line in lines if not PIN.fullmatch(line)]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert list(pins) == sorted(pins) and len(pins) == len(lines), "expected the pins sorted, each once"
    return pins


def declared(project: str, *, extras: set[str] | None = None) -> list[Requirement]:
    """What the project needs, with some of its extras; None stands for all."""
    table = tomllib.loads(project)["project"]
    optional = table["optional-dependencies"]
    groups = [optional[name] for name in (optional if extras is None else extras)]
    return [Requirement(text) for group in (table["dependencies"], *groups) for text in group]


def check_pins_agree(project: str, environment: str, constraints: str, workflow: str) -> None:
    pins = parse_pins(constraints)
    assert pins["torch"] == TORCH_PIN
    for requirement in declared(project):
        assert requirement.specifier, f"{requirement.name}: expected a range"
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin and requirement.specifier.contains(pin), f"expected a pin in {requirement}, got {pin}"
    conda = yaml.safe_load(environment)["dependencies"]
    assert conda[1] == "pip" and conda[2] == {"pip": ["-c constraints.txt", "-e .[course]"]}, conda
    python = Requirement(conda[0].replace("=", "==", 1))
    assert python.name == "python"
    (version,) = (specifier.version for specifier in python.specifier)
    assert SpecifierSet(tomllib.loads(project)["project"]["requires-python"]).contains(version)
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    assert [step["with"]["python-version"] for step in job["steps"] if "with" in step] == [version]


def test_environment_project_and_constraints_agree(root: Path) -> None:
    check_pins_agree(*read(root, *PINNED_FILES))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("constraints.txt", f"torch=={TORCH_PIN}", "torch==2.4.0"),
        ("constraints.txt", f"torch=={TORCH_PIN}", f"torch=={TORCH_PIN}+cpu"),
        ("constraints.txt", "tqdm==", "tqdm @ https://example.org/tqdm-"),
        ("constraints.txt", "tqdm==", "tqdm>="),
        ("constraints.txt", "tqdm==4", "tqdm==3"),
        ("constraints.txt", "tqdm==", "zzz==1\ntqdm=="),
        ("constraints.txt", "sacrebleu==", "other=="),
        ("pyproject.toml", '"torch>=2.4,<3"', '"torch>=2.4,<2.5"'),
        ("pyproject.toml", '"numpy>=1.26,<3"', '"numpy"'),
        ("pyproject.toml", '"numpy>=1.26,<3"', '"numpy>=1.26,<3", "pandas>=2"'),
        ("pyproject.toml", 'requires-python = ">=3.11"', 'requires-python = ">=3.12"'),
        ("environment.yml", "python=3.11", "python=3.12"),
        ("environment.yml", "-c constraints.txt", "-r constraints.txt"),
        ("environment.yml", "      - -e .[course]\n", ""),
        (".github/workflows/ci.yml", '"3.11"', '"3.10"'),
    ],
)
def test_a_broken_copy_of_the_pins_is_caught(root: Path, file: str, old: str, new: str) -> None:
    texts = dict(zip(PINNED_FILES, read(root, *PINNED_FILES), strict=True))
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new)
    with pytest.raises(AssertionError):
        check_pins_agree(*texts.values())


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


def check_everything_is_pinned(names: set[str], constraints: str) -> None:
    assert not names - parse_pins(constraints).keys(), names - parse_pins(constraints).keys()


def test_constraints_pin_everything_that_gets_installed_on_any_platform(root: Path) -> None:
    project, constraints = read(root, "pyproject.toml", "constraints.txt")
    names = needed(declared(project))
    assert {"torch", "tornado", "appnope", "pywinpty"} <= names  # indirect and foreign ones are among them
    check_everything_is_pinned(names, constraints)
    with pytest.raises(AssertionError, match="tornado"):
        check_everything_is_pinned(names, re.sub(r"^tornado==.*\n", "", constraints, flags=re.MULTILINE))


def check_pins_run_on(python: str, names: set[str]) -> None:
    for name in names:
        supported = SpecifierSet(metadata.metadata(name).get("Requires-Python", ""))
        assert supported.contains(python), f"{name}: expected one that runs on Python {python}, got {supported}"


def test_pins_run_on_the_oldest_python_that_is_promised(root: Path) -> None:
    project, constraints = read(root, "pyproject.toml", "constraints.txt")
    assert tomllib.loads(project)["project"]["requires-python"] == ">=3.11"
    installed = {canonicalize_name(found.name): found.version for found in metadata.distributions()}
    names = {name for name, pin in parse_pins(constraints).items() if installed.get(name) == pin}
    assert {"numpy", "jupyterlab", "pytest"} <= names, "expected the pinned versions installed"
    check_pins_run_on("3.11.0", names)
    with pytest.raises(AssertionError, match="runs on Python 3.8"):
        check_pins_run_on("3.8", names)


def imported(code: str) -> set[str]:
    """Top-level names of the modules that a program imports, relative imports apart."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found - sys.stdlib_module_names


def check_imports_are_declared(modules: set[str], declared_names: set[str]) -> None:
    distributions = metadata.packages_distributions()
    for module in modules:
        owners = {canonicalize_name(name) for name in distributions.get(module, [module])}  # itself: not installed
        assert owners & declared_names, f"expected {module}, from {owners}, declared in pyproject.toml"


def test_every_import_is_a_declared_dependency(root: Path) -> None:
    (project,) = read(root, "pyproject.toml")
    ours = {"course_lib", "notebooks", "tests"}
    with_extras = ["course_lib/grading", "notebooks/source", "notebooks/assignments", "tests"]
    for_lessons = ["course_lib/figures", "course_lib/widgets", "course_lib/compression", "course_lib/data/digits.py"]
    files = {
        name: set((root / name).rglob("*.py")) if (root / name).is_dir() else {root / name}
        for name in ("course_lib", *for_lessons, *with_extras)
    }
    files["course_lib"] -= set().union(*(files[name] for name in files if name.startswith("course_lib/")))
    for folder, paths in files.items():
        extras = {"course"} if folder in for_lessons else None if folder in with_extras else set()
        names = {canonicalize_name(requirement.name) for requirement in declared(project, extras=extras)}
        sources = read(root, *paths)
        check_imports_are_declared(set().union(*map(imported, sources)) - ours, names)
    with pytest.raises(AssertionError, match="pexpect"):
        check_imports_are_declared(imported("import pexpect"), names)


def test_the_library_alone_brings_no_jupyter_and_no_figures(root: Path) -> None:
    (project,) = read(root, "pyproject.toml")
    names = needed(declared(project, extras=set()))
    assert {"torch", "tokenizers", "safetensors", "sacrebleu"} <= names
    assert not names & {"jupyterlab", "ipykernel", "ipywidgets", "ipython", "matplotlib"}
    assert {"jupyterlab", "matplotlib"} <= needed(declared(project, extras={"course"}))


def check_no_index_host(name: str, text: str) -> None:
    assert not INDEX_HOSTS.search(text), f"{name} names a package index"


def test_no_file_names_a_package_index(root: Path) -> None:
    git = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(git, cwd=root, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("this folder is no git checkout, so its files cannot be told from others")
    names = [name for name in listed.stdout.splitlines() if (root / name).is_file()]
    assert "Makefile" in names
    for name in names:
        check_no_index_host(name, (root / name).read_text(encoding="utf-8", errors="ignore"))
    with pytest.raises(AssertionError, match="broken"):
        check_no_index_host("broken", "pip install --extra-index" "-url https://example.org")
