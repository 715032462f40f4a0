"""The command that grades: what it says to the teacher, and where it refuses to work."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_lib.assignments import FOLDERS, find, load
from course_lib.checks import CheckFailed, Exercise, Reply, read, read_replies, verdict, write, write_replies
from course_lib.checks.tree import copy, equal, on_meta
from course_lib.grading import __main__ as command
from course_lib.grading import execute, leaderboard, rounds, sandbox
from course_lib.grading.execute import ContainedExecute
from course_lib.grading.reading import look_at, needs_a_look, only_defines
from course_lib.grading.remote import COMMON, answer, source_of_ask, way_to_ask
from notebooks.source.build_assignments import FOLDER
from tests.helpers.answers import written
from tests.helpers.laws import tells_apart

GRADING = rounds.Grading


class Quick:
    """In the place of a grading that takes its time."""

    def __init__(self, assignment: str):
        os.write(1, b"what nbgrader says")  # as a kernel does that writes to what it has inherited

    def grade(self, student: str, *, again: bool) -> str:
        if student == "bob":
            raise NotImplementedError("no kernel for this")
        return "9 of 12"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for student in ("ada", "bob", "cy"):
        (tmp_path / "submitted" / student / "03_attention").mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rounds, "Grading", Quick)
    return tmp_path


def run(capfd: pytest.CaptureFixture, *arguments: str) -> tuple[int, list[str]]:
    status = command.main([*arguments, "--jobs", "1"])
    out, err = capfd.readouterr()
    return status, [*out.splitlines(), *err.splitlines()]


def test_the_teacher_reads_a_line_a_student_and_the_log_has_the_rest(course: Path, capfd) -> None:
    status, said = run(capfd, "03_attention")
    assert status == 1 and said[-1].endswith("autograde.log. 1 NOT GRADED.")
    lines = [line for line in said if line.startswith("[")]
    bobs = "bob: NOT GRADED, see autograde.log (NotImplementedError: no kernel for this)"
    assert lines == ["[1/3, 0 min left] ada: 9 of 12", f"[2/3, 0 min left] {bobs}", "[3/3, 0 min left] cy: 9 of 12"]
    assert "what nbgrader says" not in said
    assert "what nbgrader says" in (course / "autograde.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(("seed", "warns"), [(None, True), ("1", True), ("271828", False)])
def test_the_seed_of_the_hidden_tests_is_said_and_a_known_one_is_warned_of(
    course: Path, capfd, monkeypatch, seed: str | None, warns: bool
) -> None:
    monkeypatch.delenv("COURSE_CLASS_SEED", raising=False)
    if seed:
        monkeypatch.setenv("COURSE_CLASS_SEED", seed)
    _, said = run(capfd, "03_attention")
    lines = [line for line in said if line.startswith(f"The hidden tests are those of the seed {seed or 1}")]
    assert lines and ("choose one for your class" in lines[0]) == warns


def test_a_seed_that_hides_nothing_grades_nobody(course: Path, capfd, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_CLASS_SEED", "0")
    status, said = run(capfd, "03_attention")
    assert status == 1 and said[-1].startswith("expected COURSE_CLASS_SEED") and "ada" not in "".join(said)


def test_what_is_not_released_is_said_to_be_so_and_not_graded(course: Path, capfd, monkeypatch) -> None:
    monkeypatch.setattr(rounds, "Grading", GRADING)
    status, said = run(capfd, "03_attention")
    assert status == 1 and said[-1] == "03_attention is not released: make release ASSIGNMENT=03 first"


def test_a_grading_that_is_not_contained_says_so_first_and_last(course: Path, capfd, monkeypatch) -> None:
    monkeypatch.setattr(command, "available", lambda: False)
    _, said = run(capfd, "03_attention")
    assert said[0].startswith("!!! NOT CONTAINED") and said[-2].startswith("!!! NOT CONTAINED")
    monkeypatch.setattr(command, "available", lambda: True)
    assert not any("NOT CONTAINED" in line for line in run(capfd, "03_attention")[1])


def test_on_windows_it_says_at_once_where_it_works(course: Path, capfd, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert run(capfd, "03_attention") == (2, ["Grading needs Linux or macOS: use WSL, or a virtual machine."])


def test_without_its_configuration_nothing_is_graded(course: Path, capfd, monkeypatch) -> None:
    """With nbgrader's defaults a submission would run uncontained."""
    monkeypatch.undo()
    monkeypatch.chdir(course)
    (course / "nbgrader_config.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        command.main(["03_attention"])
    (course / "nbgrader_config.py").unlink()
    assert run(capfd, "03_attention")[0] == 1 and not (course / "autograded").exists()


def test_where_nothing_is_submitted_it_says_what_it_looked_for(course: Path, capfd) -> None:
    status, said = run(capfd, "04_multi_head")
    assert status == 1 and said == ["nothing is submitted: expected folders submitted/STUDENT/04_multi_head"]


def test_what_a_class_leaves_behind_is_ignored_by_git(root: Path) -> None:
    names = "gradebook.db grades.csv autograde.log submitted/a/b.ipynb autograded/a/b.ipynb feedback/a.html"
    paths = [f"notebooks/assignments/{name}" for name in names.split()]
    ignored = subprocess.run(["git", "check-ignore", *paths], cwd=root, capture_output=True, text=True)
    if ignored.returncode == 128:
        pytest.skip("this folder is no git checkout")
    assert ignored.stdout.splitlines() == paths


# What is mounted.


def test_the_copy_for_submissions_has_no_answer() -> None:
    made = sandbox.library()
    files = [path for path in made.rglob("*") if path.is_file()]
    assert len(files) > 80 and not [path for path in files if path.name in ("text.py", "checks.py", "answers.py")]
    assert [path.name for path in (made / "assignments").iterdir()] == ["__init__.py"]
    hints = [hint for hint in find("03.scores").mistakes]
    assert not any(hint in path.read_text(encoding="utf-8") for path in files if path.suffix == ".py" for hint in hints)


@pytest.mark.skipif(not sandbox.available(), reason="no bubblewrap here: submissions are not contained")
def test_a_contained_process_sees_that_copy_alone(tmp_path: Path, root: Path) -> None:
    look = (
        "import json, pathlib, course_lib\n"
        f"places = [pathlib.Path(course_lib.__file__).parent, pathlib.Path({str(root)!r})]\n"
        "found = [str(path) for place in places for path in place.rglob('*')]\n"
        "bad = [path for path in found if path.endswith(('answers.py', 'checks.py', '.ipynb')) or '/.git/' in path]\n"
        "print(json.dumps([len(found), bad]))\n"
    )
    inside = sandbox.command(tmp_path, [tmp_path.parent])
    variables = sandbox.environment(tmp_path, 2**32, 2**20)
    done = subprocess.run([*inside, sys.executable, "-c", look], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, bad = json.loads(done.stdout)
    assert count > 80 and [path for path in bad if "site-packages" not in path] == []


@pytest.mark.skipif(not sandbox.available(), reason="no bubblewrap here: submissions are not contained")
@pytest.mark.parametrize("checkout", [False, True])
def test_a_contained_process_sees_no_other_copy_that_is_installed(
    checkout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, installed = tmp_path / "own", tmp_path / "installed"
    for folder in (own, installed / "course_lib", installed / "solutions"):
        folder.mkdir(parents=True)
    for file in (installed / "course_lib" / "__init__.py", installed / "solutions" / "answers.py"):
        file.write_text("")
    if checkout:
        (installed / "pyproject.toml").write_text("")

    def seen() -> list[str]:
        look = [*sandbox.command(own, []), "find", str(installed), "-name", "*.py", "-printf", "%f\n"]
        return subprocess.run(look, capture_output=True, text=True, check=True).stdout.split()

    monkeypatch.setattr(sandbox, "HIDDEN", ())
    monkeypatch.setattr(sys, "path", [*sys.path, str(installed)])
    assert sandbox.elsewhere() == [installed.resolve() / "course_lib"]
    assert seen() == ([] if checkout else ["answers.py"])
    monkeypatch.setattr(sandbox, "elsewhere", list)
    assert sorted(seen()) == ["__init__.py", "answers.py"], "this test proves nothing"


@pytest.fixture
def sockets() -> Iterator[list[str]]:
    """Addresses at which somebody listens: where a program without rights may put a socket, and one without a file."""
    places = [Path(os.environ.get("XDG_RUNTIME_DIR", "/run/user/0")), Path("/run"), Path("/tmp")]
    place = next(place for place in places if os.access(place, os.W_OK))
    addresses = [str(place / f"course-{os.getpid()}.socket"), f"\0course-{os.getpid()}"]
    with ExitStack() as stack:
        for address in addresses:
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(address)
            listening.listen()
        yield addresses
    Path(addresses[0]).unlink()


@pytest.mark.skipif(not sandbox.available(), reason="no bubblewrap here: submissions are not contained")
def test_a_contained_process_reaches_no_socket_and_sees_no_home(
    tmp_path: Path, sockets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = [Path(sys.prefix), Path(sys.base_prefix), sandbox.LIBRARY, tmp_path]
    look = (
        "import json, os, socket\n"
        f"def seen(place, needed={[str(one) for one in needed]!r}):\n"
        "    for path, folders, files in os.walk(place):\n"
        "        folders[:] = [folder for folder in folders if os.path.join(path, folder) not in needed]\n"
        "        yield from files\n"
        f"reached = [socket.socket(socket.AF_UNIX).connect_ex(address) == 0 for address in {sockets!r}]\n"
        f"found = [file for place in {[str(place) for place in sandbox.HIDDEN]!r} for file in seen(place)]\n"
        "print(json.dumps([reached, found]))\n"
    )

    def run(inside: list[str]) -> tuple[list[bool], list[str]]:
        variables = sandbox.environment(tmp_path, 2**32, 2**20)
        done = subprocess.run([*inside, sys.executable, "-c", look], env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert run(sandbox.command(tmp_path, [])) == [[False, False], []]
    assert run([])[0] == [True, True]
    monkeypatch.setattr(sandbox, "HIDDEN", ())
    assert run(sandbox.command(tmp_path, []))[0] == [True, False], "this test proves nothing"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory in use")
def test_memory_in_use_is_limited_and_reserved_addresses_are_not() -> None:
    """As a CUDA build of PyTorch does, which reserves more addresses than any machine has memory."""
    code = (
        "import mmap\n"
        "from course_lib.grading.contained_kernel import limit\n"
        "limit(2**30, 2**20)\n"
        "reserved = mmap.mmap(-1, 64 * 2**30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)\n"
        "print(len(reserved) >> 30)\n"
        "bytearray(2 * 2**30)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "64\n" and done.stderr.endswith("MemoryError\n")


# How an answer is asked.

EXERCISES = [exercise for folder in FOLDERS for exercise in load(folder).values()]
ASKED = [exercise for exercise in EXERCISES if exercise.ask not in COMMON.values()]


@pytest.mark.parametrize("exercise", ASKED, ids=[exercise.name for exercise in ASKED])
def test_the_way_to_ask_travels_as_code_that_needs_nothing_else(
    exercise: Exercise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER / "solution" / "19_capstone")  # where its weights are
    ask = way_to_ask(source_of_ask(exercise))
    assert ask is not exercise.ask
    for inputs in exercise.inputs(0):
        if not on_meta(inputs):
            answered = exercise.ask(exercise.reference, *copy(inputs))
            assert equal(ask(exercise.reference, *copy(inputs)), answered)
            assert exercise.truth is not None or equal(answered, exercise.expected(inputs))


def test_a_way_to_ask_that_needs_more_is_found() -> None:
    def ask(answer):
        return json.dumps(answer())

    with pytest.raises(NameError, match="json"):
        way_to_ask(source_of_ask(Exercise("00.more", ask=ask)))(lambda: 1)
    assert len(ASKED) >= 7


SPECIFIED = [one for one in EXERCISES if one.loops is False and written(one.name).specification]


@pytest.mark.parametrize("exercise", SPECIFIED, ids=[exercise.name for exercise in SPECIFIED])
def test_the_specification_is_no_answer_where_no_loop_is_allowed(exercise: Exercise, tmp_path: Path) -> None:
    """Its lines are counted where the answer runs; and whoever reads the notebook sees that it is called."""
    about, cases = written(exercise.name), exercise.inputs(1)
    names = dict(about.given)
    exec(compile(about.specification, "<given>", "exec"), names)
    (slow,) = (name for name in names if names[name] is not about.given.get(name) and name.startswith("slow_"))
    code = f"def {about.variable}(*inputs, **more):\n    return {slow}(*inputs, **more)"
    exec(compile(code, "<answer>", "exec"), names)
    write([source_of_ask(exercise), exercise.names(), exercise.counts, cases], tmp_path / "cases-0")
    answer(about.variable, names, str(tmp_path), "0")
    with pytest.raises(CheckFailed, match="write it without a loop"):
        verdict(exercise, cases, read_replies(tmp_path / "replies-0"))
    assert needs_a_look(exercise, code, given=[about.specification]) == [f"uses {slow}, which has a loop"]


def test_there_are_specifications() -> None:
    assert len(SPECIFIED) >= 15


class Answering(ContainedExecute):
    """Answers at once, in this process, and remembers the order of the cases; `keep`: to so many of them."""

    keep = None

    def _run(self, cell, index: int) -> None:
        (asked,) = self._kernel.folder.glob("cases-*")
        cases = read(asked)[-1]
        self.orders.append([tuple(inputs[0].shape) for inputs in cases])
        replies = [Reply(inputs[0].sum()) for inputs in cases][: self.keep]
        write_replies(replies, asked.with_name(asked.name.replace("cases", "replies")))
        asked.unlink()


def test_cases_come_in_random_order_and_results_go_back_to_theirs(tmp_path: Path) -> None:
    asking, exercise = Answering(), find("03.scores")
    asking._kernel, asking.orders = SimpleNamespace(folder=tmp_path), []
    cases = [(torch.full((size,), 1.0), torch.zeros(1)) for size in range(1, 7)]
    for _ in range(8):
        found = asking._ask(exercise, "scores", cases, 0)
        assert [reply.result.item() for reply in found] == [1, 2, 3, 4, 5, 6]
    assert len({tuple(order) for order in asking.orders}) > 1
    asking.keep = 5
    with pytest.raises(CheckFailed, match="6 cases, and replies to 5"):
        asking._ask(exercise, "scores", cases, 0)


@pytest.mark.parametrize(("power", "got"), [(64, str(2**64)), (1300, "int of 1301"), (9**5, "int of 59050")])
def test_a_number_that_nothing_holds_costs_its_own_cell(power: int, got: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asking, cell = Answering(), new_code_cell('check("14.longest", longest)')
    asking.nb, asking._variants = new_notebook(cells=[cell]), {}
    monkeypatch.setattr(asking, "_ask", lambda exercise, variable, cases, index: [Reply(2**power) for _ in cases])
    asking._judge(cell, [("14.longest", "longest", False)], 0)
    assert cell.outputs[0].ename == "CheckFailed" and f"got {got}" in cell.outputs[0].evalue


def test_results_that_no_comparison_takes_cost_their_own_cell(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    def fails(*_):
        raise OverflowError("too large for this")

    asking, cell = Answering(), new_code_cell('check("14.longest", longest)')
    asking.nb, asking._variants = new_notebook(cells=[cell]), {}
    monkeypatch.setattr(asking, "_ask", lambda *_: [])
    monkeypatch.setattr(execute, "verdict", fails)
    asking._judge(cell, [("14.longest", "longest", False)], 0)
    assert "your results cannot be compared (OverflowError: too large for this)" in cell.outputs[0].evalue
    assert "Traceback" in capfd.readouterr().err, "it may be a mistake of ours"


# Who has how much time.


class Clocked(ContainedExecute):
    """Runs nothing: each cell says how many seconds it takes."""

    def execute_cell(self, cell, index: int, store_history: bool) -> None:
        self.ran.append(cell.source)
        self.now += min(int(cell.source), self.timeout_func(cell)) if cell.source.isdecimal() else 0

    def _fresh(self) -> SimpleNamespace:
        return SimpleNamespace(manager=None)

    def _disconnect(self) -> None:
        """There is nothing to end, nor to begin."""

    start_new_kernel_client = _disconnect


def ours(seconds: int, **marks: bool):
    return new_code_cell(str(seconds), metadata={"nbgrader": {"grade_id": f"one-{seconds}"}, **marks})


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> Clocked:
    made = Clocked()
    made.now, made.ran = 1000.0, []
    monkeypatch.setattr(execute, "monotonic", lambda: made.now)
    made._start_clock()
    return made


def test_what_a_learner_added_leaves_time_for_the_assignment(clocked: Clocked) -> None:
    notebook = new_notebook(cells=[*(new_code_cell("29") for _ in range(7)), *(ours(20 + n) for n in range(4))])
    for index, cell in enumerate(notebook.cells):
        clocked.preprocess_cell(cell, {}, index)
    assert clocked.ran == ["29", "29", "29", "20", "21", "22", "23"] and clocked.now < 1000 + clocked.budget
    assert list(rounds.late(notebook)) == ["out of time for 4 added cells"]
    assert "your own cells had 60 seconds" in notebook.cells[3].outputs[0].evalue
    notebook = new_notebook(cells=[ours(29 - n) for n in range(4)])  # 33 seconds are left
    for index, cell in enumerate(notebook.cells):
        clocked.preprocess_cell(cell, {}, index)
    assert list(rounds.late(notebook)) == ["out of time for one-27, one-26"]
    assert list(rounds.late(new_notebook(cells=[ours(1)]))) == []


def test_what_only_defines_needs_no_time(clocked: Clocked) -> None:
    """An answer below may use it."""
    helpers = ["def helper(x):\n    return x", "import math"]
    notebook = new_notebook(cells=[*(new_code_cell("29") for _ in range(4)), *map(new_code_cell, helpers)])
    for index, cell in enumerate(notebook.cells):
        clocked.preprocess_cell(cell, {}, index)
    assert clocked.ran == ["29", "29", "29", *helpers]
    assert not any(map(only_defines, ("", "x = 1", "def f(:", "def f():\n    pass\nf()")))


def test_a_verdict_that_fails_is_told_to_the_teacher() -> None:
    output = new_output("error", ename="CheckFailed", evalue=f"01.a: {execute.NOT_COMPARED} (KeyError: 1)")
    cell = new_code_cell("check(...)", outputs=[output], metadata={"nbgrader": {"grade_id": "01-a-check"}})
    said = list(rounds.undecided(new_notebook(cells=[cell, ours(1)])))
    assert said == ["no verdict on 01-a-check, see autograde.log"]


def test_a_new_kernel_runs_again_what_there_is_time_for_and_nothing_that_is_for_home(clocked: Clocked) -> None:
    clocked.nb = new_notebook(cells=[ours(1), ours(2, home=True), *(new_code_cell(str(n)) for n in (25, 24, 23, 22))])
    clocked._start_again(5)
    assert clocked.ran == ["1", "25", "24", "23"]
    clocked._start_again(6)
    assert clocked.ran[4:] == ["1"], "the learner's own cells have had their time"


# What the code of an answer shows.


def test_loops_and_finished_functions_are_seen_in_the_code() -> None:
    scores, softmax = find("03.scores"), find("03.softmax")
    assert needs_a_look(scores, written("03.scores").solution) == []
    assert needs_a_look(scores, "def scores(q, k):\n    return [x for x in q]") == ["has a loop"]
    assert needs_a_look(softmax, "def softmax(scores):\n    return scores.softmax(-1)") == ["calls softmax"]
    own = "def softmax(scores):\n    return scores.exp()\ndef answer(scores):\n    return softmax(scores)"
    assert needs_a_look(softmax, own) == []
    assert needs_a_look(scores, "from course_lib.attention import attention_scores") == ["imports course_lib.attention"]
    assert needs_a_look(scores, "def broken(") == []


HELPER = "def each(query):\n    return [one for one in query]"


@pytest.mark.parametrize(
    ("code", "added", "seen"),
    [
        ("def scores(q, k):\n    return each(q)", [HELPER], ["uses each, which has a loop"]),
        ("def scores(q, k):\n    return mine(q)", [HELPER, "mine = each"], ["uses each, which has a loop"]),
        ("mine = each\ndef scores(q, k):\n    return mine(q)", [HELPER], ["uses each, which has a loop"]),
        ("scores = each", ["each = lambda query: [one for one in query]"], ["uses each, which has a loop"]),
        ("def scores(q, k):\n    return slow_scores(q, k)", [], ["uses slow_scores, which has a loop"]),
        ("def scores(q, k):\n    return mine(q, k)", ["mine = slow_scores"], ["uses slow_scores, which has a loop"]),
        ("def scores(each, k):\n    return each", [HELPER], []),
        ("def scores(q, k):\n    each = q @ k.mT\n    return each", [HELPER], []),
        ("def each(q):\n    return q\ndef scores(q, k):\n    return each(q)", [HELPER], []),
        ("def scores(q, k):\n    return table[0]", ["table = [n for n in range(3)]"], []),
        ("def scores(q, k):\n    return each(q)", ["def each("], []),
    ],
)
def test_what_an_answer_uses_of_other_cells_is_read_as_well(code: str, added: list[str], seen: list[str]) -> None:
    given = [written("03.scores").specification, "from course_lib.attention import attention"]
    assert needs_a_look(find("03.scores"), code, added, given) == seen


def test_what_is_finished_is_seen_in_the_helpers_of_an_answer() -> None:
    softmax, code = find("03.softmax"), "def softmax(scores):\n    return mine(scores)"
    assert needs_a_look(softmax, code, ["def mine(x):\n    return x.softmax(-1)"]) == ["calls softmax"]
    assert needs_a_look(softmax, code, ["from course_lib.cost import x as mine"]) == ["imports course_lib.cost"]
    assert needs_a_look(softmax, code, ["def other(x):\n    return x.softmax(-1)"]) == []


def test_a_notebook_is_read_cell_by_cell() -> None:
    path = FOLDER / "source" / "03_attention" / "03_attention.ipynb"
    notebook = nbformat.read(path, as_version=4)
    next(cell for cell in notebook.cells if leaderboard.name_of(cell) == "03-scores").source = "scores = slow_scores"
    notebook.cells.append(new_code_cell("def broken("))
    assert list(look_at(notebook)) == ["03.scores uses slow_scores, which has a loop"]


@pytest.mark.parametrize("exercise", EXERCISES, ids=[exercise.name for exercise in EXERCISES])
def test_no_solution_needs_a_look(exercise: Exercise) -> None:
    assert needs_a_look(exercise, written(exercise.name).solution) == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("source/*/*.ipynb")), ids=lambda path: path.stem)
def test_no_notebook_of_solutions_needs_a_look(path: Path) -> None:
    assert list(look_at(nbformat.read(path, as_version=4))) == []


def law_a_process_more_is_worth_its_start(processes: Callable[[int, int], int]) -> None:
    """At least one, at most one a core, and none for a few submissions alone."""
    assert [processes(submissions, 4) for submissions in (1, 7, 8, 15, 100)] == [1, 1, 2, 3, 4]
    assert processes(100, 1) == 1


def test_a_process_more_is_worth_its_start() -> None:
    def for_each_core(submissions: int, cores: int) -> int:
        return min(submissions, cores)

    def for_each_four(submissions: int, cores: int) -> int:
        return max(1, submissions // 4)

    def none_for_one(submissions: int, cores: int) -> int:
        return min(cores, submissions // 4)

    tells_apart(law_a_process_more_is_worth_its_start, command.worthwhile, for_each_core, for_each_four, none_for_one)
