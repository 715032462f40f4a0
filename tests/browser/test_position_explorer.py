"""The position explorer, operated by mouse and keyboard; what it shows is compared with the library."""

import math

import pytest
import torch
from playwright.sync_api import Locator, expect

from course_lib.position import sinusoidal
from course_lib.widgets.position_explorer import BASES
from tests.helpers.lab import THEMES, Lab, eventually
from tests.helpers.pages import new_widget

CELLS = ("from course_lib.widgets import PositionExplorer", "explorer = PositionExplorer()\nexplorer")
FIRST = dict(length=64, d_model=32, base=10_000, first=5, second=12, offset=3)
COLORS = """root => ['--cw-page', '--cw-accent', '--cw-second'].map((name) => {
  const probe = root.appendChild(document.createElement('span'));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
})"""
PIXELS = """canvas => ({
  width: canvas.width, height: canvas.height,
  data: [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data],
})"""
CLOCKS = """nodes => nodes.map((node) => ({ ...node.dataset, hands: [...node.querySelectorAll('line')].map((hand) => ({
  x: Number(hand.getAttribute('x2')), y: Number(hand.getAttribute('y2')),
  dashed: hand.hasAttribute('stroke-dasharray'),
})) }))"""
LABELS = {"first": "first position", "second": "second position"}


explorer = new_widget


def set_to(explorer: Locator, **values) -> None:
    for name, value in values.items():
        if name == "base":
            explorer.get_by_label("base").select_option(f"{value:,.0f}")
        else:
            explorer.get_by_label(LABELS.get(name, name), exact=True).fill(str(value))


def law_the_table_is_the_librarys(explorer, state):
    """Each pixel is the mixture of the page and a color that its number says."""
    table = sinusoidal(state["length"], state["d_model"], base=state["base"])
    pixels = explorer.locator("canvas").evaluate(PIXELS)
    assert (pixels["height"], pixels["width"]) == table.shape
    page, accent, second = torch.tensor(explorer.evaluate(COLORS), dtype=torch.float32)
    ends = torch.where(table[..., None] < 0, accent, second)
    expected = page + table.abs()[..., None] * (ends - page)
    shown = torch.tensor(pixels["data"]).view(*table.shape, 4)[..., :3]
    assert (shown - expected).abs().max() <= 0.51
    marks = explorer.locator(".cw-mark[data-position]").evaluate_all("nodes => nodes.map(n => n.dataset.position)")
    moved = [state[name] + on for name in ("first", "second") for on in sorted({0, state["offset"]})]
    assert [int(mark) for mark in marks] == [position for position in moved if position < state["length"]]


def law_the_products_are_the_librarys(explorer, state):
    """The curve, and the two products in words."""
    table = sinusoidal(state["length"] + state["offset"], state["d_model"], base=state["base"])
    products, most = table @ table.T, state["d_model"] // 2
    curve = explorer.locator(".cw-curve").get_attribute("data-values").split()
    expected = products[state["first"], : state["length"]] / most
    torch.testing.assert_close(torch.tensor([float(each) for each in curve]), expected, rtol=0, atol=2e-5)
    told = explorer.locator(".cw-message").first.inner_text().replace("−", "-")
    for on in {0, state["offset"]}:
        first, second = state["first"] + on, state["second"] + on
        words = f"PE({first}) · PE({second}) = "
        assert words in told
        said = told.split(words)[1].split()[0].rstrip(";")
        assert abs(float(said) - products[first, second].item()) <= 0.0051
    assert f"of at most {most}" in told and ("words on" in told) == (state["offset"] > 0)


