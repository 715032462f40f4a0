"""A check says what was tried, expected and got; it names a mistake only where every result is that mistake's."""

import json
import math
import os
from collections import OrderedDict, namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import nn

from course_lib.assignments import FOLDERS, check, find
from course_lib.attention import attention
from course_lib.checks import CheckFailed, Exercise, hidden_seed
from course_lib.checks.compare import difference
from course_lib.checks.exchange import LIMIT, Other, read, read_replies, write, write_replies
from course_lib.checks.exercise import Edit, Reply
from course_lib.checks.guard import FinishedAnswer, refuse
from course_lib.checks.judge import replies, verdict
from course_lib.checks.tree import copy, equal, plain, shape_of, to


def double(x: torch.Tensor) -> torch.Tensor:
    return x + x


TWICE = Exercise(
    "00.twice",
    lambda generator: [(torch.randn(2, 3, generator=generator),), (torch.randn(4, generator=generator),)],
    {"This is the square.": lambda x: x * x, "This is the input.": lambda x: x},
    reference=double,
)


def said(answer: object, exercise: Exercise = TWICE) -> str:
    cases = exercise.inputs(0)
    try:
        return verdict(exercise, cases, replies(exercise, answer, cases))
    except CheckFailed as error:
        return str(error)


def test_success_is_one_stable_line() -> None:
    assert said(lambda x: 2 * x) == "✓ 00.twice: right in 4 cases"


def test_a_failure_shows_the_case_the_place_and_both_values() -> None:
    wrong = said(lambda x: 2 * x + (x.dim() == 1) * 1.0)
    expected = 2 * TWICE.inputs(0)[1][0][0].item()
    assert wrong.startswith("00.twice, case 2 of 4: x (4,) float32\n")
    assert f"the result[0]: expected {expected:.6g}, got {expected + 1:.6g}" in wrong


def test_a_hint_needs_every_result_to_be_the_mistakes() -> None:
    assert said(lambda x: x**2).endswith("This is the square.")
    assert said(lambda x: x.clone()).endswith("This is the input.")
    square_once = said(lambda x: x**2 if x.dim() == 2 else 3 * x)
    assert "expected" in square_once and "square" not in square_once
    first_right = said(lambda x: 2 * x if x.dim() == 2 else x * x)
    assert "case 2" in first_right and "square" not in first_right


def test_a_hint_is_never_given_for_an_exception_alone() -> None:
    mistakes = {"Zero divides nothing.": lambda x: 1 / 0}
    crashed = said(lambda x: x.no_such_method(), replace(TWICE, mistakes=mistakes))
    assert "AttributeError" in crashed and "Zero" not in crashed


def test_a_hint_is_given_though_the_answer_also_forgets_the_device() -> None:
    assert "This is the square." in said(lambda x: x * x + torch.zeros(x.shape, dtype=x.dtype))


def test_a_wrong_prediction_does_not_reveal_the_right_one() -> None:
    with pytest.raises(CheckFailed) as caught:
        check("03.repeated", find("03.repeated").reference | {"four equal keys": 0.5})
    assert str(caught.value) == "03.repeated, four equal keys: not 0.5"


def test_an_edit_changes_the_solution_wherever_it_stands() -> None:
    assert Edit("x", "y", "1", "2").of("x + x + 1") == "y + y + 2"
    assert Edit().of("x") == "x"
    with pytest.raises(ValueError, match="expected 'z' in the solution, got\nx"):
        Edit("z", "y").of("x")
    with pytest.raises(ValueError):
        Edit("x")


def test_a_solution_that_asks_for_numbers_has_an_expectation_on_the_device_meta_too() -> None:
    asking = replace(TWICE, reference=lambda x: x * min(2.0, 1 + float(x.norm())))
    on_meta = asking.inputs(0)[-1]
    expected = asking.expected(on_meta)
    assert expected.is_meta and expected.shape == on_meta[0].shape
    with pytest.raises(AttributeError):
        replace(TWICE, reference=lambda x: x.no_such_method()).expected(on_meta)


