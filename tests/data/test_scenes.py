"""Generated pictures of shapes: captions are true of them, and what is held out is not in training."""

from dataclasses import replace

import pytest
import torch

from course_lib.data import NEW_THINGS, WORDS, draw_scenes, make_scenes
from course_lib.data.scenes import COLORS, KINDS, SHAPES, SIDE, SIZE, is_new_pair
from tests.helpers.laws import tells_apart


def law_captions_are_true(make):
    for scene in make():
        assert set(scene.caption.split()) <= set(WORDS)
        if len(scene.things) == 2:
            (row, column), (other_row, other_column) = scene.places
            beside, below = other_column - column >= SIZE, other_row - row >= SIZE
            assert (beside, below) == ((True, False) if "left of" in scene.caption else (False, True))
        assert all(0 <= place <= SIDE - SIZE for places in scene.places for place in places)


def test_captions_are_true():
    scenes = make_scenes(500, seed=0)
    swapped = [replace(scene, places=scene.places[::-1]) for scene in scenes]
    tells_apart(law_captions_are_true, lambda: scenes, lambda: swapped)
    assert {len(scene.things) for scene in scenes} == {1, 2}


def law_nothing_held_out_is_known(make):
    known = make(3000, 0, kind="known")
    things = {thing for scene in known for thing in scene.things}
    pairs = {frozenset(scene.things) for scene in known if len(scene.things) == 2}
    assert not things & NEW_THINGS and len(things) == 20
    assert {color for color, _ in things} == set(COLORS) and {shape for _, shape in things} == set(SHAPES)
    new = make(500, 0, kind="new pair")
    assert all(set(scene.things) <= things and frozenset(scene.things) not in pairs for scene in new)
    assert all(set(scene.things) & NEW_THINGS for scene in make(500, 0, kind="new thing"))


def test_nothing_held_out_is_known():
    tells_apart(law_nothing_held_out_is_known, make_scenes, lambda number, seed, kind: make_scenes(number, seed))
    every = [(color, shape) for color in COLORS for shape in SHAPES]
    assert 0.15 < sum(is_new_pair((a, b)) for a in every for b in every) / 625 < 0.25
    with pytest.raises(ValueError, match=f"kind must be one of {', '.join(KINDS)}; got 'odd'"):
        make_scenes(1, 0, kind="odd")


def law_a_picture_shows_its_things(draw):
    scenes = make_scenes(50, seed=1)
    for picture, scene in zip(draw(scenes), scenes, strict=True):
        lit = 0
        for (color, shape), (row, column) in zip(scene.things, scene.places, strict=True):
            dots = torch.tensor([[dot == "#" for dot in line] for line in SHAPES[shape].split()])
            place = picture[:, row : row + SIZE, column : column + SIZE]
            torch.testing.assert_close(place[:, dots].T, torch.tensor(COLORS[color]).expand(int(dots.sum()), 3))
            assert (place[:, ~dots] == 0.1).all()
            lit += int(dots.sum())
        assert int((picture != 0.1).any(dim=0).sum()) == lit


def test_a_picture_shows_its_things():
    tells_apart(law_a_picture_shows_its_things, lambda s: draw_scenes(s, noise=0), lambda s: draw_scenes(s, noise=0).mT)


def test_seeds_make_scenes_and_noise_again():
    assert make_scenes(20, 3) == make_scenes(20, 3) != make_scenes(20, 4)
    scenes = make_scenes(20, 3)
    assert draw_scenes(scenes, seed=1).equal(draw_scenes(scenes, seed=1))
    assert not draw_scenes(scenes, seed=1).equal(draw_scenes(scenes, seed=2))
    assert draw_scenes(scenes).std() > draw_scenes(scenes, noise=0).std()
