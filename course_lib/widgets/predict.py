"""Predict, then see: a place to commit to an answer before the next cell gives the result, and what came of it."""

import html
import math
import re
from collections.abc import Sequence
from typing import Any

import traitlets as t

from course_lib.widgets.base import CourseWidget, short

MARKS = re.compile(r"\*(\S(?:[^*]*\S)?)\*|`([^`]+)`")  # *emphasis* and `code`
RIGHT = {True: ", right", False: ", not right", None: ""}
NONE_FITS = "none of the choices"  # what a stored lesson must not say of its own result

_asked: dict[tuple, "Predict"] = {}  # in this kernel, in order; of a cell that ran again, the newest


class Predict(CourseWidget):
    """Asks for a prediction; `reveal`, in the next cell, shows the result beside it.

    Args:
        question: one sentence; *emphasis* and `code` may be marked, in the choices as well.
        choices: two or more, one of which will be the result; without any, a number is asked for.
        section: heading of the section to read again after a wrong prediction.
        unit: of the number, such as "tokens" or "%".
        within: how far off a number may be, as a share of the result: 0.1 is a tenth.
        off_by: the same in units; of "%" in percentage points. Without either a number must be met.

    An answer can be changed until its result is there. Running the cell again asks again and keeps the answer; the
    first answer that met its result is the one that counts. Answers stay in the kernel's memory.

    Raises:
        ValueError: on an empty question or section, a single choice, one that is given twice, choices with a unit,
            or an allowance that is negative or given in both ways.
    """

    asked = t.Dict().tag(sync=True)  # question and choices in pieces, unit, allowance in words
    answer = t.Float(None, allow_none=True).tag(sync=True)  # number of a choice, or the number itself
    outcome = t.Dict().tag(sync=True)  # once there is a result: the answer that it met, the result, what to say

    def __init__(
        self,
        question: str,
        choices: Sequence[Any] = (),
        *,
        section: str,
        unit: str = "",
        within: float = 0.0,
        off_by: float = 0.0,
    ):
        self.question, self.choices, self.section = question, [str(choice) for choice in choices], section
        self.unit, self.within, self.off_by = unit, within, off_by
        self._check()
        key = (question, section, *self.choices)
        earlier = _asked.get(key)
        self._in_time: float | None = None  # the answer that its result has met
        self.counted: dict | None = earlier.counted if earlier else None  # the first one that has
        super().__init__(
            asked={
                "question": pieces(question),
                "choices": [pieces(choice) for choice in self.choices],
                "unit": unit,
                "allowance": self._allowance(),
            },
            answer=earlier.answer if earlier else None,
        )
        self.on_msg(lambda _, content, buffers: self.set_trait("answer", content["answer"]))
        _asked[key] = self

    def _check(self) -> None:
        if not self.question.strip() or not self.section.strip():
            raise ValueError(f"expected a question and a section, got {self.question!r} and {self.section!r}")
        if len(self.choices) == 1 or len(set(self.choices)) < len(self.choices) or not all(self.choices):
            raise ValueError(f"expected two or more different choices, or none for a number, got {self.choices}")
        if self.choices and (self.unit or self.within or self.off_by):
            raise ValueError(f"expected a unit and an allowance for a number only, got choices {self.choices}")
        if min(self.within, self.off_by) < 0 or self.within and self.off_by:
            got = f"within={self.within} and off_by={self.off_by}"
            raise ValueError(f"expected at most one allowance, from 0 on, got {got}")

    @t.validate("answer")
    def _accept(self, proposal: dict) -> float | None:
        """An answer that comes after the result changes nothing."""
        answer = proposal["value"]
        if self.outcome:
            return self._in_time
        possible = not self.choices or answer in range(len(self.choices))
        if answer is not None and not (possible and math.isfinite(answer)):
            raise t.TraitError(f"expected the number of a choice or a finite number, got {answer}")
        return answer

    def reveal(self, result: Any, *, because: str = "") -> None:
        """Shows the result beside the answer, and prints it; from now on no answer is taken.

        Args:
            result: one of the choices, as it was given, or a number; of Python, NumPy or a tensor of one element.
            because: the reason, which goes on after "because".

        A result that none of the choices fits, after a change of the input, is told and makes no answer wrong.

        Raises:
            ValueError: if a number was asked for and the result is none.
        """
        result = result.item() if hasattr(result, "item") else result
        if not self.choices and (isinstance(result, bool) or not isinstance(result, int | float)):
            raise ValueError(f"expected a number as the result of {self.question!r}, got {result!r}")
        if not self.outcome:
            self._in_time = self.answer
        right, shown = self._is_right(result), self._shown(result)
        said = None if self._in_time is None else self._said(self._in_time)
        if right is not None and self.counted is None:
            self.counted = {"said": said, "result": shown, "right": right}
        because = because.rstrip(".")
        self.outcome = {
            "answer": self._in_time,
            "choice": self.choices.index(shown) if shown in self.choices else None,
            "result": pieces(shown),
            "shown": shown,
            "told": pieces(_verdict(shown, said, right) + (f" Why: {because}." if because else "")),
        }
        yours = f" Your prediction: {said}{RIGHT[right]}." if said else ""
        print(f"Result: {shown.rstrip('.')}{', because ' if because else ''}{because}.{yours}")

    def _is_right(self, result: Any) -> bool | None:
        """None where there is no answer in time, or nothing that it could be compared with."""
        if self._in_time is None:
            return None
        if self.choices:
            return str(result) == self._said(self._in_time) if str(result) in self.choices else None
        allowed = max(self.within * abs(result), self.off_by) + 1e-9 * abs(result)  # rounding
        return abs(self._in_time - result) <= allowed if math.isfinite(result) else None

    def _shown(self, result: Any) -> str:
        if self.choices:
            return str(result) if str(result) in self.choices else f"{result} ({NONE_FITS})"
        return self._with_unit(result)

    def _said(self, answer: float) -> str:
        return self.choices[int(answer)] if self.choices else self._with_unit(answer)

    def _with_unit(self, number: float) -> str:
        if not math.isfinite(number):
            return str(number)
        words = f"{int(number):,}" if number == int(number) else short(number)
        return f"{words}{'' if self.unit in ('', '%') else ' '}{self.unit}"

    def _allowance(self) -> str:
        if self.within:
            return f"right within {100 * self.within:.3g}% of the result"
        points = f"{short(self.off_by)} points" if self.unit == "%" else self._with_unit(self.off_by)
        return f"right within {points}" if self.off_by else ""

    def first_state(self) -> tuple[dict, dict]:
        """Question and choices, and the result where it is known, as plain text and as HTML."""
        number = {"": "a number", "%": "a number in %"}.get(self.unit, f"a number of {self.unit}")
        options = self.choices or [", ".join(filter(None, [number, self._allowance()]))]
        told = [f"Result: {self.outcome['shown']}"] if self.outcome else []
        lines = [f"Predict: {self.question}", *(f"  - {option}" for option in options), *told]
        items = "".join(f"<li>{as_html(option)}</li>" for option in options)
        page = f"<p><b>Predict</b>: {as_html(self.question)}</p><ul>{items}</ul>"
        result = "".join(f"<p>{as_html(words)}</p>" for words in told)
        return {"text/plain": "\n".join(lines), "text/html": page + result}, {}

    def row(self) -> tuple[str, str, str, str]:
        """What came of it: the verdict, the question, the answer that counts, the result that it has met."""
        if self.counted:
            verdict = "right" if self.counted["right"] else "wrong"
            return verdict, self.question, self.counted["said"], self.counted["result"]
        answer = self._in_time if self.outcome else self.answer
        said = "" if answer is None else self._said(answer)
        return "open" if said else "not made", self.question, said, self.outcome.get("shown", "")


