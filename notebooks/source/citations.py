"""Citations of lessons: one bibliography, links in the text, and at a lesson's end the papers that it stands on.

    [@press2022, section 3; @shaw2018]  ->  ([Press et al. 2022](https://...), section 3; [Shaw et al. 2018](...))
    @press2022 show                     ->  [Press et al. (2022)](https://...) show
"""

import re
from functools import cache
from pathlib import Path

from nbformat import NotebookNode
from pybtex.database import Entry, Person, parse_file

BIBLIOGRAPHY = Path(__file__).with_name("bibliography.bib")
KEY = re.compile(r"(?<![\w`])@([a-z]+\d{4}[a-z]?)\b")
IN_PARENTHESES = re.compile(rf"\[({KEY.pattern}[^\]]*)\]")
PER_ENTRY = 4  # authors that are named before "and others"


@cache
def entries(path: Path = BIBLIOGRAPHY) -> dict[str, Entry]:
    """The papers of the course by their keys, first author and year."""
    return dict(parse_file(path).entries)


def cited(text: str) -> list[str]:
    """The keys that a text cites, in the order of their first mention."""
    return list(dict.fromkeys(KEY.findall(text)))


def cite(notebook: NotebookNode) -> NotebookNode:
    """Turns citations into links, and ends the last cell with the papers cited.

    Raises:
        ValueError: the bibliography lacks a paper.
    """
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    keys = list(dict.fromkeys(key for cell in prose for key in cited(cell.source)))
    if unknown := [key for key in keys if key not in entries()]:
        raise ValueError(f"{BIBLIOGRAPHY.name} has no {', '.join(unknown)}")
    for cell in prose:
        cell.source = IN_PARENTHESES.sub(_in_parentheses, cell.source)
        cell.source = KEY.sub(lambda match: _link(match, "{} ({})"), cell.source)
    if keys:
        listed = sorted(keys, key=lambda key: (_label(entries()[key]).lower(), entries()[key].fields["year"]))
        prose[-1].source += "\n\n**Sources**\n\n" + "\n".join(f"- {_reference(entries()[key])}" for key in listed)
    return notebook


def _in_parentheses(match: re.Match) -> str:
    return f"({KEY.sub(lambda key: _link(key, '{} {}'), match[1])})"


def _link(match: re.Match, form: str) -> str:
    entry = entries()[match[1]]
    return f"[{form.format(_label(entry), entry.fields['year'])}]({entry.fields['url']})"


def _label(entry: Entry) -> str:
    """Press; Press and Smith; Press et al."""
    names = [_last_name(person) for person in entry.persons["author"]]
    return " and ".join(names) if len(names) <= 2 else f"{names[0]} et al."


def _reference(entry: Entry) -> str:
    people = entry.persons["author"]
    names = [" ".join([*_plain(person.first_names + person.middle_names), _last_name(person)]) for person in people]
    if names[-1] == "others" or len(names) > PER_ENTRY:
        names = [*[name for name in names[: PER_ENTRY - 1] if name != "others"], "others"]
    authors = ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
    fields = entry.fields
    stop = "" if fields["title"].endswith("?") else "."
    return f"{authors} ({fields['year']}). [{fields['title']}]({fields['url']}){stop} {fields['journal']}."


def _last_name(person: Person) -> str:
    return " ".join(_plain(person.prelast_names + person.last_names))


def _plain(names: list[str]) -> list[str]:
    return [name.replace(r"{\L}", "Ł").strip("{}") for name in names]
