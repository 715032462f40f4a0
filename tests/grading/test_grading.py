"""A whole class is graded with nbgrader's own commands; nobody's trick earns a point or costs somebody else one."""

from pathlib import Path

import pytest

from notebooks.source.build_assignments import name_of, texts
from tests.helpers.classroom import Classroom

ASSIGNMENT = "03_attention"  # `make test-class` grades all twelve


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


def test_grading_is_quick(classroom: Classroom, record_property) -> None:
    each = classroom.seconds / len(classroom.all)
    record_property("seconds per submission", each)
    print(f"{classroom.assignment}: {classroom.seconds:.0f} s, {each:.1f} s a submission")
    assert each < 30
