"""The claims about the schedule: runs a second against the best peer, lateness, and the cost of waiting."""

import statistics
from collections.abc import Iterator

from bench.claims import Verdict
from bench.schedule.cases import Case, Engine, Store
from bench.schedule.idle import ASKING
from bench.schedule.measure import ScheduleMeasured

TIMES_THE_PEERS = 3.0
OF_THE_FEWER = 0.8
LATE_MS = 100.0


def schedule_verdicts(measured: ScheduleMeasured) -> list[Verdict]:
    ours = [case for case in measured.firings if case.engine is Engine.DESK]
    return [
        *(_against_peers(measured, case) for case in ours),
        *_against_helped(measured),
        *_growth(measured, ours),
        *_lateness(measured),
        *_waiting(measured),
    ]


def _against_peers(measured: ScheduleMeasured, case: Case) -> Verdict:
    """For a value that must be larger, the claim is an inverse ratio that must not exceed 1."""
    peers = case.schedules if case.schedules in measured.effort.peers_sizes else measured.effort.peers_sizes[0]
    ours, best = measured.per_second(case), measured.best_peer(peers)
    rounds = tuple(TIMES_THE_PEERS * best / firing.per_second for firing in measured.firings[case])
    claim = f"{_told(case)}: at least {TIMES_THE_PEERS:g}x the best peer ({ours / best:.1f}x)"
    return Verdict(claim, TIMES_THE_PEERS * best / ours, 1.0, rounds)


def _against_helped(measured: ScheduleMeasured) -> Iterator[Verdict]:
    """This peer keeps no record of its work, and drops each job before it runs; we are faster anyway."""
    for schedules in measured.effort.sizes:
        ours, theirs = (Case(engine, Store.SQLITE, schedules) for engine in (Engine.DESK, Engine.APSCHEDULER_WAL))
        pairs = zip(measured.firings[theirs], measured.firings[ours], strict=True)
        rounds = tuple(their.per_second / our.per_second for their, our in pairs)
        claim = f"{_told(ours)}: more than APScheduler on a SQLite set up as ours"
        yield Verdict(f"{claim} ({1 / statistics.median(rounds):.1f}x)", statistics.median(rounds), 1.0, rounds)


def _growth(measured: ScheduleMeasured, ours: list[Case]) -> Iterator[Verdict]:
    fewer, more = measured.effort.sizes
    for case in ours:
        if case.schedules == more:
            other = Case(case.engine, case.store, fewer, case.workers)
            pairs = list(zip(measured.firings[case], measured.firings[other], strict=True))
            rounds = tuple(OF_THE_FEWER * many.seconds / few.seconds for many, few in pairs)
            # Over all rounds together: one round takes two seconds, and the speed of a machine varies.
            share = sum(few.seconds for _, few in pairs) / sum(many.seconds for many, _ in pairs)
            claim = f"{_told(case)}: at least {OF_THE_FEWER:g}x as many fires as with {fewer:,} ({share:.2f}x)"
            yield Verdict(claim, OF_THE_FEWER / share, 1.0, rounds)


def _lateness(measured: ScheduleMeasured) -> Iterator[Verdict]:
    for store, firing in measured.single.items():
        late = firing.late_ms(0.99)
        claim = f"a prompt is at most {LATE_MS:g} ms late (p99 of {firing.due:,} on {store}, one after the other)"
        yield Verdict(claim, float("inf") if late is None else late, LATE_MS, ())


def _waiting(measured: ScheduleMeasured) -> Iterator[Verdict]:
    for store, share in measured.idle.workers.items():
        idle = f"an idle worker with {measured.effort.sizes[-1]:,} schedules on {store}"
        claim = f"{idle} takes at most twice as much as a program that {ASKING[store]}"
        yield Verdict(claim, share / measured.idle.floors[ASKING[store]], 2.0, ())


def _told(case: Case) -> str:
    workers = "1 worker" if case.workers == 1 else f"{case.workers} workers"
    return f"{case.store}, {workers}, {case.schedules:,} schedules"
