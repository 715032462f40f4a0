"""The depth explorer without a browser: what it shows is what the probe found, computed once for each stack."""

import pytest
import torch

from course_lib.widgets import DepthExplorer
from tests.helpers.laws import raised


def probe(num_layers, residual, norm, seed):
    """Invented numbers that tell what they are of."""
    generator = torch.Generator().manual_seed(1000 * seed + 10 * num_layers + 3 * residual + len(norm))
    draw = lambda: [torch.randn(4, generator=generator) for _ in range(num_layers + 1)]  # noqa: E731
    return draw(), draw()


def it_shows_what_the_probe_found(make):
    explorer = make(probe)
    for state in ((1, True, "pre", 0), (1, True, "", 0), (48, False, "post", 3), (5, True, "pre", 1)):
        depth, residual, norm, seed = state
        explorer.depth, explorer.residual, explorer.norm, explorer.seed = depth, residual, norm, seed
        vectors, gradients = probe(depth, residual, norm, seed)
        assert explorer.view["gradients"] == [each.norm().item() for each in gradients]
        assert explorer.view["sizes"] == [each.std().item() for each in vectors]
        assert f"{depth} layers" in explorer.view["name"] and f"seed {seed}" in explorer.view["name"]


class KnowsTheDepthOnly(DepthExplorer):
    def _compute(self):
        self._known = {(self.depth, *rest): view for (_, *rest), view in self._known.items()}
        super()._compute()


def test_it_shows_what_the_probe_found():
    it_shows_what_the_probe_found(DepthExplorer)
    with pytest.raises(AssertionError):
        it_shows_what_the_probe_found(KnowsTheDepthOnly)


def test_a_stack_is_probed_once():
    asked = []
    explorer = DepthExplorer(lambda *key: asked.append(key) or probe(*key))
    explorer.depth = 3
    explorer.depth = 24
    explorer.depth = 3
    assert asked == [(24, True, "pre", 0), (3, True, "pre", 0)]


@pytest.mark.parametrize("depth", [0, 49])
def test_other_depths_are_refused(depth):
    assert f"1..48, got {depth}" in str(raised(ValueError, lambda: DepthExplorer(probe, depth=depth)))


def test_its_picture_shows_the_gradients():
    explorer = DepthExplorer(probe, depth=6)
    figure = explorer.picture()
    assert list(figure.axes[0].lines[0].get_ydata()) == explorer.view["gradients"]
    assert figure.get_suptitle().startswith("6 layers, residual, pre-norm, seed 0")
