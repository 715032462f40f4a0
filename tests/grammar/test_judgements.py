"""What one reader made of 400 sentences: judgements.tsv. A change of the grammar asks for a new reading.

To read again, take a seed that nobody has looked at, judge every sentence as a picky native reader would, and write
sheet and head anew; the laws below say what the sheet must hold.
"""

import re
from pathlib import Path

import pytest

from course_lib.grammar import generate
from course_lib.metrics import share_estimate

LINES = (Path(__file__).parent / "judgements.tsv").read_text(encoding="utf-8").splitlines()
HEAD = [line for line in LINES if line.startswith("#")]
ROWS = [tuple(line.split("\t")) for line in LINES[len(HEAD) + 1 :]]
SEED = int(re.search(r"generate\(404, (\d+)\)", HEAD[0])[1])
FAMILIAR = 4
LIMITS = {"absurd": 0.02, "incoherent": 0.05, "English": 0.01, "German": 0.0}


def counted(rows, verdict):
    """How many sentences have a verdict, and of how many that could have it: only joined ones are incoherent."""
    able = [row for row in rows if verdict != "incoherent" or row[2] == "joined"]
    return sum(row[3] == verdict for row in able), len(able)


def summary(rows, verdict):
    count, total = counted(rows, verdict)
    share = share_estimate(count, total)
    value, low, high = (100 * number for number in (share.value, share.low, share.high))
    return f"# {verdict}: {count} of {total}, {value:.1f} %, 95 % Wilson interval {low:.1f} to {high:.1f} %"


def assert_told(rows):
    """The head tells the counts of the sheet, and every share is within its limit."""
    for verdict, limit in LIMITS.items():
        assert summary(rows, verdict) in HEAD
        count, total = counted(rows, verdict)
        assert count / total <= limit
    assert all(bool(note) == (verdict != "good") for *_, verdict, note in rows)


def test_the_grammar_makes_the_sentences_that_were_read():
    assert [pair[:2] for pair in generate(FAMILIAR + len(ROWS), SEED)[FAMILIAR:]] == [row[:2] for row in ROWS]


def test_few_sentences_were_found_absurd():
    assert len(ROWS) == 400
    assert {row[2] for row in ROWS} == {"single", "joined"}
    assert {row[3] for row in ROWS} <= {"good", *LIMITS}
    assert_told(ROWS)


def test_a_joined_sentence_has_its_conjunction():
    joining = {"because", "although", "when", "if", "while", "before", "but", "and"}
    assert all(joining & set(src.lower().replace(",", "").split()) for src, _, kind, *_ in ROWS if kind == "joined")
    assert all({"weil", "obwohl"}.isdisjoint(tgt.split()) for _, tgt, kind, *_ in ROWS if kind == "single")


@pytest.mark.parametrize("verdict", LIMITS)
def test_another_verdict_is_noticed(verdict):
    at = next(at for at, row in enumerate(ROWS) if row[2:4] == ("joined", "good"))
    changed = [(*row[:3], verdict, "changed") if here == at else row for here, row in enumerate(ROWS)]
    with pytest.raises(AssertionError):
        assert_told(changed)
