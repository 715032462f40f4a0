"""The two commands: what they install, where they write, what they say."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import yaml

from course_lib.grading.sandbox import available


def check_help_lists_every_target(makefile: str, shown: str) -> None:
    targets = re.findall(r"^([A-Za-z][\w-]*):(?!=)", makefile, flags=re.MULTILINE)
    assert len(targets) >= 6
    for target in targets:
        assert re.search(rf"^  {target} +\S", shown, flags=re.MULTILINE), f"expected {target} in make help"


def test_make_help_lists_every_target(root: Path, make: Callable, tmp_path: Path) -> None:
    makefile = (root / "Makefile").read_text()
    check_help_lists_every_target(makefile, make(root, "help").stdout)
    assert make(root).stdout == make(root, "help").stdout, "expected help without a target"
    broken = makefile + "\nsecret:\n\t@true\n"
    (tmp_path / "Makefile").write_text(broken)
    with pytest.raises(AssertionError, match="secret"):
        check_help_lists_every_target(broken, make(tmp_path, "help").stdout)


def law_help_is_in_columns(shown: str) -> None:
    starts = {len(re.match(r"  [\w-]+ +", line)[0]) for line in shown.splitlines() if line.startswith("  ")}
    assert len(starts) == 1, f"descriptions begin in columns {sorted(starts)}"


def test_help_is_in_columns(root: Path, make: Callable) -> None:
    law_help_is_in_columns(make(root, "help").stdout)
    with pytest.raises(AssertionError, match="descriptions begin in columns"):
        law_help_is_in_columns(make(root, "help").stdout.replace("  lab ", "  laboratory "))


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A copy of what make needs, in a folder with spaces and umlauts, with an environment that looks installed."""
    copy = tmp_path / "my course, für Übungen"
    (copy / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, copy)
        os.utime(copy / name, (1e9, 1e9))
    (copy / ".venv" / ".lab-ready").write_text(f"{copy.resolve()}\n")
    return copy


def installs(make: Callable, checkout: Path) -> bool:
    planned = make(checkout, "-n", "lab")
    assert "-m jupyterlab" in planned.stdout, planned
    return "pip install" in planned.stdout


def test_lab_installs_again_only_when_pins_or_place_change(checkout: Path, make: Callable) -> None:
    assert not installs(make, checkout)
    for name in ("pyproject.toml", "constraints.txt"):
        os.utime(checkout / name)
        os.utime(checkout / ".venv" / ".lab-ready", (1.1e9, 1.1e9))
        assert installs(make, checkout)
        os.utime(checkout / name, (1e9, 1e9))
    moved = checkout.rename(checkout.with_name("moved"))
    assert installs(make, moved)


def test_lab_opens_the_first_lesson_and_hands_arguments_on(checkout: Path, make: Callable) -> None:
    assert '--LabApp.default_url="/lab"' in make(checkout, "-n", "lab").stdout
    (checkout / "notebooks").mkdir()
    for name in ("08_b.ipynb", "00_a.ipynb", "mine.ipynb"):
        (checkout / "notebooks" / name).touch()
    planned = make(checkout, "-n", "lab", "ARGS=--no-browser --port 9000").stdout
    assert '--LabApp.default_url="/lab/tree/my_course/00_a.ipynb"' in planned
    assert planned.index("-m notebooks.copies my_course") < planned.index("-m jupyterlab")
    assert planned.rstrip().endswith("--no-browser --port 9000")


def test_setup_brings_copies_and_opens_nothing(checkout: Path, make: Callable) -> None:
    (checkout / "notebooks").mkdir()
    (checkout / "notebooks" / "00_a.ipynb").touch()
    for target, opens in (("setup", False), ("lab", True)):
        planned = make(checkout, "-n", target).stdout
        assert "-m notebooks.copies my_course" in planned and ("jupyterlab" in planned) == opens


def test_only_a_teachers_jupyterlab_has_the_menus_of_nbgrader(root: Path, make: Callable) -> None:
    lab, teach = (make(root, "-n", target).stdout for target in ("lab", "teach"))
    assert "teacher" in teach and "teacher" not in lab
    for planned, folder in ((lab, root), (teach, root / "notebooks" / "assignments")):
        assert f'cd "{folder}" && ' in planned and f'--ServerApp.root_dir="{folder}"' in planned
    assert re.search(r"cp -R (\S+)/learner/\. ", make(root, "-n", "-B", ".venv/.lab-ready").stdout)


