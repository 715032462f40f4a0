"""What a person does in JupyterLab, for tests: open a notebook, run it, look at it, operate its widgets."""

import functools
import math
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, Page

NOTEBOOK = "window.jupyterapp.shell.currentWidget"
READY = f"() => {NOTEBOOK}?.context?.isReady && {NOTEBOOK}.sessionContext?.session?.kernel?.status === 'idle'"
OUTPUTS = f"""() => {{
  const cells = {NOTEBOOK}.content.model.cells;
  return Array.from({{length: cells.length}}, (_, i) => cells.get(i)).filter((cell) => cell.type === 'code')
    .map((cell) => ({{ source: cell.sharedModel.source, count: cell.executionCount, outputs: cell.outputs.toJSON() }}));
}}"""
LATENCIES = """async (controls, [values, watched, event]) => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel(); // what it brings comes after the paint
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  }));
  const times = [];
  for (const value of values) {
    await painted();
    const changed = new Promise((done, fail) => {
      const observer = new MutationObserver(() => { observer.disconnect(); done(); });
      setTimeout(() => fail(new Error(`${value}: nothing changed below what is watched`)), 10000);
      observer.observe(watched, { subtree: true, childList: true, attributes: true, characterData: true });
    });
    const started = performance.now();
    const control = controls.length > 1 ? controls[value] : controls[0];
    if (controls.length === 1) control.value = String(value);
    control.dispatchEvent(new Event(event, { bubbles: true }));
    await changed;
    await painted();
    times.push(performance.now() - started);
  }
  return times;
}"""
HEADING = re.compile("##+ ")
THEMES = ("JupyterLab Light", "JupyterLab Dark")
PICTURES = os.environ.get("COURSE_SCREENSHOTS")  # a folder that keeps a picture of each widget in both themes


def eventually(law: Callable) -> Callable:
    """A law of a page becomes one that may come to hold: it is tried again until then (a busy machine draws late).

    Args:
        law: takes a Locator or a Lab first, and fails by an AssertionError, or a ValueError where two lists are not
            equally long. It fails for good after `seconds`, a keyword that is added to its own.
    """

    @functools.wraps(law)
    def tried(place: "Locator | Lab", /, *args, seconds: float = 60, **options):
        end = time.monotonic() + seconds
        while True:
            try:
                return law(place, *args, **options)
            except (AssertionError, ValueError):
                if time.monotonic() > end:
                    raise
            place.page.wait_for_timeout(50)

    return tried


