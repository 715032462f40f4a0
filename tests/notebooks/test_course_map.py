"""The map below each title: it stands there, shows the lesson's places, and is what today's code draws."""

from xml.etree import ElementTree

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from notebooks.source import build_lessons as build
from notebooks.source import course_map
from notebooks.source.course_map import BLUE, FRAMES, HEIGHT, MAPS, PLACES, WIDTH, draw, show_where

LESSONS = [path.stem for path in build.lessons()]
SVG = "{http://www.w3.org/2000/svg}"


def law_a_lesson_has_its_map(lesson, maps):
    number = lesson[:2]
    text = nbformat.read(build.NOTEBOOKS / f"{lesson}.ipynb", as_version=4).cells[0].source
    assert text.splitlines()[2].endswith(f"](maps/{number}.svg)")
    assert maps.get(f"{number}.svg") == draw(number), "run `python -m notebooks.source.course_map`"


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_its_map(lesson):
    maps = {path.name: path.read_text(encoding="utf-8") for path in MAPS.iterdir()}
    assert len(maps) == len(LESSONS)
    law_a_lesson_has_its_map(lesson, maps)
    with pytest.raises(AssertionError, match="course_map"):
        law_a_lesson_has_its_map(lesson, maps | {f"{lesson[:2]}.svg": draw("99")})


def colored(lesson):
    """What is written on the blue boxes and frames."""
    tree = ElementTree.fromstring(draw(lesson))
    return {text.text for text in tree.iter(f"{SVG}text") if text.get("font-weight") == "bold"}


def test_the_places_of_a_lesson_are_in_color():
    assert colored("00") == set()
    assert colored("03") == {"self-attention", "cross-attention"}
    assert colored("06") == {"encoder layer × N", "feed-forward"}
    assert colored("08") == {"Transformer"} and colored("15") == {"15 alternatives"}
    for lesson in map("{:02}".format, range(1, 19)):
        assert colored(lesson), f"lesson {lesson} is nowhere on the map"
        assert draw(lesson).count(BLUE) > 1


def test_every_place_is_on_the_paper_and_none_lies_on_another():
    for place in (*PLACES, *FRAMES):
        assert place.x >= 0 and place.x + place.width <= WIDTH and place.y + place.height <= HEIGHT
    for index, one in enumerate(PLACES):
        for two in PLACES[index + 1 :]:
            beside = one.x + one.width <= two.x or two.x + two.width <= one.x
            assert beside or one.y + one.height <= two.y or two.y + two.height <= one.y, (one.text, two.text)


def test_what_has_no_number_has_no_map():
    notebook = new_notebook(cells=[new_markdown_cell("# A toy\n\ntext")])
    assert show_where(notebook).cells[0].source == "# A toy\n\ntext"
    notebook.cells[0].source = "# 06 · Encoder\n#\ntext"
    assert "![You are here: encoder layer × N, feed-forward](maps/06.svg)" in show_where(notebook).cells[0].source


def test_all_maps_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(course_map, "MAPS", tmp_path / "maps")
    course_map.main()
    assert {path.stem for path in (tmp_path / "maps").iterdir()} == {lesson[:2] for lesson in LESSONS}
