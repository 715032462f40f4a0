"""The architecture map, operated by mouse and keyboard; all counts and shapes are compared with the library's."""

from dataclasses import replace

import pytest
from playwright.sync_api import Locator, expect

from course_lib.analysis.anatomy import stations
from course_lib.config import ModelConfig, model_preset
from tests.helpers.lab import eventually
from tests.helpers.pages import new_widget

CELLS = (
    "from course_lib import model_preset\nfrom course_lib.widgets import ArchitectureMap",
    'ArchitectureMap(model_preset("base", vocab_size=37_000))',
)
BASE, BIG = (model_preset(name, vocab_size=37_000) for name in ("base", "big"))
LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 4000)


widget = new_widget


@eventually
def shows(
    widget: Locator,
    config: ModelConfig,
    src_len: int = 7,
    tgt_len: int = 7,
    *,
    box: str = "encoder self-attention",
    measure: str = "parameters",
) -> None:
    """The page has the model's totals, the share of each box, and all that is known of one."""
    flops = sum(config.flop_counts(src_len, tgt_len).values())
    totals = {"parameters": config.num_parameters, "flops": flops}
    told = widget.locator(".cw-totals").inner_text()
    assert f"{config.num_parameters:,} parameters; " in told
    assert f" FLOPs for a pair of {src_len:,} and {tgt_len:,} tokens; " in told
    assert widget.locator(f".cw-station[aria-pressed='true'][data-name='{box}']").count() == 1
    assert widget.get_by_label("boxes show").input_value() == ("FLOPs" if measure == "flops" else "parameters")
    number, unit = told.split("; ")[1].split(" FLOPs")[0].split(" ")[:2]
    scale = {"million": 1e6, "billion": 1e9, "trillion": 1e12}[unit]
    assert float(number) * scale == pytest.approx(flops, rel=6e-3)
    expected = {station.name: station for station in stations(config, src_len, tgt_len)}
    found = widget.locator(".cw-station").evaluate_all(
        "boxes => boxes.map(b => [b.dataset.name, +b.dataset.share, "
        "...[...b.querySelectorAll('text')].map(text => text.textContent)])"
    )
    assert {name for name, *_ in found} == set(expected) and len(found) == len(expected)
    for name, share, label, words in found:
        count = getattr(expected[name], measure)
        assert share == pytest.approx(count / totals[measure]) and label == expected[name].label
        assert (words == "") == (count == 0) and (not words or abs(float(words[:-2]) - 100 * share) <= 0.0501)
    assert sum(share for _, share, *_ in found) == pytest.approx(1)
    details, chosen = widget.locator(".cw-details"), expected[box]
    assert details.locator("h4").inner_text() == f"{chosen.stack}: {chosen.label}"
    assert chosen.note in details.locator("p").inner_text()
    rows = details.locator("tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert rows == [[name, f"({', '.join(f'{size:,}' for size in shape)})"] for name, shape in chosen.shapes.items()]
    counts = details.locator("dd[data-count]").evaluate_all(
        "all => all.map(each => [+each.dataset.count, each.textContent])"
    )
    formulas = (chosen.parameter_formula, chosen.flop_formula)
    for (count, words), formula, total in zip(counts, formulas, (chosen.parameters, chosen.flops), strict=True):
        assert count == total
        times = f"{chosen.layers} × ({formula})" if chosen.layers > 1 else formula
        assert words == (f"{total:,} = {times}" if total else "none")


def slide(widget: Locator, name: str, value: float) -> None:
    widget.get_by_label(name, exact=True).fill(str(value))


# --- what is drawn ------------------------------------------------------------------------------


def test_each_box_tells_its_shapes_and_counts(widget):
    for station in stations(BASE, 7, 7):
        widget.locator(f"[data-name='{station.name}']").click()
        shows(widget, BASE, box=station.name)
    for wrong in (dict(box="generator"), dict(box="softmax", measure="flops"), dict(box="softmax", tgt_len=8)):
        with pytest.raises(AssertionError):
            shows(widget, BASE, seconds=0.2, **wrong)


def test_the_papers_models(widget):
    widget.get_by_role("button", name="big", exact=True).click()
    shows(widget, BIG)
    expect(widget.get_by_role("button", name="big", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(widget.get_by_role("button", name="base", exact=True)).to_have_attribute("aria-pressed", "false")
    widget.get_by_role("button", name="base", exact=True).click()
    shows(widget, BASE)
    with pytest.raises(AssertionError):
        shows(widget, BIG, seconds=0.2)


def test_each_slider_at_its_ends(widget):
    for name, field, low, high, back in (
        ("heads", "num_heads", 1, 16, 8),
        ("layers", "num_layers", 1, 12, 6),
        ("d_model", "d_model", 64, 2048, 512),
        ("d_ff", "d_ff", 64, 8192, 2048),
        ("subwords", "vocab_size", 1000, 64_000, 37_000),
    ):
        slider = widget.get_by_label(name, exact=True)
        assert (slider.get_attribute("min"), slider.get_attribute("max")) == (str(low), str(high))
        for value in (low, high):
            slide(widget, name, value)
            shows(widget, replace(BASE, **{field: value}))
        slide(widget, name, back)
        shows(widget, BASE)


def test_operations_grow_with_the_lengths(widget):
    widget.get_by_label("boxes show").select_option("FLOPs")
    for source, target in ((0, 0), (len(LENGTHS) - 1, 4), (8, len(LENGTHS) - 1)):
        slide(widget, "source tokens", source)
        slide(widget, "target tokens", target)
        shows(widget, BASE, LENGTHS[source], LENGTHS[target], measure="flops")
    with pytest.raises(AssertionError):
        shows(widget, BASE, 30, 3000, measure="flops", seconds=0.2)


def test_heads_that_do_not_fit_are_told_and_change_nothing_else(widget):
    slide(widget, "heads", 7)
    message = "d_model must be divisible by num_heads, got d_model=512, num_heads=7"
    expect(widget.locator(".cw-error")).to_have_text(message)
    shows(widget, BASE)
    slide(widget, "heads", 4)
    expect(widget.locator(".cw-error")).to_have_text("")
    shows(widget, replace(BASE, num_heads=4))


def test_the_keyboard_walks_from_box_to_box(widget):
    page = widget.page
    widget.get_by_role("button", name="base", exact=True).focus()
    seen = []
    for _ in range(10):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.dataset.name || document.activeElement.type"))
    assert seen == ["submit", *["range"] * 7, "select-one", "encoder feed-forward norm"]
    shows(widget, BASE, box="encoder feed-forward norm")
    for key, name in (
        ("ArrowDown", "encoder feed-forward"),
        ("ArrowDown", "encoder self-attention norm"),
        ("ArrowUp", "encoder feed-forward"),
        ("ArrowUp", "encoder feed-forward norm"),
        ("ArrowUp", "target ids"),
    ):
        page.keyboard.press(key)
        shows(widget, BASE, box=name)
    slider = widget.get_by_label("layers", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    shows(widget, replace(BASE, num_layers=7), box="target ids")


# --- how fast, how it looks ---------------------------------------------------------------------


def test_choosing_and_dragging_are_answered_at_once(widget, lab):
    boxes, details, drawn = widget.locator(".cw-station"), widget.locator(".cw-details"), widget.locator(".cw-map")
    lab.answers_within(50, boxes, [*range(1, 15), *range(13)], details, event="click")
    widths = [64 * number for number in range(1, 25)]
    lab.answers_within(100, widget.get_by_label("d_model", exact=True), widths, drawn)
    with pytest.raises(AssertionError):
        lab.answers_within(1, widget.get_by_label("layers", exact=True), [1, 2, 3], drawn)


def test_it_is_photographed(widget, lab):
    lab.photograph(widget, "architecture")
    widget.get_by_role("button", name="big", exact=True).click()
    widget.get_by_label("boxes show").select_option("FLOPs")
    slide(widget, "source tokens", 20)
    slide(widget, "target tokens", 20)
    widget.locator("[data-name='decoder cross-attention']").click()
    shows(widget, BIG, 3000, 3000, box="decoder cross-attention", measure="flops")
    lab.photograph(widget, "architecture_big")
