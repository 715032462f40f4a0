"""The experiment on depth: its task has the answer that it says, its stacks are what the sides name."""

import math
from unittest import mock

import pytest
import torch
from torch import nn

from course_lib.experiments import Chaser, chase_loss, chased_share, depth, draw_names, look_up, own_share, train_chaser
from course_lib.experiments.depth import CHILDREN, D_MODEL, GRID, SwitchedPath
from tests.helpers.laws import tells_apart

SEED = 3


def some_draws(number=20):
    return draw_names(number, torch.Generator().manual_seed(SEED))


def law_no_name_is_drawn_twice(draw):
    gives_to = draw(200, torch.Generator().manual_seed(SEED))
    assert gives_to.shape == (200, len(CHILDREN))
    assert (gives_to.sort(dim=1).values == torch.arange(len(CHILDREN))).all()
    assert (gives_to.float().mean(dim=0) - 3.5).abs().max() < 0.7  # nobody is preferred
    assert len({tuple(row) for row in gives_to.tolist()}) > 190


def test_no_name_is_drawn_twice():
    with_repeats = lambda number, generator: torch.randint(8, (number, 8), generator=generator)  # noqa: E731
    one_draw = lambda number, generator: torch.arange(8).expand(number, 8)  # noqa: E731
    tells_apart(law_no_name_is_drawn_twice, draw_names, with_repeats, one_draw)


def law_a_look_up_goes_to_whom_one_gives_to(chase):
    for row, reached in zip(some_draws().tolist(), chase(some_draws(), 2).tolist(), strict=True):
        for child in range(len(CHILDREN)):
            assert reached[child] == row[row[row[child]]]
    assert torch.equal(chase(some_draws(), 1), some_draws().gather(1, some_draws()))


def test_a_look_up_goes_to_whom_one_gives_to():
    tells_apart(
        law_a_look_up_goes_to_whom_one_gives_to,
        look_up,
        lambda gives_to, times: look_up(gives_to, times + 1),
        lambda gives_to, times: gives_to,
    )


def test_a_chaser_is_a_stack_of_the_librarys_layers():
    chaser = Chaser(3, norm_first=False, width=64)
    assert len(chaser.encoder.layers) == 3 and isinstance(chaser.encoder.norm, nn.Identity)
    assert chaser(some_draws()).shape == (20, 8, 8) and chaser.encode(some_draws()).shape == (20, 8, 64)
    assert not isinstance(Chaser(3, norm_first=True).encoder.norm, nn.Identity)
    assert isinstance(Chaser(3, norm_first=True, final_norm=False).encoder.norm, nn.Identity)
    table = chaser.embedding.table.weight
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.15)
    assert not chaser.encoder.layers[0].feed_forward.up.bias.any()


def law_a_switched_path_has_the_parts_that_are_on(path):
    x, double = torch.tensor([[1.0, 2.0, 6.0]]), lambda x: 2 * x
    normed = nn.functional.layer_norm(x, (3,))
    for residual, norm, expected in (
        (False, "", 2 * x),
        (True, "", 3 * x),
        (False, "pre", 2 * normed),
        (True, "pre", x + 2 * normed),
        (False, "post", normed),
        (True, "post", normed),
    ):
        torch.testing.assert_close(path(3, residual, norm)(x, double), expected, rtol=1e-4, atol=1e-5)


def test_a_switched_path_has_the_parts_that_are_on():
    always_residual = lambda width, residual, norm: SwitchedPath(width, True, norm)  # noqa: E731
    never_a_norm = lambda width, residual, norm: SwitchedPath(width, residual, "")  # noqa: E731
    tells_apart(law_a_switched_path_has_the_parts_that_are_on, SwitchedPath, always_residual, never_a_norm)


def test_a_part_can_be_left_out_of_a_chaser():
    for norm_first in (False, True):
        torch.manual_seed(SEED)
        whole = Chaser(2, norm_first=norm_first)
        for part in ("residual", "norm"):
            torch.manual_seed(SEED)
            without = Chaser(2, norm_first=norm_first, **{part: False})
            assert torch.equal(whole.embedding.table.weight, without.embedding.table.weight)
            paths = [path for each in without.encoder.layers for path in (each.self_attn_path, each.feed_forward_path)]
            assert all(path.residual == (part != "residual") for path in paths)
            assert all(isinstance(path.norm, nn.Identity) == (part == "norm") for path in paths)
            assert not torch.allclose(whole(some_draws()), without(some_draws()))


