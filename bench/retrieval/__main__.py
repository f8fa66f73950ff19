"""`python -m bench.retrieval`: measures how tools are found and says what holds; ends with 1 if something does not."""

import argparse
import sys
import tempfile
from pathlib import Path

from bench.claims import Verdict
from bench.report import verdict_lines
from bench.retrieval.claims import quality_verdicts, speed_verdicts
from bench.retrieval.quality import measure_quality
from bench.retrieval.report import quality_table, speed_table
from bench.retrieval.speed import measure_speed

# Questions of each set: for quality (None: all of them) and for speed.
FULL, QUICK = (None, 12), (100, 4)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer questions: a first look, not a verdict")
    parser.add_argument("--only", choices=("quality", "speed"), help="one half of it")
    given = parser.parse_args()
    judged, timed = QUICK if given.quick else FULL
    verdicts: list[Verdict] = []
    try:
        if given.only != "speed":
            quality = measure_quality(judged)
            verdicts += quality_verdicts(quality)
            print(quality_table(quality), flush=True)
        if given.only != "quality":
            with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
                speed = measure_speed(Path(folder), timed)
            verdicts += speed_verdicts(speed)
            print(f"\n{speed_table(speed)}", flush=True)
    except (RuntimeError, OSError) as error:
        print(f"bench: nothing was measured: {error}", file=sys.stderr)
        return 2
    print(f"\n{verdict_lines(verdicts)}")
    return 0 if all(verdict.holds for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
