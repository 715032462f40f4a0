"""What the README shows as Python runs, its tables are those of the records, and its pages name what is there."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

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


def law_the_hours_are_those_of_the_table(page: str) -> None:
    minutes = {number: int(told) for number, told in re.findall(r"^\| \[(\d\d) [^|]*\| (\d+) \|", page, flags=re.M)}
    core, first, without, whole = re.search(
        r"lessons 00 to 10, (\d+) hours of reading \((\d+) for .* without (.*)\); all of them take (\d+)", page
    ).groups()
    left_out = re.findall(r"\d\d", without)
    for said, numbers in (
        (core, [number for number in minutes if number <= "10"]),
        (first, [number for number in minutes if number <= "10" and number not in left_out]),
        (whole, list(minutes)),
    ):
        hours = sum(minutes[number] for number in numbers) / 60
        assert abs(int(said) - hours) <= 0.75, f"{said} hours are told, and {hours:.1f} are in the table"


def test_the_hours_are_those_of_the_table(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    law_the_hours_are_those_of_the_table(page)
    with pytest.raises(AssertionError, match="are in the table"):
        law_the_hours_are_those_of_the_table(page.replace("| 55 |", "| 95 |"))


def law_brackets_are_quoted(page: str) -> None:
    """A shell such as zsh takes bare ones for a pattern; PowerShell does not."""
    page = re.sub(r"\nIn PowerShell.*?\n```\n.*?```", "", page, flags=re.S)
    bare = re.findall(r"pip install[^`\n]* \.\[\w+\]", page)
    assert not bare, f"brackets without quotes: {bare}"


def test_brackets_are_quoted(root: Path) -> None:
    for page in (root / "README.md", *(root / "docs").glob("*.md")):
        law_brackets_are_quoted(page.read_text(encoding="utf-8"))
    with pytest.raises(AssertionError, match="without quotes"):
        law_brackets_are_quoted("`pip install -e .[course]`")


def law_the_citation_is_that_of_the_package(citation: dict, package: dict) -> None:
    for part in ("version", "keywords"):
        assert citation[part] == package[part], f"{part}: {citation[part]} is cited, and it is {package[part]}"
    code, weights = package["license"].split(" AND LicenseRef-")  # the format of citations has no AND
    told = citation["license"] == code and weights.replace("-", " ") in citation.get("abstract", "").replace("-", " ")
    assert told, f"{code} and {weights} are not both cited"


def test_the_citation_is_that_of_the_package(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    package = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    law_the_citation_is_that_of_the_package(citation, package)
    for part, wrong in (("version", "9"), ("keywords", []), ("abstract", ""), ("license", "")):
        with pytest.raises(AssertionError, match="cited"):
            law_the_citation_is_that_of_the_package(citation | {part: wrong}, package)


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
