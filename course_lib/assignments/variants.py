"""Other conventions of an exercise, one for each student where a teacher switches them on.

From the student's name and the seed of the class an exercise takes another convention, in its text, its check and its
solution; what was published for everybody is then one of the known mistakes.
"""

import hashlib
import runpy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_lib.assignments.reader import Written
from course_lib.checks import PLANTED, Edit, Exercise

PUBLISHED = "This is right by the published text. Yours asks for another convention: read once more what it wants."


@dataclass(frozen=True)
class Variant:
    """Another convention of an exercise: its published text and code with some pieces changed.

    Attributes:
        name: the convention in a few words.
        edit: each old piece stands within a line of some cell of the exercise, and gives way wherever it stands.
        untrue: beginnings of hints that say something else under this convention.
    """

    name: str
    edit: Edit
    untrue: Sequence[str] = ()

    def of(self, text: str) -> str:
        """A cell's text under this convention; one without any of the pieces stays as it is."""
        for old, new in self.edit.changes:
            text = text.replace(old, new)
        return text

    def unused(self, texts: Sequence[str]) -> list[str]:
        """The old pieces that stand in none of an exercise's texts, tried in order."""
        found = []
        for old, new in self.edit.changes:
            found += [] if any(old in text for text in texts) else [old]
            texts = [text.replace(old, new) for text in texts]
        return found

    def written(self, published: Written) -> Written:
        """The exercise's code under this convention.

        Raises:
            ValueError: the solution stays as it was published.
        """
        parts = ("solution", "planted", "specification")
        changed = {part: self.of(code) for part in parts if (code := getattr(published, part)) is not None}
        if changed["solution"] == published.solution:
            raise ValueError(f"expected {published.name}, {self.name!r} to change the solution, got the published one")
        return replace(published, **changed)


@cache
def variants_in(folder: Path) -> dict[str, tuple[Variant, ...]]:
    """The other conventions of the exercises of an assignment's folder, by exercise: what its variants.py has."""
    path = folder / "variants.py"
    return runpy.run_path(str(path))["VARIANTS"] if path.is_file() else {}


def chosen(variants: Sequence[Variant], exercise: str, student: str, seed: int) -> Variant:
    """The variant of a student: always the same one, and for another student, exercise or seed any."""
    digest = hashlib.sha256("\n".join((str(seed), student, exercise)).encode()).digest()
    return variants[int.from_bytes(digest[:8], "big") % len(variants)]


def varied(
    exercise: Exercise, published: Written, variant: Variant, answer_of: Callable[[Any, Written], Any]
) -> Exercise:
    """The check of an exercise under another convention.

    Of the known mistakes those stay that can still be made and whose hints are still true; the published solution is
    a new one.

    Args:
        exercise: as its checks.py declares it.
        published: as its text has it.
        variant: the convention.
        answer_of: from a mistake and the text to an answer.
    """
    written = variant.written(published)
    mistakes: dict[str, tuple] = {PUBLISHED: (published.answer(published.solution),)}
    for hint, mistake in exercise.known_mistakes:
        if hint.startswith(tuple(variant.untrue)) or not _possible(mistake, written):
            continue
        mistakes[hint] = (*mistakes.get(hint, ()), answer_of(mistake, written))
    return replace(exercise, reference=written.answer(written.solution), mistakes=mistakes)


def _possible(mistake: Any, written: Written) -> bool:
    """Whether an edit finds its pieces; a function was written for the published convention."""
    if mistake is PLANTED:
        return written.planted is not None
    if not isinstance(mistake, Edit):
        return False
    try:
        return bool(mistake.of(written.solution))
    except ValueError:
        return False