def test_update_pulls_installs_and_brings_copies_in_that_order(checkout: Path, make: Callable) -> None:
    (checkout / "notebooks").mkdir()
    (checkout / "notebooks" / "00_a.ipynb").touch()
    os.utime(checkout / "constraints.txt")
    os.utime(checkout / ".venv" / ".lab-ready", (1.1e9, 1.1e9))
    planned = make(checkout, "-n", "update").stdout
    steps = ("git pull --ff-only", "pip install", "-m notebooks.copies my_course")
    places = [planned.find(step) for step in steps]
    assert -1 < places[0] < places[1] < places[2], planned


def law_update_says_what_to_do_without_git(checkout: Path, make: Callable) -> None:
    refused = make(checkout, "update")
    assert refused.returncode != 0 and "git pull" not in refused.stdout
    assert "no clone" in refused.stderr and "move my_course into it" in refused.stderr, refused.stderr


def test_update_says_what_to_do_without_git(checkout: Path, make: Callable) -> None:
    law_update_says_what_to_do_without_git(checkout, make)
    makefile = checkout / "Makefile"
    makefile.write_text(makefile.read_text().replace("[ -e .git ]", "true"))
    with pytest.raises(AssertionError):
        law_update_says_what_to_do_without_git(checkout, make)


def test_elsewhere_says_what_it_lacks(checkout: Path, make: Callable) -> None:
    (checkout / ".venv" / ".test-ready").write_text(f"{checkout.resolve()}\n")
    refused = make(checkout, "elsewhere")
    assert refused.returncode != 0 and not refused.stdout
    assert "make elsewhere ADDRESS=https://github.com/OWNER/REPOSITORY" in refused.stderr


@pytest.fixture
def classroom(checkout: Path) -> Path:
    """That copy with assignments, and with a Python that only says how it was called."""
    for name in ("01_a", "03_attention", "10_b", "11_c"):
        (checkout / "notebooks" / "assignments" / "source" / name).mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").write_text('#!/bin/sh\necho "python $*"\n')
    (checkout / ".venv" / "bin" / "python").chmod(0o755)
    (checkout / ".venv" / ".teach-ready").write_text(f"{checkout.resolve()}\n")
    return checkout


def law_a_teachers_commands_run_in_any_folder(classroom: Path, make: Callable) -> None:
    for target in ("release", "autograde", "feedback", "personal", "inventory"):
        done = make(classroom, target, "ASSIGNMENT=03")
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert "python -m " in done.stdout and (target == "inventory" or "03_attention" in done.stdout)


def law_a_teachers_commands_say_which_assignment_they_lack(classroom: Path, make: Callable) -> None:
    for target in ("release", "autograde", "feedback", "personal"):
        for none_or_many in ("", "0", "1", "99", "03 10"):
            refused = make(classroom, target, f"ASSIGNMENT={none_or_many}")
            assert refused.returncode != 0 and not refused.stdout
            assert refused.stderr.startswith(f"Say which: make {target} ASSIGNMENT=03\n"), refused.stderr


@pytest.mark.parametrize(
    ("law", "old", "new"),
    [
        (law_a_teachers_commands_run_in_any_folder, '"$(CURDIR)/$(PY)" -m', "$(CURDIR)/$(PY) -m"),
        (law_a_teachers_commands_say_which_assignment_they_lack, '[ -d "$$1" ] && ', ""),
        (law_a_teachers_commands_say_which_assignment_they_lack, ' && [ -z "$$2" ]', ""),
    ],
)
def test_a_teachers_commands_run_or_say_what_they_lack(
    classroom: Path, make: Callable, law: Callable, old: str, new: str
) -> None:
    law(classroom, make)
    makefile = classroom / "Makefile"
    makefile.write_text(makefile.read_text().replace(old, new))
    with pytest.raises(AssertionError):
        law(classroom, make)


def test_what_a_reader_writes_is_not_tracked(root: Path) -> None:
    ignored = subprocess.run(["git", "check-ignore", "-q", "my_course/01_a.ipynb"], cwd=root)
    assert ignored.returncode == 0


def test_without_a_suitable_python_make_says_what_to_do(checkout: Path, make: Callable) -> None:
    shutil.rmtree(checkout / ".venv")
    refused = make(checkout, "lab", "PYTHON=false")
    assert refused.returncode != 0
    assert "No Python 3.11 or newer with venv found (tried: false)" in refused.stderr
    assert "make lab PYTHON=/path/to/python3.11" in refused.stderr
    assert not (checkout / ".venv").exists()


