"""What the README shows as Python runs, its tables are those of the records, and its pages name what is there."""

import json
import re
from pathlib import Path

import pytest

from notebooks.source.readme import render
from tests.bench.__main__ import table


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, flags=re.S)


def test_python_in_the_readme_runs(root: Path, capsys: pytest.CaptureFixture) -> None:
    found = blocks((root / "README.md").read_text(encoding="utf-8"))
    assert found
    for code in found:
        exec(compile(code, "README.md", "exec"), {})
    first, second = capsys.readouterr().out.strip().splitlines()
    assert first == "Wo ist der Bahnhof?"
    assert second == "3 layers of cross-attention, ▁The ▁train ▁is ▁late . </s>"


def test_its_tables_are_those_of_today(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    assert render(page) == page, "run: make notebooks"
    for number in ("| 60 |", " BLEU,", "times as fast"):
        assert render(page.replace(number, "changed", 1)) == page


def links(page: str) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page) if "://" not in link]


def law_links_lead_somewhere(page: Path, text: str) -> None:
    for link in links(text):
        assert (page.parent / link).exists(), f"{page.name}: {link} is not there"


def test_links_of_all_pages_lead_somewhere(root: Path) -> None:
    pages = [*root.glob("*.md"), *(root / "docs").glob("*.md")]
    assert len(pages) >= 8
    for page in pages:
        law_links_lead_somewhere(page, page.read_text(encoding="utf-8"))
        with pytest.raises(AssertionError, match="nowhere.md is not there"):
            law_links_lead_somewhere(page, "[x](nowhere.md)")


def law_the_map_of_lessons_comes_soon(page: str) -> None:
    before = page.split("## The lessons")[0].splitlines()
    assert len(before) <= 50, f"the map of lessons is on line {len(before)}: two screens are too far"


def test_the_map_of_lessons_comes_soon(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    law_the_map_of_lessons_comes_soon(page)
    with pytest.raises(AssertionError, match="two screens"):
        law_the_map_of_lessons_comes_soon("\n" * 60 + page)


def law_the_tree_names_what_is_there(page: str, library: Path) -> None:
    tree = next(block for block in re.findall(r"```\n(.*?)```", page, flags=re.S) if "\ncourse_lib/" in block)
    inside = tree.split("\ncourse_lib/")[1].split("\ntests/")[0]
    named = set(re.findall(r"\b(\w+\.py|\w+/)", inside))
    there = {path.name + "/" * path.is_dir() for path in library.iterdir() if not path.name.startswith("__")}
    assert named == there, f"the drawn tree lacks {there - named}, and has {named - there} too many"


def test_the_tree_names_what_is_there(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    law_the_tree_names_what_is_there(page, root / "course_lib")
    for old, new in (("recording.py ", ""), ("widgets/ ", "widgets/ sounds/ ")):
        assert old in page
        with pytest.raises(AssertionError, match="the drawn tree"):
            law_the_tree_names_what_is_there(page.replace(old, new, 1), root / "course_lib")


def law_the_tables_are_those_that_were_measured(page: str, results: dict) -> None:
    for part in ("training", "decoding", "start"):
        assert table(results[part]["lines"]) in page, f"the table of {part} is not that of results.json"


def test_the_tables_of_the_benchmark_are_those_that_were_measured(root: Path) -> None:
    page = (root / "docs" / "performance.md").read_text(encoding="utf-8")
    results = json.loads((root / "tests" / "bench" / "results.json").read_text(encoding="utf-8"))
    law_the_tables_are_those_that_were_measured(page, results)
    results["training"]["lines"][0]["ours"] += 1
    with pytest.raises(AssertionError, match="the table of training"):
        law_the_tables_are_those_that_were_measured(page, results)
