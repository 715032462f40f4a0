"""A class with a notebook for each student: everybody is graded by the convention that they were given."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib.assignments import PUBLISHED, variants_for
from course_lib.grading import __main__ as command
from course_lib.grading.personal import released_to, variants_of
from tests.helpers.answers import written
from tests.helpers.classroom import Classroom, Submission

ASSIGNMENT, EXERCISE, CELL = "05_masks", "05.decoder", "05-decoder"
SEED = 271828
STUDENTS = [f"student-{number}" for number in range(6)]
OF = {student: variants_for(ASSIGNMENT, student, SEED)[EXERCISE] for student in STUDENTS}


def hand_out(root: Path, *arguments: str, seed: int = SEED) -> subprocess.CompletedProcess:
    variables = {**os.environ, "COURSE_CLASS_SEED": str(seed)}
    called = [sys.executable, "-m", "course_lib.grading", "personal", ASSIGNMENT, *arguments]
    return subprocess.run(called, cwd=root, env=variables, capture_output=True, text=True)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    made = Classroom(tmp_path_factory.mktemp("course") / "teacher", ASSIGNMENT)
    (made.root / "students.txt").write_text("\n".join([*STUDENTS, "", *STUDENTS]), encoding="utf-8")
    made.handed = hand_out(made.root)
    return made


def solution_of(student: str) -> str:
    return OF[student].written(written(EXERCISE)).solution


def own(student: str, root: Path) -> Path:
    return root / "personal" / "release" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"


def test_each_student_gets_a_notebook_with_a_convention(room: Classroom) -> None:
    assert room.handed.returncode == 0, room.handed.stderr
    assert len({variant.name for variant in OF.values()}) > 1
    with (room.root / "personal" / f"{ASSIGNMENT}.csv").open(encoding="utf-8") as file:
        assert list(csv.reader(file))[1:] == [[student, EXERCISE, OF[student].name] for student in STUDENTS]
    for student in STUDENTS:
        assert variants_of(nbformat.read(own(student, room.root), as_version=4)) == {EXERCISE: OF[student].name}
    before = own("student-0", room.root).read_bytes()
    assert hand_out(room.root).returncode == 0 and own("student-0", room.root).read_bytes() == before


def test_who_comes_late_is_entered_beside_the_others(room: Classroom) -> None:
    late = "late-comer"
    (room.root / "late.txt").write_text(f"{late}\n", encoding="utf-8-sig")  # as some editors write it
    assert hand_out(room.root, "--students", "late.txt").returncode == 0
    assert own(late, room.root).is_file()
    with (room.root / "personal" / f"{ASSIGNMENT}.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    expected = [(student, OF[student].name) for student in STUDENTS]
    expected.append((late, variants_for(ASSIGNMENT, late, SEED)[EXERCISE].name))
    assert sorted((student, name) for student, _, name in rows) == sorted(expected)


def test_a_seed_that_everybody_knows_is_said_to_be_so(tmp_path: Path, room: Classroom) -> None:
    assert "choose one for your class" not in room.handed.stdout
    root = tmp_path / "teacher"
    for kind in ("source", "release"):
        shutil.copytree(room.root / kind, root / kind)
    (root / "students.txt").write_text("ada\n")
    assert "the seed 1, which everybody knows" in hand_out(root, seed=1).stdout
    assert "expected COURSE_CLASS_SEED" in hand_out(root, seed=0).stderr


def test_another_seed_does_not_change_what_a_class_was_given(room: Classroom) -> None:
    done = hand_out(room.root, seed=SEED + 1)
    assert done.returncode == 1 and "keep the seed of the class" in done.stderr
    assert variants_of(nbformat.read(own("student-0", room.root), as_version=4)) == {EXERCISE: OF["student-0"].name}


def test_everybody_is_graded_by_their_own_convention(room: Classroom) -> None:
    """Their own solution, the published one, somebody else's; and one who took everybody's notebook."""
    mine, published, others, stranger = (*STUDENTS[:2], "student-2", "late")
    other = next(one for one in STUDENTS if OF[one].name != OF[others].name)
    handed_in = [
        Submission(mine, cells={CELL: solution_of(mine)}),
        Submission(published, {f"{CELL}-check": 0.0}, says=PUBLISHED),
        Submission(others, {f"{CELL}-check": 0.0}, {CELL: solution_of(other)}, says="✗ 05.decoder"),
        Submission(stranger),
        Submission(STUDENTS[3], {f"{CELL}-check": 0.0}, edit=forged_variant, says=PUBLISHED),
    ]
    for submission in handed_in:
        room.submit(submission)
        path = room.root / "submitted" / submission.student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        if own(submission.student, room.root).is_file():
            fill_in(own(submission.student, room.root), path, submission.edit)
    room.autograde()
    for submission in handed_in:
        expected = {
            name: submission.points.get(name, float(points) if name.endswith("-check") else None)
            for name, points in room.points.items()
        }
        assert room.scores()[submission.student] == expected, (submission.student, room.said)
        assert submission.says in room.graded(submission.student)
    lines = {line.split("] ")[1].split(":")[0]: line for line in room.said.splitlines() if line.startswith("[")}
    assert "has no personal notebook" in lines["late"] and "has no personal" not in lines[mine]
    graded = room.root / "autograded" / mine / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    texts = "\n".join(cell.source for cell in nbformat.read(graded, as_version=4).cells)
    assert all(new in texts for old, new in OF[mine].edit.changes[:1])
    slow = OF[mine].written(written(EXERCISE)).specification.strip()
    assert slow in texts and written(EXERCISE).specification.strip() not in texts


def fill_in(given: Path, path: Path, edit) -> None:
    """The submission's answers in the notebook that the student was given."""
    answers = {name(cell): cell.source for cell in nbformat.read(path, as_version=4).cells if solution(cell)}
    notebook = nbformat.read(given, as_version=4)
    for cell in notebook.cells:
        cell.source = answers.get(name(cell), cell.source) if solution(cell) else cell.source
    edit(notebook)
    nbformat.write(notebook, path)


def name(cell) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def solution(cell) -> bool:
    return cell.metadata.get("nbgrader", {}).get("solution", False)


def forged_variant(notebook) -> None:
    """Says that it is the published exercise."""
    notebook.metadata.pop("variants", None)
    for cell in notebook.cells:
        cell.source = cell.source.split(", variant")[0] + ")" if ", variant" in cell.source else cell.source


def test_what_cannot_be_handed_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names = tmp_path / "students.txt"

    def refused(assignment: str) -> str:
        assert command.main(["personal", assignment]) == 1
        return capsys.readouterr().err

    assert "students.txt" in refused("05_masks")
    names.write_text("ada\n")
    assert "make the release for everybody first" in refused("05_masks")
    for assignment in ("05_masks", "04_multi_head"):
        for kind in ("source", "release"):
            (tmp_path / kind / assignment).mkdir(parents=True)
            nbformat.write(nbformat.v4.new_notebook(), tmp_path / kind / assignment / f"{assignment}.ipynb")
    assert "expected an assignment with variants, got 04_multi_head" in refused("04_multi_head")
    names.write_text("../ada\n")
    assert "expected a name that can be a folder's, got '../ada'" in refused("05_masks")
    assert not (tmp_path / "personal").exists()


def test_without_personal_notebooks_everybody_has_everybodys() -> None:
    assert released_to("ada", "05_masks") == Path("release/05_masks/05_masks.ipynb") == released_to(None, "05_masks")
