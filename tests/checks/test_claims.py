"""Claims of a text: false for the input that it was written for, they are errors; for a reader's own, a remark."""

import linecache
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from course_lib.checks import WRITTEN_FOR, written_for
from tests.helpers.laws import raised, tells_apart

CAT, DOG = "The cat sleeps.", "The dog barks loudly."
CLAIMS = """
def three_words(text):
    assert len(
        text.split()
    ) == 3


def three_words_and_says(text):
    assert len(text.split()) == 3, f"{len(text.split())} words."


def calls_another(text):
    "".join(map(str, text.split()))
    three_words(text)


def breaks(text):
    raise IndexError(text)
"""


@pytest.fixture(scope="module")
def claims():
    """Functions of a source of their own, which pytest leaves as it is: its assertions would say something."""
    linecache.cache["<claims>"] = (len(CLAIMS), None, CLAIMS.splitlines(keepends=True), "<claims>")
    found = {}
    exec(compile(CLAIMS, "<claims>", "exec"), found)
    yield found
    del linecache.cache["<claims>"]


def printed(block, capsys):
    capsys.readouterr()
    block()
    return capsys.readouterr().out


def checked(claim, original, yours, helper=written_for):
    with helper(original, yours):
        claim(yours)


def raising(error):
    """A claim that does not hold, or breaks."""

    def claim(_):
        raise error

    return claim


