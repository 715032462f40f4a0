"""The tables of the README: the lessons with their minutes, and the results with their signatures, from the records.

    lessons, logs, records -> lessons_table, results_table -> README.md, between two marks

Usage: python -m notebooks.source.readme, after a change of a lesson or of a record.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
END = "<!-- end -->"
WHAT_YOU_DO = {
    "00": "translate what you type, look inside, see the map of the course",
    "01": "learn subwords with byte pairs, pad sentences to batches, embed tokens",
    "02": "see that attention ignores order; build the sinusoids, add them, learn them, put them beside the words",
    "03": "build a soft look-up, from one query in a loop to the paper's equation 1",
    "04": "split one look-up into heads, and score what trained heads see",
    "05": "hide padding and the future, and prove that nothing leaks",
    "06": "add feed-forward networks, residuals and norms, and stack them deep",
    "07": "shift right, attend to the memory, write token by token",
    "08": "assemble the whole model with the paper's table, count its parameters, overfit one batch",
    "09": "take the loss, Adam and the schedule apart; stop, resume and average a run",
    "10": "train a translator while you watch, and find out where it fails",
    "11": "decode greedily, by drawing and with a beam, with a cache; ask what a BLEU score means",
    "12": "score every head against known alignments, switch heads off, and see where maps mislead",
    "13": "tell attention the offset: relative biases, ALiBi, rotary; see what texts four times as long do",
    "14": "count FLOPs and bytes, measure them, make the model smaller: int8, a distilled student",
    "15": "race an LSTM, a GRU, convolutions and a state-space layer, and see where the Transformer loses",
    "16": "build a classifier, a language model, a vision transformer, a captioner and a parser of the same blocks",
    "17": "bring your own sentences, train on several processes, and plan the paper's 27.3 BLEU",
    "18": "judge sentences about the Transformer, and put each to the test",
}
SCORED = {
    "[`everyday`](course_lib/pretrained/everyday/README.md), Tatoeba test": "course_lib/pretrained/everyday/log.json",
    "[`course`](course_lib/pretrained/course/README.md), 1,000 new sentences": "course_lib/pretrained/course/log.json",
    "`tiny`, half an hour on one core, Multi30k test 2016": "notebooks/records/multi30k_half_hour.json",
    "`tiny`, 72 epochs in lower case, three seeds, Multi30k test 2016": "notebooks/records/multi30k_budget_seed*.json",
}


def lessons_table() -> str:
    """A row for each lesson that is built: its title and link, minutes to read, what you do."""
    rows = ["| Lesson | Minutes | What you do |", "|---|---|---|"]
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title = re.search(r"^# (\d\d) · ([^:\n]+)", first)
        minutes = re.search(r"\*\*Time\*\*: (\d+) minutes", first)
        link = f"[{title[1]} {title[2].strip()}](notebooks/{path.name})"
        rows.append(f"| {link} | {minutes[1]} | {WHAT_YOU_DO[title[1]]} |")
    return "\n".join(rows)


def results_table() -> str:
    """What the translators score, each with its search and signature, and how fast the library is beside others."""
    rows = ["| What | Result | How it was measured |", "|---|---|---|"]
    return "\n".join(rows + ["| " + " | ".join(cells) + " |" for cells in (*_scores(), *_speeds())])


def _scores() -> Iterator[tuple[str, str, str]]:
    """With the beam, chosen before the test part was looked at; of several seeds the lowest and the highest."""
    for what, pattern in SCORED.items():
        beams = [_read(path)["test"][-1] for path in sorted(ROOT.glob(pattern))]
        beam = beams[0]
        prefix = "tokenized_" if "lower case" in what else ""
        exact = f", {beam['exact_match']:.1%} exact" if "`course`" in what else ""
        measured = f"beam {beam['beam_size']}, `{in_a_table(beam[prefix + 'signature'])}`"
        found = sorted({f"{each[prefix + 'bleu']:.1f}" for each in beams})
        yield what, f"{' to '.join(found[:1] + found[1:][-1:])} BLEU{exact}", measured


def _speeds() -> Iterator[tuple[str, str, str]]:
    """Each other library in one row: how many times as fast ours is, over all that was compared."""
    speed = _read("tests/bench/results.json")
    for part in ("training", "decoding"):
        lines = [line for line in speed[part]["lines"] if not line["peer"].startswith("ours")]
        for peer in dict.fromkeys(line["peer"] for line in lines):
            ratios = [line["ratio"] for line in lines if line["peer"] == peer]
            what = f"speed of {part}, beside {peer}"
            told = f"{min(ratios):.2f} to {max(ratios):.2f} times as fast"
            yield what, told, f"{len(ratios)} [kinds of work](docs/performance.md), two cores"


def in_a_table(text: str) -> str:
    """A text with bars, which would end a cell of a Markdown table, also inside of code."""
    return text.replace("|", r"\|")


def _read(path: str | Path) -> dict:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def render(page: str) -> str:
    """The page with today's tables."""
    for name, table in (("lessons", lessons_table()), ("results", results_table())):
        begin = f"<!-- {name}: written by notebooks/source/readme.py -->\n"
        before, rest = page.split(begin)
        page = f"{before}{begin}{table}\n{END}{rest.split(END, 1)[1]}"
    return page


if __name__ == "__main__":
    README.write_text(render(README.read_text(encoding="utf-8")), encoding="utf-8")
