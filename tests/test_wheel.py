"""The library as a package: what its wheel holds and says of itself, and that it runs with what it declares alone."""

import email
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.requirements import declared, needed

SENTENCE, TRANSLATION = "Where is the station?", "Wo ist der Bahnhof?"
# A finder in front of all others that finds nothing of what the library does not declare.
ALONE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {others!r}:
            raise ModuleNotFoundError(f"{{name}} is not declared by the library", name=name)
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, {site!r})
import course_lib
assert course_lib.__file__.startswith({site!r}), course_lib.__file__
"""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the tracked files, without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, folder)
    shutil.copytree(root / "course_lib", folder / "course_lib", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", ".", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def about(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(file.read(name))


def law_the_licenses_are_said_and_there(wheel: Path) -> None:
    said = about(wheel)
    assert said["License-Expression"] == "MIT AND LicenseRef-CC-BY-2.0-FR"
    with zipfile.ZipFile(wheel) as file:
        inside = {name.partition("/licenses/")[2]: name for name in file.namelist() if "/licenses/" in name}
        assert set(said.get_all("License-File")) == inside.keys()
        texts = [file.read(name).decode() for name in inside.values()]
    for words in ("MIT License", "Paternité - 2.0"):
        assert any(words in text for text in texts), f"no license with the words {words}"
    (french,) = (text for text in texts if "Paternité - 2.0" in text)
    assert [f"\n{number}. " in french for number in range(1, 9)] == [True] * 8
    assert "tatoeba.org" in french and "manythings.org/anki" in french


def without(wheel: Path, place: Path, part: str) -> Path:
    """The wheel without files whose names have this part."""
    place.mkdir()
    less = place / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(less, "w") as new:
        for name in old.namelist():
            if part not in name:
                new.writestr(name, old.read(name))
    return less


def test_both_licenses_are_said_and_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    law_the_licenses_are_said_and_there(wheel)
    for number, part in enumerate(("licenses/LICENSE", "licenses/course_lib")):
        with pytest.raises(AssertionError):
            law_the_licenses_are_said_and_there(without(wheel, tmp_path / str(number), part))


def test_the_metadata_has_links_and_no_jupyterlab_without_an_extra(wheel: Path) -> None:
    said = about(wheel)
    links = dict(entry.split(", ") for entry in said.get_all("Project-URL"))
    assert links and all(link.startswith("https://") for link in links.values())
    assert not any(name.startswith("License ::") for name in said.get_all("Classifier")), "the expression says it"
    required = [Requirement(text) for text in said.get_all("Requires-Dist")]
    plain = {canonicalize_name(each.name) for each in required if "extra" not in str(each.marker)}
    course = {canonicalize_name(each.name) for each in required if 'extra == "course"' in str(each.marker)}
    assert {"torch", "tokenizers", "safetensors", "sacrebleu"} <= plain and "jupyterlab" in course - plain


def run_alone(code: str, wheel: Path, place: Path, allowed: set[str]) -> str:
    """What code prints where only the wheel and what it declares are installed, in an empty folder."""
    site = place / "site"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    owners = metadata.packages_distributions()
    others = {name for name, dists in owners.items() if not {canonicalize_name(dist) for dist in dists} & allowed}
    others -= {"course_lib", "notebooks"}
    prelude = ALONE.format(others=sorted(others), site=str(site))
    done = subprocess.run([sys.executable, "-c", prelude + code], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def law_it_translates(wheel: Path, place: Path, allowed: set[str]) -> None:
    code = f"from course_lib import Translator\nprint(Translator.from_pretrained().translate({SENTENCE!r}))"
    assert run_alone(code, wheel, place, allowed) == TRANSLATION


def test_the_wheel_translates_with_what_it_declares_alone(root: Path, wheel: Path, tmp_path: Path) -> None:
    allowed = needed(declared((root / "pyproject.toml").read_text(encoding="utf-8"), extras=set()))
    law_it_translates(wheel, tmp_path / "whole", allowed)
    command = f"from course_lib.__main__ import main\nmain(['translate', {SENTENCE!r}])"
    assert run_alone(command, wheel, tmp_path / "command", allowed) == TRANSLATION
    less = without(wheel, tmp_path / "less", "everyday")
    for broken, lacking in ((wheel, allowed - {"tokenizers"}), (less, allowed)):
        with pytest.raises(AssertionError, match="tokenizers is not declared|everyday"):
            law_it_translates(broken, tmp_path / f"broken-{len(lacking)}", lacking)


def test_every_file_of_the_library_is_in_the_wheel(root: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if name.startswith("course_lib/")}
    kept = (path for path in (root / "course_lib").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    missing = {path.relative_to(root).as_posix() for path in kept} - inside
    assert not missing, f"not in the wheel: {sorted(missing)}"
