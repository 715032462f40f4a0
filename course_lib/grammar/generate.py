"""The generator: random pairs, with repetitions or distinct, the same for a seed on every machine."""

from collections.abc import Iterator

from course_lib.grammar import build
from course_lib.grammar.align import CoursePair, realize
from course_lib.grammar.sampler import Chooser, attempt
from course_lib.grammar.syntax import Sentence

MAX_WORDS = 18
ADDRESSES = ("du", "ihr", "Sie")


def familiar() -> list[Sentence]:
    """The sentences that lessons use as examples: every corpus starts from them."""
    the, clause = build.the, build.clause
    apple = build.a("apple", "red")
    return [
        Sentence(clause(the("cat"), "schlafen")),
        Sentence(clause(the("cat"), "sehen", accusative=the("dog"))),
        Sentence(clause(the("dog"), "sehen", accusative=the("cat"))),
        Sentence(clause(the("woman", "old"), "geben", accusative=apple, dative=the("child"))),
    ]


def trees(seed: int) -> Iterator[Sentence]:
    """Endless trees, before anything is said in a language: the familiar ones, then random ones."""
    return _trees(Chooser(seed))


def _trees(chooser: Chooser) -> Iterator[Sentence]:
    yield from familiar()
    while True:
        tree = attempt(chooser)
        if tree is not None:
            yield tree


def derivations(seed: int, ambiguous: bool = False) -> Iterator[CoursePair]:
    """Endless pairs, with repetitions, as the grammar derives them.

    Args:
        seed: of the random choices.
        ambiguous: say "you" as du, ihr or Sie at random; otherwise always du.
    """
    chooser = Chooser(seed)
    for tree in _trees(chooser):
        pair = realize(tree, chooser.pick(ADDRESSES) if ambiguous else "du")
        if len(pair.tgt_words) <= MAX_WORDS:
            yield pair


def distinct(seed: int, ambiguous: bool = False) -> Iterator[CoursePair]:
    """Endless pairs; no German sentence comes twice, nor, unless `ambiguous`, an English one. See `derivations`."""
    seen: set[str] = set()
    for pair in derivations(seed, ambiguous):
        if pair.tgt not in seen:
            seen.add(pair.tgt)
            yield pair


def generate(num_pairs: int, seed: int, ambiguous: bool = False) -> list[CoursePair]:
    """Maps a number and a seed to so many distinct sentence pairs.

    Args:
        num_pairs: how many.
        seed: of the random choices; the same seed gives the same pairs everywhere.
        ambiguous: say "you" as du, ihr or Sie at random, so that a sentence may have several translations.

    Returns:
        A list of `CoursePair`, in which no German sentence is twice. Without `ambiguous` no English sentence is twice.

    Raises:
        ValueError: if num_pairs is negative.
    """
    if num_pairs < 0:
        raise ValueError(f"num_pairs: expected 0 or more, got {num_pairs}")
    pairs = distinct(seed, ambiguous)
    return [next(pairs) for _ in range(num_pairs)]
