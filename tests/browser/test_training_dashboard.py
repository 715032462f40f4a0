"""The training dashboard in the browser: it moves while the kernel is busy, and shows the history's own numbers."""

import json
import math

import pytest
from playwright.sync_api import Locator, expect

from course_lib.widgets.base import short
from tests.helpers.lab import Lab, eventually

SETUP = """import json
import time
import torch
from course_lib.config import ModelConfig
from course_lib.data.batches import BucketedBatches, encode_pairs
from course_lib.data.course import load_course
from course_lib.widgets import LiveTraining
from course_lib.training import train_preset
from course_lib.tokenizer import Tokenizer
from course_lib.training import fit
from course_lib.transformer import Transformer
from course_lib.translator import Translator
torch.set_num_threads(1)
corpus = load_course(num_train=900)
tokenizer = Tokenizer.train((text for pair in corpus.train for text in (pair.src, pair.tgt)), 300)
sizes = dict(d_model=32, num_heads=2, num_layers=1, d_ff=64, dropout=0.0)
translator = Translator(Transformer(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes)), tokenizer)
recipe = train_preset("mini", epochs=3, batch_tokens=256)
batches = BucketedBatches(encode_pairs(tokenizer, corpus.train), recipe.batch_tokens)
valid = BucketedBatches(encode_pairs(tokenizer, corpus.valid[:40]), 512)"""
TRAIN = """live = LiveTraining(translator, ["The <b>cat</b> sleeps.", "The dog sees the cat."])
def on_step(model, history):
    live.on_step(model, history)
    time.sleep(0.02)  # on a fast machine, too, the run takes its time
watch = dict(on_step=on_step, on_epoch=live.on_epoch, progress=False)
history = fit(translator.model, batches, recipe, valid=valid, **watch)"""
HISTORY = "print(json.dumps([history.losses, history.rates, history.epochs, history.total_steps]))"


@pytest.fixture(scope="module")
def trained(lab: Lab) -> list:
    """The history of the run on the page; while it went on, the page moved, and what was chosen stayed so."""
    lab.open_cells("training", SETUP, TRAIN)
    lab.start_all()
    dashboard = lab.widget()
    expect(dashboard.locator("polyline").first).to_be_visible(timeout=120_000)
    show = dashboard.get_by_label("show", exact=True)
    show.select_option("learning rate")
    chart = dashboard.locator("svg[role=img]")
    chart.focus()
    lab.page.keyboard.press("Home")
    lab.page.keyboard.press("ArrowRight")
    expect(dashboard.locator(".cw-message")).to_contain_text("step 2: loss ")
    second = dashboard.locator(".cw-message").inner_text()
    seen, views = {dashboard.locator(".cw-row span").first.inner_text()}, set()
    while not lab.is_done():
        seen.add(dashboard.locator(".cw-row span").first.inner_text())
        if len(seen) == 4:  # drawn anew, and again
            expect(chart).to_be_focused()
            expect(dashboard.locator(".cw-message")).to_have_text(second)
            seen.add("the chart kept the focus")
            lab.page.keyboard.press("ArrowRight")
        views.add(dashboard.evaluate("node => node.dataset.view ||= String(Math.random())"))
        lab.page.wait_for_timeout(100)
    lab.check_outputs()
    assert "the chart kept the focus" in seen
    expect(show).to_have_value("learning rate")
    assert len(views) <= 2, "only the end of the cell may bring a new view, beside the picture that is stored"
    assert len(seen) > 5, f"the page stood still: {seen}"
    return json.loads(lab.run(HISTORY))


@pytest.fixture
def dashboard(lab: Lab, trained: list) -> Locator:
    found = lab.widget()
    found.get_by_label("show", exact=True).select_option("loss")
    found.get_by_label("logarithmic").uncheck()
    return found


@eventually
def draws(dashboard: Locator, number: int, values: list[float], up=lambda value: value) -> None:
    """Heights of a line are in proportion to differences of the values."""
    points = dashboard.locator("polyline").nth(number).get_attribute("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    values = list(map(up, values))
    assert len(heights) == len(values)
    low, high = values.index(min(values)), values.index(max(values))
    scale = (heights[low] - heights[high]) / (values[high] - values[low])
    for height, value in zip(heights, values, strict=True):
        assert abs((heights[low] - height) / scale - (value - values[low])) <= 0.15 / scale  # points are rounded to 0.1


def test_the_lines_are_the_history(dashboard, trained):
    losses, rates, epochs, total = trained
    expect(dashboard.locator("progress")).to_have_attribute("value", "1")
    expect(dashboard.locator(".cw-row span").first).to_contain_text(f"step {total} of {total}")
    assert total == len(losses) <= 400
    draws(dashboard, 0, losses)
    draws(dashboard, 1, [each["valid_loss"] for each in epochs])
    with pytest.raises(AssertionError):
        draws(dashboard, 0, rates, seconds=0.2)
    dashboard.get_by_label("show", exact=True).select_option("learning rate")
    expect(dashboard.locator("polyline")).to_have_count(1)
    draws(dashboard, 0, rates)


def test_the_axis_can_be_logarithmic(dashboard, trained):
    before = dashboard.locator("polyline").first.get_attribute("points")
    dashboard.get_by_label("logarithmic").check()
    expect(dashboard.locator("polyline").first).not_to_have_attribute("points", before)
    draws(dashboard, 0, trained[0], math.log10)


def test_pointing_reads_a_step(dashboard, trained):
    dashboard.locator("svg[role=img]").hover(position={"x": 300, "y": 100})
    expect(dashboard.locator(".cw-message")).to_contain_text(": loss ")
    step, rest = dashboard.locator(".cw-message").inner_text().removeprefix("step ").split(": loss ")
    loss, rate = rest.split(", learning rate ")
    losses, rates = trained[:2]
    assert loss == f"{losses[int(step) - 1]:.3f}" and rate == short(rates[int(step) - 1], 2)


def test_samples_stand_below_as_text(dashboard, lab, trained):
    table = lab.page.locator(".jp-OutputArea-output table").last
    expect(table.locator("th").nth(1)).to_have_text("The <b>cat</b> sleeps.")
    assert table.locator("b").count() == 0
    assert table.locator("tbody tr").last.locator("td").first.inner_text() == str(len(trained[0]))


def test_it_is_photographed(dashboard, lab):
    lab.photograph(dashboard, "training")
