"""The capstone's answers load the weights that lie beside its solution."""

import pytest

from notebooks.source.build_assignments import FOLDER


@pytest.fixture(autouse=True)
def beside_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER / "solution" / "19_capstone")
