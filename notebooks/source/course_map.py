"""The map of the course: the model, drawn once, and for each lesson where in it we are.

    lesson 06 -> draw -> notebooks/maps/06.svg, shown below the lesson's title

Usage: python -m notebooks.source.course_map, after a change here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

MAPS = Path(__file__).resolve().parents[1] / "maps"
WIDTH, HEIGHT = 980, 268
INK, PALE, BLUE, PAPER = "#1a1a1a", "#8a8a8a", "#0072b2", "#ffffff"


@dataclass(frozen=True)
class Place:
    """A box of the map: where it stands, what it says, and the lessons that it belongs to."""

    x: int
    y: int
    width: int
    text: str
    lessons: str
    height: int = 34


PLACES = (
    Place(92, 34, 62, "tokens", "01"),
    Place(166, 34, 84, "embedding", "01"),
    Place(262, 34, 78, "+ position", "02"),
    Place(366, 34, 112, "self-attention", "03 04"),
    Place(386, 72, 72, "mask", "05", 20),
    Place(490, 34, 100, "feed-forward", "06"),
    Place(92, 128, 62, "tokens", "01"),
    Place(166, 128, 84, "embedding", "01"),
    Place(262, 128, 78, "+ position", "02"),
    Place(366, 128, 112, "self-attention", "03 04"),
    Place(386, 166, 72, "mask", "05", 20),
    Place(490, 128, 118, "cross-attention", "03 04 07"),
    Place(513, 166, 72, "mask", "05", 20),
    Place(620, 128, 100, "feed-forward", "06"),
    Place(746, 128, 78, "generator", "07"),
    Place(846, 128, 62, "search", "11"),
    Place(84, 208, 740, "training: loss, schedule, corpus", "09 10", 20),
    Place(84, 240, 128, "12 reading attention", "12", 20),
    Place(220, 240, 92, "13 positions", "13", 20),
    Place(320, 240, 120, "14 cost, memory", "14", 20),
    Place(448, 240, 106, "15 alternatives", "15", 20),
    Place(562, 240, 110, "16 other models", "16", 20),
    Place(680, 240, 100, "17 scaling out", "17", 20),
    Place(788, 240, 120, "18 errata lab", "18", 20),
)
# Frames around several places, drawn first.
FRAMES = (
    Place(76, 10, 756, "Transformer", "08", 188),
    Place(356, 16, 244, "encoder layer × N", "06", 82),
    Place(356, 110, 374, "decoder layer × N", "07", 82),
)
ARROWS = {  # by height, from left to right
    51: ((60, 92), (154, 166), (250, 262), (340, 366), (478, 490)),
    145: ((60, 92), (154, 166), (250, 262), (340, 366), (478, 490), (608, 620), (720, 746), (824, 846), (908, 926)),
}
WORDS = (
    (58, 55, "end", "source"), (58, 142, "end", "target"), (58, 156, "end", "so far"), (930, 142, "start", "next"),
    (930, 156, "start", "token"), (624, 84, "start", "memory"),
)  # fmt: skip


def draw(lesson: str) -> str:
    """The map as SVG: the lesson's places in color; for lesson 00 instead the lessons of each place."""
    shapes = [f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{PAPER}"/>']
    shapes += [_frame(place, _is_here(place, lesson), lessons=lesson == "00") for place in FRAMES]
    arrows = [(y, start, end) for y, pairs in ARROWS.items() for start, end in pairs]
    shapes += [f'<path d="M{x} {y}H{end - 3}" stroke="{PALE}" marker-end="url(#tip)"/>' for y, x, end in arrows]
    shapes += [f'<path d="M600 51H616V104H549V125" stroke="{PALE}" fill="none" marker-end="url(#tip)"/>']
    shapes += [_text(x, y, words, PALE, anchor) for x, y, anchor, words in WORDS]
    shapes += [_box(place, _is_here(place, lesson), lessons=lesson == "00") for place in PLACES]
    tip = '<marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6">'
    tip += f'<path d="M0 0L6 3L0 6z" fill="{PALE}"/></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    body = "\n".join([f'{head} font-family="sans-serif" font-size="12">', f"<defs>{tip}</defs>", *shapes])
    return f"{body}\n</svg>\n"


def show_where(notebook: NotebookNode) -> NotebookNode:
    """Puts the map below the title of a lesson, `# NN · Topic`; what has no number gets no map."""
    title, _, text = notebook.cells[0].source.partition("\n")
    if not (numbered := re.match(r"# (\d\d) · ", title)):
        return notebook
    lesson = numbered[1]
    here = ", ".join(dict.fromkeys(place.text for place in (*FRAMES, *PLACES) if _is_here(place, lesson)))
    words = "The map of the course" if lesson == "00" else f"You are here: {here}"
    notebook.cells[0].source = f"{title}\n\n![{words}](maps/{lesson}.svg)\n{text}"
    return notebook


def _is_here(place: Place, lesson: str) -> bool:
    return lesson in place.lessons.split()


def _box(place: Place, here: bool, *, lessons: bool) -> str:
    """A box; with its lessons below the words where there is room, else behind them."""
    fill, ink, stroke = (BLUE, PAPER, BLUE) if here else (PAPER, INK, PALE)
    x, y, words, below = place.x + place.width // 2, place.y + place.height // 2 + 4, place.text, ""
    if lessons and not words.startswith(place.lessons):
        if place.height < 30:
            words = f"{words} · {place.lessons}"
        else:
            below, y = _text(x, y + 8, place.lessons, BLUE, "middle"), y - 6
    size = f'x="{place.x}" y="{place.y}" width="{place.width}" height="{place.height}"'
    return f'<rect {size} rx="4" fill="{fill}" stroke="{stroke}"/>{_text(x, y, words, ink, "middle", bold=here)}{below}'


def _frame(place: Place, here: bool, *, lessons: bool) -> str:
    color = BLUE if here else PALE
    style = f'fill="{"#e3f0f8" if here else "none"}" stroke="{color}" stroke-width="{2 if here else 1}"'
    size = f'x="{place.x}" y="{place.y}" width="{place.width}" height="{place.height}"'
    words = f"{place.text} · {place.lessons}" if lessons else place.text
    label = _text(place.x + place.width - 8, place.y + 14, words, color, "end", bold=here)
    return f'<rect {size} rx="6" {style} stroke-dasharray="{"none" if here else "4 3"}"/>{label}'


def _text(x: int, y: int, words: str, color: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{color}" text-anchor="{anchor}"{weight}>{words}</text>'


def main() -> None:
    """Draws the map of every lesson."""
    from notebooks.source.build_lessons import lessons

    MAPS.mkdir(exist_ok=True)
    for source in lessons():
        (MAPS / f"{source.stem[:2]}.svg").write_text(draw(source.stem[:2]), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