def test_an_error_of_torch_is_not_taken_for_an_unwritten_answer() -> None:
    def answer(x):
        raise NotImplementedError("no kernel for this")

    assert "no kernel for this" in said(answer)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: None, "the result is None; does your code return it?"),
        (lambda x: x.tolist(), "expected a tensor, got list of 2"),
        (lambda x: (2 * x)[None], "expected the shape (2, 3), got (1, 2, 3)"),
        (lambda x: (2 * x).float(), "expected torch.float64, got torch.float32"),
        (lambda x: x + torch.zeros(len(x), *x.shape[1:], dtype=x.dtype) + x, "The device meta stands for"),
        (lambda x: x.mul_(2), "it changes its input x"),
        (lambda x: x.fill_(math.nan), "it changes its input x"),
        (lambda x: int("two"), "it raises ValueError: invalid literal for int() with base 10: 'two', in the line"),
        (lambda x: torch.full_like(x, math.nan), "got nan"),
        (None, "it raises TypeError"),
        (lambda x: 2 * x * torch.tensor(math.pi) / math.pi, "in float32 that is right: is something in it no float64"),
        (lambda x: x.view("long" * 999), " …, in the line"),
        (double, "it calls double; here it is yours to write"),
    ],
)
def test_it_says_what_is_wrong(answer: object, words: str) -> None:
    assert words in said(answer)


def test_every_kind_of_tuple_and_of_number_is_the_plain_one() -> None:
    pair = namedtuple("Pair", "one other")(torch.ones(2), OrderedDict(a=np.float64(2.5)))
    made = plain([torch.Size([1, 2]), np.int64(3), np.float32(0.5), np.bool_(True), pair])
    assert repr(made) == "[(1, 2), 3, 0.5, True, (tensor([1., 1.]), {'a': 2.5})]"
    shape = Exercise("00.shape", TWICE.cases, reference=lambda x: tuple(x.shape))
    assert said(lambda x: x.shape, shape) == said(np.shape, shape) == "✓ 00.shape: right in 4 cases"


def test_an_unwritten_answer_is_told_so() -> None:
    def answer(x):
        raise NotImplementedError

    assert "it is not written yet" in said(answer)


LOOPLESS = Exercise("00.loopless", TWICE.cases, loops=False, reference=double)


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: torch.stack([row + row for row in x]),
        lambda x: torch.stack(list(map(lambda row: row + row, x))),
        lambda x: x.new_tensor([row.tolist() for row in 2 * x]),
    ],
)
def test_a_loop_is_found_where_none_is_allowed(loop) -> None:
    assert said(loop).startswith("✓ 00.twice")
    assert "it goes through something one by one" in said(loop, LOOPLESS)


def test_a_loop_over_steps_may_be_allowed_and_no_other() -> None:
    shapes = [(40, 2), (2, 5)]
    cases = lambda generator: [(torch.randn(shape, generator=generator), shape[1]) for shape in shapes]  # noqa: E731
    in_steps = Exercise("00.steps", cases, loops=lambda x, steps: steps, reference=lambda x, steps: steps * x)

    def over_steps(x, steps):
        total = 0 * x
        for _ in range(steps):
            total = total + x
        return total

    def over_rows(x, steps):
        return torch.stack([over_steps(row, steps) for row in x])

    assert said(over_steps, in_steps).startswith("✓")
    assert "more than the steps one by one" in said(over_rows, in_steps)


def test_two_explanations_are_told_as_perhaps() -> None:
    both = {"This is a square.": lambda x: x * x, "This is x times itself.": lambda x: x**2, "No.": lambda x: x}
    assert said(lambda x: x * x, replace(TWICE, mistakes=both)).endswith(
        "Perhaps: This is a square.\n  Or: This is x times itself."
    )


def test_what_is_no_loop_over_the_inputs_is_none() -> None:
    def answer(x):
        parts = [x for _ in range(2)]
        return torch.stack(parts).sum(0) if x.dim() == 2 else F.relu(x) + F.relu(-x) + x - abs(x) + x

    assert said(answer, LOOPLESS).startswith("✓")
    assert said(torch.vmap(lambda row: row + row), LOOPLESS).startswith("✓")


def test_what_meta_cannot_do_at_all_is_no_mistake() -> None:
    def sparse(x):
        unit = torch.eye(len(x), dtype=x.dtype).to_sparse()
        return 2 * torch.sparse.mm(unit, x.reshape(len(x), -1)).view(x.shape)

    def printing(x):
        print(f"{x.sum():.3f}")
        return 2 * x

    def repeating(x):
        return 2 * x.repeat_interleave(torch.ones(len(x), dtype=torch.long, device=x.device), dim=0)

    for answer in (sparse, printing, repeating):
        assert said(answer).startswith("✓")


