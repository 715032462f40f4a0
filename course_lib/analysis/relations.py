"""Who belongs to whom in a sentence of the course corpus, by its tree, and which head finds it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.grammar import Notes, english, german, realize

PREVIOUS = "previous token"
DISTANCES = range(-20, 21)  # from a row to its keys, that could be a head's whole secret
AHEAD = 0.15  # of the best fixed distance: the role is real
Part = tuple[Any, str]  # a node of a tree and the name of one of its parts: (clause, "verb")


class Goal(NamedTuple):
    """One case of a relation: the query that should look, and the keys at which it should.

    Args:
        relation: its name, "determiner → noun" for example.
        row: of the attention map.
        keys: columns of the map, of one word or token.
    """

    relation: str
    row: int
    keys: range


class Case(NamedTuple):
    """A goal, and who reached it.

    Args:
        near: distances from the row to its keys.
        found: (steps, layers, heads), bool: whose largest weight of the row is on one of the keys.
        others: (steps, layers, heads), the share of the control rows with their largest weight on these keys; None
            where there is no control row.
    """

    near: set[int]
    found: Tensor
    others: Tensor | None = None

    @classmethod
    def of(cls, goal: Goal, first: Tensor, controls: Sequence[int] = ()) -> "Case":
        """The case of a goal, where `first` is (steps, layers, heads, queries), the key with the largest weight.

        Args:
            goal, first: as said.
            controls: rows of the same sentence that have no reason to look at these keys, from `control_rows`.
        """
        on_keys = (first >= goal.keys.start) & (first < goal.keys.stop)
        others = on_keys[..., list(controls)].float().mean(dim=-1) if len(controls) else None
        return cls({key - goal.row for key in goal.keys}, on_keys[..., goal.row], others)


@dataclass(frozen=True)
class Role:
    """How often one head finds what a relation asks for, at each step of the training.

    Args:
        relation: "determiner → noun" for example, or PREVIOUS.
        kind, layer, head: the head that finds most of them after the last step, on the first half of the sentences.
        shares: of the cases found, on the second half; one for each step.
        distance: the share that the best fixed distance finds, chosen and counted likewise; a head that is not ahead
            of it need not know anything about words.
        control: how often the head's other rows look at the same keys; a head that is not ahead of it may look there
            whoever asks.
        cases: in the second half.
    """

    relation: str
    kind: str
    layer: int
    head: int
    shares: tuple[float, ...]
    distance: float
    control: float
    cases: int

    @property
    def real(self) -> bool:
        """Whether the finished head is well ahead of every fixed distance, and of its own other rows."""
        return self.shares[-1] > max(self.distance, self.control) + AHEAD


def goals(tree: Any, kind: str, src_spans: Sequence[range], tgt_spans: Sequence[range]) -> Iterator[Goal]:
    """The cases of all relations between words of a sentence, as rows and keys of one kind of attention.

    A relation holds between parts of the tree, and so between the words that say them; where several words say one
    part, as *macht … zu*, the last one looks for the first. Rows of the decoder and of the cross-attention are named by
    what they predict. In the decoder the wanted word must have been read already, and stands one place further right,
    behind <s>. In the cross-attention no word asks for its own translation: that is what gold links are for.

    Args:
        tree: of the sentence, from `course_lib.grammar`.
        kind: "encoder", "decoder" or "cross".
        src_spans, tgt_spans: the tokens of each word of `realize(tree)`, from `word_spans`.

    Paper: section 4 and figures 3 to 5, which show single sentences; counting is as in Clark et al. 2019.
    """
    read, written = _places(english.sentence(tree)), _places(german.sentence(tree, Notes()))
    asks, rows = (read, src_spans) if kind == "encoder" else (written, tgt_spans)
    answers, columns = (written, tgt_spans) if kind == "decoder" else (read, src_spans)
    links = realize(tree).links
    for relation, asking, asked in _relations(tree, asks):
        if asking not in asks or asked not in answers:
            continue
        word, wanted = asks[asking][-1], answers[asked][0]
        keys = columns[wanted]
        if kind == "decoder":
            keys = range(keys.start + 1, keys.stop + 1) if wanted < word else range(0)
        own = (wanted, word) in links if kind == "cross" else word == wanted
        if keys and not own:
            yield Goal(relation, rows[word].start, keys)


def previous_tokens(kind: str, length: int) -> Iterator[Goal]:
    """The token before each one, as a relation that knows no words.

    Args:
        kind: "encoder", or "decoder": there the token before the predicted one, which was read last. The
            cross-attention has none, because the keys are of another language.
        length: tokens of the sentence without </s>; the first has none before it.
    """
    behind = {"encoder": -1, "decoder": 0}.get(kind)
    for row in range(1, length) if behind is not None else ():
        yield Goal(PREVIOUS, row, range(row + behind, row + behind + 1))


def control_rows(goal: Goal, goals: Sequence[Goal], kind: str, length: int) -> list[int]:
    """Rows that could look at the keys of a goal, and have no reason to: nobody's goal sends them there.

    Args:
        goal: one of the goals.
        goals: all of the sentence, of one kind of attention.
        kind: of attention. Of the decoder's rows those that have read the keys, up to the goal's own; later ones are
            farther away, and would make the control easier to beat.
        length: rows of the sentence without </s>.
    """
    sent = {each.row for each in goals if each.keys == goal.keys}
    own = goal.keys if kind == "encoder" else range(0)  # a word that looks at itself
    rows = range(goal.keys.stop - 1, goal.row) if kind == "decoder" else range(length)
    return [row for row in rows if row not in sent and row not in own]


def find_role(kind: str, relation: str, before: Sequence[Case], after: Sequence[Case]) -> Role:
    """The head that finds most after the last step, and the best fixed distance.

    Args:
        kind, relation: of all the cases.
        before: cases to choose by.
        after: other cases, which are counted.
    """
    choosing, counted = (torch.stack([case.found for case in cases]).float().mean(dim=0) for cases in (before, after))
    layer, head = divmod(choosing[-1].argmax().item(), choosing.shape[-1])
    by_distance = [sum(distance in case.near for case in before) for distance in DISTANCES]
    distance = DISTANCES[by_distance.index(max(by_distance))]
    share = sum(distance in case.near for case in after) / len(after)
    others = [case.others[-1, layer, head].item() for case in after if case.others is not None]
    control = sum(others) / len(others) if others else 0.0
    return Role(relation, kind, layer, head, tuple(counted[:, layer, head].tolist()), share, control, len(after))


def _places(words: list) -> dict[Part, list[int]]:
    """Part of the tree → the positions of the words that say it."""
    found: dict[Part, list[int]] = {}
    for position, word in enumerate(words):
        for part in word.parts:
            found.setdefault(part, []).append(position)
    return found


def _relations(tree: Any, parts: dict[Part, list[int]]) -> Iterator[tuple[str, Part, Part]]:
    """Name, who should look, at what; some of these parts are not said at all."""
    for clause in filter(None, (tree.first, tree.second)):
        yield "prefix → verb", (clause, "verb"), (clause, "verb")
        yield "finite verb → subject", (clause, "tense"), (clause.subject, "noun")
        for phrase in (clause.subject, clause.accusative, clause.dative):
            noun = getattr(phrase, "antecedent", None)
            yield "pronoun → its noun", (phrase, "pronoun"), (noun, "noun")
    for node in [node for node, name in parts if name == "noun"]:
        yield "determiner → noun", (node, "det"), (node, "noun")
        for adjective in node.adjectives:
            yield "adjective → noun", (node, adjective.english), (node, "noun")
    if tree.second and tree.conjunction.subordinating:
        yield "finite verb → conjunction", (tree.second, "tense"), (tree, "conjunction")
