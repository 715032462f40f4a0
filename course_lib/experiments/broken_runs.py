"""Six runs of one training script, each with a fault in one of its parts; their logs look like any others."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F

from course_lib.data import pad
from course_lib.experiments.grid import Grid
from course_lib.experiments.training_script import STEPS, Parts, ScriptRun, Split
from course_lib.grammar import build
from course_lib.tokenizer import BOS_ID, EOS_ID

PAIRS = (1500, 100, 200)  # to train on, for validation, for the test
PEOPLE = "woman man child dog cat boy girl teacher mother father neighbor doctor horse bird queen bear".split()
THINGS = """ball apple book key hat letter cake house lamp car flower bag clock picture table newspaper chair glass
    window garden banana bicycle coat shelf bottle cup village museum jacket knife sofa tomato
    bench church cinema""".split()
ADJECTIVES, VERBS = ("big", "small", "old", "new"), ("sehen", "suchen", "finden", "kennen")


def _every_text(train, valid, test):
    return [text for pair in (*train, *valid, *test) for text in (pair.src, pair.tgt)]


def _unshifted(pairs):
    tgt = pad([[BOS_ID, *tgt, EOS_ID] for _, tgt in pairs])
    return pad([src for src, _ in pairs]), tgt, tgt


def _upper_triangle(length):
    return torch.ones(length, length, dtype=torch.bool).triu()[None, None]


def _from_the_peak(step, peak, warmup_steps):
    return peak * min(1, (warmup_steps / step) ** 0.5)


def _with_padding(logits, tgt_out):
    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten())


def _in_training_mode(model, measure):
    with torch.no_grad():
        return measure()


# Of each run the part that has the fault.
FAULTS: dict[str, dict[str, Callable]] = {
    "A": dict(evaluate=_in_training_mode),
    "B": dict(batch_of=_unshifted),
    "C": dict(texts_of=_every_text),
    "D": dict(may_attend=_upper_triangle),
    "E": dict(loss_of=_with_padding),
    "F": dict(rate_at=_from_the_peak),
}
SOUND = "sound"


@cache
def simple_pairs() -> Split:
    """Pairs such as "The old woman looks for the ball.", all different: to train on, for validation, for the test.

    Nouns are the rarer the later they stand, as words of a language are; so the test has some that training lacks.
    """
    rng, found = random.Random(0), {}

    def the(nouns):
        (noun,) = rng.choices(nouns, [rank**-1.8 for rank in range(1, len(nouns) + 1)])
        return build.the(noun, *rng.sample(ADJECTIVES, rng.choice((0, 0, 1, 2))), plural=rng.random() < 0.3)

    while len(found) < sum(PAIRS):
        pair = build.pair(build.clause(the(PEOPLE), rng.choice(VERBS), accusative=the([*PEOPLE, *THINGS])))
        found[pair.src] = pair
    pairs = list(found.values())
    return pairs[: PAIRS[0]], pairs[PAIRS[0] : -PAIRS[2]], pairs[-PAIRS[2] :]


def broken_run(name: str, *, seed: int = 0, steps: int = STEPS) -> ScriptRun:
    """The run of this name, trained anew.

    Args:
        name: "A" to "F", or "sound" for the script without a fault.
        seed: of weights, batches and dropout; 0 is that of the logs.
        steps: of the training.

    Raises:
        ValueError: there is no such run.
    """
    if name not in GRID.sides:
        raise ValueError(f"expected a run among {', '.join(GRID.sides)}, got {name!r}")
    return ScriptRun(replace(Parts(), **FAULTS.get(name, {})), simple_pairs(), seed).fit(steps)


def run(choices: dict, seed: int, folder: Path) -> dict:
    """Makes one run.

    Returns:
        log: its rows; valid: minus its last validation loss; exact_match: share of the test translated right; written:
        the first three translations.
    """
    made = broken_run(choices["run"], seed=seed)
    return {
        "log": made.log,
        "valid": -made.log[-1]["validation"],
        "exact_match": made.translated_right(),
        "written": made.parts.evaluate(made.model, lambda: made.translate(made.test[:3])),
    }


GRID = Grid(
    name="broken_runs",
    question="What does each of six faults of a training script do to its log, and to what it has learned?",
    sides={name: dict(run=name) for name in (SOUND, *FAULTS)},
    run=run,
    seeds=(0, 1, 2),  # the assignment shows the logs of 0
)
