"""The index of terms: what the glossaries at the end of the lessons define, in one list from A to Z.

    glossaries -> read_terms -> render -> notebooks/terms.md

Usage: python -m notebooks.source.terms, after a change of a glossary.
"""

import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

INDEX = Path(__file__).resolve().parents[1] / "terms.md"
ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (\S.*)$", re.MULTILINE)
BOLD = re.compile(r"^- \*\*(.+?)\*\* \(", re.MULTILINE)
HEAD = """# Terms

What the field's words mean, from the glossaries of the lessons; the number leads to the lesson that explains a term.
"""


class Term(NamedTuple):
    """A term, its one sentence, and the lesson that it is from, `NN_topic`."""

    name: str
    meaning: str
    lesson: str


def read_terms(notebook: NotebookNode, lesson: str) -> list[Term]:
    """The entries of a lesson's glossary, in its order; none where there is no glossary."""
    texts = [cell.source for cell in notebook.cells if cell.source.startswith("## Glossary\n")]
    return [Term(name, meaning, lesson) for text in texts for name, meaning in ENTRY.findall(text)]


def render(terms: list[Term]) -> str:
    """The index as Markdown, by first letters; a term of several lessons has a line for each."""
    parts = [HEAD]
    ordered = sorted(terms, key=lambda term: (_letters(term.name), term.lesson))
    for letter, group in groupby(ordered, key=lambda term: _letters(term.name)[:1].upper()):
        entries = (f"- **{name}** ([{lesson[:2]}]({lesson}.ipynb#Glossary)): {means}" for name, means, lesson in group)
        parts.append("\n".join([f"## {letter}", "", *entries, ""]))
    return "\n".join(parts)


def indexed(page: str) -> str:
    """What `render` makes, for the book: Sphinx's own index has the terms too, beside the names of the library."""
    return BOLD.sub(lambda found: f"- **{{index}}`{found[1].strip('`')}`** (", page)


def _letters(name: str) -> str:
    """Letters and digits alone: `<pad>` stands under P, and `n-gram` beside `ngram`."""
    return re.sub(r"[\W_]", "", name).lower()


def all_terms() -> list[Term]:
    """The terms of all lessons that are built."""
    from notebooks.source.build_lessons import NOTEBOOKS, lessons

    terms = []
    for source in lessons():
        notebook = nbformat.read(NOTEBOOKS / f"{source.stem}.ipynb", as_version=4)
        terms += read_terms(notebook, source.stem)
    return terms


def whole_index() -> str:
    """The index of all lessons that are built."""
    return render(all_terms())


if __name__ == "__main__":
    INDEX.write_text(whole_index(), encoding="utf-8", newline="\n")