# Pairs of inputs that are the same, and pairs that are not.
SAME = [
    (CAT, "The cat" + " sleeps."),
    (3, 3),
    (0.5, 0.5),
    (None, None),
    ([1, "a", [2.5]], [1, "a", [2.5]]),
    ({"a": torch.ones(2)}, {"a": torch.ones(2)}),
    (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")])),
    (np.array([1.0, float("nan")]), np.array([1.0, float("nan")])),
    (np.array(["a", "b"]), np.array(["a", "b"])),
    ((CAT, 3, torch.arange(4)), (CAT, 3, torch.arange(4))),
    (torch.arange(3).requires_grad_(False), torch.arange(3)),
]
DIFFERENT = [
    (CAT, DOG),
    (CAT, [CAT]),
    (3, 4),
    (0.5, 0.25),
    (None, 0),
    ([1, 2], [1, 2, 3]),
    ([1, 2], [2, 1]),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    (torch.ones(2), torch.zeros(2)),
    (torch.ones(2), torch.ones(2, 1)),
    (torch.ones(2), torch.ones(2).double()),
    (torch.ones(2), [1.0, 1.0]),
    (torch.zeros(2000), torch.zeros(2000).index_fill(0, torch.tensor(1000), 1.0)),  # which print alike
    (np.ones(2), np.zeros(2)),
    (np.ones(2), np.ones(3)),
    ((CAT, 3), (CAT, 4)),
    ((CAT, 3), (CAT, 3, 3)),
]


def law_a_false_claim_about_the_original_is_an_error(helper):
    """The very assertion, whatever the input is made of."""
    error = AssertionError()
    for original, yours in SAME:
        found = raised(AssertionError, lambda pair=(original, yours): checked(raising(error), *pair, helper))
        assert found is error, f"{original!r} is the original"


def law_a_false_claim_about_another_input_stops_nothing(helper):
    claim = raising(AssertionError())
    for original, yours in DIFFERENT:
        found = raised(AssertionError, lambda pair=(original, yours): checked(claim, *pair, helper))
        assert found is None, f"{yours!r} is not {original!r}"


@contextmanager
def lets_all_pass(original, yours):
    try:
        yield
    except AssertionError:
        pass


@contextmanager
def lets_nothing_pass(original, yours):
    yield


def by_text(original, yours):
    return lets_nothing_pass(original, yours) if str(original) == str(yours) else lets_all_pass(original, yours)


def by_identity(original, yours):
    return lets_nothing_pass(original, yours) if original is yours else lets_all_pass(original, yours)


def by_shape(original, yours):
    shapes = [getattr(each, "shape", None) for each in (original, yours)]
    if None not in shapes:
        return lets_nothing_pass(original, yours) if shapes[0] == shapes[1] else lets_all_pass(original, yours)
    return written_for(original, yours)


def test_a_false_claim_about_the_original_is_an_error():
    tells_apart(law_a_false_claim_about_the_original_is_an_error, written_for, lets_all_pass, by_identity)


def test_a_false_claim_about_another_input_stops_nothing():
    tells_apart(
        law_a_false_claim_about_another_input_stops_nothing, written_for, lets_nothing_pass, by_shape, by_text
    )


@pytest.mark.parametrize("kind", [IndexError, KeyError, ValueError, ZeroDivisionError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("yours", [CAT, DOG])
def test_every_other_exception_passes(kind, yours, capsys):
    error = kind("x")
    assert raised(kind, lambda: checked(raising(error), CAT, yours)) is error
    assert capsys.readouterr().out == ""


def law_the_traceback_is_what_it_is_without(helper, claims):
    error = raised(AssertionError, lambda: checked(claims["three_words"], "a", "a", helper))
    places, at = [], error.__traceback__
    while at:
        places.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    assert places[-1] == ("<claims>", 3), "the assertion comes last, where a notebook shows it"


def test_the_traceback_ends_at_the_assertion(claims):
    law_the_traceback_is_what_it_is_without(written_for, claims)


# --- the remark ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, said",
    [
        ("three_words", " (len(text.split()) == 3 is false)"),
        ("three_words_and_says", " (4 words)"),
        ("calls_another", " (len(text.split()) == 3 is false)"),
    ],
)
def test_the_remark_names_both_inputs_and_the_claim(name, said, claims, capsys):
    expected = f"This text was written for '{CAT}'; with '{DOG}' it does not hold here{said}. Go on.\n"
    assert printed(lambda: checked(claims[name], CAT, DOG), capsys) == expected


def test_what_holds_for_another_input_is_said_too(capsys):
    """So that a lesson whose own input is not the original any more is found by what it prints."""
    told = printed(lambda: checked(lambda text: None, CAT, DOG), capsys)
    assert told == f"This text was written for '{CAT}'; what is checked here holds with '{DOG}' too.\n"
    assert told.startswith(WRITTEN_FOR)
    for original, yours in SAME:
        assert printed(lambda pair=(original, yours): checked(lambda _: None, *pair), capsys) == ""


def of_tensors(expected, got):
    torch.testing.assert_close(torch.tensor(got), torch.tensor(expected))


def test_the_first_line_of_a_long_message_is_enough(capsys):
    told = printed(lambda: checked(lambda value: of_tensors(1.0, value), 1.0, 2.0), capsys)
    assert told == "This text was written for 1.0; with 2.0 it does not hold here (Scalars are not close). Go on.\n"


def test_a_claim_whose_source_is_not_known_has_a_remark_as_well(capsys):
    found = {}
    exec("def fails(_): assert False", found)
    told = printed(lambda: checked(found["fails"], 1, 2), capsys)
    assert told == "This text was written for 1; with 2 it does not hold here. Go on.\n"


@pytest.mark.parametrize(
    "original, yours, written, got",
    [
        ((CAT, 3, 5), (CAT, 4, 5), "3", "4"),
        ((CAT, 3, 5), (DOG, 4, 5), f"'{CAT}' and 3", f"'{DOG}' and 4"),
        ((1, 2), (1, 2, 3), "(1, 2)", "(1, 2, 3)"),
        ([1, 2], [1, 3], "[1, 2]", "[1, 3]"),
        ("a" * 90, "b" * 80, f"'{'a' * 80}…'", f"'{'b' * 80}'"),
        (list(range(90)), list(range(80)), "a list of 90", "a list of 80"),
        (list(range(90)), list(range(1, 91)), "a list of 90", "other values"),
        (torch.ones(2, 3), torch.zeros(3, 2), "a tensor (2, 3) float32", "a tensor (3, 2) float32"),
        (torch.ones(2, 3), torch.zeros(2, 3), "a tensor (2, 3) float32", "other values"),
        (np.ones(2), np.ones(3), "an array (2,) float64", "an array (3,) float64"),
        (torch.ones(2), 2, "a tensor (2,) float32", "2"),
    ],
)
def test_of_several_inputs_those_that_differ_are_named_in_a_few_words(original, yours, written, got, capsys):
    told = printed(lambda: checked(lambda _: None, original, yours), capsys)
    assert told == f"{WRITTEN_FOR} {written}; what is checked here holds with {got} too.\n"
