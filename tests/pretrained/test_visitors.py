"""What visitors type into the everyday translator: 120 sentences of all kinds, and what may come back."""

import re
from pathlib import Path

TABLE = Path(__file__).with_name("visitors.tsv").read_text(encoding="utf-8").splitlines()
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


def test_the_sentences_are_of_many_kinds_and_differ():
    assert len(ROWS) == 120 == len({text for _, text, _, _ in ROWS})
    assert len({kind for kind, *_ in ROWS}) == 12


def test_what_says_nothing_is_not_accepted():
    assert len(accepted(lambda text: (text, []))) < 10
    assert len(accepted(lambda text: ("Ich weiß es nicht.", []))) < 3
    assert [text for _, text, *_ in accepted(refused)] == ["???"]


def refused(text):
    raise ValueError("no")
