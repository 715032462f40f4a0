"""The cost calculator: what a training step takes in memory and operations, for any preset, batch and length."""

import traitlets as t

from course_lib.config import PRESETS, model_preset
from course_lib.cost import activation_bytes, cache_bytes, peak_bytes
from course_lib.figures import CourseFigure, bars
from course_lib.widgets.base import CourseWidget

BATCHES = tuple(2**power for power in range(9))
LENGTHS = tuple(2**power for power in range(3, 13))
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
KINDS = {True: "fused attention", False: "attention written out"}


class CostCalculator(CourseWidget):
    """Tells where the memory of a training step goes, and what a longer text makes of it.

    Args:
        preset: one of PRESETS.
        batch: sentence pairs, one of BATCHES.
        length: tokens of each sentence on either side, one of LENGTHS.
        fused: attention by the fused kernel.
        vocab_size: subwords.

    Raises:
        ValueError: on another preset, batch or length.

    Paper: table 3 has the sizes of base and big.
    """

    preset = t.Enum(PRESETS, "base").tag(sync=True)
    batch = t.Enum(BATCHES, 16).tag(sync=True)
    length = t.Enum(LENGTHS, 32).tag(sync=True)
    fused = t.Bool(False).tag(sync=True)
    options = t.Dict({"presets": list(PRESETS), "batches": list(BATCHES), "lengths": list(LENGTHS)}).tag(sync=True)
    view = t.Dict().tag(sync=True)  # name; parts with bytes and words; what is said; peaks in MB at each length

    def __init__(
        self,
        *,
        preset: str = "base",
        batch: int = 16,
        length: int = 32,
        fused: bool = False,
        vocab_size: int = 37_000,
    ):
        for name, value, known in (("preset", preset, PRESETS), ("batch", batch, BATCHES), ("length", length, LENGTHS)):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(str, known))}; got {value!r}")
        self._vocab_size = vocab_size
        super().__init__(preset=preset, batch=batch, length=length, fused=fused)
        self._compute()
        self.observe(lambda _: self._compute(), ["preset", "batch", "length", "fused"])

    @property
    def config(self):
        """Of the chosen preset, with room for the longest text."""
        return model_preset(self.preset, self._vocab_size, max_len=max(LENGTHS))

    def parts(self) -> dict[str, int]:
        """Bytes of each part; the gradients are not there yet when the activations are all there."""
        kept = activation_bytes(self.config, self.batch, self.length, self.length, fused=self.fused)
        rest = {"masks and the rest": kept.pop("masks") + kept.pop("rest")}
        return self.config.memory_bytes() | kept | rest

    def peaks(self, fused: bool) -> list[float]:
        """Megabytes at the peak of a step, at each of LENGTHS."""
        sizes = ((self.batch, length, length) for length in LENGTHS)
        return [peak_bytes(self.config, *size, fused=fused) / 1e6 for size in sizes]

    def told(self) -> str:
        """Peak and operations of a training step, and the cache that translating as many tokens needs."""
        sizes = self.batch, self.length, self.length
        operations = 3 * self.batch * sum(self.config.flop_counts(self.length, self.length).values())
        peak = peak_bytes(self.config, *sizes, fused=self.fused)
        return (
            f"peak of a training step {in_words(peak)}; {operations / 1e9:,.1f} billion operations; "
            f"key-value cache after {self.length:,} tokens {in_words(cache_bytes(self.config, *sizes))}"
        )

    def _compute(self) -> None:
        pairs = "pair" if self.batch == 1 else "pairs"
        self.view = {
            "name": f"{self.preset}, {self.batch} {pairs} of {self.length:,} tokens, {KINDS[self.fused]}",
            "parts": [[name, size, in_words(size)] for name, size in self.parts().items()],
            "told": self.told(),
            "lengths": list(LENGTHS),
            "peaks": [[words, self.peaks(fused)] for fused, words in KINDS.items()],
        }

    def picture(self) -> CourseFigure:
        """The parts as bars."""
        parts = self.parts()
        name = max(parts, key=parts.get)
        title = f"{self.view['name']}; largest part: {name}"
        return bars(
            list(parts), [size / 1e6 for size in parts.values()], xlabel="MB", title=title, value_format="{:,.1f}"
        )


def in_words(size: float) -> str:
    """Bytes with three digits and a unit."""
    factor, unit = next((each for each in UNITS if size >= each[0]), UNITS[-1])
    number = size / factor
    return f"{number:.{max(0, 3 - len(str(int(number))))}f} {unit}"
