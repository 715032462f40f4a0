"""The offset explorer, operated by mouse and keyboard; what it shows is compared with the library."""

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, expect

from course_lib.widgets import OffsetExplorer
from course_lib.widgets.offset_explorer import BASES, ENCODINGS, LENGTH, VECTORS, WIDTHS
from tests.helpers.lab import THEMES, eventually
from tests.helpers.pages import move, new_widget

CELLS = ("from course_lib.widgets import OffsetExplorer", "explorer = OffsetExplorer()\nexplorer")
FIRST = dict(encoding="rotary", base=10_000, d_k=16, head=0, query=20, key=14, shift=8)
PIXELS = """canvas => ({
  width: canvas.width, height: canvas.height,
  data: [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data],
})"""
COLORS = """root => ['--cw-page', '--cw-accent', '--cw-second'].map((name) => {
  const probe = root.appendChild(document.createElement('span'));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
})"""
CLOCKS = """nodes => nodes.map((node) => ({ ...node.dataset,
  parts: [...node.querySelectorAll('.cw-part')].map((part) => part.textContent),
  hands: [...node.querySelectorAll('line')].map((hand) => ({ ...hand.dataset,
    x: Number(hand.getAttribute('x2')), y: Number(hand.getAttribute('y2')),
    dashed: hand.hasAttribute('stroke-dasharray') })) }))"""

explorer = new_widget


def library(state):
    """Scores, queries and keys of a state, as the library computes them."""
    widget = OffsetExplorer()
    for name, value in state.items():
        setattr(widget, name, value)
    scores, *rows = widget.compute()
    return scores[widget.head if len(scores) > 1 else 0], *rows


def number(words):
    return float(words.replace("−", "-"))


def law_the_matrix_is_the_librarys(explorer, state):
    """Each pixel is the mixture of the page and a color that its score says; circles are where the pair is."""
    scores = library(state)[0].float()
    pixels = explorer.locator("canvas").evaluate(PIXELS)
    assert (pixels["height"], pixels["width"]) == scores.shape
    page, accent, second = torch.tensor(explorer.evaluate(COLORS), dtype=torch.float32)
    ends = torch.where(scores[..., None] < 0, accent, second)
    expected = page + (scores / scores.abs().max()).abs()[..., None] * (ends - page)
    shown = torch.tensor(pixels["data"]).view(*scores.shape, 4)[..., :3]
    assert (shown - expected).abs().max() <= 0.51
    circles = explorer.locator("circle[data-query]").evaluate_all("nodes => nodes.map((node) => ({ ...node.dataset }))")
    places = [(int(circle["query"]), int(circle["key"])) for circle in circles]
    assert places == [(state["query"] + on, state["key"] + on) for on in sorted({0, state["shift"]})]


def law_the_words_are_true(explorer, state):
    """The score before and after the shift; and its whole row, along the axis."""
    scores = library(state)[0]
    told = explorer.locator(".cw-message").inner_text()
    for on in {0, state["shift"]}:
        found = re.search(rf"query {state['query'] + on}, key {state['key'] + on}: ([−\d.]+)", told)
        assert found and abs(number(found[1].rstrip(".")) - scores[state["query"] + on, state["key"] + on]) <= 0.00051
    assert ("words on" in told) == (state["shift"] > 0)
    lines = explorer.locator("polyline")
    assert lines.count() == len({0, state["shift"]})
    for line, on in enumerate(sorted({0, state["shift"]})):
        points = lines.nth(line).get_attribute("points").split()
        heights = np.array([float(point.split(",")[1]) for point in points])
        row = scores[state["query"] + on].double().numpy()
        assert lines.nth(line).get_attribute("data-name") == f"query at {state['query'] + on}"
        spread = np.ptp(row)
        assert spread == 0 or abs(np.corrcoef(heights, row)[0, 1] + 1) < 1e-4  # high is up, which is a small y