def test_numbers_may_be_looked_at_though_meta_has_none() -> None:
    for look in (torch.Tensor.sum, torch.Tensor.nonzero, lambda x: x[x > 0], lambda x: torch.equal(x, x)):
        assert said(lambda x, look=look: 2 * x if len(str(look(x))) else x).startswith("✓")
    assert said(lambda x: 2 * x if x.sum() != 5 else x).startswith("✓")


def test_a_notebook_shows_the_message_without_a_traceback() -> None:
    with pytest.raises(CheckFailed) as caught:
        check("03.scores", lambda query, key: query @ key.transpose(1, 2))
    (shown,) = caught.value._render_traceback_()
    assert shown.startswith("✗ 03.scores, case 1") and shown.endswith("without the division by √d_k.")


def test_an_unknown_exercise_is_named() -> None:
    with pytest.raises(ValueError, match=r"03\.softmax.*got '03\.nothing'"):
        find("03.nothing")
    with pytest.raises(ValueError, match=f"assignments 01 to {FOLDERS[-1].name[1:3]}, got"):
        find("99.nothing")


def test_the_teachers_seed_changes_the_hidden_cases_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {repr(inputs): find("03.scores").expected(inputs) for inputs in find("03.scores").inputs(1)}

    def remembers(query, key):
        return known.get(repr((query, key)), query @ key.mT)

    check("03.scores", remembers, hidden=True)
    monkeypatch.setenv("COURSE_CLASS_SEED", "2718")
    with pytest.raises(CheckFailed):
        check("03.scores", remembers, hidden=True)


