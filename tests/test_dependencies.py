"""The pins, the declared dependencies and the absence of package indexes."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.helpers.laws import tells_apart
from tests.helpers.requirements import declared, needed
from tests.versions import lowest

TORCH_PIN = "2.13.0"
PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.]+)")  # a name and a public version: no address, no local build
PINNED_FILES = ("pyproject.toml", "environment.yml", "constraints.txt", ".github/workflows/ci.yml")
INDEX_HOSTS = re.compile("download" r"\.pytorch|files" r"\.pythonhosted|pypi\.org/" "simple|index" "-url")
# PyTorch's own index of small builds may be named to whoever installs.
SMALL_BUILDS = "https://download" ".pytorch.org/whl/cpu"
MAY_NAME_IT = re.compile(r"(README|docs/[\w-]+)\.md|environment\.yml|\.github/workflows/\w+\.yml")


def read(root: Path, *names: str | Path) -> list[str]:
    return [(root / name).read_text(encoding="utf-8") for name in names]


def parse_pins(constraints: str) -> dict[str, str]:
    lines = constraints.splitlines()
    assert all(PIN.fullmatch(line) for line in lines), [line for line in lines if not PIN.fullmatch(line)]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert list(pins) == sorted(pins) and len(pins) == len(lines), "expected the pins sorted, each once"
    return pins


def check_pins_agree(project: str, environment: str, constraints: str, workflow: str) -> None:
    pins = parse_pins(constraints)
    assert pins["torch"] == TORCH_PIN
    for requirement in declared(project):
        assert requirement.specifier, f"{requirement.name}: expected a range"
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin and requirement.specifier.contains(pin), f"expected a pin in {requirement}, got {pin}"
    conda = yaml.safe_load(environment)["dependencies"]
    small = "--extra-index" f"-url {SMALL_BUILDS}"
    assert conda[1] == "pip" and conda[2] == {"pip": [small, "-c constraints.txt", "-e .[course]"]}, conda
    python = Requirement(conda[0].replace("=", "==", 1))
    assert python.name == "python"
    (version,) = (specifier.version for specifier in python.specifier)
    assert SpecifierSet(tomllib.loads(project)["project"]["requires-python"]).contains(version)
    for job in yaml.safe_load(workflow)["jobs"].values():
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
        ("pyproject.toml", '"torch>=2.13,<3"', '"torch>=2.4,<2.5"'),
        ("pyproject.toml", '"numpy>=1.26,<3"', '"numpy"'),
        ("pyproject.toml", '"numpy>=1.26,<3"', '"numpy>=1.26,<3", "pandas>=2"'),
        ("pyproject.toml", 'requires-python = ">=3.11"', 'requires-python = ">=3.12"'),
        ("environment.yml", "python=3.11", "python=3.12"),
        ("environment.yml", "-c constraints.txt", "-r constraints.txt"),
        ("environment.yml", "      - -e .[course]\n", ""),
        ("environment.yml", "whl/cpu", "whl/cu130"),
        (".github/workflows/ci.yml", '"3.11"', '"3.10"'),
    ],
)
def test_a_broken_copy_of_the_pins_is_caught(root: Path, file: str, old: str, new: str) -> None:
    texts = dict(zip(PINNED_FILES, read(root, *PINNED_FILES), strict=True))
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new)
    with pytest.raises(AssertionError):
        check_pins_agree(*texts.values())


def check_everything_is_pinned(names: set[str], constraints: str) -> None:
    assert not names - parse_pins(constraints).keys(), names - parse_pins(constraints).keys()


def test_constraints_pin_everything_that_gets_installed_on_any_platform(root: Path) -> None:
    project, constraints = read(root, "pyproject.toml", "constraints.txt")
    names = needed(declared(project))
    assert {"torch", "tornado", "appnope", "pywinpty"} <= names  # indirect and foreign ones are among them
    check_everything_is_pinned(names, constraints)
    with pytest.raises(AssertionError, match="tornado"):
        check_everything_is_pinned(names, re.sub(r"^tornado==.*\n", "", constraints, flags=re.MULTILINE))


def law_nbformat_starts_at_once(constraints: str) -> None:
    """From jsonschema 4.25 on, which asks for rfc3987-syntax, each `import nbformat` builds grammars for seconds."""
    assert parse_pins(constraints)["jsonschema"].startswith("4.24.") and "rfc3987-syntax" not in parse_pins(constraints)


def test_nbformat_starts_at_once(root: Path) -> None:
    (constraints,) = read(root, "constraints.txt")
    later = re.sub(r"(?m)^jsonschema==.*", "jsonschema==4.26.0", constraints)
    tells_apart(law_nbformat_starts_at_once, constraints, later, constraints + "rfc3987-syntax==1.1.0\n")


def law_the_lowest_are_the_ends_of_the_ranges(project: str, pins: list[str]) -> None:
    """Each direct dependency has one pin, which all its ranges admit, and nothing below it."""
    pinned = {canonicalize_name(Requirement(pin).name): Requirement(pin).specifier for pin in pins}
    assert len(pinned) == len(pins)
    for requirement in declared(project):
        (pin,) = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), f"{requirement}: not {pin.version}"
        assert any(end.operator == ">=" for end in requirement.specifier), f"{requirement}: expected a lowest version"
    ends = {(canonicalize_name(r.name), end.version) for r in declared(project) for end in r.specifier}
    loose = [name for name, (pin,) in pinned.items() if (name, pin.version) not in ends]
    assert not loose, f"not at the end of a range: {loose}"


def test_the_lowest_versions_are_the_ends_of_the_ranges(root: Path) -> None:
    (project,) = read(root, "pyproject.toml")
    pins = lowest(project)
    law_the_lowest_are_the_ends_of_the_ranges(project, pins)
    ours = next(pin for pin in pins if pin.startswith("numpy=="))
    for broken in (pins[1:], [*pins[1:], pins[1]], [pin.replace(ours, "numpy==2.0") for pin in pins]):
        with pytest.raises((AssertionError, KeyError)):
            law_the_lowest_are_the_ends_of_the_ranges(project, broken)
    with pytest.raises(ValueError, match="expected a range from a lowest version on, got 'numpy<3'"):
        lowest('[project]\ndependencies = ["numpy<3"]\noptional-dependencies = {}')


def law_both_ends_are_tried_weekly(workflow: str, makefile: str, project: str) -> None:
    """The oldest versions on the oldest Python, the newest on each that the project names."""
    plan = yaml.safe_load(workflow)
    assert "schedule" in plan[True], "`on:` reads as true"
    (job,) = plan["jobs"].values()
    tried = {(each["python"], each["end"]) for each in job["strategy"]["matrix"]["include"]}
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert len(pythons) > 1 and tried == {(pythons[0], "lowest"), *((python, "newest") for python in pythons)}
    assert job["steps"][-1]["run"].startswith("make test-${{ matrix.end }}")
    for _, end in tried:
        assert f"\ntest-{end}:" in makefile


def test_both_ends_of_the_ranges_are_tried_weekly(root: Path) -> None:
    texts = read(root, ".github/workflows/weekly.yml", "Makefile", "pyproject.toml")
    law_both_ends_are_tried_weekly(*texts)
    for number, old, new in (
        (0, "  schedule:\n", "  push:\n"),
        (0, '{python: "3.13", end: newest}', '{python: "3.13", end: lowest}'),
        (1, "\ntest-lowest:", "\ntest-last:"),
        (2, ":: 3.14", ":: 3.15"),
    ):
        assert old in texts[number]
        with pytest.raises(AssertionError):
            law_both_ends_are_tried_weekly(*texts[:number], texts[number].replace(old, new), *texts[number + 1 :])


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


# --- what a learner's JupyterLab shows --------------------------------------------------------------

FRONTEND = re.compile(r".*share/jupyter/labextensions/((?:@[^/]+/)?[^@/]+)/package\.json")
SERVER = re.compile(r".*etc/jupyter/jupyter_server_config\.d/[^/]+\.json")


def shown_by(course: set[str]) -> set[str]:
    """What other distributions than those of the course add to JupyterLab: names of pages' parts and of the server's.

    The server's part of Notebook 7 stays: it has pages of its own, and adds nothing to JupyterLab's.
    """
    found = set()
    for distribution in metadata.distributions():
        if canonicalize_name(distribution.name) not in course:
            files = [file.as_posix() for file in distribution.files or []]
            found |= {match[1] for match in map(FRONTEND.fullmatch, files) if match}
            for name in filter(SERVER.fullmatch, files):
                parts = json.loads(Path(distribution.locate_file(name)).read_text(encoding="utf-8"))
                found |= parts["ServerApp"]["jpserver_extensions"].keys()
    return found - {"notebook"}


def switched_off(*folders: Path) -> set[str]:
    """The parts that JupyterLab leaves out by the settings of these folders, of which the first has the last word."""
    frontend, server = {}, {}
    for folder in reversed(folders):
        page, app = (folder / name for name in ("labconfig/page_config.json", "jupyter_server_config.json"))
        frontend |= json.loads(page.read_text(encoding="utf-8"))["disabledExtensions"]
        server |= json.loads(app.read_text(encoding="utf-8"))["ServerApp"]["jpserver_extensions"]
    return {name for name, off in frontend.items() if off} | {name for name, on in server.items() if not on}


def law_a_learner_sees_the_course_alone(course: set[str], *folders: Path) -> None:
    seen = shown_by(course) - switched_off(*folders)
    assert not seen, f"a learner's JupyterLab would show {', '.join(sorted(seen))}"


def test_a_learners_jupyterlab_shows_nothing_that_tests_and_teachers_install(root: Path, tmp_path: Path) -> None:
    (project,) = read(root, "pyproject.toml")
    course = needed(declared(project, extras={"course"}))
    learner, teacher = (root / "notebooks" / "source" / "jupyter" / name for name in ("learner", "teacher"))
    assert {"@jupyter/nbgrader", "jupyterlab-jupytext", "nbgrader.server_extensions.formgrader"} <= shown_by(course)
    law_a_learner_sees_the_course_alone(course, learner)
    for part in ("@jupyter/nbgrader", "nbgrader.server_extensions.formgrader"):
        with pytest.raises(AssertionError, match=part):
            law_a_learner_sees_the_course_alone(course, teacher, learner)
    with pytest.raises(AssertionError, match="@jupyter-widgets/jupyterlab-manager, anywidget"):
        law_a_learner_sees_the_course_alone(course - {"jupyterlab-widgets", "anywidget"}, learner)
    assert switched_off(learner) - switched_off(teacher, learner) >= {"@jupyter/nbgrader"}, "a teacher has it"


def check_no_index_host(name: str, text: str) -> None:
    if MAY_NAME_IT.fullmatch(name):
        text = re.sub(rf"(--(extra-)?{'index' '-url'} )?{re.escape(SMALL_BUILDS)}(?![/\w])", "", text)
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
    for name, address in (("README.md", "https://example.org"), ("Makefile", SMALL_BUILDS), ("README.md", "/cpu/x")):
        with pytest.raises(AssertionError, match=name):
            check_no_index_host(name, f"pip install --extra-index" f"-url {address}")
    check_no_index_host("README.md", f"pip install torch --index" f"-url {SMALL_BUILDS}")
