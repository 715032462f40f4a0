"""Beam search: the most probable whole output, not the most probable next token."""

import heapq
import math
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor

from course_lib.config import from_values
from course_lib.decoding.limits import check_search, normalized
from course_lib.decoding.packed import first_step
from course_lib.decoding.steps import Hypothesis, check_probable, output_limits
from course_lib.transformer import Transformer, eval_mode

KEPT, DROPPED, FINISHED, UNFINISHED = "kept", "dropped", "finished", "unfinished"


@dataclass(frozen=True)
class BeamNode:
    """A token that a beam search considered after some beginning, or the root <s>.

    Args:
        token: its id.
        step: tokens from the root to it; the root's is 0.
        parent: index in the tree's nodes of the token before it; None for the root.
        log_prob: of the token after that beginning, in nats.
        total: of the beginning and the token together, in nats.
        fate: "kept": the search went on with it; "dropped": others were more probable; "finished": it is </s> and
            closes a hypothesis; "unfinished": the search ended before the hypothesis did.
        score: of a finished or unfinished hypothesis, as in Hypothesis; else None.
    """

    token: int
    step: int
    parent: int | None
    log_prob: float
    total: float
    fate: str
    score: float | None = None


@dataclass(frozen=True)
class BeamTree:
    """All that a beam search considered for one sentence; plain data.

    Args:
        nodes: the root, then those of each step, the most probable beginning first; parents before children.
        best: indices of the nodes that end the hypotheses which beam_search returns, best first.
        beam_size, length_penalty: of the search.
    """

    nodes: list[BeamNode]
    best: list[int]
    beam_size: int
    length_penalty: float

    def path(self, index: int) -> list[int]:
        """Indices of the nodes from the root to this one, both included."""
        path = [index]
        while (parent := self.nodes[path[-1]].parent) is not None:
            path.append(parent)
        return path[::-1]

    def tokens(self, index: int) -> list[int]:
        """Token ids on the way to this node, without <s>."""
        return [self.nodes[step].token for step in self.path(index)[1:]]

    def rescored(self, length_penalty: float) -> "BeamTree":
        """The tree of the same search under another length penalty, which only ranks the outputs that have ended."""
        check_search(self.beam_size, length_penalty)
        ended = {FINISHED, UNFINISHED}
        nodes = [
            replace(node, score=normalized(node.total, node.step, length_penalty)) if node.fate in ended else node
            for node in self.nodes
        ]
        fate = FINISHED if any(node.fate == FINISHED for node in nodes) else UNFINISHED
        ends = [index for index, node in enumerate(nodes) if node.fate == fate]
        best = sorted(ends, key=lambda index: -nodes[index].score)[: self.beam_size]
        return BeamTree(nodes, best, self.beam_size, length_penalty)

    def to_dict(self) -> dict:
        """The tree as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "BeamTree":
        """The tree that `to_dict` wrote; unknown or missing names raise ValueError."""
        tree = from_values(cls, values)
        return replace(tree, nodes=[from_values(BeamNode, node) for node in tree.nodes])


def beam_search(
    model: Transformer, src: Tensor, *, beam_size: int = 4, length_penalty: float = 0.6, max_len: int | None = None
) -> list[list[Hypothesis]]:
    """Keeps the beam_size most probable beginnings at each step; finished ones compete by length-normalized score.

    A sentence is done when beam_size hypotheses have finished. With beam_size 1 this is greedy search.

    Args:
        model, src, max_len: as in greedy.
        beam_size: hypotheses kept.
        length_penalty: alpha of Wu et al. 2016; 0 compares bare log-probabilities.

    Returns:
        for each row up to beam_size hypotheses, best first; unfinished ones only where none finished.

    Raises:
        ValueError: as greedy and check_search.

    Paper: section 6.1 (beam 4, alpha 0.6).
    """
    return [beam.best() for beam in _search(model, src, beam_size, length_penalty, max_len, record=False)]


def record_beam(
    model: Transformer, src: Tensor, *, beam_size: int = 4, length_penalty: float = 0.6, max_len: int | None = None
) -> list[BeamTree]:
    """The same search, with all that it considered: 2 * beam_size continuations a step, where there are so many.

    Args:
        model, src, beam_size, length_penalty, max_len: as in beam_search.

    Returns:
        a tree for each row, whose `best` are the hypotheses that beam_search returns.

    Raises:
        ValueError: as beam_search.
    """
    return [beam.tree() for beam in _search(model, src, beam_size, length_penalty, max_len, record=True)]


def _search(
    model: Transformer, src: Tensor, beam_size: int, length_penalty: float, max_len: int | None, *, record: bool
) -> list["_Beam"]:
    check_search(beam_size, length_penalty)
    with eval_mode(model):
        limits = output_limits(model, src, max_len)
        steps = first_step(model, src)
        root = BeamNode(model.config.bos_id, 0, None, 0.0, 0.0, KEPT) if record else None
        beams = [_Beam(beam_size, length_penalty, limit, root) for limit in limits]
        active, last = beams, torch.full((len(src),), model.config.bos_id, device=src.device)
        while active:
            best = most_probable(steps(last), 2 * beam_size)  # enough: at most beam_size of them end
            offset, rows, tokens = 0, [], []
            for beam in active:
                size = len(beam.live)
                parents, chosen = beam.extend(best[offset : offset + size], model.config.eos_id)
                if not beam.done:
                    rows += [offset + parent for parent in parents]
                    tokens += chosen
                offset += size
            if not (active := [beam for beam in active if not beam.done]):
                break
            steps.select(torch.tensor(rows, device=src.device))
            last = torch.tensor(tokens, device=src.device)
        return beams


BLOCK = 100


def most_probable(log_probs: Tensor, number: int) -> list[list[tuple[float, int]]]:
    """For each row of (rows, vocab) its `number` largest, or all there are, with their ids; the largest first.

    They lie in the `number` blocks of ids with the largest maxima: five times as fast as a search of all ids.
    """
    rows, vocab = log_probs.shape
    if vocab % BLOCK or vocab <= number * BLOCK:
        values, ids = log_probs.topk(min(number, vocab))
    else:
        blocks = log_probs.view(rows, -1, BLOCK)
        chosen = blocks.amax(dim=-1).topk(number).indices  # (rows, number)
        inside = blocks.gather(1, chosen[:, :, None].expand(-1, -1, BLOCK)).flatten(1)  # (rows, number * BLOCK)
        values, places = inside.topk(number)
        ids = chosen.gather(1, places // BLOCK) * BLOCK + places % BLOCK
    found = values.tolist()
    check_probable([row[0] for row in found])  # NaN counts as the largest
    return [list(zip(*row, strict=True)) for row in zip(found, ids.tolist(), strict=True)]


class _Beam:
    """The hypotheses of one sentence, and the tree they came from if it is recorded."""

    def __init__(self, size: int, length_penalty: float, max_len: int, root: BeamNode | None):
        self.size, self.length_penalty, self.max_len = size, length_penalty, max_len
        self.live: list[tuple[list[int], float]] = [([], 0.0)]  # ids and log-probability
        self.finished: list[Hypothesis] = []
        self.unfinished: list[Hypothesis] = []
        self.nodes, self.front = ([root], [0]) if root else (None, [])  # front: the nodes that end the live ones

    @property
    def done(self) -> bool:
        return len(self.finished) >= self.size or not self.live

    def extend(self, best: list[list[tuple[float, int]]], eos_id: int) -> tuple[list[int], list[int]]:
        """Takes the best continuations of the live hypotheses; returns which each came from, and its new token.

        Args:
            best: for each live hypothesis its most probable next tokens, as log-probability and id.
            eos_id: closes a hypothesis.
        """
        totals = [
            (before + log_prob, parent, token, log_prob)
            for parent, ((_, before), row) in enumerate(zip(self.live, best, strict=True))
            for log_prob, token in row
        ]
        first = heapq.nlargest(2 * self.size, totals, key=lambda each: (each[0], -each[1], -each[2]))  # ties: as argmax
        live, considered = [], []
        for rank, (total, parent, token, log_prob) in enumerate(first):
            if total == -math.inf:
                break
            ids, fate = self.live[parent][0], DROPPED
            if token == eos_id and rank < self.size:
                self.finished.append(Hypothesis(ids, total, normalized(total, len(ids) + 1, self.length_penalty), True))
                fate = FINISHED
            elif token != eos_id and len(live) < self.size:
                live.append((ids + [token], total))
                fate = KEPT
            considered.append((parent, token, log_prob, total, fate))
        if self.nodes:
            self._record(considered)
        if live and len(live[0][0]) == self.max_len:
            self.unfinished = [
                Hypothesis(ids, total, normalized(total, len(ids), self.length_penalty), False) for ids, total in live
            ]
            live = []
        self.live = live
        kept = [(parent, token) for parent, token, *_, fate in considered if fate == KEPT]
        return [parent for parent, _ in kept], [token for _, token in kept]

    def best(self) -> list[Hypothesis]:
        """Finished hypotheses, best first; where there are none, those that were cut off."""
        return sorted(self.finished or self.unfinished, key=lambda hypothesis: -hypothesis.score)[: self.size]

    def tree(self) -> BeamTree:
        """What was recorded; the nodes of `best` are in the order of the hypotheses."""
        nodes = list(self.nodes)
        for index in self.front:  # kept by the last step, but there was no next one
            nodes[index] = replace(nodes[index], fate=UNFINISHED)
        return BeamTree(nodes, [], self.size, self.length_penalty).rescored(self.length_penalty)

    def _record(self, considered: list[tuple[int, int, float, float, str]]) -> None:
        front = []
        for parent, token, log_prob, total, fate in considered:
            step = self.nodes[self.front[parent]].step + 1
            if fate == KEPT:
                front.append(len(self.nodes))
            self.nodes.append(BeamNode(token, step, self.front[parent], log_prob, total, fate))
        self.front = front
