"""The position explorer: the table of sinusoids, how alike two positions are, and what an offset does to them."""

import traitlets as t
from torch import Tensor

from course_lib.figures import CourseFigure, Panel, panels
from course_lib.position import sinusoidal
from course_lib.widgets.base import CourseWidget

LONGEST, WIDEST, FARTHEST = 128, 64, 32  # length, d_model and offset
BASES = (10, 100, 1_000, 10_000, 100_000)


class PositionExplorer(CourseWidget):
    """Shows sinusoidal encodings as a table, as dot products and as hands of clocks.

    Args:
        length: positions in the table, 2 to 128.
        d_model: width, even, 2 to 64.
        base: of the wavelengths, one of BASES.
        first, second: two positions below length.
        offset: words that both are moved on, 0 to 32.

    Raises:
        ValueError: if one of them is not so.
    """

    length = t.Int(64, min=2, max=LONGEST).tag(sync=True)
    d_model = t.Int(32, min=2, max=WIDEST).tag(sync=True)
    base = t.Enum(BASES, 10_000).tag(sync=True)
    first = t.Int(0, min=0, max=LONGEST - 1).tag(sync=True)
    second = t.Int(0, min=0, max=LONGEST - 1).tag(sync=True)
    offset = t.Int(0, min=0, max=FARTHEST).tag(sync=True)
    limits = t.Dict({"length": LONGEST, "d_model": WIDEST, "offset": FARTHEST, "bases": list(BASES)}).tag(sync=True)

    def __init__(
        self,
        length: int = 64,
        d_model: int = 32,
        base: float = 10_000,
        *,
        first: int = 5,
        second: int = 12,
        offset: int = 3,
    ):
        if not 2 <= length <= LONGEST:
            raise ValueError(f"length must be in 2..{LONGEST}, got {length}")
        if d_model % 2 or not 2 <= d_model <= WIDEST:
            raise ValueError(f"d_model must be even and in 2..{WIDEST}, got {d_model}")
        if base not in BASES:
            raise ValueError(f"base must be one of {', '.join(map(str, BASES))}, got {base}")
        if not (0 <= first < length and 0 <= second < length):
            raise ValueError(f"positions must be in 0..{length - 1}, got {first} and {second}")
        if not 0 <= offset <= FARTHEST:
            raise ValueError(f"offset must be in 0..{FARTHEST}, got {offset}")
        super().__init__(length=length, d_model=d_model, base=int(base), first=first, second=second, offset=offset)

    @t.validate("d_model")
    def _pairs(self, proposal: dict) -> int:
        if proposal.value % 2:
            raise t.TraitError(f"d_model must be even, got {proposal.value}")
        return proposal.value

    @t.observe("length", "first", "second")
    def _stay_inside(self, _) -> None:
        """A shorter table takes the positions along."""
        self.first, self.second = min(self.first, self.length - 1), min(self.second, self.length - 1)

    def compute(self) -> tuple[Tensor, Tensor]:
        """The encodings (length + offset, d_model), and the dot products of all pairs of them."""
        table = sinusoidal(self.length + self.offset, self.d_model, base=self.base)
        return table, table @ table.T

    def picture(self) -> CourseFigure:
        """The table, and how alike its positions are."""
        table, products = self.compute()
        positions, most = range(self.length), self.d_model // 2
        there, later = (products[self.first + on, self.second + on].item() for on in (0, self.offset))
        words = f"PE({self.first}) · PE({self.second}) = {there:.2f} of at most {most}"
        if self.offset:
            words += f", and {self.offset} words on {later:.2f}"
        rows = dict(rows=positions, ylabel="position")
        alike = products[: self.length, : self.length] / most
        return panels(
            [
                Panel(table[: self.length], columns=range(self.d_model), name="table", xlabel="dimension", **rows),
                Panel(alike, columns=positions, name="dot products / largest", xlabel="position", **rows),
            ],
            title=f"Sinusoids with base {self.base:,.0f}: {words}",
        )
