"""A whole class is graded with nbgrader's own commands; nobody's trick earns a point or costs somebody else one."""

import os
import shutil
import sys
from base64 import b64encode
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from notebooks.source.build_assignments import name_of, texts
from tests.helpers.classroom import LIMITS, STUB, Classroom, Submission, insert

ASSIGNMENT = "03_attention"  # `make test-class` grades all of them


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "classroom" not in metafunc.fixturenames:
        return
    every = metafunc.config.getoption("--all-assignments")
    names = [name_of(text) for text in texts()] if every else [ASSIGNMENT]
    metafunc.parametrize("classroom", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def classroom(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    made = Classroom(tmp_path_factory.mktemp("course") / "teacher", request.param)
    made.all = made.students()
    for submission in made.all:
        made.submit(submission)
    made.before = files(made.root, "source", "release", "nbgrader_config.py")
    made.seconds = made.autograde()
    made.found = made.scores()
    return made


def files(root: Path, *names: str) -> dict[Path, bytes]:
    paths = (path for name in names for path in [root / name, *(root / name).rglob("*")])
    return {path: path.read_bytes() for path in paths if path.is_file()}


def test_everybody_gets_the_points_that_are_theirs(classroom: Classroom) -> None:
    assert len(classroom.all) >= 30
    for submission in classroom.all:
        expected = {
            name: submission.points.get(name, float(points) if name.endswith("-check") else None)
            for name, points in classroom.points.items()
        }
        assert classroom.found[submission.student] == expected, submission.student


def test_nbgrader_alone_falls_for_the_patch(tmp_path: Path) -> None:
    """Without our steps the same submission gets all points: the class has something to catch."""
    plain = "from nbgrader.converters import Autograde\nsteps = Autograde.autograde_preprocessors.default()\n"
    alone = Classroom(tmp_path / "teacher", ASSIGNMENT, f"{plain}c.Autograde.autograde_preprocessors = steps\n")
    (patched,) = (submission for submission in alone.students() if submission.student == "patched")
    alone.submit(patched)
    alone.autograde()
    assert any(alone.scores()["patched"].values())


def test_everybody_reads_why(classroom: Classroom) -> None:
    for submission in classroom.all:
        assert submission.says in classroom.graded(submission.student), submission.student


def test_the_teachers_files_are_as_they_were(classroom: Classroom) -> None:
    assert files(classroom.root, "source", "release", "nbgrader_config.py") == classroom.before
    assert not Path("/outside").exists()


def test_feedback_and_the_table_of_grades_come_out(classroom: Classroom) -> None:
    classroom.nbgrader("generate_feedback", classroom.assignment)
    classroom.nbgrader("export")
    pages = list((classroom.root / "feedback").rglob("*.html"))
    assert len(pages) == len(classroom.all)
    table = (classroom.root / "grades.csv").read_text(encoding="utf-8")
    assert all(submission.student in table for submission in classroom.all)


def test_the_teacher_reads_a_line_a_student(classroom: Classroom) -> None:
    lines = classroom.said.splitlines()
    students = sorted(submission.student for submission in classroom.all)
    own = [line for line in lines if line.startswith("[")]
    assert [line.split("] ")[1].split(":")[0] for line in own] == students
    assert all(" of " in line for line in own) and f"[1/{len(students)}, " in own[0]
    most = sum(points for name, points in classroom.points.items() if name.endswith("-check"))
    assert any(line.endswith(f"solution: {most:g} of {most:g}, 1 in words to read") for line in own)
    assert "is not a notebook" in next(line for line in own if "] no-notebook" in line)
    assert "autograde.log" in lines[-1] and "Traceback" not in classroom.said
    log = (classroom.root / "autograde.log").read_text(encoding="utf-8")
    assert all(f"== {student}\n" in log for student in students) and "Converting notebook" in log


EACH = """def each(query, key):
    return torch.stack([one @ other.T for one, other in zip(query, key)]) / query.size(-1) ** 0.5
"""
SLOW = "def scores(query, key):\n    return slow_scores(query, key)"
PICTURE = b64encode(b"a picture").decode()
NOT_A_TEXT = os.fsdecode(b"L\xf6sung.txt") if sys.platform == "linux" else "Loesung.txt"


def named(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {cell.metadata["nbgrader"]["grade_id"]: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def experiment(notebook: NotebookNode) -> None:
    for _ in range(4):
        insert("import time\ntime.sleep(3)")(notebook)


def split(notebook: NotebookNode) -> None:
    """As JupyterLab does: both halves have the same metadata."""
    first = named(notebook)["03-softmax"]
    second = deepcopy(first)
    first.source, second["id"] = "import math", "half"
    notebook.cells.insert(notebook.cells.index(first) + 1, second)


def draw(notebook: NotebookNode) -> None:
    cell = named(notebook)["03-scale"]
    cell.source += "\n\n![t](attachment:t.png)"
    cell["attachments"] = {"t.png": {"image/png": PICTURE}}


def lose(notebook: NotebookNode) -> None:
    draw(notebook)
    del named(notebook)["03-scale"]["attachments"]


def test_what_is_odd_in_one_submission_costs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Classroom(tmp_path / "teacher", ASSIGNMENT, f"{LIMITS}c.ContainedExecute.added_budget = 4\n")
    none = {"03-scores-check": 0.0}
    submissions = [
        Submission("name"),
        Submission("caller", none, {"03-scores": SLOW}, says="write it without a loop"),
        Submission("helper", none, {"03-scores": "scores = each"}, insert(EACH), says="write it without a loop"),
        Submission("experiments", edit=experiment),
        Submission("split", edit=split),
        Submission("drawn", edit=draw),
        Submission("lost", edit=lose),
    ]
    for submission in submissions:
        room.submit(submission)
    (room.root / "submitted" / "a[b]" / ASSIGNMENT).mkdir(parents=True)
    folder = room.root / "submitted" / "name" / ASSIGNMENT
    (folder / NOT_A_TEXT).write_text("42")
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")]), folder / "Untitled.ipynb")
    monkeypatch.setenv("COURSE_CLASS_SEED", "1")
    room.autograde("--jobs", "1")
    for submission in submissions:
        expected = {
            name: submission.points.get(name, float(points) if name.endswith("-check") else None)
            for name, points in room.points.items()
        }
        assert room.scores().get(submission.student) == expected, (submission.student, room.said)
        assert submission.says in room.graded(submission.student)
    lines = {line.split("] ", 1)[1].split(":")[0]: line for line in room.said.splitlines() if line.startswith("[")}
    assert "NOT GRADED: nbgrader takes the name of the folder for a pattern" in lines["a[b]"]
    assert "Untitled.ipynb is left out" in lines["name"]
    assert "look: 03.scores uses slow_scores, which has a loop" in lines["caller"]
    assert "look: 03.scores uses each, which has a loop" in lines["helper"]
    assert "look: out of time for 2 added cells" in lines["experiments"] and "look:" not in lines["split"]
    assert "of the seed 1, which everybody knows" in (room.root / "autograde.log").read_text(encoding="utf-8")
    room.nbgrader("generate_feedback", ASSIGNMENT)
    pages = {path.parts[-3]: path.read_text(encoding="utf-8") for path in room.root.glob("feedback/*/*/*.html")}
    assert f"data:image/png;base64,{PICTURE}" in pages["drawn"] and "![t](attachment:t.png)" in pages["lost"]
    monkeypatch.setenv("COURSE_CLASS_SEED", "2")
    room.autograde("--jobs", "1")
    assert room.said.count("unchanged") == room.said.count("look: graded with the seed 1, not 2") == len(submissions)


def test_a_grading_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """With its whole group of processes, at a moment of nobody's choice: each gets the same as without."""
    room = Classroom(tmp_path / "teacher", ASSIGNMENT)
    for submission in room.students()[:6]:
        room.submit(submission)
    room.killed_after(lines=3)  # the first of them is about the seed
    graded = room.said.splitlines()
    room.autograde("--jobs", "2")
    lines = [line for line in room.said.splitlines() if line.startswith("[")]
    assert len(lines) == 6 and 2 <= sum("unchanged" in line for line in lines) < 6, (graded, lines)
    found = room.scores()
    room.autograde("--again", "--jobs", "1")
    assert room.scores() == found


def test_who_hands_in_again_is_graded_again(tmp_path: Path) -> None:
    room = Classroom(tmp_path / "teacher", ASSIGNMENT)
    cell = next(iter(room.right))
    nothing = Submission("ada", cells={cell: STUB for cell in room.right})
    room.submit(nothing)
    room.autograde()
    before = room.scores()["ada"]
    room.autograde()
    assert "unchanged" in room.said and room.scores()["ada"] == before
    shutil.rmtree(room.root / "submitted")
    room.submit(Submission("ada"))
    room.autograde()
    after = room.scores()["ada"]
    assert before[f"{cell}-check"] == 0 and after[f"{cell}-check"] > 0 and "unchanged" not in room.said


def test_nothing_of_a_submission_runs_in_the_feedback(tmp_path: Path) -> None:
    room = Classroom(tmp_path / "teacher", ASSIGNMENT)

    def shout(notebook) -> None:
        script = "<script>alert(1)</script>"
        show = f"from IPython.display import HTML, display\ndisplay(HTML({script!r}))"
        code = f"{show}\nraise ValueError({script!r} + 'x' * 10**7)"
        notebook.cells.insert(0, nbformat.v4.new_code_cell(code))
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(f"# Hello {script}"))

    loud = "def softmax(scores):\n    raise ValueError('<script>alert(1)</script>' + 'x' * 30_000_000)"
    room.submit(Submission("mallory", cells={"03-softmax": loud}, edit=shout))
    room.autograde()
    room.nbgrader("generate_feedback", ASSIGNMENT)
    (page,) = (room.root / "feedback").rglob("*.html")
    shown = page.read_text(encoding="utf-8")
    assert "<script>alert" not in shown and "<details>" in shown
    assert page.stat().st_size < 3_000_000 and "ValueError" in shown
    found = room.scores()["mallory"]
    assert found["03-scores-check"] > 0 and found["03-softmax-check"] == 0


def test_grading_is_quick(classroom: Classroom, record_property) -> None:
    each = classroom.seconds / len(classroom.all)
    record_property("seconds per submission", each)
    print(f"{classroom.assignment}: {classroom.seconds:.0f} s, {each:.1f} s a submission")
    assert each < 30
