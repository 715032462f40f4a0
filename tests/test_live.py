"""The live view of a training run: what it shows is what the history says."""

import pytest
from tiny import toy_translator

from course_lib import live
from course_lib.live import LiveTraining, is_sampling_step, loss_figure, progress_html, samples_html
from course_lib.training import History

HISTORY = History(
    losses=[5.0, 4.0, 3.0], rates=[0.1, 0.2, 0.3], epochs=[{"step": 2, "valid_loss": 3.5}], total_steps=6, seconds=7.4
)


class Slot:
    """Stands for a display: keeps what was shown last."""

    def __init__(self, content):
        self.content = content

    def update(self, content):
        self.content = content


@pytest.fixture
def shown(monkeypatch):
    """A live view outside a notebook."""
    monkeypatch.setattr(live, "display", lambda content, display_id: Slot(content))
    return LiveTraining(toy_translator(), ["a dog sees", "the <b> cat"])


def samples_become_rarer(rule):
    assert [step for step in range(1, 901) if rule(step, 900)] == [100, 200, 400, 800, 900]


def test_samples_become_rarer_and_end_with_the_last_step():
    samples_become_rarer(is_sampling_step)
    with pytest.raises(AssertionError):
        samples_become_rarer(lambda step, total: step % 100 == 0)


def test_the_bar_is_as_long_as_the_work_that_is_done():
    text = progress_html(HISTORY, width=10)
    assert text.count("█") == 5 and text.count("░") == 5
    assert "step 3 of 6 · 7 s · loss 3.000 · learning rate 3.0e-01" in text


def test_the_figure_shows_the_history():
    training, validation = loss_figure(HISTORY).axes[0].lines[:2]
    assert list(training.get_ydata()) == HISTORY.losses and list(training.get_xdata()) == [1, 2, 3]
    assert list(validation.get_xdata()) == [2] and list(validation.get_ydata()) == [3.5]


def nothing_is_markup(table):
    text = table(["1 < 2"], [(100, ["<script>"])])
    assert "1 &lt; 2" in text and "<script>" not in text and "<td>100</td>" in text


def test_sentences_are_text_and_not_markup():
    nothing_is_markup(samples_html)
    with pytest.raises(AssertionError):
        nothing_is_markup(lambda samples, rows: f"{samples[0]}<td>100</td>{rows[0][1][0]}")


def test_the_view_follows_the_run(shown):
    shown.on_step(None, HISTORY)
    assert shown.translations == [] and "step 3 of 6" in shown._bar.content.data
    last = History(**vars(HISTORY) | dict(losses=[5.0] * 6))
    shown.on_step(None, last)
    shown.on_epoch(None, last)
    assert [step for step, _ in shown.translations] == [6]
    assert "step 6 of 6" in shown._bar.content.data and "&lt;b&gt;" in shown._table.content.data
