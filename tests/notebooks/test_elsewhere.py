"""The lessons for Colab and the like: their first cell does nothing at home, and elsewhere brings the course."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from notebooks.source import elsewhere

ADDRESS = "https://example.org/ada/course"
# In a process without the checkout on its path; what the cell starts is told, with -S nothing of it.
AWAY = """
import sys
sys.path[:] = [path for path in sys.path if path not in ("", {root!r})]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.path.insert(0, {site!r})
"""
AFTER = """
import json, os
import course_lib
from pathlib import Path
print(json.dumps([str(Path.cwd()), course_lib.__file__, Path("records").is_dir()]))
"""


def run(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    options = dict(cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    return subprocess.run([sys.executable, "-c", code], **options)


def law_it_does_nothing_at_home(setup: str, folder: Path, root: Path) -> None:
    done = run(setup + AFTER, folder, PYTHONPATH=str(root), PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    where, _, _ = json.loads(done.stdout)
    assert Path(where) == folder.resolve() and not any(folder.iterdir())


def test_the_first_cell_does_nothing_at_home(root: Path, tmp_path: Path) -> None:
    law_it_does_nothing_at_home(elsewhere.SETUP, tmp_path, root)
    with pytest.raises(AssertionError, match="No such file or directory: 'git'"):
        law_it_does_nothing_at_home(elsewhere.SETUP.replace(" is None:", " is not None:"), tmp_path, root)


@pytest.fixture
def repository(root: Path, tmp_path: Path) -> Path:
    """One to clone, with the library and the lessons' records."""
    copy = tmp_path / "repository"
    shutil.copytree(root / "course_lib", copy / "course_lib", ignore=shutil.ignore_patterns("__pycache__", "steps"))
    shutil.copytree(root / "notebooks" / "records", copy / "notebooks" / "records")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm x"):
        subprocess.run(["git", *command.split()], cwd=copy, check=True)
    return copy


def test_the_first_cell_brings_the_course_where_there_is_only_the_notebook(
    root: Path, repository: Path, tmp_path: Path
) -> None:
    """What pip would fetch besides is here already: it installs the course alone, beside the notebook."""
    site, folder = tmp_path / "site", tmp_path / "colab"
    folder.mkdir()
    alone = dict(PIP_NO_DEPS="1", PIP_NO_BUILD_ISOLATION="0", PIP_TARGET=str(site), PYTHONPATH="")
    away, setup = AWAY.format(root=str(root), site=str(site)), elsewhere.SETUP.replace("@ADDRESS@", repository.as_uri())
    assert "No module named 'course_lib'" in run(away + AFTER, folder, **alone).stderr, "it must not be there before"
    done = run(away + setup + AFTER, folder, **alone)
    assert done.returncode == 0, done.stderr
    where, found, records = json.loads(done.stdout.splitlines()[-1])
    assert Path(where) == folder.resolve() / "course" / "notebooks" and records
    assert Path(found).is_relative_to(site)
    again = run(away + setup + setup + AFTER, folder, **alone)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)[0] == where, "a kernel that starts again finds the records too"


def law_links_lead_to_the_repository(notebook: nbformat.NotebookNode, root: Path) -> None:
    """Each relative link of the lesson is one of the repository's now, and its file is in the checkout."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for picture, target in re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", text):
        assert target.startswith(("https://", "http://", "#", "attachment:")), f"{target} leads nowhere"
        if target.startswith(ADDRESS):
            kind, path = re.fullmatch(rf"{ADDRESS}/(raw|blob)/HEAD/([^#]+)(?:#.*)?", target).groups()
            assert (root / path).exists() and ".." not in path, path
            assert (kind == "raw") == bool(picture), target


@pytest.mark.parametrize("number", ["00", "03", "12"])
def test_links_lead_to_the_repository(root: Path, number: str) -> None:
    (path,) = (root / "notebooks").glob(f"{number}_*.ipynb")
    before = nbformat.read(path, as_version=4)
    after = elsewhere.elsewhere(nbformat.read(path, as_version=4), ADDRESS)
    assert len(after.cells) == len(before.cells) + 1 and ADDRESS in after.cells[1].source
    assert not any(cell.get("outputs") for cell in after.cells)
    law_links_lead_to_the_repository(after, root)
    with pytest.raises(AssertionError, match="leads nowhere"):
        law_links_lead_to_the_repository(before, root)


def test_make_writes_all_lessons_for_an_address(root: Path, tmp_path: Path, make) -> None:
    assert f"-m notebooks.source.elsewhere {ADDRESS} build/elsewhere" in make(
        root, "-n", "elsewhere", f"ADDRESS={ADDRESS}"
    ).stdout
    command = [sys.executable, "-m", "notebooks.source.elsewhere"]
    subprocess.run([*command, ADDRESS, str(tmp_path / "out")], cwd=root, check=True, capture_output=True)
    names = {path.name for path in (root / "notebooks").glob("[0-9]*.ipynb")}
    assert names == {path.name for path in (tmp_path / "out").iterdir()}
    refused = subprocess.run([*command, "OWNER", str(tmp_path / "no")], cwd=root, capture_output=True, text=True)
    assert refused.returncode == 2 and "expected an address like" in refused.stderr
