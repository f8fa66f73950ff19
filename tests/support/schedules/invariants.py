"""Checks what must hold in every history of a scheduler; describes each violation in a sentence."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise

from frontdesk.schedules.model import Misfire, Overlap, ScheduleDefinition, TriggerKind
from tests.support.schedules import oracle, receiver
from tests.support.schedules.history import Arrival, History, Row, by_delivery
from tests.support.schedules.receiver import REFUSALS, How

# Rules for the deliveries as the receiver saw them: their time, their number and their order


Made = Mapping[int, ScheduleDefinition]
NEVER = 1 << 62


def early(history: History, _made: Made) -> Iterator[str]:
    for arrival in history.arrivals:
        if arrival.began_us < arrival.intended_us:
            yield f"{arrival.id} came {arrival.intended_us - arrival.began_us} us early"


def late_start(history: History, _made: Made) -> Iterator[str]:
    """Nothing of a schedule begins, or begins again, after its cancel was acknowledged."""
    for cancel in history.diary.cancelled:
        for row in history.occurrences:
            if row["schedule_id"] == cancel.schedule_id and (row["started_us"] or 0) > cancel.at_us:
                yield f"{row['id']} was claimed {row['started_us'] - cancel.at_us} us after the cancel"
        for arrival in history.arrivals:
            after = arrival.schedule_id == cancel.schedule_id and arrival.began_us > cancel.at_us
            if after and (arrival.id, arrival.fence) not in cancel.fences:
                yield f"{arrival.id} was begun under fence {arrival.fence} after the cancel"


def begun_twice(history: History, _made: Made) -> Iterator[str]:
    """Repeated only if the first delivery failed, or its worker was lost before it could report."""
    for name, seen in by_delivery(history.arrivals).items():
        fences = [one.fence for one in seen]
        if len(set(fences)) < len(fences):
            yield f"{name} was sent twice under one fence: {fences}"
        for first, second in pairwise(one for one in seen if not _is_stale(history, one)):
            if not _has_cause(history, first, second):
                yield f"{name} went well in attempt {first.attempt}, and was sent again by {second.worker}"


def _has_cause(history: History, first: Arrival, second: Arrival) -> bool:
    if first.how in (How.CUT, How.DROP, *REFUSALS) or _lost_at(history, first) < NEVER:
        return True
    # It had no answer yet, and its worker gave it up for a new attempt.
    unanswered = first.ended_ns is None or first.ended_ns > second.began_ns
    return unanswered and second.attempt > first.attempt


def crowded(history: History, made: Made) -> Iterator[str]:
    """At most one running for an agent: the next begins when the one before has ended, or its worker was lost."""
    for agent, seen in _serial(history, made).items():
        for first, second in pairwise(seen):
            if _end(history, first, second) > second.began_ns:
                yield f"{agent} got {second.id} while {first.id} was under way"


def disorder(history: History, made: Made) -> Iterator[str]:
    """In the order of their times; and a begun delivery ends before the next one begins."""
    begun_us = {row["id"]: row["created_us"] for row in history.occurrences}
    for agent, seen in _serial(history, made).items():
        groups = [seen[0].id, *(second.id for first, second in pairwise(seen) if first.id != second.id)]
        for name, count in Counter(groups).items():
            if count > 1:
                yield f"{agent} went back to {name} after another"
        for queue in _queues(seen, made):
            for first, second in pairwise(queue):
                known_us = history.diary.known_us.get(second.schedule_id, 0)
                # A delivery waits while another one has the agent, or is about to get it.
                if second.intended_us < first.intended_us and known_us < begun_us.get(first.id, 0):
                    yield f"{agent} got {first.id} before {second.id}"


def _queues(seen: list[Arrival], made: Made) -> Iterator[list[Arrival]]:
    """The groups that keep an order: an agent's schedules that skip nothing, and each schedule by itself."""
    by_schedule: dict[int, list[Arrival]] = defaultdict(list)
    for one in seen:
        by_schedule[one.schedule_id].append(one)
    yield from by_schedule.values()
    yield [one for one in seen if _leaves_nothing_out(made[one.schedule_id])]