class Predictions:
    """What came of all predictions of a kernel, which is that of one lesson, and which sections to read again.

    A notebook shows it as a table, and as text where there is no HTML.
    """

    def __init__(self):
        self.rows = [prediction.row() for prediction in _asked.values()]
        wrong = (each.section for each in _asked.values() if each.row()[0] == "wrong")
        self.sections = list(dict.fromkeys(wrong))  # to read again

    def told(self) -> str:
        """How many were made, and how many of them were right."""
        verdicts = [verdict for verdict, *_ in self.rows]
        made = len(verdicts) - verdicts.count("not made")
        if not verdicts:
            return "Predictions: no cell that asks for one has run."
        return f"Predictions: {made} of {len(verdicts)} made" + (f", {verdicts.count('right')} right." if made else ".")

    def __repr__(self) -> str:
        lines = [self.told()]
        for verdict, question, said, result in self.rows:
            parts = [f"You: {said}." if said else "", f"Result: {result}." if result else ""]
            lines.append(" ".join(filter(None, [f"- {verdict}: {question}", *parts])))
        return "\n".join([*lines, *([f"Read again: {'; '.join(self.sections)}"] if self.sections else [])])

    def _repr_html_(self) -> str:
        rows = ("".join(f"<td>{as_html(cell)}</td>" for cell in row) for row in self.rows)
        heads = "".join(f"<th>{head}</th>" for head in ("", "prediction", "yours", "result"))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        links = ", ".join(f'<a href="#{_anchor(section)}">{as_html(section)}</a>' for section in self.sections)
        return f"<p>{self.told()}</p>{table}" + (f"<p>Read again: {links}</p>" if links else "")


def pieces(words: str) -> list[list[str]]:
    """Words with *emphasis* and `code` as pairs of an HTML tag and its text."""
    found, end = [], 0
    for mark in MARKS.finditer(words):
        found += [["span", words[end : mark.start()]], ["em", mark[1]] if mark[1] else ["code", mark[2]]]
        end = mark.end()
    return [piece for piece in [*found, ["span", words[end:]]] if piece[1]]


def as_html(words: str) -> str:
    """The same as HTML, in which nothing else is markup."""
    return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for tag, text in pieces(words))


def _anchor(section: str) -> str:
    """The id that JupyterLab and nbconvert give to a heading."""
    return html.escape("".join(text for _, text in pieces(section)).replace(" ", "-"))


def _verdict(shown: str, said: str | None, right: bool | None) -> str:
    """What the widget says, where result and prediction stand already."""
    if said is None:
        return "There was no prediction before the result."
    return {True: "Right.", False: "Not right.", None: f"Result: {shown}, so nothing is counted."}[right]
