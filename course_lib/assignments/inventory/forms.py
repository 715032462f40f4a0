"""The two forms of the inventory: the same questions, with their choices in another order."""

import random

from course_lib.assignments.inventory.questions import Question

FORMS = {"before": "00_concepts_before", "after": "99_concepts_after"}  # and nbgrader's name for each
LETTERS = "abcd"
ACCEPTED = (*LETTERS, "?")  # all that counts as an answer; the last one is that of who does not know


def choices(question: Question, form: str) -> list[str]:
    """The choices of a question in the order of a form, (a) first: whoever remembers a letter remembers nothing.

    Raises:
        ValueError: there is no such form.
    """
    if form not in FORMS:
        raise ValueError(f"expected a form among {', '.join(FORMS)}, got {form!r}")
    texts = [question.right, *question.wrong]
    order = random.Random(f"concepts {question.name}").sample(texts, len(texts))
    turn = list(FORMS).index(form)  # so that no choice has the same letter in both forms
    return [*order[turn:], *order[:turn]]


def key(question: Question, form: str) -> str:
    """The letter of the right choice."""
    return LETTERS[choices(question, form).index(question.right)]


def meaning(question: Question, form: str, letter: str) -> str | None:
    """The choice behind a letter; None where there is none."""
    return dict(zip(LETTERS, choices(question, form), strict=True)).get(letter)
