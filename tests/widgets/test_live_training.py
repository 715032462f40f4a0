"""The live view of a training run: what it shows is what the history says."""

from types import SimpleNamespace

import pytest
from IPython.core.events import EventManager

from course_lib.training.loop import History
from course_lib.widgets import live_training as live
from course_lib.widgets.live_training import LiveTraining, is_sampling_step, samples_html
from tests.helpers.tiny import toy_translator

HISTORY = History(
    losses=[5.0, 4.0, 3.0], rates=[0.1, 0.2, 0.3], epochs=[{"step": 2, "valid_loss": 3.5}], total_steps=6, seconds=7.4
)


class Slot:
    """Stands for a display: keeps what was shown last."""

    def __init__(self, content):
        self.content, self.updates = content, 0

    def update(self, content):
        self.content, self.updates = content, self.updates + 1


@pytest.fixture
def shown(monkeypatch):
    """A live view in a cell that has not ended."""
    monkeypatch.setattr(live, "display", lambda content, display_id: Slot(content))
    shell = SimpleNamespace(events=EventManager(None, ["post_run_cell"], print_on_error=False))
    monkeypatch.setattr(live, "get_ipython", lambda: shell)
    return LiveTraining(toy_translator(), ["a dog sees", "the <b> cat"])


def samples_become_rarer(rule):
    assert [step for step in range(1, 901) if rule(step, 900)] == [100, 200, 400, 800, 900]


def test_samples_become_rarer_and_end_with_the_last_step():
    samples_become_rarer(is_sampling_step)
    with pytest.raises(AssertionError):
        samples_become_rarer(lambda step, total: step % 100 == 0)


def nothing_is_markup(table):
    text = table(["1 < 2"], [(100, ["<script>"])])
    assert "1 &lt; 2" in text and "<script>" not in text and "<td>100</td>" in text


def test_sentences_are_text_and_not_markup():
    nothing_is_markup(samples_html)
    with pytest.raises(AssertionError):
        nothing_is_markup(lambda samples, rows: f"{samples[0]}<td>100</td>{rows[0][1][0]}")


def test_a_translation_that_repeats_itself_is_cut():
    page = samples_html(["Why?"], [(100, ["hat " * 50 + "du"]), (200, ["Warum hat er " + "sehr " * 13 + "?"])])
    cells = [each.split("</td>")[0] for each in page.split("<td>")[1:]]
    assert len(cells[1]) == 80 and cells[1].startswith("hat hat") and cells[1].endswith("…")
    assert cells[3] == "Warum hat er " + "sehr " * 13 + "?", "79 characters: whole"


def test_the_view_follows_the_run(shown):
    assert shown.dashboard.steps == [] and "not begun" in shown.dashboard.picture().get_suptitle()
    shown.on_step(None, HISTORY)
    assert shown.translations == [] and shown.dashboard.steps == [1, 2, 3]
    last = History(**vars(HISTORY) | dict(losses=[5.0] * 6, rates=[0.1] * 6))
    shown.on_step(None, last)
    assert shown.dashboard.steps == [1, 2, 3, 4, 5, 6], "the last step is shown at once"
    shown.on_epoch(None, last)
    assert [step for step, _ in shown.translations] == [6] and "&lt;b&gt;" in shown._table.content.data


@pytest.mark.parametrize("steps", [3, 6], ids=["interrupted", "finished"])
def test_the_stored_picture_is_renewed_when_the_cell_ends_and_not_before(steps, shown):
    """A new view would take the focus from what is being chosen; a run that was stopped keeps its picture, too."""
    for _ in range(2):
        shown.on_step(None, History(**vars(HISTORY) | dict(losses=[5.0] * steps, rates=[0.1] * steps)))
        shown.on_epoch(None, HISTORY)
    assert shown._view.updates == 0
    for _ in range(2):  # the next cell has no run
        shown._shell.events.trigger("post_run_cell", None)
    assert shown._view.updates == 1 and shown._view.content is shown.dashboard


def test_a_run_outside_a_notebook_is_shown_too(shown):
    shown._shell = None
    shown.on_step(None, HISTORY)
    assert shown.dashboard.steps == [1, 2, 3]


def test_the_page_is_not_flooded(shown):
    """A step in between waits until half a second has passed."""
    shown.on_step(None, HISTORY)
    shown.on_step(None, History(**vars(HISTORY) | dict(losses=[5.0] * 4, rates=[0.1] * 4)))
    assert shown.dashboard.steps == [1, 2, 3]