def _leaves_nothing_out(new: ScheduleDefinition) -> bool:
    policy = new.policy
    every_one = policy.misfire is Misfire.ALL and policy.overlap is not Overlap.SKIP and policy.max_late_s is None
    return (every_one or new.trigger.kind is TriggerKind.ONCE) and not new.trigger.jitter_s


def _serial(history: History, made: Made) -> dict[str, list[Arrival]]:
    """The deliveries to each agent that must not overlap, as long as their workers still held the lease."""
    found: dict[str, list[Arrival]] = defaultdict(list)
    manual = {row["id"] for row in history.occurrences if row["manual"]}
    for one in history.arrivals:
        serial = made[one.schedule_id].policy.overlap is not Overlap.ALLOW
        if serial and one.id not in manual and not _is_stale(history, one):
            found[one.agent].append(one)
    return found


def _end(history: History, first: Arrival, second: Arrival) -> int:
    """When the worker of the first one had finished it."""
    end = min(NEVER if first.ended_ns is None else first.ended_ns, _lost_at(history, first))
    gave_up = first.id == second.id and second.attempt > first.attempt
    return min(end, second.began_ns) if gave_up else end


def _lost_at(history: History, arrival: Arrival) -> int:
    """When its worker was lost, or the receiver itself."""
    lost = [one.ns for one in history.diary.lost if one.worker == arrival.worker and one.ns >= arrival.began_ns]
    ends = [at for at in history.diary.receiver_killed if at >= arrival.began_ns and arrival.ended_ns is None]
    return min(lost + ends, default=NEVER)


def _is_stale(history: History, arrival: Arrival) -> bool:
    """Whether its worker had been lost by then: it was sent before, or by a paused worker."""
    return any(one.worker == arrival.worker and one.ns < arrival.began_ns for one in history.diary.lost)


# Rules for every history of a scheduler, whatever happened to it; violations are sentences


SETTLED = {"delivered", "dead", "skipped", "cancelled"}


def violations(history: History, made: Made) -> list[str]:
    """All violations in a history; empty if it is correct."""
    checks = (
        unsettled,
        unaccounted,
        repeated,
        told_wrong,
        unrecorded,
        early,
        late_start,
        begun_twice,
        crowded,
        disorder,
    )
    return [f"{check.__name__}: {found}" for check in checks for found in check(history, made)]


def unsettled(history: History, _made: Made) -> Iterator[str]:
    """Every occurrence has ended, and one that was not delivered gives a reason."""
    cancelled = {one.schedule_id for one in history.diary.cancelled}
    for row in history.occurrences:
        if row["standing"] not in SETTLED:
            yield f"{row['id']} is still {row['standing']}"
        elif row["standing"] == "cancelled" and row["schedule_id"] not in cancelled:
            yield f"{row['id']} was cancelled, and nobody cancelled its schedule"
        elif row["standing"] in ("dead", "skipped") and not row["reason"]:
            yield f"{row['id']} is {row['standing']} without a reason"


def unaccounted(history: History, made: Made) -> Iterator[str]:
    """The times that were run or skipped are the oracle's, from the first without a gap, up to now or the end."""
    rows = _by_schedule(history)
    states = {row["id"]: row["state"] for row in history.schedules}
    for number, new in made.items():
        meant = oracle.times(new.trigger, history.now_us)
        found = sorted(at for row in rows[number] if not row["manual"] for at in times_of(row, meant))
        if found != meant[: len(found)]:
            missing, extra = sorted(set(meant[: len(found)]) - set(found)), sorted(Counter(found) - Counter(meant))
            yield f"schedule {number} lacks {missing[:3]} and has {extra[:3]} too many of {len(found)}"
        elif states[number] == "active" and len(found) < len(meant):
            yield f"schedule {number}: {len(meant) - len(found)} times passed unseen, from {meant[len(found)]}"
        elif states[number] == "ended" and not _is_done(new, rows[number], found, meant):
            yield f"schedule {number} ended after {len(found)} of {len(meant)} times"


