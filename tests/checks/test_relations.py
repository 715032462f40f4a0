"""What wrong results have in common: said where it holds in every case, and nowhere else."""

import pytest
import torch

from course_lib.assignments import check
from course_lib.checks import CheckFailed
from course_lib.checks.relations import kind_of_case, relation
from tests.helpers.laws import tells_apart

RNG = torch.Generator().manual_seed(0)
TENSORS = [torch.randn(shape, generator=RNG) for shape in ((2, 3, 4), (1, 4, 5), (3, 2, 2))]
WEIGHTS = [tensor.softmax(dim=-1) for tensor in TENSORS]

SAID = {
    "The last two axes are exchanged.": (TENSORS, lambda x: x.mT),
    "Every True is a False, and the other way round.": ([x > 0 for x in TENSORS], torch.logical_not),
    "The sign is wrong everywhere.": (TENSORS, torch.neg),
    "Every number is 0.5 times as large as it should be.": (TENSORS, lambda x: x / 2),
    "All numbers of a case have one factor too much: 4, 5, 2.": (TENSORS, lambda x: x * x.size(-1)),
    "Every number is too large by 2.": (TENSORS, lambda x: x + 2),
    "Every number is too small by 1.": ([torch.arange(6), torch.arange(3)], lambda x: x - 1),
    "Yours sum to 1 along axis -2; each row, along the last axis, must.": (TENSORS, lambda x: x),
    "The rows of your weights do not sum to 1.": (WEIGHTS, lambda x: x + 0.3 * x**2),
    "Everything is there, in reverse order along axis -1.": (TENSORS, lambda x: x.flip(-1)),
    "The numbers are right, but they stand in the wrong places.": (TENSORS, lambda x: x.roll(1, -1).roll(1, 0)),
    "Only the first index of axis -1 is wrong, all others are right.": (
        TENSORS,
        lambda x: torch.cat([x[..., :1] ** 2, x[..., 1:]], dim=-1),
    ),
    "Only the last index of axis -2 is wrong, all others are right.": (
        TENSORS,
        lambda x: torch.cat([x[..., :-1, :], x[..., -1:, :] ** 2], dim=-2),
    ),
}


def results(said, spoil):
    """Of each case what was expected, and what came."""
    tensors = SAID[said][0]
    if said.startswith("Yours sum"):
        return [(x.softmax(dim=-1), x.softmax(dim=-2)) for x in tensors]
    return [(x, spoil(x)) for x in tensors]


@pytest.mark.parametrize("said", SAID)
def test_a_relation_is_said_where_every_case_has_it(said):
    spoil = SAID[said][1]
    assert relation(results(said, spoil), 1e-4) == said
    assert relation([*results(said, spoil), (torch.ones(2, 2), torch.tensor([[3.0, 7.0], [1.0, 8.5]]))], 1e-4) != said


def test_nothing_is_said_of_what_is_right_or_has_nothing_in_common():
    assert relation([(x, x) for x in TENSORS], 1e-4) == ""
    assert relation([(x, torch.randn(x.shape, generator=RNG)) for x in TENSORS], 1e-4) == ""
    assert relation([(TENSORS[0], "text"), (TENSORS[1], None)], 1e-4) == ""
    assert relation([(torch.empty(0), torch.ones(0))], 1e-4) == ""
    assert relation([(number, number * 2**64) for number in (2, 3)], 1e-4) == ""  # which no tensor holds


def test_the_part_that_is_wrong_is_named():
    pairs = [((x, x + 1), (x, -x - 1)) for x in TENSORS]
    assert relation(pairs, 1e-4) == "Only result[1] is wrong, the rest is right. The sign is wrong everywhere."
    named = [({"encoder": 1, "decoder": number}, {"encoder": 1, "decoder": 2 * number}) for number in (3, 4, 5)]
    assert relation(named, 1e-4).startswith("Only 'decoder' is wrong, the rest is right.")
    assert relation([((x, x), (-x, x * x)) for x in TENSORS], 1e-4) == ""


def law_the_kind_of_case_is_named(kind) -> None:
    names, cases = ["x", "norm_first"], [(TENSORS[0], True), (TENSORS[1], False), (TENSORS[2], True)]
    assert kind(names, cases, [True, False, True]) == "It is right wherever norm_first is True, and nowhere else."
    assert kind(names, cases[:2], [False, True]) == "It is right wherever norm_first is False, and nowhere else."
    alike = [(x, True) for x, _ in cases]
    assert kind(names, alike, [False, True, False]) == "It is right where x is (1, 4, 5) float32, and nowhere else."
    assert kind(names, alike, [True, True, False]) == ""
    assert kind(names, cases, [True] * 3) == kind(names, cases, [False] * 3) == ""


def always(names, cases, right):
    """Names an input though it does not tell the cases apart."""
    return f"It is right wherever {names[1]} is {any(right) and cases[right.index(True)][1]}, and nowhere else."


def test_the_kind_of_case_is_named():
    tells_apart(law_the_kind_of_case_is_named, kind_of_case, always, lambda *_: "")


def test_a_learner_reads_it_where_no_known_mistake_explains_the_answer():
    def three_times(query, key):
        return 3 * (query @ key.mT) / query.size(-1) ** 0.5

    with pytest.raises(CheckFailed, match="Every number is 3 times as large as it should be."):
        check("03.scores", three_times)
