"""The index of terms is what the glossaries of the lessons say, sorted, with a link to each."""

from collections import defaultdict

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from notebooks.source import build_lessons as build
from notebooks.source.terms import INDEX, Term, all_terms, read_terms, render, whole_index
from tests.helpers.laws import tells_apart

GLOSSARY = "## Glossary\n\n- **n-gram**: n words in a row.\n- **`<pad>`**: what fills a row.\n- **BLEU**: n-grams."


def test_a_glossary_is_read_in_its_order():
    cells = [new_markdown_cell("- **no term**: outside"), new_markdown_cell(GLOSSARY), new_markdown_cell("## Summary")]
    found = read_terms(new_notebook(cells=cells), "10_x")
    assert [term.name for term in found] == ["n-gram", "`<pad>`", "BLEU"]
    assert found[0] == Term("n-gram", "n words in a row.", "10_x")
    assert read_terms(new_notebook(cells=cells[::2]), "10_x") == []


def law_sorted_by_letters(render):
    """Whatever the case and the marks around a word; a letter has one heading, a term a line for each lesson."""
    places = {"n-gram": "10_x", "`<pad>`": "01_y", "BLEU": "11_z", "bleu": "10_x", "norm": "06_w", "ngram": "01_y"}
    page = render([Term(name, "means something.", lesson) for name, lesson in places.items()])
    heads = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    lines = [line for line in page.splitlines() if line.startswith("- ")]
    assert heads == ["B", "N", "P"]
    shown = [line[: line.index(")")] for line in lines]
    assert shown == [
        "- **bleu** ([10](10_x.ipynb#Glossary",
        "- **BLEU** ([11](11_z.ipynb#Glossary",
        "- **ngram** ([01](01_y.ipynb#Glossary",
        "- **n-gram** ([10](10_x.ipynb#Glossary",
        "- **norm** ([06](06_w.ipynb#Glossary",
        "- **`<pad>`** ([01](01_y.ipynb#Glossary",
    ]


def test_terms_are_sorted_by_letters():
    def in_order_of_lessons(terms):
        head, *rest = render(terms).split("\n## ")
        return "\n## ".join([head, *reversed(rest)])

    tells_apart(law_sorted_by_letters, render, in_order_of_lessons, lambda terms: render(terms[:-1]))


SEVERAL_MEANINGS = {"rank"}  # of a matrix, and of a process


def law_explained_once(terms):
    """A term, in the singular or the plural, has one definition in the course; other lessons refer to it."""
    lessons = defaultdict(set)
    for term in terms:
        lessons[term.name.replace("-", " ").lower().removesuffix("s")].add(term.lesson)
    twice = {name: sorted(found) for name, found in lessons.items() if len(found) > 1 and name not in SEVERAL_MEANINGS}
    assert not twice, f"expected one definition of each, got {twice}"


def test_every_term_is_explained_in_one_lesson():
    terms = all_terms()
    heads = Term(terms[0].name.upper() + "s", "the same again.", "99_x")
    tells_apart(law_explained_once, terms, [*terms, heads], [*terms, terms[-1]._replace(lesson="99_x")])


def test_the_index_is_what_the_glossaries_say():
    assert INDEX.read_text(encoding="utf-8") == whole_index(), "run `python -m notebooks.source.terms`"


@pytest.mark.parametrize("lesson", [path.stem for path in build.lessons() if path.stem[:2] == "03"])
def test_a_lesson_is_in_the_index(lesson):
    notebook = nbformat.read(build.NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    assert len(read_terms(notebook, lesson)) >= 8
    for term in read_terms(notebook, lesson):
        assert f"- **{term.name}** ([{lesson[:2]}]({lesson}.ipynb#Glossary)): {term.meaning}\n" in whole_index()
