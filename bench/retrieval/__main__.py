"""`python -m bench.retrieval`: measures how tools are found and says what holds; ends with 1 if something does not."""

import argparse
import sys
import tempfile
from pathlib import Path

from bench.report import verdict_lines
from bench.retrieval.claims import retrieval_verdicts
from bench.retrieval.measure import FULL, QUICK, measure_retrieval
from bench.retrieval.report import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer questions: a first look, not a verdict")
    parser.add_argument("--only", choices=("quality", "speed"), help="one half of it")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
            measured = measure_retrieval(QUICK if given.quick else FULL, Path(folder), given.only)
    except (RuntimeError, OSError) as error:
        print(f"bench: nothing was measured: {error}", file=sys.stderr)
        return 2
    found = retrieval_verdicts(measured)
    print(f"{table(measured)}\n\n{verdict_lines(found)}")
    return 0 if all(verdict.holds for verdict in found) else 1


if __name__ == "__main__":
    sys.exit(main())
