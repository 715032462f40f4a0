"""Pictures of one or two colored shapes, with the caption that describes each; some combinations are held out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

SIDE = 16  # pixels
SIZE = 6  # of a shape
COLORS = {
    "red": (0.9, 0.2, 0.2),
    "green": (0.2, 0.75, 0.3),
    "blue": (0.25, 0.4, 0.95),
    "yellow": (0.95, 0.85, 0.2),
    "white": (0.95, 0.95, 0.95),
}
SHAPES = {  # six rows of six pixels
    "square": "###### ###### ###### ###### ###### ######",
    "circle": ".####. ###### ###### ###### ###### .####.",
    "triangle": "..##.. ..##.. .####. .####. ###### ######",
    "cross": "..##.. ..##.. ###### ###### ..##.. ..##..",
    "ring": ".####. ##..## #....# #....# ##..## .####.",
}
RELATIONS = ("left of", "above")
# Each color and each shape is in training, and none of these things.
NEW_THINGS = frozenset(zip(COLORS, ("circle", "ring", "triangle", "square", "cross"), strict=True))
KINDS = ("known", "new pair", "new thing")
WORDS = ["a", *COLORS, *SHAPES, "left", "of", "above"]

Thing = tuple[str, str]  # a color and a shape


@dataclass(frozen=True)
class Scene:
    """What is in a picture.

    Args:
        things: one or two; the first is left of the second, or above it.
        relation: of RELATIONS; "" where there is one thing.
        places: (row, column) of the upper left pixel of each thing.
    """

    things: tuple[Thing, ...]
    relation: str
    places: tuple[tuple[int, int], ...]

    @property
    def caption(self) -> str:
        """As in "a red circle left of a blue square"."""
        return f" {self.relation} ".join(f"a {color} {shape}" for color, shape in self.things)


def compose(things: Sequence[Thing], relation: str, rng: random.Random) -> Scene:
    """A scene of these things, at random places at which the relation, and not the other one, is true."""
    if len(things) == 1:
        return Scene(tuple(things), "", ((rng.randrange(SIDE - SIZE + 1), rng.randrange(SIDE - SIZE + 1)),))
    half = SIDE // 2
    first, second = rng.randrange(half - SIZE + 1), half + rng.randrange(half - SIZE + 1)  # along the relation
    across = rng.randrange(SIDE - SIZE + 1)
    beside = min(max(across + rng.randint(-2, 2), 0), SIDE - SIZE)
    places = ((across, first), (beside, second)) if relation == "left of" else ((first, across), (second, beside))
    return Scene(tuple(things), relation, places)


def is_new_pair(things: Sequence[Thing]) -> bool:
    """Whether training keeps these two apart: one pair in five, whatever their order."""
    colors, shapes = list(COLORS), list(SHAPES)
    return len(things) == 2 and sum(colors.index(color) * 2 + shapes.index(shape) for color, shape in things) % 5 == 0


def make_scenes(number: int, seed: int, *, kind: str = "known") -> list[Scene]:
    """Random scenes, the same for the same seed.

    Args:
        number: how many.
        seed: of the random choices.
        kind: "known", as in training: one or two things, none of them in NEW_THINGS, and no new pair;
            "new pair": two such things that never meet in training;
            "new thing": one or two things, one of them at least in NEW_THINGS.

    Raises:
        ValueError: on another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    rng = random.Random(f"{seed}/{kind}")
    every = [(color, shape) for color in COLORS for shape in SHAPES]
    scenes: list[Scene] = []
    while len(scenes) < number:
        things = [rng.choice(every) for _ in range(1 + (rng.random() < 0.8))]
        found = "new thing" if set(things) & NEW_THINGS else "new pair" if is_new_pair(things) else "known"
        if found == kind:
            scenes.append(compose(things, rng.choice(RELATIONS), rng))
    return scenes


def draw_scenes(scenes: Sequence[Scene], *, noise: float = 0.05, seed: int = 0) -> Tensor:
    """Scenes to pictures (number, 3, 16, 16), about 0 to 1: shapes on dark gray, with Gaussian noise."""
    pictures = torch.full((len(scenes), 3, SIDE, SIDE), 0.1)
    stamps = {
        name: torch.tensor([[dot == "#" for dot in row] for row in rows.split()]) for name, rows in SHAPES.items()
    }
    for picture, scene in zip(pictures, scenes, strict=True):
        for (color, shape), (row, column) in zip(scene.things, scene.places, strict=True):
            place = picture[:, row : row + SIZE, column : column + SIZE]
            place[:, stamps[shape]] = torch.tensor(COLORS[color])[:, None]
    return pictures + noise * torch.randn(pictures.shape, generator=torch.Generator().manual_seed(seed))
