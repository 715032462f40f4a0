"""The errata lab: judge a claim first, then turn its knob and see what the experiment says."""

from collections.abc import Sequence

import traitlets as t

from course_lib.analysis import VERDICTS, Claim, written
from course_lib.figures import CourseFigure, curves
from course_lib.widgets.base import CourseWidget

WIDE = 20  # from this ratio of the largest to the smallest on, an axis of the picture is logarithmic


class ErrataLab(CourseWidget):
    """Shows a claim as it is written; once it is judged, the verdict, what is right, and the numbers over the knob.

    Args:
        claims: tested and judged, of `LabBook.claims`.
        chosen: the claim to begin with, from 0.

    Raises:
        ValueError: without claims, with one that is not judged and tested, or if `chosen` is none of them.
    """

    claims = t.List().tag(sync=True)  # what the page shows of each
    chosen = t.Int(0).tag(sync=True)
    at = t.Int(0).tag(sync=True)  # place of the knob, from 0
    answers = t.Dict().tag(sync=True)  # number of a claim, as text, to the verdict that was given

    def __init__(self, claims: Sequence[Claim], *, chosen: int = 0):
        if not claims:
            raise ValueError("expected claims, got none")
        open_ones = [claim.name for claim in claims if not (claim.verdict and claim.numbers)]
        if open_ones:
            raise ValueError(f"expected judged and tested claims, got no verdict or numbers of {', '.join(open_ones)}")
        if not 0 <= chosen < len(claims):
            raise ValueError(f"chosen must be in 0..{len(claims) - 1}, got {chosen}")
        super().__init__(claims=[shown(claim) for claim in claims], chosen=chosen)

    @property
    def score(self) -> tuple[int, int]:
        """How many claims have been judged, and how many of them as the experiments do."""
        verdicts = {str(claim["number"]): claim["verdict"] for claim in self.claims}
        return len(self.answers), sum(verdicts[number] == given for number, given in self.answers.items())

    def picture(self) -> CourseFigure:
        """The numbers of the chosen claim over all values of its knob."""
        claim = self.claims[self.chosen]
        return curves(
            {name: (claim["values"], numbers) for name, numbers in claim["numbers"].items()},
            xlabel=claim["knob"],
            ylabel="measured",
            title=f"{VERDICTS[claim['verdict']]} {claim['verdict']}: “{claim['said']}”",
            log_x=spread(claim["values"]) > WIDE,
            log_y=claim["log"],
        )


def shown(claim: Claim) -> dict:
    """What the page shows of a claim, as plain data; `log` where its numbers need a logarithmic axis."""
    numbers = {name: list(row) for name, row in claim.numbers.items()}
    return {
        **{name: getattr(claim, name) for name in ("number", "group", "said", "knob", "verdict", "right")},
        "lesson": claim.lesson[:2],
        "values": list(claim.values),
        "names": [written(value) for value in claim.values],
        "numbers": numbers,
        "written": {name: [written(number) for number in row] for name, row in numbers.items()},
        "log": spread([number for row in numbers.values() for number in row]) > WIDE,
    }


def spread(numbers: Sequence[float]) -> float:
    """The largest over the smallest; 0 where a logarithmic axis cannot hold them, because one is not above 0."""
    return max(numbers) / min(numbers) if min(numbers) > 0 else 0.0
