"""What must hold in every history of a scheduler, whatever was done to it; what does not is told in a sentence."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from frontdesk.schedules.model import ScheduleDefinition
from tests.support.schedule import manners, oracle
from tests.support.schedule.books import Row
from tests.support.schedule.conduct import begun_twice, crowded, disorder, early, late_start
from tests.support.schedule.history import Arrival, History, by_delivery

Made = Mapping[int, ScheduleDefinition]
SETTLED = {"delivered", "dead", "skipped", "cancelled"}


def violations(history: History, made: Made) -> list[str]:
    """Everything that is wrong with a history; nothing, one hopes."""
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
    """Every occurrence has come to an end, and one that was not delivered says why."""
    cancelled = {one.schedule_id for one in history.diary.cancelled}
    for row in history.occurrences:
        if row["standing"] not in SETTLED:
            yield f"{row['id']} is still {row['standing']}"
        elif row["standing"] == "cancelled" and row["schedule_id"] not in cancelled:
            yield f"{row['id']} was cancelled, and nobody cancelled its schedule"
        elif row["standing"] in ("dead", "skipped") and not row["reason"]:
            yield f"{row['id']} is {row['standing']} without a reason"


def unaccounted(history: History, made: Made) -> Iterator[str]:
    """The times that were run or passed over are the oracle's, from the first without a gap, up to now or the end."""
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
    """One row for an intended time, and no more of them than the schedule allows; the receiver says so too."""
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
    """What a row says is what the receiver saw, and it was said by the last one to hold it."""
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
    """The journal tells of each delivery that was settled as one, once, and of no other."""
    told = Counter(row["request_id"] for row in history.journal if row["outcome"] == "ok")
    delivered = Counter(row["id"] for row in history.occurrences if row["standing"] == "delivered")
    for name in (told | delivered) - (told & delivered):
        yield f"{name} was delivered {delivered[name]} times, and {told[name]} by the journal"


def _died_early(row: Row, seen: list[Arrival], new: ScheduleDefinition) -> Iterator[str]:
    """Given up only when it was refused for good or as often as it may be, and never once it was answered well."""
    if any(one.how == manners.How.WELL and one.fence == row["fence"] for one in seen):
        yield f"{row['id']} is dead, and its last attempt was answered well"
    if row["attempt"] < new.policy.attempts and not any(one.how == manners.How.UNKNOWN for one in seen):
        yield f"{row['id']} is dead after {row['attempt']} of {new.policy.attempts} attempts"


def times_of(row: Row, meant: list[int]) -> list[int]:
    """The intended times that a row stands for: its own, or all that were passed over with it."""
    if row["standing"] != "skipped":
        return [row["intended_us"]]
    several = re.search(r"\((\d+) of them, until (\S+)\)$", row["reason"] or "")
    if several is None:
        return [row["intended_us"]]
    last = oracle.microseconds(datetime.fromisoformat(several[2]))
    found = [at for at in meant if row["intended_us"] <= at <= last]
    # A number that is not right shows as times that nobody meant.
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