def law_the_hands_are_the_librarys(explorer, state):
    """Each clock has its pair of features of query and key, and what they add to the score."""
    _, queries, keys = library(state)
    clocks = explorer.locator("[data-pair]").evaluate_all(CLOCKS)
    if state["encoding"] not in VECTORS:
        assert not clocks
        return
    assert [int(clock["pair"]) for clock in clocks] == [round(place * (state["d_k"] / 2 - 1) / max(1, len(clocks) - 1))
                                                        for place in range(len(clocks))]  # fmt: skip
    assert len(clocks) == min(8, state["d_k"] // 2)
    rows = torch.cat([queries, keys]).unflatten(1, (-1, 2))
    length = 20 / rows.norm(dim=-1).max()
    places = {(name, state[name] + on) for name in ("query", "key") for on in (0, state["shift"])}
    for clock in clocks:
        assert {(hand["of"], int(hand["at"])) for hand in clock["hands"]} == places
        pair = slice(2 * int(clock["pair"]), 2 * int(clock["pair"]) + 2)
        for hand in clock["hands"]:
            right, up = (queries if hand["of"] == "query" else keys)[int(hand["at"]), pair] * length
            assert abs(hand["x"] - right) < 1e-3 and abs(-hand["y"] - up) < 1e-3
            assert hand["dashed"] == (int(hand["at"]) != state[hand["of"]])
        assert len(clock["hands"]) == 2 * len({0, state["shift"]})
        for on, part in zip(sorted({0, state["shift"]}), clock["parts"], strict=False):
            added = queries[state["query"] + on, pair] @ keys[state["key"] + on, pair] / math.sqrt(state["d_k"])
            assert abs(number(part) - added) <= 0.0051


LAWS = (law_the_matrix_is_the_librarys, law_the_words_are_true, law_the_hands_are_the_librarys)


def shows(explorer: Locator, **changes) -> None:
    for law in LAWS:
        eventually(law)(explorer, FIRST | changes)


def choose(explorer: Locator, **values) -> None:
    words = {"encoding": ENCODINGS.get, "base": "{:,}".format, "d_k": str}
    for name, value in values.items():
        if name in words:
            explorer.get_by_label(name, exact=True).select_option(words[name](value))
        else:
            move(explorer, name, value)


# --- what is shown ------------------------------------------------------------------------------


def test_the_first_state_is_the_lessons(explorer):
    shows(explorer)
    for law, wrong in zip(LAWS, (dict(base=10), dict(key=13), dict(shift=4)), strict=True):
        with pytest.raises(AssertionError):
            law(explorer, FIRST | wrong)


def test_every_control_at_its_extremes(explorer):
    places = (dict(query=0, key=47, shift=16), dict(query=47, key=0, shift=0), dict(query=47, key=47, shift=1))
    for encoding in ENCODINGS:
        choose(explorer, encoding=encoding)
        own = (
            [dict(base=BASES[0], d_k=WIDTHS[0]), dict(base=BASES[-1], d_k=WIDTHS[-1]), dict(base=1000, d_k=16)]
            if encoding in VECTORS
            else [dict(head=7), dict(head=0), dict(head=3)]
        )
        for changes, place in zip(own, places, strict=True):
            choose(explorer, **changes, **place)
            shows(explorer, encoding=encoding, **(dict(base=1000) | changes | place))


def test_controls_that_an_encoding_does_not_have_are_hidden(explorer):
    for encoding in ENCODINGS:
        choose(explorer, encoding=encoding)
        for name in ("base", "d_k", "head"):
            control = explorer.get_by_label(name, exact=True)
            visible = (name == "head") != (encoding in VECTORS)
            expect(control).to_be_visible() if visible else expect(control).to_be_hidden()


def test_a_shift_changes_words_with_sinusoids_and_nothing_else(explorer):
    """What the widget is for: the answer to its question, on the page."""
    for encoding in ENCODINGS:
        choose(explorer, encoding=encoding, shift=0)
        said = set()
        for shift in (1, 6, 11, 16):
            choose(explorer, shift=shift)
            shows(explorer, encoding=encoding, shift=shift)
            said |= set(re.findall(r"key \d+: ([−\d.]+\d)", explorer.locator(".cw-message").inner_text()))
        assert (len(said) == 1) == (encoding != "words"), (encoding, said)


# --- by mouse and keyboard ----------------------------------------------------------------------


def test_the_pair_is_dragged_over_the_matrix(explorer, lab):
    box, mouse = explorer.locator("canvas").bounding_box(), explorer.page.mouse

    def at(query, key):
        return box["x"] + (key + 0.5) / LENGTH * box["width"], box["y"] + (query + 0.5) / LENGTH * box["height"]

    mouse.move(*at(30, 10))
    mouse.down()
    shows(explorer, query=30, key=10)
    for (query, key), (rows, columns) in (((5, 40), (5, 40)), ((80, -20), (47, 0)), ((-9, 70), (0, 47))):
        mouse.move(*at(query, key), steps=3)
        shows(explorer, query=rows, key=columns)
    mouse.up()
    mouse.move(*at(20, 20))  # the pair is let go
    shows(explorer, query=0, key=47)
    eventually(lambda lab: _is(lab.run("print(explorer.query, explorer.key)"), "0 47"))(lab)


def _is(found, expected):
    assert found == expected


def test_the_keyboard_is_enough(explorer):
    explorer.get_by_label("encoding").focus()
    keyboard = explorer.page.keyboard
    keyboard.press("Tab")
    keyboard.press("ArrowUp")  # base
    keyboard.press("Shift+Tab")
    for keys in (["ArrowDown", "ArrowDown"], ["ArrowRight"], ["ArrowLeft"], ["Home"], ["End"]):
        for key in keys:
            keyboard.press(key)
        keyboard.press("Tab")
    shows(explorer, encoding="alibi", base=1000, head=1, query=19, key=0, shift=16)


# --- how fast, how it looks ---------------------------------------------------------------------


def test_sliding_is_answered_at_once(explorer, lab):
    for name, values in (("query", range(21, 45)), ("key", range(15, 39)), ("shift", range(1, 16))):
        lab.answers_within(50, explorer.get_by_label(name, exact=True), values, explorer)
    choose(explorer, encoding="alibi")
    expect(explorer.locator(".cw-message")).to_contain_text("Bias")
    lab.answers_within(50, explorer.get_by_label("head", exact=True), range(1, 8), explorer)


def test_the_matrix_takes_the_colors_of_the_theme(explorer, lab):
    first = lab.page.evaluate("document.body.dataset.jpThemeName")  # whichever the last test has left
    for theme in sorted(THEMES, key=lambda theme: theme == first):
        page = explorer.evaluate(COLORS)[0]
        lab.switch_theme(theme)
        expect(explorer).not_to_have_css("background-color", f"rgb({', '.join(map(str, page))})")
        shows(explorer)


def test_it_is_photographed(explorer, lab):
    lab.photograph(explorer, "offset_explorer")
    choose(explorer, encoding="words", d_k=32, query=40, key=47, shift=16)
    lab.photograph(explorer, "offset_explorer_words")
    choose(explorer, encoding="alibi", head=2)
    lab.photograph(explorer, "offset_explorer_alibi")
