"""Claims put to the test: a sentence as one hears it, an experiment with one knob, a verdict, what is right."""

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

VERDICTS = {"right": "✓", "half right": "◐", "wrong": "✗"}  # and the marks that they are written with
Measure = Callable[..., Mapping[str, float]]


@dataclass(frozen=True)
class Page:
    """Markdown that a notebook renders and a terminal prints."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


@dataclass(frozen=True)
class Claim:
    """A sentence, the experiment that tests it, and what came out.

    Args:
        number: in the book, from 1.
        name: what the book calls it.
        group: of claims that belong together.
        said: the claim, in words.
        knob: what the experiment varies, in words.
        values: of the knob.
        numbers: name to one number for each value of the knob: what the claim says, what was measured.
        verdict: "right", "half right", "wrong", or "" before it is judged.
        right: the right version, in Markdown.
        lesson: the notebook that teaches it, without its suffix, or "".
    """

    number: int
    name: str
    group: str
    said: str
    knob: str = ""
    values: tuple[float, ...] = ()
    numbers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    verdict: str = ""
    right: str = ""
    lesson: str = ""

    def __str__(self) -> str:
        return f"**{self.number}.** “{self.said}”"

    def evidence(self) -> Page:
        """The claim and a table of its numbers: a column for each value of the knob."""
        rows = [(self.knob, self.values), *self.numbers.items()]
        lines = [f"| {name} | {' | '.join(map(written, numbers))} |" for name, numbers in rows]
        rule = "|---" + "|--:" * len(self.values) + "|"
        return Page("\n".join([f"{self}\n", lines[0], rule, *lines[1:]]))

    def answer(self) -> str:
        """One line: verdict, right version and lesson."""
        link = f" (Lesson {_link(self.lesson)}.)" if self.lesson else ""
        return f"**{self.number}.** {VERDICTS[self.verdict]} **{self.verdict}**. {self.right}{link}"

    def case(self, note: str = "", *, closed: bool = False) -> str:
        """The evidence, after a note on what to look for; under it the answer, folded, once there is one.

        Args:
            note: in Markdown.
            closed: whether the table is folded, too: a reader designs the experiment first.
        """
        said, table = self.evidence().text.split("\n\n")
        table = _folded("Our table", table) if closed else table
        return "\n\n".join(filter(None, [said, note, table, self.verdict and _folded("What is right?", self.answer())]))


class LabBook:
    """Claims in three steps: `say` them, `test` each, `judge` them.

    A test shows the verdict, folded, under its numbers where it is judged already, so that a page can keep the
    verdicts in one place. A name means one claim; a second step on the same claim, such as a test with other values,
    replaces the first.
    """

    def __init__(self):
        self._claims: dict[str, Claim] = {}

    def __getitem__(self, name: str) -> Claim:
        if name not in self._claims:
            raise ValueError(f"expected one of the claims {', '.join(self._claims) or '(none yet)'}; got {name!r}")
        return self._claims[name]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All of them, in the order in which they were said."""
        return tuple(self._claims.values())

    def say(self, group: str, **said: str) -> Page:
        """Enters claims, and returns them as a list to be judged.

        Args:
            group: what they are about.
            said: name to claim, in words.

        Raises:
            ValueError: without a claim.
        """
        if not said:
            raise ValueError(f"expected claims for {group!r}, got none")
        for name, words in said.items():
            number = self._claims[name].number if name in self._claims else len(self._claims) + 1
            self._claims[name] = Claim(number, name, group, words)
        return Page("\n\n".join(str(self[name]) for name in said))

    def test(self, name: str, measure: Measure, values: Sequence[float], *, closed: bool = False) -> Page:
        """Runs the experiment of a claim for all values of its knob, and returns its evidence and any verdict, folded.

        Args:
            name: of the claim.
            measure: maps a value of its first parameter, the knob, to named numbers, the same names each time.
            values: of the knob, in the order in which they are shown.
            closed: whether the table is folded, too: a reader designs the experiment first.

        Raises:
            ValueError: if there is no such claim, no value, the names change, or a number is not finite.
        """
        claim = self[name]
        rows = [{key: _plain(number) for key, number in measure(value).items()} for value in values]
        if not rows or len({tuple(row) for row in rows}) > 1:
            raise ValueError(f"{name}: expected the same names for every value, got {[list(row) for row in rows]}")
        numbers = {key: tuple(row[key] for row in rows) for key in rows[0]}
        strange = [key for key, found in numbers.items() if not all(map(math.isfinite, found))]
        if strange or not numbers:
            raise ValueError(f"{name}: expected finite numbers, got {strange or 'none'}")
        tested = replace(claim, knob=_words(measure), values=tuple(values), numbers=numbers)
        self._claims[name] = tested
        return Page(tested.case(closed=closed))

    def judge(self, **verdicts: tuple[str, str, str]) -> Page:
        """Enters verdicts, before the tests or after them, and returns the answers, folded: a reader judges first.

        Args:
            verdicts: name to verdict ("right", "half right" or "wrong"), lesson ("" where none teaches it) and the
                right version.

        Raises:
            ValueError: on another verdict, or if there is no such claim.
        """
        for name, (verdict, lesson, right) in verdicts.items():
            if verdict not in VERDICTS:
                raise ValueError(f"{name}: expected a verdict among {', '.join(VERDICTS)}; got {verdict!r}")
            self._claims[name] = replace(self[name], verdict=verdict, lesson=lesson, right=right)
        answers = "\n\n".join(self[name].answer() for name in verdicts)
        return Page(_folded("What is right?", answers))

    def topic(self, group: str, **notes: str) -> Page:
        """One line that opens: the claims of a group, each with a note; its table and its answer, folded again.

        Args:
            group: of claims that are tested.
            notes: name to what its experiment does, in Markdown.

        Raises:
            ValueError: if there is no such group, one of its claims is not tested, or a note is on another claim.
        """
        claims = {claim.name: claim for claim in self.claims if claim.group == group}
        if not claims or not all(claim.numbers for claim in claims.values()) or not notes.keys() <= claims.keys():
            raise ValueError(f"expected tested claims and notes on them, got {[*claims]} of {group!r}, {[*notes]}")
        cases = "\n\n".join(claim.case(notes.get(name, ""), closed=True) for name, claim in claims.items())
        numbers = ", ".join(str(claim.number) for claim in claims.values())
        return Page(_folded(f"{group}: {numbers}", cases))

    def summary(self, closed: Collection[str] = ()) -> Page:
        """A table of all claims that are tested and judged: number, claim, and its verdict's mark with the lesson.

        Args:
            closed: groups whose claims stand in a second table, folded.
        """
        head = ["| | claim | verdict, lesson |", "|--:|---|---|"]
        seen, folded = [*head], [*head]
        for claim in self.claims:
            if claim.verdict and claim.numbers:
                verdict = f"{VERDICTS[claim.verdict]} {_link(claim.lesson)}".strip()
                rows = folded if claim.group in closed else seen
                rows.append(f"| {claim.number} | {claim.said} | {verdict} |")
        rest = [_folded(f"{len(folded) - len(head)} more", "\n".join(folded))] if len(folded) > len(head) else []
        return Page("\n\n".join(["\n".join(seen), *rest]))


def written(number: float) -> str:
    """A number for a table: three digits, of mere rounding one; a power of ten where it is small or large."""
    size = abs(number)
    if size == 0 or number == int(number) and size < 1e7 or 1000 <= size < 1e7:
        return f"{number:,.0f}"
    if 0.001 <= size < 1000:
        return f"{number:.3g}"
    factor, power = f"{number:.{2 if size > 1e-6 else 0}e}".split("e")
    return f"{factor.rstrip('0').rstrip('.') if '.' in factor else factor}e{int(power)}"


def _plain(number: object) -> float:
    """A number, or a tensor that holds one."""
    return float(number.item() if hasattr(number, "item") else number)


def _words(measure: Measure) -> str:
    """The name of the function's first parameter in words; d_k and the like stay as they are."""
    name = next(iter(inspect.signature(measure).parameters))
    return name if name.startswith("d_") else name.replace("_", " ")


def _folded(words: str, text: str) -> str:
    """Markdown that a click on the words opens."""
    return f"<details><summary>{words}</summary>\n\n{text}\n\n</details>"


def _link(lesson: str) -> str:
    return f"[{lesson[:2]}]({lesson}.ipynb)" if lesson else ""
