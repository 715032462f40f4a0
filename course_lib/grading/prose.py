"""The cells of text in a submission: their pictures come along, and a page can be made of whatever stands there."""

import binascii
import textwrap
from base64 import b64decode
from functools import cache
from typing import Any
from urllib.parse import quote

import nbformat
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode

PICTURES = ("image/png", "image/jpeg")
LARGEST = 8 * 2**20  # characters of the pictures of one cell
AS_IN_A_PAGE = ":/?#@!$&()*+,;=%"  # what stays in a picture's name there; the rest is quoted


def text_cell(cell: NotebookNode) -> NotebookNode:
    """A cell with the text of a submitted one and its pictures; all else that is attached is left out.

    A text that nbconvert makes no page of, such as one with a picture that is missing, becomes a text as it was typed:
    otherwise one of them would stop the feedback for a class.
    """
    made = nbformat.v4.new_markdown_cell(cell.source)
    if kept := _pictures(cell.get("attachments")):
        made["attachments"] = nbformat.from_dict(kept)
    try:
        _exporter().markdown2html({"cell": made}, made.source)
    except Exception:  # whatever a stranger's text raises in a parser
        made.source = textwrap.indent(made.source, "    ", lambda line: True)
    return made


@cache
def _exporter() -> HTMLExporter:
    return HTMLExporter()


def _pictures(attached: Any) -> dict[str, dict[str, str]]:
    """Pictures by name, as it is and as a page quotes it; none that would make the cell too large."""
    kept, size = {}, 0
    for name, content in attached.items() if isinstance(attached, dict) else ():
        for kind in PICTURES:
            data = content.get(kind) if isinstance(content, dict) else None
            data = "".join(data.split()) if isinstance(data, str) else data
            if _is_base64(data) and size + len(data) <= LARGEST:
                size += len(data)
                kept |= {known: {kind: data} for known in (name, quote(name, safe=AS_IN_A_PAGE))}
    return kept


def _is_base64(data: Any) -> bool:
    """Whether this is nothing else: it gets into a page as it is."""
    try:
        return isinstance(data, str) and bool(b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False
