"""What is done to finished pages: pictures get their sizes, so that the text keeps its place; one heading on top.

<img src="a.png"> -> with_sizes -> <img width="700" height="400" src="a.png">
"""

import re
import struct
from pathlib import Path
from urllib.parse import unquote

IMAGE = re.compile(r"<img (?![^>]*\b(?:width|height)=)[^>]*?\bsrc=\"([^\"]+)\"")
BOX = re.compile(rb'<svg[^>]*\bviewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"')
PRINTED = re.compile(r'(<div id="jb-print-docs-body"[^>]*>\s*)<h1>[^<]*</h1>')  # the theme's, when printed
CONTENTS = re.compile(r"<h2>( Contents )</h2>")
UNNAMED = re.compile(r"<summary>(?=<span class=\"toctree-toggle\")")  # of the theme: an arrow without words
INDEXED = re.compile(r'(<span class="target" id="index-\d+">)</span>([^<\s][^<]*)')  # the search shows what is in it
PNG = b"\x89PNG\r\n\x1a\n"


def size_of(path: Path) -> tuple[int, int] | None:
    """Width and height of a picture in pixels; None where they cannot be read."""
    data = path.read_bytes() if path.is_file() else b""
    if data.startswith(PNG):
        return struct.unpack(">II", data[16:24])
    box = BOX.search(data)
    return (round(float(box[1])), round(float(box[2]))) if box else None


def with_sizes(page: str, folder: Path) -> str:
    """A page whose pictures have sizes.

    Args:
        page: HTML.
        folder: that its addresses begin in.
    """

    def sized(found: re.Match) -> str:
        size = size_of(folder / unquote(found[1]))
        return found[0] if size is None else f'<img width="{size[0]}" height="{size[1]}" {found[0][5:]}'

    return IMAGE.sub(sized, page)


def with_one_top(page: str) -> str:
    """A page without the headings that the theme adds for print; where there is no other on top, they stay."""
    if page.count("<h1") < 2:
        return page
    return CONTENTS.sub(r"<p><strong>\1</strong></p>", PRINTED.sub(r"\1", page))


def finish(folder: Path) -> None:
    """Does it to all pages of a folder; a page to which it was done stays as it is."""
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        done = UNNAMED.sub('<summary aria-label="its pages">', with_one_top(with_sizes(text, path.parent)))
        done = INDEXED.sub(r"\1\2</span>", done)
        if done != text:
            path.write_text(done, encoding="utf-8")
