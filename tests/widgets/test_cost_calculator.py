"""The cost calculator without a browser: its numbers are the library's, whatever is chosen."""

from itertools import product

import pytest

from course_lib.config import PRESETS, model_preset
from course_lib.cost import activation_bytes, peak_bytes
from course_lib.widgets import CostCalculator
from course_lib.widgets.cost_calculator import BATCHES, LENGTHS, in_words
from tests.helpers.laws import raised, tells_apart

EXTREMES = list(product((PRESETS[0], "base", PRESETS[-1]), (1, BATCHES[-1]), (LENGTHS[0], LENGTHS[-1]), (False, True)))


def law_the_numbers_are_the_librarys(make):
    widget = make()
    for preset, batch, length, fused in EXTREMES:
        widget.preset, widget.batch, widget.length, widget.fused = preset, batch, length, fused
        config = model_preset(preset, 37_000, max_len=4096)
        kept = activation_bytes(config, batch, length, length, fused=fused)
        sizes = [size for _, size, _ in widget.view["parts"]]
        assert sum(sizes) == sum(kept.values()) + 16 * config.num_parameters
        assert dict((name, size) for name, size, _ in widget.view["parts"])["logits"] == kept["logits"]
        assert all(words == in_words(size) for _, size, words in widget.view["parts"])
        written_out, with_kernel = (dict(widget.view["peaks"])[f"{name}"] for name in names())
        at = LENGTHS.index(length)
        peak = peak_bytes(config, batch, length, length, fused=fused)
        assert (with_kernel if fused else written_out)[at] == pytest.approx(peak / 1e6)
        assert in_words(peak) in widget.view["told"] and f"{length:,} tokens" in widget.view["name"]


def names():
    return "attention written out", "fused attention"


class StaysAtTheFirst(CostCalculator):
    def _compute(self):
        if not self.view:
            super()._compute()


class ForgetsTheBatch(CostCalculator):
    def parts(self):
        kept = activation_bytes(self.config, 1, self.length, self.length, fused=self.fused)
        return self.config.memory_bytes() | kept


def test_the_numbers_are_the_librarys():
    tells_apart(law_the_numbers_are_the_librarys, CostCalculator, StaysAtTheFirst, ForgetsTheBatch)


def test_its_picture_shows_every_part():
    widget = CostCalculator(preset="mini", batch=4, length=64, vocab_size=2000)
    picture = widget.picture()
    assert [text.get_text() for text in picture.axes[0].get_yticklabels()] == list(widget.parts())
    widths = [bar.get_width() for bar in picture.axes[0].patches]
    assert widths == pytest.approx([size / 1e6 for size in widget.parts().values()])
    assert picture.get_suptitle().replace("\n", " ").startswith("mini, 4 pairs of 64 tokens, attention written out")


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0.00 B"), (7, "7.00 B"), (1536, "1.54 kB"), (15_171_752, "15.2 MB"), (1.218e9, "1.22 GB")]
)
def test_bytes_in_words(size, words):
    assert in_words(size) == words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(preset="huge"), "preset must be one of mini, tiny, small, base, big; got 'huge'"),
        (dict(batch=3), "batch must be one of 1, 2, 4"),
        (dict(length=0), "length must be one of 8, 16"),
    ],
)
def test_what_is_not_offered_is_refused(options, message):
    assert message in str(raised(ValueError, lambda: CostCalculator(**options)))
