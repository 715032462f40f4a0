"""python -m tests.bench: one table of how fast the library is, beside what else one would use, and the same as JSON."""

import argparse
import importlib
import json
import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch

from course_lib.training.machine import describe_machine

PARTS = {"training": 20, "decoding": 7, "start": 7, "cost": 5}
ON_A_GPU = {"gpu": 20}  # and the rounds of each
RESULTS = Path(__file__).with_name("results.json")
COLUMNS = ("work", "unit", "ours", "peer", "theirs", "ratio", "threads", "share of peak", "same text", "over it")
COLUMNS += ("time ~ size^", "memory ~ size^")


def main() -> None:
    """Measures the parts that are asked for, prints their lines and keeps those of the others."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without")
    parser.add_argument("--rounds", type=int, help="of each measurement, after a warm-up")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="at most, for each contestant")
    arguments = parser.parse_args()
    all_parts = PARTS | ON_A_GPU
    if unknown := set(arguments.parts) - all_parts.keys():
        parser.error(f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(all_parts)}")
    torch.set_num_threads(arguments.threads)
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part in arguments.parts or PARTS:
        module, rounds = importlib.import_module(f"tests.bench.{part}"), arguments.rounds or all_parts[part]
        lines = module.rows(rounds=rounds, threads=arguments.threads)
        about = describe_machine(getattr(module, "DEVICE", "cpu"))
        peers = (peer for peer in ("transformers", "ctranslate2") if find_spec(peer))
        about |= {peer: version(peer) for peer in peers}
        results[part] = {"machine": about, "rounds": rounds, "lines": lines}
        print(table(lines), flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if "cost" in results:
        for name, figure in importlib.import_module("tests.bench.cost").pictures(results["cost"]["lines"]).items():
            figure.savefig(RESULTS.with_name(name), dpi=100)


def table(lines: list[dict]) -> str:
    """As Markdown."""
    columns = [column for column in COLUMNS if any(column in line for line in lines)]
    rows = [columns, ["---"] * len(columns), *([str(line.get(column, "")) for column in columns] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
