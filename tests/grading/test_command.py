"""The command that grades: what it says to the teacher, and where it refuses to work."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_lib.assignments import FOLDERS, find, load
from course_lib.checks import CheckFailed, Exercise, Reply, read, write_replies
from course_lib.checks.tree import copy, equal, on_meta
from course_lib.grading import __main__ as command
from course_lib.grading import rounds, sandbox
from course_lib.grading.execute import ContainedExecute
from course_lib.grading.reading import needs_a_look
from course_lib.grading.remote import COMMON, source_of_ask, way_to_ask
from notebooks.source.build_assignments import FOLDER
from tests.helpers.answers import written


class Quick:
    """In the place of a grading that takes its time."""

    def __init__(self, assignment: str):
        os.write(1, b"what nbgrader says")  # as a kernel does that writes to what it has inherited

    def grade(self, student: str, *, again: bool) -> str:
        return "NOT GRADED, see autograde.log" if student == "bob" else "9 of 12"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for student in ("ada", "bob"):
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
    assert lines == ["[1/2, 0 min left] ada: 9 of 12", "[2/2, 0 min left] bob: NOT GRADED, see autograde.log"]
    assert "what nbgrader says" not in said
    assert "what nbgrader says" in (course / "autograde.log").read_text(encoding="utf-8")


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


@pytest.mark.parametrize("exercise", EXERCISES, ids=[exercise.name for exercise in EXERCISES])
def test_no_solution_needs_a_look(exercise: Exercise) -> None:
    assert needs_a_look(exercise, written(exercise.name).solution) == []
