"""`./dev bench`: measures the claims and prints the results; exits with 1 if a claim fails, 2 if it cannot measure."""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import anyio

from bench import answers as answers_of
from bench import page, report, starting
from bench.calls import FULL, QUICK, measure
from bench.claims import Verdict, proxy_verdicts, turn_verdicts, verdicts
from bench.editors import measure as editing
from bench.editors import report as editors_report
from bench.editors.claims import editors_verdicts
from bench.memory import calls as memory_calls_of
from bench.memory import measure as remembering
from bench.memory import report as memory_report
from bench.memory.claims import memory_verdicts
from bench.pages import claims as pages_claims
from bench.pages import measure as browsing
from bench.platform import measure as asking
from bench.platform import report as platform_report
from bench.platform.claims import platform_verdicts
from bench.processes import ROOT
from bench.proxies import report as proxies_report
from bench.proxies.measure import measure_proxies
from bench.retrieval import measure as retrieving
from bench.retrieval import report as retrieval_report
from bench.retrieval.claims import retrieval_verdicts
from bench.schedule import measure as scheduling
from bench.schedule import report as schedule_report
from bench.schedule.claims import schedule_verdicts
from bench.turns import measure_turns

RESULTS = ROOT / ".build" / "bench" / "results.json"
# (pairs of a turn and a direct call, turns during which memory is watched)
FULL_TURNS, QUICK_TURNS = (400, 10_000), (100, 1_000)


@dataclass(frozen=True, slots=True)
class PartResult:
    """The results of one part of the bench: the verdicts, the tables for people, and the data for machines."""

    verdicts: list[Verdict]
    table: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def document(self) -> dict[str, Any]:
        return {**self.details, "verdicts": [asdict(verdict) | {"holds": verdict.holds} for verdict in self.verdicts]}


def calls(folder: Path, *, quick: bool) -> PartResult:
    effort = QUICK if quick else FULL
    print(f"{effort.rounds} rounds of {effort.calls} calls to each server in each era, one call at a time", flush=True)
    measured = measure(effort, folder)
    found = verdicts(measured)
    return PartResult(found, report.table(measured), report.document(measured, found, effort))


def turns(folder: Path, *, quick: bool) -> PartResult:
    pairs, many = QUICK_TURNS if quick else FULL_TURNS
    print(f"{pairs} turns and as many direct calls, then {many:,} turns", flush=True)
    return PartResult(turn_verdicts(anyio.run(measure_turns, folder, pairs, many)))


def proxies(folder: Path, *, quick: bool) -> PartResult:
    effort = QUICK if quick else FULL
    print(f"{effort.rounds} rounds of {effort.calls} calls directly and through each proxy", flush=True)
    measured = measure_proxies(effort, folder)
    return PartResult(proxy_verdicts(measured), proxies_report.table(measured), proxies_report.document(measured))


def answers(folder: Path, *, quick: bool) -> PartResult:
    calls_made = answers_of.QUICK_CALLS if quick else answers_of.FULL_CALLS
    print(f"{calls_made:,} calls through the gateway with answers of all sizes", flush=True)
    measured = answers_of.measure_answers(folder, calls_made)
    return PartResult(answers_of.answers_verdicts(measured), answers_of.table(measured), answers_of.document(measured))


def retrieval(folder: Path, *, quick: bool) -> PartResult:
    print("the search of tools: how well, how quickly, in how much memory", flush=True)
    measured = retrieving.measure_retrieval(retrieving.QUICK if quick else retrieving.FULL, folder)
    return PartResult(
        retrieval_verdicts(measured), retrieval_report.table(measured), retrieval_report.document(measured)
    )


def schedule(folder: Path, *, quick: bool) -> PartResult:
    effort = scheduling.QUICK if quick else scheduling.FULL
    print(f"{effort.due:,} prompts due at once among {effort.sizes[0]:,} and {effort.sizes[1]:,} schedules", flush=True)
    measured = scheduling.measure_schedule(effort, folder)
    return PartResult(schedule_verdicts(measured), schedule_report.table(measured), schedule_report.document(measured))