def test_a_relative_course_data_becomes_absolute(checkout: Path, make_env: Callable) -> None:
    (checkout.parent / "my data").mkdir()
    assert "COURSE_DATA" not in make_env(checkout)
    absolute = str(checkout.parent.resolve() / "my data")
    assert make_env(checkout, COURSE_DATA="../my data")["COURSE_DATA"] == absolute
    assert make_env(checkout, COURSE_DATA="nowhere")["COURSE_DATA"] == "nowhere"


def test_waiting_threads_soon_sleep_unless_the_user_says_otherwise(checkout: Path, make_env: Callable) -> None:
    assert make_env(checkout)["GOMP_SPINCOUNT"] == "100000"
    assert make_env(checkout, GOMP_SPINCOUNT="5")["GOMP_SPINCOUNT"] == "5"


# With what little the process has: one core, and two GB of memory for each process.
NARROW = """
import os, resource, subprocess, sys
import nbformat
from nbclient import NotebookClient
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
resource.setrlimit(resource.RLIMIT_DATA, (2 * 2**30, 2 * 2**30))
mine, *cells = sys.argv[1:]
subprocess.run([sys.executable, "-m", "notebooks.copies", mine], check=True)
notebook = nbformat.read(f"{mine}/00_welcome.ipynb", as_version=4)
if cells:
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
NotebookClient(notebook, timeout=600, resources={"metadata": {"path": mine}}).execute()
"""


