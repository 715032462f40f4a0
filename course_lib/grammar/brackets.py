"""Constituency trees of English sentences: brackets around the words that belong together, labeled as linguists do.

Nothing is annotated by hand. Each word knows which parts of the abstract syntax it says, so the words of a noun
phrase, a clause or an adverbial are the constituent; the verb phrase is what follows a clause's subject.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from course_lib.grammar.linearizers import english
from course_lib.grammar.syntax import (
    Adverb,
    Clause,
    Coordination,
    Interrogative,
    Name,
    NounPhrase,
    Predicate,
    PrepPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
)

WORD = "XX"  # stands for each word in a linearized tree
LABELS = {
    NounPhrase: "NP",
    Name: "NP",
    Pronoun: "NP",
    Coordination: "NP",
    Interrogative: "WHNP",
    RelativePronoun: "WHNP",
    PrepPhrase: "PP",
    Adverb: "ADVP",
    Predicate: "ADJP",
}
CLAUSES = {"statement": "S", "subordinate": "S", "yes-no": "SQ", "wh": "SBARQ", "relative": "SBAR"}
SLOTS = "opener subject frequency accusative dative governed predicate manner direction location time".split()


class Span(NamedTuple):
    """A constituent: words start … end - 1 of a sentence, and what they are."""

    label: str
    start: int
    end: int


def constituents(tree: Sentence) -> tuple[list[str], list[Span]]:
    """A tree of the abstract syntax to the English words and their constituents, outer ones before inner ones."""
    words = english.sentence(tree)
    finder = _Finder(words)
    tail: set[int] = set()
    if tree.second is not None:
        second = finder.clause(tree.second)
        if tree.conjunction.subordinating:
            second |= finder.indices(tree, "conjunction")
            finder.add("SBAR", second)
            tail = set() if tree.second_first else second
    coordinated = tree.second is not None and not tree.conjunction.subordinating
    finder.clause(tree.first, tail=tail, whole=not coordinated)
    finder.add("S" if coordinated else CLAUSES[tree.first.force], set(range(len(words))))
    spans = sorted(reversed(finder.spans), key=lambda span: (span.start, -span.end))  # of equal ones the outer first
    return [word.text for word in words], spans


class _Finder:
    def __init__(self, words: list):
        self.spans: list[Span] = []
        self.said: dict[tuple[int, str], set[int]] = {}
        for index, word in enumerate(words):
            for node, part in word.parts:
                self.said.setdefault((id(node), part), set()).add(index)

    def indices(self, node: Any, *parts: str) -> set[int]:
        """The words that say a node itself, or some of its parts only."""
        return {
            index
            for (owner, part), found in self.said.items()
            if owner == id(node) and (not parts or part in parts)
            for index in found
        }

    def add(self, label: str, indices: set[int]) -> None:
        """Notes a constituent; words that stand apart from each other are none."""
        if indices and max(indices) - min(indices) + 1 == len(indices):
            self.spans.append(Span(label, min(indices), max(indices) + 1))

    def phrase(self, node: Any) -> set[int]:
        """Notes a phrase and what is in it, inner ones first; returns its words."""
        found = self.indices(node)
        if isinstance(node, NounPhrase):
            if node.possessor is not None:
                found |= self.phrase(node.possessor)
            if node.relative is not None:
                found |= self.clause(node.relative)
        elif isinstance(node, Coordination):
            found |= self.phrase(node.first) | self.phrase(node.second)
        elif isinstance(node, PrepPhrase):
            inner = self.phrase(node.noun_phrase)
            if node.english == "-":  # the verb says the preposition: remember
                return inner
            if found and inner and min(inner) != max(found) + 1:  # stranded: what are you waiting for
                self.add(LABELS[PrepPhrase], found)
                return found | inner
            found |= inner
        self.add(LABELS[type(node)], found)
        return found

    def clause(self, node: Clause, *, tail: set[int] = frozenset(), whole: bool = False) -> set[int]:
        """Notes a clause and what is in it; returns its words.

        Args:
            node: the clause.
            tail: words of a clause that its verb phrase ends with.
            whole: it is the whole sentence, which is noted elsewhere.
        """
        found = self.indices(node)
        before: set[int] = set()  # the verb phrase
        for slot in SLOTS:
            part = getattr(node, slot)
            if part is None or (slot == "subject" and node.silent_subject):
                continue
            words = self.phrase(part)
            if slot == "dative" and node.dative_with_to:
                self.add(LABELS[PrepPhrase], words | self.indices(node, "recipient"))
            if slot in ("opener", "subject") or part is node.fronted:
                stranded = part is node.governed and part.english != "-"
                before |= words - self.indices(part) if stranded else words
            found |= words
        found |= tail
        start = max(before, default=min(found) - 1) + 1
        verb_phrase = {index for index in found if index >= start}
        if verb_phrase & self.indices(node, "verb"):  # not in "is he tired", where all of the verb stands before him
            self.add("VP", verb_phrase)
        if not whole:
            self.add(CLAUSES[node.force], found)
        return found


def linearized(words: Sequence[str], spans: Sequence[Span]) -> list[str]:
    """A tree as a row of brackets, with XX for each word: "(S (NP XX XX )NP (VP XX )VP XX )S".

    Args:
        words: of the sentence.
        spans: from `constituents`.

    Paper: section 6.3, as Vinyals et al. 2015, section 2.2, write trees.
    """
    row: list[str] = []
    open_spans: list[Span] = []
    waiting = list(spans)
    for index in range(len(words)):
        while waiting and waiting[0].start == index:
            open_spans.append(waiting.pop(0))
            row.append(f"({open_spans[-1].label}")
        row.append(WORD)
        while open_spans and open_spans[-1].end == index + 1:
            row.append(f"){open_spans.pop().label}")
    return row


def read_brackets(row: Sequence[str], num_words: int) -> Counter[Span] | None:
    """The constituents of a row of brackets; None if it is no tree of so many words."""
    found: Counter[Span] = Counter()
    open_brackets: list[tuple[str, int]] = []
    index = 0
    for token in row:
        if token.startswith("("):
            open_brackets.append((token[1:], index))
        elif token == WORD:
            index += 1
        elif open_brackets and token == f"){open_brackets[-1][0]}":
            label, start = open_brackets.pop()
            found[Span(label, start, index)] += 1
        else:
            return None
    return None if open_brackets or index != num_words else found


def labeled_f1(outputs: Sequence[Sequence[str]], trees: Sequence[Sequence[str]]) -> float:
    """Harmonic mean of precision and recall of the constituents of all sentences together, 0 to 1.

    A constituent is right if label, first and last word are; what is no tree has no constituents at all.

    Args:
        outputs: rows of brackets that a parser wrote.
        trees: the right ones.

    Raises:
        ValueError: if there are not as many of both, or none.

    Paper: table 4; the usual program, evalb, leaves out the outermost bracket and punctuation, and we leave in both.
    """
    if len(outputs) != len(trees) or not trees:
        raise ValueError(f"expected an output for each tree, got {len(outputs)} and {len(trees)}")
    right = said = wanted = 0
    for output, tree in zip(outputs, trees, strict=True):
        gold = read_brackets(tree, list(tree).count(WORD))
        found = read_brackets(output, list(tree).count(WORD)) or Counter()
        right += (gold & found).total()
        said, wanted = said + found.total(), wanted + gold.total()
    return 2 * right / (said + wanted)
