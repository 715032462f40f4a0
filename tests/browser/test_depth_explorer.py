"""The depth explorer in the browser: both charts are the probe's numbers, on logarithmic axes."""

import math

import pytest
from playwright.sync_api import Locator, expect

from course_lib.widgets import DepthExplorer
from tests.helpers.lab import eventually
from tests.helpers.pages import move, new_widget

# A stack of linear layers: quick, and with every way of building it.
CELL = """import torch
from course_lib.widgets import DepthExplorer


def probe(num_layers, residual, norm, seed):
    generator = torch.Generator().manual_seed(seed)
    vectors = [torch.randn(8, 32, generator=generator).requires_grad_()]
    for _ in range(num_layers):
        weight = torch.randn(32, 32, generator=generator) * 32**-0.5
        x = vectors[-1]
        y = (torch.layer_norm(x, (32,)) if norm == "pre" else x) @ weight
        y = x + y if residual else y
        vectors.append(torch.layer_norm(y, (32,)) if norm == "post" else y)
    return vectors, torch.autograd.grad(vectors[-1].square().sum(), vectors)
"""
CELLS = (CELL, "explorer = DepthExplorer(probe)\nexplorer")
PROBE: dict = {}
exec(CELL, PROBE)


explorer = new_widget


def expected(**state) -> dict:
    explorer = DepthExplorer(PROBE["probe"])
    for name, value in state.items():
        setattr(explorer, name, value)
    return explorer.view


@eventually
def draws(explorer: Locator, **state) -> None:
    """The first line of each chart has the probe's numbers: equal steps in their logarithm are equal heights."""
    view = expected(**state)
    for number, values in enumerate((view["gradients"], view["sizes"])):
        line = explorer.locator("svg[role=img]").nth(number).locator("polyline").first
        assert line.get_attribute("data-name") == view["name"]
        heights = [float(point.split(",")[1]) for point in line.get_attribute("points").split()]
        logs = [math.log10(value) for value in values]
        assert len(heights) == len(logs)
        span = math.ceil(max(logs) + 0.01) - math.floor(min(logs))  # decades that the axis shows
        for height, log in zip(heights, logs, strict=True):
            assert abs((heights[0] - height) / (260 - 12 - 44) - (log - logs[0]) / span) < 2e-3


def test_each_control_shows_the_probes_numbers(explorer):
    draws(explorer)
    for depth in (1, 48, 12):
        move(explorer, "layers", depth)
        draws(explorer, depth=depth)
    explorer.get_by_label("residuals").uncheck()
    draws(explorer, depth=12, residual=False)
    for words, norm in (("none", ""), ("post-norm (paper)", "post"), ("pre-norm", "pre")):
        explorer.get_by_label("norm", exact=True).select_option(words)
        draws(explorer, depth=12, residual=False, norm=norm)
    explorer.get_by_role("button", name="other weights").click()
    draws(explorer, depth=12, residual=False, norm="pre", seed=1)
    with pytest.raises(AssertionError):
        draws(explorer, depth=12, residual=True, norm="pre", seed=1, seconds=0.2)


def test_curves_can_be_kept_and_forgotten(explorer):
    for depth in (3, 6, 9, 12):
        explorer.get_by_role("button", name="keep these curves").click()
        move(explorer, "layers", depth)
        expect(explorer.locator("polyline").first).to_have_attribute("data-name", expected(depth=depth)["name"])
    lines = explorer.locator("svg[role=img]").nth(1).locator("polyline")
    names = lines.evaluate_all("nodes => nodes.map(n => n.dataset.name)")
    assert names == [expected(depth=depth)["name"] for depth in (12, 9, 6, 3)]
    explorer.get_by_role("button", name="forget the others").click()
    expect(explorer.locator("polyline")).to_have_count(2)


def test_an_axis_of_few_decades_names_each_of_them(explorer):
    """Logarithms of a short axis are not summed up from parts: 10⁻¹ and 1 are both there."""
    for depth, residual, norm in ((1, True, "pre-norm"), (3, False, "none"), (24, True, "none")):
        explorer.get_by_label("norm", exact=True).select_option(norm)
        explorer.get_by_label("residuals").set_checked(residual)
        move(explorer, "layers", depth)
        words = {"pre-norm": "pre", "none": ""}[norm]
        view = expected(norm=words, residual=residual, depth=depth)
        draws(explorer, norm=words, residual=residual, depth=depth)
        for number, values in enumerate((view["gradients"], view["sizes"])):
            logs = [math.log10(value) for value in values]
            decades = math.ceil(max(logs) + 0.01) - math.floor(min(logs))
            labels = explorer.locator("svg[role=img]").nth(number).locator("line[stroke-opacity]")
            stride = 1 if decades <= 6 else 2
            assert labels.count() in (decades // stride, decades // stride + 1) and labels.count() >= 2


def test_dragging_is_answered_soon(explorer, lab):
    slider = explorer.get_by_label("layers", exact=True)
    lab.answers_within(100, slider, range(1, 22), explorer.locator(".cw-message"))


def test_a_slow_kernel_is_asked_for_the_newest_value_only(explorer, lab):
    lab.run(
        "import time\nasked, quick = [], explorer._probe\n"
        "explorer._probe = lambda *key: (asked.append(key), time.sleep(0.2), quick(*key))[-1]"
    )
    explorer.get_by_label("layers", exact=True).evaluate(
        "node => { for (node.value = 1; node.value < 40; node.stepUp()) node.dispatchEvent(new Event('input')); }"
    )
    move(explorer, "layers", 40)
    draws(explorer, depth=40)
    assert 1 <= int(lab.run("print(len(asked))")) <= 3


def test_it_is_photographed(explorer, lab):
    explorer.get_by_role("button", name="keep these curves").click()
    explorer.get_by_label("residuals").uncheck()
    explorer.get_by_label("norm", exact=True).select_option("none")
    expect(explorer.locator(".cw-message")).to_contain_text("no residual, no norm")
    lab.photograph(explorer, "depth")
