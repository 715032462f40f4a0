"""Web pages as tests read them: what a page loads, where it leads, what stands in the outputs of its cells."""

import re
from html.parser import HTMLParser
from pathlib import Path

LOADING = {"src", "srcset", "data", "poster"}  # attributes whose address a browser fetches
FOLLOWED = {"next", "prev", "search", "index", "author", "canonical"}  # kinds of <link> that it does not fetch
STYLE = re.compile(r"""(?:url\(\s*|@import\s+(?!url))["']?([^"')\s;]+)""")

# Elements beyond the right edge that nothing around them scrolls.
TOO_WIDE = """() => [...document.querySelectorAll('.bd-article *')].filter((node) => {
  if (node.getBoundingClientRect().right <= document.documentElement.clientWidth + 1) return false;
  for (let around = node; around; around = around.parentElement) {
    if (/auto|scroll|hidden/.test(getComputedStyle(around).overflowX)) return false;
  }
  return true;
}).map((node) => node.outerHTML.slice(0, 100))"""


class WebPage(HTMLParser):
    """A page of the book.

    Args:
        path: of the file.

    Attributes:
        ids: what an address may name after #.
        links: addresses that a reader follows.
        loads: addresses that the browser fetches.
        figures: the words for each picture in an output of a cell.
        folds: whether each folded cell is open at first.
        widgets: cells whose widget shows its first state.
        headings: levels, from 1 on.
        images: source and words of each picture; None where it has no words, not even empty ones.
    """

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.figures: list[str] = []
        self.folds: list[bool] = []
        self.widgets: list[str] = []
        self.headings: list[int] = []
        self.images: list[tuple[str, str | None]] = []
        self._divisions: list[bool] = []  # for each that is open, whether it is the output of a cell
        self._styles = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {name: value or "" for name, value in attrs}
        classes = about.get("class", "").split()
        self.ids |= {about[name] for name in ("id", "name") if name in about}
        self.loads += [about[name] for name in LOADING & about.keys() if tag != "object" or name == "data"]
        self.loads += STYLE.findall(about.get("style", ""))
        if "href" in about:
            fetched = tag == "link" and not set(about.get("rel", "").split()) & FOLLOWED
            (self.loads if fetched else self.links).append(about["href"])
        if tag == "div":
            self._divisions.append("cell_output" in classes)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img":
            self.images.append((about.get("src", ""), about.get("alt")))
        if tag == "img" and any(self._divisions):
            self.figures.append(about.get("alt", ""))
        if tag == "details" and "above-input" in classes:
            self.folds.append("open" in about)
        if "course-widget" in classes:
            self.widgets.append(about["data-cell"])
        self._styles = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self._divisions.pop()
        self._styles = False

    def handle_data(self, data: str) -> None:
        if self._styles:
            self.loads += STYLE.findall(data)
