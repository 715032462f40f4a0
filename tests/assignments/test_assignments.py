"""Every exercise accepts right answers however they are written, and rejects each wrong one, with its hint."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat import NotebookNode

from course_lib.assignments import FOLDERS, check, declared, find, load, read_text
from course_lib.checks import CheckFailed, Exercise
from course_lib.checks.compare import difference
from course_lib.checks.exchange import read_replies, write_replies
from course_lib.checks.exercise import call
from course_lib.checks.judge import VISIBLE, hidden_seed, replies, verdict
from course_lib.checks.tree import copy, leaves, leaves_changed, on_meta
from course_lib.grading.clear import ClearToStubs
from course_lib.grading.steps import released
from notebooks.source import build_assignments
from notebooks.source import build_lessons as build
from tests.helpers.answers import answers_of, right_answers, written, wrong_answers

FOLDER = build_assignments.FOLDER
TEXTS = {build_assignments.name_of(text): text for text in build_assignments.texts()}
PARTS = ("text", "checks", "answers")
EXERCISES = [exercise for folder in FOLDERS for exercise in load(folder).values()]


def named(exercise: Exercise) -> str:
    return exercise.name


def rejected(exercise: Exercise, answer: object) -> str | None:
    """What visible or hidden tests say against an answer."""
    for hidden in (False, True):
        try:
            check(exercise.name, answer, hidden=hidden)
        except CheckFailed as error:
            return str(error)
    return None


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_right_answers_are_accepted_however_they_are_written(exercise: Exercise) -> None:
    right = right_answers(exercise.name)
    assert len(right) >= 3
    for answer in right:
        assert rejected(exercise, answer) is None, answer


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_right_answers_are_right_across_processes_too(exercise: Exercise, tmp_path: Path) -> None:
    cases = exercise.inputs(VISIBLE)
    for number, answer in enumerate(right_answers(exercise.name)):
        write_replies(replies(exercise, answer, cases), tmp_path / str(number))
        assert verdict(exercise, cases, read_replies(tmp_path / str(number))), answer


def law_an_exercise_is_short(folder: Path, most: int = 130) -> None:
    lines = sum(len((folder / f"{part}.py").read_text(encoding="utf-8").splitlines()) for part in PARTS)
    each = lines / len(declared(folder))
    assert each <= most, f"{folder.name} has {each:.0f} lines an exercise, at most {most} in its three files"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_exercise_is_short(folder: Path, tmp_path: Path) -> None:
    law_an_exercise_is_short(folder, 150 if folder.name == "a19_capstone" else 130)  # a whole model is given there
    for part in PARTS:
        shutil.copy(folder / f"{part}.py", tmp_path)
    with (tmp_path / "answers.py").open("a", encoding="utf-8") as file:
        file.write("# once more\n" * 1000)
    with pytest.raises(AssertionError, match="lines an exercise"):
        law_an_exercise_is_short(tmp_path)


PROVEN = [name for folder in FOLDERS for name in answers_of(folder.name[1:3]).LIBRARY]
SPECIFIED = [exercise.name for exercise in EXERCISES if written(exercise.name).specification]


def disagreement(exercise: Exercise, other: Callable) -> str | None:
    """Where another function differs from the solution, over the cases of several seeds."""
    for seed in range(5):
        for inputs in exercise.inputs(seed):
            theirs = None if on_meta(inputs) else exercise.ask(other, *copy(inputs))
            if theirs is not None and (said := difference(exercise.expected(inputs), theirs, exercise.tolerance)):
                return said
    return None


@pytest.mark.parametrize("name", PROVEN)
def test_the_solution_does_what_the_library_does(name: str) -> None:
    assert disagreement(find(name), answers_of(name[:2]).LIBRARY[name]) is None


def slow(name: str) -> Callable:
    """The slow function that the text gives as a specification."""
    given = dict(written(name).given)
    exec(compile(written(name).specification, f"<specification of {name}>", "exec"), given)
    return given[re.findall(r"^def (\w+)", written(name).specification, flags=re.M)[-1]]


@pytest.mark.parametrize("name", SPECIFIED)
def test_the_solution_does_what_the_specification_says(name: str) -> None:
    assert disagreement(find(name), slow(name)) is None
    assert any(disagreement(find(name), wrong) for _, wrong in find(name).known_mistakes)


def test_each_assignment_has_a_specification() -> None:
    assert {name[:2] for name in SPECIFIED} == {name[:2] for name in TEXTS}


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_each_wrong_answer_is_rejected_with_its_hint_and_no_other(exercise: Exercise) -> None:
    wrong = wrong_answers(exercise.name)
    assert len(wrong) >= 8
    for answer, hint in wrong:
        said = rejected(exercise, answer)
        assert said is not None, answer
        assert hint is None or hint in said, said
        assert hint is not None or not any(known in said for known in exercise.mistakes), said


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_each_known_mistake_is_named(exercise: Exercise) -> None:
    """Every one by a learner's own function that makes it, and with each seed it is one."""
    hints = [hint for _, hint in wrong_answers(exercise.name) if hint]
    for hint, mistake in exercise.known_mistakes:
        assert any(said in hint for said in hints), f"no wrong answer for: {hint}"
        for seed in (VISIBLE, hidden_seed(), 20, 21):
            cases = exercise.inputs(seed)
            theirs = [exercise.reply(mistake, inputs, ours=True) for inputs in cases]
            pairs = zip(map(exercise.expected, cases), theirs, strict=True)
            wrong = [ours for ours, reply in pairs if difference(ours, reply.result, exercise.tolerance)]
            assert wrong, f"right with seed {seed}: {hint}"


