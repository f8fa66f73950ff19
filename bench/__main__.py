"""`./dev bench`: measures the claims, prints what it found, ends with 1 when one does not hold, 2 when it could not."""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

import anyio

from bench.calls import FULL, QUICK, measure
from bench.claims import turn_verdicts, verdicts
from bench.processes import ROOT
from bench.report import document, table, verdict_lines
from bench.turns import measure_turns

RESULTS = ROOT / ".build" / "bench" / "results.json"
# (pairs of a turn and a direct call, turns while the memory is watched)
FULL_TURNS, QUICK_TURNS = (400, 10_000), (100, 1_000)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure what a call costs, against its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer calls and rounds: a first look, not a verdict")
    quick = parser.parse_args().quick
    effort, turns = (QUICK, QUICK_TURNS) if quick else (FULL, FULL_TURNS)
    # Told to stop, unwind: the servers must not outlive the bench.
    signal.signal(signal.SIGTERM, _leave)
    print(f"{effort.rounds} rounds of {effort.calls} calls to each server in each era, one call at a time", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
            measured = measure(effort, Path(folder))
            print(f"{turns[0]} turns and as many direct calls, then {turns[1]:,} turns", flush=True)
            found = [*verdicts(measured), *turn_verdicts(anyio.run(measure_turns, Path(folder), *turns))]
    except (RuntimeError, OSError) as error:
        print(f"bench: nothing was measured: {error}", file=sys.stderr)
        return 2
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(document(measured, found, effort), indent=2) + "\n")
    print(f"\n{table(measured)}\n\n{verdict_lines(found)}\n\nresults: {RESULTS.relative_to(ROOT)}")
    failed = [verdict for verdict in found if not verdict.holds]
    for verdict in failed:
        print(f"bench: does not hold: {verdict.claim}; it is {verdict.found:.2f}", file=sys.stderr)
    return 1 if failed else 0


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