def _is_done(new: ScheduleDefinition, rows: list[Row], found: list[int], meant: list[int]) -> bool:
    return len(found) == len(meant) or (new.max_repetitions is not None and _runs(rows) >= new.max_repetitions)


def repeated(history: History, made: Made) -> Iterator[str]:
    """One row for an intended time, and no more rows than the schedule allows; the receiver's log agrees."""
    rows = _by_schedule(history)
    manual = {row["id"] for row in history.occurrences if row["manual"]}
    for number, new in made.items():
        for at, count in Counter(row["intended_us"] for row in rows[number]).items():
            if count > 1:
                yield f"schedule {number} has {count} rows for {at}"
        most, ran = new.max_repetitions, _runs(rows[number])
        seen = len({one.id for one in history.arrivals if one.schedule_id == number and one.id not in manual})
        if most is not None and max(ran, seen) > most:
            yield f"schedule {number} ran {ran} times, of which {seen} were seen; {most} are allowed"


def told_wrong(history: History, made: Made) -> Iterator[str]:
    """A row agrees with the receiver's log, and its last lease holder wrote it."""
    arrivals = by_delivery(history.arrivals)
    rows = {row["id"]: row for row in history.occurrences}
    for unknown in arrivals.keys() - rows.keys():
        yield f"{unknown} was delivered, and there is no row of it"
    for name, row in rows.items():
        seen = arrivals.get(name, [])
        if {(one.schedule_id, one.agent, one.intended_us) for one in seen} - {_identity(row)}:
            yield f"{name} was delivered under somebody else's name"
        match row["standing"]:
            case "delivered" if not any(_answered(row, one) for one in seen):
                yield f"{name} says {row['answer']} under fence {row['fence']}, and that was never answered to it"
            case "skipped" if seen:
                yield f"{name} was skipped, and delivered"
            case "dead":
                yield from _died_early(row, seen, made[row["schedule_id"]])
            case _:
                pass


def unrecorded(history: History, _made: Made) -> Iterator[str]:
    """The journal has one entry for each settled delivery, and no others."""
    told = Counter(row["request_id"] for row in history.journal if row["outcome"] == "ok")
    delivered = Counter(row["id"] for row in history.occurrences if row["standing"] == "delivered")
    for name in (told | delivered) - (told & delivered):
        yield f"{name} was delivered {delivered[name]} times, and {told[name]} by the journal"


def _died_early(row: Row, seen: list[Arrival], new: ScheduleDefinition) -> Iterator[str]:
    """Given up only after a final refusal or the last allowed attempt, and never after a successful answer."""
    if any(one.how == receiver.How.WELL and one.fence == row["fence"] for one in seen):
        yield f"{row['id']} is dead, and its last attempt was answered well"
    if row["attempt"] < new.policy.attempts and not any(one.how == receiver.How.UNKNOWN for one in seen):
        yield f"{row['id']} is dead after {row['attempt']} of {new.policy.attempts} attempts"


def times_of(row: Row, meant: list[int]) -> list[int]:
    """The intended times of a row: its own, or all that were skipped with it."""
    if row["standing"] != "skipped":
        return [row["intended_us"]]
    several = re.search(r"\((\d+) of them, until (\S+)\)$", row["reason"] or "")
    if several is None:
        return [row["intended_us"]]
    last = oracle.microseconds(datetime.fromisoformat(several[2]))
    found = [at for at in meant if row["intended_us"] <= at <= last]
    # A wrong number shows as times that were not intended.
    return found if len(found) == int(several[1]) else [*found, -int(several[1])]


def _runs(rows: list[Row]) -> int:
    return sum(row["standing"] != "skipped" and not row["manual"] for row in rows)


def _identity(row: Row) -> tuple[int, str, int]:
    return row["schedule_id"], row["agent_id"], row["intended_us"]


def _answered(row: Row, arrival: Arrival) -> bool:
    return arrival.fence == row["fence"] and row["answer"] == f"{arrival.id}/{arrival.number}"


def _by_schedule(history: History) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in history.occurrences:
        found[row["schedule_id"]].append(row)
    return found