@pytest.mark.parametrize("name", SPECIFIED)
def test_the_given_loop_is_no_answer(name: str) -> None:
    """It is right in each case, and not what was asked for; a search may have a loop over its steps, and no other."""
    assert "one by one" in rejected(find(name), slow(name))


# Wrong in ways that every function can be wrong in: each takes a right answer and spoils it.


def changes_its_input(right: Callable, cases: list) -> Callable:
    def answer(*inputs: object) -> object:
        result = right(*copy(inputs))
        next(leaf for leaf in leaves(inputs) if not leaf.is_meta).view(-1)[0] = 7
        return result

    return answer


def returns_nothing(right: Callable, cases: list) -> Callable:
    return lambda *inputs: None


def returns_its_input(right: Callable, cases: list) -> Callable:
    return lambda *inputs: copy(inputs[0])


def remembers_the_visible_tests(right: Callable, cases: list) -> Callable:
    known = {repr(inputs): right(*copy(inputs)) for inputs in cases}
    return lambda *inputs: known.get(repr(inputs), known[repr(cases[0])])


def makes_tensors_on_the_cpu(right: Callable, cases: list) -> Callable:
    def on_the_cpu(leaf: torch.Tensor) -> torch.Tensor:
        return torch.zeros(leaf.shape, dtype=leaf.dtype) if leaf.is_meta else leaf

    return lambda *inputs: leaves_changed(right(*inputs), on_the_cpu)


def computes_in_float32(right: Callable, cases: list) -> Callable:
    def single(leaf: torch.Tensor) -> torch.Tensor:
        return leaf.float() if leaf.is_floating_point() else leaf

    return lambda *inputs: leaves_changed(right(*inputs), single)


FUNCTIONS = [exercise for exercise in EXERCISES if exercise.ask is call]


def spoiled(exercise: Exercise, spoil: Callable) -> Callable:
    return spoil(right_answers(exercise.name)[0], exercise.inputs(VISIBLE))


def results(exercise: Exercise) -> list[torch.Tensor]:
    return leaves([exercise.expected(inputs) for inputs in exercise.inputs(VISIBLE)])


# What can be spoiled: not every exercise gets or returns tensors, of any dtype, on any device.
OF_TENSORS = [exercise for exercise in FUNCTIONS if leaves(exercise.inputs(VISIBLE))]
ELSEWHERE = [exercise for exercise in FUNCTIONS if any(leaf.is_meta for leaf in results(exercise))]
IN_FLOAT64 = [exercise for exercise in FUNCTIONS if any(leaf.dtype == torch.float64 for leaf in results(exercise))]
SPOILED = [
    *((exercise, changes_its_input, "changes its input") for exercise in OF_TENSORS),
    *((exercise, returns_nothing, "is None") for exercise in FUNCTIONS),
    *((exercise, returns_its_input, "") for exercise in FUNCTIONS),
    *((exercise, remembers_the_visible_tests, "") for exercise in FUNCTIONS),
    *((exercise, makes_tensors_on_the_cpu, "on the device") for exercise in ELSEWHERE),
    *((exercise, computes_in_float32, "float64") for exercise in IN_FLOAT64),
]


@pytest.mark.parametrize(
    ("exercise", "spoil", "words"), SPOILED, ids=[f"{exercise.name}-{spoil.__name__}" for exercise, spoil, _ in SPOILED]
)
def test_no_function_gets_away_with_it(exercise: Exercise, spoil: Callable, words: str) -> None:
    said = rejected(exercise, spoiled(exercise, spoil))
    assert said is not None and words in said and "it raises" not in said and "yours to write" not in said


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=named)
def test_only_hidden_tests_catch_who_remembers_the_visible_ones(exercise: Exercise) -> None:
    answer = spoiled(exercise, remembers_the_visible_tests)
    check(exercise.name, answer)
    with pytest.raises(CheckFailed):
        check(exercise.name, answer, hidden=True)


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_a_finished_answer_is_no_answer(exercise: Exercise) -> None:
    if callable(exercise.reference):
        assert "yours to write" in rejected(exercise, exercise.reference)


# The texts and the notebooks.


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_text_shows_is_not_shown_again_by_a_check(name: str, capsys: pytest.CaptureFixture) -> None:
    assert read_text.__wrapped__(TEXTS[name])
    assert capsys.readouterr().out == ""