def law_the_first_lesson_runs_where_little_is_allowed(root: Path, writable: Path, *cells: str) -> None:
    """No network, no home, nothing to write to but one folder: the checkout is read-only."""
    home = writable / "home"
    home.mkdir()
    words = ["bwrap", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    words += ["--tmpfs", str(Path.home())]
    for path in (root, Path(sys.prefix), Path(sys.base_prefix)):
        words += ["--ro-bind", str(path), str(path)] if path.is_relative_to(Path.home()) else []
    words += ["--bind", str(writable), str(writable), sys.executable, "-c", NARROW]
    env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "TMPDIR": str(home), "PYTHONPATH": str(root)}
    env |= {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    env |= {"IPYTHONDIR": str(home / "ipython"), "MPLCONFIGDIR": str(home / "matplotlib")}
    mine = str(writable / "my course, für Übungen")
    done = subprocess.run([*words, mine, *cells], cwd=root, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.skipif(not available(), reason="no bubblewrap here: nothing can be forbidden to a process")
def test_the_first_lesson_runs_where_little_is_allowed(root: Path, tmp_path: Path) -> None:
    law_the_first_lesson_runs_where_little_is_allowed(root, tmp_path)
    for number, (cell, words) in enumerate(
        (
            (f"open({str(root / 'x')!r}, 'w')", "Read-only file system"),
            ("import socket; socket.create_connection(('192.0.2.1', 80), 5)", "Network is unreachable"),
            ("bytearray(3 * 2**30)", "MemoryError"),
            ("import os; assert len(os.sched_getaffinity(0)) > 1", "AssertionError"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(AssertionError, match=words):
            law_the_first_lesson_runs_where_little_is_allowed(root, tmp_path / str(number), cell)


def use_everything(env: dict[str, str]) -> None:
    """Do in a subprocess what writes into the home by default: a kernel's history and settings, a plot."""
    code = (
        "import matplotlib.font_manager\n"
        "from jupyter_client.manager import start_new_kernel\n"
        "manager, client = start_new_kernel()\n"
        "client.execute_interactive('1 + 1')\n"
        "manager.shutdown_kernel()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def check_home_stays_empty(home: Path, env: dict[str, str]) -> None:
    use_everything(env)
    left = sorted(str(path.relative_to(home)) for path in home.rglob("*"))
    assert not left, f"expected nothing in the home, got {left}"


def test_nothing_is_written_into_the_home(tmp_path: Path, root: Path, make_env: Callable) -> None:
    home, careless_home = tmp_path / "home", tmp_path / "careless"
    home.mkdir()
    careless_home.mkdir()
    # fontconfig's cache goes elsewhere here; `make lab` has built it by the time of the first plot.
    env = make_env(root, HOME=str(home), XDG_CACHE_HOME=str(tmp_path / "cache"))
    check_home_stays_empty(home, env)
    careless = {k: v for k, v in env.items() if k not in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    with pytest.raises(AssertionError, match="ipython"):
        check_home_stays_empty(careless_home, {**careless, "HOME": str(careless_home)})


def run_ci(root: Path, place: Path, stranger_env: dict[str, str], started: int = 0, change: Callable = str) -> str:
    """Run a copy of .ci/run, begun at a time, with a make that only says how it was called."""
    (place / "checkout" / ".ci").mkdir(parents=True)
    (place / "bin").mkdir()
    shutil.copy(root / ".ci" / "run", place / "checkout" / ".ci")
    says = 'echo "make $* in $(pwd -P), COURSE_DATA=${COURSE_DATA-unset}"'
    for name, does in {"make": says, "apt-get": ":", "date": f"echo {started}"}.items():
        (place / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (place / "bin" / name).chmod(0o755)
    env = {**stranger_env, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    script = place / "checkout" / ".ci" / "run"
    script.write_text(change(script.read_text(encoding="utf-8")), encoding="utf-8")
    done = subprocess.run([script], env=env, cwd="/", capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("with_data", [True, False])
def test_ci_runs_the_test_command_with_the_data_that_exists(
    root: Path, tmp_path: Path, stranger_env: dict[str, str], with_data: bool
) -> None:
    place, data = tmp_path.resolve(), tmp_path.resolve() / "shared" / "data"
    if with_data:
        data.mkdir(parents=True)
    said = run_ci(root, place, stranger_env)
    where, clock = f"in {place / 'checkout'}, COURSE_DATA={data if with_data else 'unset'}", "--until=3900 --turn=0"
    browser = [f"test-browser PAGES=2 ARGS=-k {what} {clock}" for what in ("test_lessons", "'not test_lessons'")]
    assert said.splitlines() == [f"make {target} {where}" for target in ("test", f"test-book ARGS={clock}", *browser)]
    assert "\nmake test\n" in (root / "README.md").read_text(encoding="utf-8")
    assert "- run: .ci/run\n" in (root / ".github/workflows/ci.yml").read_text(encoding="utf-8")


def law_each_comes_first_at_its_turn(said: list[str]) -> None:
    """After the tests that are never left out, each of the others, another first each hour."""
    asked = [re.findall(r"^make (\S+ .*?)[ =]--until=(\d+) --turn=(\d+) in ", each, flags=re.M) for each in said]
    assert all(each.startswith("make test in ") for each in said)
    assert all(len({what for what, *_ in found}) == len(found) == 3 for found in asked), asked
    assert len({found[0][0] for found in asked}) == 3
    assert [{(int(until), int(turn)) for _, until, turn in found} for found in asked] == [
        {(3600 * hour + 3900, hour)} for hour in range(3)
    ]


def test_each_comes_first_at_its_turn(root: Path, tmp_path: Path, stranger_env: dict[str, str]) -> None:
    number = count()

    def of_three_hours(change: Callable) -> list[str]:
        return [
            run_ci(root, tmp_path.resolve() / f"{next(number)}", stranger_env, 3600 * hour, change) for hour in range(3)
        ]

    law_each_comes_first_at_its_turn(of_three_hours(str))
    for old, new in (("turn % 3", "0"), ("+ 3900", "+ 390"), ("2) widgets && book && lessons", "2) widgets && book")):
        with pytest.raises(AssertionError):
            law_each_comes_first_at_its_turn(of_three_hours(lambda text, old=old, new=new: text.replace(old, new)))


def law_windows_is_tried_as_it_is_told(workflow: str, page: str) -> None:
    """The job runs the lines of the page in their order, but for the last one, which waits for a person."""
    told = re.search(r"## Windows\n.*?```\n(.*?)```", page, flags=re.S)[1].splitlines()
    steps = [step["run"] for step in yaml.safe_load(workflow)["jobs"]["windows"]["steps"] if "run" in step]
    assert len(told) == 4 and steps[:3] == told[:3], f"told {told}, tried {steps[:3]}"
    tried = " ".join(steps[3:])
    assert "-m jupyterlab " in told[3] and all(part in tried for part in ("tests/checks", ".ipynb", "--nbval-lax"))


def test_windows_is_tried_as_it_is_told(root: Path) -> None:
    workflow = (root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    page = (root / "docs" / "installation.md").read_text(encoding="utf-8")
    law_windows_is_tried_as_it_is_told(workflow, page)
    for old, new in (("-m notebooks.copies", "-m notebooks.other"), ("tests/checks", ""), ("--nbval-lax", "")):
        assert old in workflow
        with pytest.raises(AssertionError):
            law_windows_is_tried_as_it_is_told(workflow.replace(old, new), page)


def test_readme_lists_every_lesson_and_target(root: Path, make: Callable) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    for source in (root / "notebooks" / "source").glob("[0-9][0-9]_*.py"):
        assert f"(notebooks/{source.stem}.ipynb)" in readme, f"expected a row for {source.stem}"
    for target in re.findall(r"^  (\w+) ", make(root, "help").stdout, flags=re.MULTILINE):
        assert f"make {target}" in readme, f"expected make {target} in the README"
