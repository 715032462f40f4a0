"""Under another convention the published solution is wrong, its own is right, and a student always has the same one."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from course_lib.assignments import FOLDERS, PUBLISHED, Variant, check, find, load, read_text, variants_for, variants_in
from course_lib.assignments.variants import chosen
from course_lib.checks import VISIBLE, CheckFailed, Edit, Exercise, hidden_seed
from course_lib.checks.compare import difference
from course_lib.checks.tree import copy, on_meta
from course_lib.grading import released
from course_lib.grading.personal import personal, variants_of
from notebooks.source.build_assignments import FOLDER, name_of

ALL = [
    (folder, name, variant)
    for folder in FOLDERS
    for name, variants in variants_in(folder).items()
    for variant in variants
]
IDS = [f"{name}-{variant.name}" for _, name, variant in ALL]
SEVERAL = pytest.mark.parametrize(("folder", "name", "variant"), ALL, ids=IDS)


def published(folder: Path, name: str):
    return read_text(folder / "text.py")[name]


def said(name: str, answer: object, variant: str | None, *, hidden: bool) -> str:
    with pytest.raises(CheckFailed) as caught:
        check(name, answer, variant=variant, hidden=hidden)
    return str(caught.value)


def law_a_variant_is_another_exercise(folder: Path, name: str, variant: Variant) -> None:
    """With visible and with hidden tests each of both solutions is right in its own exercise and wrong in the other."""
    text = published(folder, name)
    ours, theirs = (text.answer(code) for code in (variant.written(text).solution, text.solution))
    for hidden in (False, True):
        check(name, ours, variant=variant.name, hidden=hidden)
        check(name, theirs, hidden=hidden)
        assert PUBLISHED in said(name, theirs, variant.name, hidden=hidden)
        assert PUBLISHED not in said(name, ours, None, hidden=hidden)


@SEVERAL
def test_a_variant_is_another_exercise(folder: Path, name: str, variant: Variant) -> None:
    law_a_variant_is_another_exercise(folder, name, variant)


def test_many_exercises_of_many_assignments_have_variants() -> None:
    assert len(ALL) >= 12 and len({name for _, name, _ in ALL}) >= 6 and len({folder for folder, *_ in ALL}) >= 6
    for folder in FOLDERS:
        assert all(len(variants) >= 2 for variants in variants_in(folder).values())


def test_a_variant_that_changes_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, name, variant = ALL[0]
    with pytest.raises(ValueError, match="to change the solution, got the published one"):
        replace(variant, edit=Edit("A decoder reads", "A decoder gets")).written(published(folder, name))
    with pytest.raises(ValueError, match="expected a variant of 05.decoder among .*'True hides'.*, got 'False hides'"):
        find("05.decoder", "False hides")


@SEVERAL
def test_each_known_mistake_of_a_variant_is_one_with_every_seed(folder: Path, name: str, variant: Variant) -> None:
    exercise = find(name, variant.name)
    assert all(any(hint.startswith(one) for hint in find(name).mistakes) for one in variant.untrue)
    assert len(exercise.known_mistakes) >= 4
    for hint, mistake in exercise.known_mistakes:
        for seed in (VISIBLE, hidden_seed(), 20, 21):
            cases = exercise.inputs(seed)
            theirs = [exercise.reply(mistake, inputs, ours=True) for inputs in cases]
            pairs = zip(map(exercise.expected, cases), theirs, strict=True)
            assert any(difference(ours, reply.result, exercise.tolerance) for ours, reply in pairs), (hint, seed)


@SEVERAL
def test_the_solution_of_a_variant_does_what_its_specification_says(folder: Path, name: str, variant: Variant) -> None:
    text, exercise = variant.written(published(folder, name)), find(name, variant.name)
    if text.specification is None:
        pytest.skip("the text has a formula or words, and no slow function")
    given = dict(text.given)
    exec(compile(text.specification, "specification", "exec"), given)
    slow = next(given[word[4:].split("(")[0]] for word in text.specification.splitlines() if word.startswith("def "))
    for seed in range(3):
        for inputs in exercise.inputs(seed):
            if not on_meta(inputs):
                expected = exercise.expected(inputs)
                assert difference(expected, exercise.ask(slow, *copy(inputs)), exercise.tolerance) is None
    both = ((find(name).expected(inputs), exercise.expected(inputs)) for inputs in exercise.inputs(VISIBLE))
    assert any(difference(*pair, exercise.tolerance) for pair in both)


# Who has which.


def law_always_the_same_for_one_and_different_for_many(choose) -> None:
    variants = [Variant(str(number), Edit()) for number in range(3)]
    students = [f"student {number}" for number in range(300)]

    def of_class(seed: int, exercise: str = "05.decoder") -> list[str]:
        return [choose(variants, exercise, student, seed).name for student in students]

    assert of_class(1) == of_class(1)
    counts = Counter(of_class(1))
    assert set(counts) == {"0", "1", "2"} and min(counts.values()) > 60
    for other in (of_class(2), of_class(1, "03.scores")):
        same = sum(one == two for one, two in zip(of_class(1), other, strict=True))
        assert 60 < same < 140, same


def by_hash_of_this_process(variants, exercise, student, seed):
    import random

    return random.choice(variants)


@pytest.mark.parametrize(
    "broken",
    [
        by_hash_of_this_process,
        lambda variants, exercise, student, seed: variants[len(student) % len(variants)],
        lambda variants, exercise, student, seed: chosen(variants, exercise, student, 0),
        lambda variants, exercise, student, seed: chosen(variants, "", student, seed),
    ],
)
def test_a_student_always_has_the_same_variant(broken) -> None:
    law_always_the_same_for_one_and_different_for_many(chosen)
    with pytest.raises(AssertionError):
        law_always_the_same_for_one_and_different_for_many(broken)


def test_the_variant_of_a_student_is_the_same_in_every_edition() -> None:
    """What a class was given must not change under it."""
    students = "ada bob cleo dan eve fay".split()
    names = [variants_for("05_masks", student, 1)["05.decoder"].name for student in students]
    assert names == [*["added to the scores"] * 2, *["True hides"] * 3, "added to the scores"]
    assert set(variants_for("05_masks", "ada", 1)) == {"05.decoder"} and variants_for("04_multi_head", "ada", 1) == {}


# What a student gets.


def instructor(folder: Path):
    name = name_of(folder / "text.py")
    return nbformat.read(FOLDER / "source" / name / f"{name}.ipynb", as_version=4)


@SEVERAL
def test_a_personal_notebook_says_and_checks_its_variant(folder: Path, name: str, variant: Variant) -> None:
    source = instructor(folder)
    before = nbformat.writes(source)
    made = personal(source, {name: variant})
    assert nbformat.writes(source) == before and variants_of(made) == {name: variant.name}
    solved = "\n".join(cell.source for cell in made.cells)
    given = released(made)
    pairs = zip(released(source).cells, given.cells, strict=True)
    changed = [new.source for old, new in pairs if old.source != new.source]
    (call,) = [text for text in changed if text.startswith("check(")]
    assert call == f'{call.split(", variant")[0]}, variant="{variant.name}")'
    assert any(text for text in changed if not text.startswith(("check(", "def "))), "its text says so"
    text = nbformat.writes(given)
    for code in (variant.written(published(folder, name)).solution, published(folder, name).solution):
        body = code.split('"""\n')[-1].strip()
        assert body not in text and body not in "\n".join(cell.source for cell in given.cells)
    assert "hidden=True" in solved and "hidden=True" not in text


def test_a_piece_that_is_not_there_is_found() -> None:
    (variant, *_) = variants_in(next(folder for folder in FOLDERS if folder.name == "a05_masks"))["05.decoder"]
    lost = replace(variant, edit=Edit("What nobody wrote", "x", *sum(variant.edit.changes, ())))
    with pytest.raises(ValueError, match="expected 'What nobody wrote' in 05.decoder, for its variant 'True hides'"):
        personal(instructor(next(folder for folder in FOLDERS if folder.name == "a05_masks")), {"05.decoder": lost})


def test_off_by_default() -> None:
    """A published exercise has nothing of its variants in it."""
    for folder in FOLDERS:
        for exercise in load(folder).values():
            assert isinstance(exercise, Exercise) and PUBLISHED not in exercise.mistakes
        name = name_of(folder / "text.py")
        release = nbformat.read(FOLDER / "release" / name / f"{name}.ipynb", as_version=4)
        assert variants_of(release) == {} and "variant=" not in nbformat.writes(release)
