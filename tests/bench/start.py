"""What a visitor waits for: the import, and the first translation of a new process."""

import statistics
import subprocess
import sys
from time import perf_counter

WORK = {
    "import torch": "import torch",
    "import course_lib.translator": "import torch, course_lib.translator",
    "first translation": "from course_lib import Translator; Translator.from_pretrained().translate('Where am I?')",
}


def rows(*, rounds: int, threads: int) -> list[dict]:
    """Lines of the table: seconds of a new Python, each beside `import torch` alone."""
    seconds = {name: [] for name in WORK}
    for number in range(rounds + 1):
        for name, code in WORK.items():
            started = perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            if number:
                seconds[name].append(perf_counter() - started)
    base, *others = WORK
    return [
        {
            "work": name,
            "unit": "s",
            "ours": round(statistics.median(seconds[name]), 2),
            "peer": base,
            "theirs": round(statistics.median(seconds[base]), 2),
            "over it": round(statistics.median(a - b for a, b in zip(seconds[name], seconds[base], strict=True)), 2),
        }
        for name in others
    ]