class Lab:
    """A page with JupyterLab.

    Args:
        page: of Playwright.
        address: with a place for the notebook's path.
        folder: that the server serves.
    """

    def __init__(self, page: Page, address: str, folder: Path):
        self.page, self.address, self.folder = page, address, folder
        self.complaints: list[str] = []  # errors of the page and its console
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))

    def open(self, name: str) -> None:
        """Opens a notebook of the folder in a fresh kernel."""
        self.page.goto(self.address.format(f"{name}.ipynb"))
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
        self.page.wait_for_function(READY, timeout=120_000)
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")

    def open_cells(self, name: str, *cells: str) -> None:
        """Writes a notebook of these cells and opens it; one that begins with ## is text."""
        make = {True: nbformat.v4.new_markdown_cell, False: nbformat.v4.new_code_cell}
        notebook = nbformat.v4.new_notebook(cells=[make[bool(HEADING.match(source))](source) for source in cells])
        notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
        nbformat.write(notebook, self.folder / f"{name}.ipynb")
        self.open(name)

    def run_all(self, *, timeout: float = 600) -> None:
        """Runs all cells; raises AssertionError on an error or a warning in any of them."""
        self.start_all()
        self.page.wait_for_function("() => window.done", timeout=1000 * timeout)
        self.check_outputs()

    def run_cell(self, number: int, *, how: str = "run-cell") -> None:
        """Chooses a cell and runs it, waiting for its end; `how` is another of JupyterLab's commands for that."""
        self.page.evaluate(
            f"""async ([number, how]) => {{
              {NOTEBOOK}.content.activeCellIndex = number;
              await window.jupyterapp.commands.execute(`notebook:${{how}}`);
            }}""",
            [number, how],
        )
        self.check_outputs()

    def start_all(self) -> None:
        """Runs all cells without waiting for them."""
        self.page.evaluate(
            "() => { window.done = false;"
            " window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.done = true; }); }"
        )

    def is_done(self) -> bool:
        """Whether all cells that were started have run."""
        return self.page.evaluate("() => window.done")

    def check_outputs(self) -> None:
        """Raises AssertionError on an error or a warning in any output."""
        for cell in self.cells():
            for output in cell["outputs"]:
                told = f"{output.get('ename')}: {output.get('evalue')}\n{cell['source']}"
                assert output["output_type"] != "error", told
                text = "".join(output.get("text", "")).strip()  # of a progress bar that went, an empty line is left
                assert output.get("name") != "stderr" or "%|" in text or not text, f"{text}\n{cell['source']}"

    def cells(self) -> list[dict]:
        """The code cells: source, count and outputs of each."""
        return self.page.evaluate(OUTPUTS)

    def run(self, source: str) -> str:
        """Runs code in the notebook's kernel, beside its cells, and returns what it prints."""
        return self.page.evaluate(
            f"""async (code) => {{
              const future = {NOTEBOOK}.sessionContext.session.kernel.requestExecute({{ code, store_history: false }});
              let text = "";
              future.onIOPub = (message) => {{
                if (message.header.msg_type === "stream") text += message.content.text;
                if (message.header.msg_type === "error") text += message.content.evalue;
              }};
              await future.done;
              return text;
            }}""",
            source,
        ).strip()

    def widget(self, number: int = 0) -> Locator:
        """The widget of that number, scrolled into view once it is drawn."""
        found = self.page.locator(".cw").nth(number)
        found.wait_for(timeout=60_000)
        found.scroll_into_view_if_needed()
        return found

    def latencies(self, controls: Locator, values: Sequence, watched: Locator, *, event: str = "input") -> list[float]:
        """Milliseconds from each event to the paint that shows its effect, measured in the browser.

        Args:
            controls: one <input>, which is given each value; or elements, of which each value is a number.
            values: each must change what is watched.
            watched: an element below which something changes in answer.
            event: its type.
        """
        return controls.evaluate_all(LATENCIES, [list(values), watched.element_handle(), event])

    def answers_within(
        self, limit: float, controls: Locator, values: Sequence, watched: Locator, *, event: str = "input"
    ) -> None:
        """Asserts that the median latency is at most so many milliseconds, in one of three rounds (others work too).

        Args:
            limit: in milliseconds.
            controls, values, watched, event: as of `latencies`.
        """
        rounds = []
        for turn in range(3):
            given = list(values)[:: -1 if turn % 2 else 1]  # each round ends elsewhere than the next begins
            times = sorted(self.latencies(controls, given[turn > 0 :], watched, event=event))
            rounds.append(times[len(times) // 2])
            print(f"latency: median {rounds[-1]:.0f} ms, 95 % below {times[math.ceil(0.95 * len(times)) - 1]:.0f} ms")
            if rounds[-1] <= limit:
                return
        raise AssertionError(f"expected an answer within {limit} ms, got medians of {rounds}")

    def switch_theme(self, theme: str) -> None:
        """Waits for the splash to go too: JupyterLab stumbles over it if the next theme comes sooner."""
        self.page.evaluate(f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeName === '{theme}'")
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def photograph(self, widget: Locator, name: str) -> None:
        """Keeps a picture of the widget in both themes, where COURSE_SCREENSHOTS names a folder."""
        if PICTURES:
            for theme in THEMES:
                self.switch_theme(theme)
                time.sleep(0.5)  # until its colors are there
                widget.screenshot(path=Path(PICTURES) / f"{name}_{theme.split()[1].lower()}.png")

    def close(self) -> None:
        """Shuts the kernel down, if a notebook was opened."""
        self.page.evaluate(f"() => window.jupyterapp && {NOTEBOOK}?.sessionContext?.shutdown()")
