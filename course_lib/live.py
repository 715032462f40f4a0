"""A notebook's view of a training run: progress bar, loss so far, and sample translations as they improve."""

import html
import time
from collections.abc import Sequence

from IPython.display import HTML, display
from matplotlib.figure import Figure

from course_lib.charts import curves
from course_lib.training import History
from course_lib.transformer import Transformer
from course_lib.translator import Translator

REDRAW_SECONDS = 2.0
FIRST_SAMPLES = 100  # steps


class LiveTraining:
    """Shows a run in the output of the cell that creates it; give its two methods to `fit`.

    Args:
        translator: of the model that is trained.
        samples: source sentences to translate now and then: after 100 steps, 200, 400 and so on, and at the end.

    The page shows the last state only, so that a stored notebook keeps one bar, one figure and one table.
    """

    def __init__(self, translator: Translator, samples: Sequence[str]):
        self.translator, self.samples = translator, list(samples)
        self.translations: list[tuple[int, list[str]]] = []
        self._drawn = 0.0
        self._bar = display(HTML("starting …"), display_id=True)
        self._figure = display(HTML(""), display_id=True)
        self._table = display(HTML(""), display_id=True)

    def on_step(self, model: Transformer, history: History) -> None:
        """Moves the bar and redraws the loss every few seconds; translates the samples when it is time."""
        step = len(history.losses)
        if is_sampling_step(step, history.total_steps):
            outputs = [item.text for item in self.translator.translate_batch(self.samples, beam_size=1)]
            self.translations.append((step, outputs))
            self._table.update(HTML(samples_html(self.samples, self.translations)))
        if time.monotonic() - self._drawn > REDRAW_SECONDS:
            self._draw(history)

    def on_epoch(self, model: Transformer, history: History) -> None:
        """Adds the validation loss."""
        self._draw(history)

    def _draw(self, history: History) -> None:
        self._bar.update(HTML(progress_html(history)))
        self._figure.update(loss_figure(history))
        self._drawn = time.monotonic()


def is_sampling_step(step: int, total_steps: int, *, first: int = FIRST_SAMPLES) -> bool:
    """Whether step is the last one, or `first` times a power of two."""
    factor, rest = divmod(step, first)
    return step == total_steps or (rest == 0 and factor > 0 and factor & (factor - 1) == 0)


def progress_html(history: History, *, width: int = 40) -> str:
    """The progress of a run as one line of text."""
    done, total = len(history.losses), history.total_steps
    bar = "█" * (width * done // total) + "░" * (width - width * done // total)
    return (
        f"<pre>{bar} step {done:,} of {total:,} · {history.seconds:.0f} s · "
        f"loss {history.losses[-1]:.3f} · learning rate {history.rates[-1]:.1e}</pre>"
    )


def loss_figure(history: History) -> Figure:
    """Training loss of each step, and validation loss of each epoch where it was measured."""
    series = {"training (smoothed labels)": (range(1, len(history.losses) + 1), history.losses)}
    if measured := [record for record in history.epochs if "valid_loss" in record]:
        series["validation"] = ([record["step"] for record in measured], [record["valid_loss"] for record in measured])
    return curves(series, xlabel="step", ylabel="loss (nats per token)", title="The loss falls while we watch")


def samples_html(samples: Sequence[str], translations: Sequence[tuple[int, Sequence[str]]]) -> str:
    """A table of sample translations: a column for each sample, a row for each time, which is given as a step."""
    head = "".join(f"<th>{html.escape(sample)}</th>" for sample in samples)
    rows = "".join(
        f"<tr><td>{step:,}</td>" + "".join(f"<td>{html.escape(output)}</td>" for output in outputs) + "</tr>"
        for step, outputs in translations
    )
    return f"<table><thead><tr><th>step</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