def memory(folder: Path, *, quick: bool) -> PartResult:
    print("the search of memories: how well, and how quickly among how many", flush=True)
    measured = remembering.measure_memory(remembering.QUICK if quick else remembering.FULL, folder)
    return PartResult(memory_verdicts(measured), memory_report.table(measured), memory_report.document(measured))


def memory_calls(folder: Path, *, quick: bool) -> PartResult:
    rounds, count = (3, 60) if quick else (7, 200)
    print(f"{rounds} rounds of {count} calls of each of some memory tools", flush=True)
    measured = memory_calls_of.measure_calls(folder, rounds, count)
    return PartResult(memory_calls_of.calls_verdicts(measured), memory_calls_of.table(measured))


def editors(folder: Path, *, quick: bool) -> PartResult:
    effort = editing.QUICK if quick else editing.FULL
    print(f"{effort.rounds * effort.pairs} turns with and without an editor, then {effort.prompts:,} more", flush=True)
    measured = editing.measure_editors(effort, folder)
    return PartResult(editors_verdicts(measured), editors_report.table(measured), editors_report.document(measured))


def platform(_folder: Path, *, quick: bool) -> PartResult:
    effort = asking.QUICK if quick else asking.FULL
    print(f"{effort.rounds} rounds of {effort.requests} discoveries, by turns with and without the id", flush=True)
    measured = asking.measure_platform(effort)
    return PartResult(platform_verdicts(measured), platform_report.table(measured), platform_report.document(measured))


def pages(folder: Path, *, quick: bool) -> PartResult:
    effort = browsing.QUICK if quick else browsing.FULL
    print(f"each page {effort.rounds} times, in an empty installation and in a full one", flush=True)
    measured = browsing.measure_pages(effort, folder)
    return PartResult(pages_claims.pages_verdicts(measured), pages_claims.table(measured))


def starts(folder: Path, *, quick: bool) -> PartResult:
    rounds = starting.QUICK_ROUNDS if quick else starting.FULL_ROUNDS
    print(f"{rounds} rounds of some commands and of what they import", flush=True)
    measured = starting.measure_starts(folder, rounds)
    return PartResult(starting.starts_verdicts(measured), starting.table(measured))


PARTS: Mapping[str, Callable[..., PartResult]] = {
    "calls": calls,
    "turns": turns,
    "proxies": proxies,
    "answers": answers,
    "retrieval": retrieval,
    "schedule": schedule,
    "memory": memory,
    "memory-calls": memory_calls,
    "editors": editors,
    "platform": platform,
    "pages": pages,
    "starts": starts,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure what a call costs, against its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer calls and rounds: a first look, not a verdict")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    given = parser.parse_args()
    # On a signal, unwind: the servers must not outlive the bench.
    signal.signal(signal.SIGTERM, _leave)
    try:
        with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
            names = [given.only] if given.only else list(PARTS)
            found = {name: PARTS[name](Path(folder), quick=given.quick) for name in names}
    except (RuntimeError, OSError) as error:
        print(f"bench: nothing was measured: {error}", file=sys.stderr)
        return 2
    return _tell(found, quick=given.quick)


def _tell(found: Mapping[str, PartResult], *, quick: bool) -> int:
    every = [verdict for part in found.values() for verdict in part.verdicts]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({name: part.document() for name, part in found.items()}, indent=2) + "\n")
    if not quick:
        page.write({name: page.section(name, part.table, part.verdicts) for name, part in found.items()}, list(PARTS))
    tables = "".join(f"\n{part.table}\n" for part in found.values() if part.table)
    print(f"{tables}\n{report.verdict_lines(every)}\n\nresults: {RESULTS.relative_to(ROOT)}")
    failed = [verdict for verdict in every if not verdict.holds]
    for verdict in failed:
        print(f"bench: does not hold: {verdict.claim}; it is {verdict.found:.2f}", file=sys.stderr)
    return 1 if failed else 0


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
