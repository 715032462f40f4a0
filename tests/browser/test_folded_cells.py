"""Folded cells: closed when a notebook opens, and opened by a click, in JupyterLab and in Jupyter Notebook 7."""

from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from notebooks.source import build_lessons as build
from tests.helpers.lab import Lab

LESSON = '# %%\nseen = 1\n\n# %% tags=["hide-input"]\nfolded = 2\nassert seen < folded\n'
SOON = 5000  # milliseconds


def opens_with_a_click(lab: Lab) -> None:
    """The second cell is closed; a click on what stands for it shows its code, and no fold is left."""
    folds = lab.page.locator(".jp-InputPlaceholder:visible")
    first, second = (lab.page.locator(".jp-CodeCell").nth(number).locator(".jp-InputArea-editor") for number in (0, 1))
    expect(folds).to_have_count(1, timeout=SOON)
    expect(first).to_be_visible(timeout=SOON)
    expect(second).to_be_hidden(timeout=SOON)
    folds.locator(".jp-Placeholder-content").click()
    expect(second).to_contain_text("assert seen < folded", timeout=SOON)
    expect(folds).to_have_count(0, timeout=SOON)


@pytest.mark.parametrize("place", ["/lab/tree/", "/notebooks/"])
def test_a_folded_cell_opens_with_a_click(
    place: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "address", lab.address.replace("/lab/tree/", place))
    source = tmp_path / "folds.py"
    source.write_text(LESSON, encoding="utf-8")
    for name, transforms in (("folds", (build.fold,)), ("flat", ())):  # the second one forgets to fold
        nbformat.write(build.generate(source, transforms), lab.folder / f"{name}.ipynb")
        lab.open(name)
        assert place in lab.page.url
        lab.complaints.clear()  # of Notebook 7, whose extensions look for what JupyterLab alone has
        if name == "folds":
            opens_with_a_click(lab)
        else:
            with pytest.raises(AssertionError):
                opens_with_a_click(lab)