def law_the_hands_are_rows_of_the_table(explorer, state):
    """Each clock has its pair's coordinates of four rows, and says the angle between them."""
    table = sinusoidal(256, state["d_model"], base=state["base"])
    clocks = explorer.locator("[data-pair]").evaluate_all(CLOCKS)
    assert len(clocks) == min(8, state["d_model"] // 2)
    assert int(clocks[0]["pair"]) == 0 and int(clocks[-1]["pair"]) == (state["d_model"] // 2 - 1) * (len(clocks) > 1)
    for clock in clocks:
        pair = int(clock["pair"])
        turn = state["offset"] / state["base"] ** (2 * pair / state["d_model"])
        assert abs(float(clock["turn"]) - turn) <= 1e-6
        assert [hand["dashed"] for hand in clock["hands"]] == [True, False] * 2
        for number, hand in enumerate(clock["hands"]):
            name, length = ("first", 18) if number < 2 else ("second", 11.7)
            row = table[state[name] + state["offset"] * hand["dashed"]]
            assert abs(hand["x"] / length - row[2 * pair]) <= 1e-4, (pair, hand)
            assert abs(-hand["y"] / length - row[2 * pair + 1]) <= 1e-4, (pair, hand)


LAWS = (law_the_table_is_the_librarys, law_the_products_are_the_librarys, law_the_hands_are_rows_of_the_table)


def shows(explorer: Locator, **changes) -> None:
    for law in LAWS:
        eventually(law)(explorer, FIRST | changes)


@eventually
def kernel_has(lab: Lab, **expected) -> None:
    assert lab.run(f"print({{name: getattr(explorer, name) for name in {list(expected)}}})") == str(expected)


# --- what is shown ------------------------------------------------------------------------------


def test_the_first_state_is_the_lessons(explorer):
    shows(explorer)
    expect(explorer.locator(".cw-message").first).to_have_text(
        "PE(5) · PE(12) = 11.43 of at most 16; 3 words on, PE(8) · PE(15) = 11.43"
    )
    for law, wrong in zip(LAWS, (dict(base=1000), dict(first=6), dict(offset=4)), strict=True):
        with pytest.raises(AssertionError):
            law(explorer, FIRST | wrong)


def test_every_control_at_its_extremes(explorer, lab):
    for changes in (
        dict(length=128, d_model=64, first=127, second=0, offset=32),
        dict(length=2, d_model=2, first=0, second=1, offset=0),
        dict(length=33, d_model=6, first=32, second=32, offset=1),
    ):
        for base in BASES:
            set_to(explorer, **changes, base=base)
            shows(explorer, **changes, base=base)
        kernel_has(lab, **changes, base=base)


def test_a_shorter_table_takes_the_positions_along(explorer, lab):
    set_to(explorer, second=50, length=10)
    shows(explorer, second=9, length=10)
    expect(explorer.get_by_label("second position")).to_have_attribute("max", "9")
    kernel_has(lab, first=5, second=9, length=10)


def test_the_same_offset_is_the_same_turn_and_the_same_product(explorer):
    """What the widget is for: the answer to its question, on the page."""
    said = set()
    for offset in range(0, 33, 8):
        set_to(explorer, offset=offset)
        shows(explorer, offset=offset)
        said.add(explorer.locator(".cw-message").first.inner_text().split(" = ")[-1].split()[0])
    assert said == {"11.43"}


def test_few_short_waves_make_far_positions_alike(explorer):
    """The second question: at distance 19 both hands are back where they were, nearly."""
    set_to(explorer, d_model=4, base=10, first=0)
    shows(explorer, d_model=4, base=10, first=0)
    curve = [float(each) for each in explorer.locator(".cw-curve").get_attribute("data-values").split()]
    assert curve[19] > 0.95 > max(curve[4:19])


# --- by mouse -----------------------------------------------------------------------------------


def row_of(explorer: Locator, position: int, length: int = 64, column: float = 0.5) -> tuple[float, float]:
    """Where a row is on the page."""
    box = explorer.locator("canvas").bounding_box()
    return box["x"] + column * box["width"], box["y"] + (position + 0.5) / length * box["height"]


def test_marks_are_dragged_along_the_table(explorer, lab):
    mouse = explorer.page.mouse
    for start, end, changes in ((6, 30, dict(first=30)), (13, 60, dict(first=30, second=60))):
        mouse.move(*row_of(explorer, start))
        mouse.down()
        mouse.move(*row_of(explorer, end), steps=5)
        shows(explorer, **changes)
        mouse.up()
    mouse.move(*row_of(explorer, 29))
    mouse.down()
    for far, position in ((-20, 0), (90, 63)):
        mouse.move(*row_of(explorer, far))
        shows(explorer, first=position, second=60)
    mouse.up()
    mouse.move(*row_of(explorer, 40))  # the mark is let go
    shows(explorer, first=63, second=60)
    kernel_has(lab, first=63, second=60)


def test_the_second_position_is_dragged_along_the_curve(explorer):
    box, mouse = explorer.locator("svg", has=explorer.page.locator(".cw-curve")).bounding_box(), explorer.page.mouse
    mouse.move(box["x"] + 28 + 334 * 20 / 63, box["y"] + 40)
    mouse.down()
    shows(explorer, second=20)
    for far, position in ((0, 0), (400, 63)):
        mouse.move(box["x"] + far, box["y"] + 40)
        shows(explorer, second=position)
    mouse.up()


def test_pointing_at_the_table_tells_the_number(explorer):
    table = sinusoidal(64, 32)
    for position, dimension in ((0, 0), (5, 9), (63, 31), (20, 4)):
        explorer.page.mouse.move(*row_of(explorer, position, column=(dimension + 0.5) / 32))
        around = 2 * math.pi * 10_000 ** ((dimension - dimension % 2) / 32)
        words = f"{around:,.1f}" if around < 100 else f"{around:,.0f}"
        number = f"{table[position, dimension]:.3f}".replace("-", "−")
        expect(explorer.locator(".cw-message").last).to_have_text(
            f"position {position}, dimension {dimension}: {'cosine' if dimension % 2 else 'sine'} of pair "
            f"{dimension // 2}, which comes round in {words} words: {number}"
        )


# --- by keyboard --------------------------------------------------------------------------------


def test_the_keyboard_is_enough(explorer):
    explorer.get_by_label("length").focus()
    keyboard = explorer.page.keyboard
    for keys, changes in (
        (["ArrowRight"], dict(length=65)),
        (["ArrowLeft"], dict(d_model=30)),
        (["ArrowUp"], dict(base=1000)),
        (["End"], dict(first=64)),
        (["Home"], dict(second=0)),
        (["ArrowUp", "PageUp"], dict(offset=4)),
    ):
        for key in keys:
            keyboard.press(key)
        for name, value in changes.items():
            if name not in ("base", "offset"):
                expect(explorer.get_by_label(LABELS.get(name, name), exact=True)).to_have_value(str(value))
        keyboard.press("Tab")
    offset = int(explorer.get_by_label("offset").input_value())
    assert offset > 4  # how far Page Up goes is the browser's choice
    shows(explorer, length=65, d_model=30, base=1000, first=64, second=0, offset=offset)


# --- how fast, how it looks ---------------------------------------------------------------------


def test_sliding_is_answered_at_once(explorer, lab):
    for name, values in (
        ("second", range(20, 44)),
        ("offset", range(8, 32)),
        ("length", range(70, 118, 2)),
        ("d_model", range(12, 60, 2)),
    ):
        lab.answers_within(50, explorer.get_by_label(LABELS.get(name, name), exact=True), values, explorer)


def test_the_table_takes_the_colors_of_the_theme(explorer, lab):
    first = lab.page.evaluate("document.body.dataset.jpThemeName")  # whichever the last test has left
    for theme in sorted(THEMES, key=lambda theme: theme == first):
        page = explorer.evaluate(COLORS)[0]
        lab.switch_theme(theme)
        expect(explorer).not_to_have_css("background-color", f"rgb({', '.join(map(str, page))})")
        shows(explorer)


def test_it_is_photographed(explorer, lab):
    lab.photograph(explorer, "position_explorer")
    set_to(explorer, length=128, d_model=64, base=10, first=127, second=40, offset=32)
    explorer.page.mouse.move(*row_of(explorer, 60, 128, 0.3))
    lab.photograph(explorer, "position_explorer_extreme")
