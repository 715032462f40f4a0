"""Makes an experiment again: python -m course_lib.experiments NAME."""

import argparse
import sys
from pathlib import Path

from course_lib.experiments.catalog import NAMES, find_grid
from course_lib.experiments.grid import run_grid


def main(arguments: list[str] | None = None) -> int:
    """Makes all runs that a record lacks; returns 0, 1 after an error (which is printed), 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.experiments", description=__doc__)
    parser.add_argument("name", choices=NAMES, help="of the experiment")
    parser.add_argument("--sides", nargs="+", default=[], help="of the comparison (default: all)")
    parser.add_argument("--out", type=Path, help="the record (default: notebooks/records/NAME.json)")
    parser.add_argument("--folder", type=Path, help="for the runs' own files (default: runs/NAME)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, of one thread each (default: 1)")
    options = parser.parse_args(arguments)
    out = options.out or Path("notebooks/records") / f"{options.name}.json"
    folder = options.folder or Path("runs") / options.name
    try:
        run_grid(find_grid(options.name), out, folder=folder, sides=options.sides, jobs=options.jobs)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
