"""The questions to test oneself with: several for each lesson, each with a link to a section that is there."""

import re

import nbformat
import pytest

from notebooks.source import build_lessons as build
from tests.helpers.laws import raised

PAGE = build.NOTEBOOKS / "questions.md"
QUESTION = re.compile(r"^\d+\. (.+\?) \(\[(.+)\]\((\d\d_\w+)\.ipynb#(\S+)\)\)$")


def headings(lesson):
    cells = nbformat.read(build.NOTEBOOKS / f"{lesson}.ipynb", as_version=4).cells
    texts = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^#{2,4} (.+)$", texts, re.MULTILINE)


def law_each_question_leads_to_its_section(page):
    lines = [line for line in page.splitlines() if re.match(r"\d+\. ", line)]
    assert lines
    for line in lines:
        found = QUESTION.match(line)
        assert found, f"expected `1. Question? ([Heading](lesson.ipynb#Heading))`, got {line}"
        _, heading, lesson, anchor = found.groups()
        assert anchor == heading.replace(" ", "-"), line
        assert heading in headings(lesson), f"{lesson} has no section {heading}"


def law_each_lesson_has_its_questions(page):
    for lesson in build.lessons():
        _, _, rest = page.partition(f"\n## {lesson.stem[:2]} ")
        own = rest.partition("\n## ")[0]
        assert own.count(f"]({lesson.stem}.ipynb#") >= 4, f"expected four questions or more on {lesson.stem}"


@pytest.mark.parametrize(
    ("law", "old", "new"),
    [
        (law_each_question_leads_to_its_section, "#What-goes-where", "#What-goes"),
        (law_each_question_leads_to_its_section, "[Temperature](", "[Heat]("),
        (law_each_question_leads_to_its_section, "token?", "token."),
        (law_each_lesson_has_its_questions, "(00_welcome.ipynb", "(01_text_to_tensors.ipynb"),
    ],
)
def test_questions(law, old, new):
    page = PAGE.read_text(encoding="utf-8")
    law(page)
    assert old in page
    assert raised(AssertionError, lambda: law(page.replace(old, new)))
