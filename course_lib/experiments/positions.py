"""Who was named last? Ways to tell a model about positions, on texts up to four times as long as the trained ones."""

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.blocks import EncoderLayer
from course_lib.experiments.grid import Grid
from course_lib.masks import causal_mask
from course_lib.position import ALiBi, ConcatenatedPosition, LearnedPosition, RelativeBias, Rotary, SinusoidalPosition

NOUNS = "cat dog child woman man boy girl bird".split()
VOCABULARY = NOUNS + "the a old red small sees gives sleeps loves and today .".split()
TRAINED, TESTED = 16, (16, 32, 64)  # words in a story
LONGEST = max(TESTED)
D_MODEL, D_FF, LAYERS = 64, 128, 2
ENCODINGS = ("none", "sinusoidal", "learned", "concatenated", "relative", "alibi", "rotary")
VALID, TEST = 200, 100  # seeds of stories that no training has
BLOCK, FEWEST, MOST = 50, 8, 60  # steps between two measurements, and measurements before the rate falls


def named_last(number: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random stories: each word is a noun with probability 1/4, the first one always.

    Returns:
        ids of VOCABULARY (number, length), the noun that was named last at each word (number, length), and where we
        ask for it, which is at all words but the nouns, bool (number, length).
    """
    shape = (number, length)
    is_noun = torch.rand(shape, generator=generator) < 0.25
    is_noun[:, 0] = True
    noun = torch.randint(len(NOUNS), shape, generator=generator)
    other = torch.randint(len(NOUNS), len(VOCABULARY), shape, generator=generator)
    ids = torch.where(is_noun, noun, other)
    place = torch.where(is_noun, torch.arange(length), 0).cummax(dim=1).values  # of the noun named last
    return ids, ids.gather(1, place), ~is_noun


class Reader(nn.Module):
    """Two encoder layers that score the nouns at every word of a story.

    Args:
        encoding: one of ENCODINGS; the concatenated positions take a quarter of the width.
        d_k: width of a head; the model is 64 wide and has 64 / d_k heads.
        base: of the wavelengths, for sinusoidal and rotary.
        scale: standard deviation of the learned table at the start, or the factor on ALiBi's slopes.
        farthest: the largest offset with a learned bias of its own, in words.
        causal: let no word see what comes after it, as in a decoder.

    Raises:
        ValueError: on an unknown encoding.
    """

    def __init__(
        self,
        encoding: str,
        d_k: int = 16,
        *,
        base: float = 10000.0,
        scale: float = 1.0,
        farthest: int = TRAINED - 1,
        causal: bool = False,
    ):
        super().__init__()
        self.causal, heads = causal, D_MODEL // d_k
        self.position, relative, beside = None, None, 0
        if encoding == "sinusoidal":
            self.position = SinusoidalPosition(LONGEST, D_MODEL, base=base)
        elif encoding == "learned":
            self.position = LearnedPosition(LONGEST, D_MODEL, std=scale)
        elif encoding == "concatenated":
            beside = D_MODEL // 4
            self.position = ConcatenatedPosition(LONGEST, D_MODEL, beside)
        elif encoding == "relative":
            relative = RelativeBias(heads, farthest)
        elif encoding == "alibi":
            relative = ALiBi(heads, scale=scale)
        elif encoding == "rotary":
            relative = Rotary(LONGEST, d_k, base=base)
        elif encoding != "none":
            raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}; got {encoding!r}")
        self.embedding = nn.Embedding(len(VOCABULARY), D_MODEL - beside)
        layers = [EncoderLayer(D_MODEL, heads, D_FF, 0.0, relative=relative) for _ in range(LAYERS)]
        self.layers = nn.ModuleList(layers)
        self.output = nn.Linear(D_MODEL, len(NOUNS))

    def forward(self, ids: Tensor, *, start: int = 0, window: int | None = None) -> Tensor:
        """Ids (batch, length) to logits of the nouns (batch, length, nouns).

        Args:
            ids: of VOCABULARY.
            start: position of the first word, for encodings that are added.
            window: how far a word sees, to either side; None for all of the story.
        """
        x = self.embedding(ids)  # (batch, length, d_model)
        if self.position is not None:
            x = self.position(x, start=start)
        mask = self._mask(ids.shape[1], window, ids.device)
        for layer in self.layers:
            x = layer(x, mask)
        return self.output(x)

    def _mask(self, length: int, window: int | None, device: torch.device) -> Tensor | None:
        mask = causal_mask(length).to(device) if self.causal else None  # (1, 1, length, length)
        if window is not None:
            place = torch.arange(length, device=device)
            near = ((place[:, None] - place).abs() <= window)[None, None]
            mask = near if mask is None else near & mask
        return mask


def train_reader(
    reader: Reader, *, rate: float, seed: int, random_start: bool = False, fewest: int = FEWEST
) -> list[float]:
    """Trains on new stories of 16 words until the validation accuracy no longer rises; then the rate falls to 0.

    The rate stays until the accuracies of the last third of the training are no better than those of the third before
    it, by 0.3 points, or are above 99 %. Then it falls in a straight line, for half as many steps again.

    Args:
        reader: on any device.
        rate: of Adam.
        seed: of the stories.
        random_start: begin each batch at a random position, so that every position is trained.
        fewest: measurements, 50 steps apart, before the rate may fall.

    Returns:
        the validation accuracy after each 50 steps, the falling rate included.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(reader.parameters(), lr=rate, fused=True)
    accuracies: list[float] = []

    def block(first: float, last: float) -> None:
        for step in range(BLOCK):
            optimizer.param_groups[0]["lr"] = rate * (first + (last - first) * step / BLOCK)
            _step(reader, optimizer, generator, random_start)
        accuracies.append(right_answers(reader, TRAINED, seed=VALID).nanmean().item())

    while not _has_converged(accuracies, fewest):
        block(1.0, 1.0)
    falling = len(accuracies) // 2
    for number in range(falling):
        block(1 - number / falling, 1 - (number + 1) / falling)
    return accuracies


def _has_converged(accuracies: list[float], fewest: int = FEWEST) -> bool:
    if not fewest <= len(accuracies) < MOST:
        return len(accuracies) >= MOST
    third = len(accuracies) // 3
    before, last = sum(accuracies[-2 * third : -third]) / third, sum(accuracies[-third:]) / third
    return last > 0.99 or last - before < 0.003


def _step(reader: Reader, optimizer: torch.optim.Optimizer, generator: torch.Generator, random_start: bool) -> None:
    device = reader.output.weight.device
    ids, answers, asked = (each.to(device) for each in named_last(32, TRAINED, generator))
    start = int(torch.randint(LONGEST - TRAINED + 1, (), generator=generator)) if random_start else 0
    loss = F.cross_entropy(reader(ids, start=start)[asked], answers[asked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def right_answers(
    reader: Reader, length: int, *, window: int | None = None, stories: int = 300, seed: int = TEST
) -> Tensor:
    """(stories, length): 1 where the reader is right, 0 where it is wrong, NaN where we do not ask.

    Args:
        reader: trained or not.
        length: of the stories, up to 64 words.
        window: as in Reader.forward.
        stories: how many.
        seed: of the stories.
    """
    ids, answers, asked = named_last(stories, length, torch.Generator().manual_seed(seed + length))
    guesses = reader(ids.to(reader.output.weight.device), window=window).argmax(dim=-1).cpu()
    return (guesses == answers).float().masked_fill(~asked, math.nan)


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Trains one reader and examines it at 1, 2 and 4 times the trained length.

    Returns:
        valid: mean of the validation accuracies at all tested lengths, by which rates and scales are chosen;
        accuracy and windowed: at each tested length, seeing all words or those up to 15 away;
        by_position: at each tested length, for every four neighboring words;
        steps, and history: the validation accuracy after each 50 of them.
    """
    training = {name: choices[name] for name in ("rate", "random_start", "fewest") if name in choices}
    torch.manual_seed(seed)
    reader = Reader(**{name: value for name, value in choices.items() if name not in training})
    history = train_reader(reader, seed=seed, **training)
    right = {length: right_answers(reader, length) for length in TESTED}
    window = {length: right_answers(reader, length, window=TRAINED - 1) for length in TESTED}
    valid = [right_answers(reader, length, seed=VALID).nanmean().item() for length in TESTED]
    fours = [each.unflatten(1, (-1, 4)).transpose(0, 1).flatten(1).nanmean(dim=1) for each in right.values()]
    return {
        "valid": sum(valid) / len(valid),
        "accuracy": [round(each.nanmean().item(), 4) for each in right.values()],
        "windowed": [round(each.nanmean().item(), 4) for each in window.values()],
        "by_position": [[round(share, 4) for share in each.tolist()] for each in fours],
        "steps": BLOCK * len(history),
        "history": [round(accuracy, 4) for accuracy in history],
    }


RATES = (1e-3, 3e-3)


def _sides() -> dict[str, dict]:
    """For each encoding, width of the heads and base the choices that are left open: the rate, and scales."""
    sides = {
        "none": dict(encoding="none"),
        "none, causal": dict(encoding="none", causal=True),
        "concatenated": dict(encoding="concatenated"),
        "sinusoidal, random start": dict(encoding="sinusoidal", random_start=True),
        "learned, random start": dict(encoding="learned", scale=0.5**0.5, random_start=True),
        "relative bias, clipped at 8": dict(encoding="relative", farthest=8),
        "ALiBi as published": dict(encoding="alibi", d_k=8),
        "ALiBi as published, causal": dict(encoding="alibi", d_k=8, causal=True),
        "rotary, causal": dict(encoding="rotary", causal=True),
        "rotary, base 10^8": dict(encoding="rotary", base=1e8),
        "rotary, four times as long": dict(encoding="rotary", fewest=4 * FEWEST, rate=RATES[:1]),
    }
    for d_k in (8, 16, 32):
        for encoding in ("sinusoidal", "rotary"):
            for base in (100.0, 10000.0):
                sides[f"{encoding}, d_k {d_k}, base {base:.0f}"] = dict(encoding=encoding, d_k=d_k, base=base)
        scales = (0.125, 0.5**0.5) if d_k == 16 else 0.5**0.5
        sides[f"learned, d_k {d_k}"] = dict(encoding="learned", d_k=d_k, scale=scales)
        sides[f"relative bias, d_k {d_k}"] = dict(encoding="relative", d_k=d_k)
        sides[f"ALiBi, d_k {d_k}"] = dict(encoding="alibi", d_k=d_k, scale=(4.0, 16.0))
    return {name: {"d_k": 16, "rate": RATES, **choices} for name, choices in sides.items()}


GRID = Grid(
    name="positions",
    question="Which way to tell positions still works at two and four times the trained length, and why?",
    sides=_sides(),
    run=run,
)
