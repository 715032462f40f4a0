"""What visitors type, and what may come back: the sentences of tests/pretrained/visitors.tsv."""

import re
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "pretrained" / "visitors.tsv"
TABLE = FILE.read_text(encoding="utf-8").splitlines()
ROWS = [line.split("\t") for line in TABLE if not line.startswith("#")][1:]  # kind, text, acceptable, says


def law_accepts(row: list[str], answer) -> None:
    """`answer`: text to (translation, remarks); raises ValueError where it refuses."""
    _, text, acceptable, says = row
    try:
        translation, remarks = answer(text.replace("\\n", "\n"))
    except ValueError as error:
        assert acceptable.split("|")[0] == "error" and re.search(says, str(error), re.IGNORECASE), error
        return
    assert re.fullmatch(acceptable.removeprefix("error|"), translation, re.DOTALL), translation
    assert re.search(says, " ".join(remarks)), remarks


def accepted(answer) -> list[list[str]]:
    """The rows whose answers are acceptable."""
    found = []
    for row in ROWS:
        try:
            law_accepts(row, answer)
        except AssertionError:
            continue
        found.append(row)
    return found