@pytest.mark.parametrize("seed", ["0", "", "mine", "1.5", "-", str(2**32)])
def test_a_seed_that_hides_nothing_is_refused(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator takes 32 bits: 2**32 gives what 0 gives, which everybody sees."""
    monkeypatch.setenv("COURSE_CLASS_SEED", seed)
    with pytest.raises(ValueError, match=f"COURSE_CLASS_SEED to be a whole number, but not 0, got '{seed}'"):
        hidden_seed()
    for other in ("-5", str(2**40 + 1)):
        monkeypatch.setenv("COURSE_CLASS_SEED", other)
        assert hidden_seed() == int(other)


# Finished answers.

X = torch.randn(1, 2, 4)


@pytest.mark.parametrize(
    ("forbidden", "use"),
    [
        ([F.softmax], lambda: F.softmax(X, -1)),
        ([torch.softmax], lambda: torch.softmax(X, -1)),
        ([torch.Tensor.softmax], lambda: X.softmax(-1)),
        ([F.scaled_dot_product_attention], lambda: F.scaled_dot_product_attention(X, X, X)),
        ([nn.MultiheadAttention], lambda: nn.MultiheadAttention(4, 1)),
        ([nn.utils.clip_grad_norm_], lambda: nn.utils.clip_grad_norm_([X], 1.0)),
        ([double], lambda: double(X)),
        ([], lambda: attention(X, X, X)),
    ],
)
def test_finished_answers_are_refused_wherever_they_are_called(forbidden: list, use) -> None:
    use()
    with pytest.raises(FinishedAnswer, match="yours to write"), refuse(forbidden):
        list(map(lambda _: use(), range(1)))
    use()


def test_what_is_not_forbidden_may_be_called() -> None:
    with refuse([torch.softmax, F.layer_norm]):
        (X @ X.mT).exp().sum().item()
        F.relu(X)
    with refuse([nn.utils.clip_grad_norm_]):
        nn.utils.get_total_norm([X])  # wrapped by torch in the same code as its neighbour


def test_a_question_may_put_an_answer_to_work_in_the_library() -> None:
    with refuse([], library=True):
        attention(X, X, X)
    with pytest.raises(FinishedAnswer, match="it calls attention; here"), refuse([attention], library=True):
        attention(X, X, X)


# Comparison.


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        ({"a": 1.0}, {"a": 1.00001}, None),
        ({"a": 1.0}, {"a": 1.1}, "a: expected 1.0, got 1.1"),
        ({"a": 1.0}, {}, "has no 'a'"),
        ({"a": 1.0}, {"a": 1.0, "b": 2}, "has 'b', which was not asked for"),
        ({"a": None}, {"a": 0}, "expected None, got 0"),
        ([1, 2], (1, 2), None),
        ([1, 2], [1, 2, 3], "expected 2 values, got 3"),
        ([1, 2], 5, "expected 2 values in a list, got 5"),
        (3, 3.0, None),
        (3, torch.tensor(3), None),
        (3, 4, "expected 3, got 4"),
        (3, 3.0001, "expected 3, got 3.0001"),
        (0, -1e-14, None),
        (3, math.nan, "expected 3, got nan"),
        (10**12, 10**12 + 1, "expected 1000000000000, got 1000000000001"),
        (True, 1, "expected True, got 1"),
        ("word", "Word", "expected 'word', got 'Word'"),
        (math.nan, math.nan, None),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "[1]: expected 2, got 3"),
        (torch.tensor(1.0), 1.0, "expected a tensor, got 1.0"),
        (torch.tensor([math.inf, math.nan]), torch.tensor([math.inf, math.nan]), None),
        (torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64) + 1e-7, "[0]: expected 1"),
        (torch.ones(2), torch.ones(2) + 1e-7, None),
        (torch.ones(0, 3), torch.ones(0, 3), None),
        ((torch.ones(1), "x"), (torch.ones(1), "y"), "the result[1]: expected 'x'"),
    ],
)
def test_the_first_difference(expected: object, got: object, words: str | None) -> None:
    found = difference(expected, got, 1e-4)
    assert found is None if words is None else words in (found or "")


def test_a_number_may_be_larger_than_what_can_be_compared_or_written() -> None:
    """No float holds the first, and Python writes no int of more than 4,300 digits."""
    assert difference(1.5, 10**400, 1e-4) == "the result: expected 1.5, got int of 1329 bits"
    assert difference(3, 10**5000, 1e-4) == "the result: expected 3, got int of 16610 bits"
    assert difference([1.5], [[10**5000]], 1e-4) == "the result[0]: expected 1.5, got list of 1"


# Files between processes.

TREE = {
    "tensors": (torch.randn(2, 3), torch.arange(4), torch.tensor([True, False]), torch.tensor(math.inf)),
    "plain": [1, 2.5, "wörter", None, True, math.inf],
    "meta": to(torch.ones(2, 5), torch.device("meta")),
    7: {"nested": torch.ones(3, 2).T},
    "empty": [],
}


def test_a_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    write(TREE, tmp_path / "tree")
    assert equal(read(tmp_path / "tree"), TREE)
    assert not equal(read(tmp_path / "tree"), TREE | {"empty": ()})


def test_what_is_no_value_comes_back_as_its_description(tmp_path: Path) -> None:
    write([nn.Linear(2, 2), {1, 2}], tmp_path / "tree")
    one, other = read(tmp_path / "tree")
    assert isinstance(one, Other) and (shape_of(one), shape_of(other)) == ("Linear", "set of 2")
    assert difference(torch.ones(1), one, 1e-4) == "the result: expected a tensor, got Linear"


def test_no_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("the teacher's")
    (tmp_path / "cases").symlink_to(tmp_path / "theirs")
    for name in ("cases", "theirs"):
        with pytest.raises(FileExistsError):
            write(TREE, tmp_path / name)
    assert (tmp_path / "theirs").read_text() == "the teacher's"


def test_replies_come_back(tmp_path: Path) -> None:
    write_replies([Reply(torch.ones(2)), Reply(problem="it raises")], tmp_path / "replies")
    one, other = read_replies(tmp_path / "replies")
    assert equal(one.result, torch.ones(2)) and other.problem == "it raises"


def _tree(value: object) -> bytes:
    return save({"tree": torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        save({}),
        _tree({"tensor": "none", "grad": False}),
        _tree({"set": [1]}),
        _tree({"a": 1, "b": 2}),
        _tree([[[1]]]),
    ],
)
def test_bytes_of_a_stranger_are_an_error_and_no_more(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "replies").write_bytes(content)
    with pytest.raises(ValueError, match="expected"):
        read_replies(tmp_path / "replies")


def test_only_ordinary_files_of_moderate_size_are_read(tmp_path: Path) -> None:
    write(TREE, tmp_path / "tree")
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LIMIT + 1)
    with pytest.raises(OSError):
        read(tmp_path / "link")
    for name in ("pipe", "large"):
        with pytest.raises(ValueError, match="expected a file of at most"):
            read(tmp_path / name)


def test_nothing_is_equal_to_another_number_not_even_nan() -> None:
    nan = torch.tensor([math.nan, 1.0])
    assert equal(nan, nan.clone()) and equal([nan], [nan])
    assert not equal(nan, torch.tensor([0.0, 1.0])) and not equal(nan, torch.tensor([math.nan, 2.0]))


def test_copies_share_nothing() -> None:
    tree = {"a": [torch.ones(2)]}
    copy(tree)["a"][0].zero_()
    assert equal(tree, {"a": [torch.ones(2)]})