def stored(kind: str, name: str) -> NotebookNode:
    return nbformat.read(FOLDER / kind / name / f"{name}.ipynb", as_version=4)


def run(notebook: NotebookNode) -> dict[str, str | None]:
    """Run a notebook's cells one after the other; what each graded cell says against its answer."""
    namespace, said = {"__name__": "__main__"}, {}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        marks = cell.metadata.get("nbgrader", {})
        try:
            exec(compile(cell.source, marks.get("grade_id", "cell"), "exec"), namespace)
            problem = None
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if marks.get("grade"):
            said[marks["grade_id"]] = problem
        else:
            assert problem is None or "NotImplementedError" in problem, problem
    return said


@pytest.mark.parametrize("name", TEXTS)
def test_the_solution_passes_visible_and_hidden_tests(name: str) -> None:
    said = run(stored("source", name))
    assert said and set(said.values()) == {None}
    assert len(said) == sum(exercise.name.startswith(name[:2]) for exercise in EXERCISES)


@pytest.mark.parametrize("name", TEXTS)
def test_every_graded_cell_fails_where_nothing_is_written_yet(name: str) -> None:
    cleared, _ = ClearToStubs()(stored("source", name), {})
    assert "hidden=True" in "".join(cell.source for cell in cleared.cells)
    said = run(cleared)
    assert said and all(problem and "CheckFailed" in problem for problem in said.values()), said


@pytest.mark.parametrize("name", TEXTS)
def test_notebooks_are_what_the_text_generates(name: str) -> None:
    text = TEXTS[name]
    instructor = build.generate(text, (build_assignments.instructor,))
    assert stored("source", name) == instructor
    assert stored("release", name) == released(instructor)
    assert build.differences(build.generate(text, (build_assignments.solved,)), stored("solution", name)) == []


@pytest.mark.parametrize("name", TEXTS)
def test_a_release_gives_nothing_away(name: str) -> None:
    gives_nothing_away(stored("source", name), stored("release", name))
    with pytest.raises(AssertionError):
        gives_nothing_away(stored("source", name), stored("source", name))


def gives_nothing_away(source: NotebookNode, release: NotebookNode) -> None:
    text = nbformat.writes(release)
    for word in ("BEGIN", "hidden=True", "HIDDEN", "planted", "SCHEME"):
        assert word not in text
    for ours, theirs in zip(source.cells, release.cells, strict=True):
        assert not theirs.get("outputs")
        if ours.metadata.get("nbgrader", {}).get("solution"):
            solution = ours.source.split("### BEGIN SOLUTION\n")[-1].split("### END SOLUTION")[0]
            assert solution.strip() not in theirs.source


@pytest.mark.parametrize("name", TEXTS)
def test_hints_are_rendered(name: str) -> None:
    """Markdown within <details> is read as such only between empty lines; else `<pad>` is a tag that nobody sees."""
    text = "\n".join(cell.source for cell in stored("release", name).cells)
    unread = re.compile(r"</summary>\n(?!\n)|(?<!\n)\n</details>")
    assert "</summary>" in text and not unread.search(text)
    assert unread.search(text.replace("</summary>\n\n", "</summary>\n"))


def law_rules_are_said(exercise: Exercise, text: str) -> None:
    """Whatever is refused though its result is right."""
    assert ("no loop over the inputs" in text) == (exercise.loops is False)
    assert ("no loop but the one over the steps" in text) == callable(exercise.loops)
    assert ("the inputs stay unchanged" in text) == callable(exercise.reference)
    assert all(f"`{one.__name__}`" in text for one in exercise.forbidden)


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_rules_are_said(exercise: Exercise) -> None:
    name = next(name for name in TEXTS if name[:2] == exercise.name[:2])
    check_cell = f'check("{exercise.name}"'
    cells = [cell.source for cell in stored("release", name).cells]
    end = next(number for number, source in enumerate(cells) if source.startswith(check_cell))
    text = [source for source in cells[:end] if source.startswith("## ")][-1].split("\n\n")[2]
    law_rules_are_said(exercise, text)
    with pytest.raises(AssertionError):
        law_rules_are_said(replace(exercise, loops=False if callable(exercise.loops) else lambda *_: 1), text)


@pytest.mark.parametrize("name", TEXTS)
def test_an_assignment_says_what_it_takes(name: str) -> None:
    """Three to six exercises with points, minutes and difficulty, at least one of them in words."""
    notebook = stored("source", name)
    graded = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert 4 <= len(graded) <= 7 and any(cell.cell_type == "markdown" for cell in graded)
    heads = [cell.source for cell in notebook.cells if cell.source.startswith("## ")]
    assert len(heads) == len(graded) and all("minutes · " in head and "●" in head for head in heads)
    minutes = sum(int(head.split("*")[1].split(" ")[0]) for head in heads)
    assert 30 <= minutes <= 75
