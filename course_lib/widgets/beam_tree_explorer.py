"""The beam tree: type a sentence, choose a beam, see what the search keeps, drops and finishes, and rank the ends."""

import torch
import traitlets as t

from course_lib.decoding import FINISHED, UNFINISHED, BeamTree, record_beam
from course_lib.figures import CourseFigure, beam_figure
from course_lib.translator import Translator
from course_lib.widgets.base import CourseWidget, source_ids

BEAM_SIZES = range(1, 7)
LENGTH_PENALTIES = [step / 20 for step in range(61)]  # what the slider can say: 0 to 3
MAX_TOKENS = 40  # of a sentence that is searched for, and of an output


class BeamTreeExplorer(CourseWidget):
    """Shows a beam search as a tree, and which of its outputs is best under another length penalty.

    For a new sentence the kernel searches with every beam and ranks the outputs under every penalty of the sliders (the
    search itself never asks for the penalty); while they are dragged, the browser picks.

    Args:
        translator: whose search is shown.
        text: sentence to begin with.
        beam_size: 1 to 6.
        length_penalty: 0 to 3, in steps of 0.05.

    Raises:
        ValueError: if the sentence has no token or more than 40, or a number is out of its range.
    """

    text = t.Unicode().tag(sync=True)
    beam_size = t.Int(3).tag(sync=True)
    length_penalty = t.Float(0.0).tag(sync=True)
    dropped = t.Bool(True).tag(sync=True)  # whether dropped nodes are drawn
    penalties = t.List(t.Float(), LENGTH_PENALTIES).tag(sync=True)
    beams = t.List(t.Dict()).tag(sync=True)  # for each beam size the nodes, and the outputs with all their scores
    message = t.Unicode().tag(sync=True)

    def __init__(self, translator: Translator, text: str, *, beam_size: int = 3, length_penalty: float = 0.0):
        if beam_size not in BEAM_SIZES:
            raise ValueError(f"beam_size must be in {BEAM_SIZES[0]}..{BEAM_SIZES[-1]}, got {beam_size!r}")
        if not LENGTH_PENALTIES[0] <= length_penalty <= LENGTH_PENALTIES[-1]:
            highest = LENGTH_PENALTIES[-1]
            raise ValueError(f"length_penalty must be in {LENGTH_PENALTIES[0]}..{highest}, got {length_penalty!r}")
        self._translator = translator
        self._trees = self._searched(text)
        beams = [self._described(tree) for tree in self._trees]
        super().__init__(text=text, beam_size=beam_size, length_penalty=length_penalty, beams=beams)
        self.observe(self._search, "text")

    @property
    def tree(self) -> BeamTree:
        """What is shown: the search with the present beam, ranked under the present length penalty."""
        return self._trees[self.beam_size - BEAM_SIZES[0]].rescored(self.length_penalty)

    @t.validate("length_penalty")
    def _on_the_slider(self, proposal) -> float:
        return min(LENGTH_PENALTIES, key=lambda penalty: abs(penalty - proposal.value))

    @t.validate("beam_size")
    def _in_range(self, proposal) -> int:
        return min(max(proposal.value, BEAM_SIZES[0]), BEAM_SIZES[-1])

    def _search(self, _) -> None:
        try:
            self._trees = self._searched(self.text)
        except ValueError as error:
            self.message = str(error)
            return
        with self.hold_sync():
            self.message, self.beams = "", [self._described(tree) for tree in self._trees]

    def _searched(self, text: str) -> list[BeamTree]:
        model, ids = self._translator.model, source_ids(self._translator, text, longest=MAX_TOKENS)
        src = torch.tensor([ids], device=next(model.parameters()).device)
        limit = min(MAX_TOKENS, model.config.max_len)
        return [record_beam(model, src, beam_size=size, length_penalty=0.0, max_len=limit)[0] for size in BEAM_SIZES]

    def _described(self, tree: BeamTree) -> dict:
        ends = [index for index, node in enumerate(tree.nodes) if node.fate in (FINISHED, UNFINISHED)]
        ranked = [tree.rescored(penalty) for penalty in LENGTH_PENALTIES]
        return {
            "nodes": [
                [label, node.step, node.parent, node.log_prob, node.total, node.fate]
                for node, label in zip(tree.nodes, self._labels(tree), strict=True)
            ],
            "outputs": [[index, self._output(tree, index)] for index in ends],
            "scores": [[each.nodes[index].score for index in ends] for each in ranked],  # for each penalty
            "best": [each.best for each in ranked],
        }

    def _labels(self, tree: BeamTree) -> list[str]:
        return [self._translator.tokenizer.token(node.token) for node in tree.nodes]

    def _output(self, tree: BeamTree, index: int) -> str:
        ids = tree.tokens(index)
        return self._translator.tokenizer.decode(ids[:-1] if tree.nodes[index].fate == FINISHED else ids)

    def picture(self) -> CourseFigure:
        """The tree of the present beam under the present length penalty, as a figure."""
        tree = self.tree
        found = f"A beam of {tree.beam_size} finds: {self._output(tree, tree.best[0])}"
        return beam_figure(tree, self._labels(tree), title=found)
