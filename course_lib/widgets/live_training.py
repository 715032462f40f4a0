"""A notebook's view of a training run: progress and loss so far, and sample translations as they improve."""

import html
import time
from collections.abc import Sequence

from IPython import get_ipython
from IPython.display import HTML, display

from course_lib.training import History, smoothing_floor
from course_lib.transformer import Transformer
from course_lib.translator import Translator
from course_lib.widgets import TrainingDashboard

REDRAW_SECONDS = 0.5
FIRST_SAMPLES = 100  # steps
LONGEST_SHOWN = 80  # characters of a translation


class LiveTraining:
    """Shows a run in the output of the cell that creates it; give its two methods to `fit`.

    Args:
        translator: of the model that is trained.
        samples: source sentences to translate now and then: after 100 steps, 200, 400 and so on, and at the end.
        label_smoothing: of the run; above 0, the floor of the training loss is drawn, and the lines are told apart.

    The page shows the last state only, so that a stored notebook keeps one figure and one table.
    """

    def __init__(self, translator: Translator, samples: Sequence[str], *, label_smoothing: float = 0.0):
        self.translator, self.samples = translator, list(samples)
        self.translations: list[tuple[int, list[str]]] = []
        self.dashboard = TrainingDashboard(
            floor=smoothing_floor(label_smoothing, translator.model.config.vocab_size)
        )
        self._shown = 0.0
        self._shell = get_ipython()
        self._view = display(self.dashboard, display_id=True)
        self._table = display(HTML(""), display_id=True)

    def on_step(self, model: Transformer, history: History) -> None:
        """Shows the newest state twice a second; translates the samples when it is time."""
        if self._shell:
            self._shell.events.register("post_run_cell", self._keep_picture)
        step = len(history.losses)
        if is_sampling_step(step, history.total_steps):
            outputs = [item.text for item in self.translator.translate_batch(self.samples, beam_size=1)]
            self.translations.append((step, outputs))
            self._table.update(HTML(samples_html(self.samples, self.translations)))
        if time.monotonic() - self._shown > REDRAW_SECONDS or step == history.total_steps:
            self.dashboard.show(history)
            self._shown = time.monotonic()

    def on_epoch(self, model: Transformer, history: History) -> None:
        """Adds the validation loss."""
        self.dashboard.show(history)

    def _keep_picture(self, _) -> None:
        """Renews the picture that a stored notebook keeps, once the cell has ended: the page draws a new view then."""
        self._shell.events.unregister("post_run_cell", self._keep_picture)
        self._view.update(self.dashboard)


def is_sampling_step(step: int, total_steps: int, *, first: int = FIRST_SAMPLES) -> bool:
    """Whether step is the last one, or `first` times a power of two."""
    factor, rest = divmod(step, first)
    return step == total_steps or (rest == 0 and factor > 0 and factor & (factor - 1) == 0)


def samples_html(samples: Sequence[str], translations: Sequence[tuple[int, Sequence[str]]]) -> str:
    """A table of sample translations, long ones cut: a column for each sample, a row for each time, given as a step."""

    def cell(text: str) -> str:
        short = text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
        return f"<td>{html.escape(short)}</td>"

    head = "".join(f"<th>{html.escape(sample)}</th>" for sample in samples)
    rows = "".join(
        f"<tr><td>{step:,}</td>{''.join(map(cell, outputs))}</tr>" for step, outputs in translations
    )
    return f"<table><thead><tr><th>step</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
