"""What is recorded for widgets in the page: it is what the library computes, and as the lesson begins."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.source.book_alive import KEPT
from notebooks.source.book_recorded import Table, ask, defined, one_thread, packed, recordings
from notebooks.source.book_recordings import DRAWN, PLACES, RECORDED, translator
from tests.helpers.laws import changed, tells_apart

NAMES = sorted(RECORDED)
MOST_BYTES = 600_000  # of a recording, as a static host sends it
ASKED = 6  # of its states, where they are compared


@pytest.fixture(scope="module")
def stored(installed: None) -> dict[str, dict]:
    files = recordings(KEPT, RECORDED)
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items()}


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(packed(value)))


def law_a_recording_is_what_the_library_computes(name: str) -> Callable[[dict], None]:
    def law(recording: dict) -> None:
        recorded = RECORDED[name]
        with one_thread():
            widget = recorded.make()
            assert set(recording["start"]) == set(recorded.kind.class_own_traits(sync=True))
            for trait, value in recording["start"].items():
                assert value == as_json(getattr(widget, trait)), f"{name} begins with another {trait}"
            for table, said in zip(recorded.tables, recording["tables"], strict=True):
                assert said["inputs"] == as_json(table.inputs) and len(said["at"]) == len(table.keys)
                some = random.Random(3).sample(range(len(table.keys)), min(ASKED, len(table.keys)))
                for number in some:
                    law_an_answer_is_the_librarys(widget, table, number, said)

    return law


def law_an_answer_is_the_librarys(widget: Any, table: Table, number: int, said: dict) -> None:
    for key in (table.keys[0 if number else -1], table.keys[number]):  # from elsewhere
        ask(widget, dict(zip(table.inputs, key, strict=True)))
    state = said["states"][said["at"][number]]
    for trait in table.answers:
        assert state[trait] == as_json(getattr(widget, trait)), f"another {trait} for {table.keys[number]}"


def swapped(recording: dict) -> None:
    """Each key of the first table leads to another one's state."""
    at = recording["tables"][0]["at"]
    at[:] = at[1:] + at[:1]


def another_start(recording: dict) -> None:
    name = next(name for name, value in recording["start"].items() if isinstance(value, int | float))
    recording["start"][name] += 1


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_what_the_library_computes(stored: dict[str, dict], name: str) -> None:
    law = law_a_recording_is_what_the_library_computes(name)
    tells_apart(law, stored[name], *(changed(change)(stored[name]) for change in (swapped, another_start)))


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_begins_as_its_lesson_does(root: Path, name: str) -> None:
    recorded = RECORDED[name]
    notebook = nbformat.read(root / "notebooks" / f"{recorded.lesson}.ipynb", as_version=4)
    (cell,) = (each for each in notebook.cells if each.source.splitlines()[-1:] == [recorded.last])
    assert recorded.make().first_state()[0]["text/plain"] == cell.outputs[-1].data["text/plain"]


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_small_and_begins_with_its_first_key(stored: dict[str, dict], name: str) -> None:
    text = json.dumps(stored[name], ensure_ascii=False, separators=(",", ":"))
    size = len(gzip.compress(text.encode()))
    print(f"{name}: {size / 1000:.0f} kB")
    assert size <= MOST_BYTES
    for table in stored[name]["tables"]:
        for trait, values in table["inputs"].items():
            assert stored[name]["start"][trait] == values[0]
    if name == "sampling_sliders":
        assert max(len(state["pieces"]) for state in stored[name]["tables"][0]["states"]) <= len(PLACES)


def test_only_what_is_named_is_taken_from_a_lesson() -> None:
    found = defined("06_encoder", "Switched", "build")
    assert callable(found["build"]) and "through_the_stack" not in found and "torch" in found
    with pytest.raises(ValueError, match=r"06_encoder.py defines no \['nothing'\]"):
        defined("06_encoder", "build", "nothing")


def test_what_a_widget_refuses_is_not_recorded() -> None:
    refused = Table({"text": (DRAWN[0], "")}, ("pieces",))
    widget = RECORDED["sampling_sliders"].make()
    with pytest.raises(ValueError, match="SamplingSliders refuses {'text': ''}"):
        ask(widget, dict(zip(refused.inputs, refused.keys[1], strict=True)))
    assert translator("course") is translator("course")
