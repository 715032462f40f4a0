"""The attention calculator without a browser: its numbers are the library's, and what does not fit is refused."""

import math

import numpy as np
import pytest
import torch
import traitlets as t

from course_lib.attention import attention
from course_lib.widgets import AttentionCalculator
from course_lib.widgets.attention_calculator import LARGEST
from tests.helpers.laws import raised
from tests.helpers.stored import stored_words

QUERIES, KEYS, KINDS, FACTS = ["Die", "Katze"], ["The", "cat", "sleeps"], ["article", "noun"], ["0", "1", "2", "3"]
GENERATOR = torch.Generator().manual_seed(0)
Q, K, V = (torch.randn(*shape, generator=GENERATOR, dtype=torch.float64) for shape in ((2, 2), (3, 2), (3, 4)))


def calculator(**changes):
    arguments = dict(query=Q, key=K, value=V, queries=QUERIES, keys=KEYS, kinds=KINDS)
    return AttentionCalculator(**(arguments | changes))


def law_it_computes_what_the_library_does(compute):
    """`compute`: a calculator to its scores, weights and context."""
    for scaled, temperature in ((True, 1.0), (False, 1.0), (True, 0.1), (False, 5.0)):
        found = calculator(scaled=scaled, temperature=temperature)
        for query in (Q, 3 * Q):
            found.query = query.tolist()
            scores, weights, context = compute(found)
            factor = (1 if scaled else math.sqrt(2)) / temperature  # the library divides by √2 itself
            expected, expected_weights = attention(query * factor, K, V)
            torch.testing.assert_close(scores, query @ K.T * factor / math.sqrt(2), rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(weights, expected_weights, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(context, expected, rtol=1e-12, atol=1e-12)


def test_it_computes_what_the_library_does():
    law_it_computes_what_the_library_does(AttentionCalculator.compute)


def forgetful(change):
    """A calculator that computes in another state than it is in."""

    def compute(found):
        change(found)
        return found.compute()

    return compute


@pytest.mark.parametrize(
    "wrong",
    [
        forgetful(lambda found: setattr(found, "query", found.first["query"])),
        forgetful(lambda found: setattr(found, "scaled", True)),
        forgetful(lambda found: setattr(found, "temperature", 1.0)),
        lambda found: (found.compute()[0], *found.compute()[:2]),
    ],
)
def test_the_law_can_fail(wrong):
    with pytest.raises(AssertionError):
        law_it_computes_what_the_library_does(wrong)


def test_the_first_numbers_are_kept_for_reset():
    found = calculator(temperature=2)
    found.key, found.scaled, found.temperature = (2 * K).tolist(), False, 0.5
    assert found.first == {
        "query": Q.tolist(),
        "key": K.tolist(),
        "value": V.tolist(),
        "scaled": True,
        "temperature": 2.0,
    }
    assert found.names == {"queries": QUERIES, "keys": KEYS, "kinds": KINDS, "facts": FACTS}


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(query=Q[:1]), "query: expected (queries, kinds) = (2, 2) as the names say, 1 to 8 each; got (1, 2)"),
        (dict(key=K.T), "key: expected (keys, kinds) = (3, 2) as the names say, 1 to 8 each; got (2, 3)"),
        (dict(value=V[:2]), "value: expected (keys, facts) = (3, 4) as the names say, 1 to 8 each; got (2, 4)"),
        (dict(value=V[0]), "value: expected (keys, facts) = (3, 4) as the names say, 1 to 8 each; got (4,)"),
        (dict(facts=["one"]), "value: expected (keys, facts) = (3, 1) as the names say, 1 to 8 each; got (3, 4)"),
        (dict(query=21 * torch.ones(2, 2)), "query: expected numbers in -20..20, got [[21.0, 21.0], [21.0, 21.0]]"),
        (dict(key=K * math.nan), "key: expected numbers in -20..20, got [[nan"),
        (dict(temperature=0.0), "expected a temperature in 0.1..5, got 0.0"),
        (dict(temperature=math.nan), "expected a temperature in 0.1..5, got nan"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    assert str(raised(ValueError, lambda: calculator(**changes))).startswith(message)


def test_more_rows_than_the_page_has_room_for_are_refused():
    many = list("abcdefghi")
    raised(ValueError, lambda: calculator(query=torch.zeros(9, 2), queries=many))
    calculator(query=torch.zeros(8, 2), queries=many[:8])


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 2.0], [3.0, LARGEST + 1]], [["1", "2"]] * 2])
def test_later_numbers_must_fit_too(rows):
    found = calculator()
    with pytest.raises(t.TraitError):
        found.query = rows
    assert found.query == Q.tolist()


def law_the_picture_shows_the_state(picture, found):
    figure = picture(found)
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images][:6]
    for ours, expected in zip(shown, (found.query, found.key, found.value, *found.compute()), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)
    weights = found.compute()[1]
    title = figure.get_suptitle().replace("\n", " ")
    assert f"{weights.max():.2f}; dot products divided by {found.divisor:.3g}" in title


def test_the_picture_shows_the_present_state():
    found = calculator()
    first = found.picture()
    law_the_picture_shows_the_state(AttentionCalculator.picture, found)
    found.scaled, found.query = False, (2 * Q).tolist()
    law_the_picture_shows_the_state(AttentionCalculator.picture, found)
    with pytest.raises(AssertionError):
        law_the_picture_shows_the_state(lambda _: first, found)


def named_largest(found):
    """What the picture's title says of the largest weights."""
    return found.picture().get_suptitle().replace("\n", " ").split("context: ")[1].split("; ")[0]


def test_the_title_names_every_largest_weight():
    nobody, cats = torch.zeros(2, 2), torch.tensor([[0.0, 2.0], [0.0, 2.0]])
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert named_largest(calculator(query=cats, key=key)) == "most from “Die” to “cat” and “Katze” to “cat”, 0.67"
    everyone = "most from “Die” to “The”, “Die” to “cat”, “Die” to “sleeps” and 3 more, 0.33"
    assert named_largest(calculator(query=nobody, key=key)) == everyone
    cats[1, 1] = 2.01
    assert named_largest(calculator(query=cats, key=key)) == "most from “Katze” to “cat”, 0.67"


def test_a_stored_notebook_has_the_picture_and_its_words():
    words = stored_words(calculator())
    assert words.startswith("Scores → weights → context: most from “")
