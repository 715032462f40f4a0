"""A training as a film: what the heads of each checkpoint find, and one sentence as each of them sees it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.analysis.ablation import Head
from course_lib.analysis.alignment import Link, corpus_error_rate, diagonal_links, word_spans, word_weights
from course_lib.analysis.exploration import Exploration, explore
from course_lib.analysis.relations import Case, Role, control_rows, find_role, goals, previous_tokens
from course_lib.data import encode_pairs, make_batch
from course_lib.grammar import CoursePair, realize
from course_lib.recording import KINDS, record_attention
from course_lib.transformer import eval_mode
from course_lib.translator import Translator, saved_steps

BATCH_SENTENCES = 50
KEPT = 100  # translations, written or read; each has some hundred kilobytes of weights at most
FEWEST = 25  # cases in each half, for a share that says something


class Scene(NamedTuple):
    """A sentence at one step of the training.

    Args:
        exploration: of the translation that was read, the finished one or the checkpoint's own.
        written: the text that this checkpoint writes by itself.
    """

    exploration: Exploration
    written: str


@dataclass(frozen=True, eq=False)
class Film:
    """The checkpoints of a training, and what was measured of them all.

    Args:
        translators: step → the translator as it was then, in order.
        sentences: on which all numbers are reported.
        rates: (steps, layers, heads), alignment error rates of the cross-attention.
        best: (layer, head) of the lowest error rate at each step, chosen on other sentences.
        diagonal: the error rate of `diagonal_links`.
        roles: of heads of all kinds, the real ones and the seeming ones.
    """

    translators: Mapping[int, Translator]
    sentences: int
    rates: Tensor
    best: tuple[tuple[int, int], ...]
    diagonal: float
    roles: tuple[Role, ...]

    @cached_property
    def steps(self) -> list[int]:
        """Of the training, in order."""
        return list(self.translators)

    @property
    def finished(self) -> Translator:
        """The translator after the last step."""
        return self.translators[self.steps[-1]]

    @cached_property
    def best_rates(self) -> list[float]:
        """The error rate of the best head at each step."""
        return [self.rates[number][place].item() for number, place in enumerate(self.best)]

    def scene(
        self, text: str, step: int, *, own: bool = False, prefix: Sequence[int] = (), silent: Iterable[Head] = ()
    ) -> Scene:
        """A sentence as a checkpoint sees it.

        Args:
            text: source sentence.
            step: of the checkpoint.
            own: explore the translation that the checkpoint writes. Otherwise it reads the one that the finished
                translator writes with all heads on: so rows and columns are the same at all steps, and maps can be
                compared cell by cell.
            prefix: ids that translations must begin with.
            silent: heads of the checkpoint to switch off.

        Raises:
            ValueError: if there is no such checkpoint, or as `explore`.
        """
        if step not in self.translators:
            raise ValueError(f"expected a step among {', '.join(map(str, self.steps))}, got {step!r}")
        prefix, silent = tuple(prefix), tuple(map(tuple, silent))
        written = self._explored(step, text, silent, prefix=prefix)
        if own or (step == self.steps[-1] and not silent):
            return Scene(written, written.text)
        target = self._explored(self.steps[-1], text, (), prefix=prefix).tgt_ids
        return Scene(self._explored(step, text, silent, target=tuple(target)), written.text)

    @cached_property
    def _explored(self) -> Callable[..., Exploration]:
        """What a checkpoint writes by itself or sees where it reads; kept, because a film is played more than once."""

        @lru_cache(maxsize=KEPT)
        def look(
            step: int, text: str, silent: tuple[Head, ...], prefix: tuple[int, ...] = (), target: tuple[int, ...] = ()
        ) -> Exploration:
            return explore(self.translators[step], text, prefix=prefix, target=target, silent=silent)

        return look


def film(name_or_folder: str | Path, trees: Iterable[Any]) -> Film:
    """Measures the heads of all checkpoints of a translator, reading true translations (teacher forcing).

    Which head is best and which head has a role is chosen on the first half of the sentences; everything that is
    reported is counted on the second. With 500 sentences and ten checkpoints of "course" that takes 6 seconds on one
    core.

    Args:
        name_or_folder: as of Translator.from_pretrained; with checkpoints, see `saved_steps`.
        trees: of sentences of the course corpus, from `course_lib.grammar.trees`; such that the model has not seen.

    Raises:
        ValueError: if there are no checkpoints, or fewer than two sentences.

    Paper: none in Vaswani et al.; error rates as in Och and Ney 2003, fixed distances as in Clark et al. 2019.
    """
    translators = {step: Translator.from_pretrained(name_or_folder, step=step) for step in saved_steps(name_or_folder)}
    trees = list(trees)
    if not translators or len(trees) < 2:
        raise ValueError(f"expected checkpoints and 2 sentences or more, got {len(translators)} and {len(trees)}")
    pairs, half = [realize(tree) for tree in trees], len(trees) // 2
    tallies, cases = (_Tally(), _Tally()), {}
    for number, maps in _watched(list(translators.values()), pairs):
        pair, later = pairs[number], number >= half
        src_spans, tgt_spans = _spans(translators, pair)
        tallies[later].add(word_weights(maps["cross"], src_spans, tgt_spans), pair.links)
        for kind in KINDS:
            length = src_spans[-1].stop if kind == "encoder" else tgt_spans[-1].stop
            first = maps[kind].argmax(dim=-1)  # (steps, layers, heads, queries)
            for group in (goals(trees[number], kind, src_spans, tgt_spans), previous_tokens(kind, length)):
                for goal in (group := list(group)):
                    case = Case.of(goal, first, control_rows(goal, group, kind, length))
                    cases.setdefault((kind, goal.relation), ([], []))[later].append(case)
    chosen, rates = (tally.rates() for tally in tallies)
    heads = rates.shape[-1]
    return Film(
        translators=translators,
        sentences=len(trees) - half,
        rates=rates,
        best=tuple(divmod(place, heads) for place in chosen.flatten(1).argmin(dim=1).tolist()),
        diagonal=_diagonal_error(pairs[half:]),
        roles=tuple(
            find_role(*name, *cases[name])
            for name in sorted(cases, key=lambda name: KINDS.index(name[0]))
            if min(map(len, cases[name])) >= FEWEST
        ),
    )


def _spans(translators: Mapping[int, Translator], pair: CoursePair) -> list[list[range]]:
    tokenizer = next(iter(translators.values())).tokenizer
    texts = (pair.src, pair.src_words), (pair.tgt, pair.tgt_words)
    return [word_spans(words, tokenizer.tokens(text)) for text, words in texts]


def _watched(translators: list[Translator], pairs: list[CoursePair]) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Each sentence's number and maps, kind → (steps, layers, heads, queries, keys), padded; the shortest first."""
    order = sorted(range(len(pairs)), key=lambda number: len(pairs[number].src_words))
    for begin in range(0, len(order), BATCH_SENTENCES):
        chunk = order[begin : begin + BATCH_SENTENCES]
        batch = make_batch(encode_pairs(translators[0].tokenizer, [pairs[number] for number in chunk]))
        found: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}
        for translator in translators:
            with eval_mode(translator.model), record_attention(translator.model) as maps:
                translator.model(batch.src, batch.tgt_in)
            for kind in KINDS:
                found[kind].append(torch.stack(getattr(maps, kind), dim=1))  # (batch, layers, heads, queries, keys)
        stacked = {kind: torch.stack(each, dim=1) for kind, each in found.items()}
        for place, number in enumerate(chunk):
            yield number, {kind: each[place] for kind, each in stacked.items()}


class _Tally:
    """Counts the strongest links of all heads at all steps at once."""

    def __init__(self):
        self.right, self.predicted, self.gold = 0, 0, 0

    def add(self, weights: Tensor, links: Sequence[Link]) -> None:
        """Weights between words, (steps, layers, heads, tgt_words, src_words + 1)."""
        best = weights.argmax(dim=-1)
        gold = torch.zeros(weights.shape[-2:], dtype=torch.bool)
        for src, tgt in links:
            gold[tgt, src] = True
        self.right = self.right + gold[torch.arange(len(gold)), best].sum(dim=-1)
        self.predicted = self.predicted + (best < weights.shape[-1] - 1).sum(dim=-1)
        self.gold += len(links)

    def rates(self) -> Tensor:
        """(steps, layers, heads): the alignment error rate of all links together."""
        return 1 - 2 * self.right / (self.predicted + self.gold)


def _diagonal_error(pairs: Sequence[CoursePair]) -> float:
    found = [diagonal_links(len(pair.src_words), len(pair.tgt_words)) for pair in pairs]
    return corpus_error_rate(found, [pair.links for pair in pairs])