def law_own_share_is_what_the_mean_leaves(share):
    same = torch.ones(2, 5, 4)
    assert share(same) == 0
    opposite = torch.cat([same, -same], dim=1)  # the mean is 0
    assert share(opposite) == pytest.approx(1)
    one_of_four = torch.zeros(1, 4, 4)
    one_of_four[0, 0, 0] = 1
    assert share(one_of_four) == pytest.approx(math.sqrt(3) / 2)


def test_own_share_is_what_the_mean_leaves():
    over_features = lambda x: ((x - x.mean(-1, keepdim=True)).norm() / x.norm()).item()  # noqa: E731
    tells_apart(law_own_share_is_what_the_mean_leaves, own_share, over_features)


def test_the_rate_grows_and_then_stays():
    rates = []

    class Watched(torch.optim.Adam):
        def step(self):
            rates.append(self.param_groups[0]["lr"])

    chaser = Chaser(1, norm_first=True)
    with mock.patch.object(torch.optim, "Adam", Watched):
        losses = train_chaser(chaser, 1, rate=0.5, warmup=4, steps=6, seed=0)
        train_chaser(chaser, 1, rate=0.5, steps=2, seed=0)
    assert rates == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5, 0.5, 0.5, 0.5])
    seen = []
    train_chaser(chaser, 1, rate=0.0, steps=3, seed=0, watch=seen.append)
    assert seen == [0, 1, 2]
    generator = torch.Generator().manual_seed(0)
    assert losses[0] == pytest.approx(chase_loss(chaser, draw_names(32, generator), 1).item())


def test_one_look_up_is_learned():
    torch.manual_seed(0)
    chaser = Chaser(1, norm_first=True)
    assert chased_share(chaser, 1) < 0.4
    losses = train_chaser(chaser, 1, rate=1e-2, steps=220, seed=0)
    assert chased_share(chaser, 1) > 0.8 and losses[-1] < 0.6 < losses[0]


def test_a_run_reports_what_the_record_needs(tmp_path):
    (choices, *_) = GRID.candidates("pre-norm, no final norm, 0.001")
    results = depth.run(choices | {"steps": 40, "num_layers": 1}, 0, tmp_path)
    assert len(results["losses"]) == 2 and results["first_loss"] > 1
    assert len(results["own_shares"]) == len(results["accuracies"]) == 3  # before steps 0 and 20, and in the end
    assert results["own_shares"][-1] == pytest.approx(results["own_share"], rel=1e-2)
    assert 0 < results["own_share"] < 1 and 0 <= results["accuracy"] <= 1 and "valid" in results


def test_a_run_that_diverged_has_no_numbers(tmp_path):
    (choices, *_) = GRID.candidates("residual only, 0.003")
    results = depth.run(choices | {"steps": 20, "num_layers": 1, "rate": 1e30}, 0, tmp_path)
    assert results["own_share"] is None and results["own_shares"][0] > 0 and results["own_shares"][-1] is None


def test_the_sides_are_what_the_lesson_names():
    assert len(GRID.sides) == 3 * 5 + 2 * 3 + 2 * 5 + 1 + 3
    for name in GRID.sides:
        way = name.removeprefix("24 layers, ")
        for choices in GRID.candidates(name):
            assert (choices["num_layers"] == 24) == (way != name)
            assert way.startswith(("one", "two")) or f"{choices['rate']:g}" == name.split(", ")[-1]
            assert choices["norm_first"] == (not way.startswith(("post-norm", "plain", "residual only")))
            assert choices.get("residual", True) == (not way.startswith(("plain", "norm only")))
            assert choices.get("norm", True) == (not way.startswith(("plain", "residual only")))
            assert ("warm-up" in name) == (choices["warmup"] == 100)
            assert ("wide" in name) == (choices.get("width", D_MODEL) > D_MODEL)
            assert ("no final norm" in name) == (not choices.get("final_norm", True))
