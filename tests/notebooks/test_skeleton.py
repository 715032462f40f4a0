"""What `make new` writes is whole: it passes the tests of its kind before anybody has changed a letter."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib.data import load_corpus
from notebooks.source import build_lessons as build
from notebooks.source import skeleton
from tests.helpers.laws import raised
from tests.helpers.notebook_laws import LAWS, READABLE


def law_a_new_lesson_keeps_all_laws(source: Path) -> None:
    target = source.with_suffix(".ipynb")
    build.build(source, target)
    notebook = nbformat.read(target, as_version=4)
    for law in (*LAWS, *READABLE):
        law(notebook)


def test_a_new_lesson_keeps_all_laws(tmp_path: Path) -> None:
    (source,) = skeleton.make("lesson", "19_many_numbers", tmp_path)
    assert "# # 19 · Many numbers\n" in source.read_text(encoding="utf-8")
    law_a_new_lesson_keeps_all_laws(source)
    for number, (old, new) in enumerate(((" **mean** ", " mean "), ("**Next**", "Next"))):
        broken = source.with_name(f"2{number}_broken.py")
        text = source.read_text(encoding="utf-8")
        assert old in text
        broken.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(AssertionError):
            law_a_new_lesson_keeps_all_laws(broken)


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a widget and its tests need."""
    copy = tmp_path_factory.mktemp("checkout")
    less = shutil.ignore_patterns("__pycache__", "pretrained", "assignments", "experiments", "grading")
    shutil.copytree(root / "course_lib", copy / "course_lib", ignore=less)
    for name in ("tests/helpers", "tests/widgets", "tests/browser", "docs/book/alive"):
        shutil.copytree(root / name, copy / name, ignore=less)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(root / name, copy / name)
    return copy


def checked(checkout: Path, made: list[Path], *tests: str) -> subprocess.CompletedProcess:
    """Runs ruff on what was made, and these tests, in the copy."""
    variables = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    scripts = [path for path in made if path.suffix == ".py"]
    for command in (["ruff", "check", "--quiet", *scripts], ["pytest", "-q", "-p", "no:cacheprovider", *tests]):
        options = dict(cwd=checkout, env=variables, capture_output=True, text=True)
        done = subprocess.run([sys.executable, "-m", *command], **options)
        if done.returncode != 0:
            break
    return done


def test_a_new_widget_passes_its_tests(checkout: Path) -> None:
    made = skeleton.make("widget", "power_curve", checkout)
    assert [path.relative_to(checkout).parts[0] for path in made] == ["course_lib", "course_lib", "tests", "tests"]
    face = (checkout / skeleton.FACE).read_text(encoding="utf-8")
    assert '"position_explorer": ["PositionExplorer"],\n        "power_curve": ["PowerCurve"],\n' in face
    what = "tests/widgets/test_power_curve.py", "tests/widgets/test_scripts.py"
    done = checked(checkout, made, *what)
    assert done.returncode == 0, done.stdout + done.stderr
    made[0].write_text(made[0].read_text(encoding="utf-8").replace("each**self.power", "each"), encoding="utf-8")
    assert checked(checkout, made, *what).returncode == 1, "a curve that is no power"


def test_a_new_corpus_is_refused_until_it_is_translated(tmp_path: Path) -> None:
    (path,) = skeleton.make("language", "shouting", tmp_path)
    assert "expected text in both columns" in str(raised(ValueError, lambda: load_corpus(path)))
    sources = [line.removesuffix("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(sources) > 1000
    path.write_text("".join(f"{source}\t{source.upper()}\n" for source in sources), encoding="utf-8")
    corpus = load_corpus(path)
    assert corpus.name == "shouting" and all(pair.tgt == pair.src.upper() for pair in corpus.train)
    assert min(map(len, (corpus.train, corpus.valid, corpus.test))) > 50


@pytest.mark.parametrize(
    "kind, name, words",
    [
        ("lesson", "many_numbers", "expected a name like 19_topic, got 'many_numbers'"),
        ("exercise", "03", "expected a name like 19_topic"),
        ("widget", "19_topic", "expected a name like a_name"),
        ("widget", "PowerCurve", "expected a name like a_name"),
        ("language", "../french", "expected a name like a_name"),
        ("figure", "bars", "expected one of lesson, exercise, widget, language, got 'figure'"),
    ],
)
def test_what_does_not_fit_is_refused(kind: str, name: str, words: str, tmp_path: Path) -> None:
    assert words in str(raised(ValueError, lambda: skeleton.make(kind, name, tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays(root: Path, tmp_path: Path) -> None:
    for kind, name in (("lesson", "03_attention"), ("exercise", "03_attention"), ("widget", "mask_painter")):
        assert "is there already" in str(raised(ValueError, lambda: skeleton.make(kind, name, root)))  # noqa: B023
    (first,) = skeleton.make("lesson", "19_topic", tmp_path)
    first.write_text("mine", encoding="utf-8")
    assert raised(ValueError, lambda: skeleton.make("lesson", "19_topic", tmp_path))
    assert first.read_text(encoding="utf-8") == "mine"


def law_the_page_names_each_kind(page: str) -> None:
    for kind in skeleton.PATTERNS:
        assert f"make new KIND={kind} NAME=" in page, f"CONTRIBUTING.md does not say how to add a {kind}"


def test_the_page_for_contributors_names_each_kind(root: Path, make) -> None:
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    law_the_page_names_each_kind(page)
    with pytest.raises(AssertionError, match="add a widget"):
        law_the_page_names_each_kind(page.replace("KIND=widget", ""))
    assert len(page.splitlines()) <= 50, "one screen"
    planned = make(root, "-n", "new", "KIND=lesson", "NAME=19_topic").stdout
    assert "-m notebooks.source.skeleton lesson 19_topic" in planned
