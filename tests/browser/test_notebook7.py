"""The widgets in Jupyter Notebook 7: the explorer stands for all, they share what could differ."""

import pytest

from course_lib.analysis.exploration import explore
from course_lib.translator import Translator
from tests.helpers import explorer as page
from tests.helpers.lab import Lab


def test_the_explorer_draws_every_head_in_notebook_7(lab: Lab) -> None:
    lab.address = lab.address.replace("/lab/tree/", "/notebooks/")
    lab.open_cells("seven", *page.CELLS)
    assert "/notebooks/seven.ipynb" in lab.page.url
    lab.complaints.clear()  # extensions that look for what JupyterLab alone has; none of it is the course's
    lab.run_all()
    explorer, maps = lab.widget(), explore(Translator.from_pretrained("course"), page.TEXT).attention.cross
    page.shows_every_head(explorer, maps)
    with pytest.raises(AssertionError):
        page.shows(explorer, maps[0][0], seconds=0.2)
