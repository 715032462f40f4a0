"""What the README shows as Python runs, and the tree that it draws is the one that is there."""

import json
import re
from pathlib import Path

import pytest

from tests.bench.__main__ import table


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, flags=re.S)


def test_python_in_the_readme_runs(root: Path, capsys: pytest.CaptureFixture) -> None:
    found = blocks((root / "README.md").read_text(encoding="utf-8"))
    assert found
    for code in found:
        exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "Wo ist der Bahnhof?"


def law_the_tree_names_what_is_there(page: str, library: Path) -> None:
    tree = next(block for block in re.findall(r"```\n(.*?)```", page, flags=re.S) if "\ncourse_lib/" in block)
    inside = tree.split("\ncourse_lib/")[1].split("\ntests/")[0]
    named = set(re.findall(r"\b(\w+\.py|\w+/)", inside))
    there = {path.name + "/" * path.is_dir() for path in library.iterdir() if not path.name.startswith("__")}
    assert named == there, f"the README's tree lacks {there - named}, and has {named - there} too many"


def test_the_tree_names_what_is_there(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    law_the_tree_names_what_is_there(page, root / "course_lib")
    for old, new in (("recording.py ", ""), ("widgets/ ", "widgets/ sounds/ ")):
        assert old in page
        with pytest.raises(AssertionError, match="the README's tree"):
            law_the_tree_names_what_is_there(page.replace(old, new, 1), root / "course_lib")


def law_the_tables_are_those_that_were_measured(page: str, results: dict) -> None:
    for part in ("training", "decoding", "start"):
        assert table(results[part]["lines"]) in page, f"the README's table of {part} is not that of results.json"


def test_the_tables_are_those_that_were_measured(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    results = json.loads((root / "tests" / "bench" / "results.json").read_text(encoding="utf-8"))
    law_the_tables_are_those_that_were_measured(page, results)
    results["training"]["lines"][0]["ours"] += 1
    with pytest.raises(AssertionError, match="the README's table of training"):
        law_the_tables_are_those_that_were_measured(page, results)
